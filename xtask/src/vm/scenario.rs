//! A scenario: machines with their drives, scripts for their guests, and a verdict on what came of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::drives::{self, Backing, Drive};
use super::handed::Files;
use super::image::Image;
use super::kernel::Kernel;
use super::machine::{Clock, Machine, Parts};
use super::report::Told;

/// The guest's module. Those that it needs come along.
const MODULE: &str = "nvme";

/// The guest's first process.
const INIT: &str = include_str!("init.sh");

/// Something to be shown with machines.
pub trait Scenario {
    /// Its name on the command line, and its folder's.
    fn name(&self) -> &'static str;

    /// What it shows, in a few words.
    fn about(&self) -> &'static str;

    /// Runs its machines and judges them. What it gives tells what was checked.
    ///
    /// # Errors
    /// If a machine can't be made, its script fails or hangs, or the verdict is against it.
    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>>;
}

/// A machine and what it is to do. The script runs under `sh -e` with busybox's tools, `nvme` and `longtake`, and
/// has commands of its own, which `init.sh` describes: `say`, `await`, `give`, `run`, `nodes`, `account`.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The script.
    pub script: String,
    /// The machine's drives.
    pub drives: Vec<Drive>,
    /// Media served to the machine; without, new files.
    pub backing: Backing,
    /// The machine's time.
    pub clock: Clock,
    /// Options of the `nvme` module, `poll_queues=2`.
    pub driver_options: &'static str,
    /// Further modules, `ext4`. Those that they need come along.
    pub modules: &'static [&'static str],
    /// Further programs: where they are here, and their name in `/bin` there.
    pub programs: Vec<(PathBuf, &'static str)>,
    /// How long it may take. It ends runs that hang, so it is generous: emulation without hardware support on a busy
    /// machine is slow.
    pub time_limit: Duration,
}

impl Guest {
    /// A machine with six drives that runs this script.
    pub fn new(script: impl Into<String>) -> Self {
        Self {
            script: script.into(),
            drives: drives::six(),
            backing: Backing::Files,
            clock: Clock::Host,
            driver_options: "",
            modules: &[],
            programs: Vec::new(),
            time_limit: Duration::from_secs(1800),
        }
    }
}

/// What every scenario's machines are made with.
#[derive(Debug)]
pub struct Tools {
    /// The guest's kernel.
    pub kernel: Kernel,
    /// What every guest's file system holds.
    pub image: Image,
    /// QEMU's accelerator.
    pub accelerator: String,
    /// QEMU's processor model.
    pub processor: String,
}

/// Where a scenario plays.
#[derive(Debug)]
pub struct Stage<'a> {
    /// What machines are made with.
    pub tools: &'a Tools,
    /// Its folder.
    pub dir: &'a Path,
    /// What random choices are made from.
    pub seed: u64,
    /// Power cuts, where there are any.
    pub cuts: u32,
}

/// Whether a machine is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Until its script ends.
    Listen,
    /// It ends here, as if its power were cut.
    Cut,
}

/// What came of a machine.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// What was handed over.
    pub files: Files,
    /// Every line that was said.
    pub said: Vec<String>,
}

impl Stage<'_> {
    /// Runs a machine to its end. `heard` is called for every line that the guest says.
    ///
    /// # Errors
    /// If it can't be made, its script fails or hangs, or `heard` fails.
    pub fn run(
        &self,
        guest: &Guest,
        mut heard: impl FnMut(&str, &mut Machine) -> Result<Next>,
    ) -> Result<Ran> {
        let handed = self.dir.join("files");
        fs::create_dir_all(&handed).with_context(|| format!("making {}", handed.display()))?;
        let image = self.image(guest)?.write(&self.dir.join("image.cpio"))?;
        let mut machine = Machine::start(&Parts {
            kernel: &self.tools.kernel.image,
            image: &image,
            accelerator: &self.tools.accelerator,
            processor: &self.tools.processor,
            clock: guest.clock,
            drives: drives::options(&guest.drives, &guest.backing, self.dir)?,
            dir: self.dir,
            time_limit: guest.time_limit,
        })?;
        let mut ran = Ran::default();
        let status = loop {
            match machine.listen()? {
                Told::Said(line) => {
                    let next = heard(&line, &mut machine).with_context(|| machine.tail())?;
                    ran.said.push(line);
                    if next == Next::Cut {
                        for told in machine.cut() {
                            if let Told::Said(line) = told {
                                ran.said.push(line);
                            }
                        }
                        return Ok(ran);
                    }
                }
                Told::File { name, bytes } => {
                    fs::write(handed.join(&name), &bytes)?;
                    ran.files.0.insert(name, bytes);
                }
                Told::Ended(status) => break status,
            }
        };
        if status != 0 {
            bail!("the script ended with status {status}; {}", machine.tail());
        }
        Ok(ran)
    }

    /// The same where nothing is done about what the guest says.
    ///
    /// # Errors
    /// As [`Stage::run`].
    pub fn run_alone(&self, guest: &Guest) -> Result<Files> {
        Ok(self.run(guest, |_, _| Ok(Next::Listen))?.files)
    }

    /// The guest's file system.
    fn image(&self, guest: &Guest) -> Result<Image> {
        let mut image = self.tools.image.clone();
        for (program, name) in &guest.programs {
            image.program(program, &format!("/bin/{name}"))?;
        }
        let mut order = String::new();
        for module in guest.modules {
            order += &copied(&self.tools.kernel, module, &mut image)?;
        }
        image.file("scenario/modules", 0o644, order);
        let namespaces: usize = guest.drives.iter().map(|drive| drive.namespaces.len()).sum();
        image.file("scenario/driver-options", 0o644, guest.driver_options);
        image.file("scenario/namespaces", 0o644, namespaces.to_string());
        image.file("scenario/script", 0o755, guest.script.as_str());
        Ok(image)
    }
}

/// What every guest's file system holds: tools, the driver, the program and this one.
///
/// # Errors
/// If any of it can't be read.
pub fn furnished(kernel: &Kernel, longtake: &Path, packets: &Path) -> Result<Image> {
    let mut image = Image::default();
    for folder in ["dev", "proc", "sys", "tmp", "run", "etc"] {
        image.directory(folder);
    }
    image.file("init", 0o755, INIT);
    image.program(Path::new("/bin/busybox"), "/bin/busybox")?;
    image.program(Path::new("/usr/sbin/nvme"), "/bin/nvme")?;
    image.program(longtake, "/bin/longtake")?;
    image.program(packets, "/bin/xtask")?;
    let order = copied(kernel, MODULE, &mut image)?;
    image.file("modules/order", 0o644, order);
    Ok(image)
}

/// Copies a module and those that it needs. Gives their files' names in the order in which they are loaded.
fn copied(kernel: &Kernel, module: &str, image: &mut Image) -> Result<String> {
    let mut order = String::new();
    for file in kernel.modules(module)? {
        let name = file.file_name().context("a module has a name")?.to_string_lossy();
        image.copy(&file, &format!("/modules/{name}"))?;
        order += &format!("{name}\n");
    }
    Ok(order)
}
