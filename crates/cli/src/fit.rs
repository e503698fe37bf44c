//! `longtake fit`: the simulated drive that comes closest to a measured one, ready for use as `sim:PATH`, and which of its
//! parameters the measurement could tell.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use target::output::Outputs;
use target::profiles::is_path;
use twin::fit::{Like, inputs};
use twin::{Budget, Fitted, MeasuredDrive, Search};

use crate::arguments::FitArguments;
use crate::profiles::known;
use crate::signals::stop_or_go_on;
use crate::{exit, printer, progress};

/// Steps of the bar.
const BAR_LENGTH: u64 = 1000;

/// Fits a simulated drive to a measurement.
///
/// # Errors
/// If the measurement can't be read or doesn't tell enough, or the twin can't be written.
pub fn fit(arguments: &FitArguments) -> Result<ExitCode> {
    let path = &arguments.measurement;
    let output = &arguments.output;
    let read = inputs(path, arguments.from.as_deref(), known());
    let outputs = Outputs::new(arguments.overwrite).reads(read);
    outputs.check(output)?;
    // The search takes long, and its result would have no place.
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("{} is not a folder: create it, or write to another file", folder.display());
    }
    let name =
        output.file_stem().map_or_else(|| "twin".to_owned(), |s| s.to_string_lossy().into_owned());
    let drive = MeasuredDrive::read(path, &name, known())?;
    let like = arguments.from.as_deref().map(|from| Like::named(from, known())).transpose()?;
    let search = Search::new(&drive, like)?;
    let budget =
        Budget { evaluations: arguments.evaluations, time: arguments.time.map(Into::into) };
    let stopped = stop_or_go_on()?;
    let bar = bar(!arguments.quiet && !arguments.json);
    let mut heard = |tried: u32, left: f64| {
        bar.set_position(((1.0 - left) * BAR_LENGTH as f64) as u64);
        progress::say(&bar, &format!("{tried} drives tried"));
        stopped()
    };
    let fitted = search.run(budget, &mut heard)?;
    bar.finish_and_clear();
    fitted.check()?;
    let text = fitted.profile().to_toml()?;
    outputs.write(output, &text)?;
    show(&fitted, output, arguments.json)?;
    if fitted.stopped {
        printer::tell("longtake: stopped; the twin is the nearest of the drives that were tried");
        return Ok(ExitCode::from(exit::FAILED));
    }
    Ok(exit::lossless(fitted.misses().is_empty()))
}

/// A bar over the budget; it shows on a terminal only, and only if `shown`.
fn bar(shown: bool) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(BAR_LENGTH), target);
    match ProgressStyle::with_template("{msg} {wide_bar} {percent} % of the budget, {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Shows what was found; the twin is in `output`.
fn show(found: &Fitted<'_>, output: &Path, as_json: bool) -> Result<()> {
    if as_json {
        let mut value = found.to_json();
        value["twin"] = json!(output);
        return printer::json(&value);
    }
    let mut table = printer::table(&["figure", "measured", "twin", "residual"], &[1, 2, 3]);
    found.figure_rows().into_iter().for_each(|row| table.add_row(row));
    printer::text(&printer::trimmed(&table))?;
    let mut table = printer::table(&["parameter", "value", "how sure"], &[1]);
    found.parameter_rows().into_iter().for_each(|row| table.add_row(row));
    printer::text(&format!("\n{}\n", printer::trimmed(&table)))?;
    for line in found.sentences() {
        printer::text(&line)?;
    }
    printer::text("")?;
    printer::message(&format!("twin: {} (use it as sim:{})", output.display(), target_path(output)))
}

/// A path as a target takes it: one with a slash or ending in .toml.
fn target_path(output: &Path) -> String {
    let text = output.display().to_string();
    if is_path(&text) { text } else { format!("./{text}") }
}
