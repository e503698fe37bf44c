//! Preconditioning held to the steady state itself, on simulated drives: those written over for long, and those that begin in it.

use base::{Bank, Geometry};
use lab::counters::{StepWritten, Written};
use lab::experiment::{Preconditioned, Preconditioning};
use lab::rig::{BankRig, Go};
use lab::{Lab, Progress};
use load::quantity::Size;
use load::workload::{Blocks, Pattern, Stop, Stream};
use load::{Workload, trace::Moved};
use ssd::spec::Collector;
use ssd::{SimBank, Slot, Spec, Start};

const CAPACITY: u64 = 1 << 30;

/// 1 GiB with some 700 superblocks.
fn spec(spare: f64, collector: Collector) -> Spec {
    let profile = profile::library::get("samsung-pm1725b-1.6tb").unwrap();
    let mut spec = Spec::from_profile(&profile).unwrap();
    spec.capacity_bytes = CAPACITY;
    let flash = &mut spec.flash;
    (flash.channels, flash.dies_per_channel, flash.planes) = (4, 2, 2);
    (flash.page_bytes, flash.pages_per_block, flash.pages_per_program) = (16 << 10, 6, 3);
    spec.mapping.over_provisioning = spare;
    spec.mapping.collector = collector;
    spec.upkeep = None;
    spec.check().unwrap();
    spec
}

fn written(bank: &SimBank) -> Written {
    let health = bank.health(0);
    Written {
        host_bytes: health.sets.iter().map(|set| set.written_bytes).sum(),
        media_bytes: health.sets.iter().map(|set| set.media_written_bytes).sum(),
        ..Written::default()
    }
}

/// What a drive of one kind amplifies writes by: first while it is brought into a state, if it is, then over shares of its capacity
/// that are written at random one after the other.
fn amplified(
    spec: &Spec,
    start: Start,
    how: Option<Preconditioning>,
    block: u64,
    shares: &[f64],
) -> (Option<Preconditioned>, Vec<f64>) {
    let slot = Slot { spec: spec.clone(), start, namespaces: vec![0], seed: 1 };
    let bank = SimBank::new(&[slot], None).unwrap();
    let mut rig = BankRig::without_data(bank).counting(written);
    let folder = tempfile::tempdir().unwrap();
    let mut watch = |_: &Progress<'_>| Go::On;
    let mut lab = Lab::new(&mut rig, folder.path(), &mut watch).unwrap();
    let before = how.map(|how| how.run(&mut lab, "it", "before").unwrap());
    let random = |index: usize, share: &f64| Workload {
        name: "random".to_owned(),
        seed: index as u64 + 7,
        interval: load::quantity::Time(base::Duration::from_secs(1)),
        warm_up: load::quantity::Time::default(),
        stop: Stop { bytes: Some(Size((share * CAPACITY as f64) as u64)), ..Stop::default() },
        streams: vec![Stream {
            write: 1,
            pattern: Pattern::Random,
            block: Blocks::of(block),
            depth: 32,
            ..Stream::default()
        }],
    };
    let all = shares.iter().enumerate().map(|(index, share)| {
        let step = lab.step("it", &index.to_string(), &random(index, share)).unwrap();
        match step.counters.written {
            StepWritten::Known { amplification, .. } => amplification,
            other => panic!("{other:?}"),
        }
    });
    let all = all.collect();
    (before, all)
}

/// The drive as it begins.
fn geometry(spec: &Spec) -> Geometry {
    let slot = Slot { spec: spec.clone(), start: Start::Empty, namespaces: vec![0], seed: 1 };
    SimBank::new(&[slot], None).unwrap().drives()[0].clone()
}

/// What a drive amplifies random writes by that was written over at random for long.
fn steady(spec: &Spec, block: u64) -> f64 {
    amplified(spec, Start::Full, None, block, &[4.0, 1.0]).1[1]
}

/// Preconditioned for so much spare flash; then a tenth of the capacity is written at random, a tenth more, and then two fifths.
fn preconditioned(
    spec: &Spec,
    start: &Start,
    block: u64,
    spare: f64,
) -> (Preconditioned, Vec<f64>) {
    let writes = Moved { requests: 10, bytes: 10 * block };
    let how = Preconditioning::of(writes, &geometry(spec), 100.0 * spare);
    assert_eq!(how.block_bytes, block);
    let (before, found) = amplified(spec, start.clone(), Some(how), block, &[0.1, 0.1, 0.4]);
    (before.unwrap(), found)
}

fn assert_near(what: &str, found: &[f64], steady: f64, tolerance: f64) {
    let near = |one: &f64| (one / steady - 1.0).abs() <= tolerance;
    assert!(found.iter().all(near), "{what}: {found:?}, not {steady}");
}

#[test]
fn a_drive_written_once_for_all_its_flash_amplifies_as_one_written_over_for_long() {
    for (spare, block) in [(0.07, 4 << 10), (0.15, 4 << 10), (0.37, 16 << 10), (0.15, 64 << 10)] {
        let spec = spec(spare, Collector::Greedy);
        let steady = steady(&spec, block);
        for start in [Start::Empty, Start::Full, Start::Random { block_bytes: 4096 }] {
            let (before, found) = preconditioned(&spec, &start, block, spec.spare_share());
            assert_near(&format!("{spare}, {block}, {start:?}"), &found, steady, 0.05);
            let passes = before.written_bytes as f64 / CAPACITY as f64;
            assert!(passes <= 1.0 + spare, "{passes} passes: as much as there is flash");
            assert_eq!(before.trimmed_bytes, CAPACITY, "and trimmed before");
        }
    }
}

#[test]
fn the_usual_order_of_as_many_writes_leaves_a_drive_far_from_steady() {
    let spec = spec(0.15, Collector::Greedy);
    let (_, usual) = amplified(&spec, Start::Full, None, 4096, &[spec.spare_share(), 0.1]);
    let steady = steady(&spec, 4096);
    assert!((usual[1] / steady - 1.0).abs() > 0.2, "{usual:?} of {steady}");
}

#[test]
fn other_collectors_are_settled_by_it_too() {
    for collector in [Collector::Fifo, Collector::CostBenefit, Collector::Choices(10)] {
        let spec = spec(0.15, collector);
        let (_, found) = preconditioned(&spec, &Start::Empty, 4096, spec.spare_share());
        assert_near(&format!("{collector:?}"), &found, steady(&spec, 4096), 0.07);
    }
}

#[test]
fn more_spare_flash_than_there_is_costs_writes_and_little_else() {
    let spec = spec(0.15, Collector::Greedy);
    let steady = steady(&spec, 4096);
    for spare in [0.2, 0.3, 0.6] {
        let (before, found) = preconditioned(&spec, &Start::Empty, 4096, spare);
        assert!(found[0] > 0.8 * steady, "a tenth later it is {found:?}");
        assert_near(&format!("{spare}"), &found[1..], steady, 0.03);
        let passes = before.written_bytes as f64 / CAPACITY as f64;
        assert!((passes / (1.0 + spare) - 1.0).abs() < 1e-3, "{passes} passes");
    }
}

#[test]
fn a_trace_that_only_reads_is_preceded_by_writing_once() {
    let drive = geometry(&spec(0.15, Collector::Greedy));
    let how = Preconditioning::of(Moved::default(), &drive, 15.0);
    assert_eq!((how.block_bytes, how.spare_percent), (1 << 20, 0.0));
    assert_eq!(how.bytes(&drive), CAPACITY);
    let of = |requests, bytes| Preconditioning::of(Moved { requests, bytes }, &drive, 0.0);
    let blocks = [(1, 512), (1, 9_000), (3, 300_000), (1, 1 << 30)]
        .map(|(requests, bytes)| of(requests, bytes).block_bytes);
    assert_eq!(blocks, [4 << 10, 8 << 10, 64 << 10, 1 << 20], "as long as the writes on average");
}
