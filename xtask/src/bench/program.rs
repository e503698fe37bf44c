//! Other programs that a benchmark runs: Longtake itself, and the references.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::vm::programs::executable;

/// Longtake's program, as users build it.
///
/// # Errors
/// If it can't be built.
pub fn longtake() -> Result<PathBuf> {
    released("longtake-cli", "longtake")
}

/// Goes on as the program that users would build, if this is another one.
///
/// # Errors
/// If it can't be built or started.
pub fn go_on_released() -> Result<()> {
    let this = std::env::current_exe().context("finding this program")?;
    if this.parent().is_some_and(|folder| folder.ends_with("release")) {
        return Ok(());
    }
    eprintln!("building for release");
    let error = Command::new(released("xtask", "xtask")?).args(std::env::args_os().skip(1)).exec();
    Err(error).context("starting what was built for release")
}

fn released(package: &str, name: &str) -> Result<PathBuf> {
    executable(&["build", "--release", "--package", package], name, &[])
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
