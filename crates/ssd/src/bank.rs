//! A bank of simulated drives: each with its own link, all on one clock, behind a shared uplink if there is one.

use std::ops::Range;

use base::{
    Bank, BankError, Buffers, Command, Completion, DriveId, Full, Geometry, Instant, NoBuffers,
};

use crate::drive::{Data, Drive, UplinkWires, Window};
use crate::earliest::NEVER;
use crate::health::Health;
use crate::media::Media;
use crate::spec::{Spec, SpecError};
use crate::tournament::{Tournament, Winner};

/// A drive to put into a bank.
#[derive(Clone, Debug)]
pub struct Slot {
    /// What it is.
    pub spec: Spec,
    /// What is on it when the bank begins.
    pub start: Start,
    /// Which of its namespaces the bank shows, from 0, in this order. A bank's drive is one namespace.
    pub namespaces: Vec<usize>,
    /// What its random choices follow from.
    pub seed: u64,
}

/// What is on a drive when its bank begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// Nothing.
    Empty,
    /// Everything, written once from the first byte to the last.
    Full,
    /// Everything, written twice from the first byte to the last without a rest: what a ring that is too fast leaves, with no
    /// flash erased ahead and a full cache.
    Overwritten,
    /// What endless uniform random writing of units of so many bytes leaves. Computed, not simulated.
    Random {
        /// Bytes of a write; a multiple of the mapping unit.
        block_bytes: u32,
    },
}

/// A link that all drives of a bank share, such as the one between a chipset and the processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplink {
    /// Payload bytes a second toward the host.
    pub read_bytes_per_s: f64,
    /// Payload bytes a second toward the drives.
    pub write_bytes_per_s: f64,
}

/// Longest read or write in bytes, as the kernel would split it for a real drive.
const TRANSFER_BYTES_MAX: u32 = 16 << 20;

/// Tables that [`SimBank::copy`] copies, at most: a tenth of a second or so.
const COPY_BYTES_MAX: u64 = 256 << 20;

/// Simulated drives. The time is virtual: waiting is what moves it.
#[derive(Clone, Debug)]
pub struct SimBank<M = NoBuffers> {
    geometry: Vec<Geometry>,
    namespaces: Vec<Namespace>,
    drives: Vec<Device>,
    /// When something happens next in each of them, in nanoseconds.
    next: Tournament,
    uplink: Option<UplinkWires>,
    now: u64,
    under_way: u64,
    refused: Vec<Completion>,
    memory: Option<M>,
    /// Size of each buffer.
    buffer_bytes: u64,
    media: Vec<Media>,
}

/// A drive of the bank: one namespace of a simulated drive.
#[derive(Clone, Debug)]
struct Namespace {
    /// Index of its drive in `drives`.
    device: usize,
    namespace: u32,
    under_way: u32,
    depth_max: u32,
}

#[derive(Clone, Debug)]
struct Device {
    drive: Drive,
    /// Its namespaces among the bank's drives.
    namespaces: Range<usize>,
}

impl SimBank<NoBuffers> {
    /// Drives that keep time and no data, and look at no buffers.
    ///
    /// # Errors
    /// [`SpecError`] for the first drive that can't be.
    pub fn new(slots: &[Slot], uplink: Option<Uplink>) -> Result<Self, SpecError> {
        Self::build(slots, uplink, None)
    }

    /// The same bank once more, with all that is on its drives, to go on from here several times. None if their tables are so large
    /// that copying them again and again would take longer than what is measured between.
    pub fn copy(&self) -> Option<Self> {
        let table_bytes: u64 = self.drives.iter().map(|device| device.drive.table_bytes()).sum();
        (table_bytes <= COPY_BYTES_MAX).then(|| self.clone())
    }
}

impl<M: Buffers> SimBank<M> {
    /// Drives that keep what is written (in memory, only what is written takes any) and move it to and from buffers.
    ///
    /// # Errors
    /// [`SpecError`] for the first drive that can't be.
    pub fn with_data(slots: &[Slot], uplink: Option<Uplink>, memory: M) -> Result<Self, SpecError> {
        Self::build(slots, uplink, Some(memory))
    }

    fn build(slots: &[Slot], uplink: Option<Uplink>, memory: Option<M>) -> Result<Self, SpecError> {
        let mut bank = Self {
            geometry: Vec::new(),
            namespaces: Vec::new(),
            drives: Vec::new(),
            next: Tournament::new(&[]),
            uplink: uplink.as_ref().map(UplinkWires::new),
            now: 0,
            under_way: 0,
            refused: Vec::new(),
            buffer_bytes: memory.as_ref().map_or(u64::MAX, |memory| memory.size() as u64),
            memory,
            media: Vec::new(),
        };
        for (device, slot) in slots.iter().enumerate() {
            let drive = Drive::new(slot)?;
            let first = bank.namespaces.len();
            for &namespace in &slot.namespaces {
                let count = slot.spec.sets.namespaces.len();
                if namespace >= count {
                    return Err(SpecError {
                        field: "sets.namespaces".to_owned(),
                        problem: format!("there is no namespace {}: it has {count}", namespace + 1),
                    });
                }
                let namespace = namespace as u32;
                let geometry = geometry(&slot.spec, namespace, drive.bytes(namespace));
                bank.namespaces.push(Namespace {
                    device,
                    namespace,
                    under_way: 0,
                    depth_max: geometry.depth_max,
                });
                bank.geometry.push(geometry);
                bank.media.push(Media::default());
            }
            bank.drives.push(Device { drive, namespaces: first..bank.namespaces.len() });
        }
        let next: Vec<u64> = bank.drives.iter().map(|device| device.drive.next()).collect();
        bank.next = Tournament::new(&next);
        Ok(bank)
    }

    /// What a slot's drive has been through.
    pub fn health(&self, slot: usize) -> Health {
        self.drives[slot].drive.health(self.now)
    }

    /// Events in all drives so far: what simulating them has cost, and the same on every machine.
    pub fn events(&self) -> u64 {
        self.drives.iter().map(|device| device.drive.events()).sum()
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.drives.len()
    }

    /// What a slot's drive is made of.
    pub fn spec(&self, slot: usize) -> &Spec {
        self.drives[slot].drive.spec()
    }

    /// Bytes of the host's that a slot's drive has taken into its buffer, or keeps room for, and that are not on flash yet; in whole
    /// mapping units.
    pub fn buffered_bytes(&self, slot: usize) -> u64 {
        self.drives[slot].drive.buffered_bytes()
    }

    /// Whether the books of a slot's drive agree. For tests: it looks at every unit.
    ///
    /// # Errors
    /// The first two that disagree, in words.
    pub fn audit(&self, slot: usize) -> Result<(), String> {
        self.drives[slot].drive.audit()
    }

    /// Takes the power from all drives and gives it back at once. Commands under way are forgotten, no completion comes; what waits in
    /// an unprotected buffer is lost.
    pub fn power_cut(&mut self) {
        if let Some(memory) = &self.memory {
            for buffer in self.drives.iter().flat_map(|device| device.drive.buffers()) {
                memory.give_back(buffer);
            }
        }
        for (at, device) in self.drives.iter_mut().enumerate() {
            device.drive.power_cut(self.now);
            self.next.set(at, device.drive.next());
            if !device.drive.spec().buffer.protected {
                for media in &mut self.media[device.namespaces.clone()] {
                    media.lose();
                }
            }
        }
        for namespace in &mut self.namespaces {
            namespace.under_way = 0;
        }
        self.refused.clear();
        self.under_way = 0;
    }

    /// Turns Predictable Latency Mode off for an NVM Set, from 0, of a slot's drive (None), or asks for a window of it: Set Features 13h and
    /// 14h, in no time. Returns the window that the set is in then, which is deterministic only if it was ready for that. None if the drive
    /// has no such mode, or it is off.
    pub fn set_window(&mut self, slot: usize, set: u32, window: Option<Window>) -> Option<Window> {
        let drive = &mut self.drives[slot].drive;
        let now = drive.set_window(self.now, set, window);
        self.next.set(slot, drive.next());
        now
    }

    /// The slot of one of the bank's drives, and its NVM Sets there.
    pub fn sets_of(&self, drive: DriveId) -> (usize, Vec<u32>) {
        let Namespace { device, namespace, .. } = self.namespaces[drive.index()];
        (device, self.drives[device].drive.sets_of(namespace).collect())
    }

    /// Puts all drives into the steady state of endless uniform random writes of so many bytes each, computed instead of simulated.
    /// Time stands still meanwhile.
    ///
    /// # Panics
    /// If commands are under way.
    pub fn settle(&mut self, block_bytes: u64) {
        assert_eq!(self.under_way, 0, "commands are under way");
        for (at, device) in self.drives.iter_mut().enumerate() {
            device.drive.settle(block_bytes, self.now);
            self.next.set(at, device.drive.next());
        }
    }

    /// Lets happen what happens in a drive up to `until`, until something is completed.
    #[inline]
    fn advance(&mut self, index: usize, until: u64, done: &mut Vec<Completion>) {
        let device = &mut self.drives[index];
        let data = self.memory.as_ref().map(|buffers| Data {
            media: &mut self.media[device.namespaces.clone()],
            first: device.namespaces.start,
            buffers,
        });
        let before = done.len();
        let next = self.next.get(index);
        let next = device.drive.advance(next, until, &mut self.uplink, data, done);
        self.next.set(index, next);
        self.now = device.drive.now();
        let finished = done.len() - before;
        self.under_way -= finished as u64;
        if device.namespaces.len() == 1 {
            self.namespaces[device.namespaces.start].under_way -= finished as u32;
        } else {
            for completion in &done[before..] {
                self.namespaces[completion.drive.index()].under_way -= 1;
            }
        }
    }
}

fn geometry(spec: &Spec, namespace: u32, capacity_bytes: u64) -> Geometry {
    let name = if spec.sets.namespaces.len() > 1 {
        format!("sim:{}@{}", spec.name, namespace + 1)
    } else {
        format!("sim:{}", spec.name)
    };
    let block = u64::from(spec.block_bytes);
    Geometry {
        name,
        capacity_bytes: capacity_bytes / block * block,
        block_bytes: spec.block_bytes,
        transfer_max_bytes: TRANSFER_BYTES_MAX,
        depth_max: spec.controller.depth,
        trim_unit_bytes: Some(spec.block_bytes),
        trim_reads_zeros: spec.mapping.trim_reads_zeros,
        writable: true,
    }
}

impl<M: Buffers> Bank for SimBank<M> {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    #[inline]
    fn submit(&mut self, command: Command) -> Result<(), Full> {
        let on = &mut self.namespaces[command.drive.index()];
        if on.under_way >= on.depth_max {
            return Err(Full);
        }
        on.under_way += 1;
        self.under_way += 1;
        let geometry = &self.geometry[command.drive.index()];
        if let Err(why) = geometry.check(&command.operation, self.buffer_bytes) {
            let (drive, tag) = (command.drive, command.tag);
            let reaped = Instant::from_nanos(self.now);
            self.refused.push(Completion { drive, tag, outcome: Err(why.into()), reaped });
            return Ok(());
        }
        if let (Some(memory), Some(buffer)) = (&self.memory, command.operation.buffer()) {
            memory.lend(buffer);
        }
        let (device, namespace) = (on.device, on.namespace);
        let drive = &mut self.drives[device].drive;
        let next = drive.submit(self.now, namespace, command, self.next.get(device));
        self.next.set(device, next);
        Ok(())
    }

    #[inline]
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        if !self.refused.is_empty() {
            for completion in &self.refused {
                self.under_way -= 1;
                self.namespaces[completion.drive.index()].under_way -= 1;
            }
            done.append(&mut self.refused);
            return Ok(());
        }
        if until.is_none() && self.under_way == 0 {
            return Ok(());
        }
        let until = until.map_or(NEVER - 1, |until| until.as_nanos().max(self.now));
        let before = done.len();
        loop {
            let Winner { time: next, index, another } = self.next.winner();
            if next > until {
                self.now = until;
                return Ok(());
            }
            // Of what happens in two drives at the same time, the first drive's comes first.
            let limit =
                if done.len() > before { self.now } else { until.min(another - 1).max(next) };
            self.advance(index, limit, done);
            if done.len() > before && self.next.get(index).min(another) > self.now {
                return Ok(());
            }
        }
    }
}
