//! All experiments within a budget of time and of bytes written: each gets a share of the time and is shortened to it, and what
//! doesn't fit is left out by name.

use base::{Duration, Geometry};

use super::any::Experiment;
use super::scope::Scope;
use crate::lab::Cost;

/// Shares of the time: what takes many points gets more.
const SHARES: [(&str, f64); 9] = [
    ("fill", 0.22),
    ("steady", 0.05),
    ("stream", 0.15),
    ("link", 0.04),
    ("mix", 0.18),
    ("neighbours", 0.10),
    ("viewers", 0.12),
    ("apps", 0.07),
    ("snia", 0.07),
];

/// Which experiments are given up first when the bytes don't reach.
const GIVEN_UP_FIRST: [&str; 9] =
    ["snia", "apps", "viewers", "neighbours", "steady", "mix", "stream", "link", "fill"];

/// No point is measured for less: too few commands would be behind it.
const POINT_MIN: Duration = Duration::from_millis(100);

/// Preparing the region may take this share of all the time.
const PREPARATION_SHARE: f64 = 0.03;

/// The smallest region that is worth using.
const REGION_MIN: u64 = 64 << 20;

/// The passes over the drive in `fill` and the rests between share its time like this.
const PASS_SHARE: f64 = 0.4;

/// What is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Time for everything; None for as long as it takes.
    pub time: Option<Duration>,
    /// Bytes written to all drives together; None for as many as it takes.
    pub written_bytes: Option<u64>,
}

/// What will be run, and what not.
#[derive(Clone, Debug, PartialEq)]
pub struct Programme {
    /// The experiments with what each will cost, in order.
    pub experiments: Vec<(Experiment, Cost)>,
    /// Names of those left out, and why.
    pub left_out: Vec<(&'static str, String)>,
}

impl Programme {
    /// What everything costs.
    pub fn cost(&self) -> Cost {
        self.experiments.iter().fold(Cost::default(), |sum, (_, cost)| sum.and(*cost))
    }
}

/// Fits experiments to drives and budget. `adjust` sets what the user asked for in each before it is fitted.
pub fn programme(
    names: &[&str],
    drives: &[Geometry],
    budget: Budget,
    adjust: &mut dyn FnMut(&mut Experiment),
) -> Programme {
    let shares: f64 =
        SHARES.iter().filter(|(name, _)| names.contains(name)).map(|(_, share)| share).sum();
    let mut programme = Programme { experiments: Vec::new(), left_out: Vec::new() };
    for (name, share) in SHARES.into_iter().filter(|(name, _)| names.contains(name)) {
        let Some(mut experiment) = Experiment::named(name) else { continue };
        adjust(&mut experiment);
        if let Some(time) = budget.time {
            let mine = Duration::from_secs_f64(time.as_secs_f64() * share / shares);
            shorten(&mut experiment, drives, time, mine);
        }
        let cost = experiment.cost(drives);
        programme.experiments.push((experiment, cost));
    }
    if let Some(most) = budget.written_bytes {
        keep_to_bytes(&mut programme, most);
    }
    programme
}

/// Shortens points, passes and region until the experiment takes `mine` of the whole time, as near as it can.
fn shorten(experiment: &mut Experiment, drives: &[Geometry], whole: Duration, mine: Duration) {
    let seconds = mine.as_secs_f64();
    if let Experiment::Fill(fill) = experiment {
        let pass = Duration::from_secs_f64(seconds * PASS_SHARE);
        fill.pass_time = Some(fill.pass_time.map_or(pass, |asked| asked.min(pass)));
        let rests: f64 = fill.rests.iter().map(|rest| rest.as_secs_f64()).sum();
        // What the passes leave is for rests and bursts, half each.
        let left = seconds * (1.0 - 2.0 * PASS_SHARE) / 2.0;
        fill.rest_scale = fill.rest_scale.min(left / rests.max(1e-9));
        let burst = fill.scope.write_guess.bytes_in(Duration::from_secs_f64(left)) as u64;
        let each = burst / (fill.rests.len().max(1) * drives.len().max(1)) as u64;
        fill.burst_bytes_max =
            Some(fill.burst_bytes_max.unwrap_or(u64::MAX).min(each.max(1 << 20)));
        return;
    }
    let scope = experiment.scope();
    let region = (scope.write_guess.0 * whole.as_secs_f64() * PREPARATION_SHARE) as u64
        / drives.len().max(1) as u64;
    let region = region.max(REGION_MIN) >> 20 << 20;
    scope.region = Some(scope.region.map_or(region, |asked| asked.min(region)));
    scope.interval = scope.interval.min(Duration::from_millis(250));
    let asked = scope.point;
    let time_at = |experiment: &mut Experiment, point: Duration| {
        set_point(experiment.scope(), point);
        experiment.cost(drives).time().as_secs_f64()
    };
    // Time grows in proportion to the point, above what doesn't depend on it.
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(2));
    let (at_short, at_long) = (time_at(experiment, short), time_at(experiment, long));
    let slope = at_long - at_short;
    let fixed = at_short - slope;
    let point = if slope > 0.0 {
        Duration::from_secs_f64((seconds - fixed).max(0.0) / slope)
    } else {
        asked
    };
    set_point(experiment.scope(), point.clamp(POINT_MIN, asked.max(POINT_MIN)));
}

/// A point in at least four intervals.
fn set_point(scope: &mut Scope, point: Duration) {
    let ms = point.as_nanos() / 1_000_000;
    scope.point = Duration::from_millis(ms.max(1));
    scope.interval = scope.interval.min(Duration::from_millis((ms / 4).max(1)));
    scope.warm_up = Duration::ZERO;
}

fn keep_to_bytes(programme: &mut Programme, most: u64) {
    for name in GIVEN_UP_FIRST {
        let written = programme.cost().written_bytes;
        if written <= most {
            return;
        }
        if let Some(at) = programme
            .experiments
            .iter()
            .position(|(e, cost)| e.name() == name && cost.written_bytes > 0)
        {
            let (experiment, cost) = programme.experiments.remove(at);
            programme.left_out.push((
                experiment.name(),
                format!(
                    "it would write {}, and all together would pass the budget of {}",
                    base::ByteSize(cost.written_bytes),
                    base::ByteSize(most)
                ),
            ));
        }
    }
}
