//! A member copied by hand is pcapng to its last byte: what `takes::extents` names walks as whole
//! sections and holds every chunk.

use crate::worlds::{each, round};
use base::Duration;
use chaos::case::{Ending, Faults};
use chaos::{Case, Wanted, World};
use format::ChunkRecord;
use format::pcapng::{Blocks, SECTION_HEADER};
use longtake_recorder::takes::extents;

/// Records for a moment more, which writes the indexes that accidents left unwritten, and reads the
/// members by hand.
fn copies_are_whole(case: &Case) {
    let mut world = World::new(case, None);
    world.run();
    world.record(&round(Duration::from_micros(500), Ending::Stop), &mut |_| {});
    let catalog = world.judge(false);
    let image = world.open();
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
                let mut bytes = vec![0; (end - start) as usize];
                world.drives.hub(|hub| hub.media(at).read(start, &mut bytes));
                for block in Blocks::new(&bytes) {
                    let block = match block {
                        Ok(block) => block,
                        // A crash while a ring wrote over it: an old index, and pages of both.
                        Err(_) if segment.is_some_and(|s| world.book.is_given_up(at, s)) => break,
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
                !world.book.is_given_up(at, within / member.layout.segment_bytes)
            })
            .map(|e| e.record.sequence)
            .collect();
        let all_there = listed.iter().all(|s| chunks.binary_search(s).is_ok());
        assert!(all_there, "member {}: {:?} of {:?}", at, chunks, listed);
    }
}

fn wanted(endings: &[Ending], volatile: bool) -> Wanted {
    let endings = endings.to_vec();
    Wanted { endings, faults: Faults::None, volatile, parity: false, ..Wanted::default() }
}

#[test]
fn the_extents_of_a_member_are_whole_sections_with_all_its_chunks() {
    let wanted = wanted(&[Ending::Stop, Ending::Kill], false);
    each(300, &wanted, |case| copies_are_whole(&case));
}

#[test]
fn they_are_after_power_cuts() {
    let wanted = wanted(&[Ending::Stop, Ending::PowerCut], true);
    each(300, &wanted, |case| copies_are_whole(&case));
}
