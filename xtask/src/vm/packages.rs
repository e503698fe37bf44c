//! The Debian packages that a machine needs on the host: the emulator, and what goes into the guest.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::programs::run;

/// A package and the file that shows that it is there.
const PACKAGES: [(&str, &str); 5] = [
    ("qemu-system-x86", "/usr/bin/qemu-system-x86_64"),
    ("busybox-static", "/bin/busybox"),
    ("nvme-cli", "/usr/sbin/nvme"),
    ("kmod", "/sbin/depmod"),
    ("xz-utils", "/usr/bin/xz"),
];

/// Installs what is missing.
///
/// # Errors
/// If `apt-get` fails: without root, without network, or on another system than Debian.
pub fn ensure() -> Result<()> {
    let missing: Vec<_> =
        PACKAGES.iter().filter(|(_, file)| !Path::new(file).exists()).map(|(p, _)| *p).collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("installing {}", missing.join(", "));
    update()?;
    let mut install = apt_get();
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(missing);
    run(&mut install).map(drop)
}

/// Brings the lists of packages up to date: a fresh machine has none, an old one's name packages that
/// the mirror no longer has.
///
/// # Errors
/// As [`ensure`].
pub fn update() -> Result<()> {
    run(apt_get().args(["update", "-qq"])).map(drop)
}

/// `apt-get` that asks nothing, waits for another one to finish, and downloads into folders of root's.
pub fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command.args(["-o", "DPkg::Lock::Timeout=300", "-o", "APT::Sandbox::User=root"]);
    command
}
