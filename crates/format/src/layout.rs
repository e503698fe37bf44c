//! Where things lie on a member: superblocks, segments, and how long a chunk may be.

use std::fmt;

use base::ByteSize;

use crate::index;

/// Everything on the media starts at a multiple of this.
pub const PAGE_BYTES: u64 = 4096;
/// Length of a superblock.
pub const SUPERBLOCK_BYTES: u64 = 64 << 10;
/// Where the first segment starts.
pub const DATA_OFFSET: u64 = 1 << 20;
/// The longest chunk that a reader need take. The index gap, which may be a chunk and an index long,
/// stays below the 16 MiB that readers of pcapng take for a block.
pub const CHUNK_MAX_LIMIT: u32 = 8 << 20;
/// The least `chunk_max`.
pub const CHUNK_MAX_LEAST: u32 = 64 << 10;
/// Segment length unless chosen otherwise.
pub const SEGMENT_DEFAULT: u64 = 256 << 20;
/// `chunk_max` unless chosen otherwise: 64 of them leave a thousandth of a default segment to their index and the flow index.
pub const CHUNK_MAX_DEFAULT: u32 = (4 << 20) - PAGE_BYTES as u32;

/// How one member is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Length of a segment in bytes.
    pub segment_bytes: u64,
    /// How many segments there are.
    pub segments: u64,
    /// Longest chunk in bytes.
    pub chunk_max: u32,
    /// Shortest chunk in bytes.
    pub chunk_min: u32,
}

/// Why a member can't be divided as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Fewer than two segments fit.
    TooSmall {
        /// What there is.
        capacity_bytes: u64,
        /// What it takes at least.
        least_bytes: u64,
    },
    /// The lengths don't go together; the text says which and how they must.
    Lengths(String),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { capacity_bytes, least_bytes } => write!(
                f,
                "a member of {} holds fewer than two segments: give it at least {} bytes or choose smaller segments",
                ByteSize(*capacity_bytes),
                least_bytes
            ),
            Self::Lengths(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for LayoutError {}

impl Layout {
    /// Divides `capacity_bytes` by the rules of `docs/format.md`, sections 1 and 5.
    ///
    /// # Errors
    /// [`LayoutError`] if fewer than two segments fit or the lengths break a rule.
    pub fn new(
        capacity_bytes: u64,
        segment_bytes: u64,
        chunk_max: u32,
    ) -> Result<Self, LayoutError> {
        let page = PAGE_BYTES as u32;
        if !chunk_max.is_multiple_of(page)
            || !(CHUNK_MAX_LEAST..=CHUNK_MAX_LIMIT).contains(&chunk_max)
        {
            return Err(LayoutError::Lengths(format!(
                "chunks of {chunk_max} bytes: give a multiple of {page} from {CHUNK_MAX_LEAST} to {CHUNK_MAX_LIMIT}"
            )));
        }
        if !segment_bytes.is_multiple_of(PAGE_BYTES)
            || segment_bytes < 4 * u64::from(chunk_max)
            || segment_bytes > 64 << 30
        {
            return Err(LayoutError::Lengths(format!(
                "segments of {segment_bytes} bytes: give a multiple of {page}, at least four chunks of {chunk_max} bytes, at most 64 GiB"
            )));
        }
        let least_bytes = DATA_OFFSET + 2 * segment_bytes + SUPERBLOCK_BYTES;
        if capacity_bytes < least_bytes {
            return Err(LayoutError::TooSmall { capacity_bytes, least_bytes });
        }
        let segments = (Self::copy_offset(capacity_bytes) - DATA_OFFSET) / segment_bytes;
        let entries_max = index::entries_in(u64::from(chunk_max));
        let chunk_min = segment_bytes.div_ceil(entries_max).next_multiple_of(PAGE_BYTES) as u32;
        if chunk_min > chunk_max {
            return Err(LayoutError::Lengths(format!(
                "segments of {segment_bytes} bytes are too long for chunks of {chunk_max}: the index would not fit in a chunk"
            )));
        }
        Ok(Self { segment_bytes, segments, chunk_max, chunk_min })
    }

    /// The default layout of a member, with smaller segments where it would hold fewer than 16 of
    /// them: never below 16 MiB.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn default_for(capacity_bytes: u64) -> Result<Self, LayoutError> {
        let mut segment_bytes = SEGMENT_DEFAULT;
        while segment_bytes > 16 << 20 && capacity_bytes / segment_bytes < 16 {
            segment_bytes /= 2;
        }
        Self::new(capacity_bytes, segment_bytes, Self::chunk_max_for(segment_bytes))
    }

    /// The longest chunk that suits a segment: up to 4 MiB, and a whole number of them leaves only
    /// the index's room.
    pub fn chunk_max_for(segment_bytes: u64) -> u32 {
        CHUNK_MAX_DEFAULT
            .min(((segment_bytes / 16) as u32).next_multiple_of(4096).saturating_sub(4096))
    }

    /// Where a segment starts on the member.
    pub const fn segment_offset(&self, segment: u64) -> u64 {
        DATA_OFFSET + segment * self.segment_bytes
    }

    /// The segment that an offset on the member lies in; the first one for what lies before the data.
    pub const fn segment_at(&self, offset: u64) -> u64 {
        offset.saturating_sub(DATA_OFFSET) / self.segment_bytes
    }

    /// Bytes of all segments.
    pub const fn data_bytes(&self) -> u64 {
        self.segments * self.segment_bytes
    }

    /// Where the superblock's copy lies on a member of this capacity.
    pub const fn copy_offset(capacity_bytes: u64) -> u64 {
        capacity_bytes / PAGE_BYTES * PAGE_BYTES - SUPERBLOCK_BYTES
    }

    /// Whether a chunk of `length` still fits in a segment that holds `used` bytes in `chunks`
    /// chunks, together with the index.
    pub const fn fits(&self, used: u64, chunks: u64, length: u32) -> bool {
        used + length as u64 + index::length_for(chunks + 1) <= self.segment_bytes
    }

    /// The longest chunk of which a segment holds as many with `room` bytes to spare as it holds of the longest without. Where that
    /// would be much shorter, or too short, it stays the longest, and a segment may hold one less.
    pub fn chunk_max_beside(&self, room: u64) -> u32 {
        let longest = u64::from(self.chunk_max);
        let mut count = self.segment_bytes / longest;
        while count > 0 && count * longest + index::length_for(count) > self.segment_bytes {
            count -= 1;
        }
        let free = self.segment_bytes.saturating_sub(index::length_for(count) + room);
        let each = free / count.max(1) / PAGE_BYTES * PAGE_BYTES;
        let least = u64::from(CHUNK_MAX_LEAST).max(longest / 16 * 15);
        if each < least { self.chunk_max } else { each.min(longest) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_leave_room_for_a_flow_index_are_hardly_shorter() {
        let default = Layout::default_for(1 << 40).unwrap();
        let chunk_max = default.chunk_max_beside(512 << 10);
        assert_eq!(chunk_max, default.chunk_max - 8192);
        let used = 64 * u64::from(chunk_max);
        assert!(used + index::length_for(64) + (512 << 10) <= default.segment_bytes);
        // Seven chunks leave nearly a megabyte anyway.
        let roomy = Layout::new(1 << 32, 8 << 20, 1 << 20).unwrap();
        assert_eq!(roomy.chunk_max_beside(64 << 10), 1 << 20);
        // Four chunks take a segment to its last byte: each gives up a quarter of the room.
        let exact = Layout::new(1 << 32, (4 << 20) + 8192, 1 << 20).unwrap();
        assert_eq!(exact.chunk_max_beside(64 << 10), (1 << 20) - (16 << 10));
        assert_eq!(exact.chunk_max_beside(256 << 10), (1 << 20) / 16 * 15, "hardly shorter");
        assert_eq!(exact.chunk_max_beside((256 << 10) + 4096), 1 << 20, "too short");
        // A segment of four chunks holds three beside its index, and room for a fourth in part.
        let whole = Layout::new(1 << 32, 4 << 20, 1 << 20).unwrap();
        assert_eq!(whole.chunk_max_beside((1 << 20) + (64 << 10)), (1 << 20) - (24 << 10));
        // An eighth less is too much, and so is less than a chunk may have.
        let coarse = Layout::new(1 << 32, (4 << 20) + 8192, 1 << 20).unwrap();
        assert_eq!(coarse.chunk_max_beside(512 << 10), 1 << 20);
        let small = Layout::new(1 << 32, (256 << 10) + 8192, 64 << 10).unwrap();
        assert_eq!(small.chunk_max_beside(8192), 64 << 10);
    }

    #[test]
    fn default_segments_hold_64_full_chunks() {
        let layout = Layout::default_for(1 << 40).unwrap();
        assert_eq!(layout.segment_bytes, 256 << 20);
        assert_eq!(layout.chunk_max, 4_190_208);
        assert_eq!(layout.chunk_min, 28_672);
        let mut used = 0;
        let mut chunks = 0;
        while layout.fits(used, chunks, layout.chunk_max) {
            used += u64::from(layout.chunk_max);
            chunks += 1;
        }
        assert_eq!(chunks, 64);
        // The rest is the flow index's.
        assert_eq!(layout.segment_bytes - used - index::length_for(chunks), 224 << 10);
    }

    #[test]
    fn shortest_chunks_fill_a_segment_before_its_index_is_full() {
        for (segment, chunk_max) in
            [(256 << 20, CHUNK_MAX_DEFAULT), (1 << 20, 65_536), (16 << 20, 1 << 20)]
        {
            let layout = Layout::new(1 << 32, segment, chunk_max).unwrap();
            let (mut used, mut chunks) = (0, 0);
            while layout.fits(used, chunks, layout.chunk_min) {
                used += u64::from(layout.chunk_min);
                chunks += 1;
            }
            assert!(index::length_for(chunks) <= u64::from(chunk_max) + PAGE_BYTES);
            assert!(segment - used < u64::from(layout.chunk_min) + index::length_for(chunks + 1));
        }
    }

    #[test]
    fn lengths_that_do_not_go_together_are_refused() {
        assert!(Layout::new(1 << 30, 256 << 20, 5000).is_err());
        assert!(Layout::new(1 << 30, 1 << 20, 1 << 20).is_err());
        assert!(matches!(Layout::new(1 << 20, 1 << 20, 65_536), Err(LayoutError::TooSmall { .. })));
    }
}
