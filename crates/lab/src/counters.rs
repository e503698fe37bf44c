//! What drives count of their own work, before and after a step: bytes of the host and of the medium, whose ratio is the
//! write amplification, and commands that the drives themselves found slow.

use std::path::{Path, PathBuf};

use base::ByteSize;
use device::counters::{CounterReader, CountersError};
use device::nvme::ocp::{BUCKETS, Bucket, LatencyMonitor};
use serde::{Deserialize, Serialize};

/// Counters may be coarse by this share of what a step wrote; else its write amplification is not known.
const COARSE_MAX: f64 = 0.01;

/// Reads the counters of drives.
pub type CounterSource = Box<dyn FnMut() -> Counters + Send>;

/// What drives have counted over their lives, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Counters {
    /// What was written to all of them, or why that is not known.
    pub written: Result<Written, String>,
    /// Each drive's own count of slow commands, by the drive's name; drives that have none are left out.
    pub latency: Vec<(String, LatencyMonitor)>,
}

/// What was written to drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the host's.
    pub host_bytes: u64,
    /// Bytes that the media took: the host's, and what the drives copied and wrote of their own.
    pub media_bytes: u64,
    /// By how many bytes the host's may be wrong, because the drives count in steps.
    pub host_step_bytes: u64,
    /// By how many bytes the media's may be wrong.
    pub media_step_bytes: u64,
}

/// What the drives counted during a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepCounters {
    /// What was written, by the drives' own counters.
    pub written: StepWritten,
    /// Commands that the drives themselves found slow; drives that don't count them are left out.
    pub slow: Vec<SlowCommands>,
}

/// What was written during a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepWritten {
    /// By all drives' counters.
    Known {
        /// Bytes of the host's.
        host_bytes: u64,
        /// Bytes that the media took.
        media_bytes: u64,
        /// Media bytes for each byte of the host's.
        amplification: f64,
    },
    /// Not known.
    NotKnown {
        /// The reason.
        reason: String,
    },
}

/// Commands of one drive that took longer than its latency monitor's thresholds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowCommands {
    /// The drive, as it was named.
    pub drive: String,
    /// One bucket after another, from the shortest latencies on.
    pub buckets: Vec<SlowBucket>,
}

/// Commands whose latency lies between two thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowBucket {
    /// From this latency on, in milliseconds.
    pub from_ms: u32,
    /// To below this latency, in milliseconds; None in the last bucket.
    pub below_ms: Option<u32>,
    /// Reads.
    pub reads: u32,
    /// Writes.
    pub writes: u32,
    /// Trims.
    pub trims: u32,
}

impl Counters {
    /// Of drives that don't count.
    pub fn not_known(reason: impl Into<String>) -> Self {
        Self { written: Err(reason.into()), latency: Vec::new() }
    }

    /// What was counted from `before` to this.
    pub fn since(&self, before: &Self) -> StepCounters {
        let written = match (&self.written, &before.written) {
            (Ok(after), Ok(before)) => after.since(before),
            (Err(reason), _) | (_, Err(reason)) => StepWritten::not_known(reason),
        };
        let slow = self.latency.iter().filter_map(|(drive, after)| {
            let (_, before) = before.latency.iter().find(|(other, _)| other == drive)?;
            Some(SlowCommands::of(drive, after, &after.since(before)?))
        });
        StepCounters { written, slow: slow.collect() }
    }
}

impl Written {
    /// Adds another drive's.
    pub const fn add(&mut self, other: &Self) {
        self.host_bytes += other.host_bytes;
        self.media_bytes += other.media_bytes;
        self.host_step_bytes += other.host_step_bytes;
        self.media_step_bytes += other.media_step_bytes;
    }

    fn since(&self, before: &Self) -> StepWritten {
        let host = self.host_bytes.checked_sub(before.host_bytes);
        let media = self.media_bytes.checked_sub(before.media_bytes);
        let (Some(host_bytes), Some(media_bytes)) = (host, media) else {
            return StepWritten::not_known("a drive's counters went backward during the step");
        };
        if host_bytes == 0 {
            return StepWritten::not_known("the drives counted no bytes of the host's");
        }
        let share = |step: u64, bytes: u64| step as f64 / bytes as f64;
        let coarse = share(self.host_step_bytes, host_bytes)
            + share(self.media_step_bytes, media_bytes.max(1));
        if coarse > COARSE_MAX {
            return StepWritten::not_known(format!(
                "{} of the host's and {} of the media's were counted, and the drives count in steps of {} and {}: write more",
                ByteSize(host_bytes),
                ByteSize(media_bytes),
                ByteSize(self.host_step_bytes),
                ByteSize(self.media_step_bytes)
            ));
        }
        let amplification = media_bytes as f64 / host_bytes as f64;
        StepWritten::Known { host_bytes, media_bytes, amplification }
    }
}

impl StepWritten {
    fn not_known(reason: impl Into<String>) -> Self {
        Self::NotKnown { reason: reason.into() }
    }

    /// Media bytes for each byte of the host's, if that is known.
    pub const fn amplification(&self) -> Option<f64> {
        match self {
            Self::Known { amplification, .. } => Some(*amplification),
            Self::NotKnown { .. } => None,
        }
    }
}

impl Default for StepCounters {
    /// Of a step that was measured by another program, or before counters were read.
    fn default() -> Self {
        Self {
            written: StepWritten::not_known("it was measured without the drives' counters"),
            slow: Vec::new(),
        }
    }
}

impl SlowCommands {
    fn of(drive: &str, monitor: &LatencyMonitor, counted: &[Bucket; BUCKETS]) -> Self {
        let thresholds = monitor.thresholds_ms;
        let bucket = |(n, counted): (usize, &Bucket)| SlowBucket {
            from_ms: thresholds[n],
            below_ms: thresholds.get(n + 1).copied(),
            reads: counted.reads,
            writes: counted.writes,
            trims: counted.trims,
        };
        let drive = drive.to_owned();
        Self { drive, buckets: counted.iter().enumerate().map(bucket).collect() }
    }
}

/// Counters of these targets. What one of them doesn't count is not known of all.
pub fn of(targets: &[PathBuf]) -> CounterSource {
    let mut readers: Vec<(String, CounterReader)> = Vec::new();
    let mut refused: Option<CountersError> = None;
    for path in targets {
        match CounterReader::open(path) {
            Ok(reader) if is_new(&readers, reader.node()) => {
                readers.push((path.display().to_string(), reader));
            }
            // Two namespaces of one controller: it counts for both.
            Ok(_) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let refused = refused.map(|error| error.to_string());
    Box::new(move || {
        let mut written = refused.clone().map_or(Ok(Written::default()), Err);
        let mut latency = Vec::new();
        for (drive, reader) in &readers {
            if let Ok(sum) = &mut written {
                match reader.written() {
                    Ok(told) => sum.add(&Written {
                        host_bytes: told.host,
                        media_bytes: told.media,
                        host_step_bytes: told.host_step,
                        media_step_bytes: told.media_step,
                    }),
                    Err(error) => written = Err(error.to_string()),
                }
            }
            latency.extend(reader.latency_monitor().map(|monitor| (drive.clone(), monitor)));
        }
        Counters { written, latency }
    })
}

fn is_new(readers: &[(String, CounterReader)], node: &Path) -> bool {
    readers.iter().all(|(_, reader)| reader.node() != node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host_bytes: u64, media_bytes: u64) -> Counters {
        let written =
            Written { host_bytes, media_bytes, host_step_bytes: 512_000, ..Written::default() };
        Counters { written: Ok(written), latency: Vec::new() }
    }

    fn reason(counters: &StepCounters) -> &str {
        match &counters.written {
            StepWritten::NotKnown { reason } => reason,
            StepWritten::Known { .. } => panic!("{counters:?} is known"),
        }
    }

    #[test]
    fn write_amplification_is_the_ratio_of_what_both_counters_gained() {
        let step = at(3_000_000_000, 9_500_000_000).since(&at(1_000_000_000, 5_000_000_000));
        let known = StepWritten::Known {
            host_bytes: 2_000_000_000,
            media_bytes: 4_500_000_000,
            amplification: 2.25,
        };
        assert_eq!((step.written.amplification(), step.written), (Some(2.25), known));
    }

    #[test]
    fn write_amplification_is_not_known_where_counters_cannot_tell_it() {
        let before = at(1_000_000_000, 5_000_000_000);
        let too_little = at(1_000_000_000 + 51_000_000, 6_000_000_000).since(&before);
        assert!(reason(&too_little).contains("steps of 512 kB"), "{too_little:?}");
        let enough = at(1_000_000_000 + 51_200_000, 6_000_000_000).since(&before);
        assert!(enough.written.amplification().is_some(), "{enough:?}");
        assert!(reason(&before.since(&before)).contains("no bytes"));
        assert!(reason(&at(0, 0).since(&before)).contains("backward"));
        let none = Counters::not_known("it has no such log");
        assert_eq!(reason(&none.since(&before)), "it has no such log");
        assert_eq!(reason(&before.since(&none)), "it has no such log");
        let files = [PathBuf::from("/dev/null")];
        assert!(of(&files)().written.is_err(), "{files:?} count nothing");
    }

    #[test]
    fn slow_commands_of_a_step_lie_between_the_drives_own_thresholds() {
        let monitor = LatencyMonitor {
            enabled: true,
            active_minutes: 5,
            window_minutes: 10,
            thresholds_ms: [5, 10, 50, 1000],
            active: [Bucket::default(); BUCKETS],
            last_window: [Bucket::default(); BUCKETS],
            version: 1,
        };
        let mut later = monitor;
        (later.active[0].reads, later.active[3].writes) = (7, 1);
        let at = |monitor| Counters {
            latency: vec![("/dev/nvme2n1".to_owned(), monitor)],
            ..Counters::not_known("none")
        };
        let step = at(later).since(&at(monitor));
        assert_eq!(step.slow.len(), 1);
        let (drive, buckets) = (&step.slow[0].drive, &step.slow[0].buckets);
        let ends: Vec<_> = buckets.iter().map(|bucket| (bucket.from_ms, bucket.below_ms)).collect();
        assert_eq!(ends, [(5, Some(10)), (10, Some(50)), (50, Some(1000)), (1000, None)]);
        assert_eq!((drive.as_str(), buckets[0].reads, buckets[3].writes), ("/dev/nvme2n1", 7, 1));
        assert_eq!(at(later).since(&Counters::not_known("none")).slow, []);
    }
}
