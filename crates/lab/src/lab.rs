//! The lab: where an experiment runs its steps. Every step's measurement is a file before the next one begins, so an interrupted
//! experiment goes on where it was.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base::{Duration, Geometry, Rate};
use load::hdr_log::HdrLog;
use load::{Interval, Measurement, Workload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::analysis::Sample;
use crate::counters::StepCounters;
use crate::rig::{Go, PcieMode, Rig, RigError};

/// What one step came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What was measured.
    pub measurement: Measurement,
    /// What the drives' sensors said meanwhile: drive and sample.
    pub samples: Vec<(u16, Sample)>,
    /// What the drives counted of their own work meanwhile.
    #[serde(default)]
    pub counters: StepCounters,
}

/// How far an experiment is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// What it is doing.
    pub step: &'a str,
    /// How far this step is, from 0 to 1, if that can be known.
    pub share: Option<f64>,
    /// What was moved in the last interval.
    pub rate: Option<Rate>,
}

/// Why an experiment didn't come to an end.
#[derive(Debug)]
pub enum LabError {
    /// A workload didn't run.
    Rig(RigError),
    /// A result can't be written or read.
    File {
        /// What was tried.
        attempted: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        reason: io::Error,
    },
    /// The user stopped it. What was measured is kept.
    Interrupted,
    /// It can't be done on these drives.
    Unsuitable {
        /// Name of the experiment.
        experiment: &'static str,
        /// Why, and what would do.
        reason: String,
    },
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rig(error) => error.fmt(f),
            Self::File { attempted, path, reason } => {
                write!(f, "{attempted} {} failed: {reason}", path.display())
            }
            Self::Interrupted => f.write_str(
                "stopped; the steps that were done are kept, and --resume goes on behind them",
            ),
            Self::Unsuitable { experiment, reason } => {
                write!(f, "{experiment} can't run here: {reason}")
            }
        }
    }
}

impl std::error::Error for LabError {}

impl From<RigError> for LabError {
    fn from(error: RigError) -> Self {
        Self::Rig(error)
    }
}

/// Drives, a folder for results, and somebody who watches.
pub struct Lab<'a> {
    rig: &'a mut dyn Rig,
    folder: PathBuf,
    watch: &'a mut dyn FnMut(&Progress<'_>) -> Go,
}

impl fmt::Debug for Lab<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl<'a> Lab<'a> {
    /// Results go to `folder`, which is made if need be. Steps whose results are there already are not run again.
    /// `watch` hears of every interval, and may stop everything.
    ///
    /// # Errors
    /// If the folder can't be made.
    pub fn new(
        rig: &'a mut dyn Rig,
        folder: &Path,
        watch: &'a mut dyn FnMut(&Progress<'_>) -> Go,
    ) -> Result<Self, LabError> {
        let lab = Self { rig, folder: folder.to_owned(), watch };
        make_folder(&lab.folder)?;
        Ok(lab)
    }

    /// The drives.
    pub fn drives(&self) -> &[Geometry] {
        self.rig.drives()
    }

    /// Bytes of all drives together.
    pub fn capacity_bytes(&self) -> u64 {
        self.drives().iter().map(|drive| drive.capacity_bytes).sum()
    }

    /// Runs one step of an experiment, unless the same step was measured before. `watch` sees every interval and may end
    /// the step early, for instance because it is steady.
    ///
    /// # Errors
    /// [`LabError`]; what failed commands say is in the measurement.
    pub fn step_until(
        &mut self,
        experiment: &str,
        name: &str,
        workload: &Workload,
        watch: &mut dyn FnMut(&Interval) -> Go,
    ) -> Result<Step, LabError> {
        let folder = self.folder.join(experiment);
        make_folder(&folder)?;
        let path = folder.join(format!("{name}.json"));
        if let Some(done) = self.measured(experiment, name, workload)? {
            return Ok(done);
        }
        let log = folder.join(format!("{name}.hlog"));
        let fail = |reason| LabError::File { attempted: "writing", path: log.clone(), reason };
        let file = replaced(&log).map_err(fail)?;
        let started_ns =
            std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
        let mut hdr = HdrLog::new(BufWriter::new(file), started_ns, workload).map_err(fail)?;
        let mut samples = Vec::new();
        let (mut interrupted, mut unwritten) = (false, None);
        let mut moved = 0;
        let heard = &mut self.watch;
        let before = self.rig.counters();
        let mut measurement = self.rig.run(workload, &mut |interval, fresh| {
            samples.extend_from_slice(fresh);
            moved += interval.bytes();
            if let Err(reason) = hdr.write(interval) {
                unwritten.get_or_insert(reason);
                return Go::Stop;
            }
            let share = share_done(workload, interval, moved);
            let rate = Some(Rate::of(interval.bytes(), interval.length));
            if heard(&Progress { experiment, step: name, share, rate }) == Go::Stop {
                interrupted = true;
                return Go::Stop;
            }
            watch(interval)
        })?;
        if let Some(reason) = unwritten {
            return Err(fail(reason));
        }
        if interrupted {
            return Err(LabError::Interrupted);
        }
        measurement.started_ns = Some(started_ns);
        let counters = self.rig.counters().since(&before);
        let step = Step { measurement, samples, counters };
        write_json(&path, &step)?;
        Ok(step)
    }

    /// [`Lab::step_until`] the workload itself stops.
    ///
    /// # Errors
    /// As there.
    pub fn step(
        &mut self,
        experiment: &str,
        name: &str,
        workload: &Workload,
    ) -> Result<Step, LabError> {
        self.step_until(experiment, name, workload, &mut |_| Go::On)
    }

    /// A step's result, if this workload was measured on these drives before: then it will not be run again.
    ///
    /// # Errors
    /// If the result is there and can't be read.
    pub fn measured(
        &self,
        experiment: &str,
        name: &str,
        workload: &Workload,
    ) -> Result<Option<Step>, LabError> {
        let path = self.folder.join(experiment).join(format!("{name}.json"));
        let names: Vec<&str> = self.drives().iter().map(|drive| drive.name.as_str()).collect();
        let same = |step: &Step| {
            step.measurement.workload == *workload && step.measurement.drives == names
        };
        Ok(read_json::<Step>(&path)?.filter(same))
    }

    /// Forgets a step's result, so that the step will be run again.
    ///
    /// # Errors
    /// If the result can't be removed.
    pub fn forget(&self, experiment: &str, name: &str) -> Result<(), LabError> {
        let path = self.folder.join(experiment).join(format!("{name}.json"));
        match fs::remove_file(&path) {
            Err(reason) if reason.kind() != io::ErrorKind::NotFound => {
                Err(LabError::File { attempted: "removing", path, reason })
            }
            _ => Ok(()),
        }
    }

    /// Whether a step's result is there already.
    pub fn has(&self, experiment: &str, name: &str) -> bool {
        self.folder.join(experiment).join(format!("{name}.json")).exists()
    }

    /// Leaves the drives alone for a while.
    ///
    /// # Errors
    /// [`LabError::Interrupted`], or the rig's.
    pub fn rest(&mut self, experiment: &str, name: &str, time: Duration) -> Result<(), LabError> {
        let heard = &mut self.watch;
        let mut interrupted = false;
        self.rig.rest(time, &mut |rested| {
            let share = Some(rested.as_secs_f64() / time.as_secs_f64());
            let go = heard(&Progress { experiment, step: name, share, rate: None });
            interrupted |= go == Go::Stop;
            go
        })?;
        if interrupted { Err(LabError::Interrupted) } else { Ok(()) }
    }

    /// Puts the drives into the steady state of uniform random writes, if the rig can do that at once: see
    /// [`Rig::settle`].
    pub fn settle(&mut self, block_bytes: u64) -> bool {
        self.rig.settle(block_bytes)
    }

    /// Puts the drives back into the state in which they were opened, if the rig can do that: see [`Rig::renew`].
    ///
    /// # Errors
    /// The rig's.
    pub fn renew(&mut self) -> Result<bool, LabError> {
        Ok(self.rig.renew()?)
    }

    /// [`Rig::save`].
    pub fn save(&mut self) -> bool {
        self.rig.save()
    }

    /// [`Lab::step`] from the state that was saved, if one was.
    ///
    /// # Errors
    /// As there.
    pub fn point(
        &mut self,
        experiment: &str,
        name: &str,
        workload: &Workload,
    ) -> Result<Step, LabError> {
        self.point_until(experiment, name, workload, &mut |_| Go::On)
    }

    /// [`Lab::step_until`] from the state that was saved, if one was.
    ///
    /// # Errors
    /// As there.
    pub fn point_until(
        &mut self,
        experiment: &str,
        name: &str,
        workload: &Workload,
        watch: &mut dyn FnMut(&Interval) -> Go,
    ) -> Result<Step, LabError> {
        self.rig.restore();
        self.step_until(experiment, name, workload, watch)
    }

    /// [`Lab::point_until`] in a whole deterministic window of a drive: see [`Rig::begin_window`]. Returns whether the drive is in it in the
    /// end, which a step that was measured before doesn't tell.
    ///
    /// # Errors
    /// As there.
    pub fn point_in_window(
        &mut self,
        experiment: &str,
        name: &str,
        workload: &Workload,
        drive: u16,
        watch: &mut dyn FnMut(&Interval) -> Go,
    ) -> Result<(Step, Option<bool>), LabError> {
        let measured = self.measured(experiment, name, workload)?.is_some();
        self.rig.restore();
        self.rig.begin_window(drive)?;
        let step = self.step_until(experiment, name, workload, watch)?;
        Ok((step, (!measured).then(|| self.rig.is_in_window(drive))))
    }

    /// [`Rig::begin_window`].
    ///
    /// # Errors
    /// The rig's.
    pub fn begin_window(&mut self, drive: u16) -> Result<bool, LabError> {
        Ok(self.rig.begin_window(drive)?)
    }

    /// Puts the drives on other links, if the rig can do that: see [`Rig::relink`].
    ///
    /// # Errors
    /// The rig's.
    pub fn relink(&mut self, mode: Option<PcieMode>) -> Result<bool, LabError> {
        Ok(self.rig.relink(mode)?)
    }

    /// Keeps an experiment's result.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn keep<T: Serialize>(&self, experiment: &str, result: &T) -> Result<(), LabError> {
        write_json(&self.folder.join(experiment).join("result.json"), result)
    }
}

/// How much of its own measure a workload has done.
fn share_done(workload: &Workload, interval: &Interval, moved: u64) -> Option<f64> {
    let stop = &workload.stop;
    let by_time = stop.time.map(|time| {
        let whole = time.0.as_secs_f64() + workload.warm_up.0.as_secs_f64();
        ((interval.index + 1) as f64 * workload.interval.0.as_secs_f64() / whole).min(1.0)
    });
    let by_bytes = stop.bytes.map(|bytes| (moved as f64 / bytes.0 as f64).min(1.0));
    match (by_time, by_bytes) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

fn make_folder(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(|reason| LabError::File {
        attempted: "making the folder",
        path: path.to_owned(),
        reason,
    })
}

/// Reads a result; None if there is none, or if it was written by a version that had other fields.
///
/// # Errors
/// If it is there and can't be read.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, LabError> {
    match fs::read(path) {
        Ok(bytes) => Ok(from_json(&bytes)),
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(reason) => Err(LabError::File { attempted: "reading", path: path.to_owned(), reason }),
    }
}

/// The result that stands in these bytes; None if none does.
pub(crate) fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    // Code that reads each type from text would stand beside the code that reads it from values, and take as long to compile.
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    serde_json::from_value(value).ok()
}

/// Writes a result whole or not at all.
///
/// # Errors
/// If it can't be written.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), LabError> {
    let fail = |reason| LabError::File { attempted: "writing", path: path.to_owned(), reason };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // As the umask says: results are there to be shared.
    let mut file = tempfile::Builder::new()
        .prefix(".longtake-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(fail)?;
    // Whole in memory first: the serializer writes every bracket by itself.
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| fail(error.into()))?;
    text.push(b'\n');
    file.write_all(&text).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
    file.persist(path).map(drop).map_err(|failed| fail(failed.error))
}

/// A new file in place of an old one. It is a file of its own: if the old name was a link, what it led to stays as it is.
fn replaced(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() || old.is_symlink() => fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    File::create_new(path)
}
