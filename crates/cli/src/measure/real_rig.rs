//! Real drives to be measured: what measuring them costs, and the threads and sensors that measure them.

use anyhow::{Result, bail};
use base::ByteSize;
use device::safety::{self, Authorized, Purpose};
use lab::run::Subject;
use lab::threads::{ThreadOptions, ThreadRig};
use lab::{Cost, Go};
use target::real::{OpenDrives, OpenNotice, RealOptions, STOPPED};
use target::{RealDrives, wear};
use twin::known::subject;

use crate::measure::arguments::RigArguments;
use crate::measure::sensors;
use crate::outlet;
use crate::preparation::Created;

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
pub fn state_cost(drives: &RealDrives, arguments: &RigArguments, cost: &Cost) -> Vec<String> {
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
    if arguments.dry_run {
        for path in paths {
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

/// Opens the drives, for writing only if `writes`. Makes files that don't exist, and removes them again if anything fails or
/// `stopped` says so.
///
/// # Errors
/// Every refusal, or why a target can't be opened.
pub fn open(
    drives: &RealDrives,
    arguments: &RigArguments,
    writes: bool,
    stopped: &impl Fn() -> Go,
) -> Result<RealRig> {
    let stopped = || stopped() == Go::Stop;
    let options = RealOptions { writes, erase: &arguments.erase, mode: arguments.mode.0 };
    let mut made = Created::default();
    let OpenDrives { targets, claims } =
        drives.open(options, &mut made, &stopped, &mut |notice| {
            outlet::tell(&match notice {
                OpenNotice::Making { path, bytes } => {
                    format!("longtake: note: making {} of {}", path.display(), ByteSize(bytes))
                }
                OpenNotice::Warning(warning) => format!("longtake: warning: {warning}"),
            });
        })?;
    let options = ThreadOptions {
        threads: arguments.threads.into(),
        cpus: arguments.cpus.clone(),
        poll: arguments.poll,
    };
    let threads = ThreadRig::new(targets, options, sensors::of(drives.paths()));
    if stopped() {
        bail!(STOPPED);
    }
    made.keep();
    Ok(RealRig { threads, _claims: claims })
}
