//! Real traffic between two network namespaces, recorded beside tcpdump on the same interface: both
//! saw the same packets in the same order, to the byte and (where the kernel stamps once for both) to the
//! nanosecond, apart from what either counted as dropped.
//!
//! The transfers are larger with `LONGTAKE_LONG=1`.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::harness::captures::{Contents, Frame, capinfos, read, tshark};
use crate::harness::namespaces::{FAR, Hosts, NEAR};
use crate::harness::{Ended, Recorder, Running, asked, line, long, new_in, number, run, scratch};
use crate::harness::{longtake, tool, wait_until};
use nix::sys::signal::Signal;
use tempfile::TempDir;

const BEFORE: &str = "longtake: the first packet that both must have";
const AFTER: &str = "longtake: the last packet that both must have";

/// tcpdump on the far host's interface, its buffer large enough not to drop.
struct Tcpdump {
    process: Running,
    file: PathBuf,
    said: PathBuf,
}

impl Tcpdump {
    fn start(hosts: &Hosts, folder: &TempDir, options: &[&str]) -> Self {
        let (file, said) = (new_in(folder, "tcpdump.pcap"), new_in(folder, "tcpdump.said"));
        let mut command = tool("tcpdump", "tcpdump");
        // -Z root: it would not be let into the scratch folder otherwise.
        command.args(["-i", "cable", "-n", "-U", "-B", "262144", "-Z", "root"]);
        command.args(["--time-stamp-precision=nano", "-w"]).arg(&file).args(options);
        let stderr = File::create(&said).expect("making a scratch file");
        let process = Running::start(hosts.far(&command).stderr(stderr).stdout(Stdio::null()));
        wait_until("tcpdump listens", || text(&said).contains("listening on"));
        Self { process, file, said }
    }

    /// Ends it once the last packet is written; returns what it counted as dropped.
    fn end(mut self) -> (Contents, u64) {
        wait_until("tcpdump has the last packet", || tail(&self.file).contains(AFTER));
        self.process.signal(Signal::SIGINT);
        assert_eq!(self.process.wait(), 0, "{}", text(&self.said));
        let said = text(&self.said);
        let dropped = said.lines().filter(|l| l.contains("dropped by"));
        let dropped = dropped.filter_map(|l| l.split(' ').next()?.parse::<u64>().ok()).sum();
        (read(&self.file), dropped)
    }
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// The last bytes of a file that grows.
fn tail(path: &Path) -> String {
    let mut bytes = Vec::new();
    let mut file = File::open(path).expect("tcpdump has made it");
    let length = file.metadata().expect("it is a file").len();
    file.seek(SeekFrom::Start(length.saturating_sub(1 << 16))).expect("it is a file");
    file.read_to_end(&mut bytes).expect("it is a file");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The far host's part of a test: longtake and tcpdump on its interface.
struct Both {
    hosts: Hosts,
    folder: TempDir,
    array: PathBuf,
    recorder: Recorder,
    tcpdump: Tcpdump,
}

impl Both {
    fn start(source: &str, options: &[&str], tcpdump: &[&str]) -> Self {
        let hosts = Hosts::new();
        let folder = scratch();
        let array = new_in(&folder, "array");
        let tcpdump = Tcpdump::start(&hosts, &folder, tcpdump);
        let mut record = longtake();
        let size = if long() { "2GiB" } else { "256MiB" };
        record.args(["record", "--json", "--member-size", size, "--from", source, "--to"]);
        record.arg(&array).args(options);
        let recorder = Recorder::spawn(&mut hosts.far(&record));
        hosts.mark(BEFORE);
        Self { hosts, folder, array, recorder, tcpdump }
    }

    /// Real transfers of every kind.
    fn transfer(&self) {
        let mut iperf3 = tool("iperf3", "iperf3");
        let _server = Running::start(self.hosts.far(iperf3.args(["-s"])).stdout(Stdio::null()));
        let python = tool("python3", "python3");
        let served = new_in(&self.folder, "served");
        std::fs::create_dir(&served).expect("making a scratch folder");
        let page: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(served.join("page"), &page).expect("writing a scratch file");
        let mut http = self.hosts.far(&python);
        http.args(["-m", "http.server", "8080", "--directory"]).arg(&served);
        let _http = Running::start(http.stdout(Stdio::null()).stderr(Stdio::null()));

        let (bytes, rate) = if long() { ("1G", "400M") } else { ("20M", "50M") };
        for options in [&["-n", bytes][..], &["-n", bytes, "-R"], &["-u", "-b", rate, "-t", "1"]] {
            let mut client = tool("iperf3", "iperf3");
            client.args(["-c", FAR]).args(options);
            wait_until("iperf3 has transferred", || run(&mut self.hosts.near(&client)).code == 0);
        }
        let fetched = new_in(&self.folder, "fetched");
        let mut curl = tool("curl", "curl");
        curl.args(["-s", "--retry", "120", "--retry-connrefused", "--retry-delay", "1", "-o"]);
        curl.arg(&fetched).arg(format!("http://{FAR}:8080/page"));
        run(&mut self.hosts.near(&curl)).code(0);
        assert_eq!(std::fs::read(&fetched).expect("curl has made it"), page);
        let mut ping = tool("ping", "iputils-ping");
        ping.args(["-c", "20", "-i", "0.02", "-s", "1000", "-q", FAR]);
        run(&mut self.hosts.near(&ping)).code(0);
    }

    /// Ends both; returns what each has between the two marks, and what each has counted as dropped.
    fn end(self) -> Seen {
        self.hosts.mark(AFTER);
        let (beside, beside_dropped) = self.tcpdump.end();
        let ended = self.recorder.stop();
        assert!(matches!(ended.code, 0 | 3), "{}", ended.stderr);
        let extract = new_in(&self.folder, "extract.pcapng");
        let output = extract.to_str().expect("a scratch path is text");
        line(&format!("extract @ -q -o {output}"), &self.array).code(0);
        let ledger = line("ledger @ --json", &self.array).json();
        assert_eq!(ledger["balances"], true, "{ledger:#}");
        assert_eq!(ledger["state"], "complete");
        let whole = read(&extract);
        assert_eq!(whole.frames.len() as u64, number(&ledger, "on_media.packets"));
        assert_eq!(capinfos(&extract), number(&ledger, "on_media.packets"));
        let dropped = ["interface", "kernel_ring", "no_buffer"]
            .map(|stage| number(&ledger, &format!("ledger.lost.{stage}.packets")));
        Seen {
            ours: between(whole.frames),
            beside: between(beside.frames),
            dropped: dropped.iter().sum(),
            beside_dropped,
            // Null where the kernel filters, which counts none.
            filtered: ledger["ledger"]["filtered"]["packets"].as_u64().unwrap_or(0),
            extract,
            array: self.array,
            ended,
            _folder: self.folder,
        }
    }
}

struct Seen {
    ours: Vec<Frame>,
    beside: Vec<Frame>,
    dropped: u64,
    beside_dropped: u64,
    filtered: u64,
    extract: PathBuf,
    array: PathBuf,
    ended: Ended,
    _folder: TempDir,
}

/// The packets from the first mark to the last.
fn between(frames: Vec<Frame>) -> Vec<Frame> {
    let at = |mark: &str| {
        let marked = |f: &Frame| f.data.windows(mark.len()).any(|w| w == mark.as_bytes());
        frames.iter().position(marked).unwrap_or_else(|| panic!("'{mark}' is not among them"))
    };
    let span = at(BEFORE)..=at(AFTER);
    frames[span].iter().map(|f| Frame { interface: 0, ..f.clone() }).collect()
}

/// Whether the kernel stamps a packet once for all sockets, to the nanosecond. What the near host's TCP
/// sends still carries its time of departure when it comes out of the cable, by another clock; the
/// kernel reads the clock anew for each socket then.
fn stamped_once(frame: &Frame) -> bool {
    let near = NEAR.parse::<Ipv4Addr>().expect("it is an address").octets();
    !(frame.data.len() >= 34
        && frame.data[12..14] == [8, 0]
        && frame.data[23] == 6
        && frame.data[26..30] == near)
}

/// Two sockets stamp the same packet one after the other, and packets that pass the kernel on two
/// processors may reach them in another order: mostly within microseconds, but the kernel may be
/// interrupted between. Chunks in a wrong order would be off by the second that they cover.
const APART_MAX_NS: u64 = 900_000_000;

impl Seen {
    /// Same packets, bytes, time stamps and order, apart from what either counted as dropped.
    fn agree(&self) {
        let (packets, beside) = (self.ours.len() as u64, self.beside.len() as u64);
        println!(
            "{packets} packets here, {beside} beside; {} and {} dropped",
            self.dropped, self.beside_dropped
        );
        let key = |f: &Frame| Frame { time: if stamped_once(f) { f.time } else { 0 }, ..f.clone() };
        let mut theirs: HashMap<Frame, VecDeque<u64>> = HashMap::new();
        for frame in &self.beside {
            theirs.entry(key(frame)).or_default().push_back(frame.time);
        }
        let (mut both, mut latest) = (0, 0);
        for frame in &self.ours {
            let Some(time) = theirs.get_mut(&key(frame)).and_then(VecDeque::pop_front) else {
                continue;
            };
            both += 1;
            assert!(time.abs_diff(frame.time) < APART_MAX_NS, "{} and {time} ns", frame.time);
            assert!(time + APART_MAX_NS > latest, "another order: {time} after {latest}");
            latest = latest.max(time);
        }
        assert!(packets - both <= self.beside_dropped, "{} that tcpdump has not", packets - both);
        assert!(beside - both <= self.dropped, "{} that only tcpdump has", beside - both);
        let wire = |frames: &[Frame]| frames.iter().map(|f| u64::from(f.original_length)).sum();
        let (ours, beside): (u64, u64) = (wire(&self.ours), wire(&self.beside));
        assert!(ours == beside || self.dropped + self.beside_dropped > 0, "{ours} {beside} bytes");
    }

    /// tshark shows the same as our reader has found.
    fn tshark_agrees(&self) {
        let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e"];
        let fields = [&fields[..], &["frame.cap_len"]].concat();
        let shown = tshark(&self.extract, &fields);
        let line = |f: &Frame| {
            format!("{}\t{}\t{}", crate::harness::seconds(f.time), f.original_length, f.data.len())
        };
        let read: Vec<String> = read(&self.extract).frames.iter().map(line).collect();
        assert_eq!(shown.len(), read.len());
        assert!(shown == read, "tshark shows other times or lengths");
    }
}

#[test]
fn a_live_capture_agrees_with_tcpdump_beside_it() {
    let both = Both::start("if:cable", &[], &[]);
    both.transfer();
    let seen = both.end();
    seen.agree();
    seen.tshark_agrees();
    assert!(seen.ours.len() > 2000, "{} packets", seen.ours.len());
    assert_eq!(seen.filtered, 0);
    let pcap = seen.extract.with_extension("pcap");
    let output = pcap.to_str().expect("a scratch path is text");
    line(&format!("extract @ -q -o {output}"), &seen.array).code(0);
    assert_eq!(capinfos(&pcap), capinfos(&seen.extract));
    let finished = seen.ended.event("finished");
    assert_eq!(finished["ledger"]["balances"], true);
    let checked = asked("array check @", &seen.array);
    assert!(checked["damaged"].as_array().is_some_and(Vec::is_empty), "{checked}");
}

#[test]
fn filter_and_snap_length_keep_what_tcpdumps_keep() {
    let options = ["--filter", "udp or icmp", "--snap", "96"];
    let both = Both::start("if:cable", &options, &["-s", "96", "udp or icmp"]);
    both.transfer();
    let seen = both.end();
    seen.agree();
    seen.tshark_agrees();
    assert!(seen.ours.iter().all(|f| f.data.len() <= 96 && f.data[12..14] == [8, 0]));
    assert!(seen.ours.iter().any(|f| f.original_length > 1000 && f.data.len() == 96));
    assert!(seen.ours.iter().any(|f| f.data[23] == 1), "pings");
    // The kernel applied the filter, and counts nothing of what it rejects: that is not 0.
    let finished = seen.ended.event("finished");
    assert!(finished["ledger"]["filtered"].is_null(), "{finished:#}");
    assert_eq!(finished["reason"], "stopped");
}

#[test]
fn parallel_queues_come_back_merged_in_time_order() {
    let both = Both::start("if:cable,queues=2", &[], &[]);
    both.transfer();
    // A flow each: the kernel may have given all the others to one queue.
    (0..20).for_each(|_| both.hosts.mark("another flow"));
    let seen = both.end();
    seen.agree();
    let takes = asked("takes @", &seen.array);
    assert_eq!(takes[0]["queues"], 2, "both queues had packets: {takes:#}");
    let back = seen.ours.windows(2).map(|w| w[0].time.saturating_sub(w[1].time)).max();
    assert!(back < Some(APART_MAX_NS), "goes back by {back:?} ns");
}
