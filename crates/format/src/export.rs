//! Files that leave Longtake: one pcapng section with every interface once, or classic pcap.
//!
//! Sources: draft-ietf-opsawg-pcapng; draft-ietf-opsawg-pcap.

use std::collections::HashMap;
use std::fmt;

use crate::packet::{Interface, LinkType};
use crate::pcapng::{self, Block, ReadPacket};

/// Which file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One pcapng section.
    Pcapng,
    /// pcap with nanoseconds; a single link type.
    Pcap,
}

/// Packets of another link type than the file's first can't go into a pcap file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedLinkTypes {
    /// The file's.
    pub file: LinkType,
    /// The packet's.
    pub packet: LinkType,
}

impl fmt::Display for MixedLinkTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a pcap file holds one link type, and these packets have two ({} and {}): extract as pcapng, or one interface at a time",
            self.file.0, self.packet.0
        )
    }
}

impl std::error::Error for MixedLinkTypes {}

/// Encodes a file into a buffer that the caller empties.
#[derive(Debug)]
pub struct Exporter {
    format: FileFormat,
    /// Number in the file by description.
    numbers: HashMap<Interface, u32>,
    link_types: Vec<LinkType>,
    pcap_link_type: Option<LinkType>,
}

impl Exporter {
    /// Starts a file; `comment` goes into its header where the format has room for one.
    pub fn new(format: FileFormat, comment: &str, out: &mut Vec<u8>) -> Self {
        if format == FileFormat::Pcapng {
            let application = concat!("longtake ", env!("CARGO_PKG_VERSION"));
            out.extend_from_slice(&pcapng::section_header(application, comment));
        }
        Self { format, numbers: HashMap::new(), link_types: Vec::new(), pcap_link_type: None }
    }

    /// The file's number for an interface, describing it where it is new.
    pub fn interface(&mut self, interface: &Interface, out: &mut Vec<u8>) -> u32 {
        if let Some(&number) = self.numbers.get(interface) {
            return number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(interface.clone(), number);
        self.link_types.push(interface.link_type);
        if self.format == FileFormat::Pcapng {
            out.extend_from_slice(&pcapng::interface_block(interface));
        }
        number
    }

    /// Appends a packet under the file's interface number.
    ///
    /// # Errors
    /// [`MixedLinkTypes`] in a pcap file.
    #[inline]
    pub fn packet(
        &mut self,
        number: u32,
        packet: &ReadPacket<'_>,
        block: &Block<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), MixedLinkTypes> {
        match self.format {
            FileFormat::Pcapng => {
                let start = out.len();
                out.extend_from_slice(block.bytes);
                out[start + 8..start + 12].copy_from_slice(&number.to_le_bytes());
                Ok(())
            }
            FileFormat::Pcap => self.pcap_packet(number, packet, out),
        }
    }

    /// Whether a run of packet blocks whose interface numbers are already the file's may be
    /// appended as it is.
    pub fn takes_blocks(&self) -> bool {
        self.format == FileFormat::Pcapng
    }

    fn pcap_packet(
        &mut self,
        number: u32,
        packet: &ReadPacket<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), MixedLinkTypes> {
        let link_type = self.link_types[number as usize];
        match self.pcap_link_type {
            None => {
                self.pcap_link_type = Some(link_type);
                pcap_header(link_type, out);
            }
            Some(file) if file != link_type => {
                return Err(MixedLinkTypes { file, packet: link_type });
            }
            Some(_) => {}
        }
        for field in [
            (packet.time / 1_000_000_000) as u32,
            (packet.time % 1_000_000_000) as u32,
            packet.data.len() as u32,
            packet.original_length,
        ] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(packet.data);
        Ok(())
    }

    /// Ends the file: a pcap file without packets gets its header here.
    pub fn finish(self, out: &mut Vec<u8>) {
        if self.format == FileFormat::Pcap && self.pcap_link_type.is_none() {
            let link_type = self.link_types.first().copied().unwrap_or(LinkType::ETHERNET);
            pcap_header(link_type, out);
        }
    }
}

/// The file header of pcap with nanoseconds, snap length 256 KiB.
fn pcap_header(link_type: LinkType, out: &mut Vec<u8>) {
    out.extend_from_slice(&0xA1B2_3C4Du32.to_le_bytes());
    out.extend_from_slice(&[2, 0, 4, 0]);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&(256u32 << 10).to_le_bytes());
    out.extend_from_slice(&u32::from(link_type.0).to_le_bytes());
}
