//! Recorded block traces: the requests that somebody's drive was asked, read from what other tools wrote, to be replayed on
//! another drive. No I/O: traces are read from any [`BufRead`].

mod blktrace;
mod collector;
mod csv;
mod error;
mod fit;
mod iolog;
mod lines;
mod recorded;

use std::fmt;
use std::io::{BufRead, Cursor, Read};
use std::str::FromStr;

use base::Duration;
use base::units::{counted, grouped};
use serde::Serialize;

use crate::interval::Verb;
use collector::Collector;

pub use error::TraceError;
pub use fit::{Fitted, FittedTrace, Fitting, Speed, UnfitError};
pub(crate) use recorded::Playback;
pub use recorded::Recorded;

/// Bytes at a file's beginning from which its format is recognized. The first line of every format is shorter.
const HEAD_BYTES: u64 = 4096;

/// A read or write of a trace. Its memory is what a trace takes: 24 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was made, in nanoseconds since the trace's first request.
    pub at_ns: u64,
    /// On the device, in bytes.
    pub offset: u64,
    /// In bytes.
    pub length: u32,
    /// The device by its place among those of the trace, while it is read.
    device: u16,
    /// Read or write.
    pub verb: Verb,
    /// It asked for Force Unit Access.
    pub fua: bool,
}

const _: () = assert!(size_of::<Request>() == 24);

/// How a trace was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The binary files of blktrace, one for each processor.
    Blktrace,
    /// fio's log of I/O, version 2 or 3.
    Iolog,
    /// The block traces of MSR Cambridge (SNIA IOTTA 388).
    Msr,
    /// The block traces of Alibaba (2020).
    Alibaba,
    /// The block traces of Tencent's cloud block storage (SNIA IOTTA 27917).
    Tencent,
}

impl Format {
    /// All, in the order of the documents.
    pub const ALL: [Self; 5] =
        [Self::Blktrace, Self::Iolog, Self::Msr, Self::Alibaba, Self::Tencent];

    /// Its name as an option's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blktrace => "blktrace",
            Self::Iolog => "iolog",
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blktrace => "blktrace",
            Self::Iolog => "fio iolog",
            Self::Msr => "MSR Cambridge CSV",
            Self::Alibaba => "Alibaba CSV",
            Self::Tencent => "Tencent CSV",
        })
    }
}

impl FromStr for Format {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("'{text}' is no format of traces: give one of {names}")
        })
    }
}

/// Which of blktrace's events are the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Events {
    /// Q: what programs and file systems asked of the block layer, when they asked. It depends least on the drive that was
    /// traced.
    Queue,
    /// D: what the block layer sent to the driver after merging, splitting and scheduling.
    Issue,
}

impl FromStr for Events {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "queue" => Ok(Self::Queue),
            "issue" => Ok(Self::Issue),
            _ => Err(format!("'{text}' is no kind of event: give queue or issue")),
        }
    }
}

/// One file of a trace.
pub struct Input<'a> {
    /// Its name in messages.
    pub name: String,
    /// What is in it.
    pub bytes: Box<dyn BufRead + 'a>,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Which part of a trace is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The format; without it, it is recognized.
    pub format: Option<Format>,
    /// The device (`8,16`, a file's name, a host and disk, or a volume's number); without it, the one with most requests.
    pub device: Option<String>,
    /// The events of a blktrace; without them, [`Events::Queue`] if there are any.
    pub events: Option<Events>,
    /// Leave writes out.
    pub reads_only: bool,
    /// Leave out what came later than this after the first request.
    pub time: Option<Duration>,
}

/// Requests that are not replayed, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Flushes and syncs.
    pub flushes: u64,
    /// Discards and trims.
    pub discards: u64,
    /// Reads and writes of no bytes.
    pub zero_length: u64,
    /// Commands that were passed through to the drive.
    pub passthrough: u64,
    /// Reads and writes of other devices.
    pub other_devices: u64,
    /// How many other devices there are.
    pub devices: u64,
    /// Writes, because only reads were wanted.
    pub writes: u64,
    /// Requests after the wanted time.
    pub later: u64,
}

impl LeftOut {
    /// Each reason with its number, in words; nothing for reasons that there are none of.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut say = |number: u64, text: String| {
            if number > 0 {
                words.push(text);
            }
        };
        let flushes = if self.flushes == 1 { "flush" } else { "flushes" };
        say(self.flushes, format!("{} {flushes}", grouped(self.flushes)));
        say(self.discards, counted(self.discards, "discard"));
        say(self.zero_length, format!("{} of no bytes", counted(self.zero_length, "request")));
        say(self.passthrough, counted(self.passthrough, "passed-through command"));
        let others = format!(
            "{} of {}",
            counted(self.other_devices, "request"),
            counted(self.devices, "other device")
        );
        say(self.other_devices, others);
        say(self.writes, format!("{} (--reads-only)", counted(self.writes, "write")));
        say(self.later, format!("{} after the time of --for", counted(self.later, "request")));
        words
    }
}

/// Requests of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What is in a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How it was written.
    pub format: Format,
    /// Names of its files.
    pub files: Vec<String>,
    /// Which events of a blktrace are the requests.
    pub events: Option<Events>,
    /// The device whose requests are replayed.
    pub device: String,
    /// Its reads.
    pub reads: Moved,
    /// Its writes.
    pub writes: Moved,
    /// Nanoseconds from the first request to the last; None if the trace has no times.
    pub span_ns: Option<u64>,
    /// Times are whole seconds, over which the requests of each were spread.
    pub whole_seconds: bool,
    /// Where the furthest request ends on the device, in bytes.
    pub end_bytes: u64,
    /// Events that the kernel's numbers show to be missing in a blktrace.
    pub lost_events: u64,
    /// What is not replayed.
    pub left_out: LeftOut,
}

/// A trace: the reads and writes of one device, in the order of their times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// What is in it.
    pub summary: Summary,
    /// Its requests.
    pub requests: Vec<Request>,
}

impl Trace {
    /// Reads the files of one trace.
    ///
    /// # Errors
    /// [`TraceError`] for the first record or line that is not as the format has it.
    pub fn read(inputs: Vec<Input<'_>>, choice: &Choice) -> Result<Self, TraceError> {
        let files = inputs.iter().map(|input| input.name.clone()).collect();
        let mut collector = Collector::new(choice);
        let mut format = choice.format;
        let mut events = blktrace::Reader::new(choice);
        let several = inputs.len() > 1;
        for input in inputs {
            // A processor that saw no event has an empty file.
            let Some((input, found)) = recognized(input, format, several)? else { continue };
            format = Some(found);
            match found {
                Format::Blktrace => events.read(input)?,
                Format::Iolog => iolog::read(input, &mut collector)?,
                Format::Msr | Format::Alibaba | Format::Tencent => {
                    csv::read(input, found, &mut collector)?;
                }
            }
        }
        let format = format.ok_or(TraceError::NoFiles)?;
        if format != Format::Blktrace {
            return collector.finish(format, files, None, 0);
        }
        let (collector, events, lost) = events.finish();
        collector.finish(format, files, Some(events), lost)
    }
}

/// The same input with its format: `format`, or what its beginning shows. None if it is empty and `may_be_empty`.
fn recognized(
    input: Input<'_>,
    format: Option<Format>,
    may_be_empty: bool,
) -> Result<Option<(Input<'_>, Format)>, TraceError> {
    let Input { name, mut bytes } = input;
    let mut head = Vec::new();
    if let Err(reason) = bytes.by_ref().take(HEAD_BYTES).read_to_end(&mut head) {
        return Err(TraceError::Read { name, reason });
    }
    if head.is_empty() && may_be_empty {
        return Ok(None);
    }
    let found = format.or_else(|| recognize(&head));
    let Some(found) = found else {
        return Err(match compressed(&head) {
            Some(program) => TraceError::Compressed { name, program },
            None => TraceError::Unknown { name, empty: head.is_empty() },
        });
    };
    Ok(Some((Input { name, bytes: Box::new(Cursor::new(head).chain(bytes)) }, found)))
}

/// The format of a file that begins so.
fn recognize(head: &[u8]) -> Option<Format> {
    if blktrace::begins(head) {
        return Some(Format::Blktrace);
    }
    if iolog::begins(head) {
        return Some(Format::Iolog);
    }
    csv::recognize(head)
}

/// The program that decompresses a file that begins so.
fn compressed(head: &[u8]) -> Option<&'static str> {
    // RFC 1952, RFC 8878, and the formats of bzip2 and xz.
    let magics: [(&[u8], &str); 4] = [
        (&[0x1F, 0x8B], "gunzip"),
        (&[0x28, 0xB5, 0x2F, 0xFD], "unzstd"),
        (b"BZh", "bunzip2"),
        (&[0xFD, b'7', b'z', b'X', b'Z'], "unxz"),
    ];
    magics.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, program)| program)
}

#[cfg(test)]
mod tests;
