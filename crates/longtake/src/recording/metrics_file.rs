//! A file of metrics that is renewed during a recording, for node-exporter's textfile collector.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base::{Duration, Instant};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use device::shell::quoted;
use nix::unistd::User;
use target::output::{NewFile, Outputs, Readers};

use super::observer::{Observer, Started, View};
use super::options::Options;
use crate::metrics::{Labels, Metrics};
use crate::{Remark, json, privileges};

/// Time between two versions of the file.
const EVERY: Duration = Duration::from_secs(5);

/// How long the end of a recording waits for the last version. A file system that answers no more must not keep it from ending.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// What every name of a metric begins with, after the words that describe it.
const MARK: &str = "# HELP longtake_";

/// The folder in which a file of metrics is renewed, if one is wanted. All that can be known of it is checked before anything is
/// opened: `user` is whom the process becomes, if anybody.
///
/// # Errors
/// If the file must not be written or holds something else, or the folder can't be written by that user.
pub fn folder(options: &Options, user: Option<&User>) -> Result<Option<PathBuf>> {
    let Some(path) = &options.metrics else { return Ok(None) };
    let outputs = Outputs::new(true);
    outputs.check(path).context("--metrics")?;
    let shown = path.display();
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        bail!("--metrics {shown}: name a regular file, which is replaced every {EVERY}");
    }
    may_be_replaced(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder)
        .with_context(|| format!("--metrics {shown}: opening {}", folder.display()))?;
    if !privileges::can_make_files(user, &folder)? {
        let (name, at) = (user.map_or("you", |user| &user.name), quoted(&folder.to_string_lossy()));
        bail!(
            "--metrics {shown}: {name} can't make files in {}, where it is replaced; as root, `setfacl -m u:{}:rwx {at}` allows it",
            folder.display(),
            user.map_or("$USER", |user| &user.name)
        );
    }
    // Standard output may be a file as well. What is made here is removed at once.
    outputs.create(path, Readers::All).and_then(NewFile::not_stream).context("--metrics")?;
    Ok(Some(folder))
}

/// Checks that nothing but metrics would be lost with the file at this path.
fn may_be_replaced(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    let opened = File::open(path).map(|file| file.take(MARK.len() as u64));
    opened.and_then(|mut file| file.read_to_end(&mut start)).ok();
    if !start.is_empty() && start != MARK.as_bytes() {
        bail!(
            "--metrics {}: this file exists and does not hold metrics of Longtake; name another file",
            path.display()
        );
    }
    Ok(())
}

/// The thread that writes the file. A slow file system must not hold up the recording.
#[derive(Debug)]
pub struct MetricsFile {
    texts: Option<Sender<String>>,
    /// Ends with the thread.
    failures: Receiver<String>,
    /// Whether a failure was told. The next ones say the same.
    has_failed: bool,
    due: Instant,
}

impl MetricsFile {
    /// Starts the thread, if a file is wanted.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(options: &Options, observer: &mut dyn Observer) -> Result<Option<Self>> {
        let Some(path) = &options.metrics else { return Ok(None) };
        if path.extension().is_none_or(|extension| extension != "prom") {
            observer.remark(Remark::Note(format!(
                "--metrics {}: the textfile collector reads files whose names end in .prom alone",
                path.display()
            )));
        }
        let (texts, taken) = bounded::<String>(1);
        let (failed, failures) = bounded(1);
        let path = path.to_owned();
        let write_all = move || {
            for text in taken {
                if let Err(error) = write(&path, &text) {
                    failed.try_send(format!("--metrics: {error:#}")).ok();
                }
            }
        };
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(write_all);
        thread.context("starting the thread of --metrics")?;
        Ok(Some(Self { texts: Some(texts), failures, has_failed: false, due: Instant::START }))
    }

    /// When it wants to look at the recording again.
    pub const fn next(&self) -> Instant {
        self.due
    }

    /// Looks at the recording, and renews the file if it is time. At the recording's end it waits for the last version.
    pub fn look(
        &mut self,
        started: &Started,
        view: &View<'_>,
        is_over: bool,
        observer: &mut dyn Observer,
    ) {
        if is_over || view.now() >= self.due {
            self.due = view.now() + EVERY;
            if let (Some(texts), Some(text)) = (&self.texts, text(started, view, !is_over)) {
                // While the thread still writes an earlier text, this one is left out; the last one is not.
                let patience = if is_over { PATIENCE } else { std::time::Duration::ZERO };
                texts.send_timeout(text, patience).ok();
            }
        }
        for failure in self.failures.try_iter() {
            self.has_failed = tell(failure, self.has_failed, observer);
        }
        if is_over {
            self.texts = None;
            self.wait(observer);
        }
    }

    /// Waits until the thread has written all that it was given.
    fn wait(&mut self, observer: &mut dyn Observer) {
        loop {
            match self.failures.recv_timeout(PATIENCE) {
                Ok(failure) => self.has_failed = tell(failure, self.has_failed, observer),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let late = format!("--metrics: the file is not written after {PATIENCE:?}");
                    return observer.remark(Remark::Warning(late));
                }
            }
        }
    }
}

/// Tells the first failure. Returns that one was told.
fn tell(failure: String, has_failed: bool, observer: &mut dyn Observer) -> bool {
    if !has_failed {
        observer.remark(Remark::Warning(failure));
    }
    true
}

fn text(started: &Started, view: &View<'_>, recording: bool) -> Option<String> {
    let status = json::status(started, &view.snapshot());
    let mut labels: Labels = match &started.file {
        Some(path) => vec![("file", path.display().to_string())],
        None => vec![("array", started.array.clone())],
    };
    let metrics = Metrics::default();
    metrics.enter_recording(&labels, recording);
    metrics.enter_recorder(&labels, &status);
    labels.push(("take", started.take.to_string()));
    metrics.enter_ledger(&labels, &status["ledger"]);
    metrics.textfile().ok()
}

fn write(path: &Path, text: &str) -> Result<()> {
    // It may have come there since the last time: a capture file that the recording itself has written, for one.
    may_be_replaced(path)?;
    let mut file = Outputs::new(true).create(path, Readers::All)?;
    file.write_all(text.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
    Ok(file.finish()?)
}
