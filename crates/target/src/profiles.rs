//! The one place where names of drive models are looked up: first the library that comes with the program, then the user's own
//! profiles, which lie in one folder as NAME.toml. A word with a `/`, or that ends in `.toml`, is a path.

mod error;

use std::fs;
use std::path::{Path, PathBuf};

use profile::{Parameter, Profile, library, nearest};

pub use error::ProfilesError;

/// The models that can be named: the library's, and those in a folder of the user's.
#[derive(Clone, Debug, PartialEq)]
pub struct Profiles {
    folder: Option<PathBuf>,
    place: Surroundings,
}

/// What carries the heat of simulated drives away. None leaves it to their profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// Temperature of the air at the drives, in degrees Celsius.
    pub ambient_c: Option<f64>,
    /// How much warmer than the air a drive gets for each watt, in kelvins.
    pub kelvin_per_w: Option<f64>,
}

/// A profile of the user's own.
#[derive(Debug)]
pub struct OwnProfile {
    /// The name that commands know it by: its file's, without `.toml`.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What is in it, or why it can't be read.
    pub profile: Result<Profile, ProfilesError>,
}

impl Profiles {
    /// With the user's own profiles in this folder instead of the usual one.
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { folder: Some(folder), place: Surroundings { ambient_c: None, kelvin_per_w: None } }
    }

    /// With the user's own profiles in `longtake/profiles` where the XDG Base Directory Specification has data of the user's;
    /// without any if there is no home.
    pub fn of_user() -> Self {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let data =
            absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
        Self {
            folder: data.map(|data| data.join("longtake/profiles")),
            place: Surroundings::default(),
        }
    }

    /// The same with all drives in this place.
    #[must_use]
    pub fn placed(self, place: Surroundings) -> Self {
        Self { place, ..self }
    }

    /// The folder of the user's own profiles, which need not exist.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The user's own profiles, in alphabetical order.
    ///
    /// # Errors
    /// If their folder exists and can't be read.
    pub fn own(&self) -> Result<Vec<OwnProfile>, ProfilesError> {
        let Some(folder) = self.folder().filter(|folder| folder.exists()) else {
            return Ok(Vec::new());
        };
        let failed = |reason| ProfilesError::Folder { path: folder.to_owned(), reason };
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "toml")
                && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
            {
                let name = name.to_owned();
                found.push(OwnProfile { name, profile: read(&path), path });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The same for a command that may work on real drives, which are where they are.
    ///
    /// # Errors
    /// If real drives are to be put somewhere.
    pub fn placed_for<T: AsRef<Path>>(
        self,
        place: Surroundings,
        targets: &[T],
    ) -> Result<Self, ProfilesError> {
        let targets = targets.iter().map(|target| target.as_ref().to_string_lossy());
        let mut real =
            targets.filter(|target| !target.trim_start_matches("raid0:").starts_with("sim:"));
        match real.next().filter(|_| place != Surroundings::default()) {
            Some(target) => Err(ProfilesError::IsReal { target: target.into_owned() }),
            None => Ok(self.placed(place)),
        }
    }

    /// The profile that a name or a path means.
    ///
    /// # Errors
    /// If there is none, with the name that was probably meant; if its file can't be read; or if drives are put somewhere and this one's
    /// heat is not simulated.
    pub fn find(&self, word: &str) -> Result<Profile, ProfilesError> {
        if is_path(word) { self.read(Path::new(word)) } else { self.named(word) }
    }

    /// The file that a name or a path means, after `sim:` or without it; None if it means a drive of the library, or nothing.
    pub fn file(&self, word: &str) -> Option<PathBuf> {
        let word = word.strip_prefix("sim:").unwrap_or(word);
        if is_path(word) {
            return Some(PathBuf::from(word));
        }
        let is_own = library::get(word).is_err();
        let own = self.own().ok().filter(|_| is_own)?;
        own.into_iter().find(|own| own.name == word).map(|own| own.path)
    }

    /// The profile in a file.
    ///
    /// # Errors
    /// As [`Profiles::find`].
    pub fn read(&self, path: &Path) -> Result<Profile, ProfilesError> {
        self.put(read(path)?)
    }

    /// The profile of this name.
    ///
    /// # Errors
    /// As [`Profiles::find`].
    pub fn named(&self, name: &str) -> Result<Profile, ProfilesError> {
        if let Ok(profile) = library::get(name) {
            return self.put(profile);
        }
        let own = self.own()?;
        if let Some(own) = own.iter().find(|own| own.name == name) {
            return self.read(&own.path);
        }
        let own = own.into_iter().map(|own| own.name);
        let names: Vec<String> = library::names().map(str::to_owned).chain(own).collect();
        let meant = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
        Err(ProfilesError::Unknown { name: name.to_owned(), meant, names })
    }

    /// The drive in the place where all are.
    fn put(&self, mut profile: Profile) -> Result<Profile, ProfilesError> {
        let Surroundings { ambient_c, kelvin_per_w } = self.place;
        for (name, given) in [("ambient_c", ambient_c), ("kelvin_per_w", kelvin_per_w)] {
            let Some(value) = given else { continue };
            if !profile.simulated.has("heat") {
                return Err(ProfilesError::NoHeat { name: profile.name });
            }
            let place =
                Parameter { origin: "where it is put".to_owned(), ..Parameter::assumed(value) };
            profile.simulated.set("heat", name, place);
        }
        Ok(profile)
    }
}

/// Whether a word means a file: any name may be given to one, but a drive's has neither a `/` nor `.toml` in it.
pub fn is_path(word: &str) -> bool {
    word.contains('/') || word.ends_with(".toml")
}

/// The profile in a file.
///
/// # Errors
/// If it can't be read, or is none.
pub fn read(path: &Path) -> Result<Profile, ProfilesError> {
    let text = fs::read_to_string(path)
        .map_err(|reason| ProfilesError::Unreadable { path: path.to_owned(), reason })?;
    Profile::from_toml(&text)
        .map_err(|reason| ProfilesError::NoProfile { path: path.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_answered_with_the_one_that_was_meant_or_with_all() {
        let profiles = Profiles::in_folder("/nonexistent".into());
        let said = |name| profiles.find(name).unwrap_err().to_string();
        assert!(said("idea").ends_with("did you mean 'ideal'?"), "{}", said("idea"));
        assert!(said("x").contains("there are ideal, "), "{}", said("x"));
        assert!(profiles.own().unwrap().is_empty());
    }
}
