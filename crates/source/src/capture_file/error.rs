//! Why a capture file could not be read to its end.

use std::fmt;
use std::io;

use super::{BLOCK_BYTES_MAX, INTERFACES_MAX};
use base::ByteSize;
use device::shell::quoted;

/// Why a capture file could not be read to its end. Every packet before the place was delivered.
#[derive(Debug)]
pub enum CaptureFileError {
    /// It can't be opened.
    Open {
        /// The file.
        name: String,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// It does not start like pcap or pcapng.
    NotACapture {
        /// The file.
        name: String,
        /// Its first bytes, four at most.
        first: Vec<u8>,
    },
    /// It is compressed.
    Compressed {
        /// The file.
        name: String,
        /// A program that writes what is inside to its output.
        unpack: &'static str,
    },
    /// It ends in the middle of a block or record.
    Truncated {
        /// Where in the file.
        place: Place,
        /// In what.
        block: &'static str,
        /// Bytes of it that should be there (at least).
        needed: u64,
        /// Bytes of it that are.
        present: u64,
    },
    /// A block contradicts itself or what came before.
    Malformed {
        /// Where in the file.
        place: Place,
        /// Which kind of block.
        block: &'static str,
        /// What is wrong with it.
        wrong: String,
    },
    /// A block is longer than [`super::BLOCK_BYTES_MAX`].
    TooLarge {
        /// Where in the file.
        place: Place,
        /// Which kind of block.
        block: &'static str,
        /// How long it says it is, in bytes.
        length: u64,
    },
    /// More than [`super::INTERFACES_MAX`] interfaces.
    TooManyInterfaces {
        /// Where in the file.
        place: Place,
    },
    /// The operating system failed to read it.
    Read {
        /// Where in the file.
        place: Place,
        /// The kernel's reason.
        reason: io::Error,
    },
}

/// How far reading came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub name: String,
    /// Offset in bytes of the block that could not be read.
    pub offset: u64,
    /// Packets delivered before it.
    pub packets: u64,
}

impl fmt::Display for CaptureFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { name, .. } => write!(f, "can't open the capture file {name}"),
            Self::NotACapture { name, first } if first.is_empty() => {
                write!(f, "{name} is empty, not a capture file: give a pcap or pcapng file")
            }
            Self::NotACapture { name, first } => {
                write!(f, "{name} is not a capture file: it starts with the bytes")?;
                for byte in first {
                    write!(f, " {byte:02x}")?;
                }
                f.write_str(
                    ", neither pcap nor pcapng; to record it as raw blocks give it as pipe:PATH",
                )
            }
            Self::Compressed { name, unpack } => write!(
                f,
                "{name} is compressed: unpack it into a pipe, {unpack} {} | longtake record \
                 --from pcap:- ...",
                quoted(name)
            ),
            Self::Truncated { place, block, needed, present } => write!(
                f,
                "{place}: the file ends {present} bytes into a {block} of at least {needed} bytes: it \
                 was cut short, or is still being written; {}",
                place.kept()
            ),
            Self::Malformed { place, block, wrong } => write!(
                f,
                "{place}: malformed {block}: {wrong}; {}, what follows can't be found",
                place.kept()
            ),
            Self::TooLarge { place, block, length } => write!(
                f,
                "{place}: a {block} says that it is {length} bytes long, more than the {} that are \
                 read as one, so the file is probably damaged there; {}",
                ByteSize(BLOCK_BYTES_MAX as u64),
                place.kept()
            ),
            Self::TooManyInterfaces { place } => write!(
                f,
                "{place}: the file describes more than {INTERFACES_MAX} interfaces, so it is probably \
                 damaged; {}",
                place.kept()
            ),
            Self::Read { place, .. } => {
                write!(f, "{place}: reading failed; {}", place.kept())
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.name, self.offset)
    }
}

impl Place {
    fn kept(&self) -> String {
        match self.packets {
            0 => "no packet stood before it".to_owned(),
            1 => "the one packet before it was delivered".to_owned(),
            many => format!("the {many} packets before it were delivered"),
        }
    }
}

impl std::error::Error for CaptureFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { reason, .. } | Self::Read { reason, .. } => Some(reason),
            _ => None,
        }
    }
}
