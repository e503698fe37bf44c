//! How the write rate of a drive depends on the amount written: into the cache, past it, with a shrinking cache, over stale data (REC-2).
//! Also how much data waits in buffers when it arrives faster than that.

use profile::{Profile, Trust, name};
use recorder::Placement;
use serde::Serialize;

use crate::candidate::{Candidate, Figure};
use crate::curve::{self, Curve};
use crate::explain;

/// How long a dip is taken to last where the profile doesn't tell: a figure of the worst second is of a second.
const DIP_S: f64 = 1.0;
/// Of a thousand arrays of n drives, whose dips begin at places of a period drawn at random, one has more than so many times the
/// square root of n dips in a row before its drives catch up: Kuiper's statistic (1960) of uniform places at 99.9 %.
const DIPS_IN_A_ROW: f64 = 2.3;
/// Of a drive with a cache, a slowest minute that is slower than this share of overwriting was one of another phase.
const MINUTE_SHARE: f64 = 0.98;
/// Buffers last for as many dips at once as there are in all but this share of the time: a quarter of a second in eight years.
const MORE_AT_ONCE: f64 = 1e-9;
/// And for as many dips as there are in all but this share of missions.
const MORE_IN_MISSION: f64 = 1e-3;
/// Dips come at most this many times as often as if each cost as much as the costliest.
const MORE_OFTEN: f64 = 1.25;
/// How often they come is tried in so many steps up to that.
const OFTEN_STEPS: u32 = 32;

/// Of a thousand arrays, one has fewer dips beside others than their mean, less so many standard deviations.
const FEWER_BESIDE_DEVIATIONS: f64 = 3.09;

/// What a drive goes through on its way from empty to going round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Into the cache of an empty drive.
    Cache,
    /// Past the cache, or without one.
    Native,
    /// So full that the cache shrinks, and data is moved beside the writing.
    Shrunk,
    /// Over stale data.
    Overwrite,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// The stage.
    pub stage: Stage,
    /// Bytes on the drive where it ends; None for the last, which doesn't.
    pub ends_at_bytes: Option<f64>,
    /// What it writes over a minute.
    pub mean_bytes_per_s: f64,
    /// What it writes in its slowest moments.
    pub worst_bytes_per_s: f64,
    /// What it was seen to write between dips, if a measured curve goes through the phase.
    #[serde(skip)]
    level_bytes_per_s: Option<f64>,
    /// Where the mean comes from.
    pub figure: Figure,
    /// Whether a measurement went so far.
    pub seen: bool,
}

/// All of them, in order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phases {
    /// In order; never empty.
    pub phases: Vec<Phase>,
    /// How long slow moments last, in seconds.
    pub dip_s: f64,
    /// What dips cost, if that was measured.
    pub dips: Option<Dips>,
    /// Whether it was measured that there are none.
    pub even: bool,
    /// How an empty drive was seen to write; None if that wasn't measured, or if it dips: another drive dips elsewhere.
    #[serde(skip)]
    pub curve: Option<Curve>,
    /// Bytes of the write buffer of a drive that dips and has no cache, as the beginning of a measured curve shows it; 0 if none does.
    pub buffer_bytes: f64,
    /// Other figures that they were made with.
    pub figures: Vec<Figure>,
    /// What to know before they are relied on.
    pub doubts: Vec<String>,
}

/// The time that dips cost. If bytes written without a pause would take `t` seconds at the level between dips, they take at most
/// `(1 + share) * t + together_s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dips {
    /// Time that dips close together cost, in seconds.
    pub together_s: f64,
    /// Time that dips cost in the long run, as a share of what writing takes at the level.
    pub share: f64,
}

impl Dips {
    /// As many of so many drives as dip at once in all but [`MORE_AT_ONCE`] of the time, if each dips when it likes.
    fn at_once(&self, drives: u32) -> u32 {
        let dipping = self.share / (1.0 + self.share);
        // A drive that mostly dips.
        if dipping > 0.5 { drives } else { binomial(drives, dipping, MORE_AT_ONCE) }
    }

    /// What dips of so many drives cost in so many seconds in all but [`MORE_IN_MISSION`] of the cases, if each drive dips regularly and
    /// began when it liked, in dips that each cost as much as the costliest. If most cost less, there are more of them, up to
    /// [`MORE_OFTEN`] times as many: that doesn't change what they cost on average, but how far chance can exceed it.
    pub fn within(&self, drives: u32, seconds: f64) -> f64 {
        let of_each = (seconds + self.together_s) / self.period_s();
        let dips = |of_each: f64| {
            let more = binomial(drives, of_each.fract(), MORE_IN_MISSION);
            f64::from(drives) * of_each.floor() + f64::from(more)
        };
        (0..=OFTEN_STEPS)
            .map(|step| 1.0 + (MORE_OFTEN - 1.0) * f64::from(step) / f64::from(OFTEN_STEPS))
            .map(|often| dips(of_each * often) / often)
            .fold(0.0, f64::max)
    }

    /// How many of so many drives of a stripe begin to dip while the dip of another is still covered, as this part of each is, in 999 of
    /// 1,000 arrays. Drives that get the same bytes dip equally often: as far apart as they begin, they stay.
    ///
    /// The other dips are what a counter counts that is blind for a while after each (Cox, Renewal Theory, 1962). If a is the part of a
    /// period for which it would be blind after all of them, it counts drives / (1 + a) on average. For a Poisson process their variance is
    /// drives / (1 + a)^3. The number of its points, which doesn't vary here, contributes drives / (1 + a)^4 to that, and drives a /
    /// (1 + a)^4 remain.
    pub fn beside(&self, drives: u32, covered: f64) -> f64 {
        let drives = f64::from(drives);
        let a = drives * self.share * covered;
        let mean = drives * a / (1.0 + a);
        let deviation = (drives * a).sqrt() / (1.0 + a).powi(2);
        (mean - FEWER_BESIDE_DEVIATIONS * deviation).max(0.0)
    }

    /// Seconds from one dip to the next, if they come regularly.
    fn period_s(&self) -> f64 {
        self.together_s * (1.0 + self.share) / self.share
    }

    /// Bytes by which so many drives fall behind under adaptive placement while one after another dips, if each dip costs `dip` bytes and
    /// they could write `spare` bytes more than come from one dip of a drive to its next.
    ///
    /// In a part x of that time, dips exceed their mean number by up to 2 sqrt(x (1 - x)) times what [`DIPS_IN_A_ROW`] says, and x times
    /// the spare bytes are caught up. This is the most that is left for any x.
    fn behind(drives: u32, dip: f64, spare: f64) -> f64 {
        let dips = dip * Self::in_a_row(drives);
        // The root of A^2 + S^2 / 4, less S / 2, without a difference of large numbers.
        if dips > 0.0 { dips * dips / (dips.hypot(spare / 2.0) + spare / 2.0) } else { 0.0 }
    }

    /// The longest time in seconds for which a stripe over so many members stands still: dips of one after another.
    pub fn standstill_s(&self, members: u32) -> f64 {
        self.together_s * Self::in_a_row(members)
    }

    /// As many dips of so many drives as come one after another, before those that dipped early are ahead again.
    fn in_a_row(drives: u32) -> f64 {
        let drives = f64::from(drives);
        drives.min(DIPS_IN_A_ROW * drives.sqrt())
    }
}

impl Phase {
    /// One of which nothing is known but its mean.
    fn of_mean(stage: Stage, ends_at_bytes: Option<f64>, figure: &Figure) -> Self {
        Self {
            stage,
            ends_at_bytes,
            mean_bytes_per_s: figure.value,
            worst_bytes_per_s: figure.value,
            level_bytes_per_s: None,
            figure: figure.clone(),
            seen: true,
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Cache => "into the cache",
            Self::Native => "past the cache",
            Self::Shrunk => "cache shrinking",
            Self::Overwrite => "overwriting",
        })
    }
}

impl Phases {
    /// From a drive's figures; None if nothing at all tells how fast it writes.
    pub fn of(candidate: &Candidate) -> Option<Self> {
        let profile = &candidate.profile;
        let measure =
            format!("measure it: `longtake measure fill DRIVE` fills {} twice", profile.name);
        let mut doubts = Vec::new();
        let fast = candidate.rate(name::WRITE_FAST);
        let native = native(candidate, &measure, &mut doubts)?;
        let sustained = candidate.rate(name::WRITE_SUSTAINED);
        let slowest = sustained.clone().filter(|sustained| sustained.value < native.value);
        let overwrite = match candidate.rate(name::WRITE_OVERWRITE) {
            Some(overwrite) => slowest_minute(overwrite, sustained, candidate),
            None => {
                let like = slowest.clone().unwrap_or_else(|| native.clone());
                doubts.push(format!(
                    "how fast it overwrites is not known, and is taken as {}: {measure}",
                    gb(like.value)
                ));
                like
            }
        };
        let mut phases = Vec::new();
        let mut phase = |stage, ends_at_bytes, figure: &Figure| {
            phases.push(Phase::of_mean(stage, ends_at_bytes, figure));
        };
        let capacity = profile.capacity_bytes as f64;
        let mut figures = Vec::new();
        let cache = candidate.figure(name::WRITE_CACHE).filter(|cache| cache.value > 0.0);
        if let (Some(fast), Some(cache)) = (&fast, cache) {
            phase(Stage::Cache, Some(cache.value.min(capacity)), fast);
            figures.push(cache);
        }
        let shrunk = candidate.shrunk(&native).filter(|(shrink, _)| shrink.value < capacity);
        match shrunk {
            Some((shrink, level)) => {
                phase(Stage::Native, Some(shrink.value), &native);
                // A long phase may have a slower minute.
                let measured = candidate.rate(name::WRITE_SHRUNK).into_iter().chain(slowest);
                let level = measured.min_by(|a, b| a.value.total_cmp(&b.value)).or(level);
                phase(Stage::Shrunk, Some(capacity), level.as_ref().unwrap_or(&native));
                figures.push(shrink);
            }
            None => phase(Stage::Native, Some(capacity), &native),
        }
        phase(Stage::Overwrite, None, &overwrite);
        if phases.iter().any(|phase| phase.figure.evidence == Trust::Datasheet) {
            doubts.push(format!(
                "how fast it writes is the datasheet's word, which need not hold for long (REC-1): {measure}"
            ));
        }
        let mut all = Self::of_means(phases, figures, doubts);
        all.assume_what_was_not_seen(profile, &measure);
        all.dip(candidate);
        all.see_levels(candidate);
        let cached = all.phases.iter().any(|phase| phase.stage == Stage::Cache);
        all.curve = if all.even { Curve::of(candidate, &native, cached) } else { None };
        Some(all)
    }

    /// Phases of which nothing is known but their means.
    fn of_means(phases: Vec<Phase>, figures: Vec<Figure>, doubts: Vec<String>) -> Self {
        Self {
            phases,
            dip_s: DIP_S,
            dips: None,
            even: false,
            curve: None,
            buffer_bytes: 0.0,
            figures,
            doubts,
        }
    }

    /// Nothing was measured behind the end of a fill that stopped before the drive was full: from there on rates are assumed.
    fn assume_what_was_not_seen(&mut self, profile: &Profile, measure: &str) {
        let capacity = profile.capacity_bytes as f64;
        let Some(curve) = profile.fill.as_ref().filter(|c| !c.is_whole(profile.capacity_bytes))
        else {
            return;
        };
        let seen_bytes = curve.bytes() as f64;
        let origin =
            format!("nothing was measured behind the first {}", explain::bytes(seen_bytes));
        let mut cut = Vec::new();
        for phase in self.phases.drain(..) {
            let beyond = phase.ends_at_bytes.filter(|end| *end > seen_bytes);
            let (Some(end), Stage::Native | Stage::Shrunk | Stage::Cache) = (beyond, phase.stage)
            else {
                cut.push(phase);
                continue;
            };
            let begins = cut.last().and_then(|last: &Phase| last.ends_at_bytes).unwrap_or(0.0);
            if begins < seen_bytes {
                cut.push(Phase { ends_at_bytes: Some(seen_bytes), ..phase.clone() });
            }
            let figure = Figure {
                evidence: Trust::Assumed,
                origin: origin.clone(),
                range: None,
                ..phase.figure
            };
            cut.push(Phase { ends_at_bytes: Some(end), figure, seen: false, ..phase });
        }
        self.phases = cut;
        self.doubts.push(format!(
            "{origin} of {}; it is taken to go on at the same rate, and a cache may shrink or flash run out there: {measure}",
            explain::bytes(capacity)
        ));
    }

    /// The same with a share of the flash, which is a share of the rate. How parts share a cache the curve doesn't tell.
    pub fn slow(&mut self, share: f64) {
        self.curve = None;
        for phase in &mut self.phases {
            phase.mean_bytes_per_s *= share;
            phase.worst_bytes_per_s *= share;
            phase.level_bytes_per_s = phase.level_bytes_per_s.map(|level| level * share);
        }
    }

    /// Enters slow moments by the best figures there are: the cost of dips; else the worst second, compared with the slowest phase,
    /// in which it was; else the depth of dips.
    fn dip(&mut self, candidate: &Candidate) {
        let counted = candidate.figure(name::DIP_COUNT);
        self.even =
            counted.is_some_and(|dips| dips.value <= 0.0 && dips.evidence >= Trust::Measured);
        let measured = |name| candidate.figure(name).filter(|figure| figure.value > 0.0);
        if let (Some(lost), Some(share)) = (measured(name::DIP_LOST), measured(name::DIP_SHARE)) {
            let together_s = lost.value / 1e9;
            self.dips = Some(Dips { together_s, share: share.value / 100.0 });
            let length = measured(name::DIP_LENGTH);
            self.dip_s = length.as_ref().map_or(together_s, |one| together_s.min(one.value / 1e9));
            self.figures.extend([lost, share].into_iter().chain(length));
            return;
        }
        let floor = self.phases.iter().map(|p| p.mean_bytes_per_s).fold(f64::INFINITY, f64::min);
        let worst = candidate.rate(name::WRITE_WORST_SECOND);
        let depth = candidate.figure(name::DIP_DEPTH).filter(|depth| depth.value <= 100.0);
        let left = match (worst, depth) {
            (Some(worst), _) => {
                let left = (worst.value / floor).min(1.0);
                self.figures.push(worst);
                left
            }
            (None, Some(depth)) => {
                let left = 1.0 - depth.value / 100.0;
                self.figures.push(depth);
                left
            }
            (None, None) => {
                self.doubts.push(
                    "its slowest second is not known; it is taken as even: `longtake measure fill DRIVE` shows it".to_owned(),
                );
                1.0
            }
        };
        for phase in &mut self.phases {
            phase.worst_bytes_per_s = phase.mean_bytes_per_s * left;
        }
        if left >= 1.0 {
            return;
        }
        match candidate.figure(name::DIP_LENGTH).filter(|length| length.value > 0.0) {
            Some(length) => {
                self.dip_s = length.value / 1e9;
                self.figures.push(length);
            }
            // No second was a dip: the slowest is one of many that differ.
            None if self.even => {}
            None => self.doubts.push(format!(
                "how long its dips last is not known; taken as {DIP_S} s, and all drives as dipping at once"
            )),
        }
    }

    /// Notes what an empty drive was seen to write between dips, as much worse as means are taken to be, and into its own buffer.
    fn see_levels(&mut self, candidate: &Candidate) {
        let Some(dips) = self.dips else { return };
        let mut begins = 0.0;
        for phase in &mut self.phases {
            let Some(ends) = phase.ends_at_bytes else { break };
            let stated = candidate.profile.known(&phase.figure.name).map(|known| known.value);
            let level = curve::level(&candidate.profile, begins, ends, dips.period_s());
            if let (Some(level), Stage::Native, 0.0) = (level, phase.stage, begins) {
                self.buffer_bytes = curve::buffer_bytes(&candidate.profile, level);
            }
            phase.level_bytes_per_s =
                stated.zip(level).map(|(stated, level)| level * phase.mean_bytes_per_s / stated);
            begins = ends;
        }
    }

    /// What a drive writes in a phase while it doesn't dip, in bytes a second: more than the mean by the time that dips cost in the long
    /// run, but not more than was seen, where the pass that the mean is of met fewer of them.
    pub fn level(&self, phase: &Phase) -> f64 {
        let share = self.dips.map_or(0.0, |dips| dips.share);
        let level = phase.mean_bytes_per_s * (1.0 + share);
        phase.level_bytes_per_s.map_or(level, |seen| seen.clamp(phase.mean_bytes_per_s, level))
    }

    /// The most that a drive of a stripe writes past its cache while nothing dips, in bytes a second, in the phases reached with so many
    /// bytes. It tidies up while the stripe waits.
    pub fn between_waits(&self, bytes_per_drive: f64) -> f64 {
        let reached = self.reached(bytes_per_drive).iter();
        let past_cache = reached.filter(|phase| phase.stage != Stage::Cache);
        past_cache.map(|phase| self.level(phase) / (1.0 - self.tidying(phase))).fold(0.0, f64::max)
    }

    /// Those that a drive goes through on its way to so many bytes; infinitely many reach them all.
    pub fn reached(&self, bytes_per_drive: f64) -> &[Phase] {
        let last = self
            .phases
            .iter()
            .position(|phase| phase.ends_at_bytes.is_none_or(|end| bytes_per_drive <= end))
            .unwrap_or(self.phases.len() - 1);
        &self.phases[..=last]
    }

    /// The most bytes that wait in buffers while drives, each taking its share, are offered `offered` bytes a second until `volume` have
    /// come. So many of them together write `rate_of` bytes a second in a phase. Infinite if it never ends.
    pub fn backlog(
        &self,
        offered: f64,
        volume: f64,
        drives: f64,
        rate_of: impl Fn(&Phase) -> f64,
    ) -> f64 {
        let steps = self.phases.iter().map(|phase| (phase.ends_at_bytes, rate_of(phase)));
        waiting(offered, volume, drives, steps)
    }

    /// What a drive writes in a phase, in bytes a second. In a stripe it waits for the dips of `others`, a number of drives that need not be
    /// whole, and loses the time that they cost, but for what it tidies up meanwhile. If that cost wasn't measured, a stripe is taken to be
    /// as slow as in the worst second, unless drives were seen not to dip. Under adaptive placement it waits for none.
    pub fn each(&self, phase: &Phase, others: f64, placement: Placement) -> f64 {
        match (placement, &self.dips) {
            (Placement::Adaptive, _) => phase.mean_bytes_per_s,
            (Placement::Stripe, None) if self.even => phase.mean_bytes_per_s,
            (Placement::Stripe, None) => phase.worst_bytes_per_s,
            (Placement::Stripe, Some(Dips { share, .. })) => {
                let of_others = (others * share - self.tidying(phase)).max(0.0);
                phase.mean_bytes_per_s * (1.0 + share) / (1.0 + share + of_others)
            }
        }
    }

    /// The share by which the slowest phase is slower than the fastest; 0 for a drive that has nothing to tidy up.
    pub fn unevenness(&self) -> f64 {
        let rates = || self.phases.iter().map(|phase| phase.mean_bytes_per_s);
        1.0 - rates().fold(f64::INFINITY, f64::min) / rates().fold(0.0, f64::max)
    }

    /// The share of its time in a phase in which a drive makes room, which it can do while it waits: by that much it writes less than past
    /// the cache, where all flash is empty.
    fn tidying(&self, phase: &Phase) -> f64 {
        let empty = self.phases.iter().find(|one| one.stage == Stage::Native);
        match empty.filter(|empty| phase.stage == Stage::Overwrite && empty.seen) {
            Some(empty) => (1.0 - phase.mean_bytes_per_s / empty.mean_bytes_per_s).max(0.0),
            None => 0.0,
        }
    }

    /// What waits on top of the backlog in slow moments of the phases reached, under adaptive placement: while as many drives have
    /// them at once as ever will, or one after another; all at once where that isn't known. `left` is the share of their time that
    /// drives have for writing.
    pub fn dip_bytes(&self, offered: f64, bytes_per_drive: f64, drives: u32, left: f64) -> f64 {
        let of = |rate: f64, drives: u32| rate * f64::from(drives) * left;
        let missed = |phase: &Phase| {
            let (mean, worst) = (phase.mean_bytes_per_s, phase.worst_bytes_per_s);
            // What a phase as a whole falls short of waits in the backlog already.
            let come = offered.min(of(mean, drives));
            let Some(dips) = self.dips else {
                return (come - of(worst, drives)) * self.dip_s;
            };
            let at_once = (come - of(mean, drives - dips.at_once(drives))) * dips.together_s;
            // Those that don't dip always keep up: nothing ever begins to wait.
            if at_once <= 0.0 {
                return 0.0;
            }
            let spare = (of(mean, drives) - come) * dips.period_s();
            let dip = of(mean, 1) * (1.0 + dips.share) * dips.together_s;
            at_once.max(Dips::behind(drives, dip, spare))
        };
        self.reached(bytes_per_drive).iter().map(missed).fold(0.0, f64::max)
    }

    /// The slowest of the phases reached, the last if several are. Slow moments take the same share of all.
    pub fn slowest(&self, bytes_per_drive: f64) -> &Phase {
        let reached = self.reached(bytes_per_drive);
        reached
            .iter()
            .reduce(|a, b| if b.mean_bytes_per_s <= a.mean_bytes_per_s { b } else { a })
            .unwrap_or(&self.phases[0])
    }
}

/// The most bytes that wait while `offered` bytes a second come until `volume` have, and `drives` write them in steps: bytes on each drive
/// where a step ends, None for the last that doesn't, and what all write a second.
pub(crate) fn waiting(
    offered: f64,
    volume: f64,
    drives: f64,
    steps: impl Iterator<Item = (Option<f64>, f64)>,
) -> f64 {
    let (mut come, mut written, mut most) = (0.0, 0.0, 0.0);
    for (end, rate) in steps {
        if rate <= 0.0 {
            return f64::INFINITY;
        }
        let Some(end) = end else {
            // The last phase goes on for as long as data comes.
            let grown = (volume - come) * (1.0 - rate / offered);
            let peak = if offered > rate { come - written + grown } else { 0.0 };
            return if peak.is_nan() { f64::INFINITY } else { f64::max(most, peak) };
        };
        let end = (end * drives).min(volume);
        if end <= written {
            continue;
        }
        let waiting: f64 = come - written;
        if offered > rate {
            // Busy all the time: what waits grows until the phase, or what comes, ends.
            let seconds = ((end - written) / rate).min((volume - come) / offered);
            most = f64::max(most, waiting + seconds * (offered - rate));
            come = (come + (end - written) / rate * offered).min(volume);
        } else {
            // What waits is worked off, if the phase lasts; then it writes what comes.
            let seconds = (end - written) / rate;
            come = f64::max((come + seconds * offered).min(volume), end);
        }
        written = end;
        if written >= volume {
            break;
        }
    }
    most
}

/// The number that so many tries, each of which comes out with this chance, stay at or below in all but `more` of the cases. Of thousands
/// of tries it is Bernstein's bound, which is somewhat higher.
fn binomial(tries: u32, chance: f64, more: f64) -> u32 {
    let mut exactly = (1.0 - chance).powf(f64::from(tries));
    if !exactly.is_normal() {
        let mean = f64::from(tries) * chance;
        let surely = (1.0 / more).ln();
        let third = surely / 3.0;
        let above = third + third.hypot((2.0 * surely * mean * (1.0 - chance)).sqrt());
        return tries.min((mean + above).ceil() as u32);
    }
    let (mut up_to, mut number) = (exactly, 0);
    while number < tries && 1.0 - up_to > more {
        exactly *= f64::from(tries - number) / f64::from(number + 1) * chance / (1.0 - chance);
        number += 1;
        up_to += exactly;
    }
    number
}

/// The rate over stale data: that of the slowest minute, if it was measured there. A ring runs into such a minute again and again, and no
/// buffer is large enough for it.
fn slowest_minute(overwrite: Figure, sustained: Option<Figure>, candidate: &Candidate) -> Figure {
    let dips = candidate.figure(name::DIP_SHARE).is_some_and(|share| share.value > 0.0);
    let stated = candidate.profile.known(name::WRITE_OVERWRITE).map(|known| known.value);
    let minute = sustained.filter(|minute| minute.evidence >= Trust::Measured && !dips);
    let share = minute.zip(stated).map(|(minute, stated)| minute.value / stated);
    // Without a cache, no phase is slower than over stale data.
    let cached = candidate.figure(name::WRITE_CACHE).is_some_and(|cache| cache.value > 0.0);
    let least = if cached { MINUTE_SHARE } else { 0.0 };
    let Some(share) = share.filter(|share| (least..1.0).contains(share)) else {
        return overwrite;
    };
    let range = overwrite.range.map(|(low, high)| (low * share, high * share));
    Figure { value: overwrite.value * share, range, ..overwrite }
}

/// How fast a drive writes past its cache: as known best, or as its peak if nothing else is known.
fn native(candidate: &Candidate, measure: &str, doubts: &mut Vec<String>) -> Option<Figure> {
    let sustained = candidate.rate(name::WRITE_SUSTAINED);
    better(candidate.rate(name::WRITE_NATIVE), sustained)
        .or_else(|| candidate.rate(name::WRITE_OVERWRITE))
        .or_else(|| candidate.model_write())
        .or_else(|| {
            let fast = candidate.rate(name::WRITE_FAST)?;
            doubts.push(format!(
                "of writing only a peak is known ({}), which holds for a small part of the capacity (REC-1): {measure}",
                gb(fast.value)
            ));
            Some(fast)
        })
}

/// Of two figures of one thing the one that rests on more; the first if both are alike, however closely they were measured.
fn better(one: Option<Figure>, other: Option<Figure>) -> Option<Figure> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let worth = |figure: &Figure| figure.evidence.min(Trust::Measured);
            Some(if worth(&other) > worth(&one) { other } else { one })
        }
        (one, other) => one.or(other),
    }
}

fn gb(bytes_per_s: f64) -> String {
    crate::explain::rate(bytes_per_s)
}
