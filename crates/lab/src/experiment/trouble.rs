//! Trouble: what went wrong in a step and must be said beside its figures.

use base::Duration;
use base::units::counted;

use crate::finding::Finding;
use crate::lab::Step;

/// Sentences of one answer about trouble, at most; the rest is counted.
const SENTENCES_MAX: usize = 4;

/// Failed commands, drives given up, and the harness as the limit, each as a sentence that begins with the step's name.
pub(super) fn troubles(name: &str, step: &Step) -> Vec<String> {
    let measurement = &step.measurement;
    let mut found = Vec::new();
    let failed = measurement.error_count();
    if failed > 0 {
        let mut kinds: Vec<&str> =
            measurement.results.iter().flat_map(|r| r.errors.keys()).map(String::as_str).collect();
        kinds.sort_unstable();
        kinds.dedup();
        found.push(format!(
            "{name}: {} failed ({}); failed commands are not among the latencies.",
            counted(failed, "command"),
            kinds.join("; ")
        ));
    }
    for (stream, error) in &measurement.given_up {
        found.push(format!("{name}: {stream} gave up on a drive that kept failing ({error})."));
    }
    if let Some(why) = &measurement.harness.limited {
        found.push(format!(
            "{name}: this machine, not the drive, may have been the limit ({why}), so the figure is a lower bound."
        ));
    }
    found
}

/// As many of them as an answer can bear, and how many more there are.
pub(super) fn told(notes: &[String]) -> Vec<String> {
    let mut told: Vec<String> = notes.iter().take(SENTENCES_MAX).cloned().collect();
    if notes.len() > SENTENCES_MAX {
        told.push(format!(
            "And {} more such notes; the result has all.",
            notes.len() - SENTENCES_MAX
        ));
    }
    told
}

/// The same as remarks.
pub(super) fn remarks(notes: &[String]) -> impl Iterator<Item = Finding> {
    told(notes).into_iter().map(Finding::remark)
}

/// A latency in words; "not known" without one.
pub(crate) fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| "not known".to_owned(), |ns| Duration::from_nanos(ns).to_string())
}

/// A number of commands a second with three digits: `312`, `48.2 k`, `1.20 M`.
pub(crate) fn iops(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 999_500.0 => (v / 1e6, " M"),
        v if v >= 999.5 => (v / 1e3, " k"),
        v => return format!("{v:.0}"),
    };
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_a_few_notes_and_counts_the_rest() {
        let notes: Vec<String> = (0..9).map(|n| format!("note {n}")).collect();
        let told = told(&notes);
        assert_eq!(told.len(), SENTENCES_MAX + 1);
        assert_eq!(told[SENTENCES_MAX], "And 5 more such notes; the result has all.");
        assert_eq!(super::told(&notes[..2]), notes[..2]);
    }

    #[test]
    fn commands_a_second_have_three_digits() {
        for (value, text) in
            [(12.4, "12"), (999.6, "1.00 k"), (48_230.0, "48.2 k"), (1.2e6, "1.20 M")]
        {
            assert_eq!(iops(value), text);
        }
        assert_eq!(latency(None), "not known");
        assert_eq!(latency(Some(1_500_000)), "1.50 ms");
    }
}
