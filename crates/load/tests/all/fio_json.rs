//! What fio measured, read from samples that were kept and from runs made here.

use std::io::Write as _;
use std::process::{Command, Stdio};

use load::fio_json::{FioError, read, read_run};
use load::quantity::{Pace, Size};
use load::workload::{Arrival, Blocks, Content, Pattern};
use load::{Measurement, Verb, Workload, fio_job};
use longtake_load as load;
use proptest::prelude::*;
use tempfile::{NamedTempFile, TempDir};

/// Two groups of jobs, with histograms.
const GROUPED: &str = include_str!("../data/fio_3.33_grouped.json");
/// Three jobs, two of one name, each reported apart without histograms; a warning stands before.
const APART: &str = include_str!("../data/fio_3.33_apart.json");
/// A job whose first write failed: no space.
const FAILED: &str = include_str!("../data/fio_3.33_failed.json");

fn near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 1e-9
}

#[test]
fn groups_with_histograms_are_read_whole() {
    let run = read_run(GROUPED).unwrap();
    let measured = &run.measurement;
    assert_eq!(measured.instrument, "fio 3.33");
    assert_eq!(measured.drives, ["drive0", "drive1"]);
    // The end, and the second that fio says it took.
    assert_eq!(measured.started_ns, Some((1_795_272_730_906 - 1_000) * 1_000_000));
    assert_eq!(measured.elapsed_ns, 157_000_000);
    let readers = measured.result("readers", Verb::Read).unwrap();
    assert_eq!((readers.count, readers.bytes), (2048, 8_388_608));
    assert_eq!((readers.service.min_ns, readers.service.max_ns), (Some(457), Some(53_707)));
    assert!(near(readers.response.mean_ns.unwrap(), 5_997.717_773));
    assert!(near(readers.response.deviation_ns.unwrap(), 2_241.520_673));
    assert_eq!(readers.response.percentile(99.0), None, "20 samples lie beyond");
    let p90 = readers.response.percentile(90.0).unwrap();
    assert!(p90.abs_diff(5_984) <= 6, "fio says 5984: {p90}");
    let writes = measured.result("writer", Verb::Write).unwrap();
    assert_eq!((writes.count, writes.bytes), (251, 1_609_728));
    assert!(near(writes.bytes_per_s, 1_609_728.0 / 0.157));
    assert_eq!(measured.results.len(), 3);
    let whole = run.latencies[&(1, Verb::Write)].response.as_ref().unwrap();
    assert_eq!((whole.count(), whole.max().unwrap().as_nanos()), (251, 5_319_648));
    // 6.410256 % of 156 ms.
    assert_eq!((measured.harness.threads, measured.harness.user_ns), (3, Some(9_999_999)));
    assert!(measured.harness.limited.is_none() && measured.given_up.is_empty());
}

#[test]
fn options_become_streams() {
    let workload = read(GROUPED).unwrap().workload;
    let [readers, writer] = workload.streams.as_slice() else { panic!("{workload:?}") };
    assert_eq!(readers.pattern, Pattern::Zipf { theta: 1.2 });
    assert_eq!((readers.read, readers.write, readers.depth, readers.jobs), (1, 0, 4, 2));
    assert_eq!((readers.drives.as_slice(), &readers.block), ([0].as_slice(), &Blocks::of(4096)));
    assert_eq!((writer.read, writer.write, writer.depth, writer.jobs), (20, 80, 8, 1));
    assert_eq!(writer.block.to_string(), "4KiB:75,16KiB:25");
    assert_eq!((writer.rate, writer.arrival), (Some(Pace::Commands(2000.0)), Arrival::Poisson));
    assert_eq!((writer.size, writer.from), (Some(Size(4 << 20)), None));
    assert_eq!(workload.stop.bytes, Some(Size(10 << 20)), "two jobs of 4 MiB and one of 2");
}

#[test]
fn jobs_of_one_name_are_joined_and_percentiles_only_where_they_can_be() {
    let run = read_run(APART).unwrap();
    assert!(run.latencies.is_empty());
    let measured = run.measurement;
    let alone = measured.result("alone", Verb::Read).unwrap();
    assert_eq!(alone.service.percentile(5.0), Some(54));
    assert_eq!(alone.service.percentile(50.0), None, "88 samples lie beyond");
    assert_eq!(alone.response.percentile(5.0), None, "fio was not asked for it");
    let pair = measured.result("pair", Verb::Write).unwrap();
    assert_eq!((pair.count, pair.bytes), (349, 2 << 20));
    assert_eq!((pair.response.min_ns, pair.response.max_ns), (Some(46_863), Some(8_362_680)));
    let mean = (145_708.153_409 * 176.0 + 132_904.387_283 * 173.0) / 349.0;
    assert!(near(pair.response.mean_ns.unwrap(), mean));
    // Within and between the two sets.
    let squares = 625_072.703_186f64.powi(2) * 175.0
        + 482_216.566_475f64.powi(2) * 172.0
        + (145_708.153_409 - mean).powi(2) * 176.0
        + (132_904.387_283 - mean).powi(2) * 173.0;
    assert!(near(pair.response.deviation_ns.unwrap(), (squares / 348.0).sqrt()));
    assert!(pair.service.percentiles.iter().all(|(_, value)| value.is_none()));
    let streams = &measured.workload.streams;
    assert_eq!(measured.drives, ["drive0", "drive1"]);
    assert_eq!((streams[0].drives.as_slice(), streams[1].jobs), ([0].as_slice(), 1));
    assert_eq!(streams[1].pattern, Pattern::Random);
}

#[test]
fn an_error_is_counted_apart_from_latencies_and_ends_its_job() {
    let measured = read(FAILED).unwrap();
    let result = measured.result("full", Verb::Write).unwrap();
    assert_eq!((result.count, result.response.count), (0, 0));
    let (text, count) = result.errors.first_key_value().unwrap();
    assert!(text.contains("No space left") && *count == 1, "{text} {count}");
    assert_eq!(measured.given_up.len(), 1);
    let ran_on = FAILED.replacen("\"job_runtime\"", "\"total_err\" : 7, \"job_runtime\"", 1);
    assert_eq!(read(&ran_on).unwrap().error_count(), 7);
}

#[test]
fn the_last_whole_document_counts() {
    let names = |text: &str| -> Vec<String> {
        read(text).unwrap().workload.streams.into_iter().map(|stream| stream.name).collect()
    };
    assert_eq!(names(&format!("{GROUPED}\nsome warning {{\n{APART}")), ["alone", "pair"]);
    assert_eq!(names(&format!("{GROUPED}\n{}", &APART[..APART.len() / 2])), ["readers", "writer"]);
}

#[test]
fn what_is_missing_is_named_with_a_remedy() {
    for (text, remedy) in [
        (String::new(), "--output-format=json+"),
        ("fio: failed parsing bs".to_owned(), "--output-format=json+"),
        ("{\n\"a\": 1\n}".to_owned(), "not fio's"),
        ("{\n\"a\": nonsense\n}".to_owned(), "--output=FILE"),
        ("{\n\"fio version\": \"fio-3.33\"\n}".to_owned(), "fio's JSON has no jobs: no job ran"),
        ("{\n\"fio version\": \"fio-3.33\", \"jobs\": []\n}".to_owned(), "no jobs[0]: no job ran"),
        (GROUPED.replace("clat_ns", "clat"), "no jobs[0].read.clat_ns: it was written by fio 2"),
        (GROUPED.replace("\"usr_cpu\"", "\"cpu\""), "no jobs[0].usr_cpu: run fio 3.0"),
        (
            GROUPED.replacen("\"io_bytes\" : 8388608", "\"io_bytes\" : \"8M\"", 1),
            "jobs[0].read.io_bytes in fio's JSON is not a whole number",
        ),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(remedy), "{remedy}: {error}");
    }
}

proptest! {
    #[test]
    fn a_text_cut_off_anywhere_says_so(at in any::<proptest::sample::Index>(), sample in 0usize..3) {
        let text = [GROUPED, APART, FAILED][sample].trim_end();
        let start = text.find("{\n").unwrap();
        let cut = start + 1 + at.index(text.len() - start - 1);
        match read(&text[..cut]) {
            Err(FioError::Truncated { line }) => prop_assert_eq!(line, text[..cut].lines().count()),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

/// Runs a workload in fio on files of 4 MiB.
fn measure(workload: &Workload, files: usize, format: &str) -> (String, Vec<String>) {
    let folder = TempDir::new().unwrap();
    let files: Vec<NamedTempFile> =
        (0..files).map(|_| NamedTempFile::new_in(&folder).unwrap()).collect();
    files.iter().for_each(|file| file.as_file().set_len(4 << 20).unwrap());
    let targets: Vec<String> =
        files.iter().map(|file| file.path().to_str().unwrap().to_owned()).collect();
    let mut child = Command::new("fio")
        .args([&format!("--output-format={format}"), "-"])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("fio is installed");
    let job = fio_job::job(workload, &targets);
    child.stdin.take().unwrap().write_all(job.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{job}\n{text}");
    (text, targets)
}

/// Every percentile that we know is fio's own, but for the third digit that our histograms keep.
fn percentiles_agree(text: &str, measured: &Measurement) -> usize {
    let json: serde_json::Value = serde_json::from_str(&text[text.find("{\n").unwrap()..]).unwrap();
    let mut compared = 0;
    for result in &measured.results {
        let jobs = json["jobs"].as_array().unwrap();
        let job = jobs.iter().find(|job| job["jobname"] == result.stream.as_str()).unwrap();
        let fios = &job[result.operation.to_string()];
        for (name, summary) in [("clat_ns", &result.service), ("lat_ns", &result.response)] {
            for (percent, value) in &summary.percentiles {
                let told = fios[name]["percentile"][format!("{percent:.6}")].as_u64();
                let (Some(value), Some(told)) = (value, told) else { continue };
                let told = told.clamp(summary.min_ns.unwrap(), summary.max_ns.unwrap());
                let off = (*value as f64 / told as f64 - 1.0).abs();
                assert!(off < 2e-3, "{name} {percent}: {value}, fio says {told}");
                compared += 1;
            }
        }
    }
    compared
}

const ASKED: &str = "
    seed = 77
    stop = { bytes = '24MiB' }
    [[stream]]
    name = 'mixed'
    drives = [0]
    read = 75
    write = 25
    pattern = 'hot:20/80'
    block = '4KiB:75,16KiB:25'
    align = '8KiB'
    from = '1MiB'
    size = '2MiB'
    depth = 4
    content = 'compressible:30'
    [[stream]]
    name = 'two writers'
    drives = [1]
    write = 1
    block = '4KiB'
    size = '4MiB'
    jobs = 2
    priority = 'best-effort:3'
    content = 'random'
";

#[test]
fn a_workload_that_fio_ran_reads_back_as_it_was_asked() {
    let asked = Workload::from_toml(ASKED).unwrap();
    let (text, targets) = measure(&asked, 2, "json+");
    let run = read_run(&text).unwrap();
    let found = &run.measurement;
    assert_eq!(found.drives, targets);
    assert_eq!(found.workload.seed, 77);
    assert_eq!(found.workload.streams, asked.streams);
    assert_eq!(found.result("two writers", Verb::Write).unwrap().bytes, 16 << 20);
    assert_eq!(found.result("two writers", Verb::Write).unwrap().count, 4096);
    let mixed: u64 = found.results.iter().filter(|r| r.stream == "mixed").map(|r| r.bytes).sum();
    assert!((8 << 20..(8 << 20) + 4 * 16384).contains(&mixed), "{mixed}");
    assert!(percentiles_agree(&text, found) >= 12);
    for ((stream, verb), latencies) in &run.latencies {
        let name = &found.workload.streams[usize::from(*stream)].name;
        let result = found.result(name, *verb).unwrap();
        let whole = latencies.response.as_ref().unwrap();
        assert_eq!(whole.count(), result.response.count);
        assert_eq!(whole.max().map(|max| max.as_nanos()), result.response.max_ns);
        assert!(near(whole.mean_ns().unwrap(), result.response.mean_ns.unwrap()));
    }
    assert_eq!(run.latencies.len(), 3);
}

#[test]
fn without_histograms_fios_percentiles_are_taken_by_the_same_rule() {
    let asked = Workload::from_toml(ASKED).unwrap();
    let (text, _) = measure(&asked, 2, "json");
    let found = read(&text).unwrap();
    assert!(percentiles_agree(&text, &found) >= 12);
    for result in &found.results {
        for (percent, value) in &result.response.percentiles {
            let beyond = result.response.count as f64 * (1.0 - percent / 100.0);
            assert_eq!(value.is_some(), beyond >= 100.0, "{percent} of {}", result.response.count);
        }
    }
    assert_eq!(found.workload.streams[0].content, Content::Compressible { percent: 30 });
}
