//! Link: what the drives reach, against what their links can carry. Answers whether a link is the limit, and what one that
//! came up slower than it could costs.

mod ceiling;
pub mod sweep;
mod verdict;

pub use ceiling::{Ceiling, DriveLink};
pub use sweep::{Sweep, SweepResult};
pub use verdict::HeldBack;

use base::{Geometry, Rate};
use load::Verb;
use load::measurement::LatencySummary;
use load::quantity::Size;
use load::workload::{Blocks, Pattern, Stop, Stream};
use profile::name;
use serde::{Deserialize, Serialize};

use super::Scope;
use super::mix::{binary, usable};
use super::preparation::Preparation;
use super::trouble::{remarks, troubles};
use crate::answer::{Answer, Figure, Unit};
use crate::cost::Cost;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::lab::{Lab, LabError};
use crate::rig::PcieMode;

const NAME: &str = "link";

/// Sequential points: block in bytes and depth. Deep enough to keep any link busy, and the last twice as deep as the one before, to
/// see whether that brings more.
const SEQUENTIAL: [(u64, u32); 3] = [(128 << 10, 32), (1 << 20, 16), (1 << 20, 32)];
/// Depths of random reads.
const RANDOM_DEPTHS: [u32; 4] = [1, 4, 16, 32];
const RANDOM_BLOCK: u64 = 4096;
/// Generations (transfers a second on each lane, in 10^9) and lanes that ceilings are told for.
const GIGATRANSFERS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
const LANES: [u8; 4] = [1, 2, 4, 8];

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Where, and how long each point takes.
    pub scope: Scope,
    /// Each drive's link, by place in the bank; those that are missing are not known.
    pub links: Vec<DriveLink>,
    /// Measure writes too, and write the region once before reading it. Without, reads of what was never written may be
    /// too fast.
    pub write: bool,
    /// Then measure on other links; None without.
    pub sweep: Option<Sweep>,
}

impl Default for Link {
    fn default() -> Self {
        let point = base::Duration::from_secs(10);
        let scope = Scope { region: Some(8 << 30), point, ..Scope::default() };
        Self { scope, links: Vec::new(), write: true, sweep: None }
    }
}

impl Link {
    /// With a sweep over other links. There are more than a hundred points then, on a drive in virtual time: each takes a second, on
    /// a region of 1 GiB.
    pub fn swept(sweep: Sweep) -> Self {
        let point = base::Duration::from_secs(1);
        let scope = Scope { region: Some(1 << 30), point, ..Scope::default() };
        Self { scope, sweep: Some(sweep), ..Self::default() }
    }
}

/// What was found. All rates are of all drives together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// Their links.
    pub links: Vec<DriveLink>,
    /// What all links together carry now; None unless all are known.
    pub ceiling: Option<Ceiling>,
    /// What they could carry at best; None unless all are known.
    pub best: Option<Ceiling>,
    /// What links of each generation (transfers a second on each lane, in 10^9) and number of lanes carry.
    pub table: Vec<(f64, u8, Ceiling)>,
    /// What was done before.
    pub preparation: Preparation,
    /// What was reached.
    pub points: Vec<LinkPoint>,
    /// Block sizes in bytes that were left out, and why.
    pub skipped: Vec<(u64, String)>,
    /// What was reached on other links, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepResult>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// What was reached at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkPoint {
    /// Reads or writes.
    pub operation: Verb,
    /// At random places, or one behind the other.
    pub random: bool,
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Commands under way on each drive.
    pub depth: u32,
    /// Bytes a second; None if nothing came of it.
    pub bytes_per_s: Option<f64>,
    /// Latency of its commands.
    pub latency: LatencySummary,
    /// The harness may have been the limit.
    pub harness_limited: bool,
}

/// A point to be measured.
#[derive(Clone, Copy, Debug)]
struct Aim {
    operation: Verb,
    random: bool,
    block: u64,
    depth: u32,
}

impl Link {
    /// What it costs, at most where writes are concerned.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let (aims, _) = self.aims(&scope, drives);
        let point = |aim: &Aim| match aim.operation {
            Verb::Write => Cost {
                written_bytes: write_limit(&scope, aim.block),
                ..scope.points_cost(1, 1.0, 0.0)
            },
            Verb::Read | Verb::Trim => scope.points_cost(1, 0.0, 1.0),
        };
        let before =
            if self.writes(drives) { Preparation::cost(&scope, drives) } else { Cost::default() };
        let own = aims.iter().map(point).fold(before, Cost::and);
        let sweep = self
            .sweep
            .as_ref()
            .map(|s| s.cost(&scope, drives, self.writes(drives), own_mode(&self.links)));
        own.and(sweep.unwrap_or_default())
    }

    /// Measures every point.
    ///
    /// # Errors
    /// [`LabError`]; points that can't be done are left out and said.
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<LinkResult, LabError> {
        if self.sweep.is_some() {
            sweep::changed(lab.relink(None)?)?;
        }
        let drives = lab.drives().to_vec();
        let scope = self.scope.fitted(&drives);
        let (aims, skipped) = self.aims(&scope, &drives);
        let all: Vec<u16> = (0..drives.len() as u16).collect();
        let preparation = if self.writes(&drives) {
            Preparation::make(lab, &scope, NAME, &all)?
        } else {
            Preparation::left_out(lab)?
        };
        let (mut points, mut notes) = (Vec::new(), Vec::new());
        for aim in aims {
            let kind = if aim.random { "random" } else { "sequential" };
            let block = name::block(aim.block);
            let step_name = format!("{kind}-{}-{block}-depth{}", aim.operation, aim.depth);
            let workload = aim.workload(&scope, &step_name);
            let step = lab.point(NAME, &step_name, &workload)?;
            notes.extend(troubles(&step_name, &step));
            let result = step.measurement.result("link", aim.operation);
            points.push(LinkPoint {
                operation: aim.operation,
                random: aim.random,
                block_bytes: aim.block,
                depth: aim.depth,
                bytes_per_s: result.map(|r| r.bytes_per_s).filter(|rate| *rate > 0.0),
                latency: result.map(|r| r.response.clone()).unwrap_or_default(),
                harness_limited: step.measurement.harness.limited.is_some(),
            });
        }
        let mut links = self.links.clone();
        links.resize(drives.len(), DriveLink::NotKnown);
        let writes = self.writes(&drives);
        let sweep = match &self.sweep {
            Some(sweep) => Some(sweep.run(lab, &scope, writes, own_mode(&links), &mut notes)?),
            None => None,
        };
        let table = GIGATRANSFERS.iter().flat_map(|&gigatransfers| {
            LANES.map(|lanes| {
                let link = crate::analysis::Link { gigatransfers, lanes };
                (gigatransfers, lanes, Ceiling::of_pcie(&link))
            })
        });
        let (ceiling, best) = ceilings(&links, &points);
        let result = LinkResult {
            drives: drives.into_iter().map(|drive| drive.name).collect(),
            ceiling,
            best,
            links,
            table: table.collect(),
            preparation,
            points,
            skipped,
            sweep,
            notes,
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    fn writes(&self, drives: &[Geometry]) -> bool {
        self.write && drives.iter().all(|drive| drive.writable)
    }

    /// What can be measured, and the blocks that can't with the reason.
    fn aims(&self, scope: &Scope, drives: &[Geometry]) -> (Vec<Aim>, Vec<(u64, String)>) {
        let mut aims = Vec::new();
        let blocks: Vec<u64> =
            SEQUENTIAL.iter().map(|(block, _)| *block).chain([RANDOM_BLOCK]).collect();
        let (good, skipped) = usable(&blocks, scope, drives);
        let sequential = |operation| {
            let good = SEQUENTIAL.into_iter().filter(|(block, _)| good.contains(block));
            good.map(move |(block, depth)| Aim { operation, random: false, block, depth })
        };
        aims.extend(sequential(Verb::Read));
        if good.contains(&RANDOM_BLOCK) {
            aims.extend(RANDOM_DEPTHS.map(|depth| Aim {
                operation: Verb::Read,
                random: true,
                block: RANDOM_BLOCK,
                depth,
            }));
        }
        if self.writes(drives) {
            aims.extend(sequential(Verb::Write));
        }
        (aims, skipped)
    }
}

impl Aim {
    fn workload(&self, scope: &Scope, name: &str) -> load::Workload {
        let stream = Stream {
            name: "link".to_owned(),
            pattern: if self.random { Pattern::Random } else { Pattern::Sequential },
            read: u32::from(self.operation == Verb::Read),
            write: u32::from(self.operation == Verb::Write),
            block: Blocks::of(self.block),
            depth: self.depth,
            ..Stream::default()
        };
        let mut workload = scope.point(name, vec![stream]);
        if self.operation == Verb::Write {
            let bytes = Some(Size(write_limit(scope, self.block)));
            workload.stop = Stop { bytes, ..workload.stop };
        }
        workload
    }
}

/// The mode of all links, if they have the same one.
fn own_mode(links: &[DriveLink]) -> Option<PcieMode> {
    let mode = |link: &DriveLink| match link {
        DriveLink::Pcie { now: Some(now), .. } => PcieMode::of(now),
        _ => None,
    };
    let first = mode(links.first()?)?;
    links.iter().all(|link| mode(link) == Some(first)).then_some(first)
}

/// What all links together carry, and could at best, with packets as large as the fastest sequential point shows them to be.
fn ceilings(links: &[DriveLink], points: &[LinkPoint]) -> (Option<Ceiling>, Option<Ceiling>) {
    let sequential = points.iter().filter(|point| !point.random);
    let fastest = sequential.filter_map(|point| point.bytes_per_s).fold(0.0, f64::max);
    let now: Option<Ceiling> = links.iter().map(DriveLink::ceiling).sum();
    let best: Option<Ceiling> = links.iter().map(DriveLink::best_ceiling).sum();
    let payload = now.map_or(0.0, |now| now.payload_for(fastest));
    let with_payload = |ceiling: Ceiling| ceiling.with_payload(payload);
    (now.map(with_payload), best.map(with_payload))
}

/// What a point may write at most, so that drives faster than thought don't wear more than was said.
fn write_limit(scope: &Scope, block: u64) -> u64 {
    (scope.points_cost(1, 1.0, 0.0).written_bytes / block).max(1) * block
}

impl LinkResult {
    /// The fastest sequential point.
    pub fn sequential(&self, operation: Verb) -> Option<f64> {
        let points = self.points.iter().filter(|p| !p.random && p.operation == operation);
        points.filter_map(|p| p.bytes_per_s).reduce(f64::max)
    }

    /// Whether the links hold back sequential commands of this kind; None without a known link or anything that was reached.
    pub fn held_back(&self, operation: Verb) -> Option<HeldBack> {
        let points = self.points.iter().filter(|p| !p.random && p.operation == operation);
        let rates: Vec<f64> = points.filter_map(|p| p.bytes_per_s).collect();
        let other = if operation == Verb::Write { Verb::Read } else { Verb::Write };
        let ceiling = self.ceiling.filter(|_| !rates.is_empty())?;
        Some(verdict::judge(&rates, &ceiling, self.sequential(other)))
    }

    /// Random reads at a depth, in bytes a second.
    pub fn random(&self, depth: u32) -> Option<f64> {
        self.points.iter().find(|p| p.random && p.depth == depth)?.bytes_per_s
    }

    /// The narrowest and oldest PCIe link that would carry so many bytes a second.
    pub fn least_link(&self, bytes_per_s: f64) -> Option<(f64, u8)> {
        let enough = self.table.iter().filter(|(_, _, ceiling)| ceiling.payload.1 >= bytes_per_s);
        enough
            .min_by(|a, b| a.2.payload.1.total_cmp(&b.2.payload.1).then(a.0.total_cmp(&b.0)))
            .map(|(gigatransfers, lanes, _)| (*gigatransfers, *lanes))
    }

    fn ceiling_sentences(&self) -> Vec<String> {
        let unknown: Vec<&str> = self
            .links
            .iter()
            .zip(&self.drives)
            .filter(|(link, _)| link.ceiling().is_none())
            .map(|(_, drive)| drive.as_str())
            .collect();
        if !unknown.is_empty() {
            return vec![format!(
                "The link of {} is unknown, so the measured rate is not compared with a ceiling.",
                unknown.join(", ")
            )];
        }
        let mut said: Vec<String> = self
            .links
            .iter()
            .zip(&self.drives)
            .filter_map(|(link, drive)| {
                Some(format!("{drive}: {link} carries {}.", link.ceiling()?))
            })
            .collect();
        if let Some(ceiling) = self.ceiling.filter(|_| self.drives.len() > 1) {
            said.push(format!(
                "All links together carry {}, unless they share one further up.",
                Rate(ceiling.payload.1)
            ));
        }
        let usual: Option<Ceiling> = self.links.iter().map(DriveLink::ceiling).sum();
        if let Some((ceiling, usual)) = self.ceiling.zip(usual)
            && ceiling.payload.1 > usual.payload.1
        {
            said.push(format!(
                "The drives reach more than the {} that usual packets carry, so larger packets are assumed, which carry {}.",
                Rate(usual.payload.1),
                Rate(ceiling.payload.1)
            ));
        }
        said
    }

    fn share_finding(&self, operation: Verb) -> Option<Finding> {
        let subject = format!("link.{operation}");
        let reached = Quantity::rate(self.sequential(operation)?).named(&subject);
        let Some(ceiling) = self.ceiling else {
            let sentence = format!("Sequential {operation}s reach {{0}}.");
            return Some(Finding::new(&subject, FindingKind::States, vec![reached], &sentence));
        };
        if reached.value > ceiling.line {
            let sentence = format!(
                "Sequential {operation}s reach {{0}}, more than the {} of the link that the system reports: they don't go through it alone.",
                Rate(ceiling.line)
            );
            return Some(Finding::new(&subject, FindingKind::States, vec![reached], &sentence));
        }
        let (kind, verdict) = match self.held_back(operation)? {
            HeldBack::Yes => (FindingKind::Limits, "the link is the limit"),
            HeldBack::Maybe => (
                FindingKind::MayLimit,
                "the link may be the limit, which only a faster link would show",
            ),
            HeldBack::No => (FindingKind::DoesNotLimit, "the link is not the limit"),
        };
        let share = Quantity::percent(100.0 * reached.value / ceiling.payload.1, 0);
        let share = if operation == Verb::Read { share.named("link.read_share") } else { share };
        let quantities =
            vec![share, reached, Quantity::rate(ceiling.payload.1).named("link.ceiling")];
        let sentence = format!(
            "Sequential {operation}s reach {{1}}, {{0}} of what the link carries: {verdict}."
        );
        Some(Finding::new(&subject, kind, quantities, &sentence))
    }

    fn random_finding(&self) -> Option<Finding> {
        let (depth, reached) =
            [16, 32, 4, 1].into_iter().find_map(|depth| Some((depth, self.random(depth)?)))?;
        let of = |depth, rate| Quantity::rate(rate).named(&name::random_rate(RANDOM_BLOCK, depth));
        let needs = self.least_link(reached).map_or_else(String::new, |(gigatransfers, lanes)| {
            format!("; a link of {gigatransfers} GT/s x{lanes} would carry that")
        });
        let mut quantities = vec![of(depth, reached)];
        let shallow = self.random(1).filter(|_| depth != 1);
        quantities.extend(shallow.map(|rate| of(1, rate)));
        let shallow = shallow.map_or("", |_| ", at depth 1 {1}");
        let sentence =
            format!("Random reads of 4 KiB reach {{0}} at depth {depth}{shallow}{needs}.");
        Some(Finding::new("link.random", FindingKind::States, quantities, &sentence))
    }

    /// Links that run slower than they could, and what that costs.
    pub fn warnings(&self) -> Vec<String> {
        let mut said = Vec::new();
        for (link, drive) in self.links.iter().zip(&self.drives) {
            let (Some(now), Some(best)) = (link.ceiling(), link.best_ceiling()) else { continue };
            if now.line < best.line {
                let (what, remedy) = if link.is_at_slots_best() {
                    ("limited by its slot", "A slot that can do more would be faster.")
                } else {
                    (
                        "degraded",
                        "Check the slot's lanes, the cable or riser, and the firmware's settings for its generation.",
                    )
                };
                said.push(format!(
                    "Warning: the link of {drive} is {what}: {link}, which costs {:.0} % of its ceiling. {} {remedy}",
                    100.0 * (1.0 - now.payload.1 / best.payload.1),
                    self.loss(&now, &best)
                ));
            }
        }
        said
    }

    fn loss(&self, now: &Ceiling, best: &Ceiling) -> String {
        let fastest = [Verb::Read, Verb::Write].into_iter().filter_map(|operation| {
            Some((self.sequential(operation)?, self.held_back(operation)?))
        });
        let fastest = fastest.reduce(|a, b| if b.0 > a.0 { b } else { a });
        let Some(((rate, held_back), ceiling)) = fastest.zip(self.ceiling) else {
            return "What that costs these workloads is not known.".to_owned();
        };
        match held_back {
            HeldBack::Yes => format!(
                "The drives run against it: up to {} more would be possible.",
                Rate(best.payload.1 - now.payload.1)
            ),
            HeldBack::Maybe => format!(
                "The drives reach {} of {} and may run against it.",
                Rate(rate),
                Rate(ceiling.payload.1)
            ),
            HeldBack::No => format!(
                "The drives reach {} of {}, so it costs sequential transfers little as yet.",
                Rate(rate),
                Rate(ceiling.payload.1)
            ),
        }
    }
}

/// Rate and latencies of random reads.
fn random_figures(point: &LinkPoint) -> Vec<Figure> {
    let (block, depth) = (point.block_bytes, point.depth);
    let label = format!("random reads of {} at depth {depth}", binary(block));
    let name = name::random_rate(block, depth);
    let mut figures = vec![Figure::new(&name, &label, point.bytes_per_s, Unit::BytesPerSecond)];
    for percent in [50.0, 99.0, 99.9, 99.99] {
        let value = point.latency.percentile(percent).map(|ns| ns as f64);
        let label = format!("{label}, latency of {percent} %");
        let few = if value.is_none() { "too few samples" } else { "" };
        let name = name::random_latency(block, depth, percent);
        figures.push(Figure::new(&name, &label, value, Unit::Nanoseconds).noted(few));
    }
    figures
}

impl Answer for LinkResult {
    fn question(&self) -> &'static str {
        "What can the links carry, how much of it do the drives reach, and is a link slower than it could be?"
    }

    fn findings(&self) -> Vec<Finding> {
        let mut said: Vec<Finding> = self.warnings().into_iter().map(Finding::remark).collect();
        said.extend(self.ceiling_sentences().into_iter().map(Finding::remark));
        said.extend(self.share_finding(Verb::Read));
        let writes = self.share_finding(Verb::Write);
        said.push(writes.unwrap_or_else(|| Finding::remark("Writes were not measured.")));
        said.extend(self.random_finding());
        said.extend(self.sweep.iter().flat_map(SweepResult::findings));
        said.extend(self.preparation.findings("all reads first, then writes"));
        let skipped = self.skipped.iter();
        let skipped: Vec<String> = skipped
            .map(|(block, why)| format!("Left out: {}, because {why}.", binary(*block)))
            .collect();
        said.extend(remarks(&skipped));
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let rate = Unit::BytesPerSecond;
        let unknown = if self.ceiling.is_none() { "no link is known" } else { "" };
        let ceiling = self.ceiling.map(|c| c.payload.1);
        let mut figures = vec![
            Figure::new("link.ceiling", "what the links carry", ceiling, rate).noted(unknown),
            Figure::new(
                "link.ceiling_best",
                "what they could carry at best",
                self.best.map(|c| c.payload.1),
                rate,
            )
            .noted(if self.best.is_none() { "not known" } else { "" }),
            Figure::new(
                name::READ_SEQUENTIAL,
                "fastest sequential read",
                self.sequential(Verb::Read),
                rate,
            ),
            Figure::new("link.read", "fastest sequential read", self.sequential(Verb::Read), rate),
            Figure::new(
                "link.write",
                "fastest sequential write, cache included",
                self.sequential(Verb::Write),
                rate,
            ),
        ];
        if let (Some(ceiling), Some(read)) = (ceiling, self.sequential(Verb::Read)) {
            let share = 100.0 * read / ceiling;
            figures.push(Figure::new(
                "link.read_share",
                "reads against what the links carry",
                share,
                Unit::Percent,
            ));
        }
        if let [DriveLink::Pcie { now: Some(now), .. }] = self.links.as_slice() {
            let lanes = f64::from(now.lanes);
            figures.push(Figure::new(
                name::LINK_GIGATRANSFERS,
                "transfers on each lane, 10^9 a second",
                now.gigatransfers,
                Unit::Count,
            ));
            figures.push(Figure::new(name::LINK_LANES, "lanes", lanes, Unit::Count));
        }
        figures.extend(self.points.iter().filter(|point| point.random).flat_map(random_figures));
        figures.extend(self.sweep.iter().flat_map(SweepResult::figures));
        figures
    }
}

#[cfg(test)]
mod tests;
