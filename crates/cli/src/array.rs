//! `longtake array create` and `longtake array show`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use base::{ByteSize, Timestamp};
use device::shell::quoted;
use longtake::array::{Contents, CreateOptions, CreatePlan, Info, NewMember, ParityCoverage};
use longtake::instant::utc;
use longtake::json;

use crate::arguments::{CreateArguments, ShowArguments};
use crate::{opening, printer};

mod rebuild;
mod scrub;

pub use rebuild::rebuild;
pub use scrub::scrub;

/// Makes an array of drives or files.
///
/// # Errors
/// If any target is refused, or can't be written; all refusals are named before anything is.
pub fn create(arguments: &CreateArguments) -> Result<ExitCode> {
    let options = CreateOptions {
        name: arguments.name.clone(),
        erase: arguments.erase.clone(),
        replace_array: arguments.force_new_array,
        segment: arguments.segment,
        chunk_bytes: arguments.chunk.map(|c| u32::try_from(c.0)).transpose().context("--chunk")?,
        parity: arguments.parity,
        trim: !arguments.no_trim,
        dry_run: arguments.dry_run,
    };
    let tell = &mut |remark| opening::print(&remark);
    let plan = CreatePlan::new(&arguments.targets, &options, tell)?;
    if !arguments.json {
        let members = plan.report().members.iter().enumerate();
        let lines: Vec<String> = members.map(|(at, member)| new_member(at, member)).collect();
        printer::text(&lines.join("\n"))?;
    }
    let report = plan.run()?;
    if arguments.json {
        printer::json(&json::created(&report))?;
    } else {
        printer::text(&if report.dry_run {
            "dry run: nothing was written; the contents of these members would be lost".to_owned()
        } else {
            format!(
                "array '{}' ({}) is ready: longtake record --from SOURCE --to {}",
                printer::inline(&report.name),
                report.uuid,
                quoted(&report.name)
            )
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn new_member(at: usize, member: &NewMember) -> String {
    format!(
        "member {at}: {} ({}), {} segments of {}; writes {}{}{}",
        member.target,
        ByteSize(member.capacity_bytes),
        member.segments,
        ByteSize(member.segment_bytes),
        ByteSize(member.writes_bytes),
        member.share_of_life.as_ref().map_or(String::new(), |share| format!(" ({share})")),
        if member.trimmed { " and trims it whole" } else { "" }
    )
}

/// Shows an array.
///
/// # Errors
/// If it can't be opened.
pub fn show(arguments: &ShowArguments) -> Result<ExitCode> {
    let mut array = opening::open_to_read(&arguments.array)?;
    let contents = array.contents()?;
    let info = array.info();
    if arguments.array.json {
        let mut shown = json::array(&info, &contents);
        if arguments.chunks {
            shown["chunks"] = contents.chunks.iter().map(json::chunk).collect();
        }
        printer::json(&shown)?;
    } else {
        print_members(&info)?;
        print_contents(&info, &contents)?;
        printer::text("\nto copy a member's packets without Longtake:")?;
        for command in info.copy_commands() {
            printer::text(&format!("  {command}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_members(info: &Info) -> Result<()> {
    printer::text(&format!(
        "array '{}' {}, created {}{}",
        printer::inline(&info.name),
        info.uuid,
        utc(info.created),
        if info.recording { ", being recorded" } else { "" }
    ))?;
    let mut table =
        printer::table(&["member", "target", "identity", "size", "used", "state"], &[0, 3, 4]);
    for (at, member) in info.members.iter().enumerate() {
        table.add_row([
            at.to_string(),
            member.target.clone().unwrap_or_else(|| "-".to_owned()),
            member.identity.clone(),
            ByteSize(member.capacity_bytes).to_string(),
            format!("{:.1} %", 100.0 * member.used_bytes as f64 / member.data_bytes as f64),
            if member.target.is_some() { "present" } else { "MISSING" }.to_owned(),
        ]);
    }
    printer::text(&printer::trimmed(&table))?;
    for remark in &info.remarks {
        printer::text(&format!("note: {}", printer::inline(remark)))?;
    }
    Ok(())
}

fn print_contents(info: &Info, contents: &Contents) -> Result<()> {
    let Contents { takes, chunks, parity } = contents;
    if let Some(coverage) = parity {
        printer::text(&parity_words(info.parity, coverage))?;
    }
    let packets: u64 = takes.iter().map(|t| t.stored.packets).sum();
    let missing: u64 = takes.iter().map(|t| t.missing().packets).sum();
    printer::text(&format!(
        "\n{} takes, {} chunks, {} packets; {} packets missing",
        takes.len(),
        printer::number(chunks.len() as u64),
        printer::number(packets),
        printer::number(missing)
    ))?;
    if let (Some(first), Some(last)) = (takes.first(), takes.last()) {
        let first = utc(Timestamp::from_nanos(first.first_ns));
        let last_ns = takes.iter().map(|t| t.last_ns).max().unwrap_or(last.last_ns);
        printer::text(&format!("from {first} to {}", utc(Timestamp::from_nanos(last_ns))))?;
    }
    for range in &info.protected {
        printer::text(&format!(
            "protected: {} to {} {}",
            utc(range.from),
            utc(range.to),
            printer::inline(&range.label)
        ))?;
    }
    Ok(())
}

/// What parity an array has, in words.
fn parity_words(parity: u8, coverage: &ParityCoverage) -> String {
    let short = match coverage.short_chunks {
        0 => String::new(),
        short => format!("; {} chunks have less", printer::number(short)),
    };
    format!(
        "parity {parity}: the array survives the loss of any {}; {} groups, {} of parity{short}",
        if parity == 1 { "one member" } else { "two members" },
        printer::number(coverage.groups),
        ByteSize(coverage.bytes)
    )
}
