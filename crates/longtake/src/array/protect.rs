//! The spans of time that a ring must not reuse, changed through the recording under way or on the members themselves.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, bail};
use base::Timestamp;
use device::target::{Access, is_locked};
use format::superblock::{PROTECTED_MAX, Protected};
use recorder::TimeRange;
use recorder::superblocks::Change;
use source::clock;

use super::Array;
use super::open::{self, Opened, Tell};
use crate::control::{self, Request};
use crate::instant::utc;
use crate::names;

/// Why the protected spans of an array stay as they are, although it can be reached.
#[derive(Debug)]
pub struct ChangeRefused(pub(crate) String);

impl fmt::Display for ChangeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChangeRefused {}

/// Protects a span of time from being overwritten by the ring, both ends included, on the array of this name. Returns how many
/// spans are protected then. The array need not be open, and may be recorded on.
///
/// # Errors
/// If the array can't be opened or written, the label is too long, or there are too many protected spans.
pub fn protect(array: &str, span: TimeRange, label: &str, tell: Tell) -> crate::Result<usize> {
    Ok(change(array, &protection(span, label)?, tell)?)
}

/// Ends the protection of every span that touches this one, on the array of this name. Returns how many spans are protected then.
///
/// # Errors
/// If the array can't be opened or written, or no protected span touches this one.
pub fn unprotect(array: &str, span: TimeRange, tell: Tell) -> crate::Result<usize> {
    Ok(change(array, &unprotection(span), tell)?)
}

impl Array {
    /// Protects a span of time from being overwritten by the ring, both ends included. Returns how many spans are protected then.
    ///
    /// # Errors
    /// If the array can't be written, the label is too long, or there are too many protected spans.
    pub fn protect(&mut self, span: TimeRange, label: &str) -> crate::Result<usize> {
        Ok(self.change(&protection(span, label)?)?)
    }

    /// Ends the protection of every span that touches this one. Returns how many spans are protected then.
    ///
    /// # Errors
    /// If the array can't be written, or no protected span touches this one.
    pub fn unprotect(&mut self, span: TimeRange) -> crate::Result<usize> {
        Ok(self.change(&unprotection(span))?)
    }

    fn change(&mut self, request: &Request) -> Result<usize> {
        let count = if self.repair.is_some() || self.is_simulated() {
            // Its members are this array's own.
            change_opened(&mut self.opened, request)?
        } else {
            change_members(&self.targets, request, Box::new(|_| ()))?
        };
        self.reopen()?;
        Ok(count)
    }
}

fn protection(span: TimeRange, label: &str) -> Result<Request> {
    if span.from > span.to {
        bail!("the span ends before it begins: {} lies after {}", utc(span.from), utc(span.to));
    }
    let (from_ns, to_ns) = (span.from.as_nanos(), span.to.as_nanos());
    Ok(Request::Protect { from_ns, to_ns, label: label.to_owned() })
}

fn unprotection(span: TimeRange) -> Request {
    Request::Unprotect { from_ns: span.from.as_nanos(), to_ns: span.to.as_nanos() }
}

/// Changes the protected spans of the array of this name. Returns how many there are.
fn change(array: &str, request: &Request, tell: Tell) -> Result<usize> {
    change_members(&target::array::resolve(array)?, request, tell)
}

/// Changes the protected spans through the recording under way, or on the members themselves.
fn change_members(targets: &[PathBuf], request: &Request, tell: Tell) -> Result<usize> {
    let mut recorded = false;
    for target in targets {
        recorded |= is_locked(target)?;
    }
    if recorded {
        let superblock = target::array::peek(&targets[0])?;
        return control::ask(superblock.array, request);
    }
    let access = Access::Write { exclusive: true };
    let mut opened = open::open(targets, access, 64 << 20, 0, false, tell)?;
    change_opened(&mut opened, request)
}

/// Changes the protected spans on the members themselves, which are open for writing.
fn change_opened(opened: &mut Opened, request: &Request) -> Result<usize> {
    let ranges = apply(&opened.image.protected, request).map_err(ChangeRefused)?;
    let count = ranges.len();
    opened.change_superblocks(&Change::Protect(ranges))?;
    Ok(count)
}

/// The protected spans after a request, or why it can't be granted.
///
/// # Errors
/// In words.
pub fn apply(ranges: &[Protected], request: &Request) -> Result<Vec<Protected>, String> {
    let mut ranges = ranges.to_vec();
    match request {
        Request::Protect { from_ns, to_ns, label } => {
            names::label(label).map_err(|why| format!("the label '{label}' is refused: {why}"))?;
            if ranges.len() >= PROTECTED_MAX {
                return Err(format!(
                    "{PROTECTED_MAX} spans are protected already, which is the most: unprotect some"
                ));
            }
            ranges.push(Protected {
                from: Timestamp::from_nanos(*from_ns),
                to: Timestamp::from_nanos(*to_ns),
                made: clock::now(),
                label: label.clone(),
            });
        }
        Request::Hold { .. } | Request::Status | Request::Excluded(_) => {
            return Err("only a recording under way can do that".to_owned());
        }
        Request::Unprotect { from_ns, to_ns } => {
            let before = ranges.len();
            ranges.retain(|r| r.to.as_nanos() < *from_ns || r.from.as_nanos() > *to_ns);
            if ranges.len() == before {
                return Err("no protected span touches that one: `longtake array show` lists them"
                    .to_owned());
            }
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprotecting_gives_up_what_it_touches_and_says_when_there_is_nothing() {
        let protect = |from_ns, to_ns| Request::Protect { from_ns, to_ns, label: String::new() };
        let ranges = apply(&[], &protect(10, 20)).unwrap();
        let ranges = apply(&ranges, &protect(30, 40)).unwrap();
        let left = apply(&ranges, &Request::Unprotect { from_ns: 15, to_ns: 29 }).unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].from.as_nanos(), 30);
        assert!(apply(&left, &Request::Unprotect { from_ns: 0, to_ns: 29 }).is_err());
    }
}
