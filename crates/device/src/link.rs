//! How a drive is joined to the host: PCIe generation and lanes, or SATA speed, now and at best.
//!
//! A drive that trained at fewer lanes or a lower generation than it can is the commonest reason for
//! a rate that no datasheet explains, so both are always told together.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::sysfs::{attribute, is_digits, names_in};

/// A drive's link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// PCI Express, of the drive's own function (an uplink above it may be narrower).
    Pcie {
        /// What was agreed on when the link came up.
        now: PcieLink,
        /// What the drive could do.
        best: PcieLink,
    },
    /// Serial ATA.
    Sata {
        /// Speed now, in Gb/s on the wire (1.5, 3 or 6).
        now_gbps: f64,
        /// The highest speed that the port allows, in Gb/s; None if it sets no limit.
        best_gbps: Option<f64>,
    },
}

/// One state of a PCIe link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PcieLink {
    /// Generation: 1 for 2.5 GT/s up to 6 for 64 GT/s.
    pub generation: u8,
    /// Number of lanes.
    pub lanes: u8,
}

impl fmt::Display for PcieLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PCIe {}.0 x{}", self.generation, self.lanes)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Pcie { now, best } if now == best => write!(f, "{now}"),
            Self::Pcie { now, best } => write!(f, "{now} (can do {best})"),
            Self::Sata { now_gbps, best_gbps: Some(best) } if best > now_gbps => {
                write!(f, "SATA {now_gbps} Gb/s (can do {best} Gb/s)")
            }
            Self::Sata { now_gbps, .. } => write!(f, "SATA {now_gbps} Gb/s"),
        }
    }
}

/// The link of a PCI function's folder in sysfs.
pub(crate) fn pcie(function: &Path) -> Option<Link> {
    let state = |speed: &str, width: &str| {
        Some(PcieLink {
            generation: generation(&attribute(function, speed)?)?,
            // 0 and 255 mean that the link is down or doesn't tell.
            lanes: attribute(function, width)?.parse().ok().filter(|n| (1..=32).contains(n))?,
        })
    };
    let now = state("current_link_speed", "current_link_width")?;
    let best = state("max_link_speed", "max_link_width").unwrap_or(now);
    Some(Link::Pcie { now, best })
}

/// The generation of `16.0 GT/s PCIe`. Rates: PCI Express Base Specification 6.0, section 1.2.
fn generation(speed: &str) -> Option<u8> {
    match speed.split_whitespace().next()? {
        "2.5" => Some(1),
        "5" | "5.0" => Some(2),
        "8" | "8.0" => Some(3),
        "16" | "16.0" => Some(4),
        "32" | "32.0" => Some(5),
        "64" | "64.0" => Some(6),
        _ => None,
    }
}

/// The SATA link above a drive's folder: the `ataN` it hangs on has `linkN/ata_link/linkN/sata_spd`
/// (kernel: `Documentation/ABI/testing/sysfs-ata`).
pub(crate) fn sata(drive: &Path) -> Option<Link> {
    let port = drive.ancestors().find(|folder| is_ata_port(folder))?;
    for link in names_in(port).ok()?.into_iter().filter(|name| name.starts_with("link")) {
        let link = port.join(&link).join("ata_link").join(&link);
        if let Some(now_gbps) = gbps(&link, "sata_spd") {
            return Some(Link::Sata { now_gbps, best_gbps: gbps(&link, "hw_sata_spd_limit") });
        }
    }
    None
}

/// Whether a drive's folder in sysfs lies under an ATA port.
pub(crate) fn is_ata(drive: &Path) -> bool {
    drive.ancestors().any(is_ata_port)
}

fn is_ata_port(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix("ata")).is_some_and(is_digits)
        && fs::symlink_metadata(folder).is_ok()
}

/// The number in `6.0 Gbps`; `<unknown>` has none.
fn gbps(link: &Path, name: &str) -> Option<f64> {
    attribute(link, name)?.strip_suffix("Gbps")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_below_its_best_says_both() {
        let best = PcieLink { generation: 4, lanes: 4 };
        let now = PcieLink { generation: 3, lanes: 2 };
        assert_eq!(Link::Pcie { now, best }.to_string(), "PCIe 3.0 x2 (can do PCIe 4.0 x4)");
        assert_eq!(Link::Pcie { now: best, best }.to_string(), "PCIe 4.0 x4");
        let sata = Link::Sata { now_gbps: 3.0, best_gbps: Some(6.0) };
        assert_eq!(sata.to_string(), "SATA 3 Gb/s (can do 6 Gb/s)");
    }

    #[test]
    fn every_pcie_generation_is_known_by_its_rate() {
        let rates = ["2.5 GT/s PCIe", "5.0 GT/s", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s"];
        for (n, rate) in (1..).zip(rates) {
            assert_eq!(generation(rate), Some(n), "{rate}");
        }
        assert_eq!(generation("Unknown"), None);
    }
}
