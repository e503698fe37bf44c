//! `longtake profiles list`: every drive that can be named.

use std::process::ExitCode;

use anyhow::Result;
use base::{ByteSize, Rate};
use profile::{Profile, library};
use serde_json::{Value, json};
use target::profiles::OwnProfile;

use super::arguments::ListArguments;
use super::known;
use crate::{exit, outlet};

/// Where a profile lies.
enum Shelf {
    Library,
    Own(String),
}

/// Lists the drives of the library and the user's own.
///
/// # Errors
/// If the folder of profiles is there and can't be read.
pub fn list(arguments: &ListArguments) -> Result<ExitCode> {
    let mut drives: Vec<(Shelf, String, Result<Profile>)> = library::names()
        .map(|name| (Shelf::Library, name.to_owned(), library::get(name).map_err(Into::into)))
        .collect();
    for OwnProfile { name, path, profile } in known().own()? {
        drives.push((Shelf::Own(path.display().to_string()), name, profile.map_err(Into::into)));
    }
    let bad = drives.iter().any(|(.., profile)| profile.is_err());
    if arguments.json {
        let rows: Vec<Value> =
            drives.iter().map(|(shelf, name, profile)| value(shelf, name, profile)).collect();
        outlet::json(&json!({ "profiles": rows, "folder": known().folder() }))?;
    } else {
        print(&drives)?;
    }
    Ok(if bad { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

fn print(drives: &[(Shelf, String, Result<Profile>)]) -> Result<()> {
    let heads =
        ["name", "shelf", "size", "writes for long", "measured", "published", "assumed", "model"];
    let mut table = outlet::table(&heads, &[2, 3, 4, 5, 6]);
    for (shelf, name, profile) in drives {
        let Ok(profile) = profile else { continue };
        let [measured, published, assumed] = profile.counts().map(|count| count.to_string());
        let size = ByteSize(profile.capacity_bytes).to_string();
        let rate = profile.long_write().map_or_else(|| "-".to_owned(), gb);
        let shelf = match shelf {
            Shelf::Library => "library",
            Shelf::Own(_) => "own",
        };
        let model = profile.model.clone();
        let cells =
            [name.clone(), shelf.to_owned(), size, rate, measured, published, assumed, model];
        table.add_row(cells);
    }
    outlet::text(&outlet::trimmed(&table))?;
    for (shelf, name, profile) in drives {
        let (Shelf::Own(path), shadowed) = (shelf, library::get(name).is_ok()) else { continue };
        if let Err(error) = profile {
            outlet::tell(&format!("longtake: {error:#}"));
        } else if shadowed {
            outlet::tell(&format!(
                "longtake: {path} has the name of a drive of the library, which comes first: rename it, or give its path"
            ));
        }
    }
    let folder = known().folder().map_or_else(
        || "nowhere: set XDG_DATA_HOME, or give --profiles".to_owned(),
        |folder| folder.display().to_string(),
    );
    outlet::text(&format!(
        "\nFigures are counted by where they come from. Your own lie in {folder}"
    ))
}

fn gb(rate: Rate) -> String {
    format!("{:.2} GB/s", rate.0 / 1e9)
}

fn value(shelf: &Shelf, name: &str, profile: &Result<Profile>) -> Value {
    let path = match shelf {
        Shelf::Library => None,
        Shelf::Own(path) => Some(path),
    };
    match profile {
        Err(error) => json!({"name": name, "path": path, "problem": format!("{error:#}")}),
        Ok(profile) => {
            let [measured, published, assumed] = profile.counts();
            json!({
                "name": name,
                "path": path,
                "model": profile.model,
                "kind": profile.kind,
                "capacity_bytes": profile.capacity_bytes,
                "sustained_write_bytes_per_s": profile.long_write().map(|rate| rate.0),
                "figures": {"measured": measured, "published": published, "assumed": assumed},
                "simulated": !profile.simulated.is_empty(),
            })
        }
    }
}
