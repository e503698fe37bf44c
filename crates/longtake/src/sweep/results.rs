//! What came of jobs, a line each in one file, on disk as soon as it is known. A line that a kill cut short is dropped, and its job
//! is run again.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plan::sweep::{Figure, Job};
use serde::{Deserialize, Serialize};
use target::output::Outputs;

/// The file in the folder of results.
pub const FILE: &str = "results.jsonl";

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The version that computed it: another one computes it again.
    pub version: String,
    /// The job.
    pub job: Job,
    /// CRC32C of its drive's profile as TOML: a drive of one's own may have changed under its name. None if there was none.
    #[serde(default)]
    pub drive: Option<u32>,
    /// Its figures; none if it failed.
    #[serde(default)]
    pub figures: BTreeMap<String, Figure>,
    /// Why it could not be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took, in seconds.
    pub took_s: f64,
}

/// All results of a folder.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    /// None if nothing is kept on disk.
    file: Option<File>,
    by_job: HashMap<String, Finished>,
}

impl Results {
    /// The results in a folder, which is made if it isn't there. Another process can't write them at the same time.
    ///
    /// # Errors
    /// If they can't be read or written.
    pub fn open(folder: &Path, outputs: &Outputs) -> Result<Self> {
        let path = folder.join(FILE);
        // Locked before it is read: what another sweep adds meanwhile would be cut off.
        let mut file = locked(folder, &path, outputs)?;
        let (by_job, whole) = read(&path)?;
        file.set_len(whole)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .with_context(|| format!("continuing the results in {}", path.display()))?;
        Ok(Self { path, file: Some(file), by_job })
    }

    /// The results in a folder, to look at alone: nothing is made, and nothing kept on disk.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn look(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let (by_job, _) = read(&path)?;
        Ok(Self { path, file: None, by_job })
    }

    /// Drops what was computed for drives that have changed since.
    pub fn forget_others(&mut self, mut drive: impl FnMut(&Job) -> Option<u32>) {
        self.by_job.retain(|_, finished| finished.drive == drive(&finished.job));
    }

    /// What came of a job.
    pub fn of(&self, job: &Job) -> Option<&Finished> {
        self.by_job.get(&key(job))
    }

    /// Keeps a result, on disk too.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn keep(&mut self, finished: Finished) -> Result<()> {
        let mut line = serde_json::to_vec(&finished).context("writing a result as JSON")?;
        line.push(b'\n');
        if let Some(file) = &mut self.file {
            // In one piece, so that a kill leaves at most one line unfinished.
            file.write_all(&line).with_context(|| format!("writing {}", self.path.display()))?;
        }
        self.by_job.insert(key(&finished.job), finished);
        Ok(())
    }
}

/// The results in a file, by job, and the length of its whole lines in bytes. Those of another version are left out.
fn read(path: &Path) -> Result<(HashMap<String, Finished>, u64)> {
    let text = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("reading results in {}", path.display()));
        }
    };
    // Whatever stands behind the last end of a line was not finished.
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut by_job = HashMap::new();
    for (index, line) in text[..whole].split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let finished: Finished = serde_json::from_slice(line).with_context(|| {
            format!(
                "line {} of {} is no result of a sweep: delete it, and its job is run again",
                index + 1,
                path.display()
            )
        })?;
        if finished.version == super::VERSION {
            by_job.insert(key(&finished.job), finished);
        }
    }
    Ok((by_job, whole as u64))
}

/// The file of results, made if need be, which no other sweep writes until it is closed.
fn locked(folder: &Path, path: &Path, outputs: &Outputs) -> Result<File> {
    outputs.make_folder(folder)?;
    let file = outputs.journal(path)?;
    if file.try_lock().is_err() {
        bail!(
            "{} is being written by another sweep: wait for its end, or name another folder with --output",
            path.display()
        );
    }
    Ok(file)
}

/// A job by all that it says: its keys are in order, so that the same job is the same text.
fn key(job: &Job) -> String {
    serde_json::to_string(job).unwrap_or_default()
}
