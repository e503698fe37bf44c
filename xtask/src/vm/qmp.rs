//! QEMU's own control protocol: one command, one answer, as JSON lines
//! (QEMU documentation, "QEMU Machine Protocol Specification").

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// The emulator answers at once; one that doesn't is stuck.
const ANSWER_WITHIN: Duration = Duration::from_secs(300);

/// A connection on which commands are given.
#[derive(Debug)]
pub struct Qmp {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Qmp {
    /// Takes the emulator's greeting and asks for nothing beyond the basic commands.
    ///
    /// # Errors
    /// If what answers isn't QEMU.
    pub fn new(stream: UnixStream) -> Result<Self> {
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        let lines = BufReader::new(stream.try_clone()?);
        let mut qmp = Self { stream, lines };
        let greeting = qmp.message()?;
        if greeting.get("QMP").is_none() {
            bail!("the control socket greets with {greeting}, not as QEMU does");
        }
        qmp.execute("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// Gives a command and waits for its answer; events in between are passed over.
    ///
    /// # Errors
    /// If QEMU refuses it, or is gone.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let request = json!({"execute": command, "arguments": arguments});
        writeln!(self.stream, "{request}").with_context(|| format!("telling QEMU to {command}"))?;
        loop {
            let answer = self.message().with_context(|| format!("waiting for {command}"))?;
            if let Some(value) = answer.get("return") {
                return Ok(value.clone());
            }
            if let Some(error) = answer.get("error") {
                bail!("QEMU refuses {command} with {arguments}: {}", error["desc"]);
            }
        }
    }

    /// Waits for an event about a device. Only one that comes after the last command's answer is seen.
    ///
    /// # Errors
    /// If it doesn't come, or QEMU is gone.
    pub fn wait_for(&mut self, event: &str, device: &str) -> Result<()> {
        loop {
            let told =
                self.message().with_context(|| format!("waiting for {event} of {device}"))?;
            if told["event"] == event && told["data"]["device"] == device {
                return Ok(());
            }
        }
    }

    fn message(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            bail!("QEMU has closed its control socket");
        }
        serde_json::from_str(&line).with_context(|| format!("QEMU said {line:?}"))
    }
}
