//! What came of a recording.

use base::{Bank, Buffers, Duration, Instant, Rate};
use format::{Count, Ledger};
use recorder::ParityProgress;
use recorder::run::{Feed, Recording};

use super::ending::EndReason;
use super::files::Files;
use super::indexer::IndexCounts;
use super::observer::Started;
use crate::{Array, Error};

/// What came of a recording: every packet that was offered, stored or lost by name.
#[derive(Debug)]
pub struct Account {
    /// What was recorded, and where.
    pub started: Started,
    /// Why it ended.
    pub reason: EndReason,
    /// Time from the start to the end. Virtual time on simulated drives.
    pub elapsed: Duration,
    /// Bytes written to all members, chunks and their parity.
    pub written: u64,
    /// Offered, stored, and each named loss.
    pub ledger: Ledger,
    /// Written, with everything before it: `kill -9` could not have lost it.
    pub acknowledged: Count,
    /// Flushed, with everything before it: a power cut could not have lost it.
    pub durable: Count,
    /// The latest packet time that a ring has given up, ns since 1970; 0 for none. Nothing after it is missing.
    pub reused_to_ns: u64,
    /// What parity was written; None without.
    pub parity: Option<ParityProgress>,
    /// Flow indexes that were made during the recording; None if none were wanted.
    pub index: Option<IndexCounts>,
    /// Chunk buffers that held something at a time, at most.
    pub buffers_most: u32,
    /// What the source has to say at its end.
    pub notes: Vec<String>,
    /// Errors with which the source ended. What it had delivered is recorded.
    pub errors: Vec<Error>,
    /// The array on simulated drives, which is gone when this is dropped; None for real ones, which are opened by name.
    pub array: Option<Array>,
    /// The files that were written, if there is no array.
    pub files: Option<Files>,
    /// Why no file could be written any more. What was not in a complete file by then is lost.
    pub output_error: Option<Error>,
}

impl Account {
    /// Mean rate of writing.
    pub fn rate(&self) -> Rate {
        Rate::of(self.written, self.elapsed)
    }

    /// Whether every packet that was wanted is stored whole.
    pub fn is_complete(&self) -> bool {
        self.ledger.lost_unwanted().is_zero()
            && self.ledger.truncated.packets == 0
            && self.ledger.balances()
            && self.output_error.is_none()
    }

    /// Of a recording that is over. `ends` is what the source's threads came to.
    pub(super) fn of<B: Bank, M: Buffers, F: Feed>(
        recording: &Recording<'_, B, M, F>,
        over: Over,
        ends: Vec<anyhow::Result<Vec<String>>>,
    ) -> Self {
        let core = recording.core();
        let (notes, errors) = Self::of_ends(ends);
        Self {
            started: over.started,
            reason: over.reason,
            elapsed: over.end.unwrap_or(recording.now()).since(over.start),
            written: core.members().map(|member| member.written).sum(),
            ledger: *core.ledger(),
            acknowledged: core.acknowledged(),
            durable: core.durable(),
            reused_to_ns: core.reused_to_ns(),
            parity: core.parity(),
            index: None,
            buffers_most: over.buffers_most,
            notes,
            errors,
            array: None,
            files: None,
            output_error: None,
        }
    }

    /// Notes and errors with which a source's threads have ended.
    pub(super) fn of_ends(ends: Vec<anyhow::Result<Vec<String>>>) -> (Vec<String>, Vec<Error>) {
        let (mut notes, mut errors) = (Vec::new(), Vec::new());
        for end in ends {
            match end {
                Ok(found) => notes.extend(found),
                Err(error) => errors.push(error.into()),
            }
        }
        (notes, errors)
    }
}

/// What the run loop knows of a recording that is over.
#[derive(Debug)]
pub(super) struct Over {
    pub started: Started,
    /// Why it ended.
    pub reason: EndReason,
    /// The bank's time at the start.
    pub start: Instant,
    /// The bank's time when the take was over. Flow indexes may have been written afterwards.
    pub end: Option<Instant>,
    pub buffers_most: u32,
}
