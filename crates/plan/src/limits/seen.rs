//! What was seen of a drive that was written at a given rate. A recording leaves drives a part of their time, in which they tidy up: what
//! they hold then need not be what they write at full speed.

use profile::name;

use crate::candidate::{Candidate, Figure};

/// Rates at which a drive was written from empty through overwriting.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The greatest that it held.
    pub held: Option<Figure>,
    /// The most bytes that waited meanwhile.
    pub waiting: Option<Figure>,
    /// The least that it didn't hold.
    pub not_held: Option<Figure>,
}

/// Rates that differ by less than this share are the same: they are named with a few digits.
const SAME: f64 = 1e-4;

impl Seen {
    /// From a drive's figures.
    pub fn of(candidate: &Candidate) -> Self {
        let waiting = candidate.figure(name::WRITE_HELD_WAITING);
        let held = candidate.rate(name::WRITE_HELD).filter(|_| waiting.is_some());
        Self { held, waiting, not_held: candidate.rate(name::WRITE_NOT_HELD) }
    }

    /// Whether a drive holds what it has to, for as long as anybody wants: at least so many bytes a second, and not more than so many. None if
    /// that was not seen.
    pub fn holds(&self, at_least: f64, at_most: f64) -> Option<bool> {
        let (held, not_held) = (self.is_held(at_most), self.not_held(at_least));
        // What it held once and not another time is not settled.
        (held != not_held).then_some(held)
    }

    /// Whether it is known of so many bytes a second that a drive holds them, or that it doesn't.
    pub fn tells_of(&self, rate: f64) -> bool {
        self.is_held(rate) || self.not_held(rate)
    }

    /// Whether a drive was seen to hold so many bytes a second, or more.
    pub fn is_held(&self, rate: f64) -> bool {
        self.held.as_ref().is_some_and(|held| rate <= held.value * (1.0 + SAME))
    }

    fn not_held(&self, rate: f64) -> bool {
        self.not_held.as_ref().is_some_and(|not| rate >= not.value * (1.0 - SAME))
    }
}
