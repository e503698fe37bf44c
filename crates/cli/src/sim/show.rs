//! `longtake sim show`: a drive's parameters with their sources, and what follows from them.

use std::process::ExitCode;

use anyhow::Result;
use base::ByteSize;
use profile::Profile;
use twin::Described;

use crate::outlet;

/// Shows a drive.
///
/// # Errors
/// If standard output is gone.
pub fn show(profile: &Profile, described: &Described<'_>, json: bool) -> Result<ExitCode> {
    if json {
        outlet::json(&described.to_json())?;
        return Ok(ExitCode::SUCCESS);
    }
    outlet::text(&format!(
        "{}: {}, {}",
        outlet::inline(&profile.name),
        outlet::inline(&profile.model),
        ByteSize(profile.capacity_bytes)
    ))?;
    for note in &profile.notes {
        outlet::text(&format!("  {}", outlet::inline(note)))?;
    }
    let mut table = outlet::table(&["parameter", "value", "known by", "from"], &[1]);
    for row in described.parameter_rows() {
        table.add_row(row);
    }
    outlet::text(&format!("\n{}", outlet::trimmed(&table)))?;
    let mut table = outlet::table(&["it comes to", ""], &[1]);
    for row in described.derived_rows() {
        table.add_row(row);
    }
    outlet::text(&format!("\n{}", outlet::trimmed(&table)))?;
    Ok(ExitCode::SUCCESS)
}
