//! Files that hold nothing but what measurements wrote. Such a file is marked when a measurement ends, and may be written over
//! for as long as nobody else has written to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use xattr::FileExt;

/// The extended attribute that marks a file.
const NAME: &str = "user.longtake.scratch";

/// A mark tells a file's time of change as this much earlier. Time stamps are as coarse as a few milliseconds, and whoever writes
/// right after the mark is made must change the stamp.
const EARLIER: Duration = Duration::from_secs(1);

/// Marks an open file in its present state as one that only Longtake has written. The caller has to know that nobody else did.
///
/// # Errors
/// If the file system keeps no such marks. The file is then refused like any other.
pub fn mark(file: &File) -> io::Result<()> {
    file.sync_all()?;
    file.set_modified(SystemTime::now() - EARLIER)?;
    file.set_xattr(NAME, state(file)?.as_bytes())
}

/// Whether an open file is marked and nobody has written to it since. A copy or a file that was put in its place isn't.
pub fn is_marked(file: &File) -> bool {
    let marked = file.get_xattr(NAME).ok().flatten();
    marked.is_some_and(|mark| state(file).is_ok_and(|state| state.as_bytes() == mark))
}

/// Which file it is, its length in bytes, and when it was last changed.
fn state(file: &File) -> io::Result<String> {
    let metadata = file.metadata()?;
    let (inode, length) = (metadata.ino(), metadata.len());
    Ok(format!("{inode} {length} {}.{:09}", metadata.mtime(), metadata.mtime_nsec()))
}
