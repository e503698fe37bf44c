//! Every format of `extract` against the pcapng file, packet by packet, as others read it; and names and terminals that are refused.

use std::fmt::Debug;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use base::Timestamp;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use tempfile::TempDir;

use crate::harness::captures::{Contents, Frame, read};
use crate::harness::{line, longtake, new_in, run, scratch, tool};

const SMALL: &str = "--members 1 --member-size 65MiB --segment 4MiB --memory 64MiB";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// Bytes of more packets than a row group of Parquet takes.
const ROW_GROUPS: &str = "40MB";

/// An array with so many bytes of packets.
fn recorded(folder: &TempDir, bytes: &str) -> PathBuf {
    let array = new_in(folder, "array");
    let source = format!("--from synthetic:200MB/s,size=imix --until-bytes {bytes}");
    line(&format!("record -q {source} --to @ {SMALL}"), &array).code(0);
    array
}

/// Extracts into a file of this name, with further words.
#[track_caller]
fn extracted(folder: &TempDir, array: &Path, name: &str, more: &str) -> PathBuf {
    let file = new_in(folder, name);
    line(&format!("extract @ -q {more} -o {}", text(&file)), array).code(0);
    file
}

/// A packet as the tables have it.
#[derive(Debug, PartialEq)]
struct Row {
    time: u64,
    interface: String,
    link_type: u16,
    original_length: u32,
    payload: Vec<u8>,
}

impl Row {
    fn of(frame: &Frame, contents: &Contents) -> Self {
        let interface = &contents.interfaces[frame.interface as usize];
        Self {
            time: frame.time,
            interface: interface.name.clone(),
            link_type: interface.link_type.0,
            original_length: frame.original_length,
            payload: frame.data.clone(),
        }
    }

    fn text(&self) -> String {
        let hex: String = self.payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let Self { time, interface, link_type, original_length, payload } = self;
        format!("{time} {interface} {link_type} {} {original_length} {hex}", payload.len())
    }
}

/// The rows that the tables must have.
fn rows(pcapng: &Path) -> Vec<Row> {
    let contents = read(pcapng);
    let rows: Vec<Row> = contents.frames.iter().map(|frame| Row::of(frame, &contents)).collect();
    assert!(rows.len() > 10_000, "{}", rows.len());
    rows
}

#[track_caller]
fn are_the_same<T: PartialEq + Debug>(found: &[T], expected: &[T]) {
    let differs = found.iter().zip(expected).find(|(found, expected)| found != expected);
    assert_eq!(differs, None);
    assert_eq!(found.len(), expected.len());
}

/// What Python reads from a file, one line for each packet.
fn python(program: &str, file: &Path) -> Vec<String> {
    let columns = "C = 'time_ns interface link_type captured_length original_length chunk_sequence payload'.split()";
    let program = format!("import csv, json, sys\n{columns}\n{program}");
    let ran = run(tool("python3", "python3").args(["-c", &program, text(file)])).code(0);
    ran.text().lines().map(str::to_owned).collect()
}

#[test]
fn csv_and_json_lines_have_every_packet_as_python_reads_them() {
    let folder = scratch();
    let array = recorded(&folder, "8MB");
    let expected = rows(&extracted(&folder, &array, "x.pcapng", ""));
    let expected: Vec<String> = expected.iter().map(Row::text).collect();
    let csv = extracted(&folder, &array, "x.csv", "");
    let program = "for r in csv.DictReader(open(sys.argv[1], newline='')): print(*[r[c] for c in C if c != 'chunk_sequence'])";
    are_the_same(&python(program, &csv), &expected);
    let jsonl = extracted(&folder, &array, "x.jsonl", "");
    let program = "for l in open(sys.argv[1]):\n r = json.loads(l)\n assert list(r) == C\n print(*[r[c] for c in C if c != 'chunk_sequence'])";
    are_the_same(&python(program, &jsonl), &expected);
}

#[test]
fn parquet_has_every_packet_in_row_groups_of_limited_size() {
    let folder = scratch();
    let array = recorded(&folder, ROW_GROUPS);
    let expected = rows(&extracted(&folder, &array, "x.pcapng", ""));
    let parquet = extracted(&folder, &array, "x.parquet", "");
    let reader = SerializedFileReader::new(File::open(parquet).expect("it was made"));
    let reader = reader.expect("it is Parquet");
    assert!(reader.num_row_groups() > 1);
    let rows = reader.get_row_iter(None).expect("it has rows").map(|row| {
        let row = row.expect("it is sound");
        let payload = row.get_bytes(6).expect("bytes").data().to_vec();
        assert_eq!(row.get_uint(3).expect("a length") as usize, payload.len());
        Row {
            time: row.get_long(0).expect("a time") as u64,
            interface: row.get_string(1).expect("a name").clone(),
            link_type: row.get_uint(2).expect("a number") as u16,
            original_length: row.get_uint(4).expect("a length"),
            payload,
        }
    });
    are_the_same(&rows.collect::<Vec<_>>(), &expected);
}

#[test]
fn compressed_files_hold_what_the_plain_ones_do_as_gzip_and_zstd_read_them() {
    let folder = scratch();
    let array = recorded(&folder, "8MB");
    for name in ["pcapng", "pcap", "csv", "jsonl", "raw"] {
        let plain =
            fs::read(extracted(&folder, &array, &format!("x.{name}"), "")).expect("it is there");
        for (extension, program) in [("gz", "gzip"), ("zst", "zstd")] {
            let file = extracted(&folder, &array, &format!("x.{name}.{extension}"), "");
            let unpacked = run(tool(program, program).arg("-dc").arg(&file)).code(0);
            assert!(unpacked.stdout == plain, "{}", file.display());
        }
    }
}

#[test]
fn pcap_and_raw_have_the_packets_of_the_pcapng_file() {
    let folder = scratch();
    let array = recorded(&folder, "8MB");
    let expected = read(&extracted(&folder, &array, "x.pcapng", "")).frames;
    let pcap = read(&extracted(&folder, &array, "x.pcap", "")).frames;
    assert!(pcap == expected);
    assert!(pcap.is_sorted_by_key(|frame| Timestamp::from_nanos(frame.time)));
    // The name that is given counts more than the file's.
    let raw = fs::read(extracted(&folder, &array, "y.bin", "--format raw")).expect("it is there");
    assert!(raw == expected.iter().flat_map(|f| f.data.clone()).collect::<Vec<_>>());
    let pcapng = extracted(&folder, &array, "z.txt", "--format pcapng");
    assert!(read(&pcapng).frames == expected);
}

#[test]
fn capinfos_prints_what_a_pcapng_file_says_of_its_completeness() {
    let folder = scratch();
    let array = recorded(&folder, "2MB");
    let file = extracted(&folder, &array, "out.pcapng", "");
    let printed = run(tool("capinfos", "wireshark-common").arg(&file)).code(0).text();
    for comment in ["extracted from array 'array'", "nothing of the selection was missing"] {
        assert!(printed.contains(comment), "{comment}: {printed}");
    }
    let again = line(&format!("extract @ -y --json -o {}", text(&file)), &array).code(0);
    let said: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(said["completeness"]["complete"], true, "{said:#}");
}

#[test]
fn a_name_that_selects_no_format_is_refused_with_the_formats_before_anything_is_read() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    for name in ["x.txt", "x.gz", "x.parquet.gz", "x.arrow.gz"] {
        let file = new_in(&folder, name);
        let ran = line(&format!("extract @ -o {}", text(&file)), &array).code(2);
        ran.says(&[
            ".pcapng", ".pcap", ".csv", ".jsonl", ".parquet", ".arrow", ".raw", ".gz", ".zst",
            "--format",
        ]);
        assert!(!file.exists());
    }
    line("extract @ -o x --format pcapngg", &array).code(2).says(&["pcapng", "parquet"]);
}

#[test]
fn a_terminal_is_refused_as_the_output() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    for output in ["-", "/dev/stdout"] {
        if output == "/dev/stdout" {
            line(
                &format!("record -q --from synthetic:50MB/s --until-bytes 1MB --to @ {SMALL}"),
                &array,
            )
            .code(0);
        }
        let program = longtake().get_program().to_string_lossy().into_owned();
        let command = format!("'{program}' extract '{}' -q -o {output}", text(&array));
        // `script` runs it on a terminal of its own.
        let mut script = tool("script", "bsdutils");
        let ran = run(script.args(["-qec", &command, "/dev/null"])).code(2);
        assert!(ran.text().contains("is a terminal"), "{}", ran.text());
        assert!(ran.text().lines().count() < 5, "{}", ran.text());
    }
}
