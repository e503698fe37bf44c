//! A run: which drives were measured, when, and what every experiment found. It is a file beside the steps, from which profile and
//! report are made, now or later.

use std::path::Path;

use profile::{Profile, name};
use serde::{Deserialize, Serialize};

use crate::answer::Figure;
use crate::experiment::any::{Experiment, ExperimentOutcome};
use crate::experiment::link::sweep;
use crate::finding::{self, Contradiction, Finding};
use crate::lab::{LabError, Step, read_json, write_json};
use crate::profiling::{self, Identity};
use crate::verdict;

/// The run's own file in the folder of results.
const FILE: &str = "run.json";

/// The folder of single workloads, in the folder of results.
pub const SINGLE: &str = "run";

/// A drive as the report names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The target as it was given.
    pub target: String,
    /// NVMe, SATA, file and so on.
    pub kind: String,
    /// Maker's model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware.
    pub firmware: Option<String>,
    /// Bytes that can be addressed.
    pub capacity_bytes: u64,
    /// Unit of offsets and lengths of reads and writes.
    pub block_bytes: u32,
    /// Unit of trims, if it can trim.
    pub trim_bytes: Option<u32>,
    /// Its link, in words.
    pub link: Option<String>,
    /// The kernel's I/O scheduler in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// All that was known of it, as `longtake drives --json` shows it; of a striped set a list of its members'.
    pub facts: Option<serde_json::Value>,
    /// The drives of a striped set; none of a drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

impl Subject {
    /// Whether both are one drive, as far as can be told: the same serial number, or without one the same target; and the
    /// same size.
    pub fn is(&self, other: &Self) -> bool {
        let word =
            |subject: &Self| subject.serial.clone().unwrap_or_else(|| subject.target.clone());
        word(self) == word(other) && self.capacity_bytes == other.capacity_bytes
    }

    /// What a profile says of it.
    pub fn identity(&self) -> Identity<'_> {
        Identity {
            name: "",
            model: self.model.as_deref().unwrap_or(&self.target),
            kind: &self.kind,
            capacity_bytes: self.capacity_bytes,
            block_bytes: self.block_bytes,
            trim_bytes: self.trim_bytes,
            endurance_bytes: None,
        }
    }
}

/// Everything that was found on some drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of Longtake.
    pub version: String,
    /// When it began, UTC nanoseconds since 1970.
    pub started_ns: u64,
    /// The machine and its kernel, in words; None if time was virtual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The drives.
    pub subjects: Vec<Subject>,
    /// What was found.
    pub outcomes: Vec<ExperimentOutcome>,
    /// Experiments that were not done, and why.
    pub left_out: Vec<(String, String)>,
    /// Single workloads that were run or read in, by name. They lie in files of their own.
    #[serde(skip)]
    pub measurements: Vec<(String, Step)>,
}

impl Run {
    /// A run that begins now.
    pub fn begin(version: &str, subjects: Vec<Subject>) -> Self {
        let started_ns =
            std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
        Self {
            version: version.to_owned(),
            started_ns,
            host: None,
            subjects,
            outcomes: Vec::new(),
            left_out: Vec::new(),
            measurements: Vec::new(),
        }
    }

    /// Writes it into a folder of results.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn keep(&self, folder: &Path) -> Result<(), LabError> {
        std::fs::create_dir_all(folder).map_err(|reason| LabError::File {
            attempted: "making the folder",
            path: folder.to_owned(),
            reason,
        })?;
        write_json(&folder.join(FILE), self)
    }

    /// The run that was begun in a folder, with or without results; None if there is none.
    ///
    /// # Errors
    /// If its file is there and can't be read.
    pub fn begun(folder: &Path) -> Result<Option<Self>, LabError> {
        read_json(&folder.join(FILE))
    }

    /// Adds what an experiment found, in the place of what it found before.
    pub fn add(&mut self, outcome: ExperimentOutcome) {
        self.outcomes.retain(|before| before.name() != outcome.name());
        self.left_out.retain(|(name, _)| name != outcome.name());
        self.outcomes.push(outcome);
    }

    /// Says that an experiment was not done, and why.
    pub fn leave_out(&mut self, name: &str, why: String) {
        self.left_out.retain(|(before, _)| before != name);
        self.left_out.push((name.to_owned(), why));
    }

    /// Every figure that was found. The fastest read is the fastest that any experiment saw.
    pub fn figures(&self) -> Vec<Figure> {
        let all = self.outcomes.iter().flat_map(|outcome| outcome.answer().figures());
        let (reads, mut all): (Vec<Figure>, Vec<Figure>) =
            all.partition(|figure| figure.name == name::READ_SEQUENTIAL);
        let rate = |figure: &Figure| figure.value.unwrap_or(f64::NEG_INFINITY);
        all.extend(reads.into_iter().max_by(|a, b| rate(a).total_cmp(&rate(b))));
        all
    }

    /// What findings of different experiments say against each other; each experiment's answer tells those among its own.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let of = |outcome: &ExperimentOutcome| outcome.answer().findings();
        let own: Vec<Vec<Finding>> = self.outcomes.iter().map(of).collect();
        let told: Vec<Contradiction> = own
            .iter()
            .zip(&self.outcomes)
            .flat_map(|(findings, outcome)| {
                finding::contradictions(findings, &outcome.answer().figures())
            })
            .collect();
        let every = [own.concat(), self.verdict()].concat();
        let mut all = finding::contradictions(&every, &self.figures());
        all.retain(|contradiction| !told.contains(contradiction));
        all
    }

    /// What the whole run answers a buyer: see [`verdict::findings`].
    pub fn verdict(&self) -> Vec<Finding> {
        verdict::findings(self)
    }

    /// The same as sentences, compared with the figures and with each other before.
    pub fn verdict_sentences(&self) -> Vec<String> {
        finding::sentences(&self.verdict(), &self.figures())
    }

    /// The drive that was measured; None if it was several, or a striped set.
    pub fn one_drive(&self) -> Option<&Subject> {
        match self.subjects.as_slice() {
            [subject] if subject.members.is_empty() => Some(subject),
            _ => None,
        }
    }

    /// How many drives were measured, the members of a striped set counted each.
    pub fn drives(&self) -> usize {
        self.subjects.iter().map(|subject| subject.members.len().max(1)).sum()
    }

    /// The profile of the drive that was measured; None of several, whose figures are of all together. `when` is the day as
    /// `2026-11-21`, `place` the machine.
    pub fn profile(&self, when: &str, place: &str) -> Option<Profile> {
        let subject = self.one_drive()?;
        let mut figures = self.figures();
        // What the drive did on links that aren't its own is nothing that it does.
        figures.retain(|figure| !figure.name.starts_with(sweep::FIGURES));
        let mut profile = profiling::profile(&figures, &subject.identity(), when, place);
        let source = profiling::measured(when, place);
        profile.fill = self.outcomes.iter().find_map(|outcome| match outcome {
            ExperimentOutcome::Fill(fill) => fill.curve(&source),
            _ => None,
        });
        Some(profile)
    }

    /// What a folder of results holds. Without the run's own file (a run that was killed) the experiments' results are read one
    /// by one. None if there is nothing.
    ///
    /// # Errors
    /// If a file is there and can't be read.
    pub fn read(folder: &Path) -> Result<Option<Self>, LabError> {
        let mut run = match Self::begun(folder)? {
            Some(run) => run,
            None => Self::of_results(folder),
        };
        run.measurements = single(&folder.join(SINGLE))?;
        let found = !run.outcomes.is_empty() || !run.measurements.is_empty();
        Ok(found.then_some(run))
    }

    fn of_results(folder: &Path) -> Self {
        let mut run = Self { started_ns: 0, ..Self::begin("", Vec::new()) };
        for name in Experiment::NAMES {
            if let Ok(json) = std::fs::read(folder.join(name).join("result.json")) {
                run.outcomes.extend(ExperimentOutcome::read(name, &json));
            }
        }
        run
    }
}

/// Every step in a folder, by name.
fn single(folder: &Path) -> Result<Vec<(String, Step)>, LabError> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(found) };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        let json = path.extension().is_some_and(|extension| extension == "json");
        if let (true, Some(name), Some(step)) = (json, name, read_json(&path)?) {
            found.push((name, step));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}
