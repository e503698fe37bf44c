//! Makes an array of a bank's drives: superblocks at both ends of each, the old contents trimmed.

use std::fmt;

use base::{Bank, Buffers, Command, DeviceError, DriveId, Geometry, Operation, Timestamp};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use format::superblock::{MEMBERS_MAX, Member};
use format::{Layout, LayoutError, PAGE_BYTES, Superblock};
use uuid::Uuid;

use crate::reader::{ReadError, Reader};
use crate::superblocks::store;

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
        /// Name of the drive.
        drive: String,
        /// Why its size can't be divided into segments.
        error: LayoutError,
    },
    /// A block larger than 4 KiB.
    Block {
        /// Name of the drive.
        drive: String,
        /// Its block.
        block_bytes: u32,
    },
    /// Writing failed.
    Write {
        /// Name of the drive.
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
                write!(f, "{drive}: {attempted} failed: {error}")
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
            let layout = Layout::default_for(capacity)
                .map(|layout| layout.segment_bytes)
                .or_else(|error| plan.segment_bytes.ok_or(error))
                .and_then(|default| {
                    let segment = plan.segment_bytes.unwrap_or(default);
                    let chunk = plan.chunk_max.unwrap_or_else(|| Layout::chunk_max_for(segment));
                    Layout::new(capacity, segment, chunk)
                });
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
        run(
            reader,
            drive,
            Operation::Write { offset, length: piece.len() as u32, buffer, fua: false },
        )?;
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

#[cfg(test)]
mod tests {
    use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
    use base::{BankError, BufferId, Completion, Full, Geometry, Instant};

    use super::*;

    fn plan(identities: usize) -> Plan {
        Plan {
            uuid: Uuid::from_u128(1),
            name: "array".into(),
            created: Timestamp::from_nanos(1),
            segment_bytes: None,
            chunk_max: None,
            identities: (0..identities).map(|n| format!("drive {n}")).collect(),
            trim: true,
            parity: 0,
        }
    }

    fn bank(count: usize, drive: &MemoryDrive) -> (Logged, MemoryBuffers) {
        let memory = MemoryBuffers::new(1, 64 << 10);
        let bank = MemoryBank::new(vec![drive.clone(); count], memory.clone());
        (Logged { bank, asked: Vec::new() }, memory)
    }

    /// A bank that notes what it is asked to do.
    struct Logged {
        bank: MemoryBank,
        asked: Vec<(DriveId, Operation)>,
    }

    impl Bank for Logged {
        fn drives(&self) -> &[Geometry] {
            self.bank.drives()
        }
        fn now(&self) -> Instant {
            self.bank.now()
        }
        fn submit(&mut self, command: Command) -> Result<(), Full> {
            self.asked.push((command.drive, command.operation));
            self.bank.submit(command)
        }
        fn wait(
            &mut self,
            until: Option<Instant>,
            done: &mut Vec<Completion>,
        ) -> Result<(), BankError> {
            self.bank.wait(until, done)
        }
    }

    #[test]
    fn an_array_has_from_one_to_256_members_with_blocks_of_up_to_4_kib() {
        let of = |count, drive: &MemoryDrive| layouts(&bank(count, drive).0, &plan(count));
        let drive = MemoryDrive { capacity_bytes: 64 << 20, ..MemoryDrive::default() };
        assert_eq!(of(0, &drive), Err(CreateError::Members(0)));
        assert_eq!(of(1, &drive).map(|layouts| layouts.len()), Ok(1));
        assert_eq!(of(256, &drive).map(|layouts| layouts.len()), Ok(256));
        let error = of(257, &drive).unwrap_err();
        assert_eq!(error, CreateError::Members(257));
        assert!(error.to_string().contains("257 drives: an array has from 1 to 256"), "{error}");

        for (block_bytes, suits) in [(512, true), (4096, true), (8192, false)] {
            let drive = MemoryDrive { block_bytes, trim_unit_bytes: None, ..drive.clone() };
            let layouts = of(1, &drive);
            assert_eq!(layouts.is_ok(), suits, "blocks of {block_bytes}");
            if let Err(error) = layouts {
                assert!(error.to_string().contains("blocks of 8192 bytes"), "{error}");
            }
        }
    }

    #[test]
    fn lengths_that_are_not_given_follow_from_the_drive_and_from_those_that_are() {
        let of = |capacity_bytes, segment_bytes, chunk_max| {
            let drive = MemoryDrive { capacity_bytes, ..MemoryDrive::default() };
            let plan = Plan { segment_bytes, chunk_max, ..plan(1) };
            layouts(&bank(1, &drive).0, &plan).map(|layouts| layouts[0])
        };
        let capacity = 1 << 30;
        let default = Layout::default_for(capacity).unwrap();
        assert_eq!(of(capacity, None, None), Ok(default));
        let chunk = of(capacity, None, Some(1 << 20)).unwrap();
        assert_eq!((chunk.segment_bytes, chunk.chunk_max), (default.segment_bytes, 1 << 20));
        let segment = of(capacity, Some(32 << 20), None).unwrap();
        let chunk_max = Layout::chunk_max_for(32 << 20);
        assert_eq!((segment.segment_bytes, segment.chunk_max), (32 << 20, chunk_max));
        let both = of(capacity, Some(32 << 20), Some(1 << 20)).unwrap();
        assert_eq!((both.segment_bytes, both.chunk_max), (32 << 20, 1 << 20));
        // Too small for the default segments, and not for those that are asked for.
        assert!(matches!(of(4 << 20, None, None), Err(CreateError::Layout { .. })));
        let small = of(4 << 20, Some(1 << 20), Some(64 << 10)).unwrap();
        assert_eq!(small.segment_bytes, 1 << 20);
    }

    #[test]
    fn each_drive_is_trimmed_in_whole_units_and_then_given_its_superblocks_and_padding() {
        let drive = MemoryDrive {
            capacity_bytes: (64 << 20) + 5 * 4096,
            trim_unit_bytes: Some(3 * 4096),
            ..MemoryDrive::default()
        };
        for trim in [true, false] {
            let (mut bank, memory) = bank(2, &drive);
            let mut reader =
                Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
            let superblocks = create(&mut reader, &Plan { trim, ..plan(2) }).unwrap();
            assert_eq!(superblocks.iter().map(|made| made.member).collect::<Vec<_>>(), [0, 1]);
            for id in [DriveId(0), DriveId(1)] {
                let asked = bank.asked.iter().filter(|(drive, _)| *drive == id).map(|(_, o)| *o);
                let asked: Vec<Operation> = asked.collect();
                let trims: Vec<_> =
                    asked.iter().filter(|o| matches!(o, Operation::Trim { .. })).collect();
                let length = drive.capacity_bytes / (3 * 4096) * (3 * 4096);
                if trim {
                    assert_eq!(trims, [&Operation::Trim { offset: 0, length }]);
                    assert_eq!(asked[0], *trims[0], "before anything is written");
                } else {
                    assert_eq!(trims, [] as [&Operation; 0]);
                }
                let mut written: Vec<(u64, u64)> = asked
                    .iter()
                    .filter_map(|operation| match operation {
                        Operation::Write { offset, length, .. } => {
                            Some((*offset, u64::from(*length)))
                        }
                        _ => None,
                    })
                    .collect();
                assert_eq!(written.iter().map(|(_, length)| length).sum::<u64>(), WRITTEN_BYTES);
                // The start is written without a hole, in as many pieces as the buffer takes.
                written.sort_unstable();
                let (copy, start) = written.split_last().unwrap();
                assert_eq!(*copy, (Layout::copy_offset(drive.capacity_bytes), SUPERBLOCK_BYTES));
                let mut end = 0;
                for (offset, length) in start {
                    assert_eq!(*offset, end);
                    end += length;
                }
                assert_eq!(end, DATA_OFFSET + PAGE_BYTES);
            }
        }
    }

    #[test]
    fn a_drive_that_fails_is_named_with_what_was_tried() {
        let (mut bank, memory) = bank(2, &MemoryDrive::default());
        bank.bank.fail_from(DriveId(1), Instant::START, DeviceError::Medium);
        let name = bank.drives()[1].name.clone();
        let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
        let error = create(&mut reader, &plan(2)).unwrap_err();
        assert!(matches!(&error, CreateError::Write { drive, .. } if *drive == name), "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&name) && text.contains(" failed: "), "{text}");
    }
}
