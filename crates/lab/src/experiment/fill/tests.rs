//! Fills of drives whose cache, rates and faults are known beforehand.

use base::{Command, DeviceError, Instant, Operation, Rate};
use profile::name;

use super::*;
use crate::answer::{Answer, Figure};
use crate::experiment::testing::{Done, Model, covers, geometry, rated, run_in, scope};

const MIB: u64 = 1 << 20;
const CACHE: u64 = 256 * MIB;

/// A cache of 256 MiB at 2 GB/s before flash of 500 MB/s that overwrites at 400 MB/s. A second of rest empties 100 MB of
/// the cache.
fn cached(capacity: u64) -> Model {
    let (mut busy, mut used, mut written) = (Instant::START, 0.0f64, 0u64);
    Box::new(move |command: &Command, now| {
        let Operation::Write { length, .. } = command.operation else { return Ok(now) };
        let idle = now.since(busy);
        used = (used - 100e6 * idle.as_secs_f64()).max(0.0);
        let rate = if used < CACHE as f64 {
            Rate(2e9)
        } else if written < capacity {
            Rate(5e8)
        } else {
            Rate(4e8)
        };
        used = (used + f64::from(length)).min(CACHE as f64);
        written += u64::from(length);
        busy = busy.max(now) + rate.time_for(length.into());
        Ok(busy)
    })
}

fn drive(bytes: u64) -> Geometry {
    Geometry { capacity_bytes: bytes, ..geometry() }
}

fn fill() -> Fill {
    Fill { scope: scope(1_000), rests: vec![], ..Fill::default() }
}

fn figure(result: &FillResult, name: &str) -> Figure {
    result.figures().into_iter().find(|figure| figure.name == name).unwrap()
}

fn run(fill: &Fill, drives: Vec<Geometry>, model: Model) -> (FillResult, Done) {
    let folder = tempfile::tempdir().unwrap();
    let (result, done) = run_in(folder.path(), drives, model, |lab| fill.run(lab));
    (result.unwrap(), done)
}

#[test]
fn the_curve_of_a_fill_is_whole_however_many_intervals_it_took() {
    let capacity = 16_384 * MIB;
    let mut busy = Instant::START;
    let even: Model = Box::new(move |command: &Command, now| {
        let Operation::Write { length, .. } = command.operation else { return Ok(now) };
        busy = busy.max(now) + Rate(4e8).time_for(length.into());
        Ok(busy)
    });
    // It was taken to be far faster, and so has more intervals than meant.
    let fill = Fill { scope: scope(20_000), block_bytes: 64 << 10, ..fill() };
    let (result, _) = run(&fill, vec![drive(capacity)], even);
    let kept: u64 = result.empty.iter().map(|point| point.bytes).sum();
    assert!(kept < capacity, "all intervals are kept: the drive is too fast for this test");
    let curve = result.curve(&crate::profiling::measured("2026-01-01", "here")).unwrap();
    assert_eq!(curve.bytes(), capacity);
    assert!((curve.mean_rate() / 4e8 - 1.0).abs() < 0.001, "{curve:?}");
}

#[test]
fn cache_native_rate_overwriting_and_rests_are_found() {
    let capacity = 4096 * MIB;
    let rests = [500, 1_000, 2_000].map(Duration::from_millis).to_vec();
    let fill = Fill { rests, ..fill() };
    let (result, done) = run(&fill, vec![drive(capacity)], cached(capacity));
    assert_eq!(result.emptied, Emptied::Trimmed);
    let near = |name: &str, expected: f64, within: f64| {
        let value = figure(&result, name).value.unwrap();
        assert!((value / expected - 1.0).abs() < within, "{name}: {value} for {expected}");
    };
    near("write.fast", 2e9, 0.05);
    near("write.cache_bytes", CACHE as f64, 0.05);
    near("write.native", 5e8, 0.02);
    near("write.overwrite", 4e8, 0.02);
    near("write.sustained", 4e8, 0.05);
    near("recovery.after_0.5s", 50e6, 0.6);
    near("recovery.after_1s", 100e6, 0.4);
    near("recovery.after_2s", 200e6, 0.3);
    near("recovery.rate", 100e6, 0.25);
    let curve = result.curve(&crate::profiling::measured("2026-01-01", "here")).unwrap();
    assert_eq!(curve.bytes(), capacity);
    assert!((curve.mean_rate() / result.fill.passes[0].mean_rate - 1.0).abs() < 0.01, "{curve:?}");
    assert_eq!(figure(&result, "write.shrink_bytes").value, None);
    assert_eq!(figure(&result, "dip.count").value, Some(0.0));
    let cost = fill.cost(&[drive(capacity)]);
    assert!(done.written_bytes <= cost.written_bytes, "{} {cost:?}", done.written_bytes);
    assert!(covers(&done, 0, capacity));
    let said = result.answer().join(" ");
    for words in ["trimmed before", "Overwriting holds", "A second of rest"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_drop_that_is_no_threshold_and_a_second_that_dips_are_not_denied() {
    let capacity = 4096 * MIB;
    let (mut result, _) = run(&fill(), vec![drive(capacity)], cached(capacity));
    let window =
        |seconds: u64, rate| WorstWindow { length_ns: seconds * 1_000_000_000, start_ns: 0, rate };
    result.sustained = Some(window(60, 1.74e9));
    result.worst_second = Some(window(1, 1.70e9));
    let said = result.answer().join(" ");
    assert!(said.contains("no fill level slowed it further"), "{said}");
    assert!(said.contains("can rely on 1.74 GB/s"), "{said}");
    assert!(!said.contains("slowest second"), "{said}");

    result.worst_second = Some(window(1, 1.38e9));
    let pass = &mut result.fill.passes[0];
    let mut drop = pass.segmentation.changes[0].clone();
    (drop.at_ns, drop.before, drop.after) = (drop.at_ns + 1_000_000_000, 5e8, 4.7e8);
    pass.segmentation.changes.push(drop);
    pass.attributions.push(pass.attributions[0].clone());
    let said = result.answer().join(" ");
    assert!(!said.contains("no fill level slowed it further"), "{said}");
    assert!(said.contains("it fell further, as said below"), "{said}");
    assert!(said.contains("the rate went from 500 MB/s"), "{said}");
    assert!(said.contains("slowest second wrote 1.38 GB/s"), "{said}");
    assert!(said.contains("buffers for at least 360 MB"), "{said}");
}

#[test]
fn a_flat_drive_shows_neither_a_cache_nor_anything_to_recover() {
    let fill = Fill { rests: vec![Duration::from_secs(10)], ..fill() };
    let flat = rated(Rate(1e9), Rate(1e9), Duration::from_micros(50));
    let (result, done) = run(&fill, vec![drive(2048 * MIB)], flat);
    assert_eq!(figure(&result, "write.fast").value, None);
    assert_eq!(figure(&result, "write.cache_bytes").value, None);
    assert!((result.sustained.unwrap().rate / 1e9 - 1.0).abs() < 0.02);
    assert_eq!(done.written_bytes, 2 * 2048 * MIB);
    assert!(result.rests.left_out.unwrap().contains("no fast rate"));
}

#[test]
fn a_stall_is_a_dip_of_the_right_length() {
    let mut busy = Instant::START;
    let stalling: Model = Box::new(move |command, now| {
        let Operation::Write { length, .. } = command.operation else { return Ok(now) };
        let start = busy.max(now).as_nanos();
        // Nothing begins from 1 s to 1.2 s.
        let stalled = (1_000_000_000..1_200_000_000).contains(&start);
        let start = Instant::from_nanos(if stalled { 1_200_000_000 } else { start });
        busy = start + Rate(1e9).time_for(length.into());
        Ok(busy)
    });
    let (result, _) = run(&fill(), vec![drive(4096 * MIB)], stalling);
    let dips = &result.fill.passes[0].dips;
    assert_eq!(dips.summary.count, 1, "{dips:?}");
    let length = dips.dips[0].length_ns as f64;
    assert!((length / 200e6 - 1.0).abs() < 0.15, "{length}");
    assert_eq!(figure(&result, "dip.depth").value, Some(100.0));
}

#[test]
fn a_second_run_in_the_same_folder_does_no_io_and_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let fill = Fill { rests: vec![Duration::from_secs(1)], ..fill() };
    let capacity = 2048 * MIB;
    let run =
        || run_in(folder.path(), vec![drive(capacity)], cached(capacity), |lab| fill.run(lab));
    let (first, _) = run();
    let (second, done) = run();
    assert_eq!(done, Done::default());
    assert_eq!(second.unwrap(), first.unwrap());
    let text = std::fs::read_to_string(folder.path().join("fill/result.json")).unwrap();
    let kept: FillResult = serde_json::from_str(&text).unwrap();
    assert!(kept.rests.recovery.is_some());
}

#[test]
fn a_time_limit_cuts_the_passes_and_says_so() {
    let fill = Fill { pass_time: Some(Duration::from_millis(500)), ..fill() };
    let flat = || rated(Rate(1e9), Rate(1e9), Duration::ZERO);
    let (result, done) = run(&fill, vec![drive(4096 * MIB)], flat());
    assert!(done.written_bytes <= 1_000_000_000, "{}", done.written_bytes);
    assert!(done.written_bytes <= fill.cost(&[drive(4096 * MIB)]).written_bytes);
    let said = result.answer().join(" ");
    assert!(said.contains("the rest of the drive was not seen"), "{said}");
    // A drive slower than thought ends by the clock, and is overwritten where it was written.
    let slow = rated(Rate(1e8), Rate(1e8), Duration::ZERO);
    let (result, done) = run(&fill, vec![drive(4096 * MIB)], slow);
    assert!(result.shares[0] < 70_000_000, "{:?}", result.shares);
    assert!(done.changes.iter().filter(|c| c.2 <= MIB).all(|c| c.1 < 70_000_000));
    let said = result.answer().join(" ");
    assert!(said.contains("The empty pass ended after"), "{said}");
}

#[test]
fn a_bank_of_drives_is_filled_together_and_a_small_file_too() {
    let flat = rated(Rate(2e8), Rate(2e8), Duration::ZERO);
    let (result, done) = run(&fill(), vec![drive(64 * MIB), drive(100 * MIB)], flat);
    assert_eq!(done.written_bytes, 2 * 2 * 64 * MIB);
    assert_eq!(result.shares, [64 * MIB, 64 * MIB]);
    assert!((result.fill.passes[0].mean_rate / 4e8 - 1.0).abs() < 0.05);
    let no_trim = Geometry { trim_unit_bytes: None, ..drive(3 * MIB) };
    let instant: Model = Box::new(|_, now| Ok(now));
    let (result, _) = run(&fill(), vec![no_trim], instant);
    assert!(result.answer()[0].contains("as it was found"), "{:?}", result.answer());
}

#[test]
fn failures_are_said_and_a_drive_that_can_not_be_written_is_refused() {
    let mut writes = 0;
    let failing: Model = Box::new(move |command, now| {
        writes += u32::from(matches!(command.operation, Operation::Write { .. }));
        if writes == 20 { Err(DeviceError::Medium) } else { Ok(now + Duration::from_millis(1)) }
    });
    let (result, _) = run(&fill(), vec![drive(64 * MIB)], failing);
    let said = result.answer().join(" ");
    assert!(said.contains("1 command failed (medium error"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let reading = Geometry { writable: false, ..drive(64 * MIB) };
    let (result, done) =
        run_in(folder.path(), vec![reading], Box::new(|_, now| Ok(now)), |lab| fill().run(lab));
    assert!(result.unwrap_err().to_string().contains("reading only"));
    assert_eq!(done, Done::default());
}

/// What of so many bytes is written where a rate has to be held.
fn whole_chunks(bytes: u64) -> u64 {
    bytes / held::CHUNK_BYTES * held::CHUNK_BYTES
}

#[test]
fn a_rate_below_what_the_drive_writes_is_held_and_one_above_is_not() {
    let capacity = 1024 * MIB;
    let rates = [3e8, 4.5e8].map(Rate).to_vec();
    let even = rated(Rate(1e9), Rate(4e8), Duration::ZERO);
    let (result, done) = run(&Fill { rates, ..fill() }, vec![drive(capacity)], even);
    assert_eq!(
        result.held.iter().map(|one| one.held).collect::<Vec<_>>(),
        [Some(true), Some(false)]
    );
    let each = whole_chunks(capacity);
    let whole = held::ROUNDS * each;
    assert!(result.held.iter().all(|one| one.written_bytes == whole), "{:?}", result.held);
    assert_eq!(figure(&result, name::WRITE_HELD).value, Some(3e8));
    assert_eq!(figure(&result, name::WRITE_NOT_HELD).value, Some(4.5e8));
    // 4 MiB take 10.5 ms, in which 3.1 MB come.
    let waiting = figure(&result, name::WRITE_HELD_WAITING).value.unwrap();
    assert!((6.8e6..8.8e6).contains(&waiting), "{waiting}");
    let at_450 = &result.held[1];
    // Of five times 1 GiB that come in 11.9 s, 0.4 / 0.45 are on the drive by then.
    let late = whole as f64 * (1.0 - 4.0 / 4.5);
    assert!((0.8..1.3).contains(&(at_450.waiting_bytes as f64 / late)), "{at_450:?}");
    assert_eq!(done.written_bytes, 2 * capacity + 2 * whole);
    assert_eq!(done.trimmed_bytes, capacity + 2 * each, "each begins with an empty drive");
    let text = result.answer().join("\n");
    assert!(text.contains("At 300 MB/s (2.40 Gb/s) each drive keeps up"), "{text}");
    assert!(text.contains("At 450 MB/s (3.60 Gb/s) a drive falls further"), "{text}");
}

#[test]
fn what_a_part_of_a_drive_holds_is_no_figure_of_the_drive() {
    let scope = Scope { region: Some(512 * MIB), ..scope(1_000) };
    let fill = Fill { scope, rates: vec![Rate(3e8)], ..fill() };
    let (result, _) = run(&fill, vec![drive(1024 * MIB)], cached(1024 * MIB));
    assert_eq!(result.held[0].held, Some(true));
    let held = figure(&result, name::WRITE_HELD);
    assert_eq!((held.value, held.note.as_str()), (None, "only a part of the drive was written"));
    let without = run(&self::fill(), vec![drive(1024 * MIB)], cached(1024 * MIB)).0;
    assert!(without.figures().iter().all(|figure| figure.name != name::WRITE_HELD));
}

#[test]
fn writing_that_was_interrupted_begins_again_on_an_empty_drive() {
    let folder = tempfile::tempdir().unwrap();
    let rates = vec![Rate(3e8)];
    let fill = Fill { rates, ..fill() };
    let steps = folder.path().join(NAME);
    let go_on = |forgotten: &[&str]| {
        for name in forgotten {
            std::fs::remove_file(steps.join(format!("{name}.json"))).unwrap();
        }
        let drives = vec![drive(256 * MIB)];
        run_in(folder.path(), drives, cached(256 * MIB), |lab| fill.run(lab)).1
    };
    let each = whole_chunks(256 * MIB);
    assert_eq!(go_on(&[]).trimmed_bytes, 256 * MIB + each);
    // All was done.
    assert_eq!(go_on(&[]), Done::default());
    let done = go_on(&["held-300000000"]);
    assert_eq!((done.trimmed_bytes, done.written_bytes), (each, held::ROUNDS * each));
    let done = go_on(&["empty"]);
    assert_eq!((done.trimmed_bytes, done.written_bytes), (256 * MIB, 256 * MIB));
}
