//! A copy of the recorder with all bugs in it, and of the prover, in a workspace of its own below the target directory.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

use crate::bugs::{BUGS, Bug, Edit};

/// A package that is not optimized as in the project: optimizing the prover takes longer than it saves in the hunt.
const NOT_OPTIMIZED: &str = "longtake-chaos";
/// Where an edit is mended, as messages name it.
const TABLE: &str = "crates/chaos/tests/planted/bugs.rs";

/// The copy, built.
pub struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    /// Writes the copy and builds it. Files that stay the same are left alone, so that cargo builds only what changed.
    ///
    /// # Errors
    /// A message for whoever mends the edits.
    pub fn built() -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        write(&folder.join("Cargo.toml"), &manifest(&root));
        // Cargo takes out what the copy does not need.
        write(&folder.join("Cargo.lock"), &read(&root.join("Cargo.lock")));
        for package in ["recorder", "chaos"] {
            let from = root.join("crates").join(package);
            let to = folder.join(package);
            write(&to.join("Cargo.toml"), &without_tests(&from.join("Cargo.toml")));
            write_sources(&to.join("src"), sources(package, &from)?);
        }
        let workspace = Self { folder };
        let build = workspace.cargo("build").output().expect("running cargo");
        let errors = String::from_utf8_lossy(&build.stderr);
        match build.status.success() {
            true => Ok(workspace),
            false => Err(format!("the copy does not build; mend the edits in {TABLE}:\n{errors}")),
        }
    }

    /// Runs the hunting program; returns what it prints.
    ///
    /// # Panics
    /// If it fails.
    pub fn hunt(&self, arguments: impl IntoIterator<Item = String>) -> String {
        let hunt = self.cargo("run").arg("--").args(arguments).output().expect("running cargo");
        let errors = String::from_utf8_lossy(&hunt.stderr);
        assert!(hunt.status.success(), "the hunt failed ({}):\n{errors}", hunt.status);
        String::from_utf8(hunt.stdout).unwrap()
    }

    fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        // Planted bugs are not linted.
        cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
        cargo.args([command, "--quiet", "--offline", "--package=longtake-chaos", "--bin=hunt"]);
        cargo.arg("--manifest-path").arg(self.folder.join("Cargo.toml"));
        // The project's own, where dependencies are found that were built as the copy needs them.
        cargo.arg("--target-dir").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join(".."));
        cargo
    }
}

/// One of the recorder's files with the edits of all bugs that change it.
///
/// # Errors
/// If an edit does not find its text exactly once, or two change the same text.
pub fn edited(file: &str, text: &str, bugs: &[Bug]) -> Result<String, String> {
    let mut changes = Vec::new();
    for bug in bugs {
        let switch = format!("crate::planted::is(crate::planted::Bug::{})", bug.name);
        for edit in bug.edits.iter().filter(|edit| edit.file == file) {
            let places: Vec<usize> = text.match_indices(edit.find).map(|(at, _)| at).collect();
            let &[from] = places.as_slice() else {
                let (name, find, times) = (bug.name, edit.find, places.len());
                return Err(format!(
                    "bug {name}: crates/recorder/src/{file} contains this text {times} times instead of once; \
                     mend the edit in {TABLE}:\n{find}"
                ));
            };
            let to = from + edit.find.len();
            changes.push((from, to, edit.replace.replace("PLANTED", &switch), bug.name));
        }
    }
    changes.sort();
    let mut edited = String::new();
    let mut kept = 0;
    for (from, to, replace, name) in changes {
        if from < kept {
            return Err(format!(
                "bug {name}: its edit of {file} and another overlap; mend it in {TABLE}"
            ));
        }
        edited += &text[kept..from];
        edited += &replace;
        kept = to;
    }
    Ok(edited + &text[kept..])
}

/// The sources of a package's copy: paths below `src`, and texts.
fn sources(package: &str, from: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let src = from.join("src");
    let mut sources = Vec::new();
    for path in files(&src) {
        let text = read(&path);
        let path = path.strip_prefix(&src).unwrap().to_path_buf();
        sources.push((path, text));
    }
    if package == "chaos" {
        sources.push(("bin/hunt.rs".into(), include_str!("hunt.rs").to_owned()));
        return Ok(sources);
    }
    for bug in BUGS {
        for Edit { file, .. } in bug.edits {
            if !sources.iter().any(|(path, _)| path == Path::new(file)) {
                let name = bug.name;
                return Err(format!("bug {name}: there is no {file}; mend the edit in {TABLE}"));
            }
        }
    }
    for (path, text) in &mut sources {
        *text = edited(path.to_str().unwrap(), text, &BUGS)?;
        if path == Path::new("lib.rs") {
            text.push_str("\npub mod planted;\n");
        }
    }
    sources.push(("planted.rs".into(), switches()));
    Ok(sources)
}

/// The module of the changed recorder that plants a bug.
fn switches() -> String {
    let mut bugs = String::new();
    for bug in BUGS {
        writeln!(bugs, "    /// {}\n    {},", bug.wrong, bug.name).unwrap();
    }
    let all: String = BUGS.iter().map(|bug| format!("    Bug::{},\n", bug.name)).collect();
    format!(
        "//! Bugs that are planted on purpose, one at a time.

use std::cell::Cell;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {{
{bugs}}}

/// All of them.
pub const BUGS: [Bug; {}] = [
{all}];

thread_local! {{
    static PLANTED: Cell<Option<Bug>> = const {{ Cell::new(None) }};
}}

/// Plants a bug in this thread, or none.
pub fn plant(bug: Option<Bug>) {{
    PLANTED.set(bug);
}}

/// Whether this bug is planted.
pub(crate) fn is(bug: Bug) -> bool {{
    PLANTED.get() == Some(bug)
}}
",
        BUGS.len()
    )
}

/// The manifest of the copy's workspace: the project's own with these two members. The rooms below are used where they are.
fn manifest(root: &Path) -> String {
    let mut manifest: Table = read(&root.join("Cargo.toml")).parse().unwrap();
    let workspace = manifest["workspace"].as_table_mut().unwrap();
    workspace.remove("default-members");
    workspace.insert("members".to_owned(), Value::from(vec!["chaos", "recorder"]));
    for (name, dependency) in workspace["dependencies"].as_table_mut().unwrap() {
        if let Some(Value::String(path)) = dependency.get_mut("path") {
            *path = match name.as_str() {
                "chaos" | "recorder" => name.to_owned(),
                _ => root.join(&*path).to_str().unwrap().to_owned(),
            };
        }
    }
    let mut dev = manifest["profile"]["dev"].as_table().unwrap().clone();
    dev.insert("debug".to_owned(), Value::from(false));
    // Incremental builds cost disk space, and run slower.
    dev.insert("incremental".to_owned(), Value::from(false));
    dev["package"].as_table_mut().unwrap().retain(|name, _| name != NOT_OPTIMIZED);
    let profiles = Table::from_iter([("dev".to_owned(), Value::Table(dev))]);
    manifest.insert("profile".to_owned(), Value::Table(profiles));
    manifest.to_string()
}

/// A package's manifest without what its tests alone need.
fn without_tests(path: &Path) -> String {
    let mut manifest: Table = read(path).parse().unwrap();
    manifest.remove("dev-dependencies");
    manifest.to_string()
}

/// Writes a folder's files, and removes those of an earlier copy that are no longer among them.
fn write_sources(folder: &Path, sources: Vec<(PathBuf, String)>) {
    let mut stale: BTreeSet<PathBuf> = files(folder).into_iter().collect();
    for (path, text) in sources {
        let path = folder.join(path);
        write(&path, &text);
        stale.remove(&path);
    }
    for path in stale {
        fs::remove_file(path).unwrap();
    }
}

/// Writes a file unless it has this text: cargo builds what is newer than its last build.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
}

/// All files below a folder; none if there is no folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
