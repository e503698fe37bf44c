//! Members that can be held back and made to fail: partitions of loop devices on files.
//!
//! The kernel's block controller (control groups, version 1 or 2) slows a device down for the recorder alone; a
//! partition that is shortened refuses what lies behind its end, and has it again when it is as long as before.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::vm::programs::run;

/// Sectors as `addpart` counts them.
const SECTOR_BYTES: u64 = 512;
/// Where the partition begins, and what is left of it when it fails.
const START_SECTORS: u64 = 2048;

/// They, and the control group of whoever records on them. All of it is gone when it goes out of scope.
#[derive(Debug)]
pub struct Members {
    each: Vec<Member>,
    group: Group,
}

#[derive(Debug)]
struct Member {
    image: PathBuf,
    /// `/dev/loop3`.
    device: PathBuf,
    sectors: u64,
}

impl Members {
    /// So many, on files of that size in a folder.
    ///
    /// # Errors
    /// Without root, loop devices or the block controller.
    pub fn create(dir: &Path, count: usize, size_bytes: u64) -> Result<Self> {
        let group = Group::new()?;
        let mut members = Self { each: Vec::new(), group };
        for number in 0..count {
            let image = dir.join(format!("member{number}.raw"));
            detach(&image);
            File::create(&image)
                .and_then(|file| file.set_len(size_bytes))
                .with_context(|| format!("making {}", image.display()))?;
            let mut losetup = Command::new("losetup");
            losetup.args(["--find", "--show", "--partscan"]).arg(&image);
            let device = PathBuf::from(run(&mut losetup)?.trim());
            let sectors = size_bytes / SECTOR_BYTES - START_SECTORS;
            members.each.push(Member { image, device, sectors });
            let member = &members.each[number];
            let (start, sectors) = (START_SECTORS.to_string(), sectors.to_string());
            run(Command::new("addpart").arg(&member.device).args(["1", &start, &sectors]))?;
            ensure!(
                member.partition().exists(),
                "{} has not come: is /dev the kernel's own (devtmpfs)?",
                member.partition().display()
            );
        }
        Ok(members)
    }

    /// Number of members.
    pub fn count(&self) -> usize {
        self.each.len()
    }

    /// Their devices, as the program is told of them.
    pub fn targets(&self) -> Vec<String> {
        self.each.iter().map(|member| member.partition().display().to_string()).collect()
    }

    /// A program that is to be held back.
    pub fn command(&self, program: &Path) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        shell.arg(self.group.folder.join("cgroup.procs")).arg(program);
        shell
    }

    /// Limits what one takes a second; None for as much as it can.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn limit(&self, member: usize, bytes_per_s: Option<u64>) -> Result<()> {
        let device = &self.each[member].device;
        let name = device.file_name().context("a device has a name")?;
        let number = fs::read_to_string(Path::new("/sys/block").join(name).join("dev"))?;
        self.group.limit(number.trim(), bytes_per_s)
    }

    /// Makes writes to one fail.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn fail(&self, member: usize) -> Result<()> {
        self.each[member].resize(START_SECTORS)
    }

    /// Takes every accident back.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn heal(&self) -> Result<()> {
        for (number, member) in self.each.iter().enumerate() {
            self.limit(number, None)?;
            member.resize(member.sectors)?;
        }
        Ok(())
    }
}

impl Member {
    fn partition(&self) -> PathBuf {
        PathBuf::from(format!("{}p1", self.device.display()))
    }

    fn resize(&self, sectors: u64) -> Result<()> {
        let sectors = sectors.to_string();
        run(Command::new("resizepart").arg(&self.device).args(["1", &sectors])).map(drop)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for member in &self.each {
            // What can't be undone is left for whoever looks; the error that matters has been told.
            run(Command::new("delpart").arg(&member.device).arg("1")).ok();
            run(Command::new("losetup").arg("--detach").arg(&member.device)).ok();
            fs::remove_file(&member.image).ok();
        }
    }
}

/// Lets go of what a run that was interrupted has left attached.
fn detach(image: &Path) {
    let mut losetup = Command::new("losetup");
    losetup.args(["--noheadings", "--output", "NAME", "--associated"]).arg(image);
    for device in run(&mut losetup).unwrap_or_default().lines() {
        // One that is still in use stays, and is told of when the new one can't be made.
        run(Command::new("delpart").args([device.trim(), "1"])).ok();
        run(Command::new("losetup").args(["--detach", device.trim()])).ok();
    }
}

/// A control group with limits on block I/O.
#[derive(Debug)]
struct Group {
    folder: PathBuf,
    unified: bool,
}

impl Group {
    fn new() -> Result<Self> {
        let (old, new) = (Path::new("/sys/fs/cgroup/blkio"), Path::new("/sys/fs/cgroup"));
        let limits = "blkio.throttle.write_bps_device";
        let unified = !old.join(limits).exists();
        let name = format!("longtake-soak-{}", std::process::id());
        let folder = if unified { new.join(name) } else { old.join(name) };
        if unified {
            fs::write(new.join("cgroup.subtree_control"), "+io")
                .context("no block controller in control groups: mount one, of either version")?;
        }
        fs::create_dir(&folder).with_context(|| {
            format!("making the control group {} (this needs root)", folder.display())
        })?;
        Ok(Self { folder, unified })
    }

    fn limit(&self, device: &str, bytes_per_s: Option<u64>) -> Result<()> {
        let (file, line) = if self.unified {
            let limit = bytes_per_s.map_or("max".to_owned(), |limit| limit.to_string());
            ("io.max", format!("{device} wbps={limit}"))
        } else {
            // 0 lifts a limit here.
            ("blkio.throttle.write_bps_device", format!("{device} {}", bytes_per_s.unwrap_or(0)))
        };
        let path = self.folder.join(file);
        fs::write(&path, line).with_context(|| format!("setting a limit in {}", path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended, and the kernel may take a moment to see it.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
