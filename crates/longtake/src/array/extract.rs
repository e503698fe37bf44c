//! Selected packets, to a function or as a file.

use std::collections::HashMap;
use std::io::Write;
use std::ops::ControlFlow;

use anyhow::Result;
use base::{Bank, Duration, Timestamp};
use format::pcapng::{Block, Blocks, ReadPacket, read_packet};
use format::{ChunkRecord, Interface};
use recorder::extract::{Unreadable, Visitor};
use recorder::takes::Entry;
use source::udp::{has_made_headers, past_made_headers};

use super::Progress;
use super::account::ReadAccount;
use super::completeness::Completeness;
use super::compress::Compressor;
use super::encode::Encoder;
use super::file_format::OutputFormat;
use super::filter::Filter;
use super::select::{ChunkProgress, GoOn, Selected, Stopped};

/// A recorded packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketRef<'a> {
    /// The interface that it was captured on.
    pub interface: &'a Interface,
    /// When it was captured.
    pub timestamp: Timestamp,
    /// Its length on the wire in bytes; more than `data` has if it was truncated.
    pub original_length: u32,
    /// The number of the chunk that it was recorded in. An array uses none twice.
    pub chunk_sequence: u64,
    /// Its bytes, as far as they were kept.
    pub data: &'a [u8],
}

impl<'a> PacketRef<'a> {
    /// Its bytes without the IP and UDP headers that Longtake made, if it was recorded from a UDP socket.
    pub fn payload(&self) -> &'a [u8] {
        if has_made_headers(self.interface) { past_made_headers(self.data) } else { self.data }
    }
}

/// What was extracted.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// Packets that were handed over or written.
    pub packets: u64,
    /// Bytes of the file as it was written, compressed if it is, or of the packets' data if there was no file.
    pub bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether the caller stopped it before the end.
    pub stopped: bool,
    /// What could not be read.
    pub read: ReadAccount,
}

impl Extracted {
    /// Whether every packet that was recorded in the selected span was extracted.
    pub fn is_complete(&self) -> bool {
        !self.stopped && self.read.is_complete()
    }
}

impl Selected<'_> {
    /// Hands every packet to `each`, in order of time within a take, until it breaks.
    ///
    /// # Errors
    /// If the filter can't be compiled or a bank fails. Chunks that can't be read are in the account.
    pub fn for_each(
        self,
        mut each: impl FnMut(PacketRef<'_>) -> ControlFlow<()>,
    ) -> crate::Result<Extracted> {
        self.hand_to(&mut each)
    }

    fn hand_to(mut self, each: Each<'_>) -> crate::Result<Extracted> {
        let filter = std::mem::take(&mut self.filter);
        let account = ReadAccount::default();
        let mut visitor = CallVisitor { each, filter, packets: 0, bytes: 0, account };
        let start = self.opened.bank.now();
        let stopped = self.visit(&mut visitor)?;
        let CallVisitor { packets, bytes, account, .. } = visitor;
        let elapsed = self.opened.bank.now().since(start);
        Ok(Extracted { packets, bytes, elapsed, stopped, read: self.complete(account) })
    }

    /// Writes every packet as a file. `progress` counts chunks, and is asked after each whether to go on. A file that was
    /// stopped is not complete.
    ///
    /// Without a filter, whole chunks are copied into a pcapng file as they are.
    ///
    /// # Errors
    /// If `out` can't be written, in which case its error can be had by [`Error::downcast_ref`](crate::Error::downcast_ref); or as
    /// [`Selected::for_each`].
    pub fn write_to(
        self,
        format: impl Into<OutputFormat>,
        mut out: impl Write,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> crate::Result<Extracted> {
        self.write_file(format.into(), &mut out, &mut progress)
    }

    fn write_file(
        mut self,
        format: OutputFormat,
        out: &mut dyn Write,
        progress: GoOn<'_>,
    ) -> crate::Result<Extracted> {
        let name = self.opened.image.superblock.name.clone();
        let (filter, chunks) = (std::mem::take(&mut self.filter), self.chunks());
        let known = self.completeness();
        let comment = comment(&name, Some(&known));
        let mut visitor = FileVisitor::new(&comment, format, out, filter, chunks, progress)?;
        let start = self.opened.bank.now();
        let stopped = self.visit(&mut visitor)?;
        let read = self.complete(visitor.account());
        let found = Completeness::of_packets(&read);
        let (packets, bytes) = visitor.finish((found != known).then_some(&found))?;
        let elapsed = self.opened.bank.now().since(start);
        Ok(Extracted { packets, bytes, elapsed, stopped, read })
    }
}

/// What packets are handed to, until it breaks.
type Each<'f> = &'f mut dyn FnMut(PacketRef<'_>) -> ControlFlow<()>;

/// Hands packets to a function.
struct CallVisitor<'f> {
    each: Each<'f>,
    filter: Filter,
    packets: u64,
    bytes: u64,
    account: ReadAccount,
}

impl Visitor for CallVisitor<'_> {
    type Error = anyhow::Error;

    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        _block: &Block<'_>,
        record: &ChunkRecord,
    ) -> Result<()> {
        if !self.filter.accepts(interface, packet)? {
            return Ok(());
        }
        self.packets += 1;
        self.bytes += packet.data.len() as u64;
        let packet = PacketRef {
            interface,
            timestamp: Timestamp::from_nanos(packet.time),
            original_length: packet.original_length,
            chunk_sequence: record.sequence,
            data: packet.data,
        };
        match (self.each)(packet) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stopped.into()),
        }
    }

    fn blocks(&mut self, _: &[Interface], _: &[u8], _: &ChunkRecord) -> Result<bool> {
        Ok(false)
    }

    fn recovered(&mut self, entry: &Entry, _why: &Unreadable) -> Result<()> {
        self.account.recovered.enter(entry);
        Ok(())
    }

    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<()> {
        self.account.enter_lost(entry, why);
        Ok(())
    }

    fn progress(&mut self, _done: u64, _of: u64) -> Result<()> {
        Ok(())
    }
}

/// Bytes gathered before they are written.
const OUT_BYTES: usize = 4 << 20;

/// An output, and what is gathered for it.
struct Buffered<'o> {
    buffer: Vec<u8>,
    out: Compressor<&'o mut dyn Write>,
    /// Whether anything was written. The first packet goes at once: somebody may wait for it.
    begun: bool,
}

impl Buffered<'_> {
    /// Writes what is gathered, if it is at least so many bytes.
    fn write(&mut self, at_least: usize) -> Result<()> {
        if self.buffer.len() >= at_least || !self.begun {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
            self.begun = true;
        }
        Ok(())
    }

    /// Writes what is gathered, and then these bytes.
    fn write_behind(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(1)?;
        self.out.write_all(bytes)?;
        Ok(())
    }
}

/// What the header of a file of an array's packets says: where they come from, and how complete they are, as far as that is known.
pub(super) fn comment(array: &str, known: Option<&Completeness>) -> String {
    let lines = known.map(Completeness::at_the_start).unwrap_or_default();
    std::iter::once(format!("extracted from array '{array}'"))
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Writes packets as a file.
pub(super) struct FileVisitor<'o> {
    encoder: Encoder,
    out: Buffered<'o>,
    filter: Filter,
    /// Interface numbers in the file, to spare a look-up by description.
    numbers: HashMap<Interface, u32>,
    packets: u64,
    account: ReadAccount,
    chunks: ChunkProgress,
    progress: GoOn<'o>,
}

impl<'o> FileVisitor<'o> {
    /// Starts a file with this comment; so many chunks will come.
    pub(super) fn new(
        comment: &str,
        format: OutputFormat,
        out: &'o mut dyn Write,
        filter: Filter,
        chunks: u64,
        progress: GoOn<'o>,
    ) -> Result<Self> {
        let out = Compressor::new(format.compression, out)?;
        let mut buffer = Vec::new();
        Ok(Self {
            encoder: Encoder::new(format, comment, &mut buffer)?,
            out: Buffered { buffer, out, begun: false },
            filter,
            numbers: HashMap::new(),
            packets: 0,
            account: ReadAccount::default(),
            chunks: ChunkProgress::new(chunks),
            progress,
        })
    }

    /// Passes on what is gathered.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.out.write(1)?;
        Ok(self.out.out.flush()?)
    }

    /// Packets that were written, and what could not be read.
    pub(super) fn so_far(&self) -> (u64, &ReadAccount) {
        (self.packets, &self.account)
    }

    /// What could not be read.
    pub(super) fn account(&self) -> ReadAccount {
        self.account.clone()
    }

    /// Ends the file; at its end it says how complete it is, if that is not in its header. Returns its packets and its bytes.
    pub(super) fn finish(self, completeness: Option<&Completeness>) -> Result<(u64, u64)> {
        let Self { encoder, mut out, packets, .. } = self;
        let comment = completeness.map(|found| found.at_the_end().join("\n"));
        encoder.finish(comment.as_deref(), &mut out.buffer)?;
        out.write(1)?;
        Ok((packets, out.out.finish()?))
    }

    fn number(&mut self, interface: &Interface) -> u32 {
        if let Some(&number) = self.numbers.get(interface) {
            return number;
        }
        let number = self.encoder.interface(interface, &mut self.out.buffer);
        self.numbers.insert(interface.clone(), number);
        number
    }

    /// Writes a chunk's blocks with other interface numbers.
    fn renumber(&mut self, numbers: &[u32], blocks: &[u8], record: &ChunkRecord) -> Result<()> {
        for block in Blocks::new(blocks) {
            let block = block?;
            let packet = read_packet(&block)?;
            let Some(&number) = numbers.get(packet.interface as usize) else { continue };
            self.encoder.packet(number, &packet, &block, record.sequence, &mut self.out.buffer)?;
            self.out.write(OUT_BYTES)?;
        }
        Ok(())
    }
}

impl Visitor for FileVisitor<'_> {
    type Error = anyhow::Error;

    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        block: &Block<'_>,
        record: &ChunkRecord,
    ) -> Result<()> {
        if !self.filter.accepts(interface, packet)? {
            return Ok(());
        }
        let number = self.number(interface);
        self.encoder.packet(number, packet, block, record.sequence, &mut self.out.buffer)?;
        self.packets += 1;
        self.out.write(OUT_BYTES)
    }

    fn blocks(
        &mut self,
        interfaces: &[Interface],
        blocks: &[u8],
        record: &ChunkRecord,
    ) -> Result<bool> {
        if !self.filter.is_empty() || !self.encoder.takes_blocks() {
            return Ok(false);
        }
        let numbers: Vec<u32> = interfaces.iter().map(|i| self.number(i)).collect();
        if numbers.iter().enumerate().all(|(at, &number)| at as u32 == number) {
            self.out.write_behind(blocks)?;
        } else {
            self.renumber(&numbers, blocks, record)?;
        }
        self.packets += u64::from(record.summary.packets);
        Ok(true)
    }

    fn recovered(&mut self, entry: &Entry, _why: &Unreadable) -> Result<()> {
        self.account.recovered.enter(entry);
        Ok(())
    }

    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<()> {
        self.account.enter_lost(entry, why);
        Ok(())
    }

    fn progress(&mut self, done: u64, _of: u64) -> Result<()> {
        let progress = self.chunks.enter(done);
        match (self.progress)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stopped.into()),
        }
    }
}
