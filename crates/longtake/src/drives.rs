//! `longtake drives`: what drives there are, and why each may not be written.

use std::process::ExitCode;

use anyhow::Result;
use base::ByteSize;
use device::identity::{self, Drive};
use device::safety::{self, Verdict};
use device::wear::Wear;
use serde_json::{Value, json};

use crate::arguments::DrivesArguments;
use crate::outlet;

/// Lists drives.
///
/// # Errors
/// If the system's list can't be read.
pub fn drives(arguments: &DrivesArguments) -> Result<ExitCode> {
    let paths = if arguments.targets.is_empty() {
        identity::drives()?.into_iter().filter(|d| d.size_bytes > 0).map(|d| d.path).collect()
    } else {
        arguments.targets.clone()
    };
    let mut list = Vec::new();
    for path in paths {
        list.push((path.clone(), safety::inspect(&path)));
    }
    if arguments.json {
        let list: Vec<Value> = list
            .iter()
            .map(|(path, verdict)| {
                let mut value = json!(verdict);
                value["path"] = json!(path);
                value["writable"] = json!(verdict.allowed());
                value["reasons"] = verdict.refusals.iter().map(ToString::to_string).collect();
                value["confirm_with"] = json!(verdict.drive.as_ref().and_then(Drive::confirmation));
                value
            })
            .collect();
        outlet::json(&Value::Array(list))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = outlet::table(
        &["drive", "model", "serial", "size", "link", "wear", "may be written"],
        &[3, 5],
    );
    for (path, verdict) in &list {
        let drive = verdict.drive.as_ref();
        let dash = || "-".to_owned();
        table.add_row([
            path.display().to_string(),
            drive.and_then(|d| d.model.clone()).unwrap_or_else(dash),
            drive.and_then(|d| d.serial.clone()).unwrap_or_else(dash),
            drive.map_or_else(dash, |d| ByteSize(d.size_bytes).to_string()),
            drive.and_then(|d| d.link.as_ref()).map_or_else(dash, ToString::to_string),
            drive.map_or_else(dash, wear),
            permission(verdict),
        ]);
    }
    outlet::text(&outlet::trimmed(&table))?;
    for (path, verdict) in list.iter().filter(|(_, v)| !v.allowed()) {
        outlet::text(&format!("\n{} is refused:", path.display()))?;
        for refusal in &verdict.refusals {
            outlet::text(&format!("  {refusal}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn permission(verdict: &Verdict) -> String {
    match (verdict.allowed(), verdict.drive.as_ref().and_then(Drive::confirmation)) {
        (false, _) => "no, see below".to_owned(),
        (true, Some(word)) => format!("with --erase {word}"),
        (true, None) => "yes".to_owned(),
    }
}

fn wear(drive: &Drive) -> String {
    match &drive.wear {
        Wear::Known(health) => format!("{} %", health.percent_used),
        Wear::Unknown { .. } => "not known".to_owned(),
    }
}
