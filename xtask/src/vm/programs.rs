//! Programs: those that run here, and those built here to run in the guest, with their libraries.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Runs a program to its end and gives what it printed.
///
/// # Errors
/// If it can't be started, or fails; its own last words are in the message.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {command:?}: is it installed?"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        bail!("{command:?} failed ({}): {last}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Longtake's program, built as this one is: together with it, so that libraries are asked for the same features and what was
/// built for this one serves.
///
/// # Errors
/// If it can't be built.
pub fn longtake() -> Result<PathBuf> {
    let words = ["build", "--profile", PROFILE, "--package", "xtask", "--package", "longtake-cli"];
    executable(&words, "longtake", &[])
}

/// The profile of what is run and not measured.
pub const PROFILE: &str = "quick";

/// A test program of one of the workspace's packages, an integration test by its name; with this program, as above.
///
/// # Errors
/// If it can't be built.
pub fn test(package: &str, name: &str) -> Result<PathBuf> {
    let packages = ["--package", "xtask", "--package", package];
    let words = ["test", "--no-run", "--profile", PROFILE, "--test", name];
    executable(&[&words[..], &packages].concat(), name, &[])
}

/// Runs cargo, with some variables set, and finds the executable of the target `name` in what it tells.
///
/// # Errors
/// If it can't be built.
pub fn executable(arguments: &[&str], name: &str, set: &[(&str, &str)]) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut build = Command::new(cargo);
    build.args(arguments).args(["--message-format", "json"]);
    build.envs(set.iter().copied()).current_dir(root);
    run(&mut build)?
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .with_context(|| format!("cargo built {name} without naming the program"))
}

/// The shared libraries that a program loads, its loader among them, where they lie here.
///
/// # Errors
/// If `ldd` can't tell, or a library is missing.
pub fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let told = run(Command::new("ldd").arg(program));
    // A static program has none, and ldd calls that a failure.
    let told = match told {
        Err(error) if format!("{error:#}").contains("not a dynamic executable") => {
            return Ok(Vec::new());
        }
        told => told?,
    };
    let mut found = Vec::new();
    for line in told.lines() {
        if line.contains("not found") {
            bail!("{} needs a library that is not here: {}", program.display(), line.trim());
        }
        // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, or the loader by itself.
        let path = line.split_whitespace().find(|word| word.starts_with('/'));
        found.extend(path.map(PathBuf::from));
    }
    Ok(found)
}
