//! `longtake extract`: recorded packets into a file, by time and filter.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use base::{Duration, Rate};
use format::export::FileFormat;
use lab::Go;
use longtake::Selection;
use longtake::array::Extracted;
use longtake::instant::utc;
use longtake::json;
use source::clock;
use target::output::{NewFile, Outputs, Readers};

use crate::arguments::{self, ExtractArguments};
use crate::signals::stop_or_go_on;
use crate::{account, exit, opening, printer, progress};

/// Extracts packets to a file or standard output.
///
/// # Errors
/// If the array can't be opened, the filter is wrong, or the file can't be written.
pub fn extract(arguments: &ExtractArguments) -> Result<ExitCode> {
    let to_stdout = arguments.output == Path::new("-");
    let members = target::array::resolve(&arguments.array.array)?;
    let outputs = Outputs::new(arguments.overwrite).reads(&members);
    if !to_stdout {
        outputs.check(&arguments.output)?;
    }
    let mut array = opening::options(arguments.array.degraded).open_members(&members)?;
    let selection = Selection { hold: arguments.hold, ..selection(&arguments.selection)? };
    let selected = array.select(&selection)?;
    let mut target = if to_stdout {
        outputs.stdout()?
    } else {
        outputs.create(&arguments.output, Readers::Owner)?
    };
    let to_stdout = to_stdout || is_stdout(&arguments.output);
    let shown = !arguments.quiet && !arguments.array.json && !to_stdout;
    let bar = progress::chunks_bar(0, "extracting", shown);
    let stopped = stopped(&target)?;
    let start = Instant::now();
    let extracted = selected.write_to(format(arguments), Named(&mut target), |progress| {
        progress::show(&bar, progress);
        if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if extracted.stopped {
        bail!("stopped by a signal: {} was not written", arguments.output.display());
    }
    target.finish()?;
    bar.finish_and_clear();
    if arguments.array.json && !to_stdout {
        let mut shown = json::extracted(&extracted);
        shown["output"] = serde_json::json!(arguments.output);
        printer::json(&shown)?;
    } else {
        // Standard output may be the capture itself.
        let elapsed = Duration::from_secs_f64(start.elapsed().as_secs_f64());
        print(&extracted, &arguments.output, Rate::of(extracted.bytes, elapsed));
    }
    Ok(exit::lossless(extracted.is_complete()))
}

fn format(arguments: &ExtractArguments) -> FileFormat {
    match arguments.format {
        Some(arguments::FileFormat::Pcapng) => FileFormat::Pcapng,
        Some(arguments::FileFormat::Pcap) => FileFormat::Pcap,
        None if arguments.output.extension().is_some_and(|e| e == "pcap") => FileFormat::Pcap,
        None => FileFormat::Pcapng,
    }
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
        hold: false,
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
        "{} packets, {} bytes written to {} at {rate}",
        printer::number(extracted.packets),
        printer::number(extracted.bytes),
        output.display()
    ));
    account::print(&extracted.read);
    let missing = extracted.read.missing;
    if missing.packets > 0 {
        printer::tell(&format!(
            "{} packets are missing from the takes in this span: `longtake ledger` names the gaps",
            printer::number(missing.packets)
        ));
    }
}
