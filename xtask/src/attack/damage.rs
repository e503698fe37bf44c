//! The attack `damage`: bytes of an array's members are changed, and everything that reads is run.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::recording::{PACKET_BYTES, Shape, account, members};
use super::stage::Stage;
use crate::vm::account::{Account, number};
use crate::vm::{packets, programs};

/// Damaged members.
#[derive(Debug)]
pub struct Damage;

const ARRAY: &str = "./array";
const DAMAGED: &str = "./damaged";
const PAGE_BYTES: u64 = 4096;
const SUPERBLOCK_BYTES: u64 = 64 << 10;
const SEGMENT_BYTES: u64 = 1 << 20;

impl super::Attack for Damage {
    fn name(&self) -> &'static str {
        "damage"
    }

    fn about(&self) -> &'static str {
        "random damage to members: superblocks, chunks, indexes, parity; then every command that reads, and scrub --repair"
    }

    fn law(&self) -> &'static str {
        "every command ends without a panic; packets extracted were recorded, once, in order, byte for byte; extract and ledger \
         agree on packets, missing, unreadable and overwritten; exit code 0 means that all are there; damage to as many members as \
         there are parities loses nothing; a repair loses nothing"
    }

    fn slice_rounds(&self) -> u64 {
        2
    }

    fn round(&self, stage: &mut Stage) -> Result<()> {
        let parity = stage.random.below(3);
        let shape = Shape {
            members: parity + 1 + stage.random.below(3),
            member_mib: 8,
            parity,
            ring: stage.random.one_in(2),
            chunk_kib: *stage.one_of(&[64, 200]),
        };
        let takes = 1 + stage.random.below(2);
        for _ in 0..takes {
            let megabytes =
                if shape.ring { 1 + stage.random.below(25) } else { 1 + stage.random.below(3) };
            let line = format!(
                "record -q --from synthetic:100MB/s,size={PACKET_BYTES} --until-bytes {megabytes}MB --to {ARRAY} {}",
                shape.options()
            );
            stage.line(&line)?.code(&[0, 3])?;
        }
        let last = account(stage, ARRAY, 1)?;
        let all = stage.run(&["takes", ARRAY, "--json"])?.json()?;
        let offered =
            all.as_array().into_iter().flatten().map(|t| number(t, "/ledger/offered/packets"));
        let newest = offered.collect::<Result<Vec<_>>>()?.into_iter().max().context("no takes")?;
        let whole = Recorded { last, newest };
        let shown = stage.run(&["array", "show", ARRAY, "--json", "--chunks"])?.json()?;
        for _ in 0..if stage.slice { 1 } else { 5 } {
            let damaged = damage(stage, &shape, &shown)?;
            judge(stage, &shape, &whole, damaged)?;
        }
        Ok(())
    }
}

/// What was recorded.
struct Recorded {
    /// The last take.
    last: Account,
    /// Packets that the longest take was offered.
    newest: u64,
}

/// Copies the array and damages the copy. Returns how many members are damaged.
fn damage(stage: &mut Stage, shape: &Shape, shown: &Value) -> Result<u64> {
    let copy = stage.path(DAMAGED);
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    let mut cp = Command::new("cp");
    programs::run(cp.args(["-r", "--sparse=always"]).arg(stage.path(ARRAY)).arg(&copy))?;
    // As many members as parity gives back, half of the time; else any.
    let few = stage.random.one_in(2) && shape.parity > 0;
    let mut members = members(stage, DAMAGED, shape.members);
    if few {
        let first = stage.random.below(shape.members) as usize;
        members.rotate_left(first);
        members.truncate(shape.parity as usize);
    }
    for _ in 0..1 + stage.random.below(if few { 20 } else { 6 }) {
        let at = stage.random.below(members.len() as u64) as usize;
        let from = stage.random.below(members.len() as u64) as usize;
        one(stage, &members[at], &members[from], shown)?;
    }
    Ok(if few { shape.parity } else { shape.members })
}

/// One piece of damage to a member; `other` is a member that bytes may come from.
fn one(stage: &mut Stage, member: &Path, other: &Path, shown: &Value) -> Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(member)?;
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(());
    }
    let at = place(stage, length, shown)?;
    let random = &mut stage.random;
    let page = at / PAGE_BYTES * PAGE_BYTES;
    let mut bytes = vec![0; PAGE_BYTES as usize];
    let (text, what) = match random.below(9) {
        0..3 => {
            let mut byte = [0];
            file.read_at(&mut byte, at)?;
            file.write_all_at(&[byte[0] ^ (1 << random.below(8))], at)?;
            ("bits turned", format!("a bit at {at}"))
        }
        3 => {
            let span = 1 + random.below((length - at).min(300));
            let noise: Vec<u8> = (0..span).map(|_| random.bits() as u8).collect();
            file.write_all_at(&noise, at)?;
            ("spans of noise", format!("{span} bytes of noise at {at}"))
        }
        4 => {
            let value = [0, u64::MAX, 1 << 63, length][random.below(4) as usize];
            let at = (at & !7).min(length - 8);
            file.write_all_at(&value.to_le_bytes(), at)?;
            ("fields", format!("{value:#x} at {at}"))
        }
        5 => {
            file.write_all_at(&bytes, page)?;
            ("pages of zeros", format!("zeros at {page}"))
        }
        6 => {
            let from = random.below(length / PAGE_BYTES) * PAGE_BYTES;
            file.read_exact_at(&mut bytes, from)?;
            file.write_all_at(&bytes, page)?;
            ("pages from elsewhere", format!("the page at {from} also at {page}"))
        }
        7 => {
            let from = OpenOptions::new().read(true).open(other)?;
            from.read_at(&mut bytes, page)?;
            file.write_all_at(&bytes, page)?;
            ("pages of another member", format!("the page of {} at {page}", other.display()))
        }
        _ if random.one_in(8) => {
            file.set_len(at)?;
            ("members cut short", format!("cut at {at}"))
        }
        _ => {
            let end = (page + 16 * PAGE_BYTES).min(length);
            file.write_all_at(&vec![0xff; (end - page) as usize], page)?;
            ("runs of pages", format!("ones from {page} to {end}"))
        }
    };
    stage.journal.push(format!("# {}: {what}", member.display()));
    stage.saw(text);
    Ok(())
}

/// Where to damage: superblocks and their copies, headers of chunks, their contents, the ends of segments, anywhere.
fn place(stage: &mut Stage, length: u64, shown: &Value) -> Result<u64> {
    let chunks = shown["chunks"].as_array().context("no chunks in the array")?;
    let random = &mut stage.random;
    let chunk = chunks.get(random.below(chunks.len() as u64) as usize);
    let at = match (random.below(8), chunk) {
        (0, _) => random.below(2 * 512),
        (1, _) => length.saturating_sub(SUPERBLOCK_BYTES + 512) + random.below(1024),
        (2 | 3, Some(chunk)) => number(chunk, "/offset")? + random.below(512),
        (4 | 5, Some(chunk)) => number(chunk, "/offset")? + random.below(number(chunk, "/length")?),
        (6, Some(chunk)) => {
            let segment = number(chunk, "/offset")? / SEGMENT_BYTES + 1;
            segment * SEGMENT_BYTES - 1 - random.below(3 * PAGE_BYTES)
        }
        _ => random.below(length),
    };
    Ok(at.min(length - 1))
}

/// Runs everything that reads, and holds it to the law; then the same after a repair.
fn judge(stage: &mut Stage, shape: &Shape, whole: &Recorded, damaged: u64) -> Result<()> {
    for line in ["takes", "ledger", "array show", "array check", "array scrub"] {
        let all = ["", " --json", " --degraded"];
        // Each in one form of three in a slice.
        let from = if stage.slice { stage.random.below(3) as usize } else { 0 };
        for options in &all[from..if stage.slice { from + 1 } else { 3 }] {
            stage.line(&format!("{line} {DAMAGED}{options}"))?.code(&[0, 1, 3])?;
        }
    }
    let before = extracted(stage, shape, whole)?;
    if shape.parity > 0 && damaged <= shape.parity {
        covered(stage, shape, whole, &before)?;
    }
    if shape.parity > 0 {
        stage.line(&format!("array scrub {DAMAGED} --repair"))?.code(&[0, 1, 3])?;
        match (before, extracted(stage, shape, whole)?) {
            (Extracted::Packets(before), Extracted::Packets(after)) => {
                ensure!(after >= before, "{before} packets before the repair, {after} after it");
            }
            (Extracted::Packets(_), Extracted::Refused(reason)) => {
                bail!("the repair made the array unreadable: {reason}");
            }
            (Extracted::Refused(_), _) => {}
        }
    }
    Ok(())
}

/// That damage to no more members than there are parities has cost nothing.
fn covered(stage: &mut Stage, shape: &Shape, whole: &Recorded, found: &Extracted) -> Result<()> {
    let all = whole.last.on_media;
    let packets = match found {
        Extracted::Packets(packets) => *packets,
        // A superblock that was copied to another member makes that one look like a copy.
        Extracted::Refused(reason) if reason.contains("leave one out") => {
            stage.saw("members taken for copies");
            return Ok(());
        }
        Extracted::Refused(reason) => bail!("damage that parity covers, refused: {reason}"),
    };
    // What a ring is about to overwrite next may have lost its parity.
    let least = if shape.ring { all / 2 } else { all };
    ensure!(
        packets >= least,
        "{packets} of {all} packets came back, with parity {} and no more damaged members",
        shape.parity
    );
    stage.saw("damage that parity undid");
    Ok(())
}

/// What came of extracting.
enum Extracted {
    /// So many packets.
    Packets(u64),
    /// The array is refused, for this reason.
    Refused(String),
}

/// Extracts the last take that is found, and judges it.
fn extracted(stage: &mut Stage, shape: &Shape, whole: &Recorded) -> Result<Extracted> {
    let mut options = "";
    let words = |options: &str| {
        format!("extract {DAMAGED} --take last --json -y -o extract.pcapng{options}")
    };
    let mut ran = stage.line(&words(options))?.code(&[0, 1, 3])?;
    if ran.code == Some(1) {
        options = " --degraded";
        ran = stage.line(&words(options))?.code(&[0, 1, 3])?;
    }
    if ran.code == Some(1) {
        stage.saw("arrays refused");
        return Ok(Extracted::Refused(ran.stderr));
    }
    let code = ran.code;
    let extract = ran.json()?;
    let packets = number(&extract, "/packets")?;
    let held = packets::held(&stage.path("extract.pcapng"), PACKET_BYTES, 1)?;
    ensure!(held["wrong"] == 0, "packets that were never recorded: {held}");
    ensure!(number(&held, "/packets")? == packets, "extract told {packets} packets: {held}");
    for queue in held["queues"].as_array().into_iter().flatten() {
        ensure!(
            queue["duplicates"] == 0 && queue["in_order"] == true,
            "twice or out of order: {held}"
        );
        for range in queue["ranges"].as_array().into_iter().flatten() {
            let end = number(range, "/1")?;
            ensure!(end <= whole.newest, "packets behind {}, the last: {held}", whole.newest);
        }
    }
    let ledger = stage.line(&format!("ledger {DAMAGED} --json{options}"))?.code(&[0, 3])?;
    let take = ledger.json()?;
    let told = |path| number(&take, path);
    let unreadable = number(&extract, "/unreadable/packets")?;
    ensure!(
        packets + unreadable == told("/on_media/packets")?
            && number(&extract, "/missing/packets")? == told("/missing/packets")?,
        "ledger and extract disagree: {take} and {extract}"
    );
    let reached =
        told("/on_media/packets")? + told("/missing/packets")? + told("/overwritten/packets")?;
    ensure!(reached == told("/ledger/stored/packets")?, "the ledger does not add up: {take}");
    // A ring's oldest chunks may count as overwritten when what tells of them is damaged.
    if take["state"] == "complete"
        && !shape.ring
        && code == Some(0)
        && reached == whole.last.on_media + whole.last.overwritten
    {
        ensure!(
            packets == whole.last.on_media,
            "exit code 0 with {packets} of {} packets",
            whole.last.on_media
        );
    }
    stage.saw_many("packets read back", packets);
    stage.saw_many("packets unreadable and named", unreadable);
    Ok(Extracted::Packets(packets))
}
