//! Reads many ranges of a bank with as many commands under way as there are buffers.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use base::{
    Bank, BankError, BufferId, Buffers, Command, Completion, DeviceError, DriveId, Instant,
    Operation, Rate,
};

/// A range to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// From which drive.
    pub drive: DriveId,
    /// From where, a multiple of 4 KiB.
    pub offset: u64,
    /// How much, a multiple of 4 KiB and at most a buffer.
    pub length: u32,
}

/// Why reading stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The bank failed.
    Bank(BankError),
    /// A drive failed to read.
    Device {
        /// Which, as the user named it.
        drive: String,
        /// Offset on the drive in bytes.
        offset: u64,
        /// The error that the drive reported.
        error: DeviceError,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bank(error) => error.fmt(f),
            Self::Device { drive, offset, error } => {
                write!(f, "reading {drive} at byte {offset} failed: {error}")
            }
        }
    }
}

impl std::error::Error for ReadError {}

impl From<BankError> for ReadError {
    fn from(error: BankError) -> Self {
        Self::Bank(error)
    }
}

/// A bank and the buffers that reads may use.
#[derive(Debug)]
pub struct Reader<'a, B, M> {
    /// The drives.
    pub bank: &'a mut B,
    /// The memory.
    pub memory: &'a M,
    /// Names of buffers that nobody else uses meanwhile.
    pub buffers: Vec<BufferId>,
}

impl<B: Bank, M: Buffers> Reader<'_, B, M> {
    /// Reads every range and hands each one's bytes (or its error) to `each`, in any order, by its
    /// place in `ranges`. Drives take turns, so that all of them are busy.
    ///
    /// # Errors
    /// [`BankError`] if the bank fails.
    pub fn scatter(
        &mut self,
        ranges: &[Range],
        mut each: impl FnMut(usize, Result<&[u8], DeviceError>),
    ) -> Result<(), BankError> {
        let order = in_turns(ranges);
        let mut next = 0;
        let mut free = self.buffers.clone();
        let mut busy: VecDeque<(usize, BufferId)> = VecDeque::new();
        let mut done: Vec<Completion> = Vec::new();
        while next < ranges.len() || !busy.is_empty() {
            while next < ranges.len() {
                let Some(&buffer) = free.last() else { break };
                let at = order[next];
                let Range { drive, offset, length } = ranges[at];
                let operation = Operation::Read { offset, length, buffer };
                if self.bank.submit(Command { drive, operation, tag: at as u64 }).is_err() {
                    break;
                }
                free.pop();
                busy.push_back((at, buffer));
                next += 1;
            }
            done.clear();
            self.bank.wait(None, &mut done)?;
            for completion in &done {
                let at = completion.tag as usize;
                let Some(position) = busy.iter().position(|&(index, _)| index == at) else {
                    continue;
                };
                let Some((_, buffer)) = busy.remove(position) else { continue };
                let length = ranges[at].length as usize;
                match &completion.outcome {
                    Ok(()) => self.memory.with(buffer, &mut |bytes| each(at, Ok(&bytes[..length]))),
                    Err(error) => each(at, Err(error.clone())),
                }
                free.push(buffer);
            }
        }
        Ok(())
    }

    /// Reads one range whole.
    ///
    /// # Errors
    /// [`ReadError`] if the bank or the drive fails.
    pub fn one(&mut self, range: Range) -> Result<Vec<u8>, ReadError> {
        let mut result = Ok(Vec::new());
        self.scatter(&[range], |_, read| result = read.map(<[u8]>::to_vec))?;
        result.map_err(|error| self.error(range, error))
    }

    /// Says which drive a failed read was on.
    pub(crate) fn error(&self, range: Range, error: DeviceError) -> ReadError {
        let drive = self.bank.drives()[range.drive.index()].name.clone();
        ReadError::Device { drive, offset: range.offset, error }
    }

    /// Bytes in a buffer, cut to whole pages.
    pub fn buffer_bytes(&self) -> u32 {
        (self.memory.size() as u64 / format::PAGE_BYTES * format::PAGE_BYTES) as u32
    }
}

/// The places of ranges in the order in which drives take turns.
fn in_turns(ranges: &[Range]) -> Vec<usize> {
    let mut so_far: HashMap<DriveId, usize> = HashMap::new();
    let mut turn = |range: &Range| {
        let turn = so_far.entry(range.drive).or_default();
        *turn += 1;
        *turn
    };
    let turns: Vec<usize> = ranges.iter().map(&mut turn).collect();
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|&at| turns[at]);
    order
}

/// Holds reading to a rate, for the sake of a recording under way.
#[derive(Debug)]
pub(crate) struct Pace {
    limit: Option<Rate>,
    next_at: Instant,
}

impl Pace {
    pub(crate) const fn new(limit: Option<Rate>, now: Instant) -> Self {
        Self { limit, next_at: now }
    }

    /// Waits until so many bytes more are due.
    ///
    /// # Errors
    /// [`BankError`] if the bank fails.
    pub(crate) fn keep<B: Bank, M: Buffers>(
        &mut self,
        reader: &mut Reader<'_, B, M>,
        bytes: u64,
    ) -> Result<(), BankError> {
        let Some(limit) = self.limit else { return Ok(()) };
        self.next_at = self.next_at.max(reader.bank.now()) + limit.time_for(bytes);
        while reader.bank.now() < self.next_at {
            reader.bank.wait(Some(self.next_at), &mut Vec::new())?;
        }
        Ok(())
    }
}
