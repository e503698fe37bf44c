//! The options of `longtake measure`, each defined once.

use std::path::{Path, PathBuf};

use base::{ByteSize, Duration};
use clap::{Args, Parser, Subcommand};
use load::quantity::{Pace, Size, Time};
use load::trace::{Events, Format};
use load::workload::{Arrival, Blocks, Content, Pattern, Priority};
use twin::replay::Spare;

use super::options::{
    AppsArguments, FillArguments, LinkArguments, MixArguments, NeighboursArguments, SniaArguments,
    SteadyArguments, StreamArguments, ViewersArguments, factor,
};
use crate::arguments::{FileMode, OUTPUT};
use crate::cooling::CoolingArguments;

// Headings in the help.
const HARNESS: &str = "Harness";
const WORKLOAD: &str = "Workload";
const LIMITS: &str = "Limits";
const TRACE: &str = "Trace";
const PACE: &str = "Pace";
const PLACE: &str = "Place";

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum MeasureAction {
    /// Run one workload, given by options, as a TOML file, or as a fio job file.
    Run(Box<RunArguments>),
    /// Import fio's JSON or JSON+ as a measurement.
    Import(ImportArguments),
    /// Replay a recorded block trace, on a drive and its simulated twin side by side.
    Replay(Box<ReplayTraceArguments>),
    /// Fill drives twice: cache size, native rate, overwriting, dips, recovery.
    Fill(FillArguments),
    /// Rate and latency by block size and depth.
    Stream(StreamArguments),
    /// Speed over time in 8 MiB blocks: dips and deviation.
    Steady(SteadyArguments),
    /// Number of constant-rate readers without a missed deadline, alone and beside a writer.
    Viewers(ViewersArguments),
    /// Requirements of named applications, passed or failed.
    Apps(AppsArguments),
    /// Eight block sizes by seven mixes of reads and writes.
    Mix(MixArguments),
    /// Effect of a writer on read latency, up to 99.9999 %. Further targets add writers.
    Neighbours(NeighboursArguments),
    /// Rate that the link allows, and rate that the drive reaches.
    Link(LinkArguments),
    /// Steady state as SNIA PTS 2.0.2 defines it.
    Snia(SniaArguments),
    /// The table of CrystalDiskMark: four tests, each reading, writing and mixed.
    Diskmark(ExperimentArguments),
    /// All experiments that fit the limits of time and bytes, and what a buyer wants to know.
    All(ExperimentArguments),
}

/// How to run, whatever runs.
#[derive(Debug, Args)]
pub struct RigArguments {
    /// Drives: block devices, /dev/ng0n1, files (created if missing), sim:NAME, or one striped set (raid0:...).
    ///
    /// Simulated drives are sim:NAME or sim:PATH.toml, followed by :full, :overwritten or :random, @N for one
    /// namespace, *K for K of them. A striped set is raid0:TARGET,TARGET,... with ,stripe=64KiB. raid5: and raid6:
    /// write the place of parity but compute no parity.
    #[arg(required = true)]
    pub targets: Vec<PathBuf>,
    /// Confirm that this drive (serial number) or file (path) may be overwritten. Once for each.
    #[arg(long, value_name = "SERIAL")]
    pub erase: Vec<String>,
    /// Mode of new files, in octal.
    #[arg(long, value_name = "MODE", default_value_t, help_heading = HARNESS, hide_short_help = true)]
    pub mode: FileMode,
    /// Threads of the load engine. Raise it if the report says that the harness was the limit.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = HARNESS, hide_short_help = true)]
    pub threads: u16,
    /// Processors to bind the threads to, in turn [default: the scheduler's choice].
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', help_heading = HARNESS, hide_short_help = true)]
    pub cpus: Vec<usize>,
    /// Poll for completions instead of waiting for interrupts, where the drive supports it.
    #[arg(long, help_heading = HARNESS, hide_short_help = true)]
    pub poll: bool,
    /// Bandwidth of the link that all simulated drives share, to the host and, if it differs, to the drives [default:
    /// no shared link].
    #[arg(long, value_name = "RATE[,RATE]", help_heading = HARNESS, hide_short_help = true)]
    pub uplink: Option<target::Uplink>,
    /// Where simulated drives are put.
    #[command(flatten)]
    pub place: CoolingArguments,
    /// Folder for results [default: measured-DATE-TIME].
    #[arg(long, short, value_name = "DIR", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
    /// Continue in a folder with results. Finished steps are not repeated.
    #[arg(long, help_heading = OUTPUT)]
    pub resume: bool,
    /// Print what would be done and its cost, and do nothing.
    #[arg(long, help_heading = OUTPUT)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short, help_heading = OUTPUT)]
    pub quiet: bool,
}

/// An experiment.
#[derive(Debug, Args)]
pub struct ExperimentArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub rig: RigArguments,
    /// Part of each drive to use, from its beginning; size of a new file [default: all; 4GiB].
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub size: Option<ByteSize>,
    /// Time for each point [default: set by the experiment].
    ///
    /// Raise it for steadier figures.
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub point: Option<Duration>,
    /// Time for everything; points are shortened to fit [default: no limit].
    ///
    /// Experiments that still do not fit are left out.
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub time: Option<Duration>,
    /// Bytes to write to all drives together [default: no limit].
    ///
    /// Set it to limit wear.
    #[arg(long, value_name = "SIZE", conflicts_with = "read_only", help_heading = LIMITS)]
    pub write_budget: Option<ByteSize>,
    /// Leave out everything that writes. Needs no --erase.
    #[arg(long, help_heading = LIMITS)]
    pub read_only: bool,
}

/// One workload.
#[derive(Debug, Parser)]
pub struct RunArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub rig: RigArguments,
    /// Workload as a TOML file or a fio job file (*.fio), instead of options.
    ///
    /// A job file may also stand before the targets: `longtake measure run job.fio TARGET`. Options of fio that
    /// Longtake cannot do are errors with their line, and those that change nothing are listed.
    #[arg(long, value_name = "FILE", help_heading = WORKLOAD)]
    pub workload: Option<PathBuf>,
    /// Weight of reads [default: 1 unless other weights are given].
    #[arg(long, value_name = "WEIGHT", help_heading = WORKLOAD)]
    pub read: Option<u32>,
    /// Weight of writes.
    #[arg(long, value_name = "WEIGHT", default_value_t = 0, help_heading = WORKLOAD)]
    pub write: u32,
    /// Weight of trims.
    #[arg(long, value_name = "WEIGHT", default_value_t = 0, help_heading = WORKLOAD, hide_short_help = true)]
    pub trim: u32,
    /// Order of offsets: sequential, random, zipf:THETA, hot:SPACE/ACCESSES or settling:SPARE in percent.
    #[arg(long, default_value = "sequential", help_heading = WORKLOAD)]
    pub pattern: Pattern,
    /// Block size, or several with weights: 4KiB:60,64KiB:40.
    #[arg(long, visible_alias = "bs", value_name = "SIZES", default_value = "128KiB", help_heading = WORKLOAD)]
    pub block: Blocks,
    /// Commands in flight for each job.
    #[arg(long, visible_alias = "iodepth", value_name = "N", default_value_t = 1, help_heading = WORKLOAD)]
    pub depth: u32,
    /// Copies of the stream on each drive.
    #[arg(long, visible_alias = "numjobs", value_name = "N", default_value_t = 1, help_heading = WORKLOAD)]
    pub jobs: u32,
    /// Rate of each job, as 400MB/s or 5000/s, whether or not the drive keeps up [default: as fast as possible].
    #[arg(long, value_name = "RATE", help_heading = WORKLOAD)]
    pub rate: Option<Pace>,
    /// How commands at a rate are spaced: constant, poisson or bursts:COUNT.
    #[arg(long, default_value = "constant", help_heading = WORKLOAD, hide_short_help = true)]
    pub arrival: Arrival,
    /// Count responses that are later than this.
    #[arg(long, value_name = "TIME", help_heading = WORKLOAD, hide_short_help = true)]
    pub deadline: Option<Time>,
    /// I/O priority: real-time:LEVEL, best-effort:LEVEL or idle [default: the process's].
    #[arg(long, help_heading = WORKLOAD, hide_short_help = true)]
    pub priority: Option<Priority>,
    /// Contents of writes: random, compressible:PERCENT or verify.
    #[arg(long, default_value = "random", help_heading = WORKLOAD, hide_short_help = true)]
    pub content: Content,
    /// Read all written data again and report wrong bytes; the same as --content verify.
    #[arg(long, conflicts_with = "content", help_heading = WORKLOAD, hide_short_help = true)]
    pub verify: bool,
    /// Write with Force Unit Access: a write completes only when it survives a loss of power.
    #[arg(long, help_heading = WORKLOAD, hide_short_help = true)]
    pub fua: bool,
    /// Offset at which the region begins [default: 0].
    #[arg(long, value_name = "OFFSET", help_heading = WORKLOAD, hide_short_help = true)]
    pub from: Option<Size>,
    /// Length of the region [default: all; 4GiB for a new file].
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub size: Option<Size>,
    /// Unit of offsets [default: the shortest block].
    #[arg(long, value_name = "SIZE", help_heading = WORKLOAD, hide_short_help = true)]
    pub align: Option<Size>,
    /// Stop after this time [default: 60s unless --bytes is given].
    #[arg(long = "for", visible_alias = "runtime", value_name = "TIME", help_heading = LIMITS)]
    pub time: Option<Time>,
    /// Stop after this many bytes.
    #[arg(long, value_name = "SIZE", help_heading = LIMITS)]
    pub bytes: Option<Size>,
    /// Stop in steady state: 5 rounds of this length within 20 %, with a slope below 10 %; at most 25 rounds.
    #[arg(long, value_name = "TIME", help_heading = LIMITS, hide_short_help = true)]
    pub steady: Option<Time>,
    /// Leave this time at the beginning out of the totals.
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = LIMITS, hide_short_help = true)]
    pub warm_up: Time,
    /// Length of the intervals of the series.
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = LIMITS, hide_short_help = true)]
    pub interval: Time,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1, help_heading = WORKLOAD, hide_short_help = true)]
    pub seed: u64,
    /// Print the workload instead of running it.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = OUTPUT)]
    pub print: Option<WorkloadFormat>,
}

/// `measure replay`.
#[derive(Debug, Args)]
pub struct ReplayTraceArguments {
    /// Trace: one file of blktrace (those of other processors are read too), a fio iolog, or a CSV file of MSR
    /// Cambridge, Alibaba or Tencent; - for standard input.
    pub trace: PathBuf,
    /// Drives and results. Each target replays the whole trace, one after the other.
    #[command(flatten)]
    pub rig: RigArguments,
    /// Format of the trace: blktrace, iolog, msr, alibaba or tencent [default: recognized].
    #[arg(long, value_name = "FORMAT", help_heading = TRACE, hide_short_help = true)]
    pub format: Option<Format>,
    /// Device whose requests are replayed, as the trace names it [default: the one with most requests].
    #[arg(long, value_name = "DEVICE", help_heading = TRACE)]
    pub device: Option<String>,
    /// Events of a blktrace that are replayed: queue or issue [default: queue, if the trace has any].
    ///
    /// Queue events are what programs asked for, issue events what the drive was sent after merging and splitting.
    #[arg(long, value_name = "EVENTS", help_heading = TRACE, hide_short_help = true)]
    pub events: Option<Events>,
    /// Leave out writes. Without --precondition, this needs no --erase.
    #[arg(long, help_heading = TRACE)]
    pub reads_only: bool,
    /// Leave out what was recorded later than this after the first request.
    #[arg(long = "for", value_name = "TIME", help_heading = TRACE)]
    pub time: Option<Duration>,
    /// Before the trace, write the whole target into the steady state of random writes, with as few writes as that takes.
    ///
    /// SPARE is the target's flash beyond its capacity in percent; auto, which is also what no value means, takes it from a
    /// simulated drive's parameters, and guesses that of a real drive from its capacity. The target is trimmed first. It is
    /// written as often as it has flash, in blocks as long as the trace's writes are on average.
    #[arg(long, value_name = "SPARE", num_args = 0..=1, require_equals = true, default_missing_value = "auto", help_heading = PLACE)]
    pub precondition: Option<Spare>,
    /// Divide the recorded times by this. Raise it above 1 to replay faster.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, conflicts_with = "asap", help_heading = PACE)]
    pub speed: f64,
    /// Replay as fast as possible instead of at the recorded times.
    #[arg(long, help_heading = PACE)]
    pub asap: bool,
    /// Commands in flight, at most [default: 256; with --asap 32].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = PACE)]
    pub depth: Option<u32>,
    /// Take offsets modulo the target's size. Without it, a trace that reaches beyond the target is refused.
    #[arg(long, help_heading = PLACE)]
    pub wrap: bool,
    /// Size of a new file [default: up to the end of the furthest request].
    #[arg(long, value_name = "SIZE", default_value_t, hide_default_value = true, help_heading = PLACE, hide_short_help = true)]
    pub size: ByteSize,
}

/// Whether a file is a fio job file, by its name.
pub fn is_job_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "fio")
}

impl RunArguments {
    /// Takes a job file that stands among the targets as the workload. It is never a target.
    ///
    /// # Errors
    /// If there are two workloads, or no target remains.
    pub fn take_job_file(&mut self) -> Result<(), String> {
        let Some(index) = self.rig.targets.iter().position(|target| is_job_file(target)) else {
            return Ok(());
        };
        let job = self.rig.targets.remove(index);
        if let Some(other) = self
            .workload
            .as_deref()
            .or_else(|| self.rig.targets.iter().map(PathBuf::as_path).find(|t| is_job_file(t)))
        {
            return Err(format!(
                "{} and {} are two workloads: name one",
                job.display(),
                other.display()
            ));
        }
        if self.rig.targets.is_empty() {
            let job = job.display();
            return Err(format!(
                "{job} is a workload: name the target too: longtake measure run {job} TARGET"
            ));
        }
        self.workload = Some(job);
        Ok(())
    }
}

/// How a workload is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum WorkloadFormat {
    /// Longtake's own format.
    Toml,
    /// A fio job file.
    Fio,
}

/// `measure import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// File that `fio --output-format=json` or `json+` wrote; - for standard input.
    pub file: PathBuf,
    /// Folder for the result [default: measured-DATE-TIME].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
