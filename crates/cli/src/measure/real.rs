//! Real drives to be measured: looked at, confirmed, opened, with their sensors.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use base::{ByteSize, Geometry};
use device::facts::{self, Facts};
use device::safety::{self, Authorized, Purpose};
use device::target::{self, Access};
use lab::run::Subject;
use lab::threads::{ThreadOptions, ThreadRig};
use lab::{Cost, Go};

use crate::array::{authorize, wear};
use crate::measure::arguments::RigArguments;
use crate::measure::known::{Known, subject};
use crate::measure::sensors;
use crate::outlet;
use crate::preparation::{self, Created};

/// Size of a file that is made for measuring, unless another is asked for.
pub const NEW_FILE_BYTES: u64 = 4 << 30;

/// Pages of file systems: what holes in files are made of.
const FILE_TRIM_BYTES: u32 = 4096;

/// Drives that were looked at.
#[derive(Debug)]
pub struct RealDrives {
    paths: Vec<PathBuf>,
    geometry: Vec<Geometry>,
    new_file_bytes: u64,
    /// What they tell of themselves, once somebody asks.
    facts: OnceCell<Vec<Option<Facts>>>,
}

/// Open drives with all that measures them.
#[derive(Debug)]
pub struct RealRig {
    /// What experiments run on.
    pub threads: ThreadRig,
    /// The proof that they may be written, where that is wanted: claims that keep others off while they live.
    _claims: Vec<Option<Authorized>>,
}

impl RealDrives {
    /// The drives as they are, for stating costs: nothing is written, and files that aren't there yet are thought of
    /// as they would be made.
    ///
    /// # Errors
    /// If a target can't be opened.
    pub fn look(arguments: &RigArguments, new_file_bytes: u64) -> Result<Self> {
        let paths = arguments.targets.clone();
        let geometry =
            paths.iter().map(|path| look_at(path, new_file_bytes)).collect::<Result<_>>()?;
        Ok(Self { paths, geometry, new_file_bytes, facts: OnceCell::new() })
    }

    /// What they are like.
    pub fn geometry(&self) -> &[Geometry] {
        &self.geometry
    }

    /// What is known of them.
    pub fn known(&self) -> Vec<Known> {
        let known = |facts: &Option<Facts>| facts.as_ref().map(Known::of_facts).unwrap_or_default();
        self.facts().iter().map(known).collect()
    }

    fn facts(&self) -> &[Option<Facts>] {
        self.facts.get_or_init(|| self.paths.iter().map(|path| facts::read(path).ok()).collect())
    }

    /// What a report says of them.
    pub fn subjects(&self) -> Vec<Subject> {
        let all = self.paths.iter().zip(self.facts()).zip(&self.geometry);
        let described = all.map(|((path, facts), geometry)| {
            let kind =
                facts.as_ref().map_or_else(|| "file".to_owned(), |f| f.drive.kind.to_string());
            subject(path.display().to_string(), kind, facts.as_ref(), geometry)
        });
        described.collect()
    }

    /// States what is about to happen to them, in words.
    pub fn state_cost(&self, arguments: &RigArguments, cost: &Cost) -> Vec<String> {
        let mut lines = vec![format!(
            "writes up to {}, reads about {}, takes about {}",
            ByteSize(cost.written_bytes),
            ByteSize(cost.read_bytes),
            cost.time()
        )];
        if cost.written_bytes == 0 {
            lines.push("nothing is written".to_owned());
            return lines;
        }
        let each = cost.written_bytes / self.paths.len().max(1) as u64;
        for path in &self.paths {
            if let Some(share) = wear(path, each) {
                lines.push(format!("{}: {share}", path.display()));
            }
        }
        if arguments.dry_run {
            for path in &self.paths {
                // Authorizing claims a drive and writes nothing; the claim ends at once.
                let refused = safety::authorize_for(path, &arguments.erase, Purpose::Create).err();
                lines.extend(
                    refused
                        .into_iter()
                        .flatten()
                        .map(|refusal| format!("as it stands it would be refused: {refusal}")),
                );
            }
        }
        lines
    }

    /// Opens them, for writing only if `writes`. Makes files that don't exist, and removes them again if anything fails or
    /// `stopped` says so.
    ///
    /// # Errors
    /// Every refusal, or why a target can't be opened.
    pub fn open(
        self,
        arguments: &RigArguments,
        writes: bool,
        stopped: &impl Fn() -> Go,
    ) -> Result<RealRig> {
        let proofs = if writes {
            authorize(&self.paths, &arguments.erase, Purpose::Create, false)?
        } else {
            Vec::new()
        };
        let made = self.make_files(arguments, writes, stopped)?;
        let access = if writes { Access::Write { exclusive: false } } else { Access::Read };
        let mut targets = Vec::new();
        for (index, path) in self.paths.iter().enumerate() {
            let (target, warnings) = target::open(path, access)?;
            if let Some(Some(proof)) = proofs.get(index)
                && !made.holds(path)
                && !proof.covers(target.claimed())?
            {
                bail!(
                    "{}: it was exchanged while it was being opened; nothing was written",
                    path.display()
                );
            }
            for warning in warnings {
                outlet::tell(&format!("longtake: warning: {warning}"));
            }
            targets.push(target);
        }
        let options = ThreadOptions {
            threads: arguments.threads.into(),
            cpus: arguments.cpus.clone(),
            poll: arguments.poll,
        };
        let threads = ThreadRig::new(targets, options, sensors::of(&self.paths));
        go_on(stopped)?;
        made.keep();
        Ok(RealRig { threads, _claims: proofs })
    }
}

impl RealDrives {
    fn make_files(
        &self,
        arguments: &RigArguments,
        writes: bool,
        stopped: &impl Fn() -> Go,
    ) -> Result<Created> {
        let missing: Vec<&PathBuf> = self.paths.iter().filter(|path| !path.exists()).collect();
        if let Some(path) = missing.first().filter(|_| !writes) {
            bail!(
                "{}: there is nothing to read; give a drive or a file that has something in it",
                path.display()
            );
        }
        let size = self.new_file_bytes / 4096 * 4096;
        // As many as go to one folder share its file system's space.
        for path in &missing {
            let folder = folder_of(path);
            let beside = missing.iter().filter(|other| folder_of(other) == folder).count();
            preparation::check_space(folder, beside as u64, size, "give a smaller --size")?;
        }
        let mut made = Created::default();
        for path in missing {
            go_on(stopped)?;
            outlet::tell(&format!(
                "longtake: note: making {} of {}",
                path.display(),
                ByteSize(size)
            ));
            made.file(path, size, arguments.mode)?;
        }
        Ok(made)
    }
}

/// The folder that a file lies in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn look_at(path: &Path, new_file_bytes: u64) -> Result<Geometry> {
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
fn new_file(path: &Path, bytes: u64) -> Result<Geometry> {
    if path.starts_with("/dev") {
        bail!("{}: there is no such device; `longtake drives` lists the drives", path.display());
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

/// Ends a preparation that was asked to stop.
fn go_on(stopped: &impl Fn() -> Go) -> Result<()> {
    match stopped() {
        Go::On => Ok(()),
        Go::Stop => bail!(preparation::STOPPED),
    }
}
