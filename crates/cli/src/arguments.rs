//! The options of commands about recordings and arrays, each defined once. Other commands have theirs beside them.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use base::{ByteSize, Duration, Rate};
use clap::{ArgGroup, Args, ValueEnum};
use device::target::FILE_MODE_DEFAULT;
use recorder::Placement;

use longtake::instant::When;
use longtake::names;

/// An array to work on.
#[derive(Debug, Args)]
pub struct ArrayArguments {
    /// The array: a directory of member files, targets with commas between them, or an array's name
    /// or UUID.
    pub array: String,
    /// Go on without members that are missing.
    #[arg(long)]
    pub degraded: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `array show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Which array.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// List every chunk (with --json).
    #[arg(long, requires = "json")]
    pub chunks: bool,
}

/// `array create`.
#[derive(Debug, Args)]
pub struct CreateArguments {
    /// The drives: block devices or existing files.
    #[arg(required = true)]
    pub targets: Vec<PathBuf>,
    /// The array's name.
    #[arg(long, default_value = "array", value_parser = names::array_name)]
    pub name: String,
    /// Confirm that what the drive with this serial number holds may be lost. Once for each drive.
    #[arg(long, value_name = "SERIAL")]
    pub erase: Vec<String>,
    /// Also take drives that are members of another Longtake array.
    #[arg(long)]
    pub force_new_array: bool,
    /// Segment length: the unit of ring reuse, trim and protection [default: 256MiB, less on small drives].
    #[arg(long, value_name = "SIZE")]
    pub segment: Option<ByteSize>,
    /// Longest chunk: the unit of writing [default: 4MiB less 4KiB].
    #[arg(long, value_name = "SIZE")]
    pub chunk: Option<ByteSize>,
    /// Parity chunks for each group of chunks: so many members may die and nothing is lost. Takes as many members' room and rate.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub parity: u8,
    /// Leave the old contents untrimmed.
    #[arg(long)]
    pub no_trim: bool,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `array scrub`.
#[derive(Debug, Args)]
pub struct ScrubArguments {
    /// Which array.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Write what can be made again in its place [default: only say so].
    #[arg(long)]
    pub repair: bool,
    /// Read at this rate at most [default: 500 MB/s during a recording].
    #[arg(long, value_name = "RATE")]
    pub limit: Option<Rate>,
}

/// `array rebuild`.
#[derive(Debug, Args)]
pub struct RebuildArguments {
    /// Which array, without the lost member.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// The lost member's number, from 0: `longtake array show` tells.
    #[arg(long, value_name = "N")]
    pub member: u16,
    /// The drive that takes its place, or a file, which is made if it is not there.
    #[arg(long, value_name = "TARGET")]
    pub onto: PathBuf,
    /// Mode of the new file, in octal, if --onto creates one.
    #[arg(long, value_name = "MODE", default_value_t)]
    pub mode: FileMode,
    /// Confirm that what the drive with this serial number holds, or the file of this path, may be lost.
    #[arg(long, value_name = "SERIAL|PATH")]
    pub erase: Vec<String>,
    /// Read at this rate at most [default: 500 MB/s during a recording].
    #[arg(long, value_name = "RATE")]
    pub limit: Option<Rate>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// The mode of files that a command creates for recorded data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl Default for FileMode {
    fn default() -> Self {
        Self(FILE_MODE_DEFAULT)
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl FromStr for FileMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match u32::from_str_radix(text, 8) {
            Ok(mode) if mode <= 0o777 && mode & 0o600 == 0o600 => Ok(Self(mode)),
            _ => {
                Err("give an octal mode that lets the owner read and write, such as 0640"
                    .to_owned())
            }
        }
    }
}

/// What to do at the end of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhenFull {
    /// End the take.
    Stop,
    /// Reuse the oldest segments that are not protected.
    Wrap,
}

/// Which NVM Sets are written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sets {
    /// All of them.
    Shared,
    /// One of each drive is written at a time.
    Separate,
}

/// `record`.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// The source: synthetic:RATE[,size=N|imix], an interface's name[,queues=N][,promiscuous],
    /// udp:ADDR:PORT, tcp:HOST:PORT, tcp-listen:ADDR:PORT, pipe:PATH, - (standard input), a pcap or
    /// pcapng file. A wrong one gets the full list.
    #[arg(long, value_name = "SOURCE")]
    pub from: String,
    /// The array, or a directory; one that is empty or not there gets member files. Or simulated drives, with commas between
    /// them: sim:NAME*6 gets an array that is gone with the command.
    #[arg(long, value_name = "ARRAY|DIR")]
    pub to: String,
    /// What all simulated drives together get through to the host, and to the drives if that is another rate.
    #[arg(long, value_name = "RATE[,RATE]")]
    pub uplink: Option<target::Uplink>,
    /// Simulated drives keep no data: what is recorded is described, not made, so that hours take seconds and no memory. Needs a
    /// synthetic source of a rate, and --for.
    #[arg(long = "virtual", requires = "duration")]
    pub virtual_time: bool,
    /// Stop after this time.
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Stop after so many bytes of packets.
    #[arg(long, value_name = "SIZE")]
    pub until_bytes: Option<ByteSize>,
    /// What to do at the end of the array.
    #[arg(long, value_enum, default_value = "stop")]
    pub when_full: WhenFull,
    /// How chunks are spread over the members: adaptive or stripe.
    #[arg(long, default_value = "adaptive")]
    pub placement: Placement,
    /// Member files in a new directory.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub members: u16,
    /// Size of each member file in a new directory.
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub member_size: ByteSize,
    /// Mode of new member files, in octal. Others need read access to list and extract takes.
    #[arg(long, value_name = "MODE", default_value_t)]
    pub mode: FileMode,
    /// Segment length in a new directory [default: 256MiB, less for small members].
    #[arg(long, value_name = "SIZE")]
    pub segment: Option<ByteSize>,
    /// Longest chunk in a new directory [default: 4MiB less 4KiB].
    #[arg(long, value_name = "SIZE")]
    pub chunk: Option<ByteSize>,
    /// Parity chunks for each group of chunks in a new directory: so many members may die and nothing is lost [default: 0].
    /// An existing array keeps the settings it was made with.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub parity: Option<u8>,
    /// Record only what this expression accepts, in tcpdump's language.
    #[arg(long, value_name = "BPF", default_value = "")]
    pub filter: String,
    /// Keep only so many bytes of each packet; 0 keeps all.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub snap: u32,
    /// Kernel's memory for each queue of an interface or UDP source.
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub kernel_buffer: ByteSize,
    /// Memory for chunk buffers: what rides out the drives' dips.
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    pub memory: ByteSize,
    /// Chunk writes under way on each member.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub depth: u32,
    /// A packet is on its medium after this time, and each member flushed after as much again; parity comes up to half as long
    /// after the packet.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub flush_interval: Duration,
    /// How far members' fill may drift apart under adaptive placement [default: two segments].
    #[arg(long, value_name = "SIZE")]
    pub drift: Option<ByteSize>,
    /// Segments that a ring keeps trimmed ahead of its head [default: 4 on drives, 0 on files].
    #[arg(long, value_name = "N")]
    pub trim_ahead: Option<u64>,
    /// A ring trims at this rate for each member at most.
    #[arg(long, value_name = "RATE", default_value = "8GB/s")]
    pub trim_rate: Rate,
    /// Members that take no writes at a time, in turn, so that each can erase. They are woken when buffers fill past half.
    #[arg(long, value_name = "N", default_value_t = 0, group = "resting")]
    pub rest: u32,
    /// NVM Sets that recording and reading use, on drives with a member in each of several sets. With `separate` one member of
    /// each drive is written at a time, and readers meet no writes in the others [default: shared].
    #[arg(long, value_name = "WHICH", group = "resting")]
    pub sets: Option<Sets>,
    /// How long a member rests at a time, or is written with --sets separate [default: 5s, with --sets separate 10m].
    #[arg(long, value_name = "TIME", requires = "resting")]
    pub rest_turn: Option<Duration>,
    /// Processors to use: the first for writing, the others for the source's queues.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// User to become once everything is open, when started by root [default: the user who ran sudo, else longtake if that user
    /// exists, else nobody].
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Stay root, and don't confine the process. By default a recorder, whoever starts it, can gain no privileges, dump no core,
    /// open no more files and make no TCP connections once everything is open (no_new_privs and Landlock).
    #[arg(long, conflicts_with = "user")]
    pub keep_privileges: bool,
    /// Print events as JSON lines.
    #[arg(long)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// `ledger`.
#[derive(Debug, Args)]
pub struct LedgerArguments {
    /// Which array.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Which take: its UUID, the UUID's beginning, or `last`.
    #[arg(long, default_value = "last")]
    pub take: String,
}

/// Which packets.
#[derive(Debug, Args)]
pub struct Selection {
    /// From this time on: 2026-11-21T10:00:00Z, "2026-11-21 10:00" (local time), -10m (ago), or seconds since 1970.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<When>,
    /// Up to this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<When>,
    /// Only this take: its UUID, the UUID's beginning, or `last` [default: all].
    #[arg(long)]
    pub take: Option<String>,
    /// Only packets that this expression accepts, in tcpdump's language.
    #[arg(long, value_name = "BPF", default_value = "")]
    pub filter: String,
    /// Read at this rate at most, so that a recording under way is not disturbed [default: 500 MB/s during a recording].
    #[arg(long, value_name = "RATE")]
    pub read_rate: Option<Rate>,
}

/// What file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// pcapng, one section.
    Pcapng,
    /// pcap with nanoseconds, one link type.
    Pcap,
}

/// `extract`.
#[derive(Debug, Args)]
pub struct ExtractArguments {
    /// Which array.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Which packets.
    #[command(flatten)]
    pub selection: Selection,
    /// The file to write, or - for standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// The file's format [default: by its name, else pcapng].
    #[arg(long, value_enum)]
    pub format: Option<FileFormat>,
    /// Overwrite the file if there is one.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Have a recording under way overwrite this span last, until the command ends. Use it when the ring may overtake the
    /// extraction; the recording goes on even if it has to overwrite the span.
    #[arg(long)]
    pub hold: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// `replay`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["interface", "udp"])))]
pub struct ReplayArguments {
    /// Which array.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Which packets.
    #[command(flatten)]
    pub selection: Selection,
    /// Send whole frames on this interface.
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Send payloads to this UDP address.
    #[arg(long, value_name = "ADDR:PORT")]
    pub udp: Option<SocketAddr>,
    /// So many times as fast as recorded.
    #[arg(long, default_value_t = 1.0, conflicts_with = "fastest")]
    pub speed: f64,
    /// As fast as possible.
    #[arg(long)]
    pub fastest: bool,
}

/// `protect` and `unprotect`.
#[derive(Debug, Args)]
pub struct ProtectArguments {
    /// The array, as in other commands.
    pub array: String,
    /// Start of the span (`protect`), or anything within it.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<When>,
    /// End of the span.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<When>,
    /// Label shown in listings, at most 40 bytes (`protect`).
    #[arg(long, default_value = "", value_parser = names::label)]
    pub label: String,
    /// Every span there is (`unprotect`).
    #[arg(long)]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `drives`.
#[derive(Debug, Args)]
pub struct DrivesArguments {
    /// Only these.
    pub targets: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Folders that `measure` wrote.
    #[arg(required = true)]
    pub folders: Vec<PathBuf>,
    /// The HTML file [default: report.html in the first folder].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write each picture as SVG into this folder.
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Also write series as CSV into this folder.
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Also write series as Parquet into this folder.
    #[arg(long, value_name = "DIR")]
    pub parquet: Option<PathBuf>,
    /// Overwrite files that exist.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `fit`.
#[derive(Debug, Args)]
pub struct FitArguments {
    /// A folder that `measure` wrote, of one drive; or a profile, which tells less.
    pub measurement: PathBuf,
    /// The file to write: a profile with what the twin is made of.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// A drive of the library, or a file, that it is like in all that isn't fitted: dies, pages, blocks.
    #[arg(long, value_name = "NAME|PATH")]
    pub from: Option<String>,
    /// Drives to try, at most.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub evaluations: u32,
    /// Time to take, at most.
    #[arg(long, value_name = "TIME")]
    pub time: Option<Duration>,
    /// Overwrite the file if there is one.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}
