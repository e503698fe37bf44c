//! `cargo xtask python`: builds the Python package's wheel, installs it into a new environment and runs its tests there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// `python`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Build the wheel as users get it, and keep it in target/wheels.
    #[arg(long)]
    release: bool,
}

/// Builds, installs and tests.
///
/// # Errors
/// If anything can't be installed or built, or a test fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    let python = installed(arguments.release, &["-r", "crates/python/tests/requirements.txt"])?;
    carry_out(Command::new("cargo").args(["build", "--package", "longtake-cli"]))?;
    let mut tests = Command::new(&python);
    tests.env("LONGTAKE_PROGRAM", root()?.join("target/debug/longtake"));
    tests.args(["-m", "unittest", "discover", "--start-directory"]);
    // Elsewhere, so that the package is the one that was installed.
    let elsewhere = python.parent().unwrap_or(&python);
    carry_out(tests.arg(root()?.join("crates/python/tests")).current_dir(elsewhere))
}

/// Builds the package and installs it into an environment, together with `others`, which are arguments of pip. Returns the environment's
/// Python.
///
/// # Errors
/// If anything can't be installed or built.
pub fn installed(release: bool, others: &[&str]) -> Result<PathBuf> {
    let root = root()?;
    let environment = root.join("target/python");
    let python = environment.join("bin/python");
    if !python.exists() {
        carry_out(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let pip = || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    carry_out(pip().arg("maturin>=1.9,<2").args(others).current_dir(&root))?;
    let wheels = root.join("target").join(if release { "wheels" } else { "wheels-debug" });
    fs::remove_dir_all(&wheels).ok();
    let profile = if release { "release" } else { "dev" };
    let mut maturin = Command::new(&python);
    maturin.args(["-m", "maturin", "build", "--quiet", "--profile", profile, "--out"]);
    carry_out(maturin.arg(&wheels).current_dir(root.join("crates/python")))?;
    carry_out(pip().args(["--force-reinstall", "--no-deps"]).arg(wheel(&wheels)?))?;
    Ok(python)
}

fn root() -> Result<PathBuf> {
    Ok(fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?)
}

/// The only wheel in a folder.
fn wheel(folder: &Path) -> Result<PathBuf> {
    let files = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let files: Vec<PathBuf> = files.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    match &files[..] {
        [wheel] => Ok(wheel.clone()),
        _ => bail!("{} holds {} files and not one wheel", folder.display(), files.len()),
    }
}

fn carry_out(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("running {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}
