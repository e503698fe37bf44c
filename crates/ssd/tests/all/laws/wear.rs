//! Laws of wear: superblocks are erased as often as what was written needs, each set's on its own, and evenly.

use base::{Bank, DriveId, Random};
use longtake_ssd::spec::{Collector, Endurance, Upkeep};
use longtake_ssd::{Spec, Start, Uplink};
use proptest::prelude::*;

use super::specs;
use crate::drives;
use crate::laws::mapping::ftl_of;
use crate::laws::work::{self, Run, write};

/// Bytes of a write.
const BLOCK: u64 = 64 << 10;

proptest! {
    #![proptest_config(specs::cases(40))]

    #[test]
    fn erases_are_what_the_media_took((mut slot, uplink, work) in work::case(specs::nand())) {
        slot.start = Start::Empty;
        slot.spec.upkeep = None;
        let run = Run::of(&slot, uplink, &work);
        for set in &run.bank.health(0).sets {
            // What its bad blocks have left it.
            let superblocks = f64::from(slot.spec.of_drive(slot.seed).superblocks_of_set());
            let superblock = set.physical_bytes as f64 / superblocks;
            let fills = set.media_written_bytes as f64 / superblock;
            let erases = set.erases_mean * superblocks;
            prop_assert!(f64::from(set.erases_max) >= set.erases_mean);
            // Each superblock has been filled once more than it was erased at most. A cache's hold less, so they are filled more often.
            prop_assert!(fills <= erases + superblocks + 1e-6, "{fills} fills, {erases} erases");
            if slot.spec.cache.is_none() {
                prop_assert!(erases <= fills + 1e-6, "{erases} erases for {fills} fills");
            }
            let Endurance { cycles, used, .. } = slot.spec.endurance;
            let life = used + set.erases_mean / f64::from(cycles);
            prop_assert!((set.life_used - life).abs() < 1e-12);
        }
    }
}

#[test]
fn each_set_wears_by_what_is_written_to_it() {
    let slot = work::slot_of(drives::in_sets(), Start::Empty, 1);
    let none: Option<Uplink> = None;
    let mut run = Run::new(&[slot], none, 1);
    let bytes = base::Bank::drives(&run.bank)[0].capacity_bytes;
    for pass in 0..4 {
        for offset in (0..bytes).step_by(128 << 10) {
            while !run.submit(DriveId(0), write(offset, 128 << 10)) {
                run.wait(None);
            }
        }
        let health = run.bank.health(0);
        assert_eq!(health.sets[1].written_bytes, 0, "pass {pass}");
    }
    run.drain();
    let [used, idle] = &run.bank.health(0).sets[..] else { panic!("two sets") };
    assert!(used.erases_mean > 1.0 && used.life_used > 0.0, "{used:?}");
    assert_eq!((idle.erases_max, idle.media_written_bytes), (0, 0), "{idle:?}");
}

#[test]
fn superblocks_wear_evenly_under_even_writing() {
    for collector in [Collector::Greedy, Collector::Fifo, Collector::CostBenefit] {
        let mut spec = drives::small();
        spec.mapping.collector = collector;
        let (mut ftl, mut flash) = ftl_of(&spec, 1);
        let mut random = Random::new(2);
        for _ in 0..40 * ftl.setup().units {
            ftl.write(random.below(u64::from(ftl.setup().units)) as u32, 1, &mut flash);
        }
        let (mean, most) = ftl.erases();
        assert!(f64::from(most) <= 1.3 * mean, "{collector:?}: {most} at most, {mean} on average");
    }
}

/// Bytes that a drive of this seed takes while empty until it writes for itself.
fn first_upkeep(spec: &Spec, seed: u64) -> u64 {
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, seed)], None, 1);
    for block in 0..spec.capacity_bytes / BLOCK {
        run.closed_loop(1, 1, || write(block * BLOCK, BLOCK as u32));
        let set = &run.bank.health(0).sets[0];
        if set.media_written_bytes > set.written_bytes {
            return set.written_bytes;
        }
    }
    panic!("it never did")
}

#[test]
fn drives_of_one_kind_write_for_themselves_at_times_of_their_own() {
    let mut spec = drives::small();
    let program = spec.flash.program_bytes();
    let every_bytes = 8 << 20;
    spec.upkeep = Some(Upkeep { every_bytes, bytes: 64 * program, within_bytes: 0 });
    let first: Vec<u64> = (1..=6).map(|seed| first_upkeep(&spec, seed)).collect();
    assert!(first.iter().all(|&bytes| bytes <= every_bytes + BLOCK), "{first:?}");
    let mut apart = first.clone();
    apart.sort_unstable();
    apart.dedup();
    assert!(apart.len() > 3, "they stall alike: {first:?}");
}

/// Bytes a second of each 512 KiB of a drive that is written in order.
fn rates(upkeep: Upkeep) -> Vec<f64> {
    let spec = Spec { upkeep: Some(upkeep), ..drives::small() };
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Empty, 1)], None, 1);
    let mut offset = 0;
    let window = |_| {
        let begun = run.bank.now();
        run.closed_loop(8, 8, || {
            let at = offset;
            offset += 1 << 16;
            write(at, 1 << 16)
        });
        (1 << 19) as f64 / run.bank.now().since(begun).as_secs_f64()
    };
    (0..spec.capacity_bytes >> 19).map(window).collect()
}

#[test]
fn upkeep_that_is_spread_slows_the_host_and_at_once_stops_it_for_the_same_time() {
    let bytes = 4 << 20;
    let upkeep = |within_bytes| Upkeep { every_bytes: 24 << 20, bytes, within_bytes };
    let (at_once, spread) = (rates(upkeep(0)), rates(upkeep(8 << 20)));
    let sorted = |rates: &[f64]| {
        let mut sorted = rates.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    };
    let usual = sorted(&spread)[3 * spread.len() / 4];
    // While 8 MiB come from the host, the flash takes 12.
    let slowed = spread.iter().filter(|&&rate| (rate / usual - 2.0 / 3.0).abs() < 0.1).count();
    assert!(slowed >= 24, "{slowed} of {} windows at two thirds", spread.len());
    let [once, over] = [sorted(&at_once)[0], sorted(&spread)[0]];
    assert!(once < 0.12 * usual && over > 0.3 * usual, "{once}, {over} of {usual}");
    let seconds = |rates: &[f64]| rates.iter().map(|rate| 1.0 / rate).sum::<f64>();
    assert!((seconds(&spread) / seconds(&at_once) - 1.0).abs() < 0.03, "the same work");
}
