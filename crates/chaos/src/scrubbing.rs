//! What a scrub says is what a check says and what the book knows: damage is found where something has happened to what was
//! promised, and nowhere else; members that are out of date are seen.

use std::collections::{BTreeMap, BTreeSet};

use base::memory::MemoryBuffers;
use recorder::ArrayImage;
use recorder::extract::{Provenance, Unreadable, verify};
use recorder::reader::Reader;
use recorder::scrub::{Fault, Finding, Options, Scrubbed, Step, is_damage, scrub};
use recorder::stale;
use recorder::takes::{Catalog, Entry};

use crate::adversary::Handle;
use crate::book::Book;

/// Chunks of missed takes in open segments, for each member, from which on a member must be seen to be out of date.
const MISSED_CHUNKS: usize = 4;

/// Scrubs the array, and holds what is found against the book and against a check. `clean`: nothing has gone wrong so far.
///
/// # Panics
/// If a law is broken.
pub fn judge(
    reader: &mut Reader<'_, Handle, MemoryBuffers>,
    image: &ArrayImage,
    catalog: &Catalog,
    book: &Book,
    clean: bool,
) {
    let mut findings = Vec::new();
    let done = scrub(reader, image, catalog, Options::default(), |step| {
        if let Step::Found(finding) = step {
            findings.push(finding.clone());
        }
    });
    let done = match done {
        Ok(done) => done,
        Err(error) => panic!("scrub: it ended early: {error}"),
    };
    if clean {
        assert!(findings.is_empty(), "scrub: nothing went wrong, and it finds {findings:?}");
    }
    missing(image, &done);
    for finding in findings.iter().filter(|finding| finding.fault.is_damage()) {
        known(finding, book);
    }
    agrees(reader, image, catalog, &findings);
    out_of_date(image, catalog, book);
}

/// Chunks are missing with their members alone.
fn missing(image: &ArrayImage, done: &Scrubbed) {
    let there = |member: &&u16| !image.members[usize::from(**member)].is_missing();
    let wrong: Vec<&u16> = done.missing.keys().filter(there).collect();
    assert!(wrong.is_empty(), "scrub: members {wrong:?} are there, and chunks of them are missing");
}

/// The book knows what has happened to what a scrub calls damaged.
fn known(finding: &Finding, book: &Book) {
    let Finding { entry, fault, .. } = finding;
    let (member, sequence) = (entry.place.member, entry.record.sequence);
    if *fault == Fault::Index {
        let harmed = book.segment_of(member, entry.place.offset).is_some_and(|segment| {
            book.is_harmed(member, segment, sequence) || book.came_back_stale(member)
        });
        assert!(
            harmed,
            "scrub: the index of chunk {sequence} of member {member} at {} is damaged",
            entry.place.offset
        );
        return;
    }
    // What parity gives back may never have been asked of a drive.
    let due = book.chunks.get(&sequence).is_some_and(|chunk| chunk.is_due());
    assert!(!due, "scrub: nothing happened to chunk {sequence} of member {member}: {fault}");
}

/// A check calls the same chunks damaged.
fn agrees(
    reader: &mut Reader<'_, Handle, MemoryBuffers>,
    image: &ArrayImage,
    catalog: &Catalog,
    findings: &[Finding],
) {
    let mut checked = BTreeSet::new();
    let there = |entry: &Entry| !image.members[usize::from(entry.place.member)].is_missing();
    let looked = verify(reader, image, &catalog.entries, |entry, outcome| {
        let damaged = match outcome {
            Ok(Provenance::Read | Provenance::Recovered(Unreadable::Overwritten))
            | Err(Unreadable::Overwritten) => false,
            Ok(Provenance::Recovered(_)) => there(entry) && is_damage(catalog, entry, true),
            Err(_) => there(entry) && is_damage(catalog, entry, false),
        };
        if damaged {
            checked.insert(entry.record.sequence);
        }
    });
    assert!(looked.is_ok(), "check: it ended early: {looked:?}");
    let listed: BTreeSet<u64> = catalog.entries.iter().map(|e| e.record.sequence).collect();
    let scrubbed: BTreeSet<u64> = findings
        .iter()
        .filter(|f| matches!(f.fault, Fault::Chunk(_) | Fault::Parity(_)))
        .map(|f| f.entry.record.sequence)
        .filter(|sequence| listed.contains(sequence))
        .collect();
    let differ = scrubbed.symmetric_difference(&checked).next();
    let found =
        |s: u64| findings.iter().find(|f| f.entry.record.sequence == s).map(|f| f.fault.clone());
    assert_eq!(
        differ.map(|&s| (s, found(s), catalog.recovered.contains(&s), catalog.reused)),
        None,
        "scrub and check differ on what is damaged"
    );
}

/// A member that lacks whole takes is seen, and none that has what was promised of them.
fn out_of_date(image: &ArrayImage, catalog: &Catalog, book: &Book) {
    let stale = stale::members(image);
    for stale in &stale {
        let newer = |sequence: u64| Some(sequence) > stale.last_sequence;
        let due = book.chunks.values().find(|chunk| {
            chunk.place.member == stale.member && newer(chunk.record.sequence) && chunk.is_due()
        });
        assert!(due.is_none(), "stale: {stale:?}, and {due:?} is on it");
    }
    let found =
        || catalog.entries.iter().filter(|e| !catalog.recovered.contains(&e.record.sequence));
    let mut newest: BTreeMap<u16, u64> = BTreeMap::new();
    for entry in found() {
        let newest = newest.entry(entry.place.member).or_default();
        *newest = (*newest).max(entry.record.sequence);
    }
    // Damage hides what lies behind it from opening, and parity may list it all the same.
    let in_open_head = |entry: &&Entry| {
        let member = &image.members[usize::from(entry.place.member)];
        let head = member.head.as_ref().filter(|head| !head.closed);
        let known = head.map(|head| &head.chunks);
        known.is_some_and(|chunks| chunks.iter().any(|(place, _)| *place == entry.place))
    };
    for (at, member) in (0u16..).zip(&image.members) {
        // Of a segment whose chunks can't be listed nothing else is known.
        let Some(&last) = newest.get(&at).filter(|_| !member.is_missing()) else { continue };
        // A drive that took a lost member's place was made anew from what there was then.
        let joined_ns = image.superblock.members[usize::from(at)].joined_ns;
        let missed = found().filter(|e| {
            let take = &e.record.take;
            e.place.member != at
                && take.first_sequence > last
                && take.started.as_nanos() > joined_ns
        });
        let missed = missed.filter(in_open_head).count();
        let seen = stale.iter().any(|stale| stale.member == at);
        assert!(
            seen || missed < MISSED_CHUNKS * image.members.len()
                || image_last(image, at) > Some(last),
            "stale: member {at} has nothing behind {last}, {missed} chunks are newer, and nobody says so"
        );
    }
}

/// The greatest number that opening has found on a member.
fn image_last(image: &ArrayImage, member: u16) -> Option<u64> {
    let segments = image.members[usize::from(member)].segments.iter();
    segments
        .filter_map(|segment| match segment {
            recorder::Segment::Live(live) => Some(live.last_sequence),
            recorder::Segment::Empty => None,
        })
        .max()
}
