//! The load engine against fio with the same engine and settings, on the same file, in turn: throughput, latency, and
//! commands for each second of processor time.

mod t_io_uring;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Setting;
use super::comparison::{Comparison, Goal, Unit};
use super::program::{self, number};
use super::rounds::{Contestant, Figures, interleaved};

const FILE_BYTES: &str = "8GiB";
const ROUND: &str = "6s";

/// Name, and options of `longtake measure run`.
const CASES: [(&str, &[&str]); 4] = [
    (
        "4 KiB random reads, depth 32",
        &["--read", "1", "--pattern", "random", "--block", "4KiB", "--depth", "32"],
    ),
    (
        "4 KiB random reads, depth 1",
        &["--read", "1", "--pattern", "random", "--block", "4KiB", "--depth", "1"],
    ),
    ("128 KiB sequential reads, depth 8", &["--read", "1", "--block", "128KiB", "--depth", "8"]),
    ("1 MiB sequential writes, depth 8", &["--write", "1", "--block", "1MiB", "--depth", "8"]),
];

/// What one run came to.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    commands_per_s: f64,
    mean_s: f64,
    p99_s: f64,
    commands_per_cpu_s: f64,
}

/// Runs it.
///
/// # Errors
/// If the file can't be made, or fio or Longtake fails.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let directory = setting.dir.join("load");
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let rig = Rig {
        file: directory.join("target"),
        scratch: directory.join("scratch"),
        longtake: setting.longtake()?,
    };
    let _pages = HugePages::reserve()?;
    rig.fill()?;
    let mut found = Vec::new();
    for (name, options) in CASES {
        let (ours, theirs) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let keep = |to: &RefCell<Vec<Outcome>>, outcome: Outcome| {
            to.borrow_mut().push(outcome);
            outcome.commands_per_s
        };
        let contestants: [Contestant<'_>; 2] = [
            Box::new(|| rig.ours(options).map(|outcome| keep(&ours, outcome))),
            Box::new(|| rig.fio(options).map(|outcome| keep(&theirs, outcome))),
        ];
        interleaved(setting.rounds, false, contestants)?;
        let (ours, theirs) = (ours.into_inner(), theirs.into_inner());
        let mut compare = |what: &str, unit, goal, of: fn(&Outcome) -> f64| {
            found.push(Comparison {
                benchmark: "load",
                what: format!("{name}: {what}"),
                reference: Some(("fio".to_owned(), Figures(theirs.iter().map(of).collect()))),
                ours: Figures(ours.iter().map(of).collect()),
                unit,
                goal: Some(goal),
            });
        };
        compare("throughput", Unit::CommandsPerS, Goal::Within(0.02), |o| o.commands_per_s);
        compare("mean latency", Unit::Seconds, Goal::Within(0.05), |o| o.mean_s);
        compare("99 % latency", Unit::Seconds, Goal::Within(0.05), |o| o.p99_s);
        compare("commands a second of processor time", Unit::CommandsPerS, Goal::Ratio(1.2), |o| {
            o.commands_per_cpu_s
        });
    }
    found.extend(
        setting
            .t_io_uring
            .as_deref()
            .map(|theirs| rig.against(theirs, setting.rounds))
            .transpose()?,
    );
    fs::remove_dir_all(&directory).with_context(|| format!("removing {}", directory.display()))?;
    Ok(found)
}

struct Rig {
    file: PathBuf,
    scratch: PathBuf,
    longtake: PathBuf,
}

impl Rig {
    /// A file of bytes that were written, so that no read is of a hole.
    fn fill(&self) -> Result<()> {
        let size = ["--write", "1", "--block", "1MiB", "--depth", "8", "--bytes", FILE_BYTES];
        self.measure(&size).map(|_| ())
    }

    /// Processor time against fio's `t/io_uring`.
    fn against(&self, theirs: &Path, rounds: u32) -> Result<Comparison> {
        let (name, options) = CASES[0];
        let contestants: [Contestant<'_>; 2] = [
            Box::new(|| self.ours(options).map(|outcome| outcome.commands_per_cpu_s)),
            Box::new(|| t_io_uring::reads_per_cpu_s(theirs, &self.file)),
        ];
        let [ours, reference] = interleaved(rounds, true, contestants)?;
        Ok(Comparison {
            benchmark: "load",
            what: format!("{name}: commands a second of processor time"),
            reference: Some(("fio's t/io_uring".to_owned(), reference)),
            ours,
            unit: Unit::CommandsPerS,
            goal: Some(Goal::Ratio(0.95)),
        })
    }

    fn measure(&self, options: &[&str]) -> Result<Value> {
        fs::remove_dir_all(&self.scratch).ok();
        let mut command = Command::new(&self.longtake);
        command
            .args(["measure", "run", "--json", "--size", FILE_BYTES])
            .args(options)
            .arg("--erase")
            .arg(&self.file);
        command.arg("--output").arg(&self.scratch).arg(&self.file);
        let output = program::run(&mut command)?;
        serde_json::from_slice(&output).context("reading what longtake measured")
    }

    fn ours(&self, options: &[&str]) -> Result<Outcome> {
        let options: Vec<&str> =
            options.iter().copied().chain(["--for", ROUND, "--warm-up", "1s"]).collect();
        let measured = self.measure(&options)?["step"]["measurement"].take();
        let result = &measured["results"][0];
        let percentiles = result["service"]["percentiles"].as_array();
        let p99 = percentiles.and_then(|all| all.iter().find(|pair| pair[0] == 99.0));
        Ok(Outcome {
            commands_per_s: number(result, "/commands_per_s")?,
            mean_s: number(result, "/service/mean_ns")? / 1e9,
            p99_s: number(p99.context("no 99 % latency")?, "/1")? / 1e9,
            commands_per_cpu_s: 1e9 / number(&measured, "/harness/cpu_ns_per_command")?,
        })
    }

    /// The very workload that longtake prints, as fio runs it.
    fn fio(&self, options: &[&str]) -> Result<Outcome> {
        let mut command = Command::new(&self.longtake);
        command.args([
            "measure",
            "run",
            "--print",
            "fio",
            "--size",
            FILE_BYTES,
            "--for",
            ROUND,
            "--warm-up",
            "1s",
        ]);
        let job = program::run(command.args(options).arg(&self.file))?;
        // One kind of percentiles, as fio has by default: the second would cost it processor time. Huge pages and commands
        // handed over four at a time, as Longtake does: without these fio is slower on blocks that fill pages.
        let job = String::from_utf8_lossy(&job)
            .replace("clat_percentiles=1", "clat_percentiles=0")
            .replace(
                "[global]",
                "[global]\niomem=mmaphuge\niodepth_batch=4\niodepth_batch_complete_max=32",
            );
        let path = self.scratch.with_extension("fio");
        fs::write(&path, job).with_context(|| format!("writing {}", path.display()))?;
        let output = program::run(Command::new("fio").arg("--output-format=json").arg(&path))?;
        let start = output.iter().position(|&b| b == b'{').context("fio printed no JSON")?;
        let report: Value =
            serde_json::from_slice(&output[start..]).context("reading fio's JSON")?;
        let job = &report["jobs"][0];
        if job["error"] != 0 {
            bail!("fio failed: {job}");
        }
        let side =
            if job["read"]["total_ios"].as_u64() > Some(0) { &job["read"] } else { &job["write"] };
        let commands_per_s = number(side, "/iops")?;
        let busy = (number(job, "/usr_cpu")? + number(job, "/sys_cpu")?) / 100.0;
        Ok(Outcome {
            commands_per_s,
            mean_s: number(side, "/lat_ns/mean")? / 1e9,
            p99_s: number(side, "/lat_ns/percentile/99.000000")? / 1e9,
            commands_per_cpu_s: commands_per_s / busy,
        })
    }
}

/// Reserved huge pages, for fio's buffers and ours; the number that was there before comes back in the end.
struct HugePages {
    before: String,
}

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";
/// 128 MiB of pages of 2 MiB.
const PAGES: u64 = 64;

impl HugePages {
    fn reserve() -> Result<Self> {
        let attempt = || format!("reserving huge pages by {RESERVED} (it takes root)");
        let before = fs::read_to_string(RESERVED).with_context(attempt)?;
        if before.trim().parse::<u64>().unwrap_or(0) < PAGES {
            fs::write(RESERVED, PAGES.to_string()).with_context(attempt)?;
        }
        Ok(Self { before })
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        fs::write(RESERVED, self.before.trim()).ok();
    }
}
