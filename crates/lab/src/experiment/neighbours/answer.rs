//! What neighbours did to reads, in words and figures.

use load::measurement::{LatencySummary, PERCENTILES};

use super::{Beside, HIGHEST, NeighboursResult, Overwritten, ReadPoint, samples_for};
use crate::answer::{Answer, Figure, Unit};
use crate::experiment::trouble::{iops, latency, remarks};
use crate::finding::{Finding, FindingKind, Quantity};

/// A read that is this much slower than alone is disturbed; less is noise.
const DISTURBED: f64 = 1.1;

/// What a writer has left beside readers: the claim, and a part of a sentence on {0}, the least, and {1}, what it writes alone.
pub(super) fn writer_left(least: f64, alone: f64) -> (FindingKind, &'static str) {
    if least <= alone {
        (FindingKind::Keeps, "the writer keeps {0} of the {1} that it writes alone, at least")
    } else if least <= alone * (1.0 + SAME) {
        (FindingKind::States, "the writer is not slowed: {0} at least, {1} alone")
    } else {
        (
            FindingKind::States,
            "the writer writes {0} at least and wrote {1} alone, before: the drives were in another state then, so what \
             readers cost it is not known",
        )
    }
}

/// Rates this close together, as a share, are the same.
const SAME: f64 = 0.05;

/// The highest percentile up to `highest` that is known of both, with its two latencies in nanoseconds.
fn highest_known(a: &LatencySummary, b: &LatencySummary, highest: f64) -> Option<(f64, u64, u64)> {
    let known = |p: f64| Some((p, a.percentile(p)?, b.percentile(p)?));
    PERCENTILES.into_iter().rev().filter(|percent| *percent <= highest).find_map(known)
}

impl NeighboursResult {
    fn pairs<'a>(
        &'a self,
        beside: &'a Beside,
    ) -> impl Iterator<Item = (&'a ReadPoint, &'a ReadPoint)> {
        self.alone.iter().filter_map(|alone| {
            Some((alone, beside.points.iter().find(|point| point.depth == alone.depth)?))
        })
    }

    /// The percentile that matters: the one that was looked for, or the highest.
    fn sought(&self) -> f64 {
        self.percentile.unwrap_or(HIGHEST)
    }

    /// Points that don't tell that percentile: how many, how few reads one has, and how long the slowest would have to run.
    fn unknown(&self) -> Option<Finding> {
        let sought = self.sought();
        let points = || self.alone.iter().chain(self.beside.iter().flat_map(|b| &b.points));
        let unknown = points().filter(|point| point.response.percentile(sought).is_none());
        let unknown: Vec<&ReadPoint> = unknown.collect();
        let slowest = unknown.iter().filter_map(|point| point.time_for(sought)).max()?;
        let fewest = unknown.iter().map(|point| point.response.count).min()?;
        let needed = samples_for(sought);
        Some(Finding::remark(format!(
            "The p{sought} latency needs {} reads to be known. {} of {} points have fewer ({} at the least): the slowest would \
             have to run for {slowest}.",
            iops(needed),
            unknown.len(),
            points().count(),
            iops(fewest as f64)
        )))
    }

    fn findings_beside(&self, beside: &Beside) -> Vec<Finding> {
        let name = format!("neighbours.{}", beside.relation.name());
        let ratios: Vec<f64> = self
            .pairs(beside)
            .filter(|(alone, _)| alone.iops > 0.0)
            .map(|(alone, point)| point.iops / alone.iops)
            .collect();
        let Some(least) = ratios.iter().copied().reduce(f64::min) else {
            let sentence = format!("Beside a writer {} no reads were measured.", beside.relation);
            return vec![Finding::remark(sentence)];
        };
        let most = ratios.iter().copied().fold(least, f64::max);
        let writes: Vec<f64> = beside.points.iter().map(|p| p.write_bytes_per_s).collect();
        let least_write = writes.iter().copied().fold(f64::INFINITY, f64::min);
        let verdict = if least * DISTURBED < 1.0 { "disturbs" } else { "doesn't disturb" };
        let (relation, left) = writer_left(least_write, beside.write_alone_bytes_per_s);
        let mut found = vec![Finding::new(
            &format!("{name}.write"),
            relation,
            vec![
                Quantity::rate(least_write),
                Quantity::rate(beside.write_alone_bytes_per_s)
                    .named(&format!("{name}.write_alone")),
                Quantity::percent(100.0 * least, 0),
                Quantity::percent(100.0 * most, 0),
            ],
            &format!(
                "A sequential writer {} {verdict} the reads: {{2}} to {{3}} of the reads a second are left, over the depths; {left}.",
                beside.relation
            ),
        )];
        found.extend(self.pairs(beside).map(|pair| self.at_depth(&name, pair)));
        found
    }

    /// What a writer made of reads of one depth.
    fn at_depth(&self, name: &str, (alone, point): (&ReadPoint, &ReadPoint)) -> Finding {
        let depth = alone.depth;
        let median = (alone.response.percentile(50.0), point.response.percentile(50.0));
        let reads = |name: &str, value| {
            Quantity::of(&format!("{name}.d{depth}.iops"), value, Unit::CommandsPerSecond)
        };
        let mut line = format!(
            "Depth {depth}: {{0}} reads a second become {{1}}, the median latency {} becomes {}",
            latency(median.0),
            latency(median.1)
        );
        if let Some((percentile, before, after)) =
            highest_known(&alone.response, &point.response, self.sought())
        {
            line += &format!(
                ", the p{percentile} latency {} becomes {} ({:.1} x)",
                latency(Some(before)),
                latency(Some(after)),
                after as f64 / before.max(1) as f64
            );
        }
        let quantities = vec![reads("neighbours.alone", alone.iops), reads(name, point.iops)];
        Finding::new(name, FindingKind::States, quantities, &(line + "."))
    }
}

impl Answer for NeighboursResult {
    fn question(&self) -> &'static str {
        "What does a neighbour that writes do to random reads?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut said = Vec::new();
        if let (Some(first), Some(last)) = (self.alone.first(), self.alone.last()) {
            let reads = |point: &ReadPoint| {
                let figure = format!("neighbours.alone.d{}.iops", point.depth);
                Quantity::of(&figure, point.iops, Unit::CommandsPerSecond)
            };
            let sentence = format!(
                "Alone, {} does {{0}} random reads a second at depth {} (median latency {}) and {{1}} at depth {} (median latency {}).",
                self.reader,
                first.depth,
                latency(first.response.percentile(50.0)),
                last.depth,
                latency(last.response.percentile(50.0))
            );
            let quantities = vec![reads(first), reads(last)];
            said.push(Finding::new("neighbours.alone", FindingKind::States, quantities, &sentence));
        }
        said.extend(self.beside.iter().flat_map(|beside| self.findings_beside(beside)));
        if self.deterministic {
            let sentence = "Reads were measured in deterministic windows (Predictable Latency Mode), one for each point.";
            said.push(Finding::remark(sentence.to_owned()));
        }
        said.extend(self.unknown());
        said.extend(self.preparation.findings(if self.beside.is_empty() {
            ""
        } else {
            "reads alone first, then each writer alone and beside reads"
        }));
        said.extend(self.overwritten.iter().map(Overwritten::sentence).map(Finding::remark));
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for point in &self.alone {
            figures.extend(point_figures("neighbours.alone", "Reads alone", point));
        }
        for beside in &self.beside {
            let name = format!("neighbours.{}", beside.relation.name());
            let words = format!("Reads beside a writer {}", beside.relation);
            figures.push(Figure::new(
                &format!("{name}.write_alone"),
                &format!("The writer {} alone", beside.relation),
                beside.write_alone_bytes_per_s,
                Unit::BytesPerSecond,
            ));
            for (alone, point) in self.pairs(beside) {
                figures.extend(point_figures(&name, &words, point));
                figures.push(Figure::new(
                    &format!("{name}.d{}.iops_left", point.depth),
                    &format!("{words}, depth {}: reads a second that are left", point.depth),
                    (alone.iops > 0.0).then(|| 100.0 * point.iops / alone.iops),
                    Unit::Percent,
                ));
                figures.push(Figure::new(
                    &format!("{name}.d{}.write", point.depth),
                    &format!("{words}, depth {}: what the writer writes", point.depth),
                    point.write_bytes_per_s,
                    Unit::BytesPerSecond,
                ));
            }
        }
        figures
    }
}

fn point_figures(name: &str, words: &str, point: &ReadPoint) -> Vec<Figure> {
    let mut figures = vec![Figure::new(
        &format!("{name}.d{}.iops", point.depth),
        &format!("{words}, depth {}: reads a second", point.depth),
        point.iops,
        Unit::CommandsPerSecond,
    )];
    for (percentile, suffix) in [
        (50.0, "p50"),
        (99.0, "p99"),
        (99.9, "p99_9"),
        (99.99, "p99_99"),
        (99.999, "p99_999"),
        (99.9999, "p99_9999"),
    ] {
        let value = point.response.percentile(percentile).map(|ns| ns as f64);
        let note = match value {
            Some(_) => String::new(),
            None => format!(
                "too few reads to know: {} of {}",
                iops(point.response.count as f64),
                iops(samples_for(percentile))
            ),
        };
        figures.push(
            Figure::new(
                &format!("{name}.d{}.{suffix}", point.depth),
                &format!("{words}, depth {}: {percentile} % within", point.depth),
                value,
                Unit::Nanoseconds,
            )
            .noted(note),
        );
    }
    figures
}
