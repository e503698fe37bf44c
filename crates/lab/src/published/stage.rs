//! The stage that published experiments are done on: drives by name from whoever makes them, a folder, and somebody who
//! watches.

use std::path::PathBuf;

use base::{Duration, Rate};

use super::basis::{Basis, UsedParameter};
use crate::lab::{Lab, LabError, Progress};
use crate::rig::{Go, PcieMode, Rig, RigError};

/// What drives a document's experiment needs.
#[derive(Clone, Debug, PartialEq)]
pub struct DrivesNeeded {
    /// The model's name in the library of drives.
    pub model: &'static str,
    /// How many of them.
    pub copies: u32,
    /// All as one drive, in RAID 0 with stripes of the usual size.
    pub striped: bool,
    /// Of each one's capacity so much, on as many dies: fewer blocks on each. 1 for the whole.
    pub share: f64,
    /// What is on them.
    pub contents: Contents,
    /// Another link than the model's own.
    pub link: Option<PcieMode>,
    /// Bandwidth of the link that all drives share: to the host, and to the drives.
    pub uplink: Option<(Rate, Rate)>,
}

/// What is on a drive at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Nothing.
    #[default]
    Empty,
    /// Everything, written once from the first byte to the last.
    Full,
    /// What endless random writing of 4 KiB leaves.
    Random,
}

impl DrivesNeeded {
    /// One empty drive as it is.
    pub const fn one(model: &'static str) -> Self {
        Self {
            model,
            copies: 1,
            striped: false,
            share: 1.0,
            contents: Contents::Empty,
            link: None,
            uplink: None,
        }
    }

    /// So many of one model in RAID 0.
    pub const fn raid0(model: &'static str, copies: u32) -> Self {
        Self { copies, striped: true, ..Self::one(model) }
    }

    /// With these contents.
    #[must_use]
    pub const fn holding(self, contents: Contents) -> Self {
        Self { contents, ..self }
    }

    /// With this share of the capacity.
    #[must_use]
    pub const fn of_capacity(self, share: f64) -> Self {
        Self { share, ..self }
    }

    /// On this link.
    #[must_use]
    pub const fn on(self, generation: u8, lanes: u8) -> Self {
        Self { link: Some(PcieMode { generation, lanes }), ..self }
    }
}

/// A recorder's ring on full drives of one model: all that it writes is overwriting.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// The model's name in the library of drives.
    pub model: &'static str,
    /// How many of them.
    pub copies: u32,
    /// Of each one's capacity so much: see [`DrivesNeeded::share`].
    pub share: f64,
    /// Whether the recorder trims old segments ahead of its head, as it does by default.
    pub trims: bool,
    /// What it is offered.
    pub load: Rate,
    /// How long.
    pub time: Duration,
}

/// What came of a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingOutcome {
    /// Times that its capacity was written over.
    pub laps: f64,
    /// The lowest rate of all drives together from the second lap on, in windows of a 500th of the time; None before a second lap.
    pub slowest: Option<Rate>,
    /// Whether all that was offered was stored.
    pub lossless: bool,
    /// Share of erases that were done before their blocks were needed, 0 to 1; none are of a drive that doesn't erase.
    pub erased_ahead: f64,
    /// Share of the flash's time in which programs waited for an erase, 0 to 1.
    pub erase_wait: f64,
}

/// How much is measured where a document's figures take very many commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Enough to see whether claims hold, in seconds.
    Quick,
    /// Enough for 99.99 %.
    #[default]
    Usual,
    /// Enough for 99.9999 %, in minutes.
    Long,
}

/// Whoever makes drives.
pub trait Drives {
    /// A rig of these drives.
    ///
    /// # Errors
    /// If there are none.
    fn rig(&mut self, needed: &DrivesNeeded) -> Result<Box<dyn Rig>, RigError>;

    /// Runs a recorder on a ring, in virtual time. `tick` is called now and then with the share that is done, and may stop it.
    ///
    /// # Errors
    /// If there are no such drives, or nothing can be recorded on them like this.
    fn ring(
        &mut self,
        ring: &Ring,
        tick: &mut dyn FnMut(f64) -> Go,
    ) -> Result<RingOutcome, RigError>;

    /// The parameters of a model, with their sources and the claims that they were fitted to.
    ///
    /// # Errors
    /// If there is no such model.
    fn parameters(&self, model: &str) -> Result<Vec<UsedParameter>, RigError>;
}

/// Where published experiments are done.
pub struct Stage<'a> {
    drives: &'a mut dyn Drives,
    used: Vec<UsedParameter>,
    folder: PathBuf,
    effort: Effort,
    watch: &'a mut dyn FnMut(&Progress<'_>) -> Go,
}

impl std::fmt::Debug for Stage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl<'a> Stage<'a> {
    /// Of drives that somebody makes. Every step's measurement is kept in `folder`.
    pub fn new(
        drives: &'a mut dyn Drives,
        folder: PathBuf,
        effort: Effort,
        watch: &'a mut dyn FnMut(&Progress<'_>) -> Go,
    ) -> Self {
        Self { drives, used: Vec::new(), folder, effort, watch }
    }

    /// What figures of a drive of this model rest on.
    ///
    /// # Errors
    /// If there is no such model.
    pub fn basis(&mut self, model: &str) -> Result<Basis, LabError> {
        let parameters = self.drives.parameters(model)?;
        Ok(self.resting_on(&parameters))
    }

    /// What figures rest on that depend on these parameters.
    pub fn resting_on(&mut self, parameters: &[UsedParameter]) -> Basis {
        let new = parameters.iter().filter(|parameter| !self.used.contains(parameter));
        let new: Vec<UsedParameter> = new.cloned().collect();
        self.used.extend(new);
        Basis::simulated(parameters)
    }

    /// The parameters that figures rested on since this was last asked.
    pub fn take_used(&mut self) -> Vec<UsedParameter> {
        std::mem::take(&mut self.used)
    }

    /// How much is to be measured.
    pub const fn effort(&self) -> Effort {
        self.effort
    }

    /// Does something on these drives, in the state they begin in. `label` tells it apart from all else on this stage: it
    /// names the folder of its steps.
    ///
    /// # Errors
    /// [`LabError`]: if there are no such drives, or as the experiment's.
    pub fn on<T>(
        &mut self,
        label: &str,
        drives: &DrivesNeeded,
        run: impl FnOnce(&mut Lab<'_>) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let mut rig = self.drives.rig(drives)?;
        let watch = &mut self.watch;
        let mut watch = |progress: &Progress<'_>| {
            let experiment = format!("{label}: {}", progress.experiment);
            watch(&Progress { experiment: &experiment, ..*progress })
        };
        run(&mut Lab::new(rig.as_mut(), &self.folder.join(label), &mut watch)?)
    }

    /// Runs a recorder on a ring. `label` says which, to whoever watches.
    ///
    /// # Errors
    /// [`LabError`]: if there are no such drives, or whoever watches stopped it.
    pub fn ring(&mut self, label: &str, ring: &Ring) -> Result<RingOutcome, LabError> {
        let watch = &mut self.watch;
        let mut stopped = false;
        let outcome = self.drives.ring(ring, &mut |share| {
            let step = ring.model;
            let go = watch(&Progress { experiment: label, step, share: Some(share), rate: None });
            stopped |= go == Go::Stop;
            go
        })?;
        if stopped { Err(LabError::Interrupted) } else { Ok(outcome) }
    }
}
