//! Experiments as a user may want them: shorter on simulated drives, or without anything that writes; and what each starts from.

use base::Duration;

use super::any::Experiment;
use super::preparation::StartingState;
use super::viewers::Viewers;

impl Experiment {
    /// The state of the drives that it starts from. It brings them there itself, whatever was done to them before.
    pub fn starting_state(&self) -> StartingState {
        let prepared = match self {
            Self::Fill(fill) if fill.trim => return StartingState::Empty,
            Self::Snia(snia) if snia.purge => return StartingState::Empty,
            Self::Fill(_) | Self::Snia(_) => false,
            Self::Steady(steady) => steady.write,
            Self::Stream(stream) => stream.write,
            Self::Diskmark(diskmark) => diskmark.write,
            Self::Link(link) => link.write,
            Self::Mix(mix) => mix.prepare,
            Self::Neighbours(neighbours) => neighbours.prepare,
            Self::Viewers(viewers) => viewers.prepare,
            Self::Apps(apps) => apps.prepare,
        };
        if prepared { StartingState::WrittenOnce } else { StartingState::AsFound }
    }

    /// Shortens points to a length that suits simulated drives: nothing varies in them but what is simulated, so seconds
    /// tell what takes a minute on a real one. Passes over the drive stay whole.
    pub fn shorten_for_simulation(&mut self) {
        const POINT: Duration = Duration::from_secs(5);
        // Its 56 points have more commands than all others together.
        const MIX_POINT: Duration = Duration::from_secs(3);
        const ROUND: Duration = Duration::from_secs(20);
        let longest = match self {
            Self::Fill(_) => return,
            Self::Mix(_) => MIX_POINT,
            Self::Snia(_) => ROUND,
            _ => POINT,
        };
        let scope = self.scope();
        scope.point = scope.point.min(longest);
    }

    /// Leaves out all that writes. Experiments that can't be done without writing stay as they are: their cost tells.
    pub fn leave_out_writes(&mut self) {
        match self {
            Self::Viewers(viewers) => {
                let scope = viewers.scope.clone();
                let (rate, block_bytes) = (viewers.rate, viewers.block_bytes);
                **viewers = Viewers { scope, rate, block_bytes, ..Viewers::read_only() };
            }
            Self::Neighbours(neighbours) => {
                neighbours.writers.clear();
                neighbours.prepare = false;
                neighbours.overwrite = None;
            }
            Self::Mix(mix) => {
                mix.read_percents = vec![100];
                mix.prepare = false;
            }
            Self::Stream(stream) => stream.write = false,
            Self::Diskmark(diskmark) => diskmark.write = false,
            Self::Steady(steady) => steady.write = false,
            Self::Link(link) => link.write = false,
            // A programme leaves them out as a whole.
            Self::Fill(_) | Self::Snia(_) | Self::Apps(_) => {}
        }
    }
}
