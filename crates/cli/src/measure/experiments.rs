//! `longtake measure fill|stream|...|all`: experiments, one after the other, with what they cost said before.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use base::Duration;
use device::shell::quoted;
use lab::experiment::all::{Budget, Programme};
use lab::experiment::any::{Experiment, Outcome};
use lab::experiment::viewers::Viewers;
use lab::run::{Run, Subject};
use lab::{Lab, LabError};
use serde_json::json;
use target::SimTarget;
use target::output::Outputs;
use target::real::NEW_FILE_BYTES;
use twin::known::{self, Known};

use crate::exit;
use crate::measure::arguments::ExperimentArguments;
use crate::measure::setup::{self, Setup};
use crate::measure::{OutputFolder, budget};
use crate::outlet;
use crate::progress::steps_bar;

/// Runs the experiments of these names.
///
/// # Errors
/// If a drive is refused or can't be opened, or results can't be written.
pub fn experiments(names: &[&'static str], arguments: &ExperimentArguments) -> Result<ExitCode> {
    let rig_arguments = &arguments.rig;
    let new_file_bytes = arguments.size.map_or(NEW_FILE_BYTES, |size| size.0);
    let setup = Setup::look(rig_arguments, new_file_bytes)?;
    let known = setup.known();
    let budgets =
        Budget { time: arguments.time, written_bytes: arguments.write_budget.map(|size| size.0) };
    let programme = budget::programme(
        names,
        setup.geometry(),
        budgets,
        arguments.read_only,
        &mut |experiment| {
            if setup.is_simulated() && budgets.time.is_none() {
                hurry(experiment);
            }
            adjust(experiment, arguments, &known);
        },
    );
    if programme.experiments.is_empty() {
        bail!(
            "nothing can be measured within what is allowed: {}",
            programme
                .left_out
                .iter()
                .map(|(name, why)| format!("{name}: {why}"))
                .collect::<Vec<_>>()
                .join("; ")
        );
    }
    let writes = programme.cost().written_bytes > 0;
    state(&programme, &setup, arguments)?;
    if rig_arguments.dry_run {
        if !rig_arguments.json {
            outlet::text("dry run: nothing was done")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let folder = OutputFolder::make(rig_arguments.output.as_ref(), rig_arguments.resume)?;
    let mut run = begin(&folder, setup.subjects())?;
    setup.go_on(folder.path(), names)?;
    let stopped = setup::stop_on_signals()?;
    let mut rig = setup.open(rig_arguments, writes, None, &stopped)?;
    let folder = folder.keep();
    let bar = steps_bar(!rig_arguments.quiet && !rig_arguments.json, rig.clock());
    let mut watch = |progress: &lab::Progress<'_>| {
        bar.show(progress);
        stopped()
    };
    for (name, why) in &programme.left_out {
        run.leave_out(name, why.clone());
    }
    run.keep(&folder)?;
    let mut failures = 0;
    for (experiment, _) in &programme.experiments {
        let outcome = experiment.run(&mut Lab::new(rig.rig(), &folder, &mut watch)?);
        match outcome {
            Ok(outcome) => {
                bar.aside(|| say(&outcome, rig_arguments.json))?;
                run.add(outcome);
            }
            Err(LabError::Interrupted) => {
                bar.finish();
                run.keep(&folder)?;
                outlet::tell(&format!(
                    "longtake: stopped; what was measured is in {}; the same command with --output {} --resume goes on",
                    folder.display(),
                    quoted(&folder.to_string_lossy())
                ));
                return Ok(ExitCode::from(exit::FAILED));
            }
            Err(error) => {
                failures += 1;
                bar.aside(|| {
                    outlet::tell(&format!("longtake: {}: {error}", experiment.name()));
                });
                run.leave_out(experiment.name(), error.to_string());
            }
        }
        run.keep(&folder)?;
    }
    bar.finish();
    for warning in rig.take_warnings() {
        outlet::tell(&format!("longtake: warning: {warning}"));
    }
    finish(&run, &folder, rig_arguments.json)?;
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) })
}

/// A new run, or the one that is gone on with: what it has found stays, and it must have been of the same drives.
fn begin(folder: &OutputFolder, subjects: Vec<Subject>) -> Result<Run> {
    let run = Run::begin(env!("CARGO_PKG_VERSION"), subjects);
    let Some(before) = Run::begun(folder.path())? else { return Ok(run) };
    let same = before.subjects.len() == run.subjects.len()
        && before.subjects.iter().zip(&run.subjects).all(|(before, now)| before.is(now));
    let gone = |subject: &&Subject| {
        !SimTarget::is_meant(&subject.target) && !Path::new(&subject.target).exists()
    };
    let missing = run.subjects.iter().find(gone);
    if let Some(subject) = missing {
        bail!(
            "the results in {} are of {}, which is gone: name a new folder for a new file",
            folder.path().display(),
            subject.target
        );
    }
    if !same {
        let names: Vec<&str> = before.subjects.iter().map(|s| s.target.as_str()).collect();
        bail!(
            "the results in {} are of other drives ({}, by serial number and size): name a new folder",
            folder.path().display(),
            names.join(", ")
        );
    }
    Ok(Run {
        outcomes: before.outcomes,
        left_out: before.left_out,
        started_ns: before.started_ns,
        ..run
    })
}

/// Points of a length that suits simulated drives, unless the user asks for another: nothing varies in them but what is
/// simulated, so that seconds tell what takes a minute on a real one. Passes over the drive stay whole.
fn hurry(experiment: &mut Experiment) {
    const POINT: Duration = Duration::from_secs(5);
    // Its 56 points have more commands than all others together.
    const MIX_POINT: Duration = Duration::from_secs(3);
    const ROUND: Duration = Duration::from_secs(20);
    let longest = match experiment {
        Experiment::Fill(_) => return,
        Experiment::Mix(_) => MIX_POINT,
        Experiment::Snia(_) => ROUND,
        _ => POINT,
    };
    let scope = experiment.scope();
    scope.point = scope.point.min(longest);
}

/// What the user asked for, and what is known of the drives, in one experiment's options.
fn adjust(experiment: &mut Experiment, arguments: &ExperimentArguments, known: &[Known]) {
    let scope = experiment.scope();
    let (write, read) = known::guesses(known);
    scope.write_guess = write;
    scope.read_guess = read;
    scope.region = arguments.size.map(|size| size.0).or(scope.region);
    if let Some(point) = arguments.point {
        scope.point = point;
        scope.interval =
            scope.interval.min(Duration::from_nanos((point.as_nanos() / 4).max(1_000_000)));
    }
    if let Experiment::Neighbours(neighbours) = experiment {
        neighbours
            .writers
            .extend((1..known.len()).map(|other| (known[0].relation(&known[other]), other as u16)));
    }
    if let Experiment::Link(link) = experiment {
        link.links = known.iter().map(|known| known.link).collect();
    }
    if let Experiment::Fill(fill) = experiment {
        fill.warning_celsius =
            known.iter().filter_map(|known| known.warning_celsius).min_by(f64::total_cmp);
    }
    if arguments.read_only {
        read_only(experiment);
    }
}

/// Leaves out all that writes.
fn read_only(experiment: &mut Experiment) {
    match experiment {
        Experiment::Viewers(viewers) => {
            let scope = viewers.scope.clone();
            **viewers = Viewers { scope, ..Viewers::read_only() };
        }
        Experiment::Neighbours(neighbours) => {
            neighbours.writers.clear();
            neighbours.prepare = false;
        }
        Experiment::Mix(mix) => {
            mix.read_percents = vec![100];
            mix.prepare = false;
        }
        Experiment::Stream(stream) => stream.write = false,
        Experiment::Steady(steady) => steady.write = false,
        Experiment::Link(link) => link.write = false,
        // They are left out as a whole.
        Experiment::Fill(_) | Experiment::Snia(_) | Experiment::Apps(_) => {}
    }
}

/// Says what will be done and what it costs, before anything is.
fn state(programme: &Programme, setup: &Setup, arguments: &ExperimentArguments) -> Result<()> {
    let cost = programme.cost();
    let lines = setup.state_cost(&arguments.rig, &cost);
    if arguments.rig.json && arguments.rig.dry_run {
        let experiments: Vec<_> = programme
            .experiments
            .iter()
            .map(|(e, cost)| json!({"experiment": e.name(), "cost": cost}))
            .collect();
        return outlet::json(
            &json!({ "experiments": experiments, "left_out": programme.left_out, "cost": cost, "notes": lines }),
        );
    }
    for (experiment, cost) in &programme.experiments {
        outlet::tell(&format!(
            "longtake: {:<10} writes up to {:>8}, takes about {}",
            experiment.name(),
            base::ByteSize(cost.written_bytes),
            cost.time()
        ));
    }
    for (name, why) in &programme.left_out {
        outlet::tell(&format!("longtake: {name:<10} is left out: {why}"));
    }
    for line in lines {
        outlet::tell(&format!("longtake: note: {line}"));
    }
    Ok(())
}

fn say(outcome: &Outcome, json: bool) -> Result<()> {
    if json {
        return outlet::json_line(&json!({
            "experiment": outcome.name(),
            "question": outcome.answer().question(),
            "answer": outcome.answer().answer(),
            "figures": outcome.answer().figures(),
        }));
    }
    outlet::text(&format!("\n{}: {}", outcome.name(), outcome.answer().question()))?;
    for sentence in outcome.answer().answer() {
        outlet::text(&format!("  {sentence}"))?;
    }
    for line in ::report::measured::sparklines(outcome, 100) {
        outlet::text(&format!("  {line}"))?;
    }
    Ok(())
}

/// Writes profile and report.
fn finish(run: &Run, folder: &Path, json: bool) -> Result<()> {
    let outputs = Outputs::new(true);
    let mut written = Vec::new();
    // Figures of several drives are of all together, and say nothing of one.
    if let [subject] = run.subjects.as_slice() {
        let when = jiff::Timestamp::now().strftime("%F").to_string();
        let place = nix::unistd::gethostname()
            .map_or_else(|_| "this machine".to_owned(), |name| name.to_string_lossy().into_owned());
        let profile = lab::profiling::profile(&run.figures(), &subject.identity(), &when, &place);
        let path = folder.join("profile.toml");
        let text = profile.to_toml().with_context(|| format!("writing {}", path.display()))?;
        outputs.write(&path, &text)?;
        written.push(("profile", path));
    }
    let page = folder.join("report.html");
    crate::report::write(&crate::report::read(&[folder.to_owned()])?, &page, &outputs)?;
    written.push(("report", page));
    if json {
        let written: serde_json::Map<_, _> =
            written.iter().map(|(what, path)| ((*what).to_owned(), json!(path))).collect();
        return outlet::json_line(
            &json!({ "folder": folder, "written": written, "left_out": run.left_out }),
        );
    }
    outlet::text("")?;
    for (what, path) in written {
        outlet::message(&format!("{what}: {}", path.display()))?;
    }
    Ok(())
}
