//! Why a recording ended.

use std::fmt;

use source::spec::SourceSpec;
use source::stream::Endpoint;

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Its time was over (`--for`).
    Duration,
    /// It had recorded as many bytes as were asked for (`--until-bytes`).
    Bytes,
    /// The array is full and not a ring.
    ArrayFull,
    /// No member is left that takes writes.
    NoMemberLeft,
    /// The file can't be written any more.
    Output,
    /// It was asked to end, for instance by a signal.
    Stopped,
    /// The source ended by itself.
    Source(SourceEnd),
}

/// What the end of a source by itself means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceEnd {
    /// The capture file was read to its end.
    File,
    /// The pipe or standard input was closed by whoever wrote to it.
    Pipe,
    /// The TCP senders closed their connections.
    Connection,
    /// The interface was removed, or its capture failed.
    Interface,
    /// The recording program closed its producer.
    Producer,
    /// The generator or socket ended.
    Other,
}

impl SourceEnd {
    /// What an end of this source means.
    pub(super) fn of(spec: &SourceSpec) -> Self {
        match spec {
            SourceSpec::CaptureFile(_) => Self::File,
            SourceSpec::CaptureStdin => Self::Pipe,
            SourceSpec::Stream { endpoint, .. } => match endpoint {
                Endpoint::Connect(_) | Endpoint::Listen { .. } | Endpoint::ListenOn { .. } => {
                    Self::Connection
                }
                Endpoint::Path(path) if path.is_file() => Self::File,
                Endpoint::Path(_) | Endpoint::Stdin => Self::Pipe,
            },
            SourceSpec::Interface(_) => Self::Interface,
            SourceSpec::Producer(_) => Self::Producer,
            SourceSpec::Synthetic(_) | SourceSpec::Traffic(_) | SourceSpec::Udp(_) => Self::Other,
        }
    }
}

impl EndReason {
    /// As a key in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Bytes => "until_bytes",
            Self::ArrayFull => "array_full",
            Self::NoMemberLeft => "no_member_left",
            Self::Output => "output_failed",
            Self::Stopped => "stopped",
            Self::Source(SourceEnd::File) => "file_ended",
            Self::Source(SourceEnd::Pipe) => "pipe_closed",
            Self::Source(SourceEnd::Connection) => "connection_closed",
            Self::Source(SourceEnd::Interface) => "interface_ended",
            Self::Source(SourceEnd::Producer) => "producer_closed",
            Self::Source(SourceEnd::Other) => "source_ended",
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duration => "the time given with --for is over",
            Self::Bytes => "the size given with --until-bytes is recorded",
            Self::ArrayFull => "the array is full",
            Self::NoMemberLeft => "no member is left that takes writes",
            Self::Output => "the file could not be written",
            Self::Stopped => "it was stopped",
            Self::Source(SourceEnd::File) => "the file was read to its end",
            Self::Source(SourceEnd::Pipe) => "the writer closed the pipe",
            Self::Source(SourceEnd::Connection) => "the sender closed its connection",
            Self::Source(SourceEnd::Interface) => "the interface was removed, or capturing failed",
            Self::Source(SourceEnd::Producer) => "the program closed its stream",
            Self::Source(SourceEnd::Other) => "the source ended",
        })
    }
}
