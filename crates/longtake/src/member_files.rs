//! The embedded default: a directory of member files, `member0`, `member1` and so on.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use base::ByteSize;
use device::target::{self, Access};
use device::{Options, Pages, Pool, UringBank};
use recorder::create::{self, Plan};
use recorder::reader::Reader;

use crate::{names, outlet};

/// The member files of a directory, by number.
///
/// # Errors
/// If the directory can't be read, or a number is missing.
pub fn find(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut numbered = Vec::new();
    let entries = fs::read_dir(directory).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => anyhow!(
            "looking into {} is not permitted; run as root, or as the user who owns it",
            directory.display()
        ),
        _ => anyhow!("looking into {} failed: {error}", directory.display()),
    })?;
    for entry in entries {
        let entry = entry.with_context(|| format!("looking into {}", directory.display()))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("member"));
        if let Some(number) = number.and_then(|n| n.parse::<u16>().ok()) {
            numbered.push((number, entry.path()));
        }
    }
    numbered.sort();
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}

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
}

/// Makes member files in a new or empty directory, and an array of them.
///
/// # Errors
/// If the directory holds anything, or there is no space.
pub fn create(directory: &Path, new: New) -> Result<Vec<PathBuf>> {
    if new.members == 0 {
        bail!("--members 0: an array has one member at least");
    }
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let foreign = fs::read_dir(directory)?.next();
    if let Some(Ok(entry)) = foreign {
        bail!(
            "{} is not empty and holds no member files (there is {}): name a new directory",
            directory.display(),
            entry.file_name().display()
        );
    }
    let size = new.size.0 / 4096 * 4096;
    outlet::tell(&format!(
        "longtake: note: making {} member files of {} in {}",
        new.members,
        ByteSize(size),
        directory.display()
    ));
    let paths: Vec<PathBuf> =
        (0..new.members).map(|n| directory.join(format!("member{n}"))).collect();
    let made = make(directory, &paths, size, new);
    if made.is_err() {
        // Half an array would only be in the way of the next try; the first error is the one to tell.
        for path in &paths {
            drop(fs::remove_file(path));
        }
    }
    made.map(|()| paths)
}

fn make(directory: &Path, paths: &[PathBuf], size: u64, new: New) -> Result<()> {
    let mut targets = Vec::new();
    for path in paths {
        target::create_file(path, size)?;
        targets.push(target::open(path, Access::Write { exclusive: true })?.0);
    }
    let (pool, _) = Pool::new(2, 1 << 20, Pages::Transparent)?;
    let (mut bank, _) = UringBank::open(targets, pool.clone(), Options::default())?;
    let name = directory
        .canonicalize()
        .ok()
        .and_then(|d| d.file_name().map(|n| names::of_folder(&n.to_string_lossy())))
        .unwrap_or_else(|| "array".to_owned());
    let plan = Plan {
        uuid: uuid::Uuid::new_v4(),
        name,
        created: source::clock::now(),
        segment_bytes: new.segment.map(|s| s.0),
        chunk_max: new.chunk.map(|c| u32::try_from(c.0)).transpose().context("--chunk")?,
        identities: (0..paths.len()).map(|n| format!("file member{n}")).collect(),
        // The files are new: there is nothing to trim, and it would undo their preallocation.
        trim: false,
        parity: new.parity,
    };
    let buffers = pool.buffer_ids().collect();
    create::create(&mut Reader { bank: &mut bank, memory: &pool, buffers }, &plan)?;
    Ok(())
}
