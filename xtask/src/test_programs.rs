//! `xtask tests`: runs the test programs that cargo has built, several at a time. Cargo runs them one after the other, and most of
//! them wait for drives, processes and timers more than they compute.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The packages whose tests take longest, longest first: they begin first, so that the others run beside them.
const LONGEST: [&str; 4] = ["longtake-cli", "longtake-python", "longtake-serve", "longtake-chaos"];

/// `tests`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What `cargo test --no-run --message-format=json` printed.
    built: PathBuf,
    /// Programs at a time.
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
}

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    /// Its package.
    package: String,
    /// What of the package it tests: the library, a program, or a file of `tests`.
    target: String,
    /// The folder of its package, in which it runs.
    folder: PathBuf,
    executable: PathBuf,
}

/// What came of a program.
struct Outcome {
    program: Program,
    passed: bool,
    /// All that it printed.
    output: String,
    took: Duration,
}

/// Runs all of them, and prints what failed and how long each took.
///
/// # Errors
/// If one fails, or there is none.
pub fn run(arguments: &Arguments) -> Result<()> {
    let path = &arguments.built;
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut programs = programs(BufReader::new(file))?;
    ensure!(!programs.is_empty(), "{} names no test program", path.display());
    programs.sort_by_key(|program| {
        LONGEST.iter().position(|package| *package == program.package).unwrap_or(LONGEST.len())
    });
    let mut outcomes = run_all(programs, arguments.jobs.max(1))?;
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    println!("\nseconds of each test program:");
    for Outcome { program, took, .. } in &outcomes {
        println!("{:8.1}  {} {}", took.as_secs_f64(), program.package, program.target);
    }
    let failed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| !outcome.passed)
        .map(|Outcome { program, .. }| format!("{} {}", program.package, program.target))
        .collect();
    if failed.is_empty() { Ok(()) } else { bail!("tests failed: {}", failed.join(", ")) }
}

/// The programs that cargo's messages name.
fn programs(messages: impl BufRead) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(&line.context("reading cargo's messages")?)
            .context("cargo's messages are lines of JSON")?;
        if message["profile"]["test"] == true {
            programs.extend(program(&message));
        }
    }
    Ok(programs)
}

/// The program that a message of cargo names, if it names one.
fn program(message: &Value) -> Option<Program> {
    let manifest = Path::new(message["manifest_path"].as_str()?);
    // path+file:///longtake/crates/cli#longtake-cli@0.1.0, and without the name if the folder has it.
    let id = message["package_id"].as_str()?;
    let folder = manifest.parent()?;
    let named = id.rsplit('#').next()?.split_once('@').map(|(name, _)| name.to_owned());
    Some(Program {
        package: named.or_else(|| Some(folder.file_name()?.to_string_lossy().into_owned()))?,
        target: message["target"]["name"].as_str()?.to_owned(),
        folder: folder.to_owned(),
        executable: message["executable"].as_str()?.into(),
    })
}

/// Runs programs in their order, `jobs` at a time. What one prints appears when it has ended.
fn run_all(programs: Vec<Program>, jobs: usize) -> Result<Vec<Outcome>> {
    let waiting = Mutex::new(programs.into_iter());
    let work = || -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        loop {
            let next = waiting.lock().expect("no other thread panics").next();
            let Some(program) = next else { return Ok(outcomes) };
            let outcome = run_one(program)?;
            report(&outcome);
            outcomes.push(outcome);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().expect("a worker does not panic")?);
        }
        Ok(all)
    })
}

fn run_one(program: Program) -> Result<Outcome> {
    let begun = Instant::now();
    let ended = Command::new(&program.executable)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .output()
        .with_context(|| format!("running {}", program.executable.display()))?;
    let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Outcome {
        passed: ended.status.success(),
        output: printed(&ended.stdout) + &printed(&ended.stderr),
        took: begun.elapsed(),
        program,
    })
}

/// Prints a line for a program that passed, and all that one printed that failed.
fn report(outcome: &Outcome) {
    let Outcome { program, passed, output, .. } = outcome;
    let result = output.lines().rev().find(|line| line.starts_with("test result"));
    let result = result.unwrap_or("it ended without a result");
    let failed = if *passed { String::new() } else { format!("{output}\n") };
    println!("{failed}{} {}: {result}", program.package, program.target);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program_of(folder: &Path, name: &str, script: &str) -> Program {
        let executable = folder.join(name);
        std::fs::write(&executable, format!("#!/bin/sh\n{script}\n")).expect("writing a script");
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&executable, mode).expect("it is ours");
        let (package, target) = (name.to_owned(), "all".to_owned());
        Program { package, target, folder: folder.to_owned(), executable }
    }

    #[test]
    fn cargos_messages_name_programs_with_their_packages_and_folders() {
        let messages = [
            r#"{"reason":"compiler-artifact","package_id":"path+file:///l/crates/cli#longtake-cli@0.1.0","manifest_path":"/l/crates/cli/Cargo.toml","target":{"name":"all"},"profile":{"test":true},"executable":"/l/target/debug/deps/all-1"}"#,
            r#"{"reason":"compiler-artifact","package_id":"path+file:///l/xtask#0.0.0","manifest_path":"/l/xtask/Cargo.toml","target":{"name":"xtask"},"profile":{"test":true},"executable":"/l/target/debug/deps/xtask-1"}"#,
            r#"{"reason":"compiler-artifact","package_id":"x","manifest_path":"/l/a/Cargo.toml","target":{"name":"a"},"profile":{"test":false},"executable":"/l/target/debug/a"}"#,
            r#"{"reason":"compiler-artifact","package_id":"x","manifest_path":"/l/a/Cargo.toml","target":{"name":"a"},"profile":{"test":true},"executable":null}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ];
        let found = programs(messages.join("\n").as_bytes()).expect("they are JSON");
        let names: Vec<_> = found.iter().map(|p| (p.package.as_str(), p.target.as_str())).collect();
        assert_eq!(names, [("longtake-cli", "all"), ("xtask", "xtask")]);
        assert_eq!(found[0].folder, Path::new("/l/crates/cli"));
        assert!(programs("not JSON".as_bytes()).is_err());
    }

    #[test]
    fn every_program_runs_in_its_folder_and_one_that_fails_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let result = "echo 'test result: ok. 1 passed'; pwd";
        let programs = vec![
            program_of(folder.path(), "one", result),
            program_of(folder.path(), "two", "echo 'it broke' >&2; exit 101"),
            program_of(folder.path(), "three", result),
        ];
        let outcomes = run_all(programs, 2).expect("all can be run");
        assert_eq!(outcomes.len(), 3);
        for outcome in outcomes {
            let failed = outcome.program.package == "two";
            assert_eq!(outcome.passed, !failed);
            let expected = if failed { "it broke" } else { folder.path().to_str().expect("text") };
            assert!(outcome.output.contains(expected), "{}", outcome.output);
        }
    }
}
