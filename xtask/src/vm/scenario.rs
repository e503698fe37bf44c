//! A scenario: a machine with its drives, a script for the guest, and a verdict on what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::drives::{self, Drive};
use super::image::Image;
use super::kernel::Kernel;
use super::machine::{Machine, Parts};
use super::report::Told;

/// The guest's modules in the order of their needs. One that a kernel lacks or has built in is passed over;
/// the last two must be there.
const MODULES: [&str; 9] = [
    "crct10dif_common",
    "crct10dif_generic",
    "crc-t10dif",
    "crc64",
    "crc64_rocksoft_generic",
    "crc64-rocksoft",
    "t10-pi",
    "nvme-core",
    "nvme",
];
const MODULES_NEEDED: [&str; 2] = ["nvme-core", "nvme"];

/// The guest's first process.
const INIT: &str = include_str!("init.sh");

/// What the guest runs and how it is judged. Its script runs under `sh -e` with busybox's tools, `nvme`
/// and `longtake`, and has four commands of its own: `say TEXT` tells the host, `await` prints the next
/// line that the host says, `give FILE...` hands files over, `nodes DRIVE...` prints the nodes of drives
/// that are named by class, serial number and namespace (`block,LT-TWIN-0001,1`), with commas between them.
pub trait Scenario {
    /// Its name on the command line, and its folder's.
    fn name(&self) -> &'static str;

    /// What it shows, in a few words.
    fn about(&self) -> &'static str;

    /// The machine's drives.
    fn drives(&self) -> Vec<Drive> {
        drives::six()
    }

    /// Options of the guest's `nvme` module, `poll_queues=2`.
    fn driver_options(&self) -> &'static str {
        ""
    }

    /// Further modules, in the order of their needs, loaded before the script starts.
    fn modules(&self) -> &'static [&'static str] {
        &[]
    }

    /// Further programs for the guest: where they are here, and their name in `/bin` there.
    ///
    /// # Errors
    /// If one can't be built.
    fn programs(&self) -> Result<Vec<(PathBuf, &'static str)>> {
        Ok(Vec::new())
    }

    /// The script.
    fn script(&self) -> String;

    /// How long it may take. It ends runs that hang, so it is generous: emulation without hardware
    /// support on a busy machine is slow.
    fn time_limit(&self) -> Duration {
        Duration::from_secs(600)
    }

    /// Called for every line that the guest says.
    ///
    /// # Errors
    /// If what was said, or what is done about it, fails the scenario.
    fn heard(&self, _line: &str, _machine: &mut Machine) -> Result<()> {
        Ok(())
    }

    /// Judges the files that the guest handed over, by name. What it gives is printed, a line each.
    ///
    /// # Errors
    /// If they don't show what they should.
    fn judge(&self, files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<String>>;
}

/// What every scenario's machine is made with.
#[derive(Debug)]
pub struct Tools {
    /// The guest's kernel.
    pub kernel: Kernel,
    /// The program.
    pub longtake: PathBuf,
    /// QEMU's accelerator.
    pub accelerator: String,
}

/// Runs a scenario from boot to verdict, with everything of it kept in `dir`.
///
/// # Errors
/// If the machine can't be made, its script fails or hangs, or the verdict is against it.
pub fn play(scenario: &dyn Scenario, tools: &Tools, dir: &Path) -> Result<Vec<String>> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    let handed = dir.join("files");
    fs::create_dir_all(&handed).with_context(|| format!("making {}", handed.display()))?;
    let drives = scenario.drives();
    let image = image(scenario, tools, &drives)?.write(&dir.join("image.cpio"))?;
    let mut machine = Machine::start(&Parts {
        kernel: &tools.kernel.image,
        image: &image,
        accelerator: &tools.accelerator,
        drives: drives::options(&drives, dir)?,
        dir,
        time_limit: scenario.time_limit(),
    })?;
    let mut files = BTreeMap::new();
    let status = loop {
        match machine.listen()? {
            Told::Said(line) => {
                scenario.heard(&line, &mut machine).with_context(|| machine.tail())?;
            }
            Told::File { name, bytes } => {
                fs::write(handed.join(&name), &bytes)?;
                files.insert(name, bytes);
            }
            Told::Ended(status) => break status,
        }
    };
    if status != 0 {
        bail!("the script ended with status {status}; {}", machine.tail());
    }
    scenario.judge(&files).with_context(|| machine.tail())
}

/// The guest's file system for a scenario.
fn image(scenario: &dyn Scenario, tools: &Tools, drives: &[Drive]) -> Result<Image> {
    let mut image = Image::default();
    for folder in ["dev", "proc", "sys", "tmp", "run", "etc"] {
        image.directory(folder);
    }
    image.file("init", 0o755, INIT);
    image.program(Path::new("/bin/busybox"), "/bin/busybox")?;
    image.program(Path::new("/usr/sbin/nvme"), "/bin/nvme")?;
    image.program(&tools.longtake, "/bin/longtake")?;
    for (program, name) in scenario.programs()? {
        image.program(&program, &format!("/bin/{name}"))?;
    }
    let mut order = String::new();
    for module in MODULES.iter().chain(scenario.modules()) {
        match tools.kernel.module(module) {
            Some(file) => {
                let name = file.file_name().context("a module has a name")?.to_string_lossy();
                image.copy(&file, &format!("/modules/{name}"))?;
                order += &format!("{name}\n");
            }
            None if MODULES_NEEDED.contains(module) => {
                bail!("the kernel {} has no module {module}", tools.kernel.image.display())
            }
            None => {}
        }
    }
    let namespaces: usize = drives.iter().map(|drive| drive.namespaces.len()).sum();
    image.file("modules/order", 0o644, order);
    image.file("scenario/driver-options", 0o644, scenario.driver_options());
    image.file("scenario/namespaces", 0o644, namespaces.to_string());
    image.file("scenario/script", 0o755, scenario.script());
    Ok(image)
}
