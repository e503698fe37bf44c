//! A fio job file read as a workload. Nothing is left out in silence: an option that can't be done is a problem with its
//! line and a remedy, and one that changes nothing here is named in a note.
//!
//! A file that [`job`](super::job) wrote holds the workload itself in comments. They count as long as the rest of the file
//! is what that workload prints; after a change only the options do.

mod ini;
mod known;
mod section;

use std::collections::BTreeSet;
use std::fmt;

use base::Duration;

use self::known::{ONLY, TRANSLATED, WITHOUT_EFFECT};
use self::section::Job;
use super::exact;
use crate::quantity::{Size, Time};
use crate::workload::{Stop, Stream, Workload};

/// Where fio sends commands for a simulated drive; see `place`.
const NO_DRIVE: &str = "/nonexistent/drive";

/// Intervals for a warm-up that is not whole seconds, longest first.
const INTERVALS_MS: [u64; 5] = [1000, 500, 100, 10, 1];

/// A workload and what there is to know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadJob {
    /// What the file asks for.
    pub workload: Workload,
    /// What Longtake does differently, and the options that change nothing.
    pub notes: Vec<String>,
}

/// What can't be done, and how to change it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line in the file, from 1.
    pub line: usize,
    /// What it is, and what to do.
    pub text: String,
}

impl Problem {
    fn new(line: usize, text: String) -> Self {
        Self { line, text }
    }
}

/// Everything in a file that can't be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    /// The file's name, for messages.
    pub file: String,
    /// In order of lines.
    pub problems: Vec<Problem>,
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} can't be run as it is:", self.file)?;
        for Problem { line, text } in &self.problems {
            write!(f, "\n{}:{line}: {text}", self.file)?;
        }
        f.write_str("\nTo use these options unchanged, run the file with fio and import the result with `longtake measure import`.")
    }
}

impl std::error::Error for JobFileError {}

/// What was found while reading.
#[derive(Debug, Default)]
struct Found {
    problems: Vec<Problem>,
    notes: Vec<String>,
}

impl Found {
    fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|note| note == text) {
            self.notes.push(text.to_owned());
        }
    }
}

/// Reads the job file `file` for the drives `targets`. `filename` in it only confirms a target.
///
/// # Errors
/// Everything that can't be done.
pub fn read(text: &str, file: &str, targets: &[String]) -> Result<ReadJob, JobFileError> {
    let mut found = Found::default();
    if let Some((workload, written_for)) = exact::workload(text) {
        if written_for == targets {
            return Ok(ReadJob { workload, notes: Vec::new() });
        }
        found.note(&format!(
            "Longtake wrote this file for {}: for other targets only fio's options count, which can't say everything (deadlines, for example)",
            written_for.join(" ")
        ));
    }
    let sections = ini::sections(text, &mut found.problems);
    if sections.is_empty() {
        found.problems.push(Problem::new(1, "no job: add a section such as [job]".to_owned()));
    }
    let mut unused = BTreeSet::new();
    let mut read =
        Whole { workload: empty(file), seed: None, bytes: Vec::new(), timed: Vec::new() };
    for (index, section) in sections.iter().enumerate() {
        let mut job = Job { section, found: &mut found };
        options(&mut job, &mut unused);
        read.add(&mut job, index, targets);
    }
    if sections.iter().any(|section| section.entries.contains_key("percentile_list")) {
        found.note("Longtake prints percentiles of its own choice");
    }
    if !unused.is_empty() {
        let names: Vec<&str> = unused.into_iter().collect();
        found.note(&format!("these options change nothing here: {}", names.join(", ")));
    }
    found.problems.sort();
    found.problems.dedup();
    if found.problems.is_empty() {
        return Ok(ReadJob { workload: read.workload, notes: found.notes });
    }
    Err(JobFileError { file: file.to_owned(), problems: found.problems })
}

fn empty(file: &str) -> Workload {
    let name = file.rsplit('/').next().unwrap_or(file);
    Workload {
        name: name.strip_suffix(".fio").unwrap_or(name).to_owned(),
        seed: 1,
        interval: Time(Duration::from_secs(1)),
        warm_up: Time::default(),
        stop: Stop::default(),
        streams: Vec::new(),
    }
}

/// Looks at each option's name: translated, without effect, possible with some values, or impossible.
fn options<'s>(job: &mut Job<'s, '_>, unused: &mut BTreeSet<&'s str>) {
    for (name, entry) in &job.section.entries {
        let name = name.as_str();
        if WITHOUT_EFFECT.contains(&name) {
            unused.insert(name);
        } else if let Some((_, values, remedy)) = ONLY.iter().find(|(only, ..)| *only == name) {
            if values.contains(&entry.value.as_str()) {
                unused.insert(name);
            } else {
                job.cannot(name, remedy);
            }
        } else if !TRANSLATED.contains(&name) {
            job.cannot(name, "Longtake has no such option; remove the line");
        }
    }
}

/// What all sections share, as they are read one after the other.
struct Whole {
    workload: Workload,
    /// The seed that a section set.
    seed: Option<u64>,
    /// Bytes after which all copies of each section end, if they do.
    bytes: Vec<Option<u64>>,
    /// Each section's time.
    timed: Vec<(Option<Time>, Time)>,
}

impl Whole {
    fn add(&mut self, job: &mut Job<'_, '_>, index: usize, targets: &[String]) {
        if index > 0 && job.on("stonewall") {
            job.cannot(
                "stonewall",
                "all streams of a workload run together; write a file for each job",
            );
        }
        let drives = drives(job, targets);
        let copies = if drives.is_empty() { targets.len() } else { drives.len() } as u64;
        let stream = job.stream(drives);
        self.ends(job, &stream, copies);
        let seed = job.get("randseed").map(|seed| seed.parse::<u64>());
        match seed {
            Some(Ok(seed)) if self.seed.replace(seed).is_some_and(|other| other != seed) => {
                job.cannot("randseed", "all jobs of a workload share one seed; set it in [global]");
            }
            Some(Ok(seed)) => self.workload.seed = seed,
            Some(Err(_)) => job.cannot("randseed", "not a whole number"),
            None => {}
        }
        self.workload.streams.push(stream);
    }

    /// When it ends: a workload has one end for all streams.
    fn ends(&mut self, job: &mut Job<'_, '_>, stream: &Stream, copies: u64) {
        let time = job.time("runtime").filter(|time| *time > Duration::ZERO).map(Time);
        let ramp = job.ramp();
        let timed = job.on("time_based");
        let length = match job.get("io_size").is_some() {
            true => job.size("io_size"),
            // The size as it stands, for each job.
            false if job.get("size").is_some_and(|size| !size.ends_with('%')) => job.size("size"),
            false => None,
        };
        let bytes =
            if timed { None } else { length.map(|bytes| bytes * u64::from(stream.jobs) * copies) };
        if timed && time.is_none() {
            job.cannot("time_based", "add runtime");
        } else if !timed && bytes.is_none() {
            let name = if time.is_some() { "runtime" } else { "size" };
            job.cannot(name, "the job ends after the whole drive, whose size is not known here; add time_based=1 with runtime, or size in bytes");
        }
        let differs = self.timed.first().is_some_and(|first| *first != (time, ramp));
        let several = !self.bytes.is_empty() && (bytes.is_some() || self.bytes[0].is_some());
        if differs || several {
            let name = if job.get("runtime").is_some() { "runtime" } else { "size" };
            job.cannot(name, "all jobs of a workload end together; set time_based=1 and the same runtime and ramp_time for all, or write a file for each");
        }
        self.timed.push((time, ramp));
        self.bytes.push(bytes);
        self.workload.stop = Stop { time, bytes: bytes.map(Size), steady: None };
        self.workload.warm_up = ramp;
        let whole = |ms: &u64| ramp.0.as_nanos().is_multiple_of(ms * 1_000_000);
        match INTERVALS_MS.into_iter().find(whole) {
            Some(ms) => self.workload.interval = Time(Duration::from_millis(ms)),
            None => job.cannot("ramp_time", "must be whole milliseconds"),
        }
    }
}

/// The section's drive, by its place among the targets; none for all of them.
fn drives(job: &mut Job<'_, '_>, targets: &[String]) -> Vec<u16> {
    let Some(name) = job.get("filename").map(|name| name.replace("\\:", "\0")) else {
        return Vec::new();
    };
    if name == NO_DRIVE {
        return Vec::new();
    }
    if name.contains(':') {
        job.cannot("filename", "a job runs on one drive; write a job for each");
        return Vec::new();
    }
    let name = name.replace('\0', ":");
    let plain = |path: &str| path.strip_prefix("./").unwrap_or(path).to_owned();
    match targets.iter().position(|target| plain(target) == plain(&name)) {
        Some(_) if targets.len() == 1 => Vec::new(),
        Some(index) => vec![index as u16],
        None => {
            let given = targets.join(" ");
            job.cannot(
                "filename",
                &format!("not one of the targets of this command ({given}); name it as TARGET, or remove the line"),
            );
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
