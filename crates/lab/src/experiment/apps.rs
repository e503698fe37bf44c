//! `apps`: streaming applications, each as a workload with its own criterion of success. Their demands are absolute figures with a
//! source, so a drive that is too slow for an application fails it. Alternatively they are shares of the drives' own rates, which are
//! measured first, so that the demands suit every drive.

mod application;
mod demands;

use base::{Duration, Geometry, Rate};
use load::Verb;
use load::measurement::LatencySummary;
use serde::{Deserialize, Serialize};

pub use application::{Application, Success};
pub use demands::{Demand, Demands, DemandsError};

use super::Scope;
use super::preparation::Preparation;
use super::trouble::{iops, latency, remarks, troubles};
use crate::answer::{Answer, Figure, Unit};
use crate::cost::Cost;
use crate::finding::{Finding, FindingKind, Quantity};
use crate::lab::{Lab, LabError, Step};
use application::{Maker, Part};

const NAME: &str = "apps";

/// A stream keeps its rate if it reaches this share of it.
const KEPT: f64 = 0.95;

/// The experiment's options.
#[derive(Clone, Debug, PartialEq)]
pub struct Apps {
    /// Where, and how long each application is measured.
    pub scope: Scope,
    /// Which applications.
    pub applications: Vec<Application>,
    /// What applications ask in absolute figures; None for shares of what the drives do alone, up to three quarters of it.
    pub demands: Option<Demands>,
    /// Every rate is multiplied by this.
    pub load: f64,
    /// Write the region once before, so that reads find something.
    pub prepare: bool,
}

impl Default for Apps {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            applications: Application::ALL.to_vec(),
            demands: Some(Demands::own()),
            load: 1.0,
            prepare: true,
        }
    }
}

/// What the drives do alone, all together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Sequential reads of 1 MiB, in bytes a second.
    pub read_bytes_per_s: f64,
    /// Sequential writes of 1 MiB, in bytes a second.
    pub write_bytes_per_s: f64,
    /// Random commands of 4 KiB, 70 % of them reads, a second.
    pub random_iops: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppsResult {
    /// The drives' names.
    pub drives: Vec<String>,
    /// What all rates were multiplied by.
    pub load: f64,
    /// What was done before.
    pub preparation: Preparation,
    /// What the drives do alone.
    pub ceilings: Ceilings,
    /// The applications, in the order asked for.
    pub applications: Vec<ApplicationResult>,
    /// What went wrong.
    pub notes: Vec<String>,
}

/// One application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplicationResult {
    /// The application.
    pub application: Application,
    /// Whether every stream was content.
    pub content: bool,
    /// Its streams.
    pub streams: Vec<StreamVerdict>,
    /// The harness may have been the limit.
    pub harness_limited: bool,
}

/// One stream of an application. All figures are of all drives together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamVerdict {
    /// Its name.
    pub name: String,
    /// When it is content.
    pub success: Success,
    /// Whether it was.
    pub content: bool,
    /// What it asked for, in bytes a second; None for as much as it gets.
    pub asked_bytes_per_s: Option<f64>,
    /// Where that figure comes from, if it is absolute and no share of what the drives do alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it got, in bytes a second; for trims what was given up.
    pub bytes_per_s: f64,
    /// Commands a second.
    pub iops: f64,
    /// Answers.
    pub count: u64,
    /// Late ones among them.
    pub late: u64,
    /// Failed commands.
    pub errors: u64,
    /// A later answer is late, in nanoseconds.
    pub deadline_ns: Option<u64>,
    /// Response of its reads, if it has any.
    pub read: Option<LatencySummary>,
    /// Response of its writes, if it has any.
    pub write: Option<LatencySummary>,
}

impl Apps {
    /// What it costs, at most where writes are concerned, for drives that do what the scope guesses.
    pub fn cost(&self, drives: &[Geometry]) -> Cost {
        let scope = self.scope.fitted(drives);
        let mut cost =
            if self.prepare { Preparation::cost(&scope, drives) } else { Cost::default() };
        let guess = Ceilings {
            read_bytes_per_s: scope.read_guess.0,
            write_bytes_per_s: scope.write_guess.0,
            random_iops: scope.read_guess.0 / 4096.0,
        };
        let asks = (self.load, self.demands.as_ref());
        let Some(maker) = Maker::new(&scope, drives, &guess, asks) else { return cost };
        cost = cost.and(scope.points_cost(1, 0.0, 1.0)).and(scope.points_cost(2, 1.0, 0.5));
        for &application in &self.applications {
            let mut written = 0.0;
            for Part { stream, asked, .. } in maker.parts(application) {
                let share =
                    f64::from(stream.write) / f64::from((stream.read + stream.write).max(1));
                written += asked.unwrap_or(scope.write_guess.0) * share;
                if stream.write > 0 {
                    let under_way = u64::from(stream.depth * stream.jobs) * stream.block.longest();
                    cost.written_bytes += under_way * drives.len() as u64;
                }
            }
            cost = cost.and(scope.points_cost(1, written / scope.write_guess.0, 1.0));
        }
        cost
    }

    /// Measures what the drives do alone, then every application.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn run(&self, lab: &mut Lab<'_>) -> Result<AppsResult, LabError> {
        let drives = lab.drives().to_vec();
        let scope = self.scope.fitted(&drives);
        self.suits(&drives)?;
        let maker = |ceilings: &Ceilings| {
            Maker::new(&scope, &drives, ceilings, (self.load, self.demands.as_ref()))
                .ok_or_else(|| unsuitable("the region has no room: give a larger one".to_owned()))
        };
        let blank = maker(&Ceilings::default())?;
        let all: Vec<u16> = (0..drives.len() as u16).collect();
        let preparation = if self.prepare {
            Preparation::make(lab, &scope, NAME, &all)?
        } else {
            Preparation::left_out(lab)?
        };
        let mut notes = Vec::new();
        let ceilings = ceilings(lab, &scope, &blank, &mut notes)?;
        let maker = maker(&ceilings)?;
        if !maker.trims() && self.applications.contains(&Application::ContentDelivery) {
            notes.push(
                "Cold content was not trimmed, because a drive can't or the region is small: new content overwrites it."
                    .to_owned(),
            );
        }
        let mut applications = Vec::new();
        for &application in &self.applications {
            let parts = maker.parts(application);
            let streams = parts.iter().map(|part| part.stream.clone()).collect();
            let name = application.name();
            let step = lab.point(NAME, name, &scope.point(name, streams))?;
            notes.extend(troubles(&application.to_string(), &step));
            applications.push(judge(application, &parts, &step, drives.len()));
        }
        let result = AppsResult {
            drives: drives.iter().map(|drive| drive.name.clone()).collect(),
            load: self.load,
            preparation,
            ceilings,
            applications,
            notes,
        };
        lab.keep(NAME, &result)?;
        Ok(result)
    }

    /// Whether the applications can run on these drives.
    fn suits(&self, drives: &[Geometry]) -> Result<(), LabError> {
        if let Some(drive) = drives.iter().find(|drive| !drive.writable) {
            return Err(unsuitable(format!(
                "{} is open for reading only, and every application writes: open it for writing",
                drive.name
            )));
        }
        if !(self.load > 0.0 && self.load.is_finite()) {
            return Err(unsuitable(format!(
                "a load of {} asks for nothing: give 1 or so",
                self.load
            )));
        }
        Ok(())
    }
}

fn unsuitable(reason: String) -> LabError {
    LabError::Unsuitable { experiment: NAME, reason }
}

/// What the drives do alone.
fn ceilings(
    lab: &mut Lab<'_>,
    scope: &Scope,
    maker: &Maker,
    notes: &mut Vec<String>,
) -> Result<Ceilings, LabError> {
    let mut alone = Vec::new();
    for (name, stream) in maker.calibrations() {
        let step = lab.point(NAME, name, &scope.point(name, vec![stream]))?;
        notes.extend(troubles(name, &step));
        alone.push(step);
    }
    let rate = |index: usize| alone[index].measurement.rate().0;
    let ceilings = Ceilings {
        read_bytes_per_s: rate(0),
        write_bytes_per_s: rate(1),
        random_iops: alone[2].measurement.commands_per_s(),
    };
    if rate(0) > 0.0 && rate(1) > 0.0 && ceilings.random_iops > 0.0 {
        return Ok(ceilings);
    }
    let remedy =
        if notes.is_empty() { "give each point more time".to_owned() } else { notes.join(" ") };
    Err(unsuitable(format!("the drives did nothing when measured alone ({remedy})")))
}

fn judge(
    application: Application,
    parts: &[Part],
    step: &Step,
    drives: usize,
) -> ApplicationResult {
    let streams: Vec<StreamVerdict> =
        parts.iter().map(|part| verdict(part, step, drives)).collect();
    ApplicationResult {
        application,
        content: streams.iter().all(|stream| stream.content),
        streams,
        harness_limited: step.measurement.harness.limited.is_some(),
    }
}

fn verdict(part: &Part, step: &Step, drives: usize) -> StreamVerdict {
    let measurement = &step.measurement;
    let stream = &part.stream;
    let results = || measurement.results.iter().filter(|result| result.stream == stream.name);
    let summary =
        |verb| measurement.result(&stream.name, verb).map(|result| result.response.clone());
    let mut verdict = StreamVerdict {
        name: stream.name.clone(),
        success: part.success,
        content: false,
        asked_bytes_per_s: part.asked,
        source: part.source.clone(),
        bytes_per_s: results().map(|result| result.bytes_per_s).sum(),
        iops: results().map(|result| result.commands_per_s).sum(),
        count: results().map(|result| result.count).sum(),
        late: results().map(|result| result.missed).sum(),
        errors: results().flat_map(|result| result.errors.values()).sum(),
        deadline_ns: stream.deadline.map(|deadline| deadline.0.as_nanos()),
        read: summary(Verb::Read),
        write: summary(Verb::Write),
    };
    // What is under way at the end is not missing.
    let under_way = f64::from(stream.depth * stream.jobs) * drives as f64 * stream.block.mean();
    let seconds = Duration::from_nanos(measurement.elapsed_ns).as_secs_f64();
    let slack = if seconds > 0.0 { under_way / seconds } else { 0.0 };
    let reaches = |rate: f64| verdict.bytes_per_s + slack >= rate;
    let kept = part.asked.is_none_or(|asked| reaches(KEPT * asked));
    let good = match part.success {
        Success::NoneLate => kept && verdict.late == 0,
        Success::LateAtMost { percent } => {
            verdict.late as f64 <= verdict.count as f64 * percent / 100.0
        }
        Success::KeepsRate => kept,
        Success::RateAtLeast { bytes_per_s } => reaches(bytes_per_s),
    };
    verdict.content = good && verdict.count > 0 && verdict.errors == 0;
    verdict
}

impl StreamVerdict {
    /// What it wanted and what it got.
    fn in_words(&self) -> String {
        let name = &self.name;
        let asked = self.asked_bytes_per_s.map_or_else(String::new, |r| format!(" of {}", Rate(r)));
        let got = Rate(self.bytes_per_s);
        let deadline = latency(self.deadline_ns);
        if self.count == 0 {
            return format!("{name} got nothing{asked}");
        }
        match self.success {
            Success::NoneLate | Success::LateAtMost { .. } => {
                let slowest = [&self.read, &self.write]
                    .into_iter()
                    .filter_map(|summary| summary.as_ref()?.max_ns)
                    .max();
                let allowed = match self.success {
                    Success::LateAtMost { percent } => format!("{percent} %"),
                    _ => "none".to_owned(),
                };
                format!(
                    "{name} got {got}{asked} ({} commands a second), {:.3} % of them later than {deadline} ({allowed} allowed), the slowest after {}",
                    iops(self.iops),
                    100.0 * self.late as f64 / self.count as f64,
                    latency(slowest)
                )
            }
            Success::KeepsRate => format!("{name} got {got}{asked}"),
            Success::RateAtLeast { bytes_per_s } => {
                format!("{name} got {got} (at least {} required)", Rate(bytes_per_s))
            }
        }
    }
}

impl Answer for AppsResult {
    fn question(&self) -> &'static str {
        "Does it serve the applications that streaming drives are bought for?"
    }

    fn findings(&self) -> Vec<Finding> {
        let streams = || self.applications.iter().flat_map(|a| &a.streams);
        let asks = if streams().any(|stream| stream.source.is_some()) {
            "each application asks for what it needs, and every figure has a source"
        } else {
            "each application asks for shares of that"
        };
        let ceilings = &self.ceilings;
        let times = if self.load == 1.0 { String::new() } else { format!(", times {}", self.load) };
        let sentence = format!(
            "Alone it reads {{0}} and writes {{1}} in sequence, and does {{2}} random commands of 4 KiB a second; {asks}{times}."
        );
        let random = Quantity::new(ceilings.random_iops, Unit::CommandsPerSecond);
        let alone = vec![
            Quantity::rate(ceilings.read_bytes_per_s).named("apps.ceiling.read"),
            Quantity::rate(ceilings.write_bytes_per_s).named("apps.ceiling.write"),
            random.named("apps.ceiling.random"),
        ];
        let mut said = vec![Finding::new("apps.ceiling", FindingKind::States, alone, &sentence)];
        for result in &self.applications {
            let verdict = if result.content { "served well" } else { "not served well" };
            let limited = if result.harness_limited {
                "; this machine may have been the limit, not the drive"
            } else {
                ""
            };
            let (good, bad): (Vec<_>, Vec<_>) = result.streams.iter().partition(|s| s.content);
            let served = good.len();
            let words = |streams: Vec<&StreamVerdict>| {
                streams.iter().map(|stream| stream.in_words()).collect::<Vec<_>>().join("; ")
            };
            let mut line =
                format!("{} ({}): {verdict}.", result.application, result.application.stands_for());
            if !bad.is_empty() {
                line += &format!(" Short of what they need: {}{limited}.", words(bad));
            }
            if !good.is_empty() {
                line += &format!(" Content: {}.", words(good));
            }
            let name = format!("apps.{}", result.application.name());
            let content = f64::from(u8::from(result.content));
            let content = Quantity::of(&format!("{name}.content"), content, Unit::Count);
            // It is served if every stream of it is.
            let kind = if result.content { FindingKind::Meets } else { FindingKind::FallsShort };
            let streams = |count: usize| Quantity::new(count as f64, Unit::Count);
            let quantities = vec![streams(served), streams(result.streams.len()), content];
            said.push(Finding::new(&name, kind, quantities, &line));
        }
        said.extend(
            self.preparation
                .findings("first what the drives do alone, then one application after the other"),
        );
        said.extend(remarks(&self.notes));
        said
    }

    fn figures(&self) -> Vec<Figure> {
        let ceilings = &self.ceilings;
        let rate = Unit::BytesPerSecond;
        let mut figures = vec![
            Figure::new(
                "apps.ceiling.read",
                "Sequential reads alone",
                ceilings.read_bytes_per_s,
                rate,
            ),
            Figure::new(
                "apps.ceiling.write",
                "Sequential writes alone",
                ceilings.write_bytes_per_s,
                rate,
            ),
            Figure::new(
                "apps.ceiling.random",
                "Random commands alone",
                ceilings.random_iops,
                Unit::CommandsPerSecond,
            ),
        ];
        for result in &self.applications {
            let name = format!("apps.{}", result.application.name());
            let content = f64::from(u8::from(result.content));
            let label = format!("{}: served well", result.application);
            figures.push(Figure::new(&format!("{name}.content"), &label, content, Unit::Count));
            for stream in &result.streams {
                let name = format!("{name}.{}", stream.name);
                let label = format!("{}, {}", result.application, stream.name);
                let got = format!("{label}: rate");
                figures.push(Figure::new(&format!("{name}.rate"), &got, stream.bytes_per_s, rate));
                if stream.deadline_ns.is_some() {
                    let share = (stream.count > 0)
                        .then(|| 100.0 * stream.late as f64 / stream.count as f64);
                    let late = format!("{label}: late answers");
                    figures.push(Figure::new(&format!("{name}.late"), &late, share, Unit::Percent));
                }
                for (verb, summary) in [("read", &stream.read), ("write", &stream.write)] {
                    let Some(summary) = summary else { continue };
                    figures.push(Figure::new(
                        &format!("{name}.{verb}.p99"),
                        &format!("{label}: 99 % of the {verb}s within"),
                        summary.percentile(99.0).map(|ns| ns as f64),
                        Unit::Nanoseconds,
                    ));
                }
            }
        }
        figures
    }
}

#[cfg(test)]
mod tests;
