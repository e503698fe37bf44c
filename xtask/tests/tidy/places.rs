//! Where things are: documents name files that exist, and a room's tests are one program.

use std::fs;

use super::{ARROWS, files, relative, root};

/// Test programs beside a room's `tests/all`, and why each stands alone.
const ALONE: [(&str, &str); 2] = [
    ("ssd/memory", "it looks at all of its program's memory"),
    ("chaos/planted", "it builds and runs a program of its own"),
];

/// Whether a text reads on as a path does.
fn is_of_a_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/_.-".contains(c)
}

#[test]
fn files_that_documents_name_exist() {
    let mut documents = files(&root().join("docs"), "md");
    documents.push(root().join("README.md"));
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for start in ["crates/", "xtask/src/", "xtask/tests/"] {
            for (at, _) in text.match_indices(start) {
                let path = text[at..].split(|c| !is_of_a_path(c)).next().unwrap();
                let path = path.trim_end_matches('.');
                let whole = text[..at].chars().next_back().is_none_or(|c| !is_of_a_path(c));
                let exists = root().join(path).exists();
                assert!(
                    !whole || exists,
                    "{} names {path}, which is not there",
                    relative(&document)
                );
            }
        }
    }
}

/// Tables and what is indented, which are samples, are as wide as they have to be.
#[test]
fn prose_wraps_at_100_columns() {
    let mut documents = files(&root().join("docs"), "md");
    documents
        .extend(["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        let mut fenced = false;
        for (at, line) in text.lines().enumerate() {
            fenced ^= line.starts_with("```");
            let prose = !fenced && !line.starts_with('|') && !line.starts_with("    ");
            // A word, or a command, that is too long for a line has one of its own.
            let outside_code = line.trim_start_matches("- ").split('`').step_by(2);
            let breakable = outside_code.flat_map(str::split_whitespace).count() > 1;
            let fits = line.chars().count() <= 100 || !breakable;
            assert!(!prose || fits, "{}, line {}: {line}", relative(&document), at + 1);
        }
    }
}

#[test]
fn the_tests_of_a_room_are_one_program() {
    for (room, _) in ARROWS {
        let Ok(entries) = fs::read_dir(root().join("crates").join(room).join("tests")) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let program =
                path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").exists();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let alone = ALONE.iter().any(|(a, _)| *a == format!("{room}/{name}"));
            assert!(
                !program || name == "all" || alone,
                "{} is a program of its own: make it a module of tests/all",
                relative(&path)
            );
        }
    }
}
