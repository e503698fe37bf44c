//! Random commands over block size and share of reads: lines, a radar and a heat map.

use base::Rate;
use lab::Unit;
use lab::experiment::mix::{MixPoint, MixResult};

use super::found::{Found, Shown, distinct, places};
use super::grid::{Grid, block_words, kib};
use super::quantity::Quantity;
use crate::axis::{Axis, Scale, short};
use crate::document::Table;
use crate::picture::{Kind, Lines, Picture, Point, Radar, Ring, Series, Spoke};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

/// Of several runs these shares of reads are drawn, in percent: the ends and one between.
const COMPARED: [u32; 3] = [100, 65, 0];

impl Shown for MixResult {
    const TITLE: &'static str = "Random reads and writes";

    fn finding(&self) -> String {
        let good = || self.points.iter().filter(|p| p.iops > 0.0);
        let most = good().max_by(|a, b| a.iops.total_cmp(&b.iops));
        let widest = good().max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s));
        let (Some(most), Some(widest)) = (most, widest) else {
            return "No command came to an end, so nothing is known.".to_owned();
        };
        format!(
            "At most {} IOPS ({}, {} reads) and {} ({}, {} reads).",
            short(most.iops.round()),
            block_words(most.block_bytes),
            percent(most.read_percent),
            Rate(widest.bytes_per_s),
            block_words(widest.block_bytes),
            percent(widest.read_percent),
        )
    }

    fn warnings(&self) -> Vec<String> {
        self.preparation.notes.iter().chain(&self.notes).cloned().collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        let mut pictures = lines(found);
        pictures.extend(found.iter().filter_map(|run| radar(run, found)));
        pictures.extend(heat(found));
        pictures
    }

    fn tables(_found: &[Found<'_, Self>]) -> Vec<Table> {
        Vec::new()
    }

    fn is_listed(name: &str) -> bool {
        name.starts_with("mix.shape.")
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        let line = |block: u64| {
            let points: Vec<&MixPoint> =
                self.points.iter().filter(|p| p.block_bytes == block).collect();
            let (first, last) = (points.first()?, points.last()?);
            let (from, to) = (mix(first.read_percent), mix(last.read_percent));
            let name = format!("{}, {from} to {to} reads: ", block_words(block));
            let room = width.saturating_sub(name.chars().count());
            let iops: Vec<_> = points.iter().map(|p| Some(p.iops)).collect();
            Some(name + &labelled_sparkline(&iops, "IOPS", room))
        };
        distinct(self.points.iter().map(|p| p.block_bytes)).into_iter().filter_map(line).collect()
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let points = || self.points.iter();
        let columns = Columns::new()
            .integers("block", "B", points().map(|p| p.block_bytes))
            .integers("reads", "%", points().map(|p| u64::from(p.read_percent)))
            .floats("commands", "1/s", points().map(|p| p.iops))
            .floats("rate", "B/s", points().map(|p| p.bytes_per_s))
            .integers("errors", "", points().map(|p| p.errors))
            .texts("limited_by_harness", points().map(|p| p.harness_limited.to_string()));
        let columns =
            super::summaries::columns(columns, "read_", points().map(|p| p.read.as_ref()));
        vec![(
            "mix",
            super::summaries::columns(columns, "write_", points().map(|p| p.write.as_ref())),
        )]
    }
}

/// `65/35`.
fn mix(read_percent: u32) -> String {
    format!("{read_percent}/{}", 100u32.saturating_sub(read_percent))
}

fn percent(read_percent: u32) -> String {
    format!("{read_percent} %")
}

/// Shares of reads, most first.
fn mixes(found: &[Found<'_, MixResult>]) -> Vec<u32> {
    let mut mixes =
        distinct(found.iter().flat_map(|run| &run.result.points).map(|p| p.read_percent));
    mixes.reverse();
    mixes
}

fn lines(found: &[Found<'_, MixResult>]) -> Vec<Picture> {
    let mixes = mixes(found);
    let groups: Vec<Vec<u32>> = if found.len() < 2 {
        vec![mixes]
    } else {
        mixes.into_iter().filter(|mix| COMPARED.contains(mix)).map(|mix| vec![mix]).collect()
    };
    let all = || found.iter().flat_map(|run| &run.result.points);
    let iops = Quantity::of(Unit::CommandsPerSecond, []);
    let rate = Quantity::rate(all().map(|p| p.bytes_per_s));
    let mut pictures = Vec::new();
    for reads in groups {
        let of = match reads[..] {
            [reads] if found.len() > 1 => format!(" at {} reads", percent(reads)),
            _ => String::new(),
        };
        let series = |value: &dyn Fn(&MixPoint) -> f64| -> Vec<Series> {
            let one = |run: &Found<'_, MixResult>, reads: u32| {
                let points = run.result.points.iter().filter(|p| p.read_percent == reads);
                let mut points: Vec<Point> =
                    points.map(|p| Point::new(kib(p.block_bytes), value(p))).collect();
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                let what = if of.is_empty() { mix(reads) } else { String::new() };
                Series { name: run.name(found, &what), points, ..Series::default() }
            };
            let all = reads.iter().flat_map(|reads| found.iter().map(|run| one(run, *reads)));
            all.filter(|series| !series.points.is_empty()).collect()
        };
        let mut add = |title: String, caption: &str, y: Axis, series: Vec<Series>| {
            if !series.is_empty() {
                let x = Axis::log("Block size", "KiB").ticks_at(places(&series));
                let lines = Lines { x, y, series, ..Lines::default() };
                pictures.push(Picture::new(title, caption, Kind::Lines(lines)));
            }
        };
        add(
            format!("IOPS of random commands{of}"),
            "Commands a second over the block size; lines are shares of reads and writes.",
            iops.log_axis("Commands a second"),
            series(&|p| iops.show(p.iops)),
        );
        add(
            format!("Bandwidth of random commands{of}"),
            "Bytes a second over the block size; lines are shares of reads and writes.",
            rate.axis("Bandwidth"),
            series(&|p| rate.show(p.bytes_per_s)),
        );
    }
    pictures
}

/// Bandwidth with the mixes around and a ring for each block size. All runs and spokes have the same rim.
fn radar(run: &Found<'_, MixResult>, found: &[Found<'_, MixResult>]) -> Option<Picture> {
    let all = || found.iter().flat_map(|run| &run.result.points).map(|p| p.bytes_per_s);
    let rate = Quantity::rate(all());
    let maximum = rate.show(all().fold(0.0, f64::max));
    let mixes = mixes(found);
    if mixes.len() < 3 || maximum <= 0.0 {
        return None;
    }
    let ring = |block: u64| Ring {
        name: block_words(block),
        values: mixes
            .iter()
            .map(|reads| run.result.at(block, *reads).map(|p| rate.show(p.bytes_per_s)))
            .collect(),
    };
    let mut blocks = distinct(run.result.points.iter().map(|p| p.block_bytes));
    blocks.reverse();
    let spoke = |reads: &u32| Spoke { name: mix(*reads), unit: rate.unit.to_owned(), maximum };
    let radar = Radar {
        spokes: mixes.iter().map(spoke).collect(),
        rings: blocks.into_iter().map(ring).collect(),
    };
    let caption =
        "Bandwidth with the shares of reads and writes around, and a ring for each block size.";
    Some(Picture::new(run.title(found, "Bandwidth of the mixes"), caption, Kind::Radar(radar)))
}

fn heat(found: &[Found<'_, MixResult>]) -> Vec<Picture> {
    let grid = Grid {
        title: "IOPS by block size and mix",
        caption: "Commands a second at each block size and share of reads and writes, of all drives together.",
        columns: "Reads/writes in percent",
        column_keys: mixes(found).into_iter().map(|reads| (mix(reads), reads)).collect(),
        blocks: distinct(found.iter().flat_map(|run| &run.result.points).map(|p| p.block_bytes)),
        value: "Commands a second",
        unit: Unit::CommandsPerSecond,
        scale: Scale::Log,
        at: |result: &MixResult, block, reads| result.at(block, reads).map(|point| point.iops),
    };
    grid.pictures(found)
}
