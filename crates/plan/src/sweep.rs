//! Sweeps: many designs from one short file. Axes over keys of a requirement, a design or a simulated drive make a grid, or a
//! sample of it; each point is a [`Job`] that knows all it needs, so that it can be run anywhere.

mod axis;
mod job;

use std::collections::BTreeMap;
use std::fmt;

use base::Random;
use serde::{Deserialize, Serialize};
use toml::{Spanned, Value};

pub use axis::Axis;
pub use job::{Figure, Job, JobError};

/// As many jobs as anybody waits for.
pub const JOBS_MAX: u64 = 10_000_000;

/// A sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What each job computes.
    pub run: Vec<What>,
    /// What all jobs have in common.
    pub base: BTreeMap<String, Value>,
    /// What varies, in the order of the file; in a grid the last varies fastest.
    pub axes: Vec<(String, Axis)>,
    /// Which points; None for all of the grid.
    pub sample: Option<Sample>,
}

/// What a job computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The arithmetic: how many drives.
    Plan,
    /// A recording in virtual time.
    Mission,
}

/// A sample of the space that axes span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Points.
    pub count: u32,
    /// What they follow from.
    #[serde(default)]
    pub seed: u32,
    /// How they are drawn.
    #[serde(default)]
    pub method: Method,
}

/// How points of a sample are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Each by itself.
    Random,
    /// More evenly than by chance: Sobol's sequence, scrambled (Owen; Burley, "Practical Hash-based Owen Scrambling", JCGT 2020).
    #[default]
    Sobol,
}

/// Why a text is no sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepError {
    /// It isn't TOML, or a field is unknown or of another type.
    Syntax {
        /// What the parser says, with the line.
        reason: String,
    },
    /// An axis can't be.
    Axis {
        /// Its key.
        key: String,
        /// Its line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A key is varied and given.
    Twice {
        /// The key as it was written.
        key: String,
        /// The line of the axis, from 1.
        line: usize,
    },
    /// More jobs than can be.
    Jobs {
        /// How many, as far as they can be counted.
        count: u64,
    },
    /// No job.
    Empty,
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { reason } => write!(f, "reading the sweep failed: {reason}"),
            Self::Axis { key, line, problem } => {
                write!(f, "line {line}: the axis {key} is not valid: {problem}")
            }
            Self::Twice { key, line } => write!(
                f,
                "line {line}: {key} is an axis and in [base] too: leave it out of [base]"
            ),
            Self::Jobs { count } => write!(
                f,
                "the sweep has {count} jobs, at most {JOBS_MAX} are allowed: add [sample] with a count, or make the axes shorter"
            ),
            Self::Empty => f.write_str(
                "the sweep has no job: give at least one axis or [base], `run` with \"plan\" or \"mission\" in it, and [sample] a \
                 count from 1 on",
            ),
        }
    }
}

impl std::error::Error for SweepError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default = "arithmetic")]
    run: Vec<What>,
    #[serde(default)]
    base: BTreeMap<String, Value>,
    #[serde(default)]
    axes: BTreeMap<String, Spanned<Value>>,
    sample: Option<Sample>,
}

fn arithmetic() -> Vec<What> {
    vec![What::Plan]
}

impl Sweep {
    /// From TOML.
    ///
    /// # Errors
    /// [`SweepError`] for the first thing that can't be.
    pub fn from_toml(text: &str) -> Result<Self, SweepError> {
        let read: Text = toml::from_str(text)
            .map_err(|error| SweepError::Syntax { reason: error.to_string().trim().to_owned() })?;
        let mut base = BTreeMap::new();
        flatten(String::new(), read.base, &mut base);
        let mut written: Vec<(usize, String, Value)> = Vec::new();
        for (key, value) in read.axes {
            let at = value.span().start;
            for (key, value) in branches(key, value.into_inner()) {
                written.push((at, key, value));
            }
        }
        written.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let mut axes = Vec::new();
        for (at, key, value) in written {
            let line = text[..at].matches('\n').count() + 1;
            if base.contains_key(&key) {
                return Err(SweepError::Twice { key, line });
            }
            let axis = Axis::read(value).map_err(|problem| SweepError::Axis {
                key: key.clone(),
                line,
                problem,
            })?;
            axes.push((key, axis));
        }
        let mut run = read.run;
        run.sort_unstable();
        run.dedup();
        let sweep = Self { run, base, axes, sample: read.sample };
        match sweep.count() {
            0 => Err(SweepError::Empty),
            count if count > JOBS_MAX => Err(SweepError::Jobs { count }),
            _ => Ok(sweep),
        }
    }

    /// How many jobs there are.
    pub fn count(&self) -> u64 {
        if self.run.is_empty() || (self.axes.is_empty() && self.base.is_empty()) {
            return 0;
        }
        match self.sample {
            Some(sample) => sample.count.into(),
            None => self.axes.iter().fold(1, |n, (_, axis)| n.saturating_mul(axis.steps())),
        }
    }

    /// A job, from 0.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn job(&self, index: u64) -> Job {
        assert!(index < self.count(), "job {index} of {}", self.count());
        let mut keys = self.base.clone();
        let mut left = index;
        for (dimension, (key, axis)) in self.axes.iter().enumerate().rev() {
            let value = match self.sample {
                None => {
                    let step = left % axis.steps();
                    left /= axis.steps();
                    axis.value(step)
                }
                Some(sample) => axis.between(sample.point(index as u32, dimension as u32)),
            };
            keys.insert(key.clone(), value);
        }
        Job { run: self.run.clone(), keys }
    }
}

impl Sample {
    /// A coordinate of a point, from 0 up to but not including 1. It depends on nothing but seed, point and dimension.
    fn point(self, index: u32, dimension: u32) -> f64 {
        match self.method {
            Method::Random => {
                let mut random = Random::new(u64::from(self.seed));
                let stream = random.bits() ^ (u64::from(index) << 32 | u64::from(dimension));
                let mut random = Random::new(Random::new(stream).bits());
                random.below(1 << 53) as f64 / (1u64 << 53) as f64
            }
            Method::Sobol => f64::from(sobol_burley::sample(
                index % SOBOL_POINTS,
                dimension % SOBOL_DIMENSIONS,
                self.seed,
            )),
        }
    }
}

/// As many as the sequence has.
const SOBOL_POINTS: u32 = 1 << 16;
const SOBOL_DIMENSIONS: u32 = 256;

/// Tables within tables as keys with points between: `[base.simulated.flash]` is `simulated.flash.*`.
fn flatten(prefix: String, table: BTreeMap<String, Value>, into: &mut BTreeMap<String, Value>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => flatten(key, inner.into_iter().collect(), into),
            value => {
                into.insert(key, value);
            }
        }
    }
}

/// The axes under a key: a table that is none itself has axes in it.
fn branches(key: String, value: Value) -> Vec<(String, Value)> {
    match value {
        Value::Table(inner) if !inner.contains_key("from") => {
            let deeper = |(name, value)| branches(format!("{key}.{name}"), value);
            inner.into_iter().flat_map(deeper).collect()
        }
        value => vec![(key, value)],
    }
}
