//! Indexes can be rebuilt and superblocks stand twice: damage to either changes nothing of what is
//! found.

use crate::world::World;
use crate::world::case::{Ending, RoundCase, Wanted, cases, config};
use base::Random;
use format::Layout;
use longtake_recorder::takes::{Catalog, Entry};
use longtake_recorder::{TimeRange, WhenFull};
use proptest::prelude::*;

fn load(world: &World, missing: &[u16]) -> Catalog {
    let image = world.open(missing);
    let mut bank = world.bank.another(|d| !missing.contains(&d));
    let mut reader = world.reader(&mut bank);
    Catalog::load(&mut reader, &image, TimeRange::ALL).expect("the drives can be read")
}

fn garbage(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.bits() as u8).collect()
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn damaged_indexes_and_superblocks_hide_nothing(
        case in cases(Wanted { faults: None, ..Wanted::default() }),
        seed in any::<u64>(),
    ) {
        let mut world = World::run(case);
        let sound = load(&world, &[]);
        let mut random = Random::new(seed);
        let layouts = world.bank.watch(|w| w.layouts.clone());
        for (drive, layout) in (0u16..).zip(&layouts) {
            for segment in 0..layout.segments {
                let end = layout.segment_offset(segment + 1);
                match random.below(4) {
                    0 => {
                        let used = sound
                            .entries
                            .iter()
                            .filter(|e| e.place.member == drive)
                            .map(|e| e.place.offset + u64::from(e.record.summary.length))
                            .filter(|&e| e <= end && e > end - layout.segment_bytes)
                            .max();
                        // Any pages behind the last chunk.
                        let Some(used) = used else { continue };
                        let pages = (end - used) / 4096;
                        let from = used + random.below(pages) * 4096;
                        let bytes = garbage(&mut random, (end - from) as usize);
                        world.bank.poke(drive, from, &bytes);
                    }
                    1 => {
                        let at = end - 1 - random.below(96 + 440);
                        let mut byte = world.bank.peek(drive, at, 1);
                        byte[0] ^= 1 << random.below(8);
                        let sound_chunk = sound.entries.iter().any(|e| {
                            let start = e.place.offset;
                            e.place.member == drive
                                && (start..start + u64::from(e.record.summary.length)).contains(&at)
                        });
                        if !sound_chunk {
                            world.bank.poke(drive, at, &byte);
                        }
                    }
                    _ => {}
                }
            }
            let capacity = world.case.drives()[usize::from(drive)].capacity_bytes;
            let at = if random.one_in(2) { 0 } else { Layout::copy_offset(capacity) };
            let length = if random.one_in(2) { 4096 } else { 65_536 };
            let bytes = garbage(&mut random, length);
            world.bank.poke(drive, at, &bytes);
        }
        let found = load(&world, &[]);
        // What a ring was reusing when a crash came may be found by its index and not by a walk.
        let kept = |entries: &[Entry]| -> Vec<Entry> {
            let segment = |e: &Entry| {
                let layout = &layouts[usize::from(e.place.member)];
                (e.place.offset - layout.segment_offset(0)) / layout.segment_bytes
            };
            let kept = entries.iter().filter(|e| !world.is_given_up(e.place.member, segment(e)));
            kept.copied().collect()
        };
        prop_assert_eq!(kept(&found.entries), kept(&sound.entries));
        if !world.torn {
            prop_assert_eq!(&world.open(&[]).protected, &world.protected);
        }
        // Another recording makes good what was damaged.
        world.round_and_judge(&RoundCase {
            length_us: 500,
            ending: Ending::Stop,
            steps_more: 0,
            faults: Vec::new(),
            protections: Vec::new(),
        });
        prop_assert!(!world.open(&[]).superblocks_differ);
    }

    #[test]
    fn a_missing_member_is_a_gap_of_exactly_its_chunks(
        case in cases(Wanted { when_full: vec![WhenFull::Stop], ..Wanted::default() }),
        keep in any::<u8>(),
    ) {
        let mut world = World::run(case);
        let members = world.case.members.len() as u16;
        for missing in (0..members).filter(|m| members > 1 && keep & 1 << m == 0) {
            let whole = load(&world, &[]);
            let left = world.judge(&[missing], false);
            let expected: Vec<_> =
                whole.entries.iter().filter(|e| e.place.member != missing).copied().collect();
            prop_assert!(expected.iter().all(|e| left.entries.contains(e)));
        }
    }
}
