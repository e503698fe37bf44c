//! Tidiness as a test: arrows between rooms, where printing and `unsafe` may stand, one subject a file,
//! every dependency with its reason, every promise with its tests.

#[path = "tidy/places.rs"]
mod places;
#[path = "tidy/program.rs"]
mod program;
#[path = "tidy/promises.rs"]
mod promises;
#[path = "tidy/screens.rs"]
mod screens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms that each room may use. docs/ARCHITECTURE.md draws this.
const ARROWS: [(&str, &[&str]); 19] = [
    ("base", &[]),
    ("format", &["base"]),
    ("device", &["base"]),
    ("recorder", &["base", "format"]),
    ("source", &["base", "format", "device"]),
    ("load", &["base"]),
    ("search", &["base", "format"]),
    ("profile", &["base"]),
    ("ssd", &["base", "profile"]),
    ("chaos", &["base", "format", "recorder"]),
    ("target", &["base", "device", "format", "profile", "ssd"]),
    ("plan", &["base", "format", "profile", "recorder", "ssd"]),
    ("lab", &["base", "device", "load", "profile"]),
    ("twin", &["base", "device", "lab", "load", "plan", "profile", "ssd", "target"]),
    ("report", &["base", "device", "format", "lab", "load", "plan", "profile"]),
    (
        "longtake",
        &[
            "base", "device", "format", "plan", "profile", "recorder", "search", "source", "ssd",
            "target",
        ],
    ),
    ("serve", &["base", "format", "longtake"]),
    ("python", &["lab", "longtake", "report", "search", "target", "twin"]),
    (
        "cli",
        &[
            "base", "device", "format", "lab", "load", "longtake", "plan", "profile", "recorder",
            "report", "search", "serve", "source", "target", "twin",
        ],
    ),
];

/// What else the tests of a room may use.
const TESTS_MAY: [(&str, &str); 3] = [("recorder", "chaos"), ("search", "source"), ("cli", "ssd")];

/// Rooms that read no clock, start no thread, open no file.
const PURE: [&str; 9] =
    ["base", "chaos", "format", "load", "plan", "profile", "recorder", "search", "ssd"];

/// Lines of a file above which it is taken to have a second subject, tests not counted.
const LINES_MAX: usize = 700;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Files below a folder with an extension, build output left out.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        if path.is_dir() && !name.starts_with("target") && !name.starts_with('.') {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// A manifest's dependencies: section (`dependencies`, `dev-dependencies`) to names.
fn dependencies(manifest: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in fs::read_to_string(manifest).unwrap().lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.to_owned();
        } else if section.ends_with("dependencies")
            && let Some((key, _)) = line.split_once('=')
        {
            let name = key.trim().split('.').next().unwrap().to_owned();
            sections.entry(section.clone()).or_default().insert(name);
        }
    }
    sections
}

/// A file's lines before its `#[cfg(test)]` module, comments and strings included.
fn code(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).collect()
}

#[test]
fn arrows_between_rooms_point_down() {
    let rooms: BTreeSet<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    for (room, may) in ARROWS {
        let manifest = root().join("crates").join(room).join("Cargo.toml");
        let sections = dependencies(&manifest);
        for (section, names) in sections {
            for name in names.iter().filter(|n| rooms.contains(n.as_str())) {
                // A room's tests may use its own room below under another feature, nothing more.
                let tests = section == "dev-dependencies" && TESTS_MAY.contains(&(room, name));
                assert!(tests || may.contains(&name.as_str()), "{room} uses {name} in [{section}]");
            }
        }
    }
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            rooms.contains(name.as_str()),
            "room {name} has no arrows: add it here and to docs/ARCHITECTURE.md"
        );
    }
}

#[test]
fn only_the_program_prints() {
    for (room, _) in ARROWS.iter().filter(|(room, _)| *room != "cli") {
        for file in files(&root().join("crates").join(room).join("src"), "rs") {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in code(&text).iter().enumerate() {
                let printing = ["println!(", "eprintln!(", "print!(", "eprint!(", "dbg!("]
                    .iter()
                    .any(|p| line.trim_start().starts_with(p));
                assert!(!printing, "{}:{} prints", relative(&file), number + 1);
            }
        }
    }
}

#[test]
fn unsafe_lives_in_device_and_source_alone() {
    for (room, _) in ARROWS {
        let file = root().join("crates").join(room).join("src");
        let lib = file.join("lib.rs");
        if ["device", "source"].contains(&room) {
            continue;
        }
        for file in files(&file, "rs") {
            let text = fs::read_to_string(&file).unwrap();
            let found = text.lines().position(|line| {
                let line = line.trim_start();
                !line.starts_with("//")
                    && (line.contains("unsafe {")
                        || line.contains("unsafe fn")
                        || line.contains("unsafe impl"))
            });
            assert_eq!(found, None, "{} has unsafe code", relative(&file));
        }
        // What PyO3's macros make of a function is unsafe code.
        if lib.exists() && room != "python" {
            assert!(
                fs::read_to_string(&lib).unwrap().contains("#![forbid(unsafe_code)]"),
                "{room} does not forbid unsafe code"
            );
        }
    }
}

#[test]
fn no_test_lies_where_cargo_looks_for_none() {
    let none = |manifest: &&PathBuf| {
        let text = fs::read_to_string(manifest).unwrap();
        text.lines().any(|line| line == "test = false")
    };
    let manifests = files(&root(), "toml").into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let manifests: Vec<PathBuf> = manifests.collect();
    let without: Vec<&PathBuf> = manifests.iter().filter(none).collect();
    assert!(!without.is_empty());
    for manifest in without {
        for file in files(&manifest.with_file_name("src"), "rs") {
            let tests = fs::read_to_string(&file).unwrap().contains("#[test]");
            assert!(!tests, "{} has a test, and its manifest says test = false", relative(&file));
        }
    }
}

#[test]
fn only_serve_uses_an_async_runtime() {
    for (room, _) in ARROWS.iter().filter(|(room, _)| *room != "serve") {
        let sections = dependencies(&root().join("crates").join(room).join("Cargo.toml"));
        let uses = |name: &str| sections.values().any(|names| names.contains(name));
        assert!(!uses("tokio") && !uses("hyper"), "{room} uses an async runtime");
    }
}

#[test]
fn pure_rooms_have_their_bans() {
    for room in PURE {
        let bans =
            fs::read_to_string(root().join("crates").join(room).join("clippy.toml")).unwrap();
        for ban in ["Instant::now", "SystemTime::now", "thread::spawn", "fs::File", "println"] {
            assert!(bans.contains(ban), "{room}/clippy.toml does not ban {ban}");
        }
    }
}

#[test]
fn a_file_says_what_it_is_for_and_has_one_subject() {
    for file in
        files(&root().join("crates"), "rs").into_iter().chain(files(&root().join("xtask"), "rs"))
    {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//!"), "{} does not begin with what it is for", relative(&file));
        let lines = code(&text).len();
        assert!(
            lines <= LINES_MAX,
            "{} has {lines} lines: look for its second subject",
            relative(&file)
        );
        let name = file.file_stem().unwrap().to_str().unwrap();
        let vague = ["util", "utils", "helper", "helpers", "common", "manager", "misc"];
        assert!(!vague.contains(&name), "{}: name it for its subject", relative(&file));
    }
}

#[test]
fn nothing_is_left_for_later() {
    for file in files(&root().join("crates"), "rs") {
        let text = fs::read_to_string(&file).unwrap();
        for mark in ["todo!", "unimplemented!", "TODO", "FIXME", "XXX", "#[ignore"] {
            assert!(!text.contains(mark), "{} has {mark}", relative(&file));
        }
    }
}

#[test]
fn every_dependency_has_its_reason() {
    let reasons = fs::read_to_string(root().join("docs/DEPENDENCIES.md")).unwrap();
    let mut used = BTreeSet::new();
    for manifest in files(&root().join("crates"), "toml")
        .into_iter()
        .chain(files(&root().join("xtask"), "toml"))
    {
        if manifest.file_name().is_some_and(|n| n == "Cargo.toml") {
            used.extend(dependencies(&manifest).into_values().flatten());
        }
    }
    let rooms: BTreeSet<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    for name in used.iter().filter(|n| !rooms.contains(n.as_str())) {
        assert!(
            reasons.contains(&format!("| {name} |")),
            "docs/DEPENDENCIES.md has no reason for {name}"
        );
    }
    for line in reasons.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| crate ")) {
        let name = line.split('|').nth(1).unwrap().trim();
        assert!(used.contains(name), "docs/DEPENDENCIES.md names {name}, which nothing uses");
    }
}
