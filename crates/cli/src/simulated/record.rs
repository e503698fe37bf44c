//! `longtake record --to sim:...`: drives formatted in memory, recorded on in virtual time by the code that records on real
//! ones, read back, and gone with the command.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base::{Bank, BufferId, ByteSize, DriveId, Duration, Rate};
use crossbeam_channel::{bounded, never, unbounded};
use device::{Pages, Pool, Waker};
use format::Superblock;
use recorder::create::{self, Plan};
use recorder::extract::verify;
use recorder::open::{open, superblock};
use recorder::reader::Reader;
use recorder::run::Recording;
use recorder::takes::Catalog;
use recorder::{ArrayImage, Recorder, TimeRange, defaults};
use source::clock;
use source::filtering::Filtering;
use source::packer::{Packer, Pressure, Progress, Supply};
use source::spec::SourceSpec;
use source::synthetic::{self, Pace, Synthetic};
use ssd::SimBank;
use target::{SimDrives, SimTarget};

use super::descriptors;
use crate::arguments::RecordArguments;
use crate::preparation::stop_on_signals;
use crate::record::{config, finish, parity_means, run};
use crate::record_status::{Status, Totals};
use crate::{exit, outlet, profiles};
use longtake::recording::sources::{self, Taking};
use longtake::recording::virtual_feed::{Lane, Paced, Step, Stop, VirtualFeed, spawn};

/// The longest that a source may take over a chunk in real time: virtual time waits for it.
const AGE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Memory that is left to everything else.
const SHARE_OF_MEMORY: f64 = 0.7;

/// Simulated drives with an array on them.
struct Array {
    bank: SimBank<Arc<Pool>>,
    pool: Arc<Pool>,
    image: ArrayImage,
    superblocks: Vec<Superblock>,
    /// For metadata, and for chunks.
    buffers: (Vec<BufferId>, Vec<BufferId>),
}

/// Formats the drives, records, reads back, and says what came of it.
///
/// # Errors
/// If the source lives in real time, a drive can't be simulated or formatted, or there is no memory.
pub fn record(arguments: &RecordArguments, targets: &[SimTarget]) -> Result<ExitCode> {
    let spec: SourceSpec = arguments.from.parse()?;
    suits(&spec, arguments)?;
    let drives = SimDrives::new(targets, arguments.uplink, profiles::known())?;
    if arguments.virtual_time {
        if arguments.parity.is_some_and(|parity| parity > 0) {
            bail!(
                "--virtual describes chunks and makes none, so there is nothing for --parity to be of: leave one of them out"
            );
        }
        return descriptors::record(arguments, &spec, &drives);
    }
    let Array { mut bank, pool, image, superblocks, buffers: (metadata, chunks) } =
        array(&drives, arguments)?;
    fits(&spec, arguments, &bank)?;
    let stop = Stop { asked: stop_on_signals()?, ..Stop::default() };
    let layout = image.superblock.layout;
    let members: Vec<DriveId> = image.members.iter().map(|member| member.drive).collect();
    let totals = Totals {
        array: image.superblock.name.clone(),
        array_uuid: image.uuid,
        source: arguments.from.clone(),
        buffers: chunks.len() as u32,
        drives: names(&bank),
        to: arguments.to.clone(),
        simulated: true,
    };
    let started = clock::now();
    let config = config(arguments, started, layout.segment_bytes, chunks.len() as u32, false);
    let parity = image.superblock.parity;
    let (means, chunks) = parity_means(parity, arguments, &chunks);
    let data_max = image.superblock.data_chunk_max();
    let core = Recorder::with_parity(config, image, means);
    let progress = Arc::new(Progress::default());
    let stage = Stage {
        arguments,
        pool: Arc::clone(&pool),
        stop: stop.clone(),
        progress: Arc::clone(&progress),
        start: bank.now(),
        started,
        chunk_bytes: (layout.chunk_min, data_max),
    };
    let feed = stage.feed(&spec, chunks)?;
    let mut status = Status::new(arguments, totals, progress)?;
    let recording =
        Recording::new(core, &mut bank, &pool, feed, members, superblocks, metadata.clone());
    let outcome = run(arguments, recording, &never(), &stop.asked, &mut status);
    let mut recording = outcome?;
    let told = recording.feed().take_told();
    let (code, errors) = finish(told, &recording, &mut status);
    drop(recording);
    for error in errors {
        outlet::tell(&format!("longtake: the source ended with an error: {error:#}"));
    }
    let buffers = metadata.into_iter().chain(chunks.iter().copied()).collect();
    let sound = read_back(&mut Reader { bank: &mut bank, memory: &pool, buffers }, arguments)?;
    Ok(if sound { code } else { ExitCode::from(exit::LOSS) })
}

/// Refuses what lives in real time.
fn suits(spec: &SourceSpec, arguments: &RecordArguments) -> Result<()> {
    let real = match spec {
        SourceSpec::Synthetic(_) | SourceSpec::CaptureFile(_) | SourceSpec::CaptureStdin => None,
        SourceSpec::Interface(_) => Some("an interface"),
        SourceSpec::Udp(_) => Some("UDP"),
        SourceSpec::Stream { .. } => Some("a stream"),
    };
    if let Some(real) = real {
        bail!(
            "{}: {real} lives in real time, and simulated drives in virtual time, which passes as fast as it is computed: give \
             a synthetic source or a capture file",
            arguments.from
        );
    }
    if !arguments.cpus.is_empty() {
        bail!(
            "--cpus says how real drives are driven; simulated ones are one calculation: leave it out"
        );
    }
    Ok(())
}

/// Formats the drives. What they hold at the start stays below, and may slow them down: that is what `:random` is for.
fn array(drives: &SimDrives, arguments: &RecordArguments) -> Result<Array> {
    let timed = drives.bank()?;
    let plan = Plan {
        uuid: uuid::Uuid::new_v4(),
        name: "simulated".to_owned(),
        created: clock::now(),
        segment_bytes: arguments.segment.map(|segment| segment.0),
        chunk_max: arguments
            .chunk
            .map(|chunk| u32::try_from(chunk.0))
            .transpose()
            .context("--chunk")?,
        identities: names(&timed),
        trim: false,
        parity: arguments.parity.unwrap_or(0),
    };
    let layouts = create::layouts(&timed, &plan)?;
    let chunk_max = layouts.iter().map(|layout| layout.chunk_max).max().unwrap_or(0) as usize;
    let metadata = defaults::metadata_buffers(layouts.len());
    let chunks = (arguments.memory.0 / chunk_max.max(1) as u64).clamp(4, 1 << 16) as usize;
    let chunks = chunks + usize::from(plan.parity);
    let (pool, _) = Pool::new((metadata + chunks) as u32, chunk_max, Pages::Transparent)?;
    let mut bank = drives.bank_with_data(Arc::clone(&pool))?;
    let buffers: Vec<BufferId> = pool.buffer_ids().collect();
    let mut reader = Reader { bank: &mut bank, memory: &pool, buffers: buffers.clone() };
    create::create(&mut reader, &plan)?;
    let image = open(&mut reader)?;
    let superblocks = image
        .members
        .iter()
        .map(|member| superblock(&mut reader, member.drive))
        .collect::<Result<_, _>>()?;
    let (metadata, chunks) = buffers.split_at(metadata);
    let buffers = (metadata.to_vec(), chunks.to_vec());
    Ok(Array { bank, pool, image, superblocks, buffers })
}

fn names(bank: &impl Bank) -> Vec<String> {
    bank.drives().iter().map(|drive| drive.name.clone()).collect()
}

/// Refuses what would not fit into this machine's memory, where everything that is recorded is kept.
fn fits(spec: &SourceSpec, arguments: &RecordArguments, bank: &impl Bank) -> Result<()> {
    let capacity: u64 = bank.drives().iter().map(|drive| drive.capacity_bytes).sum();
    let offered = match (spec, arguments.duration) {
        (SourceSpec::Synthetic(synthetic::Options { pace: Pace::Rate(rate), .. }), Some(time)) => {
            rate.bytes_in(time) as u64
        }
        (SourceSpec::CaptureFile(path), _) => path.metadata().map_or(u64::MAX, |file| file.len()),
        _ => u64::MAX,
    };
    let most = offered.min(arguments.until_bytes.map_or(u64::MAX, |bytes| bytes.0)).min(capacity);
    let memory = (available_memory()? as f64 * SHARE_OF_MEMORY) as u64;
    if most > memory {
        bail!(
            "up to {} may be recorded, which simulated drives keep in memory, and this machine has {} to spare: limit it with \
             --until-bytes, or with --for at a rate",
            ByteSize(most),
            ByteSize(memory)
        );
    }
    Ok(())
}

/// Bytes that the kernel thinks can be had without swapping.
fn available_memory() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    Ok(kib.context("/proc/meminfo tells no MemAvailable")? << 10)
}

/// What sources need to be run in step with the bank.
struct Stage<'a> {
    arguments: &'a RecordArguments,
    pool: Arc<Pool>,
    stop: Stop,
    progress: Arc<Progress>,
    /// The bank's time at the start, and the calendar's.
    start: base::Instant,
    started: base::Timestamp,
    chunk_bytes: (u32, u32),
}

impl Stage<'_> {
    /// Starts the source's threads.
    fn feed(&self, spec: &SourceSpec, chunks: &[BufferId]) -> Result<VirtualFeed> {
        let (free, taken) = unbounded();
        for &buffer in chunks {
            free.send(buffer).context("filling the list of free buffers")?;
        }
        let (lanes, rate) = match spec {
            SourceSpec::Synthetic(options @ synthetic::Options { pace: Pace::Rate(rate), .. }) => {
                options.check()?;
                let queues = Synthetic::open(&synthetic::Options { pace: Pace::Max, ..*options })?;
                let each = Rate(rate.0 / queues.len() as f64);
                let lanes = (0..)
                    .zip(queues)
                    .map(|(number, queue)| self.paced(number, queue, each, &taken))
                    .collect::<Result<Vec<_>>>()?;
                (lanes, Some(*rate))
            }
            _ => (self.waiting(spec)?, None),
        };
        let stop = self.stop.clone();
        let pool = Arc::clone(&self.pool);
        Ok(VirtualFeed::new(lanes, (free, taken), pool, self.chunk_bytes, rate, stop))
    }

    fn taking(&self) -> Taking {
        Taking {
            filter: self.arguments.filter.clone(),
            snap: self.arguments.snap,
            kernel_buffer: 0,
            flush_interval: AGE_MAX,
        }
    }

    /// A queue that goes on at its pace, whether there are buffers or not.
    fn paced(
        &self,
        number: u16,
        queue: Synthetic,
        rate: Rate,
        taken: &crossbeam_channel::Receiver<BufferId>,
    ) -> Result<Lane> {
        let (ready_in, ready) = unbounded();
        let (go, going) = bounded(1);
        let (reached_in, reached) = bounded(1);
        let age = defaults::chunk_age_max(self.arguments.flush_interval);
        let packer = Packer::new(
            self.supply(ready_in, taken.clone(), age)?,
            number,
            Pressure::Drops,
            Arc::clone(&self.progress),
        );
        let Taking { filter, snap, .. } = self.taking();
        let (start, started) = (self.start, self.started);
        let thread = spawn(number, move || {
            let filtering = Filtering::new(packer, &filter, snap);
            let mut sink = Paced::new(filtering, (going, reached_in), rate, start, started);
            queue.run(&mut sink);
            let packer =
                sink.into_inner().finish().context("the filter does not suit the source")?;
            packer.finish();
            Ok(Vec::new())
        })?;
        Ok(Lane { ready, thread: Some(thread), step: Step::Paced { go, reached } })
    }

    /// Queues that wait for buffers.
    fn waiting(&self, spec: &SourceSpec) -> Result<Vec<Lane>> {
        let source = sources::open(spec, &self.taking())?;
        for warning in &source.warnings {
            outlet::tell(&format!("longtake: note: {warning}"));
        }
        let mut lanes = Vec::new();
        for (number, work) in (0..).zip(source.queues) {
            let (ready_in, ready) = unbounded();
            let (free, taken) = unbounded();
            let packer = Packer::new(
                self.supply(ready_in, taken, AGE_MAX)?,
                number,
                source.pressure,
                Arc::clone(&self.progress),
            );
            let thread = spawn(number, move || work(packer))?;
            lanes.push(Lane {
                ready,
                thread: Some(thread),
                step: Step::Waits { free: Some(free) },
            });
        }
        Ok(lanes)
    }

    fn supply(
        &self,
        ready: crossbeam_channel::Sender<source::Filled>,
        free: crossbeam_channel::Receiver<BufferId>,
        flush_interval: Duration,
    ) -> Result<Supply> {
        Ok(Supply {
            pool: Arc::clone(&self.pool),
            free,
            ready,
            // The run loop asks, and is not woken.
            waker: Waker::new().context("making a waker")?,
            stop: Arc::clone(&self.stop.told),
            bytes_left: None,
            chunk_min: self.chunk_bytes.0,
            chunk_max: self.chunk_bytes.1,
            flush_interval,
            started: self.started,
        })
    }
}

/// Reads everything back and verifies every checksum.
fn read_back(
    reader: &mut Reader<'_, SimBank<Arc<Pool>>, Arc<Pool>>,
    arguments: &RecordArguments,
) -> Result<bool> {
    let image = open(reader)?;
    let catalog = Catalog::load(reader, &image, TimeRange::ALL)?;
    let (mut sound, mut damaged) = (0u64, 0u64);
    verify(reader, &image, &catalog.entries, |_, outcome| match outcome {
        Ok(_) => sound += 1,
        Err(_) => damaged += 1,
    })?;
    if arguments.json {
        outlet::json_line(&serde_json::json!({
            "event": "read_back", "chunks": sound + damaged, "damaged": damaged,
        }))?;
    } else {
        let chunks = outlet::number(sound + damaged);
        outlet::text(&format!("read back: {chunks} chunks, {} damaged", outlet::number(damaged)))?;
        outlet::text("the drives were simulated: what was recorded is gone with this command")?;
    }
    Ok(damaged == 0)
}
