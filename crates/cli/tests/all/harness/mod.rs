//! The program under test, run as its users run it: commands that end, recordings that go on, and what
//! they printed. Everything that a test starts is ended, also when the test fails.

// Every test file is a program of its own and uses a part of this.

pub mod captures;
pub mod filled;
pub mod namespaces;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// A wait that lasts longer than this is a hang.
const HANG: Duration = Duration::from_secs(180);

/// A folder for one test, on the disk that the build is on (direct I/O needs a real one).
pub fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("making a scratch folder")
}

/// A text as if its lines weren't broken.
pub fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the slow, full-length form of each test was asked for with `LONGTAKE_LONG=1`.
pub fn long() -> bool {
    std::env::var_os("LONGTAKE_LONG").is_some_and(|v| v == "1")
}

/// A tool from a Debian package.
pub fn tool(name: &str, package: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    match found {
        Some(file) => Command::new(file),
        None => panic!("this test needs {name}: install it with `apt-get install {package}`"),
    }
}

/// The program.
pub fn longtake() -> Command {
    Command::new(env!("CARGO_BIN_EXE_longtake"))
}

/// A program as a terminal starts it: whoever runs the tests may ignore hangups, and programs inherit that.
pub fn hearing_hangups(program: &Command) -> Command {
    let mut command = tool("env", "coreutils");
    command.arg("--default-signal=HUP").arg(program.get_program()).args(program.get_args());
    command
}

/// What a command that ended has left.
#[derive(Debug)]
pub struct Ran {
    /// The command, for messages.
    pub command: String,
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained.
    pub stderr: String,
}

impl Ran {
    /// With this exit code, or the test fails and shows all that was said.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        assert_eq!(
            self.code,
            expected,
            "exit code of {}\nstderr: {}\nstdout: {}",
            self.command,
            self.stderr,
            self.text().chars().take(4000).collect::<String>()
        );
        self
    }

    /// Whether it ended with this code.
    pub fn is_code(&self, code: i32) -> bool {
        self.code == code
    }

    /// What it printed, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{} printed no JSON: {error}", self.command))
    }

    /// Fails the test unless the complaint has every one of these words in it.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{} does not say '{word}' but:\n{}",
                self.command,
                self.stderr
            );
        }
        self
    }
}

/// Runs a command to its end.
#[track_caller]
pub fn run(command: &mut Command) -> Ran {
    let name = describe(command);
    let Output { status, stdout, stderr } = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("starting {name}: {error}"));
    Ran {
        command: name,
        code: status.code().unwrap_or(-1),
        stdout,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Runs `longtake` with these arguments to its end.
#[track_caller]
pub fn ran<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    run(longtake().args(arguments))
}

/// The same from one line of words; `@` stands for `path`.
#[track_caller]
pub fn line(arguments: &str, path: &Path) -> Ran {
    ran(words(arguments, path))
}

fn words(arguments: &str, path: &Path) -> Vec<String> {
    let path = path.to_str().expect("a scratch path is text");
    arguments.split_whitespace().map(|word| word.replace('@', path)).collect()
}

fn describe(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// `longtake ... --json`, which must end well, as JSON.
#[track_caller]
pub fn asked(arguments: &str, path: &Path) -> Value {
    line(&format!("{arguments} --json"), path).code(0).json()
}

/// A recording (or another command with events) under way.
#[derive(Debug)]
pub struct Recorder {
    child: Running,
    lines: Receiver<Value>,
    complaints: Option<JoinHandle<String>>,
    /// Every event so far.
    pub events: Vec<Value>,
}

/// How a recording ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; -1 if a signal ended it.
    pub code: i32,
    /// Every event.
    pub events: Vec<Value>,
    /// What it complained.
    pub stderr: String,
}

impl Ended {
    /// The last event of a name.
    #[track_caller]
    pub fn event(&self, name: &str) -> &Value {
        let found = self.events.iter().rev().find(|e| e["event"] == name);
        found.unwrap_or_else(|| panic!("no event {name}; stderr: {}", self.stderr))
    }

    /// With this exit code, or the test fails and shows all that was said.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        let last = self.events.last();
        assert_eq!(self.code, expected, "stderr: {}\nlast event: {last:?}", self.stderr);
        self
    }

    /// Every acknowledged chunk.
    pub fn acknowledged(&self) -> Vec<u64> {
        self.events
            .iter()
            .filter(|e| e["event"] == "acknowledged")
            .flat_map(|e| e["chunks"].as_array().into_iter().flatten().filter_map(Value::as_u64))
            .collect()
    }
}

impl Recorder {
    /// `longtake record --json` with these words (`@` stands for `path`), once it has started.
    #[track_caller]
    pub fn start(arguments: &str, path: &Path) -> Self {
        Self::spawn(longtake().args(words(&format!("record --json {arguments}"), path)))
    }

    /// Any command line that ends in a recording with `--json`, once it has started.
    #[track_caller]
    pub fn spawn(command: &mut Command) -> Self {
        let mut recorder = Self::launch(command);
        recorder.wait_for("its start", |e| e["event"] == "started");
        recorder
    }

    /// The same, not waiting for its start.
    #[track_caller]
    pub fn launch(command: &mut Command) -> Self {
        let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let stdout = child.0.stdout.take().expect("it is piped");
        let mut stderr = child.0.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A kill may cut the last line short.
                if let Ok(event) = serde_json::from_str(&line)
                    && sender.send(event).is_err()
                {
                    break;
                }
            }
        });
        let complaints = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).ok();
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { child, lines, complaints: Some(complaints), events: Vec::new() }
    }

    /// Waits for an event.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let deadline = Instant::now() + HANG;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(event) => {
                    let found = wanted(&event);
                    self.events.push(event.clone());
                    if found {
                        return event;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("the recording hangs; waited for {what}"),
                Err(RecvTimeoutError::Disconnected) => {
                    let complaints = self.complaints.take().and_then(|c| c.join().ok());
                    panic!("the recording ended before {what}: {}", complaints.unwrap_or_default())
                }
            }
        }
    }

    /// Takes in the events that have come.
    pub fn look(&mut self) {
        self.events.extend(self.lines.try_iter());
    }

    /// Waits until so many bytes are written.
    #[track_caller]
    pub fn wait_for_written(&mut self, bytes: u64) {
        self.wait_for("bytes written", |e| {
            let members = e["members"].as_array();
            let written = |m: &Value| m["written"].as_u64().unwrap_or(0);
            e["event"] == "progress"
                && members.is_some_and(|m| m.iter().map(written).sum::<u64>() >= bytes)
        });
    }

    /// Its standard input, which was piped.
    #[track_caller]
    pub fn stdin(&mut self) -> &mut ChildStdin {
        self.child.0.stdin.as_mut().expect("it is piped and open")
    }

    /// Ends its standard input.
    pub fn close_stdin(&mut self) {
        self.child.0.stdin = None;
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let deadline = Instant::now() + HANG;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(event) => self.events.push(event),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the recording does not end"),
            }
        }
        let code = self.child.wait();
        let stderr = self.complaints.take().and_then(|c| c.join().ok()).unwrap_or_default();
        Ended { code, events: std::mem::take(&mut self.events), stderr }
    }

    /// Asks it to stop, and waits for its end.
    #[track_caller]
    pub fn stop(self) -> Ended {
        self.signal(Signal::SIGINT);
        self.end()
    }
}

/// A process that does not outlive its test.
#[derive(Debug)]
pub struct Running(pub Child);

impl Running {
    /// Starts a command.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let name = describe(command);
        Self(command.spawn().unwrap_or_else(|error| panic!("starting {name}: {error}")))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // A process that has ended already needs no signal.
        kill(Pid::from_raw(self.0.id() as i32), signal).ok();
    }

    /// Waits for its end; returns the exit code, -1 if a signal ended it.
    #[track_caller]
    pub fn wait(&mut self) -> i32 {
        let deadline = Instant::now() + HANG;
        loop {
            if let Some(status) = self.0.try_wait().expect("waiting for a process") {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "process {} does not end", self.0.id());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until something is so.
#[track_caller]
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + HANG;
    while !so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A loopback address with a port to be chosen by the kernel, and nobody else's: a port that was free on it stays so.
pub fn own_address() -> String {
    static NUMBER: AtomicU8 = AtomicU8::new(1);
    let (pid, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    format!("127.{}.{}.{number}:0", 1 + (pid >> 8) % 250, pid % 256)
}

/// Nanoseconds since 1970, now.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.expect("the clock is set").as_nanos()).expect("it is before 2554")
}

/// A time as `--since` and `--until` take it, exact.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// The value at a path of keys, as a number.
#[track_caller]
pub fn number(value: &Value, keys: &str) -> u64 {
    let found = keys.split('.').fold(value, |value, key| &value[key]);
    found.as_u64().unwrap_or_else(|| panic!("no number at {keys} in {value}"))
}

/// A new folder's path in `folder`, not made yet.
pub fn new_in(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}
