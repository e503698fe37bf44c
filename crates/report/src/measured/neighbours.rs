//! Random reads alone and beside a writer: percentile curves, reads a second, and what the writer keeps.

use base::Rate;
use lab::Unit;
use lab::experiment::neighbours::{Beside, NeighboursResult, ReadPoint};
use load::Verb;

use super::found::{Found, Shown, distinct, places};
use super::percentiles::{self, Curve};
use super::quantity::Quantity;
use crate::axis::Axis;
use crate::document::{Cell, Column, Table};
use crate::picture::{Bar, BarSeries, Bars, Kind, Lines, Picture, Series};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

/// Percentiles in the table.
const LISTED: [f64; 5] = [50.0, 99.0, 99.9, 99.99, 99.9999];

impl Shown for NeighboursResult {
    const TITLE: &'static str = "Neighbours that write";

    fn finding(&self) -> String {
        let said: Vec<String> =
            self.beside.iter().filter_map(|beside| left(self, beside)).collect();
        match (said.is_empty(), self.alone.iter().map(|p| p.iops).reduce(f64::max)) {
            (false, _) => said.join(" "),
            (true, Some(most)) => {
                let most = crate::axis::grouped(most, 0);
                format!(
                    "Alone it does {most} random reads a second at most; no neighbour was measured."
                )
            }
            (true, None) => "No reads were measured.".to_owned(),
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.preparation.notes.iter().chain(&self.notes).cloned().collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        let mut pictures: Vec<Picture> = reads(found).into_iter().collect();
        pictures.extend(writes(found));
        pictures.extend(depths(found).into_iter().filter_map(|depth| curves(found, depth)));
        pictures
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        found.iter().map(|run| table(run.result, run.title(found, "Latencies by depth"))).collect()
    }

    fn is_listed(name: &str) -> bool {
        !name
            .split('.')
            .any(|part| part.strip_prefix('d').is_some_and(|n| n.parse::<u32>().is_ok()))
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        lines_of(self)
            .map(|(name, points)| {
                let depths = match (points.first(), points.last()) {
                    (Some(first), Some(last)) => {
                        format!(", depth {} to {}", first.depth, last.depth)
                    }
                    _ => String::new(),
                };
                let name = format!("reads {name}{depths}: ");
                let room = width.saturating_sub(name.chars().count());
                let iops: Vec<_> = points.iter().map(|p| Some(p.iops)).collect();
                name + &labelled_sparkline(&iops, "IOPS", room)
            })
            .collect()
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let rows: Vec<(String, &ReadPoint)> = lines_of(self)
            .flat_map(|(name, points)| points.iter().map(move |point| (name.clone(), point)))
            .collect();
        let columns = Columns::new()
            .texts("reads", rows.iter().map(|(name, _)| name.clone()))
            .integers("depth", "", rows.iter().map(|(_, p)| u64::from(p.depth)))
            .floats("commands", "1/s", rows.iter().map(|(_, p)| p.iops))
            .floats("written", "B/s", rows.iter().map(|(_, p)| p.write_bytes_per_s))
            .integers("errors", "", rows.iter().map(|(_, p)| p.errors))
            .texts("limited_by_harness", rows.iter().map(|(_, p)| p.harness_limited.to_string()));
        let columns = super::summaries::columns(
            columns,
            "response_",
            rows.iter().map(|(_, p)| Some(&p.response)),
        );
        let columns = super::summaries::columns(
            columns,
            "service_",
            rows.iter().map(|(_, p)| Some(&p.service)),
        );
        vec![("neighbours", columns)]
    }
}

/// Alone, then beside each writer.
fn lines_of(result: &NeighboursResult) -> impl Iterator<Item = (String, &[ReadPoint])> {
    let beside = |beside: &Beside| format!("beside a writer {}", beside.relation);
    let alone = std::iter::once(("alone".to_owned(), result.alone.as_slice()));
    alone.chain(result.beside.iter().map(move |b| (beside(b), b.points.as_slice())))
}

/// How many reads a second a writer leaves, over the depths.
fn left(result: &NeighboursResult, beside: &Beside) -> Option<String> {
    let share = |point: &ReadPoint| {
        let alone = result.alone.iter().find(|alone| alone.depth == point.depth)?;
        (alone.iops > 0.0).then(|| 100.0 * point.iops / alone.iops)
    };
    let shares: Vec<f64> = beside.points.iter().filter_map(share).collect();
    let least = shares.iter().copied().reduce(f64::min)?;
    let most = shares.iter().copied().fold(least, f64::max);
    Some(format!(
        "A writer {} leaves {least:.0} to {most:.0} % of the reads a second.",
        beside.relation
    ))
}

fn depths(found: &[Found<'_, NeighboursResult>]) -> Vec<u32> {
    let points = |run: &Found<'_, NeighboursResult>| -> Vec<u32> {
        lines_of(run.result).flat_map(|(_, points)| points).map(|p| p.depth).collect()
    };
    distinct(found.iter().flat_map(points))
}

fn reads(found: &[Found<'_, NeighboursResult>]) -> Option<Picture> {
    let mut series = Vec::new();
    for run in found {
        for (name, points) in lines_of(run.result).filter(|(_, points)| !points.is_empty()) {
            let points = points.iter().map(|p| (f64::from(p.depth), p.iops));
            series.push(Series::new(run.name(found, &name), points));
        }
    }
    if series.is_empty() {
        return None;
    }
    let x = Axis::log("Reads under way", "").ticks_at(places(&series));
    let y = Quantity::of(Unit::CommandsPerSecond, []).axis("Reads a second");
    let caption = "Random reads a second by depth, alone and beside a writer.";
    let lines = Lines { x, y, series, ..Lines::default() };
    Some(Picture::new("Reads beside a writer", caption, Kind::Lines(lines)))
}

fn writes(found: &[Found<'_, NeighboursResult>]) -> Option<Picture> {
    let depths = depths(found);
    let beside = || found.iter().flat_map(|run| run.result.beside.iter().map(move |b| (run, b)));
    let all = beside().flat_map(|(_, b)| {
        b.points.iter().map(|p| p.write_bytes_per_s).chain([b.write_alone_bytes_per_s])
    });
    let rate = Quantity::rate(all);
    let series: Vec<BarSeries> = beside()
        .map(|(run, beside)| {
            let alone = Some(Bar::new(rate.show(beside.write_alone_bytes_per_s)));
            let at = |depth: &u32| {
                let point = beside.points.iter().find(|p| p.depth == *depth)?;
                Some(Bar::new(rate.show(point.write_bytes_per_s)))
            };
            let values = std::iter::once(alone).chain(depths.iter().map(at)).collect();
            BarSeries { name: run.name(found, &format!("writer {}", beside.relation)), values }
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let depth_names = depths.iter().map(|depth| format!("depth {depth}"));
    let bars = Bars {
        x_title: "Reads beside it".to_owned(),
        groups: std::iter::once("none".to_owned()).chain(depth_names).collect(),
        y: rate.axis("Write rate"),
        series,
    };
    let caption = "What the writer writes, alone and beside reads of each depth.";
    Some(Picture::new("The writer beside reads", caption, Kind::Bars(bars)))
}

fn curves(found: &[Found<'_, NeighboursResult>], depth: u32) -> Option<Picture> {
    let tag = percentiles::responses_of("reads", Verb::Read);
    let mut curves = Vec::new();
    for run in found {
        let mut add = |name: &str, steps: &[String], points: &[ReadPoint]| {
            let Some(point) = points.iter().find(|p| p.depth == depth) else { return };
            let name = run.name(found, name);
            curves.push(Curve::of_steps(
                name,
                &point.response,
                run.folder,
                "neighbours",
                steps,
                &tag,
            ));
        };
        add("alone", &[format!("alone-d{depth}")], &run.result.alone);
        for beside in &run.result.beside {
            // The writer's place in the bank is part of the step's name and not of the result.
            let steps = percentiles::steps(run.folder, "neighbours", |step| {
                step.starts_with(&format!("{}-", beside.relation.name()))
                    && step.ends_with(&format!("-d{depth}"))
            });
            add(&format!("beside a writer {}", beside.relation), &steps, &beside.points);
        }
    }
    let caption = "The share of the reads that took no longer, over nines. Lines end where too few reads lie beyond.";
    percentiles::picture(format!("Latency of reads at depth {depth}"), caption, curves)
}

fn table(result: &NeighboursResult, caption: String) -> Table {
    let points = || lines_of(result).flat_map(|(_, points)| points);
    let known = points().flat_map(|p| LISTED.map(|percent| p.response.percentile(percent)));
    let time = Quantity::latency(known.flatten().map(|ns| ns as f64));
    let rate = Quantity::rate(points().map(|p| p.write_bytes_per_s));
    let mut columns = vec![
        Column::text("Reads"),
        Column::number("Depth", ""),
        Column::number("Reads a second", "IOPS"),
        rate.column("Written beside"),
    ];
    columns.extend(LISTED.map(|percent| time.column(format!("Latency p{percent}"))));
    let row = |name: &str, point: &ReadPoint| {
        let writes = (name != "alone").then_some(point.write_bytes_per_s);
        let mut row = vec![
            Cell::text(name),
            Cell::number(f64::from(point.depth), 0),
            Cell::number(point.iops, 0),
            writes.map_or(Cell::text("–"), |rate_of| rate.cell(Some(rate_of))),
        ];
        row.extend(LISTED.map(|p| time.cell(point.response.percentile(p).map(|ns| ns as f64))));
        row
    };
    let rows = lines_of(result)
        .flat_map(|(name, points)| points.iter().map(|point| row(&name, point)).collect::<Vec<_>>())
        .collect();
    let rate_asked = result
        .write_rate
        .map_or_else(|| "as fast as they could".to_owned(), |asked| format!("at {}", Rate(asked)));
    Table { caption: format!("{caption}; writers wrote {rate_asked}"), columns, rows }
}
