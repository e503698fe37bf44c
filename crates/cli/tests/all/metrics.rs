//! `record --metrics`: a file for node-exporter's textfile collector that says what the ledger says, from the beginning to the end.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use crate::harness::captures::capinfos;
use crate::harness::{
    Recorder, line, longtake, new_in, number, ran, run, scratch, tool, wait_until,
};

const SMALL: &str = "--members 2 --member-size 33MiB --memory 32MiB --segment 4MiB";
const NOBODY: u32 = 65_534;

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// The value of a series in a file of metrics.
fn value(metrics: &str, series: &str) -> Option<f64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

/// What `promtool check metrics` says of a file that it accepts.
#[track_caller]
fn check(file: &Path) -> String {
    let file = File::open(file).expect("it is there");
    let checked = run(tool("promtool", "prometheus").args(["check", "metrics"]).stdin(file));
    checked.code(0).stderr
}

#[test]
fn metrics_of_a_recording_are_those_of_its_ledger_and_prometheus_accepts_them() {
    let folder = scratch();
    let (array, file) = (new_in(&folder, "radar"), new_in(&folder, "radar.prom"));
    let record = "record --from synthetic:50MB/s --until-bytes 5MB --keep-privileges --to @ --json";
    let record = format!("{record} {SMALL} --metrics {}", text(&file));
    line(&record, &array).code(0);
    assert_eq!(check(&file), "");
    let metrics = fs::read_to_string(&file).expect("it is text");
    let shown = line("ledger @ --json", &array).json();
    let take = shown["take"].as_str().expect("a take");
    let of_take = format!("array=\"radar\",take=\"{take}\"");
    for name in ["offered", "stored", "filtered"] {
        let series = format!("longtake_take_{name}_packets_total{{{of_take}}}");
        let expected = number(&shown["ledger"], &format!("{name}.packets"));
        assert_eq!(value(&metrics, &series), Some(expected as f64), "{series} in {metrics}");
    }
    for stage in ["no_buffer", "kernel_ring", "array_full"] {
        let series = format!("longtake_take_lost_packets_total{{{of_take},stage=\"{stage}\"}}");
        assert_eq!(value(&metrics, &series), Some(0.0), "{series} in {metrics}");
    }
    assert_eq!(value(&metrics, "longtake_array_recording{array=\"radar\"}"), Some(0.0));
    let mut written = 0.0;
    for member in ["0", "1"] {
        let of_member = format!("{{array=\"radar\",member=\"{member}\"}}");
        written += value(&metrics, &format!("longtake_member_written_bytes_total{of_member}"))
            .expect("a counter of each member");
        let count = format!("longtake_member_write_latency_seconds_count{of_member}");
        assert!(value(&metrics, &count) >= Some(1.0), "{count} in {metrics}");
        assert_eq!(value(&metrics, &format!("longtake_member_working{of_member}")), Some(1.0));
    }
    assert!(written > 5e6, "{written}");
    assert!(metrics.contains("# TYPE longtake_member_write_rate_bytes_per_second histogram\n"));
    // A second take replaces the file, and a file that Longtake has not written stays.
    line(&record, &array).code(0);
    assert!(!fs::read_to_string(&file).expect("it is text").contains(take));
    fs::write(&file, "notes\n").expect("there is space");
    line(&record, &array).code(1).says(&["does not hold metrics of Longtake", "name another"]);
    assert_eq!(fs::read_to_string(&file).expect("it is text"), "notes\n");
}

#[test]
fn a_recorder_that_gave_up_root_renews_its_metrics_until_the_end_and_everybody_may_read_them() {
    let folder = scratch();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("it is ours");
    let (array, file) = (new_in(&folder, "radar"), new_in(&folder, "radar.prom"));
    let options = format!("--from synthetic:1MB/s --user nobody --to @ {SMALL}");
    let mut recorder = Recorder::start(&format!("{options} --metrics {}", text(&file)), &array);
    let read = || {
        let metrics = fs::read_to_string(&file).unwrap_or_default();
        // Whenever it is read, it is whole.
        let is_whole =
            metrics.contains("\nlongtake_take_sliced_bytes_total{") || metrics.is_empty();
        assert!(is_whole && (metrics.is_empty() || metrics.ends_with('\n')), "{metrics}");
        metrics
    };
    let recording = "longtake_array_recording{array=\"radar\"}";
    wait_until("the file is there", || file.exists());
    let first = read();
    assert_eq!(value(&first, recording), Some(1.0), "{first}");
    let metadata = file.metadata().expect("it is there");
    assert_eq!((metadata.uid(), metadata.mode() & 0o777), (NOBODY, 0o644));
    recorder.wait_for_written(1_000_000);
    wait_until("the file is renewed", || read() != first);
    assert_eq!(value(&read(), recording), Some(1.0));
    let ended = recorder.stop().code(0);
    assert_eq!(value(&read(), recording), Some(0.0));
    let stored = number(ended.event("finished"), "ledger.stored.packets") as f64;
    let series = read();
    let series =
        series.lines().find(|line| line.starts_with("longtake_take_stored_packets_total{"));
    assert!(series.is_some_and(|line| line.ends_with(&format!(" {stored}"))), "{series:?}");
    let left = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 2, "more than the array and the file");
}

#[test]
fn metrics_of_capture_files_name_the_file() {
    let folder = scratch();
    let (packets, file) = (new_in(&folder, "packets.pcapng"), new_in(&folder, "packets.prom"));
    let record = "record --from synthetic:50MB/s --until-bytes 1MB --keep-privileges -q -w @";
    let told = line(&format!("{record} --metrics {}", text(&file)), &packets).code(0);
    assert_eq!((check(&file), told.stderr), (String::new(), String::new()));
    let metrics = fs::read_to_string(&file).expect("it is text");
    let recording = format!("longtake_array_recording{{file=\"{}\"}}", text(&packets));
    assert_eq!(value(&metrics, &recording), Some(0.0), "{metrics}");
    let other = new_in(&folder, "metrics.txt");
    let told = line(&format!("{record} -y --metrics {}", text(&other)), &packets).code(0);
    assert!(told.stderr.contains("names end in .prom"), "{}", told.stderr);
    assert_eq!(value(&fs::read_to_string(&other).expect("it is text"), &recording), Some(0.0));
}

#[test]
fn metrics_never_replace_packets_or_go_to_standard_output() {
    let folder = scratch();
    let packets = new_in(&folder, "packets.pcapng");
    let record =
        "record --from synthetic:50MB/s --until-bytes 1MB --keep-privileges -q -y -w @ --metrics";
    line(&format!("{record} @"), &packets).code(1).says(&["name the same file"]);
    // By another path to the same file, the packets are kept under another name or in place of the metrics.
    let links = scratch();
    let link = new_in(&links, "link");
    symlink(folder.path(), &link).expect("there is space");
    line(&format!("{record} {}/packets.pcapng", text(&link)), &packets).code(0);
    let found = fs::read_dir(folder.path())
        .expect("it is there")
        .map(|file| file.expect("it is there").path());
    let captures =
        found.filter(|file| fs::read(file).expect("it is there").starts_with(b"\n\r\r\n"));
    assert_eq!(captures.map(|file| capinfos(&file)).filter(|&packets| packets > 500).count(), 1);
    let output = new_in(&folder, "output");
    let mut to_output = longtake();
    to_output.args(record.split(' ').map(|word| word.replace('@', text(&packets))));
    to_output.arg("/dev/stdout").stdout(File::create(&output).expect("there is space"));
    let refused = to_output.output().expect("it starts");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert_eq!(fs::read(&output).expect("it is there"), b"");
}

#[test]
fn metrics_that_cannot_be_written_are_refused_before_anything_is_created() {
    let folder = scratch();
    let (array, file) = (new_in(&folder, "radar"), new_in(&folder, "radar.prom"));
    let record = format!("record --from synthetic:1MB/s --until-bytes 1MB --to @ {SMALL}");
    let refused = line(&format!("{record} --user nobody --metrics {}", text(&file)), &array);
    refused.code(1).says(&["nobody can't make files in", "setfacl -m u:nobody:rwx"]);
    let nowhere = new_in(&folder, "missing").join("radar.prom");
    line(&format!("{record} --metrics {}", text(&nowhere)), &array).code(1).says(&["missing"]);
    assert!(!array.exists() && !file.exists());
    let simulated = "record --from synthetic:1MB/s --until-bytes 1MB --to sim:ideal --metrics";
    let simulated = ran(simulated.split(' ').chain([text(&file)])).code(1);
    assert!(simulated.stderr.contains("--metrics is for real drives"), "{}", simulated.stderr);
    assert!(!file.exists());
}
