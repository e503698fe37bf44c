//! How a drive is joined to the host: PCIe generation and lanes, or SATA speed, now and at best.
//!
//! A drive that trained at fewer lanes or a lower generation than it can is the commonest reason for
//! a rate that no datasheet explains, so both are always told together, and whether the slot could do
//! more ([`LinkVerdict`]).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::sysfs::{attribute, is_digits, names_in};

/// A drive's link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// PCI Express, of the drive's own function (an uplink above its slot may be narrower).
    Pcie {
        /// What was agreed on when the link came up.
        now: PcieLink,
        /// What the drive could do.
        best: PcieLink,
        /// What the port above it could do; None where it doesn't tell.
        slot: Option<PcieLink>,
    },
    /// Serial ATA.
    Sata {
        /// Speed now, in Gb/s on the wire (1.5, 3 or 6).
        now_gbps: f64,
        /// The highest speed that the port allows, in Gb/s; None if it sets no limit.
        best_gbps: Option<f64>,
    },
}

/// Whether a link is what it could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkVerdict {
    /// The drive's best.
    Full,
    /// The best of the slot, which can do less than the drive: another slot would be faster.
    LimitedBySlot,
    /// Less than drive and slot both can do: reseat the drive, or look at cable, riser and firmware.
    /// (Some drives also lower their link while they rest: look again under load.)
    Degraded,
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
            Self::Pcie { now, best, slot } => match (self.verdict(), slot) {
                (LinkVerdict::Full, _) => write!(f, "{now}"),
                (LinkVerdict::LimitedBySlot, _) => {
                    write!(f, "{now} (drive can do {best}, slot can't)")
                }
                (LinkVerdict::Degraded, Some(slot)) if slot.reaches(best) => {
                    write!(f, "{now} (can do {best})")
                }
                (LinkVerdict::Degraded, Some(slot)) => {
                    write!(f, "{now} (slot can do {slot}, drive {best})")
                }
                (LinkVerdict::Degraded, None) => write!(f, "{now} (can do {best})"),
            },
            Self::Sata { now_gbps, best_gbps: Some(best) } if best > now_gbps => {
                write!(f, "SATA {now_gbps} Gb/s (can do {best} Gb/s)")
            }
            Self::Sata { now_gbps, .. } => write!(f, "SATA {now_gbps} Gb/s"),
        }
    }
}

impl PcieLink {
    /// Whether it is as good as `other` in both generation and lanes.
    fn reaches(self, other: Self) -> bool {
        self.generation >= other.generation && self.lanes >= other.lanes
    }

    /// What two ends have in common.
    fn common(self, other: Self) -> Self {
        Self {
            generation: self.generation.min(other.generation),
            lanes: self.lanes.min(other.lanes),
        }
    }
}

impl Link {
    /// Whether it is what it could be.
    pub fn verdict(&self) -> LinkVerdict {
        match *self {
            Self::Pcie { now, best, slot } => {
                let possible = slot.map_or(best, |slot| best.common(slot));
                if !now.reaches(possible) {
                    LinkVerdict::Degraded
                } else if possible.reaches(best) {
                    LinkVerdict::Full
                } else {
                    LinkVerdict::LimitedBySlot
                }
            }
            Self::Sata { now_gbps, best_gbps: Some(best) } if best > now_gbps => {
                LinkVerdict::Degraded
            }
            Self::Sata { .. } => LinkVerdict::Full,
        }
    }
}

/// Where a drive's link is to be read, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A PCI function's folder in sysfs.
    Pcie(PathBuf),
    /// A SATA drive's folder in sysfs.
    Sata(PathBuf),
}

impl Place {
    /// The link now; None if the drive has none, or is gone.
    pub fn read(&self) -> Option<Link> {
        match self {
            Self::Pcie(function) => pcie(function),
            Self::Sata(drive) => sata(drive),
        }
    }
}

/// The link of a PCI function's folder in sysfs.
fn pcie(function: &Path) -> Option<Link> {
    // Canonical, so that the folder above it is the port that it hangs on.
    let function = fs::canonicalize(function).ok()?;
    let now = state(&function, "current_link")?;
    let best = state(&function, "max_link").unwrap_or(now);
    // Directly below a root complex there is no port, and nothing to read.
    let slot = function.parent().and_then(|port| state(port, "max_link"));
    Some(Link::Pcie { now, best, slot })
}

/// `current_link_speed` and `current_link_width`, or the same with `max_link`.
fn state(function: &Path, which: &str) -> Option<PcieLink> {
    let lanes = attribute(function, &format!("{which}_width"))?;
    Some(PcieLink {
        generation: generation(&attribute(function, &format!("{which}_speed"))?)?,
        // 0 and 255 mean that the link is down or doesn't tell.
        lanes: lanes.parse().ok().filter(|n| (1..=32).contains(n))?,
    })
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
fn sata(drive: &Path) -> Option<Link> {
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
    fn a_link_below_its_best_says_both_and_whose_fault_it_is() {
        let link = |generation, lanes| PcieLink { generation, lanes };
        for (now, best, slot, verdict, printed) in [
            (link(4, 4), link(4, 4), None, LinkVerdict::Full, "PCIe 4.0 x4"),
            (link(4, 4), link(4, 4), Some(link(5, 16)), LinkVerdict::Full, "PCIe 4.0 x4"),
            (
                link(3, 2),
                link(4, 4),
                None,
                LinkVerdict::Degraded,
                "PCIe 3.0 x2 (can do PCIe 4.0 x4)",
            ),
            (
                link(4, 2),
                link(4, 4),
                Some(link(4, 4)),
                LinkVerdict::Degraded,
                "PCIe 4.0 x2 (can do PCIe 4.0 x4)",
            ),
            (
                link(3, 4),
                link(5, 4),
                Some(link(3, 4)),
                LinkVerdict::LimitedBySlot,
                "PCIe 3.0 x4 (drive can do PCIe 5.0 x4, slot can't)",
            ),
            (
                link(3, 1),
                link(5, 4),
                Some(link(3, 4)),
                LinkVerdict::Degraded,
                "PCIe 3.0 x1 (slot can do PCIe 3.0 x4, drive PCIe 5.0 x4)",
            ),
        ] {
            let link = Link::Pcie { now, best, slot };
            assert_eq!((link.verdict(), link.to_string().as_str()), (verdict, printed));
        }
        let sata = Link::Sata { now_gbps: 3.0, best_gbps: Some(6.0) };
        assert_eq!(sata.to_string(), "SATA 3 Gb/s (can do 6 Gb/s)");
        assert_eq!(sata.verdict(), LinkVerdict::Degraded);
        let sata = Link::Sata { now_gbps: 6.0, best_gbps: None };
        assert_eq!(sata.verdict(), LinkVerdict::Full);
    }

    #[test]
    fn the_port_above_a_function_is_its_slot() {
        let root = tempfile::tempdir().unwrap();
        let port = root.path().join("0000:00:01.0");
        let function = port.join("0000:01:00.0");
        fs::create_dir_all(&function).unwrap();
        for (folder, which, speed, width) in [
            (&port, "max", "8.0 GT/s PCIe", "4"),
            (&function, "max", "16.0 GT/s PCIe", "4"),
            (&function, "current", "8.0 GT/s PCIe", "4"),
        ] {
            fs::write(folder.join(format!("{which}_link_speed")), speed).unwrap();
            fs::write(folder.join(format!("{which}_link_width")), width).unwrap();
        }
        let link = Place::Pcie(function).read().unwrap();
        let slot = Some(PcieLink { generation: 3, lanes: 4 });
        assert!(matches!(link, Link::Pcie { slot: found, .. } if found == slot), "{link:?}");
        assert_eq!(link.verdict(), LinkVerdict::LimitedBySlot);
        assert_eq!(Place::Pcie(port.join("gone")).read(), None);
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
