//! Intervals as an HDR histogram log, the text format that HdrHistogram's own tools read: written line by line as
//! intervals close, and read back for the curves of a saved run.
//!
//! A line's tag is `stream/operation/service` or `stream/operation/response`. Times are seconds since the run's start,
//! values nanoseconds. The format keeps milliseconds and rounded extremes; the exact figures stand in a comment
//! before each line, which other tools skip.

mod exact;
mod reader;

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::time::Duration;

use base::Latencies;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    self, IntervalLogWriterBuilder, IntervalLogWriterError,
};

use self::exact::Exact;
pub use self::reader::{HdrLogError, Logged, Reader, read};
use crate::interval::{Interval, Verb};
use crate::workload::Workload;

/// Writes intervals as they close.
#[derive(Debug)]
pub struct HdrLog<W> {
    to: W,
    streams: Vec<String>,
}

impl<W: Write> HdrLog<W> {
    /// Begins a log of a run that started at this time (UTC nanoseconds since 1970; 0 on a simulated bank).
    ///
    /// # Errors
    /// If it can't be written.
    pub fn new(mut to: W, start_utc_ns: u64, workload: &Workload) -> io::Result<Self> {
        let start = std::time::UNIX_EPOCH + Duration::from_nanos(start_utc_ns);
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment("[Logged by longtake; values in nanoseconds]")
            .with_start_time(start)
            .with_base_time(start);
        builder.begin_log_with(&mut to, &mut V2DeflateSerializer::new())?;
        to.flush()?;
        let streams = workload.streams.iter().map(|stream| stream.name.clone()).collect();
        Ok(Self { to, streams })
    }

    /// Writes an interval and hands it to the operating system.
    ///
    /// # Errors
    /// If it can't be written, with the operating system's reason.
    ///
    /// # Panics
    /// If the interval is not of this log's workload.
    pub fn write(&mut self, interval: &Interval) -> io::Result<()> {
        let (start, length) = (interval.start, interval.length);
        let mut lines = Vec::new();
        for (&(stream, operation), counted) in &interval.streams {
            let stream = &self.streams[usize::from(stream)];
            for (stamps, latencies) in
                [(Stamps::Service, &counted.service), (Stamps::Response, &counted.response)]
            {
                let tag = Tag { stream: stream.clone(), operation, stamps };
                line(&mut lines, &tag, start, length, latencies)?;
            }
        }
        self.to.write_all(&lines)?;
        self.to.flush()
    }
}

fn line(
    lines: &mut Vec<u8>,
    tag: &Tag,
    start: base::Duration,
    length: base::Duration,
    latencies: &Latencies,
) -> io::Result<()> {
    writeln!(lines, "{}", Exact::of(start, length, latencies))?;
    let text = tag.to_string();
    let tag = interval_log::Tag::new(&text).expect("all that a tag may not hold is escaped");
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new().begin_log_with(lines, &mut serializer)?;
    writer.write_histogram(latencies.histogram(), start.into(), length.into(), Some(tag)).map_err(
        |error| match error {
            IntervalLogWriterError::IoError(error) => error,
            IntervalLogWriterError::SerializeError(error) => io::Error::other(error.to_string()),
        },
    )
}

/// Between which stamps a latency lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stamps {
    /// Submission to reaping.
    Service,
    /// Intended start to reaping.
    Response,
}

/// What a line of the log is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// The stream's name.
    pub stream: String,
    /// Its operation.
    pub operation: Verb,
    /// Which latencies.
    pub stamps: Stamps,
}

impl fmt::Display for Tag {
    /// What would end a tag, and `%`, stand as `%` and two hexadecimal digits of each byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.stream.chars() {
            if c.is_whitespace() || c.is_control() || ",/%".contains(c) {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().try_for_each(|byte| write!(f, "%{byte:02X}"))?;
            } else {
                write!(f, "{c}")?;
            }
        }
        let stamps = match self.stamps {
            Stamps::Service => "service",
            Stamps::Response => "response",
        };
        write!(f, "/{}/{stamps}", self.operation)
    }
}

impl FromStr for Tag {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || {
            format!("'{text}' is no tag of ours: they read STREAM/read|write|trim/service|response")
        };
        let mut parts = text.split('/');
        let (Some(stream), Some(operation), Some(stamps), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(error());
        };
        let operation =
            Verb::ALL.into_iter().find(|verb| verb.to_string() == operation).ok_or_else(error)?;
        let stamps = match stamps {
            "service" => Stamps::Service,
            "response" => Stamps::Response,
            _ => return Err(error()),
        };
        Ok(Self { stream: unescape(stream).ok_or_else(error)?, operation, stamps })
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut parts = text.split('%');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part[2..].bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_stream_name_comes_back_from_its_tag() {
        for stream in ["ingest", "two words", "a,b/c%d", "tab\tline\n", "Größe\u{2003}x", ""] {
            let tag =
                Tag { stream: stream.to_owned(), operation: Verb::Trim, stamps: Stamps::Response };
            let text = tag.to_string();
            assert!(interval_log::Tag::new(&text).is_some(), "{text}");
            assert_eq!(text.parse(), Ok(tag));
        }
        for text in [
            "",
            "a/read",
            "a/reads/service",
            "a/read/latency",
            "a/b/read/service",
            "%zz/read/service",
        ] {
            assert!(text.parse::<Tag>().unwrap_err().contains("STREAM/read"), "{text}");
        }
    }
}
