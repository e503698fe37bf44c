//! What measuring costs: bytes written and read, and time, stated before it begins.

use base::Duration;
use load::Workload;
use load::quantity::{Pace, Size};
use load::workload::{Steady, Stream};
use serde::{Deserialize, Serialize};

/// The rate that costs are stated with for a workload that says none: the fastest drives of today.
const FASTEST_BYTES_PER_S: f64 = 14e9;

/// What a middling drive does: tells how long a number of bytes takes.
const LIKELY_BYTES_PER_S: f64 = 1e9;

/// What an experiment will cost, stated before it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Bytes that will be written to all drives together, at most.
    pub written_bytes: u64,
    /// Bytes that will be read, about.
    pub read_bytes: u64,
    /// How long it will take, about.
    pub time_ns: u64,
}

impl Cost {
    /// Both, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            time_ns: self.time_ns.saturating_add(other.time_ns),
        }
    }

    /// Of so many bytes; without a time, what a middling drive takes for them.
    pub fn of_bytes(read_bytes: u64, written_bytes: u64, time: Option<Duration>) -> Self {
        let likely = (read_bytes + written_bytes) as f64 / LIKELY_BYTES_PER_S;
        let time_ns = time.map_or((likely * 1e9) as u64, Duration::as_nanos);
        Self { written_bytes, read_bytes, time_ns }
    }

    /// How long it will take, about.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.time_ns)
    }

    /// What a workload costs on so many drives, as far as it says. Without a rate it counts as much as the fastest drives
    /// take.
    pub fn of_workload(workload: &Workload, drives: usize) -> Self {
        let drives = drives as u64;
        let stop = &workload.stop;
        let rounds = |steady: Steady| steady.round.0.as_nanos() * u64::from(steady.rounds_max);
        let time = stop.time.map(|time| time.0.as_nanos()).or(stop.steady.map(rounds));
        let seconds = time.map(|ns| (ns + workload.warm_up.0.as_nanos()) as f64 / 1e9);
        let asked = |stream: &Stream| {
            let on = if stream.drives.is_empty() { drives } else { stream.drives.len() as u64 };
            let jobs = on as f64 * f64::from(stream.jobs);
            match stream.rate {
                Some(Pace::Bytes(rate)) => rate * jobs,
                Some(Pace::Commands(rate)) => rate * stream.block.mean() * jobs,
                None => FASTEST_BYTES_PER_S * on as f64,
            }
        };
        let rate: f64 = workload.streams.iter().map(asked).sum();
        let limit = stop.bytes.map_or(f64::MAX, |Size(bytes)| bytes as f64);
        let bytes = seconds.map_or(limit, |seconds| (rate * seconds).min(limit));
        let share = |weight: fn(&Stream) -> u32| {
            let part = |stream: &Stream| {
                let all = (stream.read + stream.write + stream.trim).max(1);
                asked(stream) / rate * f64::from(weight(stream)) / f64::from(all)
            };
            (bytes * workload.streams.iter().map(part).sum::<f64>()) as u64
        };
        let likely_seconds = || limit / rate.min(LIKELY_BYTES_PER_S);
        Self {
            written_bytes: share(|stream| stream.write),
            read_bytes: share(|stream| stream.read),
            time_ns: (seconds.unwrap_or_else(likely_seconds) * 1e9) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost_of(text: &str, drives: usize) -> Cost {
        Cost::of_workload(&Workload::from_toml(text).unwrap(), drives)
    }

    #[test]
    fn a_rate_and_a_time_tell_the_bytes_of_every_drive_and_job() {
        let text = "[stop]\ntime = \"10s\"\n[[stream]]\nread = 1\nwrite = 3\njobs = 2\nrate = \"100MB/s\"\n";
        let cost = cost_of(text, 2);
        assert_eq!((cost.read_bytes, cost.written_bytes), (1_000_000_000, 3_000_000_000));
        assert_eq!(cost.time(), Duration::from_secs(10));
    }

    #[test]
    fn a_number_of_bytes_limits_what_is_written_and_tells_about_how_long_it_takes() {
        let cost = cost_of("[stop]\nbytes = \"3GB\"\n[[stream]]\nwrite = 1\n", 1);
        assert_eq!((cost.read_bytes, cost.written_bytes), (0, 3_000_000_000));
        assert_eq!(cost.time(), Duration::from_secs(3));
    }
}
