//! A workload: what is asked of a bank, as a short TOML file or as options say it.

use std::fmt;
use std::str::FromStr;

use base::Duration;
use serde::{Deserialize, Serialize};

use crate::quantity::{Pace, Size, Time, as_text};
use crate::trace::Recorded;

/// Commands that a job has under way at a time, at most.
pub const DEPTH_MAX: u32 = 4096;

/// Streams that run at the same time until one of the reasons to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name in results.
    #[serde(default = "default_name")]
    pub name: String,
    /// Everything random follows from it: the same seed, the same commands.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Length of the intervals in which latencies are kept apart.
    #[serde(default = "default_interval")]
    pub interval: Time,
    /// Left out of the totals at the beginning; a whole number of intervals.
    #[serde(default)]
    pub warm_up: Time,
    /// When it ends. Whatever comes first.
    #[serde(default)]
    pub stop: Stop,
    /// What runs.
    #[serde(rename = "stream")]
    pub streams: Vec<Stream>,
}

/// Reasons to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// After this time, warm-up not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// After so many bytes have been asked for by all streams together, warm-up counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// Once its speed is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
}

/// Steady state: over a window of rounds the averages stay within a range, and so does the line through them.
/// The defaults are those of the SNIA Performance Test Specification 2.0.2.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Steady {
    /// Length of a round.
    pub round: Time,
    /// Rounds in the window.
    pub window: u32,
    /// Largest minus smallest, in percent of the average, at most.
    pub range_percent: f64,
    /// Rise or fall of the best line over the window, in percent of the average, at most.
    pub slope_percent: f64,
    /// Give up after so many rounds.
    pub rounds_max: u32,
}

impl Default for Steady {
    fn default() -> Self {
        Self {
            round: Time(Duration::from_secs(60)),
            window: 5,
            range_percent: 20.0,
            slope_percent: 10.0,
            rounds_max: 25,
        }
    }
}

/// One stream of commands, multiplied by `jobs` on each of its drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// Its name in results.
    pub name: String,
    /// Drives by their place in the bank, from 0; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<u16>,
    /// Where commands go.
    pub pattern: Pattern,
    /// How long they are.
    pub block: Blocks,
    /// Weight of reads among the commands.
    pub read: u32,
    /// Weight of writes.
    pub write: u32,
    /// Weight of trims.
    #[serde(skip_serializing_if = "is_zero")]
    pub trim: u32,
    /// Where its region begins on each drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Size>,
    /// How long its region is; to the end without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Offsets are multiples of this within the region; the shortest block without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align: Option<Size>,
    /// Commands under way for each job, at most.
    pub depth: u32,
    /// Copies of this stream on each drive.
    pub jobs: u32,
    /// What each job asks a second, whether or not the drive keeps up (open loop). Without it the next command comes when
    /// one is done (closed loop).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Pace>,
    /// How commands of an open loop are spread in time.
    pub arrival: Arrival,
    /// A response later than this is counted as missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Priority that the kernel gives its commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// What is written.
    pub content: Content,
    /// Whether each write asks for Force Unit Access: it is done only when it is durable.
    #[serde(skip_serializing_if = "is_false")]
    pub fua: bool,
    /// The distance at which each of its drives is flushed beside its writes, as a recorder does it. Flushes don't count among its
    /// commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<Time>,
    /// A recorded trace that its commands come from, instead of pattern, blocks, weights and rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Recorded>,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            name: "stream".to_owned(),
            drives: Vec::new(),
            pattern: Pattern::Sequential,
            block: Blocks(vec![(Size(128 << 10), 1)]),
            read: 0,
            write: 0,
            trim: 0,
            from: None,
            size: None,
            align: None,
            depth: 1,
            jobs: 1,
            rate: None,
            arrival: Arrival::Constant,
            deadline: None,
            priority: None,
            content: Content::Random,
            fua: false,
            flush: None,
            trace: None,
        }
    }
}

impl Stream {
    /// Whether anything it does changes what lies on a drive.
    pub fn changes(&self) -> bool {
        self.write > 0 || self.trim > 0
    }

    /// Whether its commands have times, which they keep whatever the drive does (an open loop).
    pub fn is_open(&self) -> bool {
        self.rate.is_some() || self.trace.as_ref().is_some_and(Recorded::is_open)
    }

    /// The unit of its offsets in bytes.
    pub fn align_bytes(&self) -> u64 {
        self.align.map_or_else(|| self.block.shortest(), |size| size.0)
    }
}

/// Where commands go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One behind the other, from the region's start and around.
    Sequential,
    /// Anywhere with the same chance.
    Random,
    /// The k-th most popular place gets 1/k^theta of the chance of the first; places are scattered.
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// A share of the space gets a share of the commands.
    Hot {
        /// Percent of the space that is hot.
        space_percent: f64,
        /// Percent of the commands that go there.
        access_percent: f64,
    },
    /// Each place at least once and as many commands more as the drive has spare flash, in the order that brings it into the steady
    /// state of random writes with the fewest writes; then anywhere.
    Settling {
        /// Flash beyond the region, in percent of it.
        spare_percent: f64,
    },
}

/// Block lengths and their weights: `64KiB`, or `4KiB:60,64KiB:40`.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks(pub Vec<(Size, u32)>);

/// How commands of an open loop are spread in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// At equal distances.
    Constant,
    /// At random, as independent users do (exponential distances).
    Poisson,
    /// So many at once, at equal distances.
    Bursts(u32),
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// Bytes that can't be compressed, nor found twice.
    Random,
    /// Of which so many percent are zeros.
    Compressible {
        /// Percent of zeros.
        percent: u8,
    },
    /// Bytes that say where and when they were written, so that every wrong one is found on reading.
    Verify,
}

/// The kernel's I/O priorities (ioprio_set(2)); lower levels come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Before all others.
    RealTime(u8),
    /// The usual class; 4 is the usual level.
    BestEffort(u8),
    /// When nobody else wants the drive.
    Idle,
}

as_text!(Pattern, Blocks, Arrival, Content, Priority);

fn default_name() -> String {
    "workload".to_owned()
}
fn default_seed() -> u64 {
    1
}
fn default_interval() -> Time {
    Time(Duration::from_secs(1))
}
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(weight: &u32) -> bool {
    *weight == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Workload {
    /// From TOML.
    ///
    /// # Errors
    /// What is wrong, with its line and column.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// As TOML that reads back as the same workload.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a workload has nothing that TOML can't say")
    }

    /// Whether anything it does changes what lies on a drive.
    pub fn changes(&self) -> bool {
        self.streams.iter().any(Stream::changes)
    }
}

impl Blocks {
    /// The one length.
    pub fn of(bytes: u64) -> Self {
        Self(vec![(Size(bytes), 1)])
    }

    /// The shortest in bytes.
    pub fn shortest(&self) -> u64 {
        self.0.iter().map(|(size, _)| size.0).min().unwrap_or(0)
    }

    /// The longest in bytes.
    pub fn longest(&self) -> u64 {
        self.0.iter().map(|(size, _)| size.0).max().unwrap_or(0)
    }

    /// The average in bytes.
    pub fn mean(&self) -> f64 {
        let weights: f64 = self.0.iter().map(|(_, weight)| f64::from(*weight)).sum();
        self.0.iter().map(|(size, weight)| size.0 as f64 * f64::from(*weight)).sum::<f64>()
            / weights
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(size, _)] = self.0.as_slice() {
            return size.fmt(f);
        }
        let parts: Vec<String> =
            self.0.iter().map(|(size, weight)| format!("{size}:{weight}")).collect();
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Blocks {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let part = |part: &str| {
            let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
            let size: Size = size.parse().ok()?;
            let weight = weight.trim().parse().ok()?;
            (size.0 > 0 && size.0 <= u64::from(u32::MAX) && weight > 0).then_some((size, weight))
        };
        let mut blocks = text.split(',').map(part).collect::<Option<Vec<_>>>();
        // A weight beside none is none, and prints as none.
        if let Some([(_, weight)]) = blocks.as_deref_mut() {
            *weight = 1;
        }
        blocks.map(Self).ok_or_else(|| {
            format!("'{text}' is no block size: give one (64KiB) or several with weights (4KiB:60,64KiB:40)")
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("sequential"),
            Self::Random => f.write_str("random"),
            Self::Zipf { theta } => write!(f, "zipf:{theta}"),
            Self::Hot { space_percent, access_percent } => {
                write!(f, "hot:{space_percent}/{access_percent}")
            }
            Self::Settling { spare_percent } => write!(f, "settling:{spare_percent}"),
        }
    }
}

impl FromStr for Pattern {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || {
            format!(
                "'{text}' is no pattern: give sequential, random, zipf:THETA (zipf:1.2), hot:SPACE/ACCESSES in percent \
                 (hot:20/80), or settling:SPARE in percent (settling:28)"
            )
        };
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match (name, rest) {
            ("sequential", "") => Ok(Self::Sequential),
            ("random", "") => Ok(Self::Random),
            ("zipf", theta) => {
                let theta: f64 = theta.parse().map_err(|_| error())?;
                if theta > 0.0 && theta.is_finite() {
                    Ok(Self::Zipf { theta })
                } else {
                    Err(error())
                }
            }
            ("hot", shares) => {
                let (space, access) = shares.split_once('/').ok_or_else(error)?;
                let percent =
                    |text: &str| text.trim().parse().ok().filter(|p| *p > 0.0 && *p < 100.0);
                match (percent(space), percent(access)) {
                    (Some(space_percent), Some(access_percent)) => {
                        Ok(Self::Hot { space_percent, access_percent })
                    }
                    _ => Err(error()),
                }
            }
            ("settling", spare) => match spare.parse() {
                Ok(spare_percent) if (0.0..=1000.0).contains(&spare_percent) => {
                    Ok(Self::Settling { spare_percent })
                }
                _ => Err(error()),
            },
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Poisson => f.write_str("poisson"),
            Self::Bursts(count) => write!(f, "bursts:{count}"),
        }
    }
}

impl FromStr for Arrival {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("constant", "") => Ok(Self::Constant),
            ("poisson", "") => Ok(Self::Poisson),
            ("bursts", count) if count.parse::<u32>().is_ok_and(|n| n > 0) => {
                Ok(Self::Bursts(count.parse().unwrap_or(1)))
            }
            _ => Err(format!(
                "'{text}' is no arrival: give constant, poisson, or bursts:COUNT (bursts:16)"
            )),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::Compressible { percent } => write!(f, "compressible:{percent}"),
            Self::Verify => f.write_str("verify"),
        }
    }
}

impl FromStr for Content {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("random", "") => Ok(Self::Random),
            ("verify", "") => Ok(Self::Verify),
            ("compressible", percent) if percent.parse::<u8>().is_ok_and(|p| p <= 100) => {
                Ok(Self::Compressible { percent: percent.parse().unwrap_or(0) })
            }
            _ => Err(format!(
                "'{text}' is no content: give random, compressible:PERCENT (compressible:50), or verify"
            )),
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime(level) => write!(f, "real-time:{level}"),
            Self::BestEffort(level) => write!(f, "best-effort:{level}"),
            Self::Idle => f.write_str("idle"),
        }
    }
}

impl FromStr for Priority {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let level = |text: &str| text.parse::<u8>().ok().filter(|&level| level < 8);
        match text.split_once(':').unwrap_or((text, "")) {
            ("idle", "") => Some(Self::Idle),
            ("real-time", text) => level(text).map(Self::RealTime),
            ("best-effort", text) => level(text).map(Self::BestEffort),
            _ => None,
        }
        .ok_or_else(|| format!("'{text}' is no priority: give real-time:LEVEL, best-effort:LEVEL (0 first, 7 last) or idle"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_reads_back_as_it_was_written() {
        let text = r#"
            name = "ingest beside viewers"
            warm_up = "2s"
            stop = { time = "1m", bytes = "10GB", steady = { window = 4 } }
            [[stream]]
            name = "ingest"
            write = 1
            block = "1MiB"
            rate = "400MB/s"
            content = "verify"
            [[stream]]
            name = "viewers"
            pattern = "hot:20/80"
            block = "64KiB:3,512KiB:1"
            read = 9
            trim = 1
            jobs = 40
            rate = "5/s"
            arrival = "bursts:4"
            deadline = "200ms"
            priority = "real-time:2"
        "#;
        let workload = Workload::from_toml(text).unwrap();
        assert_eq!(workload.streams[1].block.mean(), (64.0 * 3.0 + 512.0) * 1024.0 / 4.0);
        assert_eq!(workload.stop.steady.unwrap().window, 4);
        assert_eq!(workload.stop.steady.unwrap().rounds_max, 25);
        assert_eq!(Workload::from_toml(&workload.to_toml()).unwrap(), workload);
    }

    #[test]
    fn a_wrong_field_is_named_with_its_line_and_what_would_be_right() {
        for (line, expected) in [
            ("patern = 'random'", "patern"),
            ("pattern = 'zip:1'", "zipf:1.2"),
            ("block = '4KiB:0'", "4KiB:60"),
            ("rate = '5'", "400MB/s"),
            ("arrival = 'burst'", "bursts:16"),
            ("priority = 'real-time:9'", "real-time:LEVEL"),
            ("content = 'compressible:101'", "compressible:50"),
            ("depth = -1", "depth"),
        ] {
            let error =
                Workload::from_toml(&format!("[[stream]]\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(expected), "{line}: {error}");
        }
    }
}
