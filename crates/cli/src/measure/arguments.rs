//! The options of `longtake measure`, each defined once.

use std::path::PathBuf;

use base::{ByteSize, Duration};
use clap::{Args, Subcommand};
use load::quantity::{Pace, Size, Time};
use load::workload::{Arrival, Blocks, Content, Pattern, Priority};

use super::options::{
    AppsArguments, FillArguments, LinkArguments, MixArguments, NeighboursArguments, SniaArguments,
    SteadyArguments, StreamArguments, ViewersArguments,
};
use crate::arguments::FileMode;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum MeasureAction {
    /// Run one workload, given by options or as a TOML file.
    Run(Box<RunArguments>),
    /// Read fio's JSON or JSON+ in as a measurement.
    Import(ImportArguments),
    /// How a drive writes when it is filled, and filled again: cache size, native rate, overwriting, dips, recovery.
    Fill(FillArguments),
    /// Rate and latency by block size and depth.
    Stream(StreamArguments),
    /// Speed over time in 8 MiB blocks: dips and deviation.
    Steady(SteadyArguments),
    /// How many constant-rate readers it carries without a missed deadline, alone and beside a writer.
    Viewers(ViewersArguments),
    /// Workloads of named applications, each with its own measure of success.
    Apps(AppsArguments),
    /// Eight block sizes by seven mixes of reads and writes.
    Mix(MixArguments),
    /// What a writer beside it does to a reader's latency, to 99.9999 %. Further targets are further namespaces or drives.
    Neighbours(NeighboursArguments),
    /// What its link allows against what it reaches.
    Link(LinkArguments),
    /// Steady state as SNIA PTS 2.0.2 defines it.
    Snia(SniaArguments),
    /// Everything that fits the budget of time and bytes.
    All(ExperimentArguments),
}

/// How to run, whatever runs.
#[derive(Debug, Args)]
pub struct RigArguments {
    /// The drives: block devices, NVMe generic devices (/dev/ng0n1), files (one that doesn't exist is made); or simulated:
    /// sim:NAME or sim:PATH.toml, with :full or :random contents, @N for one namespace, *K for K of them; or one striped set of
    /// either: raid0:TARGET,TARGET,... with ,stripe=64KiB. raid5: and raid6: write parity's place but compute no parity.
    #[arg(required = true)]
    pub targets: Vec<PathBuf>,
    /// Confirm that what the drive with this serial number (the file with this path) holds may be lost. Once for each.
    #[arg(long, value_name = "SERIAL")]
    pub erase: Vec<String>,
    /// Mode of new files, in octal.
    #[arg(long, value_name = "MODE", default_value_t)]
    pub mode: FileMode,
    /// Threads of the load engine, each with a ring of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Processors to bind the threads to, in turn.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// Poll for completions where the drive can, instead of waiting for interrupts.
    #[arg(long)]
    pub poll: bool,
    /// What all simulated drives together get through to the host, and to the drives if that is another rate.
    #[arg(long, value_name = "RATE[,RATE]")]
    pub uplink: Option<target::Uplink>,
    /// Folder for results [default: measured-DATE-TIME].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Go on in a folder that has results: steps that were measured are not run again.
    #[arg(long)]
    pub resume: bool,
    /// Say what would be done and what it costs, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// An experiment.
#[derive(Debug, Args)]
pub struct ExperimentArguments {
    /// Where and how.
    #[command(flatten)]
    pub rig: RigArguments,
    /// Use only so much of each drive, from its beginning; a new file gets this size [default: all; 4GiB for a new file].
    #[arg(long, value_name = "SIZE")]
    pub size: Option<ByteSize>,
    /// Time for each point.
    #[arg(long, value_name = "TIME")]
    pub point: Option<Duration>,
    /// Budget of time: points are shortened and experiments left out to keep it.
    #[arg(long, value_name = "TIME")]
    pub time: Option<Duration>,
    /// Budget of bytes written to all drives together.
    #[arg(long, value_name = "SIZE", conflicts_with = "read_only")]
    pub write_budget: Option<ByteSize>,
    /// Leave out everything that writes. Needs no confirmation.
    #[arg(long)]
    pub read_only: bool,
}

/// One workload.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Where and how.
    #[command(flatten)]
    pub rig: RigArguments,
    /// The workload as a TOML file; the options below then change nothing.
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Weight of reads [default: 1 unless something else is given].
    #[arg(long, value_name = "WEIGHT")]
    pub read: Option<u32>,
    /// Weight of writes.
    #[arg(long, value_name = "WEIGHT", default_value_t = 0)]
    pub write: u32,
    /// Weight of trims.
    #[arg(long, value_name = "WEIGHT", default_value_t = 0)]
    pub trim: u32,
    /// sequential, random, zipf:THETA, hot:SPACE/ACCESSES (percent).
    #[arg(long, default_value = "sequential")]
    pub pattern: Pattern,
    /// Block size, or several with weights: 4KiB:60,64KiB:40.
    #[arg(long, value_name = "SIZES", default_value = "128KiB")]
    pub block: Blocks,
    /// Commands under way for each job.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub depth: u32,
    /// Copies of the stream on each drive.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: u32,
    /// What each job asks (400MB/s, 5000/s), whether or not the drive keeps up; without it as fast as it goes.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Pace>,
    /// How commands at a rate are spread: constant, poisson, bursts:COUNT.
    #[arg(long, default_value = "constant")]
    pub arrival: Arrival,
    /// Count responses that are later than this.
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<Time>,
    /// real-time:LEVEL, best-effort:LEVEL, idle.
    #[arg(long)]
    pub priority: Option<Priority>,
    /// What is written: random, compressible:PERCENT, verify.
    #[arg(long, default_value = "random")]
    pub content: Content,
    /// Read everything that was written again, and find every wrong byte (as --content verify).
    #[arg(long, conflicts_with = "content")]
    pub verify: bool,
    /// Write with Force Unit Access: a write is done only when it is durable.
    #[arg(long)]
    pub fua: bool,
    /// Where the region begins.
    #[arg(long, value_name = "OFFSET")]
    pub from: Option<Size>,
    /// How long the region is [default: all; 4GiB for a new file].
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Offsets are multiples of this [default: the shortest block].
    #[arg(long, value_name = "SIZE")]
    pub align: Option<Size>,
    /// Stop after this time [default: 60s unless bytes are given].
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Time>,
    /// Stop after so many bytes.
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// Stop when it is steady: 5 rounds of this length within 20 % with a slope below 10 % (25 rounds at most).
    #[arg(long, value_name = "TIME")]
    pub steady: Option<Time>,
    /// Leave out the beginning.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub warm_up: Time,
    /// Length of intervals.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub interval: Time,
    /// Everything random follows from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the workload instead of running it.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub print: Option<WorkloadFormat>,
}

/// How a workload is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum WorkloadFormat {
    /// Our own.
    Toml,
    /// A fio job file.
    Fio,
}

/// `measure import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// What `fio --output-format=json` or `json+` wrote; - for standard input.
    pub file: PathBuf,
    /// Folder for the result [default: measured-DATE-TIME].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
