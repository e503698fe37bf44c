//! Which block devices share bytes with a target, so that writing the one destroys the other.
//!
//! These are the drive that it is or lies on, that drive's partitions as far as they overlap it, other
//! paths to the same namespace or disk, and, for a loop device, the same of what lies behind it.

use std::collections::HashSet;

use crate::loops::{self, Backing};
use crate::sysfs::{BlockDevice, System};

/// A device that shares bytes with the target.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The device.
    pub device: BlockDevice,
    /// Whether it is the drive around a partition: it holds bytes that are not the target's too.
    pub around: bool,
}

/// All devices that share bytes with the target, the target first, each once.
pub(crate) fn devices(system: &System, target: &BlockDevice) -> Vec<Shared> {
    let disks = system.disks().unwrap_or_default();
    let mut all = Vec::new();
    let mut seen = HashSet::new();
    let mut next = Some(target.clone());
    // Loop devices may stand on loop devices; `seen` ends the walk.
    while let Some(device) = next.take() {
        let range = device.whole().map(|_| device.extent());
        let drive = device.whole().unwrap_or_else(|| device.clone());
        let others = disks.iter().filter(|other| same_medium(&drive, other)).cloned();
        let paths: Vec<_> = std::iter::once(drive.clone()).chain(others).collect();
        let partitions = paths.iter().flat_map(BlockDevice::partitions).filter(|partition| {
            let other = partition.extent();
            range.as_ref().is_none_or(|own| own.start < other.end && other.start < own.end)
        });
        let whole = |device| Shared { device, around: false };
        let around = |device| Shared { device, around: range.is_some() };
        let found = std::iter::once(whole(device))
            .chain(paths.iter().cloned().map(around))
            .chain(partitions.map(whole));
        all.extend(found.filter(|shared| seen.insert(shared.device.number)));

        let backing = loops::describe(system, drive).and_then(|found| found.backing);
        if let Some(Backing::Block(number)) = backing {
            next = system.block_by_number(number).filter(|device| !seen.contains(&device.number));
        }
    }
    all
}

/// Whether two whole drives are one medium seen twice: the same world-wide name, serial and size.
/// (All three, because some makers gave one name to a whole batch.)
fn same_medium(one: &BlockDevice, other: &BlockDevice) -> bool {
    let name = |device: &BlockDevice| device.attribute("wwid").or(device.attribute("device/wwid"));
    let serial = |device: &BlockDevice| {
        device.attribute("device/serial").or(device.attribute("device/vpd_pg80"))
    };
    one.number != other.number
        && name(one).is_some()
        && name(one) == name(other)
        && serial(one) == serial(other)
        && one.size_bytes() == other.size_bytes()
}
