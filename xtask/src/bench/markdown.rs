//! The results as a page of documentation.

use std::fmt::Write;

use jiff::Timestamp;

use super::comparison::Comparison;

const FOREWORD: &str = "\
Regenerate this page, on a machine with nothing else to do, as root (page caches are dropped):

    cargo xtask bench --markdown docs/benchmarks.md

Each benchmark and its references are measured in turn, round by round, in one run; the order
changes with every round. A figure is the median of the rounds, with the lowest and the highest in
brackets. A ratio is formed within each round first, and more than 1 means that Longtake is faster.
Nothing fails for being slow.
";

/// What a reader must know of each benchmark.
const NOTES: [(&str, &str); 15] = [
    (
        "pack",
        "\
Processor time of one core. Packets are taken in order from a ring of the given length. Chunks are
packed, sealed and checksummed (CRC32C) in 16 buffers of 4190208 bytes in turn; memcpy fills the
same buffers.",
    ),
    (
        "record",
        "\
Four preallocated files, 4 GiB a round, direct I/O by io_uring. Each file has 4 chunk writes under
way (fio: 16 on all files together), and is flushed at the end. *Newly preallocated* files are
created before each round, so the file system also has to mark their extents as written; *files
written before* are overwritten. fio also runs with huge pages, which Longtake's buffers use: with
pages of 4 KiB, a block of 4 MiB has more segments than a drive accepts in one request, so it is
split.",
    ),
    (
        "record-index",
        "\
`longtake record` of one end of a veth, in a network namespace of its own. `longtake replay` sends
the same 500 MB of generated traffic on the other end in each round, at a tenth of 500 MB/s. A round
in which a packet is lost fails. Processor time is that of the recorder, from its first report of
progress to its exit, indexes included. The kernel's work of delivering packets over veth is the
sender's, and not counted.",
    ),
    (
        "record-cut",
        "\
`longtake record --index none` of the source `traffic:max`, which waits for the recorder, for eight
seconds onto a ring of four member files that were written before. `--cut` looks each packet up in
a table of flows, and leaves out what comes after the first 1 MiB of its flow.",
    ),
    (
        "extract",
        "\
A take of 10 GB of 1,500 B packets on four member files, and the same packets as one pcapng file.
*Dropped* means that /proc/sys/vm/drop_caches was written before each run of each tool; *warm* that
the pcapng file was in the page cache (Longtake reads past it either way). editcap and longtake
found the same packets.",
    ),
    (
        "extract-whole",
        "\
A take of 7 GB of 1,500 B packets on four member files becomes one pcapng file, flushed. fio writes
blocks of 4 MiB at a depth of 4 to such a file and flushes it. With the array in memory (a tmpfs),
the disk of the file is the limit. With both on one disk, fio reads the members meanwhile.",
    ),
    (
        "search",
        "\
One flow of about 1,000 packets in generated traffic, in seconds, with page caches dropped before
each run: by flow index, by reading everything, with tcpdump on the same packets in one pcap file,
and with Stenographer. stenotype gets the same packets over veth and must not lose any. Stenographer
and `longtake serve` are asked in the same way: the same query in Stenographer's language, by curl
over TLS with certificates of 4096 bits. Both are running; `longtake extract` starts in each run.
All must find the same packets, byte for byte. Times of capture are not compared: Stenographer's are
those of the veth. Stenographer is compared if `--stenographer DIR` names its programs:

    apt-get download stenographer libaio1 libleveldb1d libsnappy1v5
    for package in *.deb; do dpkg -x $package DIR; done

`--search-bytes` sets how much is searched. Four times as much space is needed.",
    ),
    (
        "search-large",
        "\
One flow in an array of 10 TB that fills three simulated drives (intel-d7-p5510-3.84tb), in virtual
time. The recorder's code opens the array, lists all of its chunks, looks the flow up in 37,251 flow
indexes, and reads the chunks that may hold it; 120 of them do. The drives hold what such a search
reads of each segment, and no packets. A flow index has two thousand keys here, far fewer than
traffic fills it with; a lookup reads two pages of it, however long it is.",
    ),
    (
        "search-live",
        "\
A recording of UDP gets 20,000 datagrams of 1,400 B a second, and 700 MB before the first round. In
each round, a datagram comes from another port, and `longtake extract --filter` is run again and
again until one run has found it. The time is that from sending it to the end of that run.",
    ),
    (
        "serve",
        "\
`longtake serve` on loopback, with clients that read as fast as they get packets. Eight of them
download the last five seconds of the recording again and again; four are served at a time, and
together they get 500 MB/s at most. `extract` writes into a pipe. The first packet comes as a JSON
line, so that what precedes packets in a pcapng file doesn't count. Memory is what the system counts
as resident, and wake-ups are the times that a thread of the service waited, over 30 seconds.",
    ),
    (
        "python",
        "\
The wheel as users install it. Each way of reading runs in a Python of its own, whose start is not
counted. scapy, dpkt and tshark read the first packets of a capture file with the same packets,
which is in the page cache. Longtake reads an array on the disk, past the cache, and one in memory
(a tmpfs), as the file is; batches have the packets' bytes. dpkt parses the Ethernet frame,
and tshark prints time, length and addresses. Direct writes go one after the other to a file whose
space is allocated; the array has one member file.",
    ),
    (
        "generate",
        "\
Processor time of one core. The figures are an upper limit: no benchmark that takes its packets from
the synthetic source can be faster. Frames come from a table
and are not copied.",
    ),
    (
        "load",
        "\
The same workload, printed by `longtake measure run --print fio`, on the same file of 8 GiB that was
written before: io_uring, direct I/O, registered buffers in reserved huge pages, registered files,
up to four commands handed over at once, one thread; 6 s after 1 s of warm-up. Latency is from the
start of a command to its reaping (fio: `lat`). Processor time is user and kernel time of the
thread.",
    ),
    (
        "simulate",
        "\
In processor time of one core. The drive is `sim:ideal` (8 channels of 4 dies, 4 KiB units) with
what is said changed. MQSim's figures are those published for machines of this kind.",
    ),
    (
        "mqsim",
        "\
Processor time of one core, without what starting takes. MQSim is built from its source and run in
turn with ours, with its cache off. Both simulate the same drive: 8 channels of 4 dies with 256
blocks of 256 pages of 4 KiB, each programmed alone, and an ideal mapping table.",
    ),
];

/// The page.
pub fn page(machine: &[(&str, String)], found: &[Comparison]) -> String {
    let day = Timestamp::now().strftime("%F");
    let mut text = format!("# Benchmarks\n\n{FOREWORD}\nMeasured on {day} (UTC):\n\n");
    let mut line = |line: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        writeln!(text, "{line}").ok();
    };
    for (name, value) in machine {
        line(format_args!("- {name}: {value}"));
    }
    for (name, note) in NOTES {
        let mut rows = found.iter().filter(|c| c.benchmark == name).peekable();
        if rows.peek().is_none() {
            continue;
        }
        line(format_args!("\n## {name}\n\n{note}\n"));
        line(format_args!(
            "| measured | Longtake | reference | ratio | goal |\n|---|---|---|---|---|"
        ));
        for row in rows {
            line(format_args!("| {} |", row.cells().join(" | ")));
        }
    }
    text
}
