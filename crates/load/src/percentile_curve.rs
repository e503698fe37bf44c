//! Percentile curves: latencies against the share of commands that are slower, dense towards six nines, and honest about
//! where they stop being known.

use base::Latencies;

use crate::measurement::PERCENTILES;

/// Points for each factor of ten in the share that is slower.
const POINTS_PER_DECADE: i32 = 20;

/// Factors of ten: to 99.9999 %.
const DECADES: i32 = 6;

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Percent of the samples that are not slower.
    pub percent: f64,
    /// Their latency in nanoseconds, at most.
    pub ns: u64,
    /// Whether at least [`base::latency::SAMPLES_BEYOND`] samples lie beyond.
    pub known: bool,
}

/// The curve from 0 to 99.9999 %, in rising order; the percentiles of summaries are among its points. Empty without samples.
///
/// Points are known up to one of them and unknown from there on.
pub fn curve(latencies: &Latencies) -> Vec<Point> {
    if latencies.is_empty() {
        return Vec::new();
    }
    let even = (0..=DECADES * POINTS_PER_DECADE).map(|step| {
        let slower = 10f64.powf(-f64::from(step) / f64::from(POINTS_PER_DECADE));
        100.0 - 100.0 * slower
    });
    let mut percents: Vec<f64> = even.chain(PERCENTILES).collect();
    percents.sort_by(f64::total_cmp);
    // Whole decades are among the percentiles too, but for the last binary digits.
    percents.dedup_by(|b, a| (100.0 - *b) / (100.0 - *a) > 1.0 - 1e-6);
    percents
        .into_iter()
        .map(|percent| {
            // The exact figure of a summary, not its neighbour by rounding.
            let named = PERCENTILES.into_iter().find(|named| (named - percent).abs() < 1e-9);
            let percent = named.unwrap_or(percent);
            Point {
                percent,
                ns: latencies.at(percent).as_nanos(),
                known: latencies.percentile(percent).is_some(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;
    use crate::measurement::LatencySummary;

    fn latencies(count: u64) -> Latencies {
        let mut latencies = Latencies::default();
        (1..=count).for_each(|us| latencies.record(Duration::from_micros(us)));
        latencies
    }

    #[test]
    fn a_curve_rises_to_six_nines_and_goes_through_the_summarys_figures() {
        let latencies = latencies(200_000);
        let points = curve(&latencies);
        assert!(points.windows(2).all(|w| w[0].percent < w[1].percent && w[0].ns <= w[1].ns));
        assert_eq!((points[0].percent, points.last().unwrap().percent), (0.0, 99.9999));
        for (percent, value) in LatencySummary::of(&latencies).percentiles {
            let point = points.iter().find(|point| point.percent == percent).unwrap();
            assert_eq!(point.known.then_some(point.ns), value, "{percent}");
        }
        let beyond = points.iter().filter(|point| point.percent > 99.0).count();
        assert!(beyond >= 4 * POINTS_PER_DECADE as usize, "{beyond}");
    }

    #[test]
    fn it_stops_being_known_where_a_hundred_samples_are_left() {
        for (count, last) in [(200_000, 99.95), (1_000, 90.0), (100, 0.0)] {
            let points = curve(&latencies(count));
            let known = points.iter().take_while(|point| point.known).count();
            assert!(points[known..].iter().all(|point| !point.known));
            assert!(points[known - 1].percent <= last + 1e-9, "{count}: {:?}", points[known - 1]);
            assert!(points[known].percent > last, "{count}: {:?}", points[known]);
        }
        assert!(curve(&latencies(99)).iter().all(|point| !point.known));
        assert_eq!(curve(&Latencies::default()), []);
    }
}
