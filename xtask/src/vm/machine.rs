//! One running machine: QEMU as a child of this process, its console in a file, the guest's reports and
//! QEMU's control on sockets.
//!
//! A guest that panics, an emulator that dies and a guest that says nothing more all end the run, and
//! the error has the last lines of the console.

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::drives::QEMU;
use super::qmp::Qmp;
use super::report::{self, Told};

/// How long QEMU may take until it has opened its sockets.
const START_WITHIN: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of the console an error shows.
const TAIL_LINES: usize = 40;

/// A running machine. Dropping it ends it.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    qmp: Qmp,
    guest: UnixStream,
    told: Receiver<Result<Told>>,
    console: PathBuf,
    deadline: Instant,
    /// The folder of the sockets: their paths must be short, wherever the drives lie.
    _sockets: TempDir,
}

/// What a machine's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The host's, however little the emulated processors get done in it.
    Host,
    /// One processor's instructions, a nanosecond each, so that it does as much in its own time as a real one. Emulated, unless the
    /// accelerator can't count them.
    Counted,
}

/// What a machine is made of.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The bootable kernel.
    pub kernel: &'a Path,
    /// The guest's file system.
    pub image: &'a Path,
    /// QEMU's accelerator, `tcg,thread=multi`.
    pub accelerator: &'a str,
    /// QEMU's processor model.
    pub processor: &'a str,
    /// Its time.
    pub clock: Clock,
    /// QEMU's options for its drives.
    pub drives: Vec<String>,
    /// Where its logs go.
    pub dir: &'a Path,
    /// When the run is taken to hang.
    pub time_limit: Duration,
}

impl Machine {
    /// Starts it; the guest boots meanwhile.
    ///
    /// # Errors
    /// If QEMU can't be started or dies at once; its own words are in the message.
    pub fn start(parts: &Parts<'_>) -> Result<Self> {
        let sockets = tempfile::Builder::new().prefix("longtake-vm").tempdir()?;
        let control = UnixListener::bind(sockets.path().join("control"))?;
        let report = UnixListener::bind(sockets.path().join("report"))?;
        let console = parts.dir.join("console.log");
        let complaints = parts.dir.join("qemu.log");
        fs::write(&console, "")?;
        let mut command = Command::new(QEMU);
        command.args(["-machine", "q35", "-m", "6G"]);
        if parts.clock == Clock::Counted && parts.accelerator.starts_with("tcg") {
            // Instructions on long vectors count as one, however long their emulation takes; each round of a repeated one counts.
            command
                .args(["-cpu", "max,-erms,-fsrm", "-smp", "1", "-accel", "tcg,thread=single"])
                .args(["-icount", "shift=0,sleep=on,align=off"]);
        } else {
            command.args(["-cpu", parts.processor, "-smp", "2", "-accel", parts.accelerator]);
        }
        command
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            .arg("-kernel")
            .arg(parts.kernel)
            .arg("-initrd")
            .arg(parts.image)
            // A panic reboots at once, which ends an emulator that must not reboot. The timer's check fails where emulated processors wait for
            // real ones.
            .args(["-append", "console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off nokaslr tsc=reliable no_timer_check rdinit=/init"])
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .args(["-chardev", &socket("report", sockets.path()), "-serial", "chardev:report"])
            .args(["-chardev", &socket("control", sockets.path())])
            .args(["-mon", "chardev=control,mode=control"])
            .args(&parts.drives)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&complaints)?);
        let child = command.spawn().with_context(|| format!("starting {QEMU}"))?;
        let mut child = Ended(Some(child));
        let connected = (|| {
            let control = accept(&control, child.get())?;
            let guest = accept(&report, child.get())?;
            Ok::<_, anyhow::Error>((Qmp::new(control)?, guest))
        })();
        let (qmp, guest) = connected.map_err(|error| {
            let words = fs::read_to_string(&complaints).unwrap_or_default();
            anyhow!("{error:#}; QEMU said: {}", words.trim())
        })?;
        let told = listen(guest.try_clone()?);
        let deadline = Instant::now() + parts.time_limit;
        Ok(Self { child: child.keep(), qmp, guest, told, console, deadline, _sockets: sockets })
    }

    /// Waits for the next thing that the guest tells.
    ///
    /// # Errors
    /// If the guest is gone, or the time is up.
    pub fn listen(&mut self) -> Result<Told> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.told.recv_timeout(left) {
            Ok(told) => told.with_context(|| self.tail()),
            Err(RecvTimeoutError::Timeout) => {
                bail!("the time is up and the script hasn't ended; {}", self.tail())
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the machine stopped before its script ended; {}", self.tail())
            }
        }
    }

    /// Says a line to the guest, where `await` prints it.
    ///
    /// # Errors
    /// If the guest is gone.
    pub fn say(&mut self, line: &str) -> Result<()> {
        writeln!(self.guest, "{line}").context("saying something to the guest")
    }

    /// Gives QEMU a command: unplug a drive, throttle it, cut the power.
    ///
    /// # Errors
    /// If QEMU refuses it.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        self.qmp.execute(command, arguments)
    }

    /// Unplugs a device and waits until the guest has let go of it.
    ///
    /// # Errors
    /// If QEMU refuses, or the guest holds on.
    pub fn unplug(&mut self, device: &str) -> Result<()> {
        self.qmp.execute("device_del", &json!({"id": device}))?;
        self.qmp.wait_for("DEVICE_DELETED", device)
    }

    /// Ends it in the middle of what it does, and gives what it had still told.
    pub fn cut(mut self) -> Vec<Told> {
        end(&mut self.child);
        // The listener has come to the end of what was on its way when it hangs up.
        std::iter::from_fn(|| self.told.recv().ok()?.ok()).collect()
    }

    /// The console's last lines, for messages.
    pub fn tail(&self) -> String {
        let text = fs::read(&self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        format!("the end of {}:\n{tail}", self.console.display())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.guest.shutdown(Shutdown::Both).ok();
        end(&mut self.child);
    }
}

/// A child that is ended unless it is kept.
struct Ended(Option<Child>);

impl Ended {
    fn get(&mut self) -> &mut Child {
        self.0.as_mut().expect("it is there until it is kept")
    }

    fn keep(mut self) -> Child {
        self.0.take().expect("it is kept once")
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

fn end(child: &mut Child) {
    // It may have ended by itself, which is as good.
    child.kill().ok();
    child.wait().ok();
}

fn socket(name: &str, dir: &Path) -> String {
    format!("socket,id={name},path={}", dir.join(name).display())
}

/// Waits for the emulator to connect, as long as it lives.
fn accept(listener: &UnixListener, child: &mut Child) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + START_WITHIN;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("waiting for QEMU to connect"),
        }
        if let Some(status) = child.try_wait()? {
            bail!("QEMU ended ({status}) before it started the machine");
        }
        if Instant::now() > deadline {
            bail!("QEMU has not connected within {} s", START_WITHIN.as_secs());
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Takes in what the guest tells on a thread of its own, so that a guest never waits for its host.
fn listen(guest: UnixStream) -> Receiver<Result<Told>> {
    let (reporter, told) = channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(guest);
        loop {
            let next = report::next(&mut lines);
            let last = !matches!(&next, Ok(Some(_)));
            let Some(next) = next.transpose() else { return };
            if reporter.send(next).is_err() || last {
                return;
            }
        }
    });
    told
}
