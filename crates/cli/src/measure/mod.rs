//! `longtake measure`: workloads and experiments on real drives and simulated ones.

pub mod arguments;
mod experiments;
mod import;
mod options;
mod replay;
mod run;

use std::process::ExitCode;

use ::report::measurement;
use anyhow::Result;
use base::ByteSize;
use lab::experiment::Options;
use lab::experiment::any::Experiment;
use lab::{Go, ThreadOptions};
use load::{Measurement, Workload};
use target::NewFiles;
use target::real::OpenNotice;
use twin::{OpenRig, Setup, SetupOptions};

pub use twin::OutputFolder;

use crate::{printer, profiles};
use arguments::{MeasureAction, RigArguments};
use experiments::experiments;

/// Measures.
///
/// # Errors
/// What can't be opened, written or understood.
pub fn measure(action: &MeasureAction) -> Result<ExitCode> {
    match action {
        MeasureAction::Run(arguments) => run::run(arguments),
        MeasureAction::Import(arguments) => import::import(arguments),
        MeasureAction::Replay(arguments) => replay::replay(arguments),
        MeasureAction::Fill(a) => experiments(&["fill"], &a.experiment, a.options(), None),
        MeasureAction::Stream(a) => experiments(&["stream"], &a.experiment, a.options(), None),
        MeasureAction::Steady(a) => experiments(&["steady"], &a.experiment, a.options(), None),
        MeasureAction::Viewers(a) => experiments(&["viewers"], &a.experiment, a.options(), None),
        MeasureAction::Apps(a) => experiments(&["apps"], &a.experiment, a.options()?, None),
        MeasureAction::Mix(a) => experiments(&["mix"], &a.experiment, a.options(), None),
        MeasureAction::Neighbours(a) => {
            experiments(&["neighbours"], &a.experiment, a.options(), None)
        }
        MeasureAction::Link(arguments) => experiments(
            &["link"],
            &arguments.experiment,
            arguments.options(),
            arguments.retrain.clone(),
        ),
        MeasureAction::Snia(a) => experiments(&["snia"], &a.experiment, a.options(), None),
        MeasureAction::Diskmark(arguments) => {
            experiments(&["diskmark"], arguments, Options::Defaults, None)
        }
        MeasureAction::All(arguments) => {
            experiments(Experiment::NAMES, arguments, Options::Defaults, None)
        }
    }
}

/// The drives that the options name.
fn look(rig: &RigArguments, new_file_bytes: u64, retrain: Option<String>) -> Result<Setup> {
    let profiles = profiles::known().clone().placed_for(rig.place.place(), &rig.targets)?;
    Ok(Setup::look(setup_options(rig, new_file_bytes, retrain), &profiles)?)
}

fn setup_options(rig: &RigArguments, new_file_bytes: u64, retrain: Option<String>) -> SetupOptions {
    SetupOptions {
        targets: rig.targets.clone(),
        erase: rig.erase.clone(),
        mode: rig.mode.0,
        new_file_bytes,
        threads: ThreadOptions {
            threads: rig.threads.into(),
            cpus: rig.cpus.clone(),
            poll: rig.poll,
        },
        uplink: rig.uplink,
        retrain,
    }
}

/// Opens the drives and says what happens to them.
fn open(
    setup: Setup,
    writes: bool,
    workload: Option<&Workload>,
    stopped: &dyn Fn() -> Go,
) -> Result<OpenRig> {
    let mut made = NewFiles::default();
    let mut notice = |notice: OpenNotice<'_>| {
        printer::tell(&match notice {
            OpenNotice::Making { path, bytes } => {
                format!("longtake: note: making {} of {}", path.display(), ByteSize(bytes))
            }
            OpenNotice::Reusing { path } => {
                let path = path.display();
                format!("longtake: note: writing over {path}, which an earlier measurement made")
            }
            OpenNotice::Warning(warning) => format!("longtake: warning: {warning}"),
        });
    };
    let opened = setup.open(writes, workload, &mut made, stopped, &mut notice);
    // What was made for a rig that could not be opened goes away again.
    let remaining = made.remove();
    if !remaining.is_empty() {
        let remaining: Vec<String> =
            remaining.iter().map(|file| file.display().to_string()).collect();
        printer::tell(&format!(
            "longtake: warning: these files were created and can't be removed again: {}",
            remaining.join(", ")
        ));
    }
    Ok(opened?)
}

/// Prints a measurement, and what the drives counted meanwhile.
fn print(measured: &Measurement, counted: &[String]) -> Result<()> {
    let mut table = printer::table(&measurement::HEADS, &measurement::NUMBERS);
    measurement::rows(measured).into_iter().for_each(|row| table.add_row(row));
    let mut lines = vec![printer::trimmed(&table), ::report::text::wrapped(measurement::LEGEND, 0)];
    lines.extend_from_slice(counted);
    lines.extend(measurement::remarks(measured));
    lines.push(measurement::sparkline(measured));
    printer::text(&lines.join("\n"))
}

/// Says what there was to warn of while drives were measured.
fn warn(rig: &mut OpenRig) {
    for warning in rig.take_warnings() {
        printer::tell(&format!("longtake: warning: {warning}"));
    }
}
