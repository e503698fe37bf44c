//! Reading an HDR log, line by line: ours, or another program's. A line that is cut off or damaged is lost alone.

use std::fmt;
use std::io::{self, BufRead, Read};

use base::{Duration, Latencies};
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::exact::Exact;

/// Longest line in bytes: a histogram of ours in base64, uncompressed and full, is a twentieth of it.
const LINE_MAX: u64 = 16 << 20;

/// One line: latencies of one kind in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// What it is about: in our logs, text that parses as [`super::Tag`]. Empty if the line has none.
    pub tag: String,
    /// From the run's start to the interval's (in others' logs: as the line has it).
    pub start: Duration,
    /// The interval's length.
    pub length: Duration,
    /// What was logged. In others' logs sum and extremes are the histogram's.
    pub latencies: Latencies,
}

/// Why a line could not be read.
#[derive(Debug)]
pub enum HdrLogError {
    /// The log itself could not be read.
    Io {
        /// Which line, from 1.
        line: u64,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// A line is damaged; those after it can be read.
    Line {
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl fmt::Display for HdrLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { line, reason } => write!(
                f,
                "reading the HDR log failed at line {line}: {reason}; what was read before it is good"
            ),
            Self::Line { line, reason } => write!(
                f,
                "line {line} of the HDR log is no interval: {reason}; leave it out and read on, the other lines stand alone"
            ),
        }
    }
}

impl std::error::Error for HdrLogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { reason, .. } => Some(reason),
            Self::Line { .. } => None,
        }
    }
}

/// Reads a log's lines. After a damaged line it goes on with the next.
pub fn read<R: BufRead>(from: R) -> Reader<R> {
    Reader { from, line: 0, start: None, exact: None, cut_off: false, over: false }
}

/// The lines of a log.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    line: u64,
    start: Option<Duration>,
    exact: Option<Exact>,
    cut_off: bool,
    over: bool,
}

impl<R> Reader<R> {
    /// When the run started, UTC since 1970 to the millisecond; None before the line that tells it was read.
    pub fn start_utc(&self) -> Option<Duration> {
        self.start
    }

    /// Whether the log ended in the middle of a line, which was left out: its writer was interrupted.
    pub fn cut_off(&self) -> bool {
        self.cut_off
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Logged, HdrLogError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.over {
            self.line += 1;
            let mut line = Vec::new();
            match self.from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
                Ok(0) => self.over = true,
                Ok(_) => {
                    let whole = line.ends_with(b"\n");
                    if !whole && line.len() as u64 == LINE_MAX {
                        self.over = true;
                        return Some(Err(
                            self.damaged(format!("it is longer than {LINE_MAX} bytes"))
                        ));
                    }
                    match self.take(&line) {
                        Ok(Some(logged)) => return Some(Ok(logged)),
                        Ok(None) => self.cut_off |= !whole,
                        Err(_) if !whole => self.cut_off = true,
                        Err(reason) => return Some(Err(self.damaged(reason))),
                    }
                }
                Err(reason) => {
                    self.over = true;
                    return Some(Err(HdrLogError::Io { line: self.line, reason }));
                }
            }
        }
        None
    }
}

impl<R> Reader<R> {
    fn damaged(&self, reason: String) -> HdrLogError {
        HdrLogError::Line { line: self.line, reason }
    }

    /// What a line says; None if it is a comment.
    fn take(&mut self, line: &[u8]) -> Result<Option<Logged>, String> {
        let exact = self.exact.take();
        if let Some(found) = std::str::from_utf8(line).ok().and_then(Exact::parse) {
            self.exact = Some(found);
            return Ok(None);
        }
        let entry = match IntervalLogIterator::new(line).next() {
            None => return Ok(None),
            Some(Ok(LogEntry::StartTime(start) | LogEntry::BaseTime(start))) => {
                self.start = Some(nanoseconds(start));
                return Ok(None);
            }
            Some(Ok(LogEntry::Interval(entry))) => entry,
            Some(Err(_)) => {
                return Err("it should read Tag=TAG,START,LENGTH,MAX,HISTOGRAM".to_owned());
            }
        };
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(entry.encoded_histogram())
            .map_err(|error| format!("its histogram is not base64 ({error})"))?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| format!("its histogram can't be decoded ({error})"))?;
        let (start, length, latencies) = match exact {
            Some(exact) => {
                let latencies = exact
                    .latencies(&histogram)
                    .ok_or("its histogram is not the one that the comment before it describes")?;
                let times = [exact.start_ns, exact.length_ns].map(Duration::from_nanos);
                (times[0], times[1], latencies)
            }
            None => (
                nanoseconds(entry.start_timestamp()),
                nanoseconds(entry.duration()),
                of_histogram(&histogram),
            ),
        };
        let tag = entry.tag().map_or(String::new(), |tag| tag.as_str().to_owned());
        Ok(Some(Logged { tag, start, length, latencies }))
    }
}

/// With what the histogram itself knows of sum and extremes.
fn of_histogram(histogram: &Histogram<u64>) -> Latencies {
    if histogram.is_empty() {
        return Latencies::default();
    }
    let sum = histogram.mean() * histogram.len() as f64;
    Latencies::from_parts(histogram, sum.round() as u128, histogram.min(), histogram.max())
}

fn nanoseconds(time: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
