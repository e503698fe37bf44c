//! `longtake profiles list`: every drive that can be named.

use std::process::ExitCode;

use ::report::profiles::{self, Listed};
use anyhow::Result;
use profile::library;
use serde_json::{Value, json};
use target::profiles::OwnProfile;

use super::arguments::ListArguments;
use super::known;
use crate::{exit, printer};

/// Lists the drives of the library and the user's own.
///
/// # Errors
/// If the folder of profiles is there and can't be read.
pub fn list(arguments: &ListArguments) -> Result<ExitCode> {
    let of_library = library::names().map(|name| Listed {
        name: name.to_owned(),
        path: None,
        profile: library::get(name).map_err(|error| format!("{:#}", anyhow::Error::from(error))),
    });
    let own = known().own()?.into_iter().map(|OwnProfile { name, path, profile }| Listed {
        name,
        path: Some(path.display().to_string()),
        profile: profile.map_err(|error| format!("{:#}", anyhow::Error::from(error))),
    });
    let drives: Vec<Listed> = of_library.chain(own).collect();
    if arguments.json {
        let rows: Vec<Value> = drives.iter().map(Listed::to_json).collect();
        printer::json(&json!({ "profiles": rows, "folder": known().folder() }))?;
    } else {
        print(&drives)?;
    }
    let bad = drives.iter().any(|drive| drive.profile.is_err());
    Ok(if bad { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

fn print(drives: &[Listed]) -> Result<()> {
    printer::text(&profiles::list(drives))?;
    for Listed { name, path, profile } in drives {
        let (Some(path), shadowed) = (path, library::get(name).is_ok()) else { continue };
        if let Err(problem) = profile {
            printer::tell(&format!("longtake: {problem}"));
        } else if shadowed {
            printer::tell(&format!(
                "longtake: {path} has the name of a drive of the library, which comes first: rename it, or give its path"
            ));
        }
    }
    let folder = known().folder().map_or_else(
        || "nowhere: set XDG_DATA_HOME, or give --profiles".to_owned(),
        |folder| folder.display().to_string(),
    );
    printer::text(&format!(
        "\nFigures are counted by where they come from. Your own lie in {folder}"
    ))
}
