//! Recording into files: opens the source, gives up privileges if it is to, and carries chunks from the source's threads to the
//! writer, with every packet accounted for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::{Context, Error, Result, bail};
use base::{BufferId, ByteSize, Duration, Instant, Timestamp};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use device::{Pages, Pool, Waker};
use format::layout::{CHUNK_MAX_DEFAULT, PAGE_BYTES};
use format::{Count, Ledger, Stage};
use nix::sys::statvfs::statvfs;
use recorder::defaults;
use source::interface::Link;
use source::packer::{Progress, Supply};
use source::spec::SourceSpec;
use source::{Filled, clock};
use target::output::{Leftover, Outputs};
use uuid::Uuid;

use super::series::Series;
use super::writer::Writer;
use super::{FileOptions, Files};
use crate::privileges::{self, FileMaker};
use crate::recording::account::Account;
use crate::recording::builder::Builder;
use crate::recording::ending::{EndReason, SourceEnd};
use crate::recording::fits::Capacity;
use crate::recording::metrics_file::{self, MetricsFile};
use crate::recording::observer::{Counts, FileCounts, Observer, Rejections, Started, View};
use crate::recording::options::{Options, Privileges};
use crate::recording::sources::{self, Taking};
use crate::recording::{processors, real};
use crate::{Remark, instant};

/// Longest wait for a chunk, so that a stop is seen in time.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Records into files.
pub fn record(job: &Builder, files: &FileOptions, observer: &mut dyn Observer) -> Result<Account> {
    let options = &job.options;
    let spec = job.spec()?;
    processors::check(&options.processors)?;
    let (format, outputs) = files.check(&spec)?;
    let folder = files.folder()?;
    if options.metrics.as_ref() == Some(&files.path) {
        bail!("-w and --metrics name the same file, {}: name two", files.path.display());
    }
    let maker = file_maker(options, &folder)?;
    let metrics_folder = metrics_file::folder(options, maker.as_ref().and_then(FileMaker::user))?;
    let source = sources::open(&spec, &Taking::of(options))?;
    for warning in &source.warnings {
        observer.remark(Remark::Note(warning.clone()));
    }
    job.go_on()?;
    // Before the first thread: those that are started from here on are confined, too.
    if let Some(maker) = maker {
        maker.become_it()?;
        let folders: Vec<&Path> = [Some(&folder), metrics_folder.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect();
        privileges::confine(None, &folders, !options.filter.trim().is_empty())?;
        if let Some(text) = maker.remark(&folder) {
            observer.remark(Remark::Detail(text));
        }
    }
    for Leftover { path, bytes } in Outputs::remove_leftovers(&folder) {
        let (path, bytes) = (path.display(), ByteSize(bytes));
        observer.remark(Remark::Note(format!(
            "removed {path} ({bytes}), which a killed run left unfinished"
        )));
    }
    let at = clock::now();
    let series = Series::new(outputs, &files.path, files.rotation.is_some(), files.keep);
    let comment = format!("recorded from {} at {}", job.source, instant::utc(at));
    let writer = Writer::new(series, format, files.rotation, comment, at)?;
    let capacity = if files.keep.is_some() { Capacity::default() } else { capacity(&folder) };
    let rejections = source.rejections;
    let metrics = MetricsFile::start(options, observer)?;
    let capture = Capture { metrics, ..Capture::new(job, writer, &spec)? };
    let started = capture.started(files, at, rejections, capacity);
    capture.run(job, source, started, at, observer)
}

/// Who makes the files, if privileges are given up.
fn file_maker(options: &Options, folder: &Path) -> Result<Option<FileMaker>> {
    match &options.privileges {
        Privileges::Keep => Ok(None),
        Privileges::GiveUp { user } => FileMaker::find(user.as_deref(), folder).map(Some),
    }
}

/// The room of the file system.
fn capacity(folder: &Path) -> Capacity {
    let Ok(status) = statvfs(folder) else { return Capacity::default() };
    #[allow(clippy::useless_conversion, reason = "32 bits wide on some machines")]
    let bytes = |blocks| u64::from(blocks).saturating_mul(u64::from(status.fragment_size()));
    Capacity { total_bytes: bytes(status.blocks()), free_bytes: bytes(status.blocks_available()) }
}

/// A capture under way.
struct Capture {
    writer: Writer,
    pool: Arc<Pool>,
    free: Sender<BufferId>,
    free_taken: Receiver<BufferId>,
    ready_in: Option<Sender<Filled>>,
    ready: Receiver<Filled>,
    /// All that was taken from the source's threads.
    ledger: Ledger,
    /// Bytes of packets, as far as they were kept.
    bytes: u64,
    buffers_most: u32,
    /// Why files can't be written any more.
    failed: Option<Error>,
    /// Files of a time end this long after it, although no packet follows. None if packets don't come as they happen.
    patience: Option<Duration>,
    source_end: SourceEnd,
    link: Option<Link>,
    metrics: Option<MetricsFile>,
    clock: std::time::Instant,
}

impl Capture {
    fn new(job: &Builder, writer: Writer, spec: &SourceSpec) -> Result<Self> {
        let count = (job.options.memory.0 / u64::from(CHUNK_MAX_DEFAULT)).clamp(4, 1 << 16) as u32;
        let (pool, _) = Pool::new(count, CHUNK_MAX_DEFAULT as usize, Pages::Transparent)?;
        let (free, free_taken) = unbounded();
        for buffer in pool.buffer_ids() {
            free.send(buffer).context("filling the list of free buffers")?;
        }
        let (ready_in, ready) = unbounded();
        let live = matches!(
            spec,
            SourceSpec::Interface(_)
                | SourceSpec::Udp(_)
                | SourceSpec::Stream { .. }
                | SourceSpec::Producer(_)
        );
        Ok(Self {
            writer,
            pool,
            free,
            free_taken,
            ready_in: Some(ready_in),
            ready,
            ledger: Ledger::default(),
            bytes: 0,
            buffers_most: 0,
            failed: None,
            patience: live.then_some(job.options.flush_interval),
            source_end: SourceEnd::of(spec),
            link: None,
            metrics: None,
            clock: std::time::Instant::now(),
        })
    }

    fn started(
        &self,
        files: &FileOptions,
        at: Timestamp,
        rejections: Rejections,
        capacity: Capacity,
    ) -> Started {
        Started {
            take: Uuid::new_v4(),
            at,
            first_sequence: 0,
            array: String::new(),
            array_uuid: Uuid::nil(),
            drives: vec![files.path.display().to_string()],
            buffers: self.pool.count(),
            simulated: false,
            rejections,
            capacity,
            file: Some(files.path.clone()),
        }
    }

    /// Runs the source's threads and writes what they pack, until they have ended.
    fn run(
        mut self,
        job: &Builder,
        mut source: sources::Open,
        started: Started,
        at: Timestamp,
        observer: &mut dyn Observer,
    ) -> Result<Account> {
        let _before = processors::Affinity::of_this_thread()?;
        processors::bind(job.options.processors.first().copied())?;
        let progress = Arc::new(Progress::default());
        let running = Arc::new(AtomicUsize::new(source.queues.len()));
        let supply = self.supply(job, at)?;
        self.link = source.link.take();
        observer.started(self.now(), &started)?;
        let threads = real::spawn(job, source, &supply, &running, &progress)
            .inspect_err(|_| job.stop.store(true, Ordering::Relaxed))?;
        // From here on the channel ends with the last thread.
        drop(supply);
        let reason = self.carry(job, &started, &progress, observer);
        let ends: Vec<Result<Vec<String>>> = threads.into_iter().map(real::join).collect();
        self.complete();
        self.tell_files(observer);
        self.fail_incomplete();
        self.look(&started, &progress, Instant::START, true, observer);
        Ok(self.account(started, reason, ends))
    }

    fn supply(&mut self, job: &Builder, at: Timestamp) -> Result<Supply> {
        let options = &job.options;
        Ok(Supply {
            pool: Arc::clone(&self.pool),
            free: self.free_taken.clone(),
            ready: self.ready_in.take().context("a capture is run once")?,
            // Chunks wake by their channel.
            waker: Waker::new().context("making a waker")?,
            stop: Arc::clone(&job.stop),
            bytes_left: options.until_bytes.map(|limit| Arc::new(AtomicU64::new(limit.0))),
            chunk_min: PAGE_BYTES as u32,
            chunk_max: CHUNK_MAX_DEFAULT,
            flush_interval: defaults::chunk_age_max(options.flush_interval),
            started: at,
        })
    }

    /// Time since the capture was made.
    fn now(&self) -> Instant {
        let elapsed = self.clock.elapsed();
        Instant::START + Duration::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Carries chunks to the writer until the last thread has ended. Returns why the recording ended.
    fn carry(
        &mut self,
        job: &Builder,
        started: &Started,
        progress: &Progress,
        observer: &mut dyn Observer,
    ) -> EndReason {
        let start = self.now();
        let deadline = job.options.duration.map(|duration| start + duration);
        let mut ending = None;
        loop {
            let now = self.now();
            let renewed = self.metrics.as_ref().map(MetricsFile::next);
            let until = [observer.next(), renewed, deadline.filter(|_| ending.is_none())]
                .into_iter()
                .flatten()
                .fold(now + WAIT_MAX, Instant::min);
            match self.ready.recv_timeout(until.since(now).into()) {
                Ok(filled) => self.take(filled),
                Err(RecvTimeoutError::Timeout) => self.end_if_over(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = self.now();
            let enough = job.options.until_bytes.is_some_and(|most| self.bytes >= most.0);
            let late = deadline.is_some_and(|deadline| now >= deadline);
            if ending.is_none() {
                ending = if self.failed.is_some() {
                    Some(EndReason::Output)
                } else if enough {
                    Some(EndReason::Bytes)
                } else if late {
                    Some(EndReason::Duration)
                } else {
                    job.stop.load(Ordering::Relaxed).then_some(EndReason::Stopped)
                };
                if ending.is_some() {
                    job.stop.store(true, Ordering::Relaxed);
                }
            }
            self.tell_files(observer);
            self.look(started, progress, start, false, observer);
        }
        let enough = job.options.until_bytes.is_some_and(|most| self.bytes >= most.0);
        match ending {
            // The source's threads end the recording themselves at the limit, before all of it has come here.
            Some(EndReason::Stopped) | None if enough => EndReason::Bytes,
            Some(reason) => reason,
            // The threads may have seen a stop, and ended, before this one looked.
            None if job.stop.load(Ordering::Relaxed) => EndReason::Stopped,
            None => EndReason::Source(self.source_end),
        }
    }

    /// Lets the observer and the file of metrics look at the recording. At the end only the file does.
    fn look(
        &mut self,
        started: &Started,
        progress: &Progress,
        start: Instant,
        is_over: bool,
        observer: &mut dyn Observer,
    ) {
        let counts = self.counts();
        let (now, counts, link) = (self.now(), Counts::Files(&counts), self.link.as_ref());
        let view = View { now, start, counts, progress, link, writes: None, segments_to_index: 0 };
        if !is_over {
            observer.look(&view);
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.look(started, &view, is_over, observer);
        }
    }

    /// Writes a chunk, unless files can't be written any more.
    fn take(&mut self, filled: Filled) {
        let Filled { buffer, summary, losses } = filled;
        self.buffers_most = self.buffers_most.max(self.buffers_held());
        self.ledger.add(&losses);
        self.ledger.store(summary.stored());
        self.bytes += summary.captured_bytes;
        let memory = self.pool.hold(buffer);
        if self.failed.is_none()
            && let Err(error) = self.writer.chunk(&memory, &summary)
        {
            self.fail(error);
        }
        // This end holds a receiver of the channel, so that it can't be closed.
        self.free.send(memory.release()).ok();
    }

    fn end_if_over(&mut self) {
        let (None, Some(patience)) = (&self.failed, self.patience) else { return };
        // Chunks with packets of that time have come by then.
        let patience = patience + patience;
        if let Err(error) = self.writer.end_if_over(clock::now(), patience) {
            self.fail(error);
        }
    }

    /// Completes the last file.
    fn complete(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.writer.finish()
        {
            self.fail(error);
        }
    }

    /// Nothing is written any more. What the current file has on the drive is kept.
    fn fail(&mut self, error: Error) {
        self.writer.finish().ok();
        self.failed = Some(error);
    }

    fn tell_files(&mut self, observer: &mut dyn Observer) {
        let now = self.now();
        for file in self.writer.take_news() {
            observer.file(now, &file);
        }
    }

    fn buffers_held(&self) -> u32 {
        self.pool.count() - self.free_taken.len() as u32
    }

    fn counts(&self) -> FileCounts {
        FileCounts {
            ledger: self.ledger,
            written: self.writer.written(),
            working: self.failed.is_none(),
            buffers_held: self.buffers_held(),
            complete: self.writer.complete(),
        }
    }

    /// Counts what no complete file holds as lost.
    fn fail_incomplete(&mut self) {
        let incomplete: Count = self.ledger.stored - self.writer.complete();
        self.ledger.fail(Stage::DeviceError, incomplete);
    }

    fn account(
        self,
        started: Started,
        reason: EndReason,
        ends: Vec<Result<Vec<String>>>,
    ) -> Account {
        let complete = self.writer.complete();
        let (notes, errors) = Account::of_ends(ends);
        Account {
            started,
            // The last file may have failed after everything else had ended.
            reason: if self.failed.is_some() { EndReason::Output } else { reason },
            elapsed: self.now().since(Instant::START),
            written: self.writer.written(),
            ledger: self.ledger,
            acknowledged: complete,
            durable: complete,
            reused_to_ns: 0,
            index: None,
            parity: None,
            buffers_most: self.buffers_most,
            notes,
            errors,
            array: None,
            files: Some(self.written()),
            output_error: self.failed.map(Into::into),
        }
    }

    fn written(&self) -> Files {
        self.writer.series().written()
    }
}
