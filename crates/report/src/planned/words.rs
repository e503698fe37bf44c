//! A plan in words: what is planned, a table of candidates, and what there is to say of each.

use std::fmt::Write;

use base::units::grouped;
use plan::Requirement;
use plan::answer::{Answer, Array, Design};
use plan::explain::{bytes, factor, lines, rate, seconds};
use plan::limits::Limit;
use plan::requirement::{Counts, Sets, Term};
use profile::Trust;

use crate::text;

/// Candidates up to which each one's doubts and savings are told without being asked for.
const FEW: usize = 3;

/// An answer in several lines; the arithmetic of it only if `explain`.
pub fn text(requirement: &Requirement, answer: &Answer, explain: bool) -> String {
    let mut text = asked(requirement, answer);
    text += "\n\n";
    text += &text::trimmed(&table(requirement, answer));
    let all = explain || answer.designs.len() <= FEW;
    for (at, design) in answer.designs.iter().enumerate() {
        let said = said(design, explain, all || at == 0);
        if !said.is_empty() {
            text += &format!("\n\n{}", design.drive);
            text.extend(said.iter().map(|line| format!("\n  {line}")));
        }
    }
    match (explain, all) {
        (true, _) => {}
        (false, true) => text += "\n\n--explain shows the arithmetic.",
        (false, false) => {
            text += "\n\n--explain shows the arithmetic, and what to know of each drive; --drive NAME plans with one.";
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
    if let Some(split) = design.sets.as_ref().filter(|_| !explain) {
        said.extend(split.arithmetic.iter().cloned());
    }
    if doubts {
        said.extend(design.doubts.iter().map(|doubt| format!("note: {doubt}")));
    }
    if doubts || design.array.is_none() {
        said.extend(design.savings.iter().map(saving));
    }
    said
}

/// What is required, label by label.
pub fn facts(requirement: &Requirement) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Rate".to_owned(), requirement.rate.to_string()),
        ("Of".to_owned(), requirement.frames.to_string()),
    ];
    let mut fact = |label: &str, value: String| facts.push((label.to_owned(), value));
    match requirement.term {
        Term::Keep(time) => fact("Keeps", time.to_string()),
        Term::Mission { length, .. } => fact("Mission", length.to_string()),
    }
    fact("Placement", requirement.placement.to_string());
    fact("Life", format!("{} years", factor(requirement.life_years)));
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

/// What is planned, in words.
fn asked(requirement: &Requirement, answer: &Answer) -> String {
    let counts = match requirement.counts {
        Counts::Wire => "on the wire (with preamble, check sequence and gap)",
        Counts::Payload => "of payload",
    };
    let mut text = format!("{} {counts}, {}", requirement.rate, requirement.frames);
    if let Some(design) = answer.designs.iter().find(|design| design.load.is_some())
        && let (Some(load), Some(overhead)) = (design.load, design.overhead)
    {
        write!(
            text,
            "\n{} of packets, {} with pcapng, chunks and indexes{}",
            rate(load.packet_bytes_per_s),
            rate(load.packet_bytes_per_s * overhead.written_per_byte()),
            if requirement.margin_percent > 0.0 {
                format!(
                    ", {} with a margin of {} %",
                    rate(load.offered_bytes_per_s),
                    factor(requirement.margin_percent)
                )
            } else {
                String::new()
            },
        )
        .ok();
    }
    let term = match requirement.term {
        Term::Keep(time) => format!("a ring that keeps {time}"),
        Term::Mission { length, per_thousand_days } => {
            format!(
                "missions of {length} that stop, {} a day",
                factor(f64::from(per_thousand_days) / 1000.0)
            )
        }
    };
    let duty = requirement.duty.mean();
    let load = if duty < 1.0 {
        format!(", {} % of the rate on average", factor(duty * 100.0))
    } else {
        String::new()
    };
    write!(
        text,
        "\n{term}{load}; {} placement, drives that last {} y",
        requirement.placement,
        factor(requirement.life_years)
    )
    .ok();
    text
}

fn table(requirement: &Requirement, answer: &Answer) -> text::Table {
    let told = |limit: &Limit| match limit {
        Limit::Uplink => requirement.host.uplink.is_some(),
        Limit::Memory => requirement.host.memory.is_some(),
        _ => true,
    };
    let limits: Vec<Limit> =
        [Limit::Capacity, Limit::Endurance, Limit::Link, Limit::Uplink, Limit::Memory]
            .into_iter()
            .filter(told)
            .collect();
    let priced = answer.designs.iter().any(|d| d.array.as_ref().is_some_and(|a| a.cost.is_some()));
    let mut heads: Vec<String> = vec!["drive".into(), "drives".into(), "binds".into()];
    // The rate is what placement makes a difference to: the one asked for comes first.
    let adaptive = requirement.is_adaptive();
    let (this, other) = if adaptive { ("adaptive", "striped") } else { ("striped", "adaptive") };
    heads.extend([format!("rate {this}"), format!("({other})")]);
    heads.extend(limits.iter().map(ToString::to_string));
    let keeps = if requirement.wraps() { "keeps" } else { "records" };
    heads.extend(
        ["slowest phase", "headroom", keeps, "life", "buffers", "evidence"].map(String::from),
    );
    if priced {
        heads.push("cost".into());
    }
    let names: Vec<&str> = heads.iter().map(String::as_str).collect();
    let right: Vec<usize> = (0..heads.len())
        .filter(|at| !["drive", "binds", "slowest phase", "evidence"].contains(&names[*at]))
        .collect();
    let mut table = text::table(&names, &right);
    for design in &answer.designs {
        table.add_row(row(design, &limits, adaptive, priced));
    }
    table
}

fn row(design: &Design, limits: &[Limit], adaptive: bool, priced: bool) -> Vec<String> {
    let dash = || "-".to_owned();
    let number = |n: Option<u32>| n.map_or_else(dash, |n| grouped(n.into()));
    let of = |tell: &dyn Fn(&Array) -> String| design.array.as_ref().map_or_else(dash, tell);
    let mut cells = vec![
        design.drive.clone(),
        number(design.array.as_ref().map(|array| array.drives)),
        of(&|array| array.binds.to_string()),
    ];
    let (one, other) = (design.adaptive_rate_drives, design.stripe_rate_drives);
    let (this, other) = if adaptive { (one, other) } else { (other, one) };
    cells.extend([number(this), other.map_or_else(String::new, |n| format!("({n})"))]);
    cells.extend(limits.iter().map(|limit| {
        number(design.needs.iter().find(|need| need.limit == *limit).and_then(|need| need.drives))
    }));
    cells.extend([
        of(&|array| array.slowest.to_string()),
        of(&|array| format!("{} %", factor(array.headroom_percent))),
        of(&|array| seconds(array.retention_s)),
        of(&|array| array.life_years.map_or_else(dash, |years| format!("{} y", factor(years)))),
        of(&|array| bytes(array.buffer_bytes)),
        design.evidence.map_or_else(dash, |evidence: Trust| evidence.to_string()),
    ]);
    if priced {
        cells.push(of(&|array| array.cost.map_or_else(dash, |cost| format!("{cost:.0}"))));
    }
    cells
}

fn figure(figure: &plan::candidate::Figure) -> String {
    let value = figure.unit.show(figure.value);
    format!("figure {} = {value}: {} ({})", figure.name, figure.evidence, figure.origin)
}

fn saving(saving: &plan::sensitivity::Saving) -> String {
    let drives = plan::explain::drives(saving.drives_after);
    match saving.drives_before {
        Some(before) => format!("{drives} instead of {before}: {}", saving.words),
        None => format!("possible with {drives}: {}", saving.words),
    }
}
