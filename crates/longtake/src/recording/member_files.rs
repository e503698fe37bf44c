//! The embedded default: a directory of member files, `member0`, `member1` and so on.

use std::fs;
use std::path::{Path, PathBuf};

use ::target::NewFiles;
use ::target::new_files::check_space;
use anyhow::{Context, Result, anyhow, bail};
use base::{ByteSize, Geometry};
use device::target::{self, Access, OpenTarget};
use device::{Options, Pages, Pool, UringBank};
use format::PAGE_BYTES;
use format::superblock::MEMBERS_MAX;
use recorder::create::{self, Plan};
use recorder::reader::Reader;

use super::builder::Builder;
use super::observer::Observer;
use super::options::NewArray;
use crate::{Remark, names};

impl NewArray {
    /// Bytes of each file.
    fn member_bytes(&self) -> u64 {
        self.member_size.0 / PAGE_BYTES * PAGE_BYTES
    }
}

/// Checks everything about new member files that can be known before the first of them exists: the directory, the array's
/// limits, and the free space.
///
/// # Errors
/// If the directory holds anything, the members don't make an array, or there is no space.
pub fn check(directory: &Path, new: &NewArray) -> Result<()> {
    if !(1..=MEMBERS_MAX).contains(&usize::from(new.members)) {
        bail!("--members {}: an array has from 1 to {MEMBERS_MAX} members", new.members);
    }
    if let Some(Ok(entry)) = fs::read_dir(directory).ok().and_then(|mut entries| entries.next()) {
        bail!(
            "{} is not empty and holds no member files (there is {}): name a new directory",
            directory.display(),
            entry.file_name().display()
        );
    }
    let drives: Vec<Geometry> = (0..new.members)
        .map(|number| Geometry {
            name: format!("member{number}"),
            capacity_bytes: new.member_bytes(),
            block_bytes: PAGE_BYTES as u32,
            transfer_max_bytes: 0,
            depth_max: 0,
            trim_unit_bytes: None,
            trim_reads_zeros: false,
            writable: true,
        })
        .collect();
    create::layouts_of(&drives, &plan(directory, new)?)?;
    let remedy = "ask for fewer or smaller members (--members, --member-size)";
    Ok(check_space(directory, new.members.into(), new.member_bytes(), remedy)?)
}

/// Makes member files in a new or empty directory, and an array of them.
///
/// # Errors
/// If a file or the array can't be made, or the recording is asked to stop meanwhile.
pub fn create(
    directory: &Path,
    new: &NewArray,
    job: &Builder,
    created: &mut NewFiles,
    observer: &mut dyn Observer,
) -> Result<Vec<PathBuf>> {
    created.directory(directory)?;
    observer.remark(Remark::Note(format!(
        "creating {} member files of {} in {}",
        new.members,
        ByteSize(new.member_bytes()),
        directory.display()
    )));
    let paths: Vec<PathBuf> =
        (0..new.members).map(|n| directory.join(format!("member{n}"))).collect();
    let mut targets = Vec::new();
    for path in &paths {
        job.go_on()?;
        created.file(path, new.member_bytes(), new.mode)?;
        targets.push(target::open(path, Access::Write { exclusive: true })?.0);
    }
    let plan = plan(directory, new)?;
    // In a thread of its own, so that the kernel's workers for it end with it.
    std::thread::scope(|scope| scope.spawn(|| make_array(targets, &plan)).join())
        .map_err(|_| anyhow!("making the array panicked"))??;
    job.go_on()?;
    Ok(paths)
}

/// Makes an array of open files.
fn make_array(targets: Vec<OpenTarget>, plan: &Plan) -> Result<()> {
    let (pool, _) = Pool::new(2, 1 << 20, Pages::Transparent)?;
    let (mut bank, _) = UringBank::open(targets, pool.clone(), Options::default())?;
    let buffers = pool.buffer_ids().collect();
    let mut reader = Reader { bank: &mut bank, memory: &pool, buffers };
    create::create(&mut reader, plan).context("the array was not made")?;
    Ok(())
}

fn plan(directory: &Path, new: &NewArray) -> Result<Plan> {
    let name = directory
        .canonicalize()
        .ok()
        .and_then(|d| d.file_name().map(|n| names::of_folder(&n.to_string_lossy())))
        .unwrap_or_else(|| "array".to_owned());
    Ok(Plan {
        uuid: uuid::Uuid::new_v4(),
        name,
        created: source::clock::now(),
        segment_bytes: new.segment.map(|s| s.0),
        chunk_max: new.chunk.map(|c| u32::try_from(c.0)).transpose().context("--chunk")?,
        identities: (0..new.members).map(|n| format!("file member{n}")).collect(),
        // The files are new: there is nothing to trim, and it would undo their preallocation.
        trim: false,
        parity: new.parity.unwrap_or(0),
    })
}
