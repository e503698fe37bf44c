//! What a user wants of experiments, and which of them are run for it: fitted to the drives, to what is known of them, and to a
//! budget.

use base::{ByteSize, Duration};
use lab::experiment::all::{Budget, Programme};
use lab::experiment::any::Experiment;
use lab::experiment::link::{DriveLink, Sweep};
use lab::experiment::options::Beside;
use lab::experiment::{Options, budget};
use lab::rig::PcieMode;

use crate::known::{Known, guesses};
use crate::setup::{SIZE_MIN, Setup, SetupError};

/// What a user wants of experiments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// Use only so much of each drive, from its beginning; None for all of it.
    pub size: Option<ByteSize>,
    /// Time for each point; None for each experiment's own.
    pub point: Option<Duration>,
    /// Time and bytes that all experiments together may take.
    pub budget: Budget,
    /// Leave out everything that writes.
    pub read_only: bool,
    /// What is asked of one experiment alone.
    pub options: Options,
}

impl Wishes {
    /// Whether these drives can be measured like that.
    ///
    /// # Errors
    /// [`SetupError::Options`], [`SetupError::SweepOfReal`] and the like, or [`SetupError::SweepOfSata`] with the first drive that has
    /// no PCIe link.
    pub fn check(&self, setup: &Setup) -> Result<(), SetupError> {
        let Self { read_only, point, budget, .. } = *self;
        if let Some(given) = self.size.filter(|size| *size < SIZE_MIN) {
            return Err(SetupError::Size { given });
        }
        self.options.check(Beside { read_only, point, budget: budget.time.is_some() })?;
        let Options::Link { sweep: Some(sweep) } = &self.options else { return Ok(()) };
        if let Some(set) = setup.set() {
            return Err(SetupError::SweepOfSet { set: set.name.clone() });
        }
        if !setup.is_simulated() {
            return match setup.may_retrain() {
                false => Err(SetupError::SweepOfReal),
                true if setup.geometry().len() > 1 => Err(SetupError::RetrainSeveral),
                true if !sweep.lanes.is_empty() => Err(SetupError::LanesOfReal),
                true => Ok(()),
            };
        }
        let pcie = |link: &DriveLink| matches!(link, DriveLink::Pcie { .. });
        let mut all = setup.known().into_iter().zip(setup.geometry());
        match all.find(|(known, _)| !pcie(&known.link)) {
            Some((_, drive)) => Err(SetupError::SweepOfSata { drive: drive.name.clone() }),
            None => Ok(()),
        }
    }

    /// The experiments of these names, fitted to the drives. What can't be done as wanted is left out by name. On simulated
    /// drives points are shorter unless there is a budget of time.
    pub fn programme(&self, names: &[&'static str], setup: &Setup) -> Programme {
        let known = setup.known();
        let mut adjust = |experiment: &mut Experiment| {
            self.options.set(experiment);
            if setup.is_simulated() && self.budget.time.is_none() {
                experiment.shorten_for_simulation();
            }
            self.adjust(experiment, &known);
            if !setup.is_simulated() {
                keep_to_real_link(experiment);
            }
        };
        budget::programme(names, setup.geometry(), self.budget, self.read_only, &mut adjust)
    }

    /// What the user asked for, and what is known of the drives, in one experiment's options.
    fn adjust(&self, experiment: &mut Experiment, known: &[Known]) {
        let scope = experiment.scope();
        let (write, read) = guesses(known);
        scope.write_guess = write;
        scope.read_guess = read;
        scope.region = self.size.map(|size| size.0).or(scope.region);
        if let Some(point) = self.point {
            scope.point = point;
            scope.interval =
                scope.interval.min(Duration::from_nanos((point.as_nanos() / 4).max(1_000_000)));
        }
        if let Experiment::Neighbours(neighbours) = experiment {
            neighbours.writers.extend(
                (1..known.len()).map(|other| (known[0].relation(&known[other]), other as u16)),
            );
        }
        if let Experiment::Link(link) = experiment {
            link.links = known.iter().map(|known| known.link).collect();
        }
        if let Experiment::Fill(fill) = experiment {
            fill.warning_celsius =
                known.iter().filter_map(|known| known.warning_celsius).min_by(f64::total_cmp);
        }
        if self.read_only {
            experiment.leave_out_writes();
        }
    }
}

/// A real link has the lanes that it has, and goes no faster than both of its ends can. What was asked for beyond that stays, and
/// is refused by the port.
fn keep_to_real_link(experiment: &mut Experiment) {
    let Experiment::Link(link) = experiment else { return };
    let (Some(sweep), Some(DriveLink::Pcie { now: Some(now), best, slot })) =
        (&mut link.sweep, link.links.first())
    else {
        return;
    };
    sweep.lanes = vec![now.lanes];
    let fastest = [best, slot].into_iter().flatten().filter_map(PcieMode::of);
    let fastest = fastest.map(|mode| mode.generation).min();
    if sweep.generations == Sweep::default().generations {
        sweep.generations.retain(|generation| fastest.is_none_or(|best| *generation <= best));
    }
}

#[cfg(test)]
mod tests {
    use target::Profiles;

    use super::*;
    use crate::setup::SetupOptions;

    #[test]
    fn simulated_drives_get_short_points_unless_another_length_is_asked_for() {
        let targets = vec!["sim:ideal".into()];
        let options = SetupOptions { targets, ..SetupOptions::default() };
        let setup = Setup::look(options, &Profiles::in_folder("/nonexistent".into())).unwrap();
        let point = |wishes: Wishes| {
            let mut programme = wishes.programme(&["stream"], &setup);
            programme.experiments[0].0.scope().point
        };
        assert_eq!(point(Wishes::default()), Duration::from_secs(5));
        let asked = Duration::from_secs(7);
        assert_eq!(point(Wishes { point: Some(asked), ..Wishes::default() }), asked);
    }

    #[test]
    fn what_has_to_write_is_left_out_where_nothing_may_be_written() {
        let targets = vec!["sim:ideal".into(), "sim:intel-dc-p3600-400gb".into()];
        let options = SetupOptions { targets, ..SetupOptions::default() };
        let setup = Setup::look(options, &Profiles::in_folder("/nonexistent".into())).unwrap();
        let wishes = Wishes { read_only: true, ..Wishes::default() };
        let programme = wishes.programme(Experiment::NAMES, &setup);
        assert_eq!(programme.cost().written_bytes, 0);
        let left_out: Vec<&str> = programme.left_out.iter().map(|(name, _)| *name).collect();
        assert!(left_out.contains(&"fill") && left_out.contains(&"snia"), "{left_out:?}");
        assert!(programme.experiments.iter().any(|(experiment, _)| experiment.name() == "mix"));
    }
}
