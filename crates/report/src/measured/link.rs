//! Links: what they carry, now and at best, against what was reached.

mod sweep;

use base::Rate;
use lab::experiment::link::sweep::FIGURES;
use lab::experiment::link::{LinkPoint, LinkResult};
use load::Verb;

use super::found::{Found, Shown};
use super::grid::block_words;
use super::quantity::Quantity;
use crate::document::{Cell, Column, Table};
use crate::picture::{Bar, BarSeries, Bars, Kind, Picture};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

impl Shown for LinkResult {
    const TITLE: &'static str = "Links and their ceilings";

    fn finding(&self) -> String {
        let reached = |operation| self.sequential(operation);
        let all = [("reads", reached(Verb::Read)), ("writes", reached(Verb::Write))];
        let parts: Vec<String> = all
            .iter()
            .filter_map(|(what, rate)| Some(format!("{what} {}", Rate((*rate)?))))
            .collect();
        let fastest = all.iter().filter_map(|(_, rate)| *rate).reduce(f64::max);
        match (self.ceiling, fastest) {
            (_, None) => "No sequential command came to an end, so nothing is known.".to_owned(),
            (None, Some(_)) => {
                format!("Reached: {}. What the links carry is not known.", parts.join(", "))
            }
            (Some(ceiling), Some(fastest)) if fastest > ceiling.line => format!(
                "Reached: {}; the links that the system reports carry {}.",
                parts.join(", "),
                Rate(ceiling.line)
            ),
            (Some(ceiling), Some(fastest)) => format!(
                "The links carry {}; reached: {}, at most {:.0} % of it.",
                Rate(ceiling.payload.1),
                parts.join(", "),
                100.0 * fastest / ceiling.payload.1
            ),
        }
    }

    fn warnings(&self) -> Vec<String> {
        // They say that they are warnings, and so does the page.
        let own =
            Self::warnings(self).into_iter().map(|text| match text.strip_prefix("Warning: the") {
                Some(rest) => format!("The{rest}"),
                None => text,
            });
        own.chain(self.preparation.notes.iter().chain(&self.notes).cloned()).collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        let swept = found.iter().filter_map(|run| Some((run, run.result.sweep.as_ref()?)));
        let swept = swept.flat_map(|(run, of)| sweep::pictures(of, &|what| run.title(found, what)));
        reached(found).into_iter().chain(swept).collect()
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        let ceilings = found.first().map(|run| ceilings(run.result));
        let swept = found.iter().filter_map(|run| {
            let table = sweep::table(run.result.sweep.as_ref()?);
            Some(Table { caption: run.title(found, &table.caption), ..table })
        });
        ceilings.into_iter().chain(swept).collect()
    }

    fn is_listed(name: &str) -> bool {
        !name.starts_with("random.") && !name.starts_with(FIGURES)
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        let random: Vec<&LinkPoint> = self.points.iter().filter(|p| p.random).collect();
        let (Some(first), Some(last)) = (random.first(), random.last()) else { return Vec::new() };
        let name = format!("random reads, depth {} to {}: ", first.depth, last.depth);
        let room = width.saturating_sub(name.chars().count());
        let rates: Vec<_> = random.iter().map(|p| p.bytes_per_s.map(|rate| rate / 1e9)).collect();
        vec![name + &labelled_sparkline(&rates, "GB/s", room)]
    }

    fn lines(&self, indent: usize) -> Vec<String> {
        self.sweep.as_ref().map_or_else(Vec::new, |of| sweep::lines(of, indent))
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let points = || self.points.iter();
        let columns = Columns::new()
            .texts("operation", points().map(|p| p.operation.to_string()))
            .texts("random", points().map(|p| p.random.to_string()))
            .integers("block", "B", points().map(|p| p.block_bytes))
            .integers("depth", "", points().map(|p| u64::from(p.depth)))
            .floats("rate", "B/s", points().map(|p| p.bytes_per_s))
            .texts("limited_by_harness", points().map(|p| p.harness_limited.to_string()));
        let own = super::summaries::columns(columns, "", points().map(|p| Some(&p.latency)));
        let swept = self.sweep.as_ref().map(|of| ("link-sweep", sweep::columns(of)));
        std::iter::once(("link", own)).chain(swept).collect()
    }
}

/// `read 128 KiB x32`.
fn words(point: &LinkPoint) -> String {
    let kind = if point.random { "random " } else { "" };
    format!("{kind}{} {} x{}", point.operation, block_words(point.block_bytes), point.depth)
}

fn reached(found: &[Found<'_, LinkResult>]) -> Option<Picture> {
    let mut groups: Vec<String> = Vec::new();
    for point in found.iter().flat_map(|run| &run.result.points) {
        let name = words(point);
        if !groups.contains(&name) {
            groups.push(name);
        }
    }
    let rates = |result: &LinkResult| -> Vec<f64> {
        let ceilings = [result.ceiling, result.best].into_iter().flatten().map(|c| c.payload.1);
        result.points.iter().filter_map(|p| p.bytes_per_s).chain(ceilings).collect()
    };
    let rate = Quantity::rate(found.iter().flat_map(|run| rates(run.result)));
    let mut series = Vec::new();
    for run in found {
        let of = |group: &String| {
            let point = run.result.points.iter().find(|point| words(point) == *group)?;
            Some(Bar::new(rate.show(point.bytes_per_s?)))
        };
        let values = groups.iter().map(of).collect();
        series.push(BarSeries { name: run.name(found, "reached"), values });
        let ceilings =
            [("the link carries", run.result.ceiling), ("it could carry", run.result.best)];
        for (what, ceiling) in ceilings {
            let Some(ceiling) = ceiling else { continue };
            // A ceiling lies between small packets and large ones.
            let (low, high) = (rate.show(ceiling.payload.0), rate.show(ceiling.payload.1));
            let bar = Some(Bar::within(high, low, high));
            let name = run.name(found, what);
            series.push(BarSeries { name, values: vec![bar; groups.len()] });
        }
    }
    if series.iter().flat_map(|series| &series.values).all(Option::is_none) {
        return None;
    }
    let bars =
        Bars { x_title: "Commands and depth".to_owned(), groups, y: rate.axis("Rate"), series };
    let caption =
        "What was reached against what the links carry of data, with packets of 128 to 256 bytes.";
    Some(Picture::new("Reached against the ceiling", caption, Kind::Bars(bars)))
}

fn ceilings(result: &LinkResult) -> Table {
    let rate = Quantity::rate(result.table.iter().map(|(_, _, ceiling)| ceiling.line));
    let row = |(gigatransfers, lanes, ceiling): &(f64, u8, lab::experiment::link::Ceiling)| {
        vec![
            Cell::text(format!("{gigatransfers} GT/s x{lanes}")),
            rate.cell(Some(ceiling.line)),
            rate.cell(Some(ceiling.payload.0)),
            rate.cell(Some(ceiling.payload.1)),
        ]
    };
    Table {
        caption: "What PCIe links carry one way".to_owned(),
        columns: vec![
            Column::text("Link"),
            rate.column("In all"),
            rate.column("Data in packets of 128 B"),
            rate.column("Data in packets of 256 B"),
        ],
        rows: result.table.iter().map(row).collect(),
    }
}
