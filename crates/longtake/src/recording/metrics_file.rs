//! A file of metrics that is renewed during a recording, for node-exporter's textfile collector.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use base::{Duration, Instant};
use crossbeam_channel::{Receiver, Sender, bounded};
use device::shell::quoted;
use nix::unistd::User;
use target::output::{Outputs, Readers};

use super::observer::{Observer, Started, View};
use super::options::Options;
use crate::metrics::{Labels, Metrics};
use crate::{Remark, json, privileges};

/// Time between two versions of the file.
const EVERY: Duration = Duration::from_secs(5);

/// What every name of a metric begins with, after the words that describe it.
const MARK: &str = "# HELP longtake_";

/// The folder in which a file of metrics is renewed, if one is wanted. All that can be known of it is checked before anything is
/// opened: `user` is whom the process becomes, if anybody.
///
/// # Errors
/// If the file must not be written or holds something else, or the folder can't be written by that user.
pub fn folder(options: &Options, user: Option<&User>) -> Result<Option<PathBuf>> {
    let Some(path) = &options.metrics else { return Ok(None) };
    Outputs::new(true).check(path).context("--metrics")?;
    let shown = path.display();
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        bail!("--metrics {shown}: name a regular file, which is replaced every {EVERY}");
    }
    let known = fs::read(path).unwrap_or_default();
    if !known.is_empty() && !known.starts_with(MARK.as_bytes()) {
        bail!(
            "--metrics {shown}: this file exists and does not hold metrics of Longtake; name another file"
        );
    }
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
    Ok(Some(folder))
}

/// The thread that writes the file. A slow file system must not hold up the recording.
#[derive(Debug)]
pub struct MetricsFile {
    texts: Option<Sender<String>>,
    failures: Receiver<String>,
    thread: Option<JoinHandle<()>>,
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
                    // One failure is told; the others are the same.
                    failed.try_send(format!("--metrics: {error:#}")).ok();
                }
            }
        };
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(write_all);
        let thread = Some(thread.context("starting the thread of --metrics")?);
        Ok(Some(Self { texts: Some(texts), failures, thread, due: Instant::START }))
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
            self.renew(text(started, view, !is_over), is_over);
        }
        for failure in self.failures.try_iter() {
            observer.remark(Remark::Warning(failure));
        }
    }

    fn renew(&mut self, text: Option<String>, is_last: bool) {
        let (Some(texts), Some(text)) = (&self.texts, text) else { return };
        if !is_last {
            // While the thread still writes an earlier text, this one is left out.
            texts.try_send(text).ok();
            return;
        }
        texts.send(text).ok();
        self.texts = None;
        self.thread.take().map(JoinHandle::join);
    }
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
    let mut file = Outputs::new(true).create(path, Readers::All)?;
    file.write_all(text.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
    Ok(file.finish()?)
}
