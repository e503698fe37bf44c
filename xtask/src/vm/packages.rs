//! The Debian packages that a machine needs on the host: the emulator, and what goes into the guest.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use super::programs::run;

/// A package and the file that shows that it is there.
const PACKAGES: [(&str, &str); 8] = [
    ("qemu-system-x86", "/usr/bin/qemu-system-x86_64"),
    ("busybox-static", "/bin/busybox"),
    ("nvme-cli", "/usr/sbin/nvme"),
    ("kmod", "/sbin/depmod"),
    ("xz-utils", "/usr/bin/xz"),
    ("e2fsprogs", "/usr/sbin/mkfs.ext4"),
    ("fdisk", "/usr/sbin/sfdisk"),
    ("dmsetup", "/usr/sbin/dmsetup"),
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
    let mut install = apt_get();
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(missing);
    with_lists(|| run(&mut install).map(drop))
}

/// Does something with the lists of packages up to date: a fresh machine has none, an old one's name packages that
/// the mirror no longer has. A mirror in the middle of its own update fails it, so it is tried again.
///
/// # Errors
/// As [`ensure`], and what the attempt fails with.
pub fn with_lists<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    for wait_s in [5, 10, 20] {
        match update().and_then(|()| attempt()) {
            Ok(done) => return Ok(done),
            Err(error) => eprintln!("{error:#}\ntrying again in {wait_s} s"),
        }
        sleep(Duration::from_secs(wait_s));
    }
    update().and_then(|()| attempt())
}

fn update() -> Result<()> {
    run(apt_get().args(["update", "-qq", "-o", "APT::Update::Error-Mode=any"])).map(drop)
}

/// `apt-get` that asks nothing, waits for another one to finish, and downloads into folders of root's.
pub fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command.args(["-o", "DPkg::Lock::Timeout=300", "-o", "APT::Sandbox::User=root"]);
    command
}
