//! A world for one seed: recordings one after another on the same drives, accidents between them, and a judgement
//! after each. All in virtual time, on one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use base::memory::MemoryBuffers;
use base::{Bank, BufferId, Duration, Instant, Timestamp};
use format::layout::SUPERBLOCK_BYTES;
use format::superblock::{Member, Protected};
use format::{ChunkRecord, Count, Layout, Superblock};
use recorder::open::{self, Look};
use recorder::reader::Reader;
use recorder::takes::Catalog;
use recorder::{ArrayImage, TimeRange};
use uuid::Uuid;

use crate::adversary::Handle;
use crate::book::Book;
use crate::case::{Accident, CHUNK_MAX, Case, Purpose};
use crate::fault::{Fault, What};
use crate::flow_indexing;
use crate::judge::{self, Circumstances};
use crate::media::PAGE_BYTES;
use crate::outcome::{Met, Outcome};
use crate::parity;
use crate::reading::extract_all;
use crate::run::range;
use crate::scrubbing;
use crate::source::EPOCH_NS;
use crate::trace::{Lines, Trace};

mod recording;
mod superblocks;

pub use recording::Recorded;

/// Buffers that readers use; those for metadata and chunks are named behind them.
const READ_BUFFERS: u32 = 6;

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// All commands and answers as one number: the same for the same seed.
    pub hash: u64,
    /// Commands and answers.
    pub steps: u64,
    /// Chunks that were written.
    pub chunks: u64,
    /// Virtual time that passed.
    pub time: Duration,
    /// What was met.
    pub met: Met,
}

/// A law was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// Which law, and how.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {}; `cargo xtask chaos --seed {} --trace` shows it step by step",
            self.seed, self.message, self.seed
        )
    }
}

impl std::error::Error for Violation {}

/// Runs a case; a panic, whosever, is a violation.
///
/// # Errors
/// [`Violation`] if a law is broken.
pub fn judged(case: &Case, lines: Option<Lines>) -> Result<Report, Violation> {
    caught(case.seed, || {
        let mut world = World::new(case, lines);
        world.run();
        world.report()
    })
}

/// Does something in the world of a seed; a panic, whosever, is a violation.
///
/// # Errors
/// [`Violation`] if there is one.
pub fn caught<T>(seed: u64, body: impl FnOnce() -> T) -> Result<T, Violation> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let message = text.unwrap_or_else(|| "a panic without words".to_owned());
        Violation { seed, message }
    })
}

/// The drives of a case, the array on them, and the book of it.
pub struct World<'c> {
    case: &'c Case,
    memory: MemoryBuffers,
    /// A view of the drives past the seam.
    pub drives: Handle,
    /// What is known.
    pub book: Book,
    /// Recordings so far.
    rounds_done: usize,
    next_packet: u64,
    /// The ranges that superblocks may have beside the book's, if a change of them was cut short.
    protected_before: Vec<Vec<Protected>>,
    /// The members that superblocks may have together; one, unless a change of them was cut short.
    members: Vec<Vec<Member>>,
    /// Drives that lack what was recorded while they were away. None of them takes a lost member's place: that one would be rebuilt.
    strayed: Vec<u16>,
    /// Whether the newest superblock is there for certain.
    superblocks_known: bool,
    /// What takes that were cut short may have placed without asking a drive for it.
    unsubmitted: BTreeMap<Uuid, Count>,
    absent: Vec<u16>,
    /// The newest take of which any member held chunks at the last judgement.
    found: Option<Uuid>,
    /// Whether nothing has gone wrong so far, crashes included.
    clean: bool,
    /// Whether the drives have done as they promise so far, and none has ever been away. Somebody may have been killed, and the power
    /// may have failed.
    kept_their_word: bool,
    /// Whether judgements scrub, too: a test that has damaged indexes knows what a scrub would find.
    pub scrubs: bool,
}

impl<'c> World<'c> {
    /// An array on new drives; its trace is told to `lines`.
    ///
    /// # Panics
    /// If the case's drives are too small for an array.
    pub fn new(case: &'c Case, lines: Option<Lines>) -> Self {
        let buffers = READ_BUFFERS + case.metadata + case.buffers + case.parity_buffers();
        let memory = MemoryBuffers::new(buffers, CHUNK_MAX as usize);
        let trace = lines.map_or_else(Trace::default, Trace::told);
        let drives = Handle::new(&case.drives, &memory, case.seed, trace);
        let members: Vec<Member> = case
            .drives
            .iter()
            .map(|d| Member {
                capacity_bytes: d.capacity_bytes,
                identity: "hostile".into(),
                joined_ns: 0,
            })
            .collect();
        let layouts: Vec<Layout> = case
            .drives
            .iter()
            .map(|d| match Layout::new(d.capacity_bytes, case.segment_bytes, CHUNK_MAX) {
                Ok(layout) => layout,
                Err(error) => panic!("a case's drives can be divided: {error}"),
            })
            .collect();
        for (member, layout) in (0u16..).zip(&layouts) {
            let superblock = Superblock {
                array: Uuid::from_u128(0xA44A),
                name: "chaos".into(),
                member,
                members: members.clone(),
                layout: *layout,
                created: Timestamp::from_nanos(EPOCH_NS),
                generation: 1,
                protected: Vec::new(),
                parity: case.parity,
            };
            let capacity = case.drives[usize::from(member)].capacity_bytes;
            for (offset, page) in padding() {
                drives.hub(|hub| hub.poke(member, *offset, page));
            }
            for offset in [0, Layout::copy_offset(capacity)] {
                drives.hub(|hub| hub.poke(member, offset, &superblock.encode(offset)));
            }
        }
        Self {
            case,
            memory,
            drives,
            book: Book::new(layouts, case.parity, case.depth),
            rounds_done: 0,
            next_packet: 0,
            protected_before: Vec::new(),
            members: vec![members],
            strayed: Vec::new(),
            superblocks_known: true,
            unsubmitted: BTreeMap::new(),
            absent: Vec::new(),
            found: None,
            clean: true,
            kept_their_word: case.trick.is_none(),
            scrubs: true,
        }
    }

    /// Everything that the case has: its recordings, the accidents between them, and the judgements.
    ///
    /// # Panics
    /// If a law is broken.
    pub fn run(&mut self) {
        for (number, round) in self.case.rounds.iter().enumerate() {
            let cut = self.record(round, &mut |_| {}).power_failed;
            self.judge(cut);
            self.read_without_members(number);
            // Who was not there is there again.
            if !std::mem::take(&mut self.absent).is_empty() {
                self.judge(false);
            }
            if round.misread {
                self.read_with_drives_that_misread();
            }
            if let Some((drive, accident)) = round.accident
                && self.happens(drive, accident)
            {
                self.judge(false);
            }
            for &change in &round.changes {
                let strayed = |drive| self.strayed.contains(&drive);
                if !self.absent.is_empty()
                    || matches!(change.purpose, Purpose::Join(drive, _) if strayed(drive))
                {
                    continue;
                }
                let cut = self.change_superblocks(change);
                self.judge(cut);
            }
        }
    }

    /// What it came to so far.
    pub fn report(&self) -> Report {
        let time = self.drives.now().since(Instant::START);
        let (hash, steps, mut met) =
            self.drives.hub(|hub| (hub.trace.hash(), hub.trace.steps(), hub.met));
        met.join(self.book.met);
        Report { hash, steps, chunks: self.book.chunks.len() as u64, time, met }
    }

    fn say(&self, text: impl FnOnce() -> String) {
        self.drives.hub(|hub| hub.trace.say(text));
    }

    fn names(from: u32, count: u32) -> Vec<BufferId> {
        (from..from + count).map(BufferId).collect()
    }

    /// Another user of the drives that are there.
    pub fn user(&self) -> Handle {
        self.drives.another(|d| !self.absent.contains(&d))
    }

    /// A reader on a user's drives.
    pub fn reader<'b>(&'b self, bank: &'b mut Handle) -> Reader<'b, Handle, MemoryBuffers> {
        Reader { bank, memory: &self.memory, buffers: Self::names(0, READ_BUFFERS) }
    }

    /// Opens the array.
    ///
    /// # Panics
    /// If it can't be opened.
    pub fn open(&self) -> ArrayImage {
        let mut bank = self.user();
        match open::open_some(&mut self.reader(&mut bank), !self.absent.is_empty()) {
            Ok(image) => image,
            Err(error) => panic!("media: the array can't be opened: {error}"),
        }
    }

    /// Judges what is left without some members, which are there again afterwards. `cut`: the power has failed since the last time.
    ///
    /// # Panics
    /// If a law is broken.
    pub fn judge_without(&mut self, missing: &[u16], cut: bool) -> Catalog {
        let absent = std::mem::replace(&mut self.absent, missing.to_vec());
        let catalog = self.judge(cut);
        self.absent = absent;
        catalog
    }

    /// Reads everything and holds it against the book. `cut`: the power has failed since the last time.
    ///
    /// # Panics
    /// If a law is broken.
    pub fn judge(&mut self, cut: bool) -> Catalog {
        let image = self.open();
        let mut bank = self.user();
        let mut reader = self.reader(&mut bank);
        let all = TimeRange::ALL;
        let catalog = match Catalog::load(&mut reader, &image, all) {
            Ok(catalog) => catalog,
            Err(error) => panic!("media: the array can't be listed: {error}"),
        };
        let mut met = Met::default();
        let whole = !self.case.seed.is_multiple_of(2);
        let Ok(extracted) = extract_all(&mut reader, &image, &catalog, all, (whole, None)) else {
            panic!("media: the bank never fails as a whole")
        };
        extracted.judge(&catalog, all, &self.book, &mut met);
        extracted.judge_at_rest(&catalog, &self.book);
        self.read_by_records(&catalog);
        // A part of it by time gives the same part.
        if self.case.seed.is_multiple_of(3) {
            let shares = ((self.case.seed >> 2) as u8, (self.case.seed >> 5) as u8);
            let part = self.span(shares);
            listed_by_time(&mut reader, &image, &catalog, &self.book, part);
            if let Some(part) = within_a_loss(&catalog, self.case.seed) {
                listed_by_time(&mut reader, &image, &catalog, &self.book, part);
            }
        }
        let clean = self.clean && self.absent.is_empty();
        let there = |d: &u16| !self.absent.contains(d);
        let volatile = |d: &u16| cut && there(d) && self.case.drives[usize::from(*d)].volatile;
        let circumstances = Circumstances {
            absent: &self.absent,
            cut: (0..self.case.drives.len() as u16).filter(volatile).collect(),
            unsubmitted: &self.unsubmitted,
            clean,
            in_order: self.case.queues == 1 && self.case.oldest() == Duration::ZERO,
        };
        judge::judge(&mut self.book, &catalog, &extracted, &circumstances);
        self.book.records.judge(&catalog, there);
        self.book.met.join(met);
        let chunks = image.members.iter().filter_map(|member| member.head.as_ref()?.newest);
        let newest = chunks.filter(|chunk| !chunk.is_filler()).max_by_key(|chunk| chunk.sequence);
        self.found = newest.map(|chunk| chunk.take.uuid);
        let book = &mut self.book;
        self.drives.hub(|hub| parity::judge(book, hub, self.case.seed));
        let mut bank = self.user();
        if self.scrubs {
            scrubbing::judge(&mut self.reader(&mut bank), &image, &catalog, &self.book, clean);
        }
        if self.case.seed % 4 == 1 {
            let salt = self.case.seed ^ (self.book.chunks.len() as u64) << 32;
            let mut reader = self.reader(&mut bank);
            let met = flow_indexing::judge(&mut reader, &image, &catalog, salt);
            self.book.met.join(met);
        }
        catalog
    }

    /// The time between two shares of all time so far, of 1/255.
    fn span(&self, (one, other): (u8, u8)) -> TimeRange {
        range(self.drives.now(), self.case.oldest(), (one.min(other), one.max(other)))
    }

    /// Judges a listing and an extraction of the time between two shares of all time so far, of 1/255.
    ///
    /// # Panics
    /// If a law is broken.
    pub fn judge_span(&self, catalog: &Catalog, shares: (u8, u8)) {
        let image = self.open();
        let mut bank = self.user();
        let part = self.span(shares);
        listed_by_time(&mut self.reader(&mut bank), &image, catalog, &self.book, part);
    }

    /// A reader that leaves chunks unread which the members' records call flushed finds all that one finds who reads them, but for what
    /// a ring has given up and a lost write brought back, and whatever it finds more is the truth or is named.
    fn read_by_records(&self, careful: &Catalog) {
        let mut bank = self.user();
        let mut reader = self.reader(&mut bank);
        let (degraded, all) = (!self.absent.is_empty(), TimeRange::ALL);
        let look = Look { degraded, by_records: true, ..Look::default() };
        let seen = open::open_to_read(&mut reader, look)
            .and_then(|image| Ok((Catalog::load(&mut reader, &image, all)?, image)));
        let (catalog, image) = match seen {
            Ok(seen) => seen,
            Err(error) => panic!("media: the array can't be opened by its records: {error}"),
        };
        let numbers = |catalog: &Catalog| -> BTreeSet<u64> {
            let number = |record: &ChunkRecord| record.replaces.unwrap_or(record.sequence);
            catalog.entries.iter().map(|entry| number(&entry.record)).collect()
        };
        let (careful, by_records) = (numbers(careful), numbers(&catalog));
        let given_up = |n: &&u64| self.book.chunks.get(n).is_some_and(|chunk| chunk.given_up);
        let missed: Vec<&u64> = careful.difference(&by_records).filter(|n| !given_up(n)).collect();
        assert!(missed.is_empty(), "records: chunks {missed:?} are found by reading them alone");
        let more: Vec<&u64> = by_records.difference(&careful).collect();
        if more.is_empty() {
            return;
        }
        // What a ring was writing over when the power failed is not whole any more.
        let untrue: Vec<&&u64> = more.iter().filter(|n| !given_up(n)).collect();
        assert!(
            !self.kept_their_word || untrue.is_empty(),
            "records: chunks {untrue:?} are called flushed, and are not whole"
        );
        let Ok(extracted) = extract_all(&mut reader, &image, &catalog, all, (true, None)) else {
            panic!("media: the bank never fails as a whole")
        };
        extracted.judge(&catalog, all, &self.book, &mut Met::default());
    }

    /// Without as many members as there are parities, everything that was acknowledged can still be had.
    fn read_without_members(&mut self, round: usize) {
        let (count, salt) = (self.case.drives.len(), self.case.seed as usize + round);
        if self.case.parity == 0 || !self.absent.is_empty() || !salt.is_multiple_of(2) {
            return;
        }
        let gone: Vec<u16> =
            (0..self.case.parity).map(|n| ((salt / 2 + usize::from(n)) % count) as u16).collect();
        self.say(|| format!("without members {gone:?}"));
        let mut bank = self.drives.another(|d| !gone.contains(&d));
        let mut reader = self.reader(&mut bank);
        let all = TimeRange::ALL;
        let seen = open::open_some(&mut reader, true)
            .and_then(|image| Ok((Catalog::load(&mut reader, &image, all)?, image)));
        let (catalog, image) = match seen {
            Ok(seen) => seen,
            Err(error) => panic!("parity: the array can't be opened without {gone:?}: {error}"),
        };
        let Ok(extracted) = extract_all(&mut reader, &image, &catalog, all, (true, None)) else {
            panic!("media: the bank never fails as a whole")
        };
        extracted.judge(&catalog, all, &self.book, &mut Met::default());
        extracted.judge_at_rest(&catalog, &self.book);
        parity::judge_without(&mut self.book, &catalog, &extracted, &gone);
    }

    /// Whatever drives give, what is taken for the truth is the truth; and nothing panics.
    fn read_with_drives_that_misread(&mut self) {
        let forever = Instant::from_nanos(u64::MAX);
        let faults = (0..self.case.drives.len() as u16).flat_map(|drive| {
            [What::CorruptsReads(10), What::MisdirectsReads(10)].map(|what| Fault {
                drive,
                from: Instant::START,
                to: forever,
                what,
            })
        });
        let faults = faults.collect();
        self.drives.hub(|hub| hub.set_faults(faults));
        let mut bank = self.user();
        let mut reader = self.reader(&mut bank);
        let mut met = Met::default();
        let seen = open::open_some(&mut reader, !self.absent.is_empty())
            .and_then(|image| Ok((Catalog::load(&mut reader, &image, TimeRange::ALL)?, image)));
        match seen {
            Ok((catalog, image)) => {
                let all = TimeRange::ALL;
                let extracted = extract_all(&mut reader, &image, &catalog, all, (true, None));
                let Ok(extracted) = extracted else {
                    panic!("media: the bank never fails as a whole")
                };
                extracted.judge(&catalog, all, &self.book, &mut met);
            }
            Err(_) => met.add(Outcome::OpenRefused),
        }
        self.book.met.join(met);
        self.drives.hub(|hub| hub.set_faults(Vec::new()));
    }

    /// Something happens to a drive between two recordings. Returns whether it did.
    fn happens(&mut self, drive: u16, accident: Accident) -> bool {
        self.say(|| format!("drive {drive}: {accident:?}"));
        let layout = self.book.layouts[usize::from(drive)];
        let happened = match accident {
            Accident::Stale => {
                self.superblocks_known = false;
                self.drives.hub(|hub| {
                    let stale = hub.media(drive).come_back_stale();
                    if stale {
                        hub.met.add(Outcome::Stale);
                    }
                    stale
                })
            }
            Accident::Rot(at, length) => {
                let share = layout.segments * layout.segment_bytes / 256;
                let from = layout.segment_offset(0) + share * u64::from(at);
                let length = (share * u64::from(length) / 16).max(512);
                let end = (from + length).min(layout.segment_offset(layout.segments));
                self.drives.hub(|hub| hub.media(drive).rot(from, end - from));
                for offset in [from, end - 1] {
                    if let Some(segment) = self.book.segment_of(drive, offset) {
                        self.book.excuse(drive, segment);
                    }
                }
                true
            }
            Accident::Swapped(share) if self.case.drives.len() > 1 => self.swap(drive, share),
            Accident::Absent if self.case.drives.len() > 1 => {
                self.superblocks_known = false;
                // It was taken out in order.
                self.drives.hub(|hub| {
                    let changes = hub.media(drive).changes();
                    hub.media(drive).flush(changes);
                    hub.met.add(Outcome::Absent);
                });
                self.absent.push(drive);
                true
            }
            Accident::Absent | Accident::Swapped(_) => false,
        };
        if happened && matches!(accident, Accident::Stale | Accident::Absent) {
            self.strayed.push(drive);
        }
        if happened && accident == Accident::Stale {
            self.book.excuse_round(drive);
            self.book.records.lose(drive);
        }
        self.clean &= !happened;
        self.kept_their_word &= !happened;
        self.book.reused_unknown |= happened;
        happened
    }

    /// A segment of a drive changes places with the one that lies there on the next drive.
    fn swap(&mut self, drive: u16, share: u8) -> bool {
        let other = (drive + 1) % self.case.drives.len() as u16;
        let layouts = [drive, other].map(|d| self.book.layouts[usize::from(d)]);
        let segments = layouts[0].segments.min(layouts[1].segments);
        let segment = u64::from(share) * segments / 256;
        let at = layouts[0].segment_offset(segment);
        self.drives.hub(|hub| {
            let contents = [drive, other].map(|d| {
                let mut bytes = vec![0; layouts[0].segment_bytes as usize];
                hub.media(d).read(at, &mut bytes);
                bytes
            });
            hub.poke(drive, at, &contents[1]);
            hub.poke(other, at, &contents[0]);
            hub.met.add(Outcome::Swapped);
        });
        self.book.excuse(drive, segment);
        self.book.excuse(other, segment);
        true
    }
}

/// The pages that lie between a superblock and the data, each with its offset. Pages of zeros are left out: a new drive
/// has them already. They are the same for every member, and a tenth of a seed's time when looked for in each.
fn padding() -> &'static [(u64, Vec<u8>)] {
    static PAGES: LazyLock<Vec<(u64, Vec<u8>)>> = LazyLock::new(|| {
        let offsets = (SUPERBLOCK_BYTES..).step_by(PAGE_BYTES);
        let padding = Superblock::padding();
        let pages = offsets.zip(padding.chunks(PAGE_BYTES));
        pages
            .filter(|(_, page)| page.iter().any(|&byte| byte != 0))
            .map(|(offset, page)| (offset, page.to_vec()))
            .collect()
    });
    &PAGES
}

/// A moment of one of the losses, or None without a loss: what tells how much was lost may lie far from it.
fn within_a_loss(catalog: &Catalog, seed: u64) -> Option<TimeRange> {
    let takes = catalog.takes().into_iter();
    let losses: Vec<_> = takes.flat_map(|take| take.gaps.into_iter().chain(take.holes)).collect();
    let loss = losses.get(seed as usize / 3 % losses.len().max(1))?;
    let length = loss.to_ns.saturating_sub(loss.from_ns);
    let at = loss.from_ns + length / 256 * (seed >> 4 & 255);
    Some(TimeRange { from: Timestamp::from_nanos(at), to: Timestamp::from_nanos(at + 1) })
}

/// A listing by time gives the same as that part of the whole, whatever it leaves unread, and an extraction what lies in it.
fn listed_by_time(
    reader: &mut Reader<'_, Handle, MemoryBuffers>,
    image: &ArrayImage,
    all: &Catalog,
    book: &Book,
    part: TimeRange,
) {
    let Ok(by_time) = Catalog::load(reader, image, part) else {
        panic!("media: the array can't be listed by time")
    };
    let inside = |catalog: &Catalog| -> Vec<u64> {
        let (from, to) = (part.from.as_nanos(), part.to.as_nanos());
        let inside = catalog.entries.iter().filter(|e| e.record.summary.overlaps(from, to));
        inside.map(|e| e.record.sequence).collect()
    };
    let (mut listed, mut whole) = (inside(&by_time), inside(all));
    if book.groups.parity > 0 {
        // Of what lies behind a hole only the parity chunks that are read can tell, which may be others.
        let due = |sequence: &u64| book.chunks.get(sequence).is_some_and(|c| c.is_due());
        listed.retain(due);
        whole.retain(due);
    }
    assert_eq!(listed, whole, "media: a listing by time differs");
    let Ok(extracted) = extract_all(reader, image, &by_time, part, (true, None)) else {
        panic!("media: the bank never fails as a whole")
    };
    extracted.judge(&by_time, part, book, &mut Met::default());
    extracted.judge_at_rest(&by_time, book);
    // Which of them a ring explains, and so when they end, may stand in a chunk that one listing has not read.
    let named = |catalog: &Catalog| -> Vec<(u64, u64, Count, u64)> {
        let takes = catalog.takes().into_iter();
        let gaps = takes.flat_map(|take| take.gaps.into_iter().chain(take.holes));
        let touched = gaps.filter(|gap| gap.touches(part));
        touched.map(|g| (g.first_sequence, g.last_sequence, g.count, g.from_ns)).collect()
    };
    // With parity, chunks outside the span may be known in one listing and not in the other.
    if book.groups.parity == 0 {
        let (by_time, whole) = (named(&by_time), named(all));
        for loss in &by_time {
            assert!(whole.contains(loss), "media: a listing by time names {loss:?}, not {whole:?}");
        }
        let there: BTreeSet<u64> =
            all.entries.iter().map(|e| e.record.replaces.unwrap_or(e.record.sequence)).collect();
        let (from, to) = (part.from.as_nanos(), part.to.as_nanos());
        // The chunks around a loss tell its times no better than that: a listing by time may know that its packets came later.
        for (first, last, ..) in whole.iter().filter(|loss| !by_time.contains(loss)) {
            let unnamed = book.chunks.values().find(|c| {
                (*first..=*last).contains(&c.root())
                    && !there.contains(&c.root())
                    && c.record.summary.overlaps(from, to)
            });
            assert!(unnamed.is_none(), "media: a listing by time names no loss of {unnamed:?}");
        }
    }
}
