//! Holds recorded synthetic packets against what was generated: every byte, and which are there.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::Options;
use super::frame::{self, HEAD_BYTES, Head, Table};
use super::ranges::Ranges;

/// Checks packets of one synthetic source in any order, from any of its queues.
pub struct Checker {
    options: Options,
    table: Table,
    queues: BTreeMap<u16, Queue>,
    packets: u64,
    bytes: u64,
    wrong: u64,
    first_wrong: Option<Wrong>,
}

/// What was found of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Sequence numbers found.
    pub present: Ranges,
    /// Sequence numbers found more than once.
    pub duplicated: Ranges,
    /// Packets found beyond the first of each sequence number.
    pub duplicates: u64,
    /// Whether each packet had a higher number than the one before it.
    pub in_order: bool,
    last: Option<u64>,
}

impl Queue {
    /// Numbers missing among the first `sent`. Without knowing how many were sent, give
    /// `present.end()`.
    pub fn missing(&self, sent: u64) -> Vec<Range<u64>> {
        self.present.missing_below(sent)
    }
}

/// Why a packet is not one that the source made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Too little of it is there to know which it is.
    TooShort {
        /// Bytes there.
        length: usize,
    },
    /// The source has no such queue.
    NoSuchQueue {
        /// The packet's queue number.
        queue: u16,
    },
    /// Its original length is not what that sequence number's should be.
    Length {
        /// Its queue.
        queue: u16,
        /// Its sequence number.
        sequence: u64,
        /// What it should be, in bytes.
        expected: u16,
        /// What it is, in bytes.
        found: u32,
    },
    /// A byte differs.
    Byte {
        /// Its queue.
        queue: u16,
        /// Its sequence number.
        sequence: u64,
        /// Offset in the packet of the first wrong byte.
        offset: usize,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { length } => write!(
                f,
                "a packet of {length} bytes is too short to check: it takes {HEAD_BYTES}, so don't cut \
                 shorter with a snap length"
            ),
            Self::NoSuchQueue { queue } => write!(
                f,
                "a packet names queue {queue}, which the source did not have: give the options that it \
                 was recorded with"
            ),
            Self::Length { queue, sequence, expected, found } => write!(
                f,
                "packet {sequence} of queue {queue} is {found} bytes long instead of {expected}: give the \
                 options that it was recorded with, or it is damaged"
            ),
            Self::Byte { queue, sequence, offset } => write!(
                f,
                "packet {sequence} of queue {queue} is wrong from byte {offset} on: it is damaged, or \
                 was made with another seed"
            ),
        }
    }
}

impl std::error::Error for Wrong {}

impl Checker {
    /// For packets of a source with these options; the rate doesn't matter.
    pub fn new(options: &Options) -> Self {
        Self {
            options: *options,
            table: Table::new(options.seed, options.sizes.max()),
            queues: BTreeMap::new(),
            packets: 0,
            bytes: 0,
            wrong: 0,
            first_wrong: None,
        }
    }

    /// Checks one packet, or what a snap length has left of it, and enters it if it is right.
    ///
    /// # Errors
    /// [`Wrong`] says what is wrong with it; that is also counted.
    pub fn check(&mut self, data: &[u8], original_length: u32) -> Result<(u16, u64), Wrong> {
        self.packets += 1;
        self.bytes += data.len() as u64;
        match self.identify(data, original_length) {
            Ok((queue, sequence)) => {
                self.enter(queue, sequence);
                Ok((queue, sequence))
            }
            Err(wrong) => {
                self.wrong += 1;
                self.first_wrong.get_or_insert_with(|| wrong.clone());
                Err(wrong)
            }
        }
    }

    fn identify(&mut self, data: &[u8], original_length: u32) -> Result<(u16, u64), Wrong> {
        let too_short = Wrong::TooShort { length: data.len() };
        let (queue, sequence) = frame::identify(data).ok_or(too_short)?;
        if queue >= self.options.queues {
            return Err(Wrong::NoSuchQueue { queue });
        }
        let expected = self.options.sizes.of(sequence);
        if u32::from(expected) != original_length || data.len() > usize::from(expected) {
            return Err(Wrong::Length { queue, sequence, expected, found: original_length });
        }
        let head = Head::new(queue, expected);
        match self.table.first_difference(&head, (queue, sequence), data, expected) {
            None => Ok((queue, sequence)),
            Some(offset) => Err(Wrong::Byte { queue, sequence, offset }),
        }
    }

    fn enter(&mut self, queue: u16, sequence: u64) {
        let queue = self
            .queues
            .entry(queue)
            .or_insert_with(|| Queue { in_order: true, ..Queue::default() });
        if !queue.present.insert(sequence) {
            queue.duplicated.insert(sequence);
            queue.duplicates += 1;
        }
        queue.in_order &= queue.last.is_none_or(|last| sequence > last);
        queue.last = Some(sequence);
    }

    /// Packets given to it.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that were wrong.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// The first of them.
    pub fn first_wrong(&self) -> Option<&Wrong> {
        self.first_wrong.as_ref()
    }

    /// What was found, by queue number.
    pub fn queues(&self) -> &BTreeMap<u16, Queue> {
        &self.queues
    }
}
