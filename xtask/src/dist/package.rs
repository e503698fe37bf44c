//! The Debian package: a tree of files as they will be installed, and dpkg-deb.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{done, output};

/// Files of `packaging`, and where they are installed.
const FILES: [(&str, &str); 7] = [
    ("monitoring/longtake.grafana.json", "usr/share/longtake"),
    ("monitoring/longtake.rules.yml", "usr/share/longtake"),
    ("longtake-serve.service", "usr/lib/systemd/system"),
    ("longtake@.service", "usr/lib/systemd/system"),
    ("longtake.sysusers", "usr/lib/sysusers.d"),
    ("example.conf", "usr/share/doc/longtake"),
    ("debian/copyright", "usr/share/doc/longtake"),
];

/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// What the package is made of.
#[derive(Debug)]
pub struct Parts {
    /// The program.
    pub program: PathBuf,
    /// The folder of its manual pages.
    pub manual: PathBuf,
    /// The folder of its completions, laid out as below /usr/share.
    pub completions: PathBuf,
    /// The folder of the service and of Debian's own files.
    pub packaging: PathBuf,
    /// Who answers for the package: `Name <address>`.
    pub maintainer: String,
}

/// Makes the package, in `folder`. Returns its path.
///
/// # Errors
/// If something can't be read or written, or dpkg-deb is missing or refuses.
pub fn build(parts: &Parts, folder: &Path) -> Result<PathBuf> {
    let tree = folder.join("tree");
    lay_out(parts, &tree)?;
    let version = version(&parts.program)?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let control = control(parts, &tree, &version, architecture)?;
    let debian = new_folder(&tree.join("DEBIAN"))?;
    write(&debian.join("control"), control.as_bytes(), 0o644)?;
    for script in SCRIPTS {
        copy(&parts.packaging.join("debian").join(script), &debian.join(script), 0o755)?;
    }
    let package = folder.join(format!("longtake_{version}-1_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(&tree).arg(&package);
    output(&mut build)?;
    fs::remove_dir_all(&tree)?;
    Ok(package)
}

/// Puts every file where it will be installed.
fn lay_out(parts: &Parts, tree: &Path) -> Result<()> {
    let program = new_folder(&tree.join("usr/bin"))?.join("longtake");
    copy(&parts.program, &program, 0o755)?;
    done(Command::new("strip").arg("--strip-debug").arg(&program))?;
    let manual = new_folder(&tree.join("usr/share/man/man1"))?;
    for page in files(&parts.manual)? {
        let installed = manual.join(page.file_name().context("a page has a name")?);
        copy(&page, &installed, 0o644)?;
        // Without a name and a time in it, the same page gives the same bytes.
        done(Command::new("gzip").args(["--best", "--no-name"]).arg(&installed))?;
    }
    for script in files(&parts.completions)? {
        let installed = tree.join("usr/share").join(script.strip_prefix(&parts.completions)?);
        new_folder(installed.parent().context("it is below a folder")?)?;
        copy(&script, &installed, 0o644)?;
    }
    for (file, place) in FILES {
        // Files are installed below the names that systemd and Debian look for.
        let name = Path::new(file).file_name().context("a file has a name")?;
        let name = name.to_string_lossy().replace(".sysusers", ".conf");
        copy(&parts.packaging.join(file), &new_folder(&tree.join(place))?.join(name), 0o644)?;
    }
    new_folder(&tree.join("etc/longtake"))?;
    Ok(())
}

/// What the program says its version is.
fn version(program: &Path) -> Result<String> {
    let said = output(Command::new(program).arg("--version"))?;
    let first = said.lines().next().and_then(|line| line.split(' ').next_back());
    Ok(first.context("the program says no version")?.to_owned())
}

fn control(parts: &Parts, tree: &Path, version: &str, architecture: &str) -> Result<String> {
    let mut bytes = 0;
    for file in files(tree)? {
        bytes += file.metadata()?.len();
    }
    let libc = match newest_libc(&fs::read(&parts.program)?) {
        Some((major, minor)) => format!("libc6 (>= {major}.{minor})"),
        None => "libc6".to_owned(),
    };
    Ok(format!(
        "Package: longtake
Version: {version}-1
Architecture: {architecture}
Maintainer: {}
Installed-Size: {}
Depends: {libc}, libgcc-s1, systemd | systemd-standalone-sysusers | systemd-sysusers
Recommends: libpcap0.8
Section: net
Priority: optional
Description: sustained recording of network packets on NVMe drives
 Longtake records network packets and sensor streams on NVMe drives, for hours
 or around the clock. It measures the rate that drives sustain, and calculates
 how many of them a recording needs. It counts every packet that it could not
 store, with the reason, and returns the others unchanged.
",
        parts.maintainer,
        bytes.div_ceil(1024)
    ))
}

/// The newest version of the C library whose symbols a program asks for: `GLIBC_2.34` and the like stand in it as text.
fn newest_libc(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let starts = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let versions = starts.filter_map(|(at, _)| {
        let after = &program[at + MARK.len()..];
        let end = after.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        let mut numbers = std::str::from_utf8(&after[..end]).ok()?.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

/// Every file below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A folder, made with those above it. Who made it may have a umask of any kind.
fn new_folder(path: &Path) -> Result<PathBuf> {
    for part in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
        if !part.exists() {
            fs::create_dir(part).with_context(|| format!("creating {}", part.display()))?;
            fs::set_permissions(part, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(path.to_owned())
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    write(to, &bytes, mode)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAINTAINER: &str = "Ada Example <ada@example.org>";

    /// A package of a small program in place of the real one.
    fn package(folder: &Path) -> PathBuf {
        let (manual, completions) = (folder.join("man"), folder.join("completions"));
        write(&new_folder(&manual).unwrap().join("longtake.1"), b".TH longtake 1\n", 0o644)
            .unwrap();
        for (_, name) in super::super::COMPLETIONS {
            let script = completions.join(name);
            new_folder(script.parent().unwrap()).unwrap();
            write(&script, b"# complete\n", 0o644).unwrap();
        }
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
        let program = PathBuf::from("/usr/bin/dd");
        let maintainer = MAINTAINER.to_owned();
        build(&Parts { program, manual, completions, packaging, maintainer }, folder).unwrap()
    }

    /// dpkg on a root of its own, where no program but dpkg's scripts runs. What a package needs isn't there.
    fn dpkg(root: &Path, words: &[&str]) -> Command {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg("--root").arg(root).args(["--force-script-chrootless", "--force-depends"]);
        dpkg.args(["--force-not-root", "--log=/dev/null"]).args(words);
        dpkg
    }

    /// Files and folders below a folder, but for what dpkg itself keeps.
    fn installed(root: &Path) -> Vec<String> {
        let relative = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        let mut found: Vec<String> = files(root).unwrap().iter().map(relative).collect();
        found.retain(|path| !path.starts_with("var/lib/dpkg"));
        found
    }

    #[test]
    fn a_package_installs_what_it_is_to_and_leaves_options_and_users_when_it_is_removed() {
        for (tool, package) in [("dpkg-deb", "dpkg"), ("systemd-sysusers", "systemd")] {
            if Command::new(tool).arg("--version").output().is_err() {
                eprintln!("not tried, for want of {tool}: apt-get install {package}");
                return;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let package = package(folder.path());
        let maintainer =
            Command::new("dpkg-deb").arg("--field").arg(&package).arg("Maintainer").output();
        assert_eq!(String::from_utf8_lossy(&maintainer.unwrap().stdout).trim(), MAINTAINER);
        let root = folder.path().join("root");
        for part in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"] {
            new_folder(&root.join(part)).unwrap();
        }
        write(&root.join("var/lib/dpkg/status"), b"", 0o644).unwrap();
        write(&root.join("var/lib/dpkg/available"), b"", 0o644).unwrap();
        output(&mut dpkg(&root, &["--install", package.to_str().unwrap()])).unwrap();
        let expected = [
            "usr/bin/longtake",
            "usr/lib/systemd/system/longtake-serve.service",
            "usr/lib/systemd/system/longtake@.service",
            "usr/lib/sysusers.d/longtake.conf",
            "usr/share/bash-completion/completions/longtake",
            "usr/share/doc/longtake/copyright",
            "usr/share/doc/longtake/example.conf",
            "usr/share/fish/vendor_completions.d/longtake.fish",
            "usr/share/longtake/longtake.grafana.json",
            "usr/share/longtake/longtake.rules.yml",
            "usr/share/man/man1/longtake.1.gz",
            "usr/share/zsh/vendor-completions/_longtake",
        ];
        let found = installed(&root);
        for path in expected {
            assert!(found.iter().any(|found| found == path), "{path}: {found:?}");
        }
        assert!(root.join("etc/longtake").is_dir());
        let users = fs::read_to_string(root.join("etc/passwd")).unwrap();
        assert!(users.lines().any(|line| line.starts_with("longtake:")), "{users}");
        write(&root.join("etc/longtake/radar.conf"), b"RECORD_OPTIONS=\n", 0o644).unwrap();
        output(&mut dpkg(&root, &["--purge", "longtake"])).unwrap();
        let left = installed(&root);
        assert!(left.iter().all(|path| path.starts_with("etc/")), "{left:?}");
        assert!(left.iter().any(|path| path == "etc/longtake/radar.conf"), "{left:?}");
    }

    #[test]
    fn the_newest_c_library_that_a_program_asks_for_is_found() {
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0GLIBC_";
        assert_eq!(newest_libc(program), Some((2, 34)));
        assert_eq!(newest_libc(b"nothing"), None);
    }
}
