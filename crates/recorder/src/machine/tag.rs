//! Tags of the commands that the core asks for: a number, and what the command is.

/// What a command under way is, and whose. A tag carries both beside its number, so that nothing has to be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Chunk(u16),
    Index(u16),
    Trim(u16),
    Flush(u16),
}

impl Tag {
    /// Bits below a tag's number: 16 for the member, 2 for the kind.
    const BITS: u32 = 18;

    pub(super) const fn numbered(self, number: u64) -> u64 {
        let (kind, member) = match self {
            Self::Chunk(member) => (0, member),
            Self::Index(member) => (1, member),
            Self::Trim(member) => (2, member),
            Self::Flush(member) => (3, member),
        };
        number << Self::BITS | kind << 16 | member as u64
    }

    pub(super) const fn of(tag: u64) -> Self {
        let member = tag as u16;
        match tag >> 16 & 3 {
            0 => Self::Chunk(member),
            1 => Self::Index(member),
            2 => Self::Trim(member),
            _ => Self::Flush(member),
        }
    }
}
