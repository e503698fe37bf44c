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

/// The kernel as the linker made it. An emulated machine takes longer to uncompress one than to boot it.
const UNCOMPRESSED: &str = "boot/vmlinux";

/// An unpacked kernel.
#[derive(Debug)]
pub struct Kernel {
    /// What boots: uncompressed if it could be, else as the package has it.
    pub image: PathBuf,
    /// Where its modules lie, as below `/`.
    root: PathBuf,
    /// Its version, the name of its modules' folder.
    version: String,
}

impl Kernel {
    /// A module's file behind those of all that it needs: the order in which they are loaded.
    ///
    /// # Errors
    /// If the kernel has no such module.
    pub fn modules(&self, name: &str) -> Result<Vec<PathBuf>> {
        let mut modprobe = Command::new("/sbin/modprobe");
        modprobe.arg("--dirname").arg(&self.root).args(["--set-version", &self.version]);
        let told = run(modprobe.args(["--show-depends", name]))?;
        // `insmod PATH OPTIONS`, or `builtin NAME`.
        let mut files: Vec<PathBuf> = Vec::new();
        for line in told.lines().filter_map(|line| line.strip_prefix("insmod ")) {
            // One that several need is named several times.
            let file = PathBuf::from(line.split_whitespace().next().unwrap_or(line));
            if !files.contains(&file) {
                files.push(file);
            }
        }
        Ok(files)
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
    // Complete or absent: made beside its place and moved there at the end.
    let part = dir.with_extension(format!("{}.part", std::process::id()));
    fs::create_dir_all(&part).with_context(|| format!("making {}", part.display()))?;
    let package = packages::with_lists(|| {
        let package = newest()?;
        eprintln!("fetching {package}");
        run(packages::apt_get().args(["download", "-qq", &package]).current_dir(&part))?;
        Ok(package)
    })?;
    let archive = fs::read_dir(&part)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .with_context(|| format!("apt-get downloaded no {package} into {}", part.display()))?;
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&part))?;
    fs::remove_file(&archive)?;
    index_modules(&part)?;
    uncompress(&part)?;
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
    let version = version(dir)?;
    // What an interrupted or older fetch has left is of no use without.
    let indexed = dir.join("lib/modules").join(&version).join("modules.dep").exists();
    let uncompressed = dir.join(UNCOMPRESSED);
    let image = if uncompressed.exists() { uncompressed } else { image };
    indexed.then(|| Kernel { image, root: dir.to_owned(), version })
}

/// Puts the kernel that is inside a bootable image beside it. One that can't be got out boots as it is.
fn uncompress(root: &Path) -> Result<()> {
    let Some(kernel) = kept(root) else { return Ok(()) };
    let image = fs::read(&kernel.image)?;
    let Some((compressed, tool)) = payload(&image) else { return Ok(()) };
    let inside = root.join("payload");
    fs::write(&inside, compressed)?;
    let output = Command::new(tool).arg("-dc").stdin(fs::File::open(&inside)?).output()?;
    fs::remove_file(&inside)?;
    if output.stdout.starts_with(b"\x7fELF") {
        fs::write(root.join(UNCOMPRESSED), output.stdout)?;
    }
    Ok(())
}

/// The compressed kernel in a bootable image, and the program that uncompresses it
/// (Linux documentation, arch/x86/boot: "The Linux/x86 Boot Protocol", `setup_sects`, `payload_offset`, `payload_length`).
fn payload(image: &[u8]) -> Option<(&[u8], &'static str)> {
    let field = |at: usize| -> Option<usize> {
        Some(u32::from_le_bytes(*image.get(at..)?.first_chunk()?) as usize)
    };
    let start = (usize::from(*image.get(0x1f1)?) + 1) * 512 + field(0x248)?;
    // The length without compression stands behind it.
    let compressed = image.get(start..start + field(0x24c)?.checked_sub(4)?)?;
    let tool = match compressed.first_chunk()? {
        [0xfd, b'7', b'z', b'X'] => "xz",
        [0x1f, 0x8b, ..] => "gzip",
        _ => return None,
    };
    Some((compressed, tool))
}

/// Writes down which module needs which; a package leaves that to its installation.
fn index_modules(root: &Path) -> Result<()> {
    let version = version(root).context("the package has no modules")?;
    run(Command::new("/sbin/depmod").arg("--basedir").arg(root).arg(version)).map(drop)
}

/// The name of the folder with the modules.
fn version(root: &Path) -> Option<String> {
    let entry = fs::read_dir(root.join("lib/modules")).ok()?.find_map(Result::ok)?;
    entry.file_name().into_string().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_inside_a_bootable_image_is_found_by_its_header() {
        let mut image = vec![0; 4096];
        image[0x1f1] = 2;
        image[0x248..0x24c].copy_from_slice(&100u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&12u32.to_le_bytes());
        image[1636..1648].copy_from_slice(b"\xfd7zXZ\0ab1234");
        assert_eq!(payload(&image), Some((&b"\xfd7zXZ\0ab"[..], "xz")));
        image[1636] = 0;
        assert_eq!(payload(&image), None);
        assert_eq!(payload(&image[..1640]), None);
    }
}
