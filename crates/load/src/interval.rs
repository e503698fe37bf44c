//! Intervals: what each stream did in each stretch of time.

use std::collections::BTreeMap;
use std::fmt;

use base::{Duration, Latencies};
use serde::{Deserialize, Serialize};

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim.
    Trim,
}

impl Verb {
    /// All, by [`Verb::index`].
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Its place in [`Verb::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        })
    }
}

/// What one stream's commands of one kind did. A command belongs to the interval in which it was reaped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamInterval {
    /// Bytes moved (trimmed) by commands that succeeded.
    pub bytes: u64,
    /// Commands that failed, by what the drive said. Their latencies are nowhere else.
    pub errors: BTreeMap<String, u64>,
    /// Commands that answered after their deadline.
    pub missed: u64,
    /// Commands that could not start when intended, because as many as may be were under way.
    pub delayed: u64,
    /// From submission to reaping, of commands that succeeded.
    pub service: Latencies,
    /// From the intended start to reaping, of the same.
    pub response: Latencies,
}

impl StreamInterval {
    /// Adds all of another one.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.missed += other.missed;
        self.delayed += other.delayed;
        for (error, count) in &other.errors {
            *self.errors.entry(error.clone()).or_default() += count;
        }
        self.service.add(&other.service);
        self.response.add(&other.response);
    }

    /// Commands that succeeded.
    pub fn count(&self) -> u64 {
        self.service.count()
    }

    /// Commands that failed.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// The first command that missed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// Which stream, by its place in the workload.
    pub stream: u16,
    /// Index of the drive in the bank.
    pub drive: u16,
    /// Its intended start, in nanoseconds since the run's start.
    pub intended_ns: u64,
    /// How long it waited for its turn.
    pub waited_ns: u64,
    /// How long the drive took.
    pub service_ns: u64,
}

/// A stretch of time, with what was done in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Its number, from 0.
    pub index: u64,
    /// When it began, since the run's start.
    pub start: Duration,
    /// How long it is. The last one is as long as it came to be.
    pub length: Duration,
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
    /// What was done, by stream and operation; only where something was.
    pub streams: BTreeMap<(u16, Verb), StreamInterval>,
    /// How much later than it could have our own loop started commands whose turn had come.
    pub lag: Latencies,
    /// The first missed deadline within it.
    pub first_miss: Option<Miss>,
    /// Commands of open loops that were intended before the run's end and never started. In the last interval.
    pub unsent: u64,
}

impl Interval {
    /// An empty one.
    pub fn new(index: u64, start: Duration, warm_up: bool) -> Self {
        Self {
            index,
            start,
            length: Duration::ZERO,
            warm_up,
            streams: BTreeMap::new(),
            lag: Latencies::default(),
            first_miss: None,
            unsent: 0,
        }
    }

    /// Adds what another thread did in the same interval.
    pub fn add(&mut self, other: &Self) {
        let end = (self.start + self.length).max(other.start + other.length);
        self.start = self.start.min(other.start);
        self.length = end - self.start;
        for (key, stream) in &other.streams {
            self.streams.entry(*key).or_default().add(stream);
        }
        self.lag.add(&other.lag);
        self.unsent += other.unsent;
        self.first_miss = match (self.first_miss, other.first_miss) {
            (Some(a), Some(b)) => Some(if a.intended_ns <= b.intended_ns { a } else { b }),
            (a, b) => a.or(b),
        };
    }

    /// Bytes that all streams moved, trims not counted.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().filter(|((_, verb), _)| *verb != Verb::Trim).map(|(_, s)| s.bytes).sum()
    }

    /// Commands that succeeded.
    pub fn count(&self) -> u64 {
        self.streams.values().map(StreamInterval::count).sum()
    }
}
