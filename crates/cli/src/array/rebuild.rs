//! `longtake array rebuild`: a lost member is made anew on another drive, also while the others are recorded on.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use base::{Bank, BufferId, ByteSize, DriveId};
use device::safety::Purpose;
use device::target::{Access, is_locked};
use device::{Options, Pages, Pool, UringBank};
use format::superblock::Member;
use format::{PAGE_BYTES, Superblock};
use recorder::TimeRange;
use recorder::create::WRITTEN_BYTES;
use recorder::open::is_unfinished;
use recorder::reader::Reader;
use recorder::rebuild::{self, Plan, Rebuilt};
use recorder::superblocks::store;
use serde_json::json;
use source::clock;
use target::array::{peek, resolve};
use target::real::open_proven;
use target::{authorize, wear};

use super::identity;
use crate::arguments::RebuildArguments;
use crate::exit;
use crate::extract::READ_RATE_BESIDE_RECORDING;
use crate::opening::{self, Opened, READ_MEMORY_BYTES};
use crate::outlet;
use crate::preparation::{Created, go_on, stop_on_signals_until};
use crate::progress;
use longtake::array::protect::rewrite_superblocks;

/// Rebuilds a member.
///
/// # Errors
/// If the array can't be opened or has no parity, the member is there, or the target is refused or can't be written.
pub fn rebuild(arguments: &RebuildArguments) -> Result<ExitCode> {
    let RebuildArguments { array, member, onto, dry_run, .. } = arguments;
    let sources: Vec<PathBuf> =
        resolve(&array.array)?.into_iter().filter(|path| !same(path, onto)).collect();
    let mut opened = opening::open(&sources, Access::Read, READ_MEMORY_BYTES, 0, array.degraded)?;
    let superblock = lost(&opened, *member)?;
    let again = peek(onto).is_ok_and(|found| {
        is_unfinished(&found) && found.array == superblock.array && found.member == *member
    });
    // What an earlier try has left is no member's yet, and is gone on with.
    let purpose = if again { Purpose::Continue } else { Purpose::Create };
    let proofs = authorize(std::slice::from_ref(onto), &arguments.erase, purpose, *dry_run)?;
    let catalog = opened.catalog(TimeRange::ALL)?;
    let image = opened.image.clone();
    let recorded = catalog.entries.last().map(|e| e.record.take.uuid).filter(|_| opened.recording);
    let plan = Plan::new(&mut opened.reader(), &image, &catalog, *member, recorded)?;
    let layout = superblock.layout;
    let writes = plan.bytes() + WRITTEN_BYTES;
    if !array.json {
        outlet::message(&format!(
            "member {member} of array '{}': {} chunks, {} to write to {}{}{}",
            superblock.name,
            outlet::number(plan.pieces()),
            ByteSize(writes),
            onto.display(),
            wear(onto, writes).map_or(String::new(), |share| format!(" ({share})")),
            if again { ", less what an earlier try has written" } else { "" }
        ))?;
    }
    if *dry_run {
        if array.json {
            outlet::json(&json!({
                "array": superblock.array, "member": member, "onto": onto, "dry_run": true,
                "chunks": plan.pieces(), "bytes": writes, "groups_without_parity": plan.groups_without,
            }))?;
        } else {
            outlet::text("dry run: nothing was written; what the target holds would be gone")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let begun = Arc::new(AtomicBool::new(false));
    let stop = stop_on_signals_until(&begun)?;
    let mut created = Created::default();
    if !onto.exists() {
        let size = superblock.members[usize::from(*member)].capacity_bytes;
        created.file(onto, size, arguments.mode.0)?;
    }
    let (mut bank, pool) = open_target(onto, &superblock, &proofs)?;
    let buffers: Vec<BufferId> = pool.buffer_ids().collect();
    let mut to = Reader { bank: &mut bank, memory: &pool, buffers };
    if !again {
        rebuild::begin(&mut to, &superblock)?;
    }
    go_on(&stop)?;
    // From here on the same command goes on with what it finds written.
    created.keep();
    begun.store(true, Ordering::Relaxed);
    let bar = progress::bytes_bar(plan.bytes(), "rebuilding", !array.json);
    let limit = arguments.limit.or(opened.recording.then_some(READ_RATE_BESIDE_RECORDING));
    let rebuilt = rebuild::run(&mut opened.reader(), &mut to, &image, &plan, limit, |bytes| {
        bar.inc(bytes);
    })?;
    bar.finish_and_clear();
    let joined = join(&mut opened, &mut to, &sources, superblock, onto, &array.array)?;
    let lacking = rebuilt.filled + plan.groups_without;
    if array.json {
        outlet::json(&json!({
            "array": image.uuid, "member": member, "onto": onto, "dry_run": false,
            "chunks": rebuilt.chunks, "bytes": rebuilt.bytes, "parity_chunks": rebuilt.parity_chunks,
            "found_written": rebuilt.found, "filled": rebuilt.filled,
            "groups_without_parity": plan.groups_without, "joined": joined, "segments": layout.segments,
        }))?;
    } else {
        report(&rebuilt, &plan, joined)?;
    }
    Ok(if lacking == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) })
}

/// The same file or device, as far as paths tell.
fn same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// The superblock that the lost member has, if it is lost and can be had.
fn lost(opened: &Opened, member: u16) -> Result<Superblock> {
    let image = &opened.image;
    let superblock = &image.superblock;
    let Some(found) = image.members.get(usize::from(member)) else {
        bail!(
            "array '{}' has no member {member}: its members are 0 to {}",
            superblock.name,
            image.members.len() - 1
        );
    };
    if superblock.parity == 0 {
        bail!(
            "array '{}' has no parity: what a lost member held can't be made again. `longtake array create --parity 1` makes an \
             array that can lose one",
            superblock.name
        );
    }
    if let Some(drive) = opened.bank.drives().get(found.drive.index()) {
        bail!(
            "member {member} is there ({}): name the array without it, if it is to be replaced",
            drive.name
        );
    }
    Ok(Superblock { member, layout: found.layout, ..superblock.clone() })
}

/// Opens the target, which must be as large as the member's segments take.
fn open_target(
    onto: &Path,
    superblock: &Superblock,
    proofs: &[Option<device::safety::Authorized>],
) -> Result<(UringBank, Arc<Pool>)> {
    let proof = proofs.iter().flatten().find(|proof| proof.claim().is_some());
    let (target, warnings) = open_proven(onto, Access::Write { exclusive: false }, proof)?;
    for warning in warnings {
        outlet::tell(&format!("longtake: warning: {warning}"));
    }
    let size = superblock.layout.chunk_max as usize;
    let (pool, _) = Pool::new(4, size.max(1 << 20), Pages::Transparent)?;
    let (bank, _) = UringBank::open(vec![target], Arc::clone(&pool), Options::default())?;
    let drive = &bank.drives()[0];
    let layout = &superblock.layout;
    let needed = layout.segment_offset(layout.segments) + format::layout::SUPERBLOCK_BYTES;
    if drive.capacity_bytes < needed {
        bail!(
            "{} has {}, and the member takes {}: give a drive that is at least as large",
            onto.display(),
            ByteSize(drive.capacity_bytes),
            ByteSize(needed)
        );
    }
    if u64::from(drive.block_bytes) > PAGE_BYTES {
        bail!(
            "{} has blocks of {} bytes, the format's unit is {PAGE_BYTES}: format the namespace with smaller blocks",
            onto.display(),
            drive.block_bytes
        );
    }
    Ok((bank, pool))
}

/// Makes the target a member: its superblock counts from now on. While somebody records it is the only one that knows, until the
/// array is recorded on again; else all are told. Returns whether they were.
fn join<B: Bank, M: base::Buffers>(
    opened: &mut Opened,
    to: &mut Reader<'_, B, M>,
    sources: &[PathBuf],
    superblock: Superblock,
    onto: &Path,
    array: &str,
) -> Result<bool> {
    let now = clock::now();
    let at = usize::from(superblock.member);
    let mut members = superblock.members.clone();
    let known = identity(onto);
    members[at] = Member {
        capacity_bytes: to.bank.drives()[0].capacity_bytes,
        identity: known,
        joined_ns: now.as_nanos(),
    };
    // What was protected meanwhile is protected on it as well.
    let newest = sources.iter().filter_map(|path| peek(path).ok());
    let newest = newest.max_by_key(|s| s.generation).unwrap_or_else(|| superblock.clone());
    let joined = Superblock {
        members: members.clone(),
        generation: newest.generation.max(1),
        protected: newest.protected.clone(),
        ..superblock
    };
    store(to, DriveId(0), &joined)?;
    let mut locked = false;
    for path in sources {
        locked |= is_locked(path)?;
    }
    if locked {
        return Ok(false);
    }
    let mut all = opening::open(sources, Access::Write { exclusive: true }, 64 << 20, 0, true)
        .with_context(|| {
            format!("{} is rebuilt; telling the others failed, which the next recording on {array} does", onto.display())
        })?;
    let protected = all.image.protected.clone();
    rewrite_superblocks(&mut all, &protected, &members)?;
    drop(all);
    let generation = joined.generation + 1;
    store(to, DriveId(0), &Superblock { generation, protected, ..joined })?;
    opened.recording = false;
    Ok(true)
}

fn report(rebuilt: &Rebuilt, plan: &Plan, joined: bool) -> Result<()> {
    outlet::text(&format!(
        "{} chunks with {} recovered, {} parity chunks computed, {} found from an earlier try",
        outlet::number(rebuilt.chunks),
        ByteSize(rebuilt.bytes),
        outlet::number(rebuilt.parity_chunks),
        outlet::number(rebuilt.found)
    ))?;
    if rebuilt.filled > 0 {
        outlet::text(&format!(
            "{} chunks could not be had: holes are filled, and `longtake takes` names what is missing",
            outlet::number(rebuilt.filled)
        ))?;
    }
    if plan.groups_without > 0 {
        outlet::text(&format!(
            "{} groups have less parity than before: their places could not be told",
            outlet::number(plan.groups_without)
        ))?;
    }
    outlet::text(if joined {
        "it is a member now"
    } else {
        "it is a member from the next opening of the array; the recording under way goes on without it"
    })
}
