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
}

impl Stage {
    /// All of them, in the order of the media format.
    pub const ALL: [Self; 6] = [
        Self::Interface,
        Self::KernelRing,
        Self::NoBuffer,
        Self::Filtered,
        Self::DeviceError,
        Self::ArrayFull,
    ];

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
        })
    }
}

/// Bytes of pairs of counts that the media format keeps for later, as zeros.
const RESERVED_BYTES: usize = 16;

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
}

/// `offered`, `stored`, `lost` by the key of its stage, `truncated`, and whether it `balances`.
impl Serialize for Ledger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lost: BTreeMap<_, _> =
            Stage::ALL.iter().map(|&stage| (stage.key(), self.lost(stage))).collect();
        let mut ledger = serializer.serialize_struct("Ledger", 5)?;
        ledger.serialize_field("offered", &self.offered)?;
        ledger.serialize_field("stored", &self.stored)?;
        ledger.serialize_field("lost", &lost)?;
        ledger.serialize_field("truncated", &self.truncated)?;
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

    /// What was lost without anybody having asked for it: every stage but [`Stage::Filtered`].
    pub fn lost_unwanted(&self) -> Count {
        self.lost_total() - self.lost(Stage::Filtered)
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
        difference
    }

    /// Whether offered = stored + every loss.
    pub fn balances(&self) -> bool {
        self.offered == self.stored + self.lost_total()
    }

    pub(crate) fn put(&self, put: &mut Put<'_>) {
        for count in
            [self.offered, self.stored].into_iter().chain(self.lost).chain([self.truncated])
        {
            put.u64(count.packets).u64(count.bytes);
        }
        put.zeros(RESERVED_BYTES);
    }

    pub(crate) fn get(get: &mut Get<'_>) -> Self {
        let mut count = || Count { packets: get.u64(), bytes: get.u64() };
        let (offered, stored) = (count(), count());
        let (lost, truncated) = (std::array::from_fn(|_| count()), count());
        get.skip(RESERVED_BYTES);
        Self { offered, stored, lost, truncated }
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
