//! `cargo xtask commands`: writes the pages below docs/commands from the program's help. A test fails while one is stale.

#[path = "../../crates/cli/tests/command_pages/pages.rs"]
mod pages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// `commands`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The program whose help is shown.
    #[arg(long, value_name = "PATH", default_value = "target/debug/longtake")]
    program: PathBuf,
}

/// Writes a page for each command, and removes pages of commands that no longer exist.
///
/// # Errors
/// If the program can't be run, or a page can't be written.
pub fn run(arguments: &Arguments) -> Result<()> {
    let help = |words: &[String]| {
        let mut command = Command::new(&arguments.program);
        command.args(words).arg("--help").env_remove("COLUMNS");
        command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    help(&[]).with_context(|| {
        format!("running {}: build it with `cargo build`", arguments.program.display())
    })?;
    let pages = pages::pages(|words| help(words).unwrap_or_default());
    ensure!(!pages.is_empty(), "{} lists no commands", arguments.program.display());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/commands");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    for (name, text) in pages {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
