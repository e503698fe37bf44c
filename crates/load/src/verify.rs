//! Verification: written bytes say where and when they were written, so that every wrong byte that is read is found:
//! corrupted, misplaced, or older than what was acknowledged.

use base::{DriveId, Random};
use serde::{Deserialize, Serialize};

/// Every such piece carries its own marks: no drive writes less at once.
const SECTOR_BYTES: usize = 512;

/// Wrong places that are kept in detail; the count goes on.
const MISMATCHES_MAX: usize = 100;

/// Places a job may keep the last write of: half a gigabyte of memory.
pub const UNITS_MAX: u64 = 1 << 27;

/// A place whose bytes were not what was written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Index of the drive in the bank.
    pub drive: u16,
    /// First wrong byte on the drive.
    pub offset: u64,
    /// Wrong bytes in this sector of 512.
    pub bytes: u32,
    /// What is there instead.
    pub found: String,
}

/// What verification came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Bytes that were read and compared.
    pub checked_bytes: u64,
    /// Sectors of 512 bytes that were wrong.
    pub wrong_sectors: u64,
    /// The first of them.
    pub mismatches: Vec<Mismatch>,
}

impl Verification {
    /// Adds what another job found.
    pub fn add(&mut self, other: &Self) {
        self.checked_bytes += other.checked_bytes;
        self.wrong_sectors += other.wrong_sectors;
        let room = MISMATCHES_MAX.saturating_sub(self.mismatches.len());
        self.mismatches.extend(other.mismatches.iter().take(room).cloned());
    }
}

/// What one job has written in its region and not another one writes.
#[derive(Clone, Debug)]
pub struct Verifier {
    seed: u64,
    drive: DriveId,
    from: u64,
    unit: u64,
    /// The number of the last acknowledged write of each unit; 0 for none.
    last: Vec<u32>,
    /// Ranges of writes and reads under way.
    under_way: Vec<(u64, u64)>,
    writes: u32,
    found: Verification,
}

impl Verifier {
    /// For a region of a drive whose commands are multiples of `unit` bytes, itself a multiple of 512.
    ///
    /// # Panics
    /// With more than [`UNITS_MAX`] units or a unit that isn't a multiple of 512.
    pub fn new(seed: u64, drive: DriveId, from: u64, bytes: u64, unit: u64) -> Self {
        assert!(bytes / unit <= UNITS_MAX && unit.is_multiple_of(SECTOR_BYTES as u64));
        let last = vec![0; (bytes / unit) as usize];
        Self {
            seed,
            drive,
            from,
            unit,
            last,
            under_way: Vec::new(),
            writes: 0,
            found: Verification::default(),
        }
    }

    /// Claims a range for a command; false if another command on it is under way.
    pub fn claim(&mut self, offset: u64, length: u64) -> bool {
        let end = offset + length;
        let free = self.under_way.iter().all(|&(from, to)| end <= from || to <= offset);
        if free {
            self.under_way.push((offset, end));
        }
        free
    }

    /// Gives a range back.
    pub fn release(&mut self, offset: u64) {
        if let Some(at) = self.under_way.iter().position(|&(from, _)| from == offset) {
            self.under_way.swap_remove(at);
        }
    }

    /// Fills the bytes of a write to `offset`. Returns the write's number.
    pub fn fill(&mut self, offset: u64, bytes: &mut [u8]) -> u32 {
        self.writes += 1;
        for (index, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
            self.pattern(offset + (index * SECTOR_BYTES) as u64, self.writes, sector);
        }
        self.writes
    }

    /// A write was acknowledged: from now on reads must find it.
    pub fn written(&mut self, offset: u64, length: u64, number: u32) {
        for unit in self.units(offset, length) {
            self.last[unit] = number;
        }
    }

    /// A write failed or was trimmed: what is there now is not known.
    pub fn unknown(&mut self, offset: u64, length: u64) {
        self.written(offset, length, 0);
    }

    /// Compares what was read at `offset` with the last acknowledged write there. Places never written are not looked at.
    pub fn check(&mut self, offset: u64, bytes: &[u8]) {
        let mut expected = [0; SECTOR_BYTES];
        for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
            let at = offset + (index * SECTOR_BYTES) as u64;
            let number = self.last[((at - self.from) / self.unit) as usize];
            if number == 0 {
                continue;
            }
            self.found.checked_bytes += sector.len() as u64;
            self.pattern(at, number, &mut expected);
            if sector != &expected[..sector.len()] {
                self.mismatch(at, number, sector, &expected);
            }
        }
    }

    /// The next range of at most `length` bytes from `offset` on that holds written units, or None at the end.
    pub fn next_written(&self, offset: u64, length: u64) -> Option<(u64, u64)> {
        let first = ((offset - self.from) / self.unit) as usize;
        let start = (first..self.last.len()).find(|&unit| self.last[unit] != 0)?;
        let longest = (length / self.unit).max(1) as usize;
        let count =
            self.last[start..].iter().take(longest).take_while(|&&number| number != 0).count();
        Some((self.from + start as u64 * self.unit, count as u64 * self.unit))
    }

    /// What was found so far.
    pub fn verification(&self) -> &Verification {
        &self.found
    }

    fn units(&self, offset: u64, length: u64) -> std::ops::Range<usize> {
        let first = (offset - self.from) / self.unit;
        first as usize..(first + length.div_ceil(self.unit)) as usize
    }

    /// A sector begins with its offset, its write's number and the run's seed; the rest follows from them.
    fn pattern(&self, offset: u64, number: u32, sector: &mut [u8]) {
        let mut random =
            Random::new(self.seed ^ offset.rotate_left(20) ^ u64::from(number).rotate_left(44));
        let marks = [offset, u64::from(number), self.seed];
        for (index, word) in sector.chunks_mut(8).enumerate() {
            let value = marks.get(index).copied().unwrap_or_else(|| random.bits());
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
    }

    fn mismatch(&mut self, offset: u64, number: u32, sector: &[u8], expected: &[u8]) {
        self.found.wrong_sectors += 1;
        if self.found.mismatches.len() >= MISMATCHES_MAX {
            return;
        }
        let word = |index: usize| {
            sector
                .get(index * 8..index * 8 + 8)
                .map_or(0, |b| u64::from_le_bytes(b.try_into().expect("8 bytes")))
        };
        let wrong = sector.iter().zip(expected).filter(|(a, b)| a != b).count() as u32;
        let first = sector.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0) as u64;
        let mut whole = [0; SECTOR_BYTES];
        self.pattern(word(0), word(1) as u32, &mut whole);
        let is_ours = word(2) == self.seed && sector == &whole[..sector.len()];
        let found = if is_ours && word(0) != offset {
            format!("what was written at {}", word(0))
        } else if is_ours {
            format!("write {} of this place, though write {number} was acknowledged", word(1))
        } else if sector.iter().all(|&b| b == 0) {
            "zeros".to_owned()
        } else if wrong <= 64 {
            "corrupted bytes".to_owned()
        } else {
            "bytes that this run did not write".to_owned()
        };
        let mismatch =
            Mismatch { drive: self.drive.0, offset: offset + first, bytes: wrong, found };
        self.found.mismatches.push(mismatch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verifier that has written 4 KiB at 8192 twice, and those bytes.
    fn written() -> (Verifier, Vec<u8>, Vec<u8>) {
        let mut verifier = Verifier::new(77, DriveId(0), 4096, 1 << 20, 4096);
        let mut first = vec![0; 4096];
        let mut second = vec![0; 4096];
        let number = verifier.fill(8192, &mut first);
        verifier.written(8192, 4096, number);
        let number = verifier.fill(8192, &mut second);
        verifier.written(8192, 4096, number);
        (verifier, first, second)
    }

    #[test]
    fn what_was_written_last_is_right() {
        let (mut verifier, _, second) = written();
        verifier.check(8192, &second);
        verifier.check(16384, &second);
        assert_eq!(
            verifier.verification().checked_bytes,
            4096,
            "a place never written is not judged"
        );
        assert_eq!(verifier.verification().wrong_sectors, 0);
        assert_eq!(verifier.next_written(4096, 65536), Some((8192, 4096)));
        assert_eq!(verifier.next_written(12288, 65536), None);
    }

    #[test]
    fn every_single_wrong_byte_is_found_at_its_place() {
        let (verifier, _, second) = written();
        for at in 0..4096 {
            let mut verifier = verifier.clone();
            let mut bytes = second.clone();
            bytes[at] ^= 0x10;
            verifier.check(8192, &bytes);
            let found = &verifier.verification().mismatches;
            assert_eq!((found.len(), found[0].offset, found[0].bytes), (1, 8192 + at as u64, 1));
            assert!(found[0].found.contains("corrupted"), "{at}: {}", found[0].found);
        }
    }

    #[test]
    fn lost_and_misplaced_writes_are_told_apart() {
        let (mut verifier, first, second) = written();
        verifier.check(8192, &first);
        assert!(verifier.verification().mismatches[0].found.starts_with("write 1 of this place"));
        let number = verifier.fill(20480, &mut vec![0; 4096]);
        verifier.written(20480, 4096, number);
        verifier.check(20480, &second);
        verifier.check(20480, &[0; 4096]);
        let found = &verifier.verification().mismatches;
        assert_eq!(found[8].found, "what was written at 8192");
        assert_eq!(found[16].found, "zeros");
        verifier.unknown(20480, 4096);
        verifier.check(20480, &[9; 4096]);
        assert_eq!(
            verifier.verification().wrong_sectors,
            24,
            "a failed write leaves nothing to judge"
        );
    }

    #[test]
    fn commands_that_overlap_wait_for_each_other() {
        let (mut verifier, ..) = written();
        assert!(verifier.claim(8192, 8192));
        assert!(!verifier.claim(12288, 4096));
        assert!(verifier.claim(16384, 4096));
        verifier.release(8192);
        assert!(verifier.claim(12288, 4096));
    }
}
