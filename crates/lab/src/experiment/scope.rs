//! What all experiments have in common: which part of the drives they use, and how long a point takes.

use base::{Duration, Geometry, Rate};
use load::quantity::{Size, Time};
use load::workload::{Stop, Stream, Workload};

use crate::cost::Cost;

/// Rates that costs are estimated with where nothing better is known: those of a middling NVMe drive.
const WRITE_GUESS: Rate = Rate(1e9);
const READ_GUESS: Rate = Rate(2e9);

/// A point may write this much even if that is more than its region: fewer writes would be too few to judge by.
const WRITTEN_LEAST_BYTES: u64 = 1 << 30;

/// The part of each drive that is used, and the time for each point.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// Bytes of each drive, from its beginning; None for the whole.
    pub region: Option<u64>,
    /// How long each point is measured.
    pub point: Duration,
    /// Left out before each point.
    pub warm_up: Duration,
    /// Length of intervals.
    pub interval: Duration,
    /// What the drives are thought to write, for estimates of time.
    pub write_guess: Rate,
    /// What they are thought to read.
    pub read_guess: Rate,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            region: None,
            point: Duration::from_secs(60),
            warm_up: Duration::ZERO,
            interval: Duration::from_secs(1),
            write_guess: WRITE_GUESS,
            read_guess: READ_GUESS,
        }
    }
}

impl Scope {
    /// The same with a region that every drive has room for.
    #[must_use]
    pub fn fitted(&self, drives: &[Geometry]) -> Self {
        let smallest = drives.iter().map(|drive| drive.capacity_bytes).min();
        let region = self.region.map(|region| smallest.map_or(region, |most| region.min(most)));
        Self { region, ..self.clone() }
    }

    /// The bytes of a drive that are used: whole blocks of `unit`.
    pub fn bytes(&self, drive: &Geometry, unit: u64) -> u64 {
        self.region.map_or(drive.capacity_bytes, |region| region.min(drive.capacity_bytes)) / unit
            * unit
    }

    /// The same of all drives together.
    pub fn bytes_of_all(&self, drives: &[Geometry], unit: u64) -> u64 {
        drives.iter().map(|drive| self.bytes(drive, unit)).sum()
    }

    /// Bytes after which a point of random commands ends before its time, if `read_percent` of them are reads: by then it has written as
    /// much as the region holds, and more of the same would wear the drives for nothing. None for reads alone.
    pub fn bytes_enough(&self, drives: &[Geometry], read_percent: u32) -> Option<u64> {
        let written = self.bytes_of_all(drives, 1).max(WRITTEN_LEAST_BYTES);
        match 100u64.saturating_sub(read_percent.into()) {
            0 => None,
            percent => Some((u128::from(written) * 100 / u128::from(percent)) as u64),
        }
    }

    /// A workload of these streams on the region, for the time of one point.
    pub fn point(&self, name: &str, streams: Vec<Stream>) -> Workload {
        let region = self.region.map(Size);
        let on_region = |stream: Stream| Stream { size: stream.size.or(region), ..stream };
        Workload {
            name: name.to_owned(),
            seed: seed(name),
            interval: Time(self.interval),
            warm_up: Time(self.warm_up),
            stop: Stop { time: Some(Time(self.point)), ..Stop::default() },
            streams: streams.into_iter().map(on_region).collect(),
        }
    }

    /// The same until so many bytes have been asked for.
    pub fn bytes_once(&self, name: &str, bytes: u64, streams: Vec<Stream>) -> Workload {
        let stop = Stop { bytes: Some(Size(bytes)), ..Stop::default() };
        Workload { stop, warm_up: Time::default(), ..self.point(name, streams) }
    }

    /// What `points` points cost that read and write at the guessed rates for the given shares of their time.
    pub fn points_cost(&self, points: u64, write_share: f64, read_share: f64) -> Cost {
        let seconds = (self.point + self.warm_up).as_secs_f64() * points as f64;
        Cost {
            written_bytes: (self.write_guess.0 * seconds * write_share) as u64,
            read_bytes: (self.read_guess.0 * seconds * read_share) as u64,
            time_ns: (seconds * 1e9) as u64,
        }
    }

    /// What writing so many bytes costs.
    pub fn write_cost(&self, bytes: u64) -> Cost {
        Cost {
            written_bytes: bytes,
            read_bytes: 0,
            time_ns: self.write_guess.time_for(bytes).as_nanos(),
        }
    }
}

/// Every workload draws its own random numbers, the same ones every time: rounds that all wrote the same places would make them hot,
/// and the rest cold. FNV-1a of the name, 32 bits.
fn seed(name: &str) -> u64 {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    u64::from(hash)
}
