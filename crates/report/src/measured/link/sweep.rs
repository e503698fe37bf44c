//! A sweep over links: rates by generation and lanes, random commands by depth, and all tests together, as the published sweep
//! drew them.

use lab::experiment::link::sweep::{SweepResult, SweepTest, SweptLink};
use load::Verb;

use super::super::found::{distinct, places};
use super::super::quantity::Quantity;
use crate::axis::Axis;
use crate::document::{Cell, Column, Table};
use crate::picture::{Bar, BarSeries, Bars, Kind, Lines, Picture, Series};
use crate::series::Columns;
use crate::text::{self, TextColumn};

/// Every picture of a sweep. `title` makes a title of this run's, if there are several.
pub fn pictures(sweep: &SweepResult, title: &dyn Fn(&str) -> String) -> Vec<Picture> {
    let tests = sweep.tests();
    let by_link = tests.iter().filter(|test| !test.random || test.verb().is_none());
    let bars = by_link.filter_map(|test| rates(sweep, test, title));
    let lines = [Verb::Read, Verb::Write].map(|verb| by_depth(sweep, verb, title));
    bars.chain(lines.into_iter().flatten()).chain(score(sweep, title)).collect()
}

/// A test's rates.
fn rates(sweep: &SweepResult, test: &SweepTest, title: &dyn Fn(&str) -> String) -> Option<Picture> {
    let rate = Quantity::rate(sweep.links.iter().filter_map(|link| link.rate(test)));
    let what = match test.verb() {
        Some(verb) => format!("Sequential {verb}s by generation and lanes"),
        None => "Mixed reads and writes by generation and lanes".to_owned(),
    };
    let caption = format!(
        "The rate of {test}. A generation or twice the lanes doubles what a link carries, until the drive is the limit."
    );
    let value = |link: &SweptLink| Some(rate.show(link.rate(test)?));
    let bars = by_generation(sweep, rate.axis("Rate"), &value)?;
    Some(Picture::new(title(&what), caption, Kind::Bars(bars)))
}

/// All tests together against the drives' own link.
fn score(sweep: &SweepResult, title: &dyn Fn(&str) -> String) -> Option<Picture> {
    let value = |link: &SweptLink| sweep.relative_score(link);
    let bars = by_generation(sweep, Axis::linear("Score", "% of its own link"), &value)?;
    let caption = format!(
        "The rates of all tests added up, in percent of what they are on {}.",
        sweep.reference()?.mode
    );
    let what = "All tests together by generation and lanes";
    Some(Picture::new(title(what), caption, Kind::Bars(bars)))
}

/// A bar for each generation in a group for each number of lanes. None if no value is known.
fn by_generation(
    sweep: &SweepResult,
    y: Axis,
    value: &dyn Fn(&SweptLink) -> Option<f64>,
) -> Option<Bars> {
    sweep.links.iter().find_map(value)?;
    let lanes = distinct(sweep.links.iter().map(|link| link.mode.lanes));
    let generations = distinct(sweep.links.iter().map(|link| link.mode.generation));
    let series = generations.into_iter().map(|generation| {
        let at = |lanes: &u8| {
            let mode = lab::rig::PcieMode { generation, lanes: *lanes };
            sweep.on(mode).and_then(value).map(Bar::new)
        };
        BarSeries { name: format!("PCIe {generation}.0"), values: lanes.iter().map(at).collect() }
    });
    let series = series.collect();
    let groups = lanes.iter().map(|lanes| format!("x{lanes}")).collect();
    Some(Bars { x_title: "Lanes".to_owned(), groups, y, series })
}

/// A line over depths for each link.
fn by_depth(sweep: &SweepResult, verb: Verb, title: &dyn Fn(&str) -> String) -> Option<Picture> {
    let is_of = |test: &SweepTest| test.random && test.verb() == Some(verb);
    let of = |link: &SweptLink| -> Vec<(f64, f64)> {
        let points = link.points.iter().filter(|point| is_of(&point.test));
        points.filter_map(|p| Some((f64::from(p.test.depth), p.bytes_per_s?))).collect()
    };
    let rate = Quantity::rate(sweep.links.iter().flat_map(of).map(|(_, rate)| rate));
    let series: Vec<Series> = sweep
        .links
        .iter()
        .map(|link| {
            let points = of(link).into_iter().map(|(depth, value)| (depth, rate.show(value)));
            Series::new(link.mode.to_string(), points)
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    if series.is_empty() {
        return None;
    }
    let lines = Lines {
        x: Axis::log("Commands under way on each drive", "").ticks_at(places(&series)),
        y: rate.axis("Rate"),
        series,
        ..Lines::default()
    };
    let what = format!("Random {verb}s of 4 KiB by depth");
    let caption = "A narrow link is a limit only where many commands are under way.";
    Some(Picture::new(title(&what), caption, Kind::Lines(lines)))
}

/// A row for each link, a column for each test.
pub fn table(sweep: &SweepResult) -> Table {
    let tests = sweep.tests();
    let reached = |link: &SweptLink| -> Vec<f64> {
        link.points.iter().filter_map(|point| point.bytes_per_s).collect()
    };
    let rate = Quantity::rate(sweep.links.iter().flat_map(reached));
    let row = |link: &SweptLink| {
        let mut cells =
            vec![Cell::text(link.mode.to_string()), rate.cell(Some(link.ceiling.payload.1))];
        cells.extend(tests.iter().map(|test| rate.cell(link.rate(test))));
        cells.push(Cell::maybe(sweep.relative_score(link), 0));
        cells
    };
    let mut columns = vec![Column::text("Link"), rate.column("Carries")];
    columns.extend(tests.iter().map(|test| rate.column(head(test))));
    columns.push(Column::number("Score", "% of its own link"));
    Table {
        caption: "What was reached on each link".to_owned(),
        columns,
        rows: sweep.links.iter().map(row).collect(),
    }
}

/// The same for a terminal, in MB/s: lines that are indented by so many spaces.
pub fn lines(sweep: &SweepResult, indent: usize) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.0}"));
    let rate = |value: Option<f64>| number(value.map(|value| value / 1e6));
    let column = |head: String, of: &dyn Fn(&SweptLink) -> String| {
        TextColumn::right(head, sweep.links.iter().map(of))
    };
    let links = TextColumn::left("MB/s on", sweep.links.iter().map(|link| link.mode.to_string()));
    let mut columns =
        vec![column("carries".to_owned(), &|link| rate(Some(link.ceiling.payload.1)))];
    columns.extend(
        sweep
            .tests()
            .iter()
            .map(|test| column(head(test).replace("4 KiB ", "4K "), &|link| rate(link.rate(test)))),
    );
    columns.push(column("score".to_owned(), &|link| number(sweep.relative_score(link)) + " %"));
    let tables = text::tables(&links, columns, indent).join("\n\n");
    tables.lines().map(str::to_owned).collect()
}

/// A test in a column's head: `read`, `4 KiB write x16`, `mixed`.
pub fn head(test: &SweepTest) -> String {
    match test.verb() {
        None => "mixed".to_owned(),
        Some(verb) if !test.random => verb.to_string(),
        Some(verb) => format!("4 KiB {verb} x{}", test.depth),
    }
}

/// Everything that was reached, a row for each link and test.
pub fn columns(sweep: &SweepResult) -> Columns {
    let points = || sweep.links.iter().flat_map(|link| link.points.iter().map(move |p| (link, p)));
    let p50 = |summary: &Option<load::measurement::LatencySummary>| {
        summary.as_ref().and_then(|s| s.percentile(50.0)).map(|ns| ns as f64)
    };
    Columns::new()
        .integers("generation", "", points().map(|(link, _)| u64::from(link.mode.generation)))
        .integers("lanes", "", points().map(|(link, _)| u64::from(link.mode.lanes)))
        .floats("carries", "B/s", points().map(|(link, _)| Some(link.ceiling.payload.1)))
        .texts("test", points().map(|(_, point)| head(&point.test)))
        .integers("block", "B", points().map(|(_, point)| point.test.block_bytes))
        .integers("depth", "", points().map(|(_, point)| u64::from(point.test.depth)))
        .floats("rate", "B/s", points().map(|(_, point)| point.bytes_per_s))
        .floats("commands", "/s", points().map(|(_, point)| point.commands_per_s))
        .floats("read_p50", "ns", points().map(|(_, point)| p50(&point.read)))
        .floats("write_p50", "ns", points().map(|(_, point)| p50(&point.write)))
}
