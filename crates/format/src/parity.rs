//! Parity over the chunks of a group, so that members may die and nothing is lost (`docs/format.md`, section 9).
//!
//! The first parity is their exclusive or, the second one their Reed-Solomon code. Both are made while chunks are written,
//! chunk by chunk, and are linear: what is missing is solved for.

use std::fmt;

use reed_solomon_simd::engine::{DefaultEngine, Engine, GF_MODULUS, tables};

use crate::chunk::{ChunkRecord, SEQUENCE_END};
use crate::crc::crc32c;
use crate::fields::{Get, Put};
use crate::layout::PAGE_BYTES;
use crate::pcapng::{self, LOCAL_HEADER_BYTES, PRIVATE, PrivateKind};
use crate::section::{Damage, HEADER_BYTES};

/// Parity chunks of a group at most.
pub const PARITY_MAX: u8 = 2;
/// Data chunks of a group at most: their table fits beside the parity.
pub const GROUP_MAX: usize = 64;
/// What a parity chunk is longer than its group's longest chunk: its header and the group's table.
pub const OVERHEAD_BYTES: u32 = PAGE_BYTES as u32;
/// Where the parity starts in its chunk: aligned for the widest registers.
pub const PARITY_AT: usize = 576;

const ROW_BYTES: usize = 24;
const FIXED_AT: usize = HEADER_BYTES + LOCAL_HEADER_BYTES;
const _: () = assert!(PARITY_AT + GROUP_MAX * ROW_BYTES + 4 <= OVERHEAD_BYTES as usize);
const _: () = assert!(PARITY_AT >= FIXED_AT + 16);

/// The field's generator x, as the logarithm that the library takes.
const GENERATOR: u16 = 1;
/// Bytes that are worked on at once: two streams of them stay in the L1 cache.
const STRIDE: usize = 8 << 10;

/// What a chunk's record says of it if it is parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The group: the sequence number of its first chunk.
    pub group: u64,
    /// The number of its last data chunk, less that one. What lies between and is no parity is the group's.
    pub span: u32,
    /// Which of the group's parities this is: 0 for exclusive or, 1 for Reed-Solomon.
    pub place: u8,
    /// How many parities the group was given.
    pub of: u8,
}

impl Part {
    /// Parity of nothing: the chunk only fills a hole, so that what lies behind it on its member is found.
    pub const FILLER: Self = Self { group: 0, span: 0, place: 0, of: 0 };

    /// Whether a chunk of this number can be this part.
    pub(crate) fn sound(&self, sequence: u64) -> bool {
        let last = self.group.checked_add(u64::from(self.span));
        let parity = self.place < self.of && self.of <= PARITY_MAX;
        *self == Self::FILLER || (parity && last.is_some_and(|last| last < sequence))
    }
}

/// What a data chunk's record says of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Joined {
    /// The group: the sequence number of its first chunk.
    pub group: u64,
    /// How many parities it was to be given when it was opened: 1 at least.
    pub of: u8,
}

/// Where a parity chunk went, as the chunks behind it tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedParity {
    /// Its sequence number.
    pub sequence: u64,
    /// Its group: the sequence number of the group's first chunk.
    pub group: u64,
    /// Its member.
    pub member: u16,
    /// Which of the group's parities it is.
    pub place: u8,
    /// How many the group was given.
    pub of: u8,
}

/// The parity chunks that were given places last before a chunk, as its record has them: when a member is lost, nobody
/// else knows which of its chunks were whose parity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastParities([[u8; Self::ENTRY_BYTES]; Self::COUNT]);

impl LastParities {
    /// So many at most.
    pub const COUNT: usize = 8;
    const ENTRY_BYTES: usize = 6;

    /// Those that a chunk of this number tells of, newest first. What lies too far back, or on a member too many, is left out.
    pub fn of(sequence: u64, parities: impl IntoIterator<Item = PlacedParity>) -> Self {
        let mut last = Self::default();
        let entries = parities.into_iter().filter_map(|p| Self::entry(sequence, &p));
        for (to, entry) in last.0.iter_mut().zip(entries) {
            *to = entry;
        }
        last
    }

    fn entry(sequence: u64, parity: &PlacedParity) -> Option<[u8; Self::ENTRY_BYTES]> {
        let back = u16::try_from(sequence.checked_sub(parity.sequence)?).ok()?;
        let group = u16::try_from(parity.sequence.checked_sub(parity.group)?).ok()?;
        let member = u8::try_from(parity.member).ok()?;
        let mut entry = [0; Self::ENTRY_BYTES];
        let mut put = Put::new(&mut entry);
        put.u16(back).u16(group).raw(&[member, parity.place | parity.of << 4]);
        (back > 0).then_some(entry)
    }

    /// What a chunk of this number tells with them, newest first.
    pub fn told_by(&self, sequence: u64) -> impl Iterator<Item = PlacedParity> + '_ {
        self.0.iter().filter_map(move |entry| {
            let mut get = Get::new(entry);
            let back = Some(get.u16()).filter(|&back| back > 0)?;
            let parity = sequence.checked_sub(back.into())?;
            let group = parity.checked_sub(get.u16().into()).filter(|&group| group < parity)?;
            let [member, which] = get.raw();
            let (place, of) = (which & 15, which >> 4);
            let member = member.into();
            (place < of && of <= PARITY_MAX).then_some(PlacedParity {
                sequence: parity,
                group,
                member,
                place,
                of,
            })
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn put(&self, put: &mut Put<'_>) {
        put.raw(self.0.as_flattened());
    }

    pub(crate) fn get(get: &mut Get<'_>) -> Self {
        Self(std::array::from_fn(|_| get.raw()))
    }
}

/// One data chunk of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its sequence number.
    pub sequence: u64,
    /// Where it lies on its member.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u32,
    /// Its member.
    pub member: u16,
}

/// Which chunks a parity is of, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Which parity this is.
    pub part: Part,
    /// The group's data chunks.
    pub rows: Vec<Row>,
}

impl Table {
    /// The longest of the chunks: so long is the parity, in bytes.
    pub fn longest(&self) -> u32 {
        self.rows.iter().map(|row| row.length).max().unwrap_or(0)
    }

    /// Writes all but the header around the parity that [`fold`] left in `chunk`. Returns the chunk's length and its body's
    /// checksum.
    ///
    /// # Panics
    /// If there are more rows than [`GROUP_MAX`], or the buffer is shorter than the chunk.
    pub fn seal(&self, chunk: &mut [u8]) -> (u32, u32) {
        assert!(self.rows.len() <= GROUP_MAX, "{} chunks in a group", self.rows.len());
        let longest = self.longest();
        let length = longest + OVERHEAD_BYTES;
        let block = length - HEADER_BYTES as u32;
        let body = &mut chunk[HEADER_BYTES..length as usize];
        pcapng::private_header(&mut body[..LOCAL_HEADER_BYTES], PrivateKind::Parity, block);
        let fixed = LOCAL_HEADER_BYTES..PARITY_AT - HEADER_BYTES;
        Put::new(&mut body[fixed])
            .u64(self.part.group)
            .u16(u16::from(self.part.place))
            .u16(u16::from(self.part.of))
            .u16(self.rows.len() as u16)
            .u16(0)
            .u32(longest)
            .finish();
        let behind = PARITY_AT - HEADER_BYTES + longest as usize;
        let end = body.len() - 4;
        let mut put = Put::new(&mut body[behind..end]);
        for row in &self.rows {
            put.u64(row.sequence).u64(row.offset).u32(row.length).u16(row.member).u16(0);
        }
        put.finish();
        body[end..].copy_from_slice(&block.to_le_bytes());
        (length, crc32c(body))
    }

    /// Reads a parity chunk whose checksums were checked: its table, and its parity.
    ///
    /// # Errors
    /// [`Damage`] if it is none, or its table can't be true.
    pub fn read<'c>(chunk: &'c [u8], record: &ChunkRecord) -> Result<(Self, &'c [u8]), Damage> {
        let part = record.parity.ok_or(Damage::Elsewhere)?;
        let length = record.summary.length as usize;
        let chunk = chunk.get(..length).ok_or(Damage::Short)?;
        let longest = length.checked_sub(OVERHEAD_BYTES as usize).ok_or(Damage::Length)?;
        let mut get = Get::new(&chunk[HEADER_BYTES..]);
        if (get.u32(), get.skip(8).u32()) != (PRIVATE, PrivateKind::Parity as u32) {
            return Err(Damage::Elsewhere);
        }
        let said = (get.u64(), get.u16(), get.u16());
        let count = usize::from(get.u16());
        if said != (part.group, part.place.into(), part.of.into())
            || !(1..=GROUP_MAX).contains(&count)
        {
            return Err(Damage::Contradiction);
        }
        let mut get = Get::new(&chunk[PARITY_AT + longest..]);
        let rows: Vec<Row> = (0..count)
            .map(|_| {
                let (sequence, offset) = (get.u64(), get.u64());
                let (length, member) = (get.u32(), get.u16());
                get.skip(2);
                Row { sequence, offset, length, member }
            })
            .collect();
        let table = Self { part, rows };
        table.sound(longest, record.sequence).map(|()| {
            let parity = &chunk[PARITY_AT..PARITY_AT + longest];
            (table, parity)
        })
    }

    fn sound(&self, longest: usize, sequence: u64) -> Result<(), Damage> {
        let lengths = self.longest() as usize == longest
            && self.rows.iter().all(|row| {
                row.length > HEADER_BYTES as u32 && u64::from(row.length).is_multiple_of(PAGE_BYTES)
            });
        let mut members: Vec<u16> = self.rows.iter().map(|row| row.member).collect();
        members.sort_unstable();
        let span = u64::from(self.part.span);
        let numbers = self.rows[0].sequence == self.part.group
            && self.rows.windows(2).all(|pair| pair[0].sequence < pair[1].sequence)
            && self.rows.iter().all(|row| row.sequence < sequence && row.offset < SEQUENCE_END)
            && self.rows.last().is_some_and(|r| r.sequence == self.part.group + span)
            && members.windows(2).all(|pair| pair[0] != pair[1]);
        match (lengths, numbers) {
            (true, true) => Ok(()),
            (false, _) => Err(Damage::Length),
            (true, false) => Err(Damage::Contradiction),
        }
    }
}

/// Takes the next chunk of a group, as it will lie on its medium, into one of the group's parities. `parity` is the parity
/// chunk's buffer, in which `filled` bytes of parity stand from [`PARITY_AT`] on: as many as the longest of the chunks before.
///
/// # Panics
/// If the chunk does not fit in the buffer.
pub fn fold(place: u8, parity: &mut [u8], filled: u32, chunk: &[u8]) {
    let filled = filled as usize;
    let parity = &mut parity[PARITY_AT..PARITY_AT + filled.max(chunk.len())];
    let both = filled.min(chunk.len());
    let engine = (place > 0).then(DefaultEngine::new);
    for from in (0..filled).step_by(STRIDE) {
        let piece = &mut parity[from..filled.min(from + STRIDE)];
        if let Some(engine) = &engine {
            engine.mul(piece.as_chunks_mut().0, GENERATOR);
        }
        let with = both.min(from + piece.len());
        add(piece, chunk.get(from..with).unwrap_or_default());
    }
    if chunk.len() > filled {
        parity[filled..].copy_from_slice(&chunk[filled..]);
    }
}

/// Adds in the field, which is exclusive or, as far as `other` reaches.
fn add(bytes: &mut [u8], other: &[u8]) {
    for (byte, other) in bytes.iter_mut().zip(other) {
        *byte ^= other;
    }
}

/// More chunks of a group are missing than there are parities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyMissing {
    /// Chunks that are missing.
    pub missing: usize,
    /// Parities that are there.
    pub parities: usize,
}

impl fmt::Display for TooManyMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} chunks of a group are missing and {} of its parities are there: no more chunks can be made again than parities are there",
            self.missing, self.parities
        )
    }
}

impl std::error::Error for TooManyMissing {}

/// Makes the chunks that are `None` again, from the group's other ones (in the order of `rows`) and its parities (by place). The
/// result is in the order of the rows. That a chunk is what it was is for its own checksums and its record to say.
///
/// # Errors
/// [`TooManyMissing`] if the parities that are there don't suffice.
pub fn recover(
    rows: &[Row],
    chunks: &[Option<&[u8]>],
    parities: [Option<&[u8]>; PARITY_MAX as usize],
) -> Result<Vec<Vec<u8>>, TooManyMissing> {
    let missing: Vec<usize> =
        (0..rows.len()).filter(|&at| chunks.get(at).is_none_or(Option::is_none)).collect();
    let longest = rows.iter().map(|row| row.length as usize).max().unwrap_or(0);
    let [sum, code] = parities.map(|p| p.filter(|p| p.len() >= longest).map(|p| &p[..longest]));
    let there = usize::from(sum.is_some()) + usize::from(code.is_some());
    // What the missing chunks come to: the parity, less what is there.
    let rest = |place: u8, parity: &[u8]| {
        let mut rest = vec![0; PARITY_AT + longest];
        for chunk in (0..rows.len()).map(|at| chunks.get(at).copied().flatten()) {
            fold(place, &mut rest, longest as u32, chunk.unwrap_or_default());
        }
        let mut rest = rest.split_off(PARITY_AT);
        add(&mut rest, parity);
        rest
    };
    // Each row's factor in the code is the generator to this power.
    let power = |row: usize| (rows.len() - 1 - row) as u16;
    let divide = |bytes: &mut [u8], log: u16| {
        DefaultEngine::new().mul(bytes.as_chunks_mut().0, (GF_MODULUS - log) % GF_MODULUS);
    };
    let mut made = match (missing.as_slice(), sum, code) {
        ([], ..) => Vec::new(),
        ([_], Some(sum), _) => vec![rest(0, sum)],
        (&[row], None, Some(code)) => {
            let mut one = rest(1, code);
            divide(&mut one, power(row));
            vec![one]
        }
        (&[first, second], Some(sum), Some(code)) => {
            // From a + b and f a + g b: a = (f a + g b + g (a + b)) / (f + g).
            let mut other = rest(0, sum);
            let mut one = other.clone();
            DefaultEngine::new().mul(one.as_chunks_mut().0, power(second));
            add(&mut one, &rest(1, code));
            let field = tables::get_exp_log();
            let factor = |row| field.exp[usize::from(power(row))];
            let both = factor(first) ^ factor(second);
            divide(&mut one, field.log[usize::from(both)]);
            add(&mut other, &one);
            vec![one, other]
        }
        _ => return Err(TooManyMissing { missing: missing.len(), parities: there }),
    };
    for (chunk, row) in made.iter_mut().zip(missing) {
        chunk.truncate(rows[row].length as usize);
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{ChunkSummary, TakeId, check_body};
    use crate::ledger::Ledger;
    use base::Timestamp;
    use proptest::prelude::*;
    use uuid::Uuid;

    /// The field as section 9 has it, by nothing but shifts: words are sums of these.
    const BASIS: [u16; 16] = [
        0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012, 0x6C98, 0x10D8, 0x6A72,
        0xB900, 0xFDB8, 0xFB34, 0xFF38, 0x991E,
    ];

    fn polynomial(word: u16) -> u16 {
        (0..16).filter(|bit| word >> bit & 1 == 1).fold(0, |sum, bit| sum ^ BASIS[bit])
    }

    fn times_x(polynomial: u16) -> u16 {
        polynomial << 1 ^ if polynomial >> 15 == 1 { 0x002D } else { 0 }
    }

    /// The words of some bytes, as polynomials.
    fn words(bytes: &[u8]) -> Vec<u16> {
        let runs = bytes.as_chunks::<64>().0.iter();
        runs.flat_map(|run| {
            (0..32).map(|at| polynomial(u16::from_le_bytes([run[at], run[32 + at]])))
        })
        .collect()
    }

    fn chunks(lengths: &[u32], seed: u8) -> (Vec<Row>, Vec<Vec<u8>>) {
        let rows = (0..).zip(lengths).map(|(at, &pages)| Row {
            sequence: 100 + at,
            offset: at << 20,
            length: pages * 4096,
            member: at as u16,
        });
        let rows: Vec<Row> = rows.collect();
        let made = rows.iter().map(|row| {
            let byte =
                |at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ row.member as u8 ^ seed;
            (0..row.length).map(byte).collect()
        });
        let made = made.collect();
        (rows, made)
    }

    fn record(part: Part, length: u32, body_crc: u32) -> ChunkRecord {
        let take =
            TakeId { uuid: Uuid::nil(), started: Timestamp::MIN, first_sequence: part.group };
        let times = ChunkSummary { first_ns: 1, last_ns: 2, sealed_ns: 3, ..ChunkSummary::EMPTY };
        let summary = ChunkSummary { length, body_crc, ..times };
        ChunkRecord {
            take,
            sequence: part.group + 2,
            replaces: None,
            ledger: Ledger::default(),
            reused: None,
            reused_to_ns: 0,
            parity: Some(part),
            group: None,
            last_parities: LastParities::default(),
            summary,
        }
    }

    fn parity_of(place: u8, chunks: &[Vec<u8>]) -> Vec<u8> {
        let longest = chunks.iter().map(Vec::len).max().unwrap_or(0);
        // What a buffer held before does not matter.
        let mut parity = vec![0xEE; PARITY_AT + longest];
        let mut filled = 0;
        for chunk in chunks {
            fold(place, &mut parity, filled as u32, chunk);
            filled = filled.max(chunk.len());
        }
        parity.split_off(PARITY_AT)
    }

    #[test]
    fn the_code_is_the_one_that_the_specification_states() {
        let (_, chunks) = chunks(&[2, 1, 3, 1], 9);
        let mut sum = vec![0u16; 3 * 2048];
        let mut code = sum.clone();
        for chunk in &chunks {
            code.iter_mut().for_each(|word| *word = times_x(*word));
            for (at, word) in words(chunk).into_iter().enumerate() {
                sum[at] ^= word;
                code[at] ^= word;
            }
        }
        assert_eq!(words(&parity_of(0, &chunks)), sum);
        assert_eq!(words(&parity_of(1, &chunks)), code);
    }

    #[test]
    fn a_table_reads_back_and_one_that_cannot_be_true_is_damaged() {
        let (rows, chunks) = chunks(&[2, 3], 1);
        let part = Part { group: 100, span: 1, place: 1, of: 2 };
        let table = Table { part, rows };
        let mut chunk = vec![0xEE; 4 * 4096];
        chunk[PARITY_AT..PARITY_AT + 3 * 4096].copy_from_slice(&parity_of(1, &chunks));
        let (length, body_crc) = table.seal(&mut chunk);
        assert_eq!(length, 4 * 4096);
        let record = record(part, length, body_crc);
        assert_eq!(check_body(&chunk, &record), Ok(()));
        let (read, parity) = Table::read(&chunk, &record).unwrap();
        assert_eq!((&read, parity), (&table, parity_of(1, &chunks).as_slice()));
        let refusal = |change: fn(&mut Table)| {
            let mut changed = table.clone();
            changed.rows[1].length = 3 * 4096;
            change(&mut changed);
            let mut chunk = chunk.clone();
            changed.seal(&mut chunk);
            Table::read(&chunk, &record).err()
        };
        assert_eq!(refusal(|_| ()), None);
        assert_eq!(refusal(|t| t.rows[0].length = 100), Some(Damage::Length));
        assert_eq!(refusal(|t| t.rows[0].member = 1), Some(Damage::Contradiction));
        assert_eq!(refusal(|t| t.rows[1].sequence = 99), Some(Damage::Contradiction));
        assert_eq!(refusal(|t| t.rows[1].sequence = 200), Some(Damage::Contradiction));
        assert_eq!(refusal(|t| t.part.place = 0), Some(Damage::Contradiction));
    }

    #[test]
    fn a_chunk_tells_of_the_parities_before_it_as_far_as_its_record_has_room() {
        let placed = |back: u64| PlacedParity {
            sequence: 900_000 - back,
            group: 900_000 - back - 4,
            member: (back % 256) as u16,
            place: (back % 2) as u8,
            of: 2,
        };
        let told = |parities: Vec<PlacedParity>| {
            let last = LastParities::of(900_000, parities);
            last.told_by(900_000).map(|p| 900_000 - p.sequence).collect::<Vec<_>>()
        };
        let last = LastParities::of(900_000, [placed(1), placed(3)]);
        assert!(last.told_by(900_000).eq([placed(1), placed(3)]));
        assert_eq!(told((1..20).map(placed).collect()), (1..9).collect::<Vec<_>>());
        assert_eq!(told(vec![placed(0), placed(65_536), placed(65_535)]), [65_535]);
        assert_eq!(told(vec![PlacedParity { member: 256, ..placed(1) }, placed(2)]), [2]);
        assert!(LastParities::default().is_empty() && told(Vec::new()).is_empty());
        // What no recorder writes tells nothing.
        assert_eq!(last.told_by(2).count(), 0);
        assert_eq!(LastParities([[0, 0, 1, 0, 0, 0x10]; 8]).told_by(9).count(), 0);
        assert_eq!(LastParities([[1, 0, 0, 0, 0, 0x10]; 8]).told_by(9).count(), 0);
        assert_eq!(LastParities([[1, 0, 1, 0, 0, 0x11]; 8]).told_by(9).count(), 0);
        assert_eq!(LastParities([[1, 0, 1, 0, 0, 0x30]; 8]).told_by(9).count(), 0);
    }

    #[test]
    fn any_two_chunks_of_a_group_are_recovered_from_both_parities() {
        let (rows, chunks) = chunks(&[1; 12], 5);
        let parities = [0, 1].map(|place| parity_of(place, &chunks));
        for first in 0..rows.len() {
            for second in first + 1..rows.len() {
                let left =
                    |at: usize| (at != first && at != second).then_some(chunks[at].as_slice());
                let left: Vec<Option<&[u8]>> = (0..rows.len()).map(left).collect();
                let made = recover(&rows, &left, parities.each_ref().map(|p| Some(p.as_slice())));
                let expected = [first, second].map(|at| chunks[at].clone());
                assert_eq!(made, Ok(expected.to_vec()), "{first} and {second}");
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_is_missing_is_made_again_as_long_as_parities_are_there(
            lengths in proptest::collection::vec(1u32..4, 1..12),
            lost in (any::<u8>(), any::<u8>()),
            there in (any::<bool>(), any::<bool>()),
            seed in any::<u8>(),
        ) {
            let (rows, chunks) = chunks(&lengths, seed);
            let [sum, code] = [0, 1].map(|place| parity_of(place, &chunks));
            let lost = [lost.0, lost.1].map(|n| usize::from(n) % chunks.len());
            let left: Vec<Option<&[u8]>> = chunks.iter().enumerate()
                .map(|(at, chunk)| (!lost.contains(&at)).then_some(chunk.as_slice())).collect();
            let missing = left.iter().filter(|chunk| chunk.is_none()).count();
            let parities = [there.0.then_some(sum.as_slice()), there.1.then_some(code.as_slice())];
            let parities_there = parities.iter().flatten().count();
            let made = recover(&rows, &left, parities);
            if missing > parities_there {
                prop_assert_eq!(made, Err(TooManyMissing { missing, parities: parities_there }));
            } else {
                let expected: Vec<Vec<u8>> = chunks.iter().zip(&left)
                    .filter(|(_, left)| left.is_none()).map(|(chunk, _)| chunk.clone()).collect();
                prop_assert_eq!(made, Ok(expected));
            }
        }
    }
}
