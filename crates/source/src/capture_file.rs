//! Capture files as a source: pcap and pcapng, plain or through a pipe, with what they say about
//! interfaces, options and losses carried over.
//!
//! Every packet is delivered up to the place where a file ends or is damaged; only then comes the error.

mod blocks;
mod error;
mod interfaces;
mod options;
mod pcap;
mod pcapng;
mod time;
mod window;

use std::io::{self, Read};
use std::path::Path;

pub use error::{CaptureFileError, Place};

use window::{Have, Window};

use crate::readable::Readable;
use crate::sink::Sink;

/// The longest block or record that is read: 64 MiB. A longer one is taken for damage.
pub const BLOCK_BYTES_MAX: usize = 64 << 20;

/// The most interfaces that one file may describe.
pub const INTERFACES_MAX: usize = 65_536;

/// Bytes that tell the formats apart.
const MAGIC_BYTES: usize = 4;

/// A capture file, open for reading from its start.
pub struct CaptureFile {
    name: String,
    window: Window,
    summary: CaptureFileSummary,
}

/// What was read. Blocks that carry no packet and have no place in a recording are skipped and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureFileSummary {
    /// Packets delivered.
    pub packets: u64,
    /// Their bytes, as far as the file has kept them.
    pub bytes: u64,
    /// Interfaces declared to the sink.
    pub interfaces: u64,
    /// Sections (pcapng).
    pub sections: u64,
    /// Packets that the original capture lost, as far as the file says so; reported to the sink.
    pub lost_originally: u64,
    /// Blocks skipped: names of addresses.
    pub skipped_name_resolution: u64,
    /// Blocks skipped: decryption secrets.
    pub skipped_secrets: u64,
    /// Blocks skipped: custom blocks of anybody's.
    pub skipped_custom: u64,
    /// Blocks skipped: any other kind.
    pub skipped_other: u64,
    /// Packet options that could not be carried over: malformed, or of an unknown kind in a big-endian
    /// file, whose numbers can't be turned.
    pub options_left_out: u64,
    /// Packets stamped before 1970 or after 2554, delivered with the nearest time between.
    pub timestamps_out_of_range: u64,
    /// Whether the file was read to its end; else the sink ended first.
    pub complete: bool,
}

impl CaptureFileSummary {
    fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

impl CaptureFile {
    /// Opens a file, or a fifo through which one comes. What a plain file is, is checked at once.
    ///
    /// # Errors
    /// [`CaptureFileError`] if it can't be opened, is no capture file, or is compressed.
    pub fn open(path: &Path) -> Result<Self, CaptureFileError> {
        let name = path.display().to_string();
        let readable = match Readable::open(path) {
            Ok(readable) => readable,
            Err(reason) => return Err(CaptureFileError::Open { name, reason }),
        };
        let mut file = Self::over(name, Window::over_readable(readable));
        if file.window.is_plain_file() {
            file.recognize(&mut Unconcerned)?;
        }
        Ok(file)
    }

    /// A capture that comes through standard input.
    ///
    /// # Errors
    /// [`CaptureFileError::Open`] if standard input is closed.
    pub fn stdin() -> Result<Self, CaptureFileError> {
        let name = "standard input".to_owned();
        match Readable::stdin() {
            Ok(readable) => Ok(Self::over(name, Window::over_readable(readable))),
            Err(reason) => Err(CaptureFileError::Open { name, reason }),
        }
    }

    /// A capture that `reader` gives, called `name` in messages. While it blocks, a stop isn't seen.
    pub fn from_reader(name: &str, reader: impl Read + Send + 'static) -> Self {
        Self::over(name.to_owned(), Window::over_reader(Box::new(reader)))
    }

    fn over(name: String, window: Window) -> Self {
        Self { name, window, summary: CaptureFileSummary::default() }
    }

    /// A file waits for a full sink; nothing is lost.
    pub const fn can_wait(&self) -> bool {
        true
    }

    /// Delivers every packet until the file or the sink ends. An interface that later sections describe
    /// in the same words is the same one. Losses of the original capture are carried over as losses:
    /// the `epb_dropcount` of a packet as [`crate::Loss::Interface`] in front of it, and what the totals of an
    /// interface statistics block say beyond that where the block stands, `isb_osdrop` as
    /// [`crate::Loss::KernelRing`] and `isb_ifdrop` as [`crate::Loss::Interface`]. A simple packet
    /// block has no time and gets that of the packet before.
    ///
    /// # Errors
    /// [`CaptureFileError`] if the file is none, is damaged, or ends too early; all packets before
    /// were delivered.
    pub fn run(mut self, sink: &mut impl Sink) -> Result<CaptureFileSummary, CaptureFileError> {
        match self.recognize(sink)? {
            Some(Format::Pcap) => self.run_pcap(sink)?,
            Some(Format::Pcapng) => self.run_pcapng(sink)?,
            None => {}
        }
        Ok(self.summary)
    }

    /// Looks at the first bytes without consuming them. `None` if the sink ended before they came.
    fn recognize(&mut self, sink: &mut impl Sink) -> Result<Option<Format>, CaptureFileError> {
        if self.fill(MAGIC_BYTES, sink)? == Have::Stopped {
            return Ok(None);
        }
        let first = self.window.bytes();
        match first.first_chunk().copied() {
            Some(magic) if pcap::recognizes(magic) => return Ok(Some(Format::Pcap)),
            Some(magic) if pcapng::recognizes(magic) => return Ok(Some(Format::Pcapng)),
            _ => {}
        }
        let name = self.name.clone();
        if let Some((_, unpack)) = COMPRESSED.iter().find(|(magic, _)| first.starts_with(magic)) {
            return Err(CaptureFileError::Compressed { name, unpack });
        }
        let first = first[..first.len().min(MAGIC_BYTES)].to_vec();
        Err(CaptureFileError::NotACapture { name, first })
    }

    /// The file's name without its folder, for interfaces that have no name of their own.
    fn short_name(&self) -> String {
        let name = Path::new(&self.name).file_name().map(|name| name.to_string_lossy());
        name.map_or_else(|| self.name.clone(), |name| name.into_owned())
    }

    fn fill(&mut self, count: usize, sink: &mut impl Sink) -> Result<Have, CaptureFileError> {
        self.window.fill(count, sink).map_err(|reason| self.unreadable(reason))
    }

    fn complete(&mut self) -> Result<(), CaptureFileError> {
        self.summary.complete = true;
        Ok(())
    }

    fn place(&self) -> Place {
        Place {
            name: self.name.clone(),
            offset: self.window.offset(),
            packets: self.summary.packets,
        }
    }

    fn unreadable(&self, reason: io::Error) -> CaptureFileError {
        CaptureFileError::Read { place: self.place(), reason }
    }

    fn truncated(&self, block: &'static str, needed: usize) -> CaptureFileError {
        let present = self.window.bytes().len() as u64;
        CaptureFileError::Truncated { place: self.place(), block, needed: needed as u64, present }
    }

    fn malformed(&self, block: &'static str, wrong: impl Into<String>) -> CaptureFileError {
        CaptureFileError::Malformed { place: self.place(), block, wrong: wrong.into() }
    }

    fn too_large(&self, block: &'static str, length: u64) -> CaptureFileError {
        CaptureFileError::TooLarge { place: self.place(), block, length }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Pcap,
    Pcapng,
}

/// Whether a file that starts with `first` is a capture file, compressed or not: for telling it from an
/// interface's name or a raw stream.
pub fn looks_like_capture(first: &[u8]) -> bool {
    first.first_chunk().is_some_and(|magic| pcap::recognizes(*magic) || pcapng::recognizes(*magic))
        || COMPRESSED.iter().any(|(magic, _)| first.starts_with(magic))
}

/// How compressed files start, and what unpacks them.
const COMPRESSED: [(&[u8], &str); 5] = [
    (&[0x1f, 0x8b], "zcat"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstdcat"),
    (&[0xfd, b'7', b'z', b'X'], "xzcat"),
    (b"BZh", "bzcat"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4cat"),
];

/// For a look at a plain file, where there is no sink yet and nothing to wait for.
struct Unconcerned;

impl Sink for Unconcerned {
    fn interface(&mut self, _: &format::Interface) -> u32 {
        0
    }
    fn packet(&mut self, _: &format::Packet<'_>) -> Result<(), crate::Ended> {
        Ok(())
    }
    fn lost(&mut self, _: u32, _: crate::Loss, _: u64, _: u64) {}
    fn tick(&mut self, _: base::Timestamp) -> Result<(), crate::Ended> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
