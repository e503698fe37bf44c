//! `cargo xtask vm`: Longtake in a virtual machine with the real NVMe driver and six emulated drives.
//!
//! Each scenario boots a machine of its own from a Debian kernel, runs its script as the only program
//! beside init, and is judged by the files that the guest hands over. Works without KVM and without any
//! file system image: the whole guest is one archive in memory.

mod bank;
mod boot;
mod drives;
mod facts;
mod image;
mod kernel;
mod machine;
mod measure;
mod packages;
mod programs;
mod qmp;
mod report;
mod scenario;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use scenario::{Scenario, Tools};

/// `vm`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which scenarios [default: all; `--list` names them].
    scenarios: Vec<String>,
    /// Name the scenarios and stop.
    #[arg(long)]
    list: bool,
    /// Where the kernel is kept, and the drives, logs and handed-over files of each run
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
}

/// Every scenario, in the order in which all of them run.
fn scenarios() -> Vec<Box<dyn Scenario>> {
    vec![
        Box::new(boot::Boot),
        Box::new(facts::Facts),
        Box::new(bank::Bank),
        Box::new(measure::Measure),
    ]
}

/// Runs scenarios, one machine after another, and prints what each showed.
///
/// # Errors
/// If a machine can't be made, or any scenario fails. The rest run all the same.
pub fn run(arguments: &Arguments) -> Result<()> {
    let all = scenarios();
    if arguments.list {
        for scenario in &all {
            println!("{:10} {}", scenario.name(), scenario.about());
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
    let tools = Tools {
        kernel: kernel::fetch(&dir.join("kernel"))?,
        accelerator: arguments.accel.clone(),
        longtake: arguments.program.clone().map_or_else(programs::longtake, Ok)?,
    };
    let mut failed = Vec::new();
    for scenario in all {
        let name = scenario.name();
        if !arguments.scenarios.is_empty() && !arguments.scenarios.iter().any(|n| n == name) {
            continue;
        }
        eprintln!("running {name}: {}", scenario.about());
        match scenario::play(scenario.as_ref(), &tools, &dir.join(name)) {
            Ok(shown) => {
                for line in shown {
                    println!("  {line}");
                }
                println!("{name}: passed");
            }
            Err(error) => {
                eprintln!("{name}: FAILED: {error:#}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}
