//! What lies at the path of an output, and whether it may be written or replaced.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, IsTerminal};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use device::identity;
use device::signature::{self, Content};
use nix::sys::stat::{major, minor};

use super::error::OutputError;

/// `/dev/null`'s numbers on Linux (Documentation/admin-guide/devices.txt).
const NULL: (u64, u64) = (1, 3);

/// What lies at a path that may be written.
#[derive(Debug)]
pub enum Found {
    /// Nothing: a file can be made there.
    Nothing,
    /// A regular file that may be replaced, by its path without links.
    File(PathBuf),
    /// A FIFO, or `/dev/null`.
    Stream,
    /// An open descriptor of this process.
    Descriptor(File),
}

/// Looks at the path of an output.
///
/// # Errors
/// [`OutputError`] if it must not be written.
pub fn inspect(path: &Path, inputs: &[PathBuf]) -> Result<Found, OutputError> {
    match standard(path) {
        Some(Standard::Output) => {
            let stdout = io::stdout();
            return descriptor(path, std::os::fd::AsFd::as_fd(&stdout), inputs)
                .map(Found::Descriptor);
        }
        Some(Standard::Error) => {
            let stderr = io::stderr();
            return descriptor(path, std::os::fd::AsFd::as_fd(&stderr), inputs)
                .map(Found::Descriptor);
        }
        None => {}
    }
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => return nothing(path),
        Err(reason) => return Err(OutputError::os("inspecting", path, reason)),
    };
    if metadata.is_file() {
        let file = File::open(path)
            .map_err(|reason| OutputError::Unreadable { path: path.to_owned(), reason })?;
        may_replace(path, &file, inputs)?;
        let real = fs::canonicalize(path);
        return real.map(Found::File).map_err(|reason| OutputError::os("resolving", path, reason));
    }
    if is_pipe_or_null(&metadata) || is_own_terminal(path, &metadata) {
        return Ok(Found::Stream);
    }
    Err(wrong_kind(path, &metadata))
}

/// There is no file at a path; a link to nothing may be there.
fn nothing(path: &Path) -> Result<Found, OutputError> {
    match fs::read_link(path) {
        Ok(to) => Err(OutputError::Dangling { path: path.to_owned(), to }),
        Err(_) => Ok(Found::Nothing),
    }
}

/// Checks that an open file is a regular one, belongs to no array, is no input, and that neither a loop device nor swap uses it.
///
/// # Errors
/// [`OutputError`] if not.
pub fn may_replace(path: &Path, file: &File, inputs: &[PathBuf]) -> Result<(), OutputError> {
    let metadata = file.metadata().map_err(|reason| OutputError::os("inspecting", path, reason))?;
    if !metadata.is_file() {
        return Err(wrong_kind(path, &metadata));
    }
    let marks = signature::detect(file, metadata.len())
        .map_err(|reason| OutputError::Unreadable { path: path.to_owned(), reason })?;
    if let Some(mark) = marks.into_iter().find(|mark| mark.kind == Content::LongtakeArray) {
        return Err(OutputError::Member { path: path.to_owned(), array: mark.name });
    }
    let same = |input: &&PathBuf| {
        fs::metadata(input)
            .is_ok_and(|input| (input.dev(), input.ino()) == (metadata.dev(), metadata.ino()))
    };
    if let Some(input) = inputs.iter().find(same) {
        return Err(OutputError::Input { path: path.to_owned(), input: input.clone() });
    }
    // What can't be described was moved away meanwhile, and is looked at again before it is replaced.
    let holder = identity::describe(path).ok().and_then(|file| file.holders.into_iter().next());
    match holder {
        Some(holder) => {
            Err(OutputError::Held { path: path.to_owned(), by: holder.by, how: holder.how })
        }
        None => Ok(()),
    }
}

/// Checks that an open file is a stream.
///
/// # Errors
/// [`OutputError`] if not.
pub fn is_stream(path: &Path, file: &File) -> Result<(), OutputError> {
    let metadata = file.metadata().map_err(|reason| OutputError::os("inspecting", path, reason))?;
    if is_pipe_or_null(&metadata) || file.is_terminal() {
        return Ok(());
    }
    Err(wrong_kind(path, &metadata))
}

/// Standard output or error for an output of its own. Where the shell has redirected it to a file, the file is written from where
/// the descriptor stands.
///
/// # Errors
/// [`OutputError`] if it was redirected to something that must not be written.
pub fn descriptor(
    path: &Path,
    stream: BorrowedFd<'_>,
    inputs: &[PathBuf],
) -> Result<File, OutputError> {
    let os = |reason| OutputError::os("opening", path, reason);
    let file = File::from(stream.try_clone_to_owned().map_err(os)?);
    let metadata = file.metadata().map_err(os)?;
    let kind = metadata.file_type();
    if metadata.is_file() {
        // The descriptor may be for writing alone; the file is looked at through one that reads.
        if let Ok(readable) = File::open(path) {
            may_replace(path, &readable, inputs)?;
        }
    } else if !(is_pipe_or_null(&metadata) || kind.is_socket() || file.is_terminal()) {
        return Err(wrong_kind(path, &metadata));
    }
    Ok(file)
}

/// What a kind of file is called.
pub fn kind(kind: FileType) -> &'static str {
    if kind.is_block_device() {
        "a block device"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a file"
    }
}

fn wrong_kind(path: &Path, metadata: &Metadata) -> OutputError {
    OutputError::WrongKind { path: path.to_owned(), found: kind(metadata.file_type()) }
}

fn is_pipe_or_null(metadata: &Metadata) -> bool {
    let kind = metadata.file_type();
    let device = metadata.rdev();
    kind.is_fifo() || (kind.is_char_device() && (major(device), minor(device)) == NULL)
}

enum Standard {
    Output,
    Error,
}

/// The standard stream that a path names.
fn standard(path: &Path) -> Option<Standard> {
    match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(Standard::Output),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(Standard::Error),
        _ => None,
    }
}

/// Whether a path names an open descriptor of this process that is a terminal.
fn is_own_terminal(path: &Path, metadata: &Metadata) -> bool {
    let own = path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    own && metadata.file_type().is_char_device()
        && File::options().write(true).open(path).is_ok_and(|file| file.is_terminal())
}
