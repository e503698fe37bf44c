//! The recorder as a process: what it tells, and what it uses.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use serde_json::Value;

/// One that has not ended by then hangs.
const END_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A recorder under way. Dropping it kills it.
#[derive(Debug)]
pub struct Recorder {
    child: Child,
    lines: Receiver<Value>,
    complaints: Option<JoinHandle<String>>,
    /// Chunks that it said were acknowledged.
    pub acknowledged: Vec<u64>,
    /// Packets that it said were acknowledged, all together.
    pub acknowledged_packets: u64,
    /// Members that it said have failed.
    pub failed: u64,
    /// The last line about how far it is.
    pub progress: Value,
    /// What it said of the whole recording at its end.
    pub account: Value,
}

/// A figure over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// Once it had settled.
    pub first: u64,
    /// When last looked at.
    pub last: u64,
    /// The most.
    pub most: u64,
}

impl Course {
    /// One more value. Those before it has settled count for the most alone.
    pub fn add(&mut self, value: u64, settled: bool) {
        if !settled || self.first == 0 {
            self.first = value;
        }
        self.last = value;
        self.most = self.most.max(value);
    }
}

impl Recorder {
    /// Starts it.
    ///
    /// # Errors
    /// If the system can't.
    pub fn launch(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let stdout = child.stdout.take().context("its output is piped")?;
        let mut stderr = child.stderr.take().context("its complaints are piped")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A kill may cut the last line short.
                if let Ok(line) = serde_json::from_str(&line)
                    && sender.send(line).is_err()
                {
                    return;
                }
            }
        });
        let complaints = thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).ok();
            String::from_utf8_lossy(&text).into_owned()
        });
        let complaints = Some(complaints);
        let acknowledged = Vec::new();
        Ok(Self {
            child,
            lines,
            complaints,
            acknowledged,
            acknowledged_packets: 0,
            failed: 0,
            progress: Value::Null,
            account: Value::Null,
        })
    }

    /// Starts it and waits until it records.
    ///
    /// # Errors
    /// If it ends instead; its complaint is in the message.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut recorder = Self::launch(command)?;
        recorder.wait_until(|recorder| !recorder.progress.is_null())?;
        Ok(recorder)
    }

    /// Waits until it has told of something.
    ///
    /// # Errors
    /// If it ends instead, or tells of nothing like it.
    pub fn wait_until(&mut self, told: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = Instant::now() + END_WITHIN;
        self.hear();
        while !told(self) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the recorder ended ({status}) too early: {}", self.complaints());
            }
            if Instant::now() > deadline {
                bail!(
                    "the recorder did not tell what was awaited within {} s",
                    END_WITHIN.as_secs()
                );
            }
            thread::sleep(LOOK_EVERY);
            self.hear();
        }
        Ok(())
    }

    /// Takes in what it has told.
    pub fn hear(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.take(line);
        }
    }

    fn take(&mut self, line: Value) {
        match line["event"].as_str() {
            Some("acknowledged") => {
                let chunks = line["chunks"].as_array().into_iter().flatten();
                self.acknowledged.extend(chunks.filter_map(Value::as_u64));
                let packets = line.pointer("/acknowledged/packets").and_then(Value::as_u64);
                self.acknowledged_packets = packets.unwrap_or(0).max(self.acknowledged_packets);
            }
            Some("member_failed") => self.failed += 1,
            Some("progress") => self.progress = line,
            Some("finished") => self.account = line,
            _ => {}
        }
    }

    /// Whether it still records.
    ///
    /// # Errors
    /// If the system doesn't say.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Its memory in bytes and its descriptors; None if it is gone.
    pub fn uses(&self) -> Option<(u64, u64)> {
        let process = format!("/proc/{}", self.child.id());
        let status = fs::read_to_string(format!("{process}/status")).ok()?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = memory.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        let descriptors = fs::read_dir(format!("{process}/fd")).ok()?.count();
        Some((kib << 10, descriptors as u64))
    }

    /// Its processor time until now, in seconds.
    ///
    /// # Errors
    /// If the recorder has ended.
    pub fn processor_s(&self) -> Result<f64> {
        let clock = clock_getcpuclockid(Pid::from_raw(self.child.id().cast_signed()))
            .context("finding the recorder's clock")?;
        let used = clock_gettime(clock).context("reading the recorder's clock")?;
        Ok(Duration::from(used).as_secs_f64())
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// If the recorder has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(Pid::from_raw(self.child.id() as i32), signal).context("signalling the recorder")
    }

    /// Waits for its end. What it still told is in the fields; its complaints come with the status.
    ///
    /// # Errors
    /// If it hangs.
    pub fn end(&mut self) -> Result<(ExitStatus, String)> {
        let deadline = Instant::now() + END_WITHIN;
        let status = loop {
            self.hear();
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                bail!("the recorder has not ended within {} s", END_WITHIN.as_secs());
            }
            thread::sleep(LOOK_EVERY);
        };
        // Its pipe has closed, and the reader comes to the end.
        let complaints = self.complaints();
        while let Ok(line) = self.lines.recv() {
            self.take(line);
        }
        Ok((status, complaints))
    }

    fn complaints(&mut self) -> String {
        self.complaints.take().and_then(|text| text.join().ok()).unwrap_or_default()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
