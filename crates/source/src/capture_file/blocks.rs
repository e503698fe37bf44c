//! What each pcapng block means for the sink: interfaces, packets with their options, losses.
//!
//! The parser reads numbers in options as little endian always, and knows no base-2 time resolution, so
//! those are read here.

use base::Timestamp;
use format::{Interface, LinkType, Packet};
use pcap_parser::nom::error::Error;
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{
    Block, EPB_MAGIC, EnhancedPacketBlock, InterfaceDescriptionBlock, InterfaceStatisticsBlock,
    OptionCode, PcapNGOption, parse_block_be, parse_block_le, parse_enhancedpacketblock_be,
    parse_enhancedpacketblock_le, parse_option_be, parse_option_le,
};

use super::CaptureFileSummary;
use super::interfaces::{Interfaces, Local, Statistics};
use super::options::{Carried, carry, number_u64};
use super::time::Units;
use crate::sink::Sink;

/// The obsolete packet block (draft-ietf-opsawg-pcapng, appendix A), which the parser doesn't know.
pub(super) const PACKET_MAGIC: u32 = 2;

/// Bytes of an enhanced packet block that are neither the packet nor its options.
const ENHANCED_FIXED_BYTES: usize = 32;

/// `if_tsresol` when it isn't given: microseconds.
const TSRESOL_DEFAULT: u8 = 6;

/// What reading remembers from block to block.
pub(super) struct Reading {
    /// Byte order of the current section.
    pub(super) big_endian: bool,
    interfaces: Interfaces,
    /// The last packet's time, for packets without one.
    last: Timestamp,
    /// The current packet's options, in little endian.
    options: Vec<u8>,
    file_name: String,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    /// The sink wants no more.
    Stopped,
}

/// Why a block can't be taken.
pub(super) enum Wrong {
    Malformed(String),
    TooManyInterfaces,
}

/// A packet as any of the three packet blocks gives it.
struct Found<'a> {
    interface: u32,
    /// `None`: the block has no time.
    count: Option<u64>,
    original_length: u32,
    data: &'a [u8],
    carried: Carried,
}

impl Reading {
    pub(super) fn new(file_name: String) -> Self {
        Self {
            big_endian: false,
            interfaces: Interfaces::default(),
            last: Timestamp::MIN,
            options: Vec::new(),
            file_name,
        }
    }

    /// Handles one whole block of type `kind`.
    #[inline]
    pub(super) fn block(
        &mut self,
        kind: u32,
        bytes: &[u8],
        summary: &mut CaptureFileSummary,
        sink: &mut impl Sink,
    ) -> Result<Flow, Wrong> {
        // Nearly every block: parsed without the detour over the enum of all blocks.
        if kind == EPB_MAGIC {
            self.enhanced(bytes, summary, sink)
        } else {
            self.other(kind, bytes, summary, sink)
        }
    }

    fn enhanced(
        &mut self,
        bytes: &[u8],
        summary: &mut CaptureFileSummary,
        sink: &mut impl Sink,
    ) -> Result<Flow, Wrong> {
        let parsed = if self.big_endian {
            parse_enhancedpacketblock_be(bytes)
        } else {
            parse_enhancedpacketblock_le(bytes)
        };
        let block: EnhancedPacketBlock<'_> = parsed.map_err(|_| contradiction())?.1;
        let area = bytes.len().saturating_sub(ENHANCED_FIXED_BYTES + block.data.len());
        let found = Found {
            interface: block.if_id,
            count: Some(u64::from(block.ts_high) << 32 | u64::from(block.ts_low)),
            original_length: block.origlen,
            data: block.packet_data(),
            carried: self.carry(&block.options, area),
        };
        self.packet(&found, summary, sink)
    }

    fn other(
        &mut self,
        kind: u32,
        bytes: &[u8],
        summary: &mut CaptureFileSummary,
        sink: &mut impl Sink,
    ) -> Result<Flow, Wrong> {
        let parsed = if self.big_endian { parse_block_be(bytes) } else { parse_block_le(bytes) };
        match parsed.map_err(|_| contradiction())?.1 {
            Block::SectionHeader(header) => {
                if header.major_version != 1 {
                    let version = format!("{}.{}", header.major_version, header.minor_version);
                    let wrong = format!("its format version is {version}, only 1.x is known");
                    return Err(Wrong::Malformed(wrong));
                }
                self.interfaces.start_section();
                summary.sections += 1;
            }
            Block::InterfaceDescription(block) => {
                let interface = self.describe(&block);
                let units = self.units(&block);
                self.interfaces.add(interface, units, sink).ok_or(Wrong::TooManyInterfaces)?;
                summary.interfaces = self.interfaces.count() as u64;
            }
            Block::InterfaceStatistics(block) => {
                let local = self.interface(block.if_id)?;
                let lost = self.interfaces.statistics(local, self.statistics(&block), sink);
                summary.lost_originally = summary.lost_originally.saturating_add(lost);
            }
            Block::SimplePacket(block) => {
                let snap_length = self.interface(0)?.snap_length;
                let limit = if snap_length == 0 { u32::MAX } else { snap_length };
                let data = block.data.get(..block.origlen.min(limit) as usize);
                let found = Found {
                    interface: 0,
                    count: None,
                    original_length: block.origlen,
                    data: data.ok_or_else(contradiction)?,
                    carried: self.carry(&[], 0),
                };
                return self.packet(&found, summary, sink);
            }
            Block::Unknown(block) if kind == PACKET_MAGIC => {
                let found = self.obsolete(block.data).ok_or_else(contradiction)?;
                return self.packet(&found, summary, sink);
            }
            Block::NameResolution(_) => summary.skipped_name_resolution += 1,
            Block::DecryptionSecrets(_) => summary.skipped_secrets += 1,
            Block::Custom(_) => summary.skipped_custom += 1,
            _ => summary.skipped_other += 1,
        }
        Ok(Flow::On)
    }

    /// Delivers a packet and, before it, what it says was lost.
    fn packet(
        &mut self,
        found: &Found<'_>,
        summary: &mut CaptureFileSummary,
        sink: &mut impl Sink,
    ) -> Result<Flow, Wrong> {
        let local = self.interface(found.interface)?;
        if let Some(count) = found.count {
            let (timestamp, in_range) = local.units.timestamp(count);
            self.last = timestamp;
            summary.timestamps_out_of_range += u64::from(!in_range);
        }
        summary.options_left_out += found.carried.left_out;
        if found.carried.lost > 0 {
            self.interfaces.lost(local, found.carried.lost, sink);
            summary.lost_originally = summary.lost_originally.saturating_add(found.carried.lost);
        }
        let packet = Packet {
            interface: local.number,
            timestamp: self.last,
            original_length: found.original_length.max(found.data.len() as u32),
            data: found.data,
            options: &self.options,
        };
        if sink.packet(&packet).is_err() {
            return Ok(Flow::Stopped);
        }
        summary.count(found.data.len());
        Ok(Flow::On)
    }

    fn interface(&self, number: u32) -> Result<Local, Wrong> {
        self.interfaces.get(number).ok_or_else(|| {
            Wrong::Malformed(format!(
                "it names interface {number}, which its section doesn't describe"
            ))
        })
    }

    /// Keeps the options of a packet, which fill `area` bytes unless one of them is malformed.
    fn carry(&mut self, options: &[PcapNGOption<'_>], area: usize) -> Carried {
        self.options.clear();
        if area == 0 {
            return Carried::default();
        }
        let mut carried = carry(options, self.big_endian, &mut self.options);
        let parsed: usize = options.iter().map(|option| 4 + option.value().len()).sum();
        let ended = options.iter().any(|option| option.code == OptionCode::EndOfOpt);
        carried.left_out += u64::from(!ended && parsed < area);
        carried
    }

    /// Reads the contents of a packet block.
    fn obsolete<'a>(&mut self, contents: &'a [u8]) -> Option<Found<'a>> {
        let (head, rest) = contents.split_first_chunk::<20>()?;
        let half = |at: usize| -> u16 {
            let bytes = [head[at], head[at + 1]];
            if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let word = |at: usize| -> u32 {
            let bytes = std::array::from_fn(|i| head[at + i]);
            if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (interface, drops) = (u32::from(half(0)), half(2));
        let (count, original_length) = (u64::from(word(4)) << 32 | u64::from(word(8)), word(16));
        let kept = word(12) as usize;
        let data = rest.get(..kept)?;
        let mut options_bytes = rest.get(kept.next_multiple_of(4)..)?;
        let area = options_bytes.len();
        let mut options = Vec::new();
        while let Ok((rest, option)) = if self.big_endian {
            parse_option_be::<Error<&[u8]>>(options_bytes)
        } else {
            parse_option_le::<Error<&[u8]>>(options_bytes)
        } {
            options.push(option);
            options_bytes = rest;
        }
        let mut carried = self.carry(&options, area);
        // All ones: not known.
        if drops != u16::MAX {
            carried.lost = carried.lost.saturating_add(u64::from(drops));
        }
        Some(Found { interface, count: Some(count), original_length, data, carried })
    }

    fn describe(&self, block: &InterfaceDescriptionBlock<'_>) -> Interface {
        let text = |code| {
            value(&block.options, code).map(|value| String::from_utf8_lossy(value).into_owned())
        };
        let unnamed = || format!("{}:{}", self.file_name, self.interfaces.count_in_section());
        Interface {
            name: text(OptionCode::IfName).unwrap_or_else(unnamed),
            description: text(OptionCode::IfDescription).unwrap_or_default(),
            link_type: LinkType(block.linktype.0 as u16),
            snap_length: block.snaplen,
            // The first byte says in which form the filter is; 0 is libpcap's language.
            filter: match value(&block.options, OptionCode::IfFilter) {
                Some([0, expression @ ..]) => String::from_utf8_lossy(expression).into_owned(),
                _ => String::new(),
            },
            speed_bits: self.number(&block.options, OptionCode::IfSpeed).unwrap_or(0),
        }
    }

    fn units(&self, block: &InterfaceDescriptionBlock<'_>) -> Units {
        let tsresol = match value(&block.options, OptionCode::IfTsresol) {
            Some([tsresol, ..]) => *tsresol,
            _ => TSRESOL_DEFAULT,
        };
        let offset_s = self.number(&block.options, OptionCode::IfTsoffset).unwrap_or(0);
        Units::new(tsresol, offset_s.cast_signed())
    }

    fn statistics(&self, block: &InterfaceStatisticsBlock<'_>) -> Statistics {
        // All ones, or no option at all: not known.
        let count =
            |code| self.number(&block.options, code).filter(|n| *n != u64::MAX).unwrap_or(0);
        Statistics {
            started: self.number(&block.options, OptionCode::IsbStartTime),
            dropped_interface: count(OptionCode::IsbIfDrop),
            dropped_kernel: count(OptionCode::IsbOsDrop),
        }
    }

    fn number(&self, options: &[PcapNGOption<'_>], code: OptionCode) -> Option<u64> {
        value(options, code).and_then(|value| number_u64(value, self.big_endian))
    }
}

fn contradiction() -> Wrong {
    Wrong::Malformed("the lengths in it contradict each other".to_owned())
}

/// The first option of that code before the end mark.
fn value<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    let before_end = options.iter().take_while(|option| option.code != OptionCode::EndOfOpt);
    before_end.into_iter().find(|option| option.code == code)?.as_bytes().ok()
}
