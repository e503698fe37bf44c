//! All experiments within a budget of time and of bytes written: each gets a share of the time and is shortened to it, and what
//! doesn't fit is left out by name.

use base::{Duration, Geometry};

use super::any::Experiment;
use super::scope::Scope;
use crate::cost::Cost;

/// Shares of the time: what takes many points gets more.
const SHARES: [(&str, f64); 10] = [
    ("fill", 0.22),
    ("steady", 0.05),
    ("stream", 0.15),
    ("link", 0.04),
    ("mix", 0.18),
    ("neighbours", 0.10),
    ("viewers", 0.12),
    ("apps", 0.07),
    ("snia", 0.07),
    ("diskmark", 0.04),
];

/// Which experiments are given up first when the bytes don't reach.
const GIVEN_UP_FIRST: [&str; 10] = [
    "snia",
    "apps",
    "viewers",
    "neighbours",
    "steady",
    "mix",
    "stream",
    "link",
    "diskmark",
    "fill",
];

/// No point is measured for less: too few commands would be behind it.
const POINT_MIN: Duration = Duration::from_millis(100);

/// Preparing the region may take this share of all the time.
const PREPARATION_SHARE: f64 = 0.03;

/// The smallest region that is worth using.
const REGION_MIN: u64 = 64 << 20;

/// The passes over the drive in `fill` and the rests between share its time like this.
const PASS_SHARE: f64 = 0.4;

/// `fill` may write one part in so many of a budget of bytes; the others share the rest.
const FILL_PART: f64 = 2.0;

/// How often shares are scaled down while everything together takes too long.
const ROUNDS: u32 = 5;

/// Cheaper and cheaper searches: trials of a number, steps in percent, and whether the second one, beside a writer, is made.
const SEARCHES: [(u32, f64, bool); 3] = [(1, 2.0, true), (1, 5.0, true), (1, 10.0, false)];

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
pub(super) fn programme(
    names: &[&str],
    drives: &[Geometry],
    budget: Budget,
    adjust: &mut dyn FnMut(&mut Experiment),
) -> Programme {
    let shares: f64 =
        SHARES.iter().filter(|(name, _)| names.contains(name)).map(|(_, share)| share).sum();
    let mut asked = Vec::new();
    for (name, share) in SHARES.into_iter().filter(|(name, _)| names.contains(name)) {
        let Some(mut experiment) = Experiment::named(name) else { continue };
        adjust(&mut experiment);
        asked.push((experiment, share / shares));
    }
    let experiments = match budget.time {
        Some(time) => shortened(&asked, drives, time),
        None => asked.into_iter().map(|(experiment, _)| experiment).collect(),
    };
    let with_cost = |experiment: Experiment| {
        let cost = experiment.cost(drives);
        (experiment, cost)
    };
    let mut programme = Programme {
        experiments: experiments.into_iter().map(with_cost).collect(),
        left_out: Vec::new(),
    };
    if let Some(most) = budget.written_bytes {
        keep_to_bytes(&mut programme, drives, most);
    }
    programme
}

/// Every experiment within its share of the time. What one can't be shortened to, the others give up.
fn shortened(asked: &[(Experiment, f64)], drives: &[Geometry], time: Duration) -> Vec<Experiment> {
    let seconds = time.as_secs_f64();
    let mut scale = 1.0;
    let mut fitted = Vec::new();
    for _ in 0..ROUNDS {
        fitted = asked
            .iter()
            .map(|(experiment, share)| (experiment.clone(), share * seconds * scale))
            .collect::<Vec<_>>();
        let mut total = 0.0;
        for (experiment, mine) in &mut fitted {
            shorten(experiment, drives, seconds, *mine);
            total += experiment.cost(drives).time().as_secs_f64();
        }
        if total <= seconds {
            break;
        }
        scale *= seconds / total;
    }
    fitted.into_iter().map(|(experiment, _)| experiment).collect()
}

/// Shortens points, passes and region until the experiment takes `mine` of the whole seconds, as near as it can.
fn shorten(experiment: &mut Experiment, drives: &[Geometry], whole: f64, mine: f64) {
    if let Experiment::Fill(fill) = experiment {
        let pass = Duration::from_secs_f64(mine * PASS_SHARE);
        fill.pass_time = Some(fill.pass_time.map_or(pass, |asked| asked.min(pass)));
        let rests: f64 = fill.rests.iter().map(|rest| rest.as_secs_f64()).sum();
        // What the passes leave is for rests and bursts, half each.
        let left = mine * (1.0 - 2.0 * PASS_SHARE) / 2.0;
        fill.rest_scale = fill.rest_scale.min(left / rests.max(1e-9));
        let burst = fill.scope.write_guess.bytes_in(Duration::from_secs_f64(left)) as u64;
        let each = burst / (fill.rests.len().max(1) * drives.len().max(1)) as u64;
        fill.burst_bytes_max =
            Some(fill.burst_bytes_max.unwrap_or(u64::MAX).min(each.max(1 << 20)));
        return;
    }
    let scope = experiment.scope();
    let region =
        (scope.write_guess.0 * whole * PREPARATION_SHARE) as u64 / drives.len().max(1) as u64;
    let region = region.max(REGION_MIN) >> 20 << 20;
    scope.region = Some(scope.region.map_or(region, |asked| asked.min(region)));
    let asked = scope.point;
    fit_point(experiment, drives, asked, mine);
    // A search has as many trials as it takes: fewer of a number, and steps of a size that a short one can tell.
    for (tries, resolution_percent, beside) in SEARCHES {
        let Experiment::Viewers(viewers) = experiment else { return };
        if viewers.cost(drives).time().as_secs_f64() <= mine {
            return;
        }
        viewers.passes = viewers.passes.min(tries);
        viewers.tries = viewers.tries.min(tries);
        viewers.resolution_percent = viewers.resolution_percent.max(resolution_percent);
        if !beside {
            viewers.ingest = None;
        }
        fit_point(experiment, drives, asked, mine);
    }
}

/// Sets the point so that the experiment takes so many seconds: time grows in proportion to the point, above what doesn't
/// depend on it.
fn fit_point(experiment: &mut Experiment, drives: &[Geometry], asked: Duration, seconds: f64) {
    let mut time_at = |point: Duration| {
        set_point(experiment.scope(), point);
        experiment.cost(drives).time().as_secs_f64()
    };
    // Far apart, because short points may be drawn out to what an experiment needs at least.
    let (short, long) = (Duration::from_secs(30), Duration::from_secs(60));
    let (at_short, at_long) = (time_at(short), time_at(long));
    let slope = (at_long - at_short) / (long - short).as_secs_f64();
    let fixed = at_short - slope * short.as_secs_f64();
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

/// Fills less of the drive if that alone would take more than half of the bytes, then gives up experiments.
fn keep_to_bytes(programme: &mut Programme, drives: &[Geometry], most: u64) {
    for (experiment, cost) in &mut programme.experiments {
        let scale = most as f64 / FILL_PART / cost.written_bytes as f64;
        if let Experiment::Fill(fill) = experiment
            && scale < 1.0
        {
            // Its passes write nearly all of it.
            let passes = fill.passes() as f64 * drives.len().max(1) as f64;
            let pass = cost.written_bytes as f64 / passes;
            fill.scope.region = Some((pass * scale) as u64 >> 20 << 20);
            fill.burst_bytes_max =
                fill.burst_bytes_max.map(|burst| (burst as f64 * scale) as u64 >> 20 << 20);
            *cost = experiment.cost(drives);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use base::Bank;
    use base::memory::{MemoryBank, MemoryDrive};

    fn drives(bytes: u64) -> Vec<Geometry> {
        let drive = MemoryDrive { capacity_bytes: bytes, ..MemoryDrive::default() };
        MemoryBank::without_data(vec![drive]).drives().to_vec()
    }

    #[test]
    fn everything_fits_its_time_on_small_and_large_drives() {
        for (bytes, seconds) in [(1u64 << 30, 60), (4 << 30, 120), (1 << 40, 120), (4 << 40, 3_600)]
        {
            let budget = Budget { time: Some(Duration::from_secs(seconds)), written_bytes: None };
            let all = programme(Experiment::NAMES, &drives(bytes), budget, &mut |_| ());
            let takes = all.cost().time().as_secs_f64();
            assert_eq!(all.experiments.len(), Experiment::NAMES.len());
            assert!(takes <= seconds as f64 * 1.1, "{bytes} bytes in {seconds} s take {takes} s");
            assert!(
                takes >= seconds as f64 * 0.5,
                "{bytes} bytes in {seconds} s take only {takes} s"
            );
        }
    }

    #[test]
    fn a_budget_of_bytes_is_kept_by_leaving_out_and_says_so() {
        let budget =
            Budget { time: Some(Duration::from_secs(120)), written_bytes: Some(20_000_000_000) };
        let all = programme(Experiment::NAMES, &drives(1 << 40), budget, &mut |_| ());
        assert!(all.cost().written_bytes <= 20_000_000_000);
        assert!(!all.left_out.is_empty() && !all.experiments.is_empty());
        assert!(all.left_out.iter().all(|(_, why)| why.contains("budget of 20.0 GB")));
        assert_eq!(all.left_out.len() + all.experiments.len(), Experiment::NAMES.len());
    }

    #[test]
    fn without_a_budget_defaults_stay() {
        let all = programme(&["mix"], &drives(1 << 40), Budget::default(), &mut |_| ());
        assert_eq!(all.experiments[0].0, Experiment::named("mix").unwrap());
    }
}
