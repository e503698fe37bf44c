//! Records what the kernel's block tracer sees of a loop device, as the files of blktrace. blktrace itself does it where it may:
//! a kernel that is locked down closes the files that it reads. There the same tracer writes the same records through tracefs,
//! whose option `bin` is made for blkparse, and they are dealt to files by processor, as blktrace does.
//!
//! This needs root, loop devices, and a kernel with CONFIG_BLK_DEV_IO_TRACE.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::harness::{run, tool, wait_until};
use crate::measure_rig::LoopDevice;

/// Bytes of a record, without what follows it (include/uapi/linux/blktrace_api.h).
const RECORD_BYTES: usize = 48;

/// Runs `load`, and leaves what the kernel saw of it on `device` in `folder` as `trace.blktrace.N`.
#[track_caller]
pub fn recorded(device: &LoopDevice, folder: &Path, load: impl FnOnce()) {
    // One may trace at a time.
    let lock = File::create(std::env::temp_dir().join("longtake-block-tracer")).expect("a lock");
    let _alone = Flock::lock(lock, FlockArg::LockExclusive).expect("waiting for a lock");
    match Blktrace::start(device, folder) {
        Some(blktrace) => {
            load();
            blktrace.end();
        }
        None => {
            let tracer = Tracer::start(device);
            load();
            tracer.end(folder);
        }
    }
}

/// The file that says whether a device is traced.
fn switch(device: &LoopDevice) -> PathBuf {
    let name = device.path.file_name().expect("a device has a name");
    Path::new("/sys/block").join(name).join("trace/enable")
}

struct Blktrace(Child);

impl Blktrace {
    /// None where blktrace can't record.
    fn start(device: &LoopDevice, folder: &Path) -> Option<Self> {
        let debug = Mounted::new("debugfs");
        let mut blktrace = tool("blktrace", "blktrace");
        blktrace.arg("-d").arg(&device.path).arg("-r").arg(debug.0.path());
        blktrace.args(["-o", "trace", "-D"]).arg(folder);
        let quiet = blktrace.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().expect("starting blktrace");
        let on = || fs::read_to_string(switch(device)).is_ok_and(|on| on.trim() == "1");
        let mut ended = false;
        wait_until("blktrace to trace or to end", || {
            ended = child.try_wait().expect("it was started").is_some();
            ended || on()
        });
        // It sets the device up before it finds that it can't read what the kernel records.
        let opened = |child: &Child| {
            let files = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten();
            let links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
            links.filter(|link| link.to_string_lossy().contains("/trace0")).count() > 0
        };
        wait_until("blktrace to read or to end", || {
            ended = ended || child.try_wait().expect("it was started").is_some();
            ended || opened(&child)
        });
        (!ended).then_some(Self(child))
    }

    fn end(mut self) {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT).expect("blktrace runs");
        assert!(self.0.wait().expect("it was started").success(), "blktrace failed");
    }
}

/// A file system of the kernel, mounted for a test.
struct Mounted(TempDir);

impl Mounted {
    fn new(kind: &str) -> Self {
        let folder = tempfile::tempdir().expect("making a scratch folder");
        run(tool("mount", "mount").args(["-t", kind, "none"]).arg(folder.path())).code(0);
        Self(folder)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        tool("umount", "mount").arg("-l").arg(self.0.path()).status().ok();
    }
}

/// The kernel's tracer through tracefs. When it goes out of scope, everything is as it was.
struct Tracer {
    tracefs: Mounted,
    switch: PathBuf,
    before: Vec<(&'static str, String)>,
}

impl Tracer {
    fn start(device: &LoopDevice) -> Self {
        let tracefs = Mounted::new("tracefs");
        let mut tracer = Self { tracefs, switch: switch(device), before: Vec::new() };
        for (file, value) in [
            ("buffer_size_kb", "8192"),
            ("options/context-info", "0"),
            ("options/bin", "1"),
            ("current_tracer", "blk"),
        ] {
            let before = fs::read_to_string(tracer.file(file)).expect("a file of tracefs");
            let word = before.split_whitespace().next().unwrap_or_default().to_owned();
            tracer.before.push((file, word));
            tracer.set(file, value);
        }
        tracer.set("trace", "");
        fs::write(&tracer.switch, "1").expect("starting to trace, for which this test is root");
        tracer
    }

    fn file(&self, name: &str) -> PathBuf {
        self.tracefs.0.path().join(name)
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.file(file), value).unwrap_or_else(|error| panic!("{file}: {error}"));
    }

    /// Everything that was recorded, by processor.
    fn end(self, folder: &Path) {
        fs::write(&self.switch, "0").expect("ending to trace");
        let mut open = OpenOptions::new();
        let pipe =
            open.read(true).custom_flags(nix::libc::O_NONBLOCK).open(self.file("trace_pipe"));
        let (mut all, mut pipe) = (Vec::new(), pipe.expect("a file of tracefs"));
        // The end of what was recorded is that nothing more is there yet.
        pipe.read_to_end(&mut all).expect_err("a pipe of tracefs has no end");
        let mut files: Vec<Vec<u8>> = vec![Vec::new(); 1];
        let mut rest = all.as_slice();
        while let Some(record) = rest.first_chunk::<RECORD_BYTES>() {
            let cpu = u32::from_le_bytes([record[40], record[41], record[42], record[43]]) as usize;
            let bytes = RECORD_BYTES + usize::from(u16::from_le_bytes([record[46], record[47]]));
            files.resize(files.len().max(cpu + 1), Vec::new());
            files[cpu].extend_from_slice(&rest[..bytes]);
            rest = &rest[bytes..];
        }
        assert!(rest.is_empty(), "a record of the kernel's is cut off");
        for (cpu, bytes) in files.into_iter().enumerate() {
            fs::write(folder.join(format!("trace.blktrace.{cpu}")), bytes).expect("there is space");
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        fs::write(&self.switch, "0").ok();
        for (file, value) in self.before.iter().rev() {
            fs::write(self.file(file), value).ok();
        }
    }
}
