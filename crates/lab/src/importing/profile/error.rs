//! Why files can't be read as a profile.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use profile::MergeError;

use crate::importing::ImportError;
use crate::lab::LabError;

/// Why files can't be read as a profile. The reason behind it is its source.
#[derive(Debug)]
pub enum ProfileImportError {
    /// A folder of results can't be read.
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        reason: LabError,
    },
    /// A folder holds no results.
    NoResults {
        /// The folder.
        path: PathBuf,
    },
    /// A file can't be read.
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// A file holds nothing that can be imported.
    Import {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: ImportError,
    },
    /// A log of fio's tells something else than bytes.
    LogOf {
        /// The log.
        path: PathBuf,
        /// What it tells: commands or latencies.
        of: &'static str,
    },
    /// Logs of bandwidth and of histograms are given together.
    OtherLogs {
        /// The first of the other kind.
        path: PathBuf,
    },
    /// There are two tables of one pass.
    SecondTable {
        /// The second.
        path: PathBuf,
    },
    /// A second pass is given, but rates over time of both are not.
    NoFirstPass,
    /// Results are of several drives.
    SeveralDrives {
        /// The file or folder.
        path: PathBuf,
        /// Number of drives.
        drives: usize,
    },
    /// Results are of a drive of another size.
    OtherDrive {
        /// The file or folder.
        path: PathBuf,
        /// Size of its drive.
        capacity_bytes: u64,
        /// Size that was known before.
        known_bytes: u64,
    },
    /// Nothing says how large the drive is.
    NoCapacity {
        /// What was read, in words.
        files: String,
    },
    /// Nothing says how the drive is.
    NothingTold {
        /// What was read, in words.
        files: String,
    },
    /// The profile does not go together with what was known of the drive.
    Merge(MergeError),
}

impl fmt::Display for ProfileImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, .. } | Self::File { path, .. } => {
                write!(f, "reading {}", path.display())
            }
            Self::Import { path, .. } => {
                write!(f, "reading {}", path.display())?;
                if path.extension().is_some_and(|extension| extension == "toml") {
                    f.write_str(
                        ": a TOML file is a profile already: copy it into your folder of profiles (`longtake profiles list` says \
                         where)",
                    )?;
                }
                Ok(())
            }
            Self::NoResults { path } => write!(
                f,
                "{} holds no results: give a folder that `longtake measure` wrote",
                path.display()
            ),
            Self::LogOf { path, of } => write!(
                f,
                "{} is fio's log of {of}, not of bytes: give the one with _bw (write_bw_log) or _hist (write_hist_log) in its name",
                path.display()
            ),
            Self::OtherLogs { path } => write!(
                f,
                "{} tells the same bytes as the logs before it: give those of bandwidth or those of histograms, not both",
                path.display()
            ),
            Self::SecondTable { path } => write!(
                f,
                "{} is the second table: give one for each pass, the second with --overwrite-pass",
                path.display()
            ),
            Self::NoFirstPass => f.write_str(
                "--overwrite-pass is for rates over time, beside those of the first pass: give tables or logs of both",
            ),
            Self::SeveralDrives { path, drives } => write!(
                f,
                "{} is of {drives} drives, and their figures are of all together: measure one alone",
                path.display()
            ),
            Self::OtherDrive { path, capacity_bytes, known_bytes } => write!(
                f,
                "{} is of a drive of {capacity_bytes} bytes, but --drive, --capacity or what was read before says {known_bytes}: \
                 import drives one by one",
                path.display()
            ),
            Self::NoCapacity { files } => write!(
                f,
                "{files} doesn't tell how large the drive is: add --capacity, as in --capacity 1TB, or --drive with one that is known"
            ),
            Self::NothingTold { files } => write!(
                f,
                "nothing of {files} tells how a drive is: give one workload alone (a sequential stream or random reads), a fill, or \
                 its rate over time"
            ),
            Self::Merge(_) => f.write_str("putting it together with what --drive knows"),
        }
    }
}

impl Error for ProfileImportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Folder { reason, .. } => Some(reason),
            Self::File { reason, .. } => Some(reason),
            Self::Import { reason, .. } => Some(reason),
            Self::Merge(reason) => Some(reason),
            _ => None,
        }
    }
}
