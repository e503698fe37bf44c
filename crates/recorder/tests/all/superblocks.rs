//! Of a superblock's two copies one is always whole and durable, whatever happens while the other is written.

use crate::hand;
use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{
    Bank, BankError, BufferId, Command, Completion, DeviceError, DriveId, Duration, Full, Geometry,
    Instant, Operation, Timestamp,
};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use format::superblock::{Member, Protected};
use format::{Layout, Superblock};
use longtake_recorder::create::{self, Plan};
use longtake_recorder::open;
use longtake_recorder::reader::Reader;
use longtake_recorder::run::{Feed, Recording};
use longtake_recorder::superblocks::{self, Change, ChangeError, Target, Update, UpdateCommand};
use longtake_recorder::{Config, ReadyChunk, Recorder};
use uuid::Uuid;

const DRIVE: DriveId = DriveId(0);
const CAPACITY: u64 = DATA_OFFSET + 4 * (256 << 10) + SUPERBLOCK_BYTES;

/// A bank that writes down what it is asked, and fails the flush of a number.
struct Logged {
    bank: MemoryBank,
    asked: Vec<Operation>,
    flush_fails: Option<usize>,
    failing: Vec<u64>,
}

impl Bank for Logged {
    fn drives(&self) -> &[Geometry] {
        self.bank.drives()
    }
    fn now(&self) -> Instant {
        self.bank.now()
    }
    fn submit(&mut self, command: Command) -> Result<(), Full> {
        self.bank.submit(command)?;
        if command.operation == Operation::Flush {
            let flushes = self.asked.iter().filter(|o| **o == Operation::Flush).count();
            if self.flush_fails == Some(flushes) {
                self.failing.push(command.tag);
            }
        }
        self.asked.push(command.operation);
        Ok(())
    }
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        self.bank.wait(until, done)?;
        for completion in done {
            if let Some(at) = self.failing.iter().position(|&tag| tag == completion.tag) {
                self.failing.remove(at);
                completion.outcome = Err(DeviceError::Medium);
            }
        }
        Ok(())
    }
}

/// Nothing to record.
struct Nothing;

impl Feed for Nothing {
    fn poll(&mut self, _: Instant) -> Option<ReadyChunk> {
        None
    }
    fn next(&self, _: Instant) -> Option<Instant> {
        None
    }
    fn release(&mut self, _: BufferId) {}
    fn ended(&self) -> bool {
        false
    }
    fn end_chunk(&mut self) -> Option<ReadyChunk> {
        None
    }
}

fn array() -> (Logged, MemoryBuffers) {
    let memory = MemoryBuffers::new(4, 64 << 10);
    let drive =
        MemoryDrive { capacity_bytes: CAPACITY, volatile_cache: true, ..MemoryDrive::default() };
    let bank = MemoryBank::new(vec![drive], memory.clone());
    let mut bank = Logged { bank, asked: Vec::new(), flush_fails: None, failing: Vec::new() };
    let plan = Plan {
        uuid: Uuid::from_u128(1),
        name: "superblocks".into(),
        created: Timestamp::from_nanos(1),
        segment_bytes: Some(256 << 10),
        chunk_max: Some(64 << 10),
        identities: vec!["memory".into()],
        trim: false,
        parity: 0,
    };
    let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
    create::create(&mut reader, &plan).unwrap();
    (bank, memory)
}

/// Protects a range in so many recordings' time and gives what the drive was asked for: `F`lush, copy at the `E`nd,
/// `S`tart.
fn protect(bank: &mut Logged, memory: &MemoryBuffers, times: u64) -> String {
    let mut reader = Reader { bank, memory, buffers: vec![BufferId(0)] };
    let image = open::open(&mut reader).unwrap();
    let config = Config {
        started: Timestamp::from_nanos(1),
        depth: 1,
        buffers: 1,
        drift_max: 0,
        flush_interval: Duration::from_millis(1),
        ..hand::config()
    };
    let superblocks = vec![image.superblock.clone()];
    bank.asked.clear();
    let core = Recorder::new(config, image);
    let mut recording =
        Recording::new(core, bank, memory, Nothing, vec![DRIVE], superblocks, vec![BufferId(1)]);
    for time in 1..=times {
        while recording.updating() {
            let until = recording.now() + Duration::from_millis(1);
            recording.step(until, &mut Vec::new()).unwrap();
        }
        let at = Timestamp::from_nanos(time);
        let range = Protected { from: at, to: at, made: at, label: String::new() };
        assert!(recording.protect(vec![range]));
    }
    while recording.updating() {
        let until = recording.now() + Duration::from_millis(1);
        recording.step(until, &mut Vec::new()).unwrap();
    }
    drop(recording);
    let letter = |operation: &Operation| match *operation {
        Operation::Flush => 'F',
        Operation::Write { offset: 0, .. } => 'S',
        Operation::Write { offset, .. } if offset == Layout::copy_offset(CAPACITY) => 'E',
        _ => '?',
    };
    bank.asked.iter().map(letter).collect()
}

#[test]
fn a_superblock_was_overwritten_while_its_other_copy_was_not_flushed() {
    let (mut bank, memory) = array();
    assert_eq!(protect(&mut bank, &memory, 2), "FEFSFFEFSF");
}

#[test]
fn the_only_good_copy_was_overwritten_first() {
    let (mut bank, memory) = array();
    // A crash tore the copy at the start.
    bank.bank.poke(DRIVE, 4096, &[0xAA; 4096]);
    assert_eq!(protect(&mut bank, &memory, 0), "FSFEF");
    assert_eq!(protect(&mut bank, &memory, 1), "FEFSF");
    let bytes = bank.bank.peek(DRIVE, 0, SUPERBLOCK_BYTES as usize);
    assert!(Superblock::read(&bytes, 0).is_ok());
}

#[test]
fn a_copy_was_overwritten_though_the_other_ones_flush_had_failed() {
    let (mut bank, memory) = array();
    // The second one of the update, after the copy at the end.
    bank.flush_fails = Some(1);
    assert_eq!(protect(&mut bank, &memory, 2), "FEF", "and it gets no further update");
}

#[test]
fn of_copies_with_one_generation_the_one_that_joined_later_counts() {
    let copy = Layout::copy_offset(CAPACITY);
    for at in [0, copy] {
        let (mut bank, memory) = array();
        let bytes = bank.bank.peek(DRIVE, 0, SUPERBLOCK_BYTES as usize);
        let mut joined = Superblock::read(&bytes, 0).unwrap();
        joined.members[0].joined_ns = 5;
        // The joining was cut short before the other copy was written.
        bank.bank.poke(DRIVE, at, &joined.encode(at));
        let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
        let image = open::open(&mut reader).unwrap();
        assert_eq!(image.superblock.members, joined.members);
        assert!(image.superblocks_differ);
        let first_bad: Vec<u16> = if at == copy { vec![0] } else { Vec::new() };
        assert_eq!(image.first_copies_bad, first_bad);
    }
}

/// What a member's superblock says, in an array of two.
fn of_member(member: u16, generation: u64) -> Superblock {
    let (bank, _) = array();
    let bytes = bank.bank.peek(DRIVE, 0, SUPERBLOCK_BYTES as usize);
    let own = Superblock::read(&bytes, 0).unwrap();
    Superblock { member, generation, members: vec![own.members[0].clone(); 2], ..own }
}

fn protected(label: &str) -> Vec<Protected> {
    let at = Timestamp::from_nanos(1);
    vec![Protected { from: at, to: at, made: at, label: label.into() }]
}

#[test]
fn a_change_tells_every_member_of_all_that_joined_and_is_newer_than_what_any_of_them_has() {
    let mut knows = of_member(1, 4);
    (knows.members[1].joined_ns, knows.members[1].identity) = (5, "joined".into());
    let newest = Superblock { protected: protected("kept"), ..of_member(0, 6) };
    let given = [newest.clone(), knows.clone()];
    let both = vec![newest.members[0].clone(), knows.members[1].clone()];
    for changed in superblocks::changed(&given, &Change::Settle) {
        assert_eq!((changed.generation, &changed.members), (7, &both));
        assert_eq!(changed.protected, protected("kept"));
    }
    let replaced = Member { identity: "replaced".into(), joined_ns: 9, ..both[0].clone() };
    for changed in superblocks::changed(&given, &Change::Join(0, replaced.clone())) {
        assert_eq!(changed.members, [replaced.clone(), both[1].clone()]);
    }
    for changed in superblocks::changed(&given, &Change::Protect(protected("new"))) {
        assert_eq!((&changed.members, changed.protected), (&both, protected("new")));
    }
}

#[test]
fn a_drive_that_joins_is_told_what_the_others_have_and_counts_from_then_on() {
    let others = [Superblock { protected: protected("kept"), ..of_member(0, 6) }];
    let own = of_member(1, 0);
    let row = Member { identity: "joined".into(), joined_ns: 5, ..own.members[1].clone() };
    let joined = superblocks::joined(&others, &own, row.clone());
    assert_eq!((joined.member, joined.generation), (1, 6));
    assert_eq!(joined.members, [others[0].members[0].clone(), row.clone()]);
    assert_eq!(joined.protected, protected("kept"));
    // One of generation 0 would be a drive that does not count yet.
    assert_eq!(superblocks::joined(&[], &own, row).generation, 1);
}

#[test]
fn what_superblocks_are_made_from_is_flushed_before_they_are_written_and_each_drive_once() {
    let [own, other] = [DriveId(0), DriveId(1)];
    let superblock = of_member(0, 1);
    let capacity_bytes = CAPACITY;
    let target = Target { drive: own, capacity_bytes, superblock, first_copy_bad: false };
    let mut update = Update::new(&[target]).made_from(&[own, other]);
    let flushes = [own, other].map(UpdateCommand::Flush);
    assert_eq!(update.next_update_step(), flushes);
    assert!(
        matches!(update.next_update_step()[..], [UpdateCommand::Write(drive, ..)] if drive == own)
    );
}

#[test]
fn a_member_is_read_with_which_of_its_copies_is_the_good_one() {
    for (damaged, first_copy_bad) in [(None, false), (Some(0), true), (Some(1), false)] {
        let (mut bank, memory) = array();
        if let Some(copy) = damaged {
            let at = [0, Layout::copy_offset(CAPACITY)][copy];
            bank.bank.poke(DRIVE, at + 4096, &[0xAA; 4096]);
        }
        let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
        let image = open::open(&mut reader).unwrap();
        let targets = superblocks::read_all(&mut reader, &image).unwrap();
        let [target] = &targets[..] else { panic!("{} members", targets.len()) };
        assert_eq!((target.drive, target.capacity_bytes), (DRIVE, CAPACITY));
        assert_eq!(target.superblock, image.superblock);
        assert_eq!(target.first_copy_bad, first_copy_bad, "{damaged:?}");
    }
}

#[test]
fn a_change_is_on_every_member_that_takes_it_and_whoever_asked_is_told_if_one_does_not() {
    let (mut bank, memory) = array();
    let change = |bank: &mut Logged, label: &str| {
        bank.asked.clear();
        let mut reader = Reader { bank, memory: &memory, buffers: vec![BufferId(0)] };
        let image = open::open(&mut reader).unwrap();
        superblocks::change(&mut reader, &image, &Change::Protect(protected(label)))
    };
    let changed = change(&mut bank, "new").unwrap();
    let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
    let image = open::open(&mut reader).unwrap();
    assert_eq!((&image.protected, image.superblocks_differ), (&protected("new"), false));
    assert_eq!(changed, [image.superblock]);
    bank.flush_fails = Some(0);
    let why = change(&mut bank, "newer").unwrap_err();
    let ChangeError::Write(inner) = &why else { panic!("{why}") };
    assert_eq!(why.to_string(), inner.to_string());
    assert!(why.to_string().contains("memory0"), "{why}");
    // Both copies are damaged: there is nothing to change.
    let image = {
        bank.flush_fails = None;
        let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
        open::open(&mut reader).unwrap()
    };
    for at in [0, Layout::copy_offset(CAPACITY)] {
        bank.bank.poke(DRIVE, at + 4096, &[0xAA; 4096]);
    }
    let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
    let why = superblocks::change(&mut reader, &image, &Change::Settle).unwrap_err();
    let ChangeError::Read(inner) = &why else { panic!("{why}") };
    assert_eq!(why.to_string(), inner.to_string());
    assert!(why.to_string().contains("is not a member"), "{why}");
}

#[test]
fn all_members_that_are_there_are_flushed() {
    let (mut bank, memory) = array();
    let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
    let mut image = open::open(&mut reader).unwrap();
    // One that is missing has no segments, and no drive.
    let mut missing = image.members[0].clone();
    (missing.drive, missing.segments) = (DriveId(u16::MAX), Vec::new());
    image.members.push(missing);
    reader.bank.asked.clear();
    superblocks::flush_all(&mut reader, &image).unwrap();
    assert_eq!(bank.asked, [Operation::Flush]);
    (bank.asked, bank.flush_fails) = (Vec::new(), Some(0));
    let mut reader = Reader { bank: &mut bank, memory: &memory, buffers: vec![BufferId(0)] };
    superblocks::flush_all(&mut reader, &image).unwrap_err();
}
