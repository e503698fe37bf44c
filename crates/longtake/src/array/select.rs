//! Which packets to read, and the chunks that may hold them.

use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use base::{Rate, Timestamp};
use format::Count;
use recorder::TimeRange;
use recorder::extract::{ExtractError, Visitor, extract_wanted};
use recorder::takes::{Catalog, Entry, Gap, Take};
use search::{CommunityId, PacketTest};
use uuid::Uuid;

use super::account::ReadAccount;
use super::candidates::{Candidates, IndexUse};
use super::completeness::{Completeness, Members};
use super::contents::{TakeError, matches_take};
use super::courtesy::{Courteous, Courtesy};
use super::info::stale_members;
use super::open::Opened;
use super::{Progress, filter::Filter};
use crate::control::{self, Hold};
use crate::instant::utc;

/// Which packets to read, and how. The default is all packets of all takes.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Time of the first packet; None for the oldest there is.
    pub since: Option<Timestamp>,
    /// Time of the last packet, which is included; None for the newest there is.
    pub until: Option<Timestamp>,
    /// Only this take: its UUID, the beginning of that, or `last`. None for all.
    pub take: Option<String>,
    /// Only packets that this expression accepts, in tcpdump's language; empty for all.
    pub filter: String,
    /// Only packets of these flows, in both directions: their Community IDs with seed 0. Empty for all.
    pub community_ids: Vec<CommunityId>,
    /// Only packets that pass this; None for all.
    pub test: Option<PacketTest>,
    /// Ends after so many packets; None for all.
    pub packets_max: Option<u64>,
    /// Ends after the packet with which those selected fill so many bytes, each with the 16 bytes of its header in a pcap file; None
    /// for all.
    pub bytes_max: Option<u64>,
    /// Whether every chunk of the span is read, whatever flow indexes say. The packets are the same.
    pub full_scan: bool,
    /// Reads at this rate at most; None for [`Selection::read_rate_beside`] during a recording, and no limit otherwise.
    pub read_rate: Option<Rate>,
    /// Reads at this rate at most while somebody records on the array; None for [`READ_RATE_DURING_RECORDING`].
    pub read_rate_beside: Option<Rate>,
    /// Whether a recording under way overwrites the span last, until it is read. The recording goes on even if it has to overwrite
    /// the span.
    pub hold: bool,
}

/// Reading is limited to this rate while the array is being recorded, unless the caller asks for another.
pub const READ_RATE_DURING_RECORDING: Rate = Rate(500e6);

impl Selection {
    /// The span of time, whether or not one was asked for.
    fn span(&self) -> Result<TimeRange> {
        let span = TimeRange {
            from: self.since.unwrap_or(Timestamp::MIN),
            to: self.until.unwrap_or(Timestamp::MAX),
        };
        if span.from > span.to {
            bail!("the span ends before it begins: {} lies after {}", utc(span.from), utc(span.to));
        }
        Ok(span)
    }
}

/// The chunks that may hold the selected packets.
pub struct Selected<'a> {
    pub(super) opened: &'a mut Opened,
    pub(super) filter: Filter,
    span: TimeRange,
    is_span_asked: bool,
    takes: Vec<Take>,
    catalog: Catalog,
    candidates: Candidates,
    limit: Option<Rate>,
    /// The limit from the moment at which somebody begins to record, if there is none before.
    beside: Rate,
    /// Keeps the ring from overwriting the span.
    _hold: Option<Hold>,
}

impl<'a> Selected<'a> {
    pub(super) fn new(opened: &'a mut Opened, selection: &Selection) -> Result<Self> {
        let span = selection.span()?;
        // Without a recording under way nothing can overwrite the span. It is held before the chunks are listed: what is listed
        // stays until it is read.
        let hold = selection.hold && opened.recording;
        let hold = hold.then(|| control::hold(opened.image.uuid, span)).transpose()?;
        let catalog = opened.catalog(span)?;
        let mut takes = catalog.takes();
        if let Some(wanted) = &selection.take {
            let count = takes.len();
            let mut at = 0;
            takes.retain(|take| {
                at += 1;
                matches_take(wanted, take.id.uuid, at == count)
            });
            if takes.is_empty() {
                return Err(TakeError::NotInSpan(wanted.clone()).into());
            }
        }
        let candidates = Candidates::of(
            opened,
            &searched(&catalog, &takes, span),
            &catalog.recovered,
            selection,
        )?;
        let beside = selection.read_rate_beside.unwrap_or(READ_RATE_DURING_RECORDING);
        let limit = selection.read_rate.or(opened.recording.then_some(beside));
        Ok(Self {
            opened,
            filter: Filter::new(selection),
            span,
            is_span_asked: selection.since.is_some() || selection.until.is_some(),
            takes,
            catalog,
            candidates,
            limit,
            beside,
            _hold: hold,
        })
    }

    /// The chunks of a catalog, at this rate.
    pub(super) fn of(
        opened: &'a mut Opened,
        span: TimeRange,
        takes: Vec<Take>,
        catalog: Catalog,
        limit: Rate,
    ) -> Self {
        Self {
            opened,
            filter: Filter::default(),
            span,
            is_span_asked: false,
            takes,
            catalog,
            candidates: Candidates::default(),
            limit: Some(limit),
            beside: limit,
            _hold: None,
        }
    }

    /// Visits every selected packet, take after take. Returns whether the visitor has stopped that, with [`Stopped`].
    pub(super) fn visit<V: Visitor<Error = anyhow::Error>>(
        &mut self,
        visitor: &mut V,
    ) -> Result<bool> {
        // Who reads already when a recording begins is held back from then on.
        match Courtesy::in_reading(self.opened, self.limit.is_none().then_some(self.beside)) {
            Some(courtesy) => self.visit_all(&mut Courteous { visitor, courtesy }),
            None => self.visit_all(visitor),
        }
    }

    fn visit_all<V: Visitor<Error = anyhow::Error>>(&mut self, visitor: &mut V) -> Result<bool> {
        let image = self.opened.image.clone();
        for take in &self.takes {
            let entries = self.entries(take);
            let mut reader = self.opened.reader();
            let is_wanted = |entry: &Entry| self.candidates.may_hold(entry);
            let (span, limit) = (self.span, self.limit);
            let visited =
                extract_wanted(&mut reader, &image, &entries, &is_wanted, span, limit, visitor);
            match visited {
                Ok(()) => {}
                Err(ExtractError::Visitor(error)) if error.is::<Stopped>() => return Ok(true),
                Err(ExtractError::Visitor(error)) => return Err(error),
                Err(ExtractError::Read(error)) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn entries(&self, take: &Take) -> Vec<Entry> {
        let entries = self.catalog.entries.iter();
        entries.filter(|entry| entry.record.take.uuid == take.id.uuid).copied().collect()
    }

    /// Chunks that will be read, of all takes.
    pub(super) fn chunks(&self) -> u64 {
        let IndexUse { candidates, .. } = self.index_use();
        candidates
    }

    /// How flow indexes narrow what is read.
    pub fn index_use(&self) -> IndexUse {
        let searched = searched(&self.catalog, &self.takes, self.span);
        let candidates = searched.iter().filter(|entry| self.candidates.may_hold(entry));
        self.candidates.used(searched.len() as u64, candidates.count() as u64)
    }

    /// How complete an answer can be, as far as it is known before anything is read.
    pub fn completeness(&self) -> Completeness {
        Completeness::of_packets(&self.complete(ReadAccount::default()))
    }

    /// Completes an account of what was read with what could not be.
    pub(super) fn complete(&self, account: ReadAccount) -> ReadAccount {
        let gaps = self.takes.iter().flat_map(|take| &take.gaps);
        let inside = gaps.filter(|gap| gap.touches(self.span));
        let holes = self.takes.iter().flat_map(|take| &take.holes);
        let holes: Vec<Gap> = holes.filter(|hole| hole.touches(self.span)).copied().collect();
        ReadAccount {
            members: Members::of(self.opened),
            missing: inside.fold(Count::ZERO, |sum, gap| sum + gap.count),
            is_cut_by_ring: self.is_span_asked && !holes.is_empty(),
            holes,
            stale: stale_members(self.opened),
            overwritten_chunks: self.opened.overwritten,
            index: self.index_use(),
            ..account
        }
    }
}

/// Those chunks of some takes that overlap a span.
fn searched(catalog: &Catalog, takes: &[Take], span: TimeRange) -> Vec<Entry> {
    let (from, to) = (span.from.as_nanos(), span.to.as_nanos());
    let of_takes: HashSet<Uuid> = takes.iter().map(|take| take.id.uuid).collect();
    let is_searched = |entry: &&Entry| {
        entry.record.summary.overlaps(from, to) && of_takes.contains(&entry.record.take.uuid)
    };
    catalog.entries.iter().filter(is_searched).copied().collect()
}

/// Told how far it is after each chunk, and asked whether to go on.
///
/// It goes by reference, as all that callers bring: what is generic is compiled with the caller, and a program's own code may well be
/// compiled without optimization.
pub(super) type GoOn<'p> = &'p mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Progress over the chunks of all takes, where each take counts its own.
#[derive(Debug, Default)]
pub(super) struct ChunkProgress {
    total: u64,
    /// Chunks of the takes before.
    before: u64,
    /// Of the take at hand: chunks done.
    done: u64,
}

impl ChunkProgress {
    pub(super) fn new(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// Enters how many chunks of the take at hand are done.
    pub(super) fn enter(&mut self, done: u64) -> Progress {
        if done <= self.done {
            self.before += self.done;
        }
        self.done = done;
        Progress { done: self.before + done, total: self.total }
    }
}

/// The visitor wants no more packets.
#[derive(Debug)]
pub(super) struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Stopped {}
