//! What words of other programs are called here: hints for arguments that don't exist.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory};

use crate::commands::Arguments;

/// A command (or the beginning of its name), words that it doesn't know, and what to type.
type Hint = (&'static str, &'static [&'static str], &'static str);

const HINTS: [Hint; 23] = [
    (
        "record",
        &["-C", "-G"],
        "-w FILE --rotate 1GiB begins another file by size, --rotate 10m by time",
    ),
    (
        "record",
        &["-W", "-b", "--ring-buffer"],
        "-w FILE --rotate 1GiB --files 10 keeps the ten newest files",
    ),
    (
        "record",
        &["-r", "--read"],
        "--from FILE records a capture file; `longtake extract ARRAY -o -` reads a recording",
    ),
    ("record", &["-c", "--count"], "--for TIME or --until-bytes SIZE end a recording"),
    ("record", &["-D"], "`ip link` lists interfaces"),
    (
        "extract",
        &["-r", "--read"],
        "the array is named without an option: longtake extract ARRAY -o FILE",
    ),
    (
        "measure run",
        &["--rw", "--readwrite", "--rwmixread", "--rwmixwrite"],
        "--read 7 --write 3 sets the mix, and --pattern random the order",
    ),
    (
        "measure run",
        &["--ioengine", "--direct"],
        "leave it out: commands always go through io_uring and past the page cache",
    ),
    ("measure run", &["--time_based", "--group_reporting"], "leave it out: it is always so"),
    (
        "measure",
        &["--filename"],
        "the drive or file is named without an option: longtake measure run TARGET",
    ),
    (
        "measure",
        &["--bs", "--rw", "--iodepth", "--numjobs", "--runtime", "--job"],
        "`longtake measure run` takes the options of one workload, and fio's job files",
    ),
    ("array", &["ls"], "`longtake array list [DIR...]` lists arrays on drives and in directories"),
    ("array", &["status", "stat", "describe"], INFO),
    ("array", &["check-only", "fsck", "verify"], "`longtake array check ARRAY` reads all of it"),
    ("array", &["rm", "remove", "destroy"], DELETE),
    ("", &["rm", "delete", "remove", "destroy"], DELETE),
    (
        "",
        &["prune"],
        "takes are not deleted singly: a ring overwrites the oldest (--when-full wrap)",
    ),
    (
        "",
        &["ls", "list"],
        "`longtake array list` lists arrays, `takes ARRAY` its takes, and `drives` drives",
    ),
    ("", &["info", "status", "show", "stat"], INFO),
    ("", &["capture", "dump", "rec", "write"], "`longtake record --from eth0 --to DIR` records"),
    ("", &["read", "export", "dd", "cat"], "`longtake extract ARRAY -o FILE` writes packets"),
    (
        "",
        &["bench", "benchmark", "test", "run", "fio"],
        "`longtake measure all TARGET` measures a drive, `longtake measure run` runs one workload",
    ),
    (
        "",
        &["size", "calc", "simulate"],
        "`longtake plan --rate RATE` says how many drives it needs",
    ),
];

const INFO: &str = "`longtake array info ARRAY` describes an array, also while it is recorded on";
const DELETE: &str =
    "`longtake array delete ARRAY` says what would be lost, and deletes with --yes";

/// Commands named at most where an option belongs to others.
const OTHERS_MAX: usize = 3;

/// Replaces clap's advice on a word that doesn't exist by what the user is likely to look for. `arguments` are the
/// program's, its name first.
pub fn explain(error: &mut clap::Error, arguments: impl Iterator<Item = OsString>) {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return };
    let word = word.clone();
    let command = command_of(arguments);
    let hint = HINTS
        .iter()
        .find(|(of, known, _)| command.starts_with(of) && known.contains(&word.as_str()))
        .map(|(.., hint)| (*hint).to_owned())
        .or_else(|| option_of_others(&word));
    // Clap would advise to write `-- --option`, as if it were the name of an array.
    error.remove(ContextKind::Suggested);
    if let Some(hint) = hint {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    }
}

/// The command that a wrong command line names, as far as it can be understood: `measure run`.
fn command_of(arguments: impl Iterator<Item = OsString>) -> String {
    let understood = Arguments::command().ignore_errors(true).try_get_matches_from(arguments).ok();
    let mut at = understood.as_ref().and_then(ArgMatches::subcommand);
    let mut names = Vec::new();
    while let Some((name, below)) = at {
        names.push(name);
        at = below.subcommand();
    }
    names.join(" ")
}

/// The commands that have the option `word`.
fn option_of_others(word: &str) -> Option<String> {
    let name = word.strip_prefix("--")?;
    let mut commands = Vec::new();
    with_option(&Arguments::command(), name, "longtake", &mut commands);
    commands.truncate(OTHERS_MAX);
    (!commands.is_empty()).then(|| format!("{word} is an option of {}", commands.join(", ")))
}

fn with_option(command: &Command, name: &str, path: &str, found: &mut Vec<String>) {
    if command.get_arguments().any(|argument| argument.get_long() == Some(name)) {
        found.push(format!("`{path}`"));
    }
    for below in command.get_subcommands() {
        with_option(below, name, &format!("{path} {}", below.get_name()), found);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// What is printed for a command line that is wrong.
    fn said(line: &str) -> String {
        let words = line.split(' ');
        let mut error = Arguments::try_parse_from(words.clone()).expect_err(line);
        explain(&mut error, words.map(OsString::from));
        error.to_string()
    }

    #[test]
    fn every_hint_is_printed_for_its_words_and_for_nothing_that_exists() {
        for (command, words, hint) in HINTS {
            for word in words {
                let line = format!("longtake {command} {word}").replace("  ", " ");
                // Where a command needs a name first, it may be the array's.
                assert!(said(&line).contains(hint), "{line}: {}", said(&line));
            }
            let printed = format!("  tip: {hint}");
            assert!(printed.len() <= 100, "{} columns: {hint}", printed.len());
        }
    }

    #[test]
    fn nobody_is_told_to_write_an_option_behind_dashes() {
        for line in ["longtake takes --follow", "longtake drives --none", "longtake record --no"] {
            assert!(!said(line).contains("-- -"), "{}", said(line));
        }
    }

    #[test]
    fn the_command_is_found_behind_options_and_their_values() {
        for line in [
            "longtake --profiles DIR record -G 60",
            "longtake --profiles=DIR record -G 60",
            "longtake record --from eth0 -G 60",
        ] {
            assert!(said(line).contains("--rotate 10m by time"), "{line}: {}", said(line));
        }
        let line = "longtake --profiles measure array ls";
        assert!(said(line).contains("array list [DIR...]"), "{}", said(line));
    }

    #[test]
    fn an_option_of_another_command_is_named_with_it() {
        assert!(
            said("longtake takes --follow").contains("--follow is an option of `longtake extract`")
        );
    }

    #[test]
    fn a_slip_still_gets_the_nearest_name() {
        assert!(said("longtake record --fron x").contains("'--from'"));
        assert!(said("longtake recrod").contains("'record'"));
    }
}
