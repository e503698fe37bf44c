//! Where a recording goes: the members of an array that is there, or new member files.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use recorder::WhenFull;
use source::spec::SourceSpec;
use target::array::{ArrayNameError, Missing};
use target::{NewFiles, array};

use super::builder::Builder;
use super::fits::{Fits, Offered};
use super::member_files;
use super::observer::Observer;
use super::sources::{self, Taking};

/// Where to record.
pub struct Members {
    /// The members' drives and files.
    pub targets: Vec<PathBuf>,
    /// The source, if it had to be opened before files were made.
    pub source: Option<sources::Open>,
}

/// Finds the array's members. Member files are made where there are none, once everything else is known to be right.
pub fn find_or_create(
    job: &Builder,
    spec: &SourceSpec,
    taking: &Taking,
    created: &mut NewFiles,
    observer: &mut dyn Observer,
) -> Result<Members> {
    let target = &job.target;
    let path = Path::new(target);
    let names_nothing_yet = !path.exists() && !target.contains(',') && !target.starts_with("/dev/");
    if names_nothing_yet && is_capture_file(path) {
        bail!(
            "--to {target}: --to names an array, which keeps pace with faster sources; -w {target} writes that file directly, and with \
             --to DIR `longtake extract DIR -o {target}` writes it, also during the recording"
        );
    }
    let is_empty_directory = path.is_dir() && array::member_files(path)?.is_empty();
    if is_empty_directory || (names_nothing_yet && target.contains('/')) {
        let new = &job.options.new;
        let members = (usize::from(new.members), new.parity.unwrap_or(0));
        let limits = (job.options.when_full, job.options.duration);
        let fits = |room| Fits::new(limits, room, members, Offered::of(spec, &job.options));
        // A ring of any size takes all there is to come.
        let new = &match job.options.when_full {
            WhenFull::Stop => new.sized(path, &fits(0))?,
            WhenFull::Wrap => new.clone(),
        };
        member_files::check(path, new)?;
        let room = u64::from(new.members) * new.member_bytes();
        fits(room).suits(job.options.strict)?;
        let source = sources::open_early(spec, taking)?;
        let targets = member_files::create(path, new, job, created, observer)?;
        return Ok(Members { targets, source });
    }
    let targets = match array::resolve(target) {
        Err(ArrayNameError::NotFound { problem: Missing::Name { names }, .. })
            if names_nothing_yet =>
        {
            let known = if names.is_empty() {
                String::new()
            } else {
                format!(" (but {})", names.join(", "))
            };
            bail!(
                "there is no array '{target}'{known}: --to ./{target} makes one of files in a new directory, `longtake array create` one of drives"
            )
        }
        targets => targets?,
    };
    Ok(Members { targets, source: None })
}

/// Whether a path is named like a file of packets, which a newcomer expects to get.
fn is_capture_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| matches!(extension, "pcapng" | "pcap" | "cap" | "gz" | "zst"))
}
