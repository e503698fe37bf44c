//! Holding out: a document's drives are fitted to a few of its figures by a search, and predict the others. No parameter was chosen
//! with a held-out figure in view, so whether it comes out as published is evidence for or against the model.

mod search;
mod studies;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use lab::published::{
    Basis, Comparison, Effort, FigureFit, Fitted, Found, Group, HeldOut, Published, Reproduced,
    Row, SetParameter, Stage, UsedParameter,
};
use lab::{Go, LabError, Progress};
use profile::{Parameter, Profile, SourceKind, Value, library};

use crate::published::Library;
use search::{NEAR, TRIALS_MAX, Unknown, search};
use studies::{Fit, Start, StartValue, Study};

/// Why a document's figures can't be predicted.
#[derive(Debug)]
pub enum HeldOutError {
    /// Its experiments didn't come to an end.
    Lab(LabError),
    /// A drive of the library can't be read.
    Drive(String),
    /// A figure that a parameter is to be fitted to is not a number in both the document and the experiment: claim, figure.
    NoFigure(&'static str, &'static str),
}

impl fmt::Display for HeldOutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lab(error) => error.fmt(f),
            Self::Drive(why) => f.write_str(why),
            Self::NoFigure(claim, figure) => write!(
                f,
                "no parameter can be fitted to {claim}, {figure}: the experiment measured no such number"
            ),
        }
    }
}

impl std::error::Error for HeldOutError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Lab(error) => error.source(),
            Self::Drive(_) | Self::NoFigure(..) => None,
        }
    }
}

impl From<LabError> for HeldOutError {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

/// Fits the drives of a document to its fitting figures and predicts the rest. Trials of the search measure with little effort;
/// `effort` is that of the prediction. Steps are kept in `folder`, those of each trial in a folder of their own.
///
/// # Errors
/// [`HeldOutError`].
pub fn predict(
    group: Group,
    folder: &Path,
    effort: Effort,
    watch: &mut dyn FnMut(&Progress<'_>) -> Go,
) -> Result<Reproduced, HeldOutError> {
    let study = studies::of(group);
    let begun = study.drives()?;
    let unknowns: Vec<Unknown> = study.fits.iter().map(Fit::unknown).collect();
    let found = search(&unknowns, |trial, values| {
        let drives = study.fitted(&begun, values);
        let trials = folder.join(format!("{group}-fit")).join(trial.to_string());
        let mut watch = |progress: &Progress<'_>| {
            let fitting = format!(
                "fitting {group}, trial {trial} of at most {TRIALS_MAX}: {}",
                progress.experiment
            );
            watch(&Progress { experiment: &fitting, ..*progress })
        };
        let rows = measured(group, drives, &trials, Effort::Quick, &mut watch)?.rows;
        study.fits.iter().map(|fit| fit.error(&rows)).collect::<Result<Vec<f64>, HeldOutError>>()
    })?;
    let drives = study.fitted(&begun, &found.values);
    let mut reproduced = measured(group, drives, folder, effort, watch)?;
    let fits = study.fits.iter().zip(&found.values).zip(&found.errors);
    let fits = fits.map(|((fit, &value), error)| fit.described(value, error.abs() <= NEAR));
    reproduced.held_out = Some(HeldOut {
        fits: fits.collect(),
        starts: study.starts.iter().map(Start::described).collect(),
    });
    for row in &mut reproduced.rows {
        for comparison in &mut row.comparisons {
            study.judge(&row.id, comparison, &reproduced.parameters);
        }
    }
    Ok(reproduced)
}

fn measured(
    group: Group,
    mut drives: Library,
    folder: &Path,
    effort: Effort,
    watch: &mut dyn FnMut(&Progress<'_>) -> Go,
) -> Result<Reproduced, HeldOutError> {
    let mut stage = Stage::new(&mut drives, folder.to_owned(), effort, watch);
    Ok(group.reproduce(&mut stage)?)
}

/// Drives of a study by their names.
type Models = BTreeMap<String, Profile>;

impl Study {
    /// The drives that it sets parameters of, those that are not fitted set.
    fn drives(&self) -> Result<Models, HeldOutError> {
        let mut drives = Models::new();
        let fits = self.fits.iter().map(|fit| fit.models);
        for &model in self.starts.iter().map(|start| start.models).chain(fits).flatten() {
            let drive = library::get(model);
            let drive = drive.map_err(|error| HeldOutError::Drive(error.to_string()))?;
            drives.insert(model.to_owned(), drive);
        }
        for start in self.starts {
            for model in start.models {
                drives.entry((*model).to_owned()).and_modify(|drive| start.put(drive));
            }
        }
        Ok(drives)
    }

    /// The same with these values of the parameters that are fitted.
    fn fitted(&self, drives: &Models, values: &[f64]) -> Library {
        let mut drives = drives.clone();
        for (fit, &value) in self.fits.iter().zip(values) {
            for model in fit.models {
                drives.entry((*model).to_owned()).and_modify(|drive| fit.put(drive, value));
            }
        }
        Library::fitted(drives)
    }

    /// A figure of simulated drives rests on the parameters that were chosen with this very figure in view: it is a prediction if there
    /// is none. A parameter that the study doesn't fit was chosen with all figures of its claims in view.
    fn judge(&self, claim: &str, comparison: &mut Comparison, parameters: &[UsedParameter]) {
        let Basis::Simulated(fitted) = &mut comparison.basis else { return };
        let fits = |parameter: &&UsedParameter| {
            self.fits.iter().find(|fit| {
                fit.models.contains(&parameter.of.as_str()) && fit.name() == parameter.name
            })
        };
        let chosen = parameters.iter().filter(|parameter| match fits(parameter) {
            Some(fit) => fit.figures().any(|figure| figure == (claim, &comparison.what)),
            None => parameter.fitted.iter().any(|id| id == claim),
        });
        let chosen = chosen.map(|parameter| Fitted {
            of: parameter.of.clone(),
            name: parameter.name.clone(),
            claims: vec![claim.to_owned()],
        });
        *fitted = chosen.collect();
    }
}

impl Start {
    fn put(&self, drive: &mut Profile) {
        let (section, name) = self.parameter;
        let value = match self.value {
            StartValue::Number(value) => number_like(drive, self.parameter, value),
            StartValue::Flag(value) => Value::Boolean(value),
            StartValue::LeftOut => return drive.simulated.remove(section, name),
        };
        let fitted = self.claims.iter().map(|&claim| claim.to_owned()).collect();
        let (kind, origin) = (SourceKind::Assumed, self.source.to_owned());
        drive.simulated.set(section, name, Parameter { value, kind, origin, fitted });
    }

    fn described(&self) -> SetParameter {
        SetParameter {
            of: owned(self.models),
            name: format!("{}.{}", self.parameter.0, self.parameter.1),
            value: match self.value {
                StartValue::Number(value) => Some(value.to_string()),
                StartValue::Flag(value) => Some(value.to_string()),
                StartValue::LeftOut => None,
            },
            source: self.source.to_owned(),
        }
    }
}

impl Fit {
    fn name(&self) -> String {
        format!("{}.{}", self.parameter.0, self.parameter.1)
    }

    /// The figures that it is chosen with in view, by claim and what they are.
    fn figures(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        std::iter::once((self.claim, self.figure)).chain(self.again.iter().copied())
    }

    const fn unknown(&self) -> Unknown {
        Unknown { from: self.from, within: self.within, rises: self.rises }
    }

    fn put(&self, drive: &mut Profile, value: f64) {
        let (section, name) = self.parameter;
        let value = number_like(drive, self.parameter, value);
        let origin = format!("found by a search for {}, {}", self.claim, self.figure);
        let (kind, fitted) = (SourceKind::Assumed, vec![self.claim.to_owned()]);
        drive.simulated.set(section, name, Parameter { value, kind, origin, fitted });
    }

    /// How far its figure is from the published one: the logarithm of their ratio.
    fn error(&self, rows: &[Row]) -> Result<f64, HeldOutError> {
        let row = rows.iter().find(|row| row.id == self.claim);
        let mut figures = row.into_iter().flat_map(|row| &row.comparisons);
        let figure = figures.find(|comparison| comparison.what == self.figure);
        let error = figure.and_then(|Comparison { published, ours, .. }| {
            let Found::Figure(ours) = ours else { return None };
            Some((ours / goal(published)?).ln()).filter(|error| error.is_finite())
        });
        error.ok_or(HeldOutError::NoFigure(self.claim, self.figure))
    }

    fn described(&self, value: f64, met: bool) -> FigureFit {
        FigureFit {
            of: owned(self.models),
            name: self.name(),
            value: format!("{value:.4e}").parse::<f64>().unwrap_or(value).to_string(),
            figures: self.figures().map(|(claim, figure)| format!("{claim}, {figure}")).collect(),
            met,
        }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// What a fit aims at: the figure, or the middle of its range.
const fn goal(published: &Published) -> Option<f64> {
    match published {
        Published::About(figure)
        | Published::Exactly(figure)
        | Published::AtLeast(figure)
        | Published::AtMost(figure) => Some(*figure),
        Published::Between(least, greatest) => Some(f64::midpoint(*least, *greatest)),
        Published::Words(_) => None,
    }
}

/// A number of the kind that the drive's parameter has: whole or not.
fn number_like(drive: &Profile, (section, name): (&str, &str), value: f64) -> Value {
    match drive.simulated.get(section, name).map(|parameter| &parameter.value) {
        Some(Value::Integer(_)) => Value::Integer(value.round() as i64),
        _ => Value::Float(value),
    }
}
