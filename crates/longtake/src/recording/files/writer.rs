//! Writes chunks that sources have packed as capture files: packet by packet where a file ends, whole runs elsewhere.

use std::collections::VecDeque;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use base::{Duration, Timestamp};
use format::export::{Exporter, FileFormat};
use format::pcapng::{
    Block, Blocks, ENHANCED_PACKET, INTERFACE, ReadPacket, read_interface, read_packet,
};
use format::section::HEADER_BYTES;
use format::{ChunkSummary, Count, Interface};
use target::output::NewFile;

use super::Rotation;
use super::series::Series;

/// Bytes gathered before they are handed on.
const GATHER_BYTES: usize = 1 << 20;

/// How far behind what was handed on a file on the drive may be: the buffers of a direct write, and one more.
const UNWRITTEN_MAX: u64 = 16 << 20;

/// A record header of pcap.
const PCAP_HEADER_BYTES: u64 = 16;

/// A file that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteFile {
    /// Its name.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its packets, and their length on the wire.
    pub packets: Count,
}

/// Writes files, one at a time.
#[derive(Debug)]
pub struct Writer {
    series: Series,
    format: FileFormat,
    rotation: Option<Rotation>,
    comment: String,
    current: Option<Current>,
    /// Packets in complete files.
    complete: Count,
    /// Bytes of complete files.
    complete_bytes: u64,
    /// Files completed since they were last asked for.
    news: Vec<CompleteFile>,
}

/// The file that is being written.
#[derive(Debug)]
struct Current {
    file: NewFile,
    exporter: Exporter,
    /// What is gathered for it.
    gathered: Vec<u8>,
    /// Its length without what is gathered.
    length: u64,
    /// Its packets, gathered ones among them.
    packets: Count,
    /// The packets from this time on belong to the next file, ns since 1970. None until its first packet, or if time ends none.
    until_ns: Option<u64>,
    /// Lengths at which a packet ended, and the packets up to there, as far back as the drive may be.
    ends: VecDeque<(u64, Count)>,
}

impl Writer {
    /// Begins the first file, so that it is known whether files can be written at all.
    ///
    /// # Errors
    /// If it can't be begun.
    pub fn new(
        series: Series,
        format: FileFormat,
        rotation: Option<Rotation>,
        comment: String,
        at: Timestamp,
    ) -> Result<Self> {
        let mut writer = Self {
            series,
            format,
            rotation,
            comment,
            current: None,
            complete: Count::ZERO,
            complete_bytes: 0,
            news: Vec::new(),
        };
        writer.begin(at)?;
        Ok(writer)
    }

    /// Where it writes to.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Packets in complete files.
    pub const fn complete(&self) -> Count {
        self.complete
    }

    /// Bytes of all files.
    pub fn written(&self) -> u64 {
        let current = self.current.as_ref();
        self.complete_bytes + current.map_or(0, |c| c.length + c.gathered.len() as u64)
    }

    /// Files completed since this was last called.
    pub fn take_news(&mut self) -> Vec<CompleteFile> {
        std::mem::take(&mut self.news)
    }

    /// Writes a chunk's packets.
    ///
    /// # Errors
    /// If a file can't be written. [`Writer::finish`] is all that may follow.
    pub fn chunk(&mut self, chunk: &[u8], summary: &ChunkSummary) -> Result<()> {
        if summary.packets == 0 {
            return Ok(());
        }
        if self.takes_whole(summary) {
            return self.whole_chunk(chunk, summary);
        }
        let (mut interfaces, mut numbers) = (Vec::new(), Vec::new());
        for block in Blocks::new(&chunk[HEADER_BYTES..summary.length as usize]) {
            let block = block?;
            match block.kind {
                INTERFACE => {
                    interfaces.push(read_interface(&block)?);
                    numbers.push(None);
                }
                ENHANCED_PACKET => self.packet(&block, &interfaces, &mut numbers)?,
                _ => {}
            }
        }
        self.hand_on(0)
    }

    /// Ends the file of a time that is over, though no packet follows.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn end_if_over(&mut self, now: Timestamp, patience: Duration) -> Result<()> {
        let until = self.current.as_ref().and_then(|current| current.until_ns);
        if until.is_some_and(|until| now.as_nanos() >= until.saturating_add(patience.as_nanos())) {
            self.finish()?;
        }
        Ok(())
    }

    /// Completes the file that is being written, if there is one. If a write fails, or has failed before, the file ends with the
    /// last packet that is known to be written.
    ///
    /// # Errors
    /// If it can't be completed as a whole.
    pub fn finish(&mut self) -> Result<()> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        let exporter = current.exporter;
        exporter.finish(&mut current.gathered);
        let path = current.file.path().to_owned();
        let written = current.file.write_all(&current.gathered);
        let written = written.with_context(|| format!("writing {}", path.display()));
        if let Err(error) = written.and_then(|()| Ok(current.file.write_rest()?)) {
            self.keep_beginning(current.file, &current.ends)?;
            return Err(error);
        }
        let path = current.file.finish_beside()?;
        let bytes = current.length + current.gathered.len() as u64;
        self.completed(path, bytes, current.packets)
    }

    fn keep_beginning(&mut self, file: NewFile, ends: &VecDeque<(u64, Count)>) -> Result<()> {
        let lengths: Vec<u64> = ends.iter().map(|&(length, _)| length).collect();
        let Some((path, kept)) = file.keep_beginning(&lengths)? else { return Ok(()) };
        let packets = ends.iter().find(|&&(length, _)| length == kept);
        self.completed(path, kept, packets.map_or(Count::ZERO, |&(_, packets)| packets))
    }

    fn completed(&mut self, path: PathBuf, bytes: u64, packets: Count) -> Result<()> {
        self.complete += packets;
        self.complete_bytes += bytes;
        self.series.completed(&path)?;
        self.news.push(CompleteFile { path, bytes, packets });
        Ok(())
    }

    fn begin(&mut self, at: Timestamp) -> Result<()> {
        let mut gathered = Vec::new();
        let exporter = Exporter::new(self.format, &self.comment, &mut gathered);
        self.current = Some(Current {
            file: self.series.begin(at)?,
            exporter,
            gathered,
            length: 0,
            packets: Count::ZERO,
            until_ns: None,
            ends: VecDeque::new(),
        });
        Ok(())
    }

    /// The current file, for a packet or a run of packets whose first has this time.
    fn current(&mut self, time_ns: u64) -> Result<&mut Current> {
        if self.current.is_none() {
            self.begin(Timestamp::from_nanos(time_ns))?;
        }
        let Some(current) = &mut self.current else { unreachable!("it has just begun") };
        if let (None, Some(Rotation::Every(time))) = (current.until_ns, self.rotation) {
            current.until_ns = Some(time_ns.saturating_add(time.as_nanos()));
        }
        Ok(current)
    }

    /// Whether so many bytes with packets up to a time still belong to the current file.
    fn has_room(&self, latest_ns: u64, bytes: u64) -> bool {
        let Some(current) = &self.current else { return true };
        match self.rotation {
            _ if current.packets.packets == 0 => true,
            None => true,
            Some(Rotation::Every(_)) => current.until_ns.is_none_or(|until| latest_ns < until),
            Some(Rotation::Bytes(most)) => {
                current.length + current.gathered.len() as u64 + bytes <= most.0
            }
        }
    }

    /// Whether a chunk's packets go into the current file as they are.
    fn takes_whole(&self, summary: &ChunkSummary) -> bool {
        let bytes = u64::from(summary.packets_end - summary.packets_start);
        // A file without packets takes any packet, but not any run of them.
        let begun = self.current.as_ref().is_some_and(|current| current.packets.packets > 0);
        let fits = self.rotation.is_none() || begun && self.has_room(summary.last_ns, bytes);
        self.format == FileFormat::Pcapng && summary.plain && fits
    }

    fn whole_chunk(&mut self, chunk: &[u8], summary: &ChunkSummary) -> Result<()> {
        let (start, end) = (summary.packets_start as usize, summary.packets_end as usize);
        let current = self.current(summary.first_ns)?;
        let mut same = true;
        let front = Blocks::new(&chunk[HEADER_BYTES..start]);
        for (block, number) in front.flatten().filter(|block| block.kind == INTERFACE).zip(0..) {
            let interface = read_interface(&block)?;
            same &= current.exporter.interface(&interface, &mut current.gathered) == number;
        }
        let blocks = &chunk[start..end];
        if same {
            current.hand_on(0)?;
            current.packets += summary.stored();
            return current.write(blocks);
        }
        let interfaces: Vec<Interface> = Blocks::new(&chunk[HEADER_BYTES..start])
            .flatten()
            .filter(|block| block.kind == INTERFACE)
            .map(|block| read_interface(&block))
            .collect::<Result<_, _>>()?;
        let mut numbers = vec![None; interfaces.len()];
        for block in Blocks::new(blocks) {
            self.packet(&block?, &interfaces, &mut numbers)?;
        }
        self.hand_on(0)
    }

    /// Appends a packet, in the next file if it belongs there. `numbers` are those of `interfaces` in the current file.
    fn packet(
        &mut self,
        block: &Block<'_>,
        interfaces: &[Interface],
        numbers: &mut [Option<u32>],
    ) -> Result<()> {
        let packet = read_packet(block)?;
        if !self.has_room(packet.time, self.length_of(block, &packet)) {
            self.finish()?;
            numbers.fill(None);
        }
        let current = self.current(packet.time)?;
        let place = packet.interface as usize;
        let number = match numbers[place] {
            Some(number) => number,
            None => *numbers[place]
                .insert(current.exporter.interface(&interfaces[place], &mut current.gathered)),
        };
        current.exporter.packet(number, &packet, block, &mut current.gathered)?;
        current.packets += Count::new(1, u64::from(packet.original_length));
        current.hand_on(GATHER_BYTES)
    }

    fn length_of(&self, block: &Block<'_>, packet: &ReadPacket<'_>) -> u64 {
        match self.format {
            FileFormat::Pcapng => block.bytes.len() as u64,
            FileFormat::Pcap => PCAP_HEADER_BYTES + packet.data.len() as u64,
        }
    }

    fn hand_on(&mut self, at_least: usize) -> Result<()> {
        self.current.as_mut().map_or(Ok(()), |current| current.hand_on(at_least))
    }
}

impl Current {
    /// Writes what is gathered, if it is at least so many bytes.
    fn hand_on(&mut self, at_least: usize) -> Result<()> {
        if self.gathered.len() >= at_least.max(1) {
            let gathered = std::mem::take(&mut self.gathered);
            self.write(&gathered)?;
            self.gathered = gathered;
            self.gathered.clear();
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.with_context(|| format!("writing {}", self.file.path().display()))?;
        self.length += bytes.len() as u64;
        self.ends.push_back((self.length, self.packets));
        while self.ends.get(1).is_some_and(|&(end, _)| end + UNWRITTEN_MAX < self.length) {
            self.ends.pop_front();
        }
        Ok(())
    }
}
