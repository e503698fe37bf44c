//! One recording under way, step by step, with the laws that hold while it runs; and readers beside it, whose waiting
//! is what lets it go on.

use std::collections::VecDeque;

use base::memory::MemoryBuffers;
use base::{
    Bank, BankError, BufferId, Command, Completion, Duration, Full, Geometry, Instant, Timestamp,
};
use format::superblock::Protected;
use recorder::live;
use recorder::open::{self, Look, OpenError};
use recorder::reader::{ReadError, Reader};
use recorder::run::Recording;
use recorder::takes::Catalog;
use recorder::{Event, TimeRange};

use crate::adversary::Handle;
use crate::book::Book;
use crate::case::{Ending, Round, Viewer};
use crate::fault::{Kind, What};
use crate::judge::judge_live;
use crate::outcome::{Met, Outcome};
use crate::reading::extract_all;
use crate::source::{EPOCH_NS, Source, time};

/// Steps without time passing after which a recording is taken to run in a circle.
const STANDSTILL_MAX: u32 = 20_000;
/// Time without a command under way after which a recording that has something to do is taken to be stuck. Longer than
/// any flush interval that a case chooses.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Time after the source's end within which every recording is over, whatever its drives do: stalls are seconds long.
const AFTER_MAX: Duration = Duration::from_secs(900);

/// How a step left the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It goes on.
    Going,
    /// It is finished.
    Over,
    /// It is to be cut short now.
    Cut,
}

/// One recording under way.
pub struct Run<'a> {
    /// The recording.
    pub recording: Recording<'a, Handle, MemoryBuffers, Source>,
    /// The recording's own name among the drives' users.
    pub user: usize,
    /// A view of the drives past the seam.
    pub drives: Handle,
    /// What is known.
    pub book: &'a mut Book,
    /// What is to happen.
    pub round: &'a Round,
    /// When it began.
    pub start: Instant,
    /// When the source stops.
    pub stop_at: Instant,
    /// Chunk buffers.
    pub buffers: u32,
    /// Members that may rest at a time.
    pub rest_max: usize,
    /// The ranges that superblocks may still have if a change of them is cut short.
    pub protected_before: &'a mut Vec<Vec<Protected>>,
    /// Whether some drive writes without error, whatever the others do.
    pub sound_drive: bool,
    /// Protections still to come.
    pub protections: VecDeque<(Duration, Option<(u8, u8)>)>,
    /// When to remember a drive's state.
    pub remember: Option<(u16, Duration)>,
    /// Steps that a crash leaves after the time is over.
    pub steps_more: u32,
    /// The last step's moment, and how many steps stood there.
    pub last: (Instant, u32),
    /// Since when nothing is under way though something is to be done.
    pub idle_since: Option<Instant>,
    /// How it stands.
    pub state: Step,
    /// Whether the take's end was acknowledged.
    pub ended: bool,
}

impl Run<'_> {
    /// One step of the recording, and the laws.
    ///
    /// # Panics
    /// If a law is broken.
    pub fn step(&mut self, until: Instant) -> Step {
        if self.state != Step::Going {
            return self.state;
        }
        let now = self.recording.now();
        if self.round.ending != Ending::Stop && now >= self.stop_at {
            if self.steps_more == 0 {
                self.state = Step::Cut;
                return self.state;
            }
            self.steps_more -= 1;
        }
        if let Some((drive, at)) = self.remember
            && now >= self.start + at
        {
            self.drives.hub(|hub| hub.media(drive).remember());
            self.remember = None;
        }
        self.protect(now);
        if self.recording.core().refusing() {
            self.recording.feed().stopped = true;
        }
        let until = self
            .protections
            .front()
            .map(|&(at, _)| self.start + at)
            .filter(|&at| at > now)
            .into_iter()
            .fold(until.min(now + Duration::from_millis(100)), Instant::min);
        let mut events = Vec::new();
        let over = match self.recording.step(until, &mut events) {
            Ok(over) => over,
            Err(error) => panic!("the bank never fails as a whole: {error}"),
        };
        self.ended |= events.iter().any(|e| matches!(e, Event::Acknowledged { end: true, .. }));
        let (asked, written, lies) = self.drives.hub(|hub| {
            let lies = std::mem::take(&mut hub.lies);
            (std::mem::take(&mut hub.asked), std::mem::take(&mut hub.written), lies)
        });
        self.book.enter(asked, written, &mut events, self.recording.feed());
        for (drive, start, _) in lies {
            if let Some(segment) = self.book.segment_of(drive, start) {
                self.book.excuse(drive, segment);
            }
        }
        let reused_to_ns = self.recording.core().reused_to_ns();
        self.book.says_kept_since(reused_to_ns);
        self.settled_protection();
        self.laws();
        if over {
            self.state = Step::Over;
        }
        self.state
    }

    fn protect(&mut self, now: Instant) {
        let Some(&(at, shares)) = self.protections.front() else { return };
        if now < self.start + at {
            return;
        }
        let ranges: Vec<Protected> =
            shares.into_iter().map(|shares| protected(now, self.round.older, shares)).collect();
        if self.recording.protect(ranges.clone()) {
            self.protections.pop_front();
            self.book.in_order = false;
            self.protected_before.push(std::mem::replace(&mut self.book.protected, ranges));
        }
    }

    /// Once a change of the superblocks is done, no older one counts. A member that failed leaves it to the others; if
    /// none works, it may stand on any.
    fn settled_protection(&mut self) {
        let stands = self.recording.update_outcome().is_ok() || self.sound_drive;
        if !self.recording.updating() && stands && !self.protected_before.is_empty() {
            self.protected_before.clear();
            self.book.met.add(Outcome::Protected);
        }
    }

    fn laws(&mut self) {
        let core = self.recording.core();
        let ledger = *core.ledger();
        assert!(ledger.balances(), "ledger: it does not balance: {ledger:?}");
        let held = core.buffers_held();
        assert!(held <= self.buffers, "memory: {held} buffers are held of {}", self.buffers);
        let resting = core.members().filter(|m| m.working && m.resting).count();
        let failed = core.members().any(|m| !m.working);
        let count = core.members().count();
        assert!(resting <= self.rest_max, "rest: {resting} members rest, not {}", self.rest_max);
        // Who rests takes over from one that fails when there is something to take over.
        assert!(failed || resting < count, "rest: all {count} members rest");
        let out = self.recording.feed().out();
        assert!(out >= held as usize, "memory: {held} buffers are held and {out} were given");
        let now = self.recording.now();
        let steps = if now == self.last.0 { self.last.1 + 1 } else { 0 };
        self.last = (now, steps);
        assert!(steps < STANDSTILL_MAX, "progress: it runs in a circle at {now:?}");
        assert!(now < self.stop_at + AFTER_MAX, "progress: not over at {now:?}");
        let busy = self.drives.hub(|hub| hub.has_under_way(self.user));
        let to_do = held > 0 || self.recording.feed().stopped;
        if busy || !to_do || self.state != Step::Going {
            self.idle_since = None;
        }
        let since = *self.idle_since.get_or_insert(now);
        assert!(
            now.since(since) < IDLE_MAX,
            "progress: nothing is under way since {since:?}, with {held} buffers held"
        );
    }
}

/// A range between two shares of the time so far.
pub fn protected(now: Instant, oldest: Duration, shares: (u8, u8)) -> Protected {
    let TimeRange { from, to } = range(now, oldest, shares);
    Protected { from, to, made: time(now), label: "kept".into() }
}

/// The time between two shares of 1/255 of all time so far; half of them are so much older.
pub fn range(now: Instant, oldest: Duration, (from, to): (u8, u8)) -> TimeRange {
    let begin = EPOCH_NS - if (from ^ to) & 1 == 0 { 0 } else { oldest.as_nanos() };
    let at = |share: u8| Timestamp::from_nanos(begin + now.as_nanos() / 255 * u64::from(share));
    TimeRange { from: at(from), to: at(to) }
}

/// A reader's bank: while it waits, the recording goes on.
struct Beside<'r, 'a> {
    handle: Handle,
    run: &'r mut Run<'a>,
}

impl Bank for Beside<'_, '_> {
    fn drives(&self) -> &[Geometry] {
        self.handle.drives()
    }

    fn now(&self) -> Instant {
        self.handle.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        self.handle.submit(command)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        let over = |until: Instant, now: Instant| until <= now;
        if !self.handle.answered()
            && self.handle.pending() | until.is_some()
            && !until.is_some_and(|until| over(until, self.now()))
        {
            let step = self.run.step(until.unwrap_or(Instant::from_nanos(u64::MAX)));
            match step {
                Step::Going => {}
                Step::Over => return self.handle.wait(until, done),
                Step::Cut => {
                    let reason = "the machine went down".to_owned();
                    return Err(BankError { attempted: "waiting", reason });
                }
            }
        }
        if self.handle.answered() {
            self.handle.wait(Some(self.now()), done)?;
        }
        Ok(())
    }
}

/// Reads a range of everything while the recording goes on, and judges what comes.
///
/// # Panics
/// If a law is broken.
pub fn view(
    run: &mut Run<'_>,
    memory: &MemoryBuffers,
    buffers: Vec<BufferId>,
    handle: Handle,
    absent: &[u16],
    viewer: &Viewer,
) {
    // A drive may fail to read: then what can't be had is named, and that is all.
    let faulty = run
        .round
        .faults
        .iter()
        .any(|f| matches!(f.what, What::Dies | What::Fails { kind: Kind::Read, .. }));
    let due: Vec<u64> = run
        .book
        .chunks
        .values()
        .filter(|c| c.is_due() && !absent.contains(&c.place.member))
        .map(|c| c.record.sequence)
        .collect();
    let range = match viewer.range {
        (0, 255) => TimeRange::ALL,
        shares => range(run.recording.now(), run.round.older, shares),
    };
    let mut met = Met::default();
    let mut bank = Beside { handle, run };
    let seen = look(&mut bank, memory, buffers, !absent.is_empty(), range, viewer);
    match seen {
        Ok((catalog, extracted)) => {
            met.add(Outcome::LiveExtraction);
            extracted.judge(&catalog, range, run.book, &mut met);
            judge_live(run.book, &due, &catalog, &extracted, range, faulty);
        }
        Err(OpenError::Read(ReadError::Bank(_))) => met.add(Outcome::CrashUnderReader),
        Err(OpenError::Read(ReadError::Device { .. })) if faulty => met.add(Outcome::OpenRefused),
        Err(error) => panic!("live: the array can't be opened: {error}"),
    }
    run.book.met.join(met);
}

fn look(
    bank: &mut Beside<'_, '_>,
    memory: &MemoryBuffers,
    buffers: Vec<BufferId>,
    degraded: bool,
    range: TimeRange,
    viewer: &Viewer,
) -> Result<(Catalog, crate::reading::Extracted), OpenError> {
    // Every second reader can ask the recorder how far it has written.
    let asks = viewer.at.as_nanos().is_multiple_of(2);
    let ask = |bank: &Beside<'_, '_>| asks.then(|| bank.run.recording.core().written());
    let mut reader = Reader { bank, memory, buffers };
    let written = ask(reader.bank);
    let look = Look { degraded, known: None, written: written.as_ref(), by_records: true };
    let mut image = open::open_to_read(&mut reader, look)?;
    let catalog = match viewer.patient {
        true => live::catalog(&mut reader, &mut image, degraded, range, ask)?,
        false => Catalog::load(&mut reader, &image, range)?,
    };
    let extracted =
        extract_all(&mut reader, &image, &catalog, range, (viewer.whole, viewer.limit))?;
    Ok((catalog, extracted))
}
