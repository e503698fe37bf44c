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
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
    let package = root.join("crates/python");
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
    carry_out(pip().arg("maturin>=1.9,<2").arg("-r").arg(package.join("tests/requirements.txt")))?;
    let wheels =
        root.join("target").join(if arguments.release { "wheels" } else { "wheels-debug" });
    fs::remove_dir_all(&wheels).ok();
    let profile = if arguments.release { "release" } else { "dev" };
    let mut maturin = Command::new(&python);
    maturin.args(["-m", "maturin", "build", "--quiet", "--profile", profile, "--out"]);
    carry_out(maturin.arg(&wheels).current_dir(&package))?;
    carry_out(pip().args(["--force-reinstall", "--no-deps"]).arg(wheel(&wheels)?))?;
    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "--start-directory"]).arg(package.join("tests"));
    // Elsewhere, so that the package is the one that was installed.
    carry_out(tests.current_dir(&environment))
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
