//! Intervals as an HDR histogram log, the text format that HdrHistogram's own tools read: written line by line as
//! intervals close.

use std::io::{self, Write};
use std::time::Duration;

use base::Latencies;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use crate::interval::Interval;
use crate::workload::Workload;

/// Writes intervals. Times are seconds since the run's start, values nanoseconds.
#[derive(Debug)]
pub struct HdrLog<W> {
    to: W,
    streams: Vec<String>,
    elapsed: Duration,
}

impl<W: Write> HdrLog<W> {
    /// Begins a log of a run that started at this time (UTC nanoseconds since 1970).
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
        let allowed = |c: char| if c == ',' || c.is_whitespace() { '_' } else { c };
        let streams = workload
            .streams
            .iter()
            .map(|stream| stream.name.chars().map(allowed).collect())
            .collect();
        Ok(Self { to, streams, elapsed: Duration::ZERO })
    }

    /// Writes an interval and hands it to the operating system.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(&mut self, interval: &Interval) -> io::Result<()> {
        let length = Duration::from(interval.length);
        for (&(stream, verb), counted) in &interval.streams {
            let name = &self.streams[usize::from(stream)];
            for (kind, latencies) in
                [("service", &counted.service), ("response", &counted.response)]
            {
                let line = line(&format!("{name}/{verb}/{kind}"), self.elapsed, length, latencies)?;
                self.to.write_all(&line)?;
            }
        }
        self.elapsed += length;
        self.to.flush()
    }
}

fn line(
    tag: &str,
    start: Duration,
    length: Duration,
    latencies: &Latencies,
) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new().begin_log_with(&mut line, &mut serializer)?;
    writer.write_histogram(latencies.histogram(), start, length, Tag::new(tag)).map_err(
        |error| match error {
            IntervalLogWriterError::IoError(error) => error,
            IntervalLogWriterError::SerializeError(error) => io::Error::other(format!("{error:?}")),
        },
    )?;
    Ok(line)
}
