//! How even a speed is: over time, with every dip.

use base::Rate;
use lab::analysis::Point as Interval;
use lab::experiment::steady::{Evenness, SteadyResult};
use load::Verb;

use super::found::{Found, Shown};
use super::quantity::Quantity;
use super::rates;
use crate::axis::Axis;
use crate::document::Table;
use crate::picture::{Direction, Kind, Lines, Mark, Picture, Series, Style};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

const OPERATIONS: [Verb; 2] = [Verb::Write, Verb::Read];

impl Shown for SteadyResult {
    const TITLE: &'static str = "Evenness of one stream";

    fn finding(&self) -> String {
        let sentence = |operation: Verb| {
            let even = evenness(self, operation)?;
            let verdict = if even.is_even() { "even" } else { "uneven" };
            let dips = match even.dips.summary.lowest_share_min {
                Some(lowest) => format!(
                    "{} dips, the deepest by {:.0} %",
                    even.dips.summary.count,
                    100.0 * (1.0 - lowest)
                ),
                None => "no dips".to_owned(),
            };
            let what = if operation == Verb::Write { "Writing" } else { "Reading" };
            Some(format!("{what} is {verdict}: {} on average, {dips}.", Rate(even.mean)))
        };
        let said: Vec<String> = OPERATIONS.into_iter().filter_map(sentence).collect();
        if said.is_empty() {
            "Nothing came to an end, so nothing is known.".to_owned()
        } else {
            said.join(" ")
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.preparation.notes.iter().chain(&self.notes).cloned().collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        OPERATIONS.into_iter().filter_map(|operation| speed(found, operation)).collect()
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        OPERATIONS
            .into_iter()
            .filter_map(|operation| {
                let of = |run: &Found<'_, Self>| {
                    evenness(run.result, operation).map(|e| e.curve.clone())
                };
                let curves: Vec<(&str, Vec<Interval>)> =
                    found.iter().filter_map(|run| Some((run.label, of(run)?))).collect();
                let runs: Vec<(&str, &[Interval])> =
                    curves.iter().map(|(label, curve)| (*label, curve.as_slice())).collect();
                let what = if operation == Verb::Write { "Writing" } else { "Reading" };
                rates::comparison(what, &runs)
            })
            .collect()
    }

    fn is_listed(_name: &str) -> bool {
        true
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        let line = |operation: Verb| {
            let name = format!("{:<6}", operation.to_string());
            let room = width.saturating_sub(name.chars().count());
            let rates = rates::gigabytes(&evenness(self, operation)?.curve);
            Some(name + &labelled_sparkline(&rates, "GB/s", room))
        };
        OPERATIONS.into_iter().filter_map(line).collect()
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let of = |operation| evenness(self, operation);
        let dips = OPERATIONS.into_iter().flat_map(|operation| {
            let name = if operation == Verb::Write { "write" } else { "read" };
            of(operation)
                .into_iter()
                .flat_map(move |e| e.dips.dips.iter().map(move |dip| (name, dip)))
        });
        let mut series = vec![("steady-dips", rates::dip_columns(dips))];
        for (name, operation) in [("steady-write", Verb::Write), ("steady-read", Verb::Read)] {
            series.extend(of(operation).map(|even| (name, rates::columns(&even.curve))));
        }
        series
    }
}

fn evenness(result: &SteadyResult, operation: Verb) -> Option<&Evenness> {
    match operation {
        Verb::Read => result.read.as_ref(),
        Verb::Write => result.write.as_ref(),
        Verb::Trim => None,
    }
}

fn speed(found: &[Found<'_, SteadyResult>], operation: Verb) -> Option<Picture> {
    let all = || found.iter().filter_map(|run| Some((run, evenness(run.result, operation)?)));
    let rate = Quantity::rate(all().flat_map(|(_, even)| even.curve.iter().map(Interval::rate)));
    let (mut series, mut dips, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for (run, even) in all() {
        let from_ns = even.curve.first().map_or(0, |interval| interval.start_ns);
        let points = rates::over_time(&even.curve, from_ns, &rate);
        if points.is_empty() {
            continue;
        }
        let name = run.name(found, if found.len() > 1 { "" } else { "speed" });
        series.push(Series { name, points, ..Series::default() });
        let points =
            rates::lowest_points(&even.dips.dips, &even.segmentation.segments, from_ns, &rate);
        if !points.is_empty() {
            let name = run.name(found, "dips");
            dips.push(Series { name, points, style: Style::Dots, ..Series::default() });
        }
        let label = run.name(found, &format!("average {}", Rate(even.mean)));
        marks.push(Mark { on: Direction::Y, at: rate.show(even.mean), label });
    }
    if series.is_empty() {
        return None;
    }
    series.append(&mut dips);
    let (x, y) = (Axis::linear("Time", "s"), rate.axis("Speed"));
    let what = if operation == Verb::Write { "Write" } else { "Read" };
    let caption = "One continuous stream in large blocks. Every dip has a dot at its lowest speed.";
    let lines = Lines { x, y, series, marks, ..Lines::default() };
    Some(Picture::new(format!("{what} speed over time"), caption, Kind::Lines(lines)))
}
