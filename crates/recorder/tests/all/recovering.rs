//! What stands in a chunk's place is taken for the chunk only if its header says all that the group's table does, and a table
//! only if it can be true: otherwise the rest of the group gives back what it can.

use base::DriveId;
use format::parity::PARITY_AT;
use format::{ChunkRecord, Place};
use longtake_recorder::TimeRange;
use longtake_recorder::open::open;
use longtake_recorder::rebuild::Plan;
use longtake_recorder::takes::{Catalog, Entry};

use crate::recovery::{FIRST, Members, all, rebuilt, with_array};
use crate::rereading::{array, chunks, header, reader_of};

/// Writes over a part of a member.
fn poke(members: &mut Members, entry: &Entry, within: usize, bytes: &[u8]) {
    let member = members[usize::from(entry.place.member)].as_mut().expect("it is there");
    let at = entry.place.offset as usize + within;
    member[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Numbers of the chunks that parity gives back to a listing, each as it was.
fn recovered(members: &mut Members) -> Vec<u64> {
    let whole = chunks();
    let catalog = with_array(members, false, |reader, image| {
        Catalog::load(reader, image, TimeRange::ALL).expect("drives that read")
    })
    .expect("the array opens");
    let mut numbers: Vec<u64> = catalog.recovered.iter().map(|n| n - FIRST).collect();
    numbers.sort_unstable();
    for n in &numbers {
        let found = catalog.entries.iter().find(|e| e.record.sequence == n + FIRST);
        assert_eq!(found, Some(&whole[*n as usize]), "it is listed as it was");
    }
    numbers
}

#[test]
fn a_chunk_in_whose_place_another_one_stands_does_not_spoil_what_its_group_gives_back() {
    let chunks = chunks();
    // Chunk 8 lies in a segment with an index, which still lists it. Chunk 7 of its group went with its member.
    let (other, gone) = (chunks[8], chunks[7]);
    let changes: [fn(&mut Place, &mut ChunkRecord); 4] = [
        |_, _| (),
        |_, record| record.sequence += 1000,
        |place, _| place.offset += 4096,
        |_, record| record.summary.length += 4096,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut members = all();
        let (mut place, mut record) = (other.place, other.record);
        change(&mut place, &mut record);
        poke(&mut members, &other, 0, &header(&other, place, |own| *own = record));
        members[usize::from(gone.place.member)] = None;
        assert!(recovered(&mut members).contains(&7), "change {at}");
    }
}

#[test]
fn parity_that_was_written_over_since_it_was_listed_is_not_used() {
    let chunks = chunks();
    // The first parity of a group of one chunk, in a segment with an index.
    let (parity, gone) = (chunks[5], chunks[4]);
    let mut members = all();
    members[usize::from(gone.place.member)] = None;
    assert!(recovered(&mut members).contains(&4));
    poke(&mut members, &parity, 0, &header(&parity, parity.place, |own| own.sequence += 1000));
    poke(&mut members, &parity, PARITY_AT, &[0xAA; 4096]);
    assert!(recovered(&mut members).contains(&4), "the second parity gives it back");
}

/// Where the only row of the table in a parity chunk says on which member its chunk lies, and where on it.
fn row_at(parity: &Entry) -> usize {
    PARITY_AT + parity.record.summary.length as usize - 4096
}

#[test]
fn a_table_that_names_a_member_which_the_array_does_not_have_is_not_believed() {
    let chunks = chunks();
    let (parity, gone) = (chunks[5], chunks[4]);
    for member in [4u16, 9, u16::MAX] {
        let mut members = all();
        poke(&mut members, &parity, row_at(&parity) + 20, &member.to_le_bytes());
        members[usize::from(gone.place.member)] = None;
        assert!(recovered(&mut members).contains(&4), "member {member}");
    }
}

#[test]
fn a_table_that_names_a_place_where_no_chunk_can_lie_makes_nobody_read_there() {
    let chunks = chunks();
    let (parity, hidden) = (chunks[5], chunks[4]);
    let capacity = all()[usize::from(hidden.place.member)].as_ref().map_or(0, Vec::len) as u64;
    for offset in [hidden.place.offset + 512, capacity - 4096, 1 << 62] {
        let mut members = all();
        poke(&mut members, &parity, row_at(&parity) + 8, &offset.to_le_bytes());
        // Damage before it hides the chunk from a walk.
        poke(&mut members, &chunks[2], 3000, &[0xAA]);
        let (mut bank, memory) = array(4);
        for (at, bytes) in (0u16..).zip(members.iter().flatten()) {
            bank.bank.poke(DriveId(at), 0, bytes);
        }
        let mut reader = reader_of(&mut bank, &memory);
        let image = open(&mut reader).expect("the array opens");
        let catalog = Catalog::load(&mut reader, &image, TimeRange::ALL).expect("drives that read");
        // The bank of this array takes no command that it would refuse: the reader asks for none.
        let has = |n: usize| catalog.entries.contains(&chunks[n]);
        assert!(has(12), "what another group's table says is found behind the damage");
        assert!(has(4), "what the group's other table says is found behind the damage");
    }
}

#[test]
fn a_damaged_chunk_is_made_again_first_if_a_lost_members_parity_is_of_it() {
    let chunks = chunks();
    // Both are of one group, whose second parity was on the last member.
    for damaged in [chunks[0], chunks[1]] {
        let mut members = all();
        poke(&mut members, &damaged, 3000, &[0xAA]);
        members[3] = None;
        rebuilt(&mut members, 3);
        let (made, whole) = (members[3].as_ref().expect("it was made"), &all()[3]);
        let parity = chunks[3];
        let (from, length) = (parity.place.offset as usize, parity.record.summary.length as usize);
        assert!(
            made[from..from + length] == whole.as_ref().expect("it is there")[from..from + length]
        );
    }
}

#[test]
fn a_listing_reads_a_page_of_each_chunk_beside_a_lost_one_and_the_front_and_end_of_its_parity() {
    let chunks = chunks();
    let (mut bank, memory) = array(4);
    let mut reader = reader_of(&mut bank, &memory);
    let mut image = open(&mut reader).expect("the array opens");
    image.members[3].segments.clear();
    image.members[3].head = None;
    let mut read = |parity| {
        let mut image = image.clone();
        image.superblock.parity = parity;
        let before = reader.bank.bytes;
        Catalog::load(&mut reader, &image, TimeRange::ALL).expect("drives that read");
        reader.bank.bytes - before
    };
    // Groups that lack chunks 7 and 13: their chunks, and their parity, as far as they are on other members.
    let (pages, parities) = ([8, 11, 12], [9, 10, 14]);
    let here = |at: &usize| chunks[*at].place.member != 3;
    assert!(pages.iter().chain(&parities).all(here) && !here(&7) && !here(&13));
    let more = read(2) - read(0);
    assert_eq!(more, pages.len() as u64 * 4096 + parities.len() as u64 * (8192 + 4096));
}

#[test]
fn a_chunk_that_a_table_names_at_the_very_end_of_a_members_segments_is_found_there() {
    let chunks = chunks();
    let (parity, hidden) = (chunks[5], chunks[4]);
    let mut members = all();
    let layout = with_array(&mut all(), false, |_, image| {
        image.members[usize::from(hidden.place.member)].layout
    });
    let layout = layout.expect("the array opens");
    let length = hidden.record.summary.length as usize;
    let end = layout.segment_offset(layout.segments);
    let place = Place { offset: end - length as u64, ..hidden.place };
    let moved = Entry { place, ..hidden };
    let member = members[usize::from(place.member)].as_ref().expect("it is there");
    let bytes = member[hidden.place.offset as usize..][..length].to_vec();
    poke(&mut members, &moved, 0, &bytes);
    poke(&mut members, &moved, 0, &header(&hidden, place, |_| ()));
    poke(&mut members, &parity, row_at(&parity) + 8, &place.offset.to_le_bytes());
    // Damage before it hides the chunk, where it was, from a walk.
    poke(&mut members, &chunks[2], 3000, &[0xAA]);
    let catalog = with_array(&mut members, false, |reader, image| {
        Catalog::load(reader, image, TimeRange::ALL).expect("drives that read")
    });
    let catalog = catalog.expect("the array opens");
    assert!(catalog.entries.contains(&moved) && catalog.recovered.is_empty());
}

#[test]
fn parity_of_a_group_of_which_a_chunk_is_gone_for_good_is_named_as_what_a_rebuild_can_not_make() {
    let chunks = chunks();
    // The second parity of chunks 7 and 8 went with its member.
    let lost = usize::from(chunks[10].place.member);
    let without = |damage: &[(usize, usize)]| {
        let mut members = all();
        members[lost] = None;
        damage
            .iter()
            .for_each(|&(at, within)| poke(&mut members, &chunks[at], within, &[0xAA; 64]));
        let planned = with_array(&mut members, false, |reader, image| {
            let catalog = Catalog::load(reader, image, TimeRange::ALL).expect("drives that read");
            let plan = Plan::new(reader, image, &catalog, lost as u16, None);
            plan.expect("drives that read").groups_without
        });
        planned.expect("the array opens")
    };
    assert_eq!(without(&[]), 0);
    // The first parity gives back either one, but not both. Chunk 8 stays listed, by its segment's index.
    assert_eq!(without(&[(7, 0)]), 0);
    assert_eq!(without(&[(7, 0), (8, 4096)]), 1);
}
