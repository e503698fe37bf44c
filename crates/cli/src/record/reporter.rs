//! Tells what a recording has to say from a thread of its own: a terminal that is stopped, or a pipe
//! that nobody empties, must not hold up the drives.

use std::io::Write;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, bounded};
use indicatif::ProgressBar;

use crate::{printer, progress};

/// One thing to tell.
#[derive(Debug)]
pub enum Line {
    /// A line of JSON, to standard output.
    Json(String),
    /// A line of text, to standard error.
    Text(String),
    /// Progress, which on a terminal replaces what stood there.
    Status(String),
}

/// Lines that wait to be told at most.
const LINES_MAX: usize = 1024;

/// The way to the thread that tells.
#[derive(Debug)]
pub struct Reporter {
    lines: Sender<Line>,
    thread: JoinHandle<()>,
}

impl Reporter {
    /// Starts the thread; progress goes to `bar` if there is one.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(bar: Option<ProgressBar>) -> Result<Self> {
        Self::start_with(bar, Box::new(std::io::stdout()))
    }

    fn start_with(bar: Option<ProgressBar>, out: Box<dyn Write + Send>) -> Result<Self> {
        let (lines, told) = bounded(LINES_MAX);
        let thread = std::thread::Builder::new()
            .name("reporter".to_owned())
            .spawn(move || tell_all(&told, bar.as_ref(), out))
            .context("starting the thread that prints events")?;
        Ok(Self { lines, thread })
    }

    /// Has a line told. Gives it back if too many wait; never waits itself.
    pub fn tell(&self, line: Line) -> std::result::Result<(), Line> {
        self.lines.try_send(line).map_err(|error| error.into_inner())
    }

    /// Tells these lines too, then waits until everything is told.
    pub fn finish(self, last: impl IntoIterator<Item = Line>) {
        for line in last {
            // The thread takes lines until this sender goes.
            self.lines.send(line).ok();
        }
        drop(self.lines);
        self.thread.join().ok();
    }
}

/// Nobody listening any more is no reason to stop: the recording goes on, unheard.
fn tell_all(lines: &Receiver<Line>, bar: Option<&ProgressBar>, mut out: Box<dyn Write + Send>) {
    for line in lines {
        match (line, bar) {
            (Line::Json(line), _) => {
                writeln!(out, "{}", report::text::json_escaped(&line))
                    .and_then(|()| out.flush())
                    .ok();
            }
            (Line::Text(text), Some(bar)) => progress::print_above(bar, &text),
            (Line::Text(text), None) => printer::tell(&text),
            (Line::Status(text), Some(bar)) => progress::say(bar, &text),
            (Line::Status(text), None) => printer::tell(&text.replace('\n', "; ")),
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A reader that takes nothing until it is let.
    struct Stalled(Arc<Mutex<Vec<u8>>>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stalled_listener_never_makes_the_teller_wait_and_hears_all_it_was_promised() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let stall = heard.lock().unwrap();
        let reporter = Reporter::start_with(None, Box::new(Stalled(Arc::clone(&heard)))).unwrap();
        let mut lines = (0..2 * LINES_MAX).map(|number| Line::Json(number.to_string()));
        // To the first that is refused: whether the thread has taken one by then is its own affair.
        let mut promised = 0;
        let refused = lines.find_map(|line| reporter.tell(line).inspect(|()| promised += 1).err());
        assert!(refused.is_some(), "the queue has an end");
        assert!((LINES_MAX..LINES_MAX + 2).contains(&promised), "{promised}");
        drop(stall);
        reporter.finish(refused);
        let text = String::from_utf8(heard.lock().unwrap().clone()).unwrap();
        let expected: Vec<String> = (0..=promised).map(|n| n.to_string()).collect();
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
