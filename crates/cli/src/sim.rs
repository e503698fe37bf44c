//! `longtake sim`: the drives that can be simulated, what they are made of, and files of one's own.

pub mod arguments;
mod rest;
mod show;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use base::ByteSize;
use profile::{Profile, library};
use serde_json::{Value, json};
use target::Model;
use target::output::Outputs;
use target::profiles;
use target::simulated::spec;
use twin::Described;

use crate::profiles::arguments::ListArguments;
use crate::profiles::known;
use crate::{exit, printer};
use arguments::{CheckArguments, NewArguments, SimAction};

/// Does what is asked with simulated drives.
///
/// # Errors
/// If a drive isn't there or can't be, or a file can't be read or written.
pub fn sim(action: &SimAction) -> Result<ExitCode> {
    match action {
        SimAction::List(arguments) => list(arguments),
        SimAction::Show(arguments) => {
            let model = Model::named(&arguments.drive)?;
            let profile = model.profile(known())?;
            let spec = spec(&profile).with_context(|| model.to_string())?;
            show::show(&profile, &Described::new(&profile, &spec), arguments.json)
        }
        SimAction::New(arguments) => new(arguments),
        SimAction::Check(arguments) => check(arguments),
        SimAction::Rest(arguments) => rest::rest(arguments),
    }
}

fn list(arguments: &ListArguments) -> Result<ExitCode> {
    let drives = library::names()
        .map(|name| {
            let profile = library::get(name)?;
            let spec = spec(&profile).with_context(|| name.to_owned())?;
            Ok((profile, spec))
        })
        .collect::<Result<Vec<_>>>()?;
    if arguments.json {
        let values = drives.iter().map(|(profile, spec): &(Profile, _)| {
            json!({
                "name": profile.name,
                "model": profile.model,
                "capacity_bytes": profile.capacity_bytes,
                "cached_write_bytes_per_s": spec.cached_write_bytes_per_s(),
                "native_write_bytes_per_s": spec.native_write_bytes_per_s(),
                "sequential_read_bytes_per_s": spec.sequential_read_bytes_per_s(),
            })
        });
        printer::json(&values.collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    let heads = ["name", "size", "reads", "writes", "into its cache", "model"];
    let mut table = printer::table(&heads, &[1, 2, 3, 4]);
    let gb = |rate: f64| format!("{:.2} GB/s", rate / 1e9);
    for (profile, spec) in drives {
        table.add_row([
            profile.name.clone(),
            ByteSize(profile.capacity_bytes).to_string(),
            gb(spec.sequential_read_bytes_per_s()),
            gb(spec.native_write_bytes_per_s()),
            spec.cached_write_bytes_per_s().map_or_else(|| "-".to_owned(), gb),
            profile.model,
        ]);
    }
    printer::text(&printer::trimmed(&table))?;
    printer::text(
        "\nRates are ceilings by plain arithmetic. Use one as sim:NAME wherever a drive is asked for.",
    )?;
    Ok(ExitCode::SUCCESS)
}

fn new(arguments: &NewArguments) -> Result<ExitCode> {
    let from = Model::named(&arguments.from)?;
    let outputs = Outputs::new(arguments.overwrite).reads(known().file(&arguments.from));
    outputs.check(&arguments.output)?;
    let mut made = from.profile(known())?;
    made.name.clone_from(&arguments.name);
    // What was left to defaults is written down too: there to be changed.
    spec(&made).with_context(|| from.to_string())?.fill_in(&mut made.simulated);
    let text = format!(
        "# Made from {from}. What each parameter means: docs/simulated-drives.md, or `longtake sim show --json`.\n\
         # `longtake sim check` says what can't be. Mark what you measure: channels = {{ is = 8, measured = \"how\" }}.\n{}",
        made.to_toml()?
    );
    let path = &arguments.output;
    outputs.write(path, &text)?;
    if arguments.json {
        printer::json(&json!({"file": path, "name": made.name, "from": from.to_string()}))?;
    } else {
        printer::message(&path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check(arguments: &CheckArguments) -> Result<ExitCode> {
    let mut good = true;
    let mut values: Vec<Value> = Vec::new();
    for path in &arguments.files {
        let problem = checked(path).err().map(|error| format!("{error:#}"));
        good &= problem.is_none();
        if arguments.json {
            values.push(json!({"file": path, "good": problem.is_none(), "problem": problem}));
        } else {
            let verdict = problem.as_deref().unwrap_or("good");
            printer::message(&format!("{}: {verdict}", path.display()))?;
        }
    }
    if arguments.json {
        printer::json(&Value::Array(values))?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Whether a file describes a drive that can be simulated.
fn checked(path: &Path) -> Result<()> {
    spec(&profiles::read(path)?)?;
    Ok(())
}
