//! How a recording is described before it starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use plan::mission::Mission;
use source::producer::Producer;
use source::spec::SourceSpec;
use target::real::STOPPED;
use target::{Profiles, SimTarget, array};

use super::account::Account;
use super::files::{self, FileOptions};
use super::handle::Recording;
use super::observer::Observer;
use super::options::Options;
use super::{described, real, retention, simulated};
use crate::Result;

/// A recording that has not started.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(super) source: String,
    /// What the program writes, if that is the source.
    producer: Option<Producer>,
    pub(super) target: String,
    pub(super) options: Options,
    pub(super) stop: Arc<AtomicBool>,
    /// The files to write, if there is no array.
    files: Option<FileOptions>,
    profiles: Option<Profiles>,
}

impl Builder {
    pub(super) fn new(source: &str, target: &str) -> Self {
        Self {
            source: source.to_owned(),
            producer: None,
            target: target.to_owned(),
            options: Options::default(),
            stop: Arc::default(),
            files: None,
            profiles: None,
        }
    }

    pub(super) fn of_producer(producer: &Producer, target: &str) -> Self {
        let source = SourceSpec::Producer(producer.clone()).to_string();
        Self { producer: Some(producer.clone()), ..Self::new(&source, target) }
    }

    /// Records with these options instead of the defaults.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Ends the recording once this is set, for instance by a signal.
    #[must_use]
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Finds simulated drives by name in these profiles [default: the library's, and the user's own in the usual folder].
    #[must_use]
    pub fn profiles(mut self, profiles: Profiles) -> Self {
        self.profiles = Some(profiles);
        self
    }

    /// Records straight into capture files instead of an array. Options of arrays have no effect then.
    #[must_use]
    pub fn files(mut self, files: FileOptions) -> Self {
        self.files = Some(files);
        self
    }

    /// Records in the calling thread until the source ends, a limit is reached, or the stop flag is set.
    ///
    /// # Errors
    /// If anything can't be opened, in which case nothing is left behind, or all drives fail at once. A source that fails in the
    /// middle is in the account, like every loss.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Account> {
        // Without a recording, its writers would wait for ever.
        self.record(observer).inspect_err(|_| self.producer.iter().for_each(Producer::close))
    }

    fn record(&self, observer: &mut dyn Observer) -> Result<Account> {
        self.options.check()?;
        retention::suits(&self.spec()?, &self.source, &self.options)?;
        if let Some(files) = &self.files {
            return Ok(files::record(self, files, observer)?);
        }
        let account =
            match SimTarget::all(&array::named(&self.target)).map_err(anyhow::Error::from)? {
                Some(targets) => simulated::record(self, &targets, observer)?,
                None => real::record(self, observer)?,
            };
        Ok(account)
    }

    /// Starts to record in a thread of its own. Returns once the recording has started.
    ///
    /// # Errors
    /// As [`Builder::run`], if it does not start.
    pub fn start(self) -> Result<Recording> {
        let producer = self.producer.clone();
        Recording::start(self).inspect_err(|_| producer.iter().for_each(Producer::close))
    }

    /// The mission that this recording is in virtual time if its chunks are described and not made, so that hours take seconds
    /// and no memory.
    ///
    /// # Errors
    /// If the drives are real, or the source has no rate, contents are asked for, or no time is named.
    pub fn mission(self) -> Result<Mission> {
        self.options.check()?;
        Ok(described::mission(&self)?)
    }

    /// Where the data comes from.
    pub(super) fn spec(&self) -> anyhow::Result<SourceSpec> {
        match &self.producer {
            Some(producer) => Ok(SourceSpec::Producer(producer.clone())),
            None => Ok(self.source.parse()?),
        }
    }

    /// Where simulated drives are looked up.
    pub(super) fn known_profiles(&self) -> Profiles {
        self.profiles.clone().unwrap_or_else(Profiles::of_user)
    }

    /// Ends a preparation that was asked to stop.
    pub(super) fn go_on(&self) -> anyhow::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            bail!(STOPPED);
        }
        Ok(())
    }
}
