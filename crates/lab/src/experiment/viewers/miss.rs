//! Why the first block came too late: the drive, its queue, heat, the ingest, failures, or this machine.

use std::fmt;

use base::units::counted;
use base::{Duration, Rate};
use load::Verb;
use load::interval::Miss;
use load::measurement::{Line, Measurement};
use serde::{Deserialize, Serialize};

use crate::lab::Step;

/// Samples of a drive's sensors this near to the miss belong to it.
const NEAR_NS: u64 = 5_000_000_000;

/// SMART critical warning: the temperature is beyond a threshold (NVMe Base Specification, bit 1).
const WARNING_TEMPERATURE: u8 = 1 << 1;

/// A drive that moves this share of what it moves at best is as busy as it can be.
const BUSY_SHARE: f64 = 0.9;

/// What made a block late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissCause {
    /// The drive was as busy as it can be: blocks queued behind each other.
    Busy,
    /// The drive took long for a few blocks although it was not busy.
    DriveSlow,
    /// The block waited for its turn, behind the same viewer's block before or for room at the drive.
    Waited,
    /// The drive limited itself because of heat.
    Heat,
    /// Commands failed.
    Failures,
    /// The ingest beside the viewers didn't get its rate.
    IngestStarved,
    /// This machine started commands late.
    Harness,
}

impl fmt::Display for MissCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the drive was as busy as it can be, and blocks queued behind each other",
            Self::DriveSlow => "the drive took long for a few blocks though it was not busy",
            Self::Waited => "the block waited for its turn",
            Self::Heat => "the drive limited itself because of heat",
            Self::Failures => "commands failed",
            Self::IngestStarved => "the ingest beside the viewers didn't get its rate",
            Self::Harness => "this machine started commands late",
        })
    }
}

/// The first failure of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstMiss {
    /// How many viewers there were, on all drives together.
    pub viewers: u64,
    /// When the late block was intended, in nanoseconds of the trial; None if no single block says.
    pub at_ns: Option<u64>,
    /// How long it waited for its turn, in nanoseconds.
    pub waited_ns: u64,
    /// How long the drive took, in nanoseconds.
    pub service_ns: u64,
    /// The likely cause.
    pub cause: MissCause,
    /// What speaks for it.
    pub evidence: String,
}

/// What a trial was like, as far as its failure is judged by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// Viewers on all drives together.
    pub viewers: u64,
    /// A block later than this is late.
    pub deadline: Duration,
    /// What all drives read together at best, in bytes a second.
    pub ceiling: f64,
    /// What all viewers read together, in bytes a second.
    pub asked: f64,
    /// What the ingest reached and should have, in bytes a second, if it fell short.
    pub starved: Option<(f64, f64)>,
}

/// Judges a trial that didn't hold.
pub(super) fn judge(step: &Step, about: Circumstances) -> FirstMiss {
    let measurement = &step.measurement;
    let Some(miss) = measurement.first_miss else {
        let (cause, evidence) = without_a_miss(measurement, about);
        return FirstMiss {
            viewers: about.viewers,
            at_ns: None,
            waited_ns: 0,
            service_ns: 0,
            cause,
            evidence,
        };
    };
    let (cause, evidence) = of_a_miss(step, &miss, about);
    FirstMiss {
        viewers: about.viewers,
        at_ns: Some(miss.intended_ns),
        waited_ns: miss.waited_ns,
        service_ns: miss.service_ns,
        cause,
        evidence,
    }
}

/// Why a block was late, and what speaks for it. Heat and this machine come first: either makes a drive look busy or slow.
fn of_a_miss(step: &Step, miss: &Miss, about: Circumstances) -> (MissCause, String) {
    let measurement = &step.measurement;
    let response_ns = miss.waited_ns + miss.service_ns;
    let late_ns = response_ns.saturating_sub(about.deadline.as_nanos());
    let reaped_ns = miss.intended_ns + response_ns;
    let time = Duration::from_nanos;
    let hot = step.samples.iter().find(|(drive, sample)| {
        let warned = sample.critical_warning.is_some_and(|w| w & WARNING_TEMPERATURE != 0);
        *drive == miss.drive
            && (sample.throttled == Some(true) || warned)
            && sample.at_ns.abs_diff(reaped_ns) <= NEAR_NS
    });
    let lag_ns = measurement.harness.lag.max_ns.unwrap_or(0);
    let (moved, median_ns) = around(measurement, reaped_ns);
    if let Some((drive, sample)) = hot {
        let celsius = sample
            .temperature_celsius
            .map_or_else(String::new, |celsius| format!(", {celsius:.0} degrees Celsius"));
        (MissCause::Heat, format!("drive {drive} said so at {}{celsius}", time(sample.at_ns)))
    } else if let Some(why) = &measurement.harness.limited {
        (MissCause::Harness, why.clone())
    } else if lag_ns > 0 && lag_ns >= late_ns && lag_ns >= response_ns / 2 {
        let evidence =
            format!("a command was started {} later than it could have been", time(lag_ns));
        (MissCause::Harness, evidence)
    } else if median_ns > about.deadline.as_nanos() / 2 || moved >= BUSY_SHARE * about.ceiling {
        let evidence = format!(
            "meanwhile {} were moved, of {} at best, and half of the blocks took longer than {}",
            Rate(moved),
            Rate(about.ceiling),
            time(median_ns)
        );
        (MissCause::Busy, evidence)
    } else if miss.waited_ns > miss.service_ns {
        let evidence =
            format!("it waited {} and then took {}", time(miss.waited_ns), time(miss.service_ns));
        (MissCause::Waited, evidence)
    } else {
        let evidence = format!(
            "it took {} while half of the blocks took no longer than {}",
            time(miss.service_ns),
            time(median_ns)
        );
        (MissCause::DriveSlow, evidence)
    }
}

/// A trial can fail without a late block: commands failed, the ingest starved, or blocks were never started.
fn without_a_miss(measurement: &Measurement, about: Circumstances) -> (MissCause, String) {
    let failed = measurement.error_count();
    if failed > 0 {
        return (MissCause::Failures, format!("{} failed", counted(failed, "command")));
    }
    if let Some((reached, asked)) = about.starved {
        return (
            MissCause::IngestStarved,
            format!("it wrote {} of {}", Rate(reached), Rate(asked)),
        );
    }
    if measurement.unsent > about.viewers {
        return (MissCause::Waited, format!("{} blocks were never started", measurement.unsent));
    }
    (MissCause::Busy, at_the_limit(about))
}

/// How what the viewers ask for compares with what can be read.
fn at_the_limit(about: Circumstances) -> String {
    let (asked, ceiling) = (Rate(about.asked).to_string(), Rate(about.ceiling).to_string());
    if asked == ceiling {
        format!("the viewers ask for {asked}, which is the limit of what can be read")
    } else if about.asked > about.ceiling {
        format!("the viewers ask for {asked} and at most {ceiling} can be read, so a queue grows")
    } else {
        format!("the viewers ask for {asked} of the {ceiling} that can be read at most")
    }
}

/// What all streams moved in the interval of an instant, in bytes a second, and the median response of its reads in
/// nanoseconds.
fn around(measurement: &Measurement, at_ns: u64) -> (f64, u64) {
    let holds = |line: &&Line| line.start_ns <= at_ns && at_ns <= line.start_ns + line.length_ns;
    // At an edge two intervals hold the instant, and what was reaped then belongs to the earlier.
    let Some(start_ns) = measurement.series.iter().find(holds).map(|line| line.start_ns) else {
        return (0.0, 0);
    };
    let lines = || measurement.series.iter().filter(|line| line.start_ns == start_ns);
    let bytes: u64 = lines().map(|line| line.bytes).sum();
    let length_ns = lines().map(|line| line.length_ns).max().unwrap_or(0);
    let reads = lines().filter(|line| line.operation == Verb::Read);
    let median_ns = reads.map(|line| line.p50_ns).max().unwrap_or(0);
    (Rate::of(bytes, Duration::from_nanos(length_ns)).0, median_ns)
}
