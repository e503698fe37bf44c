//! Fits a trace to a drive: whole blocks, inside the drive, no longer than it takes at once.

use std::fmt;

use base::{ByteSize, Duration, Geometry};
use serde::Serialize;

use super::{Moved, Recorded, Request, Trace};
use crate::interval::Verb;
use crate::quantity::{Size, Time};
use crate::workload::{Blocks, Stop, Stream, Workload};

/// Commands under way at recorded times, at most, unless another number is asked for: more than drives ask of a host.
const DEPTH_TIMED: u32 = 256;

/// The same as fast as possible.
const DEPTH_FASTEST: u32 = 32;

/// Memory of all buffers together, unless a depth is asked for.
const BUFFERS_BYTES: u64 = 1 << 30;

/// Intervals of a series, about, at most.
const INTERVALS_MAX: u64 = 3600;

/// How fast a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// At the recorded times, divided by this.
    Recorded(f64),
    /// Each command as soon as there is room for it.
    Fastest,
}

/// How a trace is fitted to a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitting {
    /// How fast it is replayed.
    pub speed: Speed,
    /// Requests beyond the drive's end are taken modulo its size.
    pub wrap: bool,
    /// Commands under way, at most.
    pub depth: Option<u32>,
}

/// What a trace is on a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fitted {
    /// Reads, as requests of the trace, with the bytes that are read.
    pub reads: Moved,
    /// Writes likewise.
    pub writes: Moved,
    /// Commands: as many as requests, and more if some are longer than the drive takes at once.
    pub commands: u64,
    /// Requests that were widened to whole blocks.
    pub widened: u64,
    /// Requests beyond the drive's end, taken modulo its size.
    pub wrapped: u64,
    /// Requests that became several commands.
    pub split: u64,
    /// Commands under way, at most.
    pub depth: u32,
    /// When the last command is due, in nanoseconds since the start; None as fast as possible.
    pub span_ns: Option<u64>,
    /// The longest command in bytes.
    longest: u32,
}

/// A trace fitted to a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedTrace {
    /// One stream with the trace's commands.
    pub workload: Workload,
    /// What it is.
    pub fitted: Fitted,
}

/// Why a trace does not fit a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnfitError {
    /// Requests lie beyond the drive's end.
    Beyond {
        /// The drive.
        target: String,
        /// Its size in bytes.
        capacity_bytes: u64,
        /// Where the furthest request ends.
        end_bytes: u64,
        /// How many there are.
        requests: u64,
    },
    /// A request is longer than the whole drive.
    Longer {
        /// The drive.
        target: String,
        /// Its size in bytes.
        capacity_bytes: u64,
        /// The request's length in bytes.
        length: u64,
    },
    /// The trace has no times.
    NoTimes,
}

impl fmt::Display for UnfitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beyond { target, capacity_bytes, end_bytes, requests } => write!(
                f,
                "the trace reaches to {} and {target} ends at {}: {requests} of its requests lie beyond. Name a larger \
                 target, or add --wrap, which takes their offsets modulo the target's size",
                ByteSize(*end_bytes),
                ByteSize(*capacity_bytes)
            ),
            Self::Longer { target, capacity_bytes, length } => write!(
                f,
                "a request of the trace has {} and {target} only {}: name a larger target",
                ByteSize(*length),
                ByteSize(*capacity_bytes)
            ),
            Self::NoTimes => f.write_str(
                "the trace has no times (a fio iolog of version 2 without waits): add --asap to replay it as fast as \
                 possible",
            ),
        }
    }
}

impl std::error::Error for UnfitError {}

impl Fitted {
    /// What `trace` is on a drive.
    ///
    /// # Errors
    /// [`UnfitError`]
    pub fn of(trace: &Trace, drive: &Geometry, fitting: Fitting) -> Result<Self, UnfitError> {
        each(trace, drive, fitting, |_| ())
    }
}

impl FittedTrace {
    /// `trace` as a workload of a drive.
    ///
    /// # Errors
    /// [`UnfitError`]
    pub fn new(trace: &Trace, drive: &Geometry, fitting: Fitting) -> Result<Self, UnfitError> {
        let mut requests = Vec::with_capacity(trace.requests.len());
        let fitted = each(trace, drive, fitting, |request| requests.push(request))?;
        let speed = match fitting.speed {
            Speed::Recorded(speed) => Some(speed),
            Speed::Fastest => None,
        };
        let summary = &trace.summary;
        let source = summary.files.first().cloned().unwrap_or_default();
        let weight = |moved: Moved| u32::try_from(moved.requests).unwrap_or(u32::MAX);
        let stream = Stream {
            name: "trace".to_owned(),
            block: Blocks::of(fitted.longest.into()),
            align: Some(Size(drive.block_bytes.into())),
            read: weight(fitted.reads),
            write: weight(fitted.writes),
            depth: fitted.depth,
            trace: Some(Recorded::new(source, summary.device.clone(), speed, requests)),
            ..Stream::default()
        };
        let seconds = Duration::from_nanos(fitted.span_ns.unwrap_or(0)).as_secs_f64() as u64;
        let interval = Time(Duration::from_secs(seconds.div_ceil(INTERVALS_MAX).max(1)));
        let bytes = Some(Size(fitted.reads.bytes + fitted.writes.bytes));
        let workload = Workload {
            name: "replay".to_owned(),
            seed: 1,
            interval,
            warm_up: Time::default(),
            stop: Stop { bytes, ..Stop::default() },
            streams: vec![stream],
        };
        Ok(Self { workload, fitted })
    }
}

/// Calls `take` with every command that the trace makes on the drive.
fn each(
    trace: &Trace,
    drive: &Geometry,
    fitting: Fitting,
    mut take: impl FnMut(Request),
) -> Result<Fitted, UnfitError> {
    if trace.summary.span_ns.is_none() && fitting.speed != Speed::Fastest {
        return Err(UnfitError::NoTimes);
    }
    let (unit, capacity) = (u64::from(drive.block_bytes), drive.capacity_bytes);
    let piece_max = u64::from(drive.transfer_max_bytes);
    let mut fitted = Fitted::default();
    let (mut beyond, mut furthest) = (0, 0);
    for request in &trace.requests {
        let mut from = request.offset / unit * unit;
        let end = (request.offset + u64::from(request.length)).next_multiple_of(unit);
        let length = end - from;
        fitted.widened += u64::from((from, length) != (request.offset, request.length.into()));
        if length > capacity {
            let target = drive.name.clone();
            return Err(UnfitError::Longer { target, capacity_bytes: capacity, length });
        }
        if end > capacity {
            if !fitting.wrap {
                (beyond, furthest) = (beyond + 1, end.max(furthest));
                continue;
            }
            fitted.wrapped += 1;
            from = (from % capacity).min(capacity - length);
        }
        let at_ns = scheduled(request.at_ns, fitting.speed);
        fitted.span_ns = Some(at_ns).filter(|_| fitting.speed != Speed::Fastest);
        let moved = if request.verb == Verb::Read { &mut fitted.reads } else { &mut fitted.writes };
        moved.requests += 1;
        moved.bytes += length;
        fitted.split += u64::from(length > piece_max);
        let mut done = 0;
        while done < length {
            let piece = piece_max.min(length - done) as u32;
            take(Request { at_ns, offset: from + done, length: piece, ..*request });
            done += u64::from(piece);
            fitted.commands += 1;
            fitted.longest = fitted.longest.max(piece);
        }
    }
    if beyond > 0 {
        return Err(UnfitError::Beyond {
            target: drive.name.clone(),
            capacity_bytes: capacity,
            end_bytes: furthest,
            requests: beyond,
        });
    }
    fitted.depth = depth(fitting, fitted.longest);
    Ok(fitted)
}

/// When a request is due.
fn scheduled(at_ns: u64, speed: Speed) -> u64 {
    match speed {
        Speed::Recorded(1.0) => at_ns,
        Speed::Recorded(speed) => (at_ns as f64 / speed) as u64,
        Speed::Fastest => 0,
    }
}

/// Commands under way, at most.
fn depth(fitting: Fitting, longest: u32) -> u32 {
    let usual = if fitting.speed == Speed::Fastest { DEPTH_FASTEST } else { DEPTH_TIMED };
    let room = BUFFERS_BYTES / u64::from(longest.max(1));
    fitting.depth.unwrap_or(room.clamp(1, usual.into()) as u32)
}
