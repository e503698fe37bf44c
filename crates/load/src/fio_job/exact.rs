//! The workload itself in comments at the end of a job file, so that what fio can't say is not lost on the way back.

use super::job_without_comments;
use crate::workload::Workload;

/// Begins each line of the comment.
const MARK: &str = ";| ";

/// Bytes of the comment in a line, at most; fio reads lines of less than 4096.
const PIECE_MAX: usize = 900;

/// The comment for `workload`, written for `targets`.
pub(super) fn comment(workload: &Workload, targets: &[String]) -> String {
    // As JSON text, which has no line breaks and no trailing space.
    let text = serde_json::to_string(&(targets, workload.to_toml())).expect("texts are JSON");
    let mut lines = String::from(
        "\n; Longtake reads the exact workload from these lines, unless something above is changed:\n",
    );
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE_MAX);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        // A backslash at the end of a line would continue it.
        lines.extend([MARK, &rest[..end], "|\n"]);
        rest = &rest[end..];
    }
    lines
}

/// The workload and the targets in the comment of `text`, if all else in it is what that workload prints.
pub(super) fn workload(text: &str) -> Option<(Workload, Vec<String>)> {
    let pieces =
        text.lines().filter_map(|line| line.strip_prefix(MARK)?.trim_end().strip_suffix('|'));
    let json: String = pieces.collect();
    let (targets, toml): (Vec<String>, String) = serde_json::from_str(&json).ok()?;
    let workload = Workload::from_toml(&toml).ok()?;
    let options = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with([';', '#']))
            .map(str::to_owned)
            .collect()
    };
    (options(&job_without_comments(&workload, &targets)) == options(text))
        .then_some((workload, targets))
}
