//! Options of `record` from a file, and such a file from options. A file becomes words of a command line by the definition that
//! clap has of the command, so that names, values and errors are the same in both places.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use profile::nearest;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::printer::inline;

const VERB: &str = "record";
/// Options that say nothing about a recording, and can't be in a file.
const NOT_IN_FILES: [&str; 4] = ["config", "print_config", "help", "version"];

/// An option that a file sets.
struct Entry<'a> {
    /// From 1.
    line: usize,
    option: &'a Arg,
    words: Vec<String>,
}

/// Parses a command line, and the file that it names with `record --config`.
///
/// # Errors
/// If the file can't be read. A [`clap::Error`] if something in it or on the command line is wrong.
pub fn matches(mut root: Command, mut words: Vec<OsString>) -> Result<ArgMatches> {
    let Some(given) = alone(&root, &words) else { return Ok(root.try_get_matches_from(words)?) };
    let record = built(&root);
    if given.get_flag("print_config") {
        // A file may leave to the command line what a recording needs.
        root = root.mut_subcommand(VERB, |record| {
            let record = record.mut_args(|option| option.required(false));
            record.mut_group("where", |group| group.required(false))
        });
    }
    let Some(path) = given.get_one::<PathBuf>("config") else {
        return Ok(root.try_get_matches_from(words)?);
    };
    let text = fs::read_to_string(path)
        .with_context(|| format!("reading the options in {}", path.display()))?;
    let mut entries = read(&text, &record).map_err(|(line, message)| {
        record.clone().error(ErrorKind::InvalidValue, at(path, line, &message))
    })?;
    let chosen: Vec<&Arg> = options(&record).filter(|option| is_given(&given, option)).collect();
    let is_replaced =
        |entry: &Entry<'_>| chosen.iter().any(|option| replaces(&record, option, entry.option));
    let replaced: Vec<Entry<'_>> = entries.extract_if(.., |entry| is_replaced(entry)).collect();
    check_values(&record, path, &replaced)?;
    // Behind `--` stand no options.
    words.pop_if(|word| word == "--");
    words.extend(entries.iter().flat_map(|entry| &entry.words).map(OsString::from));
    Ok(root.try_get_matches_from(words).map_err(|error| located(error, path, &entries))?)
}

/// Checks the values of options that the command line replaces: a mistake in a file is found before the file is used alone. Which
/// options go together doesn't matter here.
fn check_values(record: &Command, path: &Path, entries: &[Entry<'_>]) -> Result<(), clap::Error> {
    for entry in entries {
        let words = ["record"].into_iter().chain(entry.words.iter().map(String::as_str));
        let error = record.clone().try_get_matches_from(words).err();
        let wrong = [ErrorKind::InvalidValue, ErrorKind::ValueValidation];
        if let Some(error) = error.filter(|error| wrong.contains(&error.kind())) {
            return Err(located(error, path, std::slice::from_ref(entry)));
        }
    }
    Ok(())
}

/// What the command line alone gives to `record`. None if it is for another command, or wrong whatever a file may add to it.
fn alone(root: &Command, words: &[OsString]) -> Option<ArgMatches> {
    let error = root.clone().try_get_matches_from(words).err();
    if error.is_some_and(|error| error.kind() != ErrorKind::MissingRequiredArgument) {
        return None;
    }
    let matches = root.clone().ignore_errors(true).try_get_matches_from(words);
    matches.ok()?.subcommand_matches(VERB).cloned()
}

/// The options that were given, as the text of a file for `--config`, if the command line asks for that.
///
/// # Errors
/// If a value is not Unicode.
pub fn printed(root: &Command, matches: &ArgMatches) -> Result<Option<String>> {
    let asked = matches.subcommand_matches(VERB).filter(|given| given.get_flag("print_config"));
    let Some(given) = asked else { return Ok(None) };
    let record = built(root);
    let mut text = "# Options for `longtake record --config FILE`.".to_owned();
    for option in options(&record).filter(|option| is_given(given, option)) {
        let name = option.get_long().unwrap_or_default();
        let raw = given.get_raw(option.get_id().as_str()).into_iter().flatten();
        let values = raw.map(|value| value.to_str().map(literal)).collect::<Option<Vec<_>>>();
        let values = values.with_context(|| format!("--{name} is not Unicode"))?.join(", ");
        text += &match option.get_action() {
            ArgAction::SetTrue => format!("\n{name} = true"),
            ArgAction::Append => format!("\n{name} = [{values}]"),
            _ => format!("\n{name} = {values}"),
        };
    }
    Ok(Some(text))
}

/// The definition of `record`, with the options that all commands have.
fn built(root: &Command) -> Command {
    let mut root = root.clone();
    root.build();
    root.find_subcommand(VERB).cloned().unwrap_or(root)
}

/// The options that can be in a file.
fn options(record: &Command) -> impl Iterator<Item = &Arg> {
    record.get_arguments().filter(|option| !NOT_IN_FILES.contains(&option.get_id().as_str()))
}

fn is_given(given: &ArgMatches, option: &Arg) -> bool {
    given.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// Whether an option on the command line takes the place of one in the file: the same, or one that excludes it.
fn replaces(record: &Command, given: &Arg, other: &Arg) -> bool {
    let (given_id, other_id) = (given.get_id(), other.get_id());
    let names = |a, b| record.get_arg_conflicts_with(a).iter().any(|found| found.get_id() == b);
    let one_of_both = record.get_groups().any(|group| {
        let has = |id| group.get_args().any(|of_group| of_group == id);
        !group.clone().is_multiple() && has(given_id) && has(other_id)
    });
    given_id == other_id || names(given, other_id) || names(other, given_id) || one_of_both
}

/// The options in a file, from its first line to its last, or the line of a mistake and a message.
fn read<'a>(text: &str, record: &'a Command) -> Result<Vec<Entry<'a>>, (usize, String)> {
    let line = |offset| 1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        (line(error.span().map_or(0, |span| span.start)), error.message().to_owned())
    })?;
    let mut rows: Vec<_> = table.get_ref().iter().collect();
    rows.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let (line, name) = (line(key.span().start), key.get_ref());
        let option = options(record).find(|option| option.get_long() == Some(name));
        let option = option.ok_or_else(|| (line, unknown(name, record)))?;
        let words = words(name, option, value.get_ref()).map_err(|message| (line, message))?;
        Ok(Entry { line, option, words })
    };
    rows.into_iter().map(entry).collect()
}

fn unknown(key: &str, record: &Command) -> String {
    let meant = nearest(key, options(record).filter_map(Arg::get_long));
    let meant = meant.map_or(String::new(), |name| format!("; did you mean '{name}'?"));
    format!("unknown option '{}'{meant}", inline(key))
}

/// The words that set an option to a value.
fn words(name: &str, option: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match (option.get_action(), value) {
        (ArgAction::SetTrue, DeValue::Boolean(true)) => return Ok(vec![format!("--{name}")]),
        (ArgAction::SetTrue, DeValue::Boolean(false)) => return Ok(Vec::new()),
        (ArgAction::SetTrue, _) => return Err(format!("'{name}' must be true or false")),
        _ => {}
    }
    let values = match value {
        DeValue::Array(values) => values.iter().map(|value| value.get_ref()).collect(),
        value => vec![value],
    };
    let word = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(format!("--{name}={text}")),
        DeValue::Integer(number) => Ok(format!("--{name}={number}")),
        _ => Err(format!("'{name}' must be a whole number or a text in quotes")),
    };
    values.into_iter().map(word).collect()
}

/// The same error with the line of the option that it is about, if that is in the file.
fn located(error: clap::Error, path: &Path, entries: &[Entry<'_>]) -> clap::Error {
    let options = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => std::slice::from_ref(option),
        Some(ContextValue::Strings(options)) => options.as_slice(),
        _ => &[],
    };
    let names = options.iter().filter_map(|option| option.strip_prefix("--")?.split(' ').next());
    let of = |name| entries.iter().find(|entry| entry.option.get_long() == Some(name));
    let entry = names.filter_map(of).next();
    let Some(entry) = entry else { return error };
    let text = error.render().to_string();
    let message = text.strip_prefix("error: ").unwrap_or(&text);
    clap::Error::raw(error.kind(), at(path, entry.line, message))
}

fn at(path: &Path, line: usize, message: &str) -> String {
    format!("{}:{line}: {message}", inline(&path.display().to_string()))
}

/// A value in TOML: a number as it is, else a text in which all that is not plain is escaped.
fn literal(value: &str) -> String {
    if value.parse::<i64>().is_ok_and(|number| number.to_string() == value) {
        return value.to_owned();
    }
    let escaped = value.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric() => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
