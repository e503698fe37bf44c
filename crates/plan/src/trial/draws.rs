//! Recordings that depend on chance: made again and again, with drives' maintenance at other times in each draw.

use std::fmt;
use std::ops::ControlFlow;

use recorder::{Placement, WhenFull};

use crate::mission::{Mission, MissionError, MissionOutcome, Progress};

/// A mission is recorded in so many draws at most. Plans have buffers for the dips of all but one in as many.
const DRAWS: u64 = 1000;
/// And a ring, each recording of which takes minutes of the drives' time instead of seconds.
const DRAWS_OF_RING: u64 = 20;
/// A number of drives is enough if it loses something in no more of them.
const LOST_MOST: u64 = 1;
/// Seeds from one draw to the next: those of a draw's drives are close together, and none is another draw's.
const SEEDS_APART: u64 = 1 << 32;

/// What came of recording something in several draws.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Draws that it takes to tell that as many drives are enough.
    pub of: u64,
    /// Draws that were recorded.
    pub tried: u64,
    /// Those of them in which something was lost.
    pub lost: u64,
    /// What came of the last of those, up to its first loss.
    pub loss: Option<MissionOutcome>,
    /// What it cost to simulate, as [`MissionOutcome::work`].
    pub work: u64,
}

impl Drawn {
    /// Whether as many drives are enough; None if too few draws were recorded to tell.
    pub fn enough(&self) -> Option<bool> {
        match self {
            drawn if drawn.lost > LOST_MOST => Some(false),
            drawn if drawn.tried >= drawn.of => Some(true),
            _ => None,
        }
    }
}

/// In how many draws a recording is made that depends on when its drives do their maintenance; 1 if it doesn't. Under adaptive
/// placement, drives of a ring drift apart until it has met all that comes in a row; those of a stripe stay in step.
pub fn draws(mission: &Mission) -> u64 {
    let (ring, stripe) =
        (mission.when_full == WhenFull::Wrap, mission.placement == Placement::Stripe);
    match mission.drives.iter().any(|slot| slot.spec.upkeep.is_some()) {
        true if !ring => DRAWS,
        true if stripe => DRAWS_OF_RING,
        _ => 1,
    }
}

/// Makes a recording in so many draws, until one more than may lose something has lost it, until all draws together have cost the
/// mission's `work_max`, or until `watch` breaks it off. Its own seed is the first draw.
///
/// # Errors
/// [`MissionError`] if it can't be run.
pub fn draw(
    mission: &Mission,
    draws: u64,
    mut watch: impl FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Drawn, MissionError> {
    let mut drawn = Drawn { of: draws, tried: 0, lost: 0, loss: None, work: 0 };
    let mut one = mission.clone();
    while drawn.tried < draws && drawn.lost <= LOST_MOST {
        let number = drawn.tried;
        one.seed = mission.seed.wrapping_add(number * SEEDS_APART);
        one.work_max = mission.work_max.map(|work| work.saturating_sub(drawn.work));
        let outcome = one.run(|progress| match progress.first_loss {
            Some(_) => ControlFlow::Break(()),
            None => watch(Progress { draw: (number, draws), ..progress }),
        })?;
        drawn.work += outcome.work;
        if outcome.first_loss.is_some() {
            drawn.lost += 1;
            drawn.loss = Some(outcome);
        } else if !outcome.whole {
            break;
        }
        drawn.tried += 1;
    }
    Ok(drawn)
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, lost, .. } = self;
        match (lost, self.enough()) {
            (0, _) if *tried == 0 => Ok(()),
            (0, _) => write!(f, ", in each of {tried} draws"),
            (_, Some(false)) => write!(f, ", in {lost} of {tried} draws"),
            _ => write!(f, ", in all but {lost} of {tried} draws"),
        }
    }
}
