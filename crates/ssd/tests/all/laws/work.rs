//! Workloads at random, and what a bank makes of them: a record of each command, and of the time that passed with how many under way.

use std::ops::Range;

use base::{Bank, BufferId, Command, DriveId, Duration, Geometry, Instant, Operation, Random};
use longtake_ssd::{SimBank, Slot, Spec, Start, Uplink};
use proptest::prelude::*;
use proptest::sample::select;

/// Longest read or write.
const LENGTH_MAX: u64 = 1 << 20;

/// Commands of one kind of mixture, and what comes after them.
#[derive(Clone, Debug)]
pub struct Phase {
    pub commands: u32,
    /// Weights of reads, writes, trims and flushes.
    pub mix: [u32; 4],
    /// Anywhere, or one behind the other.
    pub random: bool,
    /// The part of each drive that it stays in.
    pub region: (f64, f64),
    /// Bytes of a command at least and at most.
    pub bytes: (u64, u64),
    /// Commands under way.
    pub depth: usize,
    /// Whether all that is under way is waited for, and for how long nothing is asked then.
    pub idle: Option<Duration>,
    /// Longest pause before a command, in nanoseconds.
    pub pause_ns: u64,
}

/// Phases one after the other.
#[derive(Clone, Debug)]
pub struct Work {
    pub seed: u64,
    pub phases: Vec<Phase>,
}

/// A command and when it was submitted and reaped.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub command: Command,
    pub submitted: Instant,
    pub reaped: Option<Instant>,
}

impl Record {
    /// Bytes that it read and that it wrote.
    pub const fn moved(&self) -> (u64, u64) {
        match self.command.operation {
            Operation::Read { length, .. } => (length as u64, 0),
            Operation::Write { length, .. } => (0, length as u64),
            Operation::Trim { .. } | Operation::Flush => (0, 0),
        }
    }

    /// From submission to reaping.
    pub fn latency(&self) -> Duration {
        self.reaped.expect("it is done").since(self.submitted)
    }
}

/// Drives in a bank and what they were asked.
#[derive(Debug)]
pub struct Run {
    pub bank: SimBank,
    /// By tag.
    pub records: Vec<Record>,
    /// Commands under way x nanoseconds.
    pub under_way_ns: u128,
    /// Time in which any was under way.
    pub busy: Duration,
    /// Commands that were begun and ended between two moments at which nothing was under way.
    pub spans: Vec<Range<usize>>,
    random: Random,
    under_way: usize,
    span_begin: usize,
    /// Whether each wait is made of shorter ones.
    in_steps: Option<Random>,
}

pub fn phase() -> impl Strategy<Value = Phase> {
    let mix = select(
        &[
            [1, 0, 0, 0],
            [100, 1, 0, 0],
            [0, 1, 0, 0],
            [0, 20, 0, 1],
            [10, 10, 1, 0],
            [10, 30, 5, 1],
            [1, 1, 1, 1],
        ][..],
    );
    let region = (0.0..0.9, 0.1..1.0).prop_map(|(from, part)| (from, from + part * (1.0 - from)));
    let bytes = (9..=20_u32, 0..=11_u32)
        .prop_map(|(most, less)| (1 << most.saturating_sub(less).max(9), 1 << most));
    let idle = proptest::option::of((0..60_000_u64).prop_map(Duration::from_micros));
    let pause_ns = select(vec![0, 0, 3_000, 100_000]);
    (1..200_u32, mix, proptest::bool::ANY, region, bytes, 1..=64_usize, idle, pause_ns).prop_map(
        |(commands, mix, random, region, bytes, depth, idle, pause_ns)| Phase {
            commands,
            mix,
            random,
            region,
            bytes,
            depth,
            idle,
            pause_ns,
        },
    )
}

pub fn work() -> impl Strategy<Value = Work> {
    (proptest::num::u64::ANY, proptest::collection::vec(phase(), 1..5))
        .prop_map(|(seed, phases)| Work { seed, phases })
}

/// What is on a drive when it begins; media in place know no difference.
pub fn start(spec: &Spec) -> impl Strategy<Value = Start> + use<> {
    let block_bytes = spec.mapping.unit_bytes;
    select(vec![Start::Empty, Start::Full, Start::Random { block_bytes }])
}

/// A drive with something to do, behind a shared link or not.
pub fn case(
    specs: impl Strategy<Value = Spec>,
) -> impl Strategy<Value = (Slot, Option<Uplink>, Work)> {
    let uplink = proptest::option::weighted(0.3, (2e8..8e9, 2e8..8e9)).prop_map(|rates| {
        rates.map(|(read_bytes_per_s, write_bytes_per_s)| Uplink {
            read_bytes_per_s,
            write_bytes_per_s,
        })
    });
    let slot = specs.prop_flat_map(|spec| (start(&spec), Just(spec), proptest::num::u64::ANY));
    let slot = slot.prop_map(|(start, spec, seed)| slot_of(spec, start, seed));
    (slot, uplink, work())
}

/// All namespaces of a drive.
pub fn slot_of(spec: Spec, start: Start, seed: u64) -> Slot {
    Slot { namespaces: (0..spec.sets.namespaces.len()).collect(), spec, start, seed }
}

impl Run {
    pub fn new(slots: &[Slot], uplink: Option<Uplink>, seed: u64) -> Self {
        Self {
            bank: SimBank::new(slots, uplink).expect("a drive that can be"),
            records: Vec::new(),
            under_way_ns: 0,
            busy: Duration::ZERO,
            spans: Vec::new(),
            random: Random::new(seed),
            under_way: 0,
            span_begin: 0,
            in_steps: None,
        }
    }

    /// The same, with each wait made of shorter ones.
    pub fn in_steps(slots: &[Slot], uplink: Option<Uplink>, seed: u64) -> Self {
        Self { in_steps: Some(Random::new(seed ^ 1)), ..Self::new(slots, uplink, seed) }
    }

    /// Does all of it, and waits for what is under way.
    pub fn of(slot: &Slot, uplink: Option<Uplink>, work: &Work) -> Self {
        Self::new(std::slice::from_ref(slot), uplink, work.seed).through(work)
    }

    /// Does all of it, and waits for what is under way.
    pub fn through(mut self, work: &Work) -> Self {
        for phase in &work.phases {
            self.phase(phase);
        }
        self.drain();
        self
    }

    /// One mixture of commands in a closed loop.
    pub fn phase(&mut self, phase: &Phase) {
        let drives = self.bank.drives().to_vec();
        let mut last = vec![0; drives.len()];
        for _ in 0..phase.commands {
            let drive = self.random.below(drives.len() as u64) as usize;
            let operation = draw(&mut self.random, phase, &drives[drive], &mut last[drive]);
            if phase.pause_ns > 0 {
                let pause = Duration::from_nanos(self.random.below(phase.pause_ns));
                let until = self.bank.now() + pause;
                while self.bank.now() < until {
                    self.wait(Some(until));
                }
            }
            while self.under_way >= phase.depth || !self.submit(DriveId(drive as u16), operation) {
                self.wait_for_one();
            }
        }
        if let Some(idle) = phase.idle {
            self.drain();
            self.wait(Some(self.bank.now() + idle));
        }
    }

    /// Submits a command; false if the drive has no room for it.
    pub fn submit(&mut self, drive: DriveId, operation: Operation) -> bool {
        let command = Command { drive, operation, tag: self.records.len() as u64 };
        if self.bank.submit(command).is_err() {
            return false;
        }
        self.records.push(Record { command, submitted: self.bank.now(), reaped: None });
        self.under_way += 1;
        true
    }

    /// Waits as the bank does; returns the tags of what is done.
    ///
    /// # Panics
    /// If time goes backward, or the bank completes what it wasn't asked, or twice, or not as it should.
    pub fn wait(&mut self, until: Option<Instant>) -> Vec<u64> {
        if let Some(mut random) = self.in_steps.take() {
            let mut done = Vec::new();
            while done.is_empty() && until.is_none_or(|until| self.bank.now() < until) {
                let step = self.bank.now() + Duration::from_nanos(random.below(30_000));
                done = self.wait(Some(until.map_or(step, |until| until.min(step))));
            }
            self.in_steps = Some(random);
            return done;
        }
        let before = self.bank.now();
        let mut done = Vec::new();
        self.bank.wait(until, &mut done).expect("the bank goes on");
        let now = self.bank.now();
        assert!(now >= before, "time went from {before:?} to {now:?}");
        let passed = now.since(before);
        self.under_way_ns += self.under_way as u128 * u128::from(passed.as_nanos());
        if self.under_way > 0 {
            self.busy = self.busy + passed;
        }
        for completion in &done {
            let record = &mut self.records[completion.tag as usize];
            assert_eq!(completion.outcome, Ok(()), "{record:?}");
            assert_eq!(completion.drive, record.command.drive, "{record:?}");
            assert_eq!(completion.reaped, now, "{record:?} is reaped when the bank returns");
            assert_eq!(record.reaped.replace(now), None, "{record:?} was completed twice");
            self.under_way -= 1;
        }
        if self.under_way == 0 && self.span_begin < self.records.len() {
            self.spans.push(self.span_begin..self.records.len());
            self.span_begin = self.records.len();
        }
        done.iter().map(|completion| completion.tag).collect()
    }

    /// Waits until nothing is under way.
    pub fn drain(&mut self) {
        while self.under_way > 0 {
            self.wait_for_one();
        }
    }

    /// Waits until something is done.
    fn wait_for_one(&mut self) {
        let done = self.wait(None);
        assert!(!done.is_empty(), "{} commands never complete", self.under_way);
    }

    /// Flushes every drive and waits for all.
    pub fn flush(&mut self) {
        self.drain();
        for drive in 0..self.bank.drives().len() as u16 {
            assert!(
                self.submit(DriveId(drive), Operation::Flush),
                "there is room when nothing is under way"
            );
        }
        self.drain();
    }

    /// Reads or writes of one length in a closed loop.
    pub fn closed_loop(
        &mut self,
        depth: usize,
        commands: u32,
        mut next: impl FnMut() -> Operation,
    ) {
        for _ in 0..commands {
            let operation = next();
            while self.under_way >= depth || !self.submit(DriveId(0), operation) {
                self.wait_for_one();
            }
        }
        self.drain();
    }

    /// Time since the bank began.
    pub fn seconds(&self) -> f64 {
        self.bank.now().as_nanos() as f64 * 1e-9
    }

    /// Bytes read and written by some commands.
    pub fn moved(&self, tags: Range<usize>) -> (u64, u64) {
        let moved = self.records[tags].iter().map(Record::moved);
        moved.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

/// A read, for a bank without data.
pub const fn read(offset: u64, length: u32) -> Operation {
    Operation::Read { offset, length, buffer: BufferId(0) }
}

/// A write, for a bank without data.
pub const fn write(offset: u64, length: u32) -> Operation {
    Operation::Write { offset, length, buffer: BufferId(0), fua: false }
}

fn draw(random: &mut Random, phase: &Phase, drive: &Geometry, last: &mut u64) -> Operation {
    let block = u64::from(drive.block_bytes);
    let blocks = |share: f64| (drive.capacity_bytes as f64 * share) as u64 / block;
    let from = blocks(phase.region.0);
    let room = (blocks(phase.region.1) - from).max(1);
    let (least, most) = (phase.bytes.0.max(block), phase.bytes.1.max(block).min(LENGTH_MAX));
    let length = (least + random.below(most - least + 1)) / block;
    let length = length.clamp(1, room);
    let at = if phase.random { random.below(room - length + 1) } else { *last };
    let at = if at + length > room { 0 } else { at };
    *last = at + length;
    let (offset, length) = ((from + at) * block, length * block);
    let mut drawn = random.below(phase.mix.iter().map(|&weight| u64::from(weight)).sum());
    for (kind, &weight) in phase.mix.iter().enumerate() {
        let weight = u64::from(weight);
        if drawn < weight {
            return match kind {
                0 => read(offset, length as u32),
                1 => write(offset, length as u32),
                2 => Operation::Trim { offset, length },
                _ => Operation::Flush,
            };
        }
        drawn -= weight;
    }
    Operation::Flush
}
