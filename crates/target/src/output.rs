//! The name of an output becomes a file: the program opens every file that a command writes here. An output never goes onto a
//! device, a member of an array or an input of the same command, and a file is replaced only when the new one is complete: it is
//! written under a temporary name beside it, flushed and renamed.
//!
//! ```
//! use longtake_target::output::Outputs;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("figures.csv");
//! Outputs::new(false).write(&path, "drive,rate\n")?;
//! let refused = Outputs::new(false).write(&path, "").unwrap_err();
//! assert!(refused.to_string().ends_with("add -y to overwrite it"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod direct;
mod error;
mod inspect;
mod leftovers;

use std::fs::{self, File, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use tempfile::{Builder, NamedTempFile};

pub use error::OutputError;
use inspect::{Found, inspect};
pub use leftovers::Leftover;

/// Levels of folders below a folder of results that are inspected: an experiment's folder, and its files.
const RESULTS_DEPTH: u32 = 2;

/// Room in a pipe that is an output. With the usual 64 KiB, the writer waits for the reader's turn after each.
const PIPE_BYTES: i32 = 1 << 20;

/// Names tried for a file whose own name is taken when it is complete.
const BESIDE_MAX: u32 = 1000;

/// What applies to all outputs of one command.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    overwrite: bool,
    inputs: Vec<PathBuf>,
}

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone (mode 0600): it holds what was recorded.
    Owner,
    /// As the user's umask says.
    Umask,
    /// Everybody (mode 0644), whatever the umask says: programs of other users read it.
    All,
}

impl Outputs {
    /// The outputs of a command that replaces existing files only if `overwrite` (`-y`) is set.
    pub fn new(overwrite: bool) -> Self {
        Self { overwrite, inputs: Vec::new() }
    }

    /// Names files that the command reads. They are compared by device and inode, so that a link to one is recognized too.
    /// A folder stands for the measurements in it.
    #[must_use]
    pub fn reads<P: Into<PathBuf>>(mut self, inputs: impl IntoIterator<Item = P>) -> Self {
        for input in inputs.into_iter().map(Into::into) {
            if input.is_dir() {
                measurements(&input, RESULTS_DEPTH, &mut self.inputs);
            } else {
                self.inputs.push(input);
            }
        }
        self
    }

    /// The same rules for files that the program itself named, in a folder of results: existing ones are replaced.
    #[must_use]
    pub fn replacing(&self) -> Self {
        Self { overwrite: true, ..self.clone() }
    }

    /// Checks a path before any work is done for it.
    ///
    /// # Errors
    /// [`OutputError`] if the path can't be written, or must not be.
    pub fn check(&self, path: &Path) -> Result<(), OutputError> {
        self.inspect(path).map(drop)
    }

    /// Opens an output. Nothing appears at its path before [`NewFile::finish`], unless it is a FIFO or another stream.
    ///
    /// # Errors
    /// [`OutputError`] if the path can't be written, or must not be.
    pub fn create(&self, path: &Path, readers: Readers) -> Result<NewFile, OutputError> {
        let (to, replaces) = match self.inspect(path)? {
            Found::Descriptor(file) => return Ok(NewFile::stream(path, file)),
            Found::Stream => {
                let open = File::options().write(true).open(path);
                let file = open.map_err(|reason| OutputError::os("opening", path, reason))?;
                // Between the two looks the path may have come to mean something else; nothing is written yet.
                inspect::is_stream(path, &file)?;
                return Ok(NewFile::stream(path, file));
            }
            Found::File(real) => (real, true),
            Found::Nothing => (path.to_owned(), false),
        };
        let mode = match readers {
            Readers::Owner => 0o600,
            Readers::Umask => 0o666,
            Readers::All => 0o644,
        };
        let make = || {
            Builder::new()
                .prefix(leftovers::PREFIX)
                .suffix(leftovers::SUFFIX)
                .permissions(Permissions::from_mode(mode))
                .tempfile_in(folder_of(&to))
        };
        let made = leftovers::locked(make).and_then(|temporary| {
            if readers == Readers::All {
                temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
            }
            Ok(temporary)
        });
        let temporary =
            made.map_err(|reason| OutputError::Create { path: path.to_owned(), reason })?;
        let whole = Whole { direct: None, temporary, to, replaces, outputs: self.clone() };
        Ok(NewFile { path: path.to_owned(), sink: Sink::Whole(Box::new(whole)) })
    }

    /// Removes outputs that killed processes of this user left unfinished in a folder, and returns them. Those that are being written
    /// stay, and so does everything on a file system that several machines can share.
    pub fn remove_leftovers(folder: &Path) -> Vec<Leftover> {
        leftovers::remove(folder)
    }

    /// Opens standard output as the command's output.
    ///
    /// # Errors
    /// [`OutputError`] if standard output was redirected to something that must not be written.
    pub fn stdout(&self) -> Result<NewFile, OutputError> {
        let path = Path::new("/dev/stdout");
        let file = inspect::descriptor(path, io::stdout().as_fd(), &self.inputs)?;
        Ok(NewFile::stream(path, file))
    }

    /// Writes a whole file, readable as the umask says.
    ///
    /// # Errors
    /// [`OutputError`] if it can't be written, or must not be. An existing file is then unchanged.
    pub fn write(&self, path: &Path, contents: &str) -> Result<(), OutputError> {
        let mut file = self.create(path, Readers::Umask)?;
        let written = file.write_all(contents.as_bytes());
        written.map_err(|reason| OutputError::os("writing", path, reason))?;
        file.finish()
    }

    /// Checks a folder for outputs, which need not exist yet.
    ///
    /// # Errors
    /// [`OutputError`] if something else is in its place.
    pub fn check_folder(&self, path: &Path) -> Result<(), OutputError> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(metadata) => Err(OutputError::NotFolder {
                path: path.to_owned(),
                found: inspect::kind(metadata.file_type()),
            }),
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(reason) => Err(OutputError::os("inspecting", path, reason)),
        }
    }

    /// Makes a folder for outputs, and those it lies in.
    ///
    /// # Errors
    /// [`OutputError`] if it can't be made.
    pub fn make_folder(&self, path: &Path) -> Result<(), OutputError> {
        self.check_folder(path)?;
        fs::create_dir_all(path)
            .map_err(|reason| OutputError::os("making the folder", path, reason))
    }

    /// Makes a folder that nothing else uses; false if its name is taken.
    ///
    /// # Errors
    /// [`OutputError`] if it can't be made.
    pub fn make_unused_folder(&self, path: &Path) -> Result<bool, OutputError> {
        match fs::create_dir(path) {
            Ok(()) => Ok(true),
            Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(reason) => Err(OutputError::os("making the folder", path, reason)),
        }
    }

    /// Checks that every file in a folder of results may be replaced by another one.
    ///
    /// # Errors
    /// [`OutputError`] for the first that must not be.
    pub fn check_results(&self, folder: &Path) -> Result<(), OutputError> {
        self.check_folder(folder)?;
        if folder.is_dir() { self.replacing().check_below(folder, RESULTS_DEPTH) } else { Ok(()) }
    }

    fn check_below(&self, folder: &Path, depth: u32) -> Result<(), OutputError> {
        let os = |reason| OutputError::os("reading the folder", folder, reason);
        for entry in fs::read_dir(folder).map_err(os)? {
            let path = entry.map_err(os)?.path();
            if path.is_dir() {
                if depth > 1 {
                    self.check_below(&path, depth - 1)?;
                }
            } else if !matches!(self.inspect(&path)?, Found::File(_) | Found::Nothing) {
                return Err(OutputError::NotFile { path });
            }
        }
        Ok(())
    }

    /// Opens a file of results that grows line by line over several runs. It is made if it doesn't exist, and never cut short
    /// here.
    ///
    /// # Errors
    /// [`OutputError`] if it can't be written, or must not be.
    pub fn journal(&self, path: &Path) -> Result<File, OutputError> {
        let real = match self.replacing().inspect(path)? {
            Found::File(real) => real,
            Found::Nothing => path.to_owned(),
            Found::Stream | Found::Descriptor(_) => {
                return Err(OutputError::NotFile { path: path.to_owned() });
            }
        };
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&real);
        let file = open.map_err(|reason| OutputError::os("opening", path, reason))?;
        // What was opened counts, not what the path led to a moment before.
        inspect::may_replace(path, &file, &self.inputs)?;
        Ok(file)
    }

    fn inspect(&self, path: &Path) -> Result<Found, OutputError> {
        let found = inspect(path, &self.inputs)?;
        match found {
            Found::File(_) if !self.overwrite => Err(OutputError::Exists { path: path.to_owned() }),
            found => Ok(found),
        }
    }
}

/// An output that is being written. Dropped unfinished, it leaves an existing file unchanged and nothing else behind.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// A FIFO, `/dev/null` or an open descriptor: bytes can't be taken back.
    Stream(File),
    Whole(Box<Whole>),
}

/// A file under a temporary name.
#[derive(Debug)]
struct Whole {
    /// Writes the file, if it is a long one. Waits for its thread before the file is removed.
    direct: Option<direct::Writer>,
    temporary: NamedTempFile,
    to: PathBuf,
    replaces: bool,
    outputs: Outputs,
}

impl NewFile {
    fn stream(path: &Path, file: File) -> Self {
        // A file or a socket has no such size. Where the user's limit refuses a larger pipe, the writes are shorter.
        if fcntl(&file, FcntlArg::F_GETPIPE_SZ).is_ok_and(|bytes| bytes < PIPE_BYTES) {
            fcntl(&file, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)).ok();
        }
        Self { path: path.to_owned(), sink: Sink::Stream(file) }
    }

    /// The path as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a terminal: what is written is not for it.
    ///
    /// # Errors
    /// [`OutputError::Terminal`] if the output is one.
    pub fn not_terminal(self) -> Result<Self, OutputError> {
        match &self.sink {
            Sink::Stream(file) if file.is_terminal() => {
                Err(OutputError::Terminal { path: self.path })
            }
            _ => Ok(self),
        }
    }

    /// Writes a long file past the page cache, on a thread of its own. Nothing changes for streams, and for files of which
    /// somebody reads the beginning meanwhile it is not suited.
    ///
    /// # Errors
    /// [`OutputError`] if no thread can be started.
    pub fn directly(mut self) -> Result<Self, OutputError> {
        if let Sink::Whole(whole) = &mut self.sink {
            let writer = direct::Writer::new(whole.temporary.as_file());
            let writer = writer.map_err(|reason| OutputError::os("opening", &self.path, reason))?;
            whole.direct = Some(writer);
        }
        Ok(self)
    }

    /// Refuses a FIFO, a terminal and every other stream.
    ///
    /// # Errors
    /// [`OutputError::Stream`] if the output is one.
    pub fn not_stream(self) -> Result<Self, OutputError> {
        if self.is_stream() { Err(OutputError::Stream { path: self.path }) } else { Ok(self) }
    }

    /// Whether bytes are gone as soon as they are written.
    pub const fn is_stream(&self) -> bool {
        matches!(self.sink, Sink::Stream(_))
    }

    /// Puts the complete file in its place.
    ///
    /// # Errors
    /// [`OutputError`] if it can't be flushed or renamed, or if something new at its path must not be replaced.
    pub fn finish(mut self) -> Result<(), OutputError> {
        self.write_rest()?;
        match self.sink {
            Sink::Stream(_) => Ok(()),
            Sink::Whole(whole) => match whole.put_in_place(&self.path)? {
                Placed::There => Ok(()),
                Placed::Taken(_, error) => Err(error),
            },
        }
    }

    /// The same for a file whose contents can't be made again: if something new at its path must not be replaced, the file gets
    /// a name like it, `NAME-2.pcapng`. Returns the path.
    ///
    /// # Errors
    /// [`OutputError`] if it can't be flushed or renamed.
    pub fn finish_beside(mut self) -> Result<PathBuf, OutputError> {
        self.write_rest()?;
        match self.sink {
            Sink::Stream(_) => Ok(self.path),
            Sink::Whole(whole) => whole.put_beside(self.path),
        }
    }

    /// Waits until all that was taken is written, which ends the file.
    ///
    /// # Errors
    /// [`OutputError`] if a write fails.
    pub fn write_rest(&mut self) -> Result<(), OutputError> {
        let Sink::Whole(whole) = &mut self.sink else { return Ok(()) };
        let Some(direct) = &mut whole.direct else { return Ok(()) };
        let finished = direct.finish(whole.temporary.as_file());
        finished.map_err(|reason| OutputError::os("writing", &self.path, reason))?;
        whole.direct = None;
        Ok(())
    }

    /// After a write that failed: puts the beginning of the file in its place, up to the last of these lengths (in ascending
    /// order) that was written. Returns the path and that length; None if there is none, or nothing to keep.
    ///
    /// # Errors
    /// As [`NewFile::finish_beside`].
    pub fn keep_beginning(self, lengths: &[u64]) -> Result<Option<(PathBuf, u64)>, OutputError> {
        let Self { path, sink } = self;
        let Sink::Whole(mut whole) = sink else { return Ok(None) };
        let Some(mut direct) = whole.direct.take() else { return Ok(None) };
        let written = direct.abandon();
        let Some(&length) = lengths.iter().rev().find(|&&length| length <= written) else {
            return Ok(None);
        };
        let cut = whole.temporary.as_file().set_len(length);
        cut.map_err(|reason| OutputError::os("shortening", &path, reason))?;
        Ok(Some((whole.put_beside(path)?, length)))
    }
}

/// Where a complete file has come to.
enum Placed {
    /// In its place.
    There,
    /// Nowhere: something that must stay has its name.
    Taken(Box<Whole>, OutputError),
}

impl Whole {
    /// Flushes and renames a file that is complete.
    fn put_in_place(self, path: &Path) -> Result<Placed, OutputError> {
        let Self { direct, temporary, to, replaces, outputs } = self;
        drop(direct);
        let synced = temporary.as_file().sync_all();
        synced.map_err(|reason| OutputError::os("flushing", path, reason))?;
        let taken = |temporary, to, outputs, error| {
            Placed::Taken(Box::new(Self { direct: None, temporary, to, replaces, outputs }), error)
        };
        if replaces {
            // Time has passed: make sure that a file lies there that may still be replaced.
            if let Err(error) = outputs.check(path) {
                return Ok(taken(temporary, to, outputs, error));
            }
            let renamed = temporary.persist(&to);
            renamed.map_err(|failed| OutputError::os("replacing", path, failed.error))?;
        } else if let Err(failed) = temporary.persist_noclobber(&to) {
            if failed.error.kind() == io::ErrorKind::AlreadyExists {
                let exists = OutputError::Exists { path: path.to_owned() };
                return Ok(taken(failed.file, to, outputs, exists));
            }
            return Err(OutputError::os("naming", path, failed.error));
        }
        // The file is whole in any case. Some file systems can't flush a folder; then a power cut may lose the new name.
        File::open(folder_of(&to)).and_then(|folder| folder.sync_all()).ok();
        Ok(Placed::There)
    }

    /// The same, under the first name like its own that is free.
    fn put_beside(self, mut path: PathBuf) -> Result<PathBuf, OutputError> {
        let (own, mut whole) = (self.to.clone(), self);
        for number in 2.. {
            match whole.put_in_place(&path)? {
                Placed::There => break,
                Placed::Taken(_, error) if number > BESIDE_MAX => return Err(error),
                Placed::Taken(again, _) => whole = *again,
            }
            path = beside(&own, number);
            (whole.to, whole.replaces) = (path.clone(), false);
        }
        Ok(path)
    }
}

/// `NAME-2.pcapng`.
fn beside(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Stream(file) => file.write(bytes),
            Sink::Whole(whole) => match &mut whole.direct {
                Some(direct) => direct.write(bytes),
                None => whole.temporary.write(bytes),
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Stream(file) => file.flush(),
            Sink::Whole(whole) => whole.temporary.flush(),
        }
    }
}

/// Finds the measurements in a folder of results. What can't be listed can't be read as a measurement either.
fn measurements(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if depth > 1 {
                measurements(&path, depth - 1, found);
            }
        } else if path.extension().is_some_and(|e| e == "json" || e == "hlog")
            || path.ends_with("profile.toml")
        {
            found.push(path);
        }
    }
}

/// The folder that a file lies in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
