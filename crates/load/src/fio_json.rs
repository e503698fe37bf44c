//! What fio measured, read as a measurement of ours: from `--output-format=json`, or better `json+`, which keeps whole
//! histograms.
//!
//! fio's stamps differ from ours. Its `clat` begins when submission has returned, so it misses what a drive does until
//! then; it is taken as service time. Its `lat` begins when fio starts a command and is taken as response time; in a
//! closed loop this is what our service time covers. fio never counts from an intended start.

mod document;
pub(crate) mod options;
mod spread;

use std::collections::BTreeMap;

use base::Latencies;

pub use self::document::FioError;
use self::document::{Node, last_document};
use self::options::{Measured, Options};
use self::spread::Spread;
use crate::interval::Verb;
use crate::measurement::{Harness, LatencySummary, Measurement, StreamResult};
use crate::workload::{Stop, Stream, Workload};

/// The error number that fio uses for data that failed its verification (EILSEQ).
const ERROR_VERIFY: i32 = 84;

/// A processor share of a fio thread from which on it may be what limits, as for our own threads.
const BUSY_MAX: f64 = 0.95;

/// What fio measured.
#[derive(Clone, Debug, PartialEq)]
pub struct FioRun {
    /// The measurement. Its workload is what fio's options tell, with the values of [`Stream::default`] elsewhere.
    pub measurement: Measurement,
    /// Whole sets of latencies by stream and operation, where the output has histograms (json+).
    pub latencies: BTreeMap<(u16, Verb), FioLatencies>,
}

/// Latencies of one stream and operation, from fio's histograms: each value is the middle of one of fio's bins, which
/// are 1.6 % wide.
#[derive(Clone, Debug, PartialEq)]
pub struct FioLatencies {
    /// `clat`.
    pub service: Option<Latencies>,
    /// `lat`.
    pub response: Option<Latencies>,
}

/// Reads fio's JSON as a measurement.
///
/// Jobs of one name are one stream. Where several jobs were reported apart and without histograms, their percentiles
/// can't be joined and are not known. Of several documents (`--status-interval`) the last whole one counts. Text
/// before, between and behind them is skipped.
///
/// # Errors
/// What is missing, and what to do about it.
pub fn read(text: &str) -> Result<Measurement, FioError> {
    read_run(text).map(|run| run.measurement)
}

/// [`read`], with the latencies whole for drawing curves.
///
/// # Errors
/// As [`read`].
pub fn read_run(text: &str) -> Result<FioRun, FioError> {
    let document = last_document(text)?;
    let root = Node::root(&document);
    let version = root.get("fio version")?.str()?;
    let global = root.opt("global options");
    let mut jobs = Vec::new();
    for job in root.get("jobs")?.array()? {
        jobs.push(Job::read(&job, global.as_ref())?);
    }
    if jobs.is_empty() {
        return Err(FioError::missing("jobs[0]"));
    }
    Ok(Joined::of(&jobs).run(&jobs, version, &root))
}

/// One entry of fio's list of jobs.
#[derive(Debug)]
struct Job {
    name: String,
    options: Options,
    verbs: [Done; 3],
    /// The first error's number; 0 for none.
    error: i32,
    errors: u64,
    /// All threads' time together, in milliseconds.
    thread_ms: u64,
    /// Of that time, in percent.
    user_percent: f64,
    system_percent: f64,
    elapsed_s: u64,
    started_ms: Option<u64>,
}

/// What was done of one operation.
#[derive(Clone, Debug, Default)]
struct Done {
    bytes: u64,
    /// Commands, failed ones included.
    commands: u64,
    runtime_ms: u64,
    service: Spread,
    response: Spread,
}

impl Job {
    fn read(job: &Node<'_>, global: Option<&Node<'_>>) -> Result<Self, FioError> {
        let mut verbs = <[Done; 3]>::default();
        for verb in Verb::ALL {
            let part = job.get(&verb.to_string())?;
            verbs[verb.index()] = Done {
                bytes: part.get("io_bytes")?.u64()?,
                commands: part.get("total_ios")?.u64()?,
                runtime_ms: part.get("runtime")?.u64()?,
                service: Spread::read(&part.get("clat_ns")?)?,
                response: Spread::read(&part.get("lat_ns")?)?,
            };
        }
        let number = |name: &str| job.opt(name).map_or(Ok(0), |node| node.u64());
        let error = job.get("error")?.u64()?;
        Ok(Self {
            name: job.get("jobname")?.str()?.to_owned(),
            options: Options::read(global, job.opt("job options").as_ref()),
            verbs,
            error: i32::try_from(error).unwrap_or(i32::MAX),
            errors: number("total_err")?.max(u64::from(error != 0)),
            thread_ms: number("job_runtime")?,
            user_percent: job.get("usr_cpu")?.f64()?,
            system_percent: job.get("sys_cpu")?.f64()?,
            elapsed_s: number("elapsed")?,
            started_ms: job.opt("job_start").and_then(|start| start.u64().ok()),
        })
    }

    fn longest_ms(&self) -> u64 {
        self.verbs.iter().map(|done| done.runtime_ms).max().unwrap_or(0)
    }

    /// Threads behind this entry: one, or as many as were reported as a group.
    fn threads(&self) -> u32 {
        let longest = self.longest_ms();
        let by_time =
            if longest == 0 { 1.0 } else { (self.thread_ms as f64 / longest as f64).round() };
        if self.options.grouped() { (by_time as u32).max(self.options.jobs()) } else { 1 }
    }

    /// The operation that an error is counted with: fio does not say which it was.
    fn failing_verb(&self) -> Verb {
        let failed = |verb: &&Verb| {
            let done = &self.verbs[verb.index()];
            done.commands > done.response.count.max(done.service.count)
        };
        let busy = |verb: &&Verb| self.verbs[verb.index()].commands > 0;
        Verb::ALL
            .iter()
            .find(failed)
            .or_else(|| Verb::ALL.iter().find(busy))
            .copied()
            .unwrap_or_else(|| {
                let measured = Measured::default();
                if self.options.stream("", &measured).write > 0 { Verb::Write } else { Verb::Read }
            })
    }
}

/// Jobs joined by name, in order of appearance.
#[derive(Debug)]
struct Joined<'a> {
    streams: Vec<(&'a str, Vec<&'a Job>)>,
}

impl<'a> Joined<'a> {
    fn of(jobs: &'a [Job]) -> Self {
        let mut streams: Vec<(&str, Vec<&Job>)> = Vec::new();
        for job in jobs {
            match streams.iter_mut().find(|(name, _)| *name == job.name) {
                Some((_, same)) => same.push(job),
                None => streams.push((&job.name, vec![job])),
            }
        }
        Self { streams }
    }

    fn run(&self, jobs: &[Job], version: &str, root: &Node<'_>) -> FioRun {
        let mut results = Vec::new();
        let mut latencies = BTreeMap::new();
        for (index, (name, same)) in self.streams.iter().enumerate() {
            for verb in Verb::ALL {
                let (result, whole) = result(name, verb, same);
                if result.count > 0 || !result.errors.is_empty() {
                    results.push(result);
                    if whole.service.is_some() || whole.response.is_some() {
                        latencies.insert((index as u16, verb), whole);
                    }
                }
            }
        }
        let given_up = jobs
            .iter()
            .filter(|job| job.error != 0)
            .map(|job| (job.name.clone(), error_text(job.error)))
            .collect();
        let mut drives: Vec<String> = Vec::new();
        for file in jobs.iter().flat_map(|job| job.options.files()) {
            if !drives.contains(&file) {
                drives.push(file);
            }
        }
        let longest_ms = jobs.iter().map(Job::longest_ms).max().unwrap_or(0);
        let commands = results.iter().map(|r: &StreamResult| r.count).sum();
        let measurement = Measurement {
            instrument: version.replacen("fio-", "fio ", 1),
            workload: self.workload(jobs, &drives),
            drives,
            started_ns: started_ns(jobs, root),
            elapsed_ns: longest_ms.saturating_mul(1_000_000),
            results,
            series: Vec::new(),
            unsent: 0,
            first_miss: None,
            harness: harness(jobs, commands),
            verification: None,
            given_up,
        };
        FioRun { measurement, latencies }
    }

    fn workload(&self, jobs: &[Job], drives: &[String]) -> Workload {
        let options = &jobs[0].options;
        let mut streams: Vec<Stream> =
            self.streams.iter().map(|(name, same)| stream(name, same, drives)).collect();
        if streams.iter().all(|stream| stream.drives.len() == drives.len()) {
            streams.iter_mut().for_each(|stream| stream.drives.clear());
        }
        Workload {
            name: "fio".to_owned(),
            seed: options.seed().unwrap_or(1),
            interval: crate::quantity::Time(base::Duration::from_secs(1)),
            warm_up: options.time("ramp_time").unwrap_or_default(),
            stop: Stop {
                time: options.time("runtime").filter(|time| time.0 > base::Duration::ZERO),
                bytes: self.bytes_asked(),
                steady: None,
            },
            streams,
        }
    }

    /// Bytes of all jobs, where each job's are told and so is the number of jobs.
    fn bytes_asked(&self) -> Option<crate::quantity::Size> {
        let mut sum = 0;
        for job in self.streams.iter().flat_map(|(_, same)| same) {
            let each = job.options.size("io_size")?;
            let jobs = if job.options.grouped() { job.options.jobs() } else { 1 };
            // A group over several files has more jobs than its last section tells.
            if job.options.grouped() && job.threads() > jobs {
                return None;
            }
            sum += each * u64::from(jobs);
        }
        Some(crate::quantity::Size(sum)).filter(|size| size.0 > 0)
    }
}

fn stream(name: &str, same: &[&Job], drives: &[String]) -> Stream {
    let options = &same[0].options;
    let mut measured = Measured::default();
    let mut files: Vec<u16> = Vec::new();
    for job in same {
        for verb in Verb::ALL {
            measured.commands[verb.index()] += job.verbs[verb.index()].commands;
            measured.bytes += job.verbs[verb.index()].bytes;
        }
        for file in job.options.files() {
            let place = drives.iter().position(|drive| *drive == file).unwrap_or(0) as u16;
            if !files.contains(&place) {
                files.push(place);
            }
        }
    }
    let mut stream = options.stream(name, &measured);
    if !options.grouped() {
        stream.jobs = (same.len() / files.len().max(1)).max(1) as u32;
    }
    files.sort_unstable();
    Stream { drives: files, ..stream }
}

fn result(name: &str, verb: Verb, same: &[&Job]) -> (StreamResult, FioLatencies) {
    let mut joined = Done::default();
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for job in same {
        let done = &job.verbs[verb.index()];
        joined.bytes += done.bytes;
        joined.commands += done.commands;
        joined.runtime_ms = joined.runtime_ms.max(done.runtime_ms);
        joined.service.add(&done.service);
        joined.response.add(&done.response);
        if job.errors > 0 && job.failing_verb() == verb {
            let text = if job.error == 0 {
                "an error that fio does not name".to_owned()
            } else {
                error_text(job.error)
            };
            *errors.entry(text).or_default() += job.errors;
        }
    }
    let stamped = joined.response.count.max(joined.service.count);
    let failed: u64 = errors.values().sum();
    // Failed commands have no latency; without latencies (disable_lat and the like) they are subtracted.
    let count = if stamped > 0 { stamped } else { joined.commands.saturating_sub(failed) };
    let seconds = joined.runtime_ms as f64 / 1e3;
    let a_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let result = StreamResult {
        stream: name.to_owned(),
        operation: verb,
        count,
        bytes: joined.bytes,
        bytes_per_s: a_second(joined.bytes),
        commands_per_s: a_second(count),
        errors,
        missed: 0,
        delayed: 0,
        service: joined.service.summary(),
        response: joined.response.summary(),
    };
    let whole = FioLatencies {
        service: joined.service.into_latencies(),
        response: joined.response.into_latencies(),
    };
    (result, whole)
}

fn error_text(number: i32) -> String {
    if number == ERROR_VERIFY {
        "fio's verification found wrong bytes".to_owned()
    } else {
        std::io::Error::from_raw_os_error(number).to_string()
    }
}

/// When the run began: told by fio since 3.36, and before to the second by its end and its length.
fn started_ns(jobs: &[Job], root: &Node<'_>) -> Option<u64> {
    let told = jobs.iter().filter_map(|job| job.started_ms).min();
    let computed = || {
        let end_ms = root.opt("timestamp_ms")?.u64().ok()?;
        let elapsed_s = jobs.iter().map(|job| job.elapsed_s).max()?;
        end_ms.checked_sub(elapsed_s.saturating_mul(1000))
    };
    told.or_else(computed)?.checked_mul(1_000_000)
}

fn harness(jobs: &[Job], commands: u64) -> Harness {
    let sum = |percent: fn(&Job) -> f64| {
        jobs.iter().map(|job| job.thread_ms as f64 * 1e6 * percent(job) / 100.0).sum::<f64>()
    };
    let (user_ns, system_ns) = (sum(|job| job.user_percent), sum(|job| job.system_percent));
    let busiest =
        jobs.iter().map(|job| (job.user_percent + job.system_percent) / 100.0).fold(0.0, f64::max);
    Harness {
        threads: jobs.iter().map(Job::threads).sum(),
        user_ns: Some(user_ns as u64),
        system_ns: Some(system_ns as u64),
        cpu_ns_per_command: (commands > 0).then(|| (user_ns + system_ns) / commands as f64),
        lag: LatencySummary::default(),
        limited: (busiest > BUSY_MAX).then(|| {
            format!(
                "fio's threads were busy for {:.0} % of the time: give it more jobs",
                busiest * 100.0
            )
        }),
    }
}
