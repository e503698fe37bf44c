//! What the table says: sentences, and figures by name.

use base::{ByteSize, Duration};
use load::measurement::LatencySummary;

use super::{Direction, DiskmarkPoint, DiskmarkResult, NAME, ORDER};
use crate::answer::{Answer, Figure, Unit};
use crate::experiment::trouble::{latency, remarks};
use crate::finding::{Finding, FindingKind, Quantity};

/// The test of one small command at a time.
const SINGLE: &str = "rnd4k-q1t1";

impl DiskmarkPoint {
    /// The name of one of its figures.
    pub fn figure(&self, part: &str) -> String {
        format!("{NAME}.{}.{}.{part}", self.test, self.direction.name())
    }

    /// `SEQ1M Q8T1 read`.
    fn words(&self) -> String {
        format!("{} {}", self.of().map_or(&*self.test, |test| test.title), self.direction.name())
    }

    fn iops(&self) -> Quantity {
        Quantity::of(&self.figure("iops"), self.iops, Unit::CommandsPerSecond)
    }

    /// Its rate as a quantity of findings.
    pub(crate) fn rate(&self) -> Quantity {
        Quantity::rate(self.bytes_per_s).named(&self.figure("rate"))
    }
}

impl DiskmarkResult {
    /// The fastest cell.
    fn fastest(&self) -> Option<Finding> {
        let mut points: Vec<&DiskmarkPoint> =
            self.points.iter().filter(|point| point.bytes_per_s > 0.0).collect();
        points.sort_by(|a, b| b.bytes_per_s.total_cmp(&a.bytes_per_s));
        let sentence = format!("The fastest test is {}: {{0}}.", points.first()?.words());
        let rates = points.iter().map(|point| point.rate()).collect();
        Some(Finding::new(NAME, FindingKind::Greatest, rates, &sentence))
    }

    /// One small command at a time: what a single program that waits for each answer gets.
    fn single(&self) -> Option<Finding> {
        let of = |direction| self.at(SINGLE, direction).filter(|point| point.iops > 0.0);
        let p99 = |summary: &Option<LatencySummary>| {
            latency(summary.as_ref().and_then(|summary| summary.percentile(99.0)))
        };
        let read = of(Direction::Read)?;
        let mut quantities = vec![read.iops()];
        let mut sentence = format!(
            "One 4 KiB command at a time: {{0}} reads a second (p99 of read latency {})",
            p99(&read.read)
        );
        if let Some(write) = of(Direction::Write) {
            quantities.push(write.iops());
            let p99 = p99(&write.write);
            sentence += &format!(", {{1}} writes a second (p99 of write latency {p99})");
        }
        if let Some(mix) = of(Direction::Mix) {
            sentence += &format!("; mixed, the p99 of read latency is {}", p99(&mix.read));
        }
        Some(Finding::new(NAME, FindingKind::States, quantities, &(sentence + ".")))
    }
}

impl Answer for DiskmarkResult {
    fn question(&self) -> &'static str {
        "What do the tests show that drives are advertised and compared with?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut said = Vec::new();
        said.extend(self.fastest());
        said.extend(self.single());
        if said.is_empty() {
            said.push(Finding::remark("No command came to an end, so nothing is known."));
        }
        said.push(Finding::remark(format!(
            "Each figure is from {} at most on {}, as CrystalDiskMark measures: a cache may take all that is written in \
             that time.",
            Duration::from_nanos(self.point_ns),
            ByteSize(self.region_bytes)
        )));
        if let Some(why) = &self.writes_left_out {
            said.push(Finding::remark(format!("Writes and mixes were not measured: {why}.")));
        }
        for (title, why) in &self.skipped {
            said.push(Finding::remark(format!("{title} was left out: {why}.")));
        }
        let writes = self.writes_left_out.is_none();
        said.extend(self.preparation.findings(if writes { ORDER } else { "" }));
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for point in &self.points {
            let words = point.words();
            let note = if point.harness_limited { "the harness was the limit" } else { "" };
            let rate = (format!("{words}: bandwidth"), point.bytes_per_s, Unit::BytesPerSecond);
            let iops = (format!("{words}: IOPS"), point.iops, Unit::CommandsPerSecond);
            for (part, (label, value, unit)) in [("rate", rate), ("iops", iops)] {
                figures.push(Figure::new(&point.figure(part), &label, value, unit).noted(note));
            }
            for (verb, summary) in [("read", &point.read), ("write", &point.write)] {
                let Some(summary) = summary else { continue };
                figures.push(Figure::new(
                    &point.figure(&format!("{verb}_p99")),
                    &format!("{words}: p99 of {verb} latency"),
                    summary.percentile(99.0).map(|ns| ns as f64),
                    Unit::Nanoseconds,
                ));
            }
        }
        figures
    }
}
