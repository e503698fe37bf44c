//! `docs/planning.md`: its commands, run as they stand there, print what stands below them.

use std::fs;
use std::path::Path;

use crate::harness::{line, unbroken};

/// The document's indented blocks, line by line without their indent.
fn blocks() -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/planning.md");
    let text = fs::read_to_string(path).unwrap().replace("\\\n", "");
    let mut blocks = vec![Vec::new()];
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(line) => blocks.last_mut().unwrap().push(line.to_owned()),
            None if line.is_empty() => blocks.last_mut().unwrap().push(String::new()),
            None => blocks.push(Vec::new()),
        }
    }
    blocks
}

/// Commands of `plan` without their comments, each with the output that the document shows below it.
fn examples() -> Vec<(String, Vec<String>)> {
    let mut examples: Vec<(String, Vec<String>)> = Vec::new();
    for block in blocks() {
        let mut begun = false;
        for line in block {
            if let Some(command) = line.strip_prefix("longtake ") {
                let command = command.split(" #").next().unwrap();
                begun = command.starts_with("plan ");
                if begun {
                    examples.push((unbroken(command), Vec::new()));
                }
            } else if begun && !line.trim().is_empty() {
                examples.last_mut().unwrap().1.push(unbroken(&line));
            }
        }
    }
    examples
}

#[test]
fn plans_in_the_document_come_out_as_they_stand_there() {
    let mut compared = 0;
    for (command, shown) in examples() {
        let files = command.contains("mine.toml") || command.contains("requirement.toml");
        if files || command.contains("--prove") || command.contains("--sets") {
            continue;
        }
        let printed = line(&command, Path::new(".")).text();
        let printed: Vec<String> = printed.lines().map(unbroken).collect();
        for line in &shown {
            assert!(printed.contains(line), "{command}: '{line}' is not printed: {printed:#?}");
        }
        compared += shown.len();
    }
    assert!(compared > 40, "{compared} lines");
}

#[test]
fn proofs_in_the_document_come_out_as_they_stand_there() {
    let proofs = examples().into_iter().filter(|(command, _)| command.contains("--prove"));
    let [drawn, confirmed, refuted] = &proofs.collect::<Vec<_>>()[..] else {
        panic!("three examples")
    };
    // Those that cost least.
    let drives = [
        (drawn, "samsung-pm1725b-1.6tb", 0),
        (confirmed, "intel-d7-p5510-3.84tb", 0),
        (confirmed, "samsung-970-evo-plus-1tb", 0),
        (refuted, "samsung-pm1725b-1.6tb", 3),
    ];
    for ((command, shown), drive, code) in drives {
        let shown = shown.join(" ");
        let (before, drives) = command.split_once("--drive ").unwrap();
        assert!(drives.contains(drive));
        let before = before.replace("--html plan.html", "");
        let printed = line(&format!("{before} --drive {drive}"), Path::new(".")).code(code).text();
        let at = printed.find(&format!("{drive}: proved")).unwrap();
        let proof = unbroken(&printed[at..]);
        assert!(shown.contains(&proof), "'{proof}' in {shown}");
    }
}
