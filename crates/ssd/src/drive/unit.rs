//! The unit in which a drive's data is mapped.

/// A unit's size: a power of two, so that nothing is divided where commands are served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    bits: u32,
}

impl Unit {
    /// Of so many bytes, a power of two.
    pub(super) const fn of(bytes: u32) -> Self {
        assert!(bytes.is_power_of_two(), "the spec was checked");
        Self { bits: bytes.trailing_zeros() }
    }

    /// Bytes of one unit.
    #[inline]
    pub(super) const fn bytes(self) -> u32 {
        1 << self.bits
    }

    /// Bytes of so many units.
    #[inline]
    pub(super) const fn bytes_of(self, units: u64) -> u64 {
        units << self.bits
    }

    /// Where the unit that holds this byte starts.
    #[inline]
    pub(super) const fn floor(self, offset: u64) -> u64 {
        offset >> self.bits << self.bits
    }

    /// Where the next unit starts, or this one if it starts here.
    #[inline]
    pub(super) const fn ceil(self, offset: u64) -> u64 {
        self.floor(offset + self.bytes() as u64 - 1)
    }

    /// Whether a unit starts here.
    #[inline]
    pub(super) const fn starts_at(self, offset: u64) -> bool {
        self.floor(offset) == offset
    }

    /// Units that hold the bytes from `start` to before `end`.
    #[inline]
    pub(super) const fn count(self, start: u64, end: u64) -> u64 {
        (self.ceil(end) >> self.bits) - (start >> self.bits)
    }
}
