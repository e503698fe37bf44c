//! The folder that a measurement's results go to.

use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use super::{OutputError, Outputs};

/// A folder for results. Removed again if nothing comes to be in it.
#[derive(Debug)]
pub struct ResultsFolder {
    path: PathBuf,
    /// The folders that were made for it, innermost first, while nothing is in them yet.
    made: Vec<PathBuf>,
}

impl ResultsFolder {
    /// As asked for, or a new one: `unnamed`, or that with a number if another run has taken it. One that holds something is refused
    /// unless its results are to be continued.
    ///
    /// # Errors
    /// If it is not new, or resuming has nothing to resume, or it can't be made.
    pub fn make(asked: Option<&Path>, resume: bool, unnamed: &str) -> Result<Self, OutputError> {
        let path = match asked {
            None if resume => return Err(OutputError::NothingToResume),
            None => return Self::make_unused(unnamed),
            Some(path) => path.to_owned(),
        };
        let outputs = Outputs::new(resume);
        outputs.check_results(&path)?;
        let used = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
        if used && !resume {
            return Err(OutputError::NotEmpty { path });
        }
        let missing = path
            .ancestors()
            .take_while(|above| !above.as_os_str().is_empty() && above.symlink_metadata().is_err());
        let made = missing.map(Path::to_owned).collect();
        let folder = Self { path, made };
        outputs.make_folder(&folder.path)?;
        Ok(folder)
    }

    fn make_unused(name: &str) -> Result<Self, OutputError> {
        let mut path = PathBuf::from(name);
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
        mem::take(&mut self.path)
    }
}

impl Drop for ResultsFolder {
    fn drop(&mut self) {
        for folder in &self.made {
            // It was empty, and nobody misses it.
            fs::remove_dir(folder).ok();
        }
    }
}
