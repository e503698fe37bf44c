//! What an open target holds, as reasons not to write it.
//!
//! A block device is judged by known marks, and the user's confirmation stands for the rest; a new file
//! needs none, so in a file any byte that isn't zero is somebody's until its path is typed, unless a measurement wrote it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::identity::{Drive, Kind};
use crate::refusal::Refusal;
use crate::scratch;
use crate::signature::{self, Content};

/// Everything that speaks against writing over it.
pub(crate) fn refusals(path: &Path, file: &File, drive: &Drive) -> Vec<Refusal> {
    let path = path.to_owned();
    let unreadable = |attempted: &str, error: io::Error| Refusal::Unreadable {
        path: path.clone(),
        attempted: attempted.to_owned(),
        reason: error.to_string(),
    };
    let found = match signature::detect(file, drive.size_bytes) {
        Ok(found) => found,
        Err(error) => return vec![unreadable("looking for known contents", error)],
    };
    if !found.is_empty() {
        let refuse = |signature: signature::Signature| match signature.kind {
            Content::LongtakeArray => Refusal::LongtakeArray { path: path.clone(), signature },
            _ => Refusal::Signature { path: path.clone(), signature },
        };
        let mut refusals: Vec<_> = found.into_iter().map(refuse).collect();
        // Two superblocks of one array are one reason.
        refusals.dedup_by(|a, b| {
            matches!((a, b), (
                Refusal::LongtakeArray { signature: a, .. },
                Refusal::LongtakeArray { signature: b, .. },
            ) if a.name == b.name)
        });
        return refusals;
    }
    if drive.kind != Kind::File || scratch::is_marked(file) {
        return Vec::new();
    }
    match first_data(file, drive.size_bytes) {
        Ok(None) => Vec::new(),
        Ok(Some(offset)) => vec![Refusal::ForeignContent { path, offset }],
        Err(error) => vec![unreadable("reading it", error)],
    }
}

const READ_BYTES: usize = 1 << 20;

/// The first byte of a file that isn't zero. Holes and preallocated space are skipped, so that a fresh
/// member of any size costs nothing.
fn first_data(file: &File, size: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; READ_BYTES];
    let mut offset = 0;
    while offset < size {
        let Some(data) = seek(file, offset, libc::SEEK_DATA)? else { return Ok(None) };
        let hole = seek(file, data, libc::SEEK_HOLE)?.unwrap_or(size).min(size);
        offset = data;
        while offset < hole {
            let length = usize::try_from(hole - offset).unwrap_or(READ_BYTES).min(READ_BYTES);
            let bytes = &mut buffer[..length];
            file.read_exact_at(bytes, offset)?;
            if let Some(at) = bytes.iter().position(|&byte| byte != 0) {
                return Ok(Some(offset + at as u64));
            }
            offset += length as u64;
        }
    }
    Ok(None)
}

/// The next data or hole at or after `offset`; None behind the last.
fn seek(file: &File, offset: u64, whence: i32) -> io::Result<Option<u64>> {
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    // SAFETY: lseek touches no memory; the descriptor is open for as long as `file` is borrowed.
    let found = unsafe { libc::lseek(file.as_raw_fd(), offset, whence) };
    if found >= 0 {
        return Ok(Some(found as u64));
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparse_or_zeroed_file_is_empty_and_one_byte_is_not() {
        let file = tempfile::tempfile().unwrap();
        let size = 5 * READ_BYTES as u64 + 7;
        file.set_len(size).unwrap();
        assert_eq!(first_data(&file, size).unwrap(), None);
        file.write_all_at(&vec![0; READ_BYTES + 5], READ_BYTES as u64).unwrap();
        assert_eq!(first_data(&file, size).unwrap(), None);
        file.write_all_at(&[1], size - 1).unwrap();
        assert_eq!(first_data(&file, size).unwrap(), Some(size - 1));
    }

    #[test]
    fn preallocated_space_is_empty() {
        let file = tempfile::tempfile().unwrap();
        // SAFETY: fallocate touches no memory; the descriptor is open.
        assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, 8 << 20) }, 0);
        assert_eq!(first_data(&file, 8 << 20).unwrap(), None);
    }
}
