//! `longtake record`: opens everything, gives up root, runs source threads and the run loop, and
//! says what came of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use base::{Bank, BufferId, Buffers, ByteSize, DriveId, Instant};
use crossbeam_channel::{Receiver, unbounded};
use device::Waker;
use device::safety::Purpose;
use device::target::Access;
use format::Superblock;
use format::parity::OVERHEAD_BYTES;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, User};
use recorder::run::{Feed, Recording, STEP_MAX};
use recorder::{ArrayImage, Config, Event, ParityMeans, Recorder, defaults};
use source::clock;
use source::packer::{Packer, Pressure, Progress, Supply};
use source::spec::SourceSpec;
use target::{SimTarget, array, authorize, wear};

use crate::arguments::{self, RecordArguments};
use crate::exit;
use crate::member_files::{self, New};
use crate::opening::{self, Opened};
use crate::outlet;
use crate::preparation::{Created, go_on, stop_on_signals};
use crate::record_status::{Status, Totals};
use crate::simulated;
use longtake::array::protect;
use longtake::control::{Asked, Control};
use longtake::privileges;
use longtake::recording::feed::{CountingFeed, LiveFeed};
use longtake::recording::holds::Holds;
use longtake::recording::sources::{self, Taking, Work};

/// Records until the source ends, a limit is reached, or a signal comes.
///
/// # Errors
/// If anything can't be opened, or the bank fails as a whole.
pub fn record(arguments: &RecordArguments) -> Result<ExitCode> {
    if let Some(targets) = SimTarget::all(&array::named(&arguments.to))? {
        return simulated::record(arguments, &targets);
    }
    if arguments.virtual_time {
        bail!("--virtual is for simulated drives (--to sim:NAME*6): real ones take real data");
    }
    if arguments.uplink.is_some() {
        bail!("--uplink is for simulated drives: real ones have the links that they have");
    }
    let spec: SourceSpec = arguments.from.parse()?;
    let stop = stop_on_signals()?;
    check_cpus(&arguments.cpus)?;
    let taking = Taking {
        filter: arguments.filter.clone(),
        snap: arguments.snap,
        kernel_buffer: arguments.kernel_buffer.0 as usize,
        flush_interval: defaults::block_age_max(arguments.flush_interval),
    };
    let successor = if arguments.keep_privileges {
        None
    } else {
        privileges::successor(arguments.user.as_deref())?
    };
    let Members { targets, created, source } = members(arguments, &spec, &taking, &stop)?;
    if !arguments.keep_privileges {
        privileges::can_be_given_up(&targets)?;
    }
    let authorized = authorize(&targets, &[], Purpose::Continue, false)?;
    // As many members as parity makes up for may be missing.
    let parity = targets.iter().filter_map(|t| array::peek(t).ok()).map(|s| s.parity).max();
    let parity = parity.unwrap_or(0);
    let metadata = defaults::metadata_buffers(targets.len()) as u32;
    let access = Access::Write { exclusive: false };
    let extra = metadata + u32::from(parity);
    let mut opened = opening::open(&targets, access, arguments.memory.0, extra, parity > 0)?;
    suits_parity(arguments, &opened.image)?;
    for remark in &opened.image.remarks {
        outlet::tell(&format!("longtake: note: {remark}"));
    }
    for (target, member) in targets.iter().zip(&opened.image.superblock.members) {
        if let Some(share) = wear(target, member.capacity_bytes).filter(|_| !arguments.quiet) {
            outlet::tell(&format!(
                "longtake: note: {} is written up to {} by a pass over it: {share}",
                target.display(),
                ByteSize(member.capacity_bytes)
            ));
        }
    }
    let superblocks: Vec<Superblock> =
        protect::all_superblocks(&mut opened)?.into_iter().map(|(_, s)| s).collect();
    let source = source.map_or_else(|| sources::open(&spec, &taking), Ok)?;
    for warning in &source.warnings {
        outlet::tell(&format!("longtake: note: {warning}"));
    }
    let Opened { mut bank, pool, image, .. } = opened;
    let waker = bank.waker();
    let control = Control::bind(image.uuid)?;
    go_on(&stop)?;
    if !arguments.keep_privileges {
        give_up_privileges(successor.as_ref(), &control, arguments)?;
    }
    // The first thread of this command: those that are started from here on are confined, too.
    let (asked, _socket) = control.serve(waker.clone())?;

    let started = clock::now();
    let layout = image.superblock.layout;
    let all: Vec<BufferId> = pool.buffer_ids().collect();
    let (metadata_buffers, chunk_buffers) = all.split_at(metadata as usize);
    let (means, chunk_buffers) = parity_means(parity, arguments, chunk_buffers);
    let (free, free_taken) = unbounded();
    for &buffer in chunk_buffers {
        free.send(buffer).context("filling the list of free buffers")?;
    }
    let (ready, ready_taken) = unbounded();
    let supply = Supply {
        pool: Arc::clone(&pool),
        free: free_taken.clone(),
        ready,
        waker: waker.clone(),
        stop: Arc::clone(&stop),
        bytes_left: arguments.until_bytes.map(|limit| Arc::new(AtomicU64::new(limit.0))),
        chunk_min: image
            .members
            .iter()
            .map(|m| m.layout.chunk_min)
            .max()
            .unwrap_or(layout.chunk_min),
        chunk_max: image
            .members
            .iter()
            .map(|m| m.layout.chunk_max)
            .min()
            .unwrap_or(layout.chunk_max)
            - if parity > 0 { OVERHEAD_BYTES } else { 0 },
        flush_interval: defaults::chunk_age_max(arguments.flush_interval),
        started,
    };
    let drives: Vec<DriveId> = image.members.iter().map(|m| m.drive).collect();
    let totals = Totals {
        array: image.superblock.name.clone(),
        array_uuid: image.uuid,
        source: arguments.from.clone(),
        buffers: chunk_buffers.len() as u32,
        drives: drives
            .iter()
            .map(|d| bank.drives().get(d.index()).map_or("missing".to_owned(), |g| g.name.clone()))
            .collect(),
        to: arguments.to.clone(),
        simulated: false,
    };
    let on_files = targets.iter().all(|t| t.is_file());
    let config =
        config(arguments, started, layout.segment_bytes, chunk_buffers.len() as u32, on_files);
    let core = Recorder::with_parity(config, image, means);
    let running = Arc::new(AtomicUsize::new(source.queues.len()));
    let feed = LiveFeed {
        ready: ready_taken,
        free,
        taken_back: free_taken,
        running: Arc::clone(&running),
        pool: Arc::clone(&pool),
        chunk_min: supply.chunk_min,
        chunk_max: supply.chunk_max,
        bytes: 0,
    };
    pin(arguments.cpus.first().copied())?;
    let progress = Arc::new(Progress::default());
    let threads = spawn(arguments, source.queues, source.pressure, &supply, &running, &progress)?;
    drop(supply);
    let recording = Recording::new(
        core,
        &mut bank,
        &pool,
        feed,
        drives,
        superblocks,
        metadata_buffers.to_vec(),
    );
    let mut status = Status::new(arguments, totals, progress)?;
    created.keep();
    let outcome = run(arguments, recording, &asked, &stop, &mut status);
    // Also after a failure: the threads see it and end.
    stop.store(true, Ordering::Relaxed);
    let recording = outcome?;
    let told = threads.into_iter().map(join).collect();
    let (code, errors) = finish(told, &recording, &mut status);
    drop(recording);
    drop(authorized);
    for error in errors {
        outlet::tell(&format!("longtake: the source ended with an error: {error:#}"));
    }
    Ok(code)
}

/// Becomes another user if there is one to become, and confines the process.
fn give_up_privileges(
    successor: Option<&User>,
    control: &Control,
    arguments: &RecordArguments,
) -> Result<()> {
    if let Some(user) = successor {
        control.give_to(user.uid, user.gid)?;
        privileges::become_user(user)?;
    }
    privileges::confine(control, !arguments.filter.trim().is_empty())?;
    if let Some(user) = successor.filter(|_| !arguments.quiet) {
        outlet::tell(&format!(
            "longtake: note: everything is open; continuing as user {}",
            user.name
        ));
    }
    Ok(())
}

/// Refuses to record with another parity than the array has, or without more members than it makes up for.
fn suits_parity(arguments: &RecordArguments, image: &ArrayImage) -> Result<()> {
    let has = image.superblock.parity;
    if let Some(wanted) = arguments.parity.filter(|&wanted| wanted != has) {
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

/// What parity takes, and the chunk buffers that are left. Each group in flight holds a buffer for each parity: about as many
/// groups as there are writes under way on a member, and the one that is open; but no more than an eighth of the buffers.
pub fn parity_means<'b>(
    parity: u8,
    arguments: &RecordArguments,
    buffers: &'b [BufferId],
) -> (ParityMeans, &'b [BufferId]) {
    let each = usize::from(parity);
    let groups = (arguments.depth as usize + 1).min(buffers.len() / 8);
    let (own, left) = buffers.split_at(each * groups.max(1));
    let wait = defaults::group_wait(arguments.flush_interval);
    (ParityMeans { buffers: own.to_vec(), wait }, left)
}

/// Where to record.
struct Members {
    targets: Vec<PathBuf>,
    /// Removed again if the recording does not start.
    created: Created,
    /// The source, if it had to be opened before files were made.
    source: Option<sources::Open>,
}

/// The array's targets; member files are made where there are none, once everything else is known to be right.
fn members(
    arguments: &RecordArguments,
    spec: &SourceSpec,
    taking: &Taking,
    stop: &AtomicBool,
) -> Result<Members> {
    let path = Path::new(&arguments.to);
    let names_nothing_yet =
        !path.exists() && !arguments.to.contains(',') && !arguments.to.starts_with("/dev/");
    let is_empty_directory = path.is_dir() && array::member_files(path)?.is_empty();
    if is_empty_directory || (names_nothing_yet && arguments.to.contains('/')) {
        let RecordArguments { members, member_size, segment, chunk, parity, mode, .. } = *arguments;
        let parity = parity.unwrap_or(0);
        let new = New { members, size: member_size, segment, chunk, parity, mode };
        member_files::check(path, &new)?;
        let source = sources::open_early(spec, taking)?;
        let (targets, created) = member_files::create(path, &new, stop)?;
        return Ok(Members { targets, created, source });
    }
    let targets = match array::resolve(&arguments.to) {
        // An array's name, or else a directory to be made here.
        Err(error) if names_nothing_yet => {
            bail!("{error:#}; for a new directory of that name here, give --to ./{}", arguments.to)
        }
        targets => targets?,
    };
    Ok(Members { targets, created: Created::default(), source: None })
}

/// The recorder's settings.
pub fn config(
    arguments: &RecordArguments,
    started: base::Timestamp,
    segment_bytes: u64,
    buffers: u32,
    on_files: bool,
) -> Config {
    Config {
        take: uuid::Uuid::new_v4(),
        started,
        placement: arguments.placement,
        when_full: match arguments.when_full {
            arguments::WhenFull::Stop => recorder::WhenFull::Stop,
            arguments::WhenFull::Wrap => recorder::WhenFull::Wrap,
        },
        depth: arguments.depth,
        buffers,
        drift_max: arguments.drift.map_or(defaults::drift_max(segment_bytes), |d| d.0),
        flush_interval: arguments.flush_interval,
        trim_ahead: arguments.trim_ahead.unwrap_or(if on_files {
            defaults::TRIM_AHEAD_ON_FILES
        } else {
            defaults::TRIM_AHEAD
        }),
        trim_interval: arguments.trim_rate.time_for(segment_bytes),
        rest: arguments.rest,
        rest_turn: arguments.rest_turn,
    }
}

/// Tries all processors of `--cpus`, so that a wrong one is known before anything is done.
fn check_cpus(cpus: &[usize]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let before = sched_getaffinity(Pid::from_raw(0)).context("--cpus")?;
    let tried = cpus.iter().try_for_each(|&cpu| pin(Some(cpu)));
    sched_setaffinity(Pid::from_raw(0), &before).context("--cpus")?;
    tried
}

/// Binds the calling thread to a processor.
fn pin(cpu: Option<usize>) -> Result<()> {
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).with_context(|| {
        format!("--cpus: binding a thread to processor {cpu} (`nproc` tells how many there are)")
    })
}

type Thread = JoinHandle<Result<Vec<String>>>;

/// Counts a thread out when it ends, also by a panic, and tells the run loop.
struct CountOut(Arc<AtomicUsize>, Waker);

impl Drop for CountOut {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
        self.1.wake();
    }
}

fn spawn(
    arguments: &RecordArguments,
    queues: Vec<Work>,
    pressure: Pressure,
    supply: &Supply,
    running: &Arc<AtomicUsize>,
    progress: &Arc<Progress>,
) -> Result<Vec<Thread>> {
    let cpus = arguments.cpus.get(1..).unwrap_or_default();
    let mut threads = Vec::new();
    for (queue, work) in (0u16..).zip(queues) {
        let packer = Packer::new(supply.clone(), queue, pressure, Arc::clone(progress));
        let cpu = (!cpus.is_empty()).then(|| cpus[usize::from(queue) % cpus.len()]);
        let count_out = CountOut(Arc::clone(running), supply.waker.clone());
        let thread = std::thread::Builder::new().name(format!("source {queue}")).spawn(move || {
            let _count_out = count_out;
            pin(cpu)?;
            work(packer)
        });
        threads.push(thread.context("starting a source thread")?);
    }
    Ok(threads)
}

/// Waits for a thread to end.
fn join(thread: Thread) -> Result<Vec<String>> {
    thread.join().unwrap_or_else(|_| {
        Err(anyhow::anyhow!("a source thread panicked; what it had handed in is recorded"))
    })
}

/// The run loop around [`Recording::step`]: limits, requests, progress.
///
/// # Errors
/// If the bank fails.
pub fn run<'a, B: Bank, M: Buffers, F: CountingFeed>(
    arguments: &RecordArguments,
    mut recording: Recording<'a, B, M, F>,
    asked: &Receiver<Asked>,
    stop: &AtomicBool,
    status: &mut Status,
) -> Result<Recording<'a, B, M, F>> {
    let start = recording.now();
    let deadline = arguments.duration.map(|d| start + d);
    let mut events = Vec::new();
    let mut holds = Holds::default();
    let mut waiting: Option<Asked> = None;
    let mut updating: Option<(Asked, usize)> = None;
    status.started(start, recording.core());
    loop {
        let now = recording.now();
        let until = [Some(now + STEP_MAX), Some(status.next()), deadline.filter(|&d| d > now)]
            .into_iter()
            .flatten()
            .fold(now + STEP_MAX, Instant::min);
        let over = recording.step(until, &mut events)?;
        let now = recording.now();
        let enough = arguments.until_bytes.is_some_and(|b| recording.feed().bytes() >= b.0);
        if deadline.is_some_and(|d| now >= d) || enough || recording.core().refusing() {
            stop.store(true, Ordering::Relaxed);
        }
        for event in events.drain(..) {
            // Whether or not anybody still listens, the recording goes on.
            status.event(now, &event);
            debug_assert!(event != Event::Finished || recording.core().finished());
        }
        // One change of the superblocks at a time.
        if !recording.updating()
            && let Some((asked, count)) = updating.take()
        {
            let outcome = recording.update_outcome().clone();
            let answer =
                outcome.map(|()| count).map_err(|e| format!("writing a superblock failed: {e}"));
            asked.answer.send(answer).ok();
        }
        if updating.is_none() {
            waiting = waiting.or_else(|| {
                let asked = asked.try_recv().ok()?;
                holds.grant(asked, &mut recording)
            });
        }
        holds.let_go(&mut recording);
        if let Some(asked) = waiting.take() {
            match protect::apply(recording.protected(), &asked.request) {
                Ok(ranges) => {
                    let count = ranges.len();
                    if recording.protect(ranges) {
                        updating = Some((asked, count));
                    } else {
                        waiting = Some(asked);
                    }
                }
                Err(why) => {
                    asked.answer.send(Err(why)).ok();
                }
            }
        }
        status.show(now, recording.core());
        if over {
            return Ok(recording);
        }
    }
}

/// Prints the account. `told` is what the sources' threads came to.
pub fn finish<B: Bank, M: Buffers, F: Feed>(
    told: Vec<Result<Vec<String>>>,
    recording: &Recording<'_, B, M, F>,
    status: &mut Status,
) -> (ExitCode, Vec<anyhow::Error>) {
    let mut errors = Vec::new();
    let mut notes = Vec::new();
    for told in told {
        match told {
            Ok(found) => notes.extend(found),
            Err(error) => errors.push(error),
        }
    }
    let core = recording.core();
    let ledger = *core.ledger();
    status.finished(recording.now(), core, &notes).ok();
    let code = if !errors.is_empty() {
        ExitCode::from(exit::FAILED)
    } else if !ledger.lost_unwanted().is_zero()
        || ledger.truncated.packets > 0
        || !ledger.balances()
    {
        ExitCode::from(exit::LOSS)
    } else {
        ExitCode::SUCCESS
    };
    (code, errors)
}
