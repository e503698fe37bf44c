//! Filling: the rate over the bytes written with its thresholds, the dips, and what rests give back.

use base::{Duration, Rate};
use lab::Unit;
use lab::analysis::fill::{Pass, PhaseKind, Threshold};
use lab::analysis::{Cause, Point as Interval};
use lab::experiment::fill::FillResult;

use super::found::{Found, Shown};
use super::quantity::Quantity;
use super::rates;
use crate::axis::Axis;
use crate::document::{Cell, Column, Table};
use crate::picture::{
    Band, Bar, BarSeries, Bars, Direction, Kind, Lines, Mark, Picture, Series, Style,
};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

/// A level that holds less than this share of the bytes gets no band of its own.
const BAND_SHARE_MIN: f64 = 0.02;

impl Shown for FillResult {
    const TITLE: &'static str = "Filling the drives";

    fn finding(&self) -> String {
        let mut said = Vec::new();
        said.extend(self.relies().map(|relies| relies.sentence));
        if let Some(found) = self.fill.cache.found() {
            let (bytes, change) = (base::ByteSize(found.change.bytes), &found.change);
            said.push(format!(
                "The empty drives took {bytes} at {} before they fell to {}.",
                Rate(change.before),
                Rate(change.after)
            ));
        } else if let Some(native) = self.fill.rate(PhaseKind::Native) {
            said.push(format!("No cache was seen; empty, they wrote {}.", Rate(native)));
        }
        if let Some(rate) = self.fill.rate(PhaseKind::Overwrite) {
            said.push(format!("Over stale data they wrote {}.", Rate(rate)));
        }
        if said.is_empty() {
            "Nothing was written, so nothing is known.".to_owned()
        } else {
            said.join(" ")
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        [curve(found), dips(found), recovery(found), bursts(found)].into_iter().flatten().collect()
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        let mut tables: Vec<Table> =
            found.iter().map(|run| phases(run.result, &run.title(found, "Levels"))).collect();
        for (what, pass) in [("Writing the empty drives", 0), ("Overwriting", 1)] {
            let runs: Vec<(&str, &[Interval])> = found
                .iter()
                .map(|run| (run.label, passes(run.result)[pass].1))
                .filter(|(_, intervals)| !intervals.is_empty())
                .collect();
            tables.extend(rates::comparison(what, &runs));
        }
        tables
    }

    fn is_listed(_name: &str) -> bool {
        true
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        passes(self)
            .into_iter()
            .filter(|(_, intervals, _)| !intervals.is_empty())
            .map(|(name, intervals, _)| {
                let name = format!("{name:<11}");
                let room = width.saturating_sub(name.chars().count());
                name + &labelled_sparkline(&rates::gigabytes(intervals), "GB/s", room)
            })
            .collect()
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let dips = passes(self).into_iter().flat_map(|(name, _, pass)| {
            pass.into_iter().flat_map(move |p| p.dips.dips.iter().map(move |d| (name, d)))
        });
        let bursts: Vec<(u64, &Interval)> = self
            .rests
            .bursts
            .iter()
            .flat_map(|(rest, intervals)| intervals.iter().map(move |interval| (*rest, interval)))
            .collect();
        vec![
            ("fill-empty", rates::columns(&self.empty)),
            ("fill-overwrite", rates::columns(&self.overwrite)),
            ("fill-dips", rates::dip_columns(dips)),
            (
                "fill-bursts",
                Columns::new()
                    .integers("rest", "ns", bursts.iter().map(|(rest, _)| *rest))
                    .integers("start", "ns", bursts.iter().map(|(_, i)| i.start_ns))
                    .integers("length", "ns", bursts.iter().map(|(_, i)| i.duration_ns))
                    .integers("bytes", "B", bursts.iter().map(|(_, i)| i.bytes))
                    .floats("rate", "B/s", bursts.iter().map(|(_, i)| i.rate())),
            ),
        ]
    }
}

/// Both passes: name, intervals and what was found in them.
fn passes(result: &FillResult) -> [(&'static str, &[Interval], Option<&Pass>); 2] {
    [
        ("empty", &result.empty, result.fill.passes.first()),
        ("overwrite", &result.overwrite, result.fill.passes.get(1)),
    ]
}

fn curve(found: &[Found<'_, FillResult>]) -> Option<Picture> {
    let all = || found.iter().flat_map(|run| passes(run.result)).flat_map(|(_, i, _)| i);
    let rate = Quantity::rate(all().map(Interval::rate));
    let written =
        found.iter().flat_map(|run| &run.result.fill.passes).map(|p| p.total_bytes as f64);
    let size = Quantity::size(written);
    let mut lines = Lines {
        x: size.axis("Written in the pass"),
        y: rate.axis("Write rate"),
        ..Lines::default()
    };
    for run in found {
        for (name, intervals, pass) in passes(run.result) {
            let levels = pass.map_or(&[][..], |pass| &pass.segmentation.segments);
            let points = rates::over_bytes(intervals, levels, &size, &rate);
            if !points.is_empty() {
                let name = run.name(found, name);
                lines.series.push(Series { name, points, ..Series::default() });
            }
        }
        lines.marks.extend(marks(run, found, &size, &rate));
    }
    if lines.series.is_empty() {
        return None;
    }
    if let [only] = found {
        lines.bands = bands(only.result, &size);
    }
    let caption = "The rate at which the drives wrote, over the bytes written since the pass began. Lasting changes are \
                   marked; the sustained rate is that of the slowest minute, or of the slowest tenth of a pass that was \
                   shorter.";
    Some(Picture::new("Write rate over the bytes written", caption, Kind::Lines(lines)))
}

/// The thresholds of a run, the other lasting changes of its first pass, and what can be relied on.
fn marks(
    run: &Found<'_, FillResult>,
    found: &[Found<'_, FillResult>],
    size: &Quantity,
    rate: &Quantity,
) -> Vec<Mark> {
    let fill = &run.result.fill;
    let at = |bytes: u64, what: &str| {
        let label = run.name(found, &format!("{what} at {}", base::ByteSize(bytes)));
        Mark { on: Direction::X, at: size.show(bytes as f64), label }
    };
    let threshold = |found: Option<&Threshold>, what| found.map(|f| at(f.change.bytes, what));
    let (cache, shrink) = (fill.cache.found(), fill.shrink.found());
    let mut marks: Vec<Mark> = Vec::new();
    marks.extend(threshold(cache, "cache full"));
    marks.extend(threshold(shrink, "cache shrinks"));
    if let Some(pass) = fill.passes.first() {
        let named = [cache, shrink];
        let others = pass.segmentation.changes.iter().zip(&pass.attributions);
        for (change, attribution) in others {
            if named.iter().flatten().all(|threshold| threshold.change != *change) {
                marks.push(at(change.bytes, &changed(attribution.cause, change.is_drop())));
            }
        }
    }
    if let Some(window) = &run.result.sustained {
        let label = run.name(found, &format!("sustained {}", Rate(window.rate)));
        marks.push(Mark { on: Direction::Y, at: rate.show(window.rate), label });
    }
    if found.len() == 1
        && let Some(overwrite) = fill.rate(PhaseKind::Overwrite)
    {
        let label = format!("overwrite {}", Rate(overwrite));
        marks.push(Mark { on: Direction::Y, at: rate.show(overwrite), label });
    }
    marks
}

fn changed(cause: Cause, is_drop: bool) -> String {
    let way = if is_drop { "slower" } else { "faster" };
    match cause {
        Cause::NotKnown => way.to_owned(),
        cause => format!("{way}: {cause}"),
    }
}

fn bands(result: &FillResult, size: &Quantity) -> Vec<Band> {
    let whole = result.fill.passes.first().map_or(0, |pass| pass.total_bytes) as f64;
    let phases = result.fill.phases.iter().filter(|phase| phase.pass == 0);
    phases
        .filter(|phase| {
            let bytes = phase.segment.bytes.1.saturating_sub(phase.segment.bytes.0);
            bytes as f64 >= BAND_SHARE_MIN * whole
        })
        .map(|phase| Band {
            on: Direction::X,
            from: size.show(phase.segment.bytes.0 as f64),
            to: size.show(phase.segment.bytes.1 as f64),
            label: words(phase.kind).to_owned(),
        })
        .collect()
}

fn words(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Fast => "into the cache",
        PhaseKind::Native => "native",
        PhaseKind::Shrunk => "cache shrunk",
        PhaseKind::Overwrite => "overwriting",
    }
}

fn dips(found: &[Found<'_, FillResult>]) -> Option<Picture> {
    let mut series = Vec::new();
    for run in found {
        let start_ns = run.result.fill.passes.first().map_or(0, |pass| pass.start_ns);
        for (name, _, pass) in passes(run.result) {
            let Some(pass) = pass.filter(|pass| !pass.dips.dips.is_empty()) else { continue };
            let points = rates::depths(&pass.dips.dips, start_ns);
            let name = run.name(found, name);
            series.push(Series { name, points, style: Style::Dots, ..Series::default() });
        }
    }
    if series.is_empty() {
        return None;
    }
    let lines = Lines {
        x: Axis::linear("Since the first write", "s"),
        y: Axis {
            minimum: Some(0.0),
            maximum: Some(100.0),
            ..Axis::linear("Depth of the dip", "% of the level")
        },
        series,
        ..Lines::default()
    };
    let caption =
        "Every dip: when it came, and how much of the rate around it was missing at its lowest.";
    Some(Picture::new("Dips while writing", caption, Kind::Lines(lines)))
}

fn recovery(found: &[Found<'_, FillResult>]) -> Option<Picture> {
    let rows = |run: &Found<'_, FillResult>| {
        run.result.rests.recovery.as_ref().map_or(Vec::new(), |recovery| recovery.rows.clone())
    };
    let name = |rest_ns: u64| Duration::from_nanos(whole_rest(rest_ns)).to_string();
    let rests =
        super::found::distinct(found.iter().flat_map(rows).map(|row| whole_rest(row.rest_ns)));
    if rests.is_empty() {
        return None;
    }
    let all = found.iter().flat_map(rows).map(|row| row.fast_bytes as f64);
    let size = Quantity::size(all);
    let bar = |row: &lab::analysis::recovery::RecoveryRow| {
        let (bytes, resolution) = (row.fast_bytes as f64, row.resolution_bytes as f64);
        let high = size.show(bytes + resolution);
        // Nobody knows how much more there was where the burst ended first.
        if row.at_least {
            Bar::new(size.show(bytes))
        } else {
            Bar::within(size.show(bytes), size.show((bytes - resolution).max(0.0)), high)
        }
    };
    let series = found
        .iter()
        .map(|run| {
            let rows = rows(run);
            let of = |rest: &u64| rows.iter().find(|row| whole_rest(row.rest_ns) == *rest).map(bar);
            let values = rests.iter().map(of).collect();
            BarSeries { name: run.name(found, "given back"), values }
        })
        .collect();
    let bars = Bars {
        x_title: "Rest after writing".to_owned(),
        groups: rests.iter().map(|rest| name(*rest)).collect(),
        y: size.axis("Written at the fast rate"),
        series,
    };
    let caption = "How much the drives wrote at their fast rate after each rest. A bar without a range is the least it was: \
                   the burst ended before the rate fell.";
    Some(Picture::new("What rests give back", caption, Kind::Bars(bars)))
}

/// A rest without the fractions that the clock added to what was asked for.
fn whole_rest(ns: u64) -> u64 {
    let unit = if ns >= 1_000_000_000 { 1_000_000_000 } else { 1_000_000 };
    ns / unit * unit
}

fn bursts(found: &[Found<'_, FillResult>]) -> Option<Picture> {
    let bursts =
        || found.iter().flat_map(|run| run.result.rests.bursts.iter().map(move |b| (run, b)));
    let all = || bursts().flat_map(|(_, (_, intervals))| intervals);
    let rate = Quantity::rate(all().map(Interval::rate));
    let size = Quantity::size(
        bursts().map(|(_, (_, intervals))| intervals.iter().map(|i| i.bytes as f64).sum::<f64>()),
    );
    let series: Vec<Series> = bursts()
        .map(|(run, (rest, intervals))| {
            let what = format!("after {}", Duration::from_nanos(whole_rest(*rest)));
            let points = rates::over_bytes(intervals, &[], &size, &rate);
            Series { name: run.name(found, &what), points, ..Series::default() }
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    if series.is_empty() {
        return None;
    }
    let (x, y) = (size.axis("Written since the rest"), rate.axis("Write rate"));
    let caption = "Each rest was followed by writing until the fast rate ended.";
    let lines = Lines { x, y, series, ..Lines::default() };
    Some(Picture::new("Write rate after rests", caption, Kind::Lines(lines)))
}

fn phases(result: &FillResult, caption: &str) -> Table {
    let phases = &result.fill.phases;
    let size = Quantity::size(phases.iter().map(|phase| phase.segment.bytes.1 as f64));
    let rate = Quantity::rate(phases.iter().map(|phase| phase.segment.mean));
    let row = |phase: &lab::analysis::fill::Phase| {
        let range = match phase.mean_range {
            Some((low, high)) => {
                Cell::text(format!("{:.3} to {:.3}", rate.show(low), rate.show(high)))
            }
            None => Cell::default().noted("too few intervals"),
        };
        let lowest = phase.dips.lowest_share_min.map(|share| 100.0 * (1.0 - share));
        let deepest =
            if phase.dips.count == 0 { Cell::text("none") } else { Cell::maybe(lowest, 0) };
        vec![
            Cell::text(if phase.pass == 0 { "empty" } else { "overwrite" }),
            Cell::text(words(phase.kind)),
            size.cell(Some(phase.segment.bytes.0 as f64)),
            size.cell(Some(phase.segment.bytes.1 as f64)),
            rate.cell(Some(phase.segment.mean)),
            range,
            Cell::number(phase.dips.count as f64, 0),
            deepest,
        ]
    };
    let percent = Quantity::of(Unit::Percent, []);
    Table {
        caption: caption.to_owned(),
        columns: vec![
            Column::text("Pass"),
            Column::text("Level"),
            size.column("From"),
            size.column("To"),
            rate.column("Mean rate"),
            Column::number("95 % range", rate.unit),
            Column::number("Dips", ""),
            percent.column("Deepest"),
        ],
        rows: phases.iter().map(row).collect(),
    }
}
