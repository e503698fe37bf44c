//! A translation layer under uniform random writes of single units.

use base::Random;
use longtake_ssd::ftl::{Flash, Ftl, Program, Setup};
use longtake_ssd::spec::Collector;
use longtake_ssd::stripe::Stripe;

/// Superblocks to keep free.
const RESERVE: u32 = 2;

/// Superblocks that are not closed: those kept free, and the host's and the collector's open ones.
const NOT_CLOSED: u32 = RESERVE + 2;

/// Flash that is only counted.
struct Counted;

impl Flash for Counted {
    fn program(&mut self, _die: u32, _program: Program) {}
    fn copy(&mut self, _die: u32, _slc: bool, _units: u32) {}
    fn erase(&mut self, _die: u32, _superblock: u32) {}
    fn erase_ahead(&mut self, _die: u32, _superblock: u32) {}
}

pub struct Drive {
    ftl: Ftl,
    random: Random,
    /// The addresses that hold data, and where in that list each is.
    in_use: Vec<u32>,
    listed: Vec<u32>,
    closed: u64,
    valid: u64,
}

impl Drive {
    /// Written once in order, with 4,096 closed blocks.
    pub fn new(collector: Collector, units_per_block: u32, alpha: f64) -> Self {
        Self::sized(collector, units_per_block, alpha, 4096)
    }

    /// Written once in order. Open blocks and free ones do not count in `alpha`, neither their space nor the data in them.
    pub fn sized(collector: Collector, units_per_block: u32, alpha: f64, closed: u32) -> Self {
        let mut drive = Self::empty(collector, units_per_block, alpha, closed);
        drive.ftl.fill_in_order();
        drive
    }

    /// In the steady state from the beginning.
    pub fn steady(collector: Collector, units_per_block: u32, alpha: f64, closed: u32) -> Self {
        let mut drive = Self::empty(collector, units_per_block, alpha, closed);
        drive.ftl.scatter(1);
        drive
    }

    fn empty(collector: Collector, units_per_block: u32, alpha: f64, closed: u32) -> Self {
        // Two open blocks that are half full on average hold one block of data.
        let units = ((f64::from(closed) / alpha + 1.0) * f64::from(units_per_block)) as u32;
        let stripe = Stripe::new(1, 1, 1, units_per_block);
        let ftl = Ftl::new(Setup {
            units,
            superblocks: closed + NOT_CLOSED,
            stripe,
            collector,
            reserve: RESERVE,
            placement: None,
            cache: None,
            unit_bytes: 4096,
            seed: 1,
        });
        Self {
            ftl,
            random: Random::new(2),
            in_use: (0..units).collect(),
            listed: (0..units).collect(),
            closed: 0,
            valid: 0,
        }
    }

    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Writes at random, so many times the user data.
    pub fn write_over(&mut self, times: f64) {
        let units = u64::from(self.ftl.setup().units);
        let writes = (times * units as f64) as u64;
        for write in 0..writes {
            let unit = self.random.below(units) as u32;
            self.ftl.write(unit, 1, &mut Counted);
            if write % (units / 16) == 0 {
                for valid in self.ftl.valid() {
                    self.closed += 1;
                    self.valid += u64::from(valid);
                }
            }
        }
    }

    /// Writes at random, so many times the user data, with so many of the requests trims of what holds data.
    pub fn write_and_trim(&mut self, times: f64, trims: f64) {
        let units = u64::from(self.ftl.setup().units);
        let end = self.ftl.done().host + (times * units as f64) as u64;
        while self.ftl.done().host < end {
            if self.random.below(1 << 32) as f64 >= trims * f64::from(u32::MAX) {
                let unit = self.random.below(units) as u32;
                self.ftl.write(unit, 1, &mut Counted);
                if self.listed[unit as usize] == u32::MAX {
                    self.listed[unit as usize] = self.in_use.len() as u32;
                    self.in_use.push(unit);
                }
            } else {
                let at = self.random.below(self.in_use.len() as u64) as usize;
                let unit = self.in_use.swap_remove(at);
                self.ftl.trim(unit, 1);
                self.listed[unit as usize] = u32::MAX;
                if let Some(&moved) = self.in_use.get(at) {
                    self.listed[moved as usize] = at as u32;
                }
            }
        }
    }

    /// Units programmed for each that the host writes while `run` runs.
    pub fn amplification(&mut self, run: impl FnOnce(&mut Self)) -> f64 {
        let before = self.ftl.done();
        (self.closed, self.valid) = (0, 0);
        run(self);
        let after = self.ftl.done();
        let host = (after.host - before.host) as f64;
        (host + (after.copied - before.copied) as f64) / host
    }

    /// Space over data of the closed blocks while the last amplification was measured.
    pub fn alpha(&self) -> f64 {
        let units = self.ftl.setup().stripe.units(false);
        self.closed as f64 * f64::from(units) / self.valid as f64
    }
}
