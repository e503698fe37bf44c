//! `flows` and `extract --community-id` against tshark: conversations, hosts, Community IDs, and what can't be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::captures::tshark;
use crate::harness::{Recorder, asked, line, new_in, number, run, scratch, tool};
use nix::sys::signal::Signal;

const SMALL: &str = "--members 1 --member-size 12MiB --segment 1MiB --chunk 64KiB --memory 64MiB";

/// The second of the first packet.
const BEGIN: u32 = 1_700_000_000;

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

fn ethernet(tag: Option<u16>, kind: u16, inner: &[u8]) -> Vec<u8> {
    let tag = tag.map(|id| [0x8100_u16.to_be_bytes(), id.to_be_bytes()].concat());
    [&[2; 12][..], &tag.unwrap_or_default(), &kind.to_be_bytes(), inner].concat()
}

/// An IP header of either version around a payload; `fragment` is its identification, offset in 8 bytes, and whether more follow.
fn ip(ends: [&str; 2], protocol: u8, fragment: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    match ends.map(|end| end.parse::<IpAddr>().expect("it is an address")) {
        [IpAddr::V4(from), IpAddr::V4(to)] => {
            let mut header = vec![0x45, 0];
            header.extend((length + 20).to_be_bytes());
            header.extend(fragment.0.to_be_bytes());
            header.extend(fragment.1.to_be_bytes());
            header.extend([64, protocol, 0, 0]);
            [&header[..], &from.octets(), &to.octets(), payload].concat()
        }
        [IpAddr::V6(from), IpAddr::V6(to)] => {
            let length = length.to_be_bytes();
            let header = [0x60, 0, 0, 0, length[0], length[1], protocol, 64];
            [&header[..], &from.octets(), &to.octets(), payload].concat()
        }
        _ => panic!("{ends:?} are of two families"),
    }
}

fn tcp(ports: [u16; 2], bytes: usize) -> Vec<u8> {
    let ports = ports.map(u16::to_be_bytes).concat();
    [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0], &vec![0; bytes]].concat()
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let ports = ports.map(u16::to_be_bytes).concat();
    let length = (payload.len() as u16 + 8).to_be_bytes();
    [&ports[..], &length, &[0, 0], payload].concat()
}

/// What wraps the packets of a conversation.
#[derive(Clone, Copy)]
enum Around {
    Nothing,
    Vlan,
    Gre,
    Vxlan,
}

/// A TCP packet of so many bytes of payload.
fn packet(around: Around, ends: [&str; 2], ports: [u16; 2], bytes: usize) -> Vec<u8> {
    let kind = if ends[0].contains(':') { 0x86dd } else { 0x0800 };
    let inner = ip(ends, 6, (1, 0), &tcp(ports, bytes));
    match around {
        Around::Nothing => ethernet(None, kind, &inner),
        Around::Vlan => ethernet(Some(7), kind, &inner),
        Around::Gre => {
            let gre = [&[0, 0][..], &u16::to_be_bytes(kind), &inner].concat();
            ethernet(None, 0x0800, &ip(["172.16.0.1", "172.16.0.2"], 47, (2, 0), &gre))
        }
        Around::Vxlan => {
            let vxlan = [&[8, 0, 0, 0, 0, 0, 9, 0][..], &ethernet(None, kind, &inner)].concat();
            let outer = udp([50900, 4789], &vxlan);
            ethernet(None, 0x0800, &ip(["172.16.0.3", "172.16.0.4"], 17, (3, 0), &outer))
        }
    }
}

/// A conversation: its ends, and how many packets go there and back.
type Talk = (Around, [&'static str; 2], [u16; 2], usize, usize);

/// One in each tunnel and each version of IP.
const TALKS: [Talk; 5] = [
    (Around::Nothing, ["10.0.0.1", "10.0.0.2"], [50601, 50443], 30, 10),
    (Around::Vlan, ["10.0.0.3", "10.0.0.2"], [50602, 50443], 5, 6),
    (Around::Nothing, ["2001:db8::1", "2001:db8::2"], [50603, 50080], 8, 4),
    (Around::Gre, ["10.1.0.1", "10.1.0.2"], [50604, 50022], 6, 3),
    (Around::Vxlan, ["10.2.0.1", "10.2.0.2"], [50605, 50025], 4, 2),
];

/// Packets in the file.
const PACKETS: u64 = 78 + 14 + 6 + 2 + 3;

/// The packets of the conversations, then datagrams, pings, ARP and a datagram in three fragments.
fn traffic() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for turn in 0..30 {
        for (around, [a, b], [from, to], there, back) in TALKS {
            if turn < there {
                packets.push(packet(around, [a, b], [from, to], turn));
            }
            if turn < back {
                packets.push(packet(around, [b, a], [to, from], turn * 3));
            }
        }
    }
    for turn in 0..7 {
        let there = udp([50201, 50053], &vec![0; 10 + turn]);
        let back = udp([50053, 50201], &[0; 40]);
        packets.push(ethernet(None, 0x0800, &ip(["10.0.0.1", "10.0.0.4"], 17, (4, 0), &there)));
        packets.push(ethernet(None, 0x0800, &ip(["10.0.0.4", "10.0.0.1"], 17, (4, 0), &back)));
    }
    for sequence in 0..3 {
        for (ends, kind) in [(["10.0.0.1", "10.0.0.4"], 8), (["10.0.0.4", "10.0.0.1"], 0)] {
            let echo = [kind, 0, 0, 0, 0, 1, 0, sequence, 1, 2, 3, 4];
            packets.push(ethernet(None, 0x0800, &ip(ends, 1, (5, 0), &echo)));
        }
    }
    packets.extend([ethernet(None, 0x0806, &[0; 28]), ethernet(None, 0x0806, &[0; 28])]);
    let whole = udp([50301, 50302], &[0; 64]);
    for (offset, part) in [(0x2000, &whole[..24]), (0x2003, &whole[24..48]), (6, &whole[48..])] {
        packets.push(ethernet(None, 0x0800, &ip(["10.0.0.5", "10.0.0.6"], 17, (6, offset), part)));
    }
    assert_eq!(packets.len() as u64, PACKETS);
    packets
}

/// Writes the traffic as a capture file, a packet each 10 ms from [`BEGIN`] on.
fn capture(folder: &TempDir) -> PathBuf {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, packet) in traffic().iter().enumerate() {
        let (at, length) = (at as u32, packet.len() as u32);
        for word in [BEGIN + at / 100, at % 100 * 10_000_000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    let path = new_in(folder, "traffic.pcap");
    fs::write(&path, file).expect("there is space");
    path
}

/// An array of the traffic, and the file that it was recorded from.
fn recorded(folder: &TempDir) -> (PathBuf, PathBuf) {
    let (array, capture) = (new_in(folder, "array"), capture(folder));
    line(&format!("record -q --from {} --to @ {SMALL}", text(&capture)), &array).code(0);
    (array, capture)
}

/// Packets and bytes.
type Count = (u64, u64);

/// What tshark finds: its left end, its right end, what went from left to right, and what went back.
fn conversations(capture: &Path, of: &str) -> BTreeMap<(String, String), (Count, Count)> {
    let lines = tshark(capture, &["-q", "-z", &format!("conv,{of}")]);
    let rows = lines.iter().filter_map(|line| {
        let (left, rest) = line.split_once("<->")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        // Small enough that tshark does not round them.
        assert_eq!([words[3], words[6]], ["bytes"; 2], "{line}");
        let number = |at: usize| words[at].parse::<u64>().expect("it is a number");
        let counts = ((number(4), number(5)), (number(1), number(2)));
        Some(((left.trim().to_owned(), words[0].to_owned()), counts))
    });
    rows.collect()
}

#[track_caller]
fn rows<'a>(shown: &'a Value, group: &str) -> &'a [Value] {
    shown[group].as_array().expect("there are rows")
}

/// One end of a flow as tshark writes it.
fn end(row: &Value, which: &str) -> String {
    let address = row[which].as_str().expect("an address");
    format!("{address}:{}", number(row, &format!("{which}_port")))
}

fn counts(row: &Value, there: &str, back: &str) -> (Count, Count) {
    let of =
        |way: &str| (number(row, &format!("packets_{way}")), number(row, &format!("bytes_{way}")));
    (of(there), of(back))
}

#[test]
fn flows_are_the_conversations_that_tshark_finds_inside_vlans_and_tunnels() {
    let folder = scratch();
    let (array, capture) = recorded(&folder);
    let shown = asked("flows @", &array);
    let flows = rows(&shown, "flows");
    assert!(flows.is_sorted_by_key(|row| std::cmp::Reverse(number(row, "bytes"))));
    for (protocol, of, expected) in [("TCP", "tcp", 5), ("UDP", "udp", 2)] {
        let mut found = conversations(&capture, of);
        // tshark also counts the tunnel, and puts the fragments together as one packet.
        found.retain(|(left, _), _| !left.starts_with("172.16") && !left.starts_with("10.0.0.5"));
        let ours: Vec<&Value> = flows.iter().filter(|row| row["protocol"] == protocol).collect();
        assert_eq!(ours.len(), expected);
        let mut compared = 0;
        for row in ours {
            let ends = (end(row, "source"), end(row, "destination"));
            let (there, back) = counts(row, "sent", "back");
            if let Some(theirs) = found.get(&ends) {
                assert_eq!(*theirs, (there, back), "{row}");
                compared += 1;
            } else if let Some(theirs) = found.get(&(ends.1, ends.0)) {
                assert_eq!(*theirs, (back, there), "{row}");
                compared += 1;
            } else {
                // The three fragments, which have the ports of the first.
                assert_eq!(row["source_port"], 50301, "{row}");
                assert_eq!((there.0, back.0), (3, 0), "{row}");
            }
        }
        assert_eq!(compared, found.len(), "tshark: {found:?}");
    }
    let icmp = flows.iter().find(|row| row["protocol"] == "ICMP").expect("there were pings");
    assert_eq!(counts(icmp, "sent", "back"), ((3, 138), (3, 138)));
    assert_eq!((&icmp["icmp_type"], &icmp["icmp_code"]), (&8.into(), &Value::Null));
    let bytes: u64 = traffic().iter().map(|packet| packet.len() as u64).sum();
    assert_eq!((number(&shown, "total.packets"), number(&shown, "total.bytes")), (PACKETS, bytes));
    assert_eq!(number(&shown, "not_ip.packets"), 2);
    assert_eq!(flows.iter().map(|row| number(row, "packets")).sum::<u64>(), PACKETS - 2);
}

#[test]
fn hosts_have_sent_and_received_what_tshark_counts_and_ports_are_those_of_the_services() {
    let folder = scratch();
    let (array, capture) = recorded(&folder);
    let mut expected: BTreeMap<String, (Count, Count)> = BTreeMap::new();
    for (ends, (there, back)) in
        conversations(&capture, "ip").into_iter().chain(conversations(&capture, "ipv6"))
    {
        for (host, sent, received) in [(ends.0, there, back), (ends.1, back, there)] {
            let of = expected.entry(host).or_default();
            of.0 = (of.0.0 + sent.0, of.0.1 + sent.1);
            of.1 = (of.1.0 + received.0, of.1.1 + received.1);
        }
    }
    // tshark also counts the ends of the tunnels.
    expected.retain(|host, _| !host.starts_with("172.16"));
    let shown = asked("flows @ --group hosts", &array);
    let found: BTreeMap<String, (Count, Count)> = rows(&shown, "hosts")
        .iter()
        .map(|row| {
            let host = row["host"].as_str().expect("an address").to_owned();
            (host, counts(row, "sent", "received"))
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 12);
    let shown = asked("flows @ --group ports --by packets", &array);
    let ports: BTreeMap<u64, (Count, Count)> = rows(&shown, "ports")
        .iter()
        .filter(|row| row["protocol"] == "TCP")
        .map(|row| (number(row, "port"), counts(row, "to", "from")))
        .collect();
    // Of two conversations, one of them in a VLAN.
    let (to, from) = ports[&50443];
    assert_eq!((to.0, from.0), (35, 16), "{ports:?}");
    assert_eq!(ports.values().map(|(to, from)| to.0 + from.0).sum::<u64>(), 78);
}

/// The packets of an extract with the same words, by its own account and by tshark's.
#[track_caller]
fn extracted(folder: &TempDir, array: &Path, words: &str) -> u64 {
    let file = new_in(folder, "extracted.pcapng");
    let shown = asked(&format!("extract @ -q -y {words} -o {}", text(&file)), array);
    assert_eq!(tshark(&file, &[]).len() as u64, number(&shown, "packets"));
    number(&shown, "packets")
}

#[test]
fn a_filter_a_span_and_a_take_select_the_packets_that_are_counted() {
    let folder = scratch();
    let (array, capture) = recorded(&folder);
    line(&format!("record -q --from {} --to @", text(&capture)), &array).code(0);
    for (words, packets) in [
        (String::new(), 2 * PACKETS),
        ("--take last".to_owned(), PACKETS),
        // The datagrams, the outer headers of VXLAN, and the fragments.
        ("--take last --filter udp".to_owned(), 14 + 6 + 3),
        (format!("--since {BEGIN}.5 --until {BEGIN}.69"), 2 * 20),
        (format!("--take last --since {BEGIN}.5 --filter icmp"), 6),
        (format!("--until {}", BEGIN - 1), 0),
    ] {
        let shown = asked(&format!("flows @ {words}"), &array);
        assert_eq!(number(&shown, "total.packets"), packets, "{words}");
        assert_eq!(extracted(&folder, &array, &words), packets, "{words}");
        assert_eq!(shown["complete"], true);
    }
}

#[test]
fn top_lists_the_greatest_and_what_is_not_listed_is_added_up() {
    let folder = scratch();
    let (array, _) = recorded(&folder);
    let all = asked("flows @ --by packets", &array);
    let top = asked("flows @ --by packets --top 2", &array);
    assert_eq!(rows(&top, "flows"), &rows(&all, "flows")[..2]);
    assert_eq!(number(&rows(&top, "flows")[0], "packets"), 40);
    assert_eq!(number(&top, "found"), rows(&all, "flows").len() as u64);
    assert_eq!(number(&top, "not_listed.packets"), PACKETS - 2 - 40 - 14);
    let few = asked("flows @ --max-rows 3", &array);
    let listed: u64 = rows(&few, "flows").iter().map(|row| number(row, "packets")).sum();
    assert_eq!((rows(&few, "flows").len(), number(&few, "found")), (3, 3));
    assert_eq!(listed + number(&few, "beyond_max_rows.packets") + 2, PACKETS);
    let said = line("flows @ --top 2 --max-rows 3", &array).code(0).text();
    assert!(said.contains("not listed: 1 flow with"), "{said}");
    assert!(
        said.contains("--max-rows") && said.contains("without an IP header: 2 packets"),
        "{said}"
    );
    assert_eq!(
        said.lines().filter(|line| line.contains("2023-11-14T22:13:20")).count(),
        2,
        "{said}"
    );
}

#[test]
fn a_flow_is_extracted_by_its_community_id_and_tshark_gives_it_the_same() {
    let folder = scratch();
    let (array, _) = recorded(&folder);
    let shown = asked("flows @ --community-id", &array);
    let flows = rows(&shown, "flows");
    let mut theirs = BTreeSet::new();
    let file = new_in(&folder, "flow.pcapng");
    for row in flows {
        let id = row["community_id"].as_str().expect("each has its ports");
        line(&format!("extract @ -q -y --community-id {id} -o {}", text(&file)), &array).code(0);
        let fields = ["--enable-protocol", "communityid", "-o", "ip.defragment:FALSE"];
        let found = tshark(&file, &[&fields[..], &["-T", "fields", "-e", "communityid"]].concat());
        assert_eq!(found.len() as u64, number(row, "packets"), "{row}");
        let address = row["source"].as_str().expect("an address");
        // For packets in tunnels the specification has no rule, and for later fragments tshark has no ports.
        if !address.starts_with("10.1.") && !address.starts_with("10.2.") && address != "10.0.0.5" {
            assert!(found.iter().all(|found| found == id), "{row}: {found:?}");
            theirs.insert(id);
        }
    }
    assert_eq!(theirs.len(), flows.len() - 3);
    let [a, b] = [0, 1].map(|at| flows[at]["community_id"].as_str().expect("an id"));
    let both = number(&flows[0], "packets") + number(&flows[1], "packets");
    let words = format!("--community-id {a} --community-id {b}");
    assert_eq!(extracted(&folder, &array, &words), both);
    let tcp = flows.iter().find(|row| row["source_port"] == 50601).expect("it was sent");
    let id = tcp["community_id"].as_str().expect("an id");
    let words = format!("--community-id {id} --filter tcp[2:2]=50443");
    assert_eq!(extracted(&folder, &array, &words), 30);
    let none = "1:LQU9qZlK+B5F3KDmev6m5PMibrg=";
    assert_eq!(extracted(&folder, &array, &format!("--community-id {none}")), 0);
}

#[test]
fn what_can_t_be_read_is_said_and_the_exit_code_is_3() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let source = "--from synthetic:50MB/s,size=1000 --until-bytes 1MB";
    line(&format!("record -q {source} --to @ {SMALL}"), &array).code(0);
    let whole = asked("flows @", &array);
    let shown = asked("array show @ --chunks", &array);
    let chunk = &shown["chunks"].as_array().expect("there are some")[2];
    let file = File::options().write(true).open(array.join("member0")).expect("it is there");
    let middle = number(chunk, "offset") + number(chunk, "length") / 2;
    file.write_all_at(&[0x5a; 64], middle).expect("it can be written");
    let ran = line("flows @ --json", &array).code(3);
    let left = ran.json();
    assert_eq!(left["complete"], false);
    let unreadable = number(&left, "unreadable.packets");
    assert_eq!(unreadable, number(chunk, "packets"));
    assert!(unreadable > 0);
    assert_eq!(
        number(&left, "total.packets") + unreadable,
        number(&whole, "total.packets"),
        "{left:#}"
    );
    ran.says(&["unreadable", "could not be read"]);
    // A span without the damage is complete.
    let after = crate::harness::seconds(number(chunk, "last_ns") + 1_000_000);
    line(&format!("flows @ --since {after}"), &array).code(0);
}

#[test]
fn what_a_missing_member_held_is_counted_as_missing() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let three = SMALL.replace("--members 1", "--members 3");
    let source = "--from synthetic:50MB/s,size=1000 --until-bytes 1MB";
    line(&format!("record -q {source} --to @ {three}"), &array).code(0);
    let whole = asked("flows @", &array);
    fs::remove_file(array.join("member1")).expect("it is there");
    line("flows @", &array).code(1).says(&["--degraded"]);
    let ran = line("flows @ --degraded --json", &array).code(3);
    let left = ran.json();
    let missing = number(&left, "missing.packets");
    assert!(missing > 0);
    assert_eq!(number(&left, "total.packets") + missing, number(&whole, "total.packets"));
    ran.says(&["missing from the takes", "longtake ledger"]);
}

#[test]
fn packets_that_were_cut_count_with_their_length_on_the_wire() {
    let folder = scratch();
    let (whole, array) = (recorded(&folder).0, new_in(&folder, "cut"));
    let capture = new_in(&folder, "traffic.pcap");
    let cut = new_in(&folder, "cut.pcap");
    run(tool("editcap", "wireshark-common").args(["-s", "58", text(&capture), text(&cut)])).code(0);
    line(&format!("record -q --from {} --to @ {SMALL}", text(&cut)), &array).code(0);
    let [whole, cut] = [whole, array].map(|array| asked("flows @ --filter tcp", &array));
    assert!(number(&cut, "total.bytes") > number(&cut, "total.packets") * 58);
    assert_eq!(rows(&cut, "flows"), rows(&whole, "flows"));
}

/// A value as CSV has it.
fn plain(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::ULong(number) => number.to_string(),
        Field::Long(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_format_has_the_same_rows() {
    let folder = scratch();
    let (array, _) = recorded(&folder);
    let [csv, json, table] = ["x.csv", "x.json", "x.txt"].map(|name| new_in(&folder, name));
    let parquet = new_in(&folder, "x.parquet");
    for path in [&csv, &json, &table, &parquet] {
        let words = format!("flows @ -q --community-id -o {}", text(path));
        line(&words, &array).code(0).says(&["103 packets"]);
        line(&words, &array).code(1).says(&["add -y"]);
    }
    let json: Value = serde_json::from_slice(&fs::read(json).expect("it is there")).expect("JSON");
    let flows = rows(&json, "flows");
    let program =
        "import csv, json, sys\nprint(json.dumps(list(csv.DictReader(open(sys.argv[1])))))";
    let read = run(tool("python3", "python3").args(["-c", program, text(&csv)])).code(0).json();
    let read = read.as_array().expect("rows");
    assert_eq!(read.len(), flows.len());
    let file = SerializedFileReader::new(File::open(parquet).expect("it is there"));
    let file = file.expect("it is Parquet");
    let mut columns = file.get_row_iter(None).expect("it has rows");
    for (read, flow) in read.iter().zip(flows) {
        let parquet = columns.next().expect("a row").expect("it is sound");
        for (name, field) in parquet.get_column_iter() {
            let (parquet, csv) = (plain(field), read[name].as_str().expect("a column"));
            assert_eq!(parquet, csv, "{name}");
            let Some(json) = flow.get(name) else {
                assert!(name.ends_with("_ns"), "{name}");
                continue;
            };
            assert_eq!(
                json.as_str().map_or_else(|| json.to_string(), str::to_owned),
                match csv {
                    "" => "null",
                    csv => csv,
                }
            );
        }
    }
    assert!(columns.next().is_none());
    let table = fs::read_to_string(table).expect("it is there");
    for row in flows {
        let id = row["community_id"].as_str().expect("each has its ports");
        assert_eq!(table.lines().filter(|line| line.ends_with(id)).count(), 1, "{table}");
    }
    let same = line("flows @ --community-id --format csv", &array).code(0);
    assert_eq!(same.stdout, fs::read(csv).expect("it is there"));
}

#[test]
fn words_that_can_t_be_meant_are_refused() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    line("flows @ -o x.pcap", &array).code(2).says(&[".csv", ".json", ".parquet", ".txt"]);
    line("flows @ --group ports --community-id", &array).code(2).says(&["--community-id"]);
    line("flows @ --by size", &array).code(2).says(&["bytes", "packets"]);
    line("flows @ --format xml", &array).code(2).says(&["table, csv, json or parquet"]);
    line("extract @ -o x.pcap --community-id 7", &array).code(2).says(&["1:LQU9"]);
}

#[test]
fn datagrams_from_a_socket_count_with_the_headers_that_were_made_for_them() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let address = free.expect("there is a free port");
    let mut recorder = Recorder::start(&format!("--from udp:{address} --to @ {SMALL}"), &array);
    let sender = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
    for _ in 0..5 {
        sender.send_to(&[7; 100], address).expect("it can be sent");
    }
    recorder.wait_for("five packets", |event| {
        event["offered_packets"].as_u64().is_some_and(|packets| packets >= 5)
    });
    recorder.signal(Signal::SIGINT);
    recorder.end().code(0);
    let shown = asked("flows @", &array);
    let [flow] = rows(&shown, "flows") else { panic!("{shown:#}") };
    assert_eq!(end(flow, "destination"), address.to_string());
    let port = sender.local_addr().expect("it is bound").port();
    assert_eq!(end(flow, "source"), format!("127.0.0.1:{port}"));
    // IP and UDP headers are 28 bytes.
    assert_eq!(counts(flow, "sent", "back"), ((5, 5 * 128), (0, 0)));
}
