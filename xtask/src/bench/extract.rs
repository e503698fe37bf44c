//! Getting 1 % of a take of 10 GB back by time, against editcap and tcpdump on the same packets in one
//! pcapng file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::comparison::{Comparison, Goal, Unit};
use super::folder::Folder;
use super::rounds::{Contestant, interleaved};
use super::{Setting, program};

/// Bytes of packets in the take.
const TAKE_BYTES: u64 = 10_000_000_000;
const GOAL: Goal = Goal::Ratio(20.0);

/// Runs it.
///
/// # Errors
/// If the take can't be recorded, a tool fails, or the tools disagree about the packets.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let rig = Rig::record(setting)?;
    let mut found = Vec::new();
    for cold in [true, false] {
        let round = |run: fn(&Rig) -> Result<()>| -> Contestant<'_> {
            let rig = &rig;
            Box::new(move || {
                rig.forget_outputs()?;
                // What the one before wrote is not to be written back at this one's cost.
                nix::unistd::sync();
                if cold {
                    fs::write("/proc/sys/vm/drop_caches", "3")
                        .context("dropping the page cache (it takes root)")?;
                }
                let start = Instant::now();
                run(rig)?;
                Ok(start.elapsed().as_secs_f64())
            })
        };
        let [ours, editcap, tcpdump] = interleaved(
            setting.rounds,
            !cold,
            [round(Rig::longtake), round(Rig::editcap), round(Rig::tcpdump)],
        )?;
        rig.compare()?;
        let state = if cold { "page cache dropped" } else { "page cache warm" };
        for (name, figures) in [
            ("editcap -A -B", editcap),
            (
                "tcpdump -r with a filter that no packet passes (tcpdump has no filter by time)",
                tcpdump,
            ),
        ] {
            found.push(Comparison {
                benchmark: "extract",
                what: format!("longtake extract of 1 % of 10 GB by time, {state}"),
                reference: Some((name.to_owned(), figures)),
                ours: ours.clone(),
                unit: Unit::Seconds,
                goal: Some(GOAL),
            });
        }
    }
    Ok(found)
}

/// A recorded take and the same packets as one file, deleted in the end.
struct Rig {
    directory: Folder,
    longtake: PathBuf,
    /// The middle 1 % of its time, in seconds since 1970 with nanoseconds.
    from: String,
    to: String,
}

impl Rig {
    fn record(setting: &Setting) -> Result<Self> {
        let directory = setting.dir.join("extract");
        fs::create_dir_all(&directory)?;
        let mut rig = Self {
            directory: directory.into(),
            longtake: setting.longtake()?,
            from: String::new(),
            to: String::new(),
        };
        let array = rig.path("array");
        program::run(
            Command::new(&rig.longtake)
                .args(["record", "--from", "synthetic:1GB/s", "--quiet", "--keep-privileges"])
                .args(["--member-size", "3GB", "--until-bytes", &TAKE_BYTES.to_string(), "--to"])
                .arg(&array),
        )?;
        let shown = program::run(
            Command::new(&rig.longtake).args(["array", "show", "--json", "--chunks"]).arg(&array),
        )?;
        let shown: Value = serde_json::from_slice(&shown).context("longtake array show")?;
        let chunks = shown["chunks"].as_array().context("no chunks in longtake array show")?;
        let filled = || chunks.iter().filter(|c| c["packets"].as_u64() > Some(0));
        let first = filled().filter_map(|c| c["first_ns"].as_u64()).min().context("no packets")?;
        let last = filled().filter_map(|c| c["last_ns"].as_u64()).max().context("no packets")?;
        let middle = first + (last - first) / 2;
        rig.from = seconds(middle);
        rig.to = seconds(middle + (last - first) / 100);
        let whole = rig.path("whole.pcapng");
        program::run(
            Command::new(&rig.longtake)
                .args(["extract", "--quiet"])
                .arg(&array)
                .arg("--output")
                .arg(&whole),
        )?;
        Ok(rig)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn forget_outputs(&self) -> Result<()> {
        for name in ["ours.pcapng", "editcap.pcapng", "tcpdump.pcap"] {
            let path = self.path(name);
            if path.exists() {
                fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
            }
        }
        Ok(())
    }

    fn longtake(&self) -> Result<()> {
        program::run(
            Command::new(&self.longtake)
                .args(["extract", "--quiet", "--since", &self.from, "--until", &self.to])
                .arg(self.path("array"))
                .arg("--output")
                .arg(self.path("ours.pcapng")),
        )?;
        Ok(())
    }

    fn editcap(&self) -> Result<()> {
        program::run(
            Command::new("editcap")
                .args(["-A", &self.from, "-B", &self.to])
                .arg(self.path("whole.pcapng"))
                .arg(self.path("editcap.pcapng")),
        )?;
        Ok(())
    }

    fn tcpdump(&self) -> Result<()> {
        program::run(
            Command::new("tcpdump")
                .arg("-r")
                .arg(self.path("whole.pcapng"))
                .arg("-w")
                .arg(self.path("tcpdump.pcap"))
                .arg("less 10"),
        )?;
        Ok(())
    }

    /// Runs ours and editcap once more: both must have found the same packets.
    fn compare(&self) -> Result<()> {
        self.forget_outputs()?;
        self.longtake()?;
        self.editcap()?;
        let [ours, editcap] =
            ["ours.pcapng", "editcap.pcapng"].map(|name| packets(&self.path(name)));
        let (ours, editcap) = (ours?, editcap?);
        // editcap leaves out packets of the very last instant.
        ensure!(
            ours > 0 && ours.abs_diff(editcap) <= 64,
            "longtake extracted {ours} packets, editcap {editcap}"
        );
        Ok(())
    }
}

/// Nanoseconds since 1970 as the tools take them.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// How many packets `capinfos` finds in a file.
///
/// # Errors
/// If it fails.
pub fn packets(path: &Path) -> Result<u64> {
    let output = program::run(Command::new("capinfos").args(["-T", "-r", "-M", "-c"]).arg(path))?;
    let text = String::from_utf8_lossy(&output);
    let last = text.split_whitespace().last().and_then(|word| word.parse().ok());
    last.with_context(|| format!("capinfos on {}: {text}", path.display()))
}
