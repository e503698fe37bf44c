//! `longtake profiles list`: every drive that can be named.

use std::process::ExitCode;

use anyhow::Result;
use base::{ByteSize, Rate};
use profile::{Profile, library};
use serde_json::{Value, json};
use target::profiles::OwnProfile;

use super::arguments::ListArguments;
use super::known;
use crate::{exit, printer};

/// Where a profile lies.
enum Source {
    Library,
    Own(String),
}

/// Lists the drives of the library and the user's own.
///
/// # Errors
/// If the folder of profiles is there and can't be read.
pub fn list(arguments: &ListArguments) -> Result<ExitCode> {
    let mut drives: Vec<(Source, String, Result<Profile>)> = library::names()
        .map(|name| (Source::Library, name.to_owned(), library::get(name).map_err(Into::into)))
        .collect();
    for OwnProfile { name, path, profile } in known().own()? {
        drives.push((Source::Own(path.display().to_string()), name, profile.map_err(Into::into)));
    }
    let bad = drives.iter().any(|(.., profile)| profile.is_err());
    if arguments.json {
        let rows: Vec<Value> =
            drives.iter().map(|(source, name, profile)| value(source, name, profile)).collect();
        printer::json(&json!({ "profiles": rows, "folder": known().folder() }))?;
    } else {
        print(&drives)?;
    }
    Ok(if bad { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

fn print(drives: &[(Source, String, Result<Profile>)]) -> Result<()> {
    let heads =
        ["name", "source", "size", "writes for long", "measured", "published", "assumed", "model"];
    let mut table = printer::table(&heads, &[2, 3, 4, 5, 6]);
    for (source, name, profile) in drives {
        let Ok(profile) = profile else { continue };
        let [measured, published, assumed] = profile.counts().map(|count| count.to_string());
        let size = ByteSize(profile.capacity_bytes).to_string();
        let rate = profile.long_write().map_or_else(|| "-".to_owned(), gb);
        let source = match source {
            Source::Library => "library",
            Source::Own(_) => "own",
        };
        let model = profile.model.clone();
        let cells =
            [name.clone(), source.to_owned(), size, rate, measured, published, assumed, model];
        table.add_row(cells);
    }
    printer::text(&printer::trimmed(&table))?;
    for (source, name, profile) in drives {
        let (Source::Own(path), shadowed) = (source, library::get(name).is_ok()) else { continue };
        if let Err(error) = profile {
            printer::tell(&format!("longtake: {error:#}"));
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

fn gb(rate: Rate) -> String {
    format!("{:.2} GB/s", rate.0 / 1e9)
}

fn value(source: &Source, name: &str, profile: &Result<Profile>) -> Value {
    let path = match source {
        Source::Library => None,
        Source::Own(path) => Some(path),
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
