//! Bytes recorded a second onto four preallocated files, against fio with the same files, block size and
//! depth: the recorder's core on a bank with chunks that are ready, and the whole program.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::{fs, io};

use anyhow::{Context, Result};
use base::{BufferId, DriveId, Duration, Instant};
use device::target::{self, Access};
use device::{Options, Pages, Pool, UringBank};
use format::layout::CHUNK_MAX_DEFAULT;
use format::{ChunkSummary, ChunkWriter, Interface, Ledger, LinkType, Packet};
use recorder::create::{self, Plan};
use recorder::defaults::{FLUSH_INTERVAL, metadata_buffers};
use recorder::open::open;
use recorder::reader::Reader;
use recorder::run::{Feed, Recording, STEP_MAX};
use recorder::{Config, Placement, ReadyChunk, Recorder, WhenFull};
use source::clock;

use super::comparison::{Comparison, Goal, Unit};
use super::folder::Folder;
use super::rounds::{Contestant, interleaved};
use super::{Setting, program};

const MEMBERS: usize = 4;
/// Bytes of chunks in a round.
const ROUND_BYTES: u64 = 4 << 30;
/// A member's share and room for superblocks, indexes and uneven placement.
const MEMBER_BYTES: u64 = ROUND_BYTES / MEMBERS as u64 + (384 << 20);
/// Writes under way on each member, for all contestants.
const DEPTH: u32 = 4;
/// Chunk buffers: 512 MiB, as the program has by default.
const BUFFERS: u32 = 128;
const GOAL: Goal = Goal::Ratio(0.97);

/// Runs it.
///
/// # Errors
/// If files can't be made, or fio or Longtake fails.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let rig = Rig { directory: setting.dir.join("record").into(), longtake: setting.longtake()? };
    let mut found = Vec::new();
    for state in [State::Fresh, State::Written] {
        if state == State::Written {
            // Every block written once; each contestant then writes over what the others left.
            rig.prepare(State::Fresh)?;
            rig.fio(MEMBER_BYTES * MEMBERS as u64, 4 << 20, FioPages::Huge)?;
        }
        let round = |run: fn(&Rig) -> Result<f64>| -> Contestant<'_> {
            let rig = &rig;
            Box::new(move || {
                rig.prepare(state)?;
                run(rig)
            })
        };
        let [core, whole, same_block, four_mib, small_pages] = interleaved(
            setting.rounds,
            false,
            [
                round(Rig::core),
                round(Rig::program),
                round(|rig| rig.fio(ROUND_BYTES, CHUNK_MAX_DEFAULT, FioPages::Huge)),
                round(|rig| rig.fio(ROUND_BYTES, 4 << 20, FioPages::Huge)),
                round(|rig| rig.fio(ROUND_BYTES, CHUNK_MAX_DEFAULT, FioPages::Ordinary)),
            ],
        )?;
        let ours = [
            ("recorder and bank, chunks ready", core),
            ("longtake record --from synthetic:max", whole),
        ];
        let references = [
            ("fio, blocks of 4190208, huge pages", same_block, Some(GOAL)),
            ("fio, blocks of 4 MiB, huge pages", four_mib, Some(GOAL)),
            ("fio, blocks of 4190208, its own choice of pages", small_pages, None),
        ];
        for (what, ours) in &ours {
            for (name, reference, goal) in &references {
                found.push(Comparison {
                    benchmark: "record",
                    what: format!("{what}, {}", state.words()),
                    reference: Some(((*name).to_owned(), reference.clone())),
                    ours: ours.clone(),
                    unit: Unit::BytesPerS,
                    goal: *goal,
                });
            }
        }
    }
    Ok(found)
}

/// What the files are like before a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Newly preallocated: the file system still has to mark blocks as written.
    Fresh,
    /// Written before.
    Written,
}

impl State {
    const fn words(self) -> &'static str {
        match self {
            Self::Fresh => "newly preallocated files",
            Self::Written => "files written before",
        }
    }
}

/// What fio's buffers lie in. Longtake's lie in huge pages; a block of 4 MiB in pages of 4 KiB has more
/// pieces than most drives take in one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FioPages {
    /// Transparent huge pages, as far as the kernel has them.
    Huge,
    /// What `malloc` gives.
    Ordinary,
}

/// The files, deleted in the end.
struct Rig {
    directory: Folder,
    longtake: PathBuf,
}

impl Rig {
    fn paths(&self) -> Vec<PathBuf> {
        (0..MEMBERS).map(|n| self.directory.join(format!("member{n}"))).collect()
    }

    /// Makes the files, or leaves them, and an array of them; not part of what is measured.
    fn prepare(&self, state: State) -> Result<()> {
        if state == State::Fresh {
            match fs::remove_dir_all(&self.directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            fs::create_dir_all(&self.directory)?;
            for path in self.paths() {
                target::create_file(&path, MEMBER_BYTES)?;
            }
        }
        self.make_array()?;
        nix::unistd::sync();
        Ok(())
    }

    fn bank(&self, buffers: u32) -> Result<(UringBank, Arc<Pool>)> {
        let (pool, _) = Pool::new(buffers, CHUNK_MAX_DEFAULT as usize, Pages::Huge)?;
        let mut targets = Vec::new();
        for path in self.paths() {
            targets.push(target::open(&path, Access::Write { exclusive: false })?.0);
        }
        let (bank, _) = UringBank::open(targets, Arc::clone(&pool), Options::default())?;
        Ok((bank, pool))
    }

    fn make_array(&self) -> Result<()> {
        let (mut bank, pool) = self.bank(2)?;
        let plan = Plan {
            uuid: uuid::Uuid::new_v4(),
            name: "bench".into(),
            created: clock::now(),
            segment_bytes: Some(256 << 20),
            chunk_max: Some(CHUNK_MAX_DEFAULT),
            identities: (0..MEMBERS).map(|n| format!("file member{n}")).collect(),
            trim: false,
            parity: 0,
        };
        let buffers = pool.buffer_ids().collect();
        create::create(&mut Reader { bank: &mut bank, memory: &pool, buffers }, &plan)?;
        Ok(())
    }

    /// Bytes a second by the recorder's core, run loop and bank, from chunks that lie ready.
    fn core(&self) -> Result<f64> {
        let metadata = metadata_buffers(MEMBERS) as u32;
        let (mut bank, pool) = self.bank(BUFFERS + metadata)?;
        let all: Vec<BufferId> = pool.buffer_ids().collect();
        let (metadata, chunks) = all.split_at(metadata as usize);
        let image = open(&mut Reader { bank: &mut bank, memory: &pool, buffers: chunks.to_vec() })?;
        let drives: Vec<DriveId> = image.members.iter().map(|m| m.drive).collect();
        let superblocks = vec![image.superblock.clone(); MEMBERS];
        let feed = Ready::new(&pool, chunks, image.superblock.layout.chunk_min)?;
        let config = Config {
            take: uuid::Uuid::new_v4(),
            started: clock::now(),
            placement: Placement::Adaptive,
            when_full: WhenFull::Stop,
            depth: DEPTH,
            buffers: chunks.len() as u32,
            drift_max: 512 << 20,
            flush_interval: FLUSH_INTERVAL,
            trim_ahead: 0,
            trim_interval: Duration::ZERO,
            rest: 0,
            rest_turn: Duration::ZERO,
            flow_indexes: false,
        };
        let core = Recorder::new(config, image);
        let mut recording =
            Recording::new(core, &mut bank, &pool, feed, drives, superblocks, metadata.to_vec());
        let mut events = Vec::new();
        let start = std::time::Instant::now();
        while !recording.step(recording.now() + STEP_MAX, &mut events)? {
            events.clear();
        }
        let seconds = start.elapsed().as_secs_f64();
        let lost = recording.core().ledger().lost_total();
        anyhow::ensure!(lost.is_zero(), "the recording lost {} packets", lost.packets);
        Ok(recording.into_feed().bytes as f64 / seconds)
    }

    /// Bytes a second by the whole program, as it says itself: from its first step to the last flush.
    fn program(&self) -> Result<f64> {
        // Packets are 1500 of every 1532 bytes of a chunk.
        let packets = ROUND_BYTES / 1532 * 1500;
        let output = program::run(
            Command::new(&self.longtake)
                .args(["record", "--from", "synthetic:max", "--json", "--keep-privileges", "--to"])
                .arg(&*self.directory)
                .args(["--until-bytes", &packets.to_string(), "--depth", &DEPTH.to_string()]),
        )?;
        let text = String::from_utf8_lossy(&output);
        let last = text.lines().last().context("longtake printed nothing")?;
        let event = serde_json::from_str(last).context("longtake's last event")?;
        Ok(program::number(&event, "/written")? / program::number(&event, "/after_s")?)
    }

    /// Bytes a second by fio, its final fsync included.
    fn fio(&self, bytes: u64, block: u32, pages: FioPages) -> Result<f64> {
        let names: Vec<String> = self.paths().iter().map(|p| p.display().to_string()).collect();
        // fio writes whole blocks only.
        let size = bytes / MEMBERS as u64 / u64::from(block) * u64::from(block);
        let mut fio = Command::new("fio");
        if pages == FioPages::Huge {
            fio.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        }
        let output = program::run(fio.args([
            "--name=record",
            &format!("--filename={}", names.join(":")),
            &format!("--filesize={size}"),
            &format!("--bs={block}"),
            &format!("--iodepth={}", DEPTH * MEMBERS as u32),
            "--rw=write",
            "--ioengine=io_uring",
            "--direct=1",
            "--fixedbufs=1",
            "--registerfiles=1",
            "--fallocate=none",
            "--end_fsync=1",
            "--output-format=json",
        ]))?;
        let json = serde_json::from_slice(&output).context("fio's output")?;
        let milliseconds = program::number(&json, "/jobs/0/write/runtime")?;
        Ok(program::number(&json, "/jobs/0/write/io_bytes")? / milliseconds * 1e3)
    }
}

/// Full chunks that lie ready in every buffer, offered again as soon as they are written.
struct Ready {
    free: VecDeque<BufferId>,
    full: ChunkSummary,
    end: Option<(BufferId, ChunkSummary)>,
    left: u64,
    bytes: u64,
}

impl Ready {
    fn new(pool: &Arc<Pool>, buffers: &[BufferId], chunk_min: u32) -> Result<Self> {
        let interface = Interface {
            name: "ready".into(),
            description: String::new(),
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        };
        let (&last, others) = buffers.split_last().context("no buffers")?;
        let data: Vec<u8> = (0..1500u32).map(|n| (n * 7) as u8).collect();
        let timestamp = clock::now();
        // All the same to the last byte, so that one summary is true of each.
        let mut full = None;
        for &id in others {
            let mut writer = ChunkWriter::new(pool.hold(id), chunk_min, CHUNK_MAX_DEFAULT, 0);
            writer.interface(0, &interface).ok().context("an empty chunk has room")?;
            let packet = Packet {
                interface: 0,
                timestamp,
                original_length: 1500,
                data: &data,
                options: &[],
            };
            while writer.packet(&packet, 0).is_ok() {}
            full = Some(writer.seal(&[], timestamp, false).summary);
        }
        let writer = ChunkWriter::new(pool.hold(last), chunk_min, CHUNK_MAX_DEFAULT, 0);
        let end = Some((last, writer.seal(&[], clock::now(), true).summary));
        let full = full.context("no buffers")?;
        let left = ROUND_BYTES / u64::from(full.length);
        Ok(Self { free: others.iter().copied().collect(), full, end, left, bytes: 0 })
    }
}

impl Feed for Ready {
    fn poll(&mut self, _: Instant) -> Option<ReadyChunk> {
        if self.left == 0 {
            return None;
        }
        let buffer = self.free.pop_front()?;
        self.left -= 1;
        self.bytes += u64::from(self.full.length);
        Some(ReadyChunk { buffer, summary: self.full, losses: Ledger::default() })
    }

    fn next(&self, _: Instant) -> Option<Instant> {
        None
    }

    fn release(&mut self, buffer: BufferId) {
        self.free.push_back(buffer);
    }

    fn ended(&self) -> bool {
        self.left == 0
    }

    fn end_chunk(&mut self) -> Option<ReadyChunk> {
        let (buffer, summary) = self.end.take()?;
        Some(ReadyChunk { buffer, summary, losses: Ledger::default() })
    }
}
