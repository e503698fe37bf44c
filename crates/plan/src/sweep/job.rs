//! One design: all that it takes in, figures out. The arithmetic of the plan, the recording in virtual time, or both.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use base::{ByteSize, Duration, Rate};
use profile::{Parameter, Profile, Unit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ssd::{Spec, SpecError, Start};
use toml::Value;

use super::What;
use crate::answer::{Design, design};
use crate::candidate::Candidate;
use crate::mission::{Mission, MissionError, MissionOutcome};
use crate::requirement::{Draft, Requirement, RequirementError};

/// A design to compute. As TOML or JSON it is all that another machine needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What to compute.
    pub run: Vec<What>,
    /// The design: keys of a requirement ([`Draft`]), `drive`, keys of the recording alone (`count`, `begins` and so on),
    /// `simulated.*` and `figures.*`.
    pub keys: BTreeMap<String, Value>,
}

/// Keys of a design beside those of a requirement; they act on the recording alone.
pub const DESIGN: [&str; 14] = [
    "count",
    "duration",
    "begins",
    "rest",
    "rest_turn",
    "trim_ahead",
    "trim_rate",
    "segment",
    "depth",
    "drift",
    "buffers",
    "flush_interval",
    "seed",
    "coarse",
];

/// One figure of a job's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figure {
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

/// Why a job can't be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobError {
    /// It names no drive.
    Drive,
    /// A key's value can't be.
    Key {
        /// The key as it was written.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// What is required can't be.
    Requirement(RequirementError),
    /// The drive can't be simulated.
    Spec(SpecError),
    /// The recording can't be run.
    Mission(MissionError),
    /// It was broken off.
    BrokenOff,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drive => f.write_str(
                "the design names no drive: give `drive` in [base] or as an axis, a name of the library or a path",
            ),
            Self::Key { key, problem } => write!(f, "{key}: {problem}"),
            Self::Requirement(error) => error.fmt(f),
            Self::Spec(error) => error.fmt(f),
            Self::Mission(error) => error.fmt(f),
            Self::BrokenOff => f.write_str("it was broken off"),
        }
    }
}

impl std::error::Error for JobError {}

/// Figures by name.
type Figures = BTreeMap<String, Figure>;

impl Job {
    /// From TOML.
    ///
    /// # Errors
    /// What the parser says, with the line.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// As TOML that reads back as the same job.
    ///
    /// # Errors
    /// If a value can't be said in TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Whether what it requires can be.
    ///
    /// # Errors
    /// [`JobError`], as running it would find.
    pub fn check(&self) -> Result<(), JobError> {
        self.drive()?;
        self.requirement().map(drop)
    }

    /// The name or path of its drive.
    ///
    /// # Errors
    /// [`JobError::Drive`] if it names none.
    pub fn drive(&self) -> Result<&str, JobError> {
        self.keys.get("drive").and_then(Value::as_str).ok_or(JobError::Drive)
    }

    /// Computes it on what is known of its drive. `watch` is told the share that is done, and may break it off.
    ///
    /// # Errors
    /// [`JobError`].
    pub fn run(
        &self,
        profile: &Profile,
        watch: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Figures, JobError> {
        let profile = self.changed(profile)?;
        let requirement = self.requirement()?;
        let design = design(&requirement, &Candidate::new(profile.clone(), None));
        let mut figures = Figures::new();
        if self.run.contains(&What::Plan) {
            planned(&design, &mut figures);
        }
        if self.run.contains(&What::Mission) {
            self.recorded(&profile, &requirement, &design, &mut figures, watch)?;
        }
        Ok(figures)
    }

    /// The profile with what the job says instead.
    fn changed(&self, profile: &Profile) -> Result<Profile, JobError> {
        let mut profile = profile.clone();
        for (key, value) in &self.keys {
            let wrong = |problem: String| JobError::Key { key: key.clone(), problem };
            if let Some(rest) = key.strip_prefix("simulated.") {
                let (section, name) = rest.split_once('.').ok_or_else(|| {
                    wrong(
                        "give simulated.SECTION.NAME, as in simulated.mapping.over_provisioning"
                            .to_owned(),
                    )
                })?;
                profile.simulated.set(section, name, Parameter::assumed(value.clone()));
            } else if let Some(name) = key.strip_prefix("figures.") {
                let known = profile.figures.get_mut(name).ok_or_else(|| {
                    wrong(format!("the drive '{}' has no such figure to be changed", profile.name))
                })?;
                known.value = quantity(value, known.unit).ok_or_else(|| {
                    wrong(format!(
                        "'{value}' is not what it counts: give a number above 0, or one with a unit"
                    ))
                })?;
                known.range = None;
            }
        }
        Ok(profile)
    }

    fn requirement(&self) -> Result<Requirement, JobError> {
        let of_requirement = |key: &&String| {
            key.as_str() != "drive"
                && !DESIGN.contains(&key.as_str())
                && !key.starts_with("simulated.")
                && !key.starts_with("figures.")
        };
        let table: toml::Table = self
            .keys
            .iter()
            .filter(|(key, _)| of_requirement(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        // Everything else was taken out, so a key that isn't known is none of a design either.
        let draft: Draft = Value::Table(table).try_into().map_err(|error: toml::de::Error| {
            let problem = format!(
                "{}; a design also has drive, {}, simulated.* and figures.*",
                error.message(),
                DESIGN.join(", ")
            );
            JobError::Key { key: "the requirement".to_owned(), problem }
        })?;
        if draft.described().map_err(JobError::Requirement)?.is_some() {
            let problem = "a sweep plans with the drive that `drive` names; `longtake plan` takes a described one";
            let (key, problem) = ("drive_size".to_owned(), problem.to_owned());
            return Err(JobError::Key { key, problem });
        }
        draft.check().map_err(JobError::Requirement)
    }

    fn recorded(
        &self,
        profile: &Profile,
        requirement: &Requirement,
        design: &Design,
        figures: &mut Figures,
        mut watch: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<(), JobError> {
        let spec = Spec::from_profile(profile).map_err(JobError::Spec)?;
        spec.check().map_err(JobError::Spec)?;
        let planned = design.array.as_ref().map(|array| array.data_drives);
        let Some(members) = self.get::<u32>("count", "a number of drives")?.or(planned) else {
            text(figures, "mission.left_out", "the plan finds no number of drives: give `count`");
            return Ok(());
        };
        let mission = self.mission(&spec, requirement, design, members)?;
        let outcome = mission
            .run(|progress| watch(progress.at.as_secs_f64() / progress.duration.as_secs_f64()))
            .map_err(JobError::Mission)?;
        if !outcome.whole {
            return Err(JobError::BrokenOff);
        }
        number(figures, "mission.drives", f64::from(members));
        came_of(&outcome, figures);
        Ok(())
    }

    fn mission(
        &self,
        spec: &Spec,
        requirement: &Requirement,
        design: &Design,
        members: u32,
    ) -> Result<Mission, JobError> {
        if members == 0 || members > MEMBERS_MAX {
            let problem = format!("{members} drives: give 1 to {MEMBERS_MAX}");
            return Err(JobError::Key { key: "count".to_owned(), problem });
        }
        let start = match self.get::<String>("begins", "empty or full")?.as_deref() {
            None | Some("empty") => Start::Empty,
            Some("full") => Start::Full,
            Some(other) => {
                let problem = format!("'{other}' is neither empty nor full");
                return Err(JobError::Key { key: "begins".to_owned(), problem });
            }
        };
        let Some(mut mission) = Mission::planned(requirement, design, spec, members, &start) else {
            let problem = design.obstacles.first().map_or_else(String::new, ToString::to_string);
            return Err(JobError::Key { key: "drive".to_owned(), problem });
        };
        if requirement.wraps() {
            // A ring is filled and written over once.
            let bytes: f64 = mission.drives.iter().map(|d| d.spec.capacity_bytes as f64).sum();
            mission.duration = Duration::from_secs_f64(2.0 * bytes / mission.mean_rate().0);
        }
        if let Some(time) = self.quantity("duration", "a time, as in 8h")? {
            mission.duration = time;
        }
        self.set(&mut mission.rest, "rest", "a number of drives")?;
        self.set(&mut mission.trim_ahead, "trim_ahead", "a number of segments")?;
        self.set(&mut mission.depth, "depth", "a number of writes")?;
        self.set(&mut mission.buffers, "buffers", "a number of chunk buffers")?;
        self.set(&mut mission.seed, "seed", "a whole number")?;
        self.set(&mut mission.coarse, "coarse", "true or false")?;
        if let Some(time) = self.quantity("rest_turn", "a time, as in 5s")? {
            mission.rest_turn = time;
        }
        if let Some(time) = self.quantity("flush_interval", "a time, as in 1s")? {
            mission.flush_interval = time;
        }
        if let Some(rate) = self.quantity("trim_rate", "a rate, as in 8GB/s")? {
            mission.trim_rate = rate;
        }
        mission.segment_bytes =
            self.quantity::<ByteSize>("segment", "a size, as in 256MiB")?.map(|size| size.0);
        mission.drift_max =
            self.quantity::<ByteSize>("drift", "a size, as in 512MiB")?.map(|size| size.0);
        Ok(mission)
    }

    fn set<T: DeserializeOwned>(
        &self,
        field: &mut T,
        key: &str,
        wanted: &str,
    ) -> Result<(), JobError> {
        if let Some(value) = self.get(key, wanted)? {
            *field = value;
        }
        Ok(())
    }

    fn get<T: DeserializeOwned>(&self, key: &str, wanted: &str) -> Result<Option<T>, JobError> {
        let Some(value) = self.keys.get(key) else { return Ok(None) };
        value.clone().try_into().map(Some).map_err(|_| JobError::Key {
            key: key.to_owned(),
            problem: format!("'{value}' is not {wanted}"),
        })
    }

    /// A value with a unit.
    fn quantity<T: std::str::FromStr>(
        &self,
        key: &str,
        wanted: &str,
    ) -> Result<Option<T>, JobError> {
        let Some(text) = self.get::<String>(key, wanted)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| JobError::Key {
            key: key.to_owned(),
            problem: format!("'{text}' is not {wanted}"),
        })
    }
}

/// As many members as an array has.
const MEMBERS_MAX: u32 = format::superblock::MEMBERS_MAX as u32;

/// A figure's new value.
fn quantity(value: &Value, unit: Unit) -> Option<f64> {
    let number = match (value, unit) {
        (Value::Integer(n), _) => *n as f64,
        (Value::Float(n), _) => *n,
        (Value::String(text), Unit::Bytes) => text.parse::<ByteSize>().ok()?.0 as f64,
        (Value::String(text), Unit::BytesPerSecond) => text.parse::<Rate>().ok()?.0,
        (Value::String(text), Unit::Nanoseconds) => {
            text.parse::<Duration>().ok()?.as_nanos() as f64
        }
        _ => return None,
    };
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn number(figures: &mut Figures, name: &str, value: impl Into<Option<f64>>) {
    if let Some(value) = value.into().filter(|value| value.is_finite()) {
        figures.insert(name.to_owned(), Figure::Number(value));
    }
}

fn text(figures: &mut Figures, name: &str, value: impl fmt::Display) {
    figures.insert(name.to_owned(), Figure::Text(value.to_string()));
}

/// What the arithmetic says.
fn planned(design: &Design, figures: &mut Figures) {
    number(figures, "plan.stripe_drives", design.stripe_drives.map(f64::from));
    number(figures, "plan.adaptive_drives", design.adaptive_drives.map(f64::from));
    number(figures, "plan.datasheet_drives", design.datasheet_drives.map(f64::from));
    if let Some(obstacle) = design.obstacles.first() {
        text(figures, "plan.obstacle", obstacle);
    }
    if let Some(evidence) = design.evidence {
        text(figures, "plan.evidence", evidence);
    }
    let Some(array) = &design.array else { return };
    number(figures, "plan.drives", f64::from(array.drives));
    number(figures, "plan.data_drives", f64::from(array.data_drives));
    text(figures, "plan.binds", format!("{:?}", array.binds).to_lowercase());
    number(figures, "plan.headroom_percent", array.headroom_percent);
    number(figures, "plan.retention_s", array.retention_s);
    number(figures, "plan.life_years", array.life_years);
    number(figures, "plan.buffer_bytes", array.buffer_bytes);
}

/// What the recording came to.
fn came_of(outcome: &MissionOutcome, figures: &mut Figures) {
    let ledger = &outcome.ledger;
    let lost = ledger.lost_unwanted().bytes as f64;
    let offered = ledger.offered.bytes as f64;
    number(figures, "mission.lossless", f64::from(u8::from(outcome.lossless())));
    number(figures, "mission.offered_bytes", offered);
    number(figures, "mission.lost_bytes", lost);
    number(
        figures,
        "mission.lost_percent",
        if offered > 0.0 { 100.0 * lost / offered } else { 0.0 },
    );
    if let Some(loss) = &outcome.first_loss {
        number(figures, "mission.first_loss_s", loss.at.as_secs_f64());
        text(figures, "mission.first_loss", loss);
    }
    number(figures, "mission.buffers_most", f64::from(outcome.buffers_most));
    number(figures, "mission.buffers", f64::from(outcome.buffers));
    number(figures, "mission.retention_s", outcome.retention.as_secs_f64());
    number(figures, "mission.time_s", outcome.time.as_secs_f64());
    let drives = &outcome.drives;
    let mean = |of: &dyn Fn(&crate::mission::DriveOutcome) -> f64| {
        drives.iter().map(of).sum::<f64>() / drives.len().max(1) as f64
    };
    number(figures, "mission.amplification", mean(&|drive| drive.amplification()));
    number(figures, "mission.passes", mean(&|drive| drive.passes));
    let life = drives.iter().map(|drive| drive.life_years).reduce(f64::min);
    number(figures, "mission.life_years", life);
    let reads = &outcome.reads;
    if reads.bytes + reads.missed_bytes > 0 {
        number(figures, "mission.read_bytes", reads.bytes as f64);
        number(figures, "mission.missed_read_bytes", reads.missed_bytes as f64);
        let us = |percent| {
            reads.latencies.percentile(percent).map(|latency| latency.as_nanos() as f64 / 1e3)
        };
        number(figures, "mission.read_mean_us", reads.latencies.mean_ns().map(|ns| ns / 1e3));
        number(figures, "mission.read_p99_us", us(99.0));
        number(figures, "mission.read_p99_99_us", us(99.99));
    }
}
