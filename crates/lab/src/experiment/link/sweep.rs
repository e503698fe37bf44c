//! The sweep: the same commands on PCIe links of every generation and number of lanes, to see what a narrower link costs and
//! what a wider one would bring. Every link begins with the drives as they were at the start, so that none profits from the
//! one before it.

use std::fmt;

use base::Geometry;
use load::Verb;
use load::measurement::LatencySummary;
use load::quantity::Size;
use load::workload::{Blocks, Pattern, Stop, Stream};
use profile::name;
use serde::{Deserialize, Serialize};

use super::{Ceiling, NAME};
use crate::answer::{Figure, Unit};
use crate::cost::Cost;
use crate::experiment::Scope;
use crate::experiment::mix::{binary, usable};
use crate::experiment::preparation::Preparation;
use crate::experiment::trouble::troubles;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::lab::{Lab, LabError};
use crate::rig::PcieMode;

/// Sequential commands: block in bytes and depth. Deep enough to keep any link busy.
const SEQUENTIAL: (u64, u32) = (1 << 20, 16);
/// Random commands of one kind: block in bytes. As the published sweeps have it.
const RANDOM_BLOCK: u64 = 4096;
/// Random reads and writes, half each: block in bytes and depth. Long enough that both directions of a link are busy at once.
const MIXED: (u64, u32) = (128 << 10, 32);

/// The lanes that links have.
pub const LANES: [u8; 5] = [1, 2, 4, 8, 16];

/// A link on which a test reaches this share of what it reaches on any is wide enough for it.
const ENOUGH: f64 = 0.97;

/// What the sweep's figures are called, all of them.
pub const FIGURES: &str = "link.sweep.";

/// Options of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// PCIe generations, 1 to 6.
    pub generations: Vec<u8>,
    /// Numbers of lanes, 1 to 16; empty for 1, 2, 4 and more up to those of the drives' own links.
    pub lanes: Vec<u8>,
    /// Random commands of 4 KiB under way, each a point of reads and one of writes.
    pub depths: Vec<u32>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { generations: vec![1, 2, 3, 4, 5], lanes: Vec::new(), depths: vec![1, 4, 16, 32] }
    }
}

/// What is asked of the drives on each link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepTest {
    /// At random places, or one behind the other.
    pub random: bool,
    /// Weight of reads.
    pub read: u32,
    /// Weight of writes.
    pub write: u32,
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Commands under way on each drive.
    pub depth: u32,
}

/// What was found on all links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// The drives' own link, if all have the same one and it is PCIe.
    pub own: Option<PcieMode>,
    /// By what they carry, the narrowest first.
    pub links: Vec<SweptLink>,
    /// Block sizes in bytes that were left out, and why.
    pub skipped: Vec<(u64, String)>,
    /// Every point began with the drives as they were at the start; otherwise as the one before left them.
    #[serde(default)]
    pub restored: bool,
}

/// What was found on one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweptLink {
    /// Generation and lanes of each drive's link.
    pub mode: PcieMode,
    /// What the links of all drives carry together.
    pub ceiling: Ceiling,
    /// What was reached, in the order of the tests.
    pub points: Vec<SweptPoint>,
}

/// What a test reached on one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweptPoint {
    /// What was asked.
    pub test: SweepTest,
    /// Bytes a second, reads and writes together; None if nothing came of it.
    pub bytes_per_s: Option<f64>,
    /// Commands a second.
    pub commands_per_s: Option<f64>,
    /// Response of its reads, if it has any.
    pub read: Option<LatencySummary>,
    /// Response of its writes, if it has any.
    pub write: Option<LatencySummary>,
}

impl SweepTest {
    /// What a figure of it is called: `read.sequential`, `write.4KiB.d16`, `mixed`.
    pub fn name(&self) -> String {
        match (self.verb(), self.random) {
            (None, _) => "mixed".to_owned(),
            (Some(verb), false) => format!("{verb}.sequential"),
            (Some(verb), true) => {
                format!("{verb}.{}.d{}", name::block(self.block_bytes), self.depth)
            }
        }
    }

    /// Reads or writes; None for both.
    pub const fn verb(&self) -> Option<Verb> {
        match (self.read, self.write) {
            (_, 0) => Some(Verb::Read),
            (0, _) => Some(Verb::Write),
            _ => None,
        }
    }

    fn stream(&self) -> Stream {
        Stream {
            name: "link".to_owned(),
            pattern: if self.random { Pattern::Random } else { Pattern::Sequential },
            read: self.read,
            write: self.write,
            block: Blocks::of(self.block_bytes),
            depth: self.depth,
            ..Stream::default()
        }
    }

    fn cost(&self, scope: &Scope) -> Cost {
        let all = f64::from(self.read + self.write);
        let share = |weight: u32| f64::from(weight) / all;
        let cost = scope.points_cost(1, share(self.write), share(self.read));
        Cost { written_bytes: cost.written_bytes.next_multiple_of(self.block_bytes), ..cost }
    }
}

impl fmt::Display for SweepTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = binary(self.block_bytes);
        match (self.verb(), self.random) {
            (None, _) => write!(f, "random reads and writes of {block} (half each)"),
            (Some(verb), false) => write!(f, "sequential {verb}s"),
            (Some(verb), true) => write!(f, "random {verb}s of {block} at depth {}", self.depth),
        }
    }
}

impl Sweep {
    /// The links, by what they carry. Those that carry the same are in the order of their generations.
    fn modes(&self, own: Option<PcieMode>) -> Vec<(PcieMode, Ceiling)> {
        let most = own.map_or(4, |own| own.lanes.max(4));
        let lanes = match self.lanes.as_slice() {
            [] => LANES.into_iter().filter(|lanes| *lanes <= most).collect(),
            lanes => lanes.to_vec(),
        };
        let all = self
            .generations
            .iter()
            .flat_map(|&generation| lanes.iter().map(move |&lanes| PcieMode { generation, lanes }));
        let mut modes: Vec<(PcieMode, Ceiling)> =
            all.filter_map(|mode| Some((mode, Ceiling::of_pcie(&mode.link()?)))).collect();
        modes.sort_by(|a, b| a.1.payload.1.total_cmp(&b.1.payload.1).then(a.0.cmp(&b.0)));
        modes.dedup_by_key(|(mode, _)| *mode);
        modes
    }

    /// What is asked on each link, what only reads first: a drive needs no rest then. And the blocks that can't be used.
    fn tests(
        &self,
        scope: &Scope,
        drives: &[Geometry],
        writes: bool,
    ) -> (Vec<SweepTest>, Vec<(u64, String)>) {
        let of = |random, (block_bytes, depth), read, write| SweepTest {
            random,
            read,
            write,
            block_bytes,
            depth,
        };
        let random = |read, write| {
            self.depths.iter().map(move |&d| of(true, (RANDOM_BLOCK, d), read, write))
        };
        let mut tests = vec![of(false, SEQUENTIAL, 1, 0)];
        tests.extend(random(1, 0));
        if writes {
            tests.push(of(false, SEQUENTIAL, 0, 1));
            tests.extend(random(0, 1));
            tests.push(of(true, MIXED, 1, 1));
        }
        let (good, skipped) = usable(&[SEQUENTIAL.0, RANDOM_BLOCK, MIXED.0], scope, drives);
        tests.retain(|test| good.contains(&test.block_bytes));
        (tests, skipped)
    }

    /// What it costs, at most where writes are concerned.
    pub(super) fn cost(
        &self,
        scope: &Scope,
        drives: &[Geometry],
        writes: bool,
        own: Option<PcieMode>,
    ) -> Cost {
        let (tests, _) = self.tests(scope, drives, writes);
        let before = if writes { Preparation::cost(scope, drives) } else { Cost::default() };
        let one = tests.iter().map(|test| test.cost(scope)).fold(before, Cost::and);
        self.modes(own).iter().fold(Cost::default(), |sum, _| sum.and(one))
    }

    /// Runs every test on every link, and puts the drives back on their own.
    ///
    /// # Errors
    /// [`LabError::Unsuitable`] where links can't be changed.
    pub(super) fn run(
        &self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        writes: bool,
        own: Option<PcieMode>,
        notes: &mut Vec<String>,
    ) -> Result<SweepResult, LabError> {
        let drives = lab.drives().to_vec();
        let (tests, skipped) = self.tests(scope, &drives, writes);
        let (mut links, mut restored) = (Vec::new(), false);
        for (mode, ceiling) in self.modes(own) {
            changed(lab.relink(Some(mode))?)?;
            let label = format!("{}.0x{}", mode.generation, mode.lanes);
            restored = lab.save();
            if writes {
                let names = (NAME, &*format!("{label}-prepare"));
                notes.extend(Preparation::make_again(lab, scope, names, restored)?.notes);
            }
            let ceiling = std::iter::repeat_n(ceiling, drives.len()).sum();
            let mut points = Vec::new();
            for &test in &tests {
                points.push(test.run(lab, scope, &label, notes)?);
            }
            links.push(SweptLink { mode, ceiling, points });
        }
        lab.relink(None)?;
        Ok(SweepResult { own, links, skipped, restored })
    }
}

/// Refuses drives whose links can't be changed.
///
/// # Errors
/// [`LabError::Unsuitable`].
pub(super) fn changed(can: bool) -> Result<(), LabError> {
    if can {
        return Ok(());
    }
    let reason = "the links of these drives can't be changed: sweep simulated ones (sim:...)";
    Err(LabError::Unsuitable { experiment: NAME, reason: reason.to_owned() })
}

impl SweepTest {
    fn run(
        self,
        lab: &mut Lab<'_>,
        scope: &Scope,
        link: &str,
        notes: &mut Vec<String>,
    ) -> Result<SweptPoint, LabError> {
        let name = format!("{link}-{}", self.name());
        let mut workload = scope.point(&name, vec![self.stream()]);
        if self.write > 0 {
            // As for any point that writes: no more than was said before.
            let limit = (scope.points_cost(1, 1.0, 1.0).written_bytes / self.block_bytes).max(1);
            let bytes = Some(Size(limit * self.block_bytes));
            workload.stop = Stop { bytes, ..workload.stop };
        }
        let step = lab.point(NAME, &name, &workload)?;
        notes.extend(troubles(&name, &step));
        let measured = &step.measurement;
        let of = |verb| measured.result("link", verb).map(|result| result.response.clone());
        Ok(SweptPoint {
            test: self,
            bytes_per_s: Some(measured.rate().0).filter(|rate| *rate > 0.0),
            commands_per_s: Some(measured.commands_per_s()).filter(|rate| *rate > 0.0),
            read: of(Verb::Read),
            write: of(Verb::Write),
        })
    }
}

impl SweptLink {
    /// What a test reached, in bytes a second.
    pub fn rate(&self, test: &SweepTest) -> Option<f64> {
        self.points.iter().find(|point| point.test == *test)?.bytes_per_s
    }

    /// The rates of all tests added up, in bytes a second, as the tool of the published sweep scores; None if one is not known.
    pub fn score(&self) -> Option<f64> {
        self.points.iter().map(|point| point.bytes_per_s).sum()
    }
}

impl SweepResult {
    /// The tests, in order.
    pub fn tests(&self) -> Vec<SweepTest> {
        self.links
            .first()
            .map_or_else(Vec::new, |link| link.points.iter().map(|p| p.test).collect())
    }

    /// A link's result.
    pub fn on(&self, mode: PcieMode) -> Option<&SweptLink> {
        self.links.iter().find(|link| link.mode == mode)
    }

    /// The link that others are compared with: the drives' own, or the widest.
    pub fn reference(&self) -> Option<&SweptLink> {
        self.own.and_then(|own| self.on(own)).or_else(|| self.links.last())
    }

    /// The narrowest link on which a test reaches nearly what it reaches on any.
    pub fn enough(&self, test: &SweepTest) -> Option<&SweptLink> {
        let best = self.links.iter().filter_map(|link| link.rate(test)).reduce(f64::max)?;
        self.links.iter().find(|link| link.rate(test).is_some_and(|rate| rate >= ENOUGH * best))
    }

    /// A link's score against that of the reference, in percent.
    pub fn relative_score(&self, link: &SweptLink) -> Option<f64> {
        Some(100.0 * link.score()? / self.reference()?.score().filter(|score| *score > 0.0)?)
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let (Some(narrowest), Some(widest)) = (self.links.first(), self.links.last()) else {
            return Vec::new();
        };
        let state = if self.restored {
            "each from the drives' state at the start"
        } else {
            "each with the drives as the one before left them"
        };
        let mut found = vec![Finding::remark(format!(
            "Swept over {} links, from {} to {}, {state}.",
            self.links.len(),
            narrowest.mode,
            widest.mode
        ))];
        found.extend(self.tests().iter().map(|test| self.finding(test, narrowest, widest)));
        found
    }

    /// The link that a test needs.
    fn finding(&self, test: &SweepTest, narrowest: &SweptLink, widest: &SweptLink) -> Finding {
        let (Some(least), Some(enough)) = (narrowest.rate(test), self.enough(test)) else {
            return Finding::remark(format!("Nothing is known of {test}."));
        };
        let figure = |link: &SweptLink| {
            let PcieMode { generation, lanes } = link.mode;
            format!("{FIGURES}{generation}.0x{lanes}.{}", test.name())
        };
        let rate = enough.rate(test).unwrap_or(least);
        let mut quantities = vec![Quantity::rate(rate).named(&figure(enough))];
        let from = if enough.mode == narrowest.mode {
            String::new()
        } else {
            quantities.push(Quantity::rate(least).named(&figure(narrowest)));
            format!(", {:.1} x of {{1}} on {}", rate / least, narrowest.mode)
        };
        let open = if enough.mode == widest.mode && self.links.len() > 1 {
            ", on the widest link of the sweep: a wider one may bring more".to_owned()
        } else {
            let more = 100.0 * (1.0 / ENOUGH - 1.0);
            format!("; a wider link brings at most {more:.0} % more")
        };
        let sentence =
            format!("{} need {}: {{0}}{from}{open}.", capitalised(&test.to_string()), enough.mode);
        let subject = format!("{FIGURES}{}", test.name());
        Finding::new(&subject, FindingKind::States, quantities, &sentence)
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for link in &self.links {
            let PcieMode { generation, lanes } = link.mode;
            let name = format!("{FIGURES}{generation}.0x{lanes}");
            let carries = format!("{}: what the links carry", link.mode);
            let ceiling = link.ceiling.payload.1;
            let rate = Unit::BytesPerSecond;
            figures.push(Figure::new(&format!("{name}.ceiling"), &carries, ceiling, rate));
            for SweptPoint { test, bytes_per_s, read, write, .. } in &link.points {
                let label = format!("{}: {test}", link.mode);
                let name = format!("{name}.{}", test.name());
                figures.push(Figure::new(&name, &label, *bytes_per_s, rate));
                for (verb, summary) in [(Verb::Read, read), (Verb::Write, write)] {
                    let Some(summary) = summary else { continue };
                    let median = summary.percentile(50.0).map(|ns| ns as f64);
                    let note = if median.is_none() { "too few samples" } else { "" };
                    let label = format!("{label}, median response of {verb}s");
                    let name = format!("{name}.{verb}.p50");
                    figures.push(Figure::new(&name, &label, median, Unit::Nanoseconds).noted(note));
                }
            }
            let against = self.reference().map_or_else(String::new, |link| link.mode.to_string());
            figures.push(Figure::new(
                &format!("{name}.score"),
                &format!("{}: all rates added up, against {against}", link.mode),
                self.relative_score(link),
                Unit::Percent,
            ));
        }
        figures
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
