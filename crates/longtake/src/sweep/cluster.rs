//! Jobs of a sweep on a cluster: the Python package hands them to Dask, and hands back what came of them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Finished, SweepRun, VERSION, drive, job};

/// The module that talks to Dask.
const MODULE: &str = "longtake.cluster.jobs";
/// How often `stop` is looked at.
const GLANCE: Duration = Duration::from_millis(100);

/// A Dask cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its scheduler's address, such as `tls://10.0.0.1:8786`.
    pub scheduler: String,
    /// Files: the certificate of the authority that has signed those of the cluster, the certificate to show, and its key. None leaves
    /// them to Dask's configuration.
    pub tls: Option<[PathBuf; 3]>,
}

/// What came of a job: its number among those that were sent, and its result or why there is none.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Finished(usize, Box<Finished>),
    Failed(usize, String),
}

impl SweepRun<'_> {
    /// Computes the jobs that are left on a cluster, whose workers need not know the drives; returns how many were run. Every result is
    /// passed to `each` and then kept. Why a job has no result is passed to `told`. Such a job stays left, and so do those under way when
    /// `stop` is set.
    ///
    /// # Errors
    /// If the Python package isn't installed, the scheduler can't be reached, another version computes, or a result can't be written.
    pub fn run_on(
        &mut self,
        cluster: &Cluster,
        stop: &AtomicBool,
        mut each: impl FnMut(&Finished),
        told: impl Fn(&str),
    ) -> crate::Result<usize> {
        let before = self.left.len();
        let (request, places) = self.request(&mut each)?;
        if !places.is_empty() {
            let mut python = Python::start(cluster, &request)?;
            while let Some(line) = python.next(stop) {
                let (number, result) = parsed(&line.context("reading what the cluster prints")?)?;
                let place = *places
                    .get(number)
                    .with_context(|| format!("{MODULE} was given no job {number}"))?;
                match result {
                    Ok(finished) => {
                        each(&finished);
                        self.keep(place, *finished)?;
                    }
                    Err(why) => told(&format!("job {place} was not run: {why}")),
                }
            }
            python.end(stop)?;
        }
        Ok(before - self.left.len())
    }

    /// The jobs that are left and the profiles of their drives, as the module reads them, and the place of each job in the sweep. Jobs on
    /// a drive that isn't known fail wherever they are run, and so they fail here.
    fn request(&mut self, mut each: impl FnMut(&Finished)) -> Result<(Value, Vec<u64>)> {
        let (mut places, mut jobs, mut drives) = (Vec::new(), Vec::new(), BTreeMap::new());
        for place in self.left.clone() {
            let of = self.sweep.job(place);
            let Ok(profile) = drive(&of, self.profiles) else {
                let finished = job(&of, self.profiles, &AtomicBool::new(false));
                each(&finished);
                self.keep(place, finished)?;
                continue;
            };
            let name = of.drive()?.to_owned();
            jobs.push(json!([serde_json::to_string(&of)?, name]));
            places.push(place);
            drives.insert(name, profile.to_toml()?);
        }
        Ok((json!({"drives": drives, "jobs": jobs}), places))
    }

    fn keep(&mut self, place: u64, finished: Finished) -> Result<()> {
        let theirs = &finished.version;
        ensure!(
            theirs == VERSION,
            "a worker has Longtake {theirs}, and this is {VERSION}: install the same version everywhere"
        );
        let left = self.left.binary_search(&place).ok();
        let at = left.filter(|_| self.sweep.job(place) == finished.job);
        let at = at.with_context(|| {
            format!("the result of job {place} is of another one, or came twice")
        })?;
        self.results.keep(finished)?;
        self.left.remove(at);
        Ok(())
    }
}

fn parsed(line: &str) -> Result<(usize, Result<Box<Finished>, String>)> {
    let line = serde_json::from_str(line)
        .with_context(|| format!("{MODULE} printed what is no result: {line}"))?;
    Ok(match line {
        Line::Finished(number, finished) => (number, Ok(finished)),
        Line::Failed(number, why) => (number, Err(why)),
    })
}

/// The process that talks to Dask. It gives up when its input ends.
struct Python {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<std::io::Result<String>>,
}

impl Python {
    fn start(cluster: &Cluster, request: &Value) -> Result<Self> {
        let mut command = Command::new("python3");
        // -P: what lies in the current folder is not what is meant.
        command.args(["-P", "-m", MODULE, &cluster.scheduler]);
        command.args(cluster.tls.iter().flatten());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting python3, which talks to the cluster")?;
        let mut input = child.stdin.take().context("python3 has no input")?;
        let output = BufReader::new(child.stdout.take().context("python3 has no output")?);
        // One that has ended already says why, and its exit status tells.
        writeln!(input, "{request}").and_then(|()| input.flush()).ok();
        let (sender, lines) = unbounded();
        thread::spawn(move || output.lines().try_for_each(|line| sender.send(line)));
        Ok(Self { child, input: Some(input), lines })
    }

    /// The next line that it prints; None at the end, or when `stop` is set.
    fn next(&self, stop: &AtomicBool) -> Option<std::io::Result<String>> {
        while !stop.load(Ordering::Relaxed) {
            match self.lines.recv_timeout(GLANCE) {
                Ok(line) => return Some(line),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        None
    }

    fn end(&mut self, stop: &AtomicBool) -> Result<()> {
        drop(self.input.take());
        let status = self.child.wait().context("waiting for python3")?;
        if !status.success() && !stop.load(Ordering::Relaxed) {
            bail!(
                "`python3 -m {MODULE}` failed ({status}), and its message stands above. It needs the Python package of this version: \
                 pip install 'longtake[cluster]'"
            );
        }
        Ok(())
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.wait().ok();
    }
}
