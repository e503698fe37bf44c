//! The program stays thin: it parses arguments, calls libraries and prints. What it did more than that, nobody else could call.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::{code, files, relative, root};

/// Lines of the program, without tests, comments and blank lines.
const LINES_MAX: usize = 5000;

/// What the program leaves to the libraries: wiring recordings together, banks, simulated drives, superblocks.
const LEFT_TO_LIBRARIES: [&str; 7] = [
    "recorder::run",
    "recorder::Recorder",
    "recorder::open",
    "UringBank",
    "SimBank",
    "recorder::superblocks",
    "Superblock",
];

/// The program's files: path and code.
fn sources() -> Vec<(String, String)> {
    let folder = root().join("crates/cli/src");
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        (relative(path), code(&text).join("\n"))
    };
    let tests = ["commands/manual.rs", "commands/readme.rs"];
    files(&folder, "rs")
        .iter()
        .filter(|path| !tests.iter().any(|test| path.ends_with(test)))
        .map(read)
        .collect()
}

fn is_code(line: &&str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with("//")
}

#[test]
fn the_program_is_short() {
    let lines =
        sources().iter().map(|(_, text)| text.lines().filter(is_code).count()).sum::<usize>();
    assert!(
        lines > 0 && lines <= LINES_MAX,
        "crates/cli/src has {lines} lines of code, of {LINES_MAX}"
    );
}

#[test]
fn the_program_leaves_recording_and_simulating_to_libraries() {
    for (path, text) in sources() {
        for line in text.lines().filter(is_code) {
            for name in LEFT_TO_LIBRARIES {
                assert!(!line.contains(name), "{path} names {name}: a library does that");
            }
        }
    }
}

/// The public functions of formatted code: the line above, signature and lines of the body.
fn public_functions<'a>(code: &[&'a str]) -> Vec<(&'a str, String, Vec<&'a str>)> {
    let mut found = Vec::new();
    for (at, line) in code.iter().enumerate() {
        let Some(indent) = line.find("pub fn ").filter(|&at| line[..at].trim().is_empty()) else {
            continue;
        };
        let opens =
            at + code[at..].iter().position(|line| line.ends_with(['{', '}', ';'])).unwrap();
        let closes = |line: &&&str| line.strip_prefix(&" ".repeat(indent)) == Some("}");
        let is_open = code[opens].ends_with('{');
        let body = code[opens + 1..].iter().take_while(|line| is_open && !closes(line));
        let above = at.checked_sub(1).map_or("", |at| code[at].trim());
        found.push((above, code[at..=opens].join(" "), body.copied().collect()));
    }
    found
}

/// What is generic is compiled where it is called, and the program is compiled without optimization, as it is built first of all by
/// everybody. Reading packets took twice as long that way, and simulating drives five times.
#[test]
fn what_the_program_calls_is_compiled_in_the_libraries() {
    let folders = ["crates/longtake/src/array", "crates/twin/src"];
    let single = ["crates/longtake/src/array.rs", "crates/plan/src/mission.rs"];
    let of_folders = folders.iter().flat_map(|folder| files(&root().join(folder), "rs"));
    let (mut passing_on, mut rigs) = (0, 0);
    for path in of_folders.chain(single.map(|path| root().join(path))) {
        let text = fs::read_to_string(&path).unwrap();
        let place = relative(&path);
        for (above, signature, body) in public_functions(&code(&text)) {
            let (takes, gives) = signature.rsplit_once("->").unwrap_or((&signature, ""));
            let is_generic = ["Fn(", "FnMut(", "FnOnce(", "Write", "Sender"].iter().any(|name| {
                let kinds = ["impl ", "impl io::", ": "].map(|before| format!("{before}{name}"));
                kinds.iter().any(|kind| takes.contains(kind))
            });
            if is_generic {
                passing_on += 1;
                assert!(body.len() <= 6, "{place}: `{signature}` has more to do than to pass on");
            }
            if gives.contains("dyn ") && !gives.contains("impl ") {
                rigs += 1;
                assert_eq!(above, "#[inline(never)]", "{place}: `{signature}`");
            }
        }
    }
    assert!(passing_on > 10 && rigs == 2, "{passing_on} {rigs}");
}

/// The module of a file: the first name below `src`.
fn module(path: &str) -> String {
    let below = path.strip_prefix("crates/cli/src/").unwrap();
    let name = Path::new(below).components().next().unwrap();
    name.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

/// The modules that each of the program's modules uses.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let sources = sources();
    let modules: BTreeSet<String> = sources.iter().map(|(path, _)| module(path)).collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in &sources {
        let text: String = text.lines().filter(is_code).flat_map(|line| [line, " "]).collect();
        for after in text.split("crate::").skip(1) {
            // `crate::name::...` or `crate::{name, name::...}`.
            let names =
                after.strip_prefix('{').map_or(after, |list| list.split('}').next().unwrap());
            let many = after.starts_with('{');
            for name in names.split(',').take(if many { usize::MAX } else { 1 }) {
                let end = |c: char| !c.is_alphanumeric() && c != '_';
                let name = name.trim().split(end).next().unwrap();
                if modules.contains(name) && name != module(path) {
                    uses.entry(module(path)).or_default().insert(name.to_owned());
                }
            }
        }
    }
    uses
}

#[test]
fn no_module_of_the_program_uses_one_that_uses_it() {
    let uses = uses();
    assert!(uses["main"].contains("commands"), "{uses:?}");
    for start in uses.keys() {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = uses[start].iter().collect();
        while let Some(module) = next.pop() {
            assert_ne!(module, start, "{start} is used by what it uses: {uses:?}");
            if seen.insert(module) {
                next.extend(uses.get(module).into_iter().flatten());
            }
        }
    }
}
