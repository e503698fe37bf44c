//! The superblocks of all drives, as they were found.

use base::{Bank, Buffers, DriveId, Geometry};
use format::layout::SUPERBLOCK_BYTES;
use format::{Damage, Layout, Superblock};

use super::OpenError;
use crate::reader::{Range, Reader};

/// Whether a superblock marks a drive that does not count yet: a lost member is being rebuilt on it.
pub const fn is_unfinished(superblock: &Superblock) -> bool {
    superblock.generation == 0
}

/// Reads one drive's superblock: the sound copy with the greater generation.
///
/// # Errors
/// [`OpenError::NotMember`] if neither copy is sound, [`OpenError::Read`] if the bank fails.
pub fn superblock<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
) -> Result<Superblock, OpenError> {
    superblock_copies(reader, drive).map(|(superblock, _)| superblock)
}

/// How a superblock's two copies were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// Both are sound and the same.
    Same,
    /// The first one counts.
    First,
    /// The one at the end counts.
    Last,
}

/// The same, and how both copies were found.
pub(crate) fn superblock_copies<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
) -> Result<(Superblock, Copies), OpenError> {
    let Geometry { name, capacity_bytes, .. } = reader.bank.drives()[drive.index()].clone();
    if capacity_bytes < 2 * SUPERBLOCK_BYTES {
        return Err(OpenError::NotMember { drive: name, damage: Damage::Short });
    }
    let offsets = [0, Layout::copy_offset(capacity_bytes)];
    let ranges = offsets.map(|offset| Range { drive, offset, length: SUPERBLOCK_BYTES as u32 });
    let mut read: [Result<Superblock, Damage>; 2] = [Err(Damage::Short), Err(Damage::Short)];
    let mut failed = None;
    reader.scatter(&ranges, |at, bytes| match bytes {
        Ok(bytes) => read[at] = Superblock::read(bytes, offsets[at]),
        Err(error) => failed = Some((at, error)),
    })?;
    let [first, copy] = read;
    match (first, copy) {
        (Ok(first), Ok(last)) if first == last => Ok((first, Copies::Same)),
        (Ok(first), Ok(last)) if age(&last) > age(&first) => Ok((last, Copies::Last)),
        (Ok(first), _) => Ok((first, Copies::First)),
        (Err(_), Ok(last)) => Ok((last, Copies::Last)),
        (Err(damage), Err(_)) => match failed {
            Some((at, error)) => Err(reader.error(ranges[at], error).into()),
            None => Err(OpenError::NotMember { drive: name, damage }),
        },
    }
}

/// Of two copies the one with the greater age counts. A drive that joins keeps the generation of the others: where that was cut
/// short, the copies differ in the time at which it joined.
fn age(superblock: &Superblock) -> (u64, u64) {
    let own = superblock.members.get(usize::from(superblock.member));
    (superblock.generation, own.map_or(0, |own| own.joined_ns))
}

/// A drive's superblock.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The drive's name, as errors have it.
    pub(super) name: String,
    /// What the drive takes.
    pub(super) capacity_bytes: u64,
    pub(super) superblock: Superblock,
    pub(super) copies: Copies,
}

/// Reads the superblocks of all of the bank's drives, in the bank's order.
///
/// # Errors
/// As [`superblock`], for the first drive that has none.
pub(super) fn discover<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
) -> Result<Vec<Found>, OpenError> {
    let drives = reader.bank.drives().to_vec();
    let mut found = Vec::with_capacity(drives.len());
    for (at, Geometry { name, capacity_bytes, .. }) in (0u16..).zip(drives) {
        let (superblock, copies) = superblock_copies(reader, DriveId(at))?;
        found.push(Found { name, capacity_bytes, superblock, copies });
    }
    Ok(found)
}
