//! `longtake flows`: recorded packets counted by flow, host or port.

use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use longtake::Selection;
use longtake::array::{FlowFormat, FlowOptions, Flows, Group};
use longtake::{json, text};
use target::output::{NewFile, Outputs, Readers};

use crate::arguments::FlowsArguments;
use crate::extract::selection;
use crate::{exit, opening, printer, progress};

/// Rows of a table, unless the user asks for another number.
const TABLE_TOP: usize = 20;

/// Progress is shown by commands that take longer.
const QUICK: Duration = Duration::from_secs(2);

/// Counts packets and lists what it counted.
///
/// # Errors
/// If the array can't be opened, the filter is wrong, or the file can't be written.
pub fn flows(arguments: &FlowsArguments) -> Result<ExitCode> {
    if arguments.community_id && arguments.group != Group::Flows {
        let why = "--community-id belongs to flows: leave out --group\n";
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, why).into());
    }
    let named = arguments.format.or(arguments.array.json.then_some(FlowFormat::Json));
    let format = FlowFormat::choose(named, arguments.output.as_deref())?;
    let members = target::array::resolve(&arguments.array.array)?;
    let outputs = Outputs::new(arguments.overwrite).reads(&members);
    match &arguments.output {
        Some(path) => outputs.check(path)?,
        None if format == FlowFormat::Parquet => drop(outputs.stdout()?.not_terminal()?),
        None => {}
    }
    let mut array = opening::options(arguments.array.degraded).open_members(&members)?;
    let selection = Selection { hold: arguments.hold, ..selection(&arguments.selection)? };
    let table_top = (format == FlowFormat::Table).then_some(TABLE_TOP);
    let options = FlowOptions {
        group: arguments.group,
        order: arguments.by,
        top: arguments.top.or(table_top),
        rows_max: arguments.max_rows,
    };
    let (bar, start) = (progress::chunks_bar(0, "counting", !arguments.quiet), Instant::now());
    let flows = array.select(&selection)?.flows(&options, |progress| {
        if start.elapsed() > QUICK {
            progress::show(&bar, progress);
        }
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    match &arguments.output {
        Some(path) => {
            let mut file = outputs.create(path, Readers::Owner)?;
            write(&flows, format, arguments.community_id, &mut file)?;
            file.finish()?;
        }
        None => print(&flows, format, arguments.community_id, &outputs)?,
    }
    if arguments.selection.explain {
        printer::tell_all(text::index_use(&flows.read.index));
    }
    printer::tell_all(text::unread(&flows.read));
    printer::tell_all(text::missing(flows.read.missing));
    Ok(exit::lossless(flows.is_complete()))
}

/// Prints to standard output. The sums of what has no place for them go to standard error.
fn print(flows: &Flows, format: FlowFormat, with_ids: bool, outputs: &Outputs) -> Result<()> {
    match format {
        FlowFormat::Table => {
            printer::listing(&text::flows(flows, with_ids))?;
            printer::text("")?;
            printer::messages(text::flow_sums(flows))
        }
        FlowFormat::Json => printer::json(&json::flows(flows, with_ids)),
        FlowFormat::Csv | FlowFormat::Parquet => {
            write(flows, format, with_ids, &mut outputs.stdout()?)
        }
    }
}

/// Writes a file.
fn write(flows: &Flows, format: FlowFormat, with_ids: bool, file: &mut NewFile) -> Result<()> {
    let sums = text::flow_sums(flows);
    let bytes = match format {
        FlowFormat::Table => {
            let rows = printer::rows(&text::flows(flows, with_ids));
            format!("{rows}\n\n{}\n", sums.join("\n")).into_bytes()
        }
        _ => flows.encode(format, with_ids)?,
    };
    let written = file.write_all(&bytes);
    written.with_context(|| format!("writing {}", file.path().display()))?;
    printer::tell_all(sums);
    Ok(())
}
