//! The project's own chores: benchmarks beside their references, golden files, pages of commands, packages, fuzzing, soaking, and
//! virtual machines.

mod attack;
mod bench;
mod chaos;
mod commands;
mod curves;
mod dist;
mod fuzz;
mod golden;
mod mutants;
mod planned;
mod python;
mod soak;
mod test_programs;
mod vm;

use std::process::ExitCode;
use std::time::SystemTime;

use clap::Parser;

/// The project's own chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Attack the built program by seed: hostile devices, files, moments and command lines.
    Attack(attack::Arguments),
    /// Measure Longtake beside what it is to be compared with, in one run.
    Bench(bench::Arguments),
    /// Run the recorder against hostile drives, by seed.
    Chaos(chaos::Arguments),
    /// Write the pages below docs/commands from the program's help.
    Commands(commands::Arguments),
    /// Compare twins with published fill curves of drives that the library does not have.
    Curves(curves::Arguments),
    /// Write manual pages, completions and a Debian package to target/dist.
    Dist(dist::Arguments),
    /// Give every reader of what comes from outside whatever bytes reach most of it.
    Fuzz(fuzz::Arguments),
    /// Write the media format's golden files.
    Golden(golden::Arguments),
    /// Change the code at random places and count the changes that no test notices.
    Mutants(mutants::Arguments),
    /// Compare plans with the least drives that recording on simulated ones finds.
    Planned(planned::Arguments),
    /// Build the Python package, install it into a new environment, and run its tests there.
    Python(python::Arguments),
    /// Record for long onto files, with accidents at random, and hold what is found to what was said.
    Soak(soak::Arguments),
    /// Run the test programs that cargo has built, several at a time.
    Tests(test_programs::Arguments),
    /// Run Longtake in a virtual machine with the real NVMe driver and emulated drives.
    Vm(vm::Arguments),
}

/// The seed that was given, or one made from the time. It is printed, so that a run can be repeated.
fn seed(given: Option<u64>) -> u64 {
    let seed = given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(1, |since| since.as_secs())
    });
    eprintln!("seed {seed}");
    seed
}

fn main() -> ExitCode {
    let outcome = match Chore::parse() {
        Chore::Attack(arguments) => attack::run(&arguments),
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Chaos(arguments) => chaos::run(&arguments),
        Chore::Commands(arguments) => commands::run(&arguments),
        Chore::Curves(arguments) => curves::run(&arguments),
        Chore::Dist(arguments) => dist::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Golden(arguments) => golden::run(&arguments),
        Chore::Mutants(arguments) => mutants::run(&arguments),
        Chore::Planned(arguments) => planned::run(&arguments),
        Chore::Python(arguments) => python::run(&arguments),
        Chore::Soak(arguments) => soak::run(&arguments),
        Chore::Tests(arguments) => test_programs::run(&arguments),
        Chore::Vm(arguments) => vm::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
