//! Ceilings: the data rate of a link of some generation and number of lanes, after coding and packet headers.
//!
//! A PCIe packet that moves data has a header of four words (a memory write with a 64-bit address, which is what a drive's
//! read becomes), four bytes of LCRC and four of framing and sequence number: 24 bytes (PCI Express Base Specification
//! 3.0, sections 2.2.1, 3.6.1 and 4.2.2). In 64 GT/s flits, framing and checks are part of the flit and only the header
//! is left. Flow control takes another one or two percent that are not counted, so that a ceiling is never too low.
//! Packets of more than 256 bytes, which some servers agree on, carry more; drives that reach more show that they have them.
//! A SATA frame carries up to 8,192 bytes beside 16 of header, check and primitives (Serial ATA 3.x, data FIS).

use std::fmt;
use std::iter::Sum;

use base::Rate;
use serde::{Deserialize, Serialize};

use crate::analysis::Link;
use crate::rig::PcieMode;

/// Payload of a PCIe packet in bytes: what is always possible, and what most machines agree on.
const PAYLOADS: (f64, f64) = (128.0, 256.0);
/// Greater payloads that a PCIe packet can have, in bytes (PCI Express Base Specification 3.0, section 7.8.4).
const GREATER_PAYLOADS: [f64; 4] = [512.0, 1024.0, 2048.0, 4096.0];
/// Header, LCRC, framing and sequence number of a packet in bytes.
const PACKET_BYTES: f64 = 16.0 + 4.0 + 4.0;
/// The header alone.
const HEADER_BYTES: f64 = 16.0;
/// From here on packets travel in flits.
const FLITS_FROM: f64 = 64.0;
/// A SATA data frame's payload, and what goes with it, in bytes.
const SATA_FRAME: (f64, f64) = (8_192.0, 16.0);
/// SATA codes each byte as ten bits.
const SATA_CODING: f64 = 8.0 / 10.0;

/// What a link carries one way, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// After coding, packets and all.
    pub line: f64,
    /// Data alone, with the smallest and with the largest usual packets, or with larger ones where a drive reaches a higher rate. The
    /// second value is the limit that measured rates are compared with.
    pub payload: (f64, f64),
}

/// How a drive is joined to the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveLink {
    /// PCI Express.
    Pcie {
        /// As it came up.
        now: Option<Link>,
        /// What the drive could do.
        best: Option<Link>,
        /// What its slot could do.
        slot: Option<Link>,
    },
    /// Serial ATA.
    Sata {
        /// Speed in Gb/s on the wire: 1.5, 3 or 6.
        now_gbps: f64,
        /// The highest speed that the port allows.
        best_gbps: Option<f64>,
    },
    /// Nothing is known, or there is none: a file, a loop device.
    #[default]
    NotKnown,
}

impl Ceiling {
    /// Of a PCIe link.
    pub fn of_pcie(link: &Link) -> Self {
        let line = link.bytes_a_second();
        let beside = if link.gigatransfers >= FLITS_FROM { HEADER_BYTES } else { PACKET_BYTES };
        let carried = |payload: f64| line * payload / (payload + beside);
        Self { line, payload: (carried(PAYLOADS.0), carried(PAYLOADS.1)) }
    }

    /// The least payload of packets, in bytes, with which it carries this rate in bytes a second, from the greatest that is usual
    /// on; infinite if none does.
    pub(super) fn payload_for(&self, rate: f64) -> f64 {
        let enough = |payload: &f64| self.with_payload(*payload).payload.1 >= rate;
        if self.payload.1 >= rate {
            return PAYLOADS.1;
        }
        GREATER_PAYLOADS.into_iter().find(enough).unwrap_or(f64::INFINITY)
    }

    /// The same with packets of up to so many bytes; no less than is usual. With infinite ones all of it is data.
    pub(super) fn with_payload(self, bytes: f64) -> Self {
        if bytes <= PAYLOADS.1 {
            return self;
        }
        // What goes with a packet follows from what is lost to it.
        let beside = PAYLOADS.0 * (self.line / self.payload.0 - 1.0);
        let most = self.line / (1.0 + beside / bytes);
        Self { payload: (self.payload.0, most), ..self }
    }

    /// Of a SATA link of so many Gb/s on the wire.
    pub fn of_sata(gbps: f64) -> Self {
        let line = gbps * 1e9 / 8.0 * SATA_CODING;
        let payload = line * SATA_FRAME.0 / (SATA_FRAME.0 + SATA_FRAME.1);
        Self { line, payload: (payload, payload) }
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self.payload;
        if least == most {
            return write!(f, "{} of data at most", Rate(most));
        }
        write!(
            f,
            "{}; of that {} is data with packets of {} bytes and {} with {}",
            Rate(self.line),
            Rate(least),
            PAYLOADS.0,
            Rate(most),
            PAYLOADS.1
        )
    }
}

impl Sum for Ceiling {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self { line: 0.0, payload: (0.0, 0.0) }, |sum, one| Self {
            line: sum.line + one.line,
            payload: (sum.payload.0 + one.payload.0, sum.payload.1 + one.payload.1),
        })
    }
}

impl DriveLink {
    /// What it carries now, if that is known.
    pub fn ceiling(&self) -> Option<Ceiling> {
        match self {
            Self::Pcie { now, .. } => now.as_ref().map(Ceiling::of_pcie),
            Self::Sata { now_gbps, .. } => Some(Ceiling::of_sata(*now_gbps)),
            Self::NotKnown => None,
        }
    }

    /// Whether its slot can do no more than it does now.
    pub fn is_at_slots_best(&self) -> bool {
        match self {
            Self::Pcie { now: Some(now), slot: Some(slot), .. } => {
                slot.bytes_a_second() <= now.bytes_a_second()
            }
            _ => false,
        }
    }

    /// What it could carry, if that is known.
    pub fn best_ceiling(&self) -> Option<Ceiling> {
        match self {
            Self::Pcie { best, .. } => best.as_ref().map(Ceiling::of_pcie),
            Self::Sata { best_gbps, .. } => best_gbps.map(Ceiling::of_sata),
            Self::NotKnown => None,
        }
    }
}

impl fmt::Display for DriveLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pcie { now: Some(now), best: Some(best), .. } if now != best => {
                write!(f, "PCIe of {now} (could be {best})")
            }
            Self::Pcie { now: Some(now), .. } => write!(f, "PCIe of {now}"),
            Self::Sata { now_gbps, best_gbps: Some(best) } if best > now_gbps => {
                write!(f, "SATA of {now_gbps} Gb/s (could be {best} Gb/s)")
            }
            Self::Sata { now_gbps, .. } => write!(f, "SATA of {now_gbps} Gb/s"),
            Self::Pcie { now: None, .. } | Self::NotKnown => {
                f.write_str("a link that is not known")
            }
        }
    }
}

impl From<device::link::Link> for DriveLink {
    fn from(link: device::link::Link) -> Self {
        let pcie = |state: device::link::PcieLink| {
            PcieMode { generation: state.generation, lanes: state.lanes }.link()
        };
        match link {
            device::link::Link::Pcie { now, best, slot } => {
                Self::Pcie { now: pcie(now), best: pcie(best), slot: slot.and_then(pcie) }
            }
            device::link::Link::Sata { now_gbps, best_gbps } => Self::Sata { now_gbps, best_gbps },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_and_lanes_trade_exactly_and_packets_take_their_part() {
        let of = |gigatransfers, lanes| Ceiling::of_pcie(&Link { gigatransfers, lanes });
        assert_eq!(of(2.5, 1).line, 250e6);
        assert_eq!(of(2.5, 2), of(5.0, 1));
        assert_eq!(of(2.5, 4), of(5.0, 2));
        // 128 of 152 bytes, about the 200 MB/s that one lane of the first generation is known for.
        let (least, most) = of(2.5, 1).payload;
        assert!((least - 210.5e6).abs() < 0.1e6, "{least}");
        assert!((most - 228.6e6).abs() < 0.1e6, "{most}");
        assert!((of(8.0, 4).payload.1 / 3.6e9 - 1.0).abs() < 0.01);
    }

    #[test]
    fn sata_and_what_device_tells_become_ceilings() {
        let sata =
            DriveLink::from(device::link::Link::Sata { now_gbps: 3.0, best_gbps: Some(6.0) });
        assert_eq!(sata.ceiling().unwrap().line, 300e6);
        assert_eq!(sata.best_ceiling().unwrap().line, 600e6);
        assert_eq!(sata.to_string(), "SATA of 3 Gb/s (could be 6 Gb/s)");
        let state = |generation, lanes| device::link::PcieLink { generation, lanes };
        let (now, best) = (state(3, 2), state(4, 4));
        let told = |slot| DriveLink::from(device::link::Link::Pcie { now, best, slot });
        let pcie = told(None);
        assert!(!pcie.is_at_slots_best());
        assert!(told(Some(now)).is_at_slots_best());
        let (now, best) = (pcie.ceiling().unwrap(), pcie.best_ceiling().unwrap());
        assert!((best.line / now.line - 4.0).abs() < 1e-9);
        assert_eq!(DriveLink::NotKnown.ceiling(), None);
    }
}
