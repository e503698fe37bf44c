//! `longtake drives`: which drives there are, what each one reports, and why it may not be written.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use device::{facts, identity, safety};
use report::drive::{self, Target};
use serde_json::Value;
use target::{SimDrives, SimTarget};

use crate::arguments::DrivesArguments;
use crate::exit;
use crate::printer;
use crate::profiles;

/// Lists drives; those that are named, in detail, with [`exit::FAILED`] if one of them is none.
///
/// # Errors
/// If the system's list can't be read.
pub fn drives(arguments: &DrivesArguments) -> Result<ExitCode> {
    let texts: Vec<String> =
        arguments.targets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if let Some(targets) = SimTarget::all(&texts)? {
        let drives = SimDrives::new(&targets, None, profiles::known())?;
        let facts = drives.facts(&drives.bank()?)?;
        in_detail(facts.into_iter().map(Target::simulated), arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let named = !arguments.targets.is_empty();
    let paths: Vec<PathBuf> = if named {
        arguments.targets.clone()
    } else {
        identity::drives()?.into_iter().filter(|d| d.size_bytes > 0).map(|d| d.path).collect()
    };
    let detailed = named || arguments.json;
    let mut all_exist = true;
    let list = paths.into_iter().map(|path| {
        let verdict = safety::inspect(&path);
        // What can't be described is refused, and the refusal says why.
        let facts = if detailed { facts::read(&path).ok() } else { None };
        all_exist &= !named || facts.is_some() || verdict.allowed();
        Target::real(path, verdict, facts)
    });
    if detailed {
        in_detail(list, arguments.json)?;
        return Ok(if all_exist { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) });
    }
    printer::text(&drive::list(&list.collect::<Vec<_>>()))?;
    Ok(ExitCode::SUCCESS)
}

fn in_detail(targets: impl Iterator<Item = Target>, json: bool) -> Result<()> {
    if json {
        return printer::json(&Value::Array(targets.map(|target| target.json()).collect()));
    }
    for (n, target) in targets.enumerate() {
        if n > 0 {
            printer::text("")?;
        }
        printer::text(&target.page())?;
    }
    Ok(())
}
