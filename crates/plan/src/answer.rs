//! The answer: a design for each candidate, with what it comes to, what it rests on, and what would change it.

mod series;

use format::superblock::MEMBERS_MAX;
use profile::{Profile, Trust};
use recorder::Placement;
use serde::Serialize;
use ssd::{Spec, SpecError};

use crate::candidate::{Candidate, DATASHEET_WRITE, Figure};
use crate::confidence::Confidence;
use crate::explain;
use crate::host::MEMORY_CROSSINGS;
use crate::limits::{Case, Limit, Load, Need, Obstacle, Sizing, Subject};
use crate::overhead::Overhead;
use crate::phases::{Phase, Stage};
use crate::requirement::{Requirement, Term};
use crate::sensitivity::{Change, Saving, savings};
use crate::sets::Split;

pub use series::Series;

/// Less room than this above what is needed is worth a word, in percent.
const HEADROOM_LEAST_PERCENT: f64 = 5.0;

/// What a requirement comes to on each candidate: those that will do first, by cost if all have a price, else by their number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// A design for each candidate.
    pub designs: Vec<Design>,
}

impl Answer {
    /// Each design with the simulated drive to record it on, as its candidate's profile describes it.
    ///
    /// The error says what the profile lacks.
    pub fn simulated<'a>(
        &'a self,
        candidates: &'a [Candidate],
    ) -> impl Iterator<Item = (&'a Design, Result<Spec, SpecError>)> {
        self.designs.iter().filter_map(|design| {
            let candidate = candidates.iter().find(|c| c.profile.name == design.drive)?;
            Some((design, Spec::from_profile(&candidate.profile)))
        })
    }
}

/// One candidate's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Design {
    /// The drive's name.
    pub drive: String,
    /// Its model.
    pub model: String,
    /// Bytes of one.
    pub capacity_bytes: u64,
    /// The array; None if no number will do.
    pub array: Option<Array>,
    /// Why no number will do.
    pub obstacles: Vec<Obstacle>,
    /// What each limit asks for, with its arithmetic.
    pub needs: Vec<Need>,
    /// The arithmetic of the rate by both placements, striped first.
    pub rate_arithmetic: Vec<String>,
    /// Drives for data if chunks were striped: as fast as a drive's slowest moment, times their number.
    pub stripe_drives: Option<u32>,
    /// As many of those as the rate alone asks for: they sustain it in their slowest phase, at its slowest moments.
    pub stripe_rate_drives: Option<u32>,
    /// Drives for data under adaptive placement: as fast as the sum of means, with a buffer for dips.
    pub adaptive_drives: Option<u32>,
    /// As many of those as the rate alone asks for.
    pub adaptive_rate_drives: Option<u32>,
    /// Bytes of buffers that so many need.
    pub adaptive_rate_buffer_bytes: Option<f64>,
    /// What the datasheet promises of writing, bytes a second, if the profile tells it.
    pub datasheet_bytes_per_s: Option<f64>,
    /// Drives by dividing by that, which is wrong (REC-1).
    pub datasheet_drives: Option<u32>,
    /// What the rate rests on that it was computed from.
    pub evidence: Option<Trust>,
    /// How sure it is that they write as fast as data comes, if anything tells how far the figures may be off.
    pub confidence: Option<Confidence>,
    /// Rates in bytes a second that would tell whether so many drives are enough, and whether one less is where the rate asks for them, if
    /// it were known whether a drive holds them.
    pub rates_to_try: Vec<f64>,
    /// Whether the drives get fuller than they were in the measurement that the plan rests on.
    pub relies_on_unseen: bool,
    /// What is taken for granted of a drive of which only a description is known; empty for all others.
    pub assumed: Vec<String>,
    /// What is not known of such a drive; empty for all others.
    pub unknown: Vec<String>,
    /// What has to be known before it is relied on.
    pub doubts: Vec<String>,
    /// The least of each single change that saves a drive, or makes it possible.
    pub savings: Vec<Saving>,
    /// What the stream comes to.
    pub load: Option<Load>,
    /// What recording adds to it.
    pub overhead: Option<Overhead>,
    /// How fast a drive writes, by how much it was written.
    pub phases: Vec<Phase>,
    /// Every figure used.
    pub figures: Vec<Figure>,
    /// Curves for pictures.
    pub series: Option<Series>,
    /// What separate NVM Sets come to, if they are required and an array will do.
    pub sets: Option<Split>,
}

/// An array that will do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Array {
    /// Drives in all.
    pub drives: u32,
    /// Those that hold data.
    pub data_drives: u32,
    /// Those that hold parity.
    pub parity_drives: u32,
    /// Those that wait.
    pub spare_drives: u32,
    /// The limit that asks for most.
    pub binds: Limit,
    /// The slowest phase that is reached.
    pub slowest: Stage,
    /// By how much the array is faster than it has to be there, in percent.
    pub headroom_percent: f64,
    /// Bytes a second on each drive at the fullest.
    pub drive_bytes_per_s: f64,
    /// For how long data is kept at least, or can be recorded, in seconds.
    pub retention_s: f64,
    /// Until the drives may have been written what the maker allows, in years; None if that isn't known.
    pub life_years: Option<f64>,
    /// Memory for buffers, bytes.
    pub buffer_bytes: f64,
    /// The price of all.
    pub cost: Option<f64>,
    /// The recording that would prove it.
    pub take: PlannedTake,
}

/// A recording as planned: all that running it on simulated drives takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedTake {
    /// Members: data and parity.
    pub members: u32,
    /// Bytes of chunks a second at the fullest, margin included, indexes and parity not.
    pub stored_bytes_per_s: f64,
    /// Bytes of a full chunk.
    pub chunk_bytes: u64,
    /// Chunk buffers.
    pub buffers: u32,
    /// Whether it goes round.
    pub wraps: bool,
    /// How long it is, or keeps, in seconds.
    pub seconds: f64,
    /// How chunks are spread: `adaptive` or `stripe`.
    pub placement: String,
    /// What is read beside it, bytes a second.
    pub read_bytes_per_s: f64,
}

/// Plans a requirement on each of these, and tells how sure each number is.
pub fn plan(requirement: &Requirement, candidates: &[Candidate]) -> Answer {
    let sized = |candidate| {
        let mut design = design(requirement, candidate);
        design.confidence = confidence(requirement, candidate, &design);
        design
    };
    let mut designs: Vec<Design> = candidates.iter().map(sized).collect();
    let priced = candidates.iter().all(|candidate| candidate.price.is_some());
    let weight = |design: &Design| match &design.array {
        None => f64::INFINITY,
        Some(array) if priced => array.cost.unwrap_or(f64::INFINITY),
        Some(array) => f64::from(array.drives),
    };
    // A drive that may be slower than anybody has seen comes behind those that were seen to the end.
    designs.sort_by(|a, b| {
        a.relies_on_unseen.cmp(&b.relies_on_unseen).then(weight(a).total_cmp(&weight(b)))
    });
    Answer { designs }
}

impl Design {
    /// Whether all that is known of the drive is a description.
    pub fn is_described(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// A drive's, with nothing known of it yet.
    fn of(profile: &Profile) -> Self {
        Self {
            drive: profile.name.clone(),
            model: profile.model.clone(),
            capacity_bytes: profile.capacity_bytes,
            array: None,
            obstacles: Vec::new(),
            needs: Vec::new(),
            rate_arithmetic: Vec::new(),
            stripe_drives: None,
            stripe_rate_drives: None,
            adaptive_drives: None,
            adaptive_rate_drives: None,
            adaptive_rate_buffer_bytes: None,
            datasheet_bytes_per_s: None,
            datasheet_drives: None,
            evidence: None,
            confidence: None,
            rates_to_try: Vec::new(),
            relies_on_unseen: false,
            assumed: Vec::new(),
            unknown: Vec::new(),
            doubts: Vec::new(),
            savings: Vec::new(),
            load: None,
            overhead: None,
            phases: Vec::new(),
            figures: Vec::new(),
            series: None,
            sets: None,
        }
    }
}

/// How sure a design's number is, if anything tells it.
fn confidence(
    requirement: &Requirement,
    candidate: &Candidate,
    design: &Design,
) -> Option<Confidence> {
    // Nothing tells how far a description may be off.
    let array = design.array.as_ref().filter(|_| candidate.described.is_none())?;
    let subject = Subject::new(candidate, requirement).ok()?;
    Confidence::of(requirement, &subject, array.data_drives)
}

/// Plans a requirement on one of these. How sure the number is isn't asked.
pub fn design(requirement: &Requirement, candidate: &Candidate) -> Design {
    let Some(described) = &candidate.described else { return designed(requirement, candidate) };
    // A rate alone doesn't tell how dips of different drives fall together: adaptive placement can't be counted on.
    let striped = Requirement { placement: Placement::Stripe, ..requirement.clone() };
    let mut design = designed(&striped, candidate);
    design.rates_to_try.clear();
    design.assumed = described.assumed();
    design.unknown = described.unknown(requirement);
    design.adaptive_drives = None;
    design.adaptive_rate_drives = None;
    design.adaptive_rate_buffer_bytes = None;
    design.rate_arithmetic.retain(|line| !line.starts_with("adaptive:"));
    design.savings.retain(|saving| saving.change != Change::Adaptive);
    design
}

fn designed(requirement: &Requirement, candidate: &Candidate) -> Design {
    let mut design = Design::of(&candidate.profile);
    let subject = match Subject::new(candidate, requirement) {
        Ok(subject) => subject,
        Err(obstacle) => {
            design.obstacles.push(obstacle);
            design.savings = savings(requirement, candidate, None);
            return design;
        }
    };
    let case = Case::new(requirement, &subject);
    let stripe = case.size(Placement::Stripe);
    let adaptive = case.size(Placement::Adaptive);
    (design.stripe_rate_drives, design.stripe_drives) = (stripe.rate_drives(), stripe.drives());
    (design.adaptive_rate_drives, design.adaptive_drives) =
        (adaptive.rate_drives(), adaptive.drives());
    design.adaptive_rate_buffer_bytes =
        adaptive.rate_drives().map(|drives| case.buffer_bytes(drives, Placement::Adaptive));
    for line in [&stripe, &adaptive].into_iter().flat_map(Sizing::rate_arithmetic) {
        // Both placements begin with the same line, and say why no number will do in the same words.
        if !design.rate_arithmetic.contains(&line) {
            design.rate_arithmetic.push(line);
        }
    }
    let sizing = if requirement.is_adaptive() { adaptive } else { stripe };
    let peak = [DATASHEET_WRITE, profile::name::WRITE_FAST, profile::name::WRITE_NATIVE]
        .iter()
        .find_map(|name| candidate.rate(name).filter(|figure| figure.evidence == Trust::Datasheet));
    if let Some(peak) = &peak {
        design.datasheet_bytes_per_s = Some(peak.value);
        design.datasheet_drives =
            Some((case.load.offered_bytes_per_s / peak.value).ceil().max(1.0) as u32);
    }
    design.figures = used(&sizing.needs, &subject, peak);
    design.doubts.clone_from(&subject.phases.doubts);
    design.savings = savings(requirement, candidate, Some(&subject));
    design.load = Some(case.load);
    design.overhead = Some(subject.overhead);
    design.phases.clone_from(&subject.phases.phases);
    if let Some((data, binds)) = sizing.answer {
        let array = array_of(&case, data, binds);
        // Where another limit asks for more, one less would not be enough at any rate.
        let numbers = if binds == Limit::Rate { &[data, data - 1][..] } else { &[data] };
        design.rates_to_try = case.rates_to_try(numbers, requirement.placement);
        design.evidence = Some(subject.phases.slowest(case.fill(data)).figure.evidence);
        let reached = subject.phases.reached(case.fill(data));
        design.relies_on_unseen = reached.iter().any(|phase| !phase.seen);
        design.doubts.extend(doubts(&case, &array));
        design.series = Some(Series::of(&case, data));
        design.sets = Split::of(&case, &array);
        design.array = Some(array);
    }
    design.needs = sizing.needs;
    design.obstacles = sizing.obstacles;
    design
}

/// What an array of so many data drives comes to.
pub fn array_of(case: &Case<'_>, data: u32, binds: Limit) -> Array {
    let requirement = case.requirement;
    let (candidate, overhead) = (case.subject.candidate, case.subject.overhead);
    let members = data + requirement.parity;
    let drives = members + requirement.spare;
    let slowest = case.subject.phases.slowest(case.fill(data));
    let each = case.each(data, requirement.placement);
    let written = each * f64::from(data) * case.left(data);
    let offered = case.load.offered_bytes_per_s;
    let usable = case.subject.usable_bytes(requirement.wraps(), requirement.placement);
    let full_s = usable * f64::from(data) / case.load.space_bytes_per_s - case.turns_s();
    let retention_s = requirement.duty.span_of(full_s.max(0.0));
    let buffer_bytes = case.buffer_bytes(data, requirement.placement);
    let endurance = candidate.figure(profile::name::ENDURANCE).filter(|figure| figure.value > 0.0);
    Array {
        drives,
        data_drives: data,
        parity_drives: requirement.parity,
        spare_drives: requirement.spare,
        binds,
        slowest: slowest.stage,
        headroom_percent: (written / offered - 1.0) * 100.0,
        drive_bytes_per_s: offered / f64::from(data),
        retention_s,
        life_years: endurance.map(|figure| figure.value * f64::from(data) / case.load.year_bytes),
        buffer_bytes,
        cost: candidate.price.map(|price| price * f64::from(drives)),
        take: PlannedTake {
            members,
            stored_bytes_per_s: offered * overhead.share_of_chunks(),
            chunk_bytes: overhead.chunk_bytes,
            buffers: (buffer_bytes / overhead.chunk_max_bytes as f64).ceil() as u32,
            wraps: requirement.wraps(),
            seconds: if requirement.term == Term::Whole {
                retention_s
            } else {
                requirement.held_s()
            },
            placement: requirement.placement.to_string(),
            read_bytes_per_s: requirement.readers.bytes_per_s(),
        },
    }
}

/// Every figure that was used, each once.
fn used(needs: &[Need], subject: &Subject<'_>, peak: Option<Figure>) -> Vec<Figure> {
    let of_needs = needs.iter().flat_map(|need| need.figures.iter().cloned());
    let of_phases = subject.phases.phases.iter().map(|phase| phase.figure.clone());
    let mut figures: Vec<Figure> = Vec::new();
    for figure in of_phases.chain(of_needs).chain(peak) {
        if !figures.contains(&figure) {
            figures.push(figure);
        }
    }
    figures
}

/// What has to be known of the array before it is relied on.
fn doubts(case: &Case<'_>, array: &Array) -> Vec<String> {
    let requirement = case.requirement;
    let mut doubts = Vec::new();
    let slowest = case.subject.phases.slowest(case.fill(array.data_drives));
    // What a description is taken to mean is said with it.
    let described = case.subject.candidate.described.is_some();
    if slowest.figure.evidence == Trust::Assumed && !described {
        doubts.push(format!(
            "{} {} is assumed ({})",
            explain::rate(slowest.figure.value),
            slowest.stage,
            slowest.figure.origin
        ));
    }
    let thin = (0.0..HEADROOM_LEAST_PERCENT).contains(&array.headroom_percent);
    if thin && requirement.margin_percent < HEADROOM_LEAST_PERCENT {
        doubts.push(format!(
            "the array is only {:.1} % faster than it has to be: plan with --margin",
            array.headroom_percent
        ));
    }
    if array.headroom_percent < 0.0 {
        doubts.push(format!(
            "the array is {:.1} % slower than data comes, and buffers hold the rest until it ends: plan with --margin",
            -array.headroom_percent
        ));
    }
    if requirement.life_years.is_some() && array.life_years.is_none() {
        doubts.push(
            "how much may be written to it is not known: look up its endurance (TBW)".to_owned(),
        );
    }
    let parts = case.subject.parts.map_or(1, |parts| parts.count);
    let members = ((array.data_drives + array.parity_drives) * parts) as usize;
    if members > MEMBERS_MAX {
        doubts.push(format!(
            "an array has {MEMBERS_MAX} members at most: it takes {} of them side by side",
            members.div_ceil(MEMBERS_MAX)
        ));
    }
    let cached = |phase: &Phase| matches!(phase.stage, Stage::Cache | Stage::Shrunk);
    if case.subject.parts.is_some() && case.subject.phases.phases.iter().any(cached) {
        doubts.push(
            "how sets share the cache is not known; each is taken to have its share of it"
                .to_owned(),
        );
    }
    if let Some(bandwidth) = requirement.host.memory_bandwidth {
        let most = case.load.packet_bytes_per_s * MEMORY_CROSSINGS;
        if most > bandwidth.0 {
            doubts.push(format!(
                "if nothing stays in the processor's cache, {} cross a memory bus of {}",
                explain::rate(most),
                explain::rate(bandwidth.0)
            ));
        }
    }
    doubts
}
