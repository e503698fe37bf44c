//! Measuring a drive whose speed the test holds: what is found must be what was imposed. The limits are the kernel's, on a
//! loop device, and are changed when so many bytes have passed.
//!
//! Seconds long, because the kernel lets bytes through ten times a second: in shorter stretches there is no rate.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::{new_in, scratch};
use crate::measure_rig::{LoopDevice, MIB, Throttle, figure, lines, unless_disturbed};
use lab::analysis::{ChangeOptions, DipOptions, Dips, Point, Series, changes, dips};
use load::{Measurement, Verb};
use serde_json::Value;

/// The measurement that `measure run --json` printed.
#[track_caller]
fn measurement(printed: &Value) -> Measurement {
    let step = printed["step"]["measurement"].clone();
    serde_json::from_value(step).expect("a measurement in JSON")
}

#[test]
fn a_cliff_is_found_at_the_byte_where_the_drive_was_slowed_down() {
    unless_disturbed(448 * MIB, cliff);
}

fn cliff(device: &LoopDevice, throttle: &Throttle) -> Result<(), String> {
    let (size, fast, slow) = (device.size(), 30_000_000, 12_000_000);
    let folder = scratch();
    let output = new_in(&folder, "results");
    throttle.limit_writes(device, Some(fast));
    let output = output.to_str().expect("a scratch path is text");
    let target = device.text();
    let mut measuring = throttle.measure(&[
        "fill", target, "--erase", target, "--output", output, "--json", "--time", "120s",
    ]);
    measuring.wait_until("the cliff", || device.written() >= size * 3 / 5);
    throttle.limit_writes(device, Some(slow));
    let cliff = device.written();
    measuring.wait_until("the end of the first pass", || device.written() >= size);
    throttle.limit_writes(device, None);
    let ran = measuring.end().code(0);
    let answer = &lines(&ran)[0]["answer"];
    let Some(found) = figure(&ran, "write.cache_bytes") else {
        return Err(format!(
            "slowed down at {cliff} of {size}, and no cliff is found: {answer:#?}"
        ));
    };
    let off = (found - cliff as f64).abs();
    let said = format!("slowed down at {cliff} and found at {found} of {size}: {answer:#?}");
    if off <= 0.02 * size as f64 { Ok(()) } else { Err(said) }
}

#[test]
fn a_drive_of_one_speed_shows_one_level_and_no_dips() {
    unless_disturbed(480 * MIB, one_speed);
}

fn one_speed(device: &LoopDevice, throttle: &Throttle) -> Result<(), String> {
    let size = device.size();
    let folder = scratch();
    let output = new_in(&folder, "results");
    throttle.limit_writes(device, Some(80_000_000));
    let output = output.to_str().expect("a scratch path is text");
    let (target, bytes) = (device.text(), size.to_string());
    let mut words = vec!["run", target, "--erase", target, "--output", output, "--json"];
    words.extend(["--write", "1", "--block", "1MiB", "--depth", "8", "--bytes", &bytes]);
    words.extend(["--interval", "500ms"]);
    let ran = throttle.measure(&words).end().code(0);
    assert_eq!(device.written(), size);
    let series = written(&measurement(&ran.json()));
    let levels = changes::find(&series, &ChangeOptions::default());
    let dips = dips_of(&series).dips;
    let said = format!("{:#?} and {dips:#?} in {:?}", levels.changes, series.rates());
    if levels.changes.is_empty() && dips.is_empty() { Ok(()) } else { Err(said) }
}

/// What a run wrote, in its own intervals.
fn written(measured: &Measurement) -> Series {
    let interval = measured.workload.interval.0.as_nanos();
    let mut bytes: BTreeMap<u64, u64> = BTreeMap::new();
    for line in measured.series.iter().filter(|line| line.operation == Verb::Write) {
        *bytes.entry(line.start_ns / interval).or_default() += line.bytes;
    }
    // The last one is as short as it came to be.
    let whole = bytes.keys().last().copied().unwrap_or(0);
    let point = |index: u64| Point {
        start_ns: index * interval,
        duration_ns: interval,
        bytes: bytes.get(&index).copied().unwrap_or(0),
    };
    Series::new((0..whole).map(point).collect()).expect("intervals in order")
}

fn dips_of(series: &Series) -> Dips {
    let levels = changes::find(series, &ChangeOptions::default());
    // The kernel lets bytes through in portions, five of them in an interval: one or two may be late.
    dips::find(series, &levels, &DipOptions { below: 0.4 })
}

#[test]
fn every_dip_is_counted_and_nothing_else() {
    unless_disturbed(600 * MIB, four_dips);
}

fn four_dips(device: &LoopDevice, throttle: &Throttle) -> Result<(), String> {
    let (size, level) = (device.size(), 60_000_000);
    let folder = scratch();
    let output = new_in(&folder, "results");
    throttle.limit_writes(device, Some(level));
    let output = output.to_str().expect("a scratch path is text");
    let bytes = size.to_string();
    let mut measuring = throttle.measure(&[
        "run",
        device.text(),
        "--erase",
        device.text(),
        "--output",
        output,
        "--json",
        "--write",
        "1",
        "--block",
        "1MiB",
        "--depth",
        "8",
        "--bytes",
        &bytes,
        "--interval",
        "500ms",
    ]);
    let mut imposed = Vec::new();
    for at in [1, 2, 3, 4] {
        measuring.wait_until("a dip's place", || device.written() >= size * at / 5);
        throttle.limit_writes(device, Some(level / 10));
        imposed.push(device.written());
        sleep(Duration::from_millis(1200));
        throttle.limit_writes(device, Some(level));
    }
    let ran = measuring.end().code(0);
    let found = dips_of(&written(&measurement(&ran.json())));
    let places: Vec<u64> = found.dips.iter().map(|dip| dip.at_bytes).collect();
    // Two intervals' bytes: where the intervals lie is nobody's choice, and eight blocks are under way.
    let near = |(place, imposed): (&u64, &u64)| place.abs_diff(*imposed) < level;
    if places.len() == imposed.len() && places.iter().zip(&imposed).all(near) {
        Ok(())
    } else {
        Err(format!("imposed at {imposed:?}, found {:#?}", found.dips))
    }
}

#[test]
fn a_stall_shows_in_the_response_of_all_that_it_delayed_and_in_the_service_of_one() {
    let device = LoopDevice::new(64 * MIB);
    let throttle = Throttle::new();
    let folder = scratch();
    let output = new_in(&folder, "results");
    let output = output.to_str().expect("a scratch path is text");
    let mut measuring = throttle.measure(&[
        "run",
        device.text(),
        "--output",
        output,
        "--json",
        "--read",
        "1",
        "--block",
        "4KiB",
        "--rate",
        "1000/s",
        "--for",
        "10s",
        "--interval",
        "100ms",
    ]);
    measuring.wait_until("a second has passed", || device.read() >= 1000 * 4096);
    // At this rate not a single block passes within a second.
    throttle.limit_reads(&device, Some(1000));
    let stalled = Instant::now();
    sleep(Duration::from_millis(1000));
    let stalled = stalled.elapsed();
    throttle.limit_reads(&device, None);
    let ran = measuring.end().code(0);
    let measured = measurement(&ran.json());
    let read = measured.result("stream", Verb::Read).expect("it read");
    assert_eq!(read.count + measured.unsent, 10_000);
    // A command is intended every millisecond, whatever the drive does.
    let stall_ms = stalled.as_millis() as u64;
    assert!(read.delayed >= stall_ms - 2, "{} delayed by {stalled:?}", read.delayed);
    let longest =
        |summary: &load::measurement::LatencySummary| summary.max_ns.expect("there were some");
    assert!(longest(&read.response) >= (stall_ms - 2) * 1_000_000);
    assert!(longest(&read.response) >= longest(&read.service));
    // All the responses during the stall, added up, against the one command that the drive held.
    let sum = |summary: &load::measurement::LatencySummary| {
        summary.mean_ns.expect("known") * read.count as f64
    };
    let beyond = sum(&read.response) - sum(&read.service);
    let triangle = (stall_ms as f64 - 2.0).powi(2) / 2.0 * 1e6;
    assert!(beyond >= 0.9 * triangle, "{beyond} of {triangle}");
    // One in twenty responses is late because of the stall; fewer than that were in the drive's hands.
    let late = read.response.percentile(95.0).expect("known");
    assert!(late > read.service.percentile(95.0).expect("known"));
}

#[test]
fn a_byte_that_changes_between_writing_and_reading_back_is_found() {
    let size = 48 * MIB;
    let device = LoopDevice::new(size);
    let throttle = Throttle::new();
    let folder = scratch();
    let output = new_in(&folder, "results");
    let output = output.to_str().expect("a scratch path is text");
    let bytes = size.to_string();
    // Slow enough to be looked at while it writes.
    throttle.limit_writes(&device, Some(2_000_000));
    let mut measuring = throttle.measure(&[
        "run",
        device.text(),
        "--erase",
        device.text(),
        "--output",
        output,
        "--json",
        "--write",
        "1",
        "--block",
        "256KiB",
        "--bytes",
        &bytes,
        "--verify",
    ]);
    measuring.wait_until("it writes", || device.written() > 0);
    // Nothing is read back before the byte is changed.
    throttle.limit_reads(&device, Some(1));
    throttle.limit_writes(&device, None);
    measuring.wait_until("all is written", || device.written() >= size);
    let wrong = 33 * MIB + 777;
    let image = File::options().read(true).write(true).open(device.image()).expect("our image");
    let mut byte = [0];
    image.read_exact_at(&mut byte, wrong).expect("it is that long");
    image.write_all_at(&[byte[0] ^ 0x10], wrong).expect("changing a byte");
    throttle.limit_reads(&device, None);
    let ran = measuring.end().code(3);
    let found = measurement(&ran.json()).verification.expect("it was verified");
    assert_eq!((found.checked_bytes, found.wrong_sectors), (size, 1));
    assert_eq!(found.mismatches.len(), 1);
    assert_eq!(found.mismatches[0].offset / 512, wrong / 512, "{:?}", found.mismatches);
    assert_eq!(found.mismatches[0].bytes, 1);
}
