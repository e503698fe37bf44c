//! Makes an array of a bank's drives: superblocks at both ends of each, the old contents trimmed.

use std::fmt;

use base::{Bank, Buffers, Command, DeviceError, DriveId, Geometry, Operation, Timestamp};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use format::superblock::{MEMBERS_MAX, Member};
use format::{Layout, LayoutError, PAGE_BYTES, Superblock};
use uuid::Uuid;

use crate::open::{Copies, superblock_copies};
use crate::reader::{ReadError, Reader};

/// Bytes that [`create`] writes to each drive: two superblocks, the padding, a first page.
pub const WRITTEN_BYTES: u64 = DATA_OFFSET + SUPERBLOCK_BYTES + PAGE_BYTES;

/// What to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The new array's identity.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// When it is made.
    pub created: Timestamp,
    /// Segment length in bytes, or the default for each member's size.
    pub segment_bytes: Option<u64>,
    /// Longest chunk in bytes, or the default for the segment's size.
    pub chunk_max: Option<u32>,
    /// For each drive, what tells it from others: model and serial.
    pub identities: Vec<String>,
    /// Whether to trim each drive that can.
    pub trim: bool,
    /// Parity chunks for each group: so many members may die and nothing is lost.
    pub parity: u8,
}

/// Why an array could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// More drives than an array may have, or none.
    Members(usize),
    /// A drive can't be divided.
    Layout {
        /// Which.
        drive: String,
        /// Why.
        error: LayoutError,
    },
    /// A block larger than 4 KiB.
    Block {
        /// Which drive.
        drive: String,
        /// Its block.
        block_bytes: u32,
    },
    /// Writing failed.
    Write {
        /// Which drive.
        drive: String,
        /// What was tried.
        attempted: String,
        /// Why it failed.
        error: DeviceError,
    },
    /// So much parity does not suit so many members, or such short chunks.
    Parity {
        /// Parity chunks for each group.
        parity: u8,
        /// How many members there would be.
        members: usize,
    },
    /// The bank failed, or reading did.
    Read(ReadError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Members(count) => {
                write!(f, "{count} drives: an array has from 1 to {MEMBERS_MAX} members")
            }
            Self::Layout { drive, error } => write!(f, "{drive}: {error}"),
            Self::Block { drive, block_bytes } => write!(
                f,
                "{drive} has blocks of {block_bytes} bytes, the format's unit is {PAGE_BYTES}: format the namespace with smaller blocks"
            ),
            Self::Write { drive, attempted, error } => {
                write!(f, "{drive}: {attempted} failed: {error}; the array was not made")
            }
            Self::Parity { parity, members } => write!(
                f,
                "parity {parity} over {members} members: give 1 or 2, more members than that, and chunks that are two pages longer than the shortest"
            ),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CreateError {}

impl<E: Into<ReadError>> From<E> for CreateError {
    fn from(error: E) -> Self {
        Self::Read(error.into())
    }
}

/// How each drive would be divided; writes nothing.
///
/// # Errors
/// [`CreateError`] if a drive doesn't suit.
pub fn layouts<B: Bank>(bank: &B, plan: &Plan) -> Result<Vec<Layout>, CreateError> {
    layouts_of(bank.drives(), plan)
}

/// The same for drives that are not open, or files that don't exist yet.
///
/// # Errors
/// [`CreateError`] if a drive doesn't suit.
pub fn layouts_of(drives: &[Geometry], plan: &Plan) -> Result<Vec<Layout>, CreateError> {
    if drives.is_empty() || drives.len() > MEMBERS_MAX {
        return Err(CreateError::Members(drives.len()));
    }
    drives
        .iter()
        .map(|drive| {
            if u64::from(drive.block_bytes) > PAGE_BYTES {
                let block_bytes = drive.block_bytes;
                return Err(CreateError::Block { drive: drive.name.clone(), block_bytes });
            }
            let capacity = drive.capacity_bytes;
            let layout = match plan.segment_bytes {
                None if plan.chunk_max.is_none() => Layout::default_for(capacity),
                segment => Layout::default_for(capacity)
                    .map(|l| l.segment_bytes)
                    .or_else(|e| segment.ok_or(e))
                    .and_then(|default| {
                        let segment = segment.unwrap_or(default);
                        let chunk =
                            plan.chunk_max.unwrap_or_else(|| Layout::chunk_max_for(segment));
                        Layout::new(capacity, segment, chunk)
                    }),
            };
            let layout =
                layout.map_err(|error| CreateError::Layout { drive: drive.name.clone(), error })?;
            let members = drives.len();
            if Superblock::suits_parity(plan.parity, members, &layout) {
                Ok(layout)
            } else {
                Err(CreateError::Parity { parity: plan.parity, members })
            }
        })
        .collect()
}

/// Makes the array. What the drives held is gone.
///
/// # Errors
/// [`CreateError`]; a drive may then be without the superblock it had.
pub fn create<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    plan: &Plan,
) -> Result<Vec<Superblock>, CreateError> {
    let layouts = layouts(reader.bank, plan)?;
    let members: Vec<Member> = reader
        .bank
        .drives()
        .iter()
        .zip(&plan.identities)
        .map(|(drive, identity)| Member {
            capacity_bytes: drive.capacity_bytes,
            identity: identity.clone(),
            joined_ns: 0,
        })
        .collect();
    let mut superblocks = Vec::new();
    for (at, layout) in layouts.into_iter().enumerate() {
        let drive = DriveId(at as u16);
        let geometry = reader.bank.drives()[at].clone();
        if let Some(unit) = geometry.trim_unit_bytes.filter(|_| plan.trim) {
            let length = geometry.capacity_bytes / u64::from(unit) * u64::from(unit);
            run(reader, drive, Operation::Trim { offset: 0, length })?;
        }
        let superblock = Superblock {
            array: plan.uuid,
            name: plan.name.clone(),
            member: at as u16,
            members: members.clone(),
            layout,
            created: plan.created,
            generation: 1,
            protected: Vec::new(),
            parity: plan.parity,
        };
        // A chunk of an earlier array would not be taken for one of this: its UUID differs. But
        // the first page of each segment must read as no chunk to tools that look by hand.
        write(reader, drive, SUPERBLOCK_BYTES, &Superblock::padding())?;
        let first_page = vec![0; PAGE_BYTES as usize];
        write(reader, drive, layout.segment_offset(0), &first_page)?;
        store(reader, drive, &superblock)?;
        superblocks.push(superblock);
    }
    Ok(superblocks)
}

/// Writes both copies of a superblock, the good one last, flushing before, between and after: whoever wrote a copy may have
/// been killed before flushing it.
///
/// # Errors
/// [`CreateError::Write`] if the drive fails.
pub fn store<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    superblock: &Superblock,
) -> Result<(), CreateError> {
    let capacity = reader.bank.drives()[drive.index()].capacity_bytes;
    run(reader, drive, Operation::Flush)?;
    let mut offsets = [Layout::copy_offset(capacity), 0];
    if matches!(superblock_copies(reader, drive), Ok((_, Copies::Last))) {
        offsets.reverse();
    }
    for offset in offsets {
        write(reader, drive, offset, &superblock.encode(offset))?;
        run(reader, drive, Operation::Flush)?;
    }
    Ok(())
}

/// Writes bytes of any length that is a multiple of 4 KiB, a buffer at a time.
pub(crate) fn write<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    offset: u64,
    bytes: &[u8],
) -> Result<(), CreateError> {
    let buffer = reader.buffers[0];
    let step = reader.buffer_bytes() as usize;
    for (at, piece) in bytes.chunks(step).enumerate() {
        reader.memory.with(buffer, &mut |memory| memory[..piece.len()].copy_from_slice(piece));
        let offset = offset + (at * step) as u64;
        run(reader, drive, Operation::Write { offset, length: piece.len() as u32, buffer })?;
    }
    Ok(())
}

/// Runs one command alone.
pub(crate) fn run<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    operation: Operation,
) -> Result<(), CreateError> {
    let mut done = Vec::new();
    while reader.bank.submit(Command { drive, operation, tag: 0 }).is_err() {
        reader.bank.wait(None, &mut done)?;
    }
    while done.is_empty() {
        reader.bank.wait(None, &mut done)?;
    }
    let name = || reader.bank.drives()[drive.index()].name.clone();
    match done.remove(0).outcome {
        Ok(()) => Ok(()),
        Err(error) => {
            Err(CreateError::Write { drive: name(), attempted: operation.describe(), error })
        }
    }
}
