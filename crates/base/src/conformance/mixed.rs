//! Many random commands, many at once, against a model that is as simple as a bank can be.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Bench, Fixture, assert_same, pattern};
use crate::random::Random;
use crate::{Bank, BufferId, Completion, DriveId, Operation};

/// Bytes at the start of each drive that the commands go to.
const REGION_BYTES: u64 = 4 << 20;
const COMMANDS: usize = 1500;

pub(super) fn random_commands_do_what_a_model_does<F: Fixture>(fixture: &mut F) {
    let depth = fixture.buffer_ids().len();
    run(fixture, 0x5eed, depth);
}

pub(super) fn random_commands_one_at_a_time_do_what_a_model_does<F: Fixture>(fixture: &mut F) {
    run(fixture, 0xfeed, 1);
}

/// What a drive must hold: bytes, or None where a trim has left anything.
struct Model {
    bytes: Vec<Option<u8>>,
}

struct UnderWay {
    drive: DriveId,
    operation: Operation,
    /// What a write writes.
    seed: u64,
}

impl UnderWay {
    fn range(&self) -> Range<u64> {
        match self.operation {
            Operation::Read { offset, length, .. } | Operation::Write { offset, length, .. } => {
                offset..offset + u64::from(length)
            }
            Operation::Trim { offset, length } => offset..offset + length,
            Operation::Flush => 0..0,
        }
    }

    /// Commands that overlap and are under way together may happen in any order, so that nothing
    /// could be said of the outcome; two reads may overlap.
    fn collides(&self, other: &Self) -> bool {
        let reads = |way: &Self| matches!(way.operation, Operation::Read { .. });
        let (a, b) = (self.range(), other.range());
        self.drive == other.drive
            && a.start < b.end
            && b.start < a.end
            && !(reads(self) && reads(other))
    }
}

fn run<F: Fixture>(fixture: &mut F, seed: u64, depth: usize) {
    let mut bench = Bench::new(fixture);
    let drives = bench.writable_drives();
    let mut random = Random::new(seed);
    let mut models = BTreeMap::new();
    for &drive in &drives {
        models.insert(drive, zeroed(&mut bench, drive));
    }
    let mut free = bench.buffers.clone();
    let mut under_way = BTreeMap::new();
    let mut submitted = 0;
    let mut done = Vec::new();
    while submitted < COMMANDS || !under_way.is_empty() {
        let wanted = submitted < COMMANDS && under_way.len() < depth && !free.is_empty();
        if wanted {
            let drive = drives[random.below(drives.len() as u64) as usize];
            let next = propose(&mut bench, drive, free[free.len() - 1], &mut random);
            if !under_way.values().any(|other| next.collides(other)) {
                if let Operation::Write { buffer, .. } = next.operation {
                    bench.fill(buffer, next.seed);
                }
                if let Ok(tag) = bench.submit(drive, next.operation) {
                    if next.operation.buffer().is_some() {
                        free.pop();
                    }
                    under_way.insert(tag, next);
                    submitted += 1;
                    continue;
                }
            }
        }
        // Blocked or deep enough: wait, or sometimes only look.
        let until = random.one_in(4).then(|| bench.bank().now());
        bench.bank().wait(until, &mut done).expect("a bank that works");
        assert!(until.is_some() || !done.is_empty(), "{} commands were lost", under_way.len());
        for completion in done.drain(..) {
            let way = under_way.remove(&completion.tag).expect("each command completes once");
            free.extend(way.operation.buffer());
            let model = models.get_mut(&way.drive).expect("the drives don't change");
            check(&mut bench, model, &way, &completion);
        }
    }
    for (drive, model) in models {
        let length = bench.longest(drive).min(64 << 10);
        for offset in (0..REGION_BYTES).step_by(length as usize) {
            let length = u64::from(length).min(REGION_BYTES - offset) as u32;
            let found = bench.read(drive, offset, length);
            model.expect(&found, drive, offset);
        }
    }
}

/// Starts from a known state, whatever lay on the drive.
fn zeroed<F: Fixture>(bench: &mut Bench<F>, drive: DriveId) -> Model {
    let buffer = bench.buffers[0];
    let length = bench.longest(drive).min(64 << 10);
    crate::Buffers::with(bench.fixture.buffers(), buffer, &mut |bytes| bytes.fill(0));
    for offset in (0..REGION_BYTES).step_by(length as usize) {
        let length = u64::from(length).min(REGION_BYTES - offset) as u32;
        bench.run_well(drive, Operation::Write { offset, length, buffer, fua: false });
    }
    Model { bytes: vec![Some(0); REGION_BYTES as usize] }
}

fn propose<F: Fixture>(
    bench: &mut Bench<F>,
    drive: DriveId,
    buffer: BufferId,
    random: &mut Random,
) -> UnderWay {
    let geometry = bench.geometry(drive);
    let longest = u64::from(bench.longest(drive)).min(256 << 10);
    let trim_unit = geometry.trim_unit_bytes.filter(|_| random.one_in(6));
    let (unit, longest) = match trim_unit {
        Some(unit) => (u64::from(unit), 512 << 10),
        None => (u64::from(geometry.block_bytes), longest),
    };
    // Mostly short ones.
    let units_max = if random.one_in(3) { longest / unit } else { 4.min(longest / unit) };
    let length = unit * (1 + random.below(units_max.max(1)));
    let offset = unit * random.below((REGION_BYTES - length) / unit + 1);
    let operation = if trim_unit.is_some() {
        Operation::Trim { offset, length }
    } else {
        let length = length as u32;
        match random.below(10) {
            0 => Operation::Flush,
            1 => Operation::Write { offset, length, buffer, fua: true },
            2..6 => Operation::Write { offset, length, buffer, fua: false },
            _ => Operation::Read { offset, length, buffer },
        }
    };
    UnderWay { drive, operation, seed: random.bits() }
}

fn check<F: Fixture>(bench: &mut Bench<F>, model: &mut Model, way: &UnderWay, done: &Completion) {
    assert_eq!(done.drive, way.drive);
    assert_eq!(done.outcome, Ok(()), "{}", way.operation.describe());
    let range = way.range().start as usize..way.range().end as usize;
    match way.operation {
        Operation::Read { offset, length, buffer } => {
            model.expect(&bench.bytes(buffer, length), way.drive, offset);
        }
        Operation::Write { length, .. } => {
            let written = pattern(length, way.seed);
            for (byte, written) in model.bytes[range].iter_mut().zip(written) {
                *byte = Some(written);
            }
        }
        Operation::Trim { .. } => {
            let zeros = bench.geometry(way.drive).trim_reads_zeros;
            model.bytes[range].fill(zeros.then_some(0));
        }
        Operation::Flush => {}
    }
}

impl Model {
    fn expect(&self, found: &[u8], drive: DriveId, offset: u64) {
        let model = &self.bytes[offset as usize..offset as usize + found.len()];
        let expected: Vec<u8> =
            model.iter().zip(found).map(|(byte, found)| byte.unwrap_or(*found)).collect();
        assert_same(found, &expected, drive, offset);
    }
}
