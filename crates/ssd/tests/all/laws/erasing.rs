//! When blocks are erased: by the time they are programmed, ahead where a die has time, and each once for each time it is filled.

use base::{Bank, DriveId, Duration, Operation};
use longtake_ssd::{Erases, Spec, Start};
use proptest::prelude::*;

use super::specs;
use crate::drives;
use crate::laws::work::{self, Run, write};

const BLOCK: u32 = 64 << 10;

/// Full, and written over as fast as it goes, so that everything that is free is stale.
fn overwritten(spec: &Spec) -> Run {
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Full, 1)], None, 1);
    for _ in 0..2 {
        overwrite(&mut run, spec.capacity_bytes);
    }
    run
}

/// Writes this much from the start on, as fast as it goes; returns what was erased meanwhile.
fn overwrite(run: &mut Run, bytes: u64) -> Erases {
    let before = run.bank.health(0).erases;
    let mut offset = 0;
    run.closed_loop(16, (bytes / u64::from(BLOCK)) as u32, || {
        let at = offset;
        offset += u64::from(BLOCK);
        write(at, BLOCK)
    });
    // What is still in the buffer is programmed too.
    run.flush();
    let after = run.bank.health(0).erases;
    Erases {
        blocks: after.blocks - before.blocks,
        ahead: after.ahead - before.ahead,
        waited_for: after.waited_for - before.waited_for,
        wait_ns: after.wait_ns - before.wait_ns,
    }
}

fn trim(run: &mut Run, bytes: u64) {
    assert!(run.submit(DriveId(0), Operation::Trim { offset: 0, length: bytes }));
    run.drain();
}

fn rest(run: &mut Run, time: Duration) {
    run.wait(Some(run.bank.now() + time));
}

#[test]
fn what_was_trimmed_and_left_alone_is_programmed_without_waiting_for_an_erase() {
    let spec = drives::small();
    let mut run = overwritten(&spec);
    let part = spec.capacity_bytes / 2;
    let stale = overwrite(&mut run, part);
    assert!(stale.waited_for > 0 && stale.ahead < stale.blocks / 4, "{stale:?}");
    let before = run.bank.health(0).erases;
    trim(&mut run, spec.capacity_bytes);
    rest(&mut run, Duration::from_secs(1));
    let erased = run.bank.health(0).erases;
    assert!(erased.blocks > before.blocks, "the trim left something to erase");
    assert_eq!(erased.waited_for, before.waited_for, "nobody was there to wait");
    let ready = overwrite(&mut run, part);
    assert_eq!((ready.waited_for, ready.wait_ns), (0, 0), "{ready:?}");
    assert_eq!(run.bank.audit(0), Ok(()));
}

#[test]
fn without_a_rest_a_trim_spares_no_program_its_wait() {
    let spec = drives::small();
    let part = spec.capacity_bytes / 2;
    let stale = overwrite(&mut overwritten(&spec), part);
    let mut run = overwritten(&spec);
    trim(&mut run, spec.capacity_bytes);
    let trimmed = overwrite(&mut run, part);
    // What the drive has time for is to begin on a block of each die when the trim comes.
    let dies = u64::from(spec.flash.dies());
    assert!(trimmed.waited_for + 3 * dies >= stale.waited_for, "{trimmed:?}, {stale:?}");
}

/// Writing a part of it over as fast as it goes: nanoseconds of virtual time, and what was erased.
fn overwrite_timed(run: &mut Run, bytes: u64) -> (u64, Erases) {
    let begins = run.bank.now();
    let erases = overwrite(run, bytes);
    (run.bank.now().since(begins).as_nanos(), erases)
}

#[test]
fn a_drive_that_begins_overwritten_is_as_slow_as_one_that_was_written_twice_and_a_full_one_is_not()
{
    for spec in [drives::small(), drives::cached()] {
        let part = spec.capacity_bytes / 2;
        let (written_ns, written) = overwrite_timed(&mut overwritten(&spec), part);
        let begun = |start| {
            let mut run = Run::new(&[work::slot_of(spec.clone(), start, 1)], None, 1);
            let timed = overwrite_timed(&mut run, part);
            assert_eq!(run.bank.audit(0), Ok(()));
            timed
        };
        let (begun_ns, erases) = begun(Start::Overwritten);
        let ratio = begun_ns as f64 / written_ns as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}: {erases:?}, {written:?}");
        let (full_ns, full) = begun(Start::Full);
        assert!(full_ns < begun_ns, "{full_ns} ns full, {begun_ns} ns overwritten");
        assert!(full.waited_for < erases.waited_for, "{full:?}, {erases:?}");
    }
}

/// Whether all that was free is erased.
fn rested(spec: &Spec) -> Erases {
    let mut run = overwritten(spec);
    rest(&mut run, Duration::from_secs(2));
    overwrite(&mut run, spec.capacity_bytes / 8)
}

#[test]
fn spare_flash_is_erased_in_a_rest_without_any_trim() {
    let spec = drives::small();
    let spared = rested(&spec);
    assert_eq!(spared.waited_for, 0, "{spared:?}: an eighth fits into the spare flash");
}

proptest! {
    #![proptest_config(specs::cases(40))]

    #[test]
    fn dies_erase_as_often_as_superblocks_count((mut slot, uplink, work) in work::case(specs::nand())) {
        slot.spec.upkeep = None;
        let mut run = Run::of(&slot, uplink, &work);
        run.flush();
        // Until all that some die has begun on is erased by the others.
        rest(&mut run, Duration::from_secs(3600));
        let health = run.bank.health(0);
        let dies = f64::from(slot.spec.flash.dies() / slot.spec.sets.count);
        let superblocks = f64::from(slot.spec.of_drive(slot.seed).superblocks_of_set());
        let counted: f64 = health.sets.iter().map(|set| set.erases_mean * superblocks * dies).sum();
        prop_assert!((health.erases.blocks as f64 - counted).abs() < 1e-3, "{health:?}");
        prop_assert!(health.erases.waited_for <= health.erases.blocks);
        prop_assert!(health.erases.ahead <= health.erases.blocks);
    }
}
