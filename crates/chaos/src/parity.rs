//! The truth about parity, by the media format's specification and nothing of the recorder's: what was acknowledged lies in a
//! group that is whole on the media, whose equations hold, and that gives any chunk back without some of its members.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use format::chunk::check_body;
use format::parity::{Row, Table, recover};
use format::{ChunkRecord, Place};
use recorder::takes::Catalog;

use crate::adversary::Hub;
use crate::book::Book;
use crate::outcome::Outcome;
use crate::reading::Extracted;

/// Groups of which a judgement makes the parity again: it takes time, and there is another judgement soon.
const RECOMPUTED: usize = 3;

/// The groups that the recorder asked for, by what their parity chunks say.
#[derive(Debug, Default)]
pub struct Groups {
    /// Parity chunks each group should have, by the array.
    pub parity: u8,
    /// What was told to be the least in this recording.
    pub told: u8,
    /// Each parity chunk's table, by its number.
    tables: BTreeMap<u64, Table>,
    /// The parity chunks of a data chunk.
    guards: BTreeMap<u64, Vec<u64>>,
}

impl Groups {
    /// None yet, of an array with so many parities.
    pub fn new(parity: u8) -> Self {
        Self { parity, ..Self::default() }
    }

    /// A recording begins.
    pub fn begin(&mut self) {
        self.told = self.parity;
    }

    /// A parity chunk is written to a member.
    pub fn asked(&mut self, place: &Place, record: &ChunkRecord, table: Option<&Table>) {
        let Some(table) = table else {
            panic!("parity: chunk {} says that it is parity and has no table", record.sequence)
        };
        let own = table.rows.iter().any(|row| row.member == place.member);
        assert!(!own, "parity: chunk {} lies on a member of its own group", record.sequence);
        for row in &table.rows {
            self.guards.entry(row.sequence).or_default().push(record.sequence);
        }
        self.tables.insert(record.sequence, table.clone());
    }

    /// The parity chunks of a data chunk, by number.
    pub fn guards(&self, sequence: u64) -> &[u64] {
        self.guards.get(&sequence).map_or(&[], Vec::as_slice)
    }

    /// All numbers of the groups that a chunk belongs to, data or parity.
    pub fn with(&self, sequence: u64) -> Vec<u64> {
        let guards = self.guards(sequence).iter().chain(std::iter::once(&sequence));
        let tables = guards.filter_map(|guard| self.tables.get_key_value(guard));
        tables
            .flat_map(|(guard, table)| {
                table.rows.iter().map(|row| row.sequence).chain(std::iter::once(*guard))
            })
            .collect()
    }

    /// From now on groups may have fewer parities.
    pub fn reduced(&mut self, parities: u8) {
        assert!(parities < self.told, "parity: {parities} told after {}", self.told);
        self.told = parities;
    }
}

/// Holds the media, past all faults, to what was promised of parity. `salt` chooses what is looked at closely.
pub fn judge(book: &mut Book, hub: &mut Hub, salt: u64) {
    let due = |sequence: &u64| book.chunks.get(sequence).is_some_and(|c| c.is_due());
    let mut whole: Vec<(&Table, u64)> = Vec::new();
    for (parity, table) in &book.groups.tables {
        let secured = |row: &Row| book.chunks.get(&row.sequence).is_some_and(|c| c.secured);
        if due(parity) && table.rows.iter().all(|row| due(&row.sequence) && secured(row)) {
            whole.push((table, *parity));
        }
    }
    let count = whole.len();
    for at in 0..count.min(RECOMPUTED) {
        let (table, parity) = whole[(salt as usize + at * count / RECOMPUTED.min(count)) % count];
        let mut bytes = |sequence: u64| {
            let chunk = &book.chunks[&sequence];
            sound(hub, &chunk.place, &chunk.record)
        };
        let chunks: Vec<Vec<u8>> = table.rows.iter().map(|row| bytes(row.sequence)).collect();
        for (row, chunk) in table.rows.iter().zip(&chunks) {
            let found = book.chunks[&row.sequence].place;
            assert_eq!((row.member, row.offset), (found.member, found.offset), "parity: a row");
            assert_eq!(row.length as usize, chunk.len(), "parity: a row");
        }
        let guards = book.groups.guards(table.rows[0].sequence).to_vec();
        let mut found = [None, None];
        let mut members: Vec<u16> = table.rows.iter().map(|row| row.member).collect();
        for guard in guards.into_iter().filter(due) {
            let chunk = bytes(guard);
            let record = &book.chunks[&guard].record;
            members.push(book.chunks[&guard].place.member);
            let read = Table::read(&chunk, record);
            let Ok((read, given)) = read else { panic!("parity: chunk {guard}: {read:?}") };
            assert_eq!(read.rows, table.rows, "parity: chunk {guard} of the group of {parity}");
            let expected = equation(read.part.place, &chunks);
            assert!(words(given) == expected, "parity: chunk {guard} is not that of its group");
            found[usize::from(read.part.place)] = Some(given.to_vec());
        }
        let lies_on = members.len();
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), lies_on, "parity: a group has two chunks on a member");
        give_back(table, &chunks, &found, salt);
    }
    if count > 0 {
        book.met.add(Outcome::ParityHolds);
    }
    if whole.iter().any(|(table, _)| table.part.place > 0) {
        book.met.add(Outcome::SecondParityHolds);
    }
}

/// Whether a chunk can be had without the members that are `gone`: it was acknowledged with parity, nothing has happened to its
/// group since, and no more members are gone than it has parities. Of later times than a ring has said to have given up,
/// nothing of a group is given up.
pub fn promised(book: &Book, sequence: u64, gone: &[u16]) -> bool {
    let chunk = book.chunks.get(&sequence);
    let late = chunk.is_some_and(|c| c.record.summary.last_ns > book.reused_to_ns && c.is_due());
    let whole = |number: &u64| {
        let chunk = book.chunks.get(number);
        chunk.is_some_and(|c| c.is_due() || (late && c.acknowledged && !c.excused))
    };
    let guards = book.groups.guards(sequence);
    let table = guards.first().and_then(|guard| book.groups.tables.get(guard));
    gone.len() <= guards.len()
        && book.chunks.get(&sequence).is_some_and(|chunk| chunk.secured)
        && guards.iter().all(whole)
        && table.is_some_and(|table| table.rows.iter().all(|row| whole(&row.sequence)))
}

/// Holds what a reader found without the members that are `gone` to what was promised: all that was acknowledged with parity,
/// as long as no more of its group's members are gone than it has parities.
pub fn judge_without(book: &mut Book, catalog: &Catalog, extracted: &Extracted, gone: &[u16]) {
    let mut found = 0;
    for (sequence, chunk) in &book.chunks {
        if !promised(book, *sequence, gone) {
            continue;
        }
        let entry = |root: u64| {
            let same = |n: u64, replaces: Option<u64>| replaces.unwrap_or(n) == root;
            catalog.entries.iter().find(|e| same(e.record.sequence, e.record.replaces))
        };
        let listed = entry(chunk.root());
        let had = listed.is_some_and(|e| !extracted.lost.contains_key(&e.record.sequence));
        assert!(
            had,
            "parity: chunk {sequence} of member {} can't be had without {gone:?}: {listed:?}",
            chunk.place.member
        );
        found += u32::from(gone.contains(&chunk.place.member));
    }
    if found > 0 {
        book.met.add(Outcome::GivenBack);
    }
}

/// The group without as many chunks as it has parities: the reader's code makes them again.
fn give_back(table: &Table, chunks: &[Vec<u8>], parities: &[Option<Vec<u8>>; 2], salt: u64) {
    let there = parities.iter().flatten().count().min(chunks.len());
    let gone = |at: usize| (0..there).any(|n| (salt as usize + n) % chunks.len() == at);
    let left: Vec<Option<&[u8]>> = chunks
        .iter()
        .enumerate()
        .map(|(at, chunk)| (!gone(at)).then_some(chunk.as_slice()))
        .collect();
    let [sum, code] = parities;
    let made = recover(&table.rows, &left, [sum.as_deref(), code.as_deref()]);
    let wanted: Vec<&Vec<u8>> =
        chunks.iter().enumerate().filter(|&(at, _)| gone(at)).map(|(_, chunk)| chunk).collect();
    let Ok(made) = made else { panic!("parity: {made:?}") };
    assert!(made.iter().eq(wanted), "parity: a chunk that was made again is another");
}

/// A chunk's bytes as its drive has them, whether it answers or not.
fn sound(hub: &mut Hub, place: &Place, record: &ChunkRecord) -> Vec<u8> {
    let mut bytes = vec![0; record.summary.length as usize];
    hub.media(place.member).read(place.offset, &mut bytes);
    let read = ChunkRecord::read(&bytes);
    assert_eq!(read, Ok((*place, *record)), "parity: a chunk of an acknowledged group");
    let body = check_body(&bytes, record);
    assert_eq!(body, Ok(()), "parity: chunk {} of an acknowledged group", record.sequence);
    bytes
}

/// The field's words as polynomials (section 9 of the format).
static POLYNOMIALS: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let basis = [
        0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012, 0x6C98, 0x10D8, 0x6A72,
        0xB900, 0xFDB8, 0xFB34, 0xFF38, 0x991E,
    ];
    let mut all = vec![0u16];
    for polynomial in basis {
        all.extend(all.clone().iter().map(|other| other ^ polynomial));
    }
    all
});

fn words(bytes: &[u8]) -> Vec<u16> {
    let runs = bytes.as_chunks::<64>().0.iter();
    let word = |run: &[u8; 64], at: usize| u16::from_le_bytes([run[at], run[32 + at]]);
    runs.flat_map(|run| (0..32).map(move |at| POLYNOMIALS[usize::from(word(run, at))])).collect()
}

/// What the parity of this place must be over these chunks.
fn equation(place: u8, chunks: &[Vec<u8>]) -> Vec<u16> {
    let longest = chunks.iter().map(Vec::len).max().unwrap_or(0);
    let mut sum = vec![0u16; longest / 2];
    for chunk in chunks {
        if place == 1 {
            for word in &mut sum {
                *word = *word << 1 ^ if *word >> 15 == 1 { 0x002D } else { 0 };
            }
        }
        for (sum, word) in sum.iter_mut().zip(words(chunk)) {
            *sum ^= word;
        }
    }
    sum
}
