//! The summary: the figures that decide whether drives suit, every question with its answer in short, and what was left out.

use lab::Figure;
use lab::run::Run;
use profile::name;

use super::figures;
use crate::document::Section;

/// The figures of the summary, in order.
const KEY: [&str; 23] = [
    name::WRITE_SUSTAINED,
    name::WRITE_FAST,
    name::WRITE_CACHE,
    name::WRITE_NATIVE,
    name::WRITE_SHRINK,
    name::WRITE_OVERWRITE,
    name::WRITE_WORST_SECOND,
    name::DIP_COUNT,
    name::DIP_DEPTH,
    name::RECOVERY_FULL_AFTER,
    name::READ_SEQUENTIAL,
    "steady.write.rate",
    "steady.write.deviation",
    "steady.read.rate",
    "steady.read.deviation",
    "mix.4096.r100.iops",
    "mix.4096.r0.iops",
    "viewers.alone",
    "viewers.ingesting",
    "snia.write.iops",
    "snia.round",
    "link.ceiling",
    "link.read_share",
];

/// What figures are called among those of other experiments, where their own label says too little.
const LABELS: [(&str, &str); 4] = [
    ("steady.write.rate", "one stream of writes: average speed"),
    ("steady.write.deviation", "one stream of writes: mean deviation"),
    ("steady.read.rate", "one stream of reads: average speed"),
    ("steady.read.deviation", "one stream of reads: mean deviation"),
];

/// Runs that differ by no more than this share are called alike: a run that is repeated differs by as much.
const ALIKE: f64 = 0.03;

/// What the summary's first sentence tells of each run, if it is known.
const HEADLINES: [(&str, &str); 6] = [
    ("sustained writing", name::WRITE_SUSTAINED),
    ("cache of the empty drives", name::WRITE_CACHE),
    ("sequential reading", name::READ_SEQUENTIAL),
    ("random reads of 4 KiB", "mix.4096.r100.iops"),
    ("viewers", "viewers.alone"),
    ("steady random writes", "snia.write.iops"),
];

/// The summary of runs by their labels.
pub(super) fn section(runs: &[(&str, &Run)]) -> Section {
    let all: Vec<(&str, Vec<Figure>)> =
        runs.iter().map(|(label, run)| (*label, key(run))).collect();
    let labelled = |label: &str, text: String| {
        if runs.len() < 2 { text } else { format!("{label}: {text}") }
    };
    let mut said: Vec<String> =
        all.iter().map(|(label, figures)| labelled(label, headline(figures))).collect();
    if let Some((first, others)) = all.split_first() {
        said.extend(others.iter().map(|other| compared(first, other)));
    }
    let mut section = Section::new("summary", "Summary", said.join(" "));
    for (label, run) in runs {
        let answers = lab::verdict::findings(run);
        if lab::verdict::is_known(&answers) {
            let sentences: Vec<String> =
                answers.into_iter().map(|answer| answer.sentence).collect();
            section.paragraphs.push(labelled(label, sentences.join(" ")));
        }
    }
    for (label, run) in runs {
        for (experiment, why) in &run.left_out {
            let end = if why.ends_with('.') { "" } else { "." };
            let text = format!("{experiment} was not done: {why}{end}");
            section.warnings.push(labelled(label, text));
        }
    }
    section.tables.extend(figures::table("Key figures", &all));
    section
}

fn headline(figures: &[Figure]) -> String {
    let part = |(what, name): (&str, &str)| {
        let figure = figures.iter().find(|figure| figure.name == name)?;
        // Over how long it was sustained is part of that figure.
        let over = match figure.note.as_str() {
            note if name == name::WRITE_SUSTAINED && !note.is_empty() => format!(" ({note})"),
            _ => String::new(),
        };
        Some(format!("{what} {}{over}", figures::words(figure)?))
    };
    let parts: Vec<String> = HEADLINES.into_iter().filter_map(part).collect();
    match parts.join(", ") {
        said if said.is_empty() => "None of the key figures is known.".to_owned(),
        said => format!("{}.", capital(&said)),
    }
}

/// In how many of the headline's figures a run does better than the first, and by how much.
fn compared(first: &(&str, Vec<Figure>), other: &(&str, Vec<Figure>)) -> String {
    let value = |figures: &[Figure], name: &str| {
        figures.iter().find(|figure| figure.name == name)?.value.filter(|value| *value > 0.0)
    };
    let ratios: Vec<(&str, f64)> = HEADLINES
        .into_iter()
        .filter_map(|(what, name)| Some((what, value(&other.1, name)? / value(&first.1, name)?)))
        .collect();
    let (first, other) = (first.0, other.0);
    let part = |of: &dyn Fn(f64) -> bool| -> Vec<String> {
        let kept = ratios.iter().filter(|(_, ratio)| of(*ratio));
        kept.map(|(what, ratio)| format!("{what} ({ratio:.2} x)")).collect()
    };
    let better = part(&|ratio| ratio > 1.0 + ALIKE);
    let worse = part(&|ratio| ratio < 1.0 - ALIKE);
    let list = |what: &str, parts: Vec<String>| match parts.is_empty() {
        true => None,
        false => Some(format!("{what} in {}", parts.join(", "))),
    };
    let said: Vec<String> =
        [list("better", better), list("worse", worse)].into_iter().flatten().collect();
    match (ratios.is_empty(), said.is_empty()) {
        (true, _) => format!("{other} and {first} have none of these figures in common."),
        (_, true) => format!(
            "{other} and {first} are alike in all {} of these that both have.",
            ratios.len()
        ),
        _ => format!("Against {first}, {other} is {}.", said.join(", and ")),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The key figures that a run has; where two experiments tell the same one, the first that knows it counts.
fn key(run: &Run) -> Vec<Figure> {
    let all: Vec<Figure> =
        run.outcomes.iter().flat_map(|outcome| outcome.answer().figures()).collect();
    let best = |name: &&str| {
        let of_name = || all.iter().filter(|figure| figure.name == **name);
        let figure = of_name().find(|figure| figure.value.is_some()).or(of_name().next())?.clone();
        let label = LABELS.iter().find(|(of, _)| of == name).map(|(_, label)| (*label).to_owned());
        Some(Figure { label: label.unwrap_or(figure.label), ..figure })
    };
    KEY.iter().filter_map(best).collect()
}
