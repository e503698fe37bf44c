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

fn table(comparison: &Comparison) -> Table {
    let mut columns = vec![
        Column::text("NVM Sets"),
        Column::number("Written by a drive", "GB/s"),
        Column::number("Reads", ""),
        Column::number("Not begun in time", "%"),
        Column::number("Mean", "us"),
    ];
    columns.extend(PERCENTS.map(|percent| Column::number(format!("{percent} %"), "us")));
    columns.extend([
        Column::number("Longest", "us"),
        Column::number("Buffers used", "%"),
        Column::text("First loss of the recording"),
    ]);
    let row = |run: &Beside, name: String, latencies: &Latencies| {
        let us =
            |time: Option<Duration>| Cell::maybe(time.map(|time| time.as_nanos() as f64 / 1e3), 0);
        let missed = run.reads.missed_bytes as f64;
        let all = (missed + run.reads.bytes as f64).max(1.0);
        let buffers = f64::from(run.buffers_most) / f64::from(run.buffers.max(1));
        let lost = run.first_loss.as_ref();
        let mut cells = vec![
            Cell::text(name),
            Cell::number(run.write_bytes_per_s / 1e9, 2),
            Cell::number(latencies.count() as f64, 0),
            Cell::number(missed / all * 100.0, 2),
            Cell::maybe(latencies.mean_ns().map(|ns| ns / 1e3), 1),
        ];
        cells.extend(PERCENTS.map(|percent| us(latencies.percentile(percent))));
        cells.extend([
            us(latencies.max()),
            Cell::number(buffers * 100.0, 0),
            Cell::text(lost.map_or_else(|| "none".to_owned(), ToString::to_string)),
        ]);
        cells
    };
    let rows = comparison
        .runs
        .iter()
        .flat_map(|run| each(run).into_iter().map(move |(name, of)| row(run, name, of)));
    Table {
        caption: "Readers beside the recording, on simulated drives that are written over"
            .to_owned(),
        columns,
        rows: rows.collect(),
    }
}
