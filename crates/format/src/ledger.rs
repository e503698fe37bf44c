//! The balanced account of a take: offered = stored + each named loss.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::fields::{Get, Put};

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Packets (or raw blocks).
    pub packets: u64,
    /// Their bytes on the wire; 0 where nobody can know them.
    pub bytes: u64,
}

impl Count {
    /// Nothing.
    pub const ZERO: Self = Self { packets: 0, bytes: 0 };

    /// So many packets of so many bytes in all.
    pub const fn new(packets: u64, bytes: u64) -> Self {
        Self { packets, bytes }
    }
    /// Whether both are zero.
    pub const fn is_zero(self) -> bool {
        self.packets == 0 && self.bytes == 0
    }

    pub(crate) fn put(self, put: &mut Put<'_>) {
        put.u64(self.packets).u64(self.bytes);
    }

    pub(crate) fn get(get: &mut Get<'_>) -> Self {
        Self { packets: get.u64(), bytes: get.u64() }
    }
}

impl Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Count {
    type Output = Self;
    /// Saturates: counts read from media may be anything.
    fn sub(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(other.packets),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Where packets are lost on their way to the media, in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The interface or its driver dropped them.
    Interface,
    /// The kernel's capture ring or socket buffer was full.
    KernelRing,
    /// No chunk buffer was free: the drives did not keep up for longer than the buffers last.
    NoBuffer,
    /// The capture filter refused them.
    Filtered,
    /// No working member was left to take them.
    DeviceError,
    /// The array was full and does not wrap (or all of it is protected).
    ArrayFull,
    /// They came after the first bytes of their flow, of which alone the user wants a recording. They are cut before anything else
    /// may lose them.
    Cut,
}

impl Stage {
    /// All of them, in the order of the media format, where those of version 1.0 stand first.
    pub const ALL: [Self; 7] = [
        Self::Interface,
        Self::KernelRing,
        Self::NoBuffer,
        Self::Filtered,
        Self::DeviceError,
        Self::ArrayFull,
        Self::Cut,
    ];

    /// Those at which packets are lost without anybody having asked for it.
    pub fn unwanted() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|stage| !stage.is_asked_for())
    }

    /// Whether it leaves packets out because the user asked for it.
    pub const fn is_asked_for(self) -> bool {
        matches!(self, Self::Filtered | Self::Cut)
    }

    /// Its place in the media format.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// As a key in JSON: `kernel_ring`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::KernelRing => "kernel_ring",
            Self::NoBuffer => "no_buffer",
            Self::Filtered => "filtered",
            Self::DeviceError => "device_error",
            Self::ArrayFull => "array_full",
            Self::Cut => "cut",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Interface => "interface",
            Self::KernelRing => "kernel ring",
            Self::NoBuffer => "no buffer",
            Self::Filtered => "filtered",
            Self::DeviceError => "device error",
            Self::ArrayFull => "array full",
            Self::Cut => "cut",
        })
    }
}

/// Stages that stand one after the other on the media.
const ADJACENT_STAGES: usize = 6;
const _: () = assert!(Stage::Cut as usize == ADJACENT_STAGES && Stage::ALL.len() == 7);

/// The account. It balances when offered = stored + every loss, in packets and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// What the source had to offer.
    pub offered: Count,
    /// What is in chunks that are (or will be) on the media.
    pub stored: Count,
    /// What was lost, by [`Stage`].
    lost: [Count; Stage::ALL.len()],
    /// Stored packets that were truncated because no chunk holds them whole, and the bytes cut from
    /// them: of their data, and of their options as they are encoded. Texts cut from interface
    /// descriptions count as bytes of no packet. An account of its own: it takes no part in the balance.
    pub truncated: Count,
    /// Stored packets of which only a part was to be kept, and the bytes left out. An account of its own, too: the user asked for it.
    pub sliced: Count,
}

/// `offered`, `stored`, `lost` by the key of its stage, `truncated`, `sliced`, and whether it `balances`.
impl Serialize for Ledger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lost: BTreeMap<_, _> =
            Stage::ALL.iter().map(|&stage| (stage.key(), self.lost(stage))).collect();
        let mut ledger = serializer.serialize_struct("Ledger", 6)?;
        ledger.serialize_field("offered", &self.offered)?;
        ledger.serialize_field("stored", &self.stored)?;
        ledger.serialize_field("lost", &lost)?;
        ledger.serialize_field("truncated", &self.truncated)?;
        ledger.serialize_field("sliced", &self.sliced)?;
        ledger.serialize_field("balances", &self.balances())?;
        ledger.end()
    }
}

impl Ledger {
    /// What was lost at one stage.
    pub fn lost(&self, stage: Stage) -> Count {
        self.lost[stage.index()]
    }

    /// The sum over all stages.
    pub fn lost_total(&self) -> Count {
        self.lost.iter().fold(Count::ZERO, |sum, &count| sum + count)
    }

    /// What was lost without anybody having asked for it: every stage but [`Stage::Filtered`] and [`Stage::Cut`].
    pub fn lost_unwanted(&self) -> Count {
        Stage::unwanted().fold(Count::ZERO, |sum, stage| sum + self.lost(stage))
    }

    /// Whether it says of packets that are stored how they were shortened.
    pub fn shortens(&self) -> bool {
        self.truncated != Count::ZERO || self.sliced != Count::ZERO
    }

    /// What it says of packets that are stored, and that must be taken back if they are lost after all: how they were shortened.
    pub fn shortened(&self) -> Self {
        Self { truncated: self.truncated, sliced: self.sliced, ..Self::default() }
    }

    /// Enters packets that were offered and are stored.
    pub fn store(&mut self, count: Count) {
        self.offered += count;
        self.stored += count;
    }

    /// Enters packets that were offered and lost.
    pub fn lose(&mut self, stage: Stage, count: Count) {
        self.offered += count;
        self.lost[stage.index()] += count;
    }

    /// Moves packets that had been entered as stored to a loss.
    pub fn fail(&mut self, stage: Stage, count: Count) {
        self.stored = self.stored - count;
        self.lost[stage.index()] += count;
    }

    /// Adds another account to this one.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.stored += other.stored;
        for (sum, more) in self.lost.iter_mut().zip(other.lost) {
            *sum += more;
        }
        self.truncated += other.truncated;
        self.sliced += other.sliced;
    }

    /// What came between `earlier` and this account of the same take.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = *self;
        difference.offered = self.offered - earlier.offered;
        difference.stored = self.stored - earlier.stored;
        for (now, before) in difference.lost.iter_mut().zip(earlier.lost) {
            *now = *now - before;
        }
        difference.truncated = self.truncated - earlier.truncated;
        difference.sliced = self.sliced - earlier.sliced;
        difference
    }

    /// Whether offered = stored + every loss.
    pub fn balances(&self) -> bool {
        self.offered == self.stored + self.lost_total()
    }

    /// Whether it counts packets that were cut or sliced.
    pub(crate) fn has_retention(&self) -> bool {
        !self.lost(Stage::Cut).is_zero() || !self.sliced.is_zero()
    }

    /// The ten pairs that stand together; `sliced` stands elsewhere. Readers that don't know of cut packets take them for filtered ones.
    pub(crate) fn put(&self, put: &mut Put<'_>) {
        let (mut lost, cut) = (self.lost, self.lost(Stage::Cut));
        lost[Stage::Filtered.index()] += cut;
        let lost = lost.into_iter().take(ADJACENT_STAGES);
        let pairs = [self.offered, self.stored].into_iter().chain(lost);
        for count in pairs.chain([self.truncated, cut]) {
            count.put(put);
        }
    }

    pub(crate) fn get(get: &mut Get<'_>) -> Self {
        let mut ledger =
            Self { offered: Count::get(get), stored: Count::get(get), ..Self::default() };
        for lost in &mut ledger.lost[..ADJACENT_STAGES] {
            *lost = Count::get(get);
        }
        ledger.truncated = Count::get(get);
        let cut = Count::get(get);
        ledger.lost[Stage::Cut.index()] = cut;
        let filtered = &mut ledger.lost[Stage::Filtered.index()];
        *filtered = *filtered - cut;
        ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_as_json_names_every_loss_by_its_stage() {
        let mut ledger = Ledger::default();
        ledger.store(Count::new(10, 1000));
        ledger.fail(Stage::DeviceError, Count::new(2, 200));
        let json = serde_json::to_value(ledger).unwrap();
        assert_eq!(json["stored"], serde_json::json!({"packets": 8, "bytes": 800}));
        assert_eq!(json["lost"].as_object().unwrap().len(), Stage::ALL.len());
        assert_eq!(json["lost"][Stage::DeviceError.key()]["packets"], 2);
        assert_eq!(json["balances"], true);
    }

    #[test]
    fn every_entry_keeps_the_balance() {
        let mut ledger = Ledger::default();
        ledger.store(Count::new(10, 1000));
        ledger.lose(Stage::KernelRing, Count::new(3, 0));
        ledger.fail(Stage::DeviceError, Count::new(2, 200));
        assert!(ledger.balances());
        assert_eq!(ledger.stored, Count::new(8, 800));
        assert_eq!(ledger.offered, Count::new(13, 1000));
        ledger.offered.packets += 1;
        assert!(!ledger.balances());
    }

    #[test]
    fn packets_that_the_user_wants_left_out_are_not_among_the_unwanted() {
        let mut ledger = Ledger::default();
        ledger.lose(Stage::Filtered, Count::new(5, 500));
        ledger.lose(Stage::Cut, Count::new(7, 700));
        assert!(ledger.lost_unwanted().is_zero() && ledger.balances());
        for (number, stage) in (1..).zip(Stage::unwanted()) {
            ledger.lose(stage, Count::new(1, 10));
            assert_eq!(ledger.lost_unwanted(), Count::new(number, 10 * number));
        }
        assert_eq!(ledger.lost_unwanted().packets as usize + 2, Stage::ALL.len());
    }

    #[test]
    fn what_it_says_of_stored_packets_can_be_taken_back() {
        let mut ledger = Ledger::default();
        ledger.lose(Stage::Cut, Count::new(7, 700));
        let losses = ledger;
        ledger.truncated = Count::new(1, 2);
        ledger.sliced = Count::new(3, 4);
        assert_eq!(ledger.since(&ledger.shortened()), losses);
        let mut sum = losses;
        sum.add(&ledger.shortened());
        assert_eq!(sum, ledger);
    }

    #[test]
    fn truncated_packets_are_added_and_subtracted_and_leave_the_balance_alone() {
        let mut one = Ledger::default();
        one.store(Count::new(10, 1000));
        one.truncated = Count::new(2, 300);
        let mut sum = one;
        sum.add(&one);
        assert!(sum.balances());
        assert_eq!(sum.truncated, Count::new(4, 600));
        assert_eq!(sum.since(&one), one);
    }
}
