//! `--from traffic:` recorded, on files and on simulated drives: what comes back is what tshark finds in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::captures::tshark;
use crate::harness::{asked, line, new_in, number, ran, run, scratch, tool};

const SMALL: &str = "--members 1 --member-size 24MiB --segment 1MiB --chunk 64KiB --memory 64MiB";

/// An array with traffic, and the same packets in a file.
fn recorded(folder: &TempDir) -> (PathBuf, PathBuf) {
    let (array, file) = (new_in(folder, "array"), new_in(folder, "traffic.pcap"));
    line(&format!("record -q --from traffic:max,seed=7 --until-bytes 12MB --to @ {SMALL}"), &array)
        .code(0);
    line(&format!("extract @ -q -y -o {}", file.display()), &array).code(0);
    (array, file)
}

/// Packets of each flow by Community ID, and the flows that have fragments, of which tshark sees the last one whole.
fn flows(file: &Path) -> (BTreeMap<String, u64>, BTreeSet<String>) {
    let mut command = tool("tshark", "tshark");
    command.args(["-n", "-r"]).arg(file).args(["--enable-protocol", "communityid", "-T", "fields"]);
    let fields = ["communityid", "ip.flags.mf", "ipv6.fraghdr.more"];
    let fragments = ["ip.reassembled.length", "ipv6.reassembled.length"];
    command.args(fields.iter().chain(&fragments).flat_map(|field| ["-e", *field]));
    let (mut packets, mut fragmented) = (BTreeMap::new(), BTreeSet::new());
    for line in run(&mut command).code(0).text().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields[1..3].iter().any(|more| more.contains('1')) {
            continue;
        }
        *packets.entry(fields[0].to_owned()).or_default() += 1;
        if fields[3..].iter().any(|length| !length.is_empty()) {
            fragmented.insert(fields[0].to_owned());
        }
    }
    (packets, fragmented)
}

#[test]
fn flows_of_traffic_are_those_to_which_tshark_gives_a_community_id() {
    let folder = scratch();
    let (array, file) = recorded(&folder);
    let (expected, fragmented) = flows(&file);
    let shown = asked("flows @ --community-id --max-rows 100000", &array);
    let found: BTreeMap<String, u64> = shown["flows"]
        .as_array()
        .expect("there are flows")
        .iter()
        .filter_map(|row| Some((row["community_id"].as_str()?.to_owned(), number(row, "packets"))))
        .collect();
    assert!(expected.len() > 3000 && fragmented.len() > 20, "{} flows", expected.len());
    for (id, packets) in &expected {
        let ours = found.get(id).copied();
        match fragmented.contains(id) {
            // The last fragment of each datagram is one packet of tshark's, and there were others before it.
            true => assert!(ours >= Some(2 * packets), "{id}: {ours:?}, {packets} datagrams"),
            false => assert_eq!(ours, Some(*packets), "{id}"),
        }
    }
    // A datagram whose last fragment was not recorded any more is none of tshark's.
    assert!(found.len() <= expected.len() + 1, "{} instead of {}", found.len(), expected.len());
}

#[test]
fn a_filter_finds_a_flow_of_traffic_as_tcpdump_does() {
    let folder = scratch();
    let (array, file) = recorded(&folder);
    let shown = asked("flows @ --by packets --filter ip", &array);
    let flow = &shown["flows"][0];
    let filter = format!(
        "host {} and host {} and port {} and port {}",
        flow["source"].as_str().expect("an address"),
        flow["destination"].as_str().expect("an address"),
        flow["source_port"],
        flow["destination_port"],
    );
    let ours = new_in(&folder, "ours.pcap");
    let [from, to] = [&array, &ours].map(|path| path.to_str().expect("a scratch path is text"));
    ran(["extract", from, "-q", "-y", "--filter", &filter, "-o", to]).code(0);
    let theirs = new_in(&folder, "theirs.pcap");
    let mut tcpdump = tool("tcpdump", "tcpdump");
    tcpdump.arg("-r").arg(&file).arg("-w").arg(&theirs).arg(&filter);
    run(&mut tcpdump).code(0);
    // tcpdump keeps microseconds of the times.
    let bytes = |file: &Path| {
        let fields = ["-T", "fields", "-e", "frame.len", "-e", "ip.src", "-e", "ip.id"];
        tshark(file, &fields)
    };
    let packets = bytes(&ours);
    assert!(packets == bytes(&theirs), "{} packets of {filter} differ", packets.len());
    assert_eq!(packets.len() as u64, number(flow, "packets"));
}

/// What a recording offered and stored, in packets and bytes.
fn balance(words: &str, path: &Path) -> [[u64; 2]; 2] {
    let said = line(&format!("record --json {words}"), path).code(0).text();
    let events = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let finished = events.into_iter().find(|event| event["event"] == "finished");
    let finished = finished.expect("it prints its account");
    let of = |what: &str| {
        ["packets", "bytes"].map(|unit| number(&finished, &format!("ledger.{what}.{unit}")))
    };
    [of("offered"), of("stored")]
}

#[test]
fn traffic_at_a_rate_is_recorded_on_simulated_drives_and_described() {
    let folder = scratch();
    let path = folder.path();
    let mut offered = Vec::new();
    for from in ["traffic:10MB/s,seed=3,flows=500,queues=2", "traffic:20MB/s,size=590,seed=3"] {
        let words = format!("--from {from} --to sim:ideal*2 --until-bytes 2MB --for 5s");
        let [was_offered, stored] = balance(&words, path);
        assert_eq!(was_offered, stored);
        assert!((2_000_000..20_000_000).contains(&stored[1]), "{from}: {stored:?}");
        offered.push(was_offered);
    }
    // The bytes of IMIX are in more packets.
    assert_ne!(offered[0], offered[1]);
    let virtually = "--from traffic:1GB/s --to sim:ideal*2 --virtual --for 10s";
    let [described, _] = balance(virtually, path);
    assert!((9_900_000_000..10_100_000_000).contains(&described[1]), "{described:?}");
    assert!((described[1] / described[0]).abs_diff(350) < 5, "{described:?}");
}
