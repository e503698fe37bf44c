//! The files of a trace: the one that was named, or all that blktrace wrote beside it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use load::Trace;
use load::trace::{Choice, Input, TraceError};

/// What blktrace puts between the name of a trace and the number of a processor.
const INFIX: &str = ".blktrace.";

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// The files of one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFiles {
    paths: Vec<PathBuf>,
    /// Bytes of all of them; 0 of standard input.
    pub bytes: u64,
}

/// Why a trace can't be read.
#[derive(Debug)]
pub enum TraceFilesError {
    /// A file can't be opened.
    Open {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// It is a folder.
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// It is no trace, or a damaged one.
    Trace(TraceError),
}

impl fmt::Display for TraceFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, reason } => {
                write!(f, "opening the trace {} failed: {reason}", path.display())
            }
            Self::Folder { path } => {
                write!(f, "{} is a folder: name one file of the trace in it", path.display())
            }
            Self::Trace(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TraceFilesError {}

impl TraceFiles {
    /// The files that a name stands for: `-` for standard input, `NAME.blktrace.0` (or `NAME`, if no such file exists) for the
    /// files of all processors, any other name for itself.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn of(path: &Path) -> Result<Self, TraceFilesError> {
        if path == Path::new("-") {
            return Ok(Self { paths: vec![path.to_owned()], bytes: 0 });
        }
        let mut paths = beside(path);
        if paths.is_empty() {
            paths.push(path.to_owned());
        }
        let mut bytes = 0;
        for path in &paths {
            let facts = fs::metadata(path)
                .map_err(|reason| TraceFilesError::Open { path: path.clone(), reason })?;
            if facts.is_dir() {
                return Err(TraceFilesError::Folder { path: path.clone() });
            }
            bytes += facts.len();
        }
        Ok(Self { paths, bytes })
    }

    /// Reads them; `progress` hears how many bytes were read.
    ///
    /// # Errors
    /// If a file can't be opened, or is not as it must be.
    pub fn read(&self, choice: &Choice, progress: &dyn Fn(u64)) -> Result<Trace, TraceFilesError> {
        let mut inputs = Vec::new();
        for path in &self.paths {
            let source: Box<dyn Read> = if path == Path::new("-") {
                Box::new(io::stdin())
            } else {
                let file = File::open(path);
                Box::new(
                    file.map_err(|reason| TraceFilesError::Open { path: path.clone(), reason })?,
                )
            };
            let bytes = BufReader::with_capacity(BUFFER_BYTES, Told { source, progress });
            inputs.push(Input { name: path.display().to_string(), bytes: Box::new(bytes) });
        }
        Trace::read(inputs, choice).map_err(TraceFilesError::Trace)
    }
}

/// Tells how many bytes are read.
struct Told<'a> {
    source: Box<dyn Read>,
    progress: &'a dyn Fn(u64),
}

impl Read for Told<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        (self.progress)(read as u64);
        Ok(read)
    }
}

/// The files of all processors, in their order, if the name is of one of them, or of a trace.
fn beside(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let stem = match name.rsplit_once(INFIX) {
        Some((stem, number)) if number.parse::<u32>().is_ok() => stem,
        _ if !path.exists() => name,
        _ => return Vec::new(),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let parts = name.to_str().and_then(|name| name.rsplit_once(INFIX));
        if let Some((of, number)) = parts
            && of == stem
            && let Ok(number) = number.parse::<u32>()
        {
            found.push((number, folder.map_or_else(|| PathBuf::from(&name), |f| f.join(&name))));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_of_blktrace_stands_for_those_of_all_processors() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["t.blktrace.10", "t.blktrace.2", "t.blktrace.x", "u.blktrace.0", "alone"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let named = |name: &str| {
            let files = TraceFiles::of(&folder.path().join(name)).unwrap();
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            files.paths.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(named("t.blktrace.2"), ["t.blktrace.2", "t.blktrace.10"]);
        assert_eq!(named("t"), named("t.blktrace.2"));
        assert_eq!(named("alone"), ["alone"]);
        let missing = TraceFiles::of(&folder.path().join("missing")).unwrap_err().to_string();
        assert!(missing.contains("opening the trace") && missing.contains("missing"), "{missing}");
        let error = TraceFiles::of(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is a folder"), "{error}");
    }
}
