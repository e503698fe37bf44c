//! Percentile curves: from the histograms that a run keeps beside its steps, where they are those of the result; else from
//! the few percentiles that the result itself has. What isn't known is a gap, and nothing is drawn beyond.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use base::Latencies;
use lab::Step;
use load::hdr_log::{self, Stamps, Tag};
use load::measurement::LatencySummary;
use load::percentile_curve;

use super::quantity::Quantity;
use crate::axis::Axis;
use crate::picture::{Kind, Lines, Picture, Point, Series};

/// A curve: percent against nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    /// What it is, for the legend.
    pub name: String,
    /// Percent, and latency in nanoseconds if it is known.
    pub points: Vec<(f64, Option<u64>)>,
}

impl Curve {
    /// Of a summary alone.
    pub fn of(name: impl Into<String>, summary: &LatencySummary) -> Self {
        Self { name: name.into(), points: summary.percentiles.clone() }
    }

    /// Of the responses in the first of these steps whose histograms are those that were summed up; else of the summary.
    pub fn of_steps(
        name: impl Into<String>,
        summary: &LatencySummary,
        folder: &Path,
        experiment: &str,
        steps: &[String],
        tag: &Tag,
    ) -> Self {
        let logged = steps.iter().find_map(|step| {
            let logged = responses(&folder.join(experiment).join(step), tag)?;
            let max_ns = logged.max().map(|max| max.as_nanos());
            (logged.count() == summary.count && max_ns == summary.max_ns).then_some(logged)
        });
        let Some(logged) = logged else { return Self::of(name, summary) };
        let point =
            |point: percentile_curve::Point| (point.percent, point.known.then_some(point.ns));
        let points = percentile_curve::curve(&logged).into_iter().map(point).collect();
        Self { name: name.into(), points }
    }
}

/// The tag under which a stream's responses are logged.
pub(super) fn responses_of(stream: &str, operation: load::Verb) -> Tag {
    Tag { stream: stream.to_owned(), operation, stamps: Stamps::Response }
}

/// The names of an experiment's steps that have histograms, in order, as far as they are wanted.
pub(super) fn steps(folder: &Path, experiment: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder.join(experiment)) else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".hlog").map(str::to_owned)
    };
    let mut names: Vec<String> = entries.flatten().filter_map(name).filter(|n| wanted(n)).collect();
    names.sort_unstable();
    names
}

/// Percentile curves over nines. None where there is none to draw.
pub(super) fn picture(title: String, caption: &str, curves: Vec<Curve>) -> Option<Picture> {
    let known = |curve: &Curve| curve.points.iter().any(|(_, ns)| ns.is_some());
    if !curves.iter().any(known) {
        return None;
    }
    let values = curves.iter().flat_map(|curve| &curve.points).filter_map(|(_, ns)| *ns);
    let latency = Quantity::latency(values.map(|ns| ns as f64));
    let series = curves
        .into_iter()
        .map(|curve| {
            let point = |(percent, ns): (f64, Option<u64>)| match ns {
                Some(ns) => Point::new(percent, latency.show(ns as f64)),
                None => Point::gap(percent),
            };
            let points = curve.points.into_iter().map(point).collect();
            Series { name: curve.name, points, ..Series::default() }
        })
        .collect();
    let x = Axis::nines("Share of the commands that took no longer");
    let y = latency.log_axis("Latency");
    Some(Picture::new(title, caption, Kind::Lines(Lines { x, y, series, ..Lines::default() })))
}

/// All responses of a step's histograms, warm-up left out. None if they are not there, or not whole.
fn responses(stem: &Path, tag: &Tag) -> Option<Latencies> {
    let step: Step = lab::lab::read_json(&extended(stem, "json")).ok()??;
    let warm_up = step.measurement.workload.warm_up.0;
    let file = File::open(extended(stem, "hlog")).ok()?;
    let mut all = Latencies::default();
    let mut tags: BTreeMap<String, bool> = BTreeMap::new();
    for logged in hdr_log::read(BufReader::new(file)) {
        let logged = logged.ok()?;
        let wanted = *tags
            .entry(logged.tag)
            .or_insert_with_key(|text| text.parse().is_ok_and(|parsed: Tag| parsed == *tag));
        if wanted && logged.start >= warm_up {
            all.add(&logged.latencies);
        }
    }
    Some(all)
}

/// A step's file. Names of steps hold points, so an extension is added rather than set.
fn extended(stem: &Path, extension: &str) -> std::path::PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}
