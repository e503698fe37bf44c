//! `cargo xtask fuzz`: libFuzzer on every reader of what comes from outside, a share of the time each.
//!
//! Built with the ordinary toolchain: coverage is the compiler's own, and instead of a sanitizer, which safe code
//! hardly needs, the process's address space is limited.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::vm::programs::{PROFILE, executable};

/// What the compiler and libFuzzer agree on: counters at every edge, and the values that are compared.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";
/// Where build scripts run is not where flags go: those are the target's alone.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// What one process may have, in KiB: memory that is taken because a length says so is a failure.
const ADDRESS_SPACE_KIB: u64 = 4 << 20;
/// An input that takes longer hangs.
const INPUT_WITHIN_S: u32 = 20;
/// The longest input that is tried. Media have parts that are far from each other; texts don't.
const INPUT_BYTES_MAX: u32 = 64 << 10;
const SHOW_EVERY: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// `fuzz`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How long, over all targets and jobs.
    #[arg(long, value_name = "TIME", default_value = "8h")]
    time: base::Duration,
    /// Which target; may be given several times [default: all].
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Name the targets and stop.
    #[arg(long)]
    list: bool,
    /// Targets at a time [default: one for each processor].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Add to fuzz/corpus what has reached something new, and take out what is no longer needed.
    #[arg(long)]
    keep: bool,
    /// Print a line of JSON for each target.
    #[arg(long)]
    json: bool,
}

/// Fuzzes.
///
/// # Errors
/// If the fuzzer can't be built, or any target fails. The rest run all the same.
pub fn run(arguments: &Arguments) -> Result<()> {
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
    let all = targets(&root)?;
    if arguments.list {
        println!("{}", all.join("\n"));
        return Ok(());
    }
    if let Some(unknown) = arguments.targets.iter().find(|name| !all.contains(name)) {
        bail!("no target '{unknown}': there are {}", all.join(", "));
    }
    let chosen = if arguments.targets.is_empty() { all } else { arguments.targets.clone() };
    eprintln!("building the fuzzer (a minute or two the first time)");
    let bench = Bench::new(root)?;
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or_else(processors).clamp(1, chosen.len());
    // Each job has the whole time, and shares it among its targets.
    let each = Duration::from(arguments.time).mul_f64(jobs as f64 / chosen.len() as f64);
    ensure!(
        each >= Duration::from_secs(1),
        "--time: less than a second for each of {} targets",
        chosen.len()
    );
    let waiting = Mutex::new(chosen.iter());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(target) = next(&waiting) {
                    if let Err(error) = one(&bench, target, each, arguments) {
                        eprintln!("{target}: FAILED: {error:#}");
                        if let Ok(mut failed) = failed.lock() {
                            failed.push(target.clone());
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

fn next<'a>(waiting: &Mutex<std::slice::Iter<'a, String>>) -> Option<&'a String> {
    waiting.lock().ok()?.next()
}

/// The targets' names: each has a corpus.
fn targets(root: &Path) -> Result<Vec<String>> {
    let corpora = root.join("fuzz/corpus");
    let mut names = Vec::new();
    for entry in fs::read_dir(&corpora).with_context(|| format!("reading {}", corpora.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The fuzzer and its folders.
struct Bench {
    program: PathBuf,
    /// Kept inputs, by target.
    kept: PathBuf,
    /// Inputs that fail, by target.
    artifacts: PathBuf,
    /// New inputs and logs.
    work: PathBuf,
}

impl Bench {
    fn new(root: PathBuf) -> Result<Self> {
        let work = root.join("target/fuzz");
        let folder = work.to_str().context("the workspace's path is text")?;
        let program = executable(
            &[
                "build",
                "--profile",
                PROFILE,
                "--package",
                "longtake-fuzz",
                "--bin",
                "longtake-fuzz",
                "--target",
                TRIPLE,
                "--target-dir",
                folder,
            ],
            "longtake-fuzz",
            &[("RUSTFLAGS", FLAGS)],
        )?;
        let (kept, artifacts) = (root.join("fuzz/corpus"), root.join("fuzz/artifacts"));
        Ok(Self { program, kept, artifacts, work })
    }

    /// The fuzzer on a target, within its limits.
    fn command(&self, target: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB} && exec \"$0\" \"$@\"")]);
        command.arg(&self.program).env("LONGTAKE_FUZZ", target).stdin(Stdio::null());
        command
            .arg(format!("-timeout={INPUT_WITHIN_S}"))
            .arg(format!("-max_len={INPUT_BYTES_MAX}"))
            .arg(format!("-rss_limit_mb={}", ADDRESS_SPACE_KIB / 2048));
        command
    }
}

/// One target for its share of the time.
fn one(bench: &Bench, name: &str, each: Duration, arguments: &Arguments) -> Result<()> {
    let folder = |of: &Path| {
        let folder = of.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok::<_, anyhow::Error>(folder)
    };
    let (kept, artifacts) = (folder(&bench.kept)?, folder(&bench.artifacts)?);
    let found = folder(&bench.work.join("corpus"))?;
    let log = bench.work.join(format!("{name}.log"));
    let mut command = bench.command(name);
    command
        .arg(format!("-max_total_time={}", each.as_secs().max(1)))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1")
        .args([&found, &kept])
        .stdout(Stdio::null())
        .stderr(File::create(&log)?);
    let started = Instant::now();
    eprintln!("{name}: {} s", each.as_secs());
    let child = command.spawn().with_context(|| format!("starting {}", bench.program.display()))?;
    let status = watch(child, name, &log)?;
    let told = Told::of(&fs::read_to_string(&log).unwrap_or_default());
    let seconds = started.elapsed().as_secs();
    if arguments.json {
        let line = json!({
            "target": name, "seconds": seconds, "executions": told.executions, "coverage": told.coverage,
            "new_inputs": told.new_inputs, "passed": status.success(), "error": told.failure,
        });
        println!("{line}");
    } else if status.success() {
        println!(
            "{name}: {} executions in {seconds} s, {} edges reached, {} new inputs",
            told.executions, told.coverage, told.new_inputs
        );
    }
    if !status.success() {
        let why = told.failure.unwrap_or_else(|| status.to_string());
        bail!(
            "{why}; the input is in {}, all that was said in {}",
            artifacts.display(),
            log.display()
        );
    }
    if arguments.keep {
        keep(bench, name, &kept, &found)?;
    }
    Ok(())
}

/// Waits for the fuzzer's end and passes on how far it is.
fn watch(mut child: Child, name: &str, log: &Path) -> Result<ExitStatus> {
    let mut shown = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if shown.elapsed() >= SHOW_EVERY {
            shown = Instant::now();
            let text = fs::read_to_string(log).unwrap_or_default();
            let last = text.lines().rfind(|line| line.starts_with('#')).unwrap_or("starting");
            eprintln!("{name}: {last}");
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Puts in the kept corpus's place the smallest part of it and of what was found that reaches as much.
fn keep(bench: &Bench, target: &str, kept: &Path, found: &Path) -> Result<()> {
    let merged = bench.work.join(format!("{target}.merged"));
    if merged.exists() {
        fs::remove_dir_all(&merged)?;
    }
    fs::create_dir_all(&merged)?;
    let mut command = bench.command(target);
    command.arg("-merge=1").args([&merged, &kept.to_owned(), &found.to_owned()]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "putting the corpus together failed ({status})");
    let count = fs::read_dir(&merged)?.count();
    ensure!(count > 0, "nothing is worth keeping: {} is as it was", kept.display());
    fs::remove_dir_all(kept)?;
    fs::create_dir_all(kept)?;
    for entry in fs::read_dir(&merged)? {
        let entry = entry?;
        fs::copy(entry.path(), kept.join(entry.file_name()))?;
    }
    fs::remove_dir_all(&merged)?;
    fs::remove_dir_all(found)?;
    eprintln!("{target}: {count} inputs are kept");
    Ok(())
}

/// What libFuzzer says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    executions: u64,
    coverage: u64,
    new_inputs: u64,
    failure: Option<String>,
}

impl Told {
    fn of(log: &str) -> Self {
        let stat = |name: &str| {
            let line = log.lines().rfind(|line| line.starts_with(name));
            line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
        };
        let coverage = log
            .lines()
            .rev()
            .find_map(|line| line.split_once(" cov: ")?.1.split(' ').next()?.parse().ok());
        let failure = log.lines().find(|line| {
            line.contains("panicked at")
                || line.contains("ERROR: libFuzzer")
                || line.contains("memory allocation of")
        });
        Self {
            executions: stat("stat::number_of_executed_units:"),
            coverage: coverage.unwrap_or(0),
            new_inputs: stat("stat::new_units_added:"),
            failure: failure.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_fuzzer_says_of_itself_is_understood() {
        let log = "#2\tINITED cov: 11 ft: 12\n#900\tNEW    cov: 345 ft: 9 corp: 2\n#1000\tDONE   cov: 346 ft: 9\n\
                   stat::number_of_executed_units: 1000\nstat::new_units_added:          7\n";
        let told = Told::of(log);
        assert_eq!((told.executions, told.coverage, told.new_inputs), (1000, 346, 7));
        assert_eq!(told.failure, None);
        let log = "thread '<unnamed>' panicked at src/a.rs:1:2:\nwhat\n==1== ERROR: libFuzzer: deadly signal\n";
        assert!(Told::of(log).failure.is_some_and(|line| line.contains("src/a.rs")));
    }
}
