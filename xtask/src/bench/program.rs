//! Other programs that a benchmark runs: Longtake itself, and the references.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Longtake's program, built in release mode beside this one.
///
/// # Errors
/// If it can't be built.
pub fn longtake() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut build = Command::new(cargo);
    run(build.args(["build", "--quiet", "--release", "--package", "longtake"]).current_dir(root))?;
    let directory = std::env::current_exe().context("finding this program")?;
    Ok(directory.with_file_name("longtake"))
}

/// Runs a program to its end and gives what it printed.
///
/// # Errors
/// If it can't be started, or fails; its own last words are in the message.
pub fn run(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {command:?}: is it installed?"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rev().find(|line| !line.is_empty()).unwrap_or_default();
        bail!("{command:?} failed ({}): {last}", output.status);
    }
    Ok(output.stdout)
}

/// A number in JSON, by its path of keys and indexes (`/jobs/0/write/bw_bytes`).
///
/// # Errors
/// If there is none.
pub fn number(json: &Value, path: &str) -> Result<f64> {
    json.pointer(path)
        .and_then(Value::as_f64)
        .with_context(|| format!("no number at {path} in the output"))
}
