//! How soon a packet can be found by its flow: a datagram is sent to a recording under way, and the array is searched for its port,
//! again and again, until it is found.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::Setting;
use super::comparison::{Comparison, Goal, Unit};
use super::program;
use super::rounds::alone;

/// Datagrams of background traffic a second, and bytes of each.
const BACKGROUND_PER_S: u32 = 20_000;
const BACKGROUND_BYTES: usize = 1400;
/// Bytes of packets that are there before the first search, so that segments are full and have indexes.
const BEFORE_BYTES: u64 = 700_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs it.
///
/// # Errors
/// If the recording can't be started, or a datagram is not found.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let directory = setting.dir.join("search-live");
    fs::create_dir_all(&directory)?;
    let longtake = setting.longtake()?;
    let recording = Recording::start(&longtake, &directory)?;
    let ended = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| send_background(recording.address, &ended));
        let found = recording.wait_for(BEFORE_BYTES).and_then(|()| {
            // Searches differ by where the recording is.
            alone(setting.rounds * 4, || recording.round())
        });
        ended.store(true, Ordering::Relaxed);
        found
    });
    drop(recording);
    fs::remove_dir_all(&directory).ok();
    Ok(vec![Comparison {
        benchmark: "search-live",
        what: "from sending a datagram to a recording until a search by its port has found it"
            .into(),
        reference: None,
        ours: found?,
        unit: Unit::Seconds,
        goal: Some(Goal::Value(1.0)),
    }])
}

/// Sends background traffic at a steady rate until `ended` is set.
fn send_background(to: SocketAddr, ended: &AtomicBool) -> Result<()> {
    const EVERY: Duration = Duration::from_millis(5);
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let begun = Instant::now();
    let mut sent = 0;
    while !ended.load(Ordering::Relaxed) {
        while f64::from(sent) < begun.elapsed().as_secs_f64() * f64::from(BACKGROUND_PER_S) {
            socket.send_to(&[7; BACKGROUND_BYTES], to).ok();
            sent += 1;
        }
        std::thread::sleep(EVERY);
    }
    Ok(())
}

/// A recording under way.
struct Recording<'a> {
    longtake: &'a Path,
    array: std::path::PathBuf,
    address: SocketAddr,
    child: Child,
}

impl<'a> Recording<'a> {
    fn start(longtake: &'a Path, directory: &Path) -> Result<Self> {
        let free = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
        let array = directory.join("array");
        let child = Command::new(longtake)
            .args(["record", "--quiet", "--from", &format!("udp:{free}"), "--members", "2"])
            .args(["--member-size", "8GiB", "--for", "10m", "--to"])
            .arg(&array)
            .stdout(Stdio::null())
            .spawn()
            .context("starting longtake record")?;
        Ok(Self { longtake, array, address: free, child })
    }

    /// Waits until so many bytes of packets are recorded.
    fn wait_for(&self, bytes: u64) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let mut takes = Command::new(self.longtake);
            let takes = program::run(takes.arg("takes").arg(&self.array).arg("--json"));
            // It may not have begun.
            if let Ok(takes) = takes {
                let takes: Value = serde_json::from_slice(&takes).context("reading its JSON")?;
                if takes.pointer("/0/captured_bytes").and_then(Value::as_u64) >= Some(bytes) {
                    return Ok(());
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("the recording has not got {bytes} bytes in {} s", PATIENCE.as_secs())
    }

    /// Sends a datagram and looks for it. Returns how long that takes in seconds.
    fn round(&self) -> Result<f64> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let filter = format!("udp src port {}", socket.local_addr()?.port());
        let begun = Instant::now();
        socket.send_to(b"looked for", self.address)?;
        while begun.elapsed() < PATIENCE {
            let mut extract = Command::new(self.longtake);
            let found = program::run(
                extract
                    .args(["extract", "--quiet", "--format", "csv", "-o", "-", "--filter", &filter])
                    .arg(&self.array),
            )?;
            let packets = found.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
            // The first line names the columns.
            if packets.count() > 1 {
                return Ok(begun.elapsed().as_secs_f64());
            }
        }
        bail!("a datagram was not found in {} s", PATIENCE.as_secs())
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGINT).ok();
        let ended = self.child.wait();
        if let Some(code) = ended.ok().and_then(|status| status.code()).filter(|&code| code != 0) {
            eprintln!("the recording ended with code {code}");
        }
    }
}
