//! What a fill found, in sentences with numbers.

use base::{ByteSize, Duration, Rate};

use super::super::cause::Cause;
use super::super::compare::Comparison;
use super::super::dips::DipSummary;
use super::{Fill, Finding, Pass, PhaseKind, Threshold};

/// A pass that wrote less than this share of the capacity did not fill the drive.
const FILLED_SHARE: f64 = 0.99;

pub(super) fn sentences(fill: &Fill) -> Vec<String> {
    let mut said = Vec::new();
    if fill.passes[0].total_bytes == 0 {
        return vec!["Nothing was written, so nothing is known.".to_owned()];
    }
    said.push(cache(fill));
    said.extend(shrink(fill));
    said.extend(overwrite(fill));
    said.extend(other_changes(fill));
    for (pass, name) in fill.passes.iter().zip(["The empty drive", "Overwriting"]) {
        said.push(dips(name, &pass.dips.summary));
        said.extend(worst(name, pass));
    }
    let written = fill.passes[0].total_bytes;
    if (written as f64) < FILLED_SHARE * fill.capacity_bytes as f64 {
        said.push(format!(
            "Only {} of {} were written: nothing is known of the rest.",
            ByteSize(written),
            ByteSize(fill.capacity_bytes)
        ));
    }
    said
}

fn cache(fill: &Fill) -> String {
    match &fill.cache {
        Finding::Found(threshold) => format!(
            "The empty drive took {} at {}, then {} at {}: likely {} ({}). {}.",
            ByteSize(threshold.change.bytes),
            Rate(threshold.change.before),
            percent_slower(threshold.change.relative()),
            Rate(threshold.change.after),
            threshold.attribution.cause,
            threshold.attribution.evidence,
            sureness(threshold)
        ),
        Finding::NotSeen { drop_missed_max } => {
            let pass = &fill.passes[0];
            format!(
                "No cliff: the empty drive took {} at {} on average. {}",
                ByteSize(pass.total_bytes),
                Rate(pass.mean_rate),
                missed(*drop_missed_max)
            )
        }
        Finding::NotMeasured => "An empty drive was not written.".to_owned(),
    }
}

fn shrink(fill: &Fill) -> Option<String> {
    // Without a cliff the sentence about it has said all.
    fill.cache.found()?;
    match &fill.shrink {
        Finding::Found(threshold) => Some(format!(
            "From {:.0} % full on it was {} at {}: likely {} ({}). {}.",
            100.0 * threshold.fill,
            percent_slower(threshold.change.relative()),
            Rate(threshold.change.after),
            threshold.attribution.cause,
            threshold.attribution.evidence,
            sureness(threshold)
        )),
        Finding::NotSeen { drop_missed_max } => Some({
            let native = Rate(fill.rate(PhaseKind::Native)?);
            if fell_otherwise(fill) {
                format!(
                    "After that its native rate was {native} on average; it fell further, as said below."
                )
            } else {
                format!(
                    "After that it kept its native rate of {native}: no fill level slowed it further. {}",
                    missed(*drop_missed_max)
                )
            }
        }),
        Finding::NotMeasured => None,
    }
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

fn overwrite(fill: &Fill) -> Option<String> {
    let range = |comparison: &Comparison| {
        comparison.range.map_or_else(String::new, |(low, high)| {
            format!(" ({:.1} to {:.1} % at 95 %)", 100.0 * low, 100.0 * high)
        })
    };
    match &fill.overwrite {
        Finding::Found(comparison) => Some(format!(
            "Overwriting holds {}, {:.0} % of the {} at the end of the empty pass{}.",
            Rate(comparison.second),
            100.0 * comparison.ratio?,
            Rate(comparison.first),
            range(comparison)
        )),
        Finding::NotSeen { drop_missed_max } => Some(format!(
            "Overwriting is no slower than the end of the empty pass: {}. {}",
            Rate(fill.rate(PhaseKind::Overwrite)?),
            missed(*drop_missed_max)
        )),
        Finding::NotMeasured => Some("Overwriting was not measured.".to_owned()),
    }
}

/// Changes that are none of the thresholds.
fn other_changes(fill: &Fill) -> Vec<String> {
    let named = named(fill);
    let mut said = Vec::new();
    for (pass, name) in fill.passes.iter().zip(["the empty pass", "overwriting"]) {
        for (change, why) in pass.segmentation.changes.iter().zip(&pass.attributions) {
            if named.contains(&change.at_ns) {
                continue;
            }
            let cause = match why.cause {
                Cause::NotKnown => "the cause is not known".to_owned(),
                cause => format!("likely {cause}"),
            };
            said.push(format!(
                "In {name}, {} in, the rate went from {} to {} after {}: {cause} ({}).",
                Duration::from_nanos(change.at_ns - pass.start_ns),
                Rate(change.before),
                Rate(change.after),
                ByteSize(change.bytes),
                why.evidence
            ));
        }
    }
    said
}

fn dips(name: &str, summary: &DipSummary) -> String {
    let (Some(lowest), Some(length)) = (summary.lowest_share_median, summary.length_median_ns)
    else {
        return format!(
            "{name}: no dips below {:.0} % of the level; the rate deviates by {:.1} % on average.",
            100.0 * summary.threshold,
            100.0 * summary.deviation_mean
        );
    };
    let rhythm = match summary.rhythm {
        Some(rhythm) if rhythm.is_periodic() => {
            format!(", one every {}", Duration::from_nanos(rhythm.period_ns))
        }
        Some(_) => ", without a period".to_owned(),
        None => String::new(),
    };
    let noun = if summary.count == 1 { "dip" } else { "dips" };
    format!(
        "{name}: {} {noun}, to {:.0} % of the level and {} long in the median{rhythm}; {:.1} % of \
         the time, {} not written.",
        summary.count,
        100.0 * lowest,
        Duration::from_nanos(length),
        100.0 * summary.time_share,
        ByteSize(summary.bytes_missed)
    )
}

fn worst(name: &str, pass: &Pass) -> Option<String> {
    let windows: Vec<String> = pass
        .worst
        .iter()
        .map(|w| format!("{} over {}", Rate(w.rate), Duration::from_nanos(w.length_ns)))
        .collect();
    (!windows.is_empty()).then(|| format!("{name} at its slowest: {}.", windows.join(", ")))
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

fn percent_slower(relative: f64) -> String {
    format!("{:.0} % slower", -100.0 * relative)
}

fn missed(drop_missed_max: Option<f64>) -> String {
    match drop_missed_max {
        Some(share) => {
            format!("A lasting drop of more than {:.1} % would have been seen.", 100.0 * share)
        }
        None => "There was too little to see even a great drop.".to_owned(),
    }
}
