//! Drives for measuring that a test can hold back: loop devices in memory, and a control group whose limits on block I/O
//! take hold of the measuring process. All of it is gone when it goes out of scope, also when the test fails.
//!
//! These tests need root, loop devices, and a kernel with CONFIG_BLK_DEV_THROTTLING.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Ran, Running, longtake, run, tool};

pub const MIB: u64 = 1 << 20;

/// A loop device on a new sparse image, in memory if that can be, so that no real disk's pace is in the way.
#[derive(Debug)]
pub struct LoopDevice {
    pub path: PathBuf,
    folder: TempDir,
    /// Bytes read and written before, by others that used the device of this number.
    before: (u64, u64),
}

impl LoopDevice {
    /// Of so many bytes.
    #[track_caller]
    pub fn new(bytes: u64) -> Self {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory } else { Path::new(env!("CARGO_TARGET_TMPDIR")) };
        let folder = tempfile::Builder::new().prefix("longtake-measure-").tempdir_in(place);
        let folder = folder.expect("making a scratch folder");
        let image = folder.path().join("image");
        File::create(&image).and_then(|file| file.set_len(bytes)).expect("making an image");
        let mut losetup = tool("losetup", "mount");
        let ran = run(losetup.args(["--find", "--show"]).arg(&image)).code(0);
        let path = PathBuf::from(ran.text().trim());
        let mut device = Self { path, folder, before: (0, 0) };
        device.before = device.moved();
        device
    }

    /// Its path as text.
    pub fn text(&self) -> &str {
        self.path.to_str().expect("a device's path is text")
    }

    /// How many bytes it holds.
    pub fn size(&self) -> u64 {
        512 * self.sysfs("size").trim().parse::<u64>().expect("a count of sectors")
    }

    /// What lies behind it.
    pub fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn sysfs(&self, file: &str) -> String {
        let name = self.path.file_name().expect("a device has a name");
        let path = Path::new("/sys/block").join(name).join(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Bytes read and written since the machine was started (Documentation/block/stat.rst: in units of 512).
    fn moved(&self) -> (u64, u64) {
        let stat = self.sysfs("stat");
        let field = |at: usize| stat.split_whitespace().nth(at).and_then(|f| f.parse::<u64>().ok());
        let bytes = |at| 512 * field(at).expect("a count of sectors");
        (bytes(2), bytes(6))
    }

    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.moved().0 - self.before.0
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.moved().1 - self.before.1
    }

    /// `MAJOR:MINOR`
    fn number(&self) -> String {
        self.sysfs("dev").trim().to_owned()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        tool("losetup", "mount").arg("--detach").arg(&self.path).status().ok();
    }
}

/// A test of what is measured while limits hold, on a device of so many bytes. If it fails, it may be that the limits were not all that held the
/// program back: then, and only then, it is tried again. A machine that disturbs every try leaves nothing to judge by.
#[track_caller]
pub fn unless_disturbed(size: u64, test: impl Fn(&LoopDevice, &Throttle) -> Result<(), String>) {
    for left in (0..4).rev() {
        let (device, throttle) = (LoopDevice::new(size), Throttle::new());
        let over = AtomicBool::new(false);
        let (outcome, disturbed) = std::thread::scope(|scope| {
            let witness = scope.spawn(|| disturbed(&device, &throttle, &over));
            let outcome = catch_unwind(AssertUnwindSafe(|| test(&device, &throttle)));
            over.store(true, Ordering::Release);
            (outcome, witness.join().expect("the witness only looks"))
        });
        match outcome.unwrap_or_else(|panic| resume_unwind(panic)) {
            Ok(()) => return,
            Err(said) if disturbed => println!("disturbed, with {left} tries left: {said}"),
            Err(said) => panic!("{said}"),
        }
    }
}

/// Whether this machine left out a moment, or the device was given less than two fifths of what its limit allowed in half a second,
/// between its first byte written and its last.
fn disturbed(device: &LoopDevice, throttle: &Throttle, over: &AtomicBool) -> bool {
    const LOOK_EVERY: Duration = Duration::from_millis(10);
    let mut looks: VecDeque<(Instant, u64, f64)> = VecDeque::new();
    let mut allowed = 0.0;
    let mut disturbed = false;
    // What follows the last byte is no disturbance.
    let mut slow = false;
    while !over.load(Ordering::Acquire) {
        let (now, written) = (Instant::now(), device.written());
        let limit = throttle.writes.load(Ordering::Relaxed) as f64;
        let passed = looks.back().map_or(Duration::ZERO, |look| now - look.0);
        allowed += limit * passed.as_secs_f64();
        let progress = looks.back().is_some_and(|look| written > look.1);
        if written > 0 {
            disturbed |= passed > 15 * LOOK_EVERY || (slow && progress);
            looks.push_back((now, written, allowed));
        }
        while looks.get(1).is_some_and(|look| now - look.0 >= Duration::from_millis(500)) {
            looks.pop_front();
        }
        slow = looks.front().is_some_and(|first| {
            now - first.0 >= Duration::from_millis(500)
                && ((written - first.1) as f64) < 0.4 * (allowed - first.2)
        });
        sleep(LOOK_EVERY);
    }
    disturbed
}

/// A control group that limits what its processes move a second to and from block devices.
#[derive(Debug)]
pub struct Throttle {
    folder: PathBuf,
    unified: bool,
    /// The last limit of writes; 0 for none.
    writes: AtomicU64,
}

impl Throttle {
    /// Without a limit yet. Version 1 of control groups where it has the block controller, else version 2.
    #[track_caller]
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("longtake-measure-{}-{number}", std::process::id());
        let (old, new) = (Path::new("/sys/fs/cgroup/blkio"), Path::new("/sys/fs/cgroup"));
        let limits = "blkio.throttle.write_bps_device";
        let unified = !old.join(limits).exists();
        let folder = if unified { new.join(name) } else { old.join(name) };
        if unified {
            let enabled = fs::write(new.join("cgroup.subtree_control"), "+io");
            enabled
                .unwrap_or_else(|error| panic!("no block controller in control groups: {error}"));
        }
        fs::create_dir(&folder).expect("making a control group (these tests need root)");
        let throttle = Self { folder, unified, writes: AtomicU64::new(0) };
        let limits = throttle.folder.join(if unified { "io.max" } else { limits });
        assert!(
            limits.exists(),
            "{} is not there: this kernel has no CONFIG_BLK_DEV_THROTTLING, which this test needs",
            limits.display()
        );
        throttle
    }

    /// Bytes a second to be read from a device; None for as many as it gives.
    #[track_caller]
    pub fn limit_reads(&self, device: &LoopDevice, rate: Option<u64>) {
        self.limit(device, "rbps", "read", rate);
    }

    /// Bytes a second to be written to a device; None for as many as it takes.
    #[track_caller]
    pub fn limit_writes(&self, device: &LoopDevice, rate: Option<u64>) {
        self.limit(device, "wbps", "write", rate);
        self.writes.store(rate.unwrap_or(0), Ordering::Relaxed);
    }

    #[track_caller]
    fn limit(&self, device: &LoopDevice, new: &str, old: &str, rate: Option<u64>) {
        let number = device.number();
        let (file, line) = if self.unified {
            let rate = rate.map_or("max".to_owned(), |rate| rate.to_string());
            ("io.max".to_owned(), format!("{number} {new}={rate}"))
        } else {
            // 0 lifts a limit here.
            let rate = rate.unwrap_or(0);
            (format!("blkio.throttle.{old}_bps_device"), format!("{number} {rate}"))
        };
        fs::write(self.folder.join(file), line).expect("setting a limit");
    }

    /// Starts `longtake measure` with these words in the group.
    #[track_caller]
    pub fn measure(&self, arguments: &[&str]) -> Measuring {
        Measuring::start(self.longtake().arg("measure").args(arguments))
    }

    /// The program, to be run in the group.
    pub fn longtake(&self) -> Command {
        let mut shell = tool("sh", "dash");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.folder.join("cgroup.procs"));
        shell.arg(longtake().get_program());
        shell
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // The group's processes have ended, and the kernel may take a moment to see it.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            sleep(Duration::from_millis(10));
        }
    }
}

/// `longtake measure` under way.
#[derive(Debug)]
pub struct Measuring {
    running: Running,
    name: String,
    output: TempDir,
}

impl Measuring {
    /// Outside of any control group.
    #[track_caller]
    pub fn new(arguments: &[&str]) -> Self {
        Self::start(longtake().arg("measure").args(arguments))
    }

    #[track_caller]
    fn start(command: &mut Command) -> Self {
        let output = tempfile::tempdir().expect("making a scratch folder");
        let file = |name: &str| File::create(output.path().join(name)).expect("making a file");
        // Into files, so that a full pipe stops nobody.
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        let name = format!("{command:?}");
        Self { running: Running::start(command), name, output }
    }

    /// Waits, looking every millisecond, until something is so. Fails if the program ends before.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, mut so: impl FnMut() -> bool) {
        while !so() {
            let complaint = || fs::read_to_string(self.output.path().join("stderr"));
            assert!(
                matches!(self.running.0.try_wait(), Ok(None)),
                "{} ended before {what}: {:?}",
                self.name,
                complaint()
            );
            sleep(Duration::from_millis(1));
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        self.running.signal(signal);
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ran {
        let code = self.running.wait();
        let told = |name: &str| fs::read(self.output.path().join(name)).expect("it was made");
        let stderr = String::from_utf8_lossy(&told("stderr")).into_owned();
        Ran { command: self.name, code, stdout: told("stdout"), stderr }
    }
}

/// Each line of an experiment's `--json`.
#[track_caller]
pub fn lines(ran: &Ran) -> Vec<Value> {
    let line = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}: {line}", ran.command))
    };
    ran.text().lines().map(line).collect()
}

/// A figure that an experiment's `--json` has under this name.
#[track_caller]
pub fn figure(ran: &Ran, name: &str) -> Option<f64> {
    let lines = lines(ran);
    let figures = lines.iter().filter_map(|line| line["figures"].as_array()).flatten();
    let found = figures.clone().find(|figure| figure["name"] == name);
    found.unwrap_or_else(|| panic!("no figure {name} in {lines:#?}"))["value"].as_f64()
}
