//! `longtake profiles import`: what was measured, here or elsewhere, as a profile of the user's own.

use std::path::PathBuf;
use std::process::ExitCode;

use ::profile::library;
use ::report::profiles::{figures, figures_json};
use anyhow::{Context, Result, bail};
use lab::importing::profile::{self, ImportOptions, Imported};
use lab::importing::table::TableOptions;
use serde_json::json;
use target::output::Outputs;

use super::arguments::ImportArguments;

use crate::printer;

/// Reads what was measured and keeps it as a profile.
///
/// # Errors
/// If something can't be read, belongs to another drive, tells nothing, or the profile can't be written.
pub fn import(arguments: &ImportArguments) -> Result<ExitCode> {
    let outputs = Outputs::new(arguments.overwrite).reads(inputs(arguments));
    if let Some(path) = &arguments.output {
        outputs.check(path)?;
    }
    let known = arguments.drive.as_deref().map(|word| super::known().find(word)).transpose()?;
    let Imported { profile, sentences } =
        profile::import(&options(arguments), known, env!("CARGO_PKG_VERSION"))?;
    let path = place(arguments, &profile.name, &outputs)?;
    let text = profile.to_toml().with_context(|| format!("writing {}", path.display()))?;
    outputs.write(&path, &text)?;
    if arguments.json {
        printer::json(
            &json!({"path": path, "profile": figures_json(&profile), "answer": sentences}),
        )?;
    } else {
        for sentence in sentences {
            printer::text(&sentence)?;
        }
        printer::text(&figures(&profile))?;
        printer::message(&format!("profile: {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &ImportArguments) -> ImportOptions {
    let arguments = arguments.clone();
    ImportOptions {
        from: arguments.from,
        overwrite_pass: arguments.overwrite_pass,
        full: arguments.full,
        capacity_bytes: arguments.capacity.map(|size| size.0),
        model: arguments.model,
        name: arguments.name,
        output: arguments.output,
        by: arguments.by,
        published: arguments.published,
        when: arguments.when,
        table: TableOptions {
            time_column: arguments.time_column,
            rate_column: arguments.rate_column,
            time_unit: arguments.time_unit,
            rate_unit: arguments.rate_unit,
            capacity_bytes: None,
        },
    }
}

/// Where the profile goes.
fn place(arguments: &ImportArguments, name: &str, outputs: &Outputs) -> Result<PathBuf> {
    if let Some(path) = &arguments.output {
        return Ok(path.clone());
    }
    if library::get(name).is_ok() {
        bail!("the library has a drive '{name}', which comes first: give yours another --name");
    }
    let Some(folder) = super::known().folder() else {
        bail!(
            "there is no folder for your own profiles, as neither XDG_DATA_HOME nor HOME is set: give --profiles or --output"
        );
    };
    outputs.make_folder(folder)?;
    Ok(folder.join(format!("{name}.toml")))
}

/// The files that the import reads.
fn inputs(arguments: &ImportArguments) -> impl Iterator<Item = PathBuf> {
    let drive = arguments.drive.iter().filter_map(|word| super::known().file(word));
    arguments.from.iter().chain(&arguments.overwrite_pass).cloned().chain(drive)
}
