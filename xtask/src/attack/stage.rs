//! Where a round of an attack is played: its folder, its random numbers, and the program run there, every run noted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base::Random;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A command that takes longer hangs.
const END_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// What is kept of what a command prints.
const PRINTED_MAX: u64 = 16 << 20;

/// A round's folder and what happens in it.
#[derive(Debug)]
pub struct Stage {
    /// The program that is attacked.
    pub program: PathBuf,
    /// The round's own folder. Commands run in it.
    pub dir: PathBuf,
    /// What the round's choices are made from.
    pub random: Random,
    /// Whether the round is one of a slice, and has to be short.
    pub slice: bool,
    /// Attempts so far.
    pub attempts: u64,
    /// Everything that was run.
    pub journal: Vec<String>,
    /// What happened, counted.
    pub seen: BTreeMap<String, u64>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// The command line.
    pub line: String,
    /// Its exit code; None if a signal ended it.
    pub code: Option<i32>,
    /// The signal.
    pub signal: Option<i32>,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained.
    pub stderr: String,
    /// Whether it had to be interrupted.
    pub interrupted: bool,
}

impl Ran {
    /// That it ended with one of these exit codes.
    ///
    /// # Errors
    /// If it did not.
    pub fn code(self, expected: &[i32]) -> Result<Self> {
        let Self { line, code, signal, stderr, .. } = &self;
        ensure!(
            code.is_some_and(|code| expected.contains(&code)),
            "`{line}` ended with {code:?} (signal {signal:?}), not {expected:?}: {}",
            tail(stderr)
        );
        Ok(self)
    }

    /// What it printed, as JSON.
    ///
    /// # Errors
    /// If it is none.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.stdout).with_context(|| {
            format!("`{}` ({:?}) printed no JSON; {}", self.line, self.code, tail(&self.stderr))
        })
    }

    /// That it neither panicked nor died.
    ///
    /// # Errors
    /// If it did.
    pub fn sound(self) -> Result<Self> {
        let Self { line, code, signal, stderr, interrupted, .. } = &self;
        let printed = String::from_utf8_lossy(&self.stdout);
        let panicked = stderr.contains("panicked at") || printed.contains("panicked at");
        let ended = match (code, signal) {
            (Some(0..=3), _) => true,
            // A command that nothing needs to be saved of dies of the interruption.
            (None, Some(2)) => *interrupted,
            _ => false,
        };
        ensure!(!panicked, "`{line}` panicked: {}", tail(stderr));
        ensure!(ended, "`{line}` ended with {code:?}, signal {signal:?}: {}", tail(stderr));
        Ok(self)
    }
}

fn tail(text: &str) -> String {
    let text = text.trim();
    let from = text.char_indices().rev().nth(1500).map_or(0, |(at, _)| at);
    text[from..].to_owned()
}

impl Stage {
    /// In this folder, which is empty.
    pub fn new(program: PathBuf, dir: PathBuf, random: Random, slice: bool) -> Self {
        let (journal, seen) = (Vec::new(), BTreeMap::new());
        Self { program, dir, random, slice, attempts: 0, journal, seen }
    }

    /// Counts something that happened.
    pub fn saw(&mut self, what: &str) {
        self.saw_many(what, 1);
    }

    /// The same for many at once.
    pub fn saw_many(&mut self, what: &str, count: u64) {
        if count > 0 {
            *self.seen.entry(what.to_owned()).or_default() += count;
        }
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// One of several, at random.
    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.random.below(of.len() as u64) as usize]
    }

    /// The program with these words, in the folder, to be started by the caller.
    pub fn command<S: AsRef<str>>(&mut self, words: &[S]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words.iter().map(AsRef::as_ref)).current_dir(&self.dir);
        self.journal.push(line_of(words));
        command
    }

    /// Runs the program with the words of a line to its end; it must not panic.
    ///
    /// # Errors
    /// If it panics, dies or hangs.
    pub fn line(&mut self, line: &str) -> Result<Ran> {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// The same with words.
    ///
    /// # Errors
    /// As [`Stage::line`].
    pub fn run<S: AsRef<str>>(&mut self, words: &[S]) -> Result<Ran> {
        let mut command = Command::new(&self.program);
        command.args(words.iter().map(AsRef::as_ref)).stdin(Stdio::null());
        self.run_command(&mut command, &line_of(words), None)?.sound()
    }

    /// Runs a command in the folder. One that goes on after `patience` is interrupted; without it, that is a failure.
    ///
    /// # Errors
    /// If it can't be started, or doesn't end.
    pub fn run_command(
        &mut self,
        command: &mut Command,
        line: &str,
        patience: Option<Duration>,
    ) -> Result<Ran> {
        self.attempts += 1;
        self.journal.push(line.to_owned());
        let printed = self.beside("stdout");
        let complained = self.beside("stderr");
        command.current_dir(&self.dir);
        command.stdout(File::create(&printed)?).stderr(File::create(&complained)?);
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let (mut interrupted, began) = (false, Instant::now());
        let ended = match wait(&mut child, patience.unwrap_or(END_WITHIN))? {
            None if patience.is_some() => {
                interrupted = true;
                kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).context("interrupting")?;
                wait(&mut child, END_WITHIN)?
            }
            ended => ended,
        };
        let stderr =
            || fs::read(&complained).map(|text| String::from_utf8_lossy(&text).into_owned());
        let Some(status) = ended else {
            child.kill().ok();
            child.wait().ok();
            bail!("`{line}` hangs; interrupted: {interrupted}; {}", tail(&stderr()?));
        };
        let ran = Ran {
            line: line.to_owned(),
            code: status.code(),
            signal: status.signal(),
            stdout: head(&printed)?,
            stderr: stderr()?,
            interrupted,
        };
        let end = ran.code.map_or_else(|| format!("signal {:?}", ran.signal), |c| c.to_string());
        if let Some(last) = self.journal.last_mut() {
            *last = format!("{last}   # {end}, {} ms", began.elapsed().as_millis());
        }
        fs::remove_file(printed)?;
        fs::remove_file(complained)?;
        Ok(ran)
    }

    /// A file beside the folder, so that commands don't see it.
    fn beside(&self, kind: &str) -> PathBuf {
        self.dir.with_extension(kind)
    }
}

fn line_of<S: AsRef<str>>(words: &[S]) -> String {
    let quoted = words.iter().map(|word| {
        let word = word.as_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("{word:?}")
        }
    });
    format!("longtake {}", quoted.collect::<Vec<_>>().join(" "))
}

fn head(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    File::open(path)?.take(PRINTED_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Waits for the end of a process; None if it takes longer.
fn wait(child: &mut Child, within: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
}
