//! README.md's promises. docs/promises.md names the tests that fail if a sentence is false; the tests below compare the two, and
//! check that the tests named there exist. Sentences and commands of other pages may be listed there too.

use std::collections::BTreeSet;
use std::fs;

use super::{files, relative, root};

/// The heading of the list below the table.
const NOTHING: &str = "## Sentences that promise nothing";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Text in which line breaks and links make no difference: one space between words, and a link's text in its place.
fn normalised(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, link)) = rest.split_once('[') {
        plain += before;
        let parts =
            link.split_once("](").and_then(|(name, to)| Some((name, to.split_once(')')?.1)));
        let Some((name, after)) = parts else {
            plain.push('[');
            rest = link;
            continue;
        };
        plain += name;
        rest = after;
    }
    plain + rest
}

/// A paragraph's sentences. A bold label stays with the sentence behind it.
fn sentences(paragraph: &str) -> Vec<String> {
    let text = normalised(paragraph);
    let ends = text.match_indices(['.', '?', '!']).map(|(at, _)| at + 1);
    let ends = ends.filter(|&end| text[end..].starts_with(' ')).chain([text.len()]);
    let mut from = 0;
    ends.map(|end| text[std::mem::replace(&mut from, end)..end].trim().to_owned()).collect()
}

/// A list item that points to another document: it begins with a link to it.
fn is_pointer(paragraph: &str) -> bool {
    paragraph.starts_with("[docs/")
}

/// A row of a table as a paragraph: its cells with semicolons between them. None for a table's head and the line below it.
fn row(line: &str, below: Option<&str>) -> Option<String> {
    let is_rule = |line: &str| line.starts_with('|') && line.chars().all(|c| "|-: ".contains(c));
    if is_rule(line) || below.is_some_and(is_rule) {
        return None;
    }
    let cells = line.trim_matches('|').split('|').map(str::trim);
    Some(cells.collect::<Vec<_>>().join("; "))
}

/// What a document says: paragraphs, list items and rows of tables, and lines of code as code, each joined with its continuation lines.
/// Headings and fenced samples of output are left out.
fn paragraphs(document: &str) -> (Vec<String>, Vec<String>) {
    let document = document.replace("\\\n", " ");
    let (mut prose, mut code): (Vec<String>, Vec<String>) = Default::default();
    let (mut goes_on, mut fenced) = (false, false);
    let mut lines = document.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") || fenced {
            fenced ^= line.starts_with("```");
            goes_on = false;
        } else if line.starts_with('|') {
            prose.extend(row(line, lines.peek().copied()));
            goes_on = false;
        } else if let Some(line) = line.strip_prefix("    ") {
            code.push(format!("`{}`", normalised(line)));
            goes_on = false;
        } else if line.trim().is_empty() || line.starts_with('#') {
            goes_on = false;
        } else if let Some(item) = line.strip_prefix("- ") {
            prose.push(item.to_owned());
            goes_on = true;
        } else if goes_on {
            prose.last_mut().expect("it goes on").push_str(&format!("\n{line}"));
        } else {
            prose.push(line.to_owned());
            goes_on = true;
        }
    }
    (prose, code)
}

/// What a document says, sentence by sentence and command by command.
fn said(document: &str) -> BTreeSet<String> {
    let (prose, code) = paragraphs(document);
    let prose = prose.iter().filter(|paragraph| !is_pointer(paragraph));
    prose.flat_map(|paragraph| sentences(paragraph)).chain(code).collect()
}

/// What the pages below docs/ say, without the lists of promises.
fn said_by_pages() -> BTreeSet<String> {
    let pages = files(&root().join("docs"), "md");
    let pages = pages.iter().filter(|page| !page.ends_with("promises.md"));
    pages.flat_map(|page| said(&fs::read_to_string(page).unwrap())).collect()
}

/// The rows of the table: a sentence, and the cell with its tests.
fn rows(document: &str) -> Vec<(String, String)> {
    let table = document
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains(" says | Tests that"));
    let cells = table.map(|line| {
        let line = line.replace("\\|", "\u{1}");
        let cells: Vec<String> =
            line.split('|').map(|cell| normalised(&cell.replace('\u{1}', "|"))).collect();
        assert_eq!(cells.len(), 4, "a row has two cells: {line}");
        (cells[1].clone(), cells[2].clone())
    });
    cells.collect()
}

/// The tests of a cell: each a file and a function in it. Everything in backticks is the one or the other.
fn tests(cell: &str) -> Vec<(String, String)> {
    let mut file = None;
    let mut found = Vec::new();
    for span in cell.split('`').skip(1).step_by(2) {
        if span.ends_with(".rs") {
            file = Some(span.to_owned());
        } else {
            let file = file.clone().unwrap_or_else(|| panic!("{span} stands before any file"));
            found.push((file, span.to_owned()));
        }
    }
    found
}

#[test]
fn every_sentence_of_the_readme_has_its_tests_or_promises_nothing() {
    let document = read("docs/promises.md");
    let (table, list) = document.split_once(NOTHING).expect("the list is there");
    let promises: Vec<String> = rows(table).into_iter().map(|(sentence, _)| sentence).collect();
    let nothing: Vec<String> =
        paragraphs(list).0.iter().skip(1).map(|sentence| normalised(sentence)).collect();
    let mut listed = BTreeSet::new();
    for sentence in promises.into_iter().chain(nothing) {
        assert!(listed.insert(sentence.clone()), "docs/promises.md has twice: {sentence}");
    }
    let said = said(&read("README.md"));
    let new: Vec<&String> = said.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "README.md says, and docs/promises.md does not (name the tests that fail if it is false, or write one): {new:#?}"
    );
    let pages = said_by_pages();
    let old: Vec<&String> =
        listed.difference(&said).filter(|line| !pages.contains(*line)).collect();
    assert!(
        old.is_empty(),
        "docs/promises.md has what neither README.md nor another page says: {old:#?}"
    );
}

#[test]
fn rows_of_tables_are_paragraphs_and_fenced_samples_are_not() {
    let document = "Text\nand more.\n\n| head | of it |\n|---|---:|\n| a | b. c |\n```\nshown | 1\n```\n    ls  # all\n- item\n";
    let (prose, code) = paragraphs(document);
    assert_eq!(prose, ["Text\nand more.", "a; b. c", "item"]);
    assert_eq!(code, ["`ls # all`"]);
}

#[test]
fn every_test_that_holds_a_promise_exists() {
    for (sentence, cell) in rows(&read("docs/promises.md")) {
        let tests = tests(&cell);
        assert!(!tests.is_empty(), "no test holds: {sentence}");
        for (file, name) in tests {
            let text = read(&file);
            let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
            let start = format!("fn {name}(");
            let at = lines.iter().position(|line| line.starts_with(&start));
            let at = at.unwrap_or_else(|| panic!("{file} has no test {name}, for: {sentence}"));
            // What plays in a virtual machine is no test of cargo's.
            let marked = lines[..at].iter().rev().take_while(|line| line.starts_with('#'));
            let is_test = marked.into_iter().any(|line| *line == "#[test]");
            assert!(is_test || file.starts_with("xtask/src/vm/"), "{file}: {name} is no test");
        }
    }
}

#[test]
fn documents_that_the_readme_points_to_exist() {
    let readme = read("README.md");
    for link in readme.split("](").skip(1) {
        let (to, _) = link.split_once(')').expect("a link ends");
        let file = to.split('#').next().unwrap();
        let outside = to.starts_with("https://");
        assert!(
            outside || root().join(file).exists(),
            "README.md points to {to}, which is not there"
        );
    }
}

#[test]
fn pages_point_to_pages_that_exist_and_the_index_has_each() {
    let folder = root().join("docs");
    let mut indexed = BTreeSet::new();
    for page in files(&folder, "md") {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let to = link.split(')').next().unwrap().split('#').next().unwrap();
            let outside = to.is_empty() || to.starts_with("https://");
            let exists = page.parent().unwrap().join(to).exists();
            assert!(outside || exists, "{} points to {to}", relative(&page));
            if page.ends_with("docs/README.md") {
                indexed.insert(to.to_owned());
            }
        }
    }
    for page in files(&folder, "md") {
        let name = page.strip_prefix(&folder).unwrap().to_str().unwrap();
        assert!(name == "README.md" || indexed.contains(name), "docs/README.md lacks {name}");
    }
}

#[test]
fn the_readme_needs_the_rust_that_is_selected() {
    let toolchain = read("rust-toolchain.toml");
    let version = toolchain.split('"').nth(1).expect("a channel in quotes");
    let (short, _) = version.rsplit_once('.').expect("major, minor and patch");
    assert!(read("README.md").contains(&format!("Rust {short} ")), "README.md: Rust {short}");
    assert!(read("Cargo.toml").contains(&format!("rust-version = \"{short}\"")));
}

#[test]
fn the_test_script_installs_every_package_that_a_test_names() {
    let script = read("test");
    let (packages, _) = script.split_once("\n)").expect("a list of packages");
    let packages: BTreeSet<&str> = packages.split_whitespace().collect();
    // On every Debian, or with what is.
    let always = ["bash", "coreutils", "dash"];
    for file in files(&root().join("crates"), "rs") {
        let text = fs::read_to_string(&file).unwrap();
        for call in text.split("tool(\"").skip(1) {
            let Some(package) = call.split('"').nth(2) else { continue };
            let known = packages.contains(package) || always.contains(&package);
            assert!(known, "{} uses {package}, which ./test does not install", relative(&file));
        }
    }
}

#[test]
fn long_tests_kill_as_often_as_the_documents_say() {
    let kill = normalised(&read("crates/cli/tests/all/kill.rs"));
    let rounds = kill.split_once("let (rounds, rate) = if long() { ").expect("two forms").1;
    let (long, short) = rounds.split_once(" } else { ").expect("two forms");
    assert!(long.starts_with("(50,") && short.starts_with("(3,"), "{long} {short}");
    assert!(normalised(&read("docs/README.md")).contains("fifty times instead of three"));
}
