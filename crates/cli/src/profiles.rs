//! `longtake profiles`: what is known of drives, from the library and from measurements of the user's own.

pub mod arguments;
mod import;
mod list;
pub mod shelf;
mod show;

use std::process::ExitCode;

use anyhow::Result;

use arguments::ProfilesAction;

/// Does what is asked with profiles.
///
/// # Errors
/// If a profile isn't there or can't be, or a file can't be read or written.
pub fn profiles(action: &ProfilesAction) -> Result<ExitCode> {
    match action {
        ProfilesAction::List(arguments) => list::list(arguments),
        ProfilesAction::Show(arguments) => show::show(arguments),
        ProfilesAction::Import(arguments) => import::import(arguments),
    }
}
