//! The commands of README.md and of the pages below docs/, checked against the command line: the program accepts each one as it
//! stands there. Those that need nothing else also run (`tests/all/documents.rs`).

use std::fs;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory, Parser};
use longtake::recording::NewArray;
use source::SourceSpec;
use source::synthetic::Pace;
use target::{SimTarget, StripedTarget, array};

use super::document_lines::{code, ours};
use super::{Arguments, Verb};

const README: &str = include_str!("../../../../README.md");
const WORKSPACE: &str = include_str!("../../../../Cargo.toml");
const CLI_IS_DEFAULT: &str = "default-members = [\"crates/cli\"]";

/// Lines of README that run other programs.
const OTHER_PROGRAMS: [&str; 2] = ["./test", "cargo install --locked --path crates/cli"];

/// A line as a shell would split it: at spaces outside single quotes, without its comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (Vec::new(), false);
    let mut word: Option<String> = None;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '#' if !quoted && word.is_none() => break,
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    assert!(!quoted, "a quote is not closed: {line}");
    words.extend(word);
    words
}

/// The commands of a line that run this program, each from its name on.
fn commands(line: &str) -> Vec<Vec<String>> {
    let words = words(line);
    let parts = words.split(|word| word == "|" || word == "&&");
    let parts = parts.map(|part| part.split(|word| word == ">").next().unwrap_or_default());
    let ours = parts.filter_map(|part| match part.first()?.as_str() {
        "longtake" => Some(part.to_vec()),
        "cargo" if part.get(1).is_some_and(|word| word == "run") => {
            let rest = part.iter().position(|word| word == "--")?;
            Some(part[rest..].to_vec())
        }
        _ => None,
    });
    ours.flat_map(|command| each_of(&command)).collect()
}

/// `a|b` in a command's place stands for the one and for the other.
fn each_of(command: &[String]) -> Vec<Vec<String>> {
    let Some(at) = command.iter().position(|word| word.contains('|')) else {
        return vec![command.to_vec()];
    };
    let with = |word: &str| [&command[..at], &[word.to_owned()], &command[at + 1..]].concat();
    command[at].split('|').map(with).collect()
}

fn parsed(command: &[String]) -> Arguments {
    // A file of options names the source and the array.
    let file = command.iter().any(|word| word == "--config");
    let of_file = if file { ["--from=-", "--to=array"].as_slice() } else { &[] };
    let words = command.iter().map(String::as_str).chain(of_file.iter().copied());
    let parsed = Arguments::try_parse_from(words);
    parsed.unwrap_or_else(|error| panic!("{}: {error}", command.join(" ")))
}

/// Checks that the program accepts a line's commands. Returns how many there are.
#[track_caller]
fn accepted(line: &str) -> usize {
    let commands = commands(line);
    for command in &commands {
        let arguments = parsed(command);
        // What the program parses later than the command line: sources, and simulated drives.
        if let Verb::Record(record) = arguments.verb {
            record.from.parse::<SourceSpec>().unwrap_or_else(|e| panic!("{line}: {e}"));
            let to = record.to.unwrap_or_default();
            SimTarget::all(&array::named(&to)).unwrap_or_else(|e| panic!("{line}: {e}"));
        }
        for word in command.iter().filter(|word| SimTarget::is_meant(word)) {
            word.parse::<SimTarget>().unwrap_or_else(|e| panic!("{line}: {e}"));
        }
        for word in command.iter().filter(|word| StripedTarget::is_meant(word)) {
            StripedTarget::only(std::slice::from_ref(word))
                .unwrap_or_else(|e| panic!("{line}: {e}"));
        }
    }
    commands.len()
}

#[test]
fn every_command_in_the_readme_is_accepted() {
    let mut found = 0;
    for line in code(README).iter().filter(|line| !OTHER_PROGRAMS.contains(&line.as_str())) {
        let commands = accepted(line);
        assert!(commands > 0, "no command of ours: {line}");
        found += commands;
    }
    assert!(found >= 14, "only {found} commands were found");
}

#[test]
fn every_command_in_the_documents_is_accepted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut found = 0;
    for entry in fs::read_dir(folder).expect("it is there").map(Result::unwrap) {
        let Ok(text) = fs::read_to_string(entry.path()) else { continue };
        found += ours(&text).iter().map(|line| accepted(line)).sum::<usize>();
    }
    assert!(found >= 90, "only {found} commands were found");
}

#[test]
fn the_first_example_is_five_seconds_at_1_gb_s_onto_four_files_of_8_gib_in_all() {
    let line =
        code(README).into_iter().find(|line| line.starts_with("cargo run")).expect("it is there");
    // Without a package, cargo runs the workspace's default member.
    assert!(line.starts_with("cargo run --release -- ") && WORKSPACE.contains(CLI_IS_DEFAULT));
    let Verb::Record(record) = parsed(&commands(&line)[0]).verb else { panic!("{line}") };
    // 5 GB at 1 GB/s fit into files of the default size.
    assert_eq!((record.members, record.member_size), (4, None));
    let new = NewArray { members: record.members, ..NewArray::default() };
    assert_eq!(new.member_bytes() * u64::from(record.members), 8 << 30);
    assert_eq!(record.duration.map(|time| time.as_secs_f64()), Some(5.0));
    let to = record.to.as_deref();
    assert!(to == Some("/tmp/longtake") && README.contains("8 GiB in `/tmp/longtake`"));
    let SourceSpec::Synthetic(options) = record.from.parse().expect("it is a source") else {
        panic!("{line}")
    };
    assert!(matches!(options.pace, Pace::Rate(rate) if rate.0 == 1e9), "{options:?}");
}

#[test]
fn no_line_of_the_readme_but_tables_and_output_is_wider_than_100_columns() {
    let prose = README.split("```").step_by(2).flat_map(str::lines);
    for line in prose.filter(|line| !line.starts_with('|')) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

/// Commands that have no commands below them, and their names.
fn leaves(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
    if !command.has_subcommands() || !command.is_subcommand_required_set() && !name.is_empty() {
        found.push((name.to_owned(), command.clone()));
    }
    for below in command.get_subcommands() {
        leaves(below, format!("{name} {}", below.get_name()).trim(), found);
    }
}

#[test]
fn every_command_has_help_and_every_one_but_completions_has_json() {
    let mut found = Vec::new();
    leaves(&Arguments::command(), "", &mut found);
    assert!(found.len() >= 35, "{found:?}");
    // Wireshark runs the hidden one.
    for (name, command) in found.into_iter().filter(|(_, command)| !command.is_hide_set()) {
        let help = ["longtake"].into_iter().chain(name.split(' ')).chain(["--help"]);
        let shown = Arguments::try_parse_from(help).expect_err("help ends the program");
        assert_eq!(shown.kind(), ErrorKind::DisplayHelp, "{name}");
        let is_json = |argument: &Arg| argument.get_long() == Some("json");
        // The command above it may have an option for all of its commands.
        let all = Arguments::command();
        let above = all.find_subcommand(name.split(' ').next().unwrap_or_default());
        let mut shared = above.into_iter().flat_map(Command::get_arguments);
        let json = command.get_arguments().any(is_json)
            || shared.any(|argument| is_json(argument) && argument.is_global_set());
        assert_eq!(json, name != "completions", "{name}");
    }
}
