//! A function fits on a screen, so that it is read as a whole: one that doesn't has parts that deserve names.

use std::fs;

use crate::{files, relative, root};

/// Lines of a function, from its signature to its closing brace.
const LINES_MAX: usize = 64;

/// Functions that may be longer: file, name and reason.
const LONGER: [(&str, &str, &str); 1] =
    [("crates/device/src/refusal.rs", "fmt", "a table: a message for each kind of refusal")];

/// The name of the function whose signature begins on this line.
fn name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualifies = |word: &str| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word)
    };
    before.split_whitespace().all(qualifies).then(|| after.split(['(', '<']).next())?
}

/// Names and lengths in lines of the functions in formatted code. One ends where a brace closes as far left as it began.
fn lengths<'a>(code: &[&'a str]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    for (at, line) in code.iter().enumerate() {
        let Some(name) = name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &&str| {
            let rest = line.strip_prefix(indent).unwrap_or_default();
            // A trait's function without a body ends with its signature.
            rest == "}" || rest.starts_with(')') && rest.ends_with(';')
        };
        let whole = line.ends_with(['}', ';']);
        let more = if whole { Some(0) } else { code[at..].iter().position(ends) };
        found.push((name, 1 + more.unwrap_or_else(|| panic!("the end of {name} is not found"))));
    }
    found
}

#[test]
fn the_lines_of_functions_are_counted() {
    let code = "\
pub(crate) const fn one() -> u8 { 1 }
trait Two {
    fn declared(&self);
    fn over_lines(
        &self,
    ) -> bool;
    fn three(&self) {
        let nested = || {
            fn_like();
        };
    }
}
unsafe extern \"C\" fn many<T>(
    _: T,
) {
}";
    let lines: Vec<&str> = code.lines().collect();
    let found = [("one", 1), ("declared", 1), ("over_lines", 3), ("three", 5), ("many", 4)];
    assert_eq!(lengths(&lines), found);
}

#[test]
fn a_function_fits_on_a_screen() {
    let mut longer = LONGER.to_vec();
    let mut functions = 0;
    let sources = ["crates", "xtask"].map(|folder| files(&root().join(folder), "rs"));
    for file in sources.iter().flatten() {
        let path = relative(file);
        let tests = path.split(['/', '.', '_']).any(|part| part == "tests");
        if tests || !path.contains("/src/") {
            continue;
        }
        let text = fs::read_to_string(file).unwrap();
        let code: Vec<&str> = text.lines().take_while(|line| *line != "mod tests {").collect();
        for (name, lines) in lengths(&code) {
            functions += 1;
            if lines > LINES_MAX {
                let listed = longer.iter().position(|(p, n, _)| *p == path && *n == name);
                let Some(at) = listed else {
                    panic!("{path}: {name} has {lines} lines, of {LINES_MAX}: give its parts names")
                };
                longer.remove(at);
            }
        }
    }
    assert!(functions > 1000, "only {functions} functions were found");
    assert!(longer.is_empty(), "these fit on a screen and need no exception: {longer:?}");
}
