//! `longtake plan`: how many drives a rate needs, which limit binds, and the arithmetic of it.

pub mod arguments;
mod beside;
mod prove;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use plan::trial::Proofs;
use plan::{Candidate, Described, Draft, Requirement, RequirementError};
use profile::{Profile, library};
use report::planned;
use target::output::Outputs;
use target::profiles::is_path;

use crate::profiles;
use crate::{exit, printer};
use arguments::PlanArguments;

/// Plans, and prints what came of it. Done (0) if some drive will do, failed (1) if none will, wrong arguments (2) for what can't be
/// required, 3 if recording on simulated drives doesn't confirm a number of drives, or is cut short before it can.
///
/// # Errors
/// If a file can't be read, or a drive isn't there.
pub fn plan(arguments: &PlanArguments) -> Result<ExitCode> {
    let (draft, requirement) = match required(arguments)? {
        Ok(both) => both,
        Err(error) => {
            printer::tell(&format!("longtake: {error}"));
            return Ok(ExitCode::from(exit::USAGE));
        }
    };
    if arguments.print.is_some() {
        printer::text(draft.to_toml()?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = arguments.drives.iter().filter(|word| is_path(word)).map(PathBuf::from);
    let outputs =
        Outputs::new(arguments.overwrite).reads(arguments.requirement.iter().cloned().chain(files));
    if let Some(path) = &arguments.html {
        outputs.check(path)?;
    }
    // What the requirement's check found wrong with it was told above.
    let described = draft.described().ok().flatten();
    if arguments.prove && described.is_some() && draft.drives.is_empty() {
        printer::tell(
            "longtake: --prove records on simulated drives, and a size and a rate are not enough to simulate a drive: leave \
             --prove out, name a drive of the library (--drive), or measure yours (`longtake measure fill`, `longtake fit`)",
        );
        return Ok(ExitCode::from(exit::USAGE));
    }
    let candidates = candidates(&draft, described)?;
    let is_one = |name: &String| {
        draft.drives.contains(name) || candidates.iter().any(|c| c.profile.name == *name)
    };
    if let Some(name) = draft.prices.keys().find(|name| !is_one(name)) {
        let names: Vec<&str> = candidates.iter().map(|c| c.profile.name.as_str()).collect();
        printer::tell(&format!(
            "longtake: there is a price for '{name}', which is none of the drives to choose from: {}",
            names.join(", ")
        ));
        return Ok(ExitCode::from(exit::USAGE));
    }
    let answer = plan::plan(&requirement, &candidates);
    if !arguments.json {
        printer::text(&planned::text(&requirement, &answer, arguments.explain))?;
    }
    let compared = beside::beside(&requirement, &answer, &candidates, !arguments.json)?;
    let proved = if arguments.prove {
        prove::prove(&requirement, &answer, &candidates, arguments.long, !arguments.json)?
    } else {
        Proofs::default()
    };
    if let Some(path) = &arguments.html {
        let page = planned::document(&requirement, &answer, &compared, &proved);
        outputs.write(path, &report::html::page(&page))?;
        printer::tell(&format!("report: {}", path.display()));
    }
    if arguments.json {
        printer::json(&planned::json(&draft, &answer, &compared, &proved))?;
    }
    let possible = answer.designs.iter().any(|design| design.array.is_some());
    Ok(match (possible, proved.confirmed()) {
        (false, _) => ExitCode::from(exit::FAILED),
        (true, false) => ExitCode::from(exit::LOSS),
        (true, true) => ExitCode::SUCCESS,
    })
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

/// The drives to choose from.
fn candidates(draft: &Draft, described: Option<Described>) -> Result<Vec<Candidate>> {
    let profiles: Vec<(String, Profile)> = if draft.drives.is_empty() && described.is_none() {
        let known = library::names().map(|name| Ok((name.to_owned(), library::get(name)?)));
        known.collect::<Result<_>>()?
    } else {
        let named = draft.drives.iter().map(|name| {
            let word = name.strip_prefix("sim:").unwrap_or(name);
            Ok((name.clone(), profiles::known().find(word)?))
        });
        named.collect::<Result<_>>()?
    };
    let candidate = |(name, profile): (String, Profile)| {
        let price = draft.prices.get(&profile.name).or_else(|| draft.prices.get(&name)).copied();
        Candidate::new(profile, price)
    };
    let of_description = described.map(|described| {
        Candidate::of_description(described, draft.prices.get(&described.name()).copied())
    });
    Ok(profiles.into_iter().map(candidate).chain(of_description).collect())
}
