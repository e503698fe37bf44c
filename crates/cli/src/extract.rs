//! `longtake extract`: recorded packets into a file, by time and filter.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use base::{Duration, Rate};
use lab::Go;
use longtake::Selection;
use longtake::array::{Array, Extracted, OutputFormat};
use longtake::instant::utc;
use longtake::{json, text};
use source::clock;
use target::output::{NewFile, Outputs, Readers};

use crate::arguments::{self, ExtractArguments};
use crate::signals::stop_or_go_on;
use crate::{exit, opening, printer, progress};

/// Extracts packets to a file or standard output.
///
/// # Errors
/// If the array can't be opened, the filter is wrong, or the file can't be written.
pub fn extract(arguments: &ExtractArguments) -> Result<ExitCode> {
    let to_stdout = arguments.output == Path::new("-");
    let format = format(arguments)?;
    if to_stdout {
        Outputs::default().stdout()?.not_terminal()?;
    }
    let members = target::array::resolve(&arguments.array.array)?;
    let outputs = Outputs::new(arguments.overwrite).reads(&members);
    if !to_stdout {
        outputs.check(&arguments.output)?;
    }
    let mut array = opening::options(arguments.array.degraded).open_members(&members)?;
    let selection = Selection {
        hold: arguments.hold,
        community_ids: arguments.community_id.clone(),
        ..selection(&arguments.selection)?
    };
    let create = || match to_stdout {
        true => outputs.stdout()?.not_terminal(),
        false => outputs.create(&arguments.output, Readers::Owner)?.not_terminal(),
    };
    if arguments.follow {
        return follow(&mut array, &selection, format, create()?, arguments);
    }
    let selected = array.select(&selection)?;
    let mut target = create()?.directly()?;
    let to_stdout = to_stdout || is_stdout(&arguments.output);
    let shown = !arguments.quiet && !arguments.array.json && !to_stdout;
    let bar = progress::chunks_bar(0, "extracting", shown);
    let stopped = stopped(&target)?;
    let start = Instant::now();
    let extracted = selected.write_to(format, Named(&mut target), |progress| {
        progress::show(&bar, progress);
        if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if extracted.stopped {
        bail!("stopped by a signal: {} was not written", arguments.output.display());
    }
    target.finish()?;
    bar.finish_and_clear();
    show(&extracted, arguments, start)
}

/// Extracts packets while they are recorded.
fn follow(
    array: &mut Array,
    selection: &Selection,
    format: OutputFormat,
    mut target: NewFile,
    arguments: &ExtractArguments,
) -> Result<ExitCode> {
    let stop = stop_or_go_on()?;
    let start = Instant::now();
    if !arguments.quiet && !array.is_recording() {
        printer::tell("nobody is recording on the array: waiting for a recording");
    }
    let stopped = || stop() == Go::Stop;
    let extracted = array.follow_to(selection, format, Named(&mut target), stopped)?;
    target.finish()?;
    show(&extracted, arguments, start)
}

/// Prints what was extracted. Standard output may be the capture itself.
fn show(extracted: &Extracted, arguments: &ExtractArguments, start: Instant) -> Result<ExitCode> {
    let output = &arguments.output;
    if arguments.selection.explain {
        printer::tell_all(text::index_use(&extracted.read.index));
    }
    if arguments.array.json && output != Path::new("-") && !is_stdout(output) {
        let mut shown = json::extracted(extracted);
        shown["output"] = serde_json::json!(output);
        printer::json(&shown)?;
    } else {
        let elapsed = Duration::from_secs_f64(start.elapsed().as_secs_f64());
        if !arguments.quiet {
            print(extracted, output, Rate::of(extracted.bytes, elapsed));
        }
        printer::tell_all(text::unread(&extracted.read));
        printer::tell_all(text::missing(extracted.read.missing));
    }
    Ok(exit::lossless(extracted.is_complete()))
}

/// The format that the command names, or that the name of its file selects.
///
/// # Errors
/// If the name selects none, or one without the columns that are wanted.
fn format(arguments: &ExtractArguments) -> Result<OutputFormat> {
    let format = match arguments.format {
        Some(format) => format.for_file(&arguments.output),
        None => OutputFormat::of(&arguments.output)?,
    };
    Ok(format.with_flow(arguments.flow_columns)?)
}

/// The packets that a command asks for.
///
/// # Errors
/// If the span of time ends before it begins.
pub fn selection(arguments: &arguments::Selection) -> Result<Selection> {
    let now = clock::now();
    let since = arguments.since.map(|w| w.at(now));
    let until = arguments.until.map(|w| w.at(now));
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        bail!("--since {} lies after --until {}: exchange them", utc(since), utc(until));
    }
    Ok(Selection {
        since,
        until,
        take: arguments.take.clone(),
        filter: arguments.filter.clone(),
        read_rate: arguments.read_rate,
        full_scan: arguments.full_scan,
        ..Selection::default()
    })
}

/// Whether a path names standard output, which then carries the capture alone.
fn is_stdout(path: &Path) -> bool {
    path == Path::new("/dev/stdout") || path == Path::new("/dev/fd/1")
}

/// Says whether a signal has asked to stop. A signal ends an extract to a stream at once. One to a file ends by itself, so that its
/// temporary file is removed.
fn stopped(target: &NewFile) -> Result<Box<dyn Fn() -> bool>> {
    if target.is_stream() {
        return Ok(Box::new(|| false));
    }
    let stop = stop_or_go_on()?;
    Ok(Box::new(move || stop() == Go::Stop))
}

/// A file whose errors name it.
struct Named<'f>(&'f mut NewFile);

impl Write for Named<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write_all(bytes);
        let named = written.with_context(|| format!("writing {}", self.0.path().display()));
        named.map(|()| bytes.len()).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn print(extracted: &Extracted, output: &Path, rate: Rate) {
    printer::tell(&format!(
        "{}, {} written to {} at {rate}",
        printer::counted(extracted.packets, "packet"),
        printer::counted(extracted.bytes, "byte"),
        output.display()
    ));
}
