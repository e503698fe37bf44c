//! Steady state: the rounds with the window, the range that is allowed and the fitted line, and how long writes took.

use base::Rate;
use lab::Unit;
use lab::experiment::snia::{Round, SniaResult};
use load::Verb;

use super::found::{Found, Shown};
use super::percentiles::{self, Curve};
use super::quantity::Quantity;
use crate::axis::{Axis, grouped};
use crate::document::{Cell, Column, Table};
use crate::picture::{Band, Direction, Kind, Lines, Picture, Series};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

impl Shown for SniaResult {
    const TITLE: &'static str = "Steady state as SNIA defines it";

    fn finding(&self) -> String {
        match (self.steady.reached_at, &self.steady.window) {
            (Some(round), Some(window)) => format!(
                "Steady in round {round}: {} IOPS of random writes of {} B, {}.",
                grouped(window.average, 0),
                self.tracked_bytes,
                Rate(window.average * self.tracked_bytes as f64)
            ),
            _ => format!(
                "Not steady in {} rounds, so there is no rate to state.",
                self.steady.rounds
            ),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let deviations = (!self.deviations.is_empty())
            .then(|| format!("Not as the specification asks: {}", self.deviations.join(" ")));
        deviations.into_iter().chain(self.notes.clone()).collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        [rounds(found), latencies(found), curves(found)].into_iter().flatten().collect()
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        found.iter().map(|run| table(run.result, run.title(found, "Criteria"))).collect()
    }

    fn is_listed(name: &str) -> bool {
        let part = name.split('.').nth(1).unwrap_or_default();
        part.parse::<u64>().is_err()
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        let name = format!("{} rounds: ", self.rounds.len());
        let room = width.saturating_sub(name.chars().count());
        let iops: Vec<_> = self.rounds.iter().map(|round| Some(round.iops)).collect();
        vec![name + &labelled_sparkline(&iops, "IOPS", room)]
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let rounds = || self.rounds.iter();
        let columns = Columns::new()
            .integers("round", "", rounds().map(|r| u64::from(r.number)))
            .floats("commands", "1/s", rounds().map(|r| r.iops));
        let columns = super::summaries::columns(columns, "", rounds().map(|r| Some(&r.latency)));
        let averages = Columns::new()
            .integers("block", "B", self.averages.iter().map(|a| a.block_bytes))
            .integers("reads", "%", self.averages.iter().map(|a| u64::from(a.read_percent)))
            .floats("commands", "1/s", self.averages.iter().map(|a| a.iops));
        vec![("snia-rounds", columns), ("snia-averages", averages)]
    }
}

fn rounds(found: &[Found<'_, SniaResult>]) -> Option<Picture> {
    let iops = Quantity::of(Unit::CommandsPerSecond, []);
    let mut lines = Lines {
        x: Axis::linear("Round", ""),
        y: iops.axis("Random writes a second"),
        ..Lines::default()
    };
    for run in found.iter().filter(|run| !run.result.rounds.is_empty()) {
        let name = run.name(found, if found.len() > 1 { "" } else { "measured" });
        let points = run.result.rounds.iter().map(|r| (f64::from(r.number), iops.show(r.iops)));
        lines.series.push(Series::new(name, points));
    }
    for run in found {
        let Some(window) = &run.result.steady.window else { continue };
        let line = (window.first_round..=window.last_round)
            .map(|round| (round as f64, iops.show(window.fit_at(round))));
        lines.series.push(Series::new(run.name(found, "fitted line of the window"), line));
        // Bands of several runs would hide each other.
        if found.len() == 1 {
            lines.bands.push(Band {
                on: Direction::X,
                from: window.first_round as f64,
                to: window.last_round as f64,
                label: "window".to_owned(),
            });
            let half = window.average * run.result.criteria.range_max / 2.0;
            lines.bands.push(Band {
                on: Direction::Y,
                from: iops.show(window.average - half),
                to: iops.show(window.average + half),
                label: format!("{:.0} % about the average", 100.0 * run.result.criteria.range_max),
            });
        }
    }
    if lines.series.is_empty() {
        return None;
    }
    let caption = "Each round's random writes a second, and the line that fits the window best. The band is as wide as the \
                   range may be, about the window's average.";
    Some(Picture::new("Rounds until steady", caption, Kind::Lines(lines)))
}

fn latencies(found: &[Found<'_, SniaResult>]) -> Option<Picture> {
    let values = |round: &Round| {
        let known = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let summary = &round.latency;
        [summary.mean_ns, known(summary.percentile(99.0)), known(summary.max_ns)]
    };
    let all = found.iter().flat_map(|run| &run.result.rounds).flat_map(values);
    let time = Quantity::latency(all.flatten());
    let mut series = Vec::new();
    for run in found {
        for (index, what) in ["mean", "p99", "longest"].into_iter().enumerate() {
            let points: Vec<crate::picture::Point> = run
                .result
                .rounds
                .iter()
                .map(|round| crate::picture::Point {
                    x: f64::from(round.number),
                    y: values(round)[index].map(|ns| time.show(ns)),
                })
                .collect();
            if points.iter().any(|point| point.y.is_some()) {
                series.push(Series { name: run.name(found, what), points, ..Series::default() });
            }
        }
    }
    if series.is_empty() {
        return None;
    }
    let (x, y) = (Axis::linear("Round", ""), time.log_axis("Latency"));
    let lines = Lines { x, y, series, ..Lines::default() };
    Some(Picture::new(
        "Latency by round",
        "How long the writes of each round took.",
        Kind::Lines(lines),
    ))
}

fn curves(found: &[Found<'_, SniaResult>]) -> Option<Picture> {
    let tag = percentiles::responses_of("mix", Verb::Write);
    let mut curves = Vec::new();
    for run in found {
        let rounds = &run.result.rounds;
        let ends = [("first round", rounds.first()), ("last round", rounds.last())];
        for (what, round) in ends {
            // A single round is both.
            let Some(round) = round.filter(|_| what == "last round" || rounds.len() > 1) else {
                continue;
            };
            let step = format!("round-{:02}-{}-r0", round.number, run.result.tracked_bytes);
            let name = run.name(found, what);
            curves.push(Curve::of_steps(name, &round.latency, run.folder, "snia", &[step], &tag));
        }
    }
    let caption = "The share of the writes that took no longer, over nines. Lines end where too few writes lie beyond.";
    percentiles::picture("Latency of the first and the last round".to_owned(), caption, curves)
}

fn table(result: &SniaResult, caption: String) -> Table {
    let window = result.steady.window.as_ref().filter(|window| window.average > 0.0);
    let share = |value: f64, average: f64| 100.0 * value / average;
    let verdict = |holds| Cell::text(if holds { "holds" } else { "does not hold" });
    let row = |name: &str, value: Option<f64>, allowed: f64, holds: Option<bool>| {
        vec![
            Cell::text(name),
            Cell::maybe(value, 2),
            Cell::number(100.0 * allowed, 0),
            holds.map_or(Cell::default(), verdict),
        ]
    };
    Table {
        caption,
        columns: vec![
            Column::text("Criterion"),
            Column::number("Found", "% of the average"),
            Column::number("Allowed", "% of the average"),
            Column::text("Verdict"),
        ],
        rows: vec![
            row(
                "Greatest less least round of the window",
                window.map(|w| share(w.range, w.average)),
                result.criteria.range_max,
                window.map(|w| w.range_holds),
            ),
            row(
                "Change of the fitted line over the window",
                window.map(|w| share(w.excursion, w.average)),
                result.criteria.excursion_max,
                window.map(|w| w.excursion_holds),
            ),
        ],
    }
}
