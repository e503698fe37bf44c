//! Power cuts against a model, by seed: what was flushed survives always, what was acknowledged if the buffer is protected or the write
//! was forced (Force Unit Access), and of
//! everything else each unit holds one state that it was in since, whole.

use base::memory::MemoryBuffers;
use base::{Bank, BufferId, Buffers, Command, DriveId, Instant, Operation, Random};
use longtake_ssd::{SimBank, Slot, Spec, Start};

use super::work;
use crate::drives;

/// Units at the beginning of the drive that commands go to; few, so that they are written over often.
const UNITS: u64 = 96;

/// Commands between power cuts at most.
const COMMANDS_MAX: u64 = 120;

/// The version of each of a unit's blocks.
type State = Vec<u64>;

/// What a unit may hold.
#[derive(Clone, Debug)]
struct Unit {
    /// States that it was in, and the one that a command under way will bring, since the last power cut.
    states: Vec<State>,
    /// How many of them were acknowledged.
    acknowledged: usize,
    /// The oldest that a power cut may bring back.
    oldest: usize,
    /// Whether a command is under way to it.
    busy: bool,
}

/// A command under way.
#[derive(Clone, Debug)]
enum UnderWay {
    Change {
        units: Vec<usize>,
        /// It is a write with Force Unit Access.
        fua: bool,
    },
    /// And how many states of each unit were acknowledged when it was submitted.
    Flush {
        acknowledged: Vec<usize>,
    },
    Read {
        units: Vec<usize>,
        buffer: BufferId,
    },
}

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Write,
    /// A write with Force Unit Access.
    Forced,
    Trim,
}

/// A drive that keeps data, and what it should hold.
struct History {
    bank: SimBank<MemoryBuffers>,
    memory: MemoryBuffers,
    free: Vec<BufferId>,
    under_way: Vec<Option<(UnderWay, Option<BufferId>)>>,
    units: Vec<Unit>,
    unit_bytes: u64,
    /// Bytes that are stamped with one version.
    block_bytes: u64,
    protected: bool,
    random: Random,
    version: u64,
    /// Units that a power cut took back behind what had been acknowledged.
    lost: u64,
}

impl Unit {
    fn holding(state: State) -> Self {
        Self { states: vec![state], acknowledged: 1, oldest: 0, busy: false }
    }
}

impl History {
    fn new(spec: &Spec, seed: u64) -> Self {
        let slot: Slot = work::slot_of(spec.clone(), Start::Empty, seed);
        let unit_bytes = u64::from(spec.mapping.unit_bytes);
        let memory = MemoryBuffers::new(16, 8 * unit_bytes as usize);
        let bank = SimBank::with_data(&[slot], None, memory.clone()).expect("a drive that can be");
        let block_bytes = u64::from(spec.block_bytes);
        let unit = Unit::holding(vec![0; (unit_bytes / block_bytes) as usize]);
        Self {
            free: memory.buffer_ids().collect(),
            bank,
            memory,
            under_way: Vec::new(),
            units: vec![unit; UNITS as usize],
            unit_bytes,
            block_bytes,
            protected: spec.buffer.protected,
            random: Random::new(seed),
            version: 0,
            lost: 0,
        }
    }

    /// Commands, then a power cut in the midst of them, then a look at everything.
    fn round(&mut self) {
        for _ in 0..1 + self.random.below(COMMANDS_MAX) {
            match self.random.below(20) {
                0..=1 => self.flush(),
                2..=3 => self.change(Change::Trim),
                6..=8 => self.change(Change::Forced),
                4..=5 => self.read(),
                _ => self.change(Change::Write),
            }
            // Sometimes time for programs, sometimes none.
            let nanoseconds = if self.random.one_in(6) { self.random.below(2_000_000) } else { 0 };
            let until = Instant::from_nanos(self.bank.now().as_nanos() + nanoseconds);
            self.wait(until);
        }
        self.bank.power_cut();
        self.free = self.memory.buffer_ids().collect();
        self.under_way.clear();
        self.look();
        assert_eq!(self.bank.audit(0), Ok(()));
    }

    fn submit(&mut self, operation: Operation, under_way: UnderWay) -> bool {
        let tag = self.under_way.len() as u64;
        let accepted = self.bank.submit(Command { drive: DriveId(0), operation, tag }).is_ok();
        if accepted {
            self.under_way.push(Some((under_way, operation.buffer())));
        } else {
            self.free.extend(operation.buffer());
        }
        accepted
    }

    /// Some blocks, whole units or not, that no command is under way to: the first and how many.
    fn pick(&mut self) -> Option<(u64, u64)> {
        let blocks = self.unit_bytes / self.block_bytes;
        let whole = self.random.one_in(2);
        let first = self.random.below(UNITS - 4) * blocks
            + if whole { 0 } else { self.random.below(blocks) };
        let count = if whole {
            (1 + self.random.below(4)) * blocks
        } else {
            1 + self.random.below(3 * blocks)
        };
        let idle = self.touched(first, count).all(|unit| !self.units[unit].busy);
        idle.then_some((first, count))
    }

    fn touched(&self, first: u64, count: u64) -> std::ops::Range<usize> {
        let blocks = self.unit_bytes / self.block_bytes;
        (first / blocks) as usize..((first + count - 1) / blocks + 1) as usize
    }

    fn change(&mut self, change: Change) {
        let (trim, fua) = (change == Change::Trim, change == Change::Forced);
        let (Some((first, count)), Some(buffer)) = (self.pick(), self.free.pop()) else { return };
        self.version += 1;
        let version = if trim { 0 } else { self.version };
        let (offset, length) = (first * self.block_bytes, count * self.block_bytes);
        let operation = if trim {
            self.free.push(buffer);
            Operation::Trim { offset, length }
        } else {
            self.memory.with(buffer, &mut |bytes| {
                for word in bytes[..length as usize].chunks_exact_mut(8) {
                    word.copy_from_slice(&version.to_le_bytes());
                }
            });
            Operation::Write { offset, length: length as u32, buffer, fua }
        };
        let units: Vec<usize> = self.touched(first, count).collect();
        if !self.submit(operation, UnderWay::Change { units: units.clone(), fua }) {
            return;
        }
        let blocks = self.unit_bytes / self.block_bytes;
        for unit in units {
            let own = &mut self.units[unit];
            let mut state = own.states[own.states.len() - 1].clone();
            for (block, held) in (unit as u64 * blocks..).zip(&mut state) {
                if (first..first + count).contains(&block) {
                    *held = version;
                }
            }
            own.states.push(state);
            own.busy = true;
        }
    }

    fn flush(&mut self) {
        let acknowledged = self.units.iter().map(|unit| unit.acknowledged).collect();
        self.submit(Operation::Flush, UnderWay::Flush { acknowledged });
    }

    fn read(&mut self) {
        let (Some((first, count)), Some(buffer)) = (self.pick(), self.free.pop()) else { return };
        let units: Vec<usize> = self.touched(first, count).collect();
        let offset = units[0] as u64 * self.unit_bytes;
        let length = (units.len() as u64 * self.unit_bytes) as u32;
        let operation = Operation::Read { offset, length, buffer };
        if self.submit(operation, UnderWay::Read { units: units.clone(), buffer }) {
            for unit in units {
                self.units[unit].busy = true;
            }
        }
    }

    fn wait(&mut self, until: Instant) {
        let mut done = Vec::new();
        self.bank.wait(Some(until), &mut done).expect("the bank goes on");
        for completion in done {
            assert_eq!(completion.outcome, Ok(()));
            let under_way = self.under_way[completion.tag as usize].take();
            let (under_way, buffer) = under_way.expect("a command completes once");
            match under_way {
                UnderWay::Change { units, fua } => {
                    for unit in units {
                        let unit = &mut self.units[unit];
                        (unit.acknowledged, unit.busy) = (unit.states.len(), false);
                        if self.protected || fua {
                            unit.oldest = unit.acknowledged - 1;
                        }
                    }
                }
                UnderWay::Flush { acknowledged } => {
                    for (unit, acknowledged) in self.units.iter_mut().zip(acknowledged) {
                        unit.oldest = unit.oldest.max(acknowledged - 1);
                    }
                }
                UnderWay::Read { units, buffer } => {
                    let found = self.states_in(buffer, units.len());
                    for (unit, found) in units.into_iter().zip(found) {
                        let unit = &mut self.units[unit];
                        assert_eq!(
                            Some(&found),
                            unit.states.last(),
                            "a read sees what was acknowledged"
                        );
                        unit.busy = false;
                    }
                }
            }
            self.free.extend(buffer);
        }
    }
    /// The states that a buffer's units are in. Blocks are whole: one version each.
    fn states_in(&self, buffer: BufferId, units: usize) -> Vec<State> {
        let block_bytes = self.block_bytes as usize;
        let mut versions = Vec::new();
        self.memory.with(buffer, &mut |bytes| {
            for block in bytes[..units * self.unit_bytes as usize].chunks_exact(block_bytes) {
                let version: [u8; 8] = std::array::from_fn(|at| block[at]);
                assert!(block.chunks_exact(8).all(|word| word == version), "a block is torn");
                versions.push(u64::from_le_bytes(version));
            }
        });
        versions
            .chunks_exact((self.unit_bytes / self.block_bytes) as usize)
            .map(<[u64]>::to_vec)
            .collect()
    }

    /// Reads every unit after a power cut. What is found is where the history goes on from.
    fn look(&mut self) {
        for at in 0..self.units.len() {
            let buffer = self.free[0];
            let (offset, length) = (at as u64 * self.unit_bytes, self.unit_bytes as u32);
            let operation = Operation::Read { offset, length, buffer };
            let command = Command { drive: DriveId(0), operation, tag: 0 };
            self.bank.submit(command).expect("nothing is under way after a power cut");
            let mut done = Vec::new();
            self.bank.wait(None, &mut done).expect("the bank goes on");
            assert_eq!(done.len(), 1);
            let found = self.states_in(buffer, 1).remove(0);
            let unit = &mut self.units[at];
            let mut allowed = unit.states[unit.oldest..].iter();
            assert!(allowed.any(|state| *state == found), "unit {at} holds {found:?}: {unit:?}");
            self.lost += u64::from(!unit.states[unit.acknowledged - 1..].contains(&found));
            *unit = Unit::holding(found);
        }
    }
}

/// A drive so small that the units of a history are a good part of it, and collection goes on all the time.
fn tiny(mut spec: Spec) -> Spec {
    spec.capacity_bytes = UNITS * u64::from(spec.mapping.unit_bytes) * 5 / 4;
    (spec.flash.channels, spec.flash.dies_per_channel, spec.flash.pages_per_block) = (2, 1, 6);
    spec.buffer.bytes = 4 * spec.flash.program_bytes() * u64::from(spec.flash.dies());
    spec.mapping.over_provisioning = 12.0;
    if let Some(cache) = &mut spec.cache {
        (cache.static_bytes, cache.dynamic_bytes, cache.idle_ms) = (64 << 10, 64 << 10, 1.0);
    }
    spec
}

/// Units that were lost in the histories of some seeds.
fn lost(spec: &Spec) -> u64 {
    let history = |seed| {
        let mut history = History::new(spec, seed);
        for _ in 0..12 {
            history.round();
        }
        history.lost
    };
    (0..25).map(history).sum()
}

fn protected(mut spec: Spec) -> Spec {
    spec.buffer.protected = true;
    spec
}

#[test]
fn an_unprotected_buffer_loses_what_was_not_flushed_and_nothing_else() {
    for spec in [drives::small(), drives::striped(), tiny(drives::small()), tiny(drives::cached())]
    {
        let lost = lost(&spec);
        assert!(lost > 0, "{}: no history lost anything, so none shows what survives", spec.name);
    }
}

#[test]
fn a_protected_buffer_loses_nothing_that_was_acknowledged() {
    for spec in
        [drives::small(), tiny(drives::small()), tiny(drives::cached()), drives::large_units()]
    {
        assert_eq!(lost(&protected(spec)), 0);
    }
}

#[test]
fn media_in_place_lose_nothing_that_was_acknowledged() {
    assert_eq!(lost(&protected(drives::in_place())), 0);
}

/// How long one write of a unit takes, in nanoseconds, and bytes that the media have taken after that and idle time.
fn one_write(spec: &Spec, fua: bool) -> (u64, u64) {
    let memory = MemoryBuffers::new(1, spec.mapping.unit_bytes as usize);
    let slot = work::slot_of(spec.clone(), Start::Empty, 1);
    let mut bank = SimBank::with_data(&[slot], None, memory.clone()).expect("a drive that can be");
    let length = spec.mapping.unit_bytes;
    let operation = Operation::Write { offset: 0, length, buffer: BufferId(0), fua };
    bank.submit(Command { drive: DriveId(0), operation, tag: 0 }).expect("nothing is under way");
    let mut done = Vec::new();
    bank.wait(None, &mut done).expect("the bank goes on");
    assert_eq!((done.len(), done[0].outcome.clone()), (1, Ok(())));
    (done[0].reaped.as_nanos(), bank.health(0).sets[0].media_written_bytes)
}

#[test]
fn a_forced_write_waits_for_its_program_unless_the_buffer_is_protected() {
    let spec = drives::small();
    let program_ns = (spec.flash.program_us * 1e3) as u64;
    let (ordinary, forced) = (one_write(&spec, false), one_write(&spec, true));
    assert!(ordinary.0 < program_ns, "{ordinary:?}");
    assert!(forced.0 >= program_ns, "{forced:?}");
    assert!(
        forced.1 >= spec.flash.program_bytes(),
        "its wordline is filled up and programmed: {forced:?}"
    );
    let protected = protected(spec);
    assert_eq!(one_write(&protected, true), one_write(&protected, false));
    let in_place = drives::in_place();
    assert_eq!(one_write(&in_place, true), one_write(&in_place, false));
}
