//! An array while it is recorded on: packets are written as they arrive on the media, each once.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::thread;
use std::time::Duration as Wait;

use anyhow::Context;
use base::{Bank, Timestamp};
use device::target::is_locked;
use recorder::open::Segment;
use recorder::takes::{Catalog, Entry};
use recorder::{ArrayImage, TimeRange};
use uuid::Uuid;

use super::account::ReadAccount;
use super::completeness::{Completeness, Members};
use super::extract::{Extracted, FileVisitor, comment};
use super::file_format::OutputFormat;
use super::select::{READ_RATE_DURING_RECORDING, Selected};
use super::{Array, Selection};

/// Time between two looks for new chunks.
const LOOK_EVERY: Wait = Wait::from_millis(200);

/// Numbers of written chunks that are remembered. One that failed to be written is placed again within as many.
const REMEMBERED_MAX: usize = 1 << 16;

impl Array {
    /// Writes packets while they are recorded, each as soon as its chunk is on the media, until the take ends whose end comes next.
    /// Without a recording under way it waits for one. It begins with the packets that are recorded from now on, or with those of
    /// `since`, if the selection has that; of the rest of the selection the filter, the flows and the read rate count.
    ///
    /// Packets are in order of time within each look at the array, which come five times a second: those of parallel queues may
    /// be out of order by as much as chunks of these are apart.
    ///
    /// `stop` is asked several times a second whether to end early, which leaves a complete file.
    ///
    /// # Errors
    /// As [`Array::extract_to`].
    pub fn follow_to(
        &mut self,
        selection: &Selection,
        format: impl Into<OutputFormat>,
        out: impl Write,
        stop: impl Fn() -> bool,
    ) -> crate::Result<Extracted> {
        self.follow_with(selection, format, out, stop, |_| Ok(()))
    }

    /// As [`Array::follow_to`], and hands what was written and lost so far to `looked` after each look at the array. Everything that
    /// was written has been passed on to `out` by then, and ends with a packet. `looked` ends it with an error.
    ///
    /// # Errors
    /// As [`Array::extract_to`], or that of `looked`.
    pub fn follow_with(
        &mut self,
        selection: &Selection,
        format: impl Into<OutputFormat>,
        mut out: impl Write,
        stop: impl Fn() -> bool,
        mut looked: impl FnMut(Followed) -> io::Result<()>,
    ) -> crate::Result<Extracted> {
        self.follow(selection, format.into(), &mut out, &stop, &mut looked)
    }

    fn follow(
        &mut self,
        selection: &Selection,
        format: OutputFormat,
        out: &mut dyn Write,
        stop: &dyn Fn() -> bool,
        looked: &mut dyn FnMut(Followed) -> io::Result<()>,
    ) -> crate::Result<Extracted> {
        let mut go_on = |_| if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let filter = super::filter::Filter::new(selection);
        let name = self.opened.image.superblock.name.clone();
        let comment = comment(&name, None);
        let mut visitor = FileVisitor::new(&comment, format, out, filter, 0, &mut go_on)?;
        visitor.flush()?;
        let start = self.opened.bank.now();
        let mut following = Following::new(&self.opened.image, selection);
        let mut stopped = false;
        while !stopped {
            match following.look(self)? {
                Look::Again => continue,
                Look::At { catalog, ended } => {
                    stopped = following.write(self, *catalog, &mut visitor)?;
                    visitor.flush()?;
                    let (packets, read) = visitor.so_far();
                    let lost = following.placed.lost();
                    looked(Followed {
                        packets,
                        lost_packets: lost
                            + read.unreadable.count.packets
                            + read.overwritten.count.packets,
                    })
                    .context("reporting how far it is")?;
                    if ended {
                        break;
                    }
                }
            }
            stopped |= stop();
            if !stopped {
                thread::sleep(LOOK_EVERY);
            }
        }
        let elapsed = self.opened.bank.now().since(start);
        let (missing, holes) = (following.account.missing, following.account.holes);
        let is_cut_by_ring = !holes.is_empty();
        let members = Members::of(&self.opened);
        let read = ReadAccount { members, missing, holes, is_cut_by_ring, ..visitor.account() };
        let (packets, bytes) = visitor.finish(Some(&Completeness::of_packets(&read)))?;
        // To stop is how it usually ends.
        Ok(Extracted { packets, bytes, elapsed, stopped: false, read })
    }
}

/// How far a recording was followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Packets that were written.
    pub packets: u64,
    /// Packets that were recorded since the first of them, and were not written: the ring overwrote them before they were read, or
    /// their chunks are damaged.
    pub lost_packets: u64,
}

/// Packets that a take's chunks say were recorded, and those in chunks that were found.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Recorded before the first chunk that was found.
    before: u64,
    /// Recorded through the last chunk that was found.
    through: u64,
    /// In the chunks that were found.
    found: u64,
}

/// What was recorded of each take since it was followed.
#[derive(Debug, Default)]
struct PlacedByTake(HashMap<Uuid, Placed>);

impl PlacedByTake {
    /// Enters chunks that are found for the first time, in order. Takes that began after the chunk `begun` are followed from their
    /// start.
    fn enter(&mut self, entries: &[Entry], begun: u64) {
        for Entry { record, .. } in entries.iter().filter(|entry| entry.record.parity.is_none()) {
            let (placed, own) = (record.ledger.stored.packets, u64::from(record.summary.packets));
            let first = || {
                // A chunk that was written again counts where it was placed first.
                let before = if record.replaces.is_some() { placed } else { placed - own };
                let before = if record.take.first_sequence > begun { 0 } else { before };
                Placed { before, through: placed, found: 0 }
            };
            let take = self.0.entry(record.take.uuid).or_insert_with(first);
            take.through = take.through.max(placed);
            take.found += own;
        }
    }

    /// Packets that were recorded and not found.
    fn lost(&self) -> u64 {
        self.0.values().map(|take| (take.through - take.before).saturating_sub(take.found)).sum()
    }
}

/// What is new, and what was written.
struct Following {
    since: Option<Timestamp>,
    limit: base::Rate,
    /// The number of the last chunk when it began: the end that counts comes later.
    begun: u64,
    /// Chunks up to this number were written.
    after: u64,
    /// The last chunks that were written, by the number that they had when they were first placed.
    written: BTreeSet<u64>,
    /// Whether somebody was recording at the last look.
    recorded: bool,
    /// Whether the end was found in the last look: segments may have come to be while that looked around.
    looks_again: bool,
    /// What is missing between the chunks.
    account: ReadAccount,
    /// What the chunks say was recorded.
    placed: PlacedByTake,
}

/// What a look has found.
enum Look {
    /// The end, for the first time: another look sees all before it.
    Again,
    /// New chunks.
    At { catalog: Box<Catalog>, ended: bool },
}

impl Following {
    fn new(image: &ArrayImage, selection: &Selection) -> Self {
        let begun = live(image).map(|live| live.last_sequence).max().unwrap_or(0);
        Self {
            since: selection.since,
            limit: selection.read_rate.unwrap_or(READ_RATE_DURING_RECORDING),
            begun,
            after: if selection.since.is_some() { 0 } else { begun },
            written: BTreeSet::new(),
            recorded: false,
            looks_again: false,
            account: ReadAccount::default(),
            placed: PlacedByTake::default(),
        }
    }

    /// Looks for new chunks. Everything before the last of them is there, or will not come.
    fn look(&mut self, array: &mut Array) -> anyhow::Result<Look> {
        // Asked before the look: a recorder that has gone writes nothing more.
        let recording = array.targets.iter().any(|target| is_locked(target).unwrap_or(false));
        array.opened.recording = recording;
        array.opened.look_again()?;
        let range = self.range(&array.opened.image);
        let catalog = array.opened.catalog(range)?;
        let is_end = |e: &&Entry| e.record.summary.end && e.record.sequence > self.begun;
        let end = catalog.entries.iter().find(is_end).map(|e| e.record.sequence);
        if end.is_some() && !self.looks_again {
            self.looks_again = true;
            return Ok(Look::Again);
        }
        self.looks_again = false;
        let last = end.unwrap_or(u64::MAX);
        let mut catalog = catalog;
        catalog.entries.retain(|entry| entry.record.sequence <= last);
        let ended = end.is_some() || (self.recorded && !recording);
        self.recorded = recording;
        Ok(Look::At { catalog: Box::new(catalog), ended })
    }

    /// A span of time that every segment with new chunks touches, so that others need not be read.
    fn range(&self, image: &ArrayImage) -> TimeRange {
        let is_new = live(image).filter(|live| live.last_sequence > self.after);
        let from = is_new.map(|live| live.first_ns).min().unwrap_or(u64::MAX);
        let from = Timestamp::from_nanos(from.min(Timestamp::MAX.as_nanos()));
        TimeRange { from: self.since.map_or(from, |since| since.max(from)), to: Timestamp::MAX }
    }

    /// Writes the new chunks of a catalog. Returns whether it was stopped.
    fn write(
        &mut self,
        array: &mut Array,
        mut catalog: Catalog,
        visitor: &mut FileVisitor<'_>,
    ) -> anyhow::Result<bool> {
        let (after, written) = (self.after, &self.written);
        let takes = catalog.takes();
        let span = TimeRange { from: self.since.unwrap_or(Timestamp::MIN), to: Timestamp::MAX };
        for take in &takes {
            let is_new =
                |gap: &&recorder::takes::Gap| gap.first_sequence > after && gap.touches(span);
            for gap in take.gaps.iter().filter(is_new) {
                self.account.missing += gap.count;
            }
            self.account.holes.extend(take.holes.iter().filter(is_new));
        }
        catalog
            .entries
            .retain(|e| e.record.sequence > after && !written.contains(&first_number(e)));
        self.placed.enter(&catalog.entries, self.begun);
        for entry in &catalog.entries {
            self.after = self.after.max(entry.record.sequence);
            self.written.insert(first_number(entry));
        }
        while self.written.len() > REMEMBERED_MAX {
            self.written.pop_first();
        }
        Selected::of(&mut array.opened, span, takes, catalog, self.limit).visit(visitor)
    }
}

/// The number of the place that a chunk was meant for.
fn first_number(entry: &Entry) -> u64 {
    entry.record.replaces.unwrap_or(entry.record.sequence)
}

/// What the segments of all members hold.
fn live(image: &ArrayImage) -> impl Iterator<Item = recorder::open::Live> + '_ {
    image.members.iter().flat_map(|member| &member.segments).filter_map(|segment| match segment {
        Segment::Live(live) => Some(*live),
        Segment::Empty => None,
    })
}
