//! Any bytes as a superblock: the reader never panics, and what it takes for sound is a layout that
//! holds together and can be written again.
//!
//! The first byte says whether checksums are put right first; the next eight give the offset; the rest is
//! the superblock, filled up with zeros.

use format::Superblock;
use format::layout::SUPERBLOCK_BYTES;

use crate::checksums;

/// Reads them.
pub fn run(data: &[u8]) {
    let Some((mode, rest)) = data.split_first() else { return };
    let Some((offset, rest)) = rest.split_first_chunk() else { return };
    let offset = u64::from_le_bytes(*offset);
    let mut bytes = rest.to_vec();
    if mode & 2 == 0 {
        bytes.resize(SUPERBLOCK_BYTES as usize, 0);
    }
    if mode & 1 != 0 {
        let length = bytes.len();
        checksums::section(&mut bytes, length);
    }
    let Ok(found) = Superblock::read(&bytes, offset) else { return };
    let layout = found.layout;
    assert!(usize::from(found.member) < found.members.len());
    assert!(layout.segments >= 2 && layout.chunk_min <= layout.chunk_max);
    let end = layout.segment_offset(layout.segments - 1).checked_add(layout.segment_bytes);
    assert!(end.is_some(), "a segment ends behind every address");
    assert!(layout.fits(0, 0, layout.chunk_max));
    let again = Superblock::read(&found.encode(offset), offset).expect("what was written reads");
    assert_eq!((again.layout, again.member, again.array), (layout, found.member, found.array));
    assert_eq!(again.protected.len(), found.protected.len());
}
