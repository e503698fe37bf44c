//! The folder that results of measuring go to, and the profile that is written there.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use lab::run::Run;
use profile::Profile;
use target::output::{OutputError, Outputs};

/// A folder for results. It is removed again if it stays empty.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    /// The folders that this command made, innermost first, while nothing is in them yet.
    made: Vec<PathBuf>,
}

/// Why there is no folder for results.
#[derive(Debug)]
pub enum OutputFolderError {
    /// Resuming needs a name.
    Unnamed,
    /// The folder holds results, and the command does not continue them.
    Used {
        /// The folder.
        path: PathBuf,
    },
    /// It can't be made, or must not be used.
    Output(OutputError),
}

/// The profile of the drive that was measured today on this machine; None if several were measured together.
pub fn profile(run: &Run) -> Option<Profile> {
    let when = jiff::Timestamp::now().strftime("%F").to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname");
    let place = host.map_or_else(|_| "this machine".to_owned(), |name| name.trim().to_owned());
    run.profile(&when, &place)
}

impl fmt::Display for OutputFolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unnamed => {
                f.write_str("--resume needs --output: the folder with the results to continue")
            }
            Self::Used { path } => write!(
                f,
                "{} is not empty: name a new folder, or add --resume to continue the measurement in it",
                path.display()
            ),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OutputFolderError {}

impl From<OutputError> for OutputFolderError {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

impl OutputFolder {
    /// The folder that was asked for, or a new one. One that holds results is refused unless the
    /// command continues them.
    ///
    /// # Errors
    /// If it is not new, or resuming has nothing to resume, or it can't be made.
    pub fn make(asked: Option<&PathBuf>, resume: bool) -> Result<Self, OutputFolderError> {
        let path = match asked {
            None if resume => return Err(OutputFolderError::Unnamed),
            None => return Self::make_unused(),
            Some(path) => path.clone(),
        };
        let outputs = Outputs::new(resume);
        outputs.check_results(&path)?;
        let used = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
        if used && !resume {
            return Err(OutputFolderError::Used { path });
        }
        let missing = path
            .ancestors()
            .take_while(|above| !above.as_os_str().is_empty() && above.symlink_metadata().is_err());
        let made = missing.map(Path::to_owned).collect();
        let folder = Self { path, made };
        outputs.make_folder(&folder.path)?;
        Ok(folder)
    }

    /// A new folder named after the time, which no other run has, even if one began in the same second.
    fn make_unused() -> Result<Self, OutputFolderError> {
        let name = jiff::Zoned::now().strftime("measured-%Y-%m-%d-%H%M%S").to_string();
        let mut path = PathBuf::from(&name);
        let mut number = 2;
        while !Outputs::new(false).make_unused_folder(&path)? {
            path = format!("{name}-{number}").into();
            number += 1;
        }
        Ok(Self { made: vec![path.clone()], path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// There will be something in it.
    pub fn keep(mut self) -> PathBuf {
        self.made.clear();
        std::mem::take(&mut self.path)
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        for folder in &self.made {
            // It was empty, and nobody misses it.
            fs::remove_dir(folder).ok();
        }
    }
}
