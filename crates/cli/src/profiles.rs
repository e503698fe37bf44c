//! `longtake profiles`: what is known of drives, from the library and from measurements of the user's own.

pub mod arguments;
mod import;
mod list;

use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use ::report::profiles::{figures, figures_json};
use anyhow::Result;
use target::Profiles;

use crate::printer;
use arguments::ProfilesAction;

/// Set once, by the first lines of the program.
static KNOWN: OnceLock<Profiles> = OnceLock::new();

/// Has the user's own profiles in this folder instead of the usual one.
pub fn use_folder(folder: &Path) {
    // The command line is parsed once, so the value is not set yet.
    KNOWN.set(Profiles::in_folder(folder.to_owned())).ok();
}

/// The folder that was given instead of the usual one.
pub fn given() -> Option<&'static Path> {
    KNOWN.get().and_then(Profiles::folder)
}

/// The profiles that commands find by name.
pub fn known() -> &'static Profiles {
    KNOWN.get_or_init(Profiles::of_user)
}

/// Does what is asked with profiles.
///
/// # Errors
/// If a profile isn't there or can't be, or a file can't be read or written.
pub fn profiles(action: &ProfilesAction) -> Result<ExitCode> {
    match action {
        ProfilesAction::List(arguments) => list::list(arguments),
        ProfilesAction::Show(arguments) => {
            let profile = known().find(&arguments.drive)?;
            match arguments.json {
                true => printer::json(&figures_json(&profile))?,
                false => printer::text(&figures(&profile))?,
            }
            Ok(ExitCode::SUCCESS)
        }
        ProfilesAction::Import(arguments) => import::import(arguments),
    }
}
