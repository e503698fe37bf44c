//! Help is readable on a terminal: `-h` of every command fits on a screen, and `--help` groups many options under headings.

use crate::harness::{longtake, run};
use crate::json::commands;

/// A screen.
const COLUMNS: usize = 100;
const ROWS: usize = 40;

/// Options above which help has headings.
const OPTIONS_MAX: usize = 14;

/// The help of a command, as wide as where no terminal is.
fn help(command: &str, option: &str) -> String {
    let mut program = longtake();
    program.args(command.split_whitespace()).arg(option).env_remove("COLUMNS");
    run(&mut program).code(0).text()
}

#[test]
fn short_help_of_every_command_fits_on_a_screen() {
    let commands = commands();
    assert!(commands.len() >= 35, "{commands:?}");
    for command in commands.iter().map(String::as_str).chain(["", "array", "measure", "sim"]) {
        let help = help(command, "-h");
        let rows = help.lines().count();
        assert!(rows <= ROWS, "longtake {command} -h has {rows} lines:\n{help}");
        let wide = help.lines().find(|line| line.chars().count() > COLUMNS);
        assert_eq!(wide, None, "longtake {command} -h");
    }
}

#[test]
fn many_options_stand_below_headings() {
    let mut grouped = 0;
    for command in commands() {
        let help = help(&command, "--help");
        let options = help.lines().filter(|line| line.trim_start().starts_with("--")).count();
        if options > OPTIONS_MAX {
            let headings = help.lines().filter(|line| {
                line.ends_with(':') && line.starts_with(|c: char| c.is_ascii_uppercase())
            });
            let headings: Vec<&str> = headings.collect();
            assert!(headings.len() >= 4, "{command}: {options} options below {headings:?}");
            grouped += 1;
        }
    }
    assert!(grouped >= 10, "only {grouped} commands have headings");
}
