//! Why an output can't be written, and what to do instead.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use device::holders::Use;

/// Why an output can't be written, or must not be.
#[derive(Debug)]
pub enum OutputError {
    /// A file exists, and `-y` was not given.
    Exists {
        /// The output.
        path: PathBuf,
    },
    /// A block or character device, a socket, a directory.
    WrongKind {
        /// The output.
        path: PathBuf,
        /// What it is, with its article.
        found: &'static str,
    },
    /// Something else than a file in a folder of results.
    NotFile {
        /// The output.
        path: PathBuf,
    },
    /// A terminal, which can't show what is written.
    Terminal {
        /// The output.
        path: PathBuf,
    },
    /// A FIFO, a terminal or another stream, where a file is needed.
    Stream {
        /// The output.
        path: PathBuf,
    },
    /// Something else than a folder.
    NotFolder {
        /// The output.
        path: PathBuf,
        /// What it is, with its article.
        found: &'static str,
    },
    /// A member of an array.
    Member {
        /// The output.
        path: PathBuf,
        /// Which array, as its superblock says.
        array: String,
    },
    /// The command reads it.
    Input {
        /// The output.
        path: PathBuf,
        /// The input that is the same file.
        input: PathBuf,
    },
    /// A loop device or swap uses it.
    Held {
        /// The output.
        path: PathBuf,
        /// What uses it, `/dev/loop1`.
        by: String,
        /// In which way it is used.
        how: Use,
    },
    /// A symbolic link to nothing.
    Dangling {
        /// The output.
        path: PathBuf,
        /// Where it points to.
        to: PathBuf,
    },
    /// It can't be read, so it may be a member.
    Unreadable {
        /// The output.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// No file can be made in its folder.
    Create {
        /// The output.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// Anything else.
    Os {
        /// What was tried.
        attempted: &'static str,
        /// The output.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
}

impl OutputError {
    pub(super) fn os(attempted: &'static str, path: &Path, reason: io::Error) -> Self {
        Self::Os { attempted, path: path.to_owned(), reason }
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists { path } => write!(
                f,
                "{} is there already: name another file, or add -y to overwrite it",
                path.display()
            ),
            Self::WrongKind { path, found } => write!(
                f,
                "{} is {found}, and outputs are not written there: name a file, a FIFO, /dev/stdout or /dev/null",
                path.display()
            ),
            Self::NotFile { path } => write!(
                f,
                "{} is not a regular file, and results can't replace it: remove it, or name another folder",
                path.display()
            ),
            Self::Terminal { path } => write!(
                f,
                "{} is a terminal, which can't show packets: add `| COMMAND` or `> FILE`, or name a file with -o",
                path.display()
            ),
            Self::Stream { path } => write!(
                f,
                "{} is not a regular file, and whoever reads it would hold up the recording: name a file",
                path.display()
            ),
            Self::NotFolder { path, found } => {
                write!(f, "{} is {found}: name a folder for the output", path.display())
            }
            Self::Member { path, array } => write!(
                f,
                "{} is a {array}, and writing it would destroy recorded data: name another file",
                path.display()
            ),
            Self::Input { path, input } if path == input => {
                write!(f, "{} is an input of this command: name another file", path.display())
            }
            Self::Input { path, input } => write!(
                f,
                "{} is the same file as {}, an input of this command: name another file",
                path.display(),
                input.display()
            ),
            Self::Held { path, by, how } => write!(
                f,
                "{} is in use by {by} ({how}), which would lose its contents: name another file",
                path.display()
            ),
            Self::Dangling { path, to } => write!(
                f,
                "{} is a symbolic link to {}, which does not exist: name a file, or remove the link",
                path.display(),
                to.display()
            ),
            Self::Unreadable { path, reason } => write!(
                f,
                "{} can't be read to rule out that it is a member of an array ({reason}): name another file, or remove this one",
                path.display()
            ),
            Self::Create { path, reason } => write!(
                f,
                "making {} failed ({reason}): does its folder exist, and may you write there?",
                path.display()
            ),
            Self::Os { attempted, path, reason } => {
                write!(f, "{attempted} {} failed: {reason}", path.display())
            }
        }
    }
}

impl std::error::Error for OutputError {}
