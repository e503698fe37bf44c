//! `longtake fit`: the simulated drive that comes closest to a measured one, ready for use as `sim:PATH`, and which of its
//! parameters the measurement could tell.

mod guess;
mod parts;
mod show;
mod twin;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::experiment::any::Outcome;
use lab::fitting::trials::{Measured, of_profile, read};
use lab::fitting::{Fit, Knob, difference, fit as search};
use lab::run::Run;
use profile::{Parameter, Profile, SourceKind};
use ssd::Spec;
use target::SimTarget;
use target::profiles::{self, is_path};

use crate::arguments::FitArguments;
use crate::measure::setup::stop_on_signals;
use crate::output::Outputs;
use crate::profiles::known;
use crate::progress;
use guess::{Identity, guess, known_link};
use parts::{PARTS, Part};
use twin::{Budget, Twin};

/// Steps of the bar.
const BAR_LENGTH: u64 = 1000;

/// What there is to fit to.
struct Given {
    identity: Identity,
    /// Everything else that is known of the drive.
    profile: Profile,
    measured: Measured,
}

/// What came of a fit.
struct Found<'a> {
    given: &'a Given,
    /// Where the measurement is.
    origin: String,
    spec: Spec,
    parts: Vec<Part>,
    /// Parameters that nothing was measured for.
    left_out: Vec<Part>,
    /// What the rest was taken from.
    rest: String,
    fit: Fit,
    tried: u32,
    scale: u64,
}

/// Fits a simulated drive to a measurement.
///
/// # Errors
/// If the measurement can't be read or doesn't tell enough, or the twin can't be written.
pub fn fit(arguments: &FitArguments) -> Result<ExitCode> {
    let path = &arguments.measurement;
    let output = &arguments.output;
    let like_file = arguments.from.iter().filter(|word| is_path(word)).map(PathBuf::from);
    let outputs =
        Outputs::new(arguments.overwrite).reads(std::iter::once(path.clone()).chain(like_file));
    outputs.check(output)?;
    // The search takes long, and its result would have no place.
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("{} is not a folder: create it, or write to another file", folder.display());
    }
    let name =
        output.file_stem().map_or_else(|| "twin".to_owned(), |s| s.to_string_lossy().into_owned());
    let given = if path.is_dir() { of_folder(path, &name)? } else { of_file(path, &name)? };
    let from = arguments.from.as_deref().map(like).transpose()?;
    let spec = guess(&given.identity, &given.measured, from);
    spec.check().with_context(|| {
        format!(
            "no drive like that of {} can be simulated; give one that is like it with --from",
            path.display()
        )
    })?;
    let has_cache = spec.cache.is_some();
    let (parts, left_out): (Vec<Part>, Vec<Part>) =
        PARTS.into_iter().partition(|part| part.needs.are_met(&given.measured));
    let left_out = left_out.into_iter().filter(|part| has_cache || !part.is_of_cache()).collect();
    let knobs: Vec<Knob> = parts.iter().map(|part| part.knob(&spec)).collect();
    let budget =
        Budget { evaluations: arguments.evaluations, time: arguments.time.map(Into::into) };
    let stopped = stop_on_signals()?;
    let bar = bar(!arguments.quiet && !arguments.json);
    let mut heard = |tried: u32, left: f64| {
        bar.set_position(((1.0 - left) * BAR_LENGTH as f64) as u64);
        progress::say(&bar, &format!("{tried} drives tried"));
        stopped()
    };
    let mut twin = Twin::new(spec, parts.clone(), &given.measured, budget, &mut heard);
    let fit = search(&knobs, &given.measured.targets, &mut twin)
        .with_context(|| format!("a twin can't be put through what is in {}", path.display()))?;
    let values: Vec<f64> = fit.values.iter().copied().map(significant).collect();
    let (spec, tried, scale) = (twin.spec(&values), twin.tried(), twin.scale());
    bar.finish_and_clear();
    spec.check().context("the nearest drive that was found can't be")?;
    let rest = arguments
        .from
        .as_ref()
        .map_or_else(|| "as most drives of that size".to_owned(), |from| format!("as in {from}"));
    let origin = path.display().to_string();
    let found = Found { given: &given, origin, spec, parts, left_out, rest, fit, tried, scale };
    let text = found.profile().to_toml()?;
    outputs.write(output, &text)?;
    show::show(&found, output, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// A value with as many digits as a fit can mean.
fn significant(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// A bar over the budget; it shows on a terminal only, and only if `shown`.
fn bar(shown: bool) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(BAR_LENGTH), target);
    match ProgressStyle::with_template("{msg} {wide_bar} {percent} % of the budget, {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// What is in a folder of results.
fn of_folder(folder: &Path, name: &str) -> Result<Given> {
    let Some(run) = Run::read(folder)? else {
        bail!(
            "{} holds no results: give a folder that `longtake measure` wrote, or a profile",
            folder.display()
        );
    };
    let [subject] = run.subjects.as_slice() else {
        bail!(
            "{} is of {} drives, and their figures are of all together: measure one alone",
            folder.display(),
            run.subjects.len()
        );
    };
    let measured = read(folder, subject.capacity_bytes)?;
    enough(&measured, folder, run.outcomes.iter().map(Outcome::name))?;
    let model = subject.model.clone().unwrap_or_else(|| subject.target.clone());
    let identity = Identity {
        name: name.to_owned(),
        model,
        capacity_bytes: subject.capacity_bytes,
        block_bytes: subject.block_bytes,
        link: known_link(Some(&run), None),
    };
    // What the run's own profile knows stays known of the twin; a run that was cut short has none.
    let path = folder.join("profile.toml");
    let profile = if path.exists() {
        profiles::read(&path)?
    } else {
        Profile::new(name, &identity.model, &subject.kind, identity.capacity_bytes)
    };
    Ok(Given { identity, profile, measured })
}

/// What is in a profile.
fn of_file(path: &Path, name: &str) -> Result<Given> {
    let profile = known().find(&path.to_string_lossy()).with_context(|| {
        format!("{}: give a folder that `longtake measure` wrote, or a profile", path.display())
    })?;
    let measured = of_profile(&profile);
    enough(&measured, path, std::iter::empty())?;
    let block_bytes = profile.block_unit().and_then(|unit| unit.0.try_into().ok()).unwrap_or(512);
    let identity = Identity {
        name: name.to_owned(),
        model: profile.model.clone(),
        capacity_bytes: profile.capacity_bytes,
        block_bytes,
        link: known_link(None, Some(&profile)),
    };
    Ok(Given { identity, profile, measured })
}

/// Whether there is anything to fit to.
fn enough<'a>(
    measured: &Measured,
    path: &Path,
    there: impl Iterator<Item = &'a str>,
) -> Result<()> {
    if !measured.targets.is_empty() {
        return Ok(());
    }
    let there: Vec<&str> = there.collect();
    let there = if there.is_empty() { "nothing else".to_owned() } else { there.join(", ") };
    bail!(
        "{} tells nothing of how a drive is made (it has {there}): fill tells its cache and rates, link and stream how it \
         reads, mix how many reads it takes, snia its over-provisioning; run \
         `longtake measure fill TARGET -o DIR`, or `all` for everything",
        path.display()
    )
}

/// The drive that a `--from` names.
fn like(from: &str) -> Result<Spec> {
    let name = from.strip_prefix("sim:").unwrap_or(from);
    let model = format!("sim:{name}").parse::<SimTarget>()?.model;
    Ok(model.spec(known())?)
}

impl Found<'_> {
    /// Root mean square of the figures' differences, as a share.
    fn off(&self) -> f64 {
        let targets = &self.given.measured.targets;
        let all = targets.iter().zip(&self.fit.figures);
        let squares: Vec<f64> =
            all.filter_map(|(target, &figure)| Some(difference(target, figure)?.powi(2))).collect();
        (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
    }

    /// The twin as a profile: what was known of the drive, and the parameters that were found, each with how.
    fn profile(&self) -> Profile {
        let mut profile = self.given.profile.clone();
        profile.name.clone_from(&self.spec.name);
        profile.capacity_bytes = self.spec.capacity_bytes;
        profile.notes.push(format!(
            "A simulated twin: its figures differ from those measured by {:.1} % (root mean square).",
            100.0 * self.off()
        ));
        let all = self.spec.to_parameters();
        let mut simulated = profile::Simulated::default();
        for (section, parameters) in all.sections() {
            for (name, parameter) in parameters {
                let field = (section, name.as_str());
                let (kind, origin) = self.source(field);
                let value = parameter.value.clone();
                simulated.set(section, name, Parameter { value, kind, origin });
            }
        }
        profile.simulated = simulated;
        profile
    }

    /// How a parameter became known.
    fn source(&self, field: (&str, &str)) -> (SourceKind, String) {
        let of = |parts: &[Part]| parts.iter().position(|part| part.fields.contains(&field));
        if let Some(at) = of(&self.left_out) {
            let remedy = self.left_out[at].needs.remedy();
            return (SourceKind::Assumed, format!("{}; {remedy} to know it", self.rest));
        }
        let mine: Vec<usize> =
            (0..self.parts.len()).filter(|&at| self.parts[at].fields.contains(&field)).collect();
        if mine.is_empty() {
            return (SourceKind::Assumed, self.rest.clone());
        }
        let doubts: Vec<String> = mine.iter().filter_map(|&at| self.doubt(at)).collect();
        let determined = mine.iter().all(|&at| self.fit.reaches[at].determined);
        let origin = &self.origin;
        if !determined {
            let doubts = doubts.join("; ");
            return (SourceKind::Assumed, format!("not determined by {origin}: {doubts}"));
        }
        let mut text = format!("fitted to {origin}, residual {:.1} %", 100.0 * self.off());
        for doubt in doubts {
            text += &format!("; {doubt}");
        }
        (SourceKind::Measured, text)
    }

    /// Why a parameter's value isn't sure; None if it is.
    fn doubt(&self, at: usize) -> Option<String> {
        let (part, reach) = (&self.parts[at], &self.fit.reaches[at]);
        if reach.unknown {
            return Some(format!(
                "the budget ended before it was known what else {} could be",
                part.name
            ));
        }
        if !reach.determined {
            let (low, high) = (show::value(reach.low), show::value(reach.high));
            return Some(format!("{} from {low} to {high} fits as well", part.name));
        }
        let pair = self.fit.pairs.iter().find(|pair| pair.first == at || pair.second == at)?;
        let other = self.parts[if pair.first == at { pair.second } else { pair.first }];
        let (first, second) = (self.parts[pair.first], self.parts[pair.second]);
        Some(format!(
            "not told apart from {}: {} {} with {} {} fits as well",
            other.name,
            first.name,
            show::value(pair.example.0),
            second.name,
            show::value(pair.example.1)
        ))
    }
}
