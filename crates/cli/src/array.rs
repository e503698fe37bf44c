//! `longtake array create` and `longtake array show`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use base::{Bank, ByteSize, Timestamp};
use device::safety::Purpose;
use device::shell::quoted;
use device::target::Access;
use device::{Options, Pages, Pool, UringBank};
use format::superblock::Protected;
use recorder::create::{self, Plan};
use recorder::reader::Reader;
use recorder::takes::{Catalog, extents};
use recorder::{ArrayImage, Segment, TimeRange};
use serde_json::{Value, json};
use target::real::open_proven;
use target::{SimTarget, authorize, wear};

use crate::arguments::{CreateArguments, ShowArguments};
use crate::opening::{self, Opened};
use crate::outlet;
use longtake::instant::utc;

mod rebuild;
mod scrub;

pub use rebuild::rebuild;
pub use scrub::scrub;

/// Makes an array of drives or files.
///
/// # Errors
/// If any target is refused, or can't be written; all refusals are named before anything is.
pub fn create(arguments: &CreateArguments) -> Result<ExitCode> {
    let texts: Vec<String> =
        arguments.targets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if SimTarget::all(&texts)?.is_some() {
        bail!(
            "simulated drives live as long as the command, and an array on them would be gone with this one: `longtake record --to \
             {}` makes one and records on it",
            quoted(&texts.join(","))
        );
    }
    let purpose = if arguments.force_new_array { Purpose::Replace } else { Purpose::Create };
    let authorized = authorize(&arguments.targets, &arguments.erase, purpose, arguments.dry_run)?;
    let access = if arguments.dry_run { Access::Read } else { Access::Write { exclusive: false } };
    let mut targets = Vec::new();
    for (path, proof) in arguments.targets.iter().zip(&authorized) {
        let (target, warnings) = open_proven(path, access, proof.as_ref())?;
        for warning in warnings {
            outlet::tell(&format!("longtake: warning: {warning}"));
        }
        targets.push(target);
    }
    let identities = arguments.targets.iter().map(|path| identity(path)).collect();
    let plan = Plan {
        uuid: uuid::Uuid::new_v4(),
        name: arguments.name.clone(),
        created: source::clock::now(),
        segment_bytes: arguments.segment.map(|s| s.0),
        chunk_max: arguments.chunk.map(|c| u32::try_from(c.0)).transpose().context("--chunk")?,
        identities,
        trim: !arguments.no_trim,
        parity: arguments.parity,
    };
    let (pool, _) = Pool::new(2, 1 << 20, Pages::Transparent)?;
    let (mut bank, _) = UringBank::open(targets, pool.clone(), Options::default())?;
    let layouts = create::layouts(&bank, &plan)?;
    let mut members = Vec::new();
    let mut lines = Vec::new();
    for (at, (drive, layout)) in bank.drives().iter().zip(&layouts).enumerate() {
        let trims = plan.trim && drive.trim_unit_bytes.is_some();
        let wear = wear(&arguments.targets[at], create::WRITTEN_BYTES);
        members.push(json!({
            "member": at, "target": drive.name, "capacity_bytes": drive.capacity_bytes,
            "segments": layout.segments, "segment_bytes": layout.segment_bytes,
            "chunk_max": layout.chunk_max, "trimmed": trims,
            "writes_bytes": create::WRITTEN_BYTES, "share_of_life": wear,
        }));
        lines.push(format!(
            "member {at}: {} ({}), {} segments of {}; writes {}{}{}",
            drive.name,
            ByteSize(drive.capacity_bytes),
            layout.segments,
            ByteSize(layout.segment_bytes),
            ByteSize(create::WRITTEN_BYTES),
            wear.map_or(String::new(), |share| format!(" ({share})")),
            if trims { " and trims it whole" } else { "" }
        ));
    }
    if !arguments.json {
        outlet::text(&lines.join("\n"))?;
    }
    if !arguments.dry_run {
        let buffers = pool.buffer_ids().collect();
        create::create(&mut Reader { bank: &mut bank, memory: &pool, buffers }, &plan)?;
    }
    if arguments.json {
        outlet::json(&json!({
            "array": plan.uuid, "name": plan.name, "parity": plan.parity, "dry_run": arguments.dry_run,
            "members": members,
        }))?;
    } else {
        outlet::text(&if arguments.dry_run {
            "dry run: nothing was written; what these members hold would be gone".to_owned()
        } else {
            format!(
                "array '{}' ({}) is ready: longtake record --from SOURCE --to {}",
                outlet::inline(&plan.name),
                plan.uuid,
                quoted(&plan.name)
            )
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What tells a drive from others, for people: model and serial, or its path.
fn identity(path: &Path) -> String {
    let drive = device::identity::describe(path).ok();
    let words = drive.and_then(|d| match (d.model, d.serial) {
        (Some(model), Some(serial)) => Some(format!("{model} {serial}")),
        (None, Some(word)) | (Some(word), None) => Some(word),
        (None, None) => None,
    });
    words.unwrap_or_else(|| path.display().to_string())
}

/// Shows an array.
///
/// # Errors
/// If it can't be opened.
pub fn show(arguments: &ShowArguments) -> Result<ExitCode> {
    let mut opened = opening::open_to_read(&arguments.array.array, arguments.array.degraded)?;
    let catalog = opened.catalog(TimeRange::ALL)?;
    let image = opened.image.clone();
    let takes = catalog.takes();
    if arguments.array.json {
        let mut shown = array_json(&opened);
        shown["takes"] = json!(takes.len());
        shown["chunks_total"] = json!(catalog.entries.len());
        if image.superblock.parity > 0 {
            let Guarded { groups, bytes, short } = Guarded::of(image.superblock.parity, &catalog);
            shown["parity_groups"] = json!(groups);
            shown["parity_bytes"] = json!(bytes);
            shown["chunks_short_of_parity"] = json!(short);
        }
        if arguments.chunks {
            shown["chunks"] = catalog.entries.iter().map(chunk_json).collect();
        }
        outlet::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let superblock = &image.superblock;
    outlet::text(&format!(
        "array '{}' {}, created {}{}",
        outlet::inline(&superblock.name),
        image.uuid,
        utc(superblock.created),
        if opened.recording { ", being recorded" } else { "" }
    ))?;
    let mut table =
        outlet::table(&["member", "target", "identity", "size", "used", "state"], &[0, 3, 4]);
    for (at, member) in image.members.iter().enumerate() {
        let drive = opened.bank.drives().get(member.drive.index());
        table.add_row([
            at.to_string(),
            drive.map_or("-".to_owned(), |d| d.name.clone()),
            superblock.members[at].identity.clone(),
            ByteSize(superblock.members[at].capacity_bytes).to_string(),
            format!("{:.1} %", 100.0 * used(member) as f64 / member.layout.data_bytes() as f64),
            if drive.is_some() { "present" } else { "MISSING" }.to_owned(),
        ]);
    }
    outlet::text(&outlet::trimmed(&table))?;
    for remark in &image.remarks {
        outlet::text(&format!("note: {}", outlet::inline(remark)))?;
    }
    if superblock.parity > 0 {
        outlet::text(&parity_words(superblock.parity, &catalog))?;
    }
    let packets: u64 = takes.iter().map(|t| t.stored.packets).sum();
    let missing: u64 = takes.iter().map(|t| t.missing().packets).sum();
    outlet::text(&format!(
        "\n{} takes, {} chunks, {} packets; {} packets missing",
        takes.len(),
        outlet::number(catalog.entries.len() as u64),
        outlet::number(packets),
        outlet::number(missing)
    ))?;
    if let (Some(first), Some(last)) = (takes.first(), takes.last()) {
        let first = utc(Timestamp::from_nanos(first.first_ns));
        let last_ns = takes.iter().map(|t| t.last_ns).max().unwrap_or(last.last_ns);
        outlet::text(&format!("from {first} to {}", utc(Timestamp::from_nanos(last_ns))))?;
    }
    for range in &image.protected {
        outlet::text(&format!(
            "protected: {} to {} {}",
            utc(range.from),
            utc(range.to),
            outlet::inline(&range.label)
        ))?;
    }
    outlet::text("\nto copy a member's packets without Longtake:")?;
    for command in copies(&opened) {
        outlet::text(&format!("  {command}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What parity an array has, in words.
fn parity_words(parity: u8, catalog: &Catalog) -> String {
    let Guarded { groups, bytes, short } = Guarded::of(parity, catalog);
    let short = match short {
        0 => String::new(),
        short => format!("; {} chunks have less", outlet::number(short)),
    };
    format!(
        "parity {parity}: any {} may be gone and nothing is; {} groups, {} of parity{short}",
        if parity == 1 { "member" } else { "two members" },
        outlet::number(groups),
        ByteSize(bytes)
    )
}

/// What the parity chunks of an array come to.
#[derive(Debug, Default)]
struct Guarded {
    groups: u64,
    bytes: u64,
    /// Chunks whose group has fewer parities than it should have.
    short: u64,
}

impl Guarded {
    fn of(parity: u8, catalog: &Catalog) -> Self {
        let mut guarded = Self::default();
        // By group: the number of its last data chunk, and its parities.
        let mut parities: BTreeMap<u64, (u64, u8)> = BTreeMap::new();
        for entry in &catalog.entries {
            if let Some(part) = entry.record.parity {
                let last = part.group + u64::from(part.span);
                parities.entry(part.group).or_insert((last, 0)).1 += 1;
                guarded.bytes += u64::from(entry.record.summary.length);
            }
        }
        guarded.groups = parities.len() as u64;
        let data = catalog.entries.iter().filter(|e| e.record.parity.is_none());
        for entry in data {
            let sequence = entry.record.sequence;
            let group = parities.range(..=sequence).next_back().map(|(_, &group)| group);
            let whole = group.is_some_and(|(last, count)| sequence <= last && count >= parity);
            guarded.short += u64::from(!whole);
        }
        guarded
    }
}

/// Bytes of segments in use.
fn used(member: &recorder::MemberImage) -> u64 {
    let head = member.head.as_ref().map(|h| h.segment);
    (0u64..)
        .zip(&member.segments)
        .map(|(at, segment)| match segment {
            Segment::Live(_) if Some(at) == head => member.head.as_ref().map_or(0, |h| h.used),
            Segment::Live(_) => member.layout.segment_bytes,
            Segment::Empty => 0,
        })
        .sum()
}

/// The `dd` commands that make one pcapng file of each member.
fn copies(opened: &Opened) -> Vec<String> {
    let mut commands = Vec::new();
    for (at, member) in opened.image.members.iter().enumerate() {
        let Some(drive) = opened.bank.drives().get(member.drive.index()) else { continue };
        for (part, (from, length)) in extents(member).into_iter().enumerate() {
            let redirect = if part == 0 { ">" } else { ">>" };
            commands.push(format!(
                "dd if={} bs=1M iflag=skip_bytes,count_bytes skip={from} count={length} status=none {redirect} member{at}.pcapng",
                quoted(&drive.name)
            ));
        }
    }
    commands
}

fn protected_json(range: &Protected) -> Value {
    json!({"from": utc(range.from), "to": utc(range.to), "label": range.label})
}

fn array_json(opened: &Opened) -> Value {
    let image: &ArrayImage = &opened.image;
    let superblock = &image.superblock;
    let members: Vec<Value> = image
        .members
        .iter()
        .enumerate()
        .map(|(at, member)| {
            let drive = opened.bank.drives().get(member.drive.index());
            json!({
                "member": at,
                "target": drive.map(|d| &d.name),
                "identity": superblock.members[at].identity,
                "capacity_bytes": superblock.members[at].capacity_bytes,
                "segments": member.layout.segments,
                "segment_bytes": member.layout.segment_bytes,
                "chunk_max": member.layout.chunk_max,
                "used_bytes": used(member),
                "extents": extents(member).iter().map(|(from, length)| json!({"from": from, "length": length})).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "array": image.uuid,
        "name": superblock.name,
        "created": utc(superblock.created),
        "generation": superblock.generation,
        "parity": superblock.parity,
        "recording": opened.recording,
        "members": members,
        "protected": image.protected.iter().map(protected_json).collect::<Vec<_>>(),
        "remarks": image.remarks,
        "stale_members": opening::stale_json(opened),
        "copy": copies(opened),
    })
}

fn chunk_json(entry: &recorder::takes::Entry) -> Value {
    let s = &entry.record.summary;
    json!({
        "sequence": entry.record.sequence, "take": entry.record.take.uuid, "member": entry.place.member,
        "offset": entry.place.offset, "length": s.length, "packets": s.packets, "queue": s.queue,
        "first_ns": s.first_ns, "last_ns": s.last_ns, "replaces": entry.record.replaces, "end": s.end,
        "parity_of": entry.record.parity.map(|part| part.group),
    })
}
