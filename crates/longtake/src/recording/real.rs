//! Recording on real drives: opens everything, gives up root if it is to, runs the source's threads and the run loop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use base::{Bank, BufferId, ByteSize, DriveId, Timestamp};
use crossbeam_channel::{Receiver, Sender, unbounded};
use device::safety::{Authorized, Purpose};
use device::target::{Access, OpenTarget};
use device::{Pages, Pool, PoolError, UringBank, Waker, uring};
use format::parity::OVERHEAD_BYTES;
use format::{Layout, Superblock, flow_index};
use nix::unistd::User;
use recorder::reader::Reader;
use recorder::run::Recording;
use recorder::superblocks::Update;
use recorder::take_records::TakeRecords;
use recorder::{ArrayImage, Recorder, WhenFull, defaults, superblocks};
use source::clock;
use source::packer::{Packer, Progress, Supply};
use source::spec::SourceSpec;
use target::{AnyBank, NewFiles, array, authorize, wear};

use super::account::Account;
use super::builder::Builder;
use super::ending::SourceEnd;
use super::feed::LiveFeed;
use super::fits::{Capacity, Fits, Offered};
use super::indexer::Indexer;
use super::last_indexes::LastSegments;
use super::members::{self, Members};
use super::metrics_file::{self, MetricsFile};
use super::observer::{Observer, Rejections, Started};
use super::options::{FlowIndexing, Options, Privileges};
use super::processors;
use super::retention;
use super::run::{self, Stage, Watched};
use super::sources::{self, Taking};
use super::writes::TimedBank;
use crate::array::open::{self, Opened};
use crate::control::Control;
use crate::{Remark, privileges};

/// Records. A start that fails leaves nothing behind.
pub fn record(job: &Builder, observer: &mut dyn Observer) -> Result<Account> {
    let mut created = NewFiles::default();
    let outcome = record_with(job, &mut created, observer);
    let remaining = created.remove();
    if !remaining.is_empty() {
        let remaining: Vec<String> = remaining.iter().map(|f| f.display().to_string()).collect();
        observer.remark(Remark::Warning(format!(
            "these files were created and could not be removed: {}",
            remaining.join(", ")
        )));
    }
    outcome
}

fn record_with(
    job: &Builder,
    created: &mut NewFiles,
    observer: &mut dyn Observer,
) -> Result<Account> {
    let mut ready = Ready::new(job, created, observer)?;
    let link = ready.source.link.take();
    let waker = ready.bank.waker();
    let (asked, _socket) = ready.control.serve(waker.clone())?;
    let drives: Vec<DriveId> = ready.image.members.iter().map(|member| member.drive).collect();
    let mut bank = TimedBank::new(ready.bank, &drives);
    let names = drives.iter().map(|drive| name(&bank, *drive)).collect();
    let members = ready.image.members.iter().map(|member| (member.drive, member.layout));
    let members: Vec<(DriveId, Layout)> = members.collect();
    let index = ready.index;
    let parts = Parts::new(job, ready.image, ready.pool, waker.clone(), &ready.targets, index)?;
    let parts = parts.in_turn(ready.turns);
    let started = parts.started(names, ready.source.rejections);
    let running = Arc::new(AtomicUsize::new(ready.source.queues.len()));
    let feed = parts.feed(&running, index, &members, waker)?;
    let Parts { core, pool, supply, metadata, .. } = parts;
    let _before = processors::Affinity::of_this_thread()?;
    processors::bind(job.options.processors.first().copied())?;
    let progress = Arc::new(Progress::default());
    let threads = spawn(job, ready.source, &supply, &running, &progress)
        .inspect_err(|_| job.stop.store(true, Ordering::Relaxed))?;
    drop(supply);
    let superblocks = ready.superblocks;
    let (writes, metrics) = (Some(bank.times()), ready.metrics);
    let mut recording = Recording::new(core, &mut bank, &pool, feed, drives, superblocks, metadata)
        .keeping_record(ready.take_records);
    created.keep();
    let (options, stop) = (&job.options, &job.stop);
    let source_end = ready.source_end;
    let (progress, link) = (&progress, link.as_ref());
    let watched = Watched { link, writes, metrics };
    let stage = Stage { options, started, asked, stop, progress, watched, source_end, observer };
    let outcome = run::run(&mut recording, stage);
    // Also after a failure: the threads see it and end.
    job.stop.store(true, Ordering::Relaxed);
    let over = outcome?;
    if let Err(error) = recording.update_outcome() {
        observer.remark(Remark::Warning(format!(
            "a member could not be given its new superblock or the record of this take: {error}"
        )));
    }
    let ends = threads.into_iter().map(join).collect();
    let account = Account::of(&recording, over, ends);
    let left = recording.feed().end_indexing();
    let last = left.map(|left| LastSegments::of(&recording, left, &members));
    drop(recording);
    let index = last.map(|last| last.index(&mut bank, &pool, index, observer));
    Ok(Account { index, ..account })
}

/// Everything open and root given up, if it was to be; nothing recorded yet, and no thread started.
struct Ready {
    targets: Vec<PathBuf>,
    bank: UringBank,
    pool: Arc<Pool>,
    image: ArrayImage,
    superblocks: Vec<Superblock>,
    take_records: TakeRecords,
    source: sources::Open,
    source_end: SourceEnd,
    control: Control,
    /// What is indexed: what the options ask for, if packets have headers.
    index: FlowIndexing,
    /// The part of each member, if parts are written in turn.
    turns: Option<Vec<u16>>,
    /// The file of metrics, if one is wanted.
    metrics: Option<MetricsFile>,
    /// Keeps others off the drives until the recording is over.
    _claims: Vec<Option<Authorized>>,
}

impl Ready {
    fn new(job: &Builder, created: &mut NewFiles, observer: &mut dyn Observer) -> Result<Self> {
        let options = &job.options;
        if options.uplink.is_some() {
            bail!("--uplink is for simulated drives: real ones have the links that they have");
        }
        let spec = job.spec()?;
        processors::check(&options.processors)?;
        let taking = Taking::of(options);
        let successor = match &options.privileges {
            Privileges::Keep => None,
            Privileges::GiveUp { user } => privileges::successor(user.as_deref())?,
        };
        let folder = metrics_file::folder(options, successor.as_ref())?;
        let Members { targets, source } =
            members::find_or_create(job, &spec, &taking, created, observer)?;
        if options.privileges != Privileges::Keep {
            privileges::can_be_given_up(&targets)?;
        }
        let claims = authorize(&targets, &[], Purpose::Continue, false)?;
        let mut opened = open(job, &targets, observer)?;
        let mut image = opened.image.clone();
        fits(job, &image, &spec, observer)?;
        let turns = turns(options, &image, &targets)?;
        let superblocks = superblocks::read_all(&mut opened.reader(), &image)?;
        let superblocks = superblocks.into_iter().map(|s| s.superblock).collect();
        let source = source.map_or_else(|| sources::open(&spec, &taking), Ok)?;
        for warning in &source.warnings {
            observer.remark(Remark::Note(warning.clone()));
        }
        let take_records = enter_newest_take(&mut opened, &mut image)?;
        let Opened { bank: AnyBank::Real(bank), pool, .. } = opened else {
            unreachable!("the targets are real drives");
        };
        let mut control = Control::bind(image.uuid)?;
        job.go_on()?;
        // Before the first thread of the recording: those that are started from here on are confined, too.
        if options.privileges != Privileges::Keep {
            let (user, filter) = (successor.as_ref(), &options.filter);
            give_up_privileges(user, &mut control, folder.as_deref(), filter, observer)?;
        }
        let metrics = MetricsFile::start(options, observer)?;
        let bank = *bank;
        let index = if spec.has_headers() { options.index } else { FlowIndexing::None };
        Ok(Self {
            index,
            targets,
            bank,
            pool,
            image,
            superblocks,
            take_records,
            source,
            source_end: SourceEnd::of(&spec),
            control,
            turns,
            metrics,
            _claims: claims,
        })
    }
}

/// Says what fits on the array. Refuses if that is too little and the recording is to be strict.
fn fits(
    job: &Builder,
    image: &ArrayImage,
    spec: &SourceSpec,
    observer: &mut dyn Observer,
) -> Result<()> {
    let options = &job.options;
    let capacity = Capacity::of(image);
    let room = match options.when_full {
        WhenFull::Stop => capacity.free_bytes,
        WhenFull::Wrap => capacity.total_bytes,
    };
    let members = (image.members.len(), image.superblock.parity);
    let limits = (options.when_full, options.duration);
    let fits = Fits::new(limits, room, members, Offered::of(spec, options));
    if !fits.falls_short() {
        observer.remark(Remark::Detail(fits.to_string()));
        return Ok(());
    }
    fits.suits(options.strict)?;
    observer.remark(Remark::Warning(format!("{fits}: the array will be full before that")));
    Ok(())
}

/// Enters the newest take, which may have been cut short, on all members, where the ring does not reach it: the recording may
/// overwrite its chunks.
fn enter_newest_take(opened: &mut Opened, image: &mut ArrayImage) -> Result<TakeRecords> {
    let mut take_records = TakeRecords::read(&mut opened.reader(), image)?;
    take_records.enter_newest(image);
    let there = image.members.iter().filter(|member| !member.is_missing());
    let update = take_records.update(there.map(|member| member.drive));
    let AnyBank::Real(bank) = &opened.bank else { unreachable!("the targets are real drives") };
    let targets = bank.targets()?;
    // In a thread of its own, so that the kernel's workers for it end with it: they would keep the privileges that are given up.
    std::thread::scope(|scope| scope.spawn(|| carry_out(targets, update)).join())
        .map_err(|_| anyhow!("entering the newest take panicked"))??;
    image.next_sequence = image.next_sequence.max(take_records.next_sequence());
    Ok(take_records)
}

/// Carries out an update of these drives on a bank of its own.
fn carry_out(targets: Vec<OpenTarget>, update: Update) -> Result<()> {
    let (pool, _) = Pool::new(2, 1 << 20, Pages::Transparent)?;
    let (mut bank, _) = UringBank::open(targets, pool.clone(), uring::Options::default())?;
    let buffers = pool.buffer_ids().collect();
    Ok(superblocks::carry_out(&mut Reader { bank: &mut bank, memory: &pool, buffers }, update)?)
}

/// The part of each member, if parts are written in turn. A missing member is in whichever.
fn turns(options: &Options, image: &ArrayImage, targets: &[PathBuf]) -> Result<Option<Vec<u16>>> {
    let of_targets = options.parts(|| target::parts::of_real(targets))?;
    let of_member = |parts: Vec<u16>| {
        let part = |drive: DriveId| parts.get(drive.index()).copied().unwrap_or(0);
        image.members.iter().map(|member| part(member.drive)).collect()
    };
    Ok(of_targets.map(of_member))
}

fn name(bank: &impl Bank, drive: DriveId) -> String {
    bank.drives().get(drive.index()).map_or("missing".to_owned(), |drive| drive.name.clone())
}

/// Opens the array, with buffers for chunks, their parity and metadata.
fn open(job: &Builder, targets: &[PathBuf], observer: &mut dyn Observer) -> Result<Opened> {
    // As many members as parity makes up for may be missing.
    let parity = targets.iter().filter_map(|t| array::peek(t).ok()).map(|s| s.parity).max();
    let parity = parity.unwrap_or(0);
    let access = Access::Write { exclusive: false };
    let extra = defaults::metadata_buffers(targets.len()) as u32 + u32::from(parity);
    let (told, remarks) = unbounded();
    let tell = Box::new(move |remark| {
        // The other end is there until the array is open.
        told.send(remark).ok();
    });
    let opened = open::open(targets, access, job.options.memory.0, extra, parity > 0, tell);
    remarks.try_iter().for_each(|remark| observer.remark(remark));
    let opened = opened.map_err(|error| match error.is::<PoolError>() {
        true => error.context(format!("--memory {}", job.options.memory)),
        false => error,
    })?;
    suits_parity(job, &opened.image)?;
    let without_effect = job.options.new.without_effect_on(&opened.image);
    if !without_effect.is_empty() {
        observer.remark(Remark::Warning(format!(
            "array '{}' exists already, so options that shape a new one have no effect: {}",
            opened.image.superblock.name,
            without_effect.join(", ")
        )));
    }
    for remark in &opened.image.remarks {
        observer.remark(Remark::Note(remark.to_string()));
    }
    for (target, member) in targets.iter().zip(&opened.image.superblock.members) {
        if let Some(share) = wear(target, member.capacity_bytes) {
            observer.remark(Remark::Detail(format!(
                "{} is written up to {} by a pass over it: {share}",
                target.display(),
                ByteSize(member.capacity_bytes)
            )));
        }
    }
    Ok(opened)
}

/// Refuses to record with another parity than the array has, or without more members than it makes up for.
fn suits_parity(job: &Builder, image: &ArrayImage) -> Result<()> {
    let has = image.superblock.parity;
    if let Some(wanted) = job.options.new.parity.filter(|&wanted| wanted != has) {
        bail!(
            "--parity {wanted}: array '{}' was made with parity {has}, which stays; leave it out, or make a new array",
            image.superblock.name
        );
    }
    let missing = image.members.iter().filter(|m| m.is_missing()).count();
    if missing > usize::from(has) {
        bail!(
            "{missing} members of array '{}' are missing, and its parity makes up for {has}: name more of them",
            image.superblock.name
        );
    }
    Ok(())
}

/// Becomes another user if there is one to become, and confines the process. Files are still made in `folder`.
fn give_up_privileges(
    successor: Option<&User>,
    control: &mut Control,
    folder: Option<&Path>,
    filter: &str,
    observer: &mut dyn Observer,
) -> Result<()> {
    if let Some(user) = successor {
        control.give_to(user)?;
        privileges::become_user(user)?;
    }
    privileges::confine(Some(control), folder.as_slice(), !filter.trim().is_empty())?;
    if let Some(user) = successor {
        observer.remark(Remark::Detail(format!(
            "everything is open; continuing as user {}",
            user.name
        )));
    }
    Ok(())
}

/// The longest chunk of a member: a little shorter if segments are to have room for a flow index besides.
fn chunk_max(layout: &Layout, flow_indexes: bool) -> u32 {
    match flow_indexes {
        true => layout.chunk_max_beside(flow_index::reserve(layout.segment_bytes)),
        false => layout.chunk_max,
    }
}

/// What a recording on an open array is made of.
struct Parts {
    core: Recorder,
    pool: Arc<Pool>,
    supply: Supply,
    free: Sender<BufferId>,
    ready: Receiver<source::Filled>,
    metadata: Vec<BufferId>,
    array: (String, uuid::Uuid),
    /// Chunk buffers.
    buffers: u32,
    capacity: Capacity,
    at: Timestamp,
}

impl Parts {
    fn new(
        job: &Builder,
        image: ArrayImage,
        pool: Arc<Pool>,
        waker: Waker,
        targets: &[PathBuf],
        index: FlowIndexing,
    ) -> Result<Self> {
        let options = &job.options;
        let at = clock::now();
        let layout = image.superblock.layout;
        let parity = image.superblock.parity;
        let all: Vec<BufferId> = pool.buffer_ids().collect();
        let (metadata, chunks) = all.split_at(defaults::metadata_buffers(targets.len()));
        let (means, chunks) = options.parity_means(parity, chunks);
        let (free, free_taken) = unbounded();
        for &buffer in chunks {
            free.send(buffer).context("filling the list of free buffers")?;
        }
        let (ready_in, ready) = unbounded();
        let layouts = || image.members.iter().map(|member| member.layout);
        let chunk_min = layouts().map(|l| l.chunk_min).max().unwrap_or(layout.chunk_min);
        let flow_indexes = index != FlowIndexing::None;
        let chunk_max = layouts().map(|l| chunk_max(&l, flow_indexes)).min();
        let chunk_max = chunk_max.unwrap_or(layout.chunk_max);
        let supply = Supply {
            pool: Arc::clone(&pool),
            free: free_taken,
            ready: ready_in,
            waker,
            stop: Arc::clone(&job.stop),
            bytes_left: options.until_bytes.map(|limit| Arc::new(AtomicU64::new(limit.0))),
            chunk_min,
            chunk_max: chunk_max - if parity > 0 { OVERHEAD_BYTES } else { 0 },
            flush_interval: defaults::chunk_age_max(options.flush_interval),
            started: at,
        };
        let buffers = chunks.len() as u32;
        let on_files = targets.iter().all(|target| target.is_file());
        let config = options.config(at, layout.segment_bytes, buffers, on_files, flow_indexes);
        let array = (image.superblock.name.clone(), image.uuid);
        let capacity = Capacity::of(&image);
        let core = Recorder::with_parity(config, image, means);
        let metadata = metadata.to_vec();
        Ok(Self { core, pool, supply, free, ready, metadata, array, buffers, capacity, at })
    }

    /// With members that are written part by part, if there are such.
    fn in_turn(self, parts: Option<Vec<u16>>) -> Self {
        match parts {
            Some(parts) => Self { core: self.core.with_parts(parts), ..self },
            None => self,
        }
    }

    /// Where the run loop gets chunks from, with the thread that indexes them if they are to be.
    fn feed(
        &self,
        running: &Arc<AtomicUsize>,
        index: FlowIndexing,
        members: &[(DriveId, Layout)],
        waker: Waker,
    ) -> Result<LiveFeed> {
        let pool = || Arc::clone(&self.pool);
        let free = || self.free.clone();
        let indexer = match index {
            FlowIndexing::None => None,
            kinds => Some(Indexer::start(kinds, members.to_vec(), pool(), free(), waker)?),
        };
        Ok(LiveFeed {
            ready: self.ready.clone(),
            free: free(),
            taken_back: self.supply.free.clone(),
            running: Arc::clone(running),
            pool: pool(),
            chunk_min: self.supply.chunk_min,
            chunk_max: self.supply.chunk_max,
            bytes: 0,
            indexer,
            buffers: self.buffers as usize,
        })
    }

    fn started(&self, drives: Vec<String>, rejections: Rejections) -> Started {
        let take = self.core.take();
        let (array, array_uuid) = self.array.clone();
        Started {
            take: take.uuid,
            at: self.at,
            first_sequence: take.first_sequence,
            array,
            array_uuid,
            drives,
            buffers: self.buffers,
            simulated: false,
            rejections,
            capacity: self.capacity,
            file: None,
        }
    }
}

pub(super) type Thread = JoinHandle<Result<Vec<String>>>;

/// Counts a thread out when it ends, also by a panic, and tells the run loop.
struct CountOut(Arc<AtomicUsize>, Waker);

impl Drop for CountOut {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
        self.1.wake();
    }
}

/// Starts the source's threads.
///
/// # Errors
/// If the system gives none.
pub(super) fn spawn(
    job: &Builder,
    source: sources::Open,
    supply: &Supply,
    running: &Arc<AtomicUsize>,
    progress: &Arc<Progress>,
) -> Result<Vec<Thread>> {
    let processors = job.options.processors.get(1..).unwrap_or_default();
    let mut threads = Vec::new();
    let rules = retention::rules(&job.options, source.queues.len());
    for ((queue, work), rule) in (0u16..).zip(source.queues).zip(rules) {
        let packer = Packer::new(supply.clone(), queue, source.pressure, Arc::clone(progress));
        let packer = packer.retaining(rule);
        let processor =
            (!processors.is_empty()).then(|| processors[usize::from(queue) % processors.len()]);
        let count_out = CountOut(Arc::clone(running), supply.waker.clone());
        let thread = std::thread::Builder::new().name(format!("source {queue}")).spawn(move || {
            let _count_out = count_out;
            processors::bind(processor)?;
            work(packer)
        });
        threads.push(thread.context("starting a source thread")?);
    }
    Ok(threads)
}

/// Waits for a thread to end.
pub(super) fn join(thread: Thread) -> Result<Vec<String>> {
    thread.join().unwrap_or_else(|_| {
        Err(anyhow::anyhow!("a source thread panicked; packets received before that are recorded"))
    })
}
