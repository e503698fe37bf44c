//! `cargo xtask dist`: what an installation has beside the program, below target/dist: manual pages, completions, a Debian package.

mod package;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The test that writes the manual pages, and the variable that tells it where to (`crates/cli/src/commands/manual.rs`).
const MANUAL: (&str, &str) = (
    "commands::manual::every_command_has_a_manual_page_that_groff_reads_without_a_warning",
    "LONGTAKE_MANUAL",
);

/// Shells, and the names below which they look for a program's completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/longtake"),
    ("zsh", "zsh/vendor-completions/_longtake"),
    ("fish", "fish/vendor_completions.d/longtake.fish"),
];

/// `dist`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The program [default: built with `cargo build --release`].
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Also make a Debian package of it, with the user and the service.
    #[arg(long)]
    deb: bool,
    /// Maintainer of the package, as `Name <address>` [default: $DEBFULLNAME <$DEBEMAIL>, or the author of the newest commit].
    #[arg(long, value_name = "MAINTAINER", value_parser = maintainer)]
    maintainer: Option<String>,
    /// Also install the package in a new Debian below target/dist, record there, and remove it again. Needs root, debootstrap and a
    /// mirror of Debian; takes minutes.
    #[arg(long = "try")]
    trial: bool,
}

/// Writes it all.
///
/// # Errors
/// If something can't be built or written, or the package doesn't do in a new Debian what it is to do.
pub fn run(arguments: &Arguments) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let dist = root.join("target/dist");
    if dist.exists() {
        fs::remove_dir_all(&dist)?;
    }
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => {
            done(cargo(&root).args(["build", "--release", "--package", "longtake-cli"]))?;
            root.join("target/release/longtake")
        }
    };
    let manual = dist.join("man/man1");
    write_manual(&root, &manual)?;
    let completions = dist.join("completions");
    write_completions(&program, &completions)?;
    println!("{}\n{}", manual.display(), completions.display());
    if arguments.deb || arguments.trial {
        let maintainer = match &arguments.maintainer {
            Some(maintainer) => maintainer.clone(),
            None => known_maintainer(&root)?,
        };
        let packaging = root.join("packaging");
        let parts = package::Parts { program, manual, completions, packaging, maintainer };
        let package = package::build(&parts, &dist)?;
        println!("{}", package.display());
        if arguments.trial {
            trial::run(&package, &dist.join("debian"))?;
        }
    }
    Ok(())
}

/// A maintainer as Debian writes one: `Name <address>`, on one line.
fn maintainer(text: &str) -> Result<String, String> {
    let parts = text.trim().strip_suffix('>').and_then(|text| text.split_once(" <"));
    let is_whole = parts.is_some_and(|(name, address)| {
        !name.trim().is_empty()
            && address
                .split_once('@')
                .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
            && !address.contains(['<', '>', ' '])
    });
    if is_whole && !text.contains(char::is_control) {
        Ok(text.trim().to_owned())
    } else {
        Err(format!(
            "'{text}' is no maintainer: give a name and an address, as in 'Ada Example <ada@example.org>'"
        ))
    }
}

/// The maintainer that the environment names, as Debian's tools have it, or the author of the newest commit.
fn known_maintainer(root: &Path) -> Result<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let known = match (variable("DEBFULLNAME"), variable("DEBEMAIL")) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        _ => {
            let words = ["log", "-1", "--format=%an <%ae>"];
            output(Command::new("git").current_dir(root).args(words)).unwrap_or_default()
        }
    };
    maintainer(&known)
        .map_err(|why| anyhow::anyhow!("{why} with --maintainer, or set DEBFULLNAME and DEBEMAIL"))
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Only the program's own tests know its command line as more than text.
fn write_manual(root: &Path, folder: &Path) -> Result<()> {
    let (test, variable) = MANUAL;
    let words = ["test", "--package", "longtake-cli", "--bin", "longtake", "--", "--exact", test];
    done(cargo(root).args(words).env(variable, folder))?;
    ensure!(folder.join("longtake.1").exists(), "no test {test} wrote a manual");
    Ok(())
}

fn write_completions(program: &Path, folder: &Path) -> Result<()> {
    for (shell, name) in COMPLETIONS {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("it is below a folder")?)?;
        let script = output(Command::new(program).args(["completions", shell]))?;
        fs::write(&path, script).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Runs a command, which must end well.
fn done(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// What a command prints, which must end well.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}\n{complaints}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maintainer_is_a_name_and_an_address_on_one_line() {
        for text in ["Ada Example <ada@example.org>", "A. B. C. <a+b@c>"] {
            assert_eq!(maintainer(text), Ok(text.to_owned()));
        }
        for text in
            ["", "Ada", "<ada@example.org>", "Ada <ada>", "Ada <@x>", "Ada <a@b>\nX: y <c@d>"]
        {
            assert!(maintainer(text).is_err(), "{text:?}");
        }
    }
}
