//! Whether a file has changed since it was read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file that changed so recently may change again within the resolution of its time stamps.
const UNSETTLED: Duration = Duration::from_secs(2);

/// What changes with a file: its number, its length, and the times of its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStamp(u64, u64, SystemTime, (i64, i64));

impl FileStamp {
    /// That of a file now; None if it can't be had.
    pub fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let changed = (found.ctime(), found.ctime_nsec());
        Some(Self(found.ino(), found.len(), found.modified().ok()?, changed))
    }

    /// Whether the file was changed so long ago that another change shows.
    pub fn is_settled(&self) -> bool {
        self.2.elapsed().is_ok_and(|age| age > UNSETTLED)
    }
}
