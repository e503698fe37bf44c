//! Indexes can be rebuilt and superblocks stand twice: damage to either changes nothing of what is
//! found.

use crate::worlds::{each, round};
use base::{Duration, Random};
use chaos::case::{Ending, Faults};
use chaos::{Wanted, World};
use format::layout::SUPERBLOCK_BYTES;
use format::{Layout, Superblock};
use longtake_recorder::takes::{Catalog, Entry};
use longtake_recorder::{TimeRange, WhenFull};

const PAGE: u64 = 4096;

fn load(world: &World<'_>) -> Catalog {
    let image = world.open();
    let mut bank = world.user();
    let catalog = Catalog::load(&mut world.reader(&mut bank), &image, TimeRange::ALL);
    catalog.expect("the drives can be read")
}

fn poke(world: &World<'_>, drive: u16, offset: u64, bytes: &[u8]) {
    world.drives.hub(|hub| hub.poke(drive, offset, bytes));
}

/// Whether a copy of a drive's superblock checks.
fn is_sound(world: &World<'_>, drive: u16, offset: u64) -> bool {
    let mut bytes = vec![0; SUPERBLOCK_BYTES as usize];
    world.drives.hub(|hub| hub.media(drive).read(offset, &mut bytes));
    Superblock::read(&bytes, offset).is_ok()
}

fn garbage(random: &mut Random, length: u64) -> Vec<u8> {
    (0..length).map(|_| random.bits() as u8).collect()
}

/// Damages the index of some segments of a drive, and no chunk.
fn damage_indexes(world: &World<'_>, sound: &Catalog, drive: u16, random: &mut Random) {
    let layout = world.book.layouts[usize::from(drive)];
    let chunks: Vec<(u64, u64)> = sound
        .entries
        .iter()
        .filter(|e| e.place.member == drive)
        .map(|e| (e.place.offset, e.place.offset + u64::from(e.record.summary.length)))
        .collect();
    for segment in 0..layout.segments {
        let (start, end) = (layout.segment_offset(segment), layout.segment_offset(segment + 1));
        match random.below(4) {
            0 => {
                let ends = chunks.iter().map(|&(_, chunk_end)| chunk_end);
                let used = ends.filter(|&chunk_end| chunk_end > start && chunk_end <= end).max();
                // Any pages behind the last chunk.
                let Some(used) = used else { continue };
                let from = used + random.below((end - used) / PAGE) * PAGE;
                poke(world, drive, from, &garbage(random, end - from));
            }
            1 => {
                let at = end - 1 - random.below(96 + 440);
                if chunks.iter().any(|&(from, to)| (from..to).contains(&at)) {
                    continue;
                }
                let page = at / PAGE * PAGE;
                let mut bytes = vec![0; PAGE as usize];
                world.drives.hub(|hub| hub.media(drive).read(page, &mut bytes));
                bytes[(at - page) as usize] ^= 1 << random.below(8);
                poke(world, drive, page, &bytes);
            }
            _ => {}
        }
    }
}

#[test]
fn damaged_indexes_and_superblocks_hide_nothing() {
    let wanted = Wanted {
        endings: vec![Ending::Stop, Ending::Kill],
        faults: Faults::None,
        parity: false,
        ..Wanted::default()
    };
    each(250, &wanted, |case| {
        let mut world = World::new(&case, None);
        let mut torn = false;
        for round in &case.rounds {
            torn |= world.record(round, &mut |_| {}).superblocks_torn;
            world.judge(false);
        }
        let sound = load(&world);
        let protected = world.open().protected;
        let mut random = Random::new(case.seed);
        for (drive, like) in (0u16..).zip(&case.drives) {
            damage_indexes(&world, &sound, drive, &mut random);
            let copy = Layout::copy_offset(like.capacity_bytes);
            let (at, other) = if random.one_in(2) { (0, copy) } else { (copy, 0) };
            let length = if random.one_in(2) { PAGE } else { 65_536 };
            let bytes = garbage(&mut random, length);
            // A kill may have torn one copy: then the other is all there is.
            if is_sound(&world, drive, other) {
                poke(&world, drive, at, &bytes);
            }
        }
        // A scrub would find it, and a ring goes on in the order that is left.
        (world.scrubs, world.book.in_order) = (false, false);
        let found = load(&world);
        // What a ring was reusing when a crash came may be found by its index and not by a walk.
        let kept = |entries: &[Entry]| -> Vec<Entry> {
            let given_up = |e: &&Entry| {
                let segment = world.book.segment_of(e.place.member, e.place.offset);
                segment.is_some_and(|segment| world.book.is_given_up(e.place.member, segment))
            };
            entries.iter().filter(|e| !given_up(e)).copied().collect()
        };
        assert_eq!(kept(&found.entries), kept(&sound.entries));
        if !torn {
            assert_eq!(world.open().protected, protected);
        }
        // Another recording makes good what was damaged.
        world.record(&round(Duration::from_micros(500), Ending::Stop), &mut |_| {});
        world.judge(false);
        assert!(!world.open().superblocks_differ);
    });
}

#[test]
fn a_missing_member_is_a_gap_of_exactly_its_chunks() {
    let wanted = Wanted {
        endings: vec![Ending::Stop, Ending::Kill],
        faults: Faults::Honest,
        when_full: vec![WhenFull::Stop],
        parity: false,
        ..Wanted::default()
    };
    each(250, &wanted, |case| {
        let mut world = World::new(&case, None);
        world.run();
        let members = case.drives.len() as u16;
        for missing in (0..members).filter(|_| members > 1) {
            let whole = load(&world);
            let left = world.judge_without(&[missing], false);
            let mut expected = whole.entries.iter().filter(|e| e.place.member != missing);
            assert!(expected.all(|e| left.entries.contains(e)));
        }
    });
}
