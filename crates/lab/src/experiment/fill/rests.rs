//! Rests after a fill: the drives are left alone, and then written again until the fast rate ends.

use base::{Duration, Rate};
use load::{Interval, Verb};

use super::{Fill, Layout, NAME, Rests};
use crate::analysis::fill::PhaseKind;
use crate::analysis::{self, Burst, recovery};
use crate::experiment::curve;
use crate::experiment::trouble::troubles;
use crate::lab::{Lab, LabError, Step};
use crate::rig::Go;

/// A burst goes on this far beyond the cache that the empty drive had.
const BEYOND_CACHE: f64 = 1.25;
/// Rates nearer together than this can't be told apart in a short burst.
const RATIO_MIN: f64 = 1.1;
/// A burst is over when so many intervals in a row were slow, and so long a part of all of them.
const SLOW_INTERVALS: u64 = 12;
const SLOW_PART: u64 = 4;

impl Fill {
    /// Rests and bursts, if the fill shows two rates between which a rest can make a difference. `last` is what was
    /// written before.
    pub(super) fn rest_and_burst(
        &self,
        lab: &mut Lab<'_>,
        layout: &Layout,
        fill: &analysis::Fill,
        last: &Step,
        notes: &mut Vec<String>,
    ) -> Result<Rests, LabError> {
        let left_out = |why: &str| Rests {
            recovery: None,
            bursts: Vec::new(),
            left_out: Some(why.to_owned()),
        };
        if self.rests.is_empty() {
            return Ok(left_out("no rests were requested"));
        }
        let Some((fast, slow)) = rates(fill) else {
            return Ok(left_out("the fill shows no fast rate that a rest could give back"));
        };
        let cache = fill.cache.found().map(|found| found.change.bytes / layout.drives);
        let wanted = cache.map_or(layout.burst, |cache| (cache as f64 * BEYOND_CACHE) as u64);
        let each = wanted.next_multiple_of(layout.block).clamp(layout.block, layout.burst);
        let middle = (fast * slow).sqrt();
        let (mut bursts, mut series) = (Vec::new(), Vec::new());
        let mut ended_ns = ended_ns(last);
        for (index, rest) in self.rests.iter().enumerate() {
            let rest = self.scaled(*rest);
            let name = format!("burst-{index}-after-{}ms", rest.as_nanos() / 1_000_000);
            let workload = self.pass(&name, layout, each);
            if lab.measured(NAME, &name, &workload)?.is_none() {
                lab.rest(NAME, &format!("rest-{index}"), rest)?;
            }
            let mut slow_end = SlowEnd::new(middle);
            let step = lab.step_until(NAME, &name, &workload, &mut |i| slow_end.watch(i))?;
            notes.extend(troubles(&format!("writing after a rest of {rest}"), &step));
            // Somebody may have gone on with this after a night: then the drives rested all night.
            let idle_ns = step.measurement.started_ns.unwrap_or(0).saturating_sub(ended_ns);
            let rest_ns = rest.as_nanos().max(if ended_ns > 0 { idle_ns } else { 0 });
            ended_ns = self::ended_ns(&step);
            let whole = curve::whole(&step, Verb::Write, 0);
            bursts.push((rest_ns, curve::thinned(&whole)));
            series.push(Burst { rest_ns, series: whole });
        }
        let recovery = recovery::judge(&series, fast, slow);
        Ok(Rests { recovery, bursts, left_out: None })
    }
}

/// The fast rate of the empty drive, and the slow one that it ends with, in bytes a second.
fn rates(fill: &analysis::Fill) -> Option<(f64, f64)> {
    let native = fill.rate(PhaseKind::Native);
    let fast = fill.rate(PhaseKind::Fast).or(native)?;
    let slow = fill.rate(PhaseKind::Overwrite).or(native)?;
    (slow > 0.0 && fast >= RATIO_MIN * slow).then_some((fast, slow))
}

/// When a step ended, UTC nanoseconds since 1970; 0 if that isn't known.
fn ended_ns(step: &Step) -> u64 {
    step.measurement.started_ns.map_or(0, |started| started + step.measurement.elapsed_ns)
}

/// Sees when the fast rate has ended for good.
struct SlowEnd {
    middle: f64,
    all: u64,
    slow: u64,
}

impl SlowEnd {
    fn new(middle: f64) -> Self {
        Self { middle, all: 0, slow: 0 }
    }

    fn watch(&mut self, interval: &Interval) -> Go {
        if interval.length == Duration::ZERO {
            return Go::On;
        }
        self.all += 1;
        let is_slow = Rate::of(interval.bytes(), interval.length).0 < self.middle;
        self.slow = if is_slow { self.slow + 1 } else { 0 };
        let over = self.slow >= SLOW_INTERVALS && self.slow * SLOW_PART >= self.all;
        if over { Go::Stop } else { Go::On }
    }
}
