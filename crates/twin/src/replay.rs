//! A recorded trace replayed on targets, real and simulated ones side by side: each replays the whole trace, one after the
//! other.

mod files;

use std::fmt;
use std::path::{Path, PathBuf};

use base::{ByteSize, Duration};
use lab::replay::Replayed;
use lab::{Cost, Go, Lab, LabError, Progress, ThreadOptions};
use load::Trace;
use load::trace::{Fitted, FittedTrace, Fitting, UnfitError};
use target::Profiles;

use crate::{OpenRig, Setup, SetupError, SetupOptions};

pub use files::{TraceFiles, TraceFilesError};

/// Pages of file systems: the unit of sizes of files that are made.
const FILE_BYTES: u64 = 4096;

/// A target that was looked at, and what the trace is on it.
#[derive(Debug)]
pub struct ReplayTarget {
    /// The target as it was given.
    pub name: String,
    /// Its drive: nothing is done to it yet.
    pub setup: Setup,
    /// What the trace is on it.
    pub fitted: Fitted,
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

/// Looks at every target, and whether the trace fits it. Options of real drives apply to the real ones among the targets, and
/// those of simulated drives to the simulated ones. Files that are made have room for the whole trace, unless
/// `options.new_file_bytes` says otherwise.
///
/// # Errors
/// For the first target that can't be used.
pub fn look(
    options: &SetupOptions,
    trace: &Trace,
    fitting: Fitting,
    profiles: &Profiles,
) -> Result<Vec<ReplayTarget>, ReplayError> {
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
    let mut targets = Vec::new();
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
        let fitted = Fitted::of(trace, drive, fitting)?;
        targets.push(ReplayTarget { name, setup, fitted });
    }
    Ok(targets)
}

impl ReplayTarget {
    /// What replaying costs.
    pub fn cost(&self) -> Cost {
        let Fitted { reads, writes, span_ns, .. } = self.fitted;
        Cost::of_bytes(reads.bytes, writes.bytes, span_ns.map(Duration::from_nanos))
    }

    /// What is about to happen, in words, with the target's name if it is one of several. A dry run adds why it would be refused.
    pub fn state(&self, several: bool, dry_run: bool) -> Vec<String> {
        let mut lines = self.setup.state_cost(&self.cost(), dry_run);
        if several {
            lines.iter_mut().for_each(|line| *line = format!("{}: {line}", self.name));
        }
        lines
    }
}

/// Replays the trace on an open target, the `number`th, with results in `folder`.
///
/// # Errors
/// [`LabError`]; what failed commands say is in the result.
pub fn replay(
    rig: &mut OpenRig,
    (number, target): (usize, &str),
    (trace, fitting): (&Trace, Fitting),
    folder: &Path,
    watch: &mut dyn FnMut(&Progress<'_>) -> Go,
) -> Result<Replayed, LabError> {
    let simulated = matches!(rig, OpenRig::Simulated(_));
    let mut lab = Lab::new(rig.rig(), folder, watch)?;
    let unfit = |error: UnfitError| LabError::Unsuitable {
        experiment: "replay",
        reason: error.to_string(),
    };
    let fitted = FittedTrace::new(trace, &lab.drives()[0], fitting).map_err(unfit)?;
    lab::replay::replay(&mut lab, (number, target), simulated, fitted)
}

/// What a trace is, in lines for a user: files, device and requests, and what is left out.
pub fn described(trace: &Trace) -> Vec<String> {
    let summary = &trace.summary;
    let files = match summary.files.as_slice() {
        [first] => first.clone(),
        [first, rest @ ..] => {
            format!("{first} and {}", base::units::counted(rest.len() as u64, "more file"))
        }
        [] => String::new(),
    };
    let events = summary.events.map_or("", |events| match events {
        load::trace::Events::Queue => ", queue events",
        load::trace::Events::Issue => ", issue events",
    });
    let part = |moved: load::trace::Moved, noun| {
        let bytes = ByteSize(moved.bytes);
        format!("{} of {bytes}", base::units::counted(moved.requests, noun))
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
            base::units::counted(summary.lost_events, "event")
        ));
    }
    lines
}
