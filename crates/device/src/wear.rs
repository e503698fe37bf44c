//! How much of its rated life an NVMe drive says it has used.
//!
//! Read with Get Log Page, SMART / Health Information (NVM Express Base Specification 2.0, figure
//! 207), through the controller's character device. Anything that prevents it is a reason in words,
//! never a guess.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use serde::Serialize;

use crate::sysfs::DeviceNumber;

/// A drive's wear, or why it isn't known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wear {
    /// What the drive reports of itself.
    Known(Health),
    /// Not known.
    Unknown {
        /// Why.
        reason: String,
    },
}

impl Wear {
    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown { reason: reason.into() }
    }

    /// Percent of the rated life used; it may pass 100.
    pub fn percent_used(&self) -> Option<u8> {
        match self {
            Self::Known(health) => Some(health.percent_used),
            Self::Unknown { .. } => None,
        }
    }
}

/// The fields of the SMART log that say how worn a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Percentage Used: the vendor's estimate of life used; 255 stands for 255 and more.
    pub percent_used: u8,
    /// Available Spare, in percent of what there was when new.
    pub spare_percent: u8,
    /// Bytes written by the host over the drive's life (Data Units Written x 512,000).
    pub written_bytes: u64,
    /// Composite Temperature in degrees Celsius; None if the drive doesn't say.
    pub temperature_celsius: Option<i32>,
    /// Critical Warning bits; 0 is good.
    pub critical_warning: u8,
}

const LOG_BYTES: usize = 512;
const GET_LOG_PAGE: u8 = 0x02;
const SMART_LOG: u32 = 0x02;
/// The log of the controller as a whole, not of one namespace.
const NAMESPACE_ALL: u32 = u32::MAX;
/// A drive that takes longer than this to answer is reported as not answering.
const TIMEOUT_MS: u32 = 2_000;
const KELVIN_AT_ZERO_CELSIUS: i32 = 273;

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}
const _: () = assert!(size_of::<AdminCommand>() == 72);

/// `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const NVME_IOCTL_ADMIN_CMD: libc::c_ulong =
    (3 << 30) | ((size_of::<AdminCommand>() as libc::c_ulong) << 16) | (0x4E << 8) | 0x41;

/// Asks the controller whose character device is `node` and whose number sysfs gives as `expected`.
pub(crate) fn read(node: &Path, expected: Option<DeviceNumber>) -> Wear {
    match smart_log(node, expected) {
        Ok(log) => Wear::Known(parse(&log)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Wear::unknown(format!("opening {} needs root", node.display()))
        }
        Err(error) => Wear::unknown(format!("asking {} failed: {error}", node.display())),
    }
}

fn smart_log(node: &Path, expected: Option<DeviceNumber>) -> io::Result<[u8; LOG_BYTES]> {
    // Nothing else can be asked by mistake: the node must be the very device that sysfs names.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(node)?;
    let metadata = file.metadata()?;
    let number = DeviceNumber::from_raw(metadata.rdev());
    if !metadata.file_type().is_char_device() || expected.is_some_and(|e| e != number) {
        return Err(io::Error::other("it is not the controller that sysfs names"));
    }
    let mut log = [0u8; LOG_BYTES];
    let dwords = (LOG_BYTES / 4 - 1) as u32;
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        nsid: NAMESPACE_ALL,
        addr: log.as_mut_ptr() as u64,
        data_len: LOG_BYTES as u32,
        cdw10: (dwords << 16) | SMART_LOG,
        timeout_ms: TIMEOUT_MS,
        ..AdminCommand::default()
    };
    // SAFETY: the request's number says that `command` is of the 72 bytes it is (asserted above), and
    // the kernel writes at most `data_len` bytes to `addr`, which is `log`, alive until after the call.
    let status =
        unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &raw mut command) };
    match status {
        0 => Ok(log),
        -1 => Err(io::Error::last_os_error()),
        status => Err(io::Error::other(format!("NVMe status {status:#x}"))),
    }
}

fn parse(log: &[u8; LOG_BYTES]) -> Health {
    let kelvin = i32::from(u16::from_le_bytes([log[1], log[2]]));
    let mut units = [0u8; 16];
    units.copy_from_slice(&log[48..64]);
    let written = u128::from_le_bytes(units).saturating_mul(512_000);
    Health {
        critical_warning: log[0],
        temperature_celsius: (kelvin != 0).then_some(kelvin - KELVIN_AT_ZERO_CELSIUS),
        spare_percent: log[3],
        percent_used: log[5],
        written_bytes: u64::try_from(written).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smart_log_is_read_where_the_specification_puts_its_fields() {
        let mut log = [0u8; LOG_BYTES];
        log[0] = 0b100;
        log[1..3].copy_from_slice(&310u16.to_le_bytes());
        log[3] = 97;
        log[5] = 12;
        log[32..48].copy_from_slice(&u128::MAX.to_le_bytes());
        log[48..64].copy_from_slice(&2_000_000u128.to_le_bytes());
        let expected = Health {
            percent_used: 12,
            spare_percent: 97,
            written_bytes: 1_024_000_000_000,
            temperature_celsius: Some(37),
            critical_warning: 4,
        };
        assert_eq!(parse(&log), expected);
    }

    #[test]
    fn the_request_number_is_the_one_of_the_kernel_header() {
        assert_eq!(NVME_IOCTL_ADMIN_CMD, 0xC048_4E41);
    }

    #[test]
    fn a_node_that_is_no_controller_is_never_asked() {
        let wear = read(Path::new("/dev/null"), Some(DeviceNumber { major: 240, minor: 0 }));
        assert!(
            matches!(&wear, Wear::Unknown { reason } if reason.contains("not the controller")),
            "{wear:?}"
        );
        assert_eq!(wear.percent_used(), None);
    }
}
