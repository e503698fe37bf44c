//! The columns of extracted tables that say where packets lie and which flows they belong to, against the drives and tshark.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use format::{ChunkRecord, PAGE_BYTES};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use tempfile::TempDir;

use crate::harness::captures::tshark;
use crate::harness::{line, new_in, scratch};

const SMALL: &str = "--members 1 --member-size 65MiB --segment 4MiB --memory 64MiB";

/// The columns of flows, in order.
const FLOW: [&str; 6] =
    ["source", "destination", "source_port", "destination_port", "protocol", "tcp_flags"];

/// An array with 10 MB of traffic, tunnels and fragments among it.
fn recorded(folder: &TempDir) -> PathBuf {
    let array = new_in(folder, "array");
    let source = "--from traffic:max,seed=3 --until-bytes 10MB";
    line(&format!("record -q {source} --to @ {SMALL}"), &array).code(0);
    array
}

/// Extracts into a file of this name, with further words.
#[track_caller]
fn extracted(folder: &TempDir, array: &Path, name: &str, more: &str) -> PathBuf {
    let file = new_in(folder, name);
    line(&format!("extract @ -q {more} -o {}", file.display()), array).code(0);
    file
}

/// The rows of a CSV file without quotes, by the names of their columns.
fn csv(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).expect("it is text");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().expect("a header").collect();
    lines.map(|values| names.iter().cloned().zip(values).collect()).collect()
}

/// Some columns of rows, with commas between them.
fn columns(rows: &[BTreeMap<String, String>], names: &[&str]) -> Vec<String> {
    let of = |row: &BTreeMap<String, String>| {
        names.iter().map(|name| row[*name].as_str()).collect::<Vec<_>>().join(",")
    };
    rows.iter().map(of).collect()
}

#[test]
fn every_packet_names_the_chunk_on_the_drive_that_holds_it() {
    let folder = scratch();
    let array = recorded(&folder);
    let drive = fs::read(array.join("member0")).expect("it is there");
    // By sequence number: packets, and the times of the first and the last.
    let mut chunks = BTreeMap::new();
    for page in (0..drive.len()).step_by(PAGE_BYTES as usize) {
        if let Ok((_, ChunkRecord { sequence, summary, .. })) = ChunkRecord::read(&drive[page..])
            && summary.packets > 0
        {
            chunks.insert(sequence, (summary.packets, summary.first_ns, summary.last_ns));
        }
    }
    assert!(chunks.len() > 3, "{chunks:?}");
    let mut found = BTreeMap::new();
    for row in csv(&extracted(&folder, &array, "x.csv", "")) {
        let number = |name: &str| row[name].parse::<u64>().expect("a number");
        let time = number("time_ns");
        let (packets, first, last) =
            found.entry(number("chunk_sequence")).or_insert((0, u64::MAX, 0));
        *packets += 1;
        (*first, *last) = ((*first).min(time), (*last).max(time));
    }
    assert_eq!(found, chunks);
}

#[test]
fn columns_of_flows_are_what_tshark_finds() {
    let folder = scratch();
    let array = recorded(&folder);
    let pcap = extracted(&folder, &array, "x.pcap", "--filter tcp");
    let found = csv(&extracted(&folder, &array, "x.csv", "--flow-columns --filter tcp"));
    let found = columns(&found, &FLOW);
    let fields = "ip.src ipv6.src ip.dst ipv6.dst tcp.srcport tcp.dstport tcp.flags";
    let fields = fields.split(' ').flat_map(|field| ["-e", field]);
    let options = ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-T", "fields"];
    let expected = tshark(&pcap, &options.into_iter().chain(fields).collect::<Vec<_>>());
    assert_eq!(found.len(), expected.len());
    let (mut compared, mut kinds) = (0, BTreeMap::new());
    for (found, expected) in found.iter().zip(expected) {
        let fields: Vec<&str> = expected.split('\t').collect();
        let &[v4_from, v6_from, v4_to, v6_to, from, to, flags] = &fields[..] else {
            panic!("{expected}")
        };
        let Some(flags) = flags.strip_prefix("0x") else {
            // A later fragment, which has none.
            assert!(found.ends_with(",6,"), "{found}");
            continue;
        };
        let flags = u16::from_str_radix(flags, 16).expect("a number");
        let expected = format!("{v4_from}{v6_from},{v4_to}{v6_to},{from},{to},6,{flags}");
        assert_eq!(*found, expected);
        compared += 1;
        *kinds.entry(flags).or_insert(0) += 1;
    }
    assert!(compared > 1000 && kinds.len() > 2, "{kinds:?}");
}

#[test]
fn every_table_has_the_same_columns_of_flows() {
    let folder = scratch();
    let array = recorded(&folder);
    let plain = extracted(&folder, &array, "plain.csv", "");
    let whole = extracted(&folder, &array, "x.csv", "--flow-columns");
    let whole = csv(&whole);
    let names: Vec<&str> =
        ["time_ns", "chunk_sequence", "payload"].into_iter().chain(FLOW).collect();
    let expected = columns(&whole, &names);
    assert_eq!(columns(&csv(&plain), &names[..3]), columns(&whole, &names[..3]));
    // ICMP has no ports, and only TCP has flags.
    assert!(expected.iter().any(|row| row.ends_with(",,,1,")));

    let jsonl = extracted(&folder, &array, "x.jsonl", "--flow-columns");
    let jsonl = fs::read_to_string(jsonl).expect("it is text");
    let shown = |value: &serde_json::Value| match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let of_line = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        assert_eq!(row.as_object().map(serde_json::Map::len), Some(7 + FLOW.len()));
        names.iter().map(|name| shown(&row[*name])).collect::<Vec<_>>().join(",")
    };
    assert!(jsonl.lines().map(of_line).eq(expected.iter().cloned()));

    let parquet = extracted(&folder, &array, "x.parquet", "--flow-columns");
    let reader = SerializedFileReader::new(File::open(parquet).expect("it was made"));
    let reader = reader.expect("it is Parquet");
    let shown = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => bytes.data().iter().map(|byte| format!("{byte:02x}")).collect(),
        Field::TimestampMicros(_) | Field::TimestampMillis(_) => panic!("it has nanoseconds"),
        value => value.to_string(),
    };
    let rows = reader.get_row_iter(None).expect("it has rows").map(|row| {
        let row = row.expect("it is sound");
        let value = |name: &&str| {
            let mut columns = row.get_column_iter();
            let (_, field) = columns.find(|(known, _)| known == name).expect("the column");
            shown(field)
        };
        names.iter().map(value).collect::<Vec<_>>().join(",")
    });
    assert!(rows.eq(expected.iter().cloned()));
}

#[test]
fn captures_have_no_columns() {
    let folder = scratch();
    let array = recorded(&folder);
    for name in ["x.pcapng", "x.pcap.gz", "x.raw"] {
        let file = new_in(&folder, name);
        let ran = line(&format!("extract @ --flow-columns -o {}", file.display()), &array);
        ran.code(2).says(&["has no columns for flows", "csv, jsonl, parquet and arrow"]);
        assert!(!file.exists());
    }
}
