//! Curves: a step's speed over time, whole for analysis and thinned for pictures.

use std::collections::BTreeMap;

use load::Verb;

use crate::analysis::{Link, Point, Sample, Series};
use crate::lab::Step;

/// Points that a result keeps of each series, at most. The step's own file has all.
pub(super) const POINTS_MAX: usize = 2_000;

/// What all streams of a step moved in each interval, on the run's clock plus `offset_ns`. Intervals in which nothing was
/// done count as such: a drive that stood still is not left out.
pub(super) fn whole(step: &Step, verb: Verb, offset_ns: u64) -> Series {
    let measurement = &step.measurement;
    let interval_ns = measurement.workload.interval.0.as_nanos().max(1);
    let warm_up_ns = measurement.workload.warm_up.0.as_nanos();
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for line in &measurement.series {
        if line.operation == verb && line.start_ns >= warm_up_ns {
            let (length_ns, bytes) = sums.entry(line.start_ns).or_default();
            *length_ns = line.length_ns.max(*length_ns);
            *bytes += line.bytes;
        }
    }
    let mut points: Vec<Point> = Vec::with_capacity(sums.len());
    let mut at = warm_up_ns;
    for (start_ns, (duration_ns, bytes)) in sums {
        while at < start_ns {
            let still = interval_ns.min(start_ns - at);
            points.push(Point { start_ns: offset_ns + at, duration_ns: still, bytes: 0 });
            at += still;
        }
        at = start_ns + duration_ns;
        // What is left over at the end is too short to have a rate of its own.
        match points.last_mut() {
            Some(last) if duration_ns < interval_ns / 2 => {
                last.duration_ns += duration_ns;
                last.bytes += bytes;
            }
            _ if duration_ns == 0 => {}
            _ => points.push(Point { start_ns: offset_ns + start_ns, duration_ns, bytes }),
        }
    }
    // Intervals that begin where others ended can't overlap, and a run's bytes fit into 64 bits.
    Series::new(points).unwrap_or_default()
}

/// A stretch of fewer blocks than this has no rate to speak of: one block more or less would look like a dip.
const BLOCKS_MIN: u64 = 10;
/// Stretches that are left of a series, at least.
const STRETCHES_MIN: u64 = 20;
/// Where more than one in so many intervals stands still, bytes come in portions (kernels pass ten a second where a rate is
/// limited). Stretches then begin with a portion, so that none has one more than its neighbour by chance, and fewer blocks
/// are enough.
const STILL_PART: usize = 5;
const BLOCKS_MIN_PORTIONS: u64 = 5;

/// The same with neighbouring intervals joined where they hold too few blocks to have a rate: until they hold enough, or
/// have taken as long as that takes where the drive is slow. So a drive much slower than thought, or one that takes its
/// bytes in portions, shows no dips that it hasn't.
pub(super) fn resolved(series: &Series, block_bytes: u64) -> Series {
    let points = series.points();
    let still = points.iter().filter(|point| point.bytes == 0).count();
    let portions = still * STILL_PART > points.len();
    let enough = block_bytes * if portions { BLOCKS_MIN_PORTIONS } else { BLOCKS_MIN };
    let slice_ns = (series.total_ns() / STRETCHES_MIN).max(1);
    // Rates with their pauses: an interval between two portions moves nothing, and is no less part of the rate.
    let mut rates = series.by_equal_time(slice_ns).rates();
    rates.retain(|rate| *rate > 0.0);
    rates.sort_unstable_by(f64::total_cmp);
    // What one in five slices stays below, so that the slow part of a run counts.
    let Some(&low) = rates.get(rates.len() / 5) else { return series.clone() };
    let longest_ns = ((enough as f64 * 1e9 / low) as u64).min(slice_ns);
    let mut joined: Vec<Point> = Vec::new();
    let mut before = 0;
    for point in points {
        let begins = !portions || (before == 0 && point.bytes > 0);
        let grows =
            |last: &Point| !begins || (last.duration_ns < longest_ns && last.bytes < enough);
        match joined.last_mut() {
            Some(last) if grows(last) => {
                last.bytes += point.bytes;
                last.duration_ns = point.end_ns() - last.start_ns;
            }
            _ => joined.push(*point),
        }
        before = point.bytes;
    }
    Series::new(joined).unwrap_or_default()
}

/// At most [`POINTS_MAX`] of the series' own intervals: of each stretch the slowest and the fastest.
pub(super) fn thinned(series: &Series) -> Vec<Point> {
    let points = series.points();
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(POINTS_MAX);
    for stretch in points.chunks(points.len().div_ceil(POINTS_MAX / 2)) {
        let by_rate = |a: &&Point, b: &&Point| a.rate().total_cmp(&b.rate());
        let (Some(low), Some(high)) =
            (stretch.iter().min_by(by_rate), stretch.iter().max_by(by_rate))
        else {
            continue;
        };
        kept.push(if low.start_ns <= high.start_ns { *low } else { *high });
        if low.start_ns != high.start_ns {
            kept.push(if low.start_ns <= high.start_ns { *high } else { *low });
        }
    }
    kept
}

/// What the drives' sensors said, as if of one drive: of each instant the hottest, the slowest link, any warning.
/// Times are shifted by `offset_ns`.
pub(super) fn samples(step: &Step, offset_ns: u64) -> Vec<Sample> {
    let mut merged: BTreeMap<u64, Sample> = BTreeMap::new();
    for (_, sample) in &step.samples {
        let at_ns = sample.at_ns + offset_ns;
        merged
            .entry(at_ns)
            .and_modify(|all| *all = worst(all, sample))
            .or_insert(Sample { at_ns, ..*sample });
    }
    merged.into_values().collect()
}

fn worst(a: &Sample, b: &Sample) -> Sample {
    let slower = |x: Link, y: Link| if x.bytes_a_second() <= y.bytes_a_second() { x } else { y };
    Sample {
        at_ns: a.at_ns,
        temperature_celsius: a
            .temperature_celsius
            .into_iter()
            .chain(b.temperature_celsius)
            .reduce(f64::max),
        throttled: a.throttled.into_iter().chain(b.throttled).reduce(|x, y| x || y),
        critical_warning: a
            .critical_warning
            .into_iter()
            .chain(b.critical_warning)
            .reduce(|x, y| x | y),
        link: a.link.into_iter().chain(b.link).reduce(slower),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Duration, Rate};
    use load::workload::{Blocks, Stream};

    use crate::experiment::testing::{geometry, rated, run_in, scope};

    #[test]
    fn a_drive_that_stood_still_shows_intervals_without_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let stream = Stream { write: 1, block: Blocks::of(1 << 20), depth: 2, ..Stream::default() };
        let workload = scope(2_000).point("still", vec![stream]);
        let mut model = rated(Rate(1e8), Rate(1e8), Duration::ZERO);
        // Whatever is submitted between 0.5 and 1 s is done after 1 s.
        let stalling: crate::experiment::testing::Model = Box::new(move |command, now| {
            let due = model(command, now)?;
            let (from, to) = (500_000_000, 1_000_000_000);
            let at = due.as_nanos();
            Ok(if (from..to).contains(&at) {
                base::Instant::from_nanos(to + at - from)
            } else {
                due
            })
        });
        let (step, _) = run_in(folder.path(), vec![geometry()], stalling, |lab| {
            lab.step("curve", "still", &workload)
        });
        let series = whole(&step.unwrap(), Verb::Write, 7);
        assert_eq!(series.start_ns(), 7);
        let still = series.points().iter().filter(|p| p.bytes == 0).count();
        assert!((4..=5).contains(&still), "{still}: {series:?}");
        assert!(series.points().windows(2).all(|p| p[0].end_ns() == p[1].start_ns));
    }

    #[test]
    fn blocks_too_large_for_an_interval_make_no_dips() {
        // 3.8 blocks in each interval, counted as whole ones, after a fast part; then nothing for a while.
        let blocks = |i: u64| match i {
            0..20 => 40,
            700..720 => 0,
            _ => (i + 1) * 19 / 5 - i * 19 / 5,
        };
        let point = |i| Point { start_ns: i * 10, duration_ns: 10, bytes: blocks(i) * 100 };
        let series = Series::new((0..1_000).map(point).collect()).unwrap();
        let resolved = resolved(&series, 100);
        assert_eq!(resolved.total_bytes(), series.total_bytes());
        assert_eq!(resolved.points()[..20], series.points()[..20], "fast enough as it was");
        assert!(resolved.points().iter().any(|p| p.bytes == 0));
        let low = resolved.rates().iter().filter(|rate| **rate < 0.8 * 3.8e10).count();
        assert!((4..=8).contains(&low), "{low} stretches below the level, in 20 still intervals");
    }

    #[test]
    fn thinning_keeps_the_slowest_and_the_fastest_interval() {
        let point = |i: u64| Point {
            start_ns: i * 10,
            duration_ns: 10,
            bytes: match i {
                12_345 => 1,
                54_321 => 10_000,
                _ => 1_000 + i % 7,
            },
        };
        let series = Series::new((0..100_000).map(point).collect()).unwrap();
        let thin = thinned(&series);
        assert!(thin.len() <= POINTS_MAX, "{}", thin.len());
        assert!(thin.contains(&point(12_345)) && thin.contains(&point(54_321)));
        assert!(thin.windows(2).all(|p| p[0].start_ns < p[1].start_ns));
    }

    #[test]
    fn samples_of_several_drives_become_the_worst_of_each_instant() {
        let link = |lanes| Some(Link { gigatransfers: 8.0, lanes });
        let cool = Sample {
            at_ns: 5,
            temperature_celsius: Some(40.0),
            link: link(4),
            ..Sample::default()
        };
        let hot = Sample {
            at_ns: 5,
            temperature_celsius: Some(80.0),
            throttled: Some(true),
            link: link(2),
            ..Sample::default()
        };
        let merged = worst(&cool, &hot);
        assert_eq!(merged, hot);
        assert_eq!(worst(&hot, &cool), merged);
    }

    #[test]
    fn bytes_that_come_in_portions_are_one_rate() {
        // 80 MB/s in portions of 100 ms, seen in intervals of 10 ms: nine of ten move nothing.
        let portions = (0..400u64).map(|n| Point {
            start_ns: n * 10_000_000,
            duration_ns: 10_000_000,
            bytes: if n % 10 == 3 { 8 << 20 } else { 0 },
        });
        let series = Series::new(portions.collect()).unwrap();
        let rates = resolved(&series, 1 << 20).rates();
        let inner = &rates[..rates.len() - 1];
        let (low, high) =
            inner.iter().fold((f64::MAX, 0f64), |(low, high), &r| (low.min(r), high.max(r)));
        assert!(inner.len() >= 15 && low > 0.7 * high, "{rates:?}");
    }
}
