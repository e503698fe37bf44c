//! Trials from a folder of results: the steps' own files hold what was done and what came of it.

use std::fs;
use std::path::Path;

use base::Duration;
use base::units::counted;
use load::Verb;
use serde::Deserialize;

use super::{Begins, Measured, Shows, Trial, ends, figures, levels, point_name};
use crate::answer::Unit;
use crate::experiment::Preparation;
use crate::experiment::preparation::PREFIX;
use crate::lab::{LabError, Step, read_json};
use profile::name;

/// Blocks and depths of sequential streams that tell enough; the grid has many times as many, and each is measured anew for
/// every drive that is tried.
pub(super) const STREAM_BLOCKS: [u64; 3] = [64 << 10, 512 << 10, 2 << 20];
pub(super) const STREAM_DEPTHS: [u32; 2] = [1, 8];
/// The same of reads in mixes.
pub(super) const MIX_BLOCKS: [u64; 3] = [4 << 10, 16 << 10, 128 << 10];

/// What was measured on the only drive of a run, of so many bytes.
///
/// # Errors
/// If a step can't be read.
pub fn read(folder: &Path, capacity_bytes: u64) -> Result<Measured, LabError> {
    let mut found: Vec<(Trial, Step)> = Vec::new();
    for (experiment, choose) in [
        ("fill", fill as fn(&str, &Step) -> Option<Shows>),
        ("steady", steady),
        ("stream", stream),
        ("link", link),
        ("mix", mix),
    ] {
        let steps = steps(&folder.join(experiment))?;
        let mut chosen: Vec<(Trial, Step)> = Vec::new();
        for (name, step) in steps {
            let prepares = name.starts_with(PREFIX).then_some(Shows::Nothing);
            let Some(shows) = prepares.or_else(|| choose(&name, &step)) else { continue };
            chosen.push((trial(experiment, &name, &step, shows), step));
        }
        chosen.sort_by_key(|(trial, _)| order(trial));
        begin(&mut chosen, &preparation(&folder.join(experiment))?);
        found.extend(chosen);
    }
    found.extend(rounds(&folder.join("snia"))?);
    let measured = found.iter().map(|(trial, step)| (trial, &step.measurement));
    let targets = figures(measured, capacity_bytes);
    let mut notes = Vec::new();
    let errors: u64 = found.iter().map(|(_, step)| step.measurement.error_count()).sum();
    if errors > 0 {
        notes.push(format!(
            "{} of the measurement failed; its steps are used all the same.",
            counted(errors, "command")
        ));
    }
    let limited = |(trial, step): &&(Trial, Step)| {
        trial.shows != Shows::Nothing && step.measurement.harness.limited.is_some()
    };
    let limited = found.iter().filter(limited).count();
    if limited > 0 {
        notes.push(format!(
            "In {limited} steps the machine may have been the limit, not the drive; the twin is as slow as both."
        ));
    }
    Ok(Measured { trials: found.into_iter().map(|(trial, _)| trial).collect(), targets, notes })
}

/// What a step did. What ended early is done as far as it went.
fn trial(experiment: &str, name: &str, step: &Step, shows: Shows) -> Trial {
    let mut workload = step.measurement.workload.clone();
    if let Some(bytes) = &mut workload.stop.bytes {
        let moved: u64 = step.measurement.results.iter().map(|result| result.bytes).sum();
        bytes.0 = bytes.0.min(moved.max(1));
    }
    // `burst-0-after-1070ms`
    let rest =
        name.rsplit_once("-after-").and_then(|(_, time)| time.strip_suffix("ms")?.parse().ok());
    let rest = Duration::from_millis(rest.unwrap_or(0));
    let name = format!("{experiment}/{name}");
    Trial { name, begins: Begins::AsLeft, rest, workload, shows }
}

/// How an experiment brought the drive into its starting state; the default if it doesn't say.
fn preparation(folder: &Path) -> Result<Preparation, LabError> {
    #[derive(Default, Deserialize)]
    struct Prepared {
        #[serde(default)]
        preparation: Preparation,
    }
    Ok(read_json::<Prepared>(&folder.join("result.json"))?.unwrap_or_default().preparation)
}

/// Says in which state each of an experiment's trials found the drive.
fn begin(trials: &mut [(Trial, Step)], preparation: &Preparation) {
    for (index, (trial, _)) in trials.iter_mut().enumerate() {
        let prepares = trial.name.rsplit('/').next().is_some_and(|name| name.starts_with(PREFIX));
        trial.begins = match index {
            0 if preparation.renewed => Begins::New,
            _ if preparation.restored && !prepares => Begins::Prepared,
            _ => Begins::AsLeft,
        };
    }
}

/// Every step of an experiment that was measured, by name.
fn steps(folder: &Path) -> Result<Vec<(String, Step)>, LabError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = path.file_stem().map(|name| name.to_string_lossy().into_owned()) else {
            continue;
        };
        let is_step =
            path.extension().is_some_and(|extension| extension == "json") && name != "result";
        if is_step && let Some(step) = read_json::<Step>(&path)? {
            found.push((name, step));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

/// Steps of one experiment in the order in which they were run: what empties, what writes the empty drive, the rest; reads
/// before writes.
fn order(trial: &Trial) -> (u8, bool, u64, u32) {
    let step = trial.name.rsplit('/').next().unwrap_or_default();
    let first = match (step, trial.workload.streams.first()) {
        (_, Some(stream)) if stream.trim > 0 => 0,
        ("empty", _) => 1,
        _ if step.starts_with(PREFIX) => 1,
        _ if trial.rest > Duration::ZERO => 3,
        _ => 2,
    };
    let stream = trial.workload.streams.first();
    let random = stream.is_some_and(|s| s.pattern != load::workload::Pattern::Sequential);
    let writes = trial.workload.changes() || random;
    let (block, depth) = stream.map_or((0, 0), |s| (s.block.longest(), s.depth));
    (first, writes, block, depth)
}

fn fill(name: &str, step: &Step) -> Option<Shows> {
    match name {
        "empty" | "overwrite" => {
            let stream = step.measurement.workload.streams.first()?;
            let series = super::curve(&step.measurement, stream.block.longest());
            let found = levels(&series, name == "empty", series.total_bytes());
            let cliff = found.iter().find(|one| one.name == name::WRITE_CACHE);
            let cliff = cliff.map(|cliff| cliff.value as u64);
            let empty = name == "empty";
            let ends = ends(empty, series.total_bytes(), cliff);
            Some(Shows::Curve { empty, ends })
        }
        // How rests empty a cache is not fitted, but what comes next finds it empty.
        _ => Some(Shows::Nothing),
    }
}

fn steady(name: &str, step: &Step) -> Option<Shows> {
    let (_, verb) = point_name(step.measurement.workload.streams.first()?)?;
    Some(Shows::Rate { name: format!("steady.{name}.rate"), verb, unit: Unit::BytesPerSecond })
}

fn stream(_: &str, step: &Step) -> Option<Shows> {
    let stream = step.measurement.workload.streams.first()?;
    let wanted =
        STREAM_BLOCKS.contains(&stream.block.longest()) && STREAM_DEPTHS.contains(&stream.depth);
    if wanted { rate(step) } else { None }
}

/// Points on the drive's own link; those of a sweep begin with their link's name.
fn link(name: &str, step: &Step) -> Option<Shows> {
    let own = name.starts_with("sequential-") || name.starts_with("random-");
    own.then(|| rate(step)).flatten()
}

fn rate(step: &Step) -> Option<Shows> {
    let (name, verb) = point_name(step.measurement.workload.streams.first()?)?;
    Some(Shows::Rate { name, verb, unit: Unit::BytesPerSecond })
}

/// Reads alone: what a mix writes depends on all that was written before it.
fn mix(name: &str, step: &Step) -> Option<Shows> {
    let stream = step.measurement.workload.streams.first()?;
    let wanted = stream.write == 0 && MIX_BLOCKS.contains(&stream.block.longest());
    let name = format!("mix.{}.iops", name.replace("-r", ".r"));
    wanted.then_some(Shows::Rate { name, verb: Verb::Read, unit: Unit::CommandsPerSecond })
}

/// What makes the drive ready for random writes until they are steady, and their rounds.
fn rounds(folder: &Path) -> Result<Vec<(Trial, Step)>, LabError> {
    let all = steps(folder)?;
    let mut found: Vec<(Trial, Step)> = Vec::new();
    let mut add = |name: &str, step: &Step, shows| {
        found.push((trial("snia", name, step, shows), step.clone()));
    };
    for kind in ["purge-", "precondition-"] {
        for (name, step) in all.iter().filter(|(name, _)| name.starts_with(kind)) {
            add(name, step, Shows::Nothing);
        }
    }
    // Names count with two digits, so they are in order. Rounds of a whole grid have other points between these.
    let tracked: Vec<&(String, Step)> = all
        .iter()
        .filter(|(name, _)| name.starts_with("round-") && name.ends_with("-4096-r0"))
        .collect();
    let whole_grid =
        all.iter().filter(|(name, _)| name.starts_with("round-")).count() > tracked.len();
    if whole_grid {
        return Ok(Vec::new());
    }
    for (index, (name, step)) in tracked.iter().enumerate() {
        add(name, step, Shows::Round { number: index + 1, of: tracked.len() });
    }
    Ok(found)
}
