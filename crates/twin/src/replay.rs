//! A recorded trace replayed on targets, real and simulated ones side by side: each replays the whole trace, one after the
//! other.

mod files;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base::units::counted;
use base::{ByteSize, Duration};
use lab::experiment::Preconditioning;
use lab::replay::Replayed;
use lab::{Cost, Go, Lab, LabError, Progress, ThreadOptions};
use load::Trace;
use load::trace::{Events, Fitted, FittedTrace, Fitting, Moved, UnfitError};
use serde_json::{Value, json};
use target::Profiles;

use crate::{OpenRig, Setup, SetupError, SetupOptions};

pub use files::{TraceFiles, TraceFilesError};

/// Pages of file systems: the unit of sizes of files that are made.
const FILE_BYTES: u64 = 4096;

/// A trace and the targets that will replay it: looked at, and nothing done to them.
#[derive(Debug)]
pub struct Replay {
    trace: Trace,
    fitting: Fitting,
    targets: Vec<ReplayTarget>,
    /// Of each target, until they are opened.
    setups: Vec<Setup>,
}

/// A target, and what the trace is on it.
#[derive(Clone, Debug)]
struct ReplayTarget {
    /// As it was given.
    name: String,
    fitted: Fitted,
    /// What is done to it before.
    preconditioning: Option<Preconditioning>,
    /// Bytes that this writes.
    before_bytes: u64,
}

/// The spare flash that drives are preconditioned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spare {
    /// What is known or likely of each drive.
    Auto,
    /// So many percent of the capacity.
    Percent(f64),
}

impl FromStr for Spare {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let percent = text.trim_end_matches('%').trim_end().parse().ok();
        percent.filter(|percent| (0.0..=1000.0).contains(percent)).map(Self::Percent).ok_or_else(
            || format!("'{text}' is no spare flash in percent of the capacity: give 0 to 1000 (28), or auto"),
        )
    }
}

/// Why a trace can't be replayed as asked.
#[derive(Debug)]
pub enum ReplayError {
    /// A target can't be opened or simulated.
    Setup(SetupError),
    /// The trace does not fit a target.
    Unfit(UnfitError),
    /// A target is several drives.
    Several {
        /// The target.
        target: String,
        /// How many drives it is.
        drives: usize,
    },
    /// A trace has one order of commands.
    Threads,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Unfit(error) => error.fmt(f),
            Self::Several { target, drives } => write!(
                f,
                "{target} is {drives} drives, and a trace is replayed on one: name one drive, or a striped set (raid0:...)"
            ),
            Self::Threads => f.write_str(
                "one thread replays a trace, which keeps its order of commands: leave out --threads",
            ),
        }
    }
}

impl std::error::Error for ReplayError {}

impl From<SetupError> for ReplayError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<UnfitError> for ReplayError {
    fn from(error: UnfitError) -> Self {
        Self::Unfit(error)
    }
}

impl Replay {
    /// Looks at every target, and whether the trace fits it. Options of real drives apply to the real ones among the targets, and
    /// those of simulated drives to the simulated ones. Files that are made have room for the whole trace, unless
    /// `options.new_file_bytes` says otherwise. With `spare`, each target is preconditioned before.
    ///
    /// # Errors
    /// For the first target that can't be used.
    pub fn look(
        trace: Trace,
        fitting: Fitting,
        spare: Option<Spare>,
        options: &SetupOptions,
        profiles: &Profiles,
    ) -> Result<Self, ReplayError> {
        if options.threads.threads > 1 {
            return Err(ReplayError::Threads);
        }
        let simulated = |target: &PathBuf| target.to_string_lossy().contains("sim:");
        let some_simulated = options.targets.iter().any(simulated);
        let some_real = !options.targets.iter().all(simulated);
        let new_file_bytes = match options.new_file_bytes {
            0 => trace.summary.end_bytes.next_multiple_of(FILE_BYTES),
            bytes => bytes,
        };
        let (mut targets, mut setups) = (Vec::new(), Vec::new());
        for target in &options.targets {
            let mut of_one =
                SetupOptions { targets: vec![target.clone()], new_file_bytes, ..options.clone() };
            if some_real && simulated(target) {
                of_one.threads = ThreadOptions::default();
            } else if some_simulated && !simulated(target) {
                of_one.uplink = None;
            }
            let setup = Setup::look(of_one, profiles)?;
            let name = target.display().to_string();
            let [drive] = setup.geometry() else {
                return Err(ReplayError::Several { target: name, drives: setup.geometry().len() });
            };
            let preconditioning = spare.map(|spare| {
                let spare_percent = match spare {
                    Spare::Auto => setup.spare_percent(),
                    Spare::Percent(percent) => percent,
                };
                Preconditioning::of(trace.summary.writes, drive, spare_percent)
            });
            targets.push(ReplayTarget {
                name,
                fitted: Fitted::of(&trace, drive, fitting)?,
                preconditioning,
                before_bytes: preconditioning.map_or(0, |how| how.bytes(drive)),
            });
            setups.push(setup);
        }
        Ok(Self { trace, fitting, targets, setups })
    }

    /// Whether targets are written.
    pub fn writes(&self) -> bool {
        self.trace.summary.writes.requests > 0
            || self.targets.iter().any(|target| target.preconditioning.is_some())
    }

    /// What the trace is and what is about to happen to each target, in words. A dry run adds why one would be refused.
    pub fn notes(&self, dry_run: bool) -> Vec<String> {
        let mut lines = described(&self.trace);
        for (target, setup) in self.targets.iter().zip(&self.setups) {
            let stated = setup.state_cost(&target.cost(), dry_run).into_iter();
            let several = self.targets.len() > 1;
            lines.extend(stated.map(|line| match several {
                true => format!("{}: {line}", target.name),
                false => line,
            }));
        }
        lines
    }

    /// The same as JSON, for a dry run.
    pub fn stated(&self) -> Value {
        let of = |(target, setup): (&ReplayTarget, &Setup)| {
            let cost = target.cost();
            let notes = setup.state_cost(&cost, true);
            json!({
                "target": target.name,
                "preconditioning": target.preconditioning,
                "fitted": target.fitted,
                "cost": cost,
                "notes": notes
            })
        };
        let targets: Vec<Value> = self.targets.iter().zip(&self.setups).map(of).collect();
        json!({ "trace": self.trace.summary, "targets": targets })
    }

    /// The targets, to be opened in this order: all before the first is replayed on.
    pub fn take_setups(&mut self) -> Vec<Setup> {
        std::mem::take(&mut self.setups)
    }

    /// Replays the trace on an open target, by its place among the targets, with results in `folder`. A target that has
    /// results there is not measured again.
    ///
    /// # Errors
    /// [`LabError`]; what failed commands say is in the result.
    pub fn run(
        &self,
        index: usize,
        rig: &mut OpenRig,
        folder: &Path,
        watch: &mut dyn FnMut(&Progress<'_>) -> Go,
    ) -> Result<Replayed, LabError> {
        let simulated = matches!(rig, OpenRig::Simulated(_));
        let mut lab = Lab::new(rig.rig(), folder, watch)?;
        let unfit = |error: UnfitError| LabError::Unsuitable {
            experiment: "replay",
            reason: error.to_string(),
        };
        let fitted =
            FittedTrace::new(&self.trace, &lab.drives()[0], self.fitting).map_err(unfit)?;
        let ReplayTarget { name, preconditioning, .. } = &self.targets[index];
        lab::replay::replay(&mut lab, (index + 1, name), simulated, *preconditioning, fitted)
    }

    /// What came of it, as JSON.
    pub fn answer(&self, folder: &Path, replayed: &[Replayed]) -> Value {
        json!({ "folder": folder, "trace": self.trace.summary, "targets": replayed })
    }
}

impl ReplayTarget {
    /// What replaying costs.
    fn cost(&self) -> Cost {
        let Fitted { reads, writes, span_ns, .. } = self.fitted;
        Cost::of_bytes(0, self.before_bytes, None).and(Cost::of_bytes(
            reads.bytes,
            writes.bytes,
            span_ns.map(Duration::from_nanos),
        ))
    }
}

/// What a trace is, in lines for a user: files, device and requests, and what is left out.
fn described(trace: &Trace) -> Vec<String> {
    let summary = &trace.summary;
    let files = match summary.files.as_slice() {
        [first] => first.clone(),
        [first, rest @ ..] => {
            format!("{first} and {}", counted(rest.len() as u64, "more file"))
        }
        [] => String::new(),
    };
    let events = summary.events.map_or("", |events| match events {
        Events::Queue => ", queue events",
        Events::Issue => ", issue events",
    });
    let part = |moved: Moved, noun| {
        let bytes = ByteSize(moved.bytes);
        format!("{} of {bytes}", counted(moved.requests, noun))
    };
    let span =
        summary.span_ns.map_or("no times".to_owned(), |ns| Duration::from_nanos(ns).to_string());
    let mut lines = vec![format!(
        "trace: {files} ({}{events}), device {}: {}, {}; {span}",
        summary.format,
        summary.device,
        part(summary.reads, "read"),
        part(summary.writes, "write"),
    )];
    let left_out = summary.left_out.words();
    if !left_out.is_empty() {
        lines.push(format!("left out: {}", left_out.join(", ")));
    }
    if summary.whole_seconds {
        lines.push(
            "its times are whole seconds: the requests of each second are spread evenly over it"
                .to_owned(),
        );
    }
    if summary.lost_events > 0 {
        lines.push(format!(
            "the trace lacks {}: blktrace lost them while it recorded",
            counted(summary.lost_events, "event")
        ));
    }
    lines
}
