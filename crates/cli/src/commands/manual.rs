//! The manual pages, made from the command line. The test below writes them, for `cargo xtask dist` too: so the
//! program carries no code for pages that it never shows.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory;
use clap_mangen::Man;

use super::Arguments;

/// Names the folder that the pages are written to. Without it they go to one that is discarded.
const FOLDER: &str = "LONGTAKE_MANUAL";

/// A command and those below it, with the help that pages show: all of `--help`, a list's items as paragraphs.
fn explained(command: clap::Command) -> clap::Command {
    let explained = command.mut_args(|argument| {
        let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
        let help = help.unwrap_or_default();
        let help = if help.contains("\n- ") { help.replace('\n', "\n\n") } else { help };
        argument.hide_short_help(false).long_help(help)
    });
    explained.mut_subcommands(self::explained)
}

/// The pages of a command and of those below it: name and contents.
fn pages(command: &clap::Command, found: &mut Vec<(String, Vec<u8>)>) {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let source = format!("longtake {}", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).title(&name).source(source).manual("Longtake");
    let mut bytes = Vec::new();
    page.render(&mut bytes).unwrap();
    found.push((format!("{name}.1"), bytes));
    command.get_subcommands().for_each(|below| pages(below, found));
}

/// The commands below one, and those below them.
fn count(command: &clap::Command) -> usize {
    command.get_subcommands().map(|below| 1 + count(below)).sum()
}

/// What groff complains of in a page; None if there is no groff.
fn complaints(page: &Path) -> Option<String> {
    let mut groff = Command::new("groff");
    match groff.args(["-man", "-Tutf8", "-ww", "-z"]).arg(page).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) if error.kind() == NotFound => None,
        Err(error) => panic!("starting groff: {error}"),
    }
}

#[test]
fn every_command_has_a_manual_page_that_groff_reads_without_a_warning() {
    let temporary = tempfile::tempdir().unwrap();
    let asked = std::env::var_os(FOLDER).map(PathBuf::from);
    let folder = asked.as_deref().unwrap_or(temporary.path());
    fs::create_dir_all(folder).unwrap();
    let mut command = explained(Arguments::command()).disable_help_subcommand(true);
    command.build();
    let mut found = Vec::new();
    pages(&command, &mut found);
    let names: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["longtake.1", "longtake-record.1", "longtake-array-create.1"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert_eq!((names.len(), found.len()), (1 + count(&Arguments::command()), names.len()));
    for (name, bytes) in &found {
        let page = folder.join(name);
        fs::write(&page, bytes).unwrap();
        let text = String::from_utf8_lossy(bytes);
        let title = name.trim_end_matches(".1").replace('-', "\\-");
        assert!(text.contains(&format!(".SH NAME\n{title} \\- ")), "{name}: {text}");
        match complaints(&page) {
            Some(complaints) => assert_eq!(complaints, "", "{name}"),
            None => eprintln!("{name} is not checked: apt-get install groff-base"),
        }
    }
    let record = &found.iter().find(|(name, _)| name == "longtake-record.1").unwrap().1;
    let record = String::from_utf8_lossy(record);
    let option = record.split("\\-\\-kernel\\-buffer\\fR").nth(2).unwrap();
    assert!(option.lines().nth(1).unwrap().starts_with("Size of the kernel"), "{option}");
}
