//! Predictable Latency Mode: what a drive leaves to after a deterministic window, and when it ends one.

use base::{Bank, DriveId, Duration, Random};
use longtake_ssd::health::{SetHealth, SetWindow};
use longtake_ssd::spec::{Namespace, Predictable, SetLayout, Sets, Upkeep};
use longtake_ssd::{Spec, Start, Window};
use proptest::prelude::*;

use crate::drives;
use crate::laws::specs;
use crate::laws::work::{self, Run, read, write};

const UNIT: u64 = 4 << 10;

/// Two sets of four dies, and of 32 MiB.
fn two_sets(windows: Option<Predictable>) -> Spec {
    let mut spec = drives::small();
    let namespace = |set| Namespace { share: 0.5, sets: vec![set] };
    spec.sets = Sets {
        layout: SetLayout::Vertical,
        count: 2,
        namespaces: vec![namespace(0), namespace(1)],
    };
    spec.predictable = windows;
    spec.check().unwrap();
    spec
}

const WINDOWS: Predictable = Predictable {
    reads: 500,
    writes: 2,
    longest_ms: 100.0,
    recovery_ms: 200.0,
    recovery_least_ms: 50.0,
};

/// Drives with NVM Sets, and with deterministic windows of milliseconds for them.
fn with_windows() -> impl Strategy<Value = Spec> {
    let windows = (1..500_u64, 0..40_u64, 1.0..20.0, 0.0..1.0, 0.0..1.0);
    let windows = windows.prop_map(|(reads, writes, longest_ms, recovery, least)| Predictable {
        reads,
        writes,
        longest_ms,
        recovery_ms: 2.0 * longest_ms * recovery,
        recovery_least_ms: 2.0 * longest_ms * recovery * least,
    });
    let in_sets = specs::nand().prop_filter("sets", |spec| spec.sets.count > 1);
    (in_sets, windows).prop_map(|(mut spec, windows)| {
        spec.predictable = Some(windows);
        let kept =
            spec.window_superblocks() * spec.flash.block_bytes() * u64::from(spec.flash.dies());
        spec.mapping.over_provisioning += 1.2 * kept as f64 / spec.capacity_bytes as f64;
        spec
    })
}

fn run(spec: &Spec) -> Run {
    Run::new(&[work::slot_of(spec.clone(), Start::Full, 1)], None, 1)
}

/// Writes so many units anywhere in a set, and waits for the last.
fn overwrite(run: &mut Run, set: u16, units: u64, random: &mut Random) {
    for _ in 0..units {
        let offset = random.below((32 << 20) / UNIT) * UNIT;
        while !run.submit(DriveId(set), write(offset, UNIT as u32)) {
            run.wait(None);
        }
    }
    run.drain();
}

fn rest(run: &mut Run, milliseconds: u64) {
    let until = run.bank.now() + Duration::from_millis(milliseconds);
    run.wait(Some(until));
}

/// The longest of so many reads anywhere in a set, one at a time.
fn slowest_read(run: &mut Run, set: u16, reads: u64, random: &mut Random) -> Duration {
    let before = run.records.len();
    for _ in 0..reads {
        let offset = random.below((32 << 20) / UNIT) * UNIT;
        run.submit(DriveId(set), read(offset, UNIT as u32));
        run.drain();
    }
    run.records[before..].iter().map(work::Record::latency).max().unwrap()
}

fn health(run: &Run, set: usize) -> SetHealth {
    run.bank.health(0).sets[set].clone()
}

fn copied(run: &Run, set: usize) -> u64 {
    let set = health(run, set);
    set.media_written_bytes - set.written_bytes
}

#[test]
fn in_a_deterministic_window_dies_do_nothing_but_what_the_host_asks() {
    let mut spec = two_sets(Some(WINDOWS));
    spec.upkeep = Some(Upkeep { every_bytes: 1 << 20, bytes: 256 << 10, within_bytes: 0 });
    let mut run = run(&spec);
    let mut random = Random::new(1);
    run.bank.set_window(0, 0, Some(Window::NonDeterministic));
    overwrite(&mut run, 0, 20_000, &mut random);
    rest(&mut run, 300);
    assert_eq!(run.bank.set_window(0, 0, Some(Window::Deterministic)), Some(Window::Deterministic));
    let before = (copied(&run, 0), copied(&run, 1));
    // The other set is written over meanwhile, with all that follows from it.
    overwrite(&mut run, 1, 2_000, &mut random);
    let alone = Duration::from_nanos(5_000 + 50_000 + 20_000);
    let slowest = slowest_read(&mut run, 0, 200, &mut random);
    assert!(slowest < alone, "{slowest}");
    assert_eq!(copied(&run, 0), before.0);
    assert!(copied(&run, 1) > before.1);
    // What it owes comes afterwards.
    run.bank.set_window(0, 0, Some(Window::NonDeterministic));
    assert!(copied(&run, 0) > before.0);
    let slowest = slowest_read(&mut run, 0, 200, &mut random);
    assert!(slowest > alone, "{slowest}");
}

fn ask(run: &mut Run, window: Window) -> Window {
    run.bank.set_window(0, 0, Some(window)).unwrap()
}

fn window(run: &Run) -> SetWindow {
    health(run, 0).window.unwrap()
}

/// A drive whose first set is in a whole deterministic window.
fn in_a_whole_window() -> Run {
    let mut run = run(&two_sets(Some(WINDOWS)));
    assert_eq!(ask(&mut run, Window::NonDeterministic), Window::NonDeterministic);
    rest(&mut run, 200);
    assert_eq!(ask(&mut run, Window::Deterministic), Window::Deterministic);
    let whole = window(&run);
    assert_eq!((whole.reads_left, whole.writes_left, whole.ms_left), (500, 2, 100));
    run
}

#[test]
fn a_window_is_over_after_as_many_reads_or_writes_or_as_much_time_as_it_has_room_for() {
    let mut random = Random::new(2);
    let ends = |run: &mut Run, last: &mut dyn FnMut(&mut Run)| {
        assert_eq!((window(run).window, window(run).ended), (Window::Deterministic, 0));
        last(run);
        assert_eq!((window(run).window, window(run).ended), (Window::NonDeterministic, 1));
    };
    let mut run = in_a_whole_window();
    slowest_read(&mut run, 0, 500, &mut random);
    assert_eq!(window(&run).reads_left, 0);
    ends(&mut run, &mut |run| {
        slowest_read(run, 0, 1, &mut random);
    });

    // 48 KiB on each of four dies.
    let mut run = in_a_whole_window();
    for offset in [0, 192 << 10] {
        run.submit(DriveId(0), write(offset, 192 << 10));
        run.drain();
    }
    assert_eq!(window(&run).writes_left, 0);
    ends(&mut run, &mut |run| {
        run.submit(DriveId(0), write(0, 512));
    });

    let mut run = in_a_whole_window();
    rest(&mut run, 99);
    ends(&mut run, &mut |run| rest(run, 2));
    // Commands to another set count there.
    let mut run = in_a_whole_window();
    slowest_read(&mut run, 1, 600, &mut random);
    assert_eq!(window(&run).reads_left, 500);
}

#[test]
fn after_a_window_a_set_recovers_from_what_was_used_of_it() {
    let mut run = in_a_whole_window();
    rest(&mut run, 101);
    // All of it was used: nothing for 50 ms, and then a whole window's worth in another 150.
    let ended = window(&run).since;
    let at = |run: &mut Run, milliseconds| {
        run.wait(Some(ended + Duration::from_millis(milliseconds)));
    };
    at(&mut run, 49);
    assert_eq!(ask(&mut run, Window::Deterministic), Window::NonDeterministic);
    at(&mut run, 125);
    assert_eq!(ask(&mut run, Window::Deterministic), Window::Deterministic);
    let half = window(&run);
    assert_eq!((half.reads_left, half.writes_left, half.ms_left), (250, 1, 50));
    // A tenth of a window, left early, is made good in the least time and a tenth of the rest.
    let mut run = in_a_whole_window();
    rest(&mut run, 10);
    ask(&mut run, Window::NonDeterministic);
    assert_eq!(window(&run).ended, 0);
    rest(&mut run, 50 + 15);
    ask(&mut run, Window::Deterministic);
    assert_eq!(window(&run).reads_left, 500);
}

#[test]
fn a_window_does_not_begin_before_dies_are_done_with_what_the_drive_has_to_do() {
    let hurried = Predictable { recovery_ms: 0.0, recovery_least_ms: 0.0, ..WINDOWS };
    let mut run = run(&two_sets(Some(hurried)));
    overwrite(&mut run, 0, 20_000, &mut Random::new(3));
    // Superblocks for the window's writes are yet to be emptied.
    assert_eq!(ask(&mut run, Window::NonDeterministic), Window::NonDeterministic);
    assert_eq!(ask(&mut run, Window::Deterministic), Window::NonDeterministic);
    rest(&mut run, 1_000);
    assert_eq!(ask(&mut run, Window::Deterministic), Window::Deterministic);
}

#[test]
fn what_is_read_from_one_of_a_namespaces_sets_counts_in_that_one() {
    let mut spec = two_sets(Some(WINDOWS));
    spec.sets.namespaces = vec![Namespace { share: 1.0, sets: vec![0, 1] }];
    spec.check().unwrap();
    let mut run = run(&spec);
    for window in [Window::NonDeterministic, Window::Deterministic] {
        for set in 0..2 {
            assert_eq!(run.bank.set_window(0, set, Some(window)), Some(window));
        }
        rest(&mut run, if window == Window::NonDeterministic { 200 } else { 0 });
    }
    slowest_read(&mut run, 0, 100, &mut Random::new(4));
    let left = [0, 1].map(|set| health(&run, set).window.unwrap().reads_left);
    assert_eq!(left[0] + left[1], 2 * 500 - 100);
    assert!(left.iter().all(|left| (440..=460).contains(left)), "{left:?}");
}

#[test]
fn without_power_and_at_the_hosts_wish_the_mode_is_off() {
    let mut run = in_a_whole_window();
    assert_eq!(run.bank.set_window(0, 0, None), None);
    assert_eq!(health(&run, 0).window, None);
    let mut run = in_a_whole_window();
    run.bank.power_cut();
    assert_eq!(health(&run, 0).window, None);
    // A drive that has no windows.
    let mut none = super::windows::run(&two_sets(None));
    assert_eq!(none.bank.set_window(0, 0, Some(Window::Deterministic)), None);
}

proptest! {
    #![proptest_config(specs::cases(64))]

    #[test]
    fn a_mode_that_is_off_changes_nothing(work in work::work(), seed in proptest::num::u64::ANY) {
        let times = |windows| {
            let slot = work::slot_of(two_sets(windows), Start::Full, seed);
            let mut run = Run::new(&[slot], None, seed);
            run = run.through(&work);
            run.records.iter().map(|record| record.reaped).collect::<Vec<_>>()
        };
        prop_assert_eq!(times(Some(WINDOWS)), times(None));
    }

    #[test]
    fn nothing_is_collected_or_folded_in_a_window_and_a_write_that_needs_it_ends_it(
        (slot, uplink, _) in work::case(with_windows()),
        seed in proptest::num::u64::ANY,
    ) {
        let mut slot = slot;
        let writes = slot.spec.predictable.map_or(0, |own| own.writes);
        slot.spec.predictable = Some(Predictable { writes, longest_ms: 1e6, ..WINDOWS });
        let (unit, bytes) = (
            u64::from(slot.spec.mapping.unit_bytes),
            slot.spec.namespace_bytes(&slot.spec.sets.namespaces[0]),
        );
        let mut run = Run::new(&[slot], uplink, 1);
        run.bank.set_window(0, 0, Some(Window::NonDeterministic));
        rest(&mut run, 60_000);
        let begun = run.bank.set_window(0, 0, Some(Window::Deterministic));
        let (before, mut random) = (copied(&run, 0), Random::new(seed));
        let is_in = |run: &Run| window(run).window == Window::Deterministic;
        prop_assert_eq!(is_in(&run), begun == Some(Window::Deterministic));
        let mut left = 3_000;
        while is_in(&run) && left > 0 {
            prop_assert_eq!(copied(&run, 0), before);
            run.submit(DriveId(0), write(random.below(bytes / unit) * unit, unit as u32));
            run.drain();
            left -= 1;
        }
    }

    #[test]
    fn whatever_windows_are_asked_for_all_commands_complete_and_the_books_agree(
        (slot, uplink, _) in work::case(with_windows()),
        works in proptest::collection::vec((work::work(), 0..2_u32, 0..3_usize), 1..6),
    ) {
        prop_assert_eq!(slot.spec.check(), Ok(()));
        let mut run = Run::new(&[slot], uplink, 1);
        for (work, set, window) in works {
            let window = [None, Some(Window::Deterministic), Some(Window::NonDeterministic)][window];
            run.bank.set_window(0, set, window);
            run = run.through(&work);
            run.drain();
            prop_assert_eq!(run.bank.audit(0), Ok(()));
        }
        prop_assert!(run.records.iter().all(|record| record.reaped.is_some()));
    }
}
