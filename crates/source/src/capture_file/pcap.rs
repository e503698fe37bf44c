//! The classic format: one header, then records. Microseconds or nanoseconds, either byte order, and
//! Alexey Kuznetsov's variant with longer record headers.

use base::Timestamp;
use format::{Interface, LinkType, Packet};
use pcap_parser::nom::{self, IResult, Needed};
use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_frame_modified, parse_pcap_header,
};

use super::window::Have;
use super::{BLOCK_BYTES_MAX, CaptureFile, CaptureFileError, MAGIC_BYTES};
use crate::sink::Sink;

const HEADER_BYTES: usize = 24;

type ParseRecord =
    for<'a> fn(&'a [u8]) -> IResult<&'a [u8], LegacyPcapBlock<'a>, PcapError<&'a [u8]>>;

/// Whether a file that starts so is of this format.
pub(super) fn recognizes(magic: [u8; MAGIC_BYTES]) -> bool {
    matches!(u32::from_le_bytes(magic), 0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1)
        || u32::from_le_bytes(magic) == 0xa1b2_cd34
}

impl CaptureFile {
    /// Returns when the file or the sink has ended.
    pub(super) fn run_pcap(&mut self, sink: &mut impl Sink) -> Result<(), CaptureFileError> {
        match self.fill(HEADER_BYTES, sink)? {
            Have::Enough => {}
            Have::Short => return Err(self.truncated("file header", HEADER_BYTES)),
            Have::Stopped => return Ok(()),
        }
        let header = match parse_pcap_header(self.window.bytes()) {
            Ok((_, header)) => header,
            Err(_) => return Err(self.malformed("file header", "its fields can't be read")),
        };
        self.window.consume(HEADER_BYTES);
        let parse: ParseRecord = match (header.is_modified_format(), header.is_bigendian()) {
            (true, _) => parse_pcap_frame_modified,
            (false, true) => parse_pcap_frame_be,
            (false, false) => parse_pcap_frame,
        };
        let ns_per_fraction = if header.is_nanosecond_precision() { 1 } else { 1_000 };

        let interface = sink.interface(&self.describe(&header));
        self.summary.interfaces += 1;
        loop {
            let bytes = self.window.bytes();
            let present = bytes.len();
            match parse(bytes) {
                Ok((rest, record)) => {
                    let ns = u64::from(record.ts_sec) * 1_000_000_000
                        + u64::from(record.ts_usec) * ns_per_fraction;
                    let packet = Packet {
                        interface,
                        timestamp: Timestamp::from_nanos(ns),
                        original_length: record.origlen.max(record.caplen),
                        data: record.data,
                        options: &[],
                    };
                    let length = present - rest.len();
                    if sink.packet(&packet).is_err() {
                        return Ok(());
                    }
                    self.summary.count(record.data.len());
                    self.window.consume(length);
                }
                Err(nom::Err::Incomplete(Needed::Size(missing))) => {
                    let length = present + missing.get();
                    if length > BLOCK_BYTES_MAX {
                        return Err(self.too_large("packet record", length as u64));
                    }
                    match self.fill(length, sink)? {
                        Have::Enough => {}
                        Have::Short if self.window.bytes().is_empty() => return self.complete(),
                        Have::Short => return Err(self.truncated("packet record", length)),
                        Have::Stopped => return Ok(()),
                    }
                }
                Err(_) => return Err(self.malformed("packet record", "its fields can't be read")),
            }
        }
    }

    fn describe(&self, header: &PcapHeader) -> Interface {
        // The upper bits say whether frames end with a checksum, and of how many 16-bit words
        // (draft-ietf-opsawg-pcap, "Link Type and Additional Information").
        let network = header.network.0 as u32;
        let description = if network & 0x0400_0000 != 0 {
            format!("frames end with a check sequence of {} bytes", (network >> 28) * 2)
        } else {
            String::new()
        };
        Interface {
            name: self.short_name(),
            description,
            link_type: LinkType((network & 0xffff) as u16),
            snap_length: header.snaplen,
            filter: String::new(),
            speed_bits: 0,
        }
    }
}
