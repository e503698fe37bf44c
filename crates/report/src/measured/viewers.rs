//! Viewers: every trial of the search, the number that was carried, and how long their blocks took.

use base::Rate;
use lab::experiment::viewers::{Limit, ViewersResult};
use load::Verb;

use super::found::{Found, Shown};
use super::percentiles::{self, Curve};
use crate::axis::Axis;
use crate::document::{Cell, Column, Table};
use crate::picture::{Bar, BarSeries, Bars, Kind, Lines, Picture, Point, Series, Style};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

use super::quantity::Quantity;

impl Shown for ViewersResult {
    const TITLE: &'static str = "Viewers without a late block";

    fn finding(&self) -> String {
        let each = Rate(self.rate_bytes_per_s);
        let mut said = Vec::new();
        for (_, beside, limit) in limits(self) {
            let least = if limit.lower_bound.is_some() { "at least " } else { "" };
            said.push(format!("{least}{}{beside}", limit.viewers));
        }
        format!("Viewers of {each} each: {}.", said.join(", "))
    }

    fn warnings(&self) -> Vec<String> {
        self.preparation.notes.iter().chain(&self.notes).cloned().collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        let mut pictures: Vec<Picture> = carried(found).into_iter().collect();
        pictures.extend(trials(found));
        pictures.extend(responses(found));
        pictures
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        found.iter().map(|run| table(run.result, run.title(found, "Trials"))).collect()
    }

    fn is_listed(_name: &str) -> bool {
        true
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        limits(self)
            .map(|(_, beside, limit)| {
                let name = format!("{} carried{beside}; tried: ", limit.viewers);
                let room = width.saturating_sub(name.chars().count());
                let tried: Vec<_> = limit.trials.iter().map(|t| Some(t.viewers as f64)).collect();
                name + &labelled_sparkline(&tried, "viewers", room)
            })
            .collect()
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let rows: Vec<_> = limits(self)
            .flat_map(|(name, _, limit)| limit.trials.iter().map(move |trial| (name, trial)))
            .collect();
        let columns = Columns::new()
            .texts("search", rows.iter().map(|(name, _)| (*name).to_owned()))
            .integers("viewers", "", rows.iter().map(|(_, t)| t.viewers))
            .texts("held", rows.iter().map(|(_, t)| t.held.to_string()))
            .integers("missed", "", rows.iter().map(|(_, t)| t.missed))
            .integers("errors", "", rows.iter().map(|(_, t)| t.errors))
            .floats("rate", "B/s", rows.iter().map(|(_, t)| t.bytes_per_s))
            .floats("ingest", "B/s", rows.iter().map(|(_, t)| t.ingest_bytes_per_s))
            .integers("slowest", "ns", rows.iter().map(|(_, t)| t.slowest_ns));
        vec![("viewers", columns)]
    }
}

/// Each search: its name among steps, its words, and what came of it.
fn limits(result: &ViewersResult) -> impl Iterator<Item = (&'static str, String, &Limit)> {
    let beside = |limit: &Limit| match limit.ingest_bytes_per_s {
        Some(rate) => format!(" beside an ingest of {}", Rate(rate)),
        None => " alone".to_owned(),
    };
    let ingesting = result.ingesting.as_ref().map(|limit| ("ingest", beside(limit), limit));
    std::iter::once(("alone", beside(&result.alone), &result.alone)).chain(ingesting)
}

fn short(name: &str) -> &'static str {
    if name == "alone" { "alone" } else { "beside an ingest" }
}

fn carried(found: &[Found<'_, ViewersResult>]) -> Option<Picture> {
    let bar = |limit: &Limit| {
        let viewers = limit.viewers as f64;
        match limit.refused {
            Some(refused) => Bar::within(viewers, viewers, refused as f64),
            None => Bar::new(viewers),
        }
    };
    let series = found.iter().map(|run| {
        let of = |kind: &str| limits(run.result).find(|l| l.0 == kind).map(|l| bar(l.2));
        BarSeries { name: run.name(found, "carried"), values: vec![of("alone"), of("ingest")] }
    });
    let series: Vec<BarSeries> = series.collect();
    let any = series.iter().flat_map(|s| &s.values).flatten().any(|bar| bar.value > 0.0);
    if !any {
        return None;
    }
    let bars = Bars {
        x_title: String::new(),
        groups: vec!["alone".to_owned(), "beside an ingest".to_owned()],
        y: Axis::linear("Viewers", ""),
        series,
    };
    let caption = "The greatest number without a late block; the range ends at the least number that was refused.";
    Some(Picture::new("Viewers carried", caption, Kind::Bars(bars)))
}

fn trials(found: &[Found<'_, ViewersResult>]) -> Option<Picture> {
    let mut series = Vec::new();
    for run in found {
        for (kind, _, limit) in limits(run.result) {
            for (held, words) in [(true, "held"), (false, "a block was late")] {
                let points: Vec<Point> = (1..)
                    .zip(&limit.trials)
                    .filter(|(_, trial)| trial.held == held)
                    .map(|(n, trial)| Point::new(f64::from(n), trial.viewers as f64))
                    .collect();
                if !points.is_empty() {
                    let name = run.name(found, &format!("{}: {words}", short(kind)));
                    series.push(Series { name, points, style: Style::Dots, ..Series::default() });
                }
            }
        }
    }
    if series.is_empty() {
        return None;
    }
    let (x, y) = (Axis::linear("Trial", ""), Axis::linear("Viewers tried", ""));
    let caption = "Every number that was tried, in order, and whether it held.";
    let lines = Lines { x, y, series, ..Lines::default() };
    Some(Picture::new("The search for the number of viewers", caption, Kind::Lines(lines)))
}

fn responses(found: &[Found<'_, ViewersResult>]) -> Option<Picture> {
    let tag = percentiles::responses_of("viewers", Verb::Read);
    let mut curves = Vec::new();
    for run in found {
        let drives = run.result.drives.len().max(1) as u64;
        for (kind, _, limit) in limits(run.result) {
            let Some(response) = &limit.response else { continue };
            let name = run.name(found, &format!("{} viewers {}", limit.viewers, short(kind)));
            let number = format!("{kind}-{}-", limit.viewers / drives);
            let mut steps =
                percentiles::steps(run.folder, "viewers", |step| step.starts_with(&number));
            // The last trial is the one that was summed up.
            steps.reverse();
            curves.push(Curve::of_steps(name, response, run.folder, "viewers", &steps, &tag));
        }
    }
    let caption = "The share of the blocks that took no longer, with the greatest number of viewers that held.";
    percentiles::picture("Response times of viewers".to_owned(), caption, curves)
}

fn table(result: &ViewersResult, caption: String) -> Table {
    let trials = || limits(result).flat_map(|(_, _, limit)| &limit.trials);
    let time = Quantity::time(trials().filter_map(|t| t.slowest_ns).map(|ns| ns as f64));
    let rate = Quantity::rate(
        trials().flat_map(|t| [Some(t.bytes_per_s), t.ingest_bytes_per_s]).flatten(),
    );
    let rows = limits(result)
        .flat_map(|(kind, _, limit)| limit.trials.iter().map(move |trial| (kind, trial)))
        .map(|(kind, trial)| {
            vec![
                Cell::text(short(kind)),
                Cell::number(trial.viewers as f64, 0),
                Cell::text(if trial.held { "held" } else { "did not hold" }),
                Cell::number(trial.missed as f64, 0),
                Cell::number(trial.errors as f64, 0),
                rate.cell(Some(trial.bytes_per_s)),
                if kind == "alone" {
                    Cell::text("–")
                } else {
                    rate.cell(trial.ingest_bytes_per_s)
                },
                time.cell(trial.slowest_ns.map(|ns| ns as f64)),
            ]
        })
        .collect();
    Table {
        caption,
        columns: vec![
            Column::text("Search"),
            Column::number("Viewers", ""),
            Column::text("Verdict"),
            Column::number("Late blocks", ""),
            Column::number("Failures", ""),
            rate.column("Read"),
            rate.column("Ingested"),
            time.column("Slowest block"),
        ],
        rows,
    }
}
