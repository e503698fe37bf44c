//! Cases for tests that want something of them: a seed chooses, within what a test leaves open.

use base::Random;
use recorder::WhenFull;

use super::{Case, Ending, Purpose, Round, round};
use crate::fault::What;

/// What may go wrong with drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Anything, and accidents between recordings.
    Any,
    /// Commands fail and drives die, but none lies, and nothing happens between recordings.
    Honest,
    /// Drives stall and slow down, no more.
    Stalls,
    /// Nothing.
    None,
}

/// What a test wants of its cases. The default is anything.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How recordings may end.
    pub endings: Vec<Ending>,
    /// What may go wrong with drives.
    pub faults: Faults,
    /// What may happen at the end of the array.
    pub when_full: Vec<WhenFull>,
    /// Whether ranges are protected; the seed chooses if None.
    pub protects: Option<bool>,
    /// Whether somebody reads while recording goes on; the seed chooses if None.
    pub views: Option<bool>,
    /// Recordings, at most.
    pub rounds: u64,
    /// Whether every drive has a cache that a power cut empties.
    pub volatile: bool,
    /// Whether the array may have parity.
    pub parity: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            endings: vec![Ending::Stop, Ending::Kill, Ending::PowerCut],
            faults: Faults::Any,
            when_full: vec![WhenFull::Stop, WhenFull::Wrap],
            protects: None,
            views: None,
            rounds: 3,
            volatile: false,
            parity: true,
        }
    }
}

impl Case {
    /// What this seed chooses of the cases that a test wants. The drives and the array are those of [`Case::of`].
    pub fn wanted(seed: u64, wanted: &Wanted) -> Self {
        let mut case = Self::of(seed);
        let random = &mut Random::new(seed ^ 0x3A27_ED0C);
        let one_of = |random: &mut Random, count: usize| random.below(count as u64) as usize;
        let protects = random.one_in(2);
        let reads = random.one_in(4);
        let goes_wrong = (
            wanted.protects.unwrap_or(protects),
            wanted.faults != Faults::None,
            wanted.views.unwrap_or(reads),
        );
        let interval_us = case.interval.as_nanos() / 1000;
        let rounds: Vec<Round> = (0..1 + random.below(wanted.rounds))
            .map(|_| round(random, &case.drives, interval_us, goes_wrong))
            .collect();
        // Age and changes of the superblocks stay what the seed chose.
        let chosen = std::mem::replace(&mut case.rounds, rounds);
        for (round, chosen) in case.rounds.iter_mut().zip(chosen) {
            (round.older, round.changes) = (chosen.older, chosen.changes);
        }
        for round in &mut case.rounds {
            round.ending = wanted.endings[one_of(random, wanted.endings.len())];
            wanted.faults.restrict(round);
            if wanted.protects == Some(false) {
                round.changes.retain(|c| !matches!(c.purpose, Purpose::Protect(_)));
            }
        }
        case.when_full = wanted.when_full[one_of(random, wanted.when_full.len())];
        if wanted.volatile {
            case.drives.iter_mut().for_each(|drive| drive.volatile = true);
        }
        if !wanted.parity {
            case.parity = 0;
        }
        case
    }
}

impl Faults {
    /// Leaves of a recording's faults and accidents what may happen.
    fn restrict(self, round: &mut Round) {
        match self {
            Self::Any => return,
            Self::Honest => {
                round.faults.retain(|fault| !matches!(fault.what, What::LosesWrites { .. }));
            }
            Self::Stalls => {
                round.faults.retain(|f| matches!(f.what, What::Stalls | What::Slows(_)));
            }
            Self::None => round.faults.clear(),
        }
        (round.accident, round.remember, round.misread) = (None, None, false);
        if self != Self::Honest {
            round.changes.iter_mut().for_each(|change| change.cut = None);
        }
    }
}
