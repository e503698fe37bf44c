//! Sequential reads and writes over block size and depth: heat maps, rates and latencies.

use base::Rate;
use lab::Unit;
use lab::experiment::stream::{StreamPoint, StreamResult};
use load::Verb;

use super::found::{Found, Shown, distinct, places};
use super::grid::{Grid, block_words, kib};
use super::quantity::Quantity;
use crate::axis::{Axis, Scale};
use crate::document::Table;
use crate::picture::{Kind, Lines, Picture, Point, Series};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

const OPERATIONS: [Verb; 2] = [Verb::Read, Verb::Write];

impl Shown for StreamResult {
    const TITLE: &'static str = "Sequential streams";

    fn finding(&self) -> String {
        let said: Vec<String> = OPERATIONS
            .into_iter()
            .filter_map(|operation| {
                let best = self.best(operation)?;
                let enough = self.enough(operation).map_or_else(String::new, |enough| {
                    let (block, depth) = (block_words(enough.block_bytes), enough.depth);
                    format!("; {block} at depth {depth} already has 95 % of that")
                });
                let rate = Rate(best.bytes_per_s?);
                Some(format!("The fastest {operation}s reach {rate}{enough}."))
            })
            .collect();
        if said.is_empty() {
            "No stream came to an end, so nothing is known.".to_owned()
        } else {
            said.join(" ")
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.preparation.notes.iter().chain(&self.notes).cloned().collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        OPERATIONS
            .into_iter()
            .flat_map(|operation| {
                let mut pictures = heat(found, operation);
                pictures.extend(lines(found, operation));
                pictures
            })
            .collect()
    }

    fn tables(_found: &[Found<'_, Self>]) -> Vec<Table> {
        Vec::new()
    }

    fn is_listed(name: &str) -> bool {
        !name.starts_with("stream.")
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for operation in OPERATIONS {
            let points = || self.points.iter().filter(|p| p.operation == operation);
            let depths = distinct(points().map(|p| p.depth));
            for depth in distinct(depths.first().into_iter().chain(depths.last()).copied()) {
                let at_depth: Vec<&StreamPoint> = points().filter(|p| p.depth == depth).collect();
                let (Some(first), Some(last)) = (at_depth.first(), at_depth.last()) else {
                    continue;
                };
                let (from, to) = (block_words(first.block_bytes), block_words(last.block_bytes));
                let name = format!("{operation}, depth {depth}, {from} to {to}: ");
                let rates: Vec<_> =
                    at_depth.iter().map(|p| p.bytes_per_s.map(|rate| rate / 1e9)).collect();
                let room = width.saturating_sub(name.chars().count());
                lines.push(name + &labelled_sparkline(&rates, "GB/s", room));
            }
        }
        lines
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let points = || self.points.iter();
        let columns = Columns::new()
            .texts("operation", points().map(|p| p.operation.to_string()))
            .integers("block", "B", points().map(|p| p.block_bytes))
            .integers("depth", "", points().map(|p| u64::from(p.depth)))
            .floats("rate", "B/s", points().map(|p| p.bytes_per_s))
            .integers("errors", "", points().map(|p| p.errors))
            .texts("limited_by_harness", points().map(|p| p.harness_limited.to_string()));
        vec![("stream", super::summaries::columns(columns, "", points().map(|p| Some(&p.latency))))]
    }
}

fn heat(found: &[Found<'_, StreamResult>], operation: Verb) -> Vec<Picture> {
    let points =
        || found.iter().flat_map(|run| &run.result.points).filter(|p| p.operation == operation);
    let depths = distinct(points().map(|p| p.depth));
    let at: fn(&StreamResult, u64, u32) -> Option<f64> = match operation {
        Verb::Read => |result, block, depth| result.at(Verb::Read, block, depth)?.bytes_per_s,
        Verb::Write | Verb::Trim => {
            |result, block, depth| result.at(Verb::Write, block, depth)?.bytes_per_s
        }
    };
    let grid = Grid {
        title: if operation == Verb::Read {
            "Sequential read rate"
        } else {
            "Sequential write rate"
        },
        caption: "The rate at each block size and depth, of all drives together.",
        columns: "Commands under way on each drive",
        column_keys: depths.into_iter().map(|depth| (depth.to_string(), depth)).collect(),
        blocks: distinct(points().map(|p| p.block_bytes)),
        value: "Rate",
        unit: Unit::BytesPerSecond,
        scale: Scale::Linear,
        at,
    };
    grid.pictures(found)
}

/// Rate and latency against block size: of one run a line for each depth, of several a picture for the least and the
/// greatest depth with a line for each run.
fn lines(found: &[Found<'_, StreamResult>], operation: Verb) -> Vec<Picture> {
    let points =
        || found.iter().flat_map(|run| &run.result.points).filter(|p| p.operation == operation);
    let depths = distinct(points().map(|p| p.depth));
    let groups: Vec<Vec<u32>> = if found.len() < 2 {
        vec![depths]
    } else {
        let ends = distinct(depths.first().into_iter().chain(depths.last()).copied());
        ends.into_iter().map(|depth| vec![depth]).collect()
    };
    let rate = Quantity::rate(points().filter_map(|p| p.bytes_per_s));
    let time = Quantity::latency(points().filter_map(|p| p.latency.mean_ns));
    let mut pictures = Vec::new();
    for depths in groups {
        let at = match depths[..] {
            [depth] if found.len() > 1 => format!(" at depth {depth}"),
            _ => String::new(),
        };
        let series = |value: &dyn Fn(&StreamPoint) -> Option<f64>| -> Vec<Series> {
            let of = |run: &Found<'_, StreamResult>, depth: u32| {
                let points = run.result.points.iter();
                let points = points.filter(|p| p.operation == operation && p.depth == depth);
                let mut points: Vec<Point> =
                    points.map(|p| Point { x: kib(p.block_bytes), y: value(p) }).collect();
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                let what = if at.is_empty() { format!("depth {depth}") } else { String::new() };
                Series { name: run.name(found, &what), points, ..Series::default() }
            };
            let all = depths.iter().flat_map(|depth| found.iter().map(|run| of(run, *depth)));
            all.filter(|series| series.points.iter().any(|p| p.y.is_some())).collect()
        };
        let mut add = |title: String, caption: &str, y: Axis, series: Vec<Series>| {
            if !series.is_empty() {
                let x = Axis::log("Block size", "KiB").ticks_at(places(&series));
                let lines = Lines { x, y, series, ..Lines::default() };
                pictures.push(Picture::new(title, caption, Kind::Lines(lines)));
            }
        };
        add(
            format!("Rate of sequential {operation}s by block size{at}"),
            "Where a line becomes level, nothing more is gained from longer blocks.",
            rate.axis("Rate"),
            series(&|p| p.bytes_per_s.map(|value| rate.show(value))),
        );
        add(
            format!("Latency of sequential {operation}s by block size{at}"),
            "The mean time of one command, from its intended start to its answer.",
            time.log_axis("Mean latency"),
            series(&|p| p.latency.mean_ns.map(|value| time.show(value))),
        );
    }
    pictures
}
