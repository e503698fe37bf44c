//! Which single change of a requirement would do, and the least of it: to save a drive, or to make possible what isn't.

use base::{ByteSize, Duration, Rate};
use recorder::Placement;
use serde::Serialize;

use crate::candidate::Candidate;
use crate::explain::factor;
use crate::host::Uplink;
use crate::limits::{Case, Sizing, Subject};
use crate::requirement::{Requirement, Sets, Term};

/// Something that may be changed while all else stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A lower rate.
    Rate,
    /// Less to keep, or a shorter mission.
    Time,
    /// Less margin.
    Margin,
    /// A shorter life.
    Life,
    /// Less reading beside the recording.
    Readers,
    /// More memory for buffers.
    Memory,
    /// A faster shared link.
    Uplink,
    /// More lanes.
    Lanes,
    /// Slots of a later generation.
    Generation,
    /// Adaptive placement.
    Adaptive,
    /// One drive's worth of parity less.
    Parity,
    /// One spare less.
    Spare,
    /// Readers that share all flash with the recorder.
    Sets,
}

/// The least of one change that does it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saving {
    /// What is changed.
    pub change: Change,
    /// How much of it, in words: `rate -2.4 % (to 12.2 GB/s)`.
    pub words: String,
    /// How much of it in percent, for what has a measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Drives in all before; None if no number would do.
    pub drives_before: Option<u32>,
    /// Drives in all after.
    pub drives_after: u32,
}

const ALL: [Change; 13] = [
    Change::Adaptive,
    Change::Rate,
    Change::Time,
    Change::Margin,
    Change::Life,
    Change::Readers,
    Change::Memory,
    Change::Uplink,
    Change::Lanes,
    Change::Generation,
    Change::Parity,
    Change::Spare,
    Change::Sets,
];

/// As many times as an amount is halved in the search, and the step that it is then rounded up to, in percent.
const HALVINGS: usize = 16;
const STEP_PERCENT: f64 = 0.1;

/// A share that leaves nothing worth a name.
const NOTHING_LEFT: f64 = 0.999;

/// The least of each change that saves a drive, or that makes possible what isn't: with this drive under the stream, or without if it
/// can't be put there as required.
pub fn savings(
    requirement: &Requirement,
    candidate: &Candidate,
    subject: Option<&Subject<'_>>,
) -> Vec<Saving> {
    let total = |requirement: &Requirement, sizing: &Sizing| {
        sizing.answer.map(|(data, _)| data + requirement.parity + requirement.spare)
    };
    let size = |changed: &Requirement| {
        // What is recorded with other sets is recorded with other parts of the drive.
        let other = (changed.sets != requirement.sets).then(|| Subject::new(candidate, changed));
        let subject = other.as_ref().map_or(subject, |other| other.as_ref().ok())?;
        total(changed, &Case::new(changed, subject).size(changed.placement))
    };
    let before = size(requirement);
    let better = |requirement: &Requirement| {
        size(requirement).filter(|after| before.is_none_or(|before| *after < before))
    };
    let mut found = Vec::new();
    for change in ALL {
        let Some(most) = change.most(requirement, before.is_none()) else { continue };
        let after = |amount: f64| better(&change.made(requirement, amount));
        if after(most).is_none() {
            continue;
        }
        let (mut low, mut high) = (0.0, most);
        if change.measured() {
            for _ in 0..HALVINGS {
                let middle = f64::midpoint(low, high);
                if after(middle).is_some() { high = middle } else { low = middle }
            }
            let rounded = (high * 100.0 / STEP_PERCENT).ceil() * STEP_PERCENT / 100.0;
            high = rounded.min(most);
        }
        if let Some(drives_after) = after(high) {
            found.push(Saving {
                change,
                words: change.words(requirement, high),
                percent: change.measured().then_some(high * 100.0),
                drives_before: before,
                drives_after,
            });
        }
    }
    found
}

impl Change {
    /// The most of it that is worth telling, as a share; None if there is nothing to change. More, if nothing else will do.
    fn most(self, r: &Requirement, desperate: bool) -> Option<f64> {
        let less = if desperate { 0.9999 } else { 0.5 };
        match self {
            Self::Rate => Some(less),
            Self::Time => (r.term != Term::Whole).then_some(less),
            Self::Life => r.life_years.map(|_| less),
            Self::Margin => (r.margin_percent > 0.0).then_some(1.0),
            Self::Readers => (r.readers.bytes_per_s() > 0.0).then_some(1.0),
            Self::Memory => r.host.memory.is_some().then_some(if desperate { 999.0 } else { 15.0 }),
            Self::Uplink => r.host.uplink.is_some().then_some(if desperate { 999.0 } else { 3.0 }),
            Self::Lanes => r.host.lanes.is_some().then_some(if desperate { 99.0 } else { 3.0 }),
            Self::Generation => r.host.generation.is_some_and(|g| g < 6).then_some(1.0),
            Self::Adaptive => (r.placement == Placement::Stripe).then_some(1.0),
            Self::Parity => (r.parity > 0 && !desperate).then_some(1.0),
            Self::Spare => (r.spare > 0 && !desperate).then_some(1.0),
            Self::Sets => (r.sets != Sets::Shared).then_some(1.0),
        }
    }

    /// Whether it comes in any amount.
    const fn measured(self) -> bool {
        !matches!(self, Self::Generation | Self::Adaptive | Self::Parity | Self::Spare | Self::Sets)
    }

    /// The requirement with so much of it: a share less of what there is, or a share more.
    fn made(self, requirement: &Requirement, amount: f64) -> Requirement {
        let mut r = requirement.clone();
        let (less, more) = (1.0 - amount, 1.0 + amount);
        let shorter = |time: Duration| Duration::from_secs_f64(time.as_secs_f64() * less);
        match self {
            Self::Rate => r.rate.0 *= less,
            Self::Time => {
                r.term = match r.term {
                    Term::Whole => Term::Whole,
                    Term::Keep(time) => Term::Keep(shorter(time)),
                    Term::Mission { length, per_thousand_days } => {
                        Term::Mission { length: shorter(length), per_thousand_days }
                    }
                }
            }
            Self::Margin => r.margin_percent *= less,
            Self::Life => r.life_years = r.life_years.map(|years| years * less),
            Self::Readers => r.readers.rate.0 *= less,
            Self::Memory => {
                r.host.memory =
                    r.host.memory.map(|memory| ByteSize((memory.0 as f64 * more) as u64));
            }
            Self::Uplink => {
                r.host.uplink = r.host.uplink.map(|link| Uplink {
                    to_host: Rate(link.to_host.0 * more),
                    to_drives: Rate(link.to_drives.0 * more),
                });
            }
            Self::Lanes => {
                r.host.lanes = r.host.lanes.map(|lanes| (f64::from(lanes) * more).ceil() as u32);
            }
            Self::Generation => r.host.generation = r.host.generation.map(|g| g + 1),
            Self::Adaptive => r.placement = Placement::Adaptive,
            Self::Parity => r.parity -= 1,
            Self::Spare => r.spare -= 1,
            Self::Sets => r.sets = Sets::Shared,
        }
        r
    }

    fn words(self, before: &Requirement, amount: f64) -> String {
        let percent = factor(amount * 100.0);
        let after = self.made(before, amount);
        let or = |text: Option<String>| text.unwrap_or_default();
        match self {
            Self::Rate => format!("rate -{percent} % (to {})", after.rate),
            Self::Time => {
                let what = if before.wraps() { "time kept" } else { "mission" };
                format!("{what} -{percent} % (to {})", crate::explain::seconds(after.held_s()))
            }
            Self::Margin => format!(
                "margin of {} % instead of {} %",
                factor(after.margin_percent),
                factor(before.margin_percent)
            ),
            Self::Life => format!(
                "life of {} years instead of {}",
                or(after.life_years.map(factor)),
                or(before.life_years.map(factor))
            ),
            Self::Readers if amount >= NOTHING_LEFT => "without readers".to_owned(),
            Self::Readers => format!("readers -{percent} % (to {} each)", after.readers.rate),
            Self::Memory => {
                format!("memory +{percent} % (to {})", or(after.host.memory.map(|m| m.to_string())))
            }
            Self::Uplink => format!(
                "uplink +{percent} % (to {} toward the drives)",
                or(after.host.uplink.map(|link| link.to_drives.to_string()))
            ),
            Self::Lanes => format!("{} lanes", or(after.host.lanes.map(|lanes| lanes.to_string()))),
            Self::Generation => {
                format!("slots of PCIe {}", or(after.host.generation.map(|g| g.to_string())))
            }
            Self::Adaptive => "adaptive placement instead of stripe".to_owned(),
            Self::Parity => {
                "one drive's worth of parity less, which survives one failure less".to_owned()
            }
            Self::Spare => "one spare less: somebody is needed one failure sooner".to_owned(),
            Self::Sets => "shared sets: readers then meet what is written".to_owned(),
        }
    }
}
