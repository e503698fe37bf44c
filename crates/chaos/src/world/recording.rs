//! One recording of a world, from opening the array to its end, and the account of a take that was finished.

use std::collections::BTreeSet;

use base::memory::MemoryBuffers;
use base::{Bank, DriveId, Duration, Instant};
use format::{Count, Ledger, Stage, Superblock, TakeRecord};
use recorder::open::ArrayImage;
use recorder::run::Recording;
use recorder::take_records::TakeRecords;
use recorder::{Config, ParityMeans, Recorder};
use uuid::Uuid;

use super::{READ_BUFFERS, World};
use crate::adversary::Handle;
use crate::book::Book;
use crate::case::{Case, Ending, Round};
use crate::fault::{Fault, What};
use crate::flow_indexing::Maker;
use crate::outcome::Outcome;
use crate::run::{Run, Step, view};
use crate::source::{Source, time};

/// How a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Whether its take was finished: nobody killed it and the power stayed.
    pub finished: bool,
    /// Whether the power failed in the end.
    pub power_failed: bool,
    /// Whether the chunk that ends the take was acknowledged.
    pub ended: bool,
    /// Whether its end cut a change of the superblocks short.
    pub superblocks_torn: bool,
    /// Whether the array was full.
    pub full: bool,
    /// Whether no member was left.
    pub no_member: bool,
    /// Members that failed.
    pub failed: Vec<u16>,
    /// Whether something was lost because no buffer was free.
    pub overrun: bool,
    /// The recorder's ledger in the end.
    pub ledger: Ledger,
}

/// What is left of a recording that is over or was cut short.
struct End {
    over: bool,
    /// Whether the chunk that ends the take was acknowledged.
    ended: bool,
    ledger: Ledger,
    acknowledged: Count,
    /// What is to stay of the take.
    record: TakeRecord,
    /// Members that had not failed.
    working: Vec<u16>,
    /// Whether a change of the superblocks was under way.
    torn: bool,
    /// Whether a member was missing or had failed.
    lacks_members: bool,
    source: Source,
}

impl End {
    fn of(run: Run<'_>) -> Self {
        let Run { recording, state, ended, .. } = run;
        let core = recording.core();
        let (ledger, acknowledged) = (*core.ledger(), core.acknowledged());
        let lacks_members = core.members().any(|member| !member.working);
        let members = (0u16..).zip(core.members());
        let working = members.filter(|(_, member)| member.working).map(|(at, _)| at).collect();
        let record = core.record();
        // The last update is that of the take's record.
        let torn = recording.updating() && !core.finished();
        let (over, source) = (state == Step::Over, recording.into_feed());
        Self { over, ended, ledger, acknowledged, record, working, torn, lacks_members, source }
    }
}

/// What goes wrong in a recording that begins at `start`.
fn faults(round: &Round, start: Instant) -> Vec<Fault> {
    let at = |fault: &Fault| {
        let from = start + fault.from.since(Instant::START);
        // "Forever" stays so.
        let to = start + fault.to.since(Instant::START);
        Fault { from, to, ..fault.clone() }
    };
    round.faults.iter().map(at).collect()
}

/// Members that may rest at a time.
fn rest_max(case: &Case) -> usize {
    let members = case.drives.len();
    match usize::from(case.parts) {
        0 => case.rest as usize,
        parts => members - members / parts.min(members),
    }
}

/// How the recorder is set in a case's recording of this number.
fn config(case: &Case, number: usize, start: Instant) -> Config {
    Config {
        take: Uuid::from_u128(0x7A4E_0000 + number as u128),
        started: time(start),
        placement: case.placement,
        when_full: case.when_full,
        depth: case.depth,
        buffers: case.buffers,
        drift_max: case.drift_max,
        flush_interval: case.flush_interval,
        trim_ahead: case.trim_ahead,
        trim_interval: case.trim_interval,
        rest: if case.parts > 0 { 0 } else { case.rest },
        rest_turn: case.rest_turn,
        flow_indexes: case.flow_indexes,
    }
}

/// Steps a recording to its end. Viewers read when their time has come.
fn go_on(
    run: &mut Run<'_>,
    memory: &MemoryBuffers,
    drives: &Handle,
    absent: &[u16],
    look: &mut dyn FnMut(&Run<'_>),
) {
    let start = run.start;
    let mut viewers = run.round.viewers.iter();
    let mut viewer = viewers.next();
    loop {
        let now = run.recording.now();
        if let Some(looks) = viewer.filter(|viewer| now >= start + viewer.at) {
            let handle = drives.another(|d| !absent.contains(&d));
            view(run, memory, World::names(0, READ_BUFFERS), handle, absent, looks);
            viewer = viewers.next();
        }
        let until = viewer.map_or(Instant::from_nanos(u64::MAX), |v| (start + v.at).max(now));
        let step = run.step(until);
        look(run);
        if step != Step::Going {
            break;
        }
    }
}

impl World<'_> {
    /// One recording. `look` sees it after each step.
    ///
    /// # Panics
    /// If a law is broken.
    pub fn record(&mut self, round: &Round, look: &mut dyn FnMut(&Run<'_>)) -> Recorded {
        let number = self.rounds_done;
        self.rounds_done += 1;
        self.say(|| format!("round {number}: {round:?}"));
        let (image, records) = self.open_on_record(number);
        let superblocks: Vec<Superblock> =
            self.superblocks(&image).into_iter().map(|target| target.superblock).collect();
        let case = self.case;
        let start = self.drives.now();
        let stop_at = start + round.length;
        self.book.begin(number);
        self.clean &= round.faults.is_empty();
        self.kept_their_word &= round.faults.is_empty();
        self.drives.hub(|hub| hub.set_faults(faults(round, start)));
        let config = config(case, number, start);
        let take = config.take;
        let drives: Vec<DriveId> = image.members.iter().map(|m| m.drive).collect();
        let mut bank = self.drives.watched(|d| !self.absent.contains(&d), case.trick);
        let user = bank.user();
        let chunk_min = image.superblock.layout.chunk_min;
        let mut source = self.source(chunk_min, (start, stop_at), round.older);
        let layouts = image.members.iter().map(|member| member.layout).collect();
        source.maker = case.flow_indexes.then(|| Maker::new(case.seed ^ number as u64, layouts));
        let memory = self.memory.clone();
        let metadata = Self::names(READ_BUFFERS, case.metadata);
        let members = image.members.len() as u16;
        let mut core = Recorder::with_parity(config, image, Self::parity_means(case));
        if case.parts > 0 {
            core = core.with_parts((0..members).map(|member| member % case.parts).collect());
        }
        let sound_drive = self.has_sound_drive(round);
        let mut run = Run {
            recording: Recording::new(
                core,
                &mut bank,
                &memory,
                source,
                drives,
                superblocks,
                metadata,
            )
            .keeping_record(records),
            user,
            drives: self.drives.another(|_| true),
            book: &mut self.book,
            round,
            start,
            stop_at,
            buffers: case.buffers,
            rest_max: rest_max(case),
            protected_before: &mut self.protected_before,
            sound_drive,
            protections: round.protections.iter().copied().collect(),
            remember: round.remember,
            steps_more: round.steps_more,
            last: (start, 0),
            idle_since: None,
            state: Step::Going,
            ended: false,
        };
        go_on(&mut run, &memory, &self.drives, &self.absent, look);
        let end = End::of(run);
        self.conclude(round, take, end)
    }

    /// Opens the array and checks what was found: each member's superblock, and what the open had to do without.
    fn open_checked(&mut self) -> ArrayImage {
        let image = self.open();
        self.check_superblocks(&image);
        if image.members.iter().any(|m| !m.unindexed.is_empty()) {
            self.book.met.add(Outcome::Unindexed);
        }
        if !self.absent.is_empty() {
            self.book.met.add(Outcome::DegradedTake);
        }
        image
    }

    /// Opens the array and enters its newest take into the records of all members, as a recorder does before it writes anything. This
    /// may be cut short once, at any answer.
    fn open_on_record(&mut self, number: usize) -> (ArrayImage, TakeRecords) {
        let seed = self.case.seed >> 3;
        let cut = (seed as usize + number).is_multiple_of(8).then_some((seed >> 3) as u32 % 8);
        if let Some(mut answers) = cut {
            let image = self.open_checked();
            if !self.enter_newest(&image, &mut answers).1 {
                let power = seed.is_multiple_of(2);
                self.cut_short(power);
                self.judge(power);
            }
        }
        let mut image = self.open_checked();
        let mut answers = u32::MAX;
        let (records, whole) = self.enter_newest(&image, &mut answers);
        assert!(whole, "records: drives without faults take them");
        for take in self.found.iter() {
            assert!(records.get(*take).is_some(), "records: take {take} is not on record");
        }
        image.next_sequence = image.next_sequence.max(records.next_sequence());
        let there = (0..self.case.drives.len() as u16).filter(|d| !self.absent.contains(d));
        for record in records.iter() {
            self.book.records.keep(*record, there.clone());
        }
        (image, records)
    }

    /// Enters the newest take of an array into its records, or so much of it that so many commands are answered. Returns whether it
    /// was whole.
    fn enter_newest(&self, image: &ArrayImage, answers: &mut u32) -> (TakeRecords, bool) {
        let mut bank = self.user();
        let Ok(mut records) = TakeRecords::read(&mut self.reader(&mut bank), image) else {
            panic!("media: the bank never fails as a whole")
        };
        records.enter_newest(image);
        let there = image.members.iter().filter(|member| !member.is_missing());
        let update = records.update(there.map(|member| member.drive));
        let whole = self.carry_out(update, answers);
        (records, whole)
    }

    /// The source of a recording from the first instant of `times` to the second. Its buffers follow those for metadata.
    fn source(&self, chunk_min: u32, times: (Instant, Instant), older: Duration) -> Source {
        let case = self.case;
        let buffers = Self::names(READ_BUFFERS + case.metadata, case.buffers);
        Source::new(case, &self.memory, buffers, chunk_min, times, older, self.next_packet)
    }

    /// What parity takes of a recorder. Its buffers follow those of the source.
    fn parity_means(case: &Case) -> ParityMeans {
        let from = READ_BUFFERS + case.metadata + case.buffers;
        ParityMeans { buffers: Self::names(from, case.parity_buffers()), wait: case.group_wait }
    }

    /// Whether some drive is there that no fault keeps from writing.
    fn has_sound_drive(&self, round: &Round) -> bool {
        let harmless = |what: &What| matches!(what, What::Stalls | What::Slows(_));
        let writes_well = |d: u16| {
            !self.absent.contains(&d)
                && round.faults.iter().filter(|f| f.drive == d).all(|f| harmless(&f.what))
        };
        (0..self.case.drives.len() as u16).any(writes_well)
    }

    /// Notes how a recording ended, and lets some time pass, as it does before somebody starts the next one.
    fn conclude(&mut self, round: &Round, take: Uuid, end: End) -> Recorded {
        let End { over, ended, ledger, acknowledged, record, working, torn, lacks_members, source } =
            end;
        self.next_packet = source.next_packet;
        self.clean &= over && !lacks_members && ended;
        self.book.reused_unknown |= !self.clean;
        if source.overrun {
            self.book.met.add(Outcome::NoBuffer);
        }
        self.say(|| format!("the recording is {}", if over { "over" } else { "cut short" }));
        let power = !over && round.ending == Ending::PowerCut;
        if over {
            self.book.met.add(Outcome::Stopped);
            assert!(source.whole(), "memory: not every buffer has come back");
            self.finished(&source, &ledger, acknowledged, ended);
            let faulty = |member: &u16| round.faults.iter().any(|fault| fault.drive == *member);
            self.book.records.keep(record, working.into_iter().filter(|member| !faulty(member)));
        } else {
            self.book.met.add(if power { Outcome::PowerFailed } else { Outcome::Killed });
            if torn {
                self.book.met.add(Outcome::ProtectionCutShort);
            }
            self.unsubmitted.insert(take, source.told.stored - self.book.submitted());
            // A ring may go back to before a segment whose first chunk the power cut took.
            self.book.in_order &= !power;
            self.drives.hub(|hub| hub.crash(power));
        }
        self.drives.hub(|hub| hub.set_faults(Vec::new()));
        let mut bank = self.user();
        let waited = bank.wait_for(Duration::from_millis(100), &mut Vec::new());
        assert_eq!(waited, Ok(()));
        let members = 0..self.case.drives.len() as u16;
        Recorded {
            finished: over,
            power_failed: power,
            ended,
            superblocks_torn: torn,
            full: self.book.full,
            no_member: self.book.no_member,
            overrun: source.overrun,
            failed: members.filter(|&member| self.book.has_failed(member)).collect(),
            ledger,
        }
    }

    /// The account of a take that was finished.
    fn finished(&self, source: &Source, ledger: &Ledger, acknowledged: Count, ended: bool) {
        let told = &source.told;
        assert_eq!(ledger.offered, told.offered, "ledger: everything offered is in it");
        let of_source = [Stage::Interface, Stage::KernelRing, Stage::NoBuffer];
        for stage in of_source.into_iter().chain([Stage::Filtered, Stage::Cut]) {
            assert_eq!(ledger.lost(stage), told.lost(stage), "ledger: {stage}");
        }
        assert_eq!(ledger.stored, acknowledged, "ledger: what is stored was acknowledged");
        assert_eq!(ledger.stored.packets, self.book.stored(), "ledger: what was stored");
        let lost = ledger.lost(Stage::ArrayFull) + ledger.lost(Stage::DeviceError);
        assert_eq!(told.stored, ledger.stored + lost, "ledger: each chunk is stored or named");
        self.book.agrees_on_shortened(ledger);
        let Book { full, no_member, .. } = self.book;
        assert!(full || no_member || lost.is_zero(), "ledger: {lost:?} is lost without a reason");
        assert!(full || no_member || ended, "end: room is kept for the chunk that ends a take");
        self.holds_a_prefix(source, ledger);
    }

    /// Unless a member failed, a full array holds the first chunks of the take, without a hole, and lost is what came after them.
    fn holds_a_prefix(&self, source: &Source, ledger: &Ledger) {
        if (0..self.case.drives.len() as u16).any(|member| self.book.has_failed(member)) {
            return;
        }
        assert!(ledger.lost(Stage::DeviceError).is_zero(), "ledger: no device has failed");
        let stored = self.book.this_round().filter(|c| c.acknowledged && c.contents.packets > 0);
        let stored: BTreeSet<u64> = stored.map(|c| c.contents.first).collect();
        // A chunk without packets has no number that tells it from the next.
        let handed: Vec<_> = source.handed.iter().filter(|contents| contents.packets > 0).collect();
        let (first, rest) = handed.split_at(stored.len());
        let hole = first.iter().find(|contents| !stored.contains(&contents.first));
        assert_eq!(hole, None, "full: the first chunks are stored, without a hole");
        let rest = rest.iter().fold(Count::ZERO, |sum, contents| sum + contents.count());
        assert_eq!(ledger.lost(Stage::ArrayFull), rest, "full: what came later is lost");
    }
}
