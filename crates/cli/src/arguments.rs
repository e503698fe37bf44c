//! The options of commands about recordings and arrays, each defined once. Other commands have theirs beside them.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use base::{ByteSize, Duration, Rate};
use clap::{ArgGroup, Args, ValueEnum};
use device::target::FILE_MODE_DEFAULT;
use recorder::Placement;
use source::spec::FORMS;

use longtake::array::{CommunityId, FLOWS_MAX, FlowFormat, Group, Order, OutputFormat};
use longtake::instant::When;
use longtake::names;
use longtake::recording::{DEPTH_MAX, FlowIndexing, Rotation, Slice};

use crate::cooling::CoolingArguments;

// Headings in the help of commands with many options.
const SOURCE: &str = "Source";
const ARRAY: &str = "Array";
const RECORDING: &str = "Recording";
const RINGS: &str = "Rings and resting";
const SIMULATED: &str = "Simulated drives";
const PRIVILEGES: &str = "Privileges";
const SELECTION: &str = "Selection";
const COUNTING: &str = "Counting";
pub const OUTPUT: &str = "Output";

/// An array to work on.
#[derive(Debug, Args)]
pub struct ArrayArguments {
    /// Array: a directory of member files, drives with commas between them, or an array's name or UUID.
    pub array: String,
    /// Open the array even if more members are missing than its parity can replace. Their packets are listed as gaps.
    #[arg(long)]
    pub degraded: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `array show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The array to work on.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// List every chunk; needs --json.
    #[arg(long, requires = "json")]
    pub chunks: bool,
}

/// `array create`.
#[derive(Debug, Args)]
pub struct CreateArguments {
    /// Drives to become members, in this order: block devices, NVMe generic devices or existing files.
    #[arg(required = true)]
    pub targets: Vec<PathBuf>,
    /// Name of the array, for use as --to NAME.
    #[arg(long, default_value = "array", value_parser = names::array_name)]
    pub name: String,
    /// Confirm that the contents of the drive with this serial number may be lost. Once for each drive.
    #[arg(long, value_name = "SERIAL")]
    pub erase: Vec<String>,
    /// Replace another Longtake array that the drives are members of.
    #[arg(long)]
    pub force_new_array: bool,
    /// Segment length: the unit of overwriting, trimming and protecting [default: 256MiB, less on small drives].
    #[arg(long, value_name = "SIZE")]
    pub segment: Option<ByteSize>,
    /// Longest chunk: the unit of writing [default: 4MiB less 4KiB].
    #[arg(long, value_name = "SIZE")]
    pub chunk: Option<ByteSize>,
    /// Number of members that may be lost without losing data, 0 to 2. Takes their space and rate.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub parity: u8,
    /// Don't trim the drives first. Their old contents stay until they are overwritten.
    #[arg(long)]
    pub no_trim: bool,
    /// Print what would be written, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `array list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Also list arrays of member files in these directories and in the directories in them.
    #[arg(value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `array delete`.
#[derive(Debug, Args)]
pub struct DeleteArguments {
    /// The array to delete.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Delete it. Without this, only what would be lost is listed.
    #[arg(long)]
    pub yes: bool,
}

/// `array scrub`.
#[derive(Debug, Args)]
pub struct ScrubArguments {
    /// The array to work on.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Repair damaged chunks in place [default: only list them].
    #[arg(long)]
    pub repair: bool,
    /// Highest read rate. Lower it if a recording loses packets meanwhile [default: 500 MB/s during a recording].
    #[arg(long, value_name = "RATE")]
    pub limit: Option<Rate>,
}

/// `array index`.
#[derive(Debug, Args)]
pub struct IndexArguments {
    /// The array to work on.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Replace the indexes that segments have.
    #[arg(long)]
    pub again: bool,
}

/// `array rebuild`.
#[derive(Debug, Args)]
pub struct RebuildArguments {
    /// Which array, without the lost member.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Number of the lost member, from 0, as `longtake array show` lists it.
    #[arg(long, value_name = "N")]
    pub member: u16,
    /// Drive that replaces it, or a file, which is created if missing.
    #[arg(long, value_name = "TARGET")]
    pub onto: PathBuf,
    /// Mode of the file, in octal, if --onto creates one.
    #[arg(long, value_name = "MODE", default_value_t)]
    pub mode: FileMode,
    /// Confirm that the contents of the drive with this serial number, or of the file with this path, may be lost.
    #[arg(long, value_name = "SERIAL|PATH")]
    pub erase: Vec<String>,
    /// Highest read rate. Lower it if a recording loses packets meanwhile [default: 500 MB/s during a recording].
    #[arg(long, value_name = "RATE")]
    pub limit: Option<Rate>,
    /// Print what would be written, and write nothing.
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

/// Options of `record` that are about an array.
const OF_ARRAYS: [&str; 21] = [
    "when_full",
    "members",
    "member_size",
    "parity",
    "mode",
    "segment",
    "chunk",
    "index",
    "strict",
    "placement",
    "depth",
    "drift",
    "trim_ahead",
    "trim_rate",
    "rest",
    "sets",
    "rest_turn",
    "virtual_time",
    "uplink",
    "ambient",
    "cooling",
];

/// The long help of `--from`.
fn forms() -> String {
    let forms = FORMS.lines().filter_map(|line| line.trim().split_once(' '));
    let forms: String =
        forms.map(|(form, meaning)| format!("- {form}: {}\n", meaning.trim())).collect();
    format!("Source to record:\n{forms}Rates are like 1GB/s or 100Gb/s")
}

/// `record`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("where").required(true).args(["to", "write"])))]
pub struct RecordArguments {
    /// Read options from this TOML file. Options on the command line win.
    ///
    /// Names are those of the options without dashes: `member-size = "1GiB"`, `strict = true`, `cpus = [0, 2]`. --from and
    /// --to can be in the file too. Paths in it are relative to the current directory, as on the command line.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the options given, as a file for --config, and record nothing.
    #[arg(long)]
    pub print_config: bool,
    /// Source to record: interface, udp:, tcp:, tcp-listen:, pipe:, - (standard input), capture file,
    /// synthetic:RATE or traffic:RATE.
    #[arg(long, short = 'i', alias = "interface", value_name = "SOURCE", help_heading = SOURCE, long_help = forms())]
    pub from: String,
    /// Record only packets that this libpcap expression accepts, as in tcpdump.
    #[arg(long, value_name = "BPF", default_value = "", hide_default_value = true, help_heading = SOURCE)]
    pub filter: String,
    /// Keep at most this many bytes of each packet; 0 keeps all.
    #[arg(long, short_alias = 's', aliases = ["snaplen", "snapshot-length"], value_name = "BYTES", default_value_t = 0, help_heading = SOURCE, hide_short_help = true)]
    pub snap: u32,
    /// Keep only the headers, or the first N bytes, of each packet.
    ///
    /// The ledger counts what is left out, which is not lost. `headers` ends behind the innermost TCP, UDP, SCTP, DCCP or ICMP header, inside VLANs, MPLS and tunnels, and keeps 8 bytes
    /// of what another protocol carries. Packets without an IP header keep 128 bytes. Searches by host, port and flow find the
    /// same packets as if they were whole. Original lengths are kept.
    #[arg(long, value_name = "headers|N", help_heading = SOURCE)]
    pub slice: Option<Slice>,
    /// Keep only the first bytes of each flow, such as 10KiB.
    ///
    /// A packet is kept if fewer bytes of its flow came before it, in both directions together. The ledger counts the
    /// other packets as cut, not as lost. After 60 seconds without a packet, a flow begins again. Longtake remembers
    /// 1,048,576 flows, and a forgotten flow counts as new. Fragments and packets without an IP header are always kept.
    #[arg(long, value_name = "SIZE", help_heading = SOURCE)]
    pub cut: Option<ByteSize>,
    /// Size of the kernel's buffer for each queue of an interface or UDP source. Raise it if the ledger counts losses
    /// in the kernel ring.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", help_heading = SOURCE, hide_short_help = true)]
    pub kernel_buffer: ByteSize,
    /// Array: directory, comma-separated drives, name, or sim:NAME*6.
    ///
    /// If the directory is empty or missing, member files are created in it. With sim: targets a temporary array is
    /// created, which is discarded when the command ends.
    #[arg(long, value_name = "ARRAY|DIR", help_heading = ARRAY)]
    pub to: Option<String>,
    /// What to do when the array is full.
    #[arg(long, value_enum, default_value = "stop", help_heading = ARRAY)]
    pub when_full: WhenFull,
    /// Number of member files in a new directory.
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = ARRAY)]
    pub members: u16,
    /// Size of each new member file [default: 2GiB, more if --for needs it].
    ///
    /// If the source's rate and --for are known and need more, the default is what they need, as far as the file system has
    /// room: a tenth stays free. The speed of an interface's link doesn't count as a rate. A ring's default is always 2GiB.
    #[arg(long, value_name = "SIZE", help_heading = ARRAY)]
    pub member_size: Option<ByteSize>,
    /// Members of a new array that may be lost, 0 to 2 [default: 0].
    ///
    /// No data is lost with them. Parity takes the space and rate of as many members. An existing array keeps its setting.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2), help_heading = ARRAY)]
    pub parity: Option<u8>,
    /// Mode of new member files, in octal. Other users need read access to list and extract takes.
    #[arg(long, value_name = "MODE", default_value_t, help_heading = ARRAY, hide_short_help = true)]
    pub mode: FileMode,
    /// Segment length in a new directory: the unit of overwriting, trimming and protecting [default: 256MiB, less for
    /// small members].
    #[arg(long, value_name = "SIZE", help_heading = ARRAY, hide_short_help = true)]
    pub segment: Option<ByteSize>,
    /// Longest chunk in a new directory: the unit of writing. Larger chunks suit drives that are slow at small writes
    /// [default: 4MiB less 4KiB].
    #[arg(long, value_name = "SIZE", help_heading = ARRAY, hide_short_help = true)]
    pub chunk: Option<ByteSize>,
    /// What to index during the recording: none, hosts, or flows (hosts, ports and flows).
    ///
    /// A search for an indexed host, port or flow reads only the chunks that may hold its packets. Indexes take up to a
    /// 512th of the array. They are made only while processor time and buffers are free; chunks that are left out can be
    /// indexed later with `array index`.
    #[arg(long, value_name = "WHAT", default_value_t, help_heading = ARRAY, hide_short_help = true)]
    pub index: FlowIndexing,
    /// Stop after this time.
    #[arg(long = "for", value_name = "TIME", help_heading = RECORDING)]
    pub duration: Option<Duration>,
    /// Stop after this many bytes of packets.
    ///
    /// The chunk that reaches them is recorded whole.
    #[arg(long, value_name = "SIZE", help_heading = RECORDING)]
    pub until_bytes: Option<ByteSize>,
    /// Refuse to start if the array has too little room for --for at the source's rate. Nothing is created then.
    #[arg(long, help_heading = RECORDING, hide_short_help = true)]
    pub strict: bool,
    /// Memory for chunk buffers, which hold the data while drives are slow. Raise it if the ledger counts "no
    /// buffer".
    #[arg(long, value_name = "SIZE", default_value = "512MiB", help_heading = RECORDING)]
    pub memory: ByteSize,
    /// Write buffered packets at least this often, and flush each member's cache at the same interval.
    ///
    /// A power cut loses at most twice this time, two and a half times with parity. A shorter interval writes smaller
    /// chunks.
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = RECORDING)]
    pub flush_interval: Duration,
    /// How chunks are spread: adaptive (to the fastest at the moment) or stripe (in turn).
    #[arg(long, default_value = "adaptive", help_heading = RECORDING, hide_short_help = true)]
    pub placement: Placement,
    /// Chunk writes in flight on each member, 1 to 64. Raise it if the drives are not busy.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=DEPTH_MAX.into()), help_heading = RECORDING, hide_short_help = true)]
    pub depth: u32,
    /// How far the fill of members may drift apart under adaptive placement, unless chunks have to wait. A larger
    /// value keeps unequal drives busy, and makes a ring's history less even [default: two segments].
    #[arg(long, value_name = "SIZE", help_heading = RECORDING, hide_short_help = true)]
    pub drift: Option<ByteSize>,
    /// Processors to use: the first for writing, the others for the source's queues [default: the scheduler's
    /// choice].
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', help_heading = RECORDING, hide_short_help = true)]
    pub cpus: Vec<usize>,
    /// Segments that a ring keeps trimmed ahead of its head [default: 4 on drives, 0 on files].
    #[arg(long, value_name = "N", help_heading = RINGS, hide_short_help = true)]
    pub trim_ahead: Option<u64>,
    /// Highest rate at which a ring trims each member. Lower it if trims slow down writes.
    #[arg(long, value_name = "RATE", default_value = "8GB/s", help_heading = RINGS, hide_short_help = true)]
    pub trim_rate: Rate,
    /// Members that receive no writes at a time, in turn, so that they can erase. They receive chunks again when
    /// buffers fill past half.
    #[arg(long, value_name = "N", default_value_t = 0, group = "resting", help_heading = RINGS, hide_short_help = true)]
    pub rest: u32,
    /// NVM Sets to use on drives with a member in each of several sets. With `separate`, one member of each drive is
    /// written at a time, and readers use the others [default: shared].
    #[arg(long, value_name = "WHICH", group = "resting", help_heading = RINGS, hide_short_help = true)]
    pub sets: Option<Sets>,
    /// How long a member rests at a time, or is written with --sets separate [default: 5s; 10m with --sets separate].
    #[arg(long, value_name = "TIME", requires = "resting", help_heading = RINGS, hide_short_help = true)]
    pub rest_turn: Option<Duration>,
    /// Record on simulated drives in virtual time: hours take seconds.
    ///
    /// Packets are described instead of generated, so no memory is used for them. Needs a generated source with a
    /// rate, and --for.
    #[arg(long = "virtual", requires = "duration", help_heading = SIMULATED)]
    pub virtual_time: bool,
    /// Bandwidth of the link that all simulated drives share, to the host and, if it differs, to the drives [default:
    /// no shared link].
    #[arg(long, value_name = "RATE[,RATE]", help_heading = SIMULATED, hide_short_help = true)]
    pub uplink: Option<target::Uplink>,
    /// Where simulated drives are put.
    #[command(flatten)]
    pub place: CoolingArguments,
    /// User to become once everything is open, when started by root [default: the user who ran sudo, else longtake if
    /// that user exists, else nobody].
    #[arg(long, value_name = "USER", help_heading = PRIVILEGES, hide_short_help = true)]
    pub user: Option<String>,
    /// Stay root, and don't confine the process.
    ///
    /// By default a recorder, whoever starts it, can gain no privileges, dump no core, open no more files and make no
    /// TCP connections once everything is open (no_new_privs and Landlock).
    #[arg(long, conflicts_with = "user", help_heading = PRIVILEGES, hide_short_help = true)]
    pub keep_privileges: bool,
    /// Write packets to a .pcapng or .pcap file, not to an array; see --rotate.
    ///
    /// The file appears under its name when it is complete. If the process is killed, the file that it is writing is lost.
    /// For more than a small job, use an array (--to). It keeps pace with faster sources, because it writes to all its
    /// drives at once, and keeps what is written through kill -9. It can reuse drives as a ring, find packets by time
    /// without reading the others, and survive the loss of drives with --parity.
    #[arg(long, short = 'w', value_name = "FILE", conflicts_with_all = OF_ARRAYS, help_heading = OUTPUT)]
    pub write: Option<PathBuf>,
    /// With -w, begin another file at this size or after this time: 1GiB, 10m.
    ///
    /// Files are called FILE_00001_20261121100000.pcapng, with a number and the time of their beginning in UTC. Each is a
    /// whole pcapng or pcap file. By size, a file ends before the packet that would make it longer. By time, it ends with the
    /// first packet that is so much later than its first, or soon after that time if none comes.
    #[arg(long, value_name = "SIZE|TIME", requires = "write", conflicts_with = "to", help_heading = OUTPUT, hide_short_help = true)]
    pub rotate: Option<Rotation>,
    /// With --rotate, keep at most this many files, 2 or more [default: all].
    ///
    /// Before another file begins, the oldest is removed. The one that is being written counts, too. Files that this
    /// command has not written are never removed.
    #[arg(long, value_name = "N", requires = "rotate", conflicts_with = "to", value_parser = clap::value_parser!(u32).range(2..), help_heading = OUTPUT, hide_short_help = true)]
    pub files: Option<u32>,
    /// With -w, replace files that exist.
    #[arg(long, short = 'y', requires = "write", conflicts_with = "to", help_heading = OUTPUT, hide_short_help = true)]
    pub overwrite: bool,
    /// Print events as JSON lines.
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Interval of the progress lines of --json [default: 500ms].
    #[arg(long, value_name = "TIME", requires = "json", help_heading = OUTPUT, hide_short_help = true)]
    pub json_every: Option<Duration>,
    /// Write metrics for Prometheus to this file every 5 seconds.
    ///
    /// node-exporter's textfile collector reads the file if its name ends in .prom. It has the ledger, the buffers, the link,
    /// and how long each member took for its writes, under the names that `longtake serve` has for them. Its folder must be
    /// writable for the user that records: root becomes another one.
    #[arg(long, value_name = "FILE", conflicts_with = "virtual_time", help_heading = OUTPUT, hide_short_help = true)]
    pub metrics: Option<PathBuf>,
    /// Print no progress.
    #[arg(long, short, help_heading = OUTPUT)]
    pub quiet: bool,
}

/// `takes`.
#[derive(Debug, Args)]
pub struct TakesArguments {
    /// The array to work on.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Also list takes that the ring has overwritten whole; only their accounts are left.
    #[arg(long)]
    pub all: bool,
    /// Takes to delete, which can't be done: the answer says why, and what can.
    #[arg(long, value_name = "TAKE", num_args = 0.., hide = true)]
    pub delete: Option<Vec<String>>,
}

/// `ledger`.
#[derive(Debug, Args)]
pub struct LedgerArguments {
    /// The array to work on.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Take to show: its UUID, the beginning of the UUID, or `last`.
    #[arg(long, default_value = "last")]
    pub take: String,
}

/// Packets to select.
#[derive(Debug, Args)]
pub struct Selection {
    /// Select packets from this time on: 2026-11-21T10:00:00Z, "2026-11-21 10:00" (local), -10m (ago), seconds since
    /// 1970.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = SELECTION)]
    pub since: Option<When>,
    /// Select packets up to this time [default: the newest].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = SELECTION)]
    pub until: Option<When>,
    /// Select one take: its UUID, the beginning of the UUID, or `last` [default: all].
    #[arg(long, help_heading = SELECTION)]
    pub take: Option<String>,
    /// Select packets that this libpcap expression accepts, as in tcpdump.
    #[arg(long, value_name = "BPF", default_value = "", hide_default_value = true, help_heading = SELECTION)]
    pub filter: String,
    /// Highest read rate, to leave bandwidth to a recording [default: 500 MB/s during a recording].
    #[arg(long, value_name = "RATE", help_heading = SELECTION)]
    pub read_rate: Option<Rate>,
    /// Say how many chunks flow indexes spared, and why.
    ///
    /// Lists the chunks in the span, those that were read, those without an index, and what every selected packet has.
    #[arg(long, help_heading = SELECTION)]
    pub explain: bool,
    /// Read every chunk of the span, whatever flow indexes say. The result is the same, only later.
    #[arg(long, help_heading = SELECTION, hide_short_help = true)]
    pub full_scan: bool,
}

/// `extract`.
#[derive(Debug, Args)]
pub struct ExtractArguments {
    /// The array to work on.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Packets to select.
    #[command(flatten)]
    pub selection: Selection,
    /// File to write, whose extension selects the format, or - for standard output.
    #[arg(long, short, short_alias = 'w', alias = "write", value_name = "FILE", help_heading = OUTPUT)]
    pub output: PathBuf,
    /// Format, if the file's extension does not select it: pcapng, pcap, csv, jsonl, parquet, arrow or raw.
    ///
    /// All but parquet and arrow also with .gz or .zst. csv, jsonl, parquet and arrow hold time, interface, lengths and bytes of each packet; raw holds the
    /// packets' bytes back to back, and of a UDP source the payloads. Standard output and files without an extension get pcapng.
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    pub format: Option<OutputFormat>,
    /// Add columns for the packets' flows to CSV, JSON lines, Parquet and Arrow.
    ///
    /// They are source, destination, source_port, destination_port, protocol and tcp_flags. The innermost IP header counts.
    #[arg(long, help_heading = OUTPUT)]
    pub flow_columns: bool,
    /// Replace the file if it exists.
    #[arg(long, short = 'y', help_heading = OUTPUT)]
    pub overwrite: bool,
    /// Write packets while they are recorded, until the take ends: from now on, or from --since on.
    ///
    /// Waits for a recording if there is none. Packets arrive within a second of being on the media, where they are within the
    /// recording's --flush-interval. ^C ends it as well and leaves a complete file.
    #[arg(long, conflicts_with_all = ["until", "take", "hold"], help_heading = SELECTION)]
    pub follow: bool,
    /// Select the packets of a flow, in both directions, by its Community ID. May be given several times.
    ///
    /// `longtake flows --community-id` lists the ids. Combined with --filter, packets are selected that both accept.
    #[arg(long, value_name = "ID", help_heading = SELECTION)]
    pub community_id: Vec<CommunityId>,
    /// Make a running recording overwrite this span last, until the command ends.
    ///
    /// Use it when the ring may overtake the extraction. The recording goes on even if it has to overwrite the span.
    #[arg(long, help_heading = SELECTION)]
    pub hold: bool,
    /// Print neither progress nor a summary. What is missing is printed nevertheless.
    #[arg(long, short, help_heading = OUTPUT)]
    pub quiet: bool,
}

/// `flows`.
#[derive(Debug, Args)]
pub struct FlowsArguments {
    /// The array to work on.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Packets to select.
    #[command(flatten)]
    pub selection: Selection,
    /// Make a running recording overwrite this span last, until the command ends.
    ///
    /// Use it when the ring may overtake the reading. The recording goes on even if it has to overwrite the span.
    #[arg(long, hide_short_help = true, help_heading = SELECTION)]
    pub hold: bool,
    /// Count by flows, hosts or ports.
    ///
    /// flows are pairs of addresses and ports. hosts are addresses, with what each sent and received. ports are protocols with the
    /// port of the service, which is the lower one of the two ports.
    #[arg(long, value_name = "GROUP", default_value = "flows", help_heading = COUNTING)]
    pub group: Group,
    /// Sort by bytes or packets, most first.
    #[arg(long, value_name = "COUNT", default_value = "bytes", help_heading = COUNTING)]
    pub by: Order,
    /// List the first N only [default: 20 in a table, all in other formats].
    #[arg(long, value_name = "N", help_heading = COUNTING)]
    pub top: Option<usize>,
    /// List the Community ID of each flow, which Zeek, Suricata and Wireshark also show.
    #[arg(long, help_heading = COUNTING)]
    pub community_id: bool,
    /// Count at most N flows, hosts or ports one by one. Packets of others are counted together.
    ///
    /// 900,000 flows take about 300 MB of memory.
    #[arg(long, value_name = "N", default_value_t = FLOWS_MAX, hide_short_help = true, help_heading = COUNTING)]
    pub max_rows: usize,
    /// File to write, whose extension selects the format: .csv, .json, .parquet, or .txt for a table.
    #[arg(long, short, value_name = "FILE", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
    /// Format: table, csv, json or parquet [default: table, or as the file's extension says].
    #[arg(long, value_name = "NAME", conflicts_with = "json", help_heading = OUTPUT)]
    pub format: Option<FlowFormat>,
    /// Replace the file if it exists.
    #[arg(long, short = 'y', help_heading = OUTPUT)]
    pub overwrite: bool,
    /// Print no progress.
    #[arg(long, short, help_heading = OUTPUT)]
    pub quiet: bool,
}

/// `replay`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["interface", "udp"])))]
pub struct ReplayArguments {
    /// The array to work on.
    #[command(flatten)]
    pub array: ArrayArguments,
    /// Packets to select.
    #[command(flatten)]
    pub selection: Selection,
    /// Send whole frames on this interface.
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Send the payloads of UDP datagrams to this address.
    #[arg(long, value_name = "ADDR:PORT")]
    pub udp: Option<SocketAddr>,
    /// Speed relative to the recording: 2 halves the intervals.
    #[arg(long, default_value_t = 1.0, conflicts_with = "fastest")]
    pub speed: f64,
    /// Send as fast as possible, without the recorded intervals.
    #[arg(long)]
    pub fastest: bool,
}

/// `drives`.
#[derive(Debug, Args)]
pub struct DrivesArguments {
    /// Drives to describe in full [default: list all].
    pub targets: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Folders that `measure` wrote; several are compared.
    #[arg(required = true)]
    pub folders: Vec<PathBuf>,
    /// HTML file to write [default: report.html in the first folder].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write each picture as SVG into this folder.
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Also write the series as CSV into this folder.
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Also write the series as Parquet into this folder.
    #[arg(long, value_name = "DIR")]
    pub parquet: Option<PathBuf>,
    /// Replace files that exist.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `fit`.
#[derive(Debug, Args)]
pub struct FitArguments {
    /// Folder that `measure` wrote for one drive, or a profile, which determines less.
    pub measurement: PathBuf,
    /// Profile to write, for use as sim:FILE.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Drive of the library, or file, whose dies, pages and blocks the twin takes. Choose the most similar model
    /// [default: chosen by the figures].
    #[arg(long, value_name = "NAME|PATH")]
    pub from: Option<String>,
    /// Most drives to try. Raise it for a closer fit.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub evaluations: u32,
    /// Longest time to search [default: no limit].
    #[arg(long, value_name = "TIME")]
    pub time: Option<Duration>,
    /// Replace the file if it exists.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}
