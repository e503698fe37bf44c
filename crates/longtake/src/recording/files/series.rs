//! The files of a capture: what they are called, and which of them are kept. Only files that this capture has written are ever
//! removed.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use base::Timestamp;
use jiff::tz::TimeZone;
use target::output::{NewFile, Outputs, Readers};

/// Files of one capture, one after the other.
#[derive(Debug)]
pub struct Series {
    outputs: Outputs,
    path: PathBuf,
    /// Whether there may be several, which have a number and a time in their names.
    numbered: bool,
    /// Files that there are at most, with the one that is being written; None keeps all, and remembers none.
    keep: Option<u32>,
    begun: u64,
    complete: u64,
    removed: u64,
    /// The first that was completed.
    first: Option<PathBuf>,
    last: Option<PathBuf>,
    /// Those that may be removed, oldest first.
    kept: VecDeque<Written>,
}

/// A file that was written, by name and by what the name led to.
#[derive(Debug)]
struct Written {
    path: PathBuf,
    identity: Identity,
}

/// Tells a file from one that has taken its place. File systems use the number of an inode again, so that alone is not enough.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
    /// None where the file system keeps no such time.
    created: Option<SystemTime>,
    modified: Option<SystemTime>,
}

impl Identity {
    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            length: found.len(),
            created: found.created().ok(),
            modified: found.modified().ok(),
        }
    }
}

impl Series {
    /// A series at a path. With `numbered`, files are called `NAME_00001_20261121100000.pcapng`, where the time is that of
    /// their beginning in UTC.
    pub fn new(outputs: Outputs, path: &Path, numbered: bool, keep: Option<u32>) -> Self {
        Self {
            outputs,
            path: path.to_owned(),
            numbered,
            keep,
            begun: 0,
            complete: 0,
            removed: 0,
            first: None,
            last: None,
            kept: VecDeque::new(),
        }
    }

    /// Begins the next file, which is nothing but temporary until it is complete. The oldest ones are removed if there would be
    /// too many.
    ///
    /// # Errors
    /// If it can't be written, or must not be, or if the oldest can't be removed.
    pub fn begin(&mut self, at: Timestamp) -> Result<NewFile> {
        self.remove_oldest()?;
        self.begun += 1;
        let path = if self.numbered { name(&self.path, self.begun, at) } else { self.path.clone() };
        Ok(self.outputs.create(&path, Readers::Owner)?.not_stream()?.directly()?)
    }

    /// Removes files until there is room for another one.
    fn remove_oldest(&mut self) -> Result<()> {
        let Some(most) = self.keep else { return Ok(()) };
        while self.kept.len() >= most as usize {
            let Some(oldest) = self.kept.pop_front() else { break };
            oldest.remove().with_context(|| format!("removing {}", oldest.path.display()))?;
            self.removed += 1;
        }
        Ok(())
    }

    /// Enters a file that is in its place.
    ///
    /// # Errors
    /// If it can't be inspected.
    pub fn completed(&mut self, path: &Path) -> Result<()> {
        self.complete += 1;
        self.first.get_or_insert_with(|| path.to_owned());
        self.last = Some(path.to_owned());
        if self.keep.is_none() {
            return Ok(());
        }
        let found = fs::metadata(path).with_context(|| format!("inspecting {}", path.display()))?;
        self.kept.push_back(Written { path: path.to_owned(), identity: Identity::of(&found) });
        Ok(())
    }

    /// What there is now.
    pub fn written(&self) -> Files {
        let oldest = self.kept.front().map(|written| &written.path).or(self.first.as_ref());
        Files {
            complete: self.complete,
            removed: self.removed,
            oldest: oldest.cloned(),
            newest: self.last.clone(),
        }
    }
}

impl Written {
    /// Removes it, unless something else has its name now, or somebody else has written to it.
    fn remove(&self) -> std::io::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) if Identity::of(&found) == self.identity => fs::remove_file(&self.path),
            // Somebody else has moved, replaced or removed it.
            _ => Ok(()),
        }
    }
}

/// Files that a capture has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// How many were completed.
    pub complete: u64,
    /// How many of these were removed for newer ones.
    pub removed: u64,
    /// The oldest that is left.
    pub oldest: Option<PathBuf>,
    /// The newest.
    pub newest: Option<PathBuf>,
}

impl fmt::Display for Files {
    /// Where packets were written to, as in "7 files, a to b (4 older ones were removed)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.oldest, &self.newest) {
            (Some(oldest), Some(newest)) if oldest != newest => {
                let left = self.complete - self.removed;
                write!(f, "{left} files, {} to {}", oldest.display(), newest.display())?;
            }
            (_, Some(newest)) => write!(f, "{}", newest.display())?,
            (_, None) => return f.write_str("no file"),
        }
        match self.removed {
            0 => Ok(()),
            1 => f.write_str(" (1 older one was removed)"),
            removed => write!(f, " ({removed} older ones were removed)"),
        }
    }
}

/// The name of a file of a series, as dumpcap numbers them.
fn name(path: &Path, number: u64, at: Timestamp) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = format!("{stem}_{number:05}_{}", time(at));
    if let Some(extension) = path.extension() {
        name = format!("{name}.{}", extension.to_string_lossy());
    }
    path.with_file_name(name)
}

/// `20261121100000`, in UTC.
fn time(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at.as_nanos())).unwrap_or_default();
    at.to_zoned(TimeZone::UTC).strftime("%Y%m%d%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const AT: Timestamp = Timestamp::from_nanos(1_795_000_000_999_999_999);

    #[track_caller]
    fn write(series: &mut Series, contents: &str) -> PathBuf {
        let mut file = series.begin(AT).unwrap();
        file.write_all(contents.as_bytes()).unwrap();
        let path = file.finish_beside().unwrap();
        series.completed(&path).unwrap();
        path
    }

    #[test]
    fn names_have_a_number_and_the_time_of_the_beginning() {
        for (path, expected) in [
            ("a/out.pcapng", "a/out_00007_20261118110640.pcapng"),
            ("out.of.pcap", "out.of_00007_20261118110640.pcap"),
            ("out", "out_00007_20261118110640"),
        ] {
            assert_eq!(name(Path::new(path), 7, AT), Path::new(expected));
        }
    }

    #[test]
    fn the_newest_are_kept_and_what_others_have_written_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        let bystander = folder.path().join("out_00000_20261118110640.pcapng");
        fs::write(&bystander, "somebody's").unwrap();
        let path = folder.path().join("out.pcapng");
        let mut series = Series::new(Outputs::default(), &path, true, Some(2));
        let files: Vec<PathBuf> = (0..2).map(|n| write(&mut series, &n.to_string())).collect();
        // Somebody replaces the first and removes the second.
        fs::remove_file(&files[0]).unwrap();
        fs::write(&files[0], "another's").unwrap();
        fs::remove_file(&files[1]).unwrap();
        let more: Vec<PathBuf> = (2..5).map(|n| write(&mut series, &n.to_string())).collect();
        assert_eq!(fs::read_to_string(&files[0]).unwrap(), "another's");
        assert_eq!(fs::read_to_string(&bystander).unwrap(), "somebody's");
        assert!(!more[0].exists());
        assert_eq!(fs::read_to_string(&more[1]).unwrap(), "3");
        assert_eq!(fs::read_to_string(&more[2]).unwrap(), "4");
        let files = series.written();
        assert_eq!((files.complete, files.removed), (5, 3));
        assert_eq!((files.oldest.as_ref(), files.newest.as_ref()), (more.get(1), more.get(2)));
    }

    #[test]
    fn a_single_file_has_the_name_that_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcapng");
        let mut series = Series::new(Outputs::default(), &path, false, None);
        assert_eq!(write(&mut series, "x"), path);
        assert!(series.begin(AT).unwrap_err().to_string().contains("is there already"));
    }
}
