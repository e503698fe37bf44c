//! `longtake plan`: how many drives a rate needs, which limit binds, and the arithmetic of it.

pub mod arguments;
mod beside;
mod prove;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use longtake::planning::{Draft, Planning, PlanningError, Proofs, Requirement, RequirementError};
use report::planned;
use target::output::Outputs;
use target::profiles::Surroundings;

use crate::{exit, printer, profiles};
use arguments::PlanArguments;

/// Plans, and prints what came of it. Done (0) if some drive will do, failed (1) if none will, wrong arguments (2) for what can't be
/// required, 3 if recording on simulated drives doesn't confirm a number of drives, or is cut short before it can.
///
/// # Errors
/// If a file can't be read, or a drive isn't there.
pub fn plan(arguments: &PlanArguments) -> Result<ExitCode> {
    let (draft, requirement) = match required(arguments)? {
        Ok(both) => both,
        Err(error) => return Ok(wrong(&error.to_string())),
    };
    if arguments.print.is_some() {
        printer::text(draft.to_toml()?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = draft.drives.iter().filter_map(|word| profiles::known().file(word));
    let outputs =
        Outputs::new(arguments.overwrite).reads(arguments.requirement.iter().cloned().chain(files));
    if let Some(path) = &arguments.html {
        outputs.check(path)?;
    }
    if arguments.prove && draft.drive_size.is_some() && draft.drives.is_empty() {
        return Ok(wrong(
            "--prove records on simulated drives, and a size and a rate are not enough to simulate a drive: leave \
             --prove out, name a drive of the library (--drive), or measure yours (`longtake measure fill`, `longtake fit`)",
        ));
    }
    let place = arguments.place.place();
    if place != Surroundings::default() && !arguments.prove {
        return Ok(wrong("--ambient and --cooling change proofs alone: add --prove"));
    }
    let planning = match Planning::new(draft, &profiles::known().clone().placed(place)) {
        Ok(planning) => planning,
        Err(PlanningError::Drive(error)) => return Err(error.into()),
        Err(error) => return Ok(wrong(&error.to_string())),
    };
    let answer = planning.answer();
    if !arguments.json {
        printer::text(&planned::text(&requirement, &answer, arguments.explain))?;
    }
    let compared = beside::beside(&planning, &answer, !arguments.json)?;
    let proved = if arguments.prove {
        prove::prove(&planning, &answer, arguments.long, !arguments.json)?
    } else {
        Proofs::default()
    };
    if let Some(path) = &arguments.html {
        let page = planned::document(&requirement, &answer, &compared, &proved);
        outputs.write(path, &report::html::page(&page))?;
        printer::tell(&format!("report: {}", path.display()));
    }
    if arguments.json {
        printer::json(&planned::json(&planning.draft, &answer, &compared, &proved))?;
    }
    let possible = answer.designs.iter().any(|design| design.array.is_some());
    Ok(match (possible, proved.confirmed()) {
        (false, _) => ExitCode::from(exit::FAILED),
        (true, false) => ExitCode::from(exit::LOSS),
        (true, true) => ExitCode::SUCCESS,
    })
}

/// Says what is wrong with the arguments.
fn wrong(why: &str) -> ExitCode {
    printer::tell(&format!("longtake: {why}"));
    ExitCode::from(exit::USAGE)
}

/// What is required, as it was said and as it is.
fn required(arguments: &PlanArguments) -> Result<Result<(Draft, Requirement), RequirementError>> {
    let mut draft = arguments.draft();
    if let Some(path) = &arguments.requirement {
        let text = fs::read_to_string(path)
            .with_context(|| format!("reading the requirement {}", path.display()))?;
        draft = match Draft::from_toml(&text) {
            Ok(file) => file.overridden(draft),
            Err(error) => return Ok(Err(error)),
        };
    }
    Ok(draft.check().map(|requirement| (draft, requirement)))
}
