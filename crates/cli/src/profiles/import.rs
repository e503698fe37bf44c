//! `longtake profiles import`: what was measured, here or elsewhere, as a profile of the user's own.

mod given;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lab::profiling::file_name;
use profile::{Profile, library};
use serde_json::json;
use target::output::Outputs;
use target::profiles::is_path;

use super::arguments::ImportArguments;
use super::show;
use crate::outlet;
use given::Given;

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
    let given = given::read(arguments, known.as_ref())?;
    let name = name(arguments, &given, known.as_ref());
    let mut profile = made(arguments, &given, known.as_ref(), &name)?;
    let sentences = given.judge(&mut profile)?;
    if profile.figures.is_empty() {
        bail!(
            "nothing of {} tells how a drive is: give one workload alone (a sequential stream or random reads), a fill, or its \
             rate over time",
            given::list(&arguments.from)
        );
    }
    profile.notes.push(format!(
        "Read in by longtake {} from {}.",
        env!("CARGO_PKG_VERSION"),
        given.files()
    ));
    if let Some(mut known) = known {
        // Parameters of a simulation were fitted to other figures.
        known.simulated = profile::Simulated::default();
        profile = profile.merge(known).context("putting it together with what --drive knows")?;
    }
    let path = place(arguments, &name, &outputs)?;
    write(&outputs, &path, &profile)?;
    if arguments.json {
        outlet::json(
            &json!({"path": path, "profile": show::value(&profile), "answer": sentences}),
        )?;
    } else {
        for sentence in sentences {
            outlet::text(&sentence)?;
        }
        show::print(&profile)?;
        outlet::message(&format!("profile: {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the profile is called.
fn name(arguments: &ImportArguments, given: &Given, known: Option<&Profile>) -> String {
    let of_drive = || {
        let what = if arguments.published.is_some() { "published" } else { "measured" };
        known.map(|known| format!("{}-{what}", known.name))
    };
    let of_file = || {
        let output = arguments.output.as_ref().or_else(|| arguments.from.first());
        output.and_then(|path| path.file_stem()).map(|stem| stem.to_string_lossy().into_owned())
    };
    let asked = arguments.name.clone().or_else(of_drive).or_else(|| arguments.model.clone());
    let name = asked.or_else(|| given.model.clone()).or_else(of_file).unwrap_or_default();
    file_name(&name)
}

/// A profile without figures.
fn made(
    arguments: &ImportArguments,
    given: &Given,
    known: Option<&Profile>,
    name: &str,
) -> Result<Profile> {
    let told = known.map(|known| known.model.clone()).or_else(|| arguments.model.clone());
    let model = told.or_else(|| given.model.clone()).unwrap_or_else(|| name.to_owned());
    let Some(capacity_bytes) = given.capacity_bytes else {
        bail!(
            "{} doesn't tell how large the drive is: add --capacity, as in --capacity 1TB, or --drive with one that is known",
            given::list(&arguments.from)
        );
    };
    let kind = known.map(|known| known.kind.clone()).or_else(|| given.kind.clone());
    Ok(Profile::new(name, &model, kind.as_deref().unwrap_or("nvme"), capacity_bytes))
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
    let drive = arguments.drive.iter().filter(|word| is_path(word)).map(PathBuf::from);
    arguments.from.iter().chain(&arguments.overwrite_pass).cloned().chain(drive)
}

fn write(outputs: &Outputs, path: &Path, profile: &Profile) -> Result<()> {
    let text = profile.to_toml().with_context(|| format!("writing {}", path.display()))?;
    outputs.write(path, &text).context("--name gives it another name")
}
