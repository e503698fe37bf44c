//! A member copied by hand is pcapng to its last byte: what `takes::extents` names walks as whole
//! sections and holds every chunk.

mod world;

use format::pcapng::{Blocks, SECTION_HEADER};
use format::ChunkRecord;
use longtake_recorder::TimeRange;
use longtake_recorder::takes::{Catalog, extents};
use proptest::prelude::*;
use world::World;
use world::case::{Ending, RoundCase, Wanted, cases, config};

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
            let bytes = world.bank.peek(at, from, length as usize);
            for block in Blocks::new(&bytes) {
                let block = block.unwrap_or_else(|damage| {
                    panic!("member {at}: {damage} in the extent of {length} from {from}")
                });
                if block.kind == SECTION_HEADER
                    && let Ok((place, record)) = ChunkRecord::read(&bytes[block.offset..])
                {
                    assert_eq!(place.offset, from + block.offset as u64);
                    chunks.push(record.sequence);
                }
            }
        }
        chunks.sort_unstable();
        let listed: Vec<u64> = catalog
            .entries
            .iter()
            .filter(|e| e.place.member == at)
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
