//! The attack `devices`: everything that writes drives is aimed at drives that are in use or hold something.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::libc::O_EXCL;

use super::loops::{Loop, Mount, Swap, checksum, ext4, sync};
use super::recording::{PACKET_BYTES, Shape};
use super::stage::Stage;
use crate::soak::recorder::Recorder;
use crate::vm::programs::run;

/// Drives that must not be written.
#[derive(Debug)]
pub struct Devices;

const MIB: u64 = 1 << 20;
const SIZE_BYTES: u64 = 16 * MIB;

/// What a drive is used for, or holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mounted,
    MountedReadOnly,
    WithMountedPartition,
    MountedPartition,
    PartitionBesideMounted,
    Swap,
    Table(&'static str),
    FileSystem(&'static str, &'static [&'static str]),
    HeldExclusively,
    ReadOnly,
    UnderLoop,
    OverMember,
    Member,
    RecordedOn,
    FileUnderLoop,
    Content,
}

const ALL: &[Kind] = &[
    Kind::Mounted,
    Kind::MountedReadOnly,
    Kind::WithMountedPartition,
    Kind::MountedPartition,
    Kind::PartitionBesideMounted,
    Kind::Swap,
    Kind::Table("dos"),
    Kind::Table("gpt"),
    Kind::FileSystem("ext4", &["mkfs.ext4", "-q", "-F"]),
    Kind::FileSystem("btrfs", &["mkfs.btrfs", "-q", "--mixed"]),
    Kind::FileSystem("FAT", &["mkfs.vfat"]),
    Kind::FileSystem(
        "LUKS",
        &[
            "cryptsetup",
            "-q",
            "luksFormat",
            "--key-file",
            "/dev/zero",
            "--keyfile-size",
            "32",
            "--pbkdf",
            "pbkdf2",
            "--pbkdf-force-iterations",
            "1000",
        ],
    ),
    Kind::FileSystem("LVM", &["pvcreate", "-q", "-y", "-ff"]),
    Kind::FileSystem("swap", &["mkswap"]),
    Kind::HeldExclusively,
    Kind::ReadOnly,
    Kind::UnderLoop,
    Kind::OverMember,
    Kind::Member,
    Kind::RecordedOn,
    Kind::FileUnderLoop,
    Kind::Content,
];

/// Command lines; `@` is the drive.
const COMMANDS: &[&str] = &[
    "record --from synthetic:10MB/s --until-bytes 1MB --to @",
    "record --from synthetic:10MB/s --until-bytes 1MB --when-full wrap --to @",
    "record --from synthetic:10MB/s --until-bytes 1MB --to @,./spare.raw",
    "array create @ --erase @",
    "array create --no-trim ./spare.raw @ --erase @ --erase ./spare.raw",
    "array create --force-new-array @ --erase @",
    "array rebuild ./degraded --member 1 --onto @ --erase @",
    "measure run @ --write 1 --bytes 1MiB -o results --erase @",
    "measure run @ --trim 1 --bytes 1MiB -o results --erase @",
    "measure fill @ --size 1MiB -o results --erase @",
    "measure all @ --time 5s -o results --erase @",
    "measure snia @ --time 5s -o results --erase @",
];

impl super::Attack for Devices {
    fn name(&self) -> &'static str {
        "devices"
    }

    fn about(&self) -> &'static str {
        "record, create, rebuild and measure onto drives that are mounted, swapped on, held, partitioned, or hold anything"
    }

    fn law(&self) -> &'static str {
        "the command fails, no byte of the drive is changed, and no folder of results is left"
    }

    fn slice_rounds(&self) -> u64 {
        3
    }

    fn round(&self, stage: &mut Stage) -> Result<()> {
        let kind = *stage.one_of(ALL);
        let Some(target) = Target::make(stage, kind)? else {
            stage.saw("kinds that this machine can't make");
            return Ok(());
        };
        let whole = degraded(stage)?;
        fs::write(stage.path("spare.raw"), vec![7; 4096])?;
        File::options().write(true).open(stage.path("spare.raw"))?.set_len(SIZE_BYTES)?;
        let commands: Vec<&str> = if stage.slice {
            (0..3).map(|_| *stage.one_of(COMMANDS)).chain([COMMANDS[6]]).collect()
        } else {
            COMMANDS.to_vec()
        };
        for command in commands {
            // Confirmed, this is what it is for.
            let allowed = kind == Kind::Member && command.contains("--force-new-array")
                || kind == Kind::Content && command.contains("--erase @");
            if !allowed {
                refused(stage, &target, command)?;
            }
        }
        let degraded = fs::read(stage.path("degraded/member0"))?;
        ensure!(degraded == whole, "the array that was to be rebuilt has changed");
        stage.saw(target.what);
        Ok(())
    }
}

/// An array whose second member is lost.
fn degraded(stage: &mut Stage) -> Result<Vec<u8>> {
    let shape = Shape { members: 3, member_mib: 8, parity: 1, ring: false, chunk_kib: 64 };
    let from = format!("record -q --from synthetic:50MB/s,size={PACKET_BYTES} --until-bytes 500kB");
    stage.line(&format!("{from} --to ./degraded {}", shape.options()))?.code(&[0])?;
    fs::remove_file(stage.path("degraded/member1"))?;
    fs::read(stage.path("degraded/member0")).context("reading a member")
}

/// A drive that is in use, and what uses it; that goes first.
struct Target {
    what: &'static str,
    path: PathBuf,
    bytes_at: PathBuf,
    /// Whether what records on it writes it meanwhile.
    written: bool,
    _recorder: Option<Recorder>,
    _held: Option<File>,
    _swap: Option<Swap>,
    _mount: Option<Mount>,
    _devices: Vec<Loop>,
}

impl Target {
    fn of(what: &'static str, device: Loop) -> Self {
        Self {
            what,
            path: device.device.clone(),
            bytes_at: device.image.clone(),
            written: false,
            _recorder: None,
            _held: None,
            _swap: None,
            _mount: None,
            _devices: vec![device],
        }
    }

    /// A drive of this kind; None if the machine can't make one.
    fn make(stage: &mut Stage, kind: Kind) -> Result<Option<Self>> {
        let image = stage.path("drive.raw");
        let point = stage.path("mnt");
        let plain = || Loop::new(&image, SIZE_BYTES);
        Ok(Some(match kind {
            Kind::Mounted | Kind::MountedReadOnly => {
                let device = plain()?;
                ext4(&device.device)?;
                let read_only: &[&str] = if kind == Kind::Mounted { &[] } else { &["-o", "ro"] };
                let mount = Mount::new(read_only, &device.device, &point)?;
                Self { _mount: Some(mount), ..Self::of("mounted", device) }
            }
            Kind::WithMountedPartition | Kind::MountedPartition | Kind::PartitionBesideMounted => {
                Self::partitioned(kind, &image, &point)?
            }
            Kind::Swap => {
                let device = plain()?;
                let Some(swap) = Swap::on(&device.device)? else { return Ok(None) };
                Self { _swap: Some(swap), ..Self::of("swapped on", device) }
            }
            Kind::Table(label) => {
                Self::of("partition tables", Loop::partitioned(&image, SIZE_BYTES, label)?)
            }
            Kind::FileSystem(name, words) => {
                // btrfs wants more than the others.
                let device = Loop::new(&image, 3 * SIZE_BYTES)?;
                if run(Command::new(words[0]).args(&words[1..]).arg(&device.device)).is_err() {
                    return Ok(None);
                }
                Self::of(name, device)
            }
            Kind::HeldExclusively => {
                let device = plain()?;
                let held =
                    OpenOptions::new().read(true).custom_flags(O_EXCL).open(&device.device)?;
                Self { _held: Some(held), ..Self::of("held with O_EXCL", device) }
            }
            Kind::ReadOnly => {
                File::create(&image)?.set_len(SIZE_BYTES)?;
                Self::of("read-only", Loop::on(&image, &["--read-only"])?)
            }
            Kind::UnderLoop => Self::under_loop(plain()?, &point)?,
            Kind::OverMember => {
                let member = array_of_files(stage)?;
                Self::of("over a member", Loop::on(&member, &[])?)
            }
            Kind::Member | Kind::RecordedOn => return member(stage, kind, plain()?).map(Some),
            Kind::FileUnderLoop => {
                let device = plain()?;
                ext4(&device.device)?;
                let path = image.clone();
                let mount = Mount::new(&[], &device.device, &point)?;
                Self { path, _mount: Some(mount), ..Self::of("files under a mount", device) }
            }
            Kind::Content => {
                let device = plain()?;
                fs::write(&image, vec![b'x'; SIZE_BYTES as usize])?;
                Self::of("unknown contents", device)
            }
        }))
    }

    /// A drive with two partitions, the first of them mounted. Depending on `kind`, the target is the drive, the mounted partition, or
    /// the other one.
    fn partitioned(kind: Kind, image: &Path, point: &Path) -> Result<Self> {
        let device = Loop::partitioned(image, 2 * SIZE_BYTES, "gpt")?;
        ext4(&device.partition(1))?;
        let mount = Mount::new(&[], &device.partition(1), point)?;
        let path = match kind {
            Kind::MountedPartition => device.partition(1),
            // Free by itself: it may be refused for what it holds, which is a file system of its own.
            Kind::PartitionBesideMounted => {
                ext4(&device.partition(2))?;
                device.partition(2)
            }
            _ => device.device.clone(),
        };
        Ok(Self { path, _mount: Some(mount), ..Self::of("mounted partitions", device) })
    }

    /// A drive below a loop device that is mounted.
    fn under_loop(device: Loop, point: &Path) -> Result<Self> {
        let over = Loop::on(&device.device, &[])?;
        ext4(&over.device)?;
        let mount = Mount::new(&[], &over.device, point)?;
        let mut target = Self { _mount: Some(mount), ..Self::of("under a loop device", device) };
        // The upper one goes first.
        target._devices.insert(0, over);
        Ok(target)
    }
}

/// A drive that is an array by itself, idle or recorded on.
fn member(stage: &mut Stage, kind: Kind, device: Loop) -> Result<Target> {
    let path = device.device.to_str().context("a device's path is text")?.to_owned();
    stage
        .line(&format!(
            "array create {path} --name victim-{} --erase {path} --segment 1MiB --chunk 64KiB",
            std::process::id()
        ))?
        .code(&[0])?;
    if kind == Kind::Member {
        // Recording onto it is what it is for: it goes under another number.
        let mut target = Target::of("members", device);
        target.written = true;
        return Ok(target);
    }
    let words = format!(
        "record --json --keep-privileges --from synthetic:1MB/s --when-full wrap --memory 32MiB --to {path}"
    );
    let recorder =
        Recorder::start(&mut stage.command(&words.split_whitespace().collect::<Vec<_>>()))?;
    Ok(Target { written: true, _recorder: Some(recorder), ..Target::of("recorded on", device) })
}

/// The member of an array of one file.
fn array_of_files(stage: &mut Stage) -> Result<PathBuf> {
    let shape = Shape { members: 1, member_mib: 8, parity: 0, ring: false, chunk_kib: 64 };
    let line = format!(
        "record -q --from synthetic:50MB/s --until-bytes 500kB --to ./other {}",
        shape.options()
    );
    stage.line(&line)?.code(&[0])?;
    Ok(stage.path("other/member0"))
}

/// Runs a command on the target, which must be refused.
fn refused(stage: &mut Stage, target: &Target, command: &str) -> Result<()> {
    let records = command.starts_with("record") && !command.contains("spare");
    if target.written && records && target._recorder.is_none()
        || target.what == "over a member" && records
    {
        // An array that nobody records on takes a recording.
        return Ok(());
    }
    sync(&target.path, &target.bytes_at)?;
    let before = sum(target)?;
    let path = target.path.to_str().context("a device's path is text")?;
    let ran = stage.line(&command.replace('@', path))?;
    let what = target.what;
    ensure!(
        ran.code == Some(1),
        "`{}` on a drive ({what}) ended with {:?}: {}",
        ran.line,
        ran.code,
        ran.stderr
    );
    sync(&target.path, &target.bytes_at)?;
    ensure!(before == sum(target)?, "`{}` has written a drive ({what})", ran.line);
    let results = stage.path("results");
    ensure!(!results.exists(), "`{}` left {}", ran.line, results.display());
    Ok(())
}

/// A checksum of what must not change. A recorder changes its own drive: there it is the array's identity.
fn sum(target: &Target) -> Result<String> {
    if target._recorder.is_none() {
        return checksum(&target.bytes_at);
    }
    identity(&target.bytes_at)
}

/// The array UUID in the superblock, section 2 of the format.
fn identity(path: &Path) -> Result<String> {
    use std::os::unix::fs::FileExt;
    let mut uuid = [0; 16];
    File::open(path)?.read_exact_at(&mut uuid, 32 + 32)?;
    Ok(format!("{uuid:x?}"))
}
