//! Real drives to be measured: what measuring them costs, and the threads and sensors that measure them.

use std::path::PathBuf;

use base::ByteSize;
use device::safety::{self, Authorized, Purpose};
use lab::run::Subject;
use lab::threads::ThreadRig;
use lab::{Cost, sensors};
use target::real::{OpenDrives, OpenError, OpenNotice, RealOptions};
use target::{NewFiles, RealDrives, wear};

use super::SetupOptions;
use crate::known::subject;

/// Open drives with all that measures them.
#[derive(Debug)]
pub struct RealRig {
    /// What experiments run on.
    pub threads: ThreadRig,
    /// The proof that they may be written, where that is wanted: claims that keep others off while they live.
    _claims: Vec<Option<Authorized>>,
}

/// What a report says of the drives.
pub fn subjects(drives: &RealDrives) -> Vec<Subject> {
    let all = drives.paths().iter().zip(drives.facts()).zip(drives.geometry());
    let described = all.map(|((path, facts), geometry)| {
        let kind = facts.as_ref().map_or_else(|| "file".to_owned(), |f| f.drive.kind.to_string());
        subject(path.display().to_string(), kind, facts.as_ref(), geometry)
    });
    described.collect()
}

/// States what is about to happen to the drives, in words.
pub fn state_cost(drives: &RealDrives, cost: &Cost) -> Vec<String> {
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
    let paths = drives.paths();
    let each = cost.written_bytes / paths.len().max(1) as u64;
    for path in paths {
        if let Some(share) = wear(path, each) {
            lines.push(format!("{}: {share}", path.display()));
        }
    }
    lines
}

/// Why drives would be refused as they are, in words.
pub fn refusals(drives: &RealDrives, erase: &[String]) -> Vec<String> {
    // Authorizing claims a drive and writes nothing; the claim ends at once.
    let refused = |path: &PathBuf| safety::authorize_for(path, erase, Purpose::Create).err();
    let all = drives.paths().iter().filter_map(refused).flatten();
    all.map(|refusal| format!("as it stands it would be refused: {refusal}")).collect()
}

impl RealRig {
    /// Opens the drives, for writing only if `writes`. Files that don't exist are made as part of `made`, and kept once all is
    /// open and `stopped` says nothing else.
    ///
    /// # Errors
    /// Every refusal, or why a target can't be opened.
    pub(super) fn open(
        drives: &RealDrives,
        options: SetupOptions,
        writes: bool,
        made: &mut NewFiles,
        stopped: &dyn Fn() -> bool,
        notice: &mut dyn FnMut(OpenNotice<'_>),
    ) -> Result<Self, OpenError> {
        let SetupOptions { erase, mode, threads, .. } = options;
        let opened = RealOptions { writes, erase: &erase, mode };
        let OpenDrives { targets, claims } = drives.open(opened, made, stopped, notice)?;
        let threads = ThreadRig::new(targets, threads, sensors::of(drives.paths()));
        if stopped() {
            return Err(OpenError::Stopped);
        }
        made.keep();
        Ok(Self { threads, _claims: claims })
    }
}
