//! An array with two parities loses members, chunks and pages: what parity can give back is had as it was, what it
//! can't is a gap as ever, and a member that is made anew holds what the lost one held.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{DriveId, Timestamp};
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Count, Interface, Superblock};
use longtake_recorder as recorder;
use recorder::extract::{Unreadable, Visitor, extract};
use recorder::open::{OpenError, open, open_some};
use recorder::reader::Reader;
use recorder::rebuild::{self, Plan, Rebuilt};
use recorder::scrub::{Fault, Finding, Options, Repair, Scrubbed, Step, scrub};
use recorder::superblocks::store;
use recorder::takes::{Catalog, Entry};
use recorder::{ArrayImage, TimeRange};

const GOLDEN: [&[u8]; 4] = [
    include_bytes!("../../../format/tests/golden/parity0.bin"),
    include_bytes!("../../../format/tests/golden/parity1.bin"),
    include_bytes!("../../../format/tests/golden/parity2.bin"),
    include_bytes!("../../../format/tests/golden/parity3.bin"),
];
/// The first chunk's sequence number.
pub const FIRST: u64 = 1_800_000_000_000_000;
/// The chunk that no parity is of, on member 0, from there.
const ALONE: u64 = 15;
const EVER: TimeRange = TimeRange::ALL;

/// Members' bytes; None for those that are gone.
pub type Members = Vec<Option<Vec<u8>>>;

pub fn all() -> Members {
    GOLDEN.iter().map(|bytes| Some(bytes.to_vec())).collect()
}

fn without(missing: &[usize]) -> Members {
    let mut members = all();
    missing.iter().for_each(|&at| members[at] = None);
    members
}

/// Opens those members that are there, and hands on what was found; returns the members as they are then.
pub fn with_array<T>(
    members: &mut Members,
    degraded: bool,
    use_it: impl FnOnce(&mut Reader<'_, MemoryBank, MemoryBuffers>, &ArrayImage) -> T,
) -> Result<T, OpenError> {
    let buffers = MemoryBuffers::new(4, 64 << 10);
    let there = members.iter().flatten();
    let drive = |bytes: &Vec<u8>| MemoryDrive {
        capacity_bytes: bytes.len() as u64,
        block_bytes: 512,
        ..MemoryDrive::default()
    };
    let mut bank = MemoryBank::new(there.clone().map(drive).collect(), buffers.clone());
    for (at, bytes) in (0u16..).zip(there) {
        bank.poke(DriveId(at), 0, bytes);
    }
    let names = buffers.buffer_ids().collect();
    let mut reader = Reader { bank: &mut bank, memory: &buffers, buffers: names };
    let image = open_some(&mut reader, degraded)?;
    let found = use_it(&mut reader, &image);
    for (at, bytes) in (0u16..).zip(members.iter_mut().flatten()) {
        *bytes = bank.peek(DriveId(at), 0, bytes.len());
    }
    Ok(found)
}

/// What comes out of an extraction.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Every packet's time and bytes, in order.
    pub packets: Vec<(u64, Vec<u8>)>,
    pub recovered: Vec<u64>,
    pub lost: Vec<u64>,
}

impl Visitor for Packets {
    type Error = Infallible;
    fn packet(
        &mut self,
        _: &Interface,
        packet: &ReadPacket<'_>,
        _: &Block<'_>,
        _: &ChunkRecord,
    ) -> Result<(), Infallible> {
        self.packets.push((packet.time, packet.data.to_vec()));
        Ok(())
    }
    fn blocks(&mut self, _: &[Interface], _: &[u8], _: &ChunkRecord) -> Result<bool, Infallible> {
        Ok(false)
    }
    fn recovered(&mut self, entry: &Entry, _: &Unreadable) -> Result<(), Infallible> {
        self.recovered.push(entry.record.sequence - FIRST);
        Ok(())
    }
    fn lost(&mut self, entry: &Entry, _: &Unreadable) -> Result<(), Infallible> {
        self.lost.push(entry.record.sequence - FIRST);
        Ok(())
    }
    fn progress(&mut self, _: u64, _: u64) -> Result<(), Infallible> {
        Ok(())
    }
}

/// What is listed of an array's members, and what comes of it.
pub fn read_of(
    reader: &mut Reader<'_, MemoryBank, MemoryBuffers>,
    image: &ArrayImage,
    range: TimeRange,
) -> (Packets, Catalog) {
    let catalog = Catalog::load(reader, image, range).expect("drives that read");
    let mut packets = Packets::default();
    extract(reader, image, &catalog.entries, range, None, &mut packets).expect("nothing fails");
    (packets, catalog)
}

pub fn read(members: &mut Members, range: TimeRange) -> (Packets, Catalog) {
    with_array(members, false, |reader, image| read_of(reader, image, range))
        .expect("the array opens")
}

fn scrubbed(members: &mut Members, repair: bool) -> (Scrubbed, Vec<Finding>) {
    with_array(members, false, |reader, image| {
        let catalog = Catalog::load(reader, image, EVER).expect("drives that read");
        let mut findings = Vec::new();
        let each = |step: Step<'_>| {
            if let Step::Found(finding) = step {
                findings.push(finding.clone());
            }
        };
        let options = Options { repair, ..Options::default() };
        let done = scrub(reader, image, &catalog, options, each).expect("the drives work");
        (done, findings)
    })
    .expect("the array opens")
}

/// The chunks of the whole array, by their numbers from 0.
fn entries() -> BTreeMap<u64, Entry> {
    let (_, catalog) = read(&mut all(), EVER);
    catalog.entries.iter().map(|e| (e.record.sequence - FIRST, *e)).collect()
}

/// Each group's data chunks and its parity chunks. One chunk has no parity.
const GROUPS: [(&[u64], &[u64]); 6] = [
    (&[0, 1], &[2, 3]),
    (&[4], &[5, 6]),
    (&[7, 8], &[9, 10]),
    (&[11, 12, 13], &[14]),
    (&[ALONE], &[]),
    (&[16], &[17, 18]),
];

/// The data chunks that are lost for good if these members are gone: more of a group than parities are left.
fn lost_for_good(entries: &BTreeMap<u64, Entry>, gone: &[usize]) -> Vec<u64> {
    let is_gone = |n: &&u64| gone.contains(&usize::from(entries[n].place.member));
    let mut lost = Vec::new();
    for (data, parity) in GROUPS {
        let missing: Vec<u64> = data.iter().filter(is_gone).copied().collect();
        let left = parity.iter().filter(|n| !is_gone(n)).count();
        if missing.len() > left {
            lost.extend(missing);
        }
    }
    lost
}

/// Holds what is read of an array to the whole one, of which these chunks are lost for good.
fn assert_reads(members: &mut Members, lost: &[u64], whole: &Packets, what: &str) -> Catalog {
    let chunks = entries();
    let (found, catalog) = read(members, EVER);
    let is_lost =
        |time: u64| lost.iter().map(|n| &chunks[n].record.summary).any(|s| s.overlaps(time, time));
    let expected = whole.packets.iter().filter(|(time, _)| !is_lost(*time));
    assert!(found.packets.iter().eq(expected), "{what}: packets");
    assert_eq!(found.lost, [0u64; 0], "{what}");
    let takes = catalog.takes();
    let [take] = &takes[..] else { panic!("{what}: {} takes", takes.len()) };
    assert!(take.balances(), "{what}: {take:?}");
    let stored = |n: &u64| chunks[n].record.summary.stored();
    let missing = lost.iter().map(stored).fold(Count::ZERO, |sum, count| sum + count);
    assert_eq!(take.missing(), missing, "{what}: the gaps are what is lost, exactly");
    catalog
}

/// All sets of so many members.
fn sets(count: usize) -> Vec<Vec<usize>> {
    let set = |bits: usize| (0..4).filter(move |at| bits >> at & 1 == 1).collect::<Vec<_>>();
    (0..16).map(set).filter(|set| set.len() == count).collect()
}

#[test]
fn what_members_take_with_them_comes_back_as_far_as_parity_goes_and_the_rest_is_a_gap() {
    let (whole, _) = read(&mut all(), EVER);
    let chunks = entries();
    for gone in sets(0).into_iter().chain(sets(1)).chain(sets(2)) {
        let lost = lost_for_good(&chunks, &gone);
        let what = format!("without {gone:?}");
        let catalog = assert_reads(&mut without(&gone), &lost, &whole, &what);
        let expected: Vec<u64> = chunks
            .iter()
            .filter(|(n, e)| {
                let gone = gone.contains(&usize::from(e.place.member));
                gone && e.record.parity.is_none() && !lost.contains(n)
            })
            .map(|(n, _)| *n)
            .collect();
        let mut recovered: Vec<u64> = catalog.recovered.iter().map(|n| n - FIRST).collect();
        recovered.sort_unstable();
        assert_eq!(recovered, expected, "{what}");
        // What comes back is the very chunk that was there, in its place.
        let same = |e: &Entry| chunks[&(e.record.sequence - FIRST)] == *e;
        assert!(catalog.entries.iter().all(same), "{what}");
    }
}

#[test]
fn one_more_than_parity_opens_only_if_asked_and_shows_what_is_left() {
    for gone in sets(3) {
        let refused = with_array(&mut without(&gone), false, |_, _| ()).unwrap_err();
        assert!(refused.to_string().contains("--degraded"), "{refused}");
        let takes = with_array(&mut without(&gone), true, |reader, image| {
            Catalog::load(reader, image, EVER).expect("a drive that reads").takes()
        });
        assert!(takes.unwrap().iter().all(recorder::takes::Take::balances), "{gone:?}");
    }
}

#[test]
fn a_span_of_time_comes_back_whole_without_a_member() {
    let (whole, _) = read(&mut all(), EVER);
    for (n, entry) in entries().iter().filter(|(n, e)| e.record.summary.packets > 0 && **n != ALONE)
    {
        let s = &entry.record.summary;
        let range = TimeRange {
            from: Timestamp::from_nanos(s.first_ns + 1),
            to: Timestamp::from_nanos(s.last_ns),
        };
        let (found, _) = read(&mut without(&[entry.place.member.into()]), range);
        let inside = |time: u64| (s.first_ns + 1..=s.last_ns).contains(&time);
        let expected = whole.packets.iter().filter(|(time, _)| inside(*time));
        assert!(found.packets.iter().eq(expected), "chunk {n}");
        assert_eq!(found.recovered, [*n]);
    }
}

#[test]
fn a_damaged_chunk_comes_back_and_what_lies_behind_it_is_found() {
    let (whole, _) = read(&mut all(), EVER);
    for (n, entry) in entries().iter().filter(|(n, _)| **n != ALONE) {
        for within in [40, 3000] {
            let mut members = all();
            damage(&mut members, entry, within);
            let what = format!("chunk {n}, byte {within}");
            // The chunk without parity lies behind the parity before it, in a segment without an index.
            let hidden: &[u64] = if *n == ALONE - 1 { &[ALONE] } else { &[] };
            assert_reads(&mut members, hidden, &whole, &what);
        }
    }
}

/// Changes a byte of a chunk.
fn damage(members: &mut Members, entry: &Entry, within: u64) {
    let bytes = members[usize::from(entry.place.member)].as_mut().expect("it is there");
    bytes[(entry.place.offset + within) as usize] ^= 0x40;
}

#[test]
fn a_scrub_finds_each_damage_and_repairs_it_in_its_place() {
    let (whole, _) = read(&mut all(), EVER);
    let (done, findings) = scrubbed(&mut all(), false);
    assert_eq!((findings.len(), done.chunks, done.groups, done.without_parity), (0, 19, 5, 1));
    for (n, entry) in &entries() {
        for within in [40, 3000] {
            let what = format!("chunk {n}, byte {within}");
            let mut members = all();
            damage(&mut members, entry, within);
            let damaged = members.clone();
            let (done, findings) = scrubbed(&mut members, false);
            assert_eq!(members, damaged, "{what}: a look changes nothing");
            if *n > 16 {
                // Behind everything that is known of its member its place is not certain; its group tells of it.
                assert_eq!((findings.len(), done.parity_missing), (0, 1), "{what}");
                continue;
            }
            if *n == ALONE || *n == ALONE - 1 {
                // Nothing tells one from the other in a gap; that is named by the ledger.
                continue;
            }
            let [finding] = &findings[..] else { panic!("{what}: {findings:?}") };
            assert_eq!(finding.entry, *entry, "{what}");
            assert_eq!(finding.repair, Repair::Possible, "{what}");
            let expected = matches!(
                (&finding.fault, entry.record.parity),
                (Fault::Chunk(_), None) | (Fault::Parity(_), Some(_))
            );
            assert!(expected, "{what}: {}", finding.fault);
            let (_, findings) = scrubbed(&mut members, true);
            assert!(findings.iter().all(|f| f.repair == Repair::Done), "{what}: {findings:?}");
            assert_eq!(members, all(), "{what}: every byte is as it was");
        }
    }
    assert!(!whole.packets.is_empty());
}

#[test]
fn a_scrub_tells_what_a_missing_member_held_and_how_much_of_it_can_be_had() {
    for gone in 0..4 {
        let (done, findings) = scrubbed(&mut without(&[gone]), false);
        assert!(findings.is_empty(), "{findings:?}");
        let held =
            entries().values().filter(|e| usize::from(e.place.member) == gone).count() as u64;
        let parity = entries()
            .values()
            .filter(|e| usize::from(e.place.member) == gone && e.record.parity.is_some())
            .count() as u64;
        let alone = u64::from(gone == 0);
        let data = held - parity - alone;
        assert_eq!(done.missing.get(&(gone as u16)), Some(&(data, data)), "member {gone}");
    }
}

/// Rebuilds a member on an empty drive; the members then.
pub fn rebuilt(members: &mut Members, lost: usize) -> (Rebuilt, u64) {
    let mut target = vec![0; GOLDEN[lost].len()];
    let done = onto(members, lost, &mut target);
    members[lost] = Some(target);
    done
}

fn onto(members: &mut Members, lost: usize, target: &mut Vec<u8>) -> (Rebuilt, u64) {
    with_array(members, false, |reader, image| {
        let catalog = Catalog::load(reader, image, EVER).expect("drives that read");
        let plan = Plan::new(reader, image, &catalog, lost as u16, None).expect("drives that read");
        let buffers = MemoryBuffers::new(2, 64 << 10);
        let drive = MemoryDrive { capacity_bytes: target.len() as u64, ..MemoryDrive::default() };
        let mut bank = MemoryBank::new(vec![drive], buffers.clone());
        bank.poke(DriveId(0), 0, target);
        let names = buffers.buffer_ids().collect();
        let mut to = Reader { bank: &mut bank, memory: &buffers, buffers: names };
        let superblock = Superblock { member: lost as u16, ..image.superblock.clone() };
        rebuild::begin(&mut to, &superblock).expect("the drive works");
        let refused = open(&mut to).unwrap_err();
        assert!(matches!(refused, OpenError::Unfinished { .. }), "{refused}");
        let done = rebuild::run(reader, &mut to, image, &plan, None, |_| ControlFlow::Continue(()));
        let done = done.expect("they work").expect("nothing stops it");
        store(&mut to, DriveId(0), &superblock).expect("the drive works");
        *target = bank.peek(DriveId(0), 0, target.len());
        (done, plan.groups_without)
    })
    .expect("the array opens")
}

#[test]
fn a_rebuilt_member_holds_what_the_lost_one_held_to_the_byte() {
    for lost in 0..4 {
        let mut members = without(&[lost]);
        let (done, groups_without) = rebuilt(&mut members, lost);
        let held = || entries().into_values().filter(|e| usize::from(e.place.member) == lost);
        let parity = held().filter(|e| e.record.parity.is_some()).count() as u64;
        let data = held().filter(|e| e.record.parity.is_none()).count() as u64;
        let alone = u64::from(lost == 0);
        assert_eq!(
            (done.chunks, done.parity_chunks, done.filled, done.found, groups_without),
            (data - alone, parity + 1 - alone, 0, 0, 0),
            "member {lost}: what had no parity gets some"
        );
        let made = members[lost].as_ref().expect("it was made");
        // Behind the last chunk of packets parity may have come to lie elsewhere.
        let end = held()
            .filter(|e| e.record.parity.is_none() && e.record.sequence - FIRST != ALONE)
            .map(|e| (e.place.offset + u64::from(e.record.summary.length)) as usize)
            .max()
            .expect("it held something");
        let differs = (0..end).find(|&at| made[at] != GOLDEN[lost][at]);
        assert_eq!(differs, None, "member {lost}");
        // An interrupted rebuild finds what it had written.
        let mut again = made.clone();
        members[lost] = None;
        let (found, _) = onto(&mut members, lost, &mut again);
        assert_eq!(
            (found.found, found.chunks, found.parity_chunks),
            (done.chunks + done.parity_chunks, 0, 0)
        );
    }
}

#[test]
fn after_a_rebuild_another_member_may_go() {
    let (whole, _) = read(&mut all(), EVER);
    let chunks = entries();
    for lost in 0..4 {
        for gone in sets(1).into_iter().chain(sets(2)) {
            let mut members = without(&[lost]);
            rebuilt(&mut members, lost);
            gone.iter().for_each(|&at| members[at] = None);
            let mut for_good = lost_for_good(&chunks, &gone);
            // It was lost with the first member, or has parity on the rebuilt one.
            for_good.retain(|n| *n != ALONE || gone.contains(&lost));
            if lost == 0 && !for_good.contains(&ALONE) {
                for_good.push(ALONE);
            }
            let what = format!("{lost} rebuilt, then without {gone:?}");
            assert_reads(&mut members, &for_good, &whole, &what);
        }
    }
}

#[test]
fn two_lost_members_are_rebuilt_one_after_the_other() {
    let (whole, _) = read(&mut all(), EVER);
    let chunks = entries();
    for gone in sets(2) {
        let mut members = without(&gone);
        let for_good = lost_for_good(&chunks, &gone);
        for &lost in &gone {
            rebuilt(&mut members, lost);
        }
        assert_reads(&mut members, &for_good, &whole, &format!("{gone:?} rebuilt"));
        // And any one may go again, for chunks have parity now: all but the first of a group that is broken.
        for another in 0..4 {
            let mut members = members.clone();
            members[another] = None;
            let mut for_good = for_good.clone();
            let broken = for_good.contains(&12) && !gone.contains(&0);
            if broken && !for_good.contains(&11) && another == 1 {
                for_good.push(11);
            }
            let what = format!("{gone:?} rebuilt, then without {another}");
            assert_reads(&mut members, &for_good, &whole, &what);
        }
    }
}
