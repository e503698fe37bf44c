//! Experiments on drives, real and simulated, and the twins of drives that were measured.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use lab::experiment::Options;
use lab::experiment::any::Experiment;
use lab::experiment::conduct::{Ending, Event};
use lab::run::Run;
use lab::{Go, LabError};
use longtake::{Duration, Rate};
use pyo3::exceptions::{PyFileExistsError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use report::document::{Cell, Column, Document, Section, Table};
use report::{html, measured};
use serde_json::{Map, Value, json};
use target::output::Outputs;
use target::real::NEW_FILE_BYTES;
use target::{NewFiles, Profiles};
use twin::fit::{Like, inputs};
use twin::{Budget, Fitted, MeasuredDrive, OutputFolder, Search, Setup, SetupOptions, Wishes};

use crate::values::Shown;
use crate::watch::Watch;
use crate::{failed, values};

/// What is measured, as Python names it.
#[derive(FromPyObject)]
pub struct Asked<'py> {
    #[pyo3(item)]
    experiments: Vec<String>,
    #[pyo3(item)]
    targets: Vec<PathBuf>,
    #[pyo3(item)]
    output: Option<PathBuf>,
    #[pyo3(item)]
    erase: Vec<String>,
    #[pyo3(item)]
    size: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    block: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    depth: Option<u32>,
    #[pyo3(item)]
    rates: Vec<String>,
    #[pyo3(item)]
    point: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    time: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    write_budget: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    read_only: bool,
}

/// Permission bits of files that are made.
const FILE_MODE: u32 = 0o600;

impl Asked<'_> {
    fn names(&self) -> PyResult<Vec<&'static str>> {
        let known = |name: &String| {
            Experiment::NAMES.iter().copied().find(|known| known == name).ok_or_else(|| {
                let known = Experiment::NAMES.join(", ");
                PyValueError::new_err(format!(
                    "there is no experiment '{name}': give one of {known}"
                ))
            })
        };
        self.experiments.iter().map(known).collect()
    }

    fn setup(&self) -> PyResult<Setup> {
        let size = values::size("size", self.size.as_ref())?;
        let options = SetupOptions {
            targets: self.targets.clone(),
            erase: self.erase.clone(),
            mode: FILE_MODE,
            new_file_bytes: size.map_or(NEW_FILE_BYTES, |size| size.0),
            ..SetupOptions::default()
        };
        Setup::look(options, &Profiles::of_user()).map_err(failed)
    }

    fn wishes(&self) -> PyResult<Wishes> {
        let block = values::size("block", self.block.as_ref())?;
        let rate = |text: &String| match values::parsed::<Rate>("rates", text) {
            Ok(rate) if rate.0 <= 0.0 => Err(PyValueError::new_err("rates: give rates above 0")),
            parsed => parsed,
        };
        let rates = self.rates.iter().map(rate).collect::<PyResult<_>>()?;
        let options = Options::Points {
            blocks: block.iter().map(|block| block.0).collect(),
            depths: self.depth.into_iter().collect(),
            rates,
        };
        let written = values::size("write_budget", self.write_budget.as_ref())?;
        Ok(Wishes {
            size: values::size("size", self.size.as_ref())?,
            point: values::duration("point", self.point.as_ref())?,
            budget: lab::experiment::all::Budget {
                time: values::duration("time", self.time.as_ref())?,
                written_bytes: written.map(|size| size.0),
            },
            read_only: self.read_only,
            options,
        })
    }
}

/// What came of measuring: values, how it looks in a notebook, warnings.
struct Found {
    value: Value,
    html: String,
    warnings: Vec<String>,
}

/// Runs experiments, or says what they would cost.
///
/// # Errors
/// `ValueError` if there is no such experiment, `LongtakeError` if a drive is refused or can't be opened, or results can't be written.
#[pyfunction]
pub fn measure(
    py: Python<'_>,
    asked: &Bound<'_, PyAny>,
    dry_run: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    let asked: Asked<'_> = asked.extract()?;
    let (names, wishes, setup) = (asked.names()?, asked.wishes()?, asked.setup()?);
    let output = asked.output.clone();
    let watch = RefCell::new(Watch::new(progress));
    if dry_run {
        let cost = cost(&names, &wishes, &setup)?;
        return Ok((cost.to_string(), String::new()));
    }
    let (found, watch) = py.detach(move || {
        let found = conduct(&names, &wishes, setup, output.as_ref(), &watch);
        (found, watch.into_inner())
    });
    let found = watch.finish(found)?;
    for warning in found.warnings {
        let category = py.get_type::<PyRuntimeWarning>();
        py.import("warnings")?.call_method1("warn", (warning, category))?;
    }
    Ok((found.value.to_string(), found.html))
}

fn cost(names: &[&'static str], wishes: &Wishes, setup: &Setup) -> PyResult<Value> {
    wishes.check(setup).map_err(failed)?;
    let programme = wishes.programme(names, setup);
    let all = programme.experiments.iter().map(|(experiment, cost)| {
        json!({
            "experiment": experiment.name(), "cost": cost,
            "starting_state": experiment.starting_state(),
        })
    });
    let cost = programme.cost();
    Ok(json!({
        "experiments": all.collect::<Vec<_>>(), "left_out": programme.left_out, "cost": cost,
        "notes": setup.state_cost(&cost, true),
    }))
}

fn conduct(
    names: &[&'static str],
    wishes: &Wishes,
    setup: Setup,
    output: Option<&PathBuf>,
    watch: &RefCell<Watch>,
) -> PyResult<Found> {
    wishes.check(&setup).map_err(failed)?;
    let programme = wishes.programme(names, &setup);
    if programme.experiments.is_empty() {
        let reasons: Vec<String> =
            programme.left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        return Err(failed(format!("no experiment fits the given limits: {}", reasons.join("; "))));
    }
    let writes = programme.cost().written_bytes > 0;
    let folder = OutputFolder::make(output, false).map_err(failed)?;
    let mut run = setup.begin(folder.path(), env!("CARGO_PKG_VERSION")).map_err(failed)?;
    let mut made = NewFiles::default();
    let stopped = |share| match watch.borrow_mut().at(share).is_break() {
        true => Go::Stop,
        false => Go::On,
    };
    let opened = setup.open(writes, None, &mut made, &|| stopped(0.0), &mut |_| ());
    let remaining = made.remove();
    let mut rig = opened.map_err(|error| match remaining.as_slice() {
        [] => failed(error),
        files => failed(format!("{error}; these files can't be removed again: {files:?}")),
    })?;
    let folder = folder.keep();
    let all = programme.experiments.len() as f64;
    let mut done = 0.0;
    let mut last = String::new();
    let mut problems = Vec::new();
    let ending = programme.conduct::<LabError>(
        rig.rig(),
        &mut run,
        &folder,
        &mut |progress| {
            if last != progress.experiment {
                done += if last.is_empty() { 0.0 } else { 1.0 };
                progress.experiment.clone_into(&mut last);
            }
            stopped((done + progress.share.unwrap_or(0.0)) / all)
        },
        &mut |event| {
            if let Event::Failed { experiment, error } = event {
                problems.push(format!("{experiment}: {error}"));
            }
            Ok(())
        },
    );
    problems.extend(rig.restore_links().err().map(|error| error.to_string()));
    if matches!(ending.map_err(failed)?, Ending::Interrupted) {
        let text = format!("stopped; results so far are in {}", folder.display());
        return Err(failed(text));
    }
    problems.extend(rig.take_warnings());
    kept(&run, &folder, problems)
}

/// Writes the profile and the report into the folder of results, and returns what was found.
fn kept(run: &Run, folder: &Path, warnings: Vec<String>) -> PyResult<Found> {
    let outputs = Outputs::new(true);
    let mut written = Map::new();
    if let Some(profile) = twin::results::profile(run) {
        let path = folder.join("profile.toml");
        outputs.write(&path, &profile.to_toml().map_err(failed)?).map_err(failed)?;
        written.insert("profile".to_owned(), json!(path));
    }
    let label = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let series: Map<String, Value> = measured::series(&label, run)
        .into_iter()
        .map(|(name, columns)| (name, columns.to_json()))
        .collect();
    let document = measured::document(&[(label, run.clone(), folder.to_owned())]);
    let path = folder.join("report.html");
    outputs.write(&path, &html::page(&document)).map_err(failed)?;
    written.insert("report".to_owned(), json!(path));
    let outcomes = run.outcomes.iter().map(|outcome| {
        json!({
            "experiment": outcome.name(), "question": outcome.answer().question(),
            "answer": outcome.answer().answer(), "findings": outcome.answer().findings(),
            "figures": outcome.answer().figures(),
        })
    });
    let value = json!({
        "folder": folder, "written": written, "outcomes": outcomes.collect::<Vec<_>>(),
        "series": series, "left_out": run.left_out, "verdict": run.verdict_sentences(),
        "contradictions": run.contradictions().iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    Ok(Found { value, html: html::fragment(&document), warnings })
}

/// What is fitted, as Python names it.
#[derive(FromPyObject)]
pub struct Wanted<'py> {
    #[pyo3(item)]
    measurement: PathBuf,
    #[pyo3(item)]
    output: Option<PathBuf>,
    #[pyo3(item)]
    like: Option<String>,
    #[pyo3(item)]
    evaluations: u32,
    #[pyo3(item)]
    time: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    overwrite: bool,
}

/// Fits a simulated drive to a measured one, and writes its profile to `output` if there is one.
///
/// # Errors
/// `LongtakeError` if the measurement can't be read or doesn't tell enough, `FileExistsError` if `output` is there already.
#[pyfunction]
pub fn fit(
    py: Python<'_>,
    wanted: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Shown> {
    let Wanted { measurement, output, like, evaluations, time, overwrite } = wanted.extract()?;
    if let Some(path) = output.as_ref().filter(|path| path.exists() && !overwrite) {
        let text =
            format!("{} is there already: pass overwrite=True to replace it", path.display());
        return Err(PyFileExistsError::new_err(text));
    }
    let time = values::duration("time", time.as_ref())?;
    let mut watch = Watch::new(progress);
    let found = py.detach(|| {
        let read = inputs(&measurement, like.as_deref(), &Profiles::of_user());
        let outputs = Outputs::new(overwrite).reads(read);
        if let Some(output) = &output {
            outputs.check(output).map_err(failed)?;
            // The search takes long, and its result would have no place.
            let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
                let text = format!("{} is not a folder: create it first", folder.display());
                return Err(failed(text));
            }
        }
        let stem = output.as_ref().and_then(|output| output.file_stem());
        let name = stem.map_or_else(|| "twin".to_owned(), |s| s.to_string_lossy().into_owned());
        let budget = Budget { evaluations, time: time.map(Duration::into) };
        let (value, text, page) = fitted(&measurement, &name, like, budget, &mut watch)?;
        if let Some(output) = &output {
            outputs.write(output, &text).map_err(failed)?;
        }
        Ok((value, page))
    });
    let (value, page) = watch.finish(found)?;
    Ok((value.to_string(), page))
}

fn fitted(
    measurement: &Path,
    name: &str,
    like: Option<String>,
    budget: Budget,
    watch: &mut Watch,
) -> PyResult<(Value, String, String)> {
    let profiles = Profiles::of_user();
    let drive = MeasuredDrive::read(measurement, name, &profiles).map_err(failed)?;
    let like = like.map(|like| Like::named(&like, &profiles)).transpose().map_err(failed)?;
    let search = Search::new(&drive, like).map_err(failed)?;
    let found = search.run(budget, &mut |_, left| match watch.at(1.0 - left).is_break() {
        true => Go::Stop,
        false => Go::On,
    });
    let found = found.map_err(failed)?;
    found.check().map_err(failed)?;
    let text = found.profile().to_toml().map_err(failed)?;
    let mut value = found.to_json();
    value["sentences"] = json!(found.sentences());
    value["profile"] = json!(text);
    let page = html::fragment(&twin_document(&found));
    Ok((value, text, page))
}

/// A fit as a document.
fn twin_document(found: &Fitted<'_>) -> Document {
    let mut document = Document::new(format!("The twin of {}", found.drive.profile.model));
    let rejected = found.rejected();
    let mut sentences = found.sentences();
    sentences.retain(|sentence| Some(sentence) != rejected.as_ref());
    let mut section = Section::new("twin", "Twin", "");
    section.warnings.extend(rejected);
    section.paragraphs = sentences;
    let cells = |row: &[String]| row.iter().map(Cell::text).collect();
    section.tables.push(Table {
        caption: "Figures: measured and of the twin".to_owned(),
        columns: ["Figure", "Measured", "Twin", "Difference"].map(Column::text).to_vec(),
        rows: found.figure_rows().iter().map(|row| cells(row)).collect(),
    });
    section.tables.push(Table {
        caption: "Parameters that were fitted".to_owned(),
        columns: ["Parameter", "Value", "How sure"].map(Column::text).to_vec(),
        rows: found.parameter_rows().iter().map(|row| cells(row)).collect(),
    });
    document.sections.push(section);
    document
}
