//! The program: parses arguments, calls the libraries, prints.

mod arguments;
mod array;
mod check;
mod commands;
mod cooling;
mod drives;
mod extract;
mod fit;
mod flows;
mod measure;
mod opening;
mod plan;
mod printer;
mod profiles;
mod progress;
mod protect;
mod record;
mod replay;
mod report;
mod reproduce;
mod serve;
mod signals;
mod sim;
mod sweep;
mod take_list;
mod token;
mod wireshark;
mod words;

use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use target::NameError;
use target::array::ArrayNameError;
use target::output::OutputError;
use terminal_size::{Width, terminal_size_of};
use twin::fit::FitError;
use twin::setup::SetupError;

use crate::commands::{Arguments, ArrayAction, Verb};
use crate::measure::arguments::MeasureAction;

/// Exit codes beyond 0 (done).
pub mod exit {
    /// Wrong arguments; clap's code too.
    pub const USAGE: u8 = 2;
    /// What was asked could not be done.
    pub const FAILED: u8 = 1;
    /// It was done, but something was lost, is missing or damaged; the output says what.
    pub const LOSS: u8 = 3;

    /// Success, unless something was lost, is missing or damaged.
    pub fn lossless(lossless: bool) -> std::process::ExitCode {
        std::process::ExitCode::from(if lossless { 0 } else { LOSS })
    }
}

/// Ends the program for what clap has to say: help, or what is wrong with the arguments. It repeats them as they are, and they may
/// have been made from the names of files.
fn wrong(mut error: clap::Error) -> ! {
    words::explain(&mut error, std::env::args_os());
    let plain = error.to_string();
    if ::report::text::escaped(&plain) == plain {
        error.exit();
    }
    printer::tell(plain.trim_end());
    std::process::exit(error.exit_code())
}

fn main() -> ExitCode {
    if let Some((Width(columns), _)) = terminal_size_of(std::io::stdout()) {
        ::report::text::set_columns(columns.into());
    }
    let words = std::env::args_os().collect();
    let given = record::config::matches(Arguments::command(), words);
    given.and_then(|given| run(&given)).unwrap_or_else(failed)
}

/// Runs the command that the arguments name.
fn run(given: &ArgMatches) -> Result<ExitCode> {
    if let Some(config) = record::config::printed(&Arguments::command(), given)? {
        printer::text(&config)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut arguments = Arguments::from_arg_matches(given)?;
    if let Verb::Measure { action: MeasureAction::Run(run) } = &mut arguments.verb {
        let wrong = |why| Arguments::command().error(ErrorKind::ValueValidation, why);
        run.take_job_file().map_err(wrong)?;
    }
    if let Some(folder) = &arguments.profiles {
        profiles::use_folder(folder);
    }
    match arguments.verb {
        Verb::Record(arguments) => record::record(&arguments),
        Verb::Array { action } => match action {
            ArrayAction::Create(arguments) => array::create(&arguments),
            ArrayAction::List(arguments) => array::list(&arguments),
            ArrayAction::Show(arguments) => array::show(&arguments),
            ArrayAction::Info(arguments) => array::info(&arguments),
            ArrayAction::Delete(arguments) => array::delete(&arguments),
            ArrayAction::Check(arguments) => check::check(&arguments),
            ArrayAction::Scrub(arguments) => array::scrub(&arguments),
            ArrayAction::Index(arguments) => array::index(&arguments),
            ArrayAction::Rebuild(arguments) => array::rebuild(&arguments),
        },
        Verb::Takes(arguments) => take_list::takes(&arguments),
        Verb::Ledger(arguments) => take_list::ledger(&arguments),
        Verb::Extract(arguments) => extract::extract(&arguments),
        Verb::Flows(arguments) => flows::flows(&arguments),
        Verb::Serve(arguments) => serve::serve(&arguments),
        Verb::Token(arguments) => token::token(&arguments),
        Verb::Wireshark { action } => wireshark::wireshark(&action),
        Verb::Replay(arguments) => replay::replay(&arguments),
        Verb::Protect(arguments) => protect::protect(&arguments),
        Verb::Unprotect(arguments) => protect::unprotect(&arguments),
        Verb::Measure { action } => measure::measure(&action),
        Verb::Report(arguments) => report::report(&arguments),
        Verb::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Verb::Plan(arguments) => plan::plan(&arguments),
        Verb::Drives(arguments) => drives::drives(&arguments),
        Verb::Fit(arguments) => fit::fit(&arguments),
        Verb::Sim { action } => sim::sim(&action),
        Verb::Sweep(arguments) => sweep::sweep(&arguments),
        Verb::Profiles { action } => profiles::profiles(&action),
        Verb::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Arguments::command(),
                "longtake",
                &mut std::io::stdout(),
            );
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Says what went wrong. Returns the exit code.
fn failed(error: anyhow::Error) -> ExitCode {
    let error = match error.downcast() {
        Ok(error) => wrong(error),
        Err(error) => error,
    };
    // A reader that has gone (`| head`) is no failure to report to it.
    let broken_pipe = error.chain().any(|cause| {
        let library = cause.downcast_ref::<longtake::Error>();
        let io = cause.downcast_ref().or_else(|| library?.downcast_ref());
        io.is_some_and(|e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe)
    });
    if !broken_pipe {
        printer::tell(&format!("longtake: {error:#}"));
    }
    ExitCode::from(if is_usage(&error) { exit::USAGE } else { exit::FAILED })
}

/// Whether an argument is wrong by itself, although the command line parsed: a source, a target or an output that is none.
fn is_usage(error: &anyhow::Error) -> bool {
    fn found<E: std::error::Error + Send + Sync + 'static>(error: &anyhow::Error) -> Option<&E> {
        let library = || error.downcast_ref::<longtake::Error>()?.downcast_ref();
        error.downcast_ref().or_else(library)
    }
    found::<source::SpecError>(error).is_some()
        || found::<longtake::recording::FileNameError>(error).is_some()
        || found::<longtake::array::FormatError>(error).is_some()
        || found::<NameError>(error).is_some()
        || found::<::serve::ServeError>(error).is_some_and(::serve::ServeError::is_usage)
        || matches!(found(error), Some(ArrayNameError::Name(_)))
        || matches!(found(error), Some(OutputError::Terminal { .. }))
        || found::<SetupError>(error).is_some_and(SetupError::is_usage)
        || matches!(found(error), Some(FitError::LikeName(_)))
}
