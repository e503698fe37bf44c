//! The attack `outputs`: every option that names an output is aimed at what must not be overwritten, by many names.

#[path = "../../../crates/cli/tests/output_rig/options.rs"]
mod options;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use self::options::{PATHS, Role};
use super::loops::{Loop, Mount, checksum, ext4, sync};
use super::recording::Shape;
use super::stage::Stage;
use crate::vm::programs;

/// Options that name outputs.
#[derive(Debug)]
pub struct Outputs;

const MIB: u64 = 1 << 20;

impl super::Attack for Outputs {
    fn name(&self) -> &'static str {
        "outputs"
    }

    fn about(&self) -> &'static str {
        "every option that names an output, aimed at devices, members and inputs by links, nodes and other names"
    }

    fn law(&self) -> &'static str {
        "the command fails, and the victim's bytes are unchanged"
    }

    fn slice_rounds(&self) -> u64 {
        1
    }

    fn round(&self, stage: &mut Stage) -> Result<()> {
        inputs(stage)?;
        let scene = Scene::set(stage)?;
        let outputs: Vec<_> = PATHS.iter().filter_map(|(_, _, role)| Output::of(role)).collect();
        for _ in 0..if stage.slice { 30 } else { 200 } {
            let output = stage.one_of(&outputs).clone();
            attack(stage, &scene, &output)?;
        }
        for array in ["./array", "./other"] {
            stage.line(&format!("array check {array}"))?.code(&[0])?;
        }
        Ok(())
    }
}

/// An option of the table, as a command line with `OUT` for the output and `@` for the folder.
#[derive(Clone, Debug)]
struct Output {
    line: &'static str,
    input: Option<&'static str>,
    /// The file that a folder gets.
    file: Option<&'static str>,
}

impl Output {
    fn of(role: &Role) -> Option<Self> {
        match *role {
            Role::File { line, input } => Some(Self { line, input: Some(input), file: None }),
            Role::Folder { line, file, .. } => Some(Self { line, input: None, file: Some(file) }),
            Role::Input | Role::Target => None,
        }
    }
}

/// What the commands of the table read.
fn inputs(stage: &mut Stage) -> Result<()> {
    let shape = Shape { members: 2, member_mib: 8, parity: 0, ring: false, chunk_kib: 64 };
    for array in ["./array", "./other"] {
        let from = "record -q --from synthetic:50MB/s --until-bytes 500kB";
        stage.line(&format!("{from} --to {array} {}", shape.options()))?.code(&[0])?;
    }
    stage.line("extract ./array -q -o packets.pcapng")?.code(&[0])?;
    stage.line("measure run sim:ideal -q --write 1 --bytes 16MiB -o measured")?.code(&[0])?;
    stage.line("sim new drive -o drive.toml")?.code(&[0])?;
    let plan = "plan --rate 1GB/s --mission 60s --drive samsung-970-pro-512gb --print toml";
    let plan = stage.line(plan)?.code(&[0])?;
    fs::write(stage.path("requirement.toml"), plan.stdout)?;
    let sweep = "run = [\"plan\"]\n[base]\ndrive = \"samsung-970-pro-512gb\"\nmission = \"60s\"\nrate = \"1GB/s\"\n\
                 [axes]\ncount = { from = 1, to = 2 }\n";
    fs::write(stage.path("sweep.toml"), sweep)?;
    fs::write(stage.path("fio.json"), "{}")?;
    fs::write(stage.path("trace.csv"), "0,R,0,4096,1577808000000626\n")?;
    Ok(())
}

/// What must not be written: a device or file, and the file whose bytes could be lost.
#[derive(Clone, Debug)]
struct Victim {
    what: &'static str,
    path: PathBuf,
    bytes_at: PathBuf,
}

/// Victims, and what keeps them there. The mounts go before the devices.
struct Scene {
    victims: Vec<Victim>,
    /// A folder where everything of the round is seen again.
    bound: Mount,
    _mounts: Vec<Mount>,
    _devices: Vec<Loop>,
}

impl Scene {
    fn set(stage: &mut Stage) -> Result<Self> {
        let plain = Loop::new(&stage.path("plain.raw"), 4 * MIB)?;
        let mounted = Loop::new(&stage.path("mounted.raw"), 8 * MIB)?;
        ext4(&mounted.device)?;
        let parts = Loop::partitioned(&stage.path("parts.raw"), 16 * MIB, "gpt")?;
        ext4(&parts.partition(1))?;
        let member = stage.path("other/member0");
        let over = Loop::on(&member, &[])?;
        let mounts = vec![
            Mount::new(&[], &mounted.device, &stage.path("mnt0"))?,
            Mount::new(&[], &parts.partition(1), &stage.path("mnt1"))?,
        ];
        let bound = Mount::new(&["--bind"], &stage.dir, &stage.dir.with_extension("bound"))?;
        let victim = |what, path: &Path, bytes_at: &Path| Victim {
            what,
            path: path.to_owned(),
            bytes_at: bytes_at.to_owned(),
        };
        let same = |what, name: &str| victim(what, &stage.path(name), &stage.path(name));
        let victims = vec![
            victim("a loop device", &plain.device, &plain.image),
            victim("a mounted loop device", &mounted.device, &mounted.image),
            victim("a device with a mounted partition", &parts.device, &parts.image),
            victim("a mounted partition", &parts.partition(1), &parts.image),
            victim("a partition", &parts.partition(2), &parts.image),
            victim("a loop device over a member", &over.device, &member),
            same("a file under a loop device", "plain.raw"),
            same("a file under a mounted loop device", "mounted.raw"),
            same("a member of another array", "other/member1"),
            same("a member of the array", "array/member0"),
            same("a member of the array", "array/member1"),
        ];
        Ok(Self { victims, bound, _mounts: mounts, _devices: vec![plain, mounted, parts, over] })
    }
}

/// Another name of a victim, and what has to stay open for it.
struct Alias {
    kind: &'static str,
    path: PathBuf,
    _open: Option<File>,
}

fn alias(stage: &mut Stage, scene: &Scene, victim: &Path) -> Result<Alias> {
    let number = stage.attempts;
    let link = stage.path(&format!("link-{number}"));
    let device = !victim.starts_with(&stage.dir);
    let mut open = None;
    let (kind, path) = match stage.random.below(8) {
        0 => ("itself", victim.to_owned()),
        1 => {
            symlink(victim, &link)?;
            ("a symbolic link", link)
        }
        2 => {
            let second = stage.path(&format!("links-{number}"));
            symlink(victim, &link)?;
            symlink(&link, &second)?;
            ("a link to a link", second)
        }
        3 if !device => {
            fs::hard_link(victim, &link)?;
            ("a hard link", link)
        }
        3 => {
            let mut cp = Command::new("cp");
            programs::run(cp.arg("--archive").arg(victim).arg(&link))?;
            ("a second device node", link)
        }
        4 => {
            let folder = victim.parent().context("a victim has a folder")?;
            let name = folder.file_name().context("its folder has a name")?;
            let file = victim.file_name().context("a victim has a name")?;
            ("a path with ..", folder.join("..").join(name).join(".").join(file))
        }
        5 => {
            let file = File::open(victim)?;
            let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            open = Some(file);
            ("an open descriptor", PathBuf::from(path))
        }
        6 => {
            ("the root of a process", PathBuf::from(format!("/proc/self/root{}", victim.display())))
        }
        _ => match victim.strip_prefix(&stage.dir) {
            Ok(inside) => ("a bind mount", scene.bound.point.join(inside)),
            Err(_) => ("itself", victim.to_owned()),
        },
    };
    Ok(Alias { kind, path, _open: open })
}

/// One attempt on one victim.
fn attack(stage: &mut Stage, scene: &Scene, output: &Output) -> Result<()> {
    let mut victim = stage.one_of(&scene.victims).clone();
    if let Some(input) = output.input
        && stage.random.one_in(4)
    {
        let input = stage.path(input.trim_start_matches("@/"));
        victim = Victim { what: "an input", path: input.clone(), bytes_at: input };
    }
    sync(&victim.path, &victim.bytes_at)?;
    let before = checksum(&victim.bytes_at)?;
    let alias = alias(stage, scene, &victim.path)?;
    let mut aimed = alias.path.clone();
    let inside = output.file.filter(|_| stage.random.one_in(2));
    if let Some(file) = inside {
        let folder = stage.path(&format!("results-{}", stage.attempts));
        let name = folder.join(file);
        fs::create_dir_all(name.parent().context("it lies in a folder")?)?;
        symlink(&aimed, &name)?;
        aimed = folder;
    }
    let words = |text: &str| -> Result<String> {
        Ok(text.replace("OUT", aimed.to_str().context("paths are text")?).replace("@/", ""))
    };
    let words: Vec<String> = output.line.split_whitespace().map(words).collect::<Result<_>>()?;
    let ran = stage.run(&words)?;
    let (what, by) = (victim.what, alias.kind);
    // 2 is for a name that no output can have, such as one that means a device.
    ensure!(
        matches!(ran.code, Some(1 | 2)),
        "`{}` on {what} by {by} ended with {:?}",
        ran.line,
        ran.code
    );
    ensure!(victim.path.exists(), "`{}`: {what} is no more, by {by}", ran.line);
    sync(&victim.path, &victim.bytes_at)?;
    let after = checksum(&victim.bytes_at)?;
    ensure!(before == after, "`{}` has written {what} by {by}", ran.line);
    stage.saw(by);
    Ok(())
}
