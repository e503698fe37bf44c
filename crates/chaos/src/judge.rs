//! The judgement of the media by the book: what must be there is there, and the accounts say what is not.

use std::collections::{BTreeMap, BTreeSet};

use format::Count;
use recorder::extract::Unreadable;
use recorder::takes::{Catalog, Entry};
use uuid::Uuid;

use crate::book::{Book, Written};
use crate::outcome::{Met, Outcome};
use crate::parity;
use crate::reading::Extracted;

/// What a judgement must know beside the book.
#[derive(Debug)]
pub struct Circumstances<'a> {
    /// Drives that are not there.
    pub absent: &'a [u16],
    /// Drives that lost their cache in a power cut just now.
    pub cut: Vec<u16>,
    /// What takes that were cut short may have placed without asking a drive for it.
    pub unsubmitted: &'a BTreeMap<Uuid, Count>,
    /// Whether nothing has gone wrong so far, crashes included.
    pub clean: bool,
    /// Whether the packets of a take come in order of time, from its start on.
    pub in_order: bool,
}

/// Judges everything that was found on media that are read without faults.
pub fn judge(
    book: &mut Book,
    catalog: &Catalog,
    extracted: &Extracted,
    circumstances: &Circumstances<'_>,
) {
    nothing_promised_is_lost(book, extracted, circumstances);
    let mut met = Met::default();
    let listed: BTreeSet<u64> =
        catalog.entries.iter().map(|e| e.record.replaces.unwrap_or(e.record.sequence)).collect();
    let found: BTreeMap<u64, bool> = catalog
        .entries
        .iter()
        .map(|e| (e.record.sequence, !extracted.lost.contains_key(&e.record.sequence)))
        .collect();
    let with_parity = book.groups.parity > 0;
    let mut holes = BTreeSet::new();
    for chunk in book.chunks.values_mut() {
        given_up_is_told(chunk, book.reused_to_ns);
        let there = found.get(&chunk.record.sequence).copied().unwrap_or(false);
        if circumstances.cut.contains(&chunk.place.member) {
            after_cut(chunk, there, with_parity, &mut holes, &mut met);
        }
        if !circumstances.cut.is_empty() {
            // Its parity may be what the power cut took.
            chunk.secured &= chunk.durable;
        }
        // While a member is away, a copy may show that was written again on it.
        if circumstances.absent.is_empty() && there && !chunk.given_up && !with_parity {
            chunk.acknowledged = true;
            // An extraction reads no chunk without packets: damage to one that was harmed may be found later.
            chunk.excused &= chunk.contents.packets == 0;
        }
        let present = !circumstances.absent.contains(&chunk.place.member);
        assert!(
            // Of several copies of a chunk only the newest is listed.
            !chunk.is_due() || !present || there || listed.contains(&chunk.root()),
            "media: chunk {} was acknowledged on member {} at {} (segment {}) and is not found",
            chunk.record.sequence,
            chunk.place.member,
            chunk.place.offset,
            chunk.segment
        );
    }
    accounts(catalog, &listed, book, circumstances.unsubmitted, &mut met);
    if circumstances.in_order {
        losses_lie_in_their_times(catalog, &listed, book);
    }
    // What parity knows of may lie behind a hole, where later chunks have begun to cover it.
    if !with_parity {
        no_overlap(catalog);
    }
    if circumstances.clean {
        // What a ring gave up is told from what is missing.
        for take in catalog.takes() {
            assert!(take.gaps.is_empty(), "nothing went wrong, and {take:?} has gaps");
        }
    }
    book.met.join(met);
}

/// What is listed and can't be had was not promised, and something happened to it.
fn nothing_promised_is_lost(
    book: &Book,
    extracted: &Extracted,
    Circumstances { absent, .. }: &Circumstances<'_>,
) {
    // With parity, a chunk may be found only because of what other members record about it. Without those members it is not
    // found, so having been found once promises nothing.
    let with_parity = book.groups.parity > 0;
    for (sequence, why) in &extracted.lost {
        let Some(chunk) = book.chunks.get(sequence) else { continue };
        // What is left of a group may tell of a chunk and not be enough to give it back.
        let promised = !with_parity
            || !absent.contains(&chunk.place.member)
            || parity::promised(book, *sequence, absent);
        assert!(
            !chunk.is_due() || !promised,
            "media: chunk {sequence} is listed on member {} at {} and can't be had: {why}",
            chunk.place.member,
            chunk.place.offset
        );
        assert!(
            with_parity || chunk.given_up || chunk.excused,
            "media: nothing happened to chunk {sequence}, which is listed and can't be had: {why}"
        );
    }
}

/// Of a chunk that a ring gave up, what is missing is said to be missing.
fn given_up_is_told(chunk: &Written, reused_to_ns: u64) {
    let last_ns = chunk.record.summary.last_ns;
    assert!(
        !(chunk.given_up && chunk.acknowledged) || chunk.excused || last_ns <= reused_to_ns,
        "ring: chunk {} of {last_ns} is given up, and nothing is said to be missing since {reused_to_ns}",
        chunk.record.sequence
    );
}

/// Enters a power cut on the chunk's member. A chunk that is still there is on the media for good; one that had not been
/// flushed may be gone.
fn after_cut(
    chunk: &mut Written,
    there: bool,
    with_parity: bool,
    holes: &mut BTreeSet<(u16, u64)>,
    met: &mut Met,
) {
    // What lies behind a hole is found by its segment's index, which the power cut may have taken.
    let segment = (chunk.place.member, chunk.segment);
    if chunk.excused && !chunk.given_up && !there {
        holes.insert(segment);
    } else if !there && !with_parity {
        chunk.excused |= holes.contains(&segment);
    }
    if chunk.is_due() && (!there || with_parity) && !chunk.durable {
        chunk.excused = true;
        met.add(Outcome::AcknowledgedCut);
    }
    chunk.durable |= there && !with_parity;
}

/// What the takes say of themselves agrees with what was written, to the packet.
fn accounts(
    catalog: &Catalog,
    listed: &BTreeSet<u64>,
    book: &Book,
    unsubmitted: &BTreeMap<Uuid, Count>,
    met: &mut Met,
) {
    for take in catalog.takes() {
        assert!(take.balances(), "ledger: the take does not balance: {take:?}");
        if !take.ended {
            met.add(Outcome::CutShort);
        }
        if take.chunks + take.parity_chunks == 0 {
            met.add(Outcome::RecordAlone);
        }
        if !take.overwritten.is_zero() {
            met.add(Outcome::OverwrittenNamed);
        }
        // Each chunk once, by its first number, and whether any copy of it is listed.
        let mut roots: BTreeMap<u64, (Count, bool)> = BTreeMap::new();
        let mine = |c: &&Written| c.record.take.uuid == take.id.uuid;
        for chunk in book.chunks.values().filter(mine) {
            roots.insert(chunk.root(), (chunk.contents.count(), listed.contains(&chunk.root())));
        }
        let sum = |counts: &mut dyn Iterator<Item = Count>| counts.fold(Count::ZERO, |a, b| a + b);
        let known = || roots.range(..=take.last_sequence);
        let there = sum(&mut known().filter(|(_, r)| r.1).map(|(_, r)| r.0));
        let gone = sum(&mut known().filter(|(_, r)| !r.1).map(|(_, r)| r.0));
        let there = there + unasked(catalog, book, take.id.uuid);
        assert_eq!(take.stored, there, "ledger: what is there of {:?}", take.id);
        let more = unsubmitted.get(&take.id.uuid).copied().unwrap_or_default();
        let said = take.overwritten + take.missing();
        assert!(
            said.packets >= gone.packets && said.packets <= (gone + more).packets,
            "ledger: {gone:?} and at most {more:?} is gone: {take:?}"
        );
        assert!(more.packets > 0 || said == gone, "ledger: {gone:?} is gone: {take:?}");
        if book.reused == 0 {
            assert_eq!(take.overwritten, Count::ZERO, "ledger: nothing was given up");
        }
        let in_holes = sum(&mut take.holes.iter().map(|hole| hole.count));
        assert_eq!(take.overwritten, in_holes, "ledger: every overwritten packet is in a hole");
        for gap in take.gaps.iter().chain(&take.holes) {
            let before_all = gap.first_sequence == take.id.first_sequence;
            met.add(match take.gaps.contains(gap) {
                true => Outcome::GapNamed,
                false if before_all => Outcome::OverwrittenNamed,
                false => Outcome::HoleNamed,
            });
            let inside = roots.range(gap.first_sequence..=gap.last_sequence);
            let lost = sum(&mut inside.filter(|(_, r)| !r.1).map(|(_, r)| r.0));
            let there = gap.count.packets >= lost.packets && gap.count.bytes >= lost.bytes;
            assert!(there, "ledger: a gap says what is missing: {lost:?} of {gap:?}");
            assert!(more.packets > 0 || gap.count == lost, "ledger: a gap says no more: {gap:?}");
        }
    }
}

/// The times that a loss is named with hold all its packets: a reader of a span of time learns of the loss by these times.
fn losses_lie_in_their_times(catalog: &Catalog, listed: &BTreeSet<u64>, book: &Book) {
    for take in catalog.takes() {
        let packets = |c: &&Written| c.record.take.uuid == take.id.uuid && c.contents.packets > 0;
        let lost = book.chunks.values().filter(packets).filter(|c| !listed.contains(&c.root()));
        let lost: BTreeMap<u64, &Written> = lost.map(|c| (c.root(), c)).collect();
        for gap in take.gaps.iter().chain(&take.holes) {
            for (root, chunk) in lost.range(gap.first_sequence..=gap.last_sequence) {
                let (first, last) = (chunk.record.summary.first_ns, chunk.record.summary.last_ns);
                let within = gap.from_ns <= first && last <= gap.to_ns;
                assert!(
                    within,
                    "ledger: the packets of chunk {root}, {first} to {last}, lie outside {gap:?}"
                );
            }
        }
    }
}

/// Chunks of a take that no drive was asked to write before the recorder was killed, and that parity gives back all the same.
fn unasked(catalog: &Catalog, book: &Book, take: Uuid) -> Count {
    let mine = catalog.entries.iter().filter(|e| e.record.take.uuid == take);
    let first = |e: &Entry| e.record.replaces.unwrap_or(e.record.sequence);
    let unasked = mine.filter(|e| !book.chunks.contains_key(&first(e)));
    unasked.fold(Count::ZERO, |sum, e| sum + e.record.summary.stored())
}

fn no_overlap(catalog: &Catalog) {
    let mut places: Vec<(u16, u64, u64)> = catalog
        .entries
        .iter()
        .map(|e| (e.place.member, e.place.offset, u64::from(e.record.summary.length)))
        .collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        let ((one, at, length), (other, next, _)) = (pair[0], pair[1]);
        assert!(one != other || at + length <= next, "media: two chunks overlap: {pair:?}");
    }
}

/// What a reader of a recording under way was shown: everything that was due when it began and is due still, and
/// losses only where the book knows of a reason. `faulty`: drives may have failed to read.
pub fn judge_live(
    book: &Book,
    due: &[u64],
    catalog: &Catalog,
    extracted: &Extracted,
    range: recorder::TimeRange,
    faulty: bool,
) {
    for (sequence, why) in &extracted.lost {
        // Parity may tell of a chunk before it is written, or asked for.
        let Some(chunk) = book.chunks.get(sequence) else {
            assert!(
                book.groups.parity > 0,
                "live: chunk {sequence} is listed and was never written"
            );
            continue;
        };
        let promised = chunk.is_due() && (book.groups.parity == 0 || due.contains(sequence));
        let reason = match why {
            Unreadable::Overwritten => !promised,
            _ => !promised || faulty,
        };
        assert!(
            reason,
            "live: chunk {sequence} on member {} at {} is listed and can't be had: {why}",
            chunk.place.member, chunk.place.offset
        );
    }
    if faulty {
        return;
    }
    let (from, to) = (range.from.as_nanos(), range.to.as_nanos());
    let listed: BTreeSet<u64> =
        catalog.entries.iter().map(|e| e.record.replaces.unwrap_or(e.record.sequence)).collect();
    for sequence in due {
        let chunk = &book.chunks[sequence];
        let wanted = chunk.is_due() && chunk.record.summary.overlaps(from, to);
        assert!(
            !wanted || listed.contains(&chunk.root()),
            "live: chunk {sequence} was acknowledged before a reader looked and is not listed: member {} at {}",
            chunk.place.member,
            chunk.place.offset
        );
    }
}
