//! The lines of a fio job file: sections, with the options of the `[global]` sections before them, and where each stands.

use std::collections::BTreeMap;

use super::Problem;

/// Other names of options.
const ALIASES: [(&str, &str); 8] = [
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("ba", "blockalign"),
    ("io_limit", "io_size"),
    ("fileoffset", "offset"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
];

/// An option's value and its place.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its line, from 1.
    pub line: usize,
    /// `1` for an option without a value.
    pub value: String,
}

/// A job's section.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// The line of its name, from 1.
    pub line: usize,
    /// Its options by fio's main names; its own go before global ones.
    pub entries: BTreeMap<String, Entry>,
}

/// The jobs of a file, in order. Lines that are neither a section, an option nor a comment are added to `problems`.
pub fn sections(text: &str, problems: &mut Vec<Problem>) -> Vec<Section> {
    let mut global: BTreeMap<String, Entry> = BTreeMap::new();
    let mut jobs: Vec<Section> = Vec::new();
    let mut in_global = false;
    for (index, whole) in text.lines().enumerate() {
        let line = index + 1;
        // Like fio, which cuts a comment off wherever it begins.
        let kept = whole.split([';', '#']).next().unwrap_or_default().trim();
        if kept.is_empty() {
            continue;
        }
        if let Some(name) = kept.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default();
            in_global = name.eq_ignore_ascii_case("global");
            if !in_global {
                jobs.push(Section { name: name.to_owned(), line, entries: global.clone() });
            }
            continue;
        }
        let (name, value) = kept.split_once('=').unwrap_or((kept, "1"));
        let (name, value) = (name.trim(), value.trim());
        if name.split_whitespace().nth(1).is_some() || value.contains('$') {
            problems.push(Problem::new(
                line,
                format!(
                    "'{kept}': included files and variables are not read; write the value itself"
                ),
            ));
            continue;
        }
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, main)| *main);
        let entry = Entry { line, value: value.to_owned() };
        let place = match jobs.last_mut() {
            _ if in_global => &mut global,
            Some(job) => &mut job.entries,
            None => {
                problems
                    .push(Problem::new(line, format!("'{kept}' stands before the first section")));
                continue;
            }
        };
        place.insert(name.to_owned(), entry);
    }
    jobs
}
