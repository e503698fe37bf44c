//! `longtake sim show`: a drive's parameters with their sources, and what follows from them.

use std::process::ExitCode;

use anyhow::Result;
use base::ByteSize;
use profile::Profile;
use twin::Described;

use crate::printer;

/// Shows a drive.
///
/// # Errors
/// If standard output is gone.
pub fn show(profile: &Profile, described: &Described<'_>, json: bool) -> Result<ExitCode> {
    if json {
        printer::json(&described.to_json())?;
        return Ok(ExitCode::SUCCESS);
    }
    printer::text(&format!(
        "{}: {}, {}",
        printer::inline(&profile.name),
        printer::inline(&profile.model),
        ByteSize(profile.capacity_bytes)
    ))?;
    for note in &profile.notes {
        printer::text(&format!("  {}", printer::inline(note)))?;
    }
    let mut table = printer::table(&["parameter", "value", "known by", "from"], &[1]);
    for row in described.parameter_rows() {
        table.add_row(row);
    }
    printer::text(&format!("\n{}", printer::trimmed(&table)))?;
    let mut table = printer::table(&["derived from these", ""], &[1]);
    for row in described.derived_rows() {
        table.add_row(row);
    }
    printer::text(&format!("\n{}", printer::trimmed(&table)))?;
    Ok(ExitCode::SUCCESS)
}
