//! Opening refuses drives that do not make up one array, and names the drive and the reason; of superblocks that differ
//! the newest sound copy counts, and the array says which copies have to be written again.

use crate::recovery::{Members, all};
use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{Bank, DriveId, Timestamp};
use format::layout::SUPERBLOCK_BYTES;
use format::superblock::Protected;
use format::{Damage, Layout, Superblock};
use longtake_recorder::ArrayImage;
use longtake_recorder::open::{OpenError, open_some};
use longtake_recorder::reader::Reader;
use uuid::Uuid;

/// Where a member's two copies lie.
fn copies(bytes: &[u8]) -> [usize; 2] {
    [0, Layout::copy_offset(bytes.len() as u64) as usize]
}

/// Changes one copy of a member's superblock.
fn change_copy(members: &mut Members, at: usize, copy: usize, change: impl Fn(&mut Superblock)) {
    let bytes = members[at].as_mut().expect("the member is present");
    let offset = copies(bytes)[copy];
    let slot = offset..offset + SUPERBLOCK_BYTES as usize;
    let mut superblock =
        Superblock::read(&bytes[slot.clone()], offset as u64).expect("a sound copy");
    change(&mut superblock);
    bytes[slot].copy_from_slice(&superblock.encode(offset as u64));
}

/// Changes both.
fn change(members: &mut Members, at: usize, change: impl Fn(&mut Superblock)) {
    for copy in 0..2 {
        change_copy(members, at, copy, &change);
    }
}

fn damage(members: &mut Members, at: usize, copy: usize) {
    let bytes = members[at].as_mut().expect("the member is present");
    let offset = copies(bytes)[copy];
    bytes[offset + 40_000] ^= 1;
}

/// Opens the members that are there with buffers of this size; also gives the name of each drive.
fn open_with(
    members: &Members,
    degraded: bool,
    buffer_bytes: usize,
) -> (Result<ArrayImage, OpenError>, Vec<String>) {
    let buffers = MemoryBuffers::new(3, buffer_bytes);
    let there = || members.iter().flatten();
    let drive = |bytes: &Vec<u8>| MemoryDrive {
        capacity_bytes: bytes.len() as u64,
        block_bytes: 512,
        ..MemoryDrive::default()
    };
    let mut bank = MemoryBank::new(there().map(drive).collect(), buffers.clone());
    for (at, bytes) in (0u16..).zip(there()) {
        bank.poke(DriveId(at), 0, bytes);
    }
    let names = bank.drives().iter().map(|drive| drive.name.clone()).collect();
    let ids = buffers.buffer_ids().collect();
    let mut reader = Reader { bank: &mut bank, memory: &buffers, buffers: ids };
    (open_some(&mut reader, degraded), names)
}

fn opened(members: &Members) -> ArrayImage {
    open_with(members, false, 64 << 10).0.expect("the array opens")
}

/// Why these members are refused, and the names of their drives. The message names what it is about.
fn refused(members: &Members) -> (OpenError, Vec<String>) {
    let (outcome, names) = open_with(members, false, 64 << 10);
    (outcome.expect_err("the array does not open"), names)
}

#[test]
fn a_drive_of_another_array_is_refused_though_its_superblock_is_newer() {
    let mut members = all();
    let expected = opened(&members).superblock.name;
    change(&mut members, 2, |s| {
        s.array = Uuid::from_u128(77);
        s.name = "strange".into();
        s.generation += 5;
    });
    let (why, names) = refused(&members);
    assert_eq!(
        why.to_string().split(':').next(),
        Some(&*format!("{} belongs to array 'strange', not to '{expected}'", names[2]))
    );
    let (drive, name) = (names[2].clone(), "strange".into());
    assert_eq!(why, OpenError::Foreign { drive, name, expected });
}

#[test]
fn a_copy_of_a_member_is_refused_beside_the_member() {
    let mut members = all();
    members[3] = members[1].clone();
    let (why, names) = refused(&members);
    let (first, second) = (names[1].clone(), names[3].clone());
    assert!(why.to_string().starts_with(&format!("{first} and {second} both say")), "{why}");
    assert_eq!(why, OpenError::Twice { first, second, member: 1 });
}

#[test]
fn a_drive_that_was_replaced_is_refused_and_its_successor_named_by_whoever_knows_it() {
    for knows in [0, 2, 3] {
        // Also by a superblock that is older than the others.
        for generations in [0, 1] {
            let mut members = all();
            (0..4)
                .filter(|&at| at != knows)
                .for_each(|at| change(&mut members, at, |s| s.generation += generations));
            change(&mut members, knows, |s| {
                s.members[1].joined_ns += 1;
                s.members[1].identity = "successor".into();
            });
            let (why, names) = refused(&members);
            let OpenError::Stale { drive, member: 1, replaced_by, .. } = &why else {
                panic!("{why}");
            };
            assert_eq!((drive, replaced_by.as_str()), (&names[1], "successor"));
            assert!(why.to_string().starts_with(&format!("{drive} was member 1 of array")));
            // What every superblock says is what counts.
            change(&mut members, 1, |s| s.members[1].joined_ns += 1);
            let image = opened(&members);
            assert!(image.superblocks_differ);
        }
    }
}

#[test]
fn a_drive_under_rebuild_is_no_member_yet() {
    let mut members = all();
    change(&mut members, 1, |s| {
        s.generation = 0;
        s.members[0].joined_ns += 1;
    });
    let (why, names) = refused(&members);
    // What it says of the others does not count: member 0 is not called out of date.
    assert!(matches!(&why, OpenError::Unfinished { drive, member: 1, .. } if *drive == names[1]));
    assert!(why.to_string().contains("is to become member 1"), "{why}");
}

#[test]
fn a_drive_that_was_cut_short_of_its_last_segment_is_refused() {
    let mut members = all();
    let layout = opened(&members).members[1].layout;
    let needed = layout.segment_offset(layout.segments) as usize;
    let whole = members[1].as_ref().map_or(0, Vec::len);
    members[1].as_mut().expect("a member").truncate(needed);
    assert!(opened(&members).superblocks_differ, "its segments are all there");
    members[1].as_mut().expect("a member").truncate(needed - 4096);
    let (why, names) = refused(&members);
    let (capacity_bytes, expected_bytes) = (needed as u64 - 4096, whole as u64);
    assert!(why.to_string().contains(&format!("has {capacity_bytes} bytes")), "{why}");
    assert_eq!(why, OpenError::Shrunk { drive: names[1].clone(), capacity_bytes, expected_bytes });
}

#[test]
fn a_drive_without_a_sound_superblock_is_refused() {
    let mut members = all();
    damage(&mut members, 1, 0);
    damage(&mut members, 1, 1);
    let (why, names) = refused(&members);
    let drive = names[1].clone();
    assert!(why.to_string().starts_with(&format!("{drive} is not a member")), "{why}");
    assert_eq!(why, OpenError::NotMember { drive, damage: Damage::BodyChecksum });
    let least = 2 * SUPERBLOCK_BYTES as usize;
    for (bytes, short) in [(4096, true), (least - 4096, true), (least, false)] {
        members[1] = Some(vec![0; bytes]);
        let (why, names) = refused(&members);
        let OpenError::NotMember { drive, damage } = why else { panic!("{why}") };
        assert_eq!((drive, damage == Damage::Short), (names[1].clone(), short));
    }
}

#[test]
fn as_many_members_may_be_missing_as_there_is_parity_and_more_only_for_reading() {
    for missing in 0..4 {
        let mut members = all();
        (0..missing).for_each(|at| members[at] = None);
        let by_parity = missing <= 2;
        let (outcome, _) = open_with(&members, false, 64 << 10);
        match outcome {
            Ok(image) => {
                assert!(by_parity, "{missing} missing");
                check_missing(&image, missing, by_parity);
            }
            Err(why) => {
                assert!(!by_parity, "{why}");
                let OpenError::Missing { members, .. } = &why else { panic!("{why}") };
                let numbers: Vec<u16> = members.iter().map(|&(at, _)| at).collect();
                assert_eq!(numbers, (0..missing as u16).collect::<Vec<_>>());
                let list: Vec<String> = members
                    .iter()
                    .map(|(at, identity)| format!("member {at} ({identity})"))
                    .collect();
                assert!(why.to_string().contains(&format!("lacks {}: name", list.join(", "))));
            }
        }
        let image = open_with(&members, true, 64 << 10).0.expect("it opens for reading");
        check_missing(&image, missing, by_parity);
    }
}

fn check_missing(image: &ArrayImage, missing: usize, by_parity: bool) {
    assert_eq!(image.remarks.len(), missing, "{:?}", image.remarks);
    for (at, remark) in image.remarks.iter().enumerate() {
        assert!(remark.starts_with(&format!("member {at} (")), "{remark}");
        assert_eq!(remark.contains("parity"), by_parity, "{remark}");
    }
    for (at, member) in image.members.iter().enumerate() {
        assert_eq!(member.is_missing(), at < missing);
        assert!(member.layout.segments > 0, "a missing member is divided as the others");
    }
}

#[test]
fn buffers_must_take_the_longest_chunk() {
    let members = all();
    let needed_bytes = opened(&members).superblock.layout.chunk_max;
    // The superblock is read whole too, so no smaller buffers than that can be tried.
    assert!(open_with(&members, false, needed_bytes as usize).0.is_ok());
    // Larger drives, whose segments take longer chunks.
    let (chunk_max, capacity_bytes) = (2 * needed_bytes, 8 << 20);
    let larger = members.iter().flatten().map(|bytes| {
        let mut superblock = Superblock::read(bytes, 0).expect("a sound copy");
        let segment_bytes = 2 * superblock.layout.segment_bytes;
        superblock.layout = Layout::new(capacity_bytes, segment_bytes, chunk_max).expect("it fits");
        let mut bytes = vec![0; capacity_bytes as usize];
        for offset in copies(&bytes) {
            let slot = offset..offset + SUPERBLOCK_BYTES as usize;
            bytes[slot].copy_from_slice(&superblock.encode(offset as u64));
        }
        Some(bytes)
    });
    let members: Members = larger.collect();
    let why = open_with(&members, false, needed_bytes as usize).0.expect_err("too small");
    assert!(why.to_string().contains(&format!("chunks of {chunk_max}")), "{why}");
    let (buffer_bytes, needed_bytes) = (needed_bytes, chunk_max);
    assert_eq!(why, OpenError::Buffers { buffer_bytes, needed_bytes });
}

/// What may have become of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copy {
    Sound(u64),
    Damaged,
}

#[test]
fn of_a_members_copies_the_newest_sound_one_counts() {
    // Generation 0 would be a drive under rebuild.
    let mut whole = all();
    (0..4).for_each(|at| change(&mut whole, at, |s| s.generation = 2));
    let base = 2;
    let kinds = [Copy::Damaged, Copy::Sound(base - 1), Copy::Sound(base), Copy::Sound(base + 1)];
    for first in kinds {
        for last in
            kinds.into_iter().filter(|&last| (first, last) != (Copy::Damaged, Copy::Damaged))
        {
            let mut members = whole.clone();
            for (copy, state) in [first, last].into_iter().enumerate() {
                match state {
                    Copy::Sound(generation) => change_copy(&mut members, 1, copy, |s| {
                        s.generation = generation;
                        s.protected.clear();
                    }),
                    Copy::Damaged => damage(&mut members, 1, copy),
                }
            }
            let what = format!("{first:?} and {last:?}");
            let generation = |copy| if let Copy::Sound(generation) = copy { generation } else { 0 };
            let own = generation(first).max(generation(last));
            let image = opened(&members);
            assert_eq!(image.superblock.generation, own.max(base), "{what}");
            let last_counts = generation(last) > generation(first);
            assert_eq!(image.first_copies_bad == [1], last_counts, "{what}");
            assert_eq!(image.first_copies_bad.is_empty(), !last_counts, "{what}");
            assert_eq!(image.superblocks_differ, first != last || own != base, "{what}");
            // A superblock that is behind is remarked on: this one, or those of the three others.
            let behind = if own < base { 1 } else { 3 * (own - base) as usize };
            assert_eq!(image.remarks.len(), behind, "{what}: {:?}", image.remarks);
            assert!(image.remarks.iter().all(|r| r.contains("missed 1 changes")), "{what}");
        }
    }
}

#[test]
fn of_copies_that_differ_and_are_equally_old_the_first_one_counts() {
    let mut members = all();
    let label = |s: &Superblock| s.protected.first().map(|range| range.label.clone());
    for (copy, name) in ["first", "last"].into_iter().enumerate() {
        change_copy(&mut members, 0, copy, |s| {
            let at = Timestamp::from_nanos(1);
            s.generation += 1;
            s.protected = vec![Protected { from: at, to: at, made: at, label: name.into() }];
        });
    }
    let image = opened(&members);
    assert_eq!(label(&image.superblock).as_deref(), Some("first"));
    assert!(image.superblocks_differ && image.first_copies_bad.is_empty());
}
