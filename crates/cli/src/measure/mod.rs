//! `longtake measure`: workloads and experiments on real drives and simulated ones.

pub mod arguments;
mod experiments;
mod import;
mod options;
mod replay;
mod run;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::report::measurement;
use anyhow::{Result, bail};
use base::ByteSize;
use lab::experiment::Options;
use lab::experiment::any::Experiment;
use lab::{Go, ThreadOptions};
use load::{Measurement, Workload};
use target::NewFiles;
use target::real::OpenNotice;
use twin::{OpenRig, Setup, SetupOptions};

use target::output::Outputs;

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
    Ok(Setup::look(setup_options(rig, new_file_bytes, retrain), profiles::known())?)
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

/// The folder for results. Removed again if nothing comes to be in it.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    /// The folders that this command made, innermost first, while nothing is in them yet.
    made: Vec<PathBuf>,
}

impl OutputFolder {
    /// As asked for, or a new one. Refuses one that has results already, unless they are to be gone
    /// on with.
    ///
    /// # Errors
    /// If it is not new, or resuming has nothing to resume, or it can't be made.
    pub fn make(asked: Option<&PathBuf>, resume: bool) -> Result<Self> {
        let path = match asked {
            None if resume => {
                bail!("--resume needs --output: the folder with the results to continue")
            }
            None => return Self::make_unused(),
            Some(path) => path.clone(),
        };
        let outputs = Outputs::new(resume);
        outputs.check_results(&path)?;
        let used = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
        if used && !resume {
            bail!(
                "{} is not empty: name a new folder, or add --resume to continue the measurement in it",
                path.display()
            );
        }
        let missing = path
            .ancestors()
            .take_while(|above| !above.as_os_str().is_empty() && above.symlink_metadata().is_err());
        let made = missing.map(Path::to_owned).collect();
        let folder = Self { path, made };
        outputs.make_folder(&folder.path)?;
        Ok(folder)
    }

    /// A new folder named after the time, which no other run has, even if one began in the same second.
    fn make_unused() -> Result<Self> {
        let name = jiff::Zoned::now().strftime("measured-%Y-%m-%d-%H%M%S").to_string();
        let mut path = PathBuf::from(&name);
        let mut number = 2;
        while !Outputs::new(false).make_unused_folder(&path)? {
            path = format!("{name}-{number}").into();
            number += 1;
        }
        Ok(Self { made: vec![path.clone()], path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// There will be something in it.
    pub fn keep(mut self) -> PathBuf {
        self.made.clear();
        std::mem::take(&mut self.path)
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        for folder in &self.made {
            // It was empty, and nobody misses it.
            fs::remove_dir(folder).ok();
        }
    }
}
