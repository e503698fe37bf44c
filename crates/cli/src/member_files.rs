//! The embedded default: a directory of member files, `member0`, `member1` and so on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ::target::new_files::check_space;
use anyhow::{Context, Result, anyhow, bail};
use base::{ByteSize, Geometry};
use device::target::{self, Access, OpenTarget};
use device::{Options, Pages, Pool, UringBank};
use format::PAGE_BYTES;
use format::superblock::MEMBERS_MAX;
use recorder::create::{self, Plan};
use recorder::reader::Reader;

use crate::arguments::FileMode;
use crate::preparation::{self, Created};
use longtake::names;

use crate::outlet;

/// What to make where there are no member files yet.
#[derive(Clone, Copy, Debug)]
pub struct New {
    /// How many.
    pub members: u16,
    /// How large each.
    pub size: ByteSize,
    /// Segment length, if not the default.
    pub segment: Option<ByteSize>,
    /// Longest chunk, if not the default.
    pub chunk: Option<ByteSize>,
    /// Parity chunks for each group.
    pub parity: u8,
    /// The files' mode.
    pub mode: FileMode,
}

impl New {
    /// Bytes of each file.
    fn bytes(&self) -> u64 {
        self.size.0 / PAGE_BYTES * PAGE_BYTES
    }
}

/// Checks everything about new member files that can be known before the first of them exists: the directory, the array's
/// limits, and the free space.
///
/// # Errors
/// If the directory holds anything, the members don't make an array, or there is no space.
pub fn check(directory: &Path, new: &New) -> Result<()> {
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
            capacity_bytes: new.bytes(),
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
    Ok(check_space(directory, new.members.into(), new.bytes(), remedy)?)
}

/// Makes member files in a new or empty directory, and an array of them. The files are removed again unless they are kept.
///
/// # Errors
/// If a file or the array can't be made, or `stop` is set meanwhile.
pub fn create(directory: &Path, new: &New, stop: &AtomicBool) -> Result<(Vec<PathBuf>, Created)> {
    let mut created = Created::default();
    created.directory(directory)?;
    outlet::tell(&format!(
        "longtake: note: making {} member files of {} in {}",
        new.members,
        ByteSize(new.bytes()),
        directory.display()
    ));
    let paths: Vec<PathBuf> =
        (0..new.members).map(|n| directory.join(format!("member{n}"))).collect();
    let mut targets = Vec::new();
    for path in &paths {
        preparation::go_on(stop)?;
        created.file(path, new.bytes(), new.mode.0)?;
        targets.push(target::open(path, Access::Write { exclusive: true })?.0);
    }
    let plan = plan(directory, new)?;
    // In a thread of its own, so that the kernel's workers for it end with it.
    std::thread::scope(|scope| scope.spawn(|| make_array(targets, &plan)).join())
        .map_err(|_| anyhow!("making the array panicked"))??;
    preparation::go_on(stop)?;
    Ok((paths, created))
}

/// Makes an array of open files.
fn make_array(targets: Vec<OpenTarget>, plan: &Plan) -> Result<()> {
    let (pool, _) = Pool::new(2, 1 << 20, Pages::Transparent)?;
    let (mut bank, _) = UringBank::open(targets, pool.clone(), Options::default())?;
    let buffers = pool.buffer_ids().collect();
    create::create(&mut Reader { bank: &mut bank, memory: &pool, buffers }, plan)?;
    Ok(())
}

fn plan(directory: &Path, new: &New) -> Result<Plan> {
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
        parity: new.parity,
    })
}
