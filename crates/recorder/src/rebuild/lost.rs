//! Parity chunks that went with a lost member: groups tell by their data chunks how many they were given, and chunks that
//! came later tell which numbers those had.

use std::collections::{BTreeMap, HashMap, HashSet};

use base::{Bank, Buffers};
use format::parity::{GROUP_MAX, Joined, LastParities, OVERHEAD_BYTES, Part, PlacedParity, Row};
use format::{ChunkRecord, ChunkSummary, Count, TakeId};
use uuid::Uuid;

use crate::open::ArrayImage;
use crate::reader::{ReadError, Reader};
use crate::recover::{self, Groups};
use crate::takes::{Catalog, Entry, Gap};

/// A parity chunk that went with the member.
#[derive(Clone, Debug)]
pub(super) struct LostParity {
    pub(super) part: Part,
    pub(super) rows: Vec<Row>,
    pub(super) take: TakeId,
    /// Whether chunks that came later tell of it.
    pub(super) told: bool,
    /// Its number, if it is told of or has got one.
    pub(super) number: u64,
}

impl LostParity {
    /// Its length in bytes.
    pub(super) fn length(&self) -> u64 {
        let longest = self.rows.iter().map(|row| row.length).max().unwrap_or(0);
        u64::from(longest + OVERHEAD_BYTES)
    }

    /// The number of the last chunk that it is of: its own is greater.
    pub(super) fn newest(&self) -> u64 {
        self.rows.last().map_or(self.part.group, |row| row.sequence)
    }
}

/// All the lost parity of a member.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Chunks tell that it was on the member, in order of number.
    pub(super) told: Vec<LostParity>,
    /// No chunk tells where it went: parity of a take's last chunks, and what never came to be written. In order of group.
    pub(super) untold: Vec<LostParity>,
    /// Groups with parity on the member, of which a chunk is gone for good.
    pub(super) incomplete: u64,
}

impl Lost {
    /// What the member held. `recorded` is the take that is being recorded: parity that nobody tells of may be on its way.
    ///
    /// # Errors
    /// [`ReadError`] if the bank fails.
    pub(super) fn of<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
        catalog: &Catalog,
        numbers: &Numbers<'_>,
        member: u16,
        recorded: Option<Uuid>,
    ) -> Result<Self, ReadError> {
        let mut lost = Self::default();
        let mut tabled: HashSet<u64> = HashSet::new();
        for (table, there) in recover::tables(reader, image, &Groups::of(&catalog.entries))? {
            // Where a chunk is gone for good the others are protected anew, but for the one that the group is known by.
            let whole = table.rows.iter().all(|row| numbers.by_number.contains_key(&row.sequence));
            let kept = table.rows.iter().map(|row| row.sequence);
            tabled.extend(kept.filter(|&number| whole || number == table.part.group));
            let lacking = (0..table.part.of).filter(|place| !there.contains(place));
            lost.enter(numbers, member, recorded, table.part, &table.rows, lacking);
        }
        // A chunk that was written without parity is protected as well.
        let joined = |e: &Entry| {
            let alone = Joined { group: e.record.sequence, of: 1 };
            e.record.group.unwrap_or(alone)
        };
        let untabled =
            |e: &&Entry| e.record.parity.is_none() && !tabled.contains(&e.record.sequence);
        let data: Vec<&Entry> = catalog.entries.iter().filter(untabled).collect();
        for chunks in data.chunk_by(|a, b| joined(a) == joined(b)) {
            let Joined { group, of } = joined(chunks[0]);
            let first = chunks[0].record.sequence;
            if first > group && numbers.given_up(group) {
                continue;
            }
            let rows: Vec<Row> = chunks.iter().map(|entry| entry.row()).collect();
            let last = rows.last().map_or(first, |row| row.sequence);
            // A group can have got less than it was opened with.
            let of = numbers.of_group(group).map(|told| told.of).max().unwrap_or(of);
            let part = Part { group: first, span: (last - first) as u32, place: 0, of };
            lost.enter(numbers, member, recorded, part, &rows, 0..of);
        }
        lost.told.sort_by_key(|lost| lost.number);
        lost.untold.sort_by_key(LostParity::newest);
        Ok(lost)
    }

    /// Enters those parities of a group that are not there, as far as they are the member's.
    fn enter(
        &mut self,
        numbers: &Numbers<'_>,
        member: u16,
        recorded: Option<Uuid>,
        part: Part,
        rows: &[Row],
        lacking: impl Iterator<Item = u8>,
    ) {
        let known = |row: &Row| numbers.by_number.get(&row.sequence);
        let Some(take) = rows.iter().find_map(|row| Some(known(row)?.record.take)) else { return };
        let mut members: Vec<u16> = rows.iter().map(|row| row.member).collect();
        members.sort_unstable();
        members.dedup();
        let whole = rows.iter().all(|row| known(row).is_some())
            && members.len() == rows.len()
            && rows.len() <= GROUP_MAX;
        // What a ring has come near to needs no place that newer parity may need.
        let mut outside = !members.contains(&member)
            && !numbers.given_up(part.group)
            && numbers.of_group(part.group).all(|told| told.member != member);
        for place in lacking {
            let part = Part { place, ..part };
            let mut lost = LostParity { part, rows: rows.to_vec(), take, told: false, number: 0 };
            match numbers.of_group(part.group).find(|told| told.place == place) {
                Some(told) if told.member == member => {
                    (lost.told, lost.number) = (true, told.sequence);
                    if numbers.by_number.contains_key(&told.sequence) {
                        // It is there, and can't be read.
                    } else if whole && told.sequence > lost.newest() {
                        self.told.push(lost);
                    } else {
                        self.incomplete += u64::from(!numbers.given_up(part.group));
                    }
                }
                Some(_) => {}
                None if whole && outside && recorded != Some(take.uuid) => {
                    // No two chunks of a group share a member.
                    outside = false;
                    self.untold.push(lost);
                }
                None => {}
            }
        }
    }
}

/// What is known of an array's sequence numbers.
#[derive(Debug)]
pub(super) struct Numbers<'c> {
    /// The chunks that are found, or recovered.
    by_number: BTreeMap<u64, &'c Entry>,
    /// The parity chunks that are found, that are told of, or that got a number.
    parities: BTreeMap<u64, PlacedParity>,
    /// Their numbers by group.
    groups: HashMap<u64, Vec<u64>>,
    /// Numbers of failed writes whose chunks stand elsewhere, with what is in those.
    replaced: BTreeMap<u64, Count>,
    gaps: Vec<Gap>,
    reused: Option<u64>,
}

impl<'c> Numbers<'c> {
    pub(super) fn new(catalog: &'c Catalog) -> Self {
        let mut replaced: BTreeMap<u64, Count> = BTreeMap::new();
        let mut parities: BTreeMap<u64, PlacedParity> = BTreeMap::new();
        for Entry { record, .. } in &catalog.entries {
            if let Some(first) = record.replaces {
                *replaced.entry(first).or_default() += record.summary.stored();
            }
            // Behind one that an earlier chunk told of comes what that one told of as well.
            for told in record.last_parities.told_by(record.sequence) {
                if parities.insert(told.sequence, told).is_some() {
                    break;
                }
            }
        }
        for Entry { place, record } in &catalog.entries {
            if let Some(Part { group, place: which, of, .. }) = record.parity {
                let (sequence, member) = (record.sequence, place.member);
                let found = PlacedParity { sequence, group, member, place: which, of };
                parities.insert(sequence, found);
            }
        }
        let mut numbers = Self {
            by_number: catalog.entries.iter().map(|e| (e.record.sequence, e)).collect(),
            parities: BTreeMap::new(),
            groups: HashMap::new(),
            replaced,
            gaps: catalog.takes().into_iter().flat_map(|take| take.gaps).collect(),
            reused: catalog.reused,
        };
        parities.into_values().for_each(|parity| numbers.give(parity));
        numbers
    }

    /// The parity chunks of a group that are known of.
    fn of_group(&self, group: u64) -> impl Iterator<Item = &PlacedParity> {
        let numbers = self.groups.get(&group).into_iter().flatten();
        numbers.filter_map(|number| self.parities.get(number))
    }

    /// A parity chunk has this number from now on.
    pub(super) fn give(&mut self, parity: PlacedParity) {
        self.parities.insert(parity.sequence, parity);
        self.groups.entry(parity.group).or_default().push(parity.sequence);
    }

    /// Whether a ring has given this number up, or may have.
    pub(super) fn given_up(&self, number: u64) -> bool {
        self.reused.is_some_and(|reused| number <= reused)
    }

    /// Whether packets are missing between two numbers.
    pub(super) fn lacks_packets(&self, from: u64, to: u64) -> bool {
        self.gaps.iter().any(|gap| gap.first_sequence < to && gap.last_sequence > from)
    }

    /// The least number that no chunk has or had, from one up to another that is left out. Where packets are missing
    /// a number may have been theirs, and stays missing.
    pub(super) fn free(&self, from: u64, to: u64) -> Option<u64> {
        let mut number = self.reused.map_or(from, |reused| from.max(reused.saturating_add(1)));
        // Gaps are passed at once: damaged media can hold numbers that are any distance apart.
        while number < to {
            let gap = |gap: &&Gap| (gap.first_sequence..=gap.last_sequence).contains(&number);
            if let Some(gap) = self.gaps.iter().find(gap) {
                number = gap.last_sequence.checked_add(1)?;
            } else if self.by_number.contains_key(&number)
                || self.parities.contains_key(&number)
                || self.replaced.contains_key(&number)
            {
                number += 1;
            } else {
                return Some(number);
            }
        }
        None
    }

    /// The take that a number is in, which is that of the newest known chunk before it.
    pub(super) fn take_at(&self, number: u64) -> Option<TakeId> {
        let (_, before) = self.by_number.range(..number).next_back()?;
        Some(before.record.take)
    }

    /// What a lost parity chunk says of itself, but for its checksum.
    pub(super) fn record(&self, lost: &LostParity) -> Option<ChunkRecord> {
        let LostParity { part, rows, take, number, .. } = lost;
        let (_, before) = self.by_number.range(..number).next_back()?;
        let chunks: Vec<&ChunkSummary> = rows
            .iter()
            .filter_map(|row| Some(&self.by_number.get(&row.sequence)?.record.summary))
            .collect();
        let mut ledger = before.record.ledger;
        ledger.store(self.stored_before(*take, *number, &before.record) - ledger.stored);
        let earlier = self.parities.range(take.first_sequence..*number).rev();
        let earlier = earlier.map(|(_, parity)| *parity).take(LastParities::COUNT);
        Some(ChunkRecord {
            take: *take,
            sequence: *number,
            replaces: None,
            ledger,
            reused: before.record.reused,
            reused_to_ns: before.record.reused_to_ns,
            parity: Some(*part),
            group: None,
            last_parities: LastParities::of(*number, earlier),
            summary: ChunkSummary {
                length: lost.length() as u32,
                queue: chunks.first()?.queue,
                first_ns: chunks.iter().map(|s| s.first_ns).min()?,
                last_ns: chunks.iter().map(|s| s.last_ns).max()?,
                sealed_ns: chunks.iter().map(|s| s.sealed_ns).max()?,
                ..ChunkSummary::EMPTY
            },
        })
    }

    /// What a take had stored when it came to a number between two chunks that are known. What is missing between them is
    /// on that side of it where there are numbers that it can have had.
    fn stored_before(&self, take: TakeId, number: u64, before: &ChunkRecord) -> Count {
        let elsewhere = |from: u64, to: u64| {
            self.replaced.range(from..to).fold(Count::ZERO, |sum, (_, &count)| sum + count)
        };
        let next = self.by_number.range(number + 1..).next();
        let next = next.map(|(_, entry)| &entry.record).filter(|next| next.take == take);
        let vacant = |n: &u64| !self.parities.contains_key(n) && !self.replaced.contains_key(n);
        match next {
            Some(next) if !(number + 1..next.sequence).any(|n| vacant(&n)) => {
                let own = match next.replaces {
                    Some(_) => Count::ZERO,
                    None => next.summary.stored(),
                };
                next.ledger.stored - own - elsewhere(number + 1, next.sequence)
            }
            _ => before.ledger.stored + elsewhere(before.sequence + 1, number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<'c>(reused: Option<u64>, gap: Option<(u64, u64)>, taken: &[u64]) -> Numbers<'c> {
        let gap = gap.map(|(first_sequence, last_sequence)| Gap {
            first_sequence,
            last_sequence,
            count: Count::ZERO,
            from_ns: 0,
            to_ns: 0,
        });
        Numbers {
            by_number: BTreeMap::new(),
            parities: BTreeMap::new(),
            groups: HashMap::new(),
            replaced: taken.iter().map(|&number| (number, Count::ZERO)).collect(),
            gaps: gap.into_iter().collect(),
            reused,
        }
    }

    #[test]
    fn a_free_number_is_found_however_far_apart_damaged_media_say_that_numbers_are() {
        const FAR: u64 = u64::MAX - 2;
        assert_eq!(numbers(None, None, &[5, 6]).free(5, FAR), Some(7));
        assert_eq!(numbers(Some(FAR), None, &[]).free(0, FAR), None);
        assert_eq!(numbers(Some(9), None, &[10]).free(0, FAR), Some(11));
        assert_eq!(numbers(None, Some((1, u64::MAX)), &[]).free(1, FAR), None);
        assert_eq!(numbers(None, Some((1, FAR - 2)), &[]).free(1, FAR), Some(FAR - 1));
        assert_eq!(numbers(None, None, &[5]).free(5, 6), None);
    }
}
