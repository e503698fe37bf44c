//! What readers meet beside a recording, with shared and with separate NVM Sets: a table and the percentile curves.

use base::{Duration, Latencies};
use load::percentile_curve;
use plan::beside::{Beside, Comparison, PERCENTS};

use crate::axis::Axis;
use crate::document::{Cell, Column, Section, Table};
use crate::picture::{Kind, Lines, Picture, Point, Series};

/// Adds a comparison to its design's section.
pub(super) fn add(section: &mut Section, comparison: &Comparison) {
    section.pictures.push(curves(comparison));
    section.tables.push(table(comparison));
}

fn label(run: &Beside) -> String {
    format!("{} sets, {} drives", run.sets, run.drives)
}

/// Each way with the reads between changes, and those soon after one.
fn each(run: &Beside) -> Vec<(String, &Latencies)> {
    let after = &run.reads.after_change;
    let mut all = vec![(label(run), &run.reads.latencies)];
    if !after.is_empty() {
        all.push((format!("{}, after a change", label(run)), after));
    }
    all
}

fn curves(comparison: &Comparison) -> Picture {
    let series = comparison.runs.iter().flat_map(each).map(|(name, latencies)| Series {
        name,
        points: percentile_curve::curve(latencies)
            .into_iter()
            .map(|point| Point {
                x: point.percent,
                y: point.known.then_some(point.ns as f64 / 1e3),
            })
            .collect(),
        ..Series::default()
    });
    let lines = Lines {
        x: Axis::nines("Reads"),
        y: Axis::log("Latency", "us"),
        series: series.collect(),
        ..Lines::default()
    };
    Picture::new(
        "Readers beside the recording",
        "What so many percent of reads don't exceed, where a hundred lie beyond it. After a change: in the first second after the recorder \
         and the readers changed places.",
        Kind::Lines(lines),
    )
}

/// A row for each figure, so that it fits on a phone and on paper.
fn table(comparison: &Comparison) -> Table {
    let ways: Vec<(&Beside, String, &Latencies)> = comparison
        .runs
        .iter()
        .flat_map(|run| each(run).into_iter().map(move |(name, of)| (run, name, of)))
        .collect();
    let figure = |what: String, of: &dyn Fn(&Beside, &Latencies) -> Cell| {
        let cells = ways.iter().map(|(run, _, latencies)| of(run, latencies));
        std::iter::once(Cell::text(what)).chain(cells).collect::<Vec<Cell>>()
    };
    let us = |time: Option<Duration>, decimals| {
        Cell::maybe(time.map(|time| time.as_nanos() as f64 / 1e3), decimals)
    };
    let mut rows = vec![
        figure("Written by a drive, GB/s".to_owned(), &|run, _| {
            Cell::number(run.write_bytes_per_s / 1e9, 2)
        }),
        figure("Reads".to_owned(), &|_, latencies| Cell::number(latencies.count() as f64, 0)),
        figure("Reads not begun in time, %".to_owned(), &|run, _| {
            let missed = run.reads.missed_bytes as f64;
            Cell::number(missed / (missed + run.reads.bytes as f64).max(1.0) * 100.0, 2)
        }),
        figure("Mean latency, us".to_owned(), &|_, latencies| {
            Cell::maybe(latencies.mean_ns().map(|ns| ns / 1e3), 1)
        }),
    ];
    rows.extend(PERCENTS.map(|percent| {
        figure(format!("{percent} % don't exceed, us"), &|_, latencies| {
            us(latencies.percentile(percent), 0)
        })
    }));
    rows.extend([
        figure("Longest, us".to_owned(), &|_, latencies| us(latencies.max(), 0)),
        figure("Buffers used, %".to_owned(), &|run, _| {
            let used = f64::from(run.buffers_most) / f64::from(run.buffers.max(1));
            Cell::number(used * 100.0, 0)
        }),
        figure("First loss of the recording".to_owned(), &|run, _| {
            let lost = run.first_loss.as_ref();
            Cell::text(lost.map_or_else(|| "none".to_owned(), ToString::to_string))
        }),
    ]);
    let columns = ways.iter().map(|(_, name, _)| Column::number(name.clone(), ""));
    Table {
        caption: "Readers beside the recording, on simulated drives that are written over"
            .to_owned(),
        columns: std::iter::once(Column::text("Figure")).chain(columns).collect(),
        rows,
    }
}
