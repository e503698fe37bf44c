//! Lines of a trace that is text, with their numbers.

use std::io::{BufRead, Read};

use super::{Input, TraceError};

/// Bytes of a line, at most. No format has lines of more than a few hundred; anything longer is no text.
const LINE_MAX: u64 = 64 << 10;

/// Reads lines one after the other into the same memory.
pub(super) struct Lines<'a> {
    input: Input<'a>,
    number: u64,
    bytes: Vec<u8>,
    text: String,
}

impl<'a> Lines<'a> {
    pub fn of(input: Input<'a>) -> Self {
        Self { input, number: 0, bytes: Vec::new(), text: String::new() }
    }

    /// The next line that is not empty, without its end; None behind the last.
    ///
    /// # Errors
    /// If it can't be read, or is far too long.
    pub fn next(&mut self) -> Result<Option<&str>, TraceError> {
        loop {
            self.bytes.clear();
            self.number += 1;
            let read = self.input.bytes.by_ref().take(LINE_MAX).read_until(b'\n', &mut self.bytes);
            let read =
                read.map_err(|reason| TraceError::Read { name: self.input.name.clone(), reason })?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 == LINE_MAX && self.bytes.last() != Some(&b'\n') {
                return Err(self.wrong("it is longer than 64 KiB: this is no text".to_owned()));
            }
            self.text.clear();
            self.text.push_str(String::from_utf8_lossy(&self.bytes).trim());
            if !self.text.is_empty() {
                return Ok(Some(&self.text));
            }
        }
    }

    /// The number of the line that was read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What is wrong with the line that was read last.
    pub fn wrong(&self, problem: String) -> TraceError {
        TraceError::Line { name: self.input.name.clone(), line: self.number, problem }
    }
}

/// A number in a field of this name.
///
/// # Errors
/// A sentence that names the text, if it is no number.
pub(super) fn number(text: &str, name: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!("the {name} '{text}' is no whole number: correct the line, or remove it")
    })
}

/// So many units of so many nanoseconds, or bytes.
///
/// # Errors
/// If that is more than 64 bits hold.
pub(super) fn times(number: u64, unit: u64, name: &str) -> Result<u64, String> {
    number
        .checked_mul(unit)
        .ok_or_else(|| format!("the {name} {number} is too large: correct the line, or remove it"))
}
