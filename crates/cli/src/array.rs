//! The commands of `longtake array`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use base::ByteSize;
use device::shell::quoted;
use longtake::array::{self, CreateOptions, CreatePlan, DeleteOptions, DeletePlan, NewMember};
use longtake::{json, text};

use crate::arguments::{
    ArrayArguments, CreateArguments, DeleteArguments, ListArguments, ShowArguments,
};
use crate::{opening, printer};

mod index;
mod rebuild;
mod scrub;

pub use index::index;
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
        printer::message(&text::title(&info))?;
        printer::listing(&text::members(&info))?;
        printer::messages(info.remarks.iter().map(|remark| format!("note: {remark}")))?;
        printer::messages(contents.parity.map(|coverage| text::parity(info.parity, &coverage)))?;
        printer::text("")?;
        printer::messages(text::contents(&contents))?;
        printer::messages(text::protected(&info.protected))?;
        printer::text("\nto copy a member's packets without Longtake:")?;
        printer::messages(info.copy_commands().iter().map(|command| format!("  {command}")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes an array in full.
///
/// # Errors
/// If it can't be opened.
pub fn info(arguments: &ArrayArguments) -> Result<ExitCode> {
    let described = opening::open_to_read(arguments)?.describe()?;
    let (info, contents) = (&described.info, &described.contents);
    if arguments.json {
        printer::json(&json::described(&described))?;
        return Ok(ExitCode::SUCCESS);
    }
    printer::message(&text::title(info))?;
    printer::listing(&text::drives(&described))?;
    printer::messages(info.remarks.iter().map(|remark| format!("note: {remark}")))?;
    printer::text("")?;
    printer::messages(text::geometry(info))?;
    printer::messages(contents.parity.map(|coverage| text::parity(info.parity, &coverage)))?;
    printer::messages(text::contents(contents))?;
    printer::messages(text::released(contents))?;
    printer::messages(text::protected(&info.protected))?;
    if !contents.takes.is_empty() {
        printer::text("")?;
        printer::listing(&text::rates(&described))?;
        printer::messages(text::interfaces(&described))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the arrays on drives and in directories.
///
/// # Errors
/// If the drives can't be listed or a directory can't be read.
pub fn list(arguments: &ListArguments) -> Result<ExitCode> {
    let found = array::list(&arguments.directories, &mut |remark| opening::print(&remark))?;
    if arguments.json {
        printer::json(&json::found(&found))?;
    } else if found.is_empty() {
        printer::text(
            "no array was found: `longtake array list DIR` looks for member files in DIR and the directories in it",
        )?;
    } else {
        printer::listing(&text::found(&found))?;
        printer::messages(text::unopened(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Deletes an array, or says what would be lost.
///
/// # Errors
/// If it is in use, holds what is not its own, or can't be opened or deleted.
pub fn delete(arguments: &DeleteArguments) -> Result<ExitCode> {
    let DeleteArguments { array: read, yes } = arguments;
    let options = DeleteOptions { degraded: read.degraded, dry_run: !yes };
    let plan = DeletePlan::new(&read.array, options, |remark| opening::print(&remark))?;
    if !read.json {
        printer::messages(text::deletion(plan.report()))?;
    }
    let report = plan.run()?;
    if read.json {
        printer::json(&json::deleted(&report))?;
    } else {
        printer::text(match report.dry_run {
            true => "dry run: nothing was deleted; --yes deletes the array",
            false => "deleted",
        })?;
    }
    Ok(ExitCode::SUCCESS)
}
