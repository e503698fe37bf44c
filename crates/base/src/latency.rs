//! Latencies: how long things took, kept in constant memory with three significant digits, and the rule for when a
//! percentile is known.

use hdrhistogram::Histogram;

use crate::time::Duration;

/// Significant decimal digits that are kept: a value is off by 0.1 % at most.
const DIGITS: u8 = 3;

/// Longest latency that is told apart from longer ones: an hour. The exact maximum is kept beside it.
const LONGEST_NS: u64 = 3_600 * 1_000_000_000;

/// Samples that must lie beyond a percentile before it is known. With 100, its rank is uncertain by about
/// 10 % of the tail (the standard deviation of a binomial count of 100).
pub const SAMPLES_BEYOND: f64 = 100.0;

/// A set of latencies. Extremes and the sum are exact; percentiles come from an HDR histogram. It takes 16 KiB while the longest latency
/// is below 2 us, and 8 KiB more for each doubling of that.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl PartialEq for Latencies {
    /// Whether they are the same latencies, however much memory they take.
    fn eq(&self, other: &Self) -> bool {
        let recorded = |of: &Self| {
            let steps = of.histogram.iter_recorded();
            steps.map(|step| (step.value_iterated_to(), step.count_at_value())).collect::<Vec<_>>()
        };
        (self.count(), self.sum_ns, self.min_ns, self.max_ns)
            == (other.count(), other.sum_ns, other.min_ns, other.max_ns)
            && recorded(self) == recorded(other)
    }
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new(DIGITS).expect("so many digits can be kept");
        Self { histogram, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Latencies {
    /// Adds one.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.record_many(latency, 1);
    }

    /// Adds the same latency `count` times.
    #[inline]
    pub fn record_many(&mut self, latency: Duration, count: u64) {
        let ns = latency.as_nanos();
        record_clamped(&mut self.histogram, ns, count);
        self.sum_ns += u128::from(ns) * u128::from(count);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all of another set.
    pub fn add(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.histogram.add(&other.histogram).expect("no latency is too long");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The exact mean in nanoseconds; None without samples.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Standard deviation in nanoseconds, from the histogram; None without samples.
    pub fn deviation_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.histogram.stdev())
    }

    /// The shortest, exactly; None without samples.
    pub fn min(&self) -> Option<Duration> {
        (!self.is_empty()).then(|| Duration::from_nanos(self.min_ns))
    }

    /// The longest, exactly; None without samples.
    pub fn max(&self) -> Option<Duration> {
        (!self.is_empty()).then(|| Duration::from_nanos(self.max_ns))
    }

    /// The latency that `percent` of the samples don't exceed; None ("not known") unless at least
    /// [`SAMPLES_BEYOND`] lie beyond it. Never more than the exact maximum.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let beyond = self.count() as f64 * (1.0 - percent / 100.0);
        // A part in 10^9 is for what decimal fractions lose in binary.
        (beyond >= SAMPLES_BEYOND * (1.0 - 1e-9)).then(|| self.at(percent))
    }

    /// [`Latencies::percentile`] without asking whether enough samples are behind it, for plots of single
    /// intervals; zero without samples.
    pub fn at(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_percentile(percent).min(self.max_ns))
    }

    /// The histogram itself, for writing it in HDR formats.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// From a histogram and exact figures that were kept beside it. The histogram's own counts are taken over into
    /// ours, so any bounds will do.
    pub fn from_parts(histogram: &Histogram<u64>, sum_ns: u128, min_ns: u64, max_ns: u64) -> Self {
        let mut all = Self::default();
        for step in histogram.iter_recorded() {
            record_clamped(&mut all.histogram, step.value_iterated_to(), step.count_at_value());
        }
        Self { sum_ns, min_ns, max_ns, ..all }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }
}

/// Records a latency so many times. One that is longer than [`LONGEST_NS`] is recorded as that.
#[inline]
fn record_clamped(histogram: &mut Histogram<u64>, ns: u64, count: u64) {
    histogram.record_n(ns.min(LONGEST_NS), count).expect("it grows to an hour");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn a_percentile_is_known_only_with_a_hundred_samples_beyond_it() {
        let mut latencies = Latencies::default();
        for us in 1..=100_000 {
            latencies.record(micros(us));
        }
        let known = latencies.percentile(99.9).unwrap().as_nanos() as f64;
        assert!((known / 99_900_000.0 - 1.0).abs() < 0.001, "{known}");
        assert_eq!(latencies.percentile(99.99), None);
        latencies.record_many(micros(100_001), 900_000);
        assert!(latencies.percentile(99.99).is_some(), "a million samples have 100 beyond 99.99 %");
        assert_eq!(latencies.percentile(99.999), None);
    }

    #[test]
    fn short_and_long_latencies_are_added_in_either_order() {
        let of = |all: &[u64]| {
            let mut latencies = Latencies::default();
            all.iter().for_each(|&us| latencies.record(micros(us)));
            latencies
        };
        let [short, long] = [of(&[0, 1, 7, 7]), of(&[90, 3_000_000, u64::from(u32::MAX)])];
        let (mut one, mut other) = (short.clone(), long.clone());
        one.add(&long);
        other.add(&short);
        let all = of(&[0, 1, 7, 7, 90, 3_000_000, u64::from(u32::MAX)]);
        assert_eq!((&one, &other), (&all, &all));
        assert_eq!(one.at(50.0).as_nanos() / 1000, 7);
        assert_ne!(one, of(&[0, 1, 7, 8, 90, 3_000_000, u64::from(u32::MAX)]));
    }

    #[test]
    fn extremes_and_the_mean_are_exact() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_nanos(1_234_567));
        latencies.record(Duration::from_secs(7_200));
        assert_eq!(latencies.min().unwrap().as_nanos(), 1_234_567);
        assert_eq!(latencies.max(), Some(Duration::from_secs(7_200)), "also beyond the histogram");
        assert_eq!(latencies.mean_ns(), Some((7_200e9 + 1_234_567.0) / 2.0));
        let mut more = Latencies::default();
        more.add(&latencies);
        more.add(&Latencies::default());
        assert_eq!(more, latencies);
        assert_ne!(more, Latencies::default());
        more.clear();
        assert_eq!(more.max(), None);
        assert_eq!(more, Latencies::default());
    }
}
