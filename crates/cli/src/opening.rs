//! Opens arrays for the commands; what the user should know goes to standard error.

use std::path::PathBuf;

use anyhow::Result;
use device::target::Access;
use longtake::Remark;
use longtake::array::open::{self, Tell};
pub use longtake::array::open::{Opened, READ_MEMORY_BYTES};
use longtake::instant::utc;
use serde_json::{Value, json};
use target::array::resolve;

use crate::outlet;

/// As [`open::open`], with remarks on standard error.
///
/// # Errors
/// If a target can't be opened or the array is not whole (and `degraded` is not set).
pub fn open(
    targets: &[PathBuf],
    access: Access,
    memory_bytes: u64,
    extra: u32,
    degraded: bool,
) -> Result<Opened> {
    open::open(targets, access, memory_bytes, extra, degraded, tell())
}

/// Tells remarks on standard error.
pub fn tell() -> Tell {
    Box::new(|remark: Remark| outlet::tell(&format!("longtake: {remark}")))
}

/// Opens an array for reading.
///
/// # Errors
/// As [`open`].
pub fn open_to_read(array: &str, degraded: bool) -> Result<Opened> {
    open_members_to_read(&resolve(array)?, degraded)
}

/// Opens an array's members for reading.
///
/// # Errors
/// As [`open`].
pub fn open_members_to_read(members: &[PathBuf], degraded: bool) -> Result<Opened> {
    open(members, Access::Read, READ_MEMORY_BYTES, 0, degraded)
}

/// The members that are out of date, for `--json`.
pub fn stale_json(opened: &Opened) -> Value {
    let members = &opened.image.superblock.members;
    let rows = opened.stale().iter().map(|stale| {
        json!({
            "member": stale.member, "identity": members[usize::from(stale.member)].identity,
            "newest_packet": stale.newest.map(utc), "missed_take_started": stale.missed.map(utc),
        })
    });
    Value::Array(rows.collect())
}
