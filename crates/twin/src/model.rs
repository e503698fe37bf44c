//! A twin under test: a simulated drive put through the trials of a measurement, smaller than the measured one and in
//! proportion, so that its figures are the same and come in a fraction of a second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base::{Bank, NoBuffers};
use lab::fitting::trials::{Begins, Measured, Trial, figures};
use lab::fitting::{Model, Target};
use lab::{BankRig, Go, Rig, RigError, Unit};
use load::Measurement;
use ssd::{SimBank, Slot, Spec, Start};

use crate::parts::Part;

/// A scaled drive writes for so long from empty to full, at least: intervals of a millisecond must tell its phases.
const PASS_SECONDS: f64 = 1.5;
/// And it holds so much, so that blocks of a mebibyte do.
const CAPACITY_BYTES: u64 = 1 << 30;
/// A scaled cache holds so many times what the buffer must hold, at least.
const CACHE_BUFFERS: u64 = 40;
/// A scaled region of 8 GiB is of this size, at least.
const REGION_PARTS: u64 = (8 << 30) / (24 << 20);
const UNIT_BYTES: u64 = 1 << 20;

/// How long a fit may go on.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Number of drives that may be tried.
    pub evaluations: u32,
    /// Time that it may take; None for as long as the number of drives allows.
    pub time: Option<Duration>,
}

/// The twin as the search sees it.
pub struct TwinModel<'a> {
    base: Spec,
    parts: Vec<Part>,
    trials: Vec<Trial>,
    targets: &'a [Target],
    scale: u64,
    budget: Budget,
    began: Instant,
    tried: u32,
    heard: &'a mut dyn FnMut(u32, f64) -> Go,
    stopped: bool,
}

impl<'a> TwinModel<'a> {
    /// A twin whose `parts` are sought, all else as in `base`. `heard` is told of every drive that was tried, and how much of
    /// the budget is left; it may stop the fit.
    pub fn new(
        base: Spec,
        parts: Vec<Part>,
        measured: &'a Measured,
        budget: Budget,
        heard: &'a mut dyn FnMut(u32, f64) -> Go,
    ) -> Self {
        let scale = scale(&base);
        let capacity = scaled(&base, scale).capacity_bytes;
        let trials = measured.trials.iter().map(|trial| trial.scaled(scale, capacity)).collect();
        let (targets, began) = (measured.targets.as_slice(), Instant::now());
        Self { base, parts, trials, targets, scale, budget, began, tried: 0, heard, stopped: false }
    }

    /// The drive with these values of the parts.
    pub fn spec(&self, values: &[f64]) -> Spec {
        let mut spec = self.base.clone();
        for (part, &value) in self.parts.iter().zip(values) {
            part.put(&mut spec, value);
        }
        spec
    }

    /// Number of drives that were tried.
    pub const fn tried(&self) -> u32 {
        self.tried
    }

    /// Whether somebody ended the search before the budget did.
    pub const fn stopped(&self) -> bool {
        self.stopped
    }

    /// How many times smaller they were.
    pub const fn scale(&self) -> u64 {
        self.scale
    }

    fn run(&mut self, spec: &Spec) -> Result<BTreeMap<String, f64>, RigError> {
        // What was read before anything was written lay there already.
        let first = self.trials.first().is_some_and(|trial| trial.workload.changes());
        let start = if first { Start::Empty } else { Start::Full };
        let slot = Slot { spec: spec.clone(), start, namespaces: vec![0], seed: 1 };
        let Ok(bank) = SimBank::<NoBuffers>::new(&[slot], None) else { return Ok(BTreeMap::new()) };
        let capacity = bank.drives().iter().map(|drive| drive.capacity_bytes).sum();
        let new = bank.clone();
        let mut rig = BankRig::without_data(bank).copying(SimBank::copy);
        let mut measured: Vec<Measurement> = Vec::new();
        let mut before = Begins::AsLeft;
        for trial in &self.trials {
            match trial.begins {
                Begins::AsLeft => {}
                Begins::New => *rig.bank() = new.clone(),
                Begins::Prepared => {
                    if before != Begins::Prepared {
                        rig.save();
                    }
                    rig.restore();
                }
            }
            before = trial.begins;
            rig.rest(trial.rest, &mut |_| Go::On)?;
            measured.push(rig.run(&trial.workload, &mut |_, _| Go::On)?);
        }
        let all = figures(self.trials.iter().zip(&measured), capacity);
        let full = |target: Target| {
            let bytes = target.unit == Unit::Bytes;
            let value = if bytes { target.value * self.scale as f64 } else { target.value };
            (target.name, value)
        };
        Ok(all.into_iter().map(full).collect())
    }
}

impl Model for TwinModel<'_> {
    type Error = RigError;

    fn measure(&mut self, values: &[f64]) -> Result<Vec<Option<f64>>, RigError> {
        self.tried += 1;
        let spec = self.spec(values);
        let found = if spec.check().is_ok() {
            self.run(&scaled(&spec, self.scale))?
        } else {
            // A drive that can't be shows nothing.
            BTreeMap::new()
        };
        let left = self.left();
        if (self.heard)(self.tried, left) == Go::Stop {
            self.stopped = true;
        }
        Ok(self.targets.iter().map(|target| found.get(&target.name).copied()).collect())
    }

    fn left(&self) -> f64 {
        if self.stopped {
            return 0.0;
        }
        let tried = f64::from(self.tried) / f64::from(self.budget.evaluations.max(1));
        let spent = self.began.elapsed().as_secs_f64();
        let spent = self.budget.time.map_or(0.0, |time| spent / time.as_secs_f64().max(1e-9));
        (1.0 - tried.max(spent)).max(0.0)
    }
}

/// By how much a drive can be made smaller without changing its figures: blocks have fewer pages, and there are as many.
fn scale(spec: &Spec) -> u64 {
    let programs = u64::from(spec.flash.pages_per_block / spec.flash.pages_per_program.max(1));
    let pass = spec.capacity_bytes as f64 / spec.native_write_bytes_per_s();
    let cache = spec.cache.map_or(u64::MAX, |cache| cache.static_bytes + cache.dynamic_bytes);
    let fits = |parts: u64| {
        programs.is_multiple_of(parts)
            && pass / parts as f64 >= PASS_SECONDS
            && spec.capacity_bytes / parts >= CAPACITY_BYTES
            && cache / parts >= CACHE_BUFFERS * buffer_min(spec)
            && parts <= REGION_PARTS
    };
    (1..=programs.max(1)).rev().find(|&parts| fits(parts)).unwrap_or(1)
}

fn buffer_min(spec: &Spec) -> u64 {
    2 * spec.flash.program_bytes() * u64::from(spec.flash.dies())
}

/// A drive of one part in so many of the bytes, all in proportion. A block of fewer pages is erased in less time, so that
/// erasing takes the same share of it.
fn scaled(spec: &Spec, parts: u64) -> Spec {
    let mut small = spec.clone();
    small.capacity_bytes = (spec.capacity_bytes / parts / UNIT_BYTES).max(1) * UNIT_BYTES;
    small.flash.pages_per_block = spec.flash.pages_per_block / parts as u32;
    small.flash.erase_us = spec.flash.erase_us / parts as f64;
    small.buffer.bytes = (spec.buffer.bytes / parts).max(buffer_min(spec));
    if let Some(cache) = &mut small.cache {
        cache.static_bytes /= parts;
        cache.dynamic_bytes /= parts;
        cache.first_bytes /= parts;
        cache.idle_ms /= parts as f64;
    }
    if let Some(upkeep) = &mut small.upkeep {
        upkeep.every_bytes = (upkeep.every_bytes / parts).max(1);
        upkeep.bytes = (upkeep.bytes / parts).max(1);
        upkeep.within_bytes = (upkeep.within_bytes / parts).min(upkeep.every_bytes);
    }
    if let Some(heat) = &mut small.heat {
        heat.joules_per_k /= parts as f64;
    }
    small
}
