//! Compression of an output while it is written, and the count of its bytes.

use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::file_format::Compression;

/// An output behind its compression.
pub(super) enum Compressor<W: Write> {
    Plain(Counted<W>),
    Gzip(GzEncoder<Counted<W>>),
    Zstd(zstd::Encoder<'static, Counted<W>>),
}

impl<W: Write> Compressor<W> {
    /// # Errors
    /// If the compressor can't be made: memory is short.
    pub fn new(compression: Compression, out: W) -> io::Result<Self> {
        let out = Counted { out, written: 0 };
        Ok(match compression {
            Compression::None => Self::Plain(out),
            // The fastest level: captures are large, and what is short of space is compressed again at leisure.
            Compression::Gzip => Self::Gzip(GzEncoder::new(out, flate2::Compression::fast())),
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(out, 1)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Ends the file. Returns how many bytes it has, compressed.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn finish(self) -> io::Result<u64> {
        let mut out = match self {
            Self::Plain(out) => out,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        out.flush()?;
        Ok(out.written)
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}

/// An output that counts its bytes.
pub(super) struct Counted<W> {
    out: W,
    written: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
