//! Recording on simulated drives: formatted in memory, recorded on in virtual time by the code that records on real ones.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base::{Bank, BufferId, ByteSize, DriveId};
use crossbeam_channel::never;
use device::{Pages, Pool};
use format::Superblock;
use recorder::create::{self, Plan};
use recorder::open::{open, superblock};
use recorder::reader::Reader;
use recorder::run::Recording;
use recorder::{ArrayImage, Recorder, defaults};
use source::clock;
use source::packer::Progress;
use source::spec::SourceSpec;
use target::{SimDataBank, SimDrives, SimTarget};

use super::account::Account;
use super::builder::Builder;
use super::ending::SourceEnd;
use super::fits::Capacity;
use super::observer::{Observer, Rejections, Started};
use super::run::{self, Stage, Watched};
use super::virtual_feed::Stop;
use super::virtual_sources::Sources;
use crate::Array;
use crate::array::open::Opened;

/// Memory that is left to everything else.
const SHARE_OF_MEMORY: f64 = 0.7;

/// Simulated drives with an array on them.
struct Formatted {
    bank: SimDataBank,
    pool: Arc<Pool>,
    image: ArrayImage,
    superblocks: Vec<Superblock>,
    metadata: Vec<BufferId>,
    chunks: Vec<BufferId>,
}

/// Formats the drives, records, and hands the array over.
pub fn record(
    job: &Builder,
    targets: &[SimTarget],
    observer: &mut dyn Observer,
) -> Result<Account> {
    let options = &job.options;
    let spec = job.spec()?;
    suits(&spec, job)?;
    let drives = SimDrives::new(targets, options.uplink, &job.known_profiles())?;
    let Formatted { mut bank, pool, image, superblocks, metadata, chunks } = format(&drives, job)?;
    fits(&spec, job, &bank)?;
    let stop = Stop { asked: Arc::clone(&job.stop), ..Stop::default() };
    let (layout, at) = (image.superblock.layout, clock::now());
    let members: Vec<DriveId> = image.members.iter().map(|member| member.drive).collect();
    let places = || members.iter().map(|drive| drives.places()[drive.index()].clone()).collect();
    let parts = options.parts(|| Ok(places()))?;
    let config = options.config(at, layout.segment_bytes, chunks.len() as u32, false, false);
    let (means, data_chunks) = options.parity_means(image.superblock.parity, &chunks);
    let data_max = image.superblock.data_chunk_max();
    let (array, array_uuid) = (image.superblock.name.clone(), image.uuid);
    let capacity = Capacity::of(&image);
    let core = Recorder::with_parity(config, image, means);
    let core = parts.into_iter().fold(core, Recorder::with_parts);
    let started = Started {
        take: core.take().uuid,
        at,
        first_sequence: core.take().first_sequence,
        array,
        array_uuid,
        drives: names(&bank),
        buffers: chunks.len() as u32,
        simulated: true,
        rejections: Rejections::of(&options.filter),
        capacity,
        file: None,
    };
    let progress = Arc::new(Progress::default());
    let sources = Sources {
        options,
        pool: Arc::clone(&pool),
        stop: stop.clone(),
        progress: Arc::clone(&progress),
        start: bank.now(),
        started: at,
        chunk_bytes: (layout.chunk_min, data_max),
    };
    let feed = sources.feed(&spec, data_chunks, observer)?;
    let mut recording =
        Recording::new(core, &mut bank, &pool, feed, members, superblocks, metadata);
    let (stop, progress, watched) = (&stop.asked, &progress, Watched::default());
    let (asked, source_end) = (never(), SourceEnd::of(&spec));
    let stage = Stage { options, started, asked, stop, progress, watched, source_end, observer };
    let over = run::run(&mut recording, stage)?;
    let ends = recording.feed().take_told();
    let mut account = Account::of(&recording, over, ends);
    drop(recording);
    account.array = Some(Array::simulated(Opened::simulated(bank, pool)?, &job.target));
    Ok(account)
}

/// Refuses what lives in real time.
pub fn suits(spec: &SourceSpec, job: &Builder) -> Result<()> {
    let real = match spec {
        SourceSpec::Synthetic(_) | SourceSpec::Traffic(_) => None,
        SourceSpec::CaptureFile(_) | SourceSpec::CaptureStdin => None,
        SourceSpec::Interface(_) => Some("an interface"),
        SourceSpec::Udp(_) => Some("UDP"),
        SourceSpec::Stream { .. } => Some("a stream"),
        SourceSpec::Producer(_) => Some("a program"),
    };
    if let Some(real) = real {
        bail!(
            "{}: {real} lives in real time, and simulated drives in virtual time, which passes as fast as it is computed: give \
             a synthetic source, traffic or a capture file",
            job.source
        );
    }
    if job.options.metrics.is_some() {
        bail!("--metrics is for real drives, whose recordings last: leave it out");
    }
    if !job.options.processors.is_empty() {
        bail!(
            "--cpus says how real drives are driven; simulated ones are one calculation: leave it out"
        );
    }
    Ok(())
}

/// Formats the drives. What they hold at the start stays below, and may slow them down: that is what `:random` is for.
fn format(drives: &SimDrives, job: &Builder) -> Result<Formatted> {
    let new = &job.options.new;
    let timed = drives.bank()?;
    let plan = Plan {
        uuid: uuid::Uuid::new_v4(),
        name: "simulated".to_owned(),
        created: clock::now(),
        segment_bytes: new.segment.map(|segment| segment.0),
        chunk_max: new.chunk.map(|chunk| u32::try_from(chunk.0)).transpose().context("--chunk")?,
        identities: names(&timed),
        trim: false,
        parity: new.parity.unwrap_or(0),
    };
    let layouts = create::layouts(&timed, &plan)?;
    let chunk_max = layouts.iter().map(|layout| layout.chunk_max).max().unwrap_or(0) as usize;
    let metadata = defaults::metadata_buffers(layouts.len());
    let chunks = (job.options.memory.0 / chunk_max.max(1) as u64).clamp(4, 1 << 16) as usize;
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
    let (metadata, chunks) = (metadata.to_vec(), chunks.to_vec());
    Ok(Formatted { bank, pool, image, superblocks, metadata, chunks })
}

fn names(bank: &impl Bank) -> Vec<String> {
    bank.drives().iter().map(|drive| drive.name.clone()).collect()
}

/// Refuses what would not fit into this machine's memory, where everything that is recorded is kept.
fn fits(spec: &SourceSpec, job: &Builder, bank: &impl Bank) -> Result<()> {
    let capacity: u64 = bank.drives().iter().map(|drive| drive.capacity_bytes).sum();
    let offered = match (spec, spec.rate(), job.options.duration) {
        (_, Some(rate), Some(time)) => rate.bytes_in(time) as u64,
        (SourceSpec::CaptureFile(path), ..) => path.metadata().map_or(u64::MAX, |file| file.len()),
        _ => u64::MAX,
    };
    let limit = job.options.until_bytes.map_or(u64::MAX, |bytes| bytes.0);
    let most = offered.min(limit).min(capacity);
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
    Ok(kib.context("/proc/meminfo has no MemAvailable")? << 10)
}
