//! Calibration: the simulated drive that comes closest to a measured one, and which of its parameters the measurement could tell.

mod error;
mod words;

use std::path::{Path, PathBuf};

use base::units::grouped;
use lab::Go;
use lab::experiment::any::ExperimentOutcome;
use lab::fitting::trials::{Measured, of_profile, read};
use lab::fitting::{Fit, Knob, Target, difference, fit};
use lab::run::Run;
use profile::{Parameter, Profile, Simulated, SourceKind, name};
use ssd::Spec;
use ssd::spec::listed::ListedParameter;
use target::profiles::{self, Profiles};
use target::{Model, SimDrivesError};

use crate::guess::{Identity, guess, known_link};
use crate::model::{Budget, TwinModel};
use crate::parts::{PARTS, Part};

pub use error::FitError;

/// A drive that was measured: what there is to fit to.
#[derive(Clone, Debug)]
pub struct MeasuredDrive {
    /// What the drive is, as far as it tells.
    pub identity: Identity,
    /// Everything else that is known of it.
    pub profile: Profile,
    /// The steps that a twin is put through, and the figures that came of them.
    pub measured: Measured,
    /// Path of the measurement, for people.
    pub origin: String,
}

/// A drive that a twin begins as, where the measurement doesn't tell.
#[derive(Clone, Debug)]
pub struct Like {
    /// The name that it was given by, for people.
    pub name: String,
    /// Its parameters.
    pub spec: Spec,
    /// Them one by one, with the claims that they were fitted to.
    pub parameters: Vec<ListedParameter>,
}

/// A search that can begin.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    drive: &'a MeasuredDrive,
    spec: Spec,
    parts: Vec<Part>,
    left_out: Vec<Part>,
    rest: String,
    like: Vec<ListedParameter>,
}

/// The figures of a fill that make a drive what it is for recording.
const LEVELS: [&str; 7] = [
    name::WRITE_FAST,
    name::WRITE_CACHE,
    name::WRITE_NATIVE,
    name::WRITE_SHRINK,
    name::WRITE_SHRUNK,
    name::WRITE_OVERWRITE,
    name::WRITE_MEAN,
];
/// By how much a twin may miss one of them, as a share.
const MISS_SHARE: f64 = 0.1;

/// A figure of the fill that a twin lacks or misses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Miss<'a> {
    /// What was measured.
    pub target: &'a Target,
    /// What the twin does; None if it has no such level.
    pub twin: Option<f64>,
}

/// What came of a search.
#[derive(Clone, Debug)]
pub struct Fitted<'a> {
    /// The drive that was measured.
    pub drive: &'a MeasuredDrive,
    /// Parameters of the twin.
    pub spec: Spec,
    /// Parameters that were fitted.
    pub parts: Vec<Part>,
    /// Parameters that nothing was measured for.
    pub left_out: Vec<Part>,
    /// Where all other parameters come from, in words.
    pub rest: String,
    /// The parameters of the drive that it began as; none if that was most drives of that size.
    pub like: Vec<ListedParameter>,
    /// Values, residuals and how sure they are, in the order of `parts`.
    pub fit: Fit,
    /// Number of drives that were tried.
    pub tried: u32,
    /// How many times smaller than the measured drive they were.
    pub scale: u64,
    /// Whether somebody ended the search before the budget did.
    pub stopped: bool,
}

/// The files that a fit reads: the measurement, a folder of results or a profile, and the profile that it begins with.
pub fn inputs(measurement: &Path, like: Option<&str>, profiles: &Profiles) -> Vec<PathBuf> {
    let named = profiles.file(&measurement.to_string_lossy()).filter(|_| !measurement.is_dir());
    let like = like.and_then(|word| profiles.file(word));
    [Some(measurement.to_owned()), named, like].into_iter().flatten().collect()
}

impl MeasuredDrive {
    /// The drive behind a folder of results or a profile. Its twin will be called `name`.
    ///
    /// # Errors
    /// [`FitError`] if it can't be read, is of several drives, or tells nothing of how a drive is made.
    pub fn read(path: &Path, name: &str, profiles: &Profiles) -> Result<Self, FitError> {
        if path.is_dir() {
            return of_folder(path, name);
        }
        let profile = profiles
            .find(&path.to_string_lossy())
            .map_err(|reason| FitError::Neither { path: path.to_owned(), reason })?;
        Self::of_profile(profile, path, name)
    }

    /// The drive of a profile that was read from this path. Its twin will be called `name`.
    ///
    /// # Errors
    /// [`FitError::Nothing`] if it tells nothing of how a drive is made.
    pub fn of_profile(profile: Profile, path: &Path, name: &str) -> Result<Self, FitError> {
        let measured = of_profile(&profile);
        enough(&measured, path, std::iter::empty())?;
        let unit = profile.block_unit().and_then(|unit| unit.0.try_into().ok());
        let identity = Identity {
            name: name.to_owned(),
            model: profile.model.clone(),
            capacity_bytes: profile.capacity_bytes,
            block_bytes: unit.unwrap_or(512),
            link: known_link(None, Some(&profile)),
        };
        let origin = path.display().to_string();
        Ok(Self { identity, profile, measured, origin })
    }
}

impl Like {
    /// The drive of this name or path; `sim:` may stand before it.
    ///
    /// # Errors
    /// [`FitError`] if there is none, or it can't be simulated.
    pub fn named(name: &str, profiles: &Profiles) -> Result<Self, FitError> {
        let model = Model::named(name)?;
        let spec = model.spec(profiles)?;
        let profile = model.profile(profiles).map_err(SimDrivesError::Profile)?;
        let parameters = spec.listed(&profile.simulated);
        Ok(Self { name: name.to_owned(), spec, parameters })
    }
}

impl<'a> Search<'a> {
    /// A search for the twin of `drive`. What the measurement doesn't tell is as in `like`, or as in most drives of that size.
    ///
    /// # Errors
    /// [`FitError::Guess`] if the drive to begin with can't be simulated.
    pub fn new(drive: &'a MeasuredDrive, like: Option<Like>) -> Result<Self, FitError> {
        let mut others = Vec::new();
        let (name, from) = like
            .map(|Like { name, spec, parameters }| {
                others = parameters;
                (name, spec)
            })
            .unzip();
        let spec = guess(&drive.identity, &drive.measured, from);
        let origin = || drive.origin.clone();
        spec.check().map_err(|reason| FitError::Guess { origin: origin(), reason })?;
        let has_cache = spec.cache.is_some();
        let (parts, left_out): (Vec<Part>, Vec<Part>) =
            PARTS.into_iter().partition(|part| part.needs.are_met(&drive.measured));
        let parts = parts.into_iter().filter(|part| part.is_in(&spec)).collect();
        let left_out =
            left_out.into_iter().filter(|part| has_cache || !part.is_of_cache()).collect();
        let rest = name.map_or_else(
            || "as most drives of that size".to_owned(),
            |name| format!("as in {name}"),
        );
        Ok(Self { drive, spec, parts, left_out, rest, like: others })
    }

    /// Searches until nothing becomes better or the budget is spent. `heard` is told how many drives were tried and which share
    /// of the budget is left, and may stop it.
    ///
    /// # Errors
    /// [`FitError::Trial`] if a simulated drive fails.
    pub fn run(
        self,
        budget: Budget,
        heard: &mut dyn FnMut(u32, f64) -> Go,
    ) -> Result<Fitted<'a>, FitError> {
        let Self { drive, spec, parts, left_out, rest, like } = self;
        let knobs: Vec<Knob> = parts.iter().map(|part| part.knob(&spec)).collect();
        let mut twin = TwinModel::new(spec, parts.clone(), &drive.measured, budget, heard);
        let fit = fit(&knobs, &drive.measured.targets, &mut twin)
            .map_err(|reason| FitError::Trial { origin: drive.origin.clone(), reason })?;
        let values: Vec<f64> = fit.values.iter().copied().map(significant).collect();
        let (spec, tried, scale) = (twin.spec(&values), twin.tried(), twin.scale());
        let stopped = twin.stopped();
        Ok(Fitted { drive, spec, parts, left_out, rest, like, fit, tried, scale, stopped })
    }
}

/// A value with as many digits as a fit can mean.
fn significant(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// What is in a folder of results.
fn of_folder(folder: &Path, name: &str) -> Result<MeasuredDrive, FitError> {
    let Some(run) = Run::read(folder)? else {
        return Err(FitError::NoResults { folder: folder.to_owned() });
    };
    let Some(subject) = run.one_drive() else {
        let (folder, drives) = (folder.to_owned(), run.drives());
        return Err(FitError::Several { folder, drives });
    };
    let measured = read(folder, subject.capacity_bytes)?;
    let origin = folder.display().to_string();
    enough(&measured, folder, run.outcomes.iter().map(ExperimentOutcome::name))?;
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
    Ok(MeasuredDrive { identity, profile, measured, origin })
}

/// Whether there is anything to fit to.
fn enough<'a>(
    measured: &Measured,
    path: &Path,
    experiments: impl Iterator<Item = &'a str>,
) -> Result<(), FitError> {
    if !measured.targets.is_empty() {
        return Ok(());
    }
    let experiments = experiments.map(str::to_owned).collect();
    Err(FitError::Nothing { path: path.to_owned(), experiments })
}

impl Fitted<'_> {
    /// Whether the drive that was found can be simulated.
    ///
    /// # Errors
    /// [`FitError::Fitted`] if not.
    pub fn check(&self) -> Result<(), FitError> {
        self.spec.check().map_err(FitError::Fitted)
    }

    /// Root mean square of the figures' differences, as a share.
    pub fn off(&self) -> f64 {
        let targets = &self.drive.measured.targets;
        let all = targets.iter().zip(&self.fit.figures);
        let squares: Vec<f64> =
            all.filter_map(|(target, &figure)| Some(difference(target, figure)?.powi(2))).collect();
        (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
    }

    /// The levels of the fill, the places between them and its mean that the twin lacks or misses by more than a tenth: with any of
    /// these it isn't the drive that was measured.
    pub fn misses(&self) -> Vec<Miss<'_>> {
        let all = self.drive.measured.targets.iter().zip(self.fit.figures.iter().copied());
        let of_fill = all.filter(|(target, _)| LEVELS.contains(&target.name.as_str()));
        let missed = of_fill.filter(|(target, figure)| {
            difference(target, *figure).is_none_or(|off| off.abs() > MISS_SHARE)
        });
        missed.map(|(target, twin)| Miss { target, twin }).collect()
    }

    /// The twin as a profile: what was known of the drive, and the parameters that were found, each with how.
    pub fn profile(&self) -> Profile {
        let mut profile = self.drive.profile.clone();
        profile.name.clone_from(&self.spec.name);
        profile.capacity_bytes = self.spec.capacity_bytes;
        profile.notes.push(format!(
            "A simulated twin: its figures differ from those measured by {:.1} % (root mean square).",
            100.0 * self.off()
        ));
        profile.notes.extend(self.rejected());
        let all = self.spec.to_parameters();
        let mut simulated = Simulated::default();
        for (section, parameters) in all.sections() {
            for (name, parameter) in parameters {
                let field = (section, name.as_str());
                let (kind, origin) = self.source(field);
                let value = parameter.value.clone();
                // A twin is fitted to what was measured of its own drive. A value that it has from another one was chosen
                // for what it was chosen for there.
                let same = |other: &&ListedParameter| {
                    (other.section.as_str(), other.name.as_str()) == field && other.value == value
                };
                let fitted = match (kind, self.like.iter().find(same)) {
                    (SourceKind::Assumed, Some(other)) => other.fitted.clone(),
                    _ => Vec::new(),
                };
                simulated.set(section, name, Parameter { value, kind, origin, fitted });
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
        let origin = &self.drive.origin;
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

    /// Why the value of the part at this index of [`Fitted::parts`] isn't sure; None if it is.
    pub fn doubt(&self, at: usize) -> Option<String> {
        let (part, reach) = (&self.parts[at], &self.fit.reaches[at]);
        if reach.unknown {
            return Some(format!(
                "the budget ended before it was known what else {} could be",
                part.name
            ));
        }
        if !reach.determined {
            let (low, high) = (value(reach.low), value(reach.high));
            return Some(format!("{} from {low} to {high} fits as well", part.name));
        }
        let pair = self.fit.pairs.iter().find(|pair| pair.first == at || pair.second == at)?;
        let other = self.parts[if pair.first == at { pair.second } else { pair.first }];
        let (first, second) = (self.parts[pair.first], self.parts[pair.second]);
        Some(format!(
            "indistinguishable from {}: {} {} with {} {} fits as well",
            other.name,
            first.name,
            value(pair.example.0),
            second.name,
            value(pair.example.1)
        ))
    }
}

/// A parameter's value with as many digits as mean something.
pub fn value(value: f64) -> String {
    if value.abs() >= 1e4 {
        grouped(value.round() as u64)
    } else {
        let digits = if value.abs() >= 100.0 { 1 } else { 3 };
        format!("{value:.digits$}")
    }
}
