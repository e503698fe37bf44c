//! One of fio's sets of latencies: moments, extremes, and whatever says how they are distributed.

use base::latency::SAMPLES_BEYOND;
use base::{Duration, Latencies};

use super::document::{FioError, Node};
use crate::measurement::{LatencySummary, PERCENTILES};

/// Latencies as fio tells them, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    pub count: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    min: u64,
    max: u64,
    shape: Shape,
}

/// What is known of the distribution.
#[derive(Clone, Debug, Default)]
enum Shape {
    /// Nothing.
    #[default]
    Unknown,
    /// fio's percentiles.
    Percentiles(Vec<(f64, u64)>),
    /// fio's histogram.
    Bins(Box<Latencies>),
}

impl Spread {
    /// From `clat_ns` or `lat_ns`.
    pub fn read(node: &Node<'_>) -> Result<Self, FioError> {
        let count = node.get("N")?.u64()?;
        if count == 0 {
            return Ok(Self::default());
        }
        let deviation = node.get("stddev")?.f64()?;
        let mut spread = Self {
            count,
            mean: node.get("mean")?.f64()?,
            squares: deviation * deviation * (count - 1) as f64,
            min: node.get("min")?.u64()?,
            max: node.get("max")?.u64()?,
            shape: Shape::Unknown,
        };
        if let Some(bins) = node.opt("bins") {
            let mut latencies = Latencies::default();
            for (ns, times) in bins.entries() {
                let ns = ns.parse().map_err(|_| bins.kind("a histogram by nanoseconds"))?;
                latencies.record_many(Duration::from_nanos(ns), times.u64()?);
            }
            if !latencies.is_empty() {
                spread.count = latencies.count();
                spread.shape = Shape::Bins(Box::new(latencies));
            }
        } else if let Some(node) = node.opt("percentile") {
            let mut percentiles = Vec::new();
            for (percent, ns) in node.entries() {
                let percent = percent.parse().map_err(|_| node.kind("a list of percentiles"))?;
                percentiles.push((percent, ns.u64()?));
            }
            spread.shape = Shape::Percentiles(percentiles);
        }
        Ok(spread)
    }

    /// Adds all of another set. Percentiles of two sets say nothing about both together.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.mean += apart * others / (own + others);
        self.squares += other.squares + apart * apart * own * others / (own + others);
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.shape = match (std::mem::take(&mut self.shape), &other.shape) {
            (Shape::Bins(mut own), Shape::Bins(others)) => {
                own.add(others);
                Shape::Bins(own)
            }
            _ => Shape::Unknown,
        };
    }

    /// In our figures. A percentile is known if fio tells it and at least 100 samples lie beyond it.
    pub fn summary(&self) -> LatencySummary {
        if self.count == 0 {
            return LatencySummary::of(&Latencies::default());
        }
        let known = |percent: f64| {
            let beyond = self.count as f64 * (1.0 - percent / 100.0);
            match &self.shape {
                Shape::Bins(latencies) => latencies
                    .percentile(percent)
                    .map(|value| value.as_nanos().clamp(self.min, self.max)),
                Shape::Percentiles(told) if beyond >= SAMPLES_BEYOND * (1.0 - 1e-9) => told
                    .iter()
                    .find(|(p, _)| (p - percent).abs() < 1e-6)
                    .map(|(_, value)| (*value).clamp(self.min, self.max)),
                _ => None,
            }
        };
        let variance = if self.count > 1 { self.squares / (self.count - 1) as f64 } else { 0.0 };
        LatencySummary {
            count: self.count,
            mean_ns: Some(self.mean),
            deviation_ns: Some(variance.sqrt()),
            min_ns: Some(self.min),
            max_ns: Some(self.max),
            percentiles: PERCENTILES.map(|percent| (percent, known(percent))).to_vec(),
        }
    }

    /// The whole set, if fio told its histogram, with fio's own extremes and mean.
    pub fn into_latencies(self) -> Option<Latencies> {
        let Shape::Bins(latencies) = self.shape else { return None };
        let sum = self.mean * latencies.count() as f64;
        Some(Latencies::from_parts(latencies.histogram(), sum.round() as u128, self.min, self.max))
    }
}
