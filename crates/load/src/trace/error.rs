//! Why a trace can't be read.

use std::fmt;
use std::io;

/// Why a trace can't be read.
#[derive(Debug)]
pub enum TraceError {
    /// There are no files.
    NoFiles,
    /// A file can't be read.
    Read {
        /// The file.
        name: String,
        /// Why.
        reason: io::Error,
    },
    /// A file is in none of the formats.
    Unknown {
        /// The file.
        name: String,
        /// There is nothing in it.
        empty: bool,
    },
    /// A file is compressed.
    Compressed {
        /// The file.
        name: String,
        /// What decompresses it.
        program: &'static str,
    },
    /// A binary record is not as it must be.
    Record {
        /// The file.
        name: String,
        /// Where the record begins.
        byte: u64,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A line is not as it must be.
    Line {
        /// The file.
        name: String,
        /// Its number, from 1.
        line: u64,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The wanted device has no reads or writes in the trace.
    NoDevice {
        /// The device.
        device: String,
        /// The devices that have most of them.
        known: Vec<String>,
    },
    /// There is nothing to replay.
    Empty {
        /// What was left out, in words.
        left_out: Vec<String>,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFiles => f.write_str("a trace has at least one file"),
            Self::Read { name, reason } => write!(f, "reading {name} failed: {reason}"),
            Self::Unknown { name, empty: true } => {
                write!(f, "{name} is empty: name a file with a trace")
            }
            Self::Unknown { name, empty: false } => write!(
                f,
                "{name} is in no known format of traces: give a file of blktrace, a fio iolog (version 2 or 3), or a CSV file \
                 of MSR Cambridge, Alibaba or Tencent; --format names the format of a file that begins unusually"
            ),
            Self::Compressed { name, program } => {
                write!(f, "{name} is compressed: decompress it first ({program})")
            }
            Self::Record { name, byte, problem } => write!(f, "{name}, byte {byte}: {problem}"),
            Self::Line { name, line, problem } => write!(f, "{name}, line {line}: {problem}"),
            Self::NoDevice { device, known } if known.is_empty() => {
                write!(f, "the trace has no reads or writes, so none of device {device}")
            }
            Self::NoDevice { device, known } => write!(
                f,
                "the trace has no reads or writes of device {device}: name one of {}",
                known.join(", ")
            ),
            Self::Empty { left_out } if left_out.is_empty() => {
                f.write_str("the trace has no reads or writes: there is nothing to replay")
            }
            Self::Empty { left_out } => {
                write!(f, "the trace has nothing to replay; left out: {}", left_out.join(", "))
            }
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { reason, .. } => Some(reason),
            _ => None,
        }
    }
}
