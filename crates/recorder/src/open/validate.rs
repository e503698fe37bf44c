//! Whether drives make up an array: which member each of them is, and which members are missing. No I/O.

use base::DriveId;
use format::{Damage, Superblock};

use super::discover::Found;
use super::{OpenError, is_unfinished};
use crate::superblocks::members_now;

/// The drives of an array, each in its place.
#[derive(Debug)]
pub(super) struct Members {
    /// The superblock with the highest generation, with the members that all of them know of together.
    pub(super) newest: Superblock,
    /// The drive of each member; None for one that is missing.
    pub(super) drives: Vec<Option<DriveId>>,
    /// What did not hinder it, in words.
    pub(super) remarks: Vec<String>,
}

/// Puts drives in their places. As many may be missing as the array has parity; more if it is opened `degraded`.
///
/// # Errors
/// [`OpenError`] for the first drive that doesn't belong, and for members that are missing.
pub(super) fn validate(found: &[Found], degraded: bool) -> Result<Members, OpenError> {
    // Before anything is taken from the newest: it may be the other array's.
    belong_together(found)?;
    let newest = newest(found)?;
    let mut drives: Vec<Option<DriveId>> = vec![None; newest.members.len()];
    let mut remarks = Vec::new();
    for (at, drive) in (0u16..).zip(found) {
        let member = drive.superblock.member;
        let Some(place) = drives.get_mut(usize::from(member)) else {
            let drive = drive.name.clone();
            return Err(OpenError::NotMember { drive, damage: Damage::Elsewhere });
        };
        is_current(drive, &newest)?;
        if let Some(first) = place.replace(DriveId(at)) {
            let (first, second) = (found[first.index()].name.clone(), drive.name.clone());
            return Err(OpenError::Twice { first, second, member });
        }
        has_room(drive, &newest)?;
        remarks.extend(missed_changes(drive, &newest));
    }
    remarks.extend(missing(&newest, &drives, degraded)?);
    Ok(Members { newest, drives, remarks })
}

fn belong_together(found: &[Found]) -> Result<(), OpenError> {
    let array = |found: &Found| found.superblock.array;
    match found.iter().find(|other| array(other) != array(&found[0])) {
        None => Ok(()),
        Some(other) => Err(OpenError::Foreign {
            drive: other.name.clone(),
            name: other.superblock.name.clone(),
            expected: found[0].superblock.name.clone(),
        }),
    }
}

fn newest(found: &[Found]) -> Result<Superblock, OpenError> {
    let superblocks: Vec<Superblock> = found.iter().map(|found| found.superblock.clone()).collect();
    let newest = superblocks.iter().max_by_key(|superblock| superblock.generation);
    let newest =
        newest.ok_or_else(|| OpenError::Missing { name: String::new(), members: Vec::new() })?;
    Ok(Superblock { members: members_now(&superblocks, newest), ..newest.clone() })
}

/// Refuses a drive that doesn't count yet, or no more.
fn is_current(found: &Found, newest: &Superblock) -> Result<(), OpenError> {
    let member = found.superblock.member;
    let (drive, name) = (found.name.clone(), newest.name.clone());
    if is_unfinished(&found.superblock) {
        return Err(OpenError::Unfinished { drive, name, member });
    }
    let now = &newest.members[usize::from(member)];
    if found.superblock.members[usize::from(member)].joined_ns < now.joined_ns {
        let replaced_by = now.identity.clone();
        return Err(OpenError::Stale { drive, name, member, replaced_by });
    }
    Ok(())
}

/// Refuses a drive that has become too small for its segments.
fn has_room(found: &Found, newest: &Superblock) -> Result<(), OpenError> {
    let Superblock { layout, member, .. } = &found.superblock;
    if found.capacity_bytes >= layout.segment_offset(layout.segments) {
        return Ok(());
    }
    Err(OpenError::Shrunk {
        drive: found.name.clone(),
        capacity_bytes: found.capacity_bytes,
        expected_bytes: newest.members[usize::from(*member)].capacity_bytes,
    })
}

fn missed_changes(found: &Found, newest: &Superblock) -> Option<String> {
    let missed = newest.generation - found.superblock.generation;
    (missed > 0).then(|| {
        format!("{} missed {missed} changes of the superblock; the newest one counts", found.name)
    })
}

/// A remark for each missing member.
fn missing(
    newest: &Superblock,
    drives: &[Option<DriveId>],
    degraded: bool,
) -> Result<Vec<String>, OpenError> {
    let missing: Vec<(u16, String)> = (0u16..)
        .zip(drives)
        .filter(|(_, drive)| drive.is_none())
        .map(|(member, _)| (member, newest.members[usize::from(member)].identity.clone()))
        .collect();
    let by_parity = missing.len() <= usize::from(newest.parity);
    if !degraded && !by_parity {
        return Err(OpenError::Missing { name: newest.name.clone(), members: missing });
    }
    let why = if by_parity { ": what it holds is had by parity" } else { "" };
    let remark = |(member, identity): &(u16, String)| {
        format!("member {member} ({identity}) is missing{why}")
    };
    Ok(missing.iter().map(remark).collect())
}
