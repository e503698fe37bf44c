//! The one place where names of drives are looked up: first the library that comes with the program, then the user's own
//! profiles, which lie in one folder as NAME.toml. A word with a `/`, or that ends in `.toml`, is a path.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use profile::{Profile, library, nearest};

/// Set once, by the first lines of the program.
static ASKED: OnceLock<PathBuf> = OnceLock::new();

/// A profile of the user's own.
#[derive(Debug)]
pub struct Own {
    /// By which commands know it: its file's name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What is in it, or why it can't be read.
    pub profile: Result<Profile>,
}

/// Has the user's own profiles in this folder instead of the usual one.
pub fn use_folder(folder: &Path) {
    // There is one command line, so nobody was before us.
    ASKED.set(folder.to_owned()).ok();
}

/// The folder of the user's own profiles, which need not be there: the one asked for, or `longtake/profiles` where the XDG Base
/// Directory Specification has data of the user's. None if there is no home.
pub fn folder() -> Option<PathBuf> {
    if let Some(asked) = ASKED.get() {
        return Some(asked.clone());
    }
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    data.map(|data| data.join("longtake/profiles"))
}

/// The user's own profiles, in alphabetical order.
///
/// # Errors
/// If their folder is there and can't be read.
pub fn own() -> Result<Vec<Own>> {
    let Some(folder) = folder().filter(|folder| folder.exists()) else { return Ok(Vec::new()) };
    let failed = || format!("reading the folder of profiles {}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "toml")
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            found.push(Own { name: name.to_owned(), profile: read(&path), path: path.clone() });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The profile that a name or a path means.
///
/// # Errors
/// If there is none, with the name that was probably meant; or if its file can't be read.
pub fn find(word: &str) -> Result<Profile> {
    if is_path(word) { read(Path::new(word)) } else { named(word) }
}

/// Whether a word means a file: any name may be given to one, but a drive's has neither a `/` nor `.toml` in it.
pub fn is_path(word: &str) -> bool {
    word.contains('/') || word.ends_with(".toml")
}

/// The profile of this name.
///
/// # Errors
/// As [`find`].
pub fn named(name: &str) -> Result<Profile> {
    if let Ok(profile) = library::get(name) {
        return Ok(profile);
    }
    let own = own()?;
    if let Some(own) = own.iter().find(|own| own.name == name) {
        return read(&own.path);
    }
    let mut names: Vec<&str> = library::names().collect();
    names.extend(own.iter().map(|own| own.name.as_str()));
    let meant = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None => format!("there are {}", names.join(", ")),
    };
    bail!("the library has no drive '{name}', and neither has your own folder of profiles; {meant}")
}

/// The profile in a file.
///
/// # Errors
/// If it can't be read, or is none.
pub fn read(path: &Path) -> Result<Profile> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("reading the drive {}", path.display()))?;
    Profile::from_toml(&text)
        .with_context(|| format!("{} is no profile of a drive", path.display()))
}
