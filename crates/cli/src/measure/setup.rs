//! From targets on the command line to a rig, in two steps: a look, from which costs are stated, and opening. Drives are
//! real or simulated; experiments don't see the difference.

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use base::{ByteSize, Geometry};
use device::facts::Facts;
use lab::rig::Clock;
use lab::run::Subject;
use lab::{Cost, Go, Rig};
use load::Workload;
use target::{RealDrives, SimTarget};
use twin::{Known, SimulatedDrives, SimulatedRig};

use crate::measure::arguments::RigArguments;
use crate::measure::real_rig::{self, RealRig};
use crate::{preparation, profiles};

/// The folder of what experiments write before they read, shared by all.
const PREPARATION: &str = "prepare";

/// The drives to be measured: looked at, and nothing done to them.
#[derive(Debug)]
pub enum Setup {
    /// Block devices and files.
    Real(RealDrives),
    /// Drives in virtual time.
    Simulated(Box<SimulatedDrives>),
}

/// Open drives with all that measures them.
#[derive(Debug)]
pub enum OpenRig {
    /// Block devices and files.
    Real(RealRig),
    /// Drives in virtual time.
    Simulated(SimulatedRig),
}

impl Setup {
    /// The drives as they are. Files that aren't there yet are thought of as they would be made.
    ///
    /// # Errors
    /// If a target can't be opened or simulated, or options don't suit the kind of drives.
    pub fn look(arguments: &RigArguments, new_file_bytes: u64) -> Result<Self> {
        let texts: Vec<String> =
            arguments.targets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        if let Some(targets) = SimTarget::all(&texts)? {
            suits_simulated(arguments)?;
            let drives = SimulatedDrives::look(&targets, arguments.uplink, profiles::known())?;
            return Ok(Self::Simulated(Box::new(drives)));
        }
        if arguments.uplink.is_some() {
            bail!("--uplink is for simulated drives: real ones have the links that they have");
        }
        Ok(Self::Real(RealDrives::look(arguments.targets.clone(), new_file_bytes)?))
    }

    /// What they are like.
    pub fn geometry(&self) -> &[Geometry] {
        match self {
            Self::Real(drives) => drives.geometry(),
            Self::Simulated(drives) => drives.geometry(),
        }
    }

    /// What is known of them.
    pub fn known(&self) -> Vec<Known> {
        let known = |facts: &Option<Facts>| facts.as_ref().map(Known::of_facts).unwrap_or_default();
        match self {
            Self::Real(drives) => drives.facts().iter().map(known).collect(),
            Self::Simulated(drives) => drives.known(),
        }
    }

    /// What a report says of them.
    pub fn subjects(&self) -> Vec<Subject> {
        match self {
            Self::Real(drives) => real_rig::subjects(drives),
            Self::Simulated(drives) => drives.subjects(),
        }
    }

    /// States what is about to happen to them, in words.
    pub fn state_cost(&self, arguments: &RigArguments, cost: &Cost) -> Vec<String> {
        match self {
            Self::Real(drives) => real_rig::state_cost(drives, arguments, cost),
            Self::Simulated(_) => vec![format!(
                "simulated: writes up to {}, reads about {}, takes about {} of virtual time; nothing real is touched",
                ByteSize(cost.written_bytes),
                ByteSize(cost.read_bytes),
                cost.time()
            )],
        }
    }

    /// Whether time is virtual.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Makes ready the folder of a run that is gone on with. Real drives are as the steps before left them, and the steps
    /// that were done are not run again. Simulated ones begin anew: what these experiments did is simulated again, which
    /// comes out the same.
    ///
    /// # Errors
    /// If old steps can't be removed.
    pub fn go_on(&self, folder: &Path, experiments: &[&str]) -> Result<()> {
        if !self.is_simulated() {
            return Ok(());
        }
        for name in experiments.iter().chain(&[PREPARATION]) {
            let steps = folder.join(name);
            if steps.exists() {
                std::fs::remove_dir_all(&steps)
                    .with_context(|| format!("removing the old steps in {}", steps.display()))?;
            }
        }
        Ok(())
    }

    /// Opens them, for writing only if `writes`. Makes files that don't exist; they are removed again if this fails or `stopped`
    /// says so. `workload` is what will run, if that is known: simulated drives keep data only if it is looked at.
    ///
    /// # Errors
    /// Every refusal, or why a target can't be opened.
    pub fn open(
        self,
        arguments: &RigArguments,
        writes: bool,
        workload: Option<&Workload>,
        stopped: &impl Fn() -> Go,
    ) -> Result<OpenRig> {
        match self {
            Self::Real(drives) => {
                real_rig::open(&drives, arguments, writes, stopped).map(OpenRig::Real)
            }
            Self::Simulated(drives) => Ok(OpenRig::Simulated(drives.open(workload)?)),
        }
    }
}

impl OpenRig {
    /// What experiments run on.
    pub fn rig(&mut self) -> &mut dyn Rig {
        match self {
            Self::Real(rig) => &mut rig.threads,
            Self::Simulated(rig) => rig.rig(),
        }
    }

    /// The clock, if it is not everybody's.
    pub fn clock(&self) -> Option<Clock> {
        match self {
            Self::Real(_) => None,
            Self::Simulated(rig) => Some(rig.clock()),
        }
    }

    /// What there was to warn of since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        match self {
            Self::Real(rig) => rig.threads.take_warnings(),
            Self::Simulated(_) => Vec::new(),
        }
    }
}

/// Refuses options that say how real drives are driven.
fn suits_simulated(arguments: &RigArguments) -> Result<()> {
    let RigArguments { threads, cpus, poll, .. } = arguments;
    for (asked, option) in
        [(*threads > 1, "--threads"), (!cpus.is_empty(), "--cpus"), (*poll, "--poll")]
    {
        if asked {
            bail!(
                "{option} says how real drives are driven; simulated ones are one calculation on one thread: leave it out"
            );
        }
    }
    Ok(())
}

/// Whether a signal asked to stop. A second one ends the process at once.
///
/// # Errors
/// If signals can't be caught.
pub fn stop_on_signals() -> Result<impl Fn() -> Go> {
    let stop = preparation::stop_on_signals()?;
    Ok(move || if stop.load(Ordering::Relaxed) { Go::Stop } else { Go::On })
}
