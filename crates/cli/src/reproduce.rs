//! `longtake reproduce`: published experiments on simulated drives, every claim beside what was published.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use lab::Progress;
use lab::published::{Effort, Group, Reproduced, Stage};
use target::output::Outputs;
use twin::held_out;
use twin::published::Library;

use crate::measure::OutputFolder;
use crate::progress::steps_bar;
use crate::signals::stop_or_go_on;
use crate::{exit, printer, profiles};

/// `reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArguments {
    /// Documents to reproduce: REC, QOS, STR, LNK, MIX [default: all].
    #[arg(value_name = "GROUP")]
    pub groups: Vec<Group>,
    /// Show only this claim, such as REC-7; may be repeated. The experiments of its group are run.
    #[arg(long, value_name = "CLAIM")]
    pub only: Vec<String>,
    /// Folder for measurements, reproduced.json and report.html [default: reproduced-DATE-TIME].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Measure only what decides the claims, in seconds.
    #[arg(long, conflicts_with = "long")]
    pub quick: bool,
    /// Also measure what takes very many commands, such as 99.9999 % of reads, in minutes.
    #[arg(long)]
    pub long: bool,
    /// Fit each document's drives to a few of its figures and predict the others. Exits with 0 whether or not predictions hold.
    #[arg(long)]
    pub hold_out: bool,
    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown.
    #[arg(long)]
    pub markdown: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Does the experiments and prints what they came to. Done (0) if all that differs from what was published is explained.
///
/// # Errors
/// If a claim isn't there, a drive can't be simulated, or results can't be written.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<ExitCode> {
    let groups = Group::chosen(&arguments.groups, &arguments.only)?;
    if arguments.hold_out && profiles::given().is_some() {
        bail!("--hold-out fits the library's drives: leave out --profiles");
    }
    let mut drives = match profiles::given() {
        Some(folder) => Library::with_folder(folder)?,
        None => Library::default(),
    };
    if let Some(folder) = profiles::given() {
        let names: Vec<&str> = drives.others().collect();
        printer::tell(&format!(
            "longtake: drives of {} in the library's place: {}",
            folder.display(),
            names.join(", ")
        ));
    }
    let output = arguments.output.clone().unwrap_or_else(|| {
        jiff::Zoned::now().strftime("reproduced-%Y-%m-%d-%H%M%S").to_string().into()
    });
    let folder = OutputFolder::make(Some(&output), false)?.keep();
    let stopped = stop_or_go_on()?;
    let bar = steps_bar(!arguments.quiet, None);
    let mut watch = |progress: &Progress<'_>| {
        bar.show(progress);
        stopped()
    };
    let mut reproduced = Vec::new();
    for group in groups {
        reproduced.push(if arguments.hold_out {
            held_out::predict(group, &folder, effort(arguments), &mut watch)?
        } else {
            let mut stage = Stage::new(&mut drives, folder.clone(), effort(arguments), &mut watch);
            group.reproduce(&mut stage)?
        });
    }
    bar.finish();
    keep(&folder, &reproduced)?;
    for group in &mut reproduced {
        group.rows.retain(|row| asked(arguments, &row.id));
    }
    if arguments.json {
        printer::json(&serde_json::to_value(&reproduced)?)?;
    } else if arguments.markdown {
        printer::text(&report::reproduced::markdown(&reproduced))?;
    } else {
        reproduced.iter().try_for_each(show)?;
        report::reproduced::total(&reproduced).map_or(Ok(()), |total| printer::text(&total))?;
        printer::message(&format!("report: {}", folder.join("report.html").display()))?;
    }
    let holds = arguments.hold_out || reproduced.iter().all(Reproduced::holds);
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

const fn effort(arguments: &ReproduceArguments) -> Effort {
    match (arguments.quick, arguments.long) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Long,
        _ => Effort::Usual,
    }
}

fn asked(arguments: &ReproduceArguments, id: &str) -> bool {
    arguments.only.is_empty() || arguments.only.iter().any(|only| only.eq_ignore_ascii_case(id))
}

/// Keeps what a report can be made of again, and the report.
fn keep(folder: &std::path::Path, reproduced: &[Reproduced]) -> Result<()> {
    lab::lab::write_json(&folder.join("reproduced.json"), &reproduced)?;
    let page = report::html::page(&report::reproduced::document(reproduced));
    Ok(Outputs::new(true).write(&folder.join("report.html"), &page)?)
}

fn show(reproduced: &Reproduced) -> Result<()> {
    let mut table = printer::table(
        &["claim", "what", "published", "ours", "difference", "verdict"],
        &[2, 3, 4],
    );
    for row in &reproduced.rows {
        for cells in report::reproduced::lines_of(row) {
            table.add_row(cells);
        }
    }
    printer::text(reproduced.group.document())?;
    printer::text(&printer::trimmed(&table))?;
    for row in &reproduced.rows {
        for remark in report::reproduced::remarks(row) {
            printer::text(&format!("  {remark}"))?;
        }
    }
    for line in report::reproduced::ending(reproduced) {
        printer::text(&format!("  {line}"))?;
    }
    printer::text(&format!("{}\n", report::reproduced::summary(&reproduced.rows)))
}
