//! `longtake measure fill|stream|...|all`: experiments, one after the other, with what they cost said before.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use device::shell::quoted;
use lab::experiment::Options;
use lab::experiment::all::{Budget, Programme};
use lab::experiment::any::ExperimentOutcome;
use lab::experiment::conduct::{Ending, Event};
use lab::run::Run;
use serde_json::json;
use target::output::Outputs;
use target::real::NEW_FILE_BYTES;
use twin::{Setup, Wishes};

use crate::exit;
use crate::measure::arguments::ExperimentArguments;
use crate::measure::{OutputFolder, look, open, warn};
use crate::printer;
use crate::progress::steps_bar;
use crate::signals::stop_or_go_on;

/// Runs the experiments of these names.
///
/// # Errors
/// If a drive is refused or can't be opened, or results can't be written.
pub fn experiments(
    names: &[&'static str],
    arguments: &ExperimentArguments,
    options: Options,
    retrain: Option<String>,
) -> Result<ExitCode> {
    let rig_arguments = &arguments.rig;
    let setup = look(rig_arguments, arguments.size.map_or(NEW_FILE_BYTES, |size| size.0), retrain)?;
    let written_bytes = arguments.write_budget.map(|size| size.0);
    let wishes = Wishes {
        size: arguments.size,
        point: arguments.point,
        budget: Budget { time: arguments.time, written_bytes },
        read_only: arguments.read_only,
        options,
    };
    wishes.check(&setup)?;
    let programme = wishes.programme(names, &setup);
    if programme.experiments.is_empty() {
        let reasons: Vec<String> =
            programme.left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        bail!("no experiment fits the given limits: {}", reasons.join("; "));
    }
    let writes = programme.cost().written_bytes > 0;
    state(&programme, &setup, arguments)?;
    if rig_arguments.dry_run {
        if !rig_arguments.json {
            printer::text("dry run: nothing was done")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let folder = OutputFolder::make(rig_arguments.output.as_ref(), rig_arguments.resume)?;
    let mut run = setup.begin(folder.path(), env!("CARGO_PKG_VERSION"))?;
    setup.go_on(folder.path(), names)?;
    let stopped = stop_or_go_on()?;
    let mut rig = open(setup, writes, None, &stopped)?;
    let folder = folder.keep();
    let bar = steps_bar(!rig_arguments.quiet && !rig_arguments.json, rig.clock());
    let mut watch = |progress: &lab::Progress<'_>| {
        bar.show(progress);
        stopped()
    };
    let mut heard = |event: Event<'_>| bar.aside(|| say(&event, rig_arguments.json));
    let ending = programme.conduct(rig.rig(), &mut run, &folder, &mut watch, &mut heard);
    bar.finish();
    if let Err(error) = rig.restore_links() {
        printer::tell(&format!("longtake: warning: {error}"));
    }
    let ending = ending?;
    let Ending::Done { failures } = ending else {
        printer::tell(&format!(
            "longtake: stopped; results so far are in {}; to continue, run the same command with --output {} --resume",
            folder.display(),
            quoted(&folder.to_string_lossy())
        ));
        return Ok(ExitCode::from(exit::FAILED));
    };
    warn(&mut rig);
    if run.outcomes.is_empty() {
        return Ok(ExitCode::from(exit::FAILED));
    }
    finish(&run, &folder, rig_arguments.json)?;
    Ok(exit::lossless(failures == 0))
}

/// Says what will be done and what it costs, before anything is.
fn state(programme: &Programme, setup: &Setup, arguments: &ExperimentArguments) -> Result<()> {
    let cost = programme.cost();
    let lines = setup.state_cost(&cost, arguments.rig.dry_run);
    if arguments.rig.json && arguments.rig.dry_run {
        let experiments: Vec<_> = programme
            .experiments
            .iter()
            .map(|(e, cost)| json!({"experiment": e.name(), "cost": cost, "starting_state": e.starting_state()}))
            .collect();
        return printer::json(
            &json!({ "experiments": experiments, "left_out": programme.left_out, "cost": cost, "notes": lines }),
        );
    }
    for (experiment, cost) in &programme.experiments {
        printer::tell(&format!(
            "longtake: {:<10} writes up to {:>8}, takes about {}; drives: {}",
            experiment.name(),
            base::ByteSize(cost.written_bytes),
            cost.time(),
            experiment.starting_state()
        ));
    }
    for (name, why) in &programme.left_out {
        printer::tell(&format!("longtake: {name:<10} is left out: {why}"));
    }
    for line in lines {
        printer::tell(&format!("longtake: note: {line}"));
    }
    Ok(())
}

fn say(event: &Event<'_>, json: bool) -> Result<()> {
    match event {
        Event::Found(outcome) => say_found(outcome, json),
        Event::Failed { experiment, error } => {
            printer::tell(&format!("longtake: {experiment}: {error}"));
            Ok(())
        }
    }
}

fn say_found(outcome: &ExperimentOutcome, json: bool) -> Result<()> {
    if json {
        return printer::json_line(&json!({
            "experiment": outcome.name(),
            "question": outcome.answer().question(),
            "answer": outcome.answer().answer(),
            "findings": outcome.answer().findings(),
            "figures": outcome.answer().figures(),
        }));
    }
    printer::text(&format!("\n{}", ::report::measured::text(outcome)))
}

/// Writes profile and report.
fn finish(run: &Run, folder: &Path, json: bool) -> Result<()> {
    for contradiction in run.contradictions() {
        printer::tell(&format!("longtake: error: {contradiction}"));
    }
    let outputs = Outputs::new(true);
    let mut written = Vec::new();
    if let Some(profile) = twin::results::profile(run) {
        let path = folder.join("profile.toml");
        let text = profile.to_toml().with_context(|| format!("writing {}", path.display()))?;
        outputs.write(&path, &text)?;
        written.push(("profile", path));
    }
    let page = folder.join("report.html");
    crate::report::write(&crate::report::read(&[folder.to_owned()])?, &page, &outputs)?;
    written.push(("report", page));
    // A single experiment's answer has said all.
    let verdict = if run.outcomes.len() > 1 { run.verdict_sentences() } else { Vec::new() };
    if json {
        let written: serde_json::Map<_, _> =
            written.iter().map(|(what, path)| ((*what).to_owned(), json!(path))).collect();
        return printer::json_line(
            &json!({ "folder": folder, "written": written, "left_out": run.left_out, "verdict": verdict }),
        );
    }
    printer::text(&::report::measured::verdict(&verdict))?;
    for (what, path) in written {
        printer::message(&format!("{what}: {}", path.display()))?;
    }
    Ok(())
}
