//! Loop devices on files of a round, mounts and swap on them, all undone in the end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::vm::programs::run;

/// A loop device, detached in the end.
#[derive(Debug)]
pub struct Loop {
    /// `/dev/loop3`.
    pub device: PathBuf,
    /// What lies behind it.
    pub image: PathBuf,
}

impl Loop {
    /// On a new file of so many bytes.
    ///
    /// # Errors
    /// Without root or loop devices.
    pub fn new(image: &Path, bytes: u64) -> Result<Self> {
        File::create(image)
            .and_then(|file| file.set_len(bytes))
            .with_context(|| format!("making {}", image.display()))?;
        Self::on(image, &[])
    }

    /// On a file or device that is there.
    ///
    /// # Errors
    /// As [`Loop::new`].
    pub fn on(image: &Path, options: &[&str]) -> Result<Self> {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).args(options).arg(image);
        let device = PathBuf::from(run(&mut losetup)?.trim());
        Ok(Self { device, image: image.to_owned() })
    }

    /// With a partition table of this kind (`dos`, `gpt`) that has two partitions, which the kernel knows of.
    ///
    /// # Errors
    /// As [`Loop::new`].
    pub fn partitioned(image: &Path, bytes: u64, label: &str) -> Result<Self> {
        File::create(image)?.set_len(bytes)?;
        let table = format!("label: {label}\n,{}MiB\n,\n", bytes >> 21);
        let script = image.with_extension("sfdisk");
        fs::write(&script, table)?;
        let mut sfdisk = Command::new("sh");
        sfdisk.args(["-c", "sfdisk --quiet \"$0\" < \"$1\""]).arg(image).arg(&script);
        run(&mut sfdisk)?;
        fs::remove_file(script)?;
        let device = Self::on(image, &[])?;
        run(Command::new("partx").arg("--add").arg(&device.device))?;
        ensure!(device.partition(1).exists(), "{} has not come", device.partition(1).display());
        Ok(device)
    }

    /// `/dev/loop3p1`
    pub fn partition(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("{}p{number}", self.device.display()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // What can't be undone is left for whoever looks; the error that matters has been told.
        run(Command::new("partx").arg("--delete").arg(&self.device)).ok();
        run(Command::new("losetup").arg("--detach").arg(&self.device)).ok();
    }
}

/// Makes a file system on a device or file, all of it now: the kernel would go on with it later.
///
/// # Errors
/// If mkfs fails.
pub fn ext4(device: &Path) -> Result<()> {
    let now = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
    run(Command::new("mkfs.ext4").args(["-q", "-F", "-E", now]).arg(device)).map(drop)
}

/// Something mounted, unmounted in the end.
#[derive(Debug)]
pub struct Mount {
    /// The mount point.
    pub point: PathBuf,
}

impl Mount {
    /// Mounts a device, or binds a folder.
    ///
    /// # Errors
    /// If mount fails.
    pub fn new(options: &[&str], from: &Path, point: &Path) -> Result<Self> {
        fs::create_dir_all(point)?;
        run(Command::new("mount").args(options).arg(from).arg(point))?;
        Ok(Self { point: point.to_owned() })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run(Command::new("umount").arg(&self.point)).ok();
        fs::remove_dir(&self.point).ok();
    }
}

/// A device that is swapped on, until the end.
#[derive(Debug)]
pub struct Swap(PathBuf);

impl Swap {
    /// Makes a swap area and uses it; None if the kernel can't swap.
    ///
    /// # Errors
    /// If mkswap fails.
    pub fn on(device: &Path) -> Result<Option<Self>> {
        run(Command::new("mkswap").arg(device))?;
        let used = run(Command::new("swapon").args(["--priority", "0"]).arg(device));
        Ok(used.is_ok().then(|| Self(device.to_owned())))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        run(Command::new("swapoff").arg(&self.0)).ok();
    }
}

/// Writes what is cached of a device and the file behind it to where it belongs.
///
/// # Errors
/// If the system can't.
pub fn sync(device: &Path, image: &Path) -> Result<()> {
    for path in [device, image] {
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        file.sync_all().with_context(|| format!("syncing {}", path.display()))?;
    }
    Ok(())
}

/// A checksum of a file's or device's bytes.
///
/// # Errors
/// If it can't be read.
pub fn checksum(path: &Path) -> Result<String> {
    let sum = run(Command::new("sha256sum").arg(path))?;
    Ok(sum.split_whitespace().next().unwrap_or_default().to_owned())
}
