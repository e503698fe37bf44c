//! Real drives: looked at, confirmed, and opened; files that do not exist are made.

mod error;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use base::Geometry;
use device::Warning;
use device::facts::{self, Facts};
use device::safety::{Authorized, Purpose};
use device::scratch::{self, Measured};
use device::target::{self, Access, OpenTarget};

use crate::authorize::authorize;
use crate::new_files::{NewFiles, check_space};

pub use error::OpenError;

/// Size of a file that is made for measuring, unless another is asked for.
pub const NEW_FILE_BYTES: u64 = 4 << 30;

/// Pages of file systems: what holes in files are made of.
const FILE_TRIM_BYTES: u32 = 4096;

/// What is said when a signal has stopped a command before its work began.
pub const STOPPED: &str =
    "stopped by a signal before the start; files that this command had created are removed";

/// Drives that were looked at.
#[derive(Debug)]
pub struct RealDrives {
    paths: Vec<PathBuf>,
    geometry: Vec<Geometry>,
    new_file_bytes: u64,
    /// What they tell of themselves, once somebody asks.
    facts: OnceCell<Vec<Option<Facts>>>,
}

/// How drives are opened.
#[derive(Clone, Copy, Debug)]
pub struct RealOptions<'a> {
    /// Whether they are written, too.
    pub writes: bool,
    /// Serial numbers of drives, and paths of files, whose contents may be lost.
    pub erase: &'a [String],
    /// Permission bits of files that are made.
    pub mode: u32,
}

/// What a user should hear while drives are opened.
#[derive(Debug)]
pub enum OpenNotice<'a> {
    /// A file is about to be made.
    Making {
        /// The file.
        path: &'a Path,
        /// Its size.
        bytes: u64,
    },
    /// A file will be written over that holds nothing but what an earlier measurement wrote.
    Reusing {
        /// The file.
        path: &'a Path,
    },
    /// A drive will not work as well as it could.
    Warning(Warning),
}

/// Open drives.
#[derive(Debug)]
pub struct OpenDrives {
    /// What a bank is made of.
    pub targets: Vec<OpenTarget>,
    /// The proof that they may be written, if they are: claims that keep others off while they live.
    pub claims: Vec<Option<Authorized>>,
    /// The files that hold nothing but what measurements write, if they are written.
    pub scratch: Scratch,
}

/// Files that hold nothing but what measurements write. When this is dropped they are marked as such: see [`device::scratch`].
#[derive(Debug, Default)]
pub struct Scratch(Vec<Measured>);

impl Drop for Scratch {
    fn drop(&mut self) {
        for file in self.0.drain(..) {
            // A file without a mark has to be given up by name the next time.
            file.mark().ok();
        }
    }
}

impl RealDrives {
    /// The drives as they are, for stating costs: nothing is written, and files that aren't there yet are thought of
    /// as they would be made.
    ///
    /// # Errors
    /// If a target can't be opened.
    pub fn look(paths: Vec<PathBuf>, new_file_bytes: u64) -> Result<Self, OpenError> {
        let geometry =
            paths.iter().map(|path| look_at(path, new_file_bytes)).collect::<Result<_, _>>()?;
        Ok(Self { paths, geometry, new_file_bytes, facts: OnceCell::new() })
    }

    /// Path of each drive, as the user gave it.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Geometry of each drive, in the order of the paths.
    pub fn geometry(&self) -> &[Geometry] {
        &self.geometry
    }

    /// What each drive tells of itself, in the order of the paths; None for one that can't be asked.
    pub fn facts(&self) -> &[Option<Facts>] {
        self.facts.get_or_init(|| self.paths.iter().map(|path| facts::read(path).ok()).collect())
    }

    /// Opens them. Makes files that don't exist, as part of `made`: that removes them again unless the caller keeps them.
    /// `stopped` is asked before each file, and `notice` hears what happens.
    ///
    /// # Errors
    /// Every refusal, or why a target can't be opened.
    pub fn open(
        &self,
        options: RealOptions<'_>,
        made: &mut NewFiles,
        stopped: &dyn Fn() -> bool,
        notice: &mut dyn FnMut(OpenNotice<'_>),
    ) -> Result<OpenDrives, OpenError> {
        let RealOptions { writes, erase, mode } = options;
        let claims = if writes {
            authorize(&self.paths, erase, Purpose::Create, false)?
        } else {
            Vec::new()
        };
        let missing: Vec<&PathBuf> = self.paths.iter().filter(|path| !path.exists()).collect();
        if let Some(path) = missing.first().filter(|_| !writes) {
            return Err(OpenError::NothingToRead { path: path.to_path_buf() });
        }
        self.make_files(&missing, mode, made, stopped, notice)?;
        let access = if writes { Access::Write { exclusive: false } } else { Access::Read };
        let (mut targets, mut scratch) = (Vec::new(), Scratch::default());
        for (index, path) in self.paths.iter().enumerate() {
            let proof = claims.get(index).and_then(Option::as_ref);
            let proof = proof.filter(|_| !made.holds(path));
            // Opening it for writing tries what the file system can do, which changes the time that the mark names.
            let reused = proof.and_then(Authorized::claim).is_some_and(scratch::is_marked);
            if reused {
                notice(OpenNotice::Reusing { path });
            }
            let (target, warnings) = open_proven(path, access, proof)?;
            if reused || made.holds(path) {
                let file = target.claimed().try_clone().map_err(OpenError::Claim)?;
                scratch.0.extend(Measured::watch(file));
            }
            warnings.into_iter().for_each(|warning| notice(OpenNotice::Warning(warning)));
            targets.push(target);
        }
        Ok(OpenDrives { targets, claims, scratch })
    }

    fn make_files(
        &self,
        missing: &[&PathBuf],
        mode: u32,
        made: &mut NewFiles,
        stopped: &dyn Fn() -> bool,
        notice: &mut dyn FnMut(OpenNotice<'_>),
    ) -> Result<(), OpenError> {
        let bytes = self.new_file_bytes / 4096 * 4096;
        // As many as go to one folder share its file system's space.
        for path in missing {
            let folder = folder_of(path);
            let beside = missing.iter().filter(|other| folder_of(other) == folder).count();
            check_space(folder, beside as u64, bytes, "give a smaller --size")?;
        }
        for path in missing {
            if stopped() {
                return Err(OpenError::Stopped);
            }
            notice(OpenNotice::Making { path, bytes });
            made.file(path, bytes, mode)?;
        }
        Ok(())
    }
}

/// Opens a target, and holds it against the proof that it may be written: it must be what was looked at.
///
/// # Errors
/// If it can't be opened, or is another.
pub fn open_proven(
    path: &Path,
    access: Access,
    proof: Option<&Authorized>,
) -> Result<(OpenTarget, Vec<Warning>), OpenError> {
    let (target, warnings) = target::open(path, access)?;
    if let Some(proof) = proof
        && !proof.covers(target.claimed()).map_err(OpenError::Claim)?
    {
        return Err(OpenError::Exchanged { path: path.to_owned() });
    }
    Ok((target, warnings))
}

/// The folder that a file lies in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn look_at(path: &Path, new_file_bytes: u64) -> Result<Geometry, OpenError> {
    if !path.exists() {
        return new_file(path, new_file_bytes);
    }
    let mut geometry = target::open(path, Access::Read)?.0.geometry;
    geometry.writable = true;
    if path.is_file() && geometry.trim_unit_bytes.is_none() {
        // Whether holes can be made is only tried on a file that is open for writing. Nearly all can.
        geometry.trim_unit_bytes = Some(geometry.block_bytes.max(FILE_TRIM_BYTES));
        geometry.trim_reads_zeros = true;
    }
    Ok(geometry)
}

/// What a file will be like that is still to be made.
fn new_file(path: &Path, bytes: u64) -> Result<Geometry, OpenError> {
    if path.starts_with("/dev") {
        return Err(OpenError::NoDevice { path: path.to_owned() });
    }
    Ok(Geometry {
        name: path.display().to_string(),
        capacity_bytes: bytes / 4096 * 4096,
        block_bytes: 4096,
        transfer_max_bytes: 16 << 20,
        depth_max: 32,
        trim_unit_bytes: Some(FILE_TRIM_BYTES),
        trim_reads_zeros: true,
        writable: true,
    })
}
