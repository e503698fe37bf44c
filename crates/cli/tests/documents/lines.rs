//! The command lines of the documents: what is in their indented blocks, and which of it runs this program.

/// The lines of a document's indented blocks, joined where one ends with a backslash. Fenced blocks show output.
pub fn code(document: &str) -> Vec<String> {
    let text = document.replace("\\\n", " ");
    let outside = text.split("```").step_by(2).flat_map(str::lines);
    let lines = outside.filter_map(|line| line.strip_prefix("    "));
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The lines that run this program, by its name or by cargo's. The others show output or configuration, and one is a drawing of the
/// crates.
pub fn ours(document: &str) -> Vec<String> {
    let lines = code(document).into_iter().map(|line| line.trim_start_matches("$ ").to_owned());
    let is_ours = |line: &String| {
        let first = ["longtake ", "cargo run "].iter().find_map(|name| line.strip_prefix(name));
        first.is_some_and(|rest| !rest.starts_with(' ')) || line.contains("| longtake ")
    };
    lines.filter(is_ours).collect()
}
