//! A drive's medium whose write cache is really lost when the power goes, in a file of the host.
//!
//! Writes go to the file at once, and what they replaced is kept beside it until a flush. A power cut takes back
//! what was not flushed, so that every block is as some write since the last flush left it. It also says which chunks
//! nothing may have taken: the truth that what is found afterwards is held against.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use base::Random;
use format::chunk::check_body;
use format::layout::DATA_OFFSET;
use format::{ChunkRecord, PAGE_BYTES};
use nix::errno::Errno;

/// The most that a cache holds. Then it destages the oldest, as drives do.
const CACHE_BYTES_MAX: usize = 96 << 20;

/// One medium.
#[derive(Debug)]
pub struct Disk {
    file: File,
    size_bytes: u64,
    block_bytes: u64,
    /// Segments of the array that lies on it, to know what a ring has given up.
    segment_bytes: u64,
    /// What unflushed writes replaced, oldest first.
    replaced: VecDeque<Replaced>,
    replaced_bytes: usize,
    /// Chunks whose header was written, without those that were given up since.
    chunks: Vec<Chunk>,
    /// Headers of the chunks that the ring has overwritten.
    given_up: Vec<ChunkRecord>,
    fails_writes: bool,
    counts: Counts,
}

/// What a medium was asked to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flushes.
    pub flushes: u64,
    /// Bytes trimmed.
    pub trimmed_bytes: u64,
    /// Writes that were failed.
    pub failed: u64,
}

/// A chunk as it was written.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    offset: u64,
    /// What it says of itself.
    pub record: ChunkRecord,
}

#[derive(Debug)]
struct Replaced {
    offset: u64,
    bytes: Vec<u8>,
}

/// What a power cut does to what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// All of it is lost.
    All,
    /// Some commands are lost, others are not.
    Commands,
    /// Some blocks of a command are lost, others are not.
    Blocks,
}

/// What a power cut did.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    /// Bytes that were not flushed.
    pub unflushed_bytes: u64,
    /// Bytes of these that went back to what they were.
    pub lost_bytes: u64,
    /// Chunks that must be found: those that lie whole and flushed on the medium, and so does everything in front
    /// of them in their segment.
    pub flushed: Vec<ChunkRecord>,
    /// Chunks that were trimmed, or whose segment was begun anew, in all the time before.
    pub given_up: Vec<ChunkRecord>,
}

impl Disk {
    /// A new and empty medium for an array with segments of that length.
    ///
    /// # Errors
    /// If its file can't be made.
    pub fn create(
        path: &Path,
        size_bytes: u64,
        block_bytes: u32,
        segment_bytes: u64,
    ) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(size_bytes)?;
        Ok(Self {
            file,
            size_bytes,
            block_bytes: block_bytes.into(),
            segment_bytes,
            replaced: VecDeque::new(),
            replaced_bytes: 0,
            chunks: Vec::new(),
            given_up: Vec::new(),
            fails_writes: false,
            counts: Counts::default(),
        })
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What it was asked to do so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// From now on every write fails, or none.
    pub fn fail_writes(&mut self, fail: bool) {
        self.fails_writes = fail;
    }

    /// Reads.
    ///
    /// # Errors
    /// Beyond the end, or the file's.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    /// Writes into the cache.
    ///
    /// # Errors
    /// If it is to fail, beyond the end, or the file's.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.fails_writes {
            self.counts.failed += 1;
            return Err(Errno::EIO.into());
        }
        if offset.saturating_add(bytes.len() as u64) > self.size_bytes {
            return Err(Errno::ENOSPC.into());
        }
        let mut old = vec![0; bytes.len()];
        self.file.read_exact_at(&mut old, offset)?;
        self.file.write_all_at(bytes, offset)?;
        self.replaced_bytes += old.len();
        self.replaced.push_back(Replaced { offset, bytes: old });
        while self.replaced_bytes > CACHE_BYTES_MAX
            && let Some(destaged) = self.replaced.pop_front()
        {
            self.replaced_bytes -= destaged.bytes.len();
        }
        self.notice_chunks(offset, bytes);
        Ok(())
    }

    /// Makes durable what was written.
    pub fn flush(&mut self) {
        self.counts.flushes += 1;
        self.replaced.clear();
        self.replaced_bytes = 0;
    }

    /// Gives up what lies there; it reads as zeros from now on. A power cut doesn't bring it back, which is the
    /// harder of the two things that a drive may do.
    ///
    /// # Errors
    /// The file's.
    pub fn trim(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let end = offset.saturating_add(length);
        if end > self.size_bytes {
            return Err(Errno::EINVAL.into());
        }
        self.counts.trimmed_bytes += length;
        let zeros = vec![0; 1 << 20];
        let mut at = offset;
        while at < end {
            let part = (end - at).min(zeros.len() as u64);
            self.file.write_all_at(&zeros[..part as usize], at)?;
            at += part;
        }
        self.give_up(|chunk| chunk.offset < end && chunk.end() > offset);
        Ok(())
    }

    /// Cuts the power.
    ///
    /// # Errors
    /// The file's.
    pub fn cut_power(&mut self, cut: Cut, random: &mut Random) -> io::Result<Lost> {
        let mut lost =
            Lost { flushed: self.flushed()?, given_up: self.given_up.clone(), ..Lost::default() };
        // From the newest back: a block that keeps one write keeps all before it.
        let mut kept = HashSet::new();
        while let Some(Replaced { offset, bytes }) = self.replaced.pop_back() {
            lost.unflushed_bytes += bytes.len() as u64;
            let command_stays = random.one_in(2);
            for (at, old) in (0u64..).zip(bytes.chunks(self.block_bytes as usize)) {
                let place = offset + at * self.block_bytes;
                let stays = match cut {
                    Cut::All => false,
                    Cut::Commands => command_stays,
                    Cut::Blocks => random.one_in(2),
                };
                if stays || kept.contains(&place) {
                    kept.insert(place);
                } else {
                    self.file.write_all_at(old, place)?;
                    lost.lost_bytes += old.len() as u64;
                }
            }
        }
        self.replaced_bytes = 0;
        Ok(lost)
    }

    /// The chunks that no power cut may take.
    fn flushed(&self) -> io::Result<Vec<ChunkRecord>> {
        let mut chunks = self.chunks.clone();
        chunks.sort_by_key(|chunk| chunk.offset);
        let mut found: Vec<ChunkRecord> = Vec::new();
        let mut next = 0;
        for chunk in chunks {
            let starts_segment = (chunk.offset - DATA_OFFSET).is_multiple_of(self.segment_bytes);
            if (starts_segment || chunk.offset == next) && self.is_flushed(&chunk)? {
                next = chunk.end();
                found.push(chunk.record);
            }
        }
        Ok(found)
    }

    fn is_flushed(&self, chunk: &Chunk) -> io::Result<bool> {
        let volatile = self.replaced.iter().any(|replaced| {
            replaced.offset < chunk.end()
                && replaced.offset + replaced.bytes.len() as u64 > chunk.offset
        });
        if volatile {
            return Ok(false);
        }
        let mut bytes = vec![0; chunk.record.summary.length as usize];
        self.read(chunk.offset, &mut bytes)?;
        Ok(check_body(&bytes, &chunk.record).is_ok())
    }

    fn give_up(&mut self, which: impl FnMut(&mut Chunk) -> bool) {
        self.given_up.extend(self.chunks.extract_if(.., which).map(|chunk| chunk.record));
    }

    /// A chunk starts with a header at a page; the kernel may have joined writes of several. What an earlier
    /// lap has left from there to the end of the segment is given up.
    fn notice_chunks(&mut self, offset: u64, bytes: &[u8]) {
        let first = offset.next_multiple_of(PAGE_BYTES).max(DATA_OFFSET);
        let end = offset + bytes.len() as u64;
        for page in (first..end).step_by(PAGE_BYTES as usize) {
            let found = ChunkRecord::read(&bytes[(page - offset) as usize..]);
            if let Ok((place, record)) = found
                && place.offset == page
            {
                let length = self.segment_bytes;
                let segment = |offset: u64| (offset - DATA_OFFSET) / length;
                // Several writes are under way at a time: one behind this may have come before it.
                self.give_up(|other| {
                    other.offset >= page
                        && segment(other.offset) == segment(page)
                        && other.record.sequence < record.sequence
                });
                self.chunks.push(Chunk { offset: page, record });
            }
        }
    }
}

impl Chunk {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.record.summary.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn disk(dir: &tempfile::TempDir) -> Disk {
        Disk::create(&dir.path().join("disk"), 8 * MIB, 512, MIB).unwrap()
    }

    fn block(disk: &Disk, at: u64) -> u8 {
        let mut bytes = [0; 512];
        disk.read(at * 512, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "block {at} is torn");
        bytes[0]
    }

    #[test]
    fn a_power_cut_loses_what_was_not_flushed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(&dir);
        disk.write(0, &[1; 1024]).unwrap();
        disk.flush();
        disk.write(512, &[2; 1024]).unwrap();
        disk.write(1024, &[3; 512]).unwrap();
        let lost = disk.cut_power(Cut::All, &mut Random::new(1)).unwrap();
        assert_eq!((lost.unflushed_bytes, lost.lost_bytes), (1536, 1536));
        assert_eq!([0, 1, 2].map(|at| block(&disk, at)), [1, 1, 0]);
        let nothing = disk.cut_power(Cut::All, &mut Random::new(1)).unwrap();
        assert_eq!(nothing.unflushed_bytes, 0);
    }

    #[test]
    fn a_block_is_as_some_write_since_the_last_flush_left_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut seen = HashSet::new();
        for seed in 0..200 {
            let mut disk = disk(&dir);
            disk.write(0, &[1; 2048]).unwrap();
            disk.flush();
            disk.write(0, &[2; 2048]).unwrap();
            disk.write(0, &[3; 2048]).unwrap();
            disk.cut_power(Cut::Blocks, &mut Random::new(seed)).unwrap();
            seen.extend((0..4).map(|at| block(&disk, at)));
        }
        assert_eq!(seen, HashSet::from([1, 2, 3]));
    }

    #[test]
    fn writes_fail_from_the_moment_they_are_told_to() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = disk(&dir);
        disk.write(0, &[1; 512]).unwrap();
        disk.fail_writes(true);
        assert!(disk.write(0, &[2; 512]).is_err());
        assert_eq!((block(&disk, 0), disk.counts().failed), (1, 1));
    }
}
