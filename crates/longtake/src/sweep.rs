//! Many designs computed over all cores, each a job of its own, with results in a folder. A run that was stopped goes on with the
//! jobs that have no result.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use longtake::sweep::{Sweep, SweepRun};
//! use target::output::Outputs;
//! use target::Profiles;
//!
//! let text = "run = [\"plan\"]\n[base]\ndrive = \"ideal\"\nkeep = \"1h\"\n[axes]\nrate = [\"1GB/s\", \"2GB/s\"]\n";
//! let sweep = Sweep::from_toml(text)?;
//! let (folder, profiles) = (tempfile::tempdir()?, Profiles::of_user());
//! let mut run = SweepRun::open(&sweep, &profiles, folder.path(), &Outputs::new(false))?;
//! run.run(None, &AtomicBool::new(false), |finished| assert_eq!(finished.error, None))?;
//! assert_eq!(run.results().count(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cluster;
mod results;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use base::Duration;
use crossbeam_channel::unbounded;
use format::crc::crc32c;
use profile::Profile;
use target::Profiles;
use target::output::Outputs;

use crate::{Error, Result};
use results::Results;

pub use cluster::Cluster;
pub use plan::sweep::{Figure, Job, Sweep};
pub use results::{FILE, Finished};

/// The version whose results are kept.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A sweep, and what has been computed of it.
#[derive(Debug)]
pub struct SweepRun<'a> {
    sweep: &'a Sweep,
    profiles: &'a Profiles,
    results: Results,
    /// Jobs without a result, by their place in the sweep.
    left: Vec<u64>,
}

/// How long a sweep may take.
#[derive(Debug)]
pub struct Estimate {
    /// Jobs that are left.
    pub left: usize,
    /// Jobs at the same time.
    pub threads: usize,
    /// How long one from the middle took; None if no job is left.
    pub one: Option<Duration>,
    /// How long all that are left may take.
    pub all: Duration,
    /// Why the one from the middle failed.
    pub problem: Option<String>,
}

impl<'a> SweepRun<'a> {
    /// Opens the folder of a sweep's results, or makes it. Results that another version computed, or that were computed for a drive
    /// that has changed since, are left out. The results are locked: no other process can write them until this is dropped.
    ///
    /// # Errors
    /// If results can't be read or written, or another process writes them.
    pub fn open(
        sweep: &'a Sweep,
        profiles: &'a Profiles,
        folder: &Path,
        outputs: &Outputs,
    ) -> Result<Self> {
        Ok(Self::with(sweep, profiles, Results::open(folder, outputs)?))
    }

    /// Reads a folder of results and writes nothing there; the folder need not exist.
    ///
    /// # Errors
    /// If results can't be read.
    pub fn look(sweep: &'a Sweep, profiles: &'a Profiles, folder: &Path) -> Result<Self> {
        Ok(Self::with(sweep, profiles, Results::look(folder)?))
    }

    fn with(sweep: &'a Sweep, profiles: &'a Profiles, mut results: Results) -> Self {
        let mut known = HashMap::new();
        results.forget_others(|job| {
            *known
                .entry(job.drive().ok().map(str::to_owned))
                .or_insert_with(|| drive_checksum(job, profiles))
        });
        let left = (0..sweep.count()).filter(|&n| results.of(&sweep.job(n)).is_none()).collect();
        Self { sweep, profiles, results, left }
    }

    /// How many jobs have no result.
    pub fn left(&self) -> usize {
        self.left.len()
    }

    /// The results that there are, in the sweep's order, each with its job's place and its job.
    pub fn results(&self) -> impl Iterator<Item = (u64, Job, &Finished)> {
        (0..self.sweep.count()).filter_map(|index| {
            let job = self.sweep.job(index);
            self.results.of(&job).map(|finished| (index, job, finished))
        })
    }

    /// Runs the jobs that are left, `threads` at the same time (None: as many as there are processors), and returns how many were run.
    /// Every result is passed to `each` and then kept. Setting `stop` breaks off the jobs under way, which stay left.
    ///
    /// # Errors
    /// If a result can't be written.
    pub fn run(
        &mut self,
        threads: Option<NonZeroUsize>,
        stop: &AtomicBool,
        mut each: impl FnMut(&Finished),
    ) -> Result<usize> {
        let Self { sweep, profiles, results, left } = self;
        let (sweep, profiles) = (*sweep, *profiles);
        let next = AtomicUsize::new(0);
        let (sender, finished) = unbounded();
        let mut count = 0;
        // Threads share nothing but the number of the next job.
        thread::scope(|scope| {
            for _ in 0..threads_of(threads).min(left.len()) {
                let (sender, next, left) = (sender.clone(), &next, &*left);
                scope.spawn(move || {
                    while let Some(&index) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let finished = job(&sweep.job(index), profiles, stop);
                        // What was broken off is no result; nobody listens any more if results can't be kept.
                        if stop.load(Ordering::Relaxed) || sender.send(finished).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            for finished in finished {
                each(&finished);
                results.keep(finished)?;
                count += 1;
            }
            Ok::<(), Error>(())
        })?;
        left.retain(|&index| results.of(&sweep.job(index)).is_none());
        Ok(count)
    }

    /// How long the jobs that are left may take. One from the middle is run for that, and not kept.
    pub fn estimate(&self, threads: Option<NonZeroUsize>) -> Estimate {
        let left = self.left.len();
        let threads = threads_of(threads).min(left.max(1));
        let probe = self
            .left
            .get(left / 2)
            .map(|&index| job(&self.sweep.job(index), self.profiles, &AtomicBool::new(false)));
        let each_s = probe.as_ref().map(|finished| finished.took_s);
        let rounds = left.div_ceil(threads) as f64;
        Estimate {
            left,
            threads,
            one: each_s.map(Duration::from_secs_f64),
            all: Duration::from_secs_f64(each_s.map_or(0.0, |each| each * rounds)),
            problem: probe.and_then(|finished| finished.error),
        }
    }
}

/// The number asked for, else the number of processors.
fn threads_of(asked: Option<NonZeroUsize>) -> usize {
    let there = || thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(there, usize::from)
}

/// Checks what can be known of a job without running it.
///
/// # Errors
/// If its drive isn't there, or one of its keys can't be.
pub fn check(job: &Job, profiles: &Profiles) -> Result<()> {
    let drive = job.drive().map_err(anyhow::Error::from)?;
    profiles.find(drive.trim_start_matches("sim:")).map_err(anyhow::Error::from)?;
    job.check().map_err(anyhow::Error::from)?;
    Ok(())
}

/// Runs one job. If it fails, even by a panic, its result holds the error. Setting `stop` breaks it off.
pub fn job(job: &Job, profiles: &Profiles, stop: &AtomicBool) -> Finished {
    outcome(job, drive(job, profiles), stop)
}

/// The same on the drive with this profile, as TOML, which this machine need not know.
pub fn job_on(job: &Job, drive: &str, stop: &AtomicBool) -> Finished {
    outcome(job, Profile::from_toml(drive).map_err(anyhow::Error::from), stop)
}

fn outcome(job: &Job, drive: anyhow::Result<Profile>, stop: &AtomicBool) -> Finished {
    let began = Instant::now();
    let watch = |_| {
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let checksum = drive.as_ref().ok().and_then(checksum);
    let computed = || -> anyhow::Result<_> { Ok(job.run(&drive?, watch)?) };
    // A fault of ours in one design is no reason to lose the others.
    let outcome = catch_unwind(AssertUnwindSafe(computed)).unwrap_or_else(|_| {
        Err(anyhow::anyhow!(
            "a fault of Longtake (its message stands above); please report it with the job"
        ))
    });
    let (figures, error) = match outcome {
        Ok(figures) => (figures, None),
        Err(error) => (Default::default(), Some(format!("{error:#}"))),
    };
    Finished {
        version: VERSION.to_owned(),
        job: job.clone(),
        drive: checksum,
        figures,
        error,
        took_s: began.elapsed().as_secs_f64(),
    }
}

/// [`checksum`] of a job's drive. None if the drive isn't found.
fn drive_checksum(job: &Job, profiles: &Profiles) -> Option<u32> {
    checksum(&drive(job, profiles).ok()?)
}

/// CRC32C of the TOML of a drive, which distinguishes it from another drive of the same name.
fn checksum(drive: &Profile) -> Option<u32> {
    Some(crc32c(drive.to_toml().ok()?.as_bytes()))
}

fn drive(job: &Job, profiles: &Profiles) -> anyhow::Result<Profile> {
    Ok(profiles.find(job.drive()?.trim_start_matches("sim:"))?)
}
