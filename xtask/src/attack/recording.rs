//! Recordings on small arrays of files, and what is found of them afterwards.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use crate::soak::found::{self, Ask};
use crate::vm::account::{Account, number};

/// Length of each synthetic packet in bytes.
pub const PACKET_BYTES: u16 = 700;

/// An array of files, in the round's folder.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Members.
    pub members: u64,
    /// Size of each, as an option takes it.
    pub member_mib: u64,
    /// Members that may be lost.
    pub parity: u64,
    /// Whether it is recorded on as a ring.
    pub ring: bool,
    /// Longest chunk.
    pub chunk_kib: u64,
}

impl Shape {
    /// What `record` is told of it.
    pub fn options(&self) -> String {
        let Self { members, member_mib, parity, ring, chunk_kib } = self;
        format!(
            "--members {members} --member-size {member_mib}MiB --segment 1MiB --chunk {chunk_kib}KiB --parity {parity} \
             --memory 32MiB{}",
            if *ring { " --when-full wrap" } else { "" }
        )
    }
}

/// The program as [`found`] asks it.
pub fn asker(stage: &mut Stage) -> impl FnMut(&[&str]) -> Result<(Vec<u8>, i32, String)> + '_ {
    |words| {
        let ran = stage.run(words)?;
        Ok((ran.stdout, ran.code.unwrap_or(-1), ran.stderr))
    }
}

/// What every command tells of an array's last take, which must agree.
///
/// # Errors
/// If they don't.
pub fn account(stage: &mut Stage, array: &str, queues: u16) -> Result<Account> {
    let file = stage.path("take.pcapng");
    let ask: &mut Ask<'_> = &mut asker(stage);
    found::account(ask, array, &file, PACKET_BYTES, queues)
}

/// That no chunk of these is in a gap of the last take and, without a ring, that each is listed.
///
/// # Errors
/// If one was lost.
pub fn expect_chunks(
    stage: &mut Stage,
    array: &str,
    acknowledged: &[u64],
    ring: bool,
) -> Result<()> {
    let take = stage.run(&["ledger", array, "--json"])?.json()?;
    for gap in take["gaps"].as_array().context("the ledger has no gaps")? {
        let gap = number(gap, "/first_sequence")?..=number(gap, "/last_sequence")?;
        let lost = acknowledged.iter().find(|chunk| gap.contains(chunk));
        ensure!(lost.is_none(), "chunk {lost:?} was acknowledged and is missing: {take}");
    }
    if ring {
        return Ok(());
    }
    let shown = stage.run(&["array", "show", array, "--json", "--chunks"])?.code(&[0])?.json()?;
    let chunks = shown["chunks"].as_array().context("no chunks in the array")?;
    let listed: BTreeSet<u64> =
        chunks.iter().map(|chunk| number(chunk, "/sequence")).collect::<Result<_>>()?;
    let lost: Vec<_> = acknowledged.iter().filter(|chunk| !listed.contains(chunk)).collect();
    ensure!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    Ok(())
}

/// The member files of an array in the round's folder.
pub fn members(stage: &Stage, array: &str, count: u64) -> Vec<PathBuf> {
    (0..count).map(|member| stage.path(array).join(format!("member{member}"))).collect()
}
