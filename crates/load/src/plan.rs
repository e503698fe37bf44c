//! A plan: a workload fitted to a bank. Every job knows its drive and its region, and nothing can go wrong any more
//! that could have been known before.

use std::fmt;

use base::{ByteSize, DriveId, Duration, Geometry};

use crate::verify::UNITS_MAX;
use crate::workload::{Arrival, Content, DEPTH_MAX, Stream, Workload};

/// One copy of a stream on one drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its stream, by place in the workload.
    pub stream: u16,
    /// Its drive.
    pub drive: DriveId,
    /// Where its region begins on the drive, in bytes.
    pub from: u64,
    /// How long its region is, in bytes.
    pub bytes: u64,
    /// Which of the stream's jobs on this drive, from 0.
    pub number: u32,
    /// How many those are.
    pub of: u32,
}

/// Jobs that one engine runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The workload they come from.
    pub workload: Workload,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// How many jobs there are in all engines together.
    pub jobs_total: usize,
}

/// Why a workload can't run on a bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// Nothing would ever stop it.
    Endless,
    /// It has no streams.
    Empty,
    /// A length of time that makes no sense.
    Time {
        /// Name of the field.
        field: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// A stream asks for what can't be.
    Stream {
        /// The stream's name.
        stream: String,
        /// Name of the field.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endless => f.write_str("the workload never stops: give it a time, a number of bytes, or a steady state to reach"),
            Self::Empty => f.write_str("the workload has no streams: give it at least one [[stream]]"),
            Self::Time { field, must } => write!(f, "the workload's {field} must be {must}"),
            Self::Stream { stream, field, problem } => write!(f, "stream {stream}, {field}: {problem}"),
        }
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Fits `workload` to the drives.
    ///
    /// # Errors
    /// [`PlanError`] for the first thing that can't be.
    pub fn new(workload: &Workload, drives: &[Geometry]) -> Result<Self, PlanError> {
        let stop = &workload.stop;
        if stop.time.is_none() && stop.bytes.is_none() && stop.steady.is_none() {
            return Err(PlanError::Endless);
        }
        if workload.streams.is_empty() || workload.streams.len() > usize::from(u16::MAX) {
            return Err(PlanError::Empty);
        }
        let interval = workload.interval.0;
        if interval < Duration::from_millis(1) {
            return Err(PlanError::Time { field: "interval", must: "1ms or longer" });
        }
        if !workload.warm_up.0.as_nanos().is_multiple_of(interval.as_nanos()) {
            return Err(PlanError::Time { field: "warm_up", must: "a whole number of intervals" });
        }
        let mut jobs = Vec::new();
        for (index, stream) in workload.streams.iter().enumerate() {
            let added = trace_is_whole(stream)
                .and_then(|()| add_jobs(index as u16, stream, drives, &mut jobs));
            added.map_err(|(field, problem)| PlanError::Stream {
                stream: stream.name.clone(),
                field,
                problem,
            })?;
        }
        verified_regions_are_apart(workload, &jobs)?;
        Ok(Self { workload: workload.clone(), jobs_total: jobs.len(), jobs })
    }

    /// The same jobs for several engines. Jobs of one priority share engines; the others are dealt out in turn.
    pub fn split(self, engines: usize) -> Vec<Self> {
        let mut parts: Vec<(Option<_>, Vec<Job>)> = Vec::new();
        let priority = |job: &Job| self.workload.streams[usize::from(job.stream)].priority;
        let mut priorities: Vec<_> = self.jobs.iter().map(priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        for wanted in priorities {
            let jobs: Vec<&Job> = self.jobs.iter().filter(|job| priority(job) == wanted).collect();
            let count = engines.clamp(1, jobs.len());
            let first = parts.len();
            parts.extend((0..count).map(|_| (wanted, Vec::new())));
            for (index, job) in jobs.into_iter().enumerate() {
                parts[first + index % count].1.push(job.clone());
            }
        }
        let part =
            |jobs| Self { workload: self.workload.clone(), jobs, jobs_total: self.jobs_total };
        parts.into_iter().map(|(_, jobs)| part(jobs)).collect()
    }

    /// The stream of a job.
    pub fn stream(&self, job: &Job) -> &Stream {
        &self.workload.streams[usize::from(job.stream)]
    }

    /// Commands under way at the same time, at most: as many buffers are needed.
    pub fn depth(&self) -> u32 {
        self.jobs.iter().map(|job| self.stream(job).depth).sum()
    }

    /// The same on the busiest drive.
    pub fn depth_of_one_drive(&self) -> u32 {
        let of = |drive| {
            self.jobs
                .iter()
                .filter(|job| job.drive == drive)
                .map(|job| self.stream(job).depth)
                .sum()
        };
        self.jobs.iter().map(|job| of(job.drive)).max().unwrap_or(1)
    }

    /// Bytes that each buffer needs; trims need none.
    pub fn buffer_bytes(&self) -> u32 {
        let streams = self.jobs.iter().map(|job| self.stream(job));
        let moving = streams.filter(|stream| stream.read > 0 || stream.write > 0);
        moving.map(|stream| stream.block.longest()).max().unwrap_or(512) as u32
    }

    /// Bytes that these jobs ask for before they stop, if the workload says so: their share of all.
    pub fn stop_bytes(&self) -> Option<u64> {
        let all = self.workload.stop.bytes?.0;
        Some((u128::from(all) * self.jobs.len() as u128 / self.jobs_total.max(1) as u128) as u64)
    }
}

type Problem = (&'static str, String);

/// Files of workloads describe a trace, and don't hold its requests.
fn trace_is_whole(stream: &Stream) -> Result<(), Problem> {
    if stream.trace.as_ref().is_none_or(|trace| trace.requests().is_some()) {
        return Ok(());
    }
    let why =
        "a workload does not hold the requests of a trace: replay it (longtake measure replay)";
    Err(("trace", why.to_owned()))
}

/// Whether a stream asks for something, wherever it does so.
fn sensible(stream: &Stream) -> Result<(), Problem> {
    let problem = |field, text: String| Err((field, text));
    if stream.read == 0 && stream.write == 0 && stream.trim == 0 {
        return problem("read, write, trim", "all are 0: give at least one a weight".to_owned());
    }
    if stream.depth == 0 || stream.depth > DEPTH_MAX {
        return problem("depth", format!("{} is not between 1 and {DEPTH_MAX}", stream.depth));
    }
    if stream.jobs == 0 || stream.jobs > 10_000 {
        return problem("jobs", format!("{} is not between 1 and 10000", stream.jobs));
    }
    if stream.rate.is_none() && stream.arrival != Arrival::Constant {
        return problem("arrival", format!("{} needs a rate", stream.arrival));
    }
    if let Some(every) = stream.flush
        && (stream.write == 0 || every.0 == Duration::ZERO)
    {
        return problem("flush", "give a time above 0, and write a weight".to_owned());
    }
    if stream.fua && stream.write == 0 {
        return problem("fua", "the stream writes nothing: give write a weight".to_owned());
    }
    Ok(())
}

fn add_jobs(
    index: u16,
    stream: &Stream,
    drives: &[Geometry],
    jobs: &mut Vec<Job>,
) -> Result<(), Problem> {
    let problem = |field, text: String| Err((field, text));
    sensible(stream)?;
    let all: Vec<u16> = (0..drives.len() as u16).collect();
    let chosen = if stream.drives.is_empty() { &all } else { &stream.drives };
    for &drive in chosen {
        let Some(geometry) = drives.get(usize::from(drive)) else {
            return problem(
                "drives",
                format!(
                    "there is no drive {drive}: the bank has {}, numbered from 0",
                    drives.len()
                ),
            );
        };
        let (from, bytes) = region(stream, geometry)?;
        if stream.changes() && !geometry.writable {
            return problem("write", format!("{} is open for reading only", geometry.name));
        }
        if stream.trim > 0 {
            let Some(unit) = geometry.trim_unit_bytes.map(u64::from) else {
                return problem("trim", format!("{} can't trim", geometry.name));
            };
            let blocks = stream.block.0.iter().map(|(size, _)| size.0);
            if !from.is_multiple_of(unit)
                || !stream.align_bytes().is_multiple_of(unit)
                || !blocks.clone().all(|b| b.is_multiple_of(unit))
            {
                return problem(
                    "trim",
                    format!(
                        "{} trims in units of {unit} bytes: region, alignment and blocks must be multiples",
                        geometry.name
                    ),
                );
            }
        }
        for number in 0..stream.jobs {
            jobs.push(job(index, stream, DriveId(drive), (from, bytes), number)?);
        }
    }
    Ok(())
}

/// A job's own place. Those that verify must not overwrite each other.
fn job(
    index: u16,
    stream: &Stream,
    drive: DriveId,
    (from, bytes): (u64, u64),
    number: u32,
) -> Result<Job, Problem> {
    let mut job = Job { stream: index, drive, from, bytes, number, of: stream.jobs };
    if stream.content == Content::Verify {
        let unit = stream.align_bytes();
        let share = bytes / u64::from(stream.jobs) / unit * unit;
        job = Job { from: from + share * u64::from(number), bytes: share, number: 0, of: 1, ..job };
        if share < stream.block.longest() {
            return Err((
                "jobs",
                format!(
                    "{} jobs that verify need a place of their own each, and the region has only {}",
                    stream.jobs,
                    ByteSize(bytes)
                ),
            ));
        }
        if share / unit > UNITS_MAX {
            return Err((
                "content",
                format!(
                    "verifying remembers the last write of each {unit} bytes, and {} are too many of them: give a smaller region or longer blocks",
                    ByteSize(share)
                ),
            ));
        }
    }
    Ok(job)
}

/// The region's start and length on a drive, in bytes.
fn region(stream: &Stream, geometry: &Geometry) -> Result<(u64, u64), Problem> {
    let unit = u64::from(geometry.block_bytes);
    let multiple = |field, value: u64| {
        if value.is_multiple_of(unit) && (field == "from" || value > 0) {
            Ok(value)
        } else {
            Err((
                field,
                format!(
                    "{value} is not a multiple of the {unit} bytes that {} is addressed in",
                    geometry.name
                ),
            ))
        }
    };
    for (size, _) in &stream.block.0 {
        multiple("block", size.0)?;
        let moves = stream.read > 0 || stream.write > 0;
        if moves && size.0 > u64::from(geometry.transfer_max_bytes) {
            return Err((
                "block",
                format!(
                    "{size} is more than the {} that {} takes at once",
                    ByteSize(geometry.transfer_max_bytes.into()),
                    geometry.name
                ),
            ));
        }
    }
    let align = multiple("align", stream.align_bytes())?;
    let from = multiple("from", stream.from.map_or(0, |size| size.0))?;
    let rest = geometry.capacity_bytes.saturating_sub(from);
    let bytes = stream.size.map_or(rest, |size| size.0);
    if bytes > rest {
        return Err((
            "size",
            format!("{} has only {} from {} on", geometry.name, ByteSize(rest), ByteSize(from)),
        ));
    }
    let bytes = bytes / align * align;
    if bytes < stream.block.longest() {
        return Err((
            "size",
            format!(
                "a region of {} has no room for a block of {}",
                ByteSize(bytes),
                ByteSize(stream.block.longest())
            ),
        ));
    }
    Ok((from, bytes))
}

/// Nobody else may write where a job verifies.
fn verified_regions_are_apart(workload: &Workload, jobs: &[Job]) -> Result<(), PlanError> {
    let stream = |job: &Job| &workload.streams[usize::from(job.stream)];
    let verifies = |job: &&Job| stream(job).content == Content::Verify;
    for verified in jobs.iter().filter(verifies) {
        let other = jobs.iter().find(|job| {
            job.stream != verified.stream
                && job.drive == verified.drive
                && stream(job).changes()
                && job.from < verified.from + verified.bytes
                && verified.from < job.from + job.bytes
        });
        if let Some(other) = other {
            return Err(PlanError::Stream {
                stream: stream(verified).name.clone(),
                field: "content",
                problem: format!(
                    "stream {} writes where this one verifies: give them separate regions",
                    stream(other).name
                ),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Bank;
    use base::memory::{MemoryBank, MemoryDrive};

    fn drives() -> Vec<Geometry> {
        let small = MemoryDrive {
            capacity_bytes: 1 << 20,
            trim_unit_bytes: None,
            writable: false,
            ..Default::default()
        };
        MemoryBank::without_data(vec![MemoryDrive::default(), small]).drives().to_vec()
    }

    fn plan(stream: &str) -> Result<Plan, PlanError> {
        let text = format!("stop = {{ time = '1s' }}\n[[stream]]\nname = 'it'\n{stream}");
        Plan::new(&Workload::from_toml(&text).unwrap(), &drives())
    }

    #[test]
    fn every_mistake_is_named_with_its_stream_and_field() {
        for (stream, field, expected) in [
            ("", "read, write, trim", "weight"),
            ("read = 1\nflush = '1s'", "flush", "a weight"),
            ("write = 1\nflush = '0s'", "flush", "above 0"),
            ("read = 1\ndrives = [2]", "drives", "numbered from 0"),
            ("write = 1", "write", "reading only"),
            ("trim = 1\ndrives = [0]\nblock = '2KiB'", "block", "multiple"),
            ("read = 1\nblock = '2MiB'", "size", "no room"),
            ("read = 1\nsize = '2MiB'", "size", "has only"),
            ("read = 1\ndepth = 0", "depth", "between"),
            ("read = 1\narrival = 'poisson'", "arrival", "needs a rate"),
            ("read = 1\nblock = '32MiB'\ndrives = [0]", "block", "at once"),
            (
                "read = 1\nwrite = 1\ndrives = [0]\njobs = 5000\nblock = '1MiB'\ncontent = 'verify'",
                "jobs",
                "own",
            ),
        ] {
            let error = plan(stream).unwrap_err();
            let PlanError::Stream { stream: name, field: found, .. } = &error else {
                panic!("{error}")
            };
            assert_eq!((name.as_str(), *found), ("it", field), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        let endless = Workload::from_toml("[[stream]]\nread = 1").unwrap();
        assert_eq!(Plan::new(&endless, &drives()), Err(PlanError::Endless));
    }

    #[test]
    fn jobs_are_dealt_out_and_priorities_kept_apart() {
        let text = "stop = { time = '1s', bytes = '1000KiB' }\n[[stream]]\nread = 1\njobs = 3\n[[stream]]\nread = 1\ndrives = [0]\npriority = 'idle'";
        let plan = Plan::new(&Workload::from_toml(text).unwrap(), &drives()).unwrap();
        assert_eq!((plan.jobs.len(), plan.depth(), plan.depth_of_one_drive()), (7, 7, 4));
        let parts = plan.split(2);
        let sizes: Vec<usize> = parts.iter().map(|part| part.jobs.len()).collect();
        assert_eq!(sizes, [3, 3, 1]);
        assert_eq!(parts[2].jobs[0].stream, 1);
        assert_eq!(parts[0].stop_bytes(), Some(1000 * 1024 * 3 / 7));
    }

    #[test]
    fn jobs_that_verify_have_places_of_their_own() {
        let plan =
            plan("write = 1\ndrives = [0]\njobs = 4\nsize = '64MiB'\ncontent = 'verify'").unwrap();
        let places: Vec<(u64, u64)> =
            plan.jobs.iter().map(|job| (job.from >> 20, job.bytes >> 20)).collect();
        assert_eq!(places, [(0, 16), (16, 16), (32, 16), (48, 16)]);
        let text = "stop = { time = '1s' }\n[[stream]]\nname = 'a'\nwrite = 1\ndrives = [0]\ncontent = 'verify'\n[[stream]]\nname = 'b'\nwrite = 1\ndrives = [0]";
        let error = Plan::new(&Workload::from_toml(text).unwrap(), &drives()).unwrap_err();
        assert!(error.to_string().contains("stream b writes where this one verifies"), "{error}");
    }
}
