//! fio's log of I/O, versions 2 and 3: `write_iolog` writes it, fio's HOWTO describes it ("Trace file format v2", "v3"), and
//! its iolog.c writes times in microseconds.

use super::collector::{Collector, Found};
use super::lines::{Lines, number, times};
use super::{Input, TraceError};
use crate::interval::Verb;

/// The first line, without the version's number.
const BEGINNING: &[u8] = b"fio version ";

/// Nanoseconds of its unit of time.
const UNIT_NS: u64 = 1000;

/// Whether a file that begins so is a log.
pub(super) fn begins(head: &[u8]) -> bool {
    head.starts_with(BEGINNING)
}

/// Reads a log.
///
/// # Errors
/// For the first line that fio would not have written.
pub(super) fn read(input: Input<'_>, collector: &mut Collector) -> Result<(), TraceError> {
    let mut lines = Lines::of(input);
    let version = match lines.next()? {
        Some("fio version 2 iolog") => 2,
        Some("fio version 3 iolog") => 3,
        _ => {
            let problem = "it must be 'fio version 2 iolog' or 'fio version 3 iolog': record the log again with \
                fio 1.17 or later";
            return Err(lines.wrong(problem.to_owned()));
        }
    };
    let mut log = Log { version, waited_ns: 0, timed: version == 3 };
    while let Some(line) = lines.next()? {
        if let Err(problem) = log.line(line, collector) {
            return Err(lines.wrong(problem));
        }
    }
    collector.untimed = !log.timed;
    Ok(())
}

/// A log while it is read.
struct Log {
    version: u8,
    /// The sum of all waits of version 2.
    waited_ns: u64,
    /// It has times.
    timed: bool,
}

impl Log {
    fn line(&mut self, line: &str, collector: &mut Collector) -> Result<(), String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (at_ns, rest) = match (self.version, fields.as_slice()) {
            (3, [time, rest @ ..]) => (times(number(time, "time")?, UNIT_NS, "time")?, rest),
            (_, rest) => (self.waited_ns, rest),
        };
        match *rest {
            [_, "add" | "open" | "close" | "unlink"] => Ok(()),
            [file, action, offset, length] => {
                let (offset, length) = (number(offset, "offset")?, number(length, "length")?);
                self.action(file, action, (at_ns, offset, length), collector)
            }
            [_, action] => Err(format!(
                "'{action}' is no action on a file: it must be add, open or close; correct the line, or remove it"
            )),
            _ => Err(format!(
                "it has {} fields, and a line of version {} has {}: correct the line, or remove it",
                fields.len(),
                self.version,
                if self.version == 3 { "3 or 5" } else { "2 or 4" }
            )),
        }
    }

    fn action(
        &mut self,
        file: &str,
        action: &str,
        (at_ns, offset, length): (u64, u64, u64),
        collector: &mut Collector,
    ) -> Result<(), String> {
        let mut request =
            |verb| collector.add(file, Found { at_ns, offset, length, verb, fua: false });
        match action {
            "read" => request(Verb::Read)?,
            "write" => request(Verb::Write)?,
            "trim" => collector.left_out(file)?.discards += 1,
            "sync" | "datasync" | "sync_file_range" | "syncfs" => {
                collector.left_out(file)?.flushes += 1;
            }
            "wait" if self.version == 2 => {
                let wait_ns = times(offset, UNIT_NS, "wait")?;
                let waited = self.waited_ns.checked_add(wait_ns);
                self.waited_ns =
                    waited.ok_or("the waits together are too long: remove the line")?;
                self.timed = true;
            }
            "wait" => {
                return Err("version 3 has times instead of waits: remove the line".to_owned());
            }
            _ => {
                return Err(format!(
                    "'{action}' is no action: it must be read, write, trim, sync, datasync or wait; correct the line, \
                     or remove it"
                ));
            }
        }
        Ok(())
    }
}
