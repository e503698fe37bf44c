//! The book of what the recorder said, and the judgement of the media by it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use format::{ChunkRecord, Count};
use longtake_recorder::TimeRange;
use longtake_recorder::extract;
use longtake_recorder::takes::Catalog;

use uuid::Uuid;

use super::World;
use super::watch::Written;

/// What was said of one member.
#[derive(Debug, Default)]
pub struct MemberBook {
    /// Acknowledged in this recording.
    pub held: Count,
    pub held_chunks: u64,
    /// Acknowledged and not yet durable, in order.
    waiting: VecDeque<(u64, Count)>,
}

impl MemberBook {
    pub fn begin(&mut self) {
        (self.held, self.held_chunks) = (Count::ZERO, 0);
        self.waiting.clear();
    }
}

impl World {
    pub(super) fn acknowledged(&mut self, sequence: u64, member: u16, count: Count) {
        let last = self.bank.watch(|w| {
            let round = w.round;
            let before = w
                .chunks
                .values()
                .filter(|c| c.round == round && c.place.member == member && c.acknowledged)
                .map(|c| c.record.sequence)
                .next_back();
            let chunk = w.chunks.get_mut(&sequence).expect("acknowledged before it was written");
            assert!(!chunk.acknowledged, "chunk {sequence} is acknowledged twice");
            assert_eq!((chunk.place.member, chunk.contents.count), (member, count));
            chunk.acknowledged = true;
            before
        });
        assert!(last.is_none_or(|last| last < sequence), "acknowledged in order on its member");
        let book = &mut self.book[usize::from(member)];
        book.held += count;
        book.held_chunks += 1;
        book.waiting.push_back((sequence, count));
    }

    pub(super) fn durable(&mut self, member: u16, count: Count) {
        let mut left = count;
        let book = &mut self.book[usize::from(member)];
        let mut covered = Vec::new();
        while !left.is_zero() {
            let (sequence, of) = book.waiting.pop_front().expect("durable before acknowledged");
            assert!(of.packets <= left.packets, "a flush covers whole chunks, in order");
            left = left - of;
            covered.push(sequence);
        }
        self.bank.watch(|w| {
            let round = w.round;
            for sequence in covered {
                if let Some(chunk) = w.chunks.get_mut(&sequence) {
                    chunk.durable = true;
                }
            }
            // What earlier recordings left on it was done long before.
            for chunk in w.chunks.values_mut() {
                if chunk.round < round && chunk.place.member == member && chunk.acknowledged {
                    chunk.durable = true;
                }
            }
        });
    }

    pub(super) fn given_up(&mut self, member: u16, segment: u64) {
        self.reused += 1;
        self.spared += u64::from(!self.protected.is_empty());
        let protected: Vec<_> =
            self.protected.iter().map(|p| (p.from.as_nanos(), p.to.as_nanos())).collect();
        self.bank.watch(|w| {
            for chunk in w.chunks.values_mut() {
                let here = chunk.place.member == member && chunk.segment == segment;
                if !here || !chunk.acknowledged || chunk.given_up {
                    continue;
                }
                let summary = &chunk.record.summary;
                assert!(
                    chunk.cut || !protected.iter().any(|&(from, to)| summary.overlaps(from, to)),
                    "protection: segment {segment} of member {member} is given up with chunk {} in it",
                    chunk.record.sequence
                );
                chunk.given_up = true;
            }
        });
    }

    /// Nothing that was acknowledged has been written or trimmed over, unless it was given up.
    pub(super) fn destroyed_were_given_up(&self) {
        self.bank.watch(|w| {
            for sequence in std::mem::take(&mut w.destroyed) {
                let chunk = &w.chunks[&sequence];
                assert!(
                    !chunk.acknowledged || chunk.given_up || chunk.cut,
                    "chunk {sequence} at {} of member {} is written over",
                    chunk.place.offset,
                    chunk.place.member
                );
            }
        });
    }

    /// Whether a ring has given up what it held there, and nothing that counts has come since.
    pub fn is_given_up(&self, member: u16, segment: u64) -> bool {
        self.bank.watch(|w| {
            let here = |c: &&Written| c.place.member == member && c.segment == segment;
            let mut chunks = w.chunks.values().filter(here);
            let kept = |c: &Written| c.acknowledged && !c.given_up && !c.cut;
            !chunks.clone().any(kept) && chunks.any(|c| c.given_up)
        })
    }

    /// Reads the array (without some members) and holds it against the book. `cut`: the power has
    /// failed since the last time.
    pub fn judge(&mut self, missing: &[u16], cut: bool) -> Catalog {
        let image = self.open(missing);
        let mut bank = self.bank.another(|d| !missing.contains(&d));
        let mut reader = self.reader(&mut bank);
        let catalog =
            Catalog::load(&mut reader, &image, TimeRange::ALL).expect("the drives can be read");
        let mut sound: BTreeSet<u64> = BTreeSet::new();
        let mut broken = Vec::new();
        extract::verify(&mut reader, &image, &catalog.entries, |entry, outcome| match outcome {
            Ok(_) => drop(sound.insert(entry.record.sequence)),
            Err(why) => broken.push((entry.record.sequence, why)),
        })
        .expect("the bank works");
        let found: BTreeMap<u64, ChunkRecord> =
            catalog.entries.iter().map(|e| (e.record.sequence, e.record)).collect();
        let (reused, unsubmitted) = (self.reused, &self.unsubmitted);
        self.bank.watch(|w| {
            for entry in &catalog.entries {
                let sequence = entry.record.sequence;
                let Some(chunk) = w.chunks.get_mut(&sequence) else {
                    panic!("chunk {sequence} was found and never written");
                };
                assert_eq!((chunk.record, chunk.place), (entry.record, entry.place), "as written");
                let why = broken.iter().find(|(broken, _)| *broken == sequence);
                assert!(
                    why.is_none() || chunk.given_up,
                    "media: chunk {sequence} is listed and can't be read: {why:?}"
                );
            }
            for chunk in w.chunks.values_mut() {
                let sequence = chunk.record.sequence;
                let there = sound.contains(&sequence);
                if !missing.contains(&chunk.place.member) && cut {
                    // What it left is on the media for good; what was not flushed may be gone.
                    chunk.cut |= !there && chunk.acknowledged && !chunk.durable;
                    chunk.durable |= there;
                }
                if missing.is_empty() && there && !chunk.given_up {
                    chunk.acknowledged = true;
                }
                let due = chunk.acknowledged
                    && !chunk.given_up
                    && !chunk.cut
                    && !missing.contains(&chunk.place.member);
                assert!(
                    !due || there,
                    "media: chunk {sequence} was acknowledged on member {} at {} (segment {}) and is not found",
                    chunk.place.member,
                    chunk.place.offset,
                    chunk.segment
                );
            }
            judge_takes(&catalog, &found, &w.chunks, reused, unsubmitted);
            assert_no_overlap(&catalog);
        });
        if self.clean && missing.is_empty() {
            // What a ring gave up is told from what is missing.
            for take in catalog.takes() {
                assert!(take.gaps.is_empty(), "nothing went wrong, and {take:?} has gaps");
            }
        }
        catalog
    }
}

/// What the takes say of themselves agrees with what was written, to the packet.
fn judge_takes(
    catalog: &Catalog,
    found: &BTreeMap<u64, ChunkRecord>,
    written: &BTreeMap<u64, Written>,
    reused: u64,
    unsubmitted: &BTreeMap<Uuid, Count>,
) {
    for take in catalog.takes() {
        assert!(take.balances(), "ledger: the take does not balance: {take:?}");
        // Each chunk once, by its first number, and whether any copy of it is there.
        let mut roots: BTreeMap<u64, (Count, bool)> = BTreeMap::new();
        for chunk in written.values().filter(|c| c.record.take.uuid == take.id.uuid) {
            let root = roots.entry(chunk.root()).or_insert((chunk.contents.count, false));
            root.1 |= found.contains_key(&chunk.record.sequence);
        }
        let sum = |counts: &mut dyn Iterator<Item = Count>| counts.fold(Count::ZERO, |a, b| a + b);
        let known = || roots.range(..=take.last_sequence);
        let there = sum(&mut known().filter(|(_, r)| r.1).map(|(_, r)| r.0));
        let gone = sum(&mut known().filter(|(_, r)| !r.1).map(|(_, r)| r.0));
        assert_eq!(take.stored, there, "ledger: what is there of {:?}", take.id);
        let more = unsubmitted.get(&take.id.uuid).copied().unwrap_or_default();
        let said = take.overwritten + take.missing();
        assert!(
            said.packets >= gone.packets && said.packets <= (gone + more).packets,
            "ledger: {gone:?} and at most {more:?} is gone: {take:?}"
        );
        assert!(more.packets > 0 || said == gone, "ledger: {gone:?} is gone: {take:?}");
        if reused == 0 {
            assert_eq!(take.overwritten, Count::ZERO, "nothing was given up");
        }
        for gap in &take.gaps {
            let inside = roots.range(gap.first_sequence..=gap.last_sequence);
            let lost = sum(&mut inside.filter(|(_, r)| !r.1).map(|(_, r)| r.0));
            let there = gap.count.packets >= lost.packets && gap.count.bytes >= lost.bytes;
            assert!(there, "a gap says what is missing: {lost:?} of {gap:?}");
            assert!(more.packets > 0 || gap.count == lost, "a gap says no more: {gap:?} {lost:?}");
        }
    }
}

fn assert_no_overlap(catalog: &Catalog) {
    let mut places: Vec<(u16, u64, u64)> = catalog
        .entries
        .iter()
        .map(|e| (e.place.member, e.place.offset, u64::from(e.record.summary.length)))
        .collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        let ((one, at, length), (other, next, _)) = (pair[0], pair[1]);
        assert!(one != other || at + length <= next, "two chunks overlap: {pair:?}");
    }
}
