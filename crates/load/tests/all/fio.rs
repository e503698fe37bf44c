//! fio itself judges the job files, and what fio measures is read back.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use load::{Stop, Stream, Workload, fio_job};
use longtake_load as load;
use proptest::prelude::*;
use tempfile::{NamedTempFile, TempDir};

/// Whether the long form of a test was asked for with `LONGTAKE_LONG=1`.
fn long() -> bool {
    std::env::var_os("LONGTAKE_LONG").is_some_and(|v| v == "1")
}

/// Runs fio on a job file.
fn fio(arguments: &[&str], job: &str, folder: &Path) -> Output {
    let mut file = NamedTempFile::new_in(folder).unwrap();
    file.write_all(job.as_bytes()).unwrap();
    let mut fio = Command::new("fio");
    fio.args(arguments).arg(file.path()).current_dir(folder).stdin(Stdio::null());
    fio.output().expect("fio is installed")
}

/// A file to measure. It holds zeros.
fn drive(folder: &TempDir, bytes: u64) -> NamedTempFile {
    let file = NamedTempFile::new_in(folder).unwrap();
    file.as_file().set_len(bytes).unwrap();
    file
}

fn path(file: &NamedTempFile) -> String {
    file.path().to_str().unwrap().to_owned()
}

fn toml(text: &str) -> Workload {
    Workload::from_toml(text).unwrap()
}

fn patterns() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("sequential".to_owned()),
        Just("random".to_owned()),
        (0.01f64..5.0).prop_map(|theta| format!("zipf:{theta}")),
        Just("zipf:1".to_owned()),
        (0.001f64..99.999, 0.001f64..99.999)
            .prop_map(|(space, access)| format!("hot:{space}/{access}")),
    ]
}

fn rates() -> impl Strategy<Value = Option<(String, String)>> {
    let rate = prop_oneof![
        (0.001f64..1e7).prop_map(|rate| format!("{rate}/s")),
        (1f64..1e13).prop_map(|rate| format!("{rate}B/s")),
    ];
    let arrival = prop_oneof![
        Just("constant".to_owned()),
        Just("poisson".to_owned()),
        (1u32..10_000).prop_map(|count| format!("bursts:{count}")),
    ];
    proptest::option::of((rate, arrival))
}

fn blocks() -> impl Strategy<Value = String> {
    proptest::collection::vec((1u64..4096, 1u32..1_000_000), 1..80).prop_map(|parts| {
        let parts: Vec<String> =
            parts.iter().map(|(sectors, weight)| format!("{}:{weight}", sectors * 512)).collect();
        parts.join(",")
    })
}

fn streams() -> impl Strategy<Value = Stream> {
    let place = (
        patterns(),
        blocks(),
        proptest::option::of(1u64..64),
        proptest::option::of(0u64..1 << 20),
        proptest::option::of(1u64..1 << 40),
    );
    let verbs = (0u32..1000, 0u32..1000, prop_oneof![Just(0u32), 0u32..1000])
        .prop_filter("something is done", |(read, write, trim)| read + write + trim > 0);
    let rest = (
        1u32..4096,
        1u32..200,
        proptest::collection::vec(0u16..5, 0..3),
        prop_oneof![
            Just("random".to_owned()),
            Just("verify".to_owned()),
            (0u8..=100).prop_map(|percent| format!("compressible:{percent}")),
        ],
        proptest::option::of(prop_oneof![
            Just("idle".to_owned()),
            (0u8..8).prop_map(|level| format!("real-time:{level}")),
            (0u8..8).prop_map(|level| format!("best-effort:{level}")),
        ]),
        proptest::option::of(1u64..1_000_000),
    );
    (any::<String>(), place, verbs, rates(), rest).prop_map(
        |(name, (pattern, block, align, from, size), (read, write, trim), rate, rest)| {
            let (depth, jobs, drives, content, priority, deadline_us) = rest;
            let (rate, arrival) = rate.map_or((None, "constant".to_owned()), |(r, a)| (Some(r), a));
            Stream {
                name,
                drives,
                pattern: pattern.parse().unwrap(),
                block: block.parse().unwrap(),
                read,
                write,
                trim,
                from: from.map(|from| load::quantity::Size(from * 4096)),
                size: size.map(|size| load::quantity::Size(size * 4096)),
                align: align.map(|align| load::quantity::Size(align * 512)),
                depth,
                jobs,
                rate: rate.map(|rate| rate.parse().unwrap()),
                arrival: arrival.parse().unwrap(),
                deadline: deadline_us.map(|us| format!("{us}us").parse().unwrap()),
                priority: priority.map(|priority| priority.parse().unwrap()),
                content: content.parse().unwrap(),
                fua: write > 0 && depth % 2 == 0,
                flush: (write > 0 && depth % 3 == 0).then(|| "1s".parse().unwrap()),
                trace: None,
            }
        },
    )
}

fn workloads() -> impl Strategy<Value = Workload> {
    let stop = (
        proptest::option::of(1u64..100_000_000_000_000),
        proptest::option::of(1u64..1 << 50),
        proptest::option::of((1u64..100_000, 1u32..10, 0.5f64..50.0, 0.5f64..50.0)),
    );
    (any::<String>(), any::<u64>(), 0u64..100_000, stop, proptest::collection::vec(streams(), 1..4))
        .prop_map(|(name, seed, warm_up_ms, (time_ns, bytes, steady), streams)| Workload {
            name,
            seed,
            interval: "1ms".parse().unwrap(),
            warm_up: format!("{warm_up_ms}ms").parse().unwrap(),
            stop: Stop {
                time: time_ns.map(|ns| format!("{ns}ns").parse().unwrap()),
                bytes: bytes.map(load::quantity::Size),
                steady: steady.map(|(round_ms, window, range_percent, slope_percent)| {
                    load::workload::Steady {
                        round: format!("{round_ms}ms").parse().unwrap(),
                        window,
                        range_percent,
                        slope_percent,
                        ..Default::default()
                    }
                }),
            },
            streams,
        })
}

proptest! {
    // Each starts fio, which links with a hundred libraries.
    #![proptest_config(ProptestConfig::with_cases(if long() { 400 } else { 40 }))]

    #[test]
    fn fio_accepts_the_job_file_of_any_workload(workload in workloads()) {
        let targets: Vec<String> =
            ["/dev/nvme0n1", "/dev/ng0n1", "/tmp/a:b", "sim:x", "/dev/sd#"].map(str::to_owned).into();
        let job = fio_job::job(&workload, &targets);
        let folder = TempDir::new().unwrap();
        let output = fio(&["--parse-only"], &job, folder.path());
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        prop_assert!(output.status.success(), "{}\n{}", said, job);
        for complaint in ["failed parsing", "Bad option", "dropped", "out of range", "invalid"] {
            prop_assert!(!said.contains(complaint), "{}\n{}", said, job);
        }
    }
}

proptest! {
    #[test]
    fn any_workload_is_the_same_after_a_way_through_a_job_file(workload in workloads()) {
        let targets: Vec<String> = ["/dev/nvme0n1", "sim:x", "a\nb"].map(str::to_owned).into();
        let job = fio_job::job(&workload, &targets);
        let read = fio_job::read::read(&job, "job.fio", &targets);
        prop_assert_eq!(read.map(|read| read.workload), Ok(workload), "{}", job);
    }
}

/// What fio did: operation, offset and length of each command, from the log that it can replay.
fn commands(
    workload: &Workload,
    file: &NamedTempFile,
    folder: &TempDir,
) -> Vec<(String, u64, u64)> {
    let log = folder.path().join("commands");
    let logged = format!("[global]\nwrite_iolog={}\n", log.display());
    let job = fio_job::job(workload, &[path(file)]).replacen("[global]\n", &logged, 1);
    let output = fio(&["--output-format=json"], &job, folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = Command::new("cat").arg(&log).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    let command = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| ["read", "write", "trim"].contains(word))?;
        Some((
            words[at].to_owned(),
            words.get(at + 1)?.parse().ok()?,
            words.get(at + 2)?.parse().ok()?,
        ))
    };
    text.lines().filter_map(command).collect()
}

#[test]
fn fio_moves_the_bytes_in_the_blocks_and_the_region_that_were_asked_for() {
    let folder = TempDir::new().unwrap();
    let file = drive(&folder, 8 << 20);
    let workload = toml(
        "stop = { bytes = '16MiB' }\n[[stream]]\nread = 3\nwrite = 1\npattern = 'hot:25/75'\nblock = '4KiB:3,16KiB:1'\nalign = '8KiB'\nfrom = '1MiB'\nsize = '4MiB'\ndepth = 4",
    );
    let found = commands(&workload, &file, &folder);
    let bytes: u64 = found.iter().map(|(_, _, length)| length).sum();
    assert!((16 << 20..(16 << 20) + 4 * 16384).contains(&bytes), "{bytes}");
    for (_, offset, length) in &found {
        assert!([4096, 16384].contains(length), "{length}");
        assert!(*offset >= 1 << 20 && offset + length <= 5 << 20 && offset % 8192 == 0, "{offset}");
    }
    let share = |wanted: &dyn Fn(&(String, u64, u64)) -> bool| {
        found.iter().filter(|command| wanted(command)).count() as f64 / found.len() as f64
    };
    let (short, reads) = (share(&|c| c.2 == 4096), share(&|c| c.0 == "read"));
    // 2,300 commands: four standard deviations are 0.04.
    assert!((short - 0.75).abs() < 0.04 && (reads - 0.75).abs() < 0.04, "{short} {reads}");
    let hot = share(&|c| c.1 < 2 << 20);
    assert!((hot - 0.75).abs() < 0.05, "{hot}");
}

#[test]
fn a_sequence_with_holes_begins_where_it_should_and_goes_around() {
    let folder = TempDir::new().unwrap();
    let file = drive(&folder, 1 << 20);
    let workload = toml(
        "stop = { bytes = '160KiB' }\n[[stream]]\nwrite = 1\nblock = '4KiB'\nalign = '64KiB'\nfrom = '128KiB'\nsize = '512KiB'",
    );
    let found = commands(&workload, &file, &folder);
    let expected: Vec<u64> = (0..40).map(|k| (128 << 10) + k % 8 * (64 << 10)).collect();
    let offsets: Vec<u64> = found.iter().map(|(_, offset, _)| *offset).collect();
    assert_eq!(offsets, expected);
}

#[test]
fn fio_raises_no_false_alarm_when_it_verifies() {
    let folder = TempDir::new().unwrap();
    for (pattern, jobs, read) in
        [("random", 3, 0), ("sequential", 2, 0), ("random", 1, 1), ("sequential", 1, 1)]
    {
        let file = drive(&folder, 3 << 20);
        let workload = toml(&format!(
            "stop = {{ bytes = '9MiB' }}\n[[stream]]\nwrite = 1\nread = {read}\npattern = '{pattern}'\nblock = '8KiB'\nsize = '3MiB'\njobs = {jobs}\ndepth = 8\ncontent = 'verify'",
        ));
        let job = fio_job::job(&workload, &[path(&file)]);
        let output = fio(&["--output-format=json"], &job, folder.path());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{pattern} {jobs} {read}: {said}");
        assert!(said.contains("\"error\" : 0"), "{said}");
    }
}

#[test]
fn fio_makes_no_file_where_a_drive_should_be() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("mistyped");
    let workload = toml("stop = { bytes = '1MiB' }\n[[stream]]\nwrite = 1\nsize = '1MiB'");
    let job = fio_job::job(&workload, &[target.to_str().unwrap().to_owned()]);
    let output = fio(&["--output-format=json"], &job, folder.path());
    assert!(!output.status.success());
    assert!(!target.exists());
}
