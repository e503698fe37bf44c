//! What a search for viewers found, in words and figures.

use base::{ByteSize, Duration, Rate};

use super::{Limit, ViewersResult};
use crate::answer::{Answer, Figure, Unit};
use crate::experiment::trouble::{latency, remarks};
use crate::finding::{Finding, FindingKind, Quantity};

impl ViewersResult {
    fn findings_of(&self, limit: &Limit) -> Vec<Finding> {
        let subject =
            if limit.ingest_bytes_per_s.is_some() { "viewers.ingesting" } else { "viewers.alone" };
        let viewers = Quantity::of(subject, limit.viewers as f64, Unit::Count);
        let each = Quantity::rate(self.rate_bytes_per_s);
        let beside = limit
            .ingest_bytes_per_s
            .map_or_else(String::new, |rate| format!(" beside an ingest of {}", Rate(rate)));
        let mut found = Vec::new();
        let at_least = if limit.lower_bound.is_some() { "At least " } else { "" };
        found.push(if limit.viewers == 0 {
            let sentence = format!("Not even the fewest viewers tried were carried{beside}.");
            Finding::new(subject, FindingKind::States, vec![viewers], &sentence)
        } else {
            let in_all = Quantity::rate(limit.viewers as f64 * self.rate_bytes_per_s);
            let refused =
                limit.refused.map_or_else(String::new, |refused| format!("; {refused} were not"));
            let sentence = format!(
                "{at_least}{{1}} viewers of {{2}} each were carried{beside} without one block late{refused}: {{0}} in all."
            );
            Finding::new("viewers", FindingKind::Carries, vec![in_all, viewers, each], &sentence)
        });
        if let Some(miss) = &limit.first_miss {
            let late = if miss.at_ns.is_some() { "the first block was late" } else { "it failed" };
            found.push(Finding::remark(format!(
                "With {} {late} because {} ({}).",
                miss.viewers, miss.cause, miss.evidence
            )));
        }
        if let Some(why) = &limit.lower_bound {
            found.push(Finding::remark(format!("That is a lower bound: {why}.")));
        }
        if let Some(response) = &limit.response {
            let sentence = format!(
                "With {0} viewers{beside} a block must be read within {{1}}: the p99.9 response time is {1}, the longest {2}.",
                limit.viewers,
                latency(response.percentile(99.9)),
                latency(response.max_ns),
            );
            let lasts = Quantity::time(self.deadline_ns);
            let slowest = Quantity::time(response.max_ns.unwrap_or(0));
            found.push(Finding::new(subject, FindingKind::Keeps, vec![slowest, lasts], &sentence));
        }
        found
    }
}

impl Answer for ViewersResult {
    fn question(&self) -> &'static str {
        "How many viewers of a constant rate does it carry without one block coming too late?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut said = self.findings_of(&self.alone);
        if let Some(limit) = &self.ingesting {
            said.extend(self.findings_of(limit));
        }
        said.push(Finding::remark(format!(
            "Blocks of {} were read from as many places as there were viewers; {} of at most {} trials of {} had to hold. A queue that grows by less than {:.1} % of the rate is not seen in that time.",
            ByteSize(self.block_bytes),
            self.passes_of.0,
            self.passes_of.1,
            Duration::from_nanos(self.trial_ns),
            100.0 * self.deadline_ns as f64 / self.trial_ns.max(1) as f64
        )));
        let ceiling = Quantity::rate(self.ceiling_bytes_per_s).named("viewers.ceiling");
        let limits = [Some(&self.alone), self.ingesting.as_ref()];
        let trials = limits.into_iter().flatten().flat_map(|limit| &limit.trials);
        let most = trials.map(|trial| trial.bytes_per_s).fold(ceiling.value, f64::max);
        let sentence = "From random places the same blocks were read at {1}; the most that was read at all is {0}.";
        let quantities = vec![Quantity::rate(most), ceiling];
        said.push(Finding::new("viewers", FindingKind::AtBest, quantities, sentence));
        said.extend(self.preparation.findings(match self.ingesting {
            Some(_) => "viewers alone first, then viewers beside the ingest",
            None => "",
        }));
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![Figure::new(
            "viewers.ceiling",
            "Reads at best in blocks of this size",
            self.ceiling_bytes_per_s,
            Unit::BytesPerSecond,
        )];
        let limits = [("alone", Some(&self.alone)), ("ingesting", self.ingesting.as_ref())];
        for (name, limit) in limits.into_iter().filter_map(|(name, limit)| Some((name, limit?))) {
            let words = if name == "alone" { "Viewers alone" } else { "Viewers beside an ingest" };
            let mut count =
                Figure::new(&format!("viewers.{name}"), words, limit.viewers as f64, Unit::Count);
            count.range = limit.refused.map(|refused| (limit.viewers as f64, refused as f64));
            if let Some(why) = &limit.lower_bound {
                count = count.noted(format!("a lower bound: {why}"));
            }
            figures.push(count);
            let response = limit.response.as_ref();
            for (percentile, suffix) in [(99.0, "p99"), (99.9, "p99_9")] {
                figures.push(Figure::new(
                    &format!("viewers.{name}.{suffix}"),
                    &format!("{words}: {percentile} % of the blocks within"),
                    response.and_then(|r| r.percentile(percentile)).map(|ns| ns as f64),
                    Unit::Nanoseconds,
                ));
            }
        }
        figures
    }
}
