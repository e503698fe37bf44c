//! A recording without an array: packets go straight into capture files, one after the other. Nothing spreads the writing over
//! drives, and the file that is being written is lost with the process.

mod capture;
mod series;
mod writer;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};
use base::{ByteSize, Duration};
use format::export;
use source::spec::SourceSpec;
use target::output::Outputs;

pub(super) use capture::record;
pub use series::Files;
pub use writer::CompleteFile;

use crate::array::{Compression, FileFormat, OutputFormat};

/// The shortest file that one is ended at: every packet fits.
const ROTATE_BYTES_MIN: ByteSize = ByteSize(64 << 10);

/// The shortest time.
const ROTATE_TIME_MIN: Duration = Duration::from_secs(1);

/// Which files a recording writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// The file, or the name that those of the files begin with. Its extension selects pcapng or pcap.
    pub path: PathBuf,
    /// When a file ends and the next one begins; None writes a single file.
    pub rotation: Option<Rotation>,
    /// How many files there are at most, with the one that is being written; None keeps all. At least 2.
    pub keep: Option<u32>,
    /// Whether existing files are replaced.
    pub overwrite: bool,
}

/// When a file ends and the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// Before the packet that would make it longer than this.
    Bytes(ByteSize),
    /// With the first packet that is so much later than the file's first.
    Every(Duration),
}

/// Why a name is none of a file that a recording can write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileNameError {
    /// Standard output.
    Stream,
    /// An extension of another format.
    Format {
        /// The name.
        path: PathBuf,
    },
    /// A directory.
    Directory {
        /// The name.
        path: PathBuf,
    },
}

impl fmt::Display for FileNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream => f.write_str(
                "-w - : a slow reader of standard output would hold up the recording; record with --to DIR, and \
                 `longtake extract DIR --follow -o -` writes the packets meanwhile",
            ),
            Self::Format { path } => write!(
                f,
                "-w {}: a recording writes .pcapng and .pcap files; `longtake extract` writes other formats",
                path.display()
            ),
            Self::Directory { path } => {
                write!(f, "-w {}: this is a directory; name a file in it", path.display())
            }
        }
    }
}

impl std::error::Error for FileNameError {}

impl FromStr for Rotation {
    type Err = String;

    /// `10m` is a time, and `10MiB` a size.
    fn from_str(text: &str) -> Result<Self, String> {
        let time = text.parse::<Duration>().ok().filter(|time| *time >= ROTATE_TIME_MIN);
        if let Some(time) = time {
            return Ok(Self::Every(time));
        }
        match text.parse::<ByteSize>().ok().filter(|size| *size >= ROTATE_BYTES_MIN) {
            Some(size) => Ok(Self::Bytes(size)),
            None => Err(format!(
                "'{text}' is neither a size of at least 64 KiB, such as 1GiB, nor a time of at least {ROTATE_TIME_MIN}, such as 10m"
            )),
        }
    }
}

impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => size.fmt(f),
            Self::Every(time) => time.fmt(f),
        }
    }
}

impl FileOptions {
    /// The format that the name selects.
    fn format(&self) -> Result<export::FileFormat, FileNameError> {
        if self.path == Path::new("-") {
            return Err(FileNameError::Stream);
        }
        match OutputFormat::of(&self.path) {
            Ok(OutputFormat {
                file: FileFormat::Pcapng, compression: Compression::None, ..
            }) => Ok(export::FileFormat::Pcapng),
            Ok(OutputFormat { file: FileFormat::Pcap, compression: Compression::None, .. }) => {
                Ok(export::FileFormat::Pcap)
            }
            _ => Err(FileNameError::Format { path: self.path.clone() }),
        }
    }

    /// Checks everything that can be known before a packet is received.
    fn check(&self, spec: &SourceSpec) -> Result<(export::FileFormat, Outputs)> {
        let format = self.format()?;
        let inputs = match spec {
            SourceSpec::CaptureFile(path) => Some(path.clone()),
            _ => None,
        };
        let outputs = Outputs::new(self.overwrite).reads(inputs);
        if self.path.is_dir() {
            return Err(FileNameError::Directory { path: self.path.clone() }.into());
        }
        if self.rotation.is_none() {
            outputs.check(&self.path)?;
        }
        Ok((format, outputs))
    }

    /// The folder that files are made in, without links.
    fn folder(&self) -> Result<PathBuf> {
        let real = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = real.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::canonicalize(folder).with_context(|| {
            format!("-w {}: the folder {} can't be used", self.path.display(), folder.display())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_is_a_time_or_a_size_and_neither_may_be_tiny() {
        let parsed = |text: &str| text.parse::<Rotation>();
        assert_eq!(parsed("10m"), Ok(Rotation::Every(Duration::from_secs(600))));
        assert_eq!(parsed("1GiB"), Ok(Rotation::Bytes(ByteSize(1 << 30))));
        assert_eq!(parsed("100MB"), Ok(Rotation::Bytes(ByteSize(100_000_000))));
        for wrong in ["", "100", "1KiB", "10ms", "often"] {
            let error = parsed(wrong).expect_err(wrong);
            assert!(error.contains("1GiB") && error.contains("10m"), "{error}");
        }
    }

    #[test]
    fn only_capture_files_are_written() {
        let format = |path: &str| {
            let path = PathBuf::from(path);
            FileOptions { path, rotation: None, keep: None, overwrite: false }.format()
        };
        assert_eq!(format("x").unwrap(), export::FileFormat::Pcapng);
        assert_eq!(format("x.pcap").unwrap(), export::FileFormat::Pcap);
        for wrong in ["x.csv", "x.pcapng.gz", "x.parquet", "x.txt"] {
            assert!(format(wrong).unwrap_err().to_string().contains("extract"), "{wrong}");
        }
        assert!(format("-").unwrap_err().to_string().contains("--follow"));
    }
}
