//! `longtake drives`: what drives there are, what each one tells of itself, and why it may not be written.

mod details;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use base::ByteSize;
use device::facts::{self, Facts};
use device::identity::{self, Drive};
use device::safety::{self, Verdict};
use device::wear::Wear;
use serde_json::{Value, json};
use target::{SimDrives, SimTarget};

use crate::arguments::DrivesArguments;
use crate::outlet;
use crate::profiles;

/// Lists drives; those that are named, in detail.
///
/// # Errors
/// If the system's list can't be read.
pub fn drives(arguments: &DrivesArguments) -> Result<ExitCode> {
    let texts: Vec<String> =
        arguments.targets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if let Some(targets) = SimTarget::all(&texts)? {
        return simulated(&targets, arguments.json);
    }
    let named = !arguments.targets.is_empty();
    let paths: Vec<PathBuf> = if named {
        arguments.targets.clone()
    } else {
        identity::drives()?.into_iter().filter(|d| d.size_bytes > 0).map(|d| d.path).collect()
    };
    let list = paths.into_iter().map(|path| {
        let verdict = safety::inspect(&path);
        (path, verdict)
    });
    // What can't be described is refused, and the refusal says why.
    let facts = |path: &Path| facts::read(path).ok();
    if arguments.json {
        let list = list.map(|(path, verdict)| value(&path, &verdict, facts(&path))).collect();
        outlet::json(&Value::Array(list))?;
    } else if named {
        for (n, (path, verdict)) in list.enumerate() {
            if n > 0 {
                outlet::text("")?;
            }
            let text = details::text(&path, facts(&path).as_ref(), &permission(&verdict));
            outlet::text(text.trim_end())?;
            refusals(&path, &verdict)?;
        }
    } else {
        table(&list.collect::<Vec<_>>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Simulated drives in detail. Nobody has to be protected from writing them.
fn simulated(targets: &[SimTarget], json: bool) -> Result<ExitCode> {
    let drives = SimDrives::new(targets, None, profiles::known())?;
    let facts = drives.facts(&drives.bank()?)?;
    if json {
        let value = |facts: Facts| {
            let verdict = Verdict {
                drive: Some(facts.drive.clone()),
                refusals: Vec::new(),
                unchecked: Vec::new(),
            };
            let path = facts.drive.path.clone();
            let mut value = value(&path, &verdict, Some(facts));
            value["simulated"] = json!(true);
            value
        };
        outlet::json(&Value::Array(facts.into_iter().map(value).collect()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let permission = "yes: it is simulated, and lives as long as the command that names it";
    for (n, facts) in facts.iter().enumerate() {
        if n > 0 {
            outlet::text("")?;
        }
        outlet::text(details::text(&facts.drive.path, Some(facts), permission).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that is known of a target, as JSON.
fn value(path: &Path, verdict: &Verdict, facts: Option<Facts>) -> Value {
    let mut value = json!(verdict);
    value["path"] = json!(path);
    value["simulated"] = json!(false);
    value["writable"] = json!(verdict.allowed());
    value["reasons"] = verdict.refusals.iter().map(ToString::to_string).collect();
    value["confirm_with"] = json!(verdict.drive.as_ref().and_then(Drive::confirmation));
    // The drive is there already.
    value["link_verdict"] = json!(facts.as_ref().and_then(|facts| facts.link_verdict));
    value["temperatures"] = json!(facts.as_ref().map(|facts| &facts.temperatures));
    value["nvme"] = json!(facts.and_then(|facts| facts.nvme));
    value
}

fn table(list: &[(PathBuf, Verdict)]) -> Result<()> {
    let mut table = outlet::table(
        &["drive", "model", "serial", "size", "link", "wear", "may be written"],
        &[3, 5],
    );
    for (path, verdict) in list {
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
    for (path, verdict) in list {
        refusals(path, verdict)?;
    }
    Ok(())
}

/// Why a target may not be written, if it may not.
fn refusals(path: &Path, verdict: &Verdict) -> Result<()> {
    if !verdict.allowed() {
        outlet::text("")?;
        outlet::message(&format!("{} is refused:", path.display()))?;
        for refusal in &verdict.refusals {
            outlet::text(&format!("  {refusal}"))?;
        }
    }
    Ok(())
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
