//! One recording with its accidents, and what is found afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base::{ByteSize, Random, Rate};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::vm::account::{Account, number};
use crate::vm::packets;

use super::found;
use super::members::Members;
use super::recorder::{Course, Recorder};

/// Lengths of packets.
const PACKET_BYTES: u16 = 1500;
/// Accidents come so far apart on average.
const ACCIDENT_EVERY: Duration = Duration::from_secs(6);
/// After so long every part of the recorder has been in use.
const SETTLED_AFTER: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A member that crawls: some chunks a minute.
const CRAWL_BYTES_PER_S: u64 = 200_000;
/// One that stands still: not a block passes.
const STILL_BYTES_PER_S: u64 = 1;
const MONITOR_EVERY: Duration = Duration::from_secs(30);

/// What stays the same from round to round.
#[derive(Debug)]
pub struct Rules {
    /// The program.
    pub program: PathBuf,
    /// What is recorded a second.
    pub rate: Rate,
    /// For chunk buffers.
    pub memory: ByteSize,
    /// Where files go.
    pub dir: PathBuf,
}

/// How a recording came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was asked to stop.
    Stopped,
    /// kill -9.
    Killed,
    /// All was protected, so that the ring had nothing to reuse.
    Full,
}

/// What one recording came to.
#[derive(Debug)]
pub struct Round {
    /// Its end.
    pub ending: Ending,
    /// How long it went on.
    pub time: Duration,
    /// Accidents by kind.
    pub accidents: BTreeMap<&'static str, u64>,
    /// Chunks that it said were acknowledged.
    pub acknowledged: u64,
    /// Packets that were read back while it went on.
    pub checked_beside: u64,
    /// What was found afterwards.
    pub account: Account,
    /// Bytes of memory that it had.
    pub memory: Course,
    /// Descriptors that it had.
    pub descriptors: Course,
}

impl Round {
    /// Memory at its end beyond that of its first seconds, in bytes.
    pub fn growth(&self) -> u64 {
        self.memory.last.saturating_sub(self.memory.first)
    }

    /// In a line.
    pub fn told(&self) -> String {
        let accidents: Vec<_> =
            self.accidents.iter().map(|(name, count)| format!("{count} {name}")).collect();
        format!(
            "{:?} after {} s; {} of {} packets on the media, {} given up, {} missing and named, {}; {} chunks acknowledged; \
             memory {} to {}, {} descriptors; {}",
            self.ending,
            self.time.as_secs(),
            self.account.on_media,
            self.account.offered,
            self.account.overwritten,
            self.account.missing,
            self.account.losses(),
            self.acknowledged,
            ByteSize(self.memory.first),
            ByteSize(self.memory.last),
            self.descriptors.last,
            if accidents.is_empty() { "no accidents".to_owned() } else { accidents.join(", ") },
        )
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let course = |of: &Course| json!({"first": of.first, "last": of.last, "most": of.most});
        json!({
            "ending": format!("{:?}", self.ending).to_lowercase(), "seconds": self.time.as_secs_f64(),
            "accidents": self.accidents, "acknowledged_chunks": self.acknowledged,
            "checked_beside_packets": self.checked_beside, "state": self.account.state,
            "offered_packets": self.account.offered, "lost_packets": self.account.lost,
            "on_media_packets": self.account.on_media, "overwritten_packets": self.account.overwritten,
            "missing_packets": self.account.missing,
            "memory_bytes": course(&self.memory), "descriptors": course(&self.descriptors),
        })
    }
}

impl Rules {
    /// Makes the array.
    ///
    /// # Errors
    /// If the program refuses.
    pub fn create(&self, members: &Members) -> Result<()> {
        let mut create = Command::new(&self.program);
        create.args(["array", "create", "--name", "soak", "--segment", "8MiB", "--chunk", "1MiB"]);
        for target in members.targets() {
            create.args([&target, "--erase", &target]);
        }
        crate::vm::programs::run(&mut create).map(drop)
    }

    /// One recording.
    ///
    /// # Errors
    /// If anything that was said to be stored is neither found nor named.
    pub fn play(
        &self,
        members: &mut Members,
        length: Duration,
        random: &mut Random,
    ) -> Result<Round> {
        let array = members.targets().join(",");
        let mut scene = Scene {
            recorder: Recorder::start(&mut self.record(members, &array))?,
            rules: self,
            members,
            array: &array,
            until: Vec::new(),
            accidents: BTreeMap::new(),
            failed: None,
            checked: 0,
            memory: Course::default(),
            descriptors: Course::default(),
        };
        let started = Instant::now();
        scene.go_on(started, length, random)?;
        let ending = match random.below(6) {
            0..3 => Ending::Stopped,
            3..5 => Ending::Killed,
            // A member that has failed keeps the others from being told what is protected.
            _ if scene.failed.is_some() => Ending::Stopped,
            _ => Ending::Full,
        };
        let time = started.elapsed();
        scene.end(ending)?;
        let Scene { recorder, accidents, checked, memory, descriptors, .. } = scene;
        let account = self.account(&array)?;
        self.judge(&account, &recorder, ending, &array)?;
        Ok(Round {
            ending,
            time,
            accidents,
            acknowledged: recorder.acknowledged.len() as u64,
            checked_beside: checked,
            account,
            memory,
            descriptors,
        })
    }

    /// A `longtake record` command that writes to the array as a ring, until it is stopped.
    fn record(&self, members: &Members, array: &str) -> Command {
        let mut command = members.command(&self.program);
        command.args(["record", "--json", "--keep-privileges"]);
        command.args(["--when-full", "wrap", "--to", array]);
        command.args(["--from", &format!("synthetic:{}B/s,size={PACKET_BYTES}", self.rate.0)]);
        command.args(["--memory", &self.memory.0.to_string(), "--flush-interval", "1s"]);
        command
    }

    /// Runs the program to its end; what it printed, how it ended, what it complained.
    fn ask(&self, words: &[&str]) -> Result<(Vec<u8>, i32, String)> {
        let output = Command::new(&self.program)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("starting {}", self.program.display()))?;
        let code = output.status.code().unwrap_or(-1);
        Ok((output.stdout, code, String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// All that can be known of the array's last take, held together.
    fn account(&self, array: &str) -> Result<Account> {
        let file = self.dir.join("take.pcapng");
        found::account(&mut |words| self.ask(words), array, &file, PACKET_BYTES, 1)
    }

    /// What an ending may and may not leave behind.
    fn judge(
        &self,
        account: &Account,
        recorder: &Recorder,
        ending: Ending,
        array: &str,
    ) -> Result<()> {
        let (printed, _, _) = self.ask(&["ledger", array, "--json"])?;
        let take: Value = serde_json::from_slice(&printed).context("ledger --json")?;
        let mut gaps = Vec::new();
        for gap in take["gaps"].as_array().into_iter().flatten() {
            gaps.push(number(gap, "/first_sequence")?..=number(gap, "/last_sequence")?);
        }
        let gone = recorder.acknowledged.iter().find(|n| gaps.iter().any(|gap| gap.contains(n)));
        if let Some(gone) = gone {
            bail!("chunk {gone} was acknowledged and is missing: {take}");
        }
        if ending == Ending::Killed {
            ensure!(account.state == "cut short", "a killed take is {}", account.state);
            return Ok(());
        }
        ensure!(
            account.state == "complete" && account.missing == 0,
            "the take is {}, {} packets are missing",
            account.state,
            account.missing
        );
        let full = account.lost.get("array_full").copied().unwrap_or(0);
        ensure!(
            (full > 0) == (ending == Ending::Full),
            "{full} packets lost to a full array, {ending:?}"
        );
        Ok(())
    }
}

/// A recording and all that befalls it.
struct Scene<'a> {
    recorder: Recorder,
    rules: &'a Rules,
    members: &'a Members,
    array: &'a str,
    /// When limits are to be lifted, by member.
    until: Vec<(Instant, usize)>,
    accidents: BTreeMap<&'static str, u64>,
    /// The member that has failed. It is healed when the recording is over.
    failed: Option<usize>,
    /// Packets that were read back meanwhile.
    checked: u64,
    memory: Course,
    descriptors: Course,
}

impl Scene<'_> {
    /// Lets the recording go on for this long, with accidents, and watches what the recorder uses.
    fn go_on(&mut self, started: Instant, length: Duration, random: &mut Random) -> Result<()> {
        let mut shown = started;
        while started.elapsed() < length {
            thread::sleep(LOOK_EVERY);
            self.recorder.hear();
            if !self.recorder.is_running()? {
                let (status, complaints) = self.recorder.end()?;
                bail!("the recorder ended by itself ({status}): {complaints}");
            }
            let settled = started.elapsed() > SETTLED_AFTER;
            if let Some((bytes, count)) = self.recorder.uses() {
                self.memory.add(bytes, settled);
                self.descriptors.add(count, settled);
            }
            self.recover()?;
            let odds = ACCIDENT_EVERY.as_millis() / LOOK_EVERY.as_millis();
            if random.one_in(odds as u64) {
                self.accident(random)?;
            }
            if shown.elapsed() > MONITOR_EVERY {
                shown = Instant::now();
                eprintln!(
                    "  {} s: memory {}, {} descriptors, {} of {} packets lost",
                    started.elapsed().as_secs(),
                    ByteSize(self.memory.last),
                    self.descriptors.last,
                    self.recorder.progress["lost_packets"],
                    self.recorder.progress["offered_packets"],
                );
            }
        }
        Ok(())
    }

    /// Lifts limits whose time is over.
    fn recover(&mut self) -> Result<()> {
        let now = Instant::now();
        for &(until, member) in &self.until {
            if until <= now {
                self.members.limit(member, None)?;
            }
        }
        self.until.retain(|(until, _)| *until > now);
        Ok(())
    }

    fn accident(&mut self, random: &mut Random) -> Result<()> {
        let member = random.below(self.members.count() as u64) as usize;
        let kind = random.below(13);
        let mut seconds =
            |least: u64, most: u64| Duration::from_secs(least + random.below(most - least + 1));
        let name = match kind {
            0..3 => {
                self.hold(member, CRAWL_BYTES_PER_S, seconds(3, 10))?;
                "members crawled"
            }
            3..5 => {
                self.hold(member, STILL_BYTES_PER_S, seconds(1, 6))?;
                "members stood still"
            }
            5 => {
                let time = seconds(2, 5);
                for member in 0..self.members.count() {
                    self.hold(member, STILL_BYTES_PER_S, time)?;
                }
                "times all stood still"
            }
            6 if self.failed.is_none() => {
                self.members.fail(member)?;
                self.failed = Some(member);
                "members failed"
            }
            6..9 => {
                self.protect(seconds(0, 1).is_zero())?;
                "changes of protection"
            }
            _ if self.failed.is_none() => {
                self.extract(seconds(1, 8))?;
                "spans read meanwhile"
            }
            // What a member that is gone holds can't be read before it is back.
            _ => return Ok(()),
        };
        *self.accidents.entry(name).or_default() += 1;
        Ok(())
    }

    fn hold(&mut self, member: usize, bytes_per_s: u64, time: Duration) -> Result<()> {
        self.members.limit(member, Some(bytes_per_s))?;
        self.until.retain(|(_, held)| *held != member);
        self.until.push((Instant::now() + time, member));
        Ok(())
    }

    /// Protects the last seconds, or lets everything go.
    fn protect(&mut self, let_go: bool) -> Result<()> {
        let words: &[&str] = if let_go {
            &["unprotect", self.array, "--all"]
        } else {
            &["protect", self.array, "--since", "-3s", "--until", "-1s"]
        };
        let (_, code, complaint) = self.rules.ask(words)?;
        // A member that fails or stands still keeps superblocks from being changed, and there may be nothing to let go.
        let excused = let_go || self.failed.is_some() || !self.until.is_empty();
        ensure!(code == 0 || excused, "{words:?} ended with {code}: {complaint}");
        Ok(())
    }

    /// Reads a span of the last seconds, every packet of which must be right.
    fn extract(&mut self, ago: Duration) -> Result<()> {
        let file = self.rules.dir.join("span.pcapng");
        let path = file.to_str().context("the folder's path is text")?;
        let (since, until) = (format!("-{}s", ago.as_secs() + 1), format!("-{}s", ago.as_secs()));
        let words =
            ["extract", self.array, "--since", &since, "--until", &until, "-o", path, "-y", "-q"];
        let (_, code, complaint) = self.rules.ask(&words)?;
        // What a member that stands still has taken is not there yet.
        let excused = code == 3 && !self.until.is_empty();
        ensure!(code == 0 || excused, "{words:?} ended with {code}: {complaint}");
        let held = packets::held(Path::new(path), PACKET_BYTES, 1)?;
        let sound = held["wrong"] == 0
            && held["queues"].as_array().is_some_and(|queues| {
                queues.iter().all(|queue| queue["in_order"] == true && queue["duplicates"] == 0)
            });
        ensure!(sound, "what was read while recording is not right: {held}");
        self.checked += number(&held, "/packets")?;
        fs::remove_file(&file)?;
        Ok(())
    }

    /// Brings the recording to its end, and takes back what befell its members.
    fn end(&mut self, ending: Ending) -> Result<()> {
        match ending {
            Ending::Killed => {
                self.recorder.signal(Signal::SIGKILL)?;
                self.members.heal()?;
                self.recorder.end()?;
            }
            Ending::Stopped => {
                // A member that stands still would hold up the end.
                for member in 0..self.members.count() {
                    self.members.limit(member, None)?;
                }
                self.recorder.signal(Signal::SIGINT)?;
                let (status, complaints) = self.recorder.end()?;
                let code = status.code();
                ensure!(matches!(code, Some(0 | 3)), "it ended with {status}: {complaints}");
                self.members.heal()?;
            }
            Ending::Full => {
                for member in 0..self.members.count() {
                    self.members.limit(member, None)?;
                }
                let words = ["protect", self.array, "--since", "0", "--until", "4000000000"];
                let (_, code, complaint) = self.rules.ask(&words)?;
                ensure!(code == 0, "{words:?} ended with {code}: {complaint}");
                let (status, complaints) = self.recorder.end()?;
                ensure!(status.code() == Some(3), "it ended with {status}: {complaints}");
                self.members.heal()?;
                let (_, code, complaint) = self.rules.ask(&["unprotect", self.array, "--all"])?;
                ensure!(code == 0, "unprotect ended with {code}: {complaint}");
            }
        }
        let failed = self.failed.is_some();
        ensure!(
            self.recorder.failed <= u64::from(failed),
            "{} members failed by themselves",
            self.recorder.failed
        );
        Ok(())
    }
}
