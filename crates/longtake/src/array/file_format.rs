//! Formats of extracted files, and the names that select them.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What an extracted file consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One pcapng section.
    Pcapng,
    /// pcap with nanoseconds; a single link type.
    Pcap,
    /// A header line, then one line a packet; the packet's bytes are hexadecimal digits.
    Csv,
    /// One JSON object a line for each packet, with the columns of [`FileFormat::Csv`] as keys.
    Jsonl,
    /// Parquet with the columns of [`FileFormat::Csv`]; the packets' bytes are binary.
    Parquet,
    /// An Arrow IPC file (Feather, version 2) with the columns of [`FileFormat::Parquet`].
    Arrow,
    /// The packets' bytes back to back; of datagrams from a UDP socket, the payloads.
    Raw,
}

/// How a file is compressed as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

/// The format of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputFormat {
    /// What the file consists of.
    pub file: FileFormat,
    /// How it is compressed.
    pub compression: Compression,
    /// Whether a table has columns for what packets' IP and TCP headers say as well.
    pub flow: bool,
}

impl From<FileFormat> for OutputFormat {
    fn from(file: FileFormat) -> Self {
        Self { file, compression: Compression::None, flow: false }
    }
}

/// The names of the formats: the extensions that select them, and the values of `--format`.
const NAMES: [(&str, FileFormat); 7] = [
    ("pcapng", FileFormat::Pcapng),
    ("pcap", FileFormat::Pcap),
    ("csv", FileFormat::Csv),
    ("jsonl", FileFormat::Jsonl),
    ("parquet", FileFormat::Parquet),
    ("arrow", FileFormat::Arrow),
    ("raw", FileFormat::Raw),
];

/// A name selects no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// A file's extension is none of the known ones.
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// A file's extension is none of those that a table of flows has.
    FlowExtension {
        /// The file.
        path: PathBuf,
    },
    /// Columns of flows were asked for, and a format is no table.
    NoColumns {
        /// Its name.
        name: &'static str,
    },
    /// Not a format's name.
    Name {
        /// What was given.
        name: String,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known =
            "pcapng, pcap, csv, jsonl or raw (each also with .gz or .zst), or parquet or arrow";
        match self {
            Self::Extension { path } => write!(
                f,
                "the name {} selects no format: end it in .{}, or add --format",
                path.display(),
                known
                    .replacen(
                        "pcapng, pcap, csv, jsonl or raw",
                        "pcapng, .pcap, .csv, .jsonl or .raw",
                        1
                    )
                    .replace("parquet or arrow", ".parquet or .arrow")
            ),
            Self::FlowExtension { path } => write!(
                f,
                "the name {} selects no format: end it in .csv, .json, .parquet, or in .txt for a table, or add --format",
                path.display()
            ),
            Self::NoColumns { name } => {
                write!(f, "{name} has no columns for flows; csv, jsonl, parquet and arrow do")
            }
            Self::Name { name } => write!(f, "there is no format '{name}': give {known}"),
        }
    }
}

impl std::error::Error for FormatError {}

impl FromStr for OutputFormat {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Self, FormatError> {
        let unknown = || FormatError::Name { name: name.to_owned() };
        let (file, compression) = match name.rsplit_once('.') {
            Some((file, extension)) => (file, Compression::of(extension).ok_or_else(unknown)?),
            None => (name, Compression::None),
        };
        let (_, file) = NAMES.into_iter().find(|(name, _)| *name == file).ok_or_else(unknown)?;
        // Readers need to seek in it.
        if file.is_seekable() && compression != Compression::None {
            return Err(unknown());
        }
        Ok(Self { file, compression, flow: false })
    }
}

impl OutputFormat {
    /// The same with columns for the packets' flows, if they are wanted.
    ///
    /// # Errors
    /// [`FormatError::NoColumns`] if the format is no table.
    pub fn with_flow(self, flow: bool) -> Result<Self, FormatError> {
        let is_table =
            !matches!(self.file, FileFormat::Pcapng | FileFormat::Pcap | FileFormat::Raw);
        if flow && !is_table {
            let name = NAMES.into_iter().find(|(_, file)| *file == self.file);
            return Err(FormatError::NoColumns { name: name.map_or("", |(name, _)| name) });
        }
        Ok(Self { flow, ..self })
    }

    /// The format that a file's name selects by its extension: pcapng if it has none, or if the name is that of a FIFO or another
    /// stream.
    ///
    /// # Errors
    /// [`FormatError::Extension`] if the extension is none of the known ones.
    pub fn of(path: &Path) -> Result<Self, FormatError> {
        let Some((stem, extension)) = split(path) else { return Ok(FileFormat::Pcapng.into()) };
        let inner = match Compression::of(&extension) {
            Some(_) => split(Path::new(&stem)).map(|(_, inner)| format!("{inner}.{extension}")),
            None => Some(extension),
        };
        let found = inner.and_then(|name| name.parse().ok());
        match found {
            Some(format) => Ok(format),
            None if is_stream(path) => Ok(FileFormat::Pcapng.into()),
            None => Err(FormatError::Extension { path: path.to_owned() }),
        }
    }

    /// The same for a format that was asked for by name: the file's extension still selects the compression, unless the name did.
    #[must_use]
    pub fn for_file(self, path: &Path) -> Self {
        let by_name = split(path).and_then(|(_, extension)| Compression::of(&extension));
        match (self.file, self.compression, by_name) {
            (file, ..) if file.is_seekable() => self,
            (_, Compression::Gzip | Compression::Zstd, _) => self,
            (_, Compression::None, by_name) => {
                Self { compression: by_name.unwrap_or_default(), ..self }
            }
        }
    }
}

impl FileFormat {
    /// Whether readers seek in such a file, so that it can't be compressed as a whole.
    fn is_seekable(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }
}

impl Compression {
    fn of(extension: &str) -> Option<Self> {
        match extension {
            "gz" => Some(Self::Gzip),
            "zst" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A file's name before and after its last dot, in lower case.
fn split(path: &Path) -> Option<(String, String)> {
    let lower = |part: &OsStr| part.to_string_lossy().to_ascii_lowercase();
    Some((lower(path.file_stem()?), lower(path.extension()?)))
}

/// Whether something other than a file is there: nobody names a FIFO by what goes through it.
fn is_stream(path: &Path) -> bool {
    let kind = fs::metadata(path).map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device() || kind.is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_selects_a_format_and_a_compression() {
        let format = |file, compression| Ok(OutputFormat { file, compression, flow: false });
        for (name, expected) in [
            ("a/x.pcapng", format(FileFormat::Pcapng, Compression::None)),
            ("x.PCAP", format(FileFormat::Pcap, Compression::None)),
            ("x.pcap.gz", format(FileFormat::Pcap, Compression::Gzip)),
            ("x.of.pcapng.zst", format(FileFormat::Pcapng, Compression::Zstd)),
            ("x.csv", format(FileFormat::Csv, Compression::None)),
            ("x.jsonl.gz", format(FileFormat::Jsonl, Compression::Gzip)),
            ("x.parquet", format(FileFormat::Parquet, Compression::None)),
            ("x.arrow", format(FileFormat::Arrow, Compression::None)),
            ("x", format(FileFormat::Pcapng, Compression::None)),
        ] {
            assert_eq!(OutputFormat::of(Path::new(name)), expected, "{name}");
        }
        for name in
            ["x.txt", "x.gz", "x.parquet.gz", "x.arrow.zst", "x.txt.zst", "x.pcap.bz2", "2026.11"]
        {
            let error = OutputFormat::of(Path::new(name)).expect_err(name).to_string();
            for (known, _) in NAMES {
                assert!(error.contains(&format!(".{known}")), "{name}: {error}");
            }
        }
    }

    #[test]
    fn a_format_asked_for_by_name_is_compressed_as_the_file_s_name_says() {
        let raw: OutputFormat = "raw".parse().expect("it is one");
        assert_eq!(raw.for_file(Path::new("x.bin")), FileFormat::Raw.into());
        assert_eq!(raw.for_file(Path::new("x.bin.gz")).compression, Compression::Gzip);
        let zstd: OutputFormat = "pcap.zst".parse().expect("it is one");
        assert_eq!(zstd.for_file(Path::new("-")).compression, Compression::Zstd);
        assert!("parquet.gz".parse::<OutputFormat>().is_err());
        assert!("pcapngg".parse::<OutputFormat>().is_err());
    }
}
