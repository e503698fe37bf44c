//! A world for the recorder: drives, a source and accidents in virtual time, and a book of what was
//! said and done, by which the media are judged afterwards.

pub mod bank;
pub mod case;
pub mod feed;
pub mod judge;
pub mod watch;

use std::collections::BTreeMap;

use base::memory::MemoryBuffers;
use base::{Bank, BufferId, DeviceError, DriveId, Duration, Instant, Timestamp};
use format::layout::Layout;
use format::superblock::Protected;
use format::{Count, Ledger, Stage};
use longtake_recorder::create::{self, Plan};
use longtake_recorder::open::{self, ArrayImage};
use longtake_recorder::reader::Reader;
use longtake_recorder::run::Recording;
use longtake_recorder::{Config, Event, Recorder};
use uuid::Uuid;

use bank::{Once, Shared};
use case::{CHUNK_MAX, Case, Ending, Fault, RoundCase};
use feed::{Source, time};
use judge::MemberBook;
use watch::Watch;

/// Buffers that readers use, before those of chunks and metadata.
const READ_BUFFERS: u32 = 6;
/// What a process takes to end and another to start, at least: longer than the microseconds for which an opened array leaves out
/// numbers, so that one that was given to a chunk which never reached its medium does not come again.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(70);
/// Steps without time passing after which a recording is taken to run in a circle.
const STANDSTILL_MAX: u32 = 20_000;

pub type Live<'a> = Recording<'a, Shared, MemoryBuffers, Source>;

/// What came of one recording.
#[derive(Debug, Default)]
pub struct RoundReport {
    /// The core's ledger when it ended.
    pub ledger: Ledger,
    /// What the source knows.
    pub told: Ledger,
    pub full: bool,
    pub no_member: bool,
    /// Members that failed in it.
    pub failed: Vec<u16>,
    pub finished: bool,
    /// Whether the power failed in the end.
    pub cut: bool,
    pub take: Option<Uuid>,
    pub ended: bool,
}

pub struct World {
    pub case: Case,
    pub memory: MemoryBuffers,
    pub bank: Shared,
    pub next_packet: u64,
    /// The ranges that count, and those that do if an update of the superblocks was cut short.
    pub protected: Vec<Protected>,
    pub protected_before: Vec<Vec<Protected>>,
    /// Whether no recording crashed and no member failed so far.
    pub clean: bool,
    /// Whether an update was cut short, so that a superblock's two copies may differ.
    pub torn: bool,
    pub book: Vec<MemberBook>,
    pub rounds_done: usize,
    /// What takes that crashed may have placed without asking a drive for it.
    pub unsubmitted: BTreeMap<Uuid, Count>,
    /// Segments given up, in all.
    pub reused: u64,
    /// Segments that a ring could not give up because they were protected, seen at least.
    pub spared: u64,
}

impl World {
    pub fn new(case: Case) -> Self {
        let count = case.members.len();
        let metadata = 2 * count as u32;
        let memory = MemoryBuffers::new(READ_BUFFERS + metadata + case.buffers, CHUNK_MAX as usize);
        let jitter = case.members.iter().map(|m| Duration::from_micros(m.jitter_us)).collect();
        let watch = Watch::new(&memory, count);
        let bank = Shared::new(case.drives(), jitter, &memory, watch, case.seed);
        let array = Uuid::from_u128(0xA44A);
        let world = Self {
            memory,
            bank,
            next_packet: 0,
            protected: Vec::new(),
            protected_before: Vec::new(),
            torn: false,
            clean: true,
            book: (0..count).map(|_| MemberBook::default()).collect(),
            rounds_done: 0,
            unsubmitted: BTreeMap::new(),
            reused: 0,
            spared: 0,
            case,
        };
        let plan = Plan {
            uuid: array,
            name: "world".into(),
            created: Timestamp::from_nanos(feed::EPOCH_NS),
            segment_bytes: Some(world.case.segment_kib << 10),
            chunk_max: Some(CHUNK_MAX),
            identities: (0..count).map(|n| format!("memory {n}")).collect(),
            trim: true,
            parity: 0,
        };
        let mut bank = world.bank.another(|_| true);
        let superblocks =
            create::create(&mut world.reader(&mut bank), &plan).expect("the drives suit");
        let layouts: Vec<Layout> = superblocks.iter().map(|s| s.layout).collect();
        world.bank.watch(|w| w.layouts = layouts);
        world
    }

    pub fn reader<'a>(&'a self, bank: &'a mut Shared) -> Reader<'a, Shared, MemoryBuffers> {
        let buffers = (0..READ_BUFFERS).map(BufferId).collect();
        Reader { bank, memory: &self.memory, buffers }
    }

    /// Lets time pass.
    fn pass(&self, time: Duration) {
        let mut bank = self.bank.another(|_| true);
        let until = bank.now() + time;
        while bank.now() < until {
            bank.wait(Some(until), &mut Vec::new()).expect("banks in memory don't fail");
        }
    }

    /// Opens the array, all of it or without some members.
    pub fn open(&self, missing: &[u16]) -> ArrayImage {
        let mut bank = self.bank.another(|d| !missing.contains(&d));
        let mut reader = self.reader(&mut bank);
        match open::open_some(&mut reader, !missing.is_empty()) {
            Ok(image) => image,
            Err(error) => panic!("the array does not open: {error}"),
        }
    }

    /// One recording of the case, from opening to its end. `look` sees it after each step.
    pub fn round(
        &mut self,
        round: &RoundCase,
        mut look: impl FnMut(&World, &mut Live<'_>, &mut Vec<Event>),
    ) -> RoundReport {
        self.bank.revive();
        self.pass(BETWEEN_ROUNDS);
        let number = self.rounds_done;
        self.rounds_done += 1;
        let image = self.open(&[]);
        self.check_protected(&image);
        let mut bank = self.bank.another(|_| true);
        let mut superblocks = Vec::new();
        for member in &image.members {
            let found = open::superblock(&mut self.reader(&mut bank), member.drive);
            superblocks.push(found.expect("the array was opened"));
        }
        self.bank.watch(|w| w.begin(number, self.case.depth));
        let case = self.case.clone();
        let start = bank.now();
        let config = Config {
            take: Uuid::from_u128(0x7A4E_0000 + number as u128),
            started: time(start),
            placement: case.placement,
            when_full: case.when_full,
            depth: case.depth,
            buffers: case.buffers,
            drift_max: case.drift_kib << 10,
            flush_interval: Duration::from_micros(case.flush_us),
            trim_ahead: case.trim_ahead,
            trim_interval: Duration::from_micros(case.trim_interval_us),
            rest: case.rest,
            rest_turn: Duration::from_micros(case.rest_turn_us),
        };
        let report_take = config.take;
        let drives: Vec<DriveId> = image.members.iter().map(|m| m.drive).collect();
        // Two for each member suffice to be fast; one in all must do.
        let metadata = 1 + (case.seed % (2 * case.members.len() as u64)) as u32;
        let names = |from: u32, count: u32| (from..from + count).map(BufferId).collect::<Vec<_>>();
        let stop_at = start + Duration::from_micros(round.length_us);
        let source = Source::new(
            &self.memory,
            self.bank.another(|_| true),
            case.seed ^ (number as u64) << 32,
            case.queues,
            names(READ_BUFFERS + 2 * case.members.len() as u32, case.buffers),
            Duration::from_micros(case.interval_us),
            (image.superblock.layout.chunk_min, CHUNK_MAX),
            (start, stop_at),
            self.next_packet,
        );
        let mut stalled = Duration::ZERO;
        for (member, at, fault) in &round.faults {
            let drive = u16::from(*member) % case.members.len() as u16;
            let at = start + Duration::from_micros(*at);
            match fault {
                Fault::Die => self.bank.die(drive, at, DeviceError::Gone),
                Fault::Once { kind, applied } => {
                    let (kind, applied) = (*kind, *applied);
                    self.bank.fail_once(Once { drive, from: at, kind, applied });
                }
                Fault::Stall { us } => {
                    stalled = stalled + Duration::from_micros(*us);
                    self.bank.stall(drive, at, at + Duration::from_micros(*us));
                }
            }
        }
        // One command that fails is enough for a member to get no more updates.
        let all_fail = (0..case.members.len()).all(|m| {
            let fails = |f: &(u8, u64, Fault)| matches!(f.2, Fault::Die | Fault::Once { .. });
            let here = |f: &(u8, u64, Fault)| usize::from(f.0) % case.members.len() == m;
            round.faults.iter().any(|f| fails(f) && here(f))
        });
        let mut protections = round.protections.clone();
        protections.sort_by_key(|&(at, _)| at);
        protections.reverse();

        let core = Recorder::new(config, image);
        let memory = self.memory.clone();
        let mut recording = Recording::new(
            core,
            &mut bank,
            &memory,
            source,
            drives,
            superblocks,
            names(READ_BUFFERS, metadata),
        );
        let mut report = RoundReport { take: Some(report_take), ..RoundReport::default() };
        let mut events = Vec::new();
        let mut more = round.steps_more;
        let (mut last, mut standstill) = (start, 0);
        self.book.iter_mut().for_each(MemberBook::begin);
        // Generous: all buffers at the slowest drive's speed, all stalls, and some seconds.
        let limit = stop_at + stalled + Duration::from_secs(20);
        loop {
            let now = recording.now();
            if round.ending != Ending::Stop && now >= stop_at {
                if more == 0 {
                    break;
                }
                more -= 1;
            }
            if let Some(&(at, shares)) = protections.last()
                && now >= start + Duration::from_micros(at)
            {
                let ranges: Vec<Protected> = shares.into_iter().map(|s| range(now, s)).collect();
                if recording.protect(ranges.clone()) {
                    protections.pop();
                    self.protected_before.push(std::mem::replace(&mut self.protected, ranges));
                }
            }
            if recording.core().refusing() {
                recording.feed().stopped = true;
            }
            let until = protections
                .last()
                .map(|p| start + Duration::from_micros(p.0))
                .filter(|&at| at > now)
                .into_iter()
                .fold(now + Duration::from_millis(100), Instant::min);
            let over = recording.step(until, &mut events).expect("the bank works");
            for event in events.drain(..) {
                self.event(event, &mut report);
            }
            // A member that failed leaves it to the others; if none works, it may stand on any.
            let stands = recording.update_outcome().is_ok() || !all_fail;
            if !recording.updating() && stands && !self.protected_before.is_empty() {
                self.protected_before.clear();
            }
            self.destroyed_were_given_up();
            let ledger = *recording.core().ledger();
            assert!(ledger.balances(), "ledger: {ledger:?}");
            assert!(recording.core().buffers_held() <= case.buffers, "buffers are counted");
            look(self, &mut recording, &mut events);
            for event in events.drain(..) {
                self.event(event, &mut report);
            }
            self.destroyed_were_given_up();
            let now = recording.now();
            standstill = if now == last { standstill + 1 } else { 0 };
            last = now;
            assert!(standstill < STANDSTILL_MAX, "progress: it runs in a circle at {now:?}");
            assert!(now < limit, "progress: not over at {now:?}");
            if over {
                report.finished = true;
                break;
            }
        }
        self.torn = recording.updating() || recording.update_outcome().is_err();
        self.clean &= report.finished && report.failed.is_empty() && report.ended;
        report.ledger = *recording.core().ledger();
        let acknowledged = recording.core().acknowledged();
        let source = recording.into_feed();
        self.next_packet = source.next_packet;
        report.told = source.told;
        if report.finished {
            assert!(source.whole(), "buffers: all come back, each once");
            self.finished(&report, acknowledged);
        } else {
            self.never_submitted(&report);
            report.cut = round.ending == Ending::PowerCut;
            self.bank.crash(case.seed ^ number as u64, round.ending == Ending::PowerCut);
            // Nobody starts again before this.
            let mut bank = self.bank.another(|_| true);
            bank.wait_for(Duration::from_millis(100), &mut Vec::new()).expect("the bank works");
        }
        report
    }

    /// Every recording of the case, the media judged after each.
    pub fn run(case: Case) -> Self {
        let mut world = Self::new(case);
        for round in world.case.rounds.clone() {
            world.round_and_judge(&round);
        }
        world
    }

    pub fn round_and_judge(&mut self, round: &RoundCase) -> RoundReport {
        let report = self.round(round, |_, _, _| {});
        self.bank.revive();
        self.judge(&[], report.cut);
        report
    }

    fn check_protected(&mut self, image: &ArrayImage) {
        let mut possible = std::mem::take(&mut self.protected_before);
        possible.push(self.protected.clone());
        assert!(possible.contains(&image.protected), "protection survives: {possible:?}");
        self.protected.clone_from(&image.protected);
        if image.superblocks_differ {
            // Until the recording has written them all again.
            self.protected_before = possible;
        }
    }

    /// After a crash: chunks that had their place, perhaps, and were not asked of a drive yet.
    fn never_submitted(&mut self, report: &RoundReport) {
        let submitted = self.bank.watch(|w| {
            let this = w.chunks.values().filter(|c| c.round == w.round);
            let roots: BTreeMap<u64, Count> = this.map(|c| (c.root(), c.contents.count)).collect();
            roots.into_values().fold(Count::ZERO, |a, b| a + b)
        });
        let take = report.take.expect("it was recorded");
        self.unsubmitted.insert(take, report.told.stored - submitted);
    }

    fn finished(&self, report: &RoundReport, acknowledged: Count) {
        let (ledger, told) = (&report.ledger, &report.told);
        assert_eq!(ledger.offered, told.offered, "ledger: everything offered is in it");
        for stage in [Stage::Interface, Stage::KernelRing, Stage::NoBuffer, Stage::Filtered] {
            assert_eq!(ledger.lost(stage), told.lost(stage), "ledger: {stage}");
        }
        assert_eq!(ledger.stored, acknowledged, "ledger: what is stored was acknowledged");
        let mine = self.bank.watch(|w| {
            let this = w.chunks.values().filter(|c| c.round == w.round && c.acknowledged);
            let mut packets: Vec<u64> =
                this.flat_map(|c| c.contents.packets.iter().map(|p| p.0)).collect();
            let all = packets.len() as u64;
            packets.sort_unstable();
            packets.dedup();
            assert_eq!(packets.len() as u64, all, "ledger: no packet is stored twice");
            all
        });
        assert_eq!(ledger.stored.packets, mine, "ledger: the packets that were stored");
        self.bank.watch(|w| {
            let (mut kept, mut carried) = (Count::ZERO, Count::ZERO);
            for chunk in w.chunks.values().filter(|c| c.round == w.round) {
                let truncated = feed::truncated(chunk.contents.count);
                if chunk.acknowledged {
                    kept += truncated;
                }
                if chunk.record.replaces.is_none() {
                    carried += truncated;
                }
                let told = chunk.record.ledger.truncated;
                assert_eq!(told, carried, "ledger: truncated through {}", chunk.record.sequence);
            }
            assert_eq!(ledger.truncated, kept, "ledger: truncated, of what is stored");
        });
        let lost = ledger.lost(Stage::ArrayFull) + ledger.lost(Stage::DeviceError);
        assert_eq!(told.stored, ledger.stored + lost, "ledger: each chunk is stored or named");
        assert!(report.full || report.no_member || lost.is_zero(), "ledger: lost without a reason");
    }
}

/// A range between two shares of the time so far.
fn range(now: Instant, (one, other): (u8, u8)) -> Protected {
    let at = |share: u8| {
        let span = time(now).as_nanos() - feed::EPOCH_NS;
        Timestamp::from_nanos(feed::EPOCH_NS + span / 255 * u64::from(share))
    };
    Protected {
        from: at(one.min(other)),
        to: at(one.max(other)),
        made: time(now),
        label: "kept".into(),
    }
}

impl World {
    fn event(&mut self, event: Event, report: &mut RoundReport) {
        match event {
            Event::Acknowledged { sequence, member, count, end } => {
                report.ended |= end;
                self.acknowledged(sequence, member, count);
            }
            Event::Durable { member, count } => self.durable(member, count),
            Event::MemberFailed { member, held, held_chunks, .. } => {
                assert!(!report.failed.contains(&member), "a member fails once");
                report.failed.push(member);
                let book = &self.book[usize::from(member)];
                assert_eq!((held, held_chunks), (book.held, book.held_chunks), "what it held");
            }
            Event::Reused { member, segment, .. } => self.given_up(member, segment),
            Event::ArrayFull { .. } => report.full = true,
            Event::NoMemberLeft => report.no_member = true,
            Event::DurableChunk { .. } | Event::ParityReduced { .. } => panic!("{event}"),
            Event::TrimFailed { .. } | Event::Finished => {}
        }
    }
}
