//! A striped set: several equal drives as one, with one address space and one depth.
//!
//! [`StripedBank`] wraps a bank and offers one drive. A command is cut at the stripes' boundaries, and completes once, when all of its
//! parts have. What lies together on a member goes there as one command. Parity is written in its place and as often as it must be, with
//! the reads that it needs, but it is not computed: sets with parity are for measuring, and survive the loss of no member.

mod layout;

use std::collections::VecDeque;
use std::fmt;

use crate::{
    Bank, BankError, BufferId, Buffers, Command, Completion, DeviceError, DriveId, Full, Geometry,
    Instant, NoBuffers, Operation,
};

pub use layout::{Layout, Level, MemberCommand, Verb};

/// Bytes of a stripe unless another size is asked for.
pub const STRIPE_BYTES: u64 = 64 << 10;

/// Memory that parts of commands may take together where data is moved, in bytes. More would let more parts of long commands be under
/// way than any drive has places for.
const SPARE_BYTES_MAX: u64 = 256 << 20;

/// How drives become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripedSet {
    /// What the set is called.
    pub name: String,
    /// With or without parity.
    pub level: Level,
    /// Bytes of a stripe.
    pub stripe_bytes: u64,
}

impl StripedSet {
    /// The order of data on so many members.
    pub const fn layout(&self, members: usize) -> Layout {
        Layout { level: self.level, members, stripe_bytes: self.stripe_bytes }
    }

    /// How many spare buffers let all parts of `depth` commands be under way, within reason.
    pub fn spare_buffers(&self, depth: u32, members: usize, buffer_bytes: u32) -> u32 {
        let enough = u64::from(depth) * (members + self.level.parities()) as u64;
        enough.min(SPARE_BYTES_MAX / u64::from(buffer_bytes.max(1))).max(members as u64) as u32
    }

    /// The drive that a set of these members is. Capacity is that of the smallest member times the number that hold data; the depth
    /// is that of all members together.
    ///
    /// # Errors
    /// [`StripedError`] if they can't be one.
    pub fn geometry(&self, members: &[Geometry]) -> Result<Geometry, StripedError> {
        geometry(self, members)
    }
}

/// Why drives can't be a striped set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripedError {
    /// There are too few of them.
    Few {
        /// With or without parity.
        level: Level,
        /// How many there are.
        members: usize,
    },
    /// Stripes that are no whole number of blocks.
    Stripe {
        /// Bytes of a stripe.
        stripe_bytes: u64,
        /// Bytes of a block.
        block_bytes: u32,
    },
    /// A member holds less than a stripe.
    Small {
        /// Its name.
        member: String,
    },
}

impl fmt::Display for StripedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Few { level, members } => {
                write!(f, "{level} needs {} drives or more, not {members}", level.members_min())
            }
            Self::Stripe { stripe_bytes, block_bytes } => write!(
                f,
                "stripes of {stripe_bytes} bytes are no whole number of the drives' blocks: give a multiple of {block_bytes}"
            ),
            Self::Small { member } => {
                write!(f, "{member} is smaller than a stripe: give a smaller one")
            }
        }
    }
}

impl std::error::Error for StripedError {}

fn geometry(set: &StripedSet, members: &[Geometry]) -> Result<Geometry, StripedError> {
    let layout = set.layout(members.len());
    if members.len() < layout.level.members_min() {
        return Err(StripedError::Few { level: layout.level, members: members.len() });
    }
    let stripe = layout.stripe_bytes;
    let block_bytes = members.iter().map(|member| member.block_bytes).max().unwrap_or(512);
    if stripe == 0 || !stripe.is_multiple_of(block_bytes.into()) {
        return Err(StripedError::Stripe { stripe_bytes: stripe, block_bytes });
    }
    if let Some(member) = members.iter().find(|member| member.capacity_bytes < stripe) {
        return Err(StripedError::Small { member: member.name.clone() });
    }
    let rows = members.iter().map(|member| member.capacity_bytes / stripe).min().unwrap_or(0);
    let transfer = members.iter().map(|member| member.transfer_max_bytes).min().unwrap_or(0);
    Ok(Geometry {
        name: set.name.clone(),
        capacity_bytes: rows * layout.row_bytes(),
        block_bytes,
        transfer_max_bytes: transfer / block_bytes * block_bytes,
        depth_max: members.iter().map(|member| member.depth_max).sum(),
        trim_unit_bytes: trim_unit(&layout, members),
        trim_reads_zeros: members.iter().all(|member| member.trim_reads_zeros)
            && trim_unit(&layout, members).is_some(),
        writable: members.iter().all(|member| member.writable),
    })
}

/// The members' own, if stripes are whole numbers of it; whole rows with parity, which would be wrong for the rest.
fn trim_unit(layout: &Layout, members: &[Geometry]) -> Option<u32> {
    let unit = members.first()?.trim_unit_bytes?;
    let same = members.iter().all(|member| member.trim_unit_bytes == Some(unit));
    if !same || !layout.stripe_bytes.is_multiple_of(unit.into()) {
        return None;
    }
    match layout.level {
        Level::Raid0 => Some(unit),
        Level::Raid5 | Level::Raid6 => u32::try_from(layout.row_bytes()).ok(),
    }
}

/// All drives of a bank as one.
#[derive(Debug)]
pub struct StripedBank<B, M = NoBuffers> {
    bank: B,
    layout: Layout,
    geometry: [Geometry; 1],
    memory: M,
    /// Buffers for parts of commands; None where nobody looks at buffers.
    spare: Option<Vec<BufferId>>,
    members: Vec<Member>,
    commands: Slots<Parent>,
    parts: Slots<Part>,
    under_way: u32,
    /// Commands that were answered without the members.
    answered: Vec<Completion>,
    /// What the members need for one command, and what they have done; kept for their memory.
    needed: Vec<MemberCommand>,
    done: Vec<Completion>,
}

#[derive(Debug)]
struct Member {
    under_way: u32,
    depth_max: u32,
    /// Parts that it has no room for yet.
    waiting: VecDeque<u32>,
}

/// A command of the set.
#[derive(Debug)]
struct Parent {
    operation: Operation,
    tag: u64,
    /// Parts of this step that are not done.
    left: u32,
    /// A write is still to come: what is under way are the reads before it.
    reading_before: bool,
    /// It has one part, which uses its buffer.
    whole: bool,
    /// Its buffer is marked as in use by the set, and not by a member's bank.
    lent: bool,
    outcome: Result<(), DeviceError>,
}

/// A command to a member.
#[derive(Debug)]
struct Part {
    parent: u32,
    command: MemberCommand,
    /// The spare buffer that it uses.
    spare: Option<BufferId>,
}

impl<B: Bank> StripedBank<B, NoBuffers> {
    /// A set of drives that keep time and no data.
    ///
    /// # Errors
    /// [`StripedError`] if they can't be one.
    pub fn without_data(bank: B, set: &StripedSet) -> Result<Self, StripedError> {
        Self::build(bank, set, NoBuffers { size: usize::MAX }, None)
    }

    /// The same set of other drives that are alike, with no command under way.
    pub fn over(&self, bank: B) -> Self {
        let (layout, geometry) = (self.layout, self.geometry.clone());
        Self::of(bank, layout, geometry, NoBuffers { size: usize::MAX }, None)
    }
}

impl<B: Bank, M: Buffers> StripedBank<B, M> {
    /// A set that moves data. Commands of several parts are copied through the `spare` buffers, which nobody else may use; more
    /// of them let more parts be under way.
    ///
    /// # Errors
    /// [`StripedError`] if the drives can't be one set.
    ///
    /// # Panics
    /// Without a spare buffer.
    pub fn new(
        bank: B,
        set: &StripedSet,
        memory: M,
        spare: Vec<BufferId>,
    ) -> Result<Self, StripedError> {
        assert!(!spare.is_empty(), "parts of commands need a spare buffer");
        Self::build(bank, set, memory, Some(spare))
    }

    fn build(
        bank: B,
        set: &StripedSet,
        memory: M,
        spare: Option<Vec<BufferId>>,
    ) -> Result<Self, StripedError> {
        let layout = set.layout(bank.drives().len());
        let geometry = set.geometry(bank.drives())?;
        Ok(Self::of(bank, layout, [geometry], memory, spare))
    }

    fn of(
        bank: B,
        layout: Layout,
        geometry: [Geometry; 1],
        memory: M,
        spare: Option<Vec<BufferId>>,
    ) -> Self {
        let member = |drive: &Geometry| Member {
            under_way: 0,
            depth_max: drive.depth_max,
            waiting: VecDeque::new(),
        };
        Self {
            members: bank.drives().iter().map(member).collect(),
            bank,
            layout,
            geometry,
            memory,
            spare,
            commands: Slots::default(),
            parts: Slots::default(),
            under_way: 0,
            answered: Vec::new(),
            needed: Vec::new(),
            done: Vec::new(),
        }
    }

    /// The members' bank.
    pub const fn members(&self) -> &B {
        &self.bank
    }

    /// The members' bank, to change what is on them while no command is under way.
    ///
    /// # Panics
    /// If commands are under way.
    pub fn members_mut(&mut self) -> &mut B {
        assert_eq!(self.under_way, 0, "commands are under way");
        &mut self.bank
    }

    /// Where bytes lie.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Hands out what the members do next for a command; completes it if that is nothing.
    fn begin_step(&mut self, parent: u32) -> Option<Completion> {
        let mut needed = std::mem::take(&mut self.needed);
        needed.clear();
        let command = self.commands.get(parent);
        let layout = &self.layout;
        match command.operation {
            Operation::Read { offset, length, .. } => {
                layout.read(offset, length.into(), &mut needed);
            }
            Operation::Write { offset, length, .. } => {
                if command.reading_before {
                    layout.read_before_write(offset, length.into(), &mut needed);
                }
                if needed.is_empty() {
                    command.reading_before = false;
                    layout.write(offset, length.into(), &mut needed);
                }
            }
            Operation::Trim { offset, length } => layout.trim(offset, length, &mut needed),
            Operation::Flush => {
                needed.extend((0..self.members.len()).map(|member| MemberCommand {
                    member,
                    verb: Verb::Flush,
                    offset: 0,
                    length: 0,
                }))
            }
        }
        command.left = needed.len() as u32;
        for &command in &needed {
            let part = self.parts.put(Part { parent, command, spare: None });
            self.members[command.member].waiting.push_back(part);
        }
        self.needed = needed;
        if self.needed.is_empty() { Some(self.complete(parent, self.bank.now())) } else { None }
    }

    /// Starts what members have room for.
    fn start_waiting(&mut self) {
        for member in 0..self.members.len() {
            while let Some(&part) = self.members[member].waiting.front() {
                let Member { under_way, depth_max, .. } = self.members[member];
                if under_way >= depth_max || !self.start(part) {
                    break;
                }
                self.members[member].waiting.pop_front();
                self.members[member].under_way += 1;
            }
        }
    }

    /// Starts a part, unless it needs a spare buffer and there is none.
    fn start(&mut self, number: u32) -> bool {
        let part = self.parts.get(number);
        let parent = self.commands.get(part.parent);
        let own = parent.operation.buffer();
        let moves = matches!(part.command.verb, Verb::Read | Verb::Write);
        let buffer = match (&mut self.spare, own) {
            (Some(spare), Some(own)) if moves && !parent.whole => {
                let Some(buffer) = spare.pop() else { return false };
                part.spare = Some(buffer);
                if part.command.verb == Verb::Write {
                    gather(
                        &self.layout,
                        &self.memory,
                        parent.operation,
                        (own, buffer),
                        &part.command,
                    );
                }
                buffer
            }
            (_, Some(own)) => {
                if std::mem::take(&mut parent.lent) {
                    self.memory.give_back(own);
                }
                own
            }
            (_, None) => BufferId(0),
        };
        // Parity, too: without it the data could not be made again.
        let fua = matches!(parent.operation, Operation::Write { fua: true, .. });
        let MemberCommand { member, verb, offset, length } = part.command;
        let operation = match verb {
            Verb::Read => Operation::Read { offset, length: length as u32, buffer },
            Verb::Write => Operation::Write { offset, length: length as u32, buffer, fua },
            Verb::Trim => Operation::Trim { offset, length },
            Verb::Flush => Operation::Flush,
        };
        self.bank
            .submit(Command { drive: DriveId(member as u16), operation, tag: number.into() })
            .expect("no more commands than the member's depth are under way");
        true
    }

    /// Takes what a member has done; gives the completion of the command if it was its last part.
    fn take(&mut self, done: Completion) -> Option<Completion> {
        let part = self.parts.take(done.tag as u32);
        self.members[part.command.member].under_way -= 1;
        let parent = self.commands.get(part.parent);
        if let (Some(spare), Some(own)) = (part.spare, parent.operation.buffer()) {
            if done.outcome.is_ok() && matches!(parent.operation, Operation::Read { .. }) {
                scatter(&self.layout, &self.memory, parent.operation, (own, spare), &part.command);
            }
            self.spare.as_mut().expect("it came from there").push(spare);
        }
        if done.outcome.is_err() && parent.outcome.is_ok() {
            parent.outcome = done.outcome;
        }
        parent.left -= 1;
        if parent.left > 0 {
            return None;
        }
        if parent.reading_before && parent.outcome.is_ok() {
            parent.reading_before = false;
            return self.begin_step(part.parent);
        }
        Some(self.complete(part.parent, done.reaped))
    }

    fn complete(&mut self, number: u32, reaped: Instant) -> Completion {
        let Parent { operation, tag, lent, outcome, .. } = self.commands.take(number);
        if let (Some(buffer), true) = (operation.buffer(), lent) {
            self.memory.give_back(buffer);
        }
        Completion { drive: DriveId(0), tag, outcome, reaped }
    }
}

impl<B: Bank, M: Buffers> Bank for StripedBank<B, M> {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    fn now(&self) -> Instant {
        self.bank.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        assert_eq!(command.drive, DriveId(0), "a striped set is one drive");
        if self.under_way >= self.geometry[0].depth_max {
            return Err(Full);
        }
        self.under_way += 1;
        let Command { operation, tag, drive } = command;
        let buffer_bytes = match self.spare {
            Some(_) => self.memory.size() as u64,
            None => u64::MAX,
        };
        if let Err(why) = self.geometry[0].check(&operation, buffer_bytes) {
            let reaped = self.bank.now();
            self.answered.push(Completion { drive, tag, outcome: Err(why.into()), reaped });
            return Ok(());
        }
        let one = |offset, length: u32| self.layout.in_one_stripe(offset, length.into());
        let whole = match operation {
            Operation::Read { offset, length, .. } => one(offset, length),
            Operation::Write { offset, length, .. } => {
                self.layout.level == Level::Raid0 && one(offset, length)
            }
            Operation::Trim { .. } | Operation::Flush => false,
        };
        let buffer = operation.buffer().filter(|_| self.spare.is_some());
        if let Some(buffer) = buffer {
            self.memory.lend(buffer);
        }
        let parent = Parent {
            operation,
            tag,
            left: 0,
            reading_before: matches!(operation, Operation::Write { .. }),
            whole,
            lent: buffer.is_some(),
            outcome: Ok(()),
        };
        let parent = self.commands.put(parent);
        if let Some(completion) = self.begin_step(parent) {
            self.answered.push(completion);
        }
        self.start_waiting();
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        if !self.answered.is_empty() {
            self.under_way -= self.answered.len() as u32;
            done.append(&mut self.answered);
            return Ok(());
        }
        let before = done.len();
        loop {
            self.bank.wait(until, &mut self.done)?;
            if self.done.is_empty() {
                return Ok(());
            }
            let mut parts = std::mem::take(&mut self.done);
            for part in parts.drain(..) {
                done.extend(self.take(part));
            }
            self.done = parts;
            self.start_waiting();
            if done.len() > before {
                self.under_way -= (done.len() - before) as u32;
                return Ok(());
            }
        }
    }
}

/// Copies what a part writes out of the command's buffer. Parity isn't computed: its place gets data.
fn gather<M: Buffers>(
    layout: &Layout,
    memory: &M,
    operation: Operation,
    (own, spare): (BufferId, BufferId),
    part: &MemberCommand,
) {
    let Operation::Write { offset: start, length, .. } = operation else { return };
    copying(memory, own, spare, &mut |own, spare| {
        for (at, member_offset, bytes) in stretches(layout, part) {
            let from = match layout.data_at(part.member, member_offset) {
                Some(data) => (data - start) as usize,
                None => 0,
            };
            let bytes = bytes.min(length as usize - from);
            spare[at..at + bytes].copy_from_slice(&own[from..from + bytes]);
        }
    });
}

/// Copies what a part has read into the command's buffer.
fn scatter<M: Buffers>(
    layout: &Layout,
    memory: &M,
    operation: Operation,
    (own, spare): (BufferId, BufferId),
    part: &MemberCommand,
) {
    let Operation::Read { offset: start, .. } = operation else { return };
    copying(memory, own, spare, &mut |own, spare| {
        for (at, member_offset, bytes) in stretches(layout, part) {
            let Some(data) = layout.data_at(part.member, member_offset) else { continue };
            let to = (data - start) as usize;
            own[to..to + bytes].copy_from_slice(&spare[at..at + bytes]);
        }
    });
}

/// The pieces of a part by stripe: place in the part's buffer, offset on the member, bytes.
fn stretches(
    layout: &Layout,
    part: &MemberCommand,
) -> impl Iterator<Item = (usize, u64, usize)> + use<> {
    let (stripe, start, end) = (layout.stripe_bytes, part.offset, part.offset + part.length);
    let mut at = start;
    std::iter::from_fn(move || {
        let from = at;
        at = end.min((from / stripe + 1) * stripe);
        (from < end).then(|| ((from - start) as usize, from, (at - from) as usize))
    })
}

/// Looks at the buffer of a command that is under way, and at a spare one. The command's stays lent to everybody else.
fn copying<M: Buffers>(
    memory: &M,
    own: BufferId,
    spare: BufferId,
    copy: &mut dyn FnMut(&mut [u8], &mut [u8]),
) {
    memory.give_back(own);
    memory.with(own, &mut |own| memory.with(spare, &mut |spare| copy(own, spare)));
    memory.lend(own);
}

/// Things with numbers that are used again.
#[derive(Debug)]
struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    fn put(&mut self, thing: T) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[number as usize] = Some(thing);
        number
    }

    fn get(&mut self, number: u32) -> &mut T {
        self.slots[number as usize].as_mut().expect("it is under way")
    }

    fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.slots[number as usize].take().expect("it is under way")
    }
}
