//! A plan as a document: drives for each limit on every candidate, the arithmetic and what it rests on, the curves of each design, and
//! what came of recording it on simulated drives.

pub mod beside;
mod columns;
pub mod proof;
mod words;

use plan::answer::{Answer, Array, Design};
use plan::beside::Comparison;
use plan::explain;
use plan::limits::Limit;
use plan::mission::MissionOutcome;
use plan::trial::{Enough, Finding, Proofs, Question, TrialVerdict};
use plan::{Draft, Requirement};
use serde_json::{Value, json};

pub use words::text;

use crate::axis::Axis;
use crate::document::{Cell, Column, Document, Section, Table};
use crate::mission::pictures::{self, span};
use crate::picture::{
    Bar, BarSeries, Bars, Direction, Kind, Lines, Mark, Picture, Point, Series, Style,
};

/// All limits, in the order of their columns.
const LIMITS: [Limit; 6] =
    [Limit::Rate, Limit::Capacity, Limit::Endurance, Limit::Link, Limit::Uplink, Limit::Memory];

/// The report of a plan. `compared` are readers beside the recording, each with its drive's name.
pub fn document(
    requirement: &Requirement,
    answer: &Answer,
    compared: &[(String, Comparison)],
    proofs: &Proofs,
) -> Document {
    let mut document = Document::new("How many drives it takes");
    document.subtitle =
        "Drives for each limit, the arithmetic and the figures behind it.".to_owned();
    for (label, value) in words::facts(requirement) {
        document.fact(&label, &value);
    }
    document.sections.push(candidates(answer));
    for design in &answer.designs {
        let own: Vec<&Finding> = proofs
            .findings
            .iter()
            .filter(|(drive, _)| *drive == design.drive)
            .map(|(_, f)| f)
            .collect();
        let mut section = section(design, &own);
        let unproved = proofs.unproved.iter().filter(|(drive, _)| *drive == design.drive);
        section
            .warnings
            .extend(unproved.map(|(_, why)| format!("Not proved by recording: {why}.")));
        for (_, comparison) in compared.iter().filter(|(drive, _)| *drive == design.drive) {
            beside::add(&mut section, comparison);
        }
        document.sections.push(section);
    }
    document
}

/// A plan as JSON: the requirement as it was asked, and what came of it.
pub fn json(
    draft: &Draft,
    answer: &Answer,
    compared: &[(String, Comparison)],
    proofs: &Proofs,
) -> Value {
    let beside: Vec<_> = compared.iter().map(beside::json).collect();
    let found: Vec<_> = proofs.findings.iter().map(proof::json).collect();
    let unproved: Vec<_> = proofs.unproved.iter().map(proof::unproved_json).collect();
    json!({
        "requirement": draft, "designs": answer.designs, "beside": beside, "proofs": found,
        "unproved": unproved,
    })
}

/// All candidates side by side.
fn candidates(answer: &Answer) -> Section {
    let best = answer.designs.iter().find_map(|design| Some((design, design.array.as_ref()?)));
    let said = match best {
        Some((design, array)) => {
            format!("{} of {}; {} binds.", array.drives, design.drive, array.binds)
        }
        None => "No number of any of these drives will do.".to_owned(),
    };
    let mut section = Section::new("candidates", "Candidates", said);
    section.pictures.push(by_limit(answer));
    section.pictures.extend(by_rate(&answer.designs));
    section.tables.extend([by_limits(answer), arrays(answer)]);
    section
}

fn by_limit(answer: &Answer) -> Picture {
    let names = answer.designs.iter().map(|design| design.drive.clone()).collect();
    let series = LIMITS.map(|limit| BarSeries {
        name: title(limit),
        values: answer
            .designs
            .iter()
            .map(|design| Some(Bar::new(f64::from(need(design, limit)?))))
            .collect(),
    });
    let asking = series.into_iter().filter(|one| one.values.iter().any(Option::is_some));
    let bars = Bars {
        x_title: "Drive".to_owned(),
        groups: names,
        y: Axis::log("Drives for data", ""),
        series: asking.collect(),
    };
    Picture::new("Drives by limit", "The limit that asks for most binds.", Kind::Bars(bars))
}

/// Drives against the rate, of those that have an answer.
fn by_rate(designs: &[Design]) -> Option<Picture> {
    let curve = |design: &Design| {
        let series = design.series.as_ref()?;
        let points = series
            .drives_by_rate
            .iter()
            .map(|(rate, drives)| Point { x: rate / 1e9, y: drives.map(f64::from) });
        Some(Series {
            name: design.drive.clone(),
            points: points.collect(),
            style: Style::Step,
            ..Series::default()
        })
    };
    let series: Vec<Series> = designs.iter().filter_map(curve).collect();
    let lines = Lines {
        x: Axis::linear("Rate", "GB/s"),
        y: Axis::linear("Drives", ""),
        series,
        ..Lines::default()
    };
    (!lines.series.is_empty()).then(|| {
        Picture::new(
            "Drives against rate",
            "From a tenth of the rate to twice as much; all else as required.",
            Kind::Lines(lines),
        )
    })
}

/// A limit at the head of a column.
fn title(limit: Limit) -> String {
    let name = limit.to_string();
    name[..1].to_uppercase() + &name[1..]
}

fn years(years: f64) -> String {
    explain::seconds(years * 365.0 * 86_400.0)
}

fn need(design: &Design, limit: Limit) -> Option<u32> {
    design.needs.iter().find(|need| need.limit == limit)?.drives
}

/// What each limit asks for.
fn by_limits(answer: &Answer) -> Table {
    let asks = |limit: &Limit| answer.designs.iter().any(|design| need(design, *limit).is_some());
    let beside_rate = LIMITS.into_iter().filter(|limit| *limit != Limit::Rate);
    let limits: Vec<Limit> = beside_rate.filter(asks).collect();
    let mut columns = vec![Column::text("Drive")];
    columns.extend([Column::number("Rate", ""), Column::number("Adaptive", "")]);
    columns.extend(limits.iter().map(|limit| Column::number(title(*limit), "")));
    columns.push(Column::text("Binds"));
    let row = |design: &Design| {
        let whole = |count: Option<u32>| Cell::maybe(count.map(f64::from), 0);
        let mut cells = vec![
            Cell::text(&design.drive),
            whole(design.stripe_rate_drives),
            whole(design.adaptive_rate_drives),
        ];
        cells.extend(limits.iter().map(|limit| whole(need(design, *limit))));
        let binds = design.array.as_ref().map(|array| array.binds.to_string());
        cells.push(Cell::text(binds.unwrap_or_default()));
        cells
    };
    Table {
        caption: "Drives for data: by rate at its slowest moments, with adaptive placement, and by each other limit"
            .to_owned(),
        columns,
        rows: answer.designs.iter().map(row).collect(),
    }
}

/// What each array comes to.
fn arrays(answer: &Answer) -> Table {
    let columns = vec![
        Column::text("Drive"),
        Column::number("Drives", ""),
        Column::number("Headroom", "%"),
        Column::text("Holds"),
        Column::text("Life"),
        Column::text("Buffer"),
        Column::number("Cost", ""),
    ];
    let row = |design: &Design| {
        let array = design.array.as_ref();
        let of = |value: fn(&Array) -> Option<f64>| array.and_then(value);
        let words = |value: fn(&Array) -> String| Cell::text(array.map(value).unwrap_or_default());
        vec![
            Cell::text(&design.drive),
            Cell::maybe(of(|array| Some(array.drives.into())), 0),
            Cell::maybe(of(|array| Some(array.headroom_percent)), 1),
            words(|array| explain::seconds(array.retention_s)),
            words(|array| array.life_years.map_or("not known".to_owned(), years)),
            words(|array| explain::bytes(array.buffer_bytes)),
            Cell::maybe(of(|array| array.cost), 0),
        ]
    };
    Table {
        caption: "What the whole arrays come to".to_owned(),
        columns,
        rows: answer.designs.iter().map(row).collect(),
    }
}

/// One candidate.
fn section(design: &Design, findings: &[&Finding]) -> Section {
    let said = match &design.array {
        Some(array) => {
            let slack = match array.headroom_percent {
                fast if fast.is_finite() && fast >= 0.0 => {
                    format!(", {} % to spare", explain::factor(fast))
                }
                _ => String::new(),
            };
            format!("{}; {} binds{slack}.", explain::drives(array.drives), array.binds)
        }
        None => "No number will do.".to_owned(),
    };
    let mut section = Section::new(&design.drive, &design.model, said);
    section.warnings.extend(design.obstacles.iter().map(ToString::to_string));
    let failed = findings.iter().filter(|finding| finding.verdict() != TrialVerdict::Confirmed);
    section.warnings.extend(failed.map(|finding| format!("{}: {finding}.", asks(finding))));
    let of_described = [("Assumed", &design.assumed), ("Unknown", &design.unknown)];
    for (what, lines) in of_described {
        section.paragraphs.extend(lines.iter().map(|line| format!("{what}: {line}.")));
    }
    section.paragraphs.extend(design.doubts.iter().map(|doubt| format!("Note: {doubt}.")));
    section.paragraphs.extend(design.savings.iter().map(|saving| match saving.drives_before {
        Some(before) => format!(
            "{} instead of {before}: {}.",
            explain::drives(saving.drives_after),
            saving.words
        ),
        None => format!("{} would do: {}.", explain::drives(saving.drives_after), saving.words),
    }));
    // What is done, and what it costs; the rest is with the arithmetic.
    let split =
        design.sets.iter().flat_map(|split| [split.arithmetic.first(), split.arithmetic.last()]);
    section.paragraphs.extend(split.flatten().map(|line| format!("NVM Sets: {line}.")));
    let proved = findings.iter().filter(|finding| finding.verdict() == TrialVerdict::Confirmed);
    section.paragraphs.extend(proved.map(|finding| format!("{}: {finding}.", asks(finding))));
    section.pictures = curves(design);
    for finding in findings {
        section.pictures.extend(recorded(finding));
        section.tables.push(outcomes(finding));
    }
    section.tables.push(Table {
        caption: "The arithmetic".to_owned(),
        columns: vec![Column::text("Line")],
        rows: explain::lines(design).into_iter().map(|line| vec![Cell::text(line)]).collect(),
    });
    section.tables.push(figures(design));
    section
}

/// Every figure that was used.
fn figures(design: &Design) -> Table {
    let columns = ["Figure", "Value", "How far to trust it", "Where it comes from"];
    let row = |figure: &plan::candidate::Figure| {
        vec![
            Cell::text(&figure.name),
            Cell::text(figure.unit.show(figure.value)),
            Cell::text(figure.evidence.to_string()),
            Cell::text(&figure.origin),
        ]
    };
    Table {
        caption: "What it rests on".to_owned(),
        columns: columns.map(Column::text).to_vec(),
        rows: design.figures.iter().map(row).collect(),
    }
}

fn asks(finding: &Finding) -> &'static str {
    match (finding.question, finding.has_parity) {
        (Question::Rate, false) => "Recorded on simulated drives, at their slowest",
        (Question::Rate, true) => "Recorded on simulated drives for data, at their slowest",
        (Question::Whole, false) => "Recorded on simulated drives, all of it",
        (Question::Whole, true) => "Recorded on simulated drives for data, all of it",
    }
}

/// What a design depends on.
fn curves(design: &Design) -> Vec<Picture> {
    let Some(series) = &design.series else { return Vec::new() };
    let one = Mark { on: Direction::Y, at: 1.0, label: "what is needed".to_owned() };
    let (unit, step) = span(series.headroom_by_s.last().map_or(0.0, |(at, _)| *at));
    let headroom = Lines {
        x: Axis::linear("Since the start with empty drives", unit),
        y: Axis::linear("Can write / has to", ""),
        series: vec![Series::new(
            "the array",
            series.headroom_by_s.iter().map(|(at, ratio)| (at / step, *ratio)),
        )],
        marks: vec![one],
        ..Lines::default()
    };
    let buffer = Lines {
        x: Axis::linear("Drives for data", ""),
        y: Axis::linear("Buffers", "GB"),
        series: vec![Series {
            name: "needed".to_owned(),
            points: series
                .buffer_by_drives
                .iter()
                .map(|(drives, bytes)| Point {
                    x: f64::from(*drives),
                    y: bytes.map(|bytes| bytes / 1e9),
                })
                .collect(),
            style: Style::Dots,
            ..Series::default()
        }],
        ..Lines::default()
    };
    vec![
        Picture::new(
            "Headroom",
            "What the drives can write over what comes, phase by phase. Below 1, buffers fill.",
            Kind::Lines(headroom),
        ),
        Picture::new(
            "Buffers against drives",
            "Memory that rides out the dips; nothing where no memory would do.",
            Kind::Lines(buffer),
        ),
    ]
}

/// How a trial went, on as many drives as planned and on one less.
fn recorded(finding: &Finding) -> Vec<Picture> {
    let drives = finding.proof.drives;
    let less = finding.proof.without.as_ref().map(|less| (format!("{} drives", drives - 1), less));
    let mut runs = vec![(format!("{drives} drives"), &finding.proof.with)];
    runs.extend(less);
    pictures::pictures(&runs, Some(about(finding)))
}

fn about(finding: &Finding) -> &'static str {
    match finding.question {
        Question::Rate => "fast enough?",
        Question::Whole => "all of it",
    }
}

fn outcomes(finding: &Finding) -> Table {
    let proof = &finding.proof;
    let with = (proof.drives, Some(&proof.with));
    let less = (proof.drives.saturating_sub(1), proof.without.as_ref());
    let row = |(drives, outcome): (usize, &MissionOutcome)| {
        let wear = outcome.drives.iter().map(|drive| drive.life_used).fold(0.0, f64::max);
        let amplification = outcome
            .drives
            .iter()
            .map(plan::mission::DriveOutcome::amplification)
            .fold(1.0, f64::max);
        let life =
            outcome.drives.iter().map(|drive| drive.life_years).fold(f64::INFINITY, f64::min);
        let lost = outcome.samples.iter().map(|sample| sample.lost_bytes).sum::<u64>();
        vec![
            Cell::number(drives as f64, 0),
            Cell::text(outcome.time.to_string()),
            Cell::text(explain::bytes(lost as f64)),
            Cell::text(outcome.first_loss.as_ref().map_or("none".to_owned(), ToString::to_string)),
            Cell::number(f64::from(outcome.buffers_most), 0),
            Cell::number(f64::from(outcome.buffers), 0),
            Cell::text(explain::seconds(outcome.retention.as_secs_f64())),
            Cell::number(amplification, 3),
            Cell::number(wear * 100.0, 3),
            Cell::text(years(life)),
        ]
    };
    let enough = match &finding.enough {
        Some(Enough::Drives(drives, outcome)) => (*drives, Some(&**outcome)),
        _ => (0, None),
    };
    let rows =
        [with, less, enough].into_iter().filter_map(|(drives, run)| Some(row((drives, run?))));
    Table {
        caption: format!("Recorded on simulated drives: {}", about(finding)),
        columns: vec![
            Column::number("Drives", ""),
            Column::text("Virtual time"),
            Column::text("Lost"),
            Column::text("First loss"),
            Column::number("Buffers used", ""),
            Column::number("of", ""),
            Column::text("Holds"),
            Column::number("Write amplification", ""),
            Column::number("Wear", "%"),
            Column::text("Life at this rate"),
        ],
        rows: rows.collect(),
    }
}
