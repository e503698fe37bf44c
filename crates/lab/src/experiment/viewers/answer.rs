//! What a search for viewers found, in words and figures.

use base::{ByteSize, Duration, Rate};

use super::{Limit, ViewersResult};
use crate::answer::{Answer, Figure, Unit};
use crate::experiment::trouble::{latency, told};

impl ViewersResult {
    fn limit_in_words(&self, limit: &Limit) -> Vec<String> {
        let beside = limit
            .ingest_bytes_per_s
            .map_or_else(String::new, |rate| format!(" beside an ingest of {}", Rate(rate)));
        let each = Rate(self.rate_bytes_per_s);
        let mut said = Vec::new();
        let at_least = if limit.lower_bound.is_some() { "At least " } else { "" };
        said.push(match (limit.viewers, limit.refused) {
            (0, _) => format!("Not even the fewest viewers tried were carried{beside}."),
            (viewers, refused) => {
                let refused =
                    refused.map_or_else(String::new, |refused| format!("; {refused} were not"));
                format!(
                    "{at_least}{viewers} viewers of {each} each were carried{beside} without one block late{refused}: {} in all.",
                    Rate(viewers as f64 * self.rate_bytes_per_s)
                )
            }
        });
        if let Some(miss) = &limit.first_miss {
            said.push(format!(
                "With {} the first block was late because {} ({}).",
                miss.viewers, miss.cause, miss.evidence
            ));
        }
        if let Some(why) = &limit.lower_bound {
            said.push(format!("That is a lower bound: {why}."));
        }
        if let Some(response) = &limit.response {
            said.push(format!(
                "With {0} viewers{beside} a block lasts {3}; the 99.9 % response is {1}, the slowest {2}.",
                limit.viewers,
                latency(response.percentile(99.9)),
                latency(response.max_ns),
                Duration::from_nanos(self.deadline_ns)
            ));
        }
        said
    }
}

impl Answer for ViewersResult {
    fn question(&self) -> &'static str {
        "How many viewers of a constant rate does it carry without one block coming too late?"
    }

    fn answer(&self) -> Vec<String> {
        let mut said = self.limit_in_words(&self.alone);
        if let Some(limit) = &self.ingesting {
            said.extend(self.limit_in_words(limit));
        }
        said.push(format!(
            "Blocks of {} were read from as many places as there were viewers; {} of at most {} trials of {} had to hold. A queue that grows by less than {:.1} % of the rate is not seen in that time.",
            ByteSize(self.block_bytes),
            self.passes_of.0,
            self.passes_of.1,
            Duration::from_nanos(self.trial_ns),
            100.0 * self.deadline_ns as f64 / self.trial_ns.max(1) as f64
        ));
        said.push(format!(
            "From random places the same blocks were read at {} at best.",
            Rate(self.ceiling_bytes_per_s)
        ));
        said.extend(self.preparation.sentence(match self.ingesting {
            Some(_) => "viewers alone first, then viewers beside the ingest",
            None => "",
        }));
        said.extend(told(&self.preparation.notes));
        said.extend(told(&self.notes));
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
