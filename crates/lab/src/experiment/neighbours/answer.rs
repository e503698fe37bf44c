//! What neighbours did to reads, in words and figures.

use base::Rate;
use load::measurement::{LatencySummary, PERCENTILES};

use super::{Beside, HIGHEST, NeighboursResult, Overwritten, ReadPoint, samples_for};
use crate::answer::{Answer, Figure, Unit};
use crate::experiment::trouble::{iops, latency, told};

/// A read that is this much slower than alone is disturbed; less is noise.
const DISTURBED: f64 = 1.1;

/// What a writer has left beside readers.
pub(super) fn writer_left(least: f64, alone: f64) -> String {
    let (least_words, alone_words) = (Rate(least), Rate(alone));
    if least <= alone {
        format!(
            "the writer keeps {least_words} of the {alone_words} that it writes alone, at least"
        )
    } else if least <= alone * (1.0 + SAME) {
        format!("the writer is not slowed: {least_words} at least, {alone_words} alone")
    } else {
        format!(
            "the writer writes {least_words} at least and wrote {alone_words} alone, before: the drives were in another state then, so \
             what readers cost it is not known"
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
    fn unknown(&self) -> Option<String> {
        let sought = self.sought();
        let points = || self.alone.iter().chain(self.beside.iter().flat_map(|b| &b.points));
        let unknown = points().filter(|point| point.response.percentile(sought).is_none());
        let unknown: Vec<&ReadPoint> = unknown.collect();
        let slowest = unknown.iter().filter_map(|point| point.time_for(sought)).max()?;
        let fewest = unknown.iter().map(|point| point.response.count).min()?;
        let needed = samples_for(sought);
        Some(format!(
            "{sought} % needs {} reads. {} of {} points have fewer ({} at the least) and do not tell it: the slowest would \
             have to run for {slowest}.",
            iops(needed),
            unknown.len(),
            points().count(),
            iops(fewest as f64)
        ))
    }

    fn in_words(&self, beside: &Beside) -> Vec<String> {
        let mut said = Vec::new();
        let ratios: Vec<f64> = self
            .pairs(beside)
            .filter(|(alone, _)| alone.iops > 0.0)
            .map(|(alone, point)| point.iops / alone.iops)
            .collect();
        let Some(least) = ratios.iter().copied().reduce(f64::min) else {
            return vec![format!("Beside a writer {} no reads were measured.", beside.relation)];
        };
        let most = ratios.iter().copied().fold(least, f64::max);
        let writes: Vec<f64> = beside.points.iter().map(|p| p.write_bytes_per_s).collect();
        let least_write = writes.iter().copied().fold(f64::INFINITY, f64::min);
        let verdict = if least * DISTURBED < 1.0 { "disturbs" } else { "doesn't disturb" };
        said.push(format!(
            "A sequential writer {} {verdict} the reads: {:.0} to {:.0} % of the reads a second are left, over the depths; {}.",
            beside.relation,
            100.0 * least,
            100.0 * most,
            writer_left(least_write, beside.write_alone_bytes_per_s)
        ));
        for (alone, point) in self.pairs(beside) {
            let median = (alone.response.percentile(50.0), point.response.percentile(50.0));
            let mut line = format!(
                "Depth {}: {} reads a second become {}, the median {} becomes {}",
                alone.depth,
                iops(alone.iops),
                iops(point.iops),
                latency(median.0),
                latency(median.1)
            );
            if let Some((percentile, before, after)) =
                highest_known(&alone.response, &point.response, self.sought())
            {
                line += &format!(
                    ", {percentile} % {} becomes {} ({:.1} x)",
                    latency(Some(before)),
                    latency(Some(after)),
                    after as f64 / before.max(1) as f64
                );
            }
            said.push(line + ".");
        }
        said
    }
}

impl Answer for NeighboursResult {
    fn question(&self) -> &'static str {
        "What does a neighbour that writes do to random reads?"
    }

    fn answer(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let (Some(first), Some(last)) = (self.alone.first(), self.alone.last()) {
            said.push(format!(
                "Alone, {} does {} random reads a second at depth {} (median {}) and {} at depth {} (median {}).",
                self.reader,
                iops(first.iops),
                first.depth,
                latency(first.response.percentile(50.0)),
                iops(last.iops),
                last.depth,
                latency(last.response.percentile(50.0))
            ));
        }
        said.extend(self.beside.iter().flat_map(|beside| self.in_words(beside)));
        said.extend(self.unknown());
        said.extend(self.preparation.sentence(if self.beside.is_empty() {
            ""
        } else {
            "reads alone first, then each writer alone and beside reads"
        }));
        said.extend(self.overwritten.iter().map(Overwritten::sentence));
        said.extend(told(&self.preparation.notes));
        said.extend(told(&self.notes));
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
