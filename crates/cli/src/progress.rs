//! Progress on standard error: bars for reading, a status for a recording.

use base::Instant;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::rig::Clock;

use crate::printer;

/// A bar over bytes; it shows on a terminal only, and only if `shown`.
pub fn bytes_bar(bytes: u64, what: &'static str, shown: bool) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{msg} {wide_bar} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left",
    );
    bar(bytes, what, shown, style)
}

/// A bar over chunks.
pub fn chunks_bar(chunks: u64, what: &'static str, shown: bool) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len} chunks, {eta} left");
    bar(chunks, what, shown, style)
}

/// A bar over jobs, whose results may be printed above it.
pub fn jobs_bar(jobs: u64, shown: bool) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len} jobs, {elapsed}, {eta} left");
    let bar = bar(jobs, "sweeping", shown, style);
    bar.enable_steady_tick(std::time::Duration::from_secs(1));
    bar
}

/// A bar over simulations, of something with a name.
pub fn runs_bar(what: &str, shown: bool) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len} runs, {eta} left");
    bar(0, "", shown, style).with_message(printer::inline(what).into_owned())
}

/// Shows how far a call of the library has come.
pub fn show(bar: &ProgressBar, progress: longtake::array::Progress) {
    bar.set_length(progress.total);
    bar.set_position(progress.done);
}

/// Shows a message beside a bar.
pub fn say(bar: &ProgressBar, message: &str) {
    bar.set_message(report::text::escaped(message).into_owned());
}

/// Prints a line above a bar.
pub fn print_above(bar: &ProgressBar, line: &str) {
    bar.println(report::text::escaped(line));
}

/// A line for a mission in virtual time: how far it is of how much, and how it goes.
pub fn mission_bar(shown: bool) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {percent} %, {elapsed} real, {msg}");
    bar(1000, "", shown, style)
}

fn bar(
    length: u64,
    what: &'static str,
    shown: bool,
    style: Result<ProgressStyle, indicatif::style::TemplateError>,
) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length), target).with_message(what);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A line that says which step of an experiment is under way, how far it is and how fast.
#[derive(Debug)]
pub struct StepsBar {
    bar: ProgressBar,
    /// Where time is virtual: the elapsed time beside it is the real one.
    clock: Option<Clock>,
}

/// A [`StepsBar`]; it shows on a terminal only, and only if `shown`.
pub fn steps_bar(shown: bool, clock: Option<Clock>) -> StepsBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} %, {elapsed}");
    StepsBar { bar: bar(1000, "", shown, style), clock }
}

impl StepsBar {
    /// Shows where an experiment is.
    pub fn show(&self, progress: &lab::Progress<'_>) {
        if self.bar.is_hidden() {
            // Virtual time may close an interval in microseconds.
            return;
        }
        let rate = progress.rate.map_or(String::new(), |rate| format!(", {rate}"));
        let simulated = self.clock.as_ref().map_or_else(String::new, |clock| {
            format!(", simulated {}", clock.now().since(Instant::START))
        });
        say(&self.bar, &format!("{} {}{rate}{simulated}", progress.experiment, progress.step));
        if let Some(share) = progress.share {
            self.bar.set_position((share * 1000.0) as u64);
        }
    }

    /// Has something printed beside it.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes it away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
