//! `longtake protect` and `longtake unprotect`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use base::{DriveId, Timestamp};
use device::target::{Access, is_locked};
use format::Superblock;
use format::superblock::{Member, PROTECTED_MAX, Protected};
use recorder::create::store;
use recorder::open::superblock;
use serde_json::json;
use source::clock;

use crate::arguments::ProtectArguments;
use longtake::control::{self, Request};
use longtake::instant::utc;
use crate::opening::{self, Opened};
use longtake::names;

use crate::outlet;

/// Protects a span of time.
///
/// # Errors
/// If the array can't be opened or written.
pub fn protect(arguments: &ProtectArguments) -> Result<ExitCode> {
    let now = clock::now();
    let (Some(since), Some(until)) = (arguments.since, arguments.until) else {
        bail!("protect needs both --since and --until: which span of time is to be kept?");
    };
    let (from, to) = (since.at(now), until.at(now));
    if from > to {
        bail!("--since {} lies after --until {}: exchange them", utc(from), utc(to));
    }
    let label = arguments.label.clone();
    let request = Request::Protect { from_ns: from.as_nanos(), to_ns: to.as_nanos(), label };
    let count = change(&arguments.array, &request)?;
    report(arguments, "protected", from, to, count)
}

/// Gives protected spans up.
///
/// # Errors
/// If the array can't be opened or written.
pub fn unprotect(arguments: &ProtectArguments) -> Result<ExitCode> {
    let now = clock::now();
    let (from, to) = match (arguments.since, arguments.until) {
        (None, None) if arguments.all => (Timestamp::MIN, Timestamp::MAX),
        (None, None) => bail!("unprotect needs --since and --until, or --all"),
        (since, until) => (
            since.map_or(Timestamp::MIN, |w| w.at(now)),
            until.map_or(Timestamp::MAX, |w| w.at(now)),
        ),
    };
    let request = Request::Unprotect { from_ns: from.as_nanos(), to_ns: to.as_nanos() };
    let count = change(&arguments.array, &request)?;
    report(arguments, "no longer protected", from, to, count)
}

fn report(
    arguments: &ProtectArguments,
    what: &str,
    from: Timestamp,
    to: Timestamp,
    count: usize,
) -> Result<ExitCode> {
    if arguments.json {
        outlet::json(&json!({"from": utc(from), "to": utc(to), "protected_ranges": count}))?;
    } else {
        outlet::text(&format!(
            "{} to {}: {what}; {count} protected spans in all",
            utc(from),
            utc(to)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Changes the protected spans through the recording under way, or on the members themselves.
fn change(array: &str, request: &Request) -> Result<usize> {
    let targets = target::array::resolve(array)?;
    let mut recorded = false;
    for target in &targets {
        recorded |= is_locked(target)?;
    }
    if recorded {
        let superblock = target::array::peek(&targets[0])?;
        return control::ask(superblock.array, request);
    }
    let mut opened =
        opening::open(&targets, Access::Write { exclusive: true }, 64 << 20, 0, false)?;
    let ranges = apply(&opened.image.protected, request).map_err(anyhow::Error::msg)?;
    let members = opened.image.superblock.members.clone();
    rewrite_superblocks(&mut opened, &ranges, &members)?;
    Ok(ranges.len())
}

/// Writes every member's superblock anew, one generation on.
///
/// # Errors
/// If one can't be read or written.
pub fn rewrite_superblocks(
    opened: &mut Opened,
    protected: &[Protected],
    members: &[Member],
) -> Result<()> {
    let superblocks = all_superblocks(opened)?;
    let generation = superblocks.iter().map(|(_, s)| s.generation).max().unwrap_or(0) + 1;
    let mut reader = opened.reader();
    for (drive, superblock) in superblocks {
        let (protected, members) = (protected.to_vec(), members.to_vec());
        let superblock = Superblock { generation, protected, members, ..superblock };
        store(&mut reader, drive, &superblock)?;
    }
    Ok(())
}

/// Every member's superblock and drive.
///
/// # Errors
/// If one can't be read.
pub fn all_superblocks(opened: &mut Opened) -> Result<Vec<(DriveId, Superblock)>> {
    let there = opened.image.members.iter().filter(|m| !m.is_missing());
    let drives: Vec<DriveId> = there.map(|m| m.drive).collect();
    let mut reader = opened.reader();
    drives
        .into_iter()
        .map(|drive| Ok((drive, superblock(&mut reader, drive)?)))
        .collect::<Result<_>>()
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
        Request::Hold { .. } => return Err("only a recording under way holds spans".to_owned()),
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
