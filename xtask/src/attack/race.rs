//! The attack `mkfs-race`: `array create --erase` and `mkfs.ext4`, then `mount`, for the same device at the same time.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::loops::{Loop, Mount, checksum, sync};
use super::stage::Stage;
use crate::vm::programs::run;

/// Two who make something on one device.
#[derive(Debug)]
pub struct Race;

const SIZE_BYTES: u64 = 16 << 20;
/// Neither program takes that long by itself.
const APART: Duration = Duration::from_millis(120);
const END_WITHIN: Duration = Duration::from_secs(60);

impl super::Attack for Race {
    fn name(&self) -> &'static str {
        "mkfs-race"
    }

    fn about(&self) -> &'static str {
        "mkfs.ext4, or mkfs.ext4 and mount, at the same time as array create --erase on one device"
    }

    fn law(&self) -> &'static str {
        "both open the device exclusively, so one follows the other: if mkfs succeeded, e2fsck finds a whole file system, whatever \
         create said, because create refuses what mkfs has made and mkfs overwrites an array; if create alone succeeded, the array \
         can be shown and recorded on; if neither did, the device is as it was"
    }

    fn slice_rounds(&self) -> u64 {
        4
    }

    fn round(&self, stage: &mut Stage) -> Result<()> {
        let device = Loop::new(&stage.path("drive.raw"), SIZE_BYTES)?;
        let name = format!("race-{}", std::process::id());
        let path = device.device.to_str().context("a device's path is text")?.to_owned();
        let empty = checksum(&device.image)?;
        let mounted = stage.random.one_in(3);
        let point = stage.path("mnt");
        std::fs::create_dir(&point)?;
        let mut make = Command::new("sh");
        let script = if mounted {
            "mkfs.ext4 -q -F \"$0\" && mount \"$0\" \"$1\""
        } else {
            "mkfs.ext4 -q -F \"$0\""
        };
        make.args(["-c", script, &path]).arg(&point);
        make.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let words = [
            "array",
            "create",
            &path,
            "--erase",
            &path,
            "--name",
            &name,
            "--segment",
            "1MiB",
            "--chunk",
            "64KiB",
        ];
        let mut create = stage.command(&words);
        create.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut apart = Duration::from_micros(stage.random.below(APART.as_micros() as u64));
        if stage.random.one_in(4) {
            apart = Duration::ZERO;
        }
        let first = stage.random.one_in(2);
        stage
            .journal
            .push(format!("# beside {script} {path}, {apart:?} apart, mkfs first: {first}"));
        let (mut one, mut two) = if first { (make, create) } else { (create, make) };
        let one = one.spawn().context("starting the first")?;
        thread::sleep(apart);
        let two = two.spawn().context("starting the second")?;
        let (one, two) = (ended(one)?, ended(two)?);
        let (mkfs, create) = if first { (one, two) } else { (two, one) };
        stage.attempts += 1;
        let _mount = is_mounted(&point)?.then(|| Mount { point: point.clone() });
        let outcome = Outcome {
            made: mkfs.code == Some(0),
            mounted: _mount.is_some(),
            created: create.code == Some(0),
        };
        ensure!(
            matches!(create.code, Some(0 | 1)),
            "create ended with {:?}: {}",
            create.code,
            create.stderr
        );
        ensure!(!create.stderr.contains("panicked"), "create panicked: {}", create.stderr);
        drop(_mount);
        sync(&device.device, &device.image)?;
        outcome.judge(stage, &device, &name, &empty)
    }
}

/// How a process ended.
struct End {
    code: Option<i32>,
    stderr: String,
}

fn ended(mut child: Child) -> Result<End> {
    let deadline = Instant::now() + END_WITHIN;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill().ok();
            child.wait().ok();
            anyhow::bail!("one of both hangs");
        }
        thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(End { code: output.status.code(), stderr })
}

fn is_mounted(point: &Path) -> Result<bool> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let point = point.to_str().context("the folder's path is text")?;
    Ok(mounts.lines().any(|line| line.split(' ').nth(1) == Some(point)))
}

#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// mkfs, and mount where it was asked, succeeded.
    made: bool,
    /// It was mounted in the end.
    mounted: bool,
    /// create succeeded.
    created: bool,
}

impl Outcome {
    fn judge(self, stage: &mut Stage, device: &Loop, name: &str, empty: &str) -> Result<()> {
        let path = device.device.to_str().context("a device's path is text")?;
        let whole = || run(Command::new("e2fsck").args(["-f", "-n"]).arg(&device.device));
        let Self { made, mounted, created } = self;
        ensure!(made || !mounted, "it is mounted, and mount failed");
        // mkfs may have succeeded where mount, after it, did not.
        let filesystem = run(Command::new("blkid")
            .args(["-p", "-o", "value", "-s", "TYPE"])
            .arg(&device.device));
        let filesystem = filesystem.is_ok_and(|kind| kind.trim() == "ext4");
        ensure!(
            !made || filesystem,
            "mkfs succeeded, and there is no file system; created: {created}"
        );
        if filesystem {
            whole().with_context(|| format!("the file system is damaged; {self:?}"))?;
            stage.run(&["array", "show", path])?.code(&[1])?;
        } else if created {
            let shown = stage.run(&["array", "show", path, "--json"])?.code(&[0])?.json()?;
            ensure!(shown["name"] == name, "another array is there: {shown}");
            let record = format!(
                "record -q --from synthetic:max --until-bytes 1MB --memory 32MiB --to {path}"
            );
            stage.line(&record)?.code(&[0, 3])?;
            stage.run(&["array", "check", path])?.code(&[0, 3])?;
        } else {
            ensure!(checksum(&device.image)? == empty, "both failed, and the device was written");
        }
        stage.saw(match (filesystem, created) {
            (true, true) => "array, then file system",
            (true, false) => "file system alone",
            (false, true) => "array alone",
            (false, false) => "neither",
        });
        Ok(())
    }
}
