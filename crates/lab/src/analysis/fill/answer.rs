//! What a fill found, as findings.

use base::{ByteSize, Duration};
use profile::name;

use super::super::cause::Cause;
use super::super::changes::Change;
use super::super::compare::Comparison;
use super::super::dips::DipSummary;
use super::{FILLED_SHARE, Fill, Pass, PhaseKind, Sought, Threshold};
use crate::finding::{Finding, FindingKind, Quantity};

/// What findings on the rate past the cache are about, and on the step to overwriting.
const NATIVE: &str = "write.past-cache";
const OVERWRITE: &str = "write.to-overwriting";

pub(super) fn findings(fill: &Fill) -> Vec<Finding> {
    let mut found = Vec::new();
    if fill.passes[0].total_bytes == 0 {
        return match fill.only_overwritten() {
            Some(pass) => only_overwritten(fill, pass),
            None => vec![Finding::remark("Nothing was written, so nothing is known.")],
        };
    }
    found.push(cache(fill));
    found.extend(shrink(fill));
    found.extend(overwrite(fill));
    found.extend(other_changes(fill));
    for (pass, name) in fill.passes.iter().zip(["The empty drive", "Overwriting"]) {
        found.push(dips(name, &pass.dips.summary));
        found.extend(worst(name, pass));
    }
    let written = fill.passes[0].total_bytes;
    if (written as f64) < FILLED_SHARE * fill.capacity_bytes as f64 {
        found.push(Finding::new(
            "write.filled",
            FindingKind::Keeps,
            vec![Quantity::bytes(written), Quantity::bytes(fill.capacity_bytes)],
            "Only {0} of {1} were written: nothing is known of the rest.",
        ));
    }
    found
}

fn only_overwritten(fill: &Fill, pass: &Pass) -> Vec<Finding> {
    let rate = fill.rate(PhaseKind::Overwrite).unwrap_or(pass.mean_rate);
    let rate = vec![Quantity::rate(rate).named(name::WRITE_OVERWRITE)];
    let sentence = "An empty drive was not written. Overwriting wrote {0}.";
    let mut found = vec![
        Finding::new(OVERWRITE, FindingKind::States, rate, sentence),
        dips("Overwriting", &pass.dips.summary),
    ];
    found.extend(worst("Overwriting", pass));
    found
}

fn cache(fill: &Fill) -> Finding {
    match &fill.cache {
        Sought::Found(threshold) => Finding::new(
            "write.cached",
            FindingKind::Falls,
            vec![
                Quantity::rate(threshold.change.before),
                Quantity::rate(threshold.change.after),
                Quantity::bytes(threshold.change.bytes).named(name::WRITE_CACHE),
                slower(&threshold.change),
            ],
            &format!(
                "The empty drive took {{2}} at {{0}}, then {{3}} slower at {{1}}: likely {} ({}). {}.",
                threshold.attribution.cause,
                threshold.attribution.evidence,
                sureness(threshold)
            ),
        ),
        Sought::NotSeen { drop_missed_max } => {
            let pass = &fill.passes[0];
            Finding::new(
                "write",
                FindingKind::Averages,
                vec![
                    Quantity::rate(pass.mean_rate),
                    Quantity::bytes(pass.total_bytes),
                    Quantity::bytes(pass.segmentation.shortest_bytes),
                ],
                &format!(
                    "No cliff: the empty drive took {{1}} at {{0}} on average. {} A cache of less than {{2}} would not show.",
                    missed(*drop_missed_max)
                ),
            )
        }
        Sought::NotMeasured => Finding::remark("An empty drive was not written."),
    }
}

fn shrink(fill: &Fill) -> Option<Finding> {
    // Without a cliff the sentence about it has said all.
    fill.cache.found()?;
    match &fill.shrink {
        Sought::Found(threshold) => Some(shrunk(fill, threshold)),
        Sought::NotSeen { drop_missed_max } => {
            let native = fill.rate(PhaseKind::Native)?;
            let native = vec![Quantity::rate(native).named(name::WRITE_NATIVE)];
            Some(if fell_otherwise(fill) {
                let sentence = "After that its native rate was {0} on average; it fell further, as said below.";
                Finding::new(NATIVE, FindingKind::States, native, sentence)
            } else {
                let sentence = format!(
                    "After that it kept its native rate of {{0}}: no fill level slowed it further. {}",
                    missed(*drop_missed_max)
                );
                Finding::new(NATIVE, FindingKind::Stays, native, &sentence)
            })
        }
        Sought::NotMeasured => None,
    }
}

/// Where the cache shrank, and until where, if the rate comes back.
fn shrunk(fill: &Fill, threshold: &Threshold) -> Finding {
    let change = &threshold.change;
    let segmentation = &fill.passes[0].segmentation;
    let place = segmentation.changes.iter().position(|one| one.at_ns == change.at_ns);
    let back = place.and_then(|place| segmentation.back_after(place));
    let mut quantities = vec![
        Quantity::rate(change.before),
        Quantity::rate(change.after),
        Quantity::bytes(change.bytes).named(name::WRITE_SHRINK),
        slower(change),
        Quantity::percent(100.0 * threshold.fill, 0),
    ];
    let share = |bytes: u64| 100.0 * bytes as f64 / fill.capacity_bytes.max(1) as f64;
    quantities.extend(back.map(|back| Quantity::percent(share(back.bytes), 0)));
    let (kind, places) = match back {
        Some(_) => (FindingKind::Falls, "From {4} to {5} full"),
        None => (FindingKind::FallsForGood, "From {4} full on"),
    };
    let sentence = format!(
        "{places} it was {{3}} slower at {{1}}: likely {} ({}). {}.",
        threshold.attribution.cause,
        threshold.attribution.evidence,
        sureness(threshold)
    );
    Finding::new(NATIVE, kind, quantities, &sentence)
}

/// How much slower a drop is.
fn slower(change: &Change) -> Quantity {
    Quantity::percent(-100.0 * change.relative(), 0)
}

/// Whether the empty pass has a drop that is none of the thresholds.
fn fell_otherwise(fill: &Fill) -> bool {
    let named = named(fill);
    let changes = fill.passes.first().into_iter().flat_map(|pass| &pass.segmentation.changes);
    changes.filter(|change| !named.contains(&change.at_ns)).any(|c| c.after < c.before)
}

/// When the changes began that are thresholds.
fn named(fill: &Fill) -> Vec<u64> {
    [&fill.cache, &fill.shrink]
        .into_iter()
        .filter_map(|finding| finding.found().map(|t| t.change.at_ns))
        .collect()
}

fn overwrite(fill: &Fill) -> Option<Finding> {
    let range = |comparison: &Comparison| {
        comparison.range.map_or_else(String::new, |(low, high)| {
            format!(" ({:.1} to {:.1} % at 95 %)", 100.0 * low, 100.0 * high)
        })
    };
    match &fill.overwrite {
        Sought::Found(comparison) => {
            let (first, second) = (comparison.first, comparison.second);
            let share = Quantity::percent(100.0 * second / first, 0);
            let sentence = format!(
                "Overwriting holds {{1}}, {{2}} of the {{0}} at the end of the empty pass{}.",
                range(comparison)
            );
            let quantities = vec![Quantity::rate(first), Quantity::rate(second), share];
            Some(Finding::new(OVERWRITE, FindingKind::Falls, quantities, &sentence))
        }
        Sought::NotSeen { drop_missed_max } => {
            let rate = fill.rate(PhaseKind::Overwrite)?;
            if drop_missed_max.is_none() {
                let rate = vec![Quantity::rate(rate).named(name::WRITE_OVERWRITE)];
                let sentence =
                    "Overwriting wrote {0}; too little was written to tell whether it is slower.";
                return Some(Finding::new(OVERWRITE, FindingKind::States, rate, sentence));
            }
            let sentence = format!(
                "Overwriting is no slower than the end of the empty pass: {{0}}. {}",
                missed(*drop_missed_max)
            );
            let rate = vec![Quantity::rate(rate).named(name::WRITE_OVERWRITE)];
            Some(Finding::new(OVERWRITE, FindingKind::Stays, rate, &sentence))
        }
        Sought::NotMeasured => Some(Finding::remark("Overwriting was not measured.")),
    }
}

/// Changes that are none of the thresholds.
fn other_changes(fill: &Fill) -> Vec<Finding> {
    let named = named(fill);
    let cliff = fill.cache.found().map(|cliff| cliff.change.at_ns);
    let mut found = Vec::new();
    for (index, (pass, name)) in
        fill.passes.iter().zip(["the empty pass", "overwriting"]).enumerate()
    {
        for (change, why) in pass.segmentation.changes.iter().zip(&pass.attributions) {
            if named.contains(&change.at_ns) {
                continue;
            }
            let cause = match why.cause {
                Cause::NotKnown => "the cause is not known".to_owned(),
                cause => format!("likely {cause}"),
            };
            // What overwriting is compared with is the end of the empty pass: a step within it is another subject.
            let subject = match (index, cliff) {
                (0, Some(cliff)) if change.at_ns > cliff => NATIVE,
                (0, _) => "write.cached",
                _ => "write.overwriting",
            };
            let relation =
                if change.after < change.before { FindingKind::Falls } else { FindingKind::Rises };
            found.push(Finding::new(
                subject,
                relation,
                vec![
                    Quantity::rate(change.before),
                    Quantity::rate(change.after),
                    Quantity::bytes(change.bytes),
                    Quantity::time(change.at_ns - pass.start_ns),
                ],
                &format!(
                    "In {name}, {{3}} in, the rate went from {{0}} to {{1}} after {{2}}: {cause} ({}).",
                    why.evidence
                ),
            ));
        }
    }
    found
}

fn dips(name: &str, summary: &DipSummary) -> Finding {
    let (Some(lowest), Some(length)) = (summary.lowest_share_median, summary.length_median_ns)
    else {
        let quantities = vec![
            Quantity::percent(100.0 * summary.threshold, 0),
            Quantity::percent(100.0 * summary.deviation_mean, 1),
        ];
        let sentence = format!(
            "{name}: no dips below {{0}} of the level; the rate deviates from its level by {{1}} on average."
        );
        return Finding::new("write.dips", FindingKind::States, quantities, &sentence);
    };
    let rhythm = match summary.rhythm {
        Some(rhythm) if rhythm.is_periodic() => {
            format!(", one every {}", Duration::from_nanos(rhythm.period_ns))
        }
        Some(_) => ", without a period".to_owned(),
        None => String::new(),
    };
    let noun = if summary.count == 1 { "dip" } else { "dips" };
    Finding::new(
        "write.dips",
        FindingKind::States,
        vec![
            Quantity::percent(100.0 * lowest, 0),
            Quantity::time(length),
            Quantity::percent(100.0 * summary.time_share, 1),
            Quantity::bytes(summary.bytes_missed),
        ],
        &format!(
            "{name}: {} {noun}, to {{0}} of the level and {{1}} long in the median{rhythm}; {{2}} of the \
             time, {{3}} not written.",
            summary.count,
        ),
    )
}

fn worst(name: &str, pass: &Pass) -> Option<Finding> {
    let rates = pass.worst.iter().map(|window| Quantity::rate(window.rate)).collect();
    let windows: Vec<String> = pass
        .worst
        .iter()
        .enumerate()
        .map(|(n, w)| format!("{{{n}}} over {}", Duration::from_nanos(w.length_ns)))
        .collect();
    let sentence = format!("{name} at its slowest: {}.", windows.join(", "));
    (!windows.is_empty())
        .then(|| Finding::new("write.slowest", FindingKind::States, rates, &sentence))
}

fn sureness(threshold: &Threshold) -> String {
    let (low, high) = threshold.change.bytes_range;
    format!(
        "It lies between {} and {}, with {:.2} % confidence that it is there",
        ByteSize(low),
        ByteSize(high),
        100.0 * threshold.change.confidence
    )
}

fn missed(drop_missed_max: Option<f64>) -> String {
    match drop_missed_max {
        Some(share) => {
            format!(
                "A lasting drop of the rate by more than {:.1} % would have been seen.",
                100.0 * share
            )
        }
        None => "There was too little to see even a great drop.".to_owned(),
    }
}
