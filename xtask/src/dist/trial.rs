//! A trial of the package: a new Debian, in which it is installed, records, and is removed again.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{done, output};

/// What is done in the new Debian once the package is installed. The take is listed and checked.
const RECORD: &str = "
set -e
longtake --version
getent passwd longtake
systemd-analyze verify --man=no longtake@radar.service longtake-serve.service
longtake record --from synthetic:10MB/s --to /var/lib/longtake/radar --members 2 --member-size 64MiB --for 1s
longtake array check /var/lib/longtake/radar
";

/// Makes a Debian of this machine's release in `folder`, and tries the package there.
///
/// # Errors
/// If debootstrap is missing or fails, or the package doesn't do what it is to do.
pub fn run(package: &Path, folder: &Path) -> Result<()> {
    let release = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let release = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let release = release.context("/etc/os-release names no release of Debian")?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", release]).arg(folder);
    done(&mut debootstrap).context("needs root and `apt-get install debootstrap`")?;
    fs::copy(package, folder.join("longtake.deb"))?;
    in_it(folder, "apt-get update -qq && apt-get install -y -qq ./longtake.deb")?;
    in_it(folder, RECORD)?;
    in_it(folder, "apt-get purge -y -qq longtake")?;
    let left = output(Command::new("find").arg(folder).args(["-name", "*longtake*"]))?;
    // Recordings, users and dpkg's notes stay; what is below /run goes at the next boot.
    let stays = ["longtake.deb", "etc/", "run/", "var/"].map(|path| folder.join(path));
    let left =
        left.lines().filter(|path| !stays.iter().any(|stays| Path::new(path).starts_with(stays)));
    let left: Vec<&str> = left.collect();
    ensure!(left.is_empty(), "these were left behind: {left:?}");
    fs::remove_dir_all(folder)?;
    println!("installed, recorded and removed in Debian {release}");
    Ok(())
}

/// Runs a shell's script in the new Debian, with /proc of its own.
fn in_it(folder: &Path, script: &str) -> Result<()> {
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--root"]);
    shell.arg(folder).args(["/bin/sh", "-c", script]).env("DEBIAN_FRONTEND", "noninteractive");
    done(&mut shell)
}
