//! An array as it would be found after it was made on simulated drives, put together in memory.

use base::{Bank, DriveId, Instant, NoBuffers, Timestamp};
use format::superblock::Member;
use format::{Layout, Superblock};
use recorder::WhenFull;
use recorder::create::{CreateError, Plan, layouts};
use recorder::open::{ArrayImage, Live, MemberImage, Segment};
use ssd::{SimBank, Start};
use uuid::Uuid;

use super::Mission;

/// When missions start, in ns since 1970: 2026-01-01.
pub const EPOCH_NS: u64 = 1_767_225_600_000_000_000;

/// A moment of a mission's clock as packets carry it.
pub fn time(at: Instant) -> Timestamp {
    Timestamp::from_nanos(EPOCH_NS + at.as_nanos())
}

/// The array. On a ring, drives that are full in the beginning hold older takes, a second before the mission, oldest first.
pub fn image(mission: &Mission, bank: &SimBank<NoBuffers>) -> Result<ArrayImage, CreateError> {
    let uuid = Uuid::from_u128(0xA44A);
    let each = mission.namespaces();
    // The first namespaces of all drives, then the second ones, as in [`parts`].
    let order =
        || (0..each).flat_map(|part| (0..mission.drives.len()).map(move |at| at * each + part));
    let identities: Vec<String> = bank.drives().iter().map(|drive| drive.name.clone()).collect();
    let plan = Plan {
        uuid,
        name: "mission".to_owned(),
        created: time(Instant::START),
        segment_bytes: mission.segment_bytes,
        chunk_max: Some(mission.chunk.bytes.max(format::layout::CHUNK_MAX_LEAST)),
        identities,
        trim: false,
        parity: 0,
    };
    let layouts = layouts(bank, &plan)?;
    let member = |at: usize| {
        let drive = &bank.drives()[at];
        Member { capacity_bytes: drive.capacity_bytes, identity: drive.name.clone(), joined_ns: 0 }
    };
    let table: Vec<Member> = order().map(member).collect();
    let members = order().map(|at| {
        let older =
            mission.when_full == WhenFull::Wrap && mission.drives[at / each].start != Start::Empty;
        member_image(DriveId(at as u16), &layouts[at], older)
    });
    let members: Vec<MemberImage> = members.collect();
    Ok(ArrayImage {
        uuid,
        superblock: Superblock {
            array: uuid,
            name: "mission".to_owned(),
            member: 0,
            members: table,
            layout: layouts[0],
            created: time(Instant::START),
            generation: 1,
            protected: Vec::new(),
            parity: 0,
        },
        next_sequence: 2 + layouts.iter().map(|layout| layout.segments).max().unwrap_or(0),
        members,
        protected: Vec::new(),
        superblocks_differ: false,
        first_copies_bad: Vec::new(),
        remarks: Vec::new(),
        written: None,
    })
}

/// The part of each member that is written at a time if sets are separate: a namespace of each drive.
pub fn parts(mission: &Mission) -> Vec<u16> {
    let drives = mission.drives.len();
    (0..mission.namespaces() as u16).flat_map(|part| std::iter::repeat_n(part, drives)).collect()
}

/// A member whose segments are empty, or each hold a chunk of an `older` take.
fn member_image(drive: DriveId, layout: &Layout, older: bool) -> MemberImage {
    let segment = |number: u64| {
        if !older {
            return Segment::Empty;
        }
        let ns = EPOCH_NS - 1_000_000_000 + number;
        let sequence = 1 + number;
        Segment::Live(Live {
            first_sequence: sequence,
            last_sequence: sequence,
            first_ns: ns,
            last_ns: ns,
            indexed: true,
            chunks: 1,
        })
    };
    MemberImage {
        drive,
        layout: *layout,
        segments: (0..layout.segments).map(segment).collect(),
        head: None,
        unindexed: Vec::new(),
        trims: true,
        lost_segment: false,
        untimed: Vec::new(),
    }
}
