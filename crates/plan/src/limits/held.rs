//! Rates that one drive alone was seen to hold, or not to: what they tell of so many drives, and which of them would tell more.

use recorder::{Placement, defaults};

use super::Case;
use crate::phases::Stage;

/// Buffers hold what was seen to wait for a drive, as many times over, but no more on top than so many chunks, or as a part of what waited: a
/// recorder gives a drive whole chunks, and not as evenly as a measurement does, and what waited in a few rounds is not the most that ever
/// will. Chosen on simulated drives.
const WAITING_TIMES: f64 = 3.0;
const WAITING_CHUNKS_MORE: f64 = 8.0;
const WAITING_PART_MORE: f64 = 0.5;
/// A drive has to have held so much more than it gets of an array, as a share, where drives are slowest over stale data. What they are too slow by then uses up spare flash before it shows, and of a fifth of a
/// drive's capacity, 5 % too much leaves nothing in the four times that a measurement writes over it.
const HEADROOM_STALE: f64 = 0.05;
/// Rates are named to so many bytes a second.
const NAMED_BYTES_PER_S: f64 = 1000.0;

impl Case<'_> {
    /// Bytes that buffers hold of each drive because so many, or less, were seen to wait for one that got as much; none if that was not seen.
    pub(super) fn seen_waiting(&self, drives: u32, placement: Placement) -> f64 {
        let seen = &self.subject.seen;
        let held = seen.is_held(self.to_hold(drives, placement));
        let waiting = seen.waiting.as_ref().filter(|_| held && self.writes_alone());
        let chunks_more = WAITING_CHUNKS_MORE * self.subject.overhead.chunk_max_bytes as f64;
        waiting.map_or(0.0, |waiting| {
            let most_more = chunks_more.max(waiting.value * WAITING_PART_MORE);
            waiting.value + (waiting.value * (WAITING_TIMES - 1.0)).min(most_more)
        })
    }

    /// Whether drives serve no readers and are recorded to as a whole, which is how a held rate is measured.
    pub(super) fn writes_alone(&self) -> bool {
        self.requirement.readers.bytes_per_s() <= 0.0 && self.subject.parts.is_none()
    }

    /// Bytes a second that one drive alone has to hold for each of so many to hold its share. In a stripe, a drive gets its share in the time
    /// that the dips of the others leave.
    pub fn to_hold(&self, drives: u32, placement: Placement) -> f64 {
        let others = match (placement, self.subject.phases.dips) {
            (Placement::Stripe, Some(dips)) => dips.share * self.others_felt(drives, placement),
            _ => 0.0,
        };
        let stale = self.subject.phases.slowest(self.fill(drives)).stage == Stage::Overwrite;
        let headroom = if stale { HEADROOM_STALE } else { self.headroom() };
        self.share(drives) * (1.0 + headroom) * (1.0 + others)
    }

    /// Bytes a second that no drive must have failed to hold for so many to hold their shares.
    pub fn not_to_fail(&self, drives: u32) -> f64 {
        self.share(drives) * (1.0 + self.headroom())
    }

    /// The dips of how many others each of so many drives for data waits for, counted as whole ones. If a dip begins while another is still
    /// covered, the stripe waits for the first alone: what its drive still covers when the first is over lasts until the second is.
    pub(super) fn others_felt(&self, drives: u32, placement: Placement) -> f64 {
        let others = (drives + self.requirement.parity).saturating_sub(1);
        let felt = self.dips_felt(drives, placement);
        let beside = self.subject.phases.dips.map_or(0.0, |dips| dips.beside(others, 1.0 - felt));
        (f64::from(others) - beside) * felt
    }

    /// The share of each of a drive's dips for which the other drives of a stripe wait. They go on until its chunks under way, and what it
    /// still takes during the dip, are used up. How long that lasts was seen at the rate that the drive holds; while no drive waits, a stripe
    /// writes faster, and it lasts for less time. 1 where that was not seen, beside readers, and under adaptive placement.
    pub(super) fn dips_felt(&self, drives: u32, placement: Placement) -> f64 {
        let (seen, phases) = (&self.subject.seen, &self.subject.phases);
        let at_rate = seen.held.as_ref().zip(seen.waiting.as_ref());
        let ((held, waiting), dips) = match (placement, at_rate.zip(phases.dips)) {
            (Placement::Stripe, Some(of_stripe)) => of_stripe,
            _ => return 1.0,
        };
        if !self.writes_alone() {
            return 1.0;
        }
        let under_way = (u64::from(defaults::DEPTH) * self.subject.overhead.chunk_max_bytes) as f64;
        let seen_s = (waiting.value - under_way).max(0.0) / held.value;
        let flows = phases.between_waits(self.fill(drives)).max(held.value);
        let taken = (phases.dip_s * held.value - waiting.value).max(phases.buffer_bytes);
        let sooner_s = (taken + under_way) * (1.0 / held.value - 1.0 / flows).max(0.0);
        // A rate so low that a dip didn't fill the buffer tells nothing of it.
        let most_s = phases.dip_s - (phases.buffer_bytes + under_way) / flows;
        ((seen_s + sooner_s).min(most_s).max(seen_s) / dips.together_s).min(1.0)
    }

    /// Whether so many drives hold what each of them gets, as was seen of one that was written alone from empty through overwriting. None if
    /// that was not seen, and of drives that serve readers or are recorded to in parts. A mission may end before a drive falls behind.
    pub fn holds(&self, drives: u32, placement: Placement) -> Option<bool> {
        if !self.writes_alone() {
            return None;
        }
        let to_hold = self.to_hold(drives, placement);
        match self.subject.seen.holds(self.not_to_fail(drives), to_hold)? {
            true => Some(true),
            false => self.requirement.wraps().then_some(false),
        }
    }

    /// Rates in bytes a second of which it isn't known whether a drive holds them, and that would tell whether each of these numbers of drives
    /// is enough; none of drives that serve readers or are recorded to in parts.
    pub fn rates_to_try(&self, numbers: &[u32], placement: Placement) -> Vec<f64> {
        let mut rates = Vec::new();
        if !self.writes_alone() {
            return rates;
        }
        for drives in numbers.iter().copied().filter(|drives| *drives > 0) {
            for rate in [self.not_to_fail(drives), self.to_hold(drives, placement)] {
                let rate = (rate / NAMED_BYTES_PER_S).ceil() * NAMED_BYTES_PER_S;
                if !self.subject.seen.tells_of(rate) && !rates.contains(&rate) {
                    rates.push(rate);
                }
            }
        }
        rates
    }
}
