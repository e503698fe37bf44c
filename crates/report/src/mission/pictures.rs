//! How recordings in virtual time went, drawn over their time.

use base::Duration;
use plan::mission::{MissionOutcome, Sample};

use crate::axis::Axis;
use crate::picture::{Kind, Lines, Picture, Point, Series};

/// Values at a time, by what they are of.
type Values = Vec<(&'static str, f64)>;

/// Buffers in use and rates of drives, of one recording or of several with names, the first of them the one that matters. `about` ends
/// the pictures' titles.
pub fn pictures(runs: &[(String, &MissionOutcome)], about: Option<&str>) -> Vec<Picture> {
    let title =
        |what: &str| about.map_or_else(|| what.to_owned(), |about| format!("{what}, {about}"));
    vec![
        over_time(
            runs,
            title("Buffers"),
            "The most chunk buffers in use in each stretch of time. At all of them, data is lost.",
            Axis::linear("Buffers in use", "%"),
            |outcome, sample| {
                let share = f64::from(sample.buffers_most) / f64::from(outcome.buffers.max(1));
                vec![("", share * 100.0)]
            },
        ),
        over_time(
            runs,
            title("Rates of drives"),
            "The slowest and the fastest drive in each stretch of time.",
            Axis::linear("Written by a drive", "GB/s"),
            |_, sample| {
                let least = sample.rates.iter().copied().fold(f64::INFINITY, f64::min);
                let most = sample.rates.iter().copied().fold(0.0, f64::max);
                vec![("slowest", least / 1e9), ("fastest", most / 1e9)]
            },
        ),
    ]
}

fn over_time(
    runs: &[(String, &MissionOutcome)],
    title: String,
    caption: &str,
    y: Axis,
    of: fn(&MissionOutcome, &Sample) -> Values,
) -> Picture {
    let longest = runs.iter().map(|(_, run)| run.time).max().unwrap_or(Duration::ZERO);
    let (unit, step) = span(longest.as_secs_f64());
    let mut series: Vec<Series> = Vec::new();
    for (run, outcome) in runs {
        for sample in &outcome.samples {
            for (what, value) in of(outcome, sample) {
                let name = match (run.as_str(), what) {
                    (run, "") => run.to_owned(),
                    ("", what) => what.to_owned(),
                    (run, what) => format!("{run}: {what}"),
                };
                let point = Point::new(sample.at.as_secs_f64() / step, value);
                match series.iter_mut().find(|one| one.name == name) {
                    Some(one) => one.points.push(point),
                    None => series.push(Series { name, points: vec![point], ..Series::default() }),
                }
            }
        }
    }
    let x = Axis::linear("Virtual time", unit);
    Picture::new(title, caption, Kind::Lines(Lines { x, y, series, ..Lines::default() }))
}

/// The unit in which a span of so many seconds is read best, and its seconds.
pub(crate) fn span(seconds: f64) -> (&'static str, f64) {
    match seconds {
        s if s >= 3.0 * 86_400.0 => ("days", 86_400.0),
        s if s >= 2.0 * 3600.0 => ("h", 3600.0),
        s if s >= 300.0 => ("min", 60.0),
        _ => ("s", 1.0),
    }
}
