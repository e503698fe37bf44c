//! The guest's kernel: Debian's own, fetched as a package and unpacked beside the build's output,
//! installed nowhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages;
use super::programs::run;

/// The package that always depends on the newest kernel.
const META_PACKAGE: &str = "linux-image-amd64";

/// An unpacked kernel.
#[derive(Debug)]
pub struct Kernel {
    /// The bootable image.
    pub image: PathBuf,
    /// Every loadable module, below this folder.
    modules: PathBuf,
}

impl Kernel {
    /// The file of a module; None if this kernel has it built in, or not at all.
    pub fn module(&self, name: &str) -> Option<PathBuf> {
        find(&self.modules, &format!("{name}.ko"))
    }
}

/// The kernel kept in `dir`; fetched first if there is none.
///
/// # Errors
/// If it can't be fetched or unpacked.
pub fn fetch(dir: &Path) -> Result<Kernel> {
    if let Some(kernel) = kept(dir) {
        return Ok(kernel);
    }
    packages::update()?;
    let package = newest()?;
    eprintln!("fetching {package}");
    // Complete or absent: made beside its place and moved there at the end.
    let part = dir.with_extension(format!("{}.part", std::process::id()));
    fs::create_dir_all(&part).with_context(|| format!("making {}", part.display()))?;
    run(packages::apt_get().args(["download", "-qq", &package]).current_dir(&part))?;
    let archive = fs::read_dir(&part)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .with_context(|| format!("apt-get downloaded no {package} into {}", part.display()))?;
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&part))?;
    fs::remove_file(&archive)?;
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    fs::rename(&part, dir).with_context(|| format!("moving the kernel to {}", dir.display()))?;
    kept(dir).with_context(|| format!("{package} has no kernel and modules in it"))
}

/// What an earlier fetch left.
fn kept(dir: &Path) -> Option<Kernel> {
    let image =
        fs::read_dir(dir.join("boot")).ok()?.filter_map(|entry| Some(entry.ok()?.path())).find(
            |path| path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"vmlinuz")),
        )?;
    let modules = dir.join("lib/modules");
    modules.exists().then_some(Kernel { image, modules })
}

/// The package of the newest kernel, `linux-image-6.1.0-56-amd64`.
fn newest() -> Result<String> {
    let told = run(Command::new("apt-cache").args(["depends", META_PACKAGE]))?;
    let found = told.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    match found {
        Some(package) if package.starts_with("linux-image-") => Ok(package.to_owned()),
        _ => bail!("apt-cache knows no kernel that {META_PACKAGE} depends on: is this Debian?"),
    }
}

/// A file by its name, anywhere below a folder.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            if let Some(found) = find(&path, name) {
                return Some(found);
            }
        } else if entry.file_name() == name {
            return Some(path);
        }
    }
    None
}
