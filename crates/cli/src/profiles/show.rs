//! `longtake profiles show`: every figure of a drive, where it comes from and how far to trust it.

use std::process::ExitCode;

use anyhow::Result;
use base::ByteSize;
use device::shell::quoted;
use profile::Profile;
use serde_json::{Value, json};

use super::arguments::ShowArguments;
use super::known;
use crate::printer;

/// Shows what is known of a drive.
///
/// # Errors
/// If it isn't there or can't be read.
pub fn show(arguments: &ShowArguments) -> Result<ExitCode> {
    let profile = known().find(&arguments.drive)?;
    if arguments.json {
        printer::json(&value(&profile))?;
    } else {
        print(&profile)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a profile as a table.
///
/// # Errors
/// If standard output is gone.
pub fn print(profile: &Profile) -> Result<()> {
    let size = ByteSize(profile.capacity_bytes);
    printer::text(&format!(
        "{}: {}, {}, {size}",
        printer::inline(&profile.name),
        printer::inline(&profile.model),
        printer::inline(&profile.kind)
    ))?;
    for note in &profile.notes {
        printer::text(&format!("  {}", printer::inline(note)))?;
    }
    let mut table = printer::table(&["figure", "value", "range", "trust", "from"], &[1]);
    for (name, known) in &profile.figures {
        table.add_row([
            name.clone(),
            known.unit.show(known.value),
            known.show_range(),
            known.trust().to_string(),
            known.show_source(),
        ]);
    }
    printer::text(&format!("\n{}", printer::trimmed(&table)))?;
    printer::text(
        "\nTrust: measured closely (within a tenth), measured (it strays further, or by an unknown amount), published by a \
         measurer, datasheet (the maker's word), assumed.",
    )?;
    printer::text(&if profile.simulated.is_empty() {
        "It can't be simulated yet: `longtake fit` finds the simulated drive that comes closest."
            .to_owned()
    } else {
        format!("What it is simulated by: longtake sim show {}", quoted(&profile.name))
    })
}

/// A profile as JSON, each figure with how far to trust it.
pub fn value(profile: &Profile) -> Value {
    let mut value = json!(profile);
    for (name, known) in &profile.figures {
        value["figures"][name]["trust"] = json!(known.trust());
    }
    value
}
