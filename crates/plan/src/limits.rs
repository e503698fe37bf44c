//! How many drives each limit asks for, and which one binds: one function for each limit, all of one [`Case`].

mod each;
mod held;
mod mission;
mod obstacle;
mod seen;

use format::Layout;
use recorder::Placement;
use serde::Serialize;

use crate::candidate::{Candidate, Figure, Parts};
use crate::overhead::Overhead;
use crate::phases::{Phase, Phases};
use crate::requirement::{Counts, Frames, Requirement, Sets};

pub use obstacle::Obstacle;
pub use seen::Seen;

/// Segments that a ring keeps trimmed ahead of its head, as `record` does it.
pub const TRIM_AHEAD: u64 = 4;
/// Segments that members' fill may drift apart under adaptive placement, as `record` does it.
pub const DRIFT: u64 = 2;
/// Chunks in memory for each member while nothing dips: one under way, one waiting.
const CHUNKS_PER_MEMBER: f64 = 2.0;
/// Chunks in memory beside those: one being filled, one to go on in.
const CHUNKS_FILLED: f64 = 2.0;
/// Those of a recording that leaves parts of drives to readers, as many times over: when buffers fill past half, a recorder writes to
/// all members, those among them that it should leave alone.
const APART: f64 = 2.0;
/// Drives must be able to write this share more than they get, because their recorder flushes and trims when it likes. Those that have
/// nothing to tidy up need not. Of simulated drives that failed to hold in an array what one held alone, all held it at 0.2 % less.
const HEADROOM: f64 = 0.0025;
/// Seconds of a year, as drives' lives are counted.
const YEAR_S: f64 = 365.0 * 86_400.0;
/// More drives than this is no answer.
const DRIVES_MAX: u32 = 1 << 20;

/// What may limit an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// What drives write in the slowest phase that is reached.
    Rate,
    /// What has to be held.
    Capacity,
    /// What may be written in the years that the drives are to last.
    Endurance,
    /// The drives' links.
    Link,
    /// The link that they share.
    Uplink,
    /// Memory for buffers, and what the host's memory moves.
    Memory,
}

/// What one limit asks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Need {
    /// Which limit.
    pub limit: Limit,
    /// Drives that hold data, without parity and spares; None if it isn't known or no number will do.
    pub drives: Option<u32>,
    /// Why no number will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    /// The arithmetic, a line each, with numbers put in.
    pub arithmetic: Vec<String>,
    /// The figures that it rests on.
    pub figures: Vec<Figure>,
}

/// A drive under a stream, whatever else is required.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The drive.
    pub candidate: &'a Candidate,
    /// How it is divided.
    pub layout: Layout,
    /// What recording adds to the stream on it.
    pub overhead: Overhead,
    /// How fast it writes: with all its flash, or with one of its parts.
    pub phases: Phases,
    /// What it was seen to hold.
    pub seen: Seen,
    /// Its parts, if it is recorded to one at a time and readers have the others.
    pub parts: Option<Parts>,
    wire_per_kept: f64,
}

/// One question: so much of a stream, for so long, on drives of one kind.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// What is required.
    pub requirement: &'a Requirement,
    /// The drive under the stream.
    pub subject: &'a Subject<'a>,
    /// What that comes to.
    pub load: Load,
}

/// What a requirement comes to in bytes on drives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Bytes a second of packets at the full rate, as they are kept.
    pub packet_bytes_per_s: f64,
    /// Bytes a second that are written while data comes at its fullest, margin included, parity not.
    pub offered_bytes_per_s: f64,
    /// Bytes a second of drives that it takes up at the full rate, margin included.
    pub space_bytes_per_s: f64,
    /// What has to be held: seconds at the full rate.
    pub held_s: f64,
    /// Bytes that are written in a year of 365 days.
    pub year_bytes: f64,
    /// Bytes that are written in the years that the drives are to last; None if that isn't asked.
    pub life_bytes: Option<f64>,
}

/// How many drives it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizing {
    /// By limit.
    pub needs: Vec<Need>,
    /// Drives that hold data, and the limit that asks for most; None if no number will do.
    pub answer: Option<(u32, Limit)>,
    /// What prevents it.
    pub obstacles: Vec<Obstacle>,
}

impl Sizing {
    /// Drives that hold data; None if no number will do.
    pub fn drives(&self) -> Option<u32> {
        self.answer.map(|(drives, _)| drives)
    }

    /// As many of them as the rate alone asks for.
    pub fn rate_drives(&self) -> Option<u32> {
        self.rate().and_then(|need| need.drives)
    }

    /// The arithmetic of those.
    pub fn rate_arithmetic(&self) -> Vec<String> {
        self.rate().map_or_else(Vec::new, |need| need.arithmetic.clone())
    }

    fn rate(&self) -> Option<&Need> {
        self.needs.iter().find(|need| need.limit == Limit::Rate)
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Rate => "rate",
            Self::Capacity => "capacity",
            Self::Endurance => "endurance",
            Self::Link => "link",
            Self::Uplink => "uplink",
            Self::Memory => "memory",
        })
    }
}

impl<'a> Subject<'a> {
    /// The drive under the stream.
    ///
    /// # Errors
    /// [`Obstacle`] if the drive is too small, has no sets to be separated, nothing tells how fast it writes, or a block is longer
    /// than a chunk.
    pub fn new(candidate: &'a Candidate, requirement: &Requirement) -> Result<Self, Obstacle> {
        let parts = match requirement.sets {
            Sets::Shared => None,
            Sets::Separate { .. } => Some(candidate.parts().ok_or(Obstacle::NoSets)?),
        };
        let layout = candidate.layout(parts);
        let layout = layout.map_err(|error| Obstacle::TooSmall(error.to_string()))?;
        let wire_per_kept = requirement.frames.wire_per_kept();
        let packets = packets(requirement, wire_per_kept);
        let overhead = Overhead::of(&requirement.frames, requirement.slice, &layout, packets)
            .map_err(|too_long| Obstacle::BlockTooLong { most_bytes: too_long.most_bytes })?;
        let mut phases = Phases::of(candidate).ok_or(Obstacle::NoRate)?;
        if let Some(parts) = parts {
            phases.slow(parts.share);
        }
        let seen = Seen::of(candidate);
        Ok(Self { candidate, layout, overhead, phases, seen, parts, wire_per_kept })
    }

    /// The same under figures that are off; None if nothing is left that tells how fast it writes.
    pub fn with_figures_of<'b>(&self, candidate: &'b Candidate) -> Option<Subject<'b>> {
        let mut phases = Phases::of(candidate)?;
        if let Some(parts) = self.parts {
            phases.slow(parts.share);
        }
        let Self { layout, overhead, parts, wire_per_kept, .. } = *self;
        let seen = self.seen.clone();
        Some(Subject { candidate, layout, overhead, phases, seen, parts, wire_per_kept })
    }

    /// Segments of one drive, in all its parts.
    pub fn segments(&self) -> u64 {
        self.layout.segments * self.parts.map_or(1, |parts| u64::from(parts.count))
    }

    /// Bytes of one drive that a recording may take up: all of it, or what a ring leaves beside the segment being written, those
    /// trimmed ahead, and those that adaptive placement may have drives drift apart by, in each part.
    pub fn usable_bytes(&self, wraps: bool, placement: Placement) -> f64 {
        let drift = if placement == Placement::Adaptive { DRIFT } else { 0 };
        let kept_free = if wraps { 1 + TRIM_AHEAD + drift } else { 0 };
        let of_part = self.layout.segments.saturating_sub(kept_free);
        let parts = self.segments() / self.layout.segments.max(1);
        (parts * of_part * self.layout.segment_bytes) as f64
    }
}

/// Bytes a second of packets at the full rate.
fn packets(requirement: &Requirement, wire_per_kept: f64) -> f64 {
    match (requirement.counts, &requirement.frames) {
        (Counts::Wire, Frames::Ethernet(_)) => requirement.rate.0 / wire_per_kept,
        _ => requirement.rate.0,
    }
}

impl<'a> Case<'a> {
    /// A requirement on a drive.
    pub fn new(requirement: &'a Requirement, subject: &'a Subject<'a>) -> Self {
        let overhead = &subject.overhead;
        let packet_bytes_per_s = packets(requirement, subject.wire_per_kept);
        let planned = packet_bytes_per_s * (1.0 + requirement.margin_percent / 100.0);
        let written = planned * overhead.written_per_byte();
        let year_bytes = written * requirement.mean_share() * YEAR_S;
        let load = Load {
            packet_bytes_per_s,
            offered_bytes_per_s: written * requirement.duty.peak(),
            space_bytes_per_s: planned * overhead.space_per_byte(),
            held_s: requirement.duty.busiest(requirement.held_s()),
            year_bytes,
            life_bytes: requirement.life_years.map(|years| year_bytes * years),
        };
        Self { requirement, subject, load }
    }

    /// Bytes that drives are written in one go: without end in a ring, all of a mission otherwise.
    pub fn volume(&self) -> f64 {
        if self.requirement.wraps() {
            return f64::INFINITY;
        }
        self.load.held_s * self.load.offered_bytes_per_s / self.requirement.duty.peak()
    }

    /// Bytes that one of so many drives has got in the end. A mission ends at a drive's end.
    pub fn fill(&self, drives: u32) -> f64 {
        let share = self.volume() / f64::from(drives);
        let capacity = self.subject.candidate.profile.capacity_bytes as f64;
        if self.requirement.wraps() { share } else { share.min(capacity) }
    }

    /// Seconds at the full rate that a ring holds beyond what is required: of parts that are recorded to in turn, each may have been
    /// left alone for as long as the others had theirs.
    pub fn turns_s(&self) -> f64 {
        match (self.requirement.sets, self.subject.parts) {
            (Sets::Separate { turn }, Some(parts)) if self.requirement.wraps() => {
                f64::from(parts.count - 1) * turn.as_secs_f64()
            }
            _ => 0.0,
        }
    }

    /// What a drive reads as readers do, with all its flash.
    pub fn read(&self) -> Option<Figure> {
        let candidate = self.subject.candidate;
        match self.requirement.readers.random_bytes {
            Some(bytes) => candidate.random_read(bytes),
            None => candidate.read(),
        }
    }

    /// The share of their time that so many drives have for writing beside the readers: a drive that reads a tenth of what it
    /// could read has nine tenths of its time left. All of it where readers have parts of their own.
    pub fn left(&self, drives: u32) -> f64 {
        let reads = self.requirement.readers.bytes_per_s();
        if reads <= 0.0 || self.subject.parts.is_some() {
            return 1.0;
        }
        let Some(read) = self.read() else { return 1.0 };
        (1.0 - reads / (read.value * f64::from(drives))).max(0.0)
    }

    /// Whether readers get what they want from the parts of so many drives that are not recorded to.
    fn readable(&self, drives: u32) -> bool {
        let Some((parts, read)) = self.subject.parts.zip(self.read()) else { return true };
        let there = read.value * parts.quiet_share() * f64::from(drives);
        self.requirement.readers.bytes_per_s() <= there
    }

    /// Bytes of chunks in memory while nothing dips.
    pub fn pipeline_bytes(&self, drives: u32) -> f64 {
        let members = f64::from(drives + self.requirement.parity);
        let chunks = CHUNKS_PER_MEMBER * members + CHUNKS_FILLED;
        let times = if self.subject.parts.is_some() { APART } else { 1.0 };
        chunks * times * self.subject.overhead.chunk_max_bytes as f64
    }

    /// Bytes of buffers that so many drives need; infinite if buffers fill up whatever their number.
    pub fn buffer_bytes(&self, drives: u32, placement: Placement) -> f64 {
        let members = f64::from(drives + self.requirement.parity);
        let dips = self.dip_bytes(drives, placement);
        let seen = self.seen_waiting(drives, placement) * members;
        let held_alone =
            !self.suffices(drives, placement) && self.holds(drives, placement) == Some(true);
        let waits = if held_alone {
            dips * self.dips_felt(drives, placement) + seen
        } else if self.requirement.wraps() {
            (dips + self.backlog(drives, placement)).max(seen)
        } else {
            // A mission is over before it is as bad as in five rounds, and then no more waits than has come.
            let waits = dips + self.backlog(drives, placement);
            let between = self.between_dips(drives, placement);
            waits.min(between.map_or(f64::INFINITY, |between| between.sum())).min(self.volume())
        };
        let apart = if self.subject.parts.is_some() { APART } else { 1.0 };
        self.pipeline_bytes(drives) + apart * waits
    }

    /// Bytes that wait while drives dip, those that hold parity as well.
    fn dip_bytes(&self, drives: u32, placement: Placement) -> f64 {
        let (offered, phases) = (self.load.offered_bytes_per_s, &self.subject.phases);
        let members = drives + self.requirement.parity;
        match placement {
            Placement::Stripe if phases.dips.is_some() || !phases.even => {
                phases.dips.map_or(0.0, |dips| offered * self.standstill_s(dips, members))
            }
            _ => {
                let written = offered * f64::from(members) / f64::from(drives);
                phases.dip_bytes(written, self.fill(drives), members, self.left(drives))
            }
        }
    }

    /// What each of so many drives for data writes in the long run, in bytes a second: in the slowest phase that it reaches, or what it was
    /// seen to hold if that is more.
    pub fn each(&self, drives: u32, placement: Placement) -> f64 {
        let at_full_speed = self.each_at_full_speed(drives, placement);
        let seen = self.subject.seen.held.as_ref();
        let held = seen.filter(|_| self.holds(drives, placement) == Some(true));
        let share = self.share(drives) / self.to_hold(drives, placement);
        held.map_or(at_full_speed, |held| at_full_speed.max(held.value * share))
    }

    /// What each of so many drives for data writes at full speed in the slowest phase that it reaches, in bytes a second. A stripe waits
    /// for those that hold parity as well.
    pub fn each_at_full_speed(&self, drives: u32, placement: Placement) -> f64 {
        let phases = &self.subject.phases;
        phases.each(
            phases.slowest(self.fill(drives)),
            self.others_felt(drives, placement),
            placement,
        )
    }

    /// Bytes that wait because a phase is slower than the stream.
    pub fn backlog(&self, drives: u32, placement: Placement) -> f64 {
        if let Some(waiting) = self.backlog_by_curve(drives) {
            return waiting;
        }
        let phases = &self.subject.phases;
        let (count, left) = (f64::from(drives), self.left(drives));
        let others = self.others_felt(drives, placement);
        let rate = |phase: &Phase| phases.each(phase, others, placement) * count * left;
        // In a mission over drives that dip, the buffers for dips also hold what flushes and trims add up to.
        let beside_dips = phases.dips.is_some() && !self.requirement.wraps();
        let more = if beside_dips { 0.0 } else { self.headroom() };
        let offered = self.load.offered_bytes_per_s * (1.0 + more);
        phases.backlog(offered, self.fill(drives) * count, count, rate)
    }

    /// What drives have to write more than they get in the long run, as a share.
    fn headroom(&self) -> f64 {
        HEADROOM.min(self.subject.phases.unevenness())
    }

    /// Bytes that may wait because a phase is slower than the stream: what memory is given, or else as many as buffers hold anyway. Where
    /// some do wait, buffers are planned for both.
    fn may_wait(&self, drives: u32, placement: Placement) -> f64 {
        match (self.requirement.host.memory, placement) {
            (Some(memory), _) => memory.0 as f64,
            // While a stripe stands still for dips of one after another, nothing else may wait.
            (None, Placement::Stripe) if self.subject.phases.dips.is_some() => {
                self.pipeline_bytes(drives)
            }
            (None, _) => self.pipeline_bytes(drives) + self.dip_bytes(drives, placement),
        }
    }

    /// Whether so many drives write as fast as data comes: as was seen of one that got as much as each of them, or else as its figures at
    /// full speed tell.
    pub fn sustains(&self, drives: u32, placement: Placement) -> bool {
        self.holds(drives, placement).unwrap_or_else(|| self.suffices(drives, placement))
    }

    /// The fewest drives that do; None if no number does.
    pub fn sustaining(&self, placement: Placement) -> Option<u32> {
        each::smallest(|drives| self.sustains(drives, placement))
    }

    /// Bytes a second that each of so many drives gets.
    pub fn share(&self, drives: u32) -> f64 {
        self.load.offered_bytes_per_s / f64::from(drives)
    }

    /// Whether what drives write and read at full speed suffices: striped, with the dips of all or else in the slowest moment of every
    /// phase; adaptive, by the means of phases; with what waits meanwhile in memory.
    pub fn suffices(&self, drives: u32, placement: Placement) -> bool {
        let by_phases = || self.backlog(drives, placement) <= self.may_wait(drives, placement);
        let between_dips = || self.between_dips(drives, placement);
        self.readable(drives)
            && (by_phases()
                || between_dips().is_some_and(|waits| self.fits_beside_dips(drives, waits)))
    }

    /// How many drives it takes.
    pub fn size(&self, placement: Placement) -> Sizing {
        let needs = each::needs(self, placement);
        let mut obstacles: Vec<Obstacle> =
            needs.iter().filter_map(|need| need.obstacle.clone()).collect();
        let most = needs.iter().filter_map(|need| Some((need.drives?, need.limit)));
        // Of limits that ask for as many, the first binds.
        let most = most.reduce(|a, b| if b.0 > a.0 { b } else { a });
        let mut answer = None;
        if obstacles.is_empty()
            && let Some((drives, limit)) = most
        {
            match self.fits(drives, limit, placement) {
                Ok(fitting) => answer = Some(fitting),
                Err(obstacle) => obstacles.push(obstacle),
            }
        }
        Sizing { needs, answer, obstacles }
    }

    /// Drives that go into the host, as many as this limit asks for or more, and the limit that asks for those: with more drives, each has
    /// fewer lanes, and buffers need another amount of memory.
    fn fits(
        &self,
        drives: u32,
        limit: Limit,
        placement: Placement,
    ) -> Result<(u32, Limit), Obstacle> {
        let linked = each::linked(self, drives)?;
        let buffered = each::buffered(self, placement, linked)?;
        if buffered > linked {
            return self.fits(buffered, Limit::Memory, placement);
        }
        Ok((linked, if linked > drives { Limit::Link } else { limit }))
    }
}
