//! What README.md and docs/record.md show that the program prints, and the picture that it draws: they come out as they stand there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::filled::{MEASURE, filled};
use crate::harness::{line, long, new_in, scratch, unbroken};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A sample of output, and the command that stands above it.
struct Sample {
    command: String,
    lines: Vec<String>,
}

/// The fenced samples of a document.
fn samples(path: &str) -> Vec<Sample> {
    let (mut found, mut command, mut fenced) = (Vec::new(), String::new(), None);
    for line in document(path).lines() {
        if line.starts_with("```") {
            match fenced.take() {
                Some(lines) => found.push(Sample { command: command.clone(), lines }),
                None => fenced = Some(Vec::new()),
            }
        } else if let Some(lines) = &mut fenced {
            if !["", "..."].contains(&line.trim()) {
                lines.push(unbroken(line));
            }
        } else if let Some(code) = line.strip_prefix("    ") {
            code.strip_prefix("longtake ").unwrap_or(code).clone_into(&mut command);
        }
    }
    found
}

#[test]
fn samples_that_follow_a_command_come_out_as_they_stand_there() {
    let folder = scratch();
    let mut compared = 0;
    for sample in ["README.md", "docs/record.md"].into_iter().flat_map(samples) {
        let command = &sample.command;
        let same_again =
            ["plan ", "measure fill sim:"].iter().any(|verb| command.starts_with(verb))
                || command.contains("--virtual");
        if !same_again {
            continue;
        }
        let command = command.split(" -o ").next().unwrap().replace('\'', "");
        // Half an hour at 100 Gb/s takes a minute without optimization: all but the proof, unless `LONGTAKE_LONG=1`. Other pages have
        // shorter proofs.
        let unproved = command.replace(" --prove", "");
        let (command, proof) = if long() { (command, true) } else { (unproved, false) };
        let lines = sample.lines.iter().take_while(|line| proof || !line.contains(": proved by "));
        let lines: Vec<&String> = lines.collect();
        let printed = match command.as_str() {
            MEASURE => filled().printed.clone(),
            other => line(other, folder.path()).text(),
        };
        let printed: Vec<String> = printed.lines().map(unbroken).collect();
        for &line in &lines {
            assert!(printed.contains(line), "{command}: '{line}' is not printed: {printed:#?}");
        }
        compared += lines.len();
    }
    assert!(compared >= 13, "only {compared} lines were compared");
}

/// A line without what differs from one recording to the next: each word with a digit in it, and units.
fn shape(line: &str) -> String {
    let differs = |word: &&str| {
        !word.contains(|c: char| c.is_ascii_digit())
            && !word.trim_matches(['(', ')']).ends_with("B/s")
    };
    let words = line.split_whitespace().filter(differs);
    let words = words.filter(|word| !["kB", "MB", "GB", "ms", "s", "s,"].contains(word));
    words.filter(|word| !word.contains("b/s")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_recording_prints_lines_like_those_of_the_readme() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let small = "--members 4 --member-size 33MiB --memory 32MiB --segment 4MiB";
    let recorded = line(&format!("record --from synthetic:10MB/s --to @ --for 1s {small}"), &array);
    let printed = recorded.text() + &line("takes @", &array).text();
    let printed: Vec<String> = printed.lines().map(shape).collect();
    let mut compared = 0;
    for sample in samples("README.md") {
        if sample.command.starts_with("takes") || sample.command.contains("-- record") {
            for line in &sample.lines {
                assert!(printed.contains(&shape(line)), "'{line}' is not printed: {printed:#?}");
            }
            compared += sample.lines.len();
        }
    }
    assert!(compared >= 9, "only {compared} lines were compared");
}

/// The texts of a picture: title, axes, labels.
fn texts(svg: &str) -> Vec<&str> {
    let after = svg.split("<text").skip(1).filter_map(|part| part.split_once('>'));
    after.filter_map(|(_, text)| Some(text.split('<').next()?.trim())).collect()
}

#[test]
fn the_picture_is_drawn_by_the_command_below_it() {
    let folder = scratch();
    let readme = document("README.md");
    let commands: Vec<&str> = readme.lines().filter(|line| line.contains(" filled")).collect();
    let [measure, report] = commands[..] else { panic!("{commands:?}") };
    assert_eq!(measure.trim(), format!("longtake {MEASURE} -o filled"));
    let results = filled().results.to_str().expect("a scratch path is text");
    let report = report.trim().trim_start_matches("longtake ").replace(" pictures", " @/pictures");
    line(&report.replace(" filled", &format!(" {results}")), folder.path()).code(0);
    let drawn = folder.path().join("pictures/fill-write-rate-over-the-bytes-written.svg");
    let drawn = fs::read_to_string(drawn).expect("it was drawn");
    let shown = document("docs/pictures/fill.svg");
    assert!(texts(&shown).len() > 12, "{:?}", texts(&shown));
    assert_eq!(texts(&drawn), texts(&shown), "draw docs/pictures/fill.svg again");
}
