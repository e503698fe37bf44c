//! Runs a programme: experiment after experiment, the run kept after each, so that what was found is never lost.

use std::path::Path;

use super::all::Programme;
use super::any::ExperimentOutcome;
use crate::lab::{Lab, LabError, Progress};
use crate::rig::{Go, Rig};
use crate::run::Run;

/// What became of an experiment.
#[derive(Debug)]
pub enum Event<'a> {
    /// It found something.
    Found(&'a ExperimentOutcome),
    /// It failed; the next one is run all the same.
    Failed {
        /// Name of the experiment.
        experiment: &'static str,
        /// Why it failed.
        error: &'a LabError,
    },
}

/// How a programme ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every experiment was run; this many of them failed.
    Done {
        /// Number of experiments that failed.
        failures: usize,
    },
    /// `watch` stopped it. What was measured is kept.
    Interrupted,
}

impl Programme {
    /// Runs the experiments on a rig and adds what they find to `run`, which is kept in `folder` before the first and after
    /// each. `watch` hears of every interval and may stop everything, `heard` learns what became of each experiment.
    ///
    /// # Errors
    /// [`LabError`] if the run can't be kept, or what `heard` returns. An experiment that fails is no error: it is left out
    /// of the run, with its reason.
    pub fn conduct<E: From<LabError>>(
        &self,
        rig: &mut dyn Rig,
        run: &mut Run,
        folder: &Path,
        watch: &mut dyn FnMut(&Progress<'_>) -> Go,
        heard: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<Ending, E> {
        for (name, why) in &self.left_out {
            run.leave_out(name, why.clone());
        }
        run.keep(folder)?;
        let mut failures = 0;
        for (experiment, _) in &self.experiments {
            match experiment.run(&mut Lab::new(rig, folder, watch)?) {
                Ok(outcome) => {
                    heard(Event::Found(&outcome))?;
                    run.add(outcome);
                }
                Err(LabError::Interrupted) => {
                    run.keep(folder)?;
                    return Ok(Ending::Interrupted);
                }
                Err(error) => {
                    failures += 1;
                    heard(Event::Failed { experiment: experiment.name(), error: &error })?;
                    run.leave_out(experiment.name(), error.to_string());
                }
            }
            run.keep(folder)?;
        }
        Ok(Ending::Done { failures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Duration, Geometry, Rate};

    use crate::experiment::all::{Budget, programme};
    use crate::experiment::testing::{geometry, rated, rig, scope};

    /// Conducts a fill, which has to write, and a steady stream, on a drive that may only be read.
    fn conduct(folder: &Path, go: Go) -> (Ending, Run, Vec<String>) {
        let drives = vec![Geometry { writable: false, ..geometry() }];
        let adjust = &mut |experiment: &mut crate::experiment::Experiment| {
            *experiment.scope() = scope(300);
            experiment.leave_out_writes();
        };
        let mut programme = programme(&["fill", "steady"], &drives, Budget::default(), adjust);
        programme.left_out.push(("snia", "nobody wants it".to_owned()));
        let (mut rig, _) = rig(drives, rated(Rate(1e9), Rate(1e9), Duration::ZERO));
        let mut run = Run::begin("1", Vec::new());
        let mut events = Vec::new();
        let ending =
            programme.conduct::<LabError>(&mut rig, &mut run, folder, &mut |_| go, &mut |event| {
                events.push(match event {
                    Event::Found(outcome) => format!("{} found", outcome.name()),
                    Event::Failed { experiment, .. } => format!("{experiment} failed"),
                });
                Ok(())
            });
        (ending.unwrap(), run, events)
    }

    #[test]
    fn an_experiment_that_fails_is_left_out_and_the_next_one_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let (ending, run, events) = conduct(folder.path(), Go::On);
        assert_eq!(ending, Ending::Done { failures: 1 });
        assert_eq!(events, ["fill failed", "steady found"]);
        let left_out: Vec<&str> = run.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left_out, ["snia", "fill"]);
        assert_eq!(Run::begun(folder.path()).unwrap(), Some(run));
    }

    #[test]
    fn an_interrupted_programme_keeps_its_run() {
        let folder = tempfile::tempdir().unwrap();
        let (ending, run, events) = conduct(folder.path(), Go::Stop);
        assert_eq!(ending, Ending::Interrupted);
        assert_eq!(events, ["fill failed"]);
        assert_eq!(Run::begun(folder.path()).unwrap(), Some(run));
    }
}
