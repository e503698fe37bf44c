//! Whether a number of drives is the one that is needed: the mission runs without a loss on as many, and not on one less.

use std::fmt;
use std::ops::ControlFlow;

use crate::mission::{FirstLoss, Mission, MissionError, MissionOutcome, Progress};

/// What the simulation says of a number of drives.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The number of drives.
    pub drives: usize,
    /// The mission on as many.
    pub with: MissionOutcome,
    /// The mission on one drive less, broken off at its first loss; None where there is none less.
    pub without: Option<MissionOutcome>,
}

/// What a proof comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum ProofVerdict {
    /// As many lose nothing, one less does.
    Confirmed {
        /// When and why one less does; None for a single drive.
        without: Option<FirstLoss>,
    },
    /// As many lose something.
    TooFew {
        /// When and why.
        loss: FirstLoss,
    },
    /// One less loses nothing either.
    TooMany,
}

impl Proof {
    /// What it cost to simulate, as [`MissionOutcome::work`].
    pub fn work(&self) -> u64 {
        self.with.work + self.without.as_ref().map_or(0, |less| less.work)
    }

    /// What it comes to.
    pub fn verdict(&self) -> ProofVerdict {
        if let Some(loss) = &self.with.first_loss {
            return ProofVerdict::TooFew { loss: loss.clone() };
        }
        match &self.without {
            Some(without) if without.first_loss.is_none() => ProofVerdict::TooMany,
            without => {
                let loss = without.as_ref().and_then(|outcome| outcome.first_loss.clone());
                ProofVerdict::Confirmed { without: loss }
            }
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drives = self.drives;
        match self.verdict() {
            ProofVerdict::Confirmed { without } => {
                write!(f, "{drives} confirmed: no loss in {}", self.with.time)?;
                without.map_or(Ok(()), |loss| write!(f, "; with one less, {loss}"))
            }
            ProofVerdict::TooFew { loss } => write!(f, "{drives} refuted: {loss}"),
            ProofVerdict::TooMany => {
                write!(f, "{drives} refuted: one less loses nothing in {} either", self.with.time)
            }
        }
    }
}

/// Share of the work a proof may cost that as many drives may take; the rest is for one less, which usually loses something soon.
const SHARE_OF_ALL: f64 = 0.75;

/// Runs a mission on all its drives, and then on all but the last for as long as the first run took. `watch` receives the number of
/// drives and the progress, and may end the runs. Together they cost at most the mission's `work_max`, if it has one.
///
/// # Errors
/// [`MissionError`] if one can't be run.
pub fn prove(
    mission: &Mission,
    mut watch: impl FnMut(usize, Progress<'_>) -> ControlFlow<()>,
) -> Result<Proof, MissionError> {
    let drives = mission.drives.len();
    let mut all = mission.clone();
    if drives > 1 {
        all.work_max = mission.work_max.map(|work| (work as f64 * SHARE_OF_ALL) as u64);
    }
    let mut stopped = false;
    let with = all.run(|progress| {
        let told = watch(drives, progress);
        stopped |= told.is_break();
        told
    })?;
    let mut without = None;
    if drives > 1 && !stopped {
        let mut less = mission.clone();
        less.drives.truncate(drives - 1);
        less.duration = with.fed;
        less.work_max = mission.work_max.map(|work| work.saturating_sub(with.work));
        let outcome = less.run(|progress| {
            let lost = progress.first_loss.is_some();
            let told = watch(drives - 1, progress);
            if lost { ControlFlow::Break(()) } else { told }
        })?;
        without = Some(outcome);
    }
    Ok(Proof { drives, with, without })
}

/// The smallest number of drives on which a mission loses nothing, with the proof. The search goes up from `from` one at a time, and down
/// in steps that double; if so many lose something, fewer are taken to lose as well. Each number is run at most once, and ends at its
/// first loss. None if `most` drives are not enough.
///
/// # Errors
/// [`MissionError`] if one can't be run.
pub fn least(
    from: usize,
    most: usize,
    mission: impl Fn(usize) -> Mission,
    mut watch: impl FnMut(usize, Progress<'_>) -> ControlFlow<()>,
) -> Result<Option<Proof>, MissionError> {
    let mut run = |drives: usize| {
        mission(drives).run(|progress| {
            let lost = progress.first_loss.is_some();
            let told = watch(drives, progress);
            if lost { ControlFlow::Break(()) } else { told }
        })
    };
    let mut drives = from.clamp(1, most);
    let mut outcome = run(drives)?;
    if outcome.first_loss.is_none() {
        return fewest(drives, outcome, run).map(Some);
    }
    while drives < most {
        let more = run(drives + 1)?;
        if more.first_loss.is_none() {
            return Ok(Some(Proof { drives: drives + 1, with: more, without: Some(outcome) }));
        }
        (drives, outcome) = (drives + 1, more);
    }
    Ok(None)
}

/// The fewest drives that lose nothing, where so many are known to.
fn fewest(
    mut drives: usize,
    mut with: MissionOutcome,
    mut run: impl FnMut(usize) -> Result<MissionOutcome, MissionError>,
) -> Result<Proof, MissionError> {
    let (mut too_few, mut without) = (0, None);
    let mut step = 1;
    while drives - too_few > 1 {
        let least = too_few + if without.is_some() { (drives - too_few) / 2 } else { 1 };
        let fewer = drives.saturating_sub(step).max(least);
        let outcome = run(fewer)?;
        if outcome.first_loss.is_some() {
            (too_few, without) = (fewer, Some(outcome));
        } else {
            (drives, with) = (fewer, outcome);
            step *= 2;
        }
    }
    Ok(Proof { drives, with, without })
}
