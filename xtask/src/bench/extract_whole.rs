//! Bytes a second of a whole take that becomes a file, against fio writing such a file on the same disk: from an array in memory,
//! where the file's disk is the limit, and from an array on that disk, which then reads and writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::comparison::{Comparison, Goal, Unit};
use super::folder::{Folder, Memory};
use super::rounds::{Contestant, interleaved};
use super::{Setting, program};

const MEMBERS: usize = 4;
/// Bytes of packets in the take.
const TAKE_BYTES: u64 = 7_000_000_000;
/// A member's share, and room for superblocks, indexes and uneven placement.
const MEMBER_BYTES: u64 = 2_300_000_000;
/// Bytes of fio's blocks: as many as the output's writes have.
const BLOCK_BYTES: u64 = 4 << 20;
const GOAL: Goal = Goal::Ratio(0.9);

/// Runs it.
///
/// # Errors
/// If memory can't be mounted as a file system (it takes root), or fio or Longtake fails.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let directory = setting.dir.join("extract-whole");
    let file = directory.join("file");
    let bytes = MEMBERS as u64 * MEMBER_BYTES + (64 << 20);
    let rig = Rig {
        memory: Memory::mount(directory.join("memory"), bytes)?,
        directory: directory.into(),
        file,
        longtake: setting.longtake()?,
    };
    let places = [
        ("array in memory", rig.memory.join("array"), "fio, a new file"),
        (
            "array on the file's disk",
            rig.directory.join("array"),
            "fio, a new file, beside its reading the members",
        ),
    ];
    let mut found = Vec::new();
    for (place, array, name) in places {
        rig.record(&array)?;
        let reads = !array.starts_with(&*rig.memory);
        let ours: Contestant<'_> = Box::new(|| rig.extract(&array));
        let fio: Contestant<'_> = Box::new(|| rig.fio(reads.then_some(&array)));
        let [ours, reference] = interleaved(setting.rounds, false, [ours, fio])?;
        found.push(Comparison {
            benchmark: "extract-whole",
            what: format!("longtake extract of 7 GB to a new file, {place}"),
            reference: Some((name.to_owned(), reference)),
            ours,
            unit: Unit::BytesPerS,
            goal: Some(GOAL),
        });
    }
    Ok(found)
}

/// Where the arrays and the file are; removed in the end.
struct Rig {
    /// In the directory, and therefore removed first.
    memory: Memory,
    directory: Folder,
    file: PathBuf,
    longtake: PathBuf,
}

impl Rig {
    fn record(&self, array: &Path) -> Result<()> {
        program::run(
            Command::new(&self.longtake)
                .args(["record", "--from", "synthetic:max", "--quiet", "--keep-privileges"])
                .args(["--members", &MEMBERS.to_string()])
                .args(["--member-size", &MEMBER_BYTES.to_string()])
                .args(["--until-bytes", &TAKE_BYTES.to_string(), "--to"])
                .arg(array),
        )?;
        Ok(())
    }

    /// Makes room for a new file, with nothing left to write.
    fn forget_file(&self) -> Result<()> {
        if self.file.exists() {
            fs::remove_file(&self.file)?;
        }
        nix::unistd::sync();
        Ok(())
    }

    fn extract(&self, array: &Path) -> Result<f64> {
        self.forget_file()?;
        let start = Instant::now();
        let mut longtake = Command::new(&self.longtake);
        longtake.args(["extract", "--quiet", "--format", "pcapng"]).arg(array);
        program::run(longtake.arg("--output").arg(&self.file))?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(fs::metadata(&self.file)?.len() as f64 / seconds)
    }

    /// A new file of the same size, and an array's members read meanwhile.
    fn fio(&self, read: Option<&PathBuf>) -> Result<f64> {
        self.forget_file()?;
        let size = TAKE_BYTES / BLOCK_BYTES * BLOCK_BYTES;
        let file = self.file.display();
        let mut fio = Command::new("fio");
        fio.args(["--ioengine=io_uring", "--direct=1", "--iodepth=4", "--output-format=json"]);
        fio.args([
            format!("--bs={BLOCK_BYTES}"),
            "--name=write".to_owned(),
            "--rw=write".to_owned(),
        ]);
        fio.args([
            format!("--filename={file}"),
            format!("--size={size}"),
            "--end_fsync=1".to_owned(),
        ]);
        if let Some(array) = read {
            let members: Vec<_> = (0..MEMBERS)
                .map(|i| array.join(format!("member{i}")).display().to_string())
                .collect();
            fio.args(["--name=read", "--rw=read"]);
            fio.args([format!("--filename={}", members.join(":")), format!("--size={size}")]);
        }
        let json: Value =
            serde_json::from_slice(&program::run(&mut fio)?).context("fio's output")?;
        let milliseconds = program::number(&json, "/jobs/0/write/runtime")?;
        let until_read =
            read.map_or(Ok(0.0), |_| program::number(&json, "/jobs/1/read/runtime"))?;
        Ok(size as f64 / milliseconds.max(until_read) * 1e3)
    }
}
