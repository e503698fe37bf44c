//! What a fill says: sentences, and figures by the names that profiles know them by.

use base::{ByteSize, Duration};
use profile::name;

use super::{Emptied, FillResult};
use crate::analysis::Sought;
use crate::analysis::dips::{self, Dip};
use crate::analysis::fill::{Phase, PhaseKind, Threshold};
use crate::analysis::recovery::RecoveryRow;
use crate::answer::{Answer, Figure, Unit};
use crate::experiment::trouble::told;
use crate::finding::{DIP_SHARE, Finding, FindingKind, Quantity};

/// A pass that reached less than this share of what it was to write ended early.
const WHOLE_SHARE: f64 = 0.999;
/// Drives of a bank that differ by more than this share did not fill evenly.
const EVEN_SHARE: f64 = 0.01;
const MINUTE_NS: u64 = 60_000_000_000;

impl Answer for FillResult {
    fn question(&self) -> &'static str {
        "How fast do the drives write from empty to full and over stale data, where does the rate change, and what do \
         rests give back?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut found = vec![Finding::remark(self.beginning())];
        found.extend(self.fill.findings());
        found.extend(self.limits());
        found.extend(self.relies());
        found.extend(self.held_findings());
        found.extend(self.rest_findings());
        found.extend(told(&self.notes).into_iter().map(Finding::remark));
        found
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![
            self.phase(name::WRITE_FAST, "writing into the cache", PhaseKind::Fast),
            threshold(name::WRITE_CACHE, "cache of the empty drive", &self.fill.cache),
            self.phase(name::WRITE_NATIVE, "writing past the cache", PhaseKind::Native),
            threshold(name::WRITE_SHRINK, "written when the cache shrinks", &self.fill.shrink),
            self.phase(name::WRITE_SHRUNK, "writing with the cache shrunk", PhaseKind::Shrunk),
            Figure::new(
                name::WRITE_MEAN,
                "from empty to full",
                self.fill.whole_mean(),
                Unit::BytesPerSecond,
            ),
            self.phase(name::WRITE_OVERWRITE, "overwriting", PhaseKind::Overwrite),
        ];
        let windows = [
            (name::WRITE_SUSTAINED, "what a long recording can rely on", &self.sustained),
            (name::WRITE_WORST_SECOND, "the slowest second", &self.worst_second),
        ];
        for (name, label, window) in windows {
            let rate = window.as_ref().map(|window| window.rate);
            let note = window.as_ref().map_or_else(
                || "no pass lasted long enough".to_owned(),
                |window| window_words(window.length_ns),
            );
            figures.push(Figure::new(name, label, rate, Unit::BytesPerSecond).noted(note));
        }
        figures.extend(self.dip_figures());
        figures.extend(self.held_figures());
        figures.extend(self.recovery_figures());
        figures
    }
}

impl FillResult {
    fn beginning(&self) -> String {
        let drives = match self.drives.len() {
            1 => self.drives[0].clone(),
            n => format!("{n} drives together"),
        };
        match &self.emptied {
            Emptied::Trimmed => {
                format!("{drives}: the region was trimmed before, so it was empty.")
            }
            Emptied::AsFound(_) if self.fill.only_overwritten().is_some() => {
                format!("{drives}: it was written over from the start.")
            }
            Emptied::AsFound(why) => {
                format!("{drives}: \"empty\" means as it was found, because {why}.")
            }
        }
    }

    /// What a recording can rely on, and the buffer that it takes to ride out its slowest second where that is slower.
    pub fn relies(&self) -> Option<Finding> {
        let sustained = self.sustained?;
        let mut quantities = vec![Quantity::rate(sustained.rate).named(name::WRITE_SUSTAINED)];
        let mut sentence = format!(
            "A recording can rely on {{0}}: that is {}.",
            window_words(sustained.length_ns)
        );
        let second = self.worst_second.filter(|second| second.length_ns < sustained.length_ns);
        if let Some(second) = second {
            quantities.push(Quantity::rate(second.rate).named(name::WRITE_WORST_SECOND));
            if second.rate < DIP_SHARE * sustained.rate {
                let missed = (sustained.rate - second.rate) * second.length_ns as f64 / 1e9;
                quantities.push(Quantity::bytes(missed as u64));
                sentence += " Its slowest second wrote {1}: a recording at that rate needs buffers for at least {2} to ride it out.";
            }
        }
        Some(Finding::new("write", FindingKind::Relies, quantities, &sentence))
    }

    /// What was not seen.
    fn limits(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let keeps = |part: u64, all: u64, sentence: &str| {
            let quantities = vec![Quantity::bytes(part), Quantity::bytes(all)];
            Finding::new("write.region", FindingKind::Keeps, quantities, sentence)
        };
        if let Some(time) = self.cut_to_ns.map(Duration::from_nanos) {
            let sentence = format!(
                "Each pass was cut to {{0}} of {{1}} so as not to take longer than {time}: the rest of the drive was not \
                 seen, and neither was any change of rate that comes later."
            );
            found.push(keeps(self.region_bytes, self.fill.capacity_bytes, &sentence));
        }
        let passes = self.fill.passes.iter().zip(["empty pass", "pass over it"]);
        let aims = [Some(self.region_bytes), self.fill.passes.first().map(|pass| pass.total_bytes)];
        for ((pass, name), aim) in passes.zip(aims) {
            if let Some(aim) = aim
                && pass.total_bytes > 0
                && (pass.total_bytes as f64) < WHOLE_SHARE * aim as f64
            {
                let sentence = format!(
                    "The {name} ended after {{0}} of {{1}}: what comes later was not seen."
                );
                found.push(keeps(pass.total_bytes, aim, &sentence));
            }
        }
        let (least, most) = (self.shares.iter().min(), self.shares.iter().max());
        if let (Some(&least), Some(&most)) = (least, most)
            && (most - least) as f64 > EVEN_SHARE * most as f64
        {
            let sentence = "The drives did not fill evenly: the slowest took {0} while the fastest took {1}, part of that \
                            over its own data.";
            found.push(keeps(least, most, sentence));
        }
        found
    }

    fn rest_findings(&self) -> Vec<Finding> {
        let Some(recovery) = &self.rests.recovery else {
            let why = self.rests.left_out.as_deref().unwrap_or("the bursts were too short");
            return vec![Finding::remark(format!(
                "Nothing is known of what rests give back: {why}."
            ))];
        };
        let mut quantities = vec![Quantity::rate(recovery.fast)];
        let mut rows = Vec::new();
        for row in &recovery.rows {
            let least = if row.at_least { "at least " } else { "" };
            let rest = Duration::from_nanos(row.rest_ns);
            rows.push(format!("{rest} gave back {least}{{{}}}", quantities.len()));
            quantities.push(Quantity::bytes(row.fast_bytes).named(&row_name(row)));
        }
        let sentence = format!("Rests: {} at {{0}}.", rows.join(", "));
        let mut found = vec![Finding::new("recovery", FindingKind::States, quantities, &sentence)];
        if let Some(rate) = recovery.bytes_a_second.filter(|rate| *rate > 0.0) {
            // It is a rate, and said as the bytes of a second.
            let sentence =
                format!("A second of rest gives back {} of cache.", ByteSize(rate as u64));
            let rate = Quantity::rate(rate).named(name::RECOVERY_RATE);
            found.push(Finding::new("recovery", FindingKind::States, vec![rate], &sentence));
        }
        if let Some(full) = recovery.full_after_ns {
            let full = vec![Quantity::time(full).named(name::RECOVERY_FULL_AFTER)];
            let sentence = "After {0} there was nothing more to gain.";
            found.push(Finding::new("recovery", FindingKind::States, full, sentence));
        }
        found
    }

    fn phase(&self, name: &str, label: &str, kind: PhaseKind) -> Figure {
        let bytes = |phase: &&Phase| phase.segment.bytes.1 - phase.segment.bytes.0;
        let phase = self.fill.phases.iter().filter(|phase| phase.kind == kind).max_by_key(bytes);
        let figure =
            Figure::new(name, label, phase.map(|phase| phase.segment.mean), Unit::BytesPerSecond);
        match phase {
            Some(phase) => Figure { range: phase.mean_range, ..figure },
            None => figure.noted(match kind {
                PhaseKind::Fast => "no cache was seen: it writes at its native rate from the start",
                _ => "it was not reached",
            }),
        }
    }

    fn dip_figures(&self) -> Vec<Figure> {
        let all = || self.fill.passes.iter().flat_map(|pass| &pass.dips.dips);
        let median = |value: fn(&Dip) -> f64| {
            let mut values: Vec<f64> = all().map(value).collect();
            values.sort_unstable_by(f64::total_cmp);
            (!values.is_empty()).then(|| values[values.len() / 2])
        };
        let most = self.fill.passes.iter().max_by_key(|pass| pass.dips.summary.count);
        let rhythm = most.and_then(|pass| pass.dips.summary.rhythm).filter(|r| r.is_periodic());
        let depth = median(|dip| 100.0 * (1.0 - dip.lowest_share));
        let length = median(|dip| dip.length_ns as f64);
        let period = rhythm.map(|rhythm| rhythm.period_ns as f64);
        let count = all().count() as f64;
        let cost = dips::cost(&self.fill.passes);
        vec![
            Figure::new(name::DIP_COUNT, "dips in all passes", count, Unit::Count),
            Figure::new(name::DIP_DEPTH, "depth of a typical dip", depth, Unit::Percent),
            Figure::new(name::DIP_LENGTH, "length of a typical dip", length, Unit::Nanoseconds),
            Figure::new(name::DIP_PERIOD, "from dip to dip", period, Unit::Nanoseconds)
                .noted(if period.is_none() { "no period was seen" } else { "" }),
            Figure::new(
                name::DIP_LOST,
                "time that dips close together cost",
                cost.map(|cost| cost.together_s * 1e9),
                Unit::Nanoseconds,
            ),
            Figure::new(
                name::DIP_SHARE,
                "time that dips cost over a pass",
                cost.map(|cost| cost.share * 100.0),
                Unit::Percent,
            ),
        ]
    }

    fn recovery_figures(&self) -> Vec<Figure> {
        let recovery = self.rests.recovery.as_ref();
        let why = self.rests.left_out.clone().unwrap_or_default();
        let rate = recovery.and_then(|r| r.bytes_a_second);
        let full = recovery.and_then(|r| r.full_after_ns).map(|ns| ns as f64);
        let mut figures = vec![
            Figure::new(
                name::RECOVERY_RATE,
                "cache that a second of rest gives back",
                rate,
                Unit::BytesPerSecond,
            )
            .noted(why.clone()),
            Figure::new(
                name::RECOVERY_FULL_AFTER,
                "rest that gives back all",
                full,
                Unit::Nanoseconds,
            )
            .noted(why),
        ];
        for row in recovery.into_iter().flat_map(|recovery| &recovery.rows) {
            let name = row_name(row);
            let value = row.fast_bytes as f64;
            let figure = Figure::new(&name, "cache given back by this rest", value, Unit::Bytes);
            figures.push(Figure {
                range: (!row.at_least).then_some((
                    row.fast_bytes.saturating_sub(row.resolution_bytes) as f64,
                    (row.fast_bytes + row.resolution_bytes) as f64,
                )),
                note: if row.at_least { "at least".to_owned() } else { String::new() },
                ..figure
            });
        }
        figures
    }
}

/// The figure of what a rest gave back. Whole seconds, or thousandths of short ones: what a clock adds is no part of a name.
fn row_name(row: &RecoveryRow) -> String {
    let ms = row.rest_ns / 1_000_000;
    let ms = if ms >= 1_000 { ms / 1_000 * 1_000 } else { ms };
    name::recovery_after(Duration::from_millis(ms))
}

fn threshold(name: &str, label: &str, finding: &Sought<Threshold>) -> Figure {
    match finding {
        Sought::Found(found) => Figure {
            range: Some((found.change.bytes_range.0 as f64, found.change.bytes_range.1 as f64)),
            confidence: Some(found.change.confidence),
            ..Figure::new(name, label, found.change.bytes as f64, Unit::Bytes)
        },
        Sought::NotSeen { drop_missed_max: Some(missed) } => {
            Figure::new(name, label, None, Unit::Bytes).noted(format!(
                "not seen; a drop of less than {:.0} % could have been missed",
                100.0 * missed
            ))
        }
        Sought::NotSeen { drop_missed_max: None } => {
            Figure::new(name, label, None, Unit::Bytes).noted("too little was written to see one")
        }
        Sought::NotMeasured => Figure::new(name, label, None, Unit::Bytes).noted("not measured"),
    }
}

fn window_words(length_ns: u64) -> String {
    if length_ns == MINUTE_NS {
        "the slowest minute".to_owned()
    } else if length_ns == MINUTE_NS / 60 {
        "the slowest second".to_owned()
    } else {
        let length = Duration::from_nanos(length_ns);
        format!("the slowest {length} (a tenth of the pass, as none lasted a minute)")
    }
}
