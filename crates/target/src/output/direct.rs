//! A long file that is written past the page cache by a thread of its own, so that its maker goes on meanwhile.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use memmap2::{Advice, MmapMut};
use nix::fcntl::OFlag;

/// Bytes of each write: enough for a drive to reach its full rate.
const BUFFER_BYTES: usize = 4 << 20;

/// Length of a huge page, to which the memory of direct writes is aligned: of small pages, a write has more pieces than a drive
/// accepts in one request. No block of a drive is longer.
const ALIGN_BYTES: usize = 2 << 20;

/// One that is filled, one that is written, and one between.
const BUFFERS: usize = 3;

/// Writes a file from its beginning. Bytes are in it only after [`Writer::finish`].
#[derive(Debug)]
pub struct Writer {
    filling: Buffer,
    /// Buffers that nothing is in.
    empty: Receiver<Buffer>,
    full: Option<Sender<Buffer>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Bytes that are in the file.
    written: Arc<AtomicU64>,
}

impl Writer {
    /// A writer for an empty file.
    ///
    /// # Errors
    /// If the file can't be opened a second time, or memory or a thread can't be had.
    pub fn new(file: &File) -> io::Result<Self> {
        let plain = file.try_clone()?;
        // Some file systems have no direct writes.
        let direct = open_directly(file.as_raw_fd()).ok();
        let (full, to_write) = channel();
        let (emptied, empty) = channel();
        for _ in 1..BUFFERS {
            emptied.send(Buffer::new()?).ok();
        }
        let written = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&written);
        let write = move || write_all(plain, direct, &to_write, &emptied, &counter);
        let thread = thread::Builder::new().name("output".to_owned()).spawn(write)?;
        Ok(Self { filling: Buffer::new()?, empty, full: Some(full), thread: Some(thread), written })
    }

    /// Takes some of the bytes.
    ///
    /// # Errors
    /// Those of earlier writes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.filling.is_full() {
            let Ok(empty) = self.empty.recv() else { return Err(self.failure()) };
            let full = mem::replace(&mut self.filling, empty);
            if self.full.as_ref().is_none_or(|thread| thread.send(full).is_err()) {
                return Err(self.failure());
            }
        }
        Ok(self.filling.take(bytes))
    }

    /// Writes all that was taken.
    ///
    /// # Errors
    /// Those of all writes.
    pub fn finish(&mut self, file: &File) -> io::Result<()> {
        self.wait()?;
        // The end is no whole number of blocks.
        file.write_all_at(self.filling.bytes(), self.written.load(Ordering::Relaxed))
    }

    /// Gives up after a failure. Returns how many bytes of the beginning are in the file.
    pub fn abandon(&mut self) -> u64 {
        // What failed was told by the write that found out.
        self.wait().ok();
        self.written.load(Ordering::Relaxed)
    }

    /// Waits for the thread.
    fn wait(&mut self) -> io::Result<()> {
        self.full = None;
        let gone = || io::Error::other("an earlier write failed");
        let thread = self.thread.take().ok_or_else(gone)?;
        thread.join().map_err(|_| io::Error::other("the writing thread panicked"))?
    }

    /// Why the thread ended early.
    fn failure(&mut self) -> io::Error {
        self.wait().err().unwrap_or_else(|| io::Error::other("the writing thread ended"))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The file may be removed next.
        self.wait().ok();
    }
}

fn open_directly(file: RawFd) -> io::Result<File> {
    let flag = OFlag::O_DIRECT.bits();
    OpenOptions::new().write(true).custom_flags(flag).open(format!("/proc/self/fd/{file}"))
}

/// Writes buffers one behind the other until no more come.
fn write_all(
    plain: File,
    mut direct: Option<File>,
    full: &Receiver<Buffer>,
    emptied: &Sender<Buffer>,
    written: &AtomicU64,
) -> io::Result<()> {
    for mut buffer in full {
        let offset = written.load(Ordering::Relaxed);
        let directly = direct.as_ref().map(|file| file.write_all_at(buffer.bytes(), offset));
        match directly {
            Some(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => direct = None,
            Some(result) => result?,
            None => {}
        }
        if direct.is_none() {
            plain.write_all_at(buffer.bytes(), offset)?;
        }
        written.fetch_add(buffer.bytes().len() as u64, Ordering::Relaxed);
        buffer.length = 0;
        // Once the last bytes were taken, nobody waits for the thread any more.
        emptied.send(buffer).ok();
    }
    Ok(())
}

/// Memory that is aligned for direct writes.
#[derive(Debug)]
struct Buffer {
    memory: MmapMut,
    start: usize,
    length: usize,
}

impl Buffer {
    fn new() -> io::Result<Self> {
        let memory = MmapMut::map_anon(BUFFER_BYTES + ALIGN_BYTES)?;
        let start = memory.as_ptr().align_offset(ALIGN_BYTES);
        // Without them, writes are slower and nothing else.
        memory.advise_range(Advice::HugePage, start, BUFFER_BYTES).ok();
        Ok(Self { memory, start, length: 0 })
    }

    const fn is_full(&self) -> bool {
        self.length == BUFFER_BYTES
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.length]
    }

    /// As many of the bytes as there is room for.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(BUFFER_BYTES - self.length);
        self.memory[self.start + self.length..][..count].copy_from_slice(&bytes[..count]);
        self.length += count;
        count
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i / 7 % 251) as u8).collect()
    }

    #[test]
    fn every_length_is_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        for length in [0, 1, 4095, BUFFER_BYTES, BUFFER_BYTES + 1, 5 * BUFFER_BYTES + 12_345] {
            let path = folder.path().join("file");
            let file = File::create(&path).unwrap();
            let bytes = pattern(length);
            let mut writer = Writer::new(&file).unwrap();
            let mut left = &bytes[..];
            for piece in [1, 4096, 3 << 20, usize::MAX].into_iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let taken = writer.write(&left[..piece.min(left.len())]).unwrap();
                left = &left[taken..];
            }
            writer.finish(&file).unwrap();
            assert!(fs::read(&path).unwrap() == bytes, "{length} bytes");
        }
    }

    #[test]
    fn a_write_that_fails_is_told_by_a_later_one_and_what_is_written_stays_known() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut writer = Writer::new(&full).unwrap();
        let bytes = pattern(BUFFER_BYTES);
        let mut failed = None;
        // The third buffer comes back from the thread, which found no space, or never.
        for _ in 0..2 * (BUFFERS + 1) {
            if let Err(error) = writer.write(&bytes) {
                failed = Some(error);
                break;
            }
        }
        assert_eq!(failed.unwrap().kind(), io::ErrorKind::StorageFull);
        assert_eq!(writer.abandon(), 0);
    }

    #[test]
    fn a_file_system_without_direct_writes_gets_ordinary_ones() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        let bytes = pattern(2 * BUFFER_BYTES + 1);
        let mut writer = Writer::new(&file).unwrap();
        let mut left = &bytes[..];
        while !left.is_empty() {
            let taken = writer.write(left).unwrap();
            left = &left[taken..];
        }
        writer.finish(&file).unwrap();
        assert!(fs::read(&path).unwrap() == bytes);
    }
}
