//! The machine that records: lanes, links, memory. What isn't said of it doesn't limit.

use base::{ByteSize, Rate};
use ssd::spec::Link;

/// Share of a PCIe link's bytes after line coding that is payload, where a drive's own isn't known: 256 bytes to a packet, with
/// about 28 of header, framing and acknowledgement (PCI Express base specification, transaction and data link layers).
pub const LINK_EFFICIENCY: f64 = 256.0 / 284.0;

/// Times that each recorded byte crosses the memory bus when nothing stays in a cache: written by the NIC, read to be copied, its
/// line in the chunk fetched and written, read by the drive.
pub const MEMORY_CROSSINGS: f64 = 5.0;

/// The same where NIC and drives work on the processor's cache: the copy alone, which reads, fetches and writes.
pub const MEMORY_CROSSINGS_CACHED: f64 = 3.0;

/// What is known of the host; None doesn't limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// PCIe lanes for drives and network interfaces together.
    pub lanes: Option<u32>,
    /// Generation of its slots, 1 to 6.
    pub generation: Option<u8>,
    /// What all drives share on their way, such as a chipset's link.
    pub uplink: Option<Uplink>,
    /// Memory for chunk buffers.
    pub memory: Option<ByteSize>,
    /// What its memory moves, reading and writing together.
    pub memory_bandwidth: Option<Rate>,
    /// Network interfaces.
    pub nic: Option<Nic>,
}

/// A link that all drives share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplink {
    /// Toward the host.
    pub to_host: Rate,
    /// Toward the drives.
    pub to_drives: Rate,
}

/// Network interfaces, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// PCIe generation, 1 to 6.
    pub generation: u8,
    /// Lanes of each.
    pub lanes: u8,
    /// Number of them.
    pub count: u32,
}

impl Nic {
    /// What they take in together, bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        let link = Link::Pcie {
            generation: self.generation,
            lanes: self.lanes,
            efficiency: LINK_EFFICIENCY,
        };
        link.bytes_per_s() * f64::from(self.count)
    }

    /// Lanes of all.
    pub const fn lanes(&self) -> u32 {
        self.lanes as u32 * self.count
    }
}

impl Host {
    /// Lanes that are left to the drives; None if that isn't limited.
    pub fn drive_lanes(&self) -> Option<u32> {
        let lanes = self.lanes?;
        Some(lanes.saturating_sub(self.nic.map_or(0, |nic| nic.lanes())))
    }

    /// The link that each of so many drives gets: its own, in a slot of the host's generation, on as many lanes as there are
    /// for it: 16, 8, 4, 2 or 1. None if there is no lane for each.
    pub fn link_for(&self, own: Link, drives: u32) -> Option<Link> {
        let Link::Pcie { generation, lanes, efficiency } = own else { return Some(own) };
        let generation = self.generation.map_or(generation, |slot| slot.min(generation));
        let lanes = match self.drive_lanes() {
            None => lanes,
            Some(all) => {
                let each = all / drives.max(1);
                if each == 0 {
                    return None;
                }
                let power = 1u32 << each.ilog2();
                u8::try_from(power).unwrap_or(u8::MAX).min(lanes)
            }
        };
        Some(Link::Pcie { generation, lanes, efficiency })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Link = Link::Pcie { generation: 4, lanes: 4, efficiency: 1.0 };

    #[test]
    fn drives_share_the_lanes_that_interfaces_leave() {
        let nic = Nic { generation: 4, lanes: 16, count: 1 };
        let host = Host { lanes: Some(48), nic: Some(nic), ..Host::default() };
        assert_eq!(host.drive_lanes(), Some(32));
        assert_eq!(host.link_for(OWN, 8), Some(OWN));
        let half = Link::Pcie { generation: 4, lanes: 2, efficiency: 1.0 };
        assert_eq!(host.link_for(OWN, 9), Some(half));
        assert_eq!(host.link_for(OWN, 33), None);
        assert_eq!(Host::default().link_for(OWN, 1000), Some(OWN));
    }

    #[test]
    fn an_older_slot_slows_a_drive_and_a_newer_one_does_not_speed_it() {
        let old = Host { generation: Some(3), ..Host::default() };
        let slow = Link::Pcie { generation: 3, lanes: 4, efficiency: 1.0 };
        assert_eq!(old.link_for(OWN, 1), Some(slow));
        let new = Host { generation: Some(5), ..Host::default() };
        assert_eq!(new.link_for(OWN, 1), Some(OWN));
        let sata = Link::Sata { gbps: 6.0, efficiency: 0.9 };
        assert_eq!(old.link_for(sata, 1), Some(sata));
    }

    #[test]
    fn a_slot_of_sixteen_lanes_of_the_fourth_generation_takes_a_200_gigabit_interface() {
        let nic = Nic { generation: 4, lanes: 16, count: 1 };
        assert!(nic.bytes_per_s() > 25e9 && nic.bytes_per_s() < 31.5e9);
        assert!(Nic { generation: 3, ..nic }.bytes_per_s() < 25e9);
    }
}
