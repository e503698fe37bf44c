//! A member copied by hand is pcapng to its last byte: what `takes::extents` names walks as whole
//! sections and holds every chunk.

use crate::world::World;
use crate::world::case::{Ending, RoundCase, Wanted, cases, config};
use format::ChunkRecord;
use format::pcapng::{Blocks, SECTION_HEADER};
use longtake_recorder::TimeRange;
use longtake_recorder::takes::{Catalog, extents};
use proptest::prelude::*;

/// Records for a moment more, which writes the indexes that accidents left unwritten, and reads the
/// members by hand.
fn copies_are_whole(mut world: World) {
    world.round_and_judge(&RoundCase {
        length_us: 500,
        ending: Ending::Stop,
        steps_more: 0,
        faults: Vec::new(),
        protections: Vec::new(),
    });
    let image = world.open(&[]);
    let mut bank = world.bank.another(|_| true);
    let catalog = Catalog::load(&mut world.reader(&mut bank), &image, TimeRange::ALL).unwrap();
    for (at, member) in (0u16..).zip(&image.members) {
        let mut chunks = Vec::new();
        for (from, length) in extents(member) {
            // No section crosses a segment's end: what is before the data, then each segment.
            let layout = &member.layout;
            let mut start = from;
            while start < from + length {
                let data = layout.segment_offset(0);
                let segment = start.checked_sub(data).map(|at| at / layout.segment_bytes);
                let end = segment.map_or(data, |s| layout.segment_offset(s + 1)).min(from + length);
                let bytes = world.bank.peek(at, start, (end - start) as usize);
                for block in Blocks::new(&bytes) {
                    let block = match block {
                        Ok(block) => block,
                        // A crash while a ring wrote over it: an old index, and pages of both.
                        Err(_) if segment.is_some_and(|s| world.is_given_up(at, s)) => break,
                        Err(damage) => panic!("member {at}: {damage} in {start}..{end}"),
                    };
                    if block.kind == SECTION_HEADER
                        && let Ok((place, record)) = ChunkRecord::read(&bytes[block.offset..])
                    {
                        assert_eq!(place.offset, start + block.offset as u64);
                        chunks.push(record.sequence);
                    }
                }
                start = end;
            }
        }
        chunks.sort_unstable();
        let listed: Vec<u64> = catalog
            .entries
            .iter()
            .filter(|e| e.place.member == at)
            .filter(|e| {
                let within = e.place.offset - member.layout.segment_offset(0);
                !world.is_given_up(at, within / member.layout.segment_bytes)
            })
            .map(|e| e.record.sequence)
            .collect();
        let all_there = listed.iter().all(|s| chunks.binary_search(s).is_ok());
        assert!(all_there, "member {}: {:?} of {:?}", at, chunks, listed);
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn the_extents_of_a_member_are_whole_sections_with_all_its_chunks(
        case in cases(Wanted { faults: None, ..Wanted::default() })
    ) {
        copies_are_whole(World::run(case));
    }

    #[test]
    fn they_are_after_power_cuts(
        case in cases(Wanted {
            faults: None,
            endings: vec![Ending::Stop, Ending::PowerCut],
            volatile: true,
            ..Wanted::default()
        })
    ) {
        copies_are_whole(World::run(case));
    }
}
