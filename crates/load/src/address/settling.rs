//! The shortest way into the steady state of random writes: the order of writes that leaves a drive's flash as endless random writes
//! would.
//!
//! Flash that is written over without end is a log. Of what lies a share x of the log behind its head, the share
//! e^(-x a / A) is still valid, with a the flash for each unit of data, and A the write amplification: 1 - 1 / A = e^(-a / A)
//! (Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012, for collectors that take the oldest; those that take the
//! emptiest leave the same, if blocks are large). So a log of just as many writes as there is flash is made: that share of them are
//! the last to their place, and the others go to places whose last write is still to come. No collector has anything to do
//! meanwhile, and no shorter row of writes would fill the flash.

use base::Random;

use super::scattering_stride;

/// A log under way.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    /// Places that are written.
    units: u64,
    stride: u64,
    /// Writes of the whole log, and those so far.
    all: f64,
    written: f64,
    /// Places that have had their last write.
    last: u64,
    /// a / A.
    decay: f64,
}

impl Settling {
    /// Of a region of so many units on a drive with `spare` more flash, as a share.
    pub(super) fn new(units: u64, spare: f64) -> Self {
        Self {
            units,
            stride: scattering_stride(units),
            all: units as f64 * (1.0 + spare),
            written: 0.0,
            last: 0,
            decay: decay(1.0 + spare),
        }
    }

    /// The next place; any once the log is complete.
    pub(super) fn next(&mut self, random: &mut Random) -> u64 {
        if self.last == self.units {
            return random.below(self.units);
        }
        self.written += 1.0;
        let rank = if self.due() > self.last as f64 {
            self.last += 1;
            self.last - 1
        } else {
            self.last + random.below(self.units - self.last)
        };
        ((u128::from(rank) * u128::from(self.stride)) % u128::from(self.units)) as u64
    }

    /// Places that should have had their last write by now: the integral of e^(-x decay) over the log from its beginning.
    fn due(&self) -> f64 {
        let behind = (1.0 - self.written / self.all).max(0.0);
        let (oldest, now) = ((-self.decay).exp(), (-self.decay * behind).exp());
        self.units as f64 * (now - oldest) / (1.0 - oldest)
    }
}

/// d = a / A for so much flash a for each unit of data: a = d / (1 - e^-d), which grows with d, found by halving.
fn decay(flash: f64) -> f64 {
    // With hardly any spare flash everything is valid; there d is about twice the spare share.
    let (mut low, mut high) = (1e-6, flash);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if middle / -(-middle).exp_m1() < flash { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_as_long_as_the_flash_and_leaves_the_shares_that_endless_writing_does() {
        for spare in [0.0, 0.07, 0.28, 1.0] {
            let units = 100_003;
            let mut settling = Settling::new(units, spare);
            let mut random = Random::new(3);
            let mut log = Vec::new();
            while settling.last < units {
                log.push(settling.next(&mut random));
            }
            let length = log.len() as f64 / units as f64;
            assert!((length - (1.0 + spare)).abs() < 1e-3, "{length} for {spare}");
            let mut last = vec![usize::MAX; units as usize];
            for (at, &unit) in log.iter().enumerate() {
                last[unit as usize] = at;
            }
            assert!(last.iter().all(|&at| at < usize::MAX), "every place is written");
            // In tenths of the log from its oldest part: what is valid.
            let tenth = log.len().div_ceil(10);
            let mut valid = [0_u32; 10];
            last.iter().for_each(|&at| valid[at / tenth] += 1);
            let d = decay(1.0 + spare);
            for (index, &valid) in valid.iter().enumerate() {
                let x = 1.0 - (index as f64 + 0.5) / 10.0;
                let (share, expected) = (f64::from(valid) / tenth as f64, (-x * d).exp());
                assert!((share - expected).abs() < 0.004, "{spare}, {index}: {share}, {expected}");
            }
        }
    }

    #[test]
    fn the_decay_is_that_of_the_write_amplification() {
        // Desnoyers' of the oldest first.
        for (flash, amplification) in [(1.07, 7.817), (1.15, 4.016), (1.28, 2.481), (1.5, 1.716)] {
            let found = flash / decay(flash);
            assert!((found / amplification - 1.0_f64).abs() < 3e-4, "{flash}: {found}");
            assert!((1.0 - 1.0 / found - (-flash / found).exp()).abs() < 1e-9);
        }
    }
}
