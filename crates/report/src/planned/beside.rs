//! What readers meet beside a recording, with shared and with separate NVM Sets: a table and the percentile curves for a page,
//! a table for a terminal, JSON.

use base::units::grouped;
use base::{Duration, Latencies};
use load::percentile_curve;
use plan::answer::Design;
use plan::beside::{Beside, Comparison, PERCENTS};
use plan::explain;
use serde_json::{Value, json};

use crate::axis::Axis;
use crate::document::{Cell, Column, Section, Table};
use crate::picture::{Kind, Lines, Picture, Point, Series};
use crate::text::{self, TextColumn};

/// Adds a comparison to its design's section.
pub(super) fn add(section: &mut Section, comparison: &Comparison) {
    section.pictures.push(curves(comparison));
    section.tables.push(table(comparison));
}

/// One column of the table and one curve.
struct Way<'a> {
    run: &'a Beside,
    /// At the head of its column.
    short: String,
    /// In the legend.
    name: String,
    /// Whether it has the reads soon after a change.
    changed: bool,
    latencies: &'a Latencies,
}

/// Each way with the reads between changes, and those soon after one.
fn ways(comparison: &Comparison) -> Vec<Way<'_>> {
    let mut all = Vec::new();
    for run in &comparison.runs {
        let drives = explain::drives(run.drives);
        let (short, name) =
            (format!("{}, {drives}", run.sets), format!("{} sets, {drives}", run.sets));
        let after = &run.reads.after_change;
        let changed = (!after.is_empty()).then(|| Way {
            run,
            short: "after a change".to_owned(),
            name: format!("{name}, after a change"),
            changed: true,
            latencies: after,
        });
        all.push(Way { run, short, name, changed: false, latencies: &run.reads.latencies });
        all.extend(changed);
    }
    all
}

fn curves(comparison: &Comparison) -> Picture {
    let series = ways(comparison).into_iter().map(|way| Series {
        name: way.name,
        points: percentile_curve::curve(way.latencies)
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
    let ways = ways(comparison);
    let figure = |what: String, of: &dyn Fn(&Beside, &Latencies) -> Cell| {
        let cells = ways.iter().map(|way| of(way.run, way.latencies));
        std::iter::once(Cell::text(what)).chain(cells).collect::<Vec<Cell>>()
    };
    let us = |time: Option<Duration>, decimals| {
        Cell::maybe(time.map(|time| time.as_nanos() as f64 / 1e3), decimals)
    };
    let mut rows = vec![
        figure("Written, GB/s each".to_owned(), &|run, _| {
            Cell::number(run.write_bytes_per_s / 1e9, 2)
        }),
        figure("Reads".to_owned(), &|_, latencies| Cell::number(latencies.count() as f64, 0)),
        figure("Reads not begun in time, % of bytes".to_owned(), &|run, _| {
            let missed = run.reads.missed_bytes as f64;
            Cell::number(missed / (missed + run.reads.bytes as f64).max(1.0) * 100.0, 2)
        }),
        figure("Mean, us".to_owned(), &|_, latencies| {
            Cell::maybe(latencies.mean_ns().map(|ns| ns / 1e3), 1)
        }),
    ];
    rows.extend(PERCENTS.map(|percent| {
        figure(format!("Latency p{percent}, us"), &|_, latencies| {
            us(latencies.percentile(percent), 0)
        })
    }));
    rows.extend([
        figure("Longest, us".to_owned(), &|_, latencies| us(latencies.max(), 0)),
        figure("Buffers used at most, %".to_owned(), &|run, _| {
            let used = f64::from(run.buffers_most) / f64::from(run.buffers.max(1));
            Cell::number(used * 100.0, 0)
        }),
        figure("First loss".to_owned(), &|run, _| {
            let lost = run.first_loss.as_ref();
            Cell::text(lost.map_or_else(|| "none".to_owned(), ToString::to_string))
        }),
    ]);
    let columns = ways.iter().map(|way| Column::number(way.short.clone(), ""));
    Table {
        caption: "Readers beside the recording, on simulated drives that are written over"
            .to_owned(),
        columns: std::iter::once(Column::text("Figure")).chain(columns).collect(),
        rows,
    }
}

/// A comparison of a design's sets as tables for a terminal.
pub fn text(design: &Design, comparison: &Comparison) -> String {
    let ways = ways(comparison);
    let column = |head: String, of: &dyn Fn(&Way<'_>) -> String| {
        TextColumn::right(head, ways.iter().map(of))
    };
    // What is the same after a change of places is told once.
    let once = |head: &str, of: &dyn Fn(&Beside) -> String| {
        let cell = |way: &Way<'_>| if way.changed { String::new() } else { of(way.run) };
        column(head.to_owned(), &cell)
    };
    let us = |time: Option<Duration>| {
        time.map_or_else(
            || "-".to_owned(),
            |time| grouped((time.as_nanos() as f64 / 1e3).round() as u64),
        )
    };
    let names = TextColumn::left("sets", ways.iter().map(|way| way.short.clone()));
    let mut columns = vec![
        once("writes, each", &|run| explain::rate(run.write_bytes_per_s)),
        column("reads".to_owned(), &|way| grouped(way.latencies.count())),
        once("late", &|run| {
            let missed = run.reads.missed_bytes as f64;
            format!("{:.1} %", missed / (missed + run.reads.bytes as f64).max(1.0) * 100.0)
        }),
        column("mean us".to_owned(), &|way| {
            way.latencies.mean_ns().map_or_else(|| "-".to_owned(), |ns| format!("{:.0}", ns / 1e3))
        }),
    ];
    columns.extend(PERCENTS.iter().map(|percent| {
        column(format!("p{percent} us"), &|way| us(way.latencies.percentile(*percent)))
    }));
    columns.push(column("longest us".to_owned(), &|way| us(way.latencies.max())));
    columns.push(once("buffers", &|run| {
        format!("{:.0} %", f64::from(run.buffers_most) / f64::from(run.buffers.max(1)) * 100.0)
    }));
    columns.push(once("loss", &|run| {
        if run.first_loss.is_some() { "yes" } else { "none" }.to_owned()
    }));
    let losses = comparison.runs.iter().filter_map(|run| {
        let loss = run.first_loss.as_ref()?;
        Some(format!("{} sets, {}: loss {loss}", run.sets, explain::drives(run.drives)))
    });
    let turn = design.sets.as_ref().map_or(0.0, |split| split.turn_s);
    let words = format!(
        "Found by recording over stale data on simulated drives. Late: reads that were not begun when they were due. After a change: \
         those of the first second after the recorder and the readers change places, one in every {}.",
        explain::seconds(turn)
    );
    let head = format!("{}: readers beside the recording, us", design.drive);
    let mut parts = vec![head, text::tables(&names, columns, 0).join("\n\n")];
    parts.extend(losses.chain([words]).map(|line| text::wrapped(&line, 0)));
    format!("\n{}", parts.join("\n"))
}

/// A comparison as JSON: nanoseconds, bytes, bytes a second.
pub fn json(compared: &(String, Comparison)) -> Value {
    let (drive, comparison) = compared;
    let runs: Vec<Value> = comparison
        .runs
        .iter()
        .map(|run| {
            json!({
                "sets": run.sets.to_string(), "drives": run.drives,
                "write_bytes_per_s_each": run.write_bytes_per_s,
                "read_bytes": run.reads.bytes, "missed_read_bytes": run.reads.missed_bytes,
                "latencies": latencies_json(&run.reads.latencies),
                "after_change": latencies_json(&run.reads.after_change),
                "buffers": run.buffers, "buffers_most": run.buffers_most,
                "first_loss": run.first_loss.as_ref().map(ToString::to_string),
                "looked_at_s": run.time.as_secs_f64(),
            })
        })
        .collect();
    json!({ "drive": drive, "runs": runs })
}

fn latencies_json(latencies: &Latencies) -> Value {
    let ns = |time: Option<Duration>| time.map(Duration::as_nanos);
    let percentiles: Vec<Value> = PERCENTS
        .iter()
        .map(|percent| json!([percent, ns(latencies.percentile(*percent))]))
        .collect();
    json!({
        "count": latencies.count(), "mean_ns": latencies.mean_ns(), "percentiles_ns": percentiles,
        "max_ns": ns(latencies.max()),
    })
}
