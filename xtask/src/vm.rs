//! `cargo xtask vm`: Longtake in a virtual machine with the real NVMe driver and six emulated drives.
//!
//! Each scenario boots machines of its own from a Debian kernel, runs its script as the only program
//! beside init, and is judged by the files that the guest hands over. Works without KVM and without any
//! file system image: the whole guest is one archive in memory.

pub mod account;
mod bank;
mod boot;
mod clock;
mod disk;
mod drives;
mod errors;
mod facts;
pub mod handed;
mod image;
mod in_use;
mod kernel;
mod machine;
mod measure;
mod nbd;
mod packages;
pub mod packets;
mod power;
pub mod programs;
mod qmp;
mod record;
mod report;
mod ring;
mod scenario;
mod throttle;
mod unplug;
mod wrong;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;

use scenario::{Guest, Next, Scenario, Stage, Tools};

/// `vm`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// What this program does inside the machine.
    #[command(subcommand)]
    inside: Option<Inside>,
    /// Which scenario; may be given several times [default: all].
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<String>,
    /// Name the scenarios and stop.
    #[arg(long)]
    list: bool,
    /// Run this shell script in a machine with six drives instead, and print what it says.
    #[arg(long, value_name = "FILE", conflicts_with = "scenarios")]
    script: Option<PathBuf>,
    /// What random choices are made from [default: the time, which is told].
    #[arg(long)]
    seed: Option<u64>,
    /// How often `power` cuts it.
    #[arg(long, value_name = "N", default_value_t = 20)]
    cuts: u32,
    /// How many scenarios run at a time [default: as many as there are processors].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Print a line of JSON for each scenario.
    #[arg(long)]
    json: bool,
    /// Where the kernel is kept, and the logs and handed-over files of each run; drives too, of a run that failed
    /// [default: target/vm].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The longtake program to run in the guest [default: built from this workspace].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// QEMU's accelerator. Emulation works everywhere; `kvm` is faster where it works, but a /dev/kvm
    /// that opens is no proof of that: inside another virtual machine the guest may just stand still.
    #[arg(long, default_value = "tcg,thread=multi")]
    accel: String,
    /// QEMU's processor model. Emulated by QEMU before 8.2, the instructions for checksums and for long copies that are left out here
    /// take three to ten times as long as the tables and loops that programs use without them.
    #[arg(long, value_name = "MODEL", default_value = "max,-pclmulqdq,-erms,-avx,-avx2")]
    cpu: String,
}

/// What this program does inside the machine.
#[derive(Debug, clap::Subcommand)]
enum Inside {
    /// Say which packets of a synthetic source a capture on standard input holds.
    #[command(hide = true)]
    Packets(packets::Arguments),
}

/// Every scenario, in the order in which all of them begin.
fn scenarios() -> Vec<Box<dyn Scenario + Sync>> {
    // The longest first, so that none of them is left alone at the end.
    vec![
        Box::new(boot::Boot),
        Box::new(power::Power),
        Box::new(bank::Bank),
        Box::new(unplug::Unplug),
        Box::new(unplug::Parity),
        Box::new(measure::Measure),
        Box::new(throttle::Throttle),
        Box::new(errors::Errors),
        Box::new(record::Record),
        Box::new(in_use::InUse),
        Box::new(wrong::Wrong),
        Box::new(ring::Ring),
        Box::new(clock::Clock),
        Box::new(record::Passthrough),
        Box::new(ring::Full),
        Box::new(facts::Facts),
    ]
}

/// Runs scenarios, and prints what each showed.
///
/// # Errors
/// If a machine can't be made, or any scenario fails. The rest run all the same.
pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(Inside::Packets(arguments)) = &arguments.inside {
        return packets::run(arguments);
    }
    let all = scenarios();
    if arguments.list {
        for scenario in &all {
            println!("{:12} {}", scenario.name(), scenario.about());
        }
        return Ok(());
    }
    for name in &arguments.scenarios {
        if !all.iter().any(|known| known.name() == name) {
            let known: Vec<_> = all.iter().map(|scenario| scenario.name()).collect();
            bail!("no scenario '{name}': there are {}", known.join(", "));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let dir = arguments.dir.clone().unwrap_or_else(|| root.join("target/vm"));
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let dir = fs::canonicalize(&dir)?;
    packages::ensure()?;
    let kernel = kernel::fetch(&dir.join("kernel"))?;
    let longtake = arguments.program.clone().map_or_else(programs::longtake, Ok)?;
    // By its process: building the program may have put another file in its place.
    let packets = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let tools = Tools {
        image: scenario::furnished(&kernel, &longtake, &packets)?,
        kernel,
        accelerator: arguments.accel.clone(),
        processor: arguments.cpu.clone(),
    };
    let seed = crate::seed(arguments.seed);
    if let Some(script) = &arguments.script {
        let dir = &dir.join("script");
        let stage = Stage { tools: &tools, dir, seed, cuts: arguments.cuts };
        return own(&stage, script);
    }
    let asked = |name: &str| arguments.scenarios.iter().any(|asked| asked == name);
    let all: Vec<_> = all
        .into_iter()
        .filter(|scenario| arguments.scenarios.is_empty() || asked(scenario.name()))
        .collect();
    let jobs = arguments.jobs.map_or_else(thread::available_parallelism, Ok)?;
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..jobs.get().min(all.len()) {
            scope.spawn(|| {
                while let Some(scenario) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let dir = &dir.join(scenario.name());
                    let stage = Stage { tools: &tools, dir, seed, cuts: arguments.cuts };
                    if !shown(scenario.as_ref(), &stage, arguments.json) {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(scenario.name());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// Plays a scenario and prints what came of it. Returns whether it passed.
fn shown(scenario: &(dyn Scenario + Sync), stage: &Stage<'_>, as_json: bool) -> bool {
    let (name, seed) = (scenario.name(), stage.seed);
    eprintln!("running {name}: {}", scenario.about());
    let started = Instant::now();
    let outcome = play(scenario, stage);
    let seconds = started.elapsed().as_secs();
    if as_json {
        let error = outcome.as_ref().err().map(|error| format!("{error:#}"));
        println!(
            "{}",
            json!({"scenario": name, "seed": seed, "seconds": seconds, "passed": error.is_none(),
                   "checked": outcome.as_ref().unwrap_or(&Vec::new()), "error": error})
        );
    }
    match &outcome {
        Ok(checked) if !as_json => {
            println!("{name}: passed in {seconds} s: {}", checked.join("; "));
        }
        Ok(_) => {}
        Err(error) => eprintln!("{name}: FAILED after {seconds} s (seed {seed}): {error:#}"),
    }
    outcome.is_ok()
}

/// Runs somebody's own script. What it hands over is in the folder.
fn own(stage: &Stage<'_>, script: &Path) -> Result<()> {
    let text =
        fs::read_to_string(script).with_context(|| format!("reading {}", script.display()))?;
    stage.run(&Guest::new(text), |line, _| {
        println!("{line}");
        Ok(Next::Listen)
    })?;
    eprintln!("what it handed over is in {}", stage.dir.join("files").display());
    Ok(())
}

/// Plays a scenario in an empty folder, and keeps what is large only if it fails.
fn play(scenario: &(dyn Scenario + Sync), stage: &Stage<'_>) -> Result<Vec<String>> {
    let dir = stage.dir;
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let checked = scenario.play(stage)?;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "raw" || kind == "cpio") {
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(checked)
}
