//! A measurement: what came of a workload, in figures that stand alone. Intervals are added as they close; only a short line
//! of each is kept.

use std::collections::BTreeMap;

use base::{Duration, Latencies, Rate};
use serde::{Deserialize, Serialize};

use crate::interval::{Interval, Miss, Verb};
use crate::verify::Verification;
use crate::workload::Workload;

/// Percentiles that every summary has a place for.
pub const PERCENTILES: [f64; 10] = [1.0, 5.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999];

/// A processor that our threads keep busier than this share of the time may be what limits them.
const BUSY_MAX: f64 = 0.95;

/// Commands may start this share of the median service time late (99 % of them) before the harness counts as the limit.
const LAG_SHARE_MAX: f64 = 0.25;

/// Lateness that no measurement on a general-purpose kernel is free of.
const LAG_FLOOR_NS: f64 = 50_000.0;

/// What came of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Who measured: `longtake`, or `fio` for what was read in.
    pub instrument: String,
    /// What was asked.
    pub workload: Workload,
    /// What it was asked of, by place in the bank.
    pub drives: Vec<String>,
    /// When it began, UTC nanoseconds since 1970; None on a simulated bank.
    pub started_ns: Option<u64>,
    /// Time measured in nanoseconds, warm-up not counted.
    pub elapsed_ns: u64,
    /// What each stream did, warm-up not counted.
    pub results: Vec<StreamResult>,
    /// One line for each interval, stream and operation, warm-up included.
    pub series: Vec<Line>,
    /// Open-loop commands that were never started before the end.
    pub unsent: u64,
    /// The first missed deadline.
    pub first_miss: Option<Miss>,
    /// What it cost, and whether the harness was the limit.
    pub harness: Harness,
    /// What `content = "verify"` found.
    pub verification: Option<Verification>,
    /// Streams that gave up on a drive that kept failing, with its last error.
    pub given_up: Vec<(String, String)>,
}

/// What one stream's commands of one kind came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    /// The stream's name.
    pub stream: String,
    /// Its operation.
    pub operation: Verb,
    /// Commands that succeeded.
    pub count: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Commands a second.
    pub commands_per_s: f64,
    /// Commands that failed, by what the drive said.
    pub errors: BTreeMap<String, u64>,
    /// Answers after the deadline.
    pub missed: u64,
    /// Commands that had to wait for their turn.
    pub delayed: u64,
    /// Submission to reaping.
    pub service: LatencySummary,
    /// Intended start to reaping.
    pub response: LatencySummary,
}

/// Latencies in a few figures, in nanoseconds. None is "not known": too few samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of them.
    pub count: u64,
    /// Exact mean.
    pub mean_ns: Option<f64>,
    /// Standard deviation.
    pub deviation_ns: Option<f64>,
    /// Exactly the shortest.
    pub min_ns: Option<u64>,
    /// Exactly the longest.
    pub max_ns: Option<u64>,
    /// Percentile and value.
    pub percentiles: Vec<(f64, Option<u64>)>,
}

/// One interval of one stream and operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Nanoseconds from the run's start to the interval's.
    pub start_ns: u64,
    /// The interval's length in nanoseconds.
    pub length_ns: u64,
    /// The stream, by place in the workload.
    pub stream: u16,
    /// The operation.
    pub operation: Verb,
    /// Commands that succeeded.
    pub count: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Answers after the deadline.
    pub missed: u64,
    /// Mean response in nanoseconds.
    pub mean_ns: f64,
    /// Median response; of an interval alone, so without the rule of enough samples.
    pub p50_ns: u64,
    /// 99 % response, likewise.
    pub p99_ns: u64,
    /// Longest response, exactly.
    pub max_ns: u64,
}

/// What measuring cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Harness {
    /// Engines, each with a thread and a ring.
    pub threads: u32,
    /// Processor time of those threads in user mode, in nanoseconds; None on a simulated bank.
    pub user_ns: Option<u64>,
    /// The same in the kernel.
    pub system_ns: Option<u64>,
    /// Processor time for each command, in nanoseconds.
    pub cpu_ns_per_command: Option<f64>,
    /// How much later than it could have the loop started commands whose turn had come (open loop).
    pub lag: LatencySummary,
    /// Why the harness, not the drive, may have been the limit.
    pub limited: Option<String>,
}

/// Processor time that threads used, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Of the busiest thread, both together.
    pub busiest_ns: u64,
}

impl LatencySummary {
    /// Of a set of latencies.
    pub fn of(latencies: &Latencies) -> Self {
        Self {
            count: latencies.count(),
            mean_ns: latencies.mean_ns(),
            deviation_ns: latencies.deviation_ns(),
            min_ns: latencies.min().map(Duration::as_nanos),
            max_ns: latencies.max().map(Duration::as_nanos),
            percentiles: PERCENTILES
                .map(|p| (p, latencies.percentile(p).map(Duration::as_nanos)))
                .to_vec(),
        }
    }

    /// A percentile in nanoseconds, if it is known.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.percentiles
            .iter()
            .find(|(p, _)| (p - percent).abs() < 1e-9)
            .and_then(|(_, value)| *value)
    }
}

impl Measurement {
    /// Bytes a second of all streams together, trims not counted.
    pub fn rate(&self) -> Rate {
        Rate(self.results.iter().filter(|r| r.operation != Verb::Trim).map(|r| r.bytes_per_s).sum())
    }

    /// Commands a second of all streams together.
    pub fn commands_per_s(&self) -> f64 {
        self.results.iter().map(|r| r.commands_per_s).sum()
    }

    /// One stream's result.
    pub fn result(&self, stream: &str, operation: Verb) -> Option<&StreamResult> {
        self.results.iter().find(|r| r.stream == stream && r.operation == operation)
    }

    /// Commands that failed.
    pub fn error_count(&self) -> u64 {
        self.results.iter().flat_map(|r| r.errors.values()).sum()
    }
}

/// Puts a measurement together from intervals as they close.
#[derive(Debug)]
pub struct Collector {
    workload: Workload,
    elapsed: Duration,
    /// From the run's start to the end of the last interval, warm-up included.
    whole: Duration,
    totals: BTreeMap<(u16, Verb), crate::StreamInterval>,
    series: Vec<Line>,
    lag: Latencies,
    first_miss: Option<Miss>,
    unsent: u64,
}

impl Collector {
    /// For a workload.
    pub fn new(workload: &Workload) -> Self {
        Self {
            workload: workload.clone(),
            elapsed: Duration::ZERO,
            whole: Duration::ZERO,
            totals: BTreeMap::new(),
            series: Vec::new(),
            lag: Latencies::default(),
            first_miss: None,
            unsent: 0,
        }
    }

    /// Adds an interval that is whole: of all engines together.
    pub fn add(&mut self, interval: &Interval) {
        for (&(stream, operation), counted) in &interval.streams {
            let response = &counted.response;
            self.series.push(Line {
                start_ns: interval.start.as_nanos(),
                length_ns: interval.length.as_nanos(),
                stream,
                operation,
                count: counted.count(),
                bytes: counted.bytes,
                errors: counted.error_count(),
                missed: counted.missed,
                mean_ns: response.mean_ns().unwrap_or(0.0),
                p50_ns: response.at(50.0).as_nanos(),
                p99_ns: response.at(99.0).as_nanos(),
                max_ns: response.max().map_or(0, Duration::as_nanos),
            });
        }
        self.unsent += interval.unsent;
        self.whole = self.whole.max(interval.start + interval.length);
        if interval.warm_up {
            return;
        }
        self.elapsed = self.elapsed + interval.length;
        self.lag.add(&interval.lag);
        self.first_miss = self.first_miss.or(interval.first_miss);
        for (key, counted) in &interval.streams {
            self.totals.entry(*key).or_default().add(counted);
        }
    }

    /// The lines so far.
    pub fn series(&self) -> &[Line] {
        &self.series
    }

    /// All that was measured, with the latencies of each stream and operation for whoever wants them whole.
    pub fn totals(&self) -> &BTreeMap<(u16, Verb), crate::StreamInterval> {
        &self.totals
    }

    /// The measurement. `cpu` is what the engines' threads used over the whole run.
    pub fn finish(
        self,
        drives: Vec<String>,
        threads: u32,
        cpu: Option<ProcessorTime>,
        verification: Option<Verification>,
        given_up: Vec<(String, String)>,
    ) -> Measurement {
        let seconds = self.elapsed.as_secs_f64();
        let a_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let results: Vec<StreamResult> = self
            .totals
            .iter()
            .map(|(&(stream, operation), total)| StreamResult {
                stream: self.workload.streams[usize::from(stream)].name.clone(),
                operation,
                count: total.count(),
                bytes: total.bytes,
                bytes_per_s: a_second(total.bytes),
                commands_per_s: a_second(total.count()),
                errors: total.errors.clone(),
                missed: total.missed,
                delayed: total.delayed,
                service: LatencySummary::of(&total.service),
                response: LatencySummary::of(&total.response),
            })
            .collect();
        let harness = self.harness(threads, cpu);
        Measurement {
            instrument: "longtake".to_owned(),
            workload: self.workload,
            drives,
            started_ns: None,
            elapsed_ns: self.elapsed.as_nanos(),
            results,
            series: self.series,
            unsent: self.unsent,
            first_miss: self.first_miss,
            harness,
            verification,
            given_up,
        }
    }

    fn harness(&self, threads: u32, cpu: Option<ProcessorTime>) -> Harness {
        let commands: u64 = self.series.iter().map(|line| line.count + line.errors).sum();
        let wall_ns = self.whole.as_nanos();
        let service = self.totals.values().filter_map(|t| t.service.percentile(50.0)).min();
        let late = self.lag.percentile(99.0).map(Duration::as_nanos);
        let mut limited = None;
        if let Some(cpu) = cpu
            && wall_ns > 0
            && cpu.busiest_ns as f64 > BUSY_MAX * wall_ns as f64
        {
            limited = Some(format!(
                "a thread of the load engine was busy for {:.0} % of the time: give it more threads, or polled drives their due",
                100.0 * cpu.busiest_ns as f64 / wall_ns as f64
            ));
        } else if let (Some(late), Some(service)) = (late, service)
            && late as f64 > (LAG_SHARE_MAX * service.as_nanos() as f64).max(LAG_FLOOR_NS)
        {
            limited = Some(format!(
                "1 % of the commands were started more than {} late by this machine, not by the drive",
                Duration::from_nanos(late)
            ));
        }
        Harness {
            threads,
            user_ns: cpu.map(|cpu| cpu.user_ns),
            system_ns: cpu.map(|cpu| cpu.system_ns),
            cpu_ns_per_command: cpu
                .filter(|_| commands > 0)
                .map(|cpu| (cpu.user_ns + cpu.system_ns) as f64 / commands as f64),
            lag: LatencySummary::of(&self.lag),
            limited,
        }
    }
}
