//! The project's own chores: benchmarks beside their references, and golden files.

mod bench;
mod golden;

use std::process::ExitCode;

use clap::Parser;

/// The project's own chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Measure Longtake beside what it is to be compared with, in one run.
    Bench(bench::Arguments),
    /// Write the media format's golden files.
    Golden(golden::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Chore::parse() {
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Golden(arguments) => golden::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
