//! Which experiments are run: of those asked for, what the budgets of time and bytes leave, and the wish that nothing be written.

use base::{Duration, Geometry};

use super::all::{self, Budget, Programme};
use super::any::Experiment;
use crate::cost::Cost;

/// Times are estimates: a programme that is thought to take this much of its budget still counts as within it.
const TIME_SLACK: f64 = 1.25;

/// Fits the named experiments to drives and budget. `adjust` first sets the user's options in each. An experiment is left
/// out, by name, if it can't be shortened to the budget or would write where nothing may be written. The others share its
/// part of the budget.
pub fn programme(
    names: &[&'static str],
    drives: &[Geometry],
    budget: Budget,
    read_only: bool,
    adjust: &mut dyn FnMut(&mut Experiment),
) -> Programme {
    let mut left_out = Vec::new();
    let mut names = names.to_vec();
    if read_only {
        names.retain(|name| {
            let alone = all::programme(&[*name], drives, Budget::default(), adjust);
            let reads = alone.cost().written_bytes == 0;
            if !reads {
                left_out.push((*name, "it must write, which --read-only forbids".to_owned()));
            }
            reads
        });
    }
    loop {
        let mut fitted = all::programme(&names, drives, budget, adjust);
        let too_much = budget.time.and_then(|time| too_long(&fitted, time));
        let Some((name, why)) = too_much.or_else(|| nothing_left(&fitted, budget)) else {
            left_out.append(&mut fitted.left_out);
            return Programme { left_out, ..fitted };
        };
        names.retain(|other| *other != name);
        left_out.push((name, why));
    }
}

/// The experiment that takes longest, if all together take too long.
fn too_long(fitted: &Programme, time: Duration) -> Option<(&'static str, String)> {
    if fitted.cost().time().as_secs_f64() <= TIME_SLACK * time.as_secs_f64() {
        return None;
    }
    let (longest, cost) = fitted.experiments.iter().max_by_key(|(_, cost)| cost.time_ns)?;
    let why = format!(
        "it takes {} however much it is shortened, and the budget of time for everything is {time}",
        cost.time()
    );
    Some((longest.name(), why))
}

/// An experiment that only writes, if the budget leaves it nothing to write.
fn nothing_left(fitted: &Programme, budget: Budget) -> Option<(&'static str, String)> {
    let most = budget.written_bytes?;
    let idle = |cost: &Cost| cost.written_bytes == 0 && cost.read_bytes == 0;
    let (experiment, _) = fitted.experiments.iter().find(|(_, cost)| idle(cost))?;
    let why = format!(
        "it has to write, and the budget of {} leaves nothing for it",
        base::ByteSize(most)
    );
    Some((experiment.name(), why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drives() -> Vec<Geometry> {
        vec![Geometry {
            name: "drive".to_owned(),
            capacity_bytes: 1 << 30,
            block_bytes: 4096,
            transfer_max_bytes: 16 << 20,
            depth_max: 1024,
            trim_unit_bytes: Some(4096),
            trim_reads_zeros: true,
            writable: true,
        }]
    }

    fn of_time(time: Duration) -> Programme {
        let budget = Budget { time: Some(time), written_bytes: None };
        programme(Experiment::NAMES, &drives(), budget, false, &mut |_| ())
    }

    #[test]
    fn what_can_not_be_shortened_to_the_time_is_left_out_and_the_rest_is_kept() {
        let few = of_time(Duration::from_secs(15));
        assert!(few.cost().time() <= Duration::from_millis(18_750), "{:?}", few.cost());
        assert!(!few.experiments.is_empty() && !few.left_out.is_empty());
        assert_eq!(few.experiments.len() + few.left_out.len(), Experiment::NAMES.len());
        assert!(few.left_out[0].1.contains("the budget of time"), "{:?}", few.left_out);
        let none = of_time(Duration::from_nanos(1));
        assert!(none.experiments.is_empty());
        assert_eq!(none.left_out.len(), Experiment::NAMES.len());
    }

    #[test]
    fn a_fill_of_nothing_is_left_out() {
        let budget = Budget { time: None, written_bytes: Some(0) };
        let found = programme(&["fill"], &drives(), budget, false, &mut |_| ());
        assert!(found.experiments.is_empty());
        assert!(found.left_out[0].1.contains("budget of 0 B"), "{:?}", found.left_out);
    }

    #[test]
    fn where_nothing_may_be_written_experiments_that_have_to_write_are_left_out() {
        let found =
            programme(&["fill", "stream"], &drives(), Budget::default(), true, &mut |experiment| {
                if let Experiment::Stream(stream) = experiment {
                    stream.write = false;
                }
            });
        assert_eq!(found.cost().written_bytes, 0);
        assert_eq!(found.experiments.len(), 1);
        assert_eq!(found.left_out[0].0, "fill");
    }
}
