//! From targets on the command line to a rig of open drives: looked at, confirmed, opened, with their sensors.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use base::{ByteSize, Geometry};
use device::safety::{self, Authorized, Purpose};
use device::target::{self, Access, OpenTarget};
use lab::threads::{Sensors, ThreadOptions, ThreadRig};
use lab::{Cost, Go};

use crate::array::{authorize, wear};
use crate::measure::arguments::RigArguments;
use crate::measure::sensors;
use crate::outlet;

/// Size of a file that is made for measuring, unless another is asked for.
pub const NEW_FILE_BYTES: u64 = 4 << 30;

/// Pages of file systems: what holes in files are made of.
const FILE_TRIM_BYTES: u32 = 4096;

/// Open drives, and the proof that they may be written where that is wanted.
#[derive(Debug)]
pub struct Setup {
    targets: Vec<OpenTarget>,
    sensors: Option<SensorsBox>,
    /// Claims that keep others off while they live.
    _proofs: Vec<Option<Authorized>>,
}

struct SensorsBox(Sensors);

impl std::fmt::Debug for SensorsBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sensors")
    }
}

/// The drives as they are, for stating costs: nothing is written, and files that aren't there yet are thought of
/// as they would be made.
///
/// # Errors
/// If a target can't be opened.
pub fn look(arguments: &RigArguments, new_file_bytes: u64) -> Result<Vec<Geometry>> {
    let mut found = Vec::new();
    for path in &arguments.targets {
        found.push(if path.exists() {
            let mut geometry = target::open(path, Access::Read)?.0.geometry;
            geometry.writable = true;
            if path.is_file() && geometry.trim_unit_bytes.is_none() {
                // Whether holes can be made is only tried on a file that is open for writing. Nearly all can.
                geometry.trim_unit_bytes = Some(geometry.block_bytes.max(FILE_TRIM_BYTES));
                geometry.trim_reads_zeros = true;
            }
            geometry
        } else {
            new_file(path, new_file_bytes)?
        });
    }
    Ok(found)
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

/// States what is about to happen to the drives, in words.
pub fn state_cost(arguments: &RigArguments, cost: &Cost) -> Vec<String> {
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
    let each = cost.written_bytes / arguments.targets.len().max(1) as u64;
    for path in &arguments.targets {
        if let Some(share) = wear(path, each) {
            lines.push(format!("{}: {share}", path.display()));
        }
    }
    if arguments.dry_run {
        for path in &arguments.targets {
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

impl Setup {
    /// Opens the drives, for writing only if `writes`. Makes files that don't exist.
    ///
    /// # Errors
    /// Every refusal, or why a target can't be opened.
    pub fn open(arguments: &RigArguments, writes: bool, new_file_bytes: u64) -> Result<Self> {
        let proofs = if writes {
            authorize(&arguments.targets, &arguments.erase, Purpose::Create, false)?
        } else {
            Vec::new()
        };
        let made = make_files(&arguments.targets, new_file_bytes, writes)?;
        let access = if writes { Access::Write { exclusive: false } } else { Access::Read };
        let mut targets = Vec::new();
        for (index, path) in arguments.targets.iter().enumerate() {
            let (target, warnings) = target::open(path, access)?;
            if let Some(Some(proof)) = proofs.get(index)
                && !made.contains(path)
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
        let sensors = sensors::of(&arguments.targets);
        Ok(Self { targets, sensors: Some(SensorsBox(sensors)), _proofs: proofs })
    }

    /// The rig. Once.
    pub fn rig(&mut self, arguments: &RigArguments) -> ThreadRig {
        let options = ThreadOptions {
            threads: arguments.threads.into(),
            cpus: arguments.cpus.clone(),
            poll: arguments.poll,
        };
        let sensors =
            self.sensors.take().map_or_else(|| Box::new(Vec::new) as Sensors, |sensors| sensors.0);
        ThreadRig::new(std::mem::take(&mut self.targets), options, sensors)
    }
}

fn make_files(paths: &[PathBuf], bytes: u64, writes: bool) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for path in paths.iter().filter(|path| !path.exists()) {
        if !writes {
            bail!(
                "{}: there is nothing to read; give a drive or a file that has something in it",
                path.display()
            );
        }
        outlet::tell(&format!(
            "longtake: note: making {} of {}",
            path.display(),
            ByteSize(bytes / 4096 * 4096)
        ));
        target::create_file(path, bytes / 4096 * 4096)?;
        made.push(path.clone());
    }
    Ok(made)
}

/// Whether a signal asked to stop. A second one ends the process at once.
///
/// # Errors
/// If signals can't be caught.
pub fn stop_on_signals() -> Result<impl Fn() -> Go> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signal_hook::consts::TERM_SIGNALS {
        signal_hook::flag::register_conditional_shutdown(
            *signal,
            128 + *signal,
            Arc::clone(&stop),
        )?;
        signal_hook::flag::register(*signal, Arc::clone(&stop))?;
    }
    Ok(move || if stop.load(Ordering::Relaxed) { Go::Stop } else { Go::On })
}
