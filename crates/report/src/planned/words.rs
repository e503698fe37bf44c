//! A plan in words: what is planned, tables of candidates, and what there is to say of each.

use std::fmt::Write;

use plan::Requirement;
use plan::answer::{Answer, Design};
use plan::explain::{factor, lines, rate};
use plan::requirement::{Counts, Sets, Term};
use plan::sensitivity::{Change, Saving};

use super::columns::Shown;
use crate::text::wrapped;

/// Candidates up to which each one's doubts and savings are told without being asked for.
const FEW: usize = 3;

/// An answer in several lines; the arithmetic of it only if `explain`.
pub fn text(requirement: &Requirement, answer: &Answer, explain: bool) -> String {
    let shown = Shown::new(requirement, answer);
    let lines = |lines: Vec<String>| {
        lines.iter().map(|line| wrapped(line, 0)).collect::<Vec<_>>().join("\n")
    };
    let mut parts = vec![lines(asked(requirement, answer)), lines(shown.legend())];
    parts.extend(shown.counts());
    parts.extend(shown.arrays());
    if !requirement.is_adaptive() && answer.designs.iter().any(|design| !design.is_described()) {
        parts.push(wrapped(&adaptive_saves(answer), 0));
    }
    let mut text = parts.join("\n\n");
    let all = explain || answer.designs.len() <= FEW;
    for (at, design) in answer.designs.iter().enumerate() {
        let said = said(design, explain, all || at == 0);
        if !said.is_empty() {
            text += &format!("\n\n{}", design.drive);
            text.extend(said.iter().map(|line| format!("\n{}", wrapped(line, 2))));
        }
    }
    match (explain, all) {
        (true, _) => {}
        (false, true) => text += "\n\n--explain shows the arithmetic.",
        (false, false) => {
            text += "\n\n--explain shows the arithmetic, and what to know of each drive; --drive NAME plans with one."
        }
    }
    text
}

/// What there is to say of a design: all of its arithmetic if `explain`, its doubts if `doubts`.
fn said(design: &Design, explain: bool, doubts: bool) -> Vec<String> {
    let mut said = Vec::new();
    if explain {
        said.extend(lines(design));
        said.extend(design.figures.iter().map(figure));
    }
    if design.array.is_none() {
        said.extend(
            design.obstacles.iter().map(|obstacle| format!("no number will do: {obstacle}")),
        );
    }
    said.extend(design.assumed.iter().map(|assumed| format!("assumed: {assumed}")));
    said.extend(design.unknown.iter().map(|unknown| format!("unknown: {unknown}")));
    if let Some(split) = design.sets.as_ref().filter(|_| !explain) {
        said.extend(split.arithmetic.iter().cloned());
    }
    if doubts {
        said.extend(design.doubts.iter().map(|doubt| format!("note: {doubt}")));
    }
    if doubts || design.array.is_none() {
        // One sentence says for all drives what adaptive placement saves.
        let own =
            |saving: &&Saving| saving.change != Change::Adaptive || saving.drives_before.is_none();
        said.extend(design.savings.iter().filter(own).map(saving));
    }
    said
}

/// What is recorded, and how much of it is kept.
fn packets(requirement: &Requirement) -> String {
    match requirement.slice {
        None => requirement.frames.to_string(),
        Some(1) => format!("{}, the first byte of each", requirement.frames),
        Some(bytes) => format!("{}, the first {bytes} bytes of each", requirement.frames),
    }
}

/// What is required, label by label.
pub fn facts(requirement: &Requirement) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Rate".to_owned(), requirement.rate.to_string()),
        ("Of".to_owned(), packets(requirement)),
    ];
    let mut fact = |label: &str, value: String| facts.push((label.to_owned(), value));
    match requirement.term {
        Term::Whole => fact("Keeps", "all that the drives hold".to_owned()),
        Term::Keep(time) => fact("Keeps", time.to_string()),
        Term::Mission { length, .. } => fact("Mission", length.to_string()),
    }
    fact("Placement", requirement.placement.to_string());
    if let Some(years) = requirement.life_years {
        fact("Life", life(requirement, years));
    }
    let more = [
        ("Parity", f64::from(requirement.parity), ""),
        ("Spares", f64::from(requirement.spare), ""),
        ("Margin", requirement.margin_percent, " %"),
    ];
    for (label, value, unit) in more.into_iter().filter(|(_, value, _)| *value > 0.0) {
        fact(label, format!("{}{unit}", factor(value)));
    }
    if requirement.duty.mean() < 1.0 {
        fact(
            "Load",
            format!("{} % of the full rate over the day", factor(requirement.duty.mean() * 100.0)),
        );
    }
    if requirement.readers.bytes_per_s() > 0.0 {
        let of = requirement.readers.random_bytes;
        let of = of.map_or(String::new(), |size| {
            format!(", {} at random", profile::name::block(size.into()))
        });
        fact("Readers", format!("{}{of}", rate(requirement.readers.bytes_per_s())));
    }
    if let Sets::Separate { turn } = requirement.sets {
        fact("NVM Sets", format!("separate, turns of {turn}"));
    }
    facts
}

/// A life as it is counted: `5 years, written at the full rate 100 % of the time`.
fn life(requirement: &Requirement, years: f64) -> String {
    let share = factor(requirement.mean_share() * 100.0);
    let years = match years {
        1.0 => "a year".to_owned(),
        _ => format!("{} years", factor(years)),
    };
    format!("{years}, written at the full rate {share} % of the time")
}

/// What is planned, line by line.
fn asked(requirement: &Requirement, answer: &Answer) -> Vec<String> {
    let counts = match requirement.counts {
        Counts::Wire => "on the wire (with preamble, check sequence and gap)",
        Counts::Payload => "of payload",
    };
    let mut lines = vec![format!("{} {counts}, {}", requirement.rate, packets(requirement))];
    lines.extend(stream(requirement, answer));
    lines.push(term(requirement));
    if let Some(years) = requirement.life_years {
        lines.push(format!("drives that last {}", life(requirement, years)));
    }
    lines
}

/// The rate of packets and of what is written for them; None if no drive can take the stream.
fn stream(requirement: &Requirement, answer: &Answer) -> Option<String> {
    let found = answer.designs.iter().find_map(|design| design.load.zip(design.overhead));
    let (load, overhead) = found?;
    let mut text = format!(
        "{} of packets, {} with pcapng, chunks and indexes",
        rate(load.packet_bytes_per_s),
        rate(load.packet_bytes_per_s * overhead.written_per_byte()),
    );
    if requirement.margin_percent > 0.0 {
        let (planned, margin) =
            (rate(load.offered_bytes_per_s), factor(requirement.margin_percent));
        write!(text, ", {planned} with a margin of {margin} %").ok();
    }
    Some(text)
}

fn term(requirement: &Requirement) -> String {
    let mut text = match requirement.term {
        Term::Whole => "a ring over all that the drives hold".to_owned(),
        Term::Keep(time) => format!("a ring that keeps {time}"),
        Term::Mission { length, per_thousand_days } => {
            let a_day = factor(f64::from(per_thousand_days) / 1000.0);
            format!("missions of {length} that stop, {a_day} a day")
        }
    };
    let duty = requirement.duty.mean();
    if duty < 1.0 {
        write!(text, ", {} % of the rate on average", factor(duty * 100.0)).ok();
    }
    text
}

/// What adaptive placement saves, where plans are made without it.
fn adaptive_saves(answer: &Answer) -> String {
    let saved: Vec<String> = answer
        .designs
        .iter()
        .filter_map(|design| {
            let less = design.stripe_drives?.checked_sub(design.adaptive_drives?)?;
            (less > 0).then(|| format!("{} of {}", plan::explain::drives(less), design.drive))
        })
        .collect();
    if saved.is_empty() {
        return "Adaptive placement would save no drive.".to_owned();
    }
    format!("Adaptive placement, with its buffers, would save {}.", saved.join(", "))
}

fn figure(figure: &plan::candidate::Figure) -> String {
    let value = figure.unit.show(figure.value);
    format!("figure {} = {value}: {} ({})", figure.name, figure.evidence, figure.origin)
}

fn saving(saving: &Saving) -> String {
    let drives = plan::explain::drives(saving.drives_after);
    match saving.drives_before {
        Some(before) => format!("{drives} instead of {before}: {}", saving.words),
        None => format!("possible with {drives}: {}", saving.words),
    }
}
