//! `longtake measure`: workloads and experiments on real drives.

pub mod arguments;
mod experiments;
mod import;
mod run;
mod sensors;
mod setup;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use lab::experiment::any::Experiment;

use arguments::MeasureAction;
use experiments::experiments;

/// Measures.
///
/// # Errors
/// What can't be opened, written or understood.
pub fn measure(action: &MeasureAction) -> Result<ExitCode> {
    match action {
        MeasureAction::Run(arguments) => run::run(arguments),
        MeasureAction::Import(arguments) => import::import(arguments),
        MeasureAction::Fill(arguments) => experiments(&["fill"], arguments),
        MeasureAction::Stream(arguments) => experiments(&["stream"], arguments),
        MeasureAction::Steady(arguments) => experiments(&["steady"], arguments),
        MeasureAction::Viewers(arguments) => experiments(&["viewers"], arguments),
        MeasureAction::Apps(arguments) => experiments(&["apps"], arguments),
        MeasureAction::Mix(arguments) => experiments(&["mix"], arguments),
        MeasureAction::Neighbours(arguments) => experiments(&["neighbours"], arguments),
        MeasureAction::Link(arguments) => experiments(&["link"], arguments),
        MeasureAction::Snia(arguments) => experiments(&["snia"], arguments),
        MeasureAction::All(arguments) => experiments(Experiment::NAMES, arguments),
    }
}

/// The folder for results: as asked for, or a new one named after the time. Refuses one that has results already, unless
/// they are to be gone on with.
///
/// # Errors
/// If it is not new, or resuming has nothing to resume.
pub fn output_folder(asked: Option<&PathBuf>, resume: bool) -> Result<PathBuf> {
    let Some(folder) = asked else {
        if resume {
            bail!("--resume needs --output: the folder with the results to go on with");
        }
        return Ok(PathBuf::from(
            jiff::Zoned::now().strftime("measured-%Y-%m-%d-%H%M%S").to_string(),
        ));
    };
    let used = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if used && !resume {
        bail!(
            "{} is not empty: name a new folder, or add --resume to go on with what is in it",
            folder.display()
        );
    }
    Ok(folder.clone())
}
