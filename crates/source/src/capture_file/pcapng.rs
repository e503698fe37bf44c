//! The block format: a chain of blocks, each with its type and length, in sections of either byte order.
//!
//! A block is delimited here, by its own length, and only then parsed: the parser takes an inner
//! length that is too long for a sign of more input to come.

use pcap_parser::{
    BOM_MAGIC, CB_MAGIC, DCB_MAGIC, DSB_MAGIC, EPB_MAGIC, IDB_MAGIC, ISB_MAGIC, NRB_MAGIC,
    SHB_MAGIC, SPB_MAGIC,
};

use super::blocks::{Flow, PACKET_MAGIC, Reading, Wrong};
use super::window::Have;
use super::{BLOCK_BYTES_MAX, CaptureFile, CaptureFileError, MAGIC_BYTES};
use crate::sink::Sink;

/// Type and length before a block's contents; for a section header, its byte order mark too.
const START_BYTES: usize = 12;

/// Whether a file that starts so is of this format.
pub(super) fn recognizes(magic: [u8; MAGIC_BYTES]) -> bool {
    u32::from_le_bytes(magic) == SHB_MAGIC
}

impl CaptureFile {
    /// Returns when the file or the sink has ended.
    pub(super) fn run_pcapng(&mut self, sink: &mut impl Sink) -> Result<(), CaptureFileError> {
        let mut reading = Reading::new(self.short_name());
        loop {
            match self.fill(START_BYTES, sink)? {
                Have::Enough => {}
                Have::Short if self.window.bytes().is_empty() => return self.complete(),
                Have::Short => return Err(self.truncated("block", START_BYTES)),
                Have::Stopped => return Ok(()),
            }
            let (kind, length) = self.delimit(&mut reading)?;
            match self.fill(length, sink)? {
                Have::Enough => {}
                Have::Short => return Err(self.truncated(name_of(kind), length)),
                Have::Stopped => return Ok(()),
            }
            let bytes = &self.window.bytes()[..length];
            match reading.block(kind, bytes, &mut self.summary, sink) {
                Ok(Flow::On) => self.window.consume(length),
                Ok(Flow::Stopped) => return Ok(()),
                Err(Wrong::Malformed(wrong)) => return Err(self.malformed(name_of(kind), wrong)),
                Err(Wrong::TooManyInterfaces) => {
                    return Err(CaptureFileError::TooManyInterfaces { place: self.place() });
                }
            }
        }
    }

    /// The type and length of the block that comes next; a section header sets the byte order.
    #[inline]
    fn delimit(&self, reading: &mut Reading) -> Result<(u32, usize), CaptureFileError> {
        let bytes = self.window.bytes();
        let word = |at: usize| -> [u8; 4] { std::array::from_fn(|i| bytes[at + i]) };
        if u32::from_le_bytes(word(0)) == SHB_MAGIC {
            reading.big_endian = match u32::from_le_bytes(word(8)) {
                BOM_MAGIC => false,
                mark if mark.swap_bytes() == BOM_MAGIC => true,
                mark => {
                    let wrong = format!("its byte order mark is {mark:#010x}");
                    return Err(self.malformed("section header", wrong));
                }
            };
        }
        let number = |at| {
            let bytes = word(at);
            if reading.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (kind, length) = (number(0), number(4));
        if length < START_BYTES as u32 || !length.is_multiple_of(4) {
            let wrong = format!("its length is {length}, not a multiple of 4 from 12 up");
            return Err(self.malformed(name_of(kind), wrong));
        }
        if length as usize > BLOCK_BYTES_MAX {
            return Err(self.too_large(name_of(kind), u64::from(length)));
        }
        Ok((kind, length as usize))
    }
}

/// What the pcapng draft calls a block of this type.
fn name_of(kind: u32) -> &'static str {
    match kind {
        SHB_MAGIC => "section header block",
        IDB_MAGIC => "interface description block",
        PACKET_MAGIC => "packet block",
        SPB_MAGIC => "simple packet block",
        NRB_MAGIC => "name resolution block",
        ISB_MAGIC => "interface statistics block",
        EPB_MAGIC => "enhanced packet block",
        DSB_MAGIC => "decryption secrets block",
        CB_MAGIC | DCB_MAGIC => "custom block",
        _ => "block of an unknown type",
    }
}
