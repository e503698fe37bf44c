//! The guest's only file system: an archive that the kernel unpacks into memory.
//!
//! Format: the "newc" archive of cpio, as the kernel's `Documentation/driver-api/early-userspace/
//! buffer-format.rst` defines it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::programs;

const MODE_DIRECTORY: u32 = 0o040_755;
const MODE_FILE: u32 = 0o100_000;

/// An archive being put together.
#[derive(Clone, Debug, Default)]
pub struct Image {
    directories: BTreeSet<String>,
    entries: Vec<(String, u32, Vec<u8>)>,
}

impl Image {
    /// An empty folder; the ones above are made too.
    pub fn directory(&mut self, path: &str) {
        let mut path = path.trim_matches('/');
        while !path.is_empty() && self.directories.insert(path.to_owned()) {
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// A file with its permissions.
    pub fn file(&mut self, path: &str, permissions: u32, bytes: impl Into<Vec<u8>>) {
        let path = path.trim_start_matches('/');
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        if !self.entries.iter().any(|(known, _, _)| known == path) {
            self.entries.push((path.to_owned(), MODE_FILE | permissions, bytes.into()));
        }
    }

    /// A copy of a file of the host.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn copy(&mut self, from: &Path, to: &str) -> Result<()> {
        let bytes = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
        let permissions = fs::metadata(from)?.permissions().mode() & 0o777;
        self.file(to, permissions, bytes);
        Ok(())
    }

    /// A program of the host, with the libraries that it loads where it looks for them, and without what only
    /// debuggers need, which an emulated machine takes seconds to unpack.
    ///
    /// # Errors
    /// If it or one of them can't be read.
    pub fn program(&mut self, from: &Path, to: &str) -> Result<()> {
        let stripped = tempfile::NamedTempFile::new()?;
        let small = programs::run(Command::new("strip").arg("-o").arg(stripped.path()).arg(from));
        let bytes = match small {
            Ok(_) => fs::read(stripped.path()),
            // It is as good a program as it is.
            Err(_) => fs::read(from),
        };
        self.file(to, 0o755, bytes.with_context(|| format!("reading {}", from.display()))?);
        for library in programs::libraries(from)? {
            let to = library.to_string_lossy().into_owned();
            self.copy(&library, &to)?;
        }
        Ok(())
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write(&self, path: &Path) -> Result<PathBuf> {
        let tried = || format!("writing {}", path.display());
        let mut out = BufWriter::new(fs::File::create(path).with_context(tried)?);
        self.archive(&mut out).and_then(|()| out.flush()).with_context(tried)?;
        Ok(path.to_owned())
    }

    fn archive(&self, out: &mut impl Write) -> io::Result<()> {
        // Sorted, so that a folder comes before what is in it.
        let mut number = 0;
        for directory in &self.directories {
            number += 1;
            entry(out, number, directory, MODE_DIRECTORY, &[])?;
        }
        for (path, mode, bytes) in &self.entries {
            number += 1;
            entry(out, number, path, *mode, bytes)?;
        }
        entry(out, 0, "TRAILER!!!", 0, &[])
    }
}

/// One entry: 13 fields of eight hexadecimal digits, the name with a zero, the contents; name and
/// contents are padded to four bytes.
fn entry(out: &mut impl Write, number: u32, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len())
        .map_err(|_| io::Error::other(format!("{path} has 4 GiB or more")))?;
    let name_length = path.len() as u32 + 1;
    let links = 1;
    let fields = [number, mode, 0, 0, links, 0, length, 0, 0, 0, 0, name_length, 0];
    write!(out, "070701")?;
    for field in fields {
        write!(out, "{field:08x}")?;
    }
    out.write_all(path.as_bytes())?;
    out.write_all(&[0])?;
    let header_length = 110 + name_length as usize;
    out.write_all(&[0; 3][..header_length.next_multiple_of(4) - header_length])?;
    out.write_all(bytes)?;
    out.write_all(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_lists_folders_before_their_files_and_is_aligned() {
        let mut image = Image::default();
        image.file("/bin/tool", 0o755, *b"12345");
        let mut out = Vec::new();
        image.archive(&mut out).unwrap();
        assert_eq!(out.len() % 4, 0);
        let at = |text: &[u8]| out.windows(text.len()).position(|w| w == text).unwrap();
        assert!(at(b"bin\0") < at(b"bin/tool\0"));
        assert_eq!(at(b"12345") % 4, 0);
        assert!(at(b"12345") < at(b"TRAILER!!!\0"));
        assert_eq!(&out[..14], b"07070100000001");
    }

    #[test]
    fn a_library_that_two_programs_load_is_in_the_archive_once() {
        let mut image = Image::default();
        image.file("/lib/libc.so.6", 0o644, *b"first");
        image.file("/lib/libc.so.6", 0o644, *b"second");
        assert_eq!(image.entries.len(), 1);
    }
}
