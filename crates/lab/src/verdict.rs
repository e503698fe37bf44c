//! A buyer's three questions about a drive that is written continuously: what it sustains, what a recording can rely on, and how fast
//! its reads are meanwhile. Each answer takes its figures from the results of a run's experiments, so it can't contradict them.

use base::Duration;
use load::measurement::LatencySummary;
use profile::name;

use crate::answer::{Answer, Unit};
use crate::experiment::any::ExperimentOutcome;
use crate::experiment::diskmark::{Direction, DiskmarkResult, TESTS};
use crate::experiment::fill::FillResult;
use crate::experiment::mix::binary;
use crate::experiment::neighbours::{NeighboursResult, Relation};
use crate::experiment::trouble::latency;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::run::Run;

/// A short test that is faster than this, against what is sustained, promises more than the drive keeps.
const PROMISES_MORE: f64 = 1.05;
/// Reads that keep this share of what they get alone are not disturbed.
const UNDISTURBED: f64 = 0.95;

/// The three answers, in this order. One that the run didn't measure says which experiment does.
pub fn findings(run: &Run) -> Vec<Finding> {
    let found = Found::of(run);
    vec![sustains(&found), relies(&found), reads(&found)]
}

/// Whether any of the three is known.
pub fn is_known(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.kind != FindingKind::Remark)
}

/// What is needed of a run.
#[derive(Default)]
struct Found<'a> {
    fill: Option<&'a FillResult>,
    neighbours: Option<&'a NeighboursResult>,
    diskmark: Option<&'a DiskmarkResult>,
}

impl<'a> Found<'a> {
    fn of(run: &'a Run) -> Self {
        let mut found = Self::default();
        for outcome in &run.outcomes {
            match outcome {
                ExperimentOutcome::Fill(fill) => found.fill = Some(fill),
                ExperimentOutcome::Neighbours(neighbours) => found.neighbours = Some(neighbours),
                ExperimentOutcome::Diskmark(diskmark) => found.diskmark = Some(diskmark),
                _ => {}
            }
        }
        found
    }
}

fn not_measured(what: &str, experiment: &str) -> Finding {
    Finding::remark(format!("{what} was not measured: `longtake measure {experiment}` tells it."))
}

/// The rate of a fill's figure, as a quantity that is compared with it.
fn rate_of(fill: &FillResult, name: &str) -> Option<Quantity> {
    let figure = fill.figures().into_iter().find(|figure| figure.name == name)?;
    Some(Quantity::rate(figure.value.filter(|rate| *rate > 0.0)?).named(name))
}

/// What it sustains: the rate of overwriting, or of the empty drive past its cache where nothing was overwritten, and never less
/// than a recording can rely on.
fn sustained(fill: &FillResult) -> Option<Quantity> {
    let level = rate_of(fill, name::WRITE_OVERWRITE).or_else(|| rate_of(fill, name::WRITE_NATIVE));
    let least = rate_of(fill, name::WRITE_SUSTAINED);
    match (level, least) {
        (Some(level), Some(least)) if level.value < least.value => Some(least),
        (level, least) => level.or(least),
    }
}

fn sustains(found: &Found<'_>) -> Finding {
    const WHAT: &str = "What it sustains when it is written without end";
    let Some((fill, sustained)) = found.fill.and_then(|fill| Some((fill, sustained(fill)?))) else {
        return not_measured(WHAT, "fill");
    };
    let written = fill.fill.passes.iter().map(|pass| pass.total_bytes).sum();
    let short = found.diskmark.and_then(|table| table.at(TESTS[0].name, Direction::Write));
    match short.filter(|short| short.bytes_per_s > PROMISES_MORE * sustained.value) {
        Some(short) => Finding::new(
            "write.without-end",
            FindingKind::Falls,
            vec![short.rate(), sustained, Quantity::bytes(written)],
            &format!(
                "Written without end, it sustains {{1}} (measured over {{2}}), not the {{0}} of the short test {}.",
                TESTS[0].title
            ),
        ),
        None => Finding::new(
            "write.without-end",
            FindingKind::States,
            vec![sustained, Quantity::bytes(written)],
            "Written without end, it sustains {0} (measured over {1}).",
        ),
    }
}

fn relies(found: &Found<'_>) -> Finding {
    let Some(said) = found.fill.and_then(FillResult::relies) else {
        return not_measured("What a recording can rely on", "fill");
    };
    let [rate, rest @ ..] = said.quantities.as_slice() else { return said };
    let Some(slowest) = found.fill.and_then(|fill| fill.sustained) else { return said };
    let buffer = match rest {
        [_, buffer] => {
            format!(", with buffers of at least {buffer} for its slowest second")
        }
        _ => String::new(),
    };
    let length = Duration::from_nanos(slowest.length_ns);
    let sentence =
        format!("For recording, rely on {rate}: its slowest {length} wrote as much{buffer}.");
    // The same claim as the fill's own, so that both are compared.
    Finding { sentence, ..said }
}

fn reads(found: &Found<'_>) -> Finding {
    const WHAT: &str = "What its reads do meanwhile";
    let pair = found.neighbours.and_then(|neighbours| {
        let beside = neighbours.beside.iter().find(|b| b.relation == Relation::Same)?;
        let alone = neighbours.alone.first().filter(|alone| alone.iops > 0.0)?;
        let with = beside.points.iter().find(|point| point.depth == alone.depth)?;
        Some((neighbours, alone, with))
    });
    let Some((neighbours, alone, with)) = pair else { return not_measured(WHAT, "neighbours") };
    let iops = |who: &str, value| {
        let name = format!("neighbours.{who}.d{}.iops", alone.depth);
        Quantity::of(&name, value, Unit::CommandsPerSecond)
    };
    let quantities = vec![
        iops(Relation::Same.name(), with.iops),
        iops("alone", alone.iops),
        Quantity::percent(100.0 * with.iops / alone.iops, 0),
    ];
    let p99 = |summary: &LatencySummary| summary.percentile(99.0);
    let latencies = p99(&with.response).zip(p99(&alone.response)).map(|(with, alone)| {
        let (with, alone) = (latency(Some(with)), latency(Some(alone)));
        format!("; the p99 of read latency is {with} instead of {alone}")
    });
    let verdict = if with.iops >= UNDISTURBED * alone.iops { "keep" } else { "fall to" };
    let sentence = format!(
        "Meanwhile its random reads of {} at depth {} {verdict} {{2}} of their rate alone ({{0}} instead of {{1}} reads a second){}.",
        binary(neighbours.read_block_bytes),
        alone.depth,
        latencies.unwrap_or_default()
    );
    Finding::new("reads.meanwhile", FindingKind::Share, quantities, &sentence)
}

#[cfg(test)]
mod tests {
    use base::{Command, DeviceError, Duration, Instant, Operation, Rate};

    use super::*;
    use crate::experiment::testing::{geometry, moving, run_in, scope};
    use crate::experiment::{Experiment, Scope};
    use crate::finding::contradictions;

    /// Reads and writes after each other, 20 us at least; writes at 2 GB/s until so many bytes are written since the last trim, then
    /// at 200 MB/s.
    fn cached(cache: u64) -> impl FnMut(&Command, Instant) -> Result<Instant, DeviceError> {
        let (mut busy, mut written) = (Instant::START, 0);
        move |command, now| {
            match command.operation {
                Operation::Trim { .. } => written = 0,
                Operation::Write { length, .. } => written += u64::from(length),
                _ => {}
            }
            let write = if written < cache { Rate(2e9) } else { Rate(200e6) };
            let (rate, length) = moving(command, Rate(2e9), write);
            busy = busy.max(now) + rate.time_for(length).max(Duration::from_micros(20));
            Ok(busy)
        }
    }

    fn measured(names: &[&str], cache: u64) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let (run, _) = run_in(folder.path(), vec![geometry()], Box::new(cached(cache)), |lab| {
            let mut run = Run::begin("1", Vec::new());
            for name in names {
                let mut experiment = Experiment::named(name).unwrap();
                let region = if *name == "diskmark" { Some(1 << 20) } else { None };
                *experiment.scope() = Scope { region, ..scope(40) };
                if let Experiment::Fill(fill) = &mut experiment {
                    fill.rests.clear();
                }
                run.add(experiment.run(lab)?);
            }
            Ok(run)
        });
        run.unwrap()
    }

    #[test]
    fn a_cache_that_fills_makes_the_short_test_promise_more_than_is_sustained() {
        // What the cache takes is more than all that the short tests write, and a third of the drive.
        let run = measured(&["fill", "neighbours", "diskmark"], 24 << 20);
        let findings = run.verdict();
        assert_eq!(contradictions(&findings, &run.figures()), []);
        assert_eq!(run.contradictions(), []);
        assert!(is_known(&findings));
        let said = run.verdict_sentences();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("Written without end, it sustains 200 MB/s"), "{said:?}");
        assert!(said[0].contains("not the "), "{said:?}");
        assert!(said[1].starts_with("For recording, rely on "), "{said:?}");
        let relied = run.figures().into_iter().find(|f| f.name == name::WRITE_SUSTAINED).unwrap();
        assert_eq!(findings[1].quantities[0].value, relied.value.unwrap());
        assert!(said[2].starts_with("Meanwhile its random reads of 4 KiB at depth 1"), "{said:?}");
        // Each names what other experiments measured, so a figure that is changed is noticed.
        let kinds: Vec<FindingKind> = findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::Falls, FindingKind::Relies, FindingKind::Share]);
        for finding in &findings {
            assert!(finding.quantities.iter().any(|q| !q.figure.is_empty()), "{finding:?}");
        }
    }

    #[test]
    fn an_even_drive_sustains_what_the_short_test_shows() {
        let run = measured(&["fill", "diskmark"], 0);
        let said = run.verdict_sentences();
        assert!(said[0].starts_with("Written without end, it sustains 200 MB/s"), "{said:?}");
        assert!(!said[0].contains("not the"), "{said:?}");
        assert_eq!(
            said[2],
            "What its reads do meanwhile was not measured: `longtake measure neighbours` tells it."
        );
        assert_eq!(run.contradictions(), []);
    }

    #[test]
    fn what_was_not_measured_is_said_with_what_measures_it() {
        let run = Run::begin("1", Vec::new());
        assert!(!is_known(&run.verdict()));
        let said = run.verdict_sentences();
        assert_eq!(said.len(), 3);
        assert!(said[0].contains("`longtake measure fill` tells it"), "{said:?}");
        assert!(said[1].contains("`longtake measure fill` tells it"), "{said:?}");
        assert!(said[2].contains("`longtake measure neighbours` tells it"), "{said:?}");
    }
}
