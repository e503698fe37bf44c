//! Where a striped set's bytes lie on its members: arithmetic alone.

use std::fmt;
use std::ops::Range;

/// How a set spreads data over its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Stripes alone.
    Raid0,
    /// Stripes, and in each row a place of parity on another member.
    Raid5,
    /// The same with two places of parity.
    Raid6,
}

impl Level {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Raid0, Self::Raid5, Self::Raid6];

    /// `raid0` and so on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raid0 => "raid0",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
        }
    }

    /// Places of parity in each row.
    pub const fn parities(self) -> usize {
        match self {
            Self::Raid0 => 0,
            Self::Raid5 => 1,
            Self::Raid6 => 2,
        }
    }

    /// Fewest members: two hold data.
    pub const fn members_min(self) -> usize {
        self.parities() + 2
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a member does for a command of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Flushes.
    Flush,
}

/// A command to one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberCommand {
    /// Zero-based index of the member.
    pub member: usize,
    /// What it does.
    pub verb: Verb,
    /// Where on the member, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// The order of data and parity. A *stripe* is what lies together on one member; a *row* is the stripes of all members at one
/// offset. With parity it is left-symmetric, as the Linux kernel's md has it by default: parity moves down by one member with
/// each row, and data begins behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// With or without parity.
    pub level: Level,
    /// Number of members.
    pub members: usize,
    /// Bytes of a stripe.
    pub stripe_bytes: u64,
}

impl Layout {
    /// Members that hold data in each row.
    pub const fn data_members(&self) -> usize {
        self.members - self.level.parities()
    }

    /// Bytes of data in a row.
    pub const fn row_bytes(&self) -> u64 {
        self.data_members() as u64 * self.stripe_bytes
    }

    /// The member that holds the first parity of a row, or the first stripe if there is no parity.
    const fn first(&self, row: u64) -> usize {
        match self.level {
            Level::Raid0 => 0,
            Level::Raid5 | Level::Raid6 => self.members - 1 - (row % self.members as u64) as usize,
        }
    }

    /// The member that holds a stripe of a row, counted from 0.
    const fn member(&self, row: u64, stripe: usize) -> usize {
        (self.first(row) + self.level.parities() + stripe) % self.members
    }

    /// The members that hold a row's parity.
    pub fn parity_members(&self, row: u64) -> impl Iterator<Item = usize> + use<> {
        let (first, members) = (self.first(row), self.members);
        (0..self.level.parities()).map(move |parity| (first + parity) % members)
    }

    /// Member and offset of a byte of the set.
    pub const fn place(&self, at: u64) -> (usize, u64) {
        let (row, in_row) = (at / self.row_bytes(), at % self.row_bytes());
        let member = self.member(row, (in_row / self.stripe_bytes) as usize);
        (member, row * self.stripe_bytes + in_row % self.stripe_bytes)
    }

    /// The byte of the set that a member holds at an offset; None for parity.
    pub const fn data_at(&self, member: usize, offset: u64) -> Option<u64> {
        let row = offset / self.stripe_bytes;
        let behind = (member + self.members - self.first(row)) % self.members;
        if behind < self.level.parities() {
            return None;
        }
        let stripe = (behind - self.level.parities()) as u64;
        Some(row * self.row_bytes() + stripe * self.stripe_bytes + offset % self.stripe_bytes)
    }

    /// Whether a range lies in one stripe.
    pub const fn in_one_stripe(&self, offset: u64, length: u64) -> bool {
        length <= self.stripe_bytes - offset % self.stripe_bytes
    }

    /// Adds what a read needs: at most one command for each stretch that lies together on a member.
    pub fn read(&self, offset: u64, length: u64, commands: &mut Vec<MemberCommand>) {
        for (member, range) in self.stripes(offset, length) {
            add(commands, Verb::Read, member, range);
        }
    }

    /// Adds what a write needs once [`Layout::read_before_write`] is done.
    pub fn write(&self, offset: u64, length: u64, commands: &mut Vec<MemberCommand>) {
        if self.level == Level::Raid0 {
            for (member, range) in self.stripes(offset, length) {
                add(commands, Verb::Write, member, range);
            }
            return;
        }
        for row in self.rows(offset, length) {
            for (member, range) in self.stripes(row.start, row.end - row.start) {
                add(commands, Verb::Write, member, range);
            }
            let base = row.start / self.row_bytes() * self.stripe_bytes;
            for range in self.parity_ranges(&row) {
                for member in self.parity_members(row.start / self.row_bytes()) {
                    add(commands, Verb::Write, member, base + range.start..base + range.end);
                }
            }
        }
    }

    /// Adds what must be read before a write so that parity can be renewed: nothing where whole rows are written. Of part of a
    /// row either what is overwritten, with its parity (read-modify-write), or all that is not overwritten beside it
    /// (reconstruct-write) if that takes fewer reads.
    pub fn read_before_write(&self, offset: u64, length: u64, commands: &mut Vec<MemberCommand>) {
        if self.level == Level::Raid0 {
            return;
        }
        let (mut modify, mut reconstruct) = (Vec::new(), Vec::new());
        for row in self.rows(offset, length) {
            if row.end - row.start == self.row_bytes() {
                continue;
            }
            modify.clear();
            reconstruct.clear();
            let number = row.start / self.row_bytes();
            let base = number * self.stripe_bytes;
            for (member, range) in self.stripes(row.start, row.end - row.start) {
                add(&mut modify, Verb::Read, member, range);
            }
            for range in self.parity_ranges(&row) {
                let range = base + range.start..base + range.end;
                for member in self.parity_members(number) {
                    add(&mut modify, Verb::Read, member, range.clone());
                }
                for stripe in 0..self.data_members() {
                    let first = number * self.row_bytes() + stripe as u64 * self.stripe_bytes;
                    let written =
                        |at: u64| base + at.clamp(first, first + self.stripe_bytes) - first;
                    let (from, to) = (written(row.start), written(row.end));
                    let member = self.member(number, stripe);
                    let (before, after) = if from < to {
                        (range.start..from.min(range.end), to.max(range.start)..range.end)
                    } else {
                        (range.clone(), 0..0)
                    };
                    for rest in [before, after].into_iter().filter(|rest| rest.start < rest.end) {
                        add(&mut reconstruct, Verb::Read, member, rest);
                    }
                }
            }
            let fewer = if reconstruct.len() < modify.len() { &reconstruct } else { &modify };
            commands.extend(fewer);
        }
    }

    /// Adds the trims of a range: of any with stripes alone, of whole rows with parity.
    pub fn trim(&self, offset: u64, length: u64, commands: &mut Vec<MemberCommand>) {
        // A member's bytes among the first bytes of the set.
        let before = |member: usize, at: u64| {
            let (row, in_row) = (at / self.row_bytes(), at % self.row_bytes());
            let own = match self.level {
                Level::Raid0 => in_row.saturating_sub(member as u64 * self.stripe_bytes),
                Level::Raid5 | Level::Raid6 => 0,
            };
            row * self.stripe_bytes + own.min(self.stripe_bytes)
        };
        for member in 0..self.members {
            let range = before(member, offset)..before(member, offset + length);
            if range.start < range.end {
                add(commands, Verb::Trim, member, range);
            }
        }
    }

    /// The parts of a range by row, in bytes of the set.
    fn rows(&self, offset: u64, length: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        pieces(offset, length, self.row_bytes())
    }

    /// The parts of a range by stripe: the member, and the range on it.
    fn stripes(
        &self,
        offset: u64,
        length: u64,
    ) -> impl Iterator<Item = (usize, Range<u64>)> + use<> {
        let layout = *self;
        pieces(offset, length, self.stripe_bytes).map(move |piece| {
            let (member, at) = layout.place(piece.start);
            (member, at..at + (piece.end - piece.start))
        })
    }

    /// The bytes of a row's parity that change with a part of it, from the stripe's beginning.
    fn parity_ranges(&self, row: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let stripe = self.stripe_bytes;
        let (from, length) = (row.start % stripe, row.end - row.start);
        let ranges = if from + length <= stripe {
            [from..from + length, 0..0]
        } else if length >= stripe {
            [0..stripe, 0..0]
        } else {
            // The end of one stripe and the beginning of the next.
            [0..from + length - stripe, from..stripe]
        };
        ranges.into_iter().filter(|range| range.start < range.end)
    }
}

/// A range cut at multiples of `unit`.
fn pieces(offset: u64, length: u64, unit: u64) -> impl Iterator<Item = Range<u64>> {
    let end = offset + length;
    let mut at = offset;
    std::iter::from_fn(move || {
        let start = at;
        at = end.min((start / unit + 1) * unit);
        (start < end).then_some(start..at)
    })
}

/// Adds a command, as part of one that it continues.
fn add(commands: &mut Vec<MemberCommand>, verb: Verb, member: usize, range: Range<u64>) {
    let (offset, length) = (range.start, range.end - range.start);
    let last = commands.iter_mut().rev().find(|c| c.member == member && c.verb == verb);
    match last {
        Some(last) if last.offset + last.length == offset => last.length += length,
        _ => commands.push(MemberCommand { member, verb, offset, length }),
    }
}
