//! The emulated drives: what each one is, and the options that make QEMU emulate it.
//!
//! Every drive sits in a PCIe slot of its own, so that it has a link and can be unplugged. What an older
//! QEMU can't emulate (flexible data placement) is left out there; [`Drive::fdp`] is what came of it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::programs::run;

/// The emulator.
pub const QEMU: &str = "qemu-system-x86_64";

/// One drive: a controller with its namespaces.
#[derive(Clone, Debug)]
pub struct Drive {
    /// Serial number, up to 20 characters.
    pub serial: &'static str,
    /// Whether the controller is in a subsystem with a name of its own.
    pub subsystem: bool,
    /// Whether it places data by reclaim unit (FDP), where QEMU has that.
    pub fdp: bool,
    /// The slot's highest speed as QEMU writes it (`16` for 16 GT/s) and its lanes.
    pub slot: (&'static str, u8),
    /// Further properties of the `nvme` device, `mdts=5`.
    pub properties: &'static str,
    /// Its namespaces, from number 1.
    pub namespaces: Vec<Namespace>,
}

/// One namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    /// Size in bytes; the file behind it is sparse.
    pub size_bytes: u64,
    /// Logical block size in bytes.
    pub block_bytes: u32,
    /// Further properties of the `nvme-ns` device.
    pub properties: &'static str,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Six drives, no two alike: two of two namespaces, one with FDP, and both block sizes.
pub fn six() -> Vec<Drive> {
    let namespace = |size_bytes, block_bytes| Namespace { size_bytes, block_bytes, properties: "" };
    let drive = |serial, slot, properties, namespaces| Drive {
        serial,
        subsystem: true,
        fdp: false,
        slot,
        properties,
        namespaces,
    };
    vec![
        drive("LT-TWIN-0001", ("16", 4), "mdts=7", vec![namespace(GIB, 512), namespace(GIB, 4096)]),
        drive(
            "LT-TWIN-0002",
            ("8", 4),
            "mdts=5",
            vec![namespace(2 * GIB, 4096), namespace(512 * MIB, 512)],
        ),
        Drive {
            fdp: true,
            ..drive("LT-PLACED-0003", ("16", 8), "", vec![namespace(GIB + 8 * MIB, 4096)])
        },
        Drive {
            subsystem: false,
            ..drive("LT-ALONE-0004", ("5", 1), "mdts=0", vec![namespace(3 * GIB, 4096)])
        },
        drive(
            "LT-WARNING-0005",
            ("16", 4),
            "smart_critical_warning=4",
            vec![namespace(768 * MIB, 512)],
        ),
        drive(
            "LT-NAMED-0006",
            ("2_5", 1),
            "use-intel-id=on",
            vec![Namespace {
                properties: "eui64=0x5254000000000601,uuid=6c0f7a3e-0d4e-4f5c-9b38-5a1f0c5d0006",
                ..namespace(640 * MIB, 512)
            }],
        ),
    ]
}

/// The same six with namespaces of that size each: short laps, and media that are soon read through.
pub fn six_of(size_bytes: u64) -> Vec<Drive> {
    let mut drives = six();
    for namespace in drives.iter_mut().flat_map(|drive| &mut drive.namespaces) {
        namespace.size_bytes = size_bytes;
    }
    drives
}

/// What holds the contents of drives.
#[derive(Clone, Debug)]
pub enum Backing {
    /// A new and empty file for each namespace, in the scenario's folder ([`file`]).
    Files,
    /// Files that are there, from an earlier machine in the same folder.
    KeptFiles,
    /// Sockets at which media are served, for each namespace in turn.
    Served(Vec<PathBuf>),
}

/// The file behind a namespace: drives count from 0, namespaces from 1.
pub fn file(dir: &Path, drive: usize, namespace: usize) -> PathBuf {
    dir.join(format!("ns{drive}-{namespace}.raw"))
}

/// QEMU's options for `drives`.
///
/// Names for the control socket: slot `portN`, controller `nvmeN`, namespace `nsN-M`, its medium `fileN-M`, with `N` from 0
/// and `M` from 1.
///
/// # Errors
/// If a file can't be made, or QEMU can't be asked what it can emulate.
pub fn options(drives: &[Drive], backing: &Backing, dir: &Path) -> Result<Vec<String>> {
    let placement = has_placement()?;
    let mut options = Vec::new();
    let mut device = |text: String| options.extend(["-device".to_owned(), text]);
    let mut media = Vec::new();
    for (n, drive) in drives.iter().enumerate() {
        let fdp = drive.fdp && placement;
        let (speed, lanes) = drive.slot;
        device(format!(
            "pcie-root-port,id=port{n},chassis={},x-speed={speed},x-width={lanes}",
            n + 1
        ));
        let mut controller = format!("nvme,id=nvme{n},bus=port{n},serial={}", drive.serial);
        if drive.subsystem {
            let placed = if fdp { ",fdp=on,fdp.runs=8M,fdp.nrg=1,fdp.nruh=4" } else { "" };
            device(format!("nvme-subsys,id=subsys{n},nqn={}{placed}", drive.serial));
            controller += &format!(",subsys=subsys{n}");
        }
        if !drive.properties.is_empty() {
            controller += &format!(",{}", drive.properties);
        }
        device(controller);
        for (m, namespace) in (1..).zip(&drive.namespaces) {
            let id = format!("ns{n}-{m}");
            let path = file(dir, n, m);
            if matches!(backing, Backing::Files) {
                File::create(&path)
                    .and_then(|file| file.set_len(namespace.size_bytes))
                    .with_context(|| format!("making {}", path.display()))?;
            }
            let medium = match backing {
                Backing::Files | Backing::KeptFiles => format!("file={}", path.display()),
                Backing::Served(sockets) => {
                    let socket = sockets.get(media.len()).context("a medium for each namespace")?;
                    let path = socket.display();
                    format!("file.driver=nbd,file.server.type=unix,file.server.path={path}")
                }
            };
            let mut text = format!(
                "nvme-ns,id={id},bus=nvme{n},drive=file{n}-{m},nsid={m},\
                 logical_block_size={block},physical_block_size={block}",
                block = namespace.block_bytes
            );
            if fdp {
                text += ",fdp.ruhs=0-3";
            }
            if !namespace.properties.is_empty() {
                text += &format!(",{}", namespace.properties);
            }
            device(text);
            media.push(format!(
                "{medium},if=none,id=file{n}-{m},format=raw,discard=unmap,detect-zeroes=off"
            ));
        }
    }
    options.extend(media.into_iter().flat_map(|text| ["-drive".to_owned(), text]));
    Ok(options)
}

/// Whether this QEMU emulates flexible data placement, and endurance groups with it (8.1 and later).
///
/// # Errors
/// If QEMU can't be asked.
pub fn has_placement() -> Result<bool> {
    let help = run(Command::new(QEMU).args(["-device", "nvme-subsys,help"]))?;
    Ok(help.lines().any(|line| line.trim_start().starts_with("fdp=")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_six_drives_differ_in_serial_and_have_two_pairs_of_namespaces() {
        let drives = six();
        let serials: std::collections::BTreeSet<_> = drives.iter().map(|d| d.serial).collect();
        assert_eq!(serials.len(), 6);
        assert!(serials.iter().all(|serial| serial.len() <= 20));
        assert_eq!(drives.iter().filter(|d| d.namespaces.len() == 2).count(), 2);
        for namespace in drives.iter().flat_map(|d| &d.namespaces) {
            assert_eq!(namespace.size_bytes % u64::from(namespace.block_bytes), 0);
        }
    }
}
