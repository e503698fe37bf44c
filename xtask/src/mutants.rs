//! `cargo xtask mutants`: a seeded sample of small changes to the code, each of which the tests of its crate should
//! notice. cargo-mutants makes the changes and runs the tests.

mod sample;
mod scores;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use sample::{Batch, Mutant};
use scores::Scores;

/// Mutants that one run of cargo-mutants takes: enough to make its copy of the tree worth while, few enough that a
/// short sample reaches every crate.
const BATCH: usize = 12;
/// How often a run is checked for its end.
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// How long cargo-mutants may take to end after an interrupt.
const END_WITHIN: Duration = Duration::from_secs(30);
/// Exit codes of cargo-mutants after a whole run: all caught, some missed, some timed out.
const ENDS: [i32; 3] = [0, 2, 3];

/// Code under mutation, and the tests of its crate that judge it.
#[derive(Debug)]
struct Subject {
    package: &'static str,
    files: &'static [&'static str],
    /// Arguments of `cargo test`: programs whose tests are quick, so that building is most of a mutant's time.
    tests: &'static [&'static str],
}

/// Code in which an unnoticed fault destroys data: the judgement of what may be written, the media format, and
/// recording, opening, recovering and extracting.
const SUBJECTS: [Subject; 3] = [
    Subject {
        package: "longtake-device",
        files: &[
            "crates/device/src/safety.rs",
            "crates/device/src/target.rs",
            "crates/device/src/holders.rs",
            "crates/device/src/mounts.rs",
            "crates/device/src/signature.rs",
            "crates/device/src/signature/*.rs",
        ],
        // Tests of the bank take long and judge nothing of this.
        tests: &[
            "--lib",
            "--test=all",
            "--",
            "--skip=conformance",
            "--skip=named_drives",
            "--skip=uring",
        ],
    },
    Subject {
        package: "longtake-format",
        files: &["crates/format/src/*.rs"],
        // tshark is no part of the judgement, and may not be installed.
        tests: &["--lib", "--test=all", "--", "--skip=tshark"],
    },
    Subject {
        package: "longtake-recorder",
        files: &[
            "crates/recorder/src/extract.rs",
            "crates/recorder/src/open.rs",
            "crates/recorder/src/open/*.rs",
            "crates/recorder/src/recover.rs",
            "crates/recorder/src/superblocks.rs",
            "crates/recorder/src/takes.rs",
            "crates/recorder/src/takes/*.rs",
            "crates/recorder/src/machine.rs",
            "crates/recorder/src/machine/*.rs",
        ],
        tests: &["--lib", "--test=all"],
    },
];

/// `mutants`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Time for the sample, in minutes. The first mutant takes several: all is built once.
    #[arg(long, value_name = "N", default_value_t = 30)]
    minutes: u64,
    /// Seed of the sample: the same seed tests the same mutants in the same order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mutate this package only: longtake-device, longtake-format or longtake-recorder [default: all].
    #[arg(long, value_name = "P")]
    package: Option<String>,
}

/// Tests mutants until the time is over, then prints the scores by file.
///
/// # Errors
/// If cargo-mutants is missing, or the tests fail without any mutation.
pub fn run(arguments: &Arguments) -> Result<()> {
    let subjects = chosen(arguments.package.as_deref())?;
    let until = Instant::now() + Duration::from_secs(arguments.minutes * 60);
    let bench = Bench::new()?;
    let mut mutants = Vec::new();
    for subject in subjects {
        mutants.extend(bench.list(subject)?);
    }
    eprintln!("{} mutants, in the order of seed {}", mutants.len(), arguments.seed);
    let mut scores = Scores::default();
    let mut checked = Vec::new();
    for batch in sample::batches(mutants, arguments.seed, BATCH) {
        if Instant::now() >= until {
            break;
        }
        let first = !checked.contains(&batch.package);
        scores.add(&bench.test(&batch, first, until)?)?;
        checked.push(batch.package.clone());
        eprintln!("{}", scores.progress());
    }
    print!("{scores}");
    Ok(())
}

/// All subjects, or that of a package, which may be named without its prefix.
fn chosen(package: Option<&str>) -> Result<Vec<&'static Subject>> {
    let suits = |subject: &&Subject| {
        package.is_none_or(|wanted| {
            subject.package == wanted || subject.package.strip_prefix("longtake-") == Some(wanted)
        })
    };
    let chosen: Vec<_> = SUBJECTS.iter().filter(suits).collect();
    if chosen.is_empty() {
        let names = SUBJECTS.map(|subject| subject.package).join(", ");
        bail!("--package {}: choose one of {names}", package.unwrap_or_default());
    }
    Ok(chosen)
}

/// cargo-mutants in this workspace.
struct Bench {
    root: PathBuf,
    /// Its results, and what the mutated copies are built into.
    work: PathBuf,
}

impl Bench {
    fn new() -> Result<Self> {
        let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
        let work = root.join("target/mutants");
        fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
        let bench = Self { root, work };
        let version = bench.command().arg("--version").stderr(Stdio::null()).output();
        ensure!(
            version.is_ok_and(|output| output.status.success()),
            "cargo-mutants is not installed; install it with `cargo install cargo-mutants --locked`"
        );
        Ok(bench)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg("mutants").current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// Every mutant of a subject.
    fn list(&self, subject: &Subject) -> Result<Vec<Mutant>> {
        let mut command = self.command();
        command.args(["--list", "--json", "--package", subject.package]);
        command.args(subject.files.iter().flat_map(|file| ["--file", file]));
        let text = crate::vm::programs::run(&mut command)?;
        let found: Value = serde_json::from_str(&text).context("reading the list of mutants")?;
        sample::mutants(&found)
    }

    /// Tests a batch until its end or the given instant. Returns the outcomes as cargo-mutants wrote them.
    fn test(&self, batch: &Batch, first: bool, until: Instant) -> Result<Value> {
        let outcomes = self.work.join("mutants.out/outcomes.json");
        if outcomes.exists() {
            fs::remove_file(&outcomes)?;
        }
        let subject = SUBJECTS.iter().find(|subject| subject.package == batch.package);
        let subject = subject.context("a batch is of a subject's package")?;
        let mut command = self.command();
        command.args(["--jobs", "1", "--package", subject.package, "--no-shuffle"]);
        command.arg("--output").arg(&self.work);
        if !first {
            // The tests of this package passed before. Without that run the time limit must be given.
            command.args(["--baseline", "skip", "--timeout", "300"]);
        }
        command.args(batch.names().flat_map(|name| ["--re".to_owned(), name]));
        command.arg("--").args(subject.tests);
        // What copies have in common, wherever they lie, is built once.
        command.env("CARGO_TARGET_DIR", self.work.join("build")).stdout(Stdio::null());
        // An interrupt is no fault of cargo-mutants, which would show where in its code it came.
        command.env("RUST_BACKTRACE", "0");
        let child = command.spawn().context("starting cargo mutants")?;
        let ended = wait(child, until)?;
        let text = fs::read_to_string(&outcomes).unwrap_or_else(|_| "{}".to_owned());
        let found: Value = serde_json::from_str(&text).context("reading outcomes.json")?;
        if scores::baseline_failed(&found) {
            let log = self.work.join("mutants.out/log");
            bail!("the tests of {} fail without a mutant: see {}", subject.package, log.display());
        }
        match ended {
            Some(status) if !status.code().is_some_and(|code| ENDS.contains(&code)) => {
                bail!("cargo mutants failed ({status})")
            }
            _ => Ok(found),
        }
    }
}

/// Waits for cargo-mutants, or interrupts it when the time is over: it then ends what it started. Returns how it ended
/// by itself.
fn wait(mut child: Child, until: Instant) -> Result<Option<ExitStatus>> {
    let mut interrupted: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(interrupted.is_none().then_some(status));
        }
        match interrupted {
            None if Instant::now() >= until => {
                let id = i32::try_from(child.id()).context("a process id")?;
                kill(Pid::from_raw(id), Signal::SIGINT).context("interrupting cargo mutants")?;
                interrupted = Some(Instant::now());
            }
            Some(at) if at.elapsed() >= END_WITHIN => child.kill()?,
            _ => {}
        }
        thread::sleep(CHECK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_chosen_by_its_name_with_or_without_the_prefix() {
        let names = |package| -> Vec<&str> {
            chosen(package).unwrap().iter().map(|subject| subject.package).collect()
        };
        assert_eq!(names(None), ["longtake-device", "longtake-format", "longtake-recorder"]);
        assert_eq!(names(Some("format")), ["longtake-format"]);
        assert_eq!(names(Some("longtake-format")), ["longtake-format"]);
        let error = chosen(Some("plan")).unwrap_err().to_string();
        assert!(error.contains("--package plan") && error.contains("longtake-recorder"), "{error}");
    }

    #[test]
    fn every_file_and_test_program_under_mutation_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for subject in &SUBJECTS {
            for file in subject.files {
                assert!(root.join(file.trim_end_matches("*.rs")).exists(), "{file}");
            }
            let tests = root.join(subject.package.replace("longtake-", "crates/")).join("tests");
            for name in subject.tests.iter().filter_map(|test| test.strip_prefix("--test=")) {
                let (file, folder) = (tests.join(format!("{name}.rs")), tests.join(name));
                assert!(file.exists() || folder.join("main.rs").exists(), "{name}");
            }
        }
    }
}
