//! `longtake array rebuild`: a lost member is made anew on another drive, also while the others are recorded on.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use base::ByteSize;
use longtake::array::{RebuildOptions, RebuildPlan, RebuildReport};
use longtake::json;

use crate::arguments::RebuildArguments;
use crate::signals::stop_on_signals_until;
use crate::{exit, opening, printer, progress};

/// Rebuilds a member.
///
/// # Errors
/// If the array can't be opened or has no parity, the member is there, or the target is refused or can't be written.
pub fn rebuild(arguments: &RebuildArguments) -> Result<ExitCode> {
    let RebuildArguments { array: read, member, onto, dry_run, .. } = arguments;
    let mut array = opening::options(read.degraded).without(onto).open(&read.array)?;
    let options = RebuildOptions {
        erase: arguments.erase.clone(),
        mode: arguments.mode.0,
        limit: arguments.limit,
        dry_run: *dry_run,
    };
    let plan = array.plan_rebuild(*member, onto, &options)?;
    if !read.json {
        print_plan(&plan, *member, onto)?;
    }
    if *dry_run {
        if read.json {
            printer::json(&json::rebuild_plan(&plan, *member, onto))?;
        } else {
            printer::text(
                "dry run: nothing was written; the contents of the target would be lost",
            )?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let begun = Arc::new(AtomicBool::new(false));
    let stop = stop_on_signals_until(&begun)?;
    let bar = progress::bytes_bar(0, "rebuilding", !read.json);
    let uuid = plan.array();
    let report = plan.run(&stop, |progress| {
        begun.store(true, Ordering::Relaxed);
        progress::show(&bar, progress);
    })?;
    bar.finish_and_clear();
    if read.json {
        printer::json(&json::rebuilt(uuid, *member, onto, &report))?;
    } else {
        print(&report)?;
    }
    Ok(exit::lossless(report.is_complete()))
}

fn print_plan(plan: &RebuildPlan<'_>, member: u16, onto: &Path) -> Result<()> {
    printer::message(&format!(
        "member {member} of array '{}': {}, {} to write to {}{}{}",
        plan.array_name(),
        printer::counted(plan.chunks(), "chunk"),
        ByteSize(plan.writes_bytes()),
        onto.display(),
        plan.share_of_life().map_or(String::new(), |share| format!(" ({share})")),
        if plan.resumes() { ", minus what an earlier rebuild has written" } else { "" }
    ))
}

fn print(report: &RebuildReport) -> Result<()> {
    printer::text(&format!(
        "{} with {} recovered, {} computed, {} kept from an earlier rebuild",
        printer::counted(report.chunks, "chunk"),
        ByteSize(report.bytes),
        printer::counted(report.parity_chunks, "parity chunk"),
        printer::number(report.found_written)
    ))?;
    if report.filled > 0 {
        printer::text(&format!(
            "{} could not be recovered: empty chunks take that place, and `longtake takes` lists the missing packets",
            printer::counted(report.filled, "chunk")
        ))?;
    }
    if report.groups_without_parity > 0 {
        printer::text(&format!(
            "less parity than before in {}, because it is not known where that parity was",
            printer::counted(report.groups_without_parity, "group")
        ))?;
    }
    printer::text(if report.joined {
        "the drive is now a member of the array"
    } else {
        "it becomes a member when the array is opened next; the running recording continues without it"
    })
}
