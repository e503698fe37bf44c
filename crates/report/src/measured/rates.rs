//! Rates over time: as lines over time or over the bytes moved, the dips in them, and runs compared by them.

use lab::analysis::compare::compare_all;
use lab::analysis::dips::Dip;
use lab::analysis::{
    Comparison, ComparisonOptions, ComparisonVerdict, Point as Interval, Segment, Series,
};

use super::quantity::Quantity;
use crate::document::{Cell, Column, Table};
use crate::picture;
use crate::series::Columns;

/// Whether intervals are all of a series: a result that keeps only some of them has gaps between.
pub(super) fn is_whole(intervals: &[Interval]) -> bool {
    intervals.windows(2).all(|pair| pair[0].end_ns() == pair[1].start_ns)
}

/// Intervals as points: the middle of each in seconds since `from_ns`, and its rate in `rate`.
pub(super) fn over_time(
    intervals: &[Interval],
    from_ns: u64,
    rate: &Quantity,
) -> Vec<picture::Point> {
    let point = |interval: &Interval| {
        let middle = interval.start_ns as f64 + interval.duration_ns as f64 / 2.0;
        picture::Point::new((middle - from_ns as f64) / 1e9, rate.show(interval.rate()))
    };
    intervals.iter().filter(|interval| interval.duration_ns > 0).map(point).collect()
}

/// Intervals as points: the bytes moved up to the middle of each, and its rate.
///
/// Where only some of a series' intervals were kept, the bytes before them follow from the time and from how many bytes each
/// of its `levels` moved.
pub(super) fn over_bytes(
    intervals: &[Interval],
    levels: &[Segment],
    size: &Quantity,
    rate: &Quantity,
) -> Vec<picture::Point> {
    let whole = is_whole(intervals);
    let mut before = 0.0;
    let mut points = Vec::with_capacity(intervals.len());
    for interval in intervals.iter().filter(|interval| interval.duration_ns > 0) {
        let middle_ns = interval.start_ns as f64 + interval.duration_ns as f64 / 2.0;
        let bytes = if whole {
            Some(before + interval.bytes as f64 / 2.0)
        } else {
            moved_at(levels, middle_ns)
        };
        before += interval.bytes as f64;
        let Some(bytes) = bytes else { continue };
        points.push(picture::Point::new(size.show(bytes), rate.show(interval.rate())));
    }
    points
}

/// Bytes moved at a time, as far as levels tell.
fn moved_at(levels: &[Segment], ns: f64) -> Option<f64> {
    let level = levels.iter().find(|level| ns < level.ns.1 as f64).or(levels.last())?;
    let length = level.ns.1.saturating_sub(level.ns.0) as f64;
    let share =
        if length > 0.0 { ((ns - level.ns.0 as f64) / length).clamp(0.0, 1.0) } else { 0.0 };
    let bytes = level.bytes.1.saturating_sub(level.bytes.0) as f64;
    Some(level.bytes.0 as f64 + share * bytes)
}

/// Where dips are deepest: the middle of each in seconds since `from_ns`, and its lowest rate.
pub(super) fn lowest_points(
    dips: &[Dip],
    levels: &[Segment],
    from_ns: u64,
    rate: &Quantity,
) -> Vec<picture::Point> {
    let point = |dip: &Dip| {
        let level = levels.iter().find(|level| (level.first..level.end).contains(&dip.first))?;
        let at = middle_s(dip, from_ns);
        Some(picture::Point::new(at, rate.show(dip.lowest_share * level.level)))
    };
    dips.iter().filter_map(point).collect()
}

/// How deep each dip is over time: seconds since `from_ns`, and percent of the level that is missing.
pub(super) fn depths(dips: &[Dip], from_ns: u64) -> Vec<picture::Point> {
    let depth = |dip: &Dip| 100.0 * (1.0 - dip.lowest_share);
    dips.iter().map(|dip| picture::Point::new(middle_s(dip, from_ns), depth(dip))).collect()
}

fn middle_s(dip: &Dip, from_ns: u64) -> f64 {
    (dip.start_ns as f64 + dip.length_ns as f64 / 2.0 - from_ns as f64) / 1e9
}

/// Intervals as columns for a file.
pub(super) fn columns(intervals: &[Interval]) -> Columns {
    Columns::new()
        .integers("start", "ns", intervals.iter().map(|i| i.start_ns))
        .integers("length", "ns", intervals.iter().map(|i| i.duration_ns))
        .integers("bytes", "B", intervals.iter().map(|i| i.bytes))
        .floats("rate", "B/s", intervals.iter().map(Interval::rate))
}

/// Dips as columns for a file.
pub(super) fn dip_columns<'a>(dips: impl Iterator<Item = (&'a str, &'a Dip)>) -> Columns {
    let dips: Vec<_> = dips.collect();
    Columns::new()
        .texts("of", dips.iter().map(|(name, _)| (*name).to_owned()))
        .integers("start", "ns", dips.iter().map(|(_, d)| d.start_ns))
        .integers("length", "ns", dips.iter().map(|(_, d)| d.length_ns))
        .integers("at", "B", dips.iter().map(|(_, d)| d.at_bytes))
        .floats("lowest_share", "", dips.iter().map(|(_, d)| d.lowest_share))
        .integers("missed", "B", dips.iter().map(|(_, d)| d.bytes_missed))
}

/// Rates in thousand millions of bytes a second, for a sparkline.
pub(super) fn gigabytes(intervals: &[Interval]) -> Vec<Option<f64>> {
    intervals.iter().map(|i| (i.duration_ns > 0).then(|| i.rate() / 1e9)).collect()
}

/// Runs of the same kind against the first of them, by the noise within each. None unless there are two at least.
pub(super) fn comparison(what: &str, runs: &[(&str, &[Interval])]) -> Option<Table> {
    let ((first_label, first), others) = runs.split_first()?;
    if others.is_empty() {
        return None;
    }
    let series = |intervals: &[Interval]| {
        is_whole(intervals).then(|| Series::new(intervals.to_vec()).ok()).flatten()
    };
    let first = series(first)?;
    let known: Vec<(&str, Option<Series>)> =
        others.iter().map(|(label, intervals)| (*label, series(intervals))).collect();
    let whole: Vec<&Series> = known.iter().filter_map(|(_, series)| series.as_ref()).collect();
    let options = ComparisonOptions::default();
    let mut compared = compare_all(&first, &whole, &options).into_iter();
    let compared: Vec<(&str, Option<Comparison>)> =
        known.iter().map(|(label, s)| (*label, s.as_ref().and_then(|_| compared.next()))).collect();
    let rates = compared.iter().filter_map(|(_, c)| c.as_ref()).map(|c| c.second);
    let rate = Quantity::rate(rates.chain([first.mean_rate()]));
    let mut rows = vec![vec![
        Cell::text(*first_label),
        rate.cell(Some(first.mean_rate())),
        Cell::number(1.0, 3),
        Cell::text(""),
        Cell::text("baseline of the comparison"),
    ]];
    for (label, comparison) in compared {
        let Some(comparison) = comparison else {
            let why = "not all of its intervals were kept";
            rows.push(vec![Cell::text(label), Cell::default().noted(why)]);
            continue;
        };
        let range = match comparison.range {
            Some((low, high)) => Cell::text(format!("{low:.3} to {high:.3}")),
            None => Cell::default().noted("too few intervals"),
        };
        let verdict = match comparison.verdict {
            ComparisonVerdict::Faster => "faster",
            ComparisonVerdict::Slower => "slower",
            ComparisonVerdict::NoDifferenceKnown => "no difference known",
        };
        rows.push(vec![
            Cell::text(label),
            rate.cell(Some(comparison.second)),
            Cell::maybe(comparison.ratio, 3),
            range,
            Cell::text(verdict),
        ]);
    }
    let sure = 100.0 * options.confidence;
    Some(Table {
        caption: format!(
            "{what} against {first_label}: average rates, and where their ratio lies by the noise within the runs"
        ),
        columns: vec![
            Column::text("Run"),
            rate.column("Average rate"),
            Column::number("Ratio", ""),
            Column::number(format!("{sure:.0} % range"), ""),
            Column::text("Verdict"),
        ],
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Value;

    fn intervals(bytes: impl IntoIterator<Item = u64>) -> Vec<Interval> {
        let interval = |(n, bytes)| Interval { start_ns: n as u64 * 10, duration_ns: 10, bytes };
        bytes.into_iter().enumerate().map(interval).collect()
    }

    #[test]
    fn bytes_before_an_interval_are_exact_or_follow_from_the_levels() {
        let one = Quantity::size([1.0]);
        let rate = Quantity::rate([1.0]);
        let all = intervals([100, 100, 50, 50]);
        let whole = over_bytes(&all, &[], &one, &rate);
        assert_eq!(whole.iter().map(|p| p.x).collect::<Vec<_>>(), [50.0, 150.0, 225.0, 275.0]);
        assert_eq!(whole[3].y, Some(all[3].rate()));
        let level = |first, end, bytes, ns| Segment {
            first,
            end,
            bytes,
            ns,
            level: 1.0,
            mean: 1.0,
            step_missed_max: None,
        };
        let levels = [level(0, 2, (0, 200), (0, 20)), level(2, 4, (200, 300), (20, 40))];
        let some = [all[0], all[3]];
        let thinned = over_bytes(&some, &levels, &one, &rate);
        assert_eq!(thinned.iter().map(|p| p.x).collect::<Vec<_>>(), [50.0, 275.0]);
        assert!(over_bytes(&some, &[], &one, &rate).is_empty(), "nothing says where they are");
    }

    #[test]
    fn a_slower_run_is_said_to_be_slower_and_one_that_is_not_whole_is_not_judged() {
        let noisy = |level: u64| intervals((0..200).map(move |n| level + n * 7_919 % 13));
        let (first, slow, thin) = (noisy(1_000), noisy(900), [noisy(5)[0], noisy(5)[9]]);
        let runs: [(&str, &[Interval]); 3] = [("a", &first), ("b", &slow), ("c", &thin)];
        let table = comparison("Writing", &runs).unwrap();
        assert_eq!(table.rows[1][4], Cell::text("slower"));
        let Value::Number { value, .. } = table.rows[1][2].value else { panic!("{table:?}") };
        assert!((value - 0.9).abs() < 0.01, "{value}");
        assert_eq!(table.rows[2][1].value, Value::Unknown);
        assert!(comparison("Writing", &runs[..1]).is_none());
    }
}
