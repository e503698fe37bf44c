//! Striped sets keep the seam's promises, every byte of them has one place, and members are read and written as often as the
//! definitions of the levels say.

use std::collections::BTreeSet;

use longtake_base::conformance::Fixture;
use longtake_base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use longtake_base::striped::{
    Layout, Level, MemberCommand, StripedBank, StripedError, StripedSet, Verb,
};
use longtake_base::{
    Bank, BufferId, Buffers, Command, Completion, DeviceError, DriveId, Duration, Full, Instant,
    Operation, Random, Rate, conformance_tests,
};

const STRIPE: u64 = 16 << 10;

struct Striped {
    bank: StripedBank<MemoryBank, MemoryBuffers>,
    memory: MemoryBuffers,
    own: u32,
    /// Losses of power so far.
    cuts: u64,
}

impl Striped {
    fn new(level: Level, members: usize, drive: &MemoryDrive, spare: u32) -> Self {
        const OWN: u32 = 16;
        let memory = MemoryBuffers::new(OWN + spare, 1 << 20);
        let bank = MemoryBank::new(vec![drive.clone(); members], memory.clone());
        let spare = (OWN..OWN + spare).map(BufferId).collect();
        let bank = StripedBank::new(bank, &set(level, STRIPE), memory.clone(), spare);
        Self { bank: bank.expect("drives that can be a set"), memory, own: OWN, cuts: 0 }
    }

    fn run(&mut self, operation: Operation) -> Result<(), DeviceError> {
        self.bank.submit(Command { drive: DriveId(0), operation, tag: 9 }).expect("there is room");
        let mut done = Vec::new();
        while done.is_empty() {
            self.bank.wait(None, &mut done).expect("a bank that works");
        }
        assert_eq!((done.len(), done[0].tag, done[0].drive), (1, 9, DriveId(0)));
        done.remove(0).outcome
    }
}

impl Fixture for Striped {
    type Bank = StripedBank<MemoryBank, MemoryBuffers>;
    type Memory = MemoryBuffers;

    fn bank(&mut self) -> &mut Self::Bank {
        &mut self.bank
    }
    fn buffers(&self) -> &MemoryBuffers {
        &self.memory
    }
    fn buffer_ids(&self) -> Vec<BufferId> {
        (0..self.own).map(BufferId).collect()
    }
    fn power_cut(&mut self) -> bool {
        self.cuts += 1;
        self.bank.members_mut().power_cut(self.cuts);
        true
    }
}

fn set(level: Level, stripe_bytes: u64) -> StripedSet {
    StripedSet { name: "set".to_owned(), level, stripe_bytes }
}

fn drive() -> MemoryDrive {
    MemoryDrive {
        capacity_bytes: 9 << 20,
        latency: Duration::from_micros(80),
        rate: Some(Rate(2e9)),
        depth_max: 4,
        ..MemoryDrive::default()
    }
}

mod raid0 {
    use super::*;
    conformance_tests!(Striped::new(Level::Raid0, 3, &drive(), 12));
}

mod raid0_of_shallow_drives_with_one_spare_buffer {
    use super::*;
    conformance_tests!(Striped::new(
        Level::Raid0,
        2,
        &MemoryDrive {
            depth_max: 1,
            block_bytes: 512,
            trim_unit_bytes: None,
            trim_reads_zeros: false,
            ..drive()
        },
        1
    ));
}

mod raid5 {
    use super::*;
    conformance_tests!(Striped::new(Level::Raid5, 4, &drive(), 12));
}

mod raid6 {
    use super::*;
    conformance_tests!(Striped::new(Level::Raid6, 5, &drive(), 2));
}

/// Sets of every level and of several numbers of members.
fn layouts() -> impl Iterator<Item = Layout> {
    let of = |level: Level| {
        (level.members_min()..9).map(move |members| Layout { level, members, stripe_bytes: STRIPE })
    };
    Level::ALL.into_iter().flat_map(of)
}

#[test]
fn every_byte_has_one_place_and_every_row_its_parities() {
    for layout in layouts() {
        let rows = 3 * layout.members as u64;
        let mut places = BTreeSet::new();
        // A byte of each half of each stripe stands for all.
        for at in (0..rows * layout.row_bytes()).step_by(STRIPE as usize / 2) {
            let (member, offset) = layout.place(at + 7);
            assert_eq!(layout.data_at(member, offset), Some(at + 7), "{layout:?}");
            assert!(offset < rows * STRIPE && places.insert((member, offset)), "{layout:?}");
        }
        for row in 0..rows {
            let offset = row * STRIPE + 7;
            let none = |member: &usize| layout.data_at(*member, offset).is_none();
            let found: BTreeSet<usize> = (0..layout.members).filter(none).collect();
            assert_eq!(found.len(), layout.level.parities());
            assert_eq!(found, layout.parity_members(row).collect());
        }
        // Parity is on every member equally often.
        for member in 0..layout.members {
            let held = (0..rows).filter(|row| layout.parity_members(*row).any(|m| m == member));
            assert_eq!(held.count(), 3 * layout.level.parities(), "{layout:?}");
        }
    }
}

#[test]
fn the_order_is_that_of_the_kernels_md() {
    // `raid5_compute_sector` in drivers/md/raid5.c, ALGORITHM_LEFT_SYMMETRIC.
    let raid5 = Layout { level: Level::Raid5, members: 5, stripe_bytes: STRIPE };
    let members = |layout: Layout, stripes: u64| -> Vec<usize> {
        (0..stripes).map(|stripe| layout.place(stripe * STRIPE).0).collect()
    };
    assert_eq!(members(raid5, 12), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
    let parity: Vec<usize> = (0..6).flat_map(|row| raid5.parity_members(row)).collect();
    assert_eq!(parity, [4, 3, 2, 1, 0, 4]);
    let raid6 = Layout { level: Level::Raid6, ..raid5 };
    assert_eq!(members(raid6, 6), [1, 2, 3, 0, 1, 2]);
    let parity: Vec<usize> = (0..2).flat_map(|row| raid6.parity_members(row)).collect();
    assert_eq!(parity, [4, 0, 3, 4]);
    let raid0 = Layout { level: Level::Raid0, ..raid5 };
    assert_eq!(members(raid0, 7), [0, 1, 2, 3, 4, 0, 1]);
}

fn reads(layout: &Layout, offset: u64, length: u64) -> Vec<MemberCommand> {
    let mut commands = Vec::new();
    layout.read_before_write(offset, length, &mut commands);
    commands
}

fn writes(layout: &Layout, offset: u64, length: u64) -> Vec<MemberCommand> {
    let mut commands = Vec::new();
    layout.write(offset, length, &mut commands);
    commands
}

#[test]
fn writes_take_the_reads_and_writes_that_their_level_is_known_for() {
    for layout in layouts() {
        let (row, parities) = (layout.row_bytes(), layout.level.parities());
        for number in 0..layout.members as u64 {
            // Whole rows: every member once, nothing is read.
            for rows in 1..4 {
                assert!(reads(&layout, number * row, rows * row).is_empty());
                let written = writes(&layout, number * row, rows * row);
                assert_eq!(written.len(), layout.members, "{layout:?}");
                assert!(written.iter().all(|command| command.length == rows * STRIPE));
            }
            for stripes in 1..layout.data_members() {
                // Of part of a row what is overwritten and its parity, or the rest where that is less.
                let length = stripes as u64 * STRIPE;
                let read = reads(&layout, number * row, length).len();
                let rest = layout.data_members() - stripes;
                let expected = if parities == 0 { 0 } else { rest.min(stripes + parities) };
                assert_eq!(read, expected, "{layout:?} {stripes}");
                let written = writes(&layout, number * row, length);
                assert_eq!(written.len(), stripes + parities, "{layout:?}");
            }
            // A small write in sets where nothing else is cheaper: 2 and 2 commands, or 3 and 3.
            if parities > 0 && layout.data_members() > 2 + parities {
                let at = number * row + 4096;
                let read = reads(&layout, at, 4096);
                assert_eq!(read.len(), 1 + parities);
                let written = writes(&layout, at, 4096);
                assert!(read.iter().all(|command| command.verb == Verb::Read));
                let as_written = read.iter().map(|c| MemberCommand { verb: Verb::Write, ..*c });
                assert_eq!(as_written.collect::<Vec<_>>(), written);
            }
        }
    }
}

/// What must be known of a row so that its parity can be computed: for every changed place of parity either the old parity and the
/// old data where it changes, or all data that doesn't.
#[test]
fn what_is_read_before_a_write_is_enough_for_parity() {
    let unit = 4096;
    let mut random = Random::new(1);
    for layout in layouts().filter(|layout| layout.level != Level::Raid0) {
        for _ in 0..60 {
            let row = layout.row_bytes() / unit;
            let from = random.below(row);
            let length = (1 + random.below(row - from)) * unit;
            let from = random.below(7) * layout.row_bytes() + from * unit;
            let covered = |commands: &[MemberCommand], member: usize, at: u64| {
                let holds = |c: &&MemberCommand| {
                    c.member == member && (c.offset..c.offset + c.length).contains(&at)
                };
                commands.iter().filter(holds).count()
            };
            let (read, written) = (reads(&layout, from, length), writes(&layout, from, length));
            let number = from / layout.row_bytes();
            let whole = length == layout.row_bytes();
            for at in (number * STRIPE..(number + 1) * STRIPE).step_by(unit as usize) {
                let parity: Vec<usize> = layout.parity_members(number).collect();
                let data = (0..layout.members).filter(|member| !parity.contains(member));
                let (changed, rest): (Vec<usize>, Vec<usize>) = data.partition(|&member| {
                    (from..from + length).contains(&layout.data_at(member, at).unwrap())
                });
                let each = |members: &[usize], of: &[MemberCommand], count: usize| {
                    members.iter().all(|&member| covered(of, member, at) == count)
                };
                let concerned = usize::from(!changed.is_empty());
                assert!(each(&changed, &written, 1) && each(&rest, &written, 0));
                assert!(each(&parity, &written, concerned), "{layout:?} {from} {length}");
                let modify = each(&changed, &read, 1) && each(&parity, &read, 1);
                let reconstruct = each(&rest, &read, 1);
                assert!(whole || concerned == 0 || modify || reconstruct, "{layout:?}");
                let bytes = |c: &[MemberCommand]| c.iter().map(|c| c.length).sum::<u64>();
                assert!(bytes(&written) >= length);
            }
        }
    }
}

#[test]
fn what_is_written_lies_at_its_place_and_reads_back() {
    for level in Level::ALL {
        let mut set = Striped::new(level, level.members_min() + 1, &drive(), 4);
        let mut random = Random::new(3);
        let capacity = set.bank.drives()[0].capacity_bytes;
        for round in 0..100u64 {
            let length = (1 + random.below(64)) * 4096;
            let offset = random.below((capacity - length) / 4096) * 4096;
            let byte = |at: u64| (at / 4096 * 7 + round) as u8;
            set.memory.with(BufferId(0), &mut |bytes| {
                bytes.iter_mut().zip(offset..).for_each(|(place, at)| *place = byte(at));
            });
            let buffer = BufferId(0);
            let length = length as u32;
            assert_eq!(set.run(Operation::Write { offset, length, buffer, fua: false }), Ok(()));
            for at in (offset..offset + u64::from(length)).step_by(4096) {
                let (member, place) = set.bank.layout().place(at);
                let found = set.bank.members().peek(DriveId(member as u16), place, 4096);
                assert_eq!(found, [byte(at); 4096], "{level}");
            }
            let buffer = BufferId(1);
            assert_eq!(set.run(Operation::Read { offset, length, buffer }), Ok(()));
            set.memory.with(buffer, &mut |bytes| {
                let wrong =
                    (offset..).zip(&bytes[..length as usize]).find(|(at, b)| byte(*at) != **b);
                assert_eq!(wrong, None, "{level}");
            });
        }
    }
}

/// A bank that counts what its drives have under way, and what they are given.
struct Counting {
    bank: MemoryBank,
    under_way: Vec<u32>,
    most: Vec<u32>,
    given: u64,
}

impl Counting {
    fn new(members: usize) -> Self {
        let bank = MemoryBank::without_data(vec![drive(); members]);
        Self { bank, under_way: vec![0; members], most: vec![0; members], given: 0 }
    }
}

impl Bank for Counting {
    fn drives(&self) -> &[longtake_base::Geometry] {
        self.bank.drives()
    }
    fn now(&self) -> Instant {
        self.bank.now()
    }
    fn submit(&mut self, command: Command) -> Result<(), Full> {
        let drive = command.drive.index();
        self.bank.submit(command)?;
        self.given += 1;
        self.under_way[drive] += 1;
        self.most[drive] = self.most[drive].max(self.under_way[drive]);
        Ok(())
    }
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), longtake_base::BankError> {
        let before = done.len();
        self.bank.wait(until, done)?;
        done[before..].iter().for_each(|done| self.under_way[done.drive.index()] -= 1);
        Ok(())
    }
}

#[test]
fn one_depth_holds_for_the_whole_set_and_every_member_keeps_its_own() {
    for level in Level::ALL {
        let members = 5;
        let counting = Counting::new(members);
        let mut set = StripedBank::without_data(counting, &set(level, STRIPE)).unwrap();
        let (depth, capacity) = (set.drives()[0].depth_max, set.drives()[0].capacity_bytes);
        assert_eq!(depth, 5 * 4);
        let (mut random, mut open, mut asked, mut done) = (Random::new(5), 0, 0u64, Vec::new());
        while asked < 2_000 {
            loop {
                let offset = random.below(capacity / 4096) * 4096;
                let (buffer, length) = (BufferId(0), 4096);
                let operation = match random.below(2) {
                    0 => Operation::Read { offset, length, buffer },
                    _ => Operation::Write { offset, length, buffer, fua: false },
                };
                match set.submit(Command { drive: DriveId(0), operation, tag: asked }) {
                    Ok(()) => (open, asked) = (open + 1, asked + 1),
                    Err(Full) => break,
                }
            }
            // Neither more nor fewer than the set takes.
            assert_eq!(open, depth);
            set.wait(None, &mut done).unwrap();
            open -= done.len() as u32;
            done.clear();
        }
        let inner = set.members();
        assert!(inner.most.iter().all(|&most| most == 4), "{:?}", inner.most);
        // All of one stripe: without parity a command is one of a member's.
        assert!(if level == Level::Raid0 { inner.given <= asked } else { inner.given > 2 * asked });
    }
}

#[test]
fn a_member_that_fails_fails_the_commands_that_need_it_once() {
    let mut set = Striped::new(Level::Raid0, 3, &drive(), 4);
    set.bank.members_mut().fail_from(DriveId(1), Instant::START, DeviceError::Gone);
    let read = |stripe: u64, stripes: u32| Operation::Read {
        offset: stripe * STRIPE,
        length: stripes * STRIPE as u32,
        buffer: BufferId(0),
    };
    assert_eq!(set.run(read(0, 1)), Ok(()));
    assert_eq!(set.run(read(1, 1)), Err(DeviceError::Gone));
    assert_eq!(set.run(read(0, 6)), Err(DeviceError::Gone));
    assert_eq!(set.run(read(5, 1)), Ok(()));
    assert_eq!(set.run(Operation::Flush), Err(DeviceError::Gone));
    let mut set = Striped::new(Level::Raid5, 5, &drive(), 4);
    set.bank.members_mut().fail_from(DriveId(4), Instant::START, DeviceError::Medium);
    let write = Operation::Write { offset: 0, length: 4096, buffer: BufferId(0), fua: false };
    // Its old parity can't be read, so nothing is written.
    assert_eq!(set.run(write), Err(DeviceError::Medium));
    assert_eq!(set.bank.members().peek(DriveId(0), 0, 4096), [0; 4096]);
}

#[test]
fn a_set_is_as_large_as_its_smallest_member_allows_and_impossible_ones_are_refused() {
    let of = |level, capacities: &[u64], stripe_bytes| {
        let drive = |&capacity_bytes: &u64| MemoryDrive { capacity_bytes, ..drive() };
        let bank = MemoryBank::without_data(capacities.iter().map(drive).collect());
        StripedBank::without_data(bank, &set(level, stripe_bytes))
            .map(|set| set.drives()[0].clone())
    };
    let mib = 1 << 20;
    let drive = of(Level::Raid5, &[9 * mib, 8 * mib + 4096, 20 * mib], 64 << 10).unwrap();
    assert_eq!((drive.capacity_bytes, drive.trim_unit_bytes), (16 * mib, Some(128 << 10)));
    assert_eq!((drive.name.as_str(), drive.block_bytes, drive.writable), ("set", 4096, true));
    let few = |level, members| Err(StripedError::Few { level, members });
    assert_eq!(of(Level::Raid0, &[mib], 4096), few(Level::Raid0, 1));
    assert_eq!(of(Level::Raid6, &[mib; 3], 4096), few(Level::Raid6, 3));
    let stripe = Err(StripedError::Stripe { stripe_bytes: 6000, block_bytes: 4096 });
    assert_eq!(of(Level::Raid0, &[mib; 2], 6000), stripe);
    let small = of(Level::Raid0, &[mib, 2 * mib], 2 * mib);
    assert_eq!(small, Err(StripedError::Small { member: "memory0".to_owned() }));
}
