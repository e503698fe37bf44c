//! Applications: what each stream asked for and got, and the verdicts.

use lab::experiment::apps::{AppsResult, StreamVerdict, Success};

use super::found::{Found, Shown};
use super::quantity::Quantity;
use crate::axis::Axis;
use crate::document::{Cell, Column, Table};
use crate::picture::{Bar, BarSeries, Bars, Kind, Picture};
use crate::series::Columns;

impl Shown for AppsResult {
    const TITLE: &'static str = "Applications";

    fn finding(&self) -> String {
        let (good, bad): (Vec<_>, Vec<_>) = self.applications.iter().partition(|a| a.content);
        let names = |of: &[&lab::experiment::apps::ApplicationResult]| {
            of.iter().map(|a| a.application.to_string()).collect::<Vec<_>>().join(", ")
        };
        match (good.is_empty(), bad.is_empty()) {
            (true, true) => "No application was measured.".to_owned(),
            (false, true) => format!("All are served well: {}.", names(&good)),
            (true, false) => format!("None is served well: {}.", names(&bad)),
            (false, false) => {
                format!("Served well: {}. Not served well: {}.", names(&good), names(&bad))
            }
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.preparation.notes.iter().chain(&self.notes).cloned().collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        shares(found).into_iter().collect()
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        let tables = |run: &Found<'_, Self>| {
            let streams = table(run.result, run.title(found, "Every stream"));
            [streams, sources(run.result, run.title(found, "What streams ask, and why"))]
        };
        found.iter().flat_map(tables).collect()
    }

    fn is_listed(name: &str) -> bool {
        name.starts_with("apps.ceiling.") || name.ends_with(".content")
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        self.applications
            .iter()
            .map(|result| {
                let verdict = if result.content { "served well" } else { "not served well" };
                format!("{}: {verdict}", result.application).chars().take(width).collect()
            })
            .collect()
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let rows: Vec<(&str, &StreamVerdict)> = self
            .applications
            .iter()
            .flat_map(|a| a.streams.iter().map(|stream| (a.application.name(), stream)))
            .collect();
        let columns = Columns::new()
            .texts("application", rows.iter().map(|(name, _)| (*name).to_owned()))
            .texts("stream", rows.iter().map(|(_, s)| s.name.clone()))
            .texts("content", rows.iter().map(|(_, s)| s.content.to_string()))
            .floats("asked", "B/s", rows.iter().map(|(_, s)| s.asked_bytes_per_s))
            .texts("source", rows.iter().map(|(_, s)| s.source.clone()))
            .floats("rate", "B/s", rows.iter().map(|(_, s)| s.bytes_per_s))
            .floats("commands", "1/s", rows.iter().map(|(_, s)| s.iops))
            .integers("answers", "", rows.iter().map(|(_, s)| s.count))
            .integers("late", "", rows.iter().map(|(_, s)| s.late))
            .integers("errors", "", rows.iter().map(|(_, s)| s.errors))
            .integers("deadline", "ns", rows.iter().map(|(_, s)| s.deadline_ns));
        let columns =
            super::summaries::columns(columns, "read_", rows.iter().map(|(_, s)| s.read.as_ref()));
        let columns = super::summaries::columns(
            columns,
            "write_",
            rows.iter().map(|(_, s)| s.write.as_ref()),
        );
        vec![("apps", columns)]
    }
}

/// The least share of what it asked for that any stream of an application got, in percent.
fn least_share(streams: &[StreamVerdict]) -> Option<f64> {
    let share = |stream: &StreamVerdict| {
        let asked = stream.asked_bytes_per_s.filter(|asked| *asked > 0.0)?;
        Some(100.0 * stream.bytes_per_s / asked)
    };
    streams.iter().filter_map(share).reduce(f64::min)
}

fn shares(found: &[Found<'_, AppsResult>]) -> Option<Picture> {
    let mut applications = Vec::new();
    for result in found.iter().flat_map(|run| &run.result.applications) {
        if !applications.contains(&result.application) {
            applications.push(result.application);
        }
    }
    let series: Vec<BarSeries> = found
        .iter()
        .map(|run| {
            let of = |application: &lab::experiment::apps::Application| {
                let results = &run.result.applications;
                let result = results.iter().find(|r| r.application == *application)?;
                least_share(&result.streams).map(Bar::new)
            };
            let values = applications.iter().map(of).collect();
            BarSeries { name: run.name(found, "share of its requested rate"), values }
        })
        .collect();
    if series.iter().flat_map(|series| &series.values).all(Option::is_none) {
        return None;
    }
    let bars = Bars {
        x_title: String::new(),
        groups: applications.iter().map(ToString::to_string).collect(),
        y: Axis::linear("Share of the requested rate", "%"),
        series,
    };
    let caption = "The stream of each application that got the least of the rate it asked for. What is late doesn't show \
                   here: the verdicts below count that too.";
    Some(Picture::new("What applications got", caption, Kind::Bars(bars)))
}

fn table(result: &AppsResult, caption: String) -> Table {
    let streams = || result.applications.iter().flat_map(|a| &a.streams);
    let rates = streams().flat_map(|s| [s.asked_bytes_per_s, Some(s.bytes_per_s)]).flatten();
    let rate = Quantity::rate(rates);
    let slowest = |s: &StreamVerdict, percent| {
        let of = |summary: &Option<load::measurement::LatencySummary>| {
            summary.as_ref()?.percentile(percent)
        };
        [of(&s.read), of(&s.write)].into_iter().flatten().max().map(|ns| ns as f64)
    };
    let time = Quantity::latency(
        streams().flat_map(|s| [slowest(s, 99.0), s.deadline_ns.map(|ns| ns as f64)]).flatten(),
    );
    let row = |application: String, stream: &StreamVerdict| {
        let late = (stream.count > 0).then(|| 100.0 * stream.late as f64 / stream.count as f64);
        let asked = match stream.asked_bytes_per_s {
            Some(asked) => rate.cell(Some(asked)),
            None => Cell::text("all it gets"),
        };
        let (deadline, late) = match stream.deadline_ns {
            Some(ns) => (time.cell(Some(ns as f64)), Cell::maybe(late, 3)),
            None => (Cell::text("none"), Cell::text("–")),
        };
        vec![
            Cell::text(application),
            Cell::text(stream.name.clone()),
            Cell::text(wanted(stream.success)),
            asked,
            rate.cell(Some(stream.bytes_per_s)),
            deadline,
            late,
            time.cell(slowest(stream, 99.0)),
            Cell::text(if stream.content { "content" } else { "short of it" }),
        ]
    };
    let rows = result
        .applications
        .iter()
        .flat_map(|a| a.streams.iter().map(|stream| row(a.application.to_string(), stream)))
        .collect();
    Table {
        caption,
        columns: vec![
            Column::text("Application"),
            Column::text("Stream"),
            Column::text("Content if"),
            rate.column("Asked"),
            rate.column("Got"),
            time.column("Deadline"),
            Column::number("Late", "% of the commands"),
            time.column("Latency p99"),
            Column::text("Verdict"),
        ],
        rows,
    }
}

/// Where absolute figures come from; no rows where streams ask for shares.
fn sources(result: &AppsResult, caption: String) -> Table {
    let streams = result.applications.iter().flat_map(|a| a.streams.iter().map(move |s| (a, s)));
    let row = |(of, stream): (&lab::experiment::apps::ApplicationResult, &StreamVerdict)| {
        let source = stream.source.as_ref()?;
        let cells = [of.application.to_string(), stream.name.clone(), source.clone()];
        Some(cells.map(Cell::text).to_vec())
    };
    Table {
        caption,
        columns: ["Application", "Stream", "Source"].map(Column::text).to_vec(),
        rows: streams.filter_map(row).collect(),
    }
}

fn wanted(success: Success) -> String {
    match success {
        Success::NoneLate => "none is late".to_owned(),
        Success::LateAtMost { percent } => format!("at most {percent} % are late"),
        Success::KeepsRate => "it reaches the rate it requests".to_owned(),
        Success::RateAtLeast { bytes_per_s } => format!("it gets {}", base::Rate(bytes_per_s)),
    }
}
