//! A workload as a fio job file, so that another instrument can do the same and anyone can compare. What fio can't say
//! stands in the file as a comment, at the place where it would belong: `; not expressible in fio: ...`.
//!
//! Written for fio 3.33 and later. The file never creates the drives it names (`allow_file_create=0`), so a mistyped
//! device does not become a file that fills memory.

mod exact;
mod place;
mod rate;
pub mod read;

use std::fmt::{Display, Write};

use base::Duration;

use crate::measurement::PERCENTILES;
use crate::workload::{Blocks, Content, Pattern, Priority, Steady, Stream, Workload};

/// Block lengths that fio's `bssplit` takes (BSSPLIT_MAX in its thread_options.h).
const BLOCKS_MAX: usize = 64;

/// Largest weight of fio's `flow`.
const FLOW_MAX: u64 = 1000;

/// Largest seed that fio parses.
const SEED_MAX: u64 = i64::MAX as u64;

/// Longest comment in bytes; fio reads lines of less than 4096.
const COMMENT_MAX: usize = 1000;

/// The job file that does what `workload` does, on `targets` by their place in the bank.
///
/// Each stream is a reporting group of its own, with a section for each of its drives and `numjobs` for its jobs. Trims
/// beside reads and writes get a section of their own in the same group.
///
/// Comments at the end hold the workload itself, from which [`read::read`] restores it.
pub fn job(workload: &Workload, targets: &[String]) -> String {
    job_without_comments(workload, targets) + &exact::comment(workload, targets)
}

/// The same without the workload in comments.
fn job_without_comments(workload: &Workload, targets: &[String]) -> String {
    let mut file = JobFile::default();
    file.note(&format!("{}, for fio 3.33 or later", workload.name));
    file.note("Files must exist at their full size. Devices are written to without asking!");
    file.global(workload);
    let jobs_total = workload
        .streams
        .iter()
        .map(|stream| drives(stream, targets).len() as u64 * u64::from(stream.jobs))
        .sum();
    for (index, stream) in workload.streams.iter().enumerate() {
        file.stream(workload, index, targets, jobs_total);
        let absent = stream.drives.iter().filter(|drive| usize::from(**drive) >= targets.len());
        for drive in absent {
            file.cannot(&format!("drive {drive} of stream {}: it has no target", stream.name));
        }
    }
    if jobs_total == 0 {
        file.cannot("a job without a drive: give at least one target");
    }
    file.text
}

/// A stream's drives, by place in the bank, as far as they have targets.
fn drives(stream: &Stream, targets: &[String]) -> Vec<usize> {
    if stream.drives.is_empty() {
        return (0..targets.len()).collect();
    }
    stream.drives.iter().map(|drive| usize::from(*drive)).filter(|d| *d < targets.len()).collect()
}

/// Which commands of a stream a section stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Verbs {
    read: u32,
    write: u32,
    trim: u32,
    /// Weight of all the stream's commands, those of its other section included.
    total: u64,
}

impl Verbs {
    /// The sections of a stream. The one that reads and writes comes last: fio reports the options of the last.
    fn of(stream: &Stream) -> Vec<Self> {
        let Stream { read, write, trim, .. } = *stream;
        let total = u64::from(read) + u64::from(write) + u64::from(trim);
        let trims = Self { read: 0, write: 0, trim, total };
        let others = Self { read, write, trim: 0, total };
        [trims, others].into_iter().filter(|verbs| verbs.weight() > 0).collect()
    }

    fn weight(&self) -> u64 {
        u64::from(self.read) + u64::from(self.write) + u64::from(self.trim)
    }

    /// Its share of the stream's commands.
    fn share(&self) -> f64 {
        self.weight() as f64 / self.total as f64
    }

    fn is_whole_stream(&self) -> bool {
        self.weight() == self.total
    }
}

/// The file as it grows.
#[derive(Debug, Default)]
struct JobFile {
    text: String,
}

impl JobFile {
    fn set(&mut self, option: &str, value: impl Display) {
        writeln!(self.text, "{option}={value}").expect("a string takes all");
    }

    fn section(&mut self, name: &str) {
        writeln!(self.text, "\n[{name}]").expect("a string takes all");
    }

    fn note(&mut self, comment: &str) {
        let line: String = comment.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut end = line.len().min(COMMENT_MAX);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        writeln!(self.text, "; {}", &line[..end]).expect("a string takes all");
    }

    fn cannot(&mut self, what: &str) {
        self.note(&format!("not expressible in fio: {what}"));
    }

    fn global(&mut self, workload: &Workload) {
        self.section("global");
        for (option, value) in [
            ("ioengine", "io_uring"),
            ("direct", "1"),
            ("fixedbufs", "1"),
            ("registerfiles", "1"),
            ("thread", "1"),
            ("allow_file_create", "0"),
            ("norandommap", "1"),
            ("randrepeat", "1"),
            ("group_reporting", "1"),
            ("clat_percentiles", "1"),
            ("lat_percentiles", "1"),
        ] {
            self.set(option, value);
        }
        let percentiles: Vec<String> = PERCENTILES.iter().map(f64::to_string).collect();
        self.set("percentile_list", percentiles.join(":"));
        // A seed of 0 would give every job the same numbers.
        self.set("randseed", workload.seed.clamp(1, SEED_MAX));
        self.note(
            "the same seed gives other commands in fio than in Longtake, with the same statistics",
        );
        self.cannot(&format!(
            "histograms of each interval of {} in the JSON (fio's --status-interval repeats totals)",
            workload.interval
        ));
        self.times(workload);
    }

    fn times(&mut self, workload: &Workload) {
        let stop = &workload.stop;
        if workload.warm_up.0 > Duration::ZERO {
            self.set("ramp_time", time(workload.warm_up.0));
            if stop.bytes.is_some() {
                self.cannot("counting the bytes of the warm-up towards the end");
            }
        }
        let limit = |steady: &Steady| {
            let rounds = u64::from(steady.rounds_max);
            Duration::from_nanos(steady.round.0.as_nanos().saturating_mul(rounds))
        };
        let times = [stop.time.map(|time| time.0), stop.steady.as_ref().map(limit)];
        if let Some(end) = times.into_iter().flatten().min() {
            self.set("runtime", time(end));
            if stop.bytes.is_none() {
                self.set("time_based", 1);
            }
        }
        if let Some(steady) = &stop.steady {
            self.steady(steady);
        }
    }

    fn steady(&mut self, steady: &Steady) {
        let window = u64::from(steady.window).saturating_mul(steady.round.0.as_nanos());
        // All values within half the range around the mean lie within the range.
        self.set("steadystate", format!("bw:{}%", steady.range_percent / 2.0));
        self.set("ss_dur", format!("{}s", (window / 1_000_000_000).max(1)));
        self.cannot(&format!(
            "steady state by averages of rounds of {} (fio compares single seconds, which is stricter)",
            steady.round
        ));
        self.cannot(&format!(
            "a slope of {} % at most as a second condition (fio has one at a time: steadystate=bw_slope:{}%)",
            steady.slope_percent, steady.slope_percent
        ));
    }

    fn stream(&mut self, workload: &Workload, index: usize, targets: &[String], jobs_total: u64) {
        let stream = &workload.streams[index];
        let name = section_name(&stream.name);
        let mut first = true;
        for drive in drives(stream, targets) {
            for verbs in Verbs::of(stream) {
                self.section(&name);
                if name != stream.name {
                    self.note(&format!("stream {}", stream.name));
                }
                if std::mem::take(&mut first) {
                    self.set("new_group", 1);
                }
                self.target(&targets[drive]);
                self.commands(stream, &verbs, index);
                self.region(stream);
                self.set("iodepth", stream.depth);
                self.set("numjobs", stream.jobs);
                self.pace(stream, &verbs);
                if let Some(bytes) = workload.stop.bytes {
                    let share = bytes.0 as f64 / jobs_total.max(1) as f64 * verbs.share();
                    self.set("io_size", (share as u64).max(1));
                }
                self.priority(stream.priority);
                if verbs.write > 0 {
                    self.durability(stream, &targets[drive]);
                    self.content(stream, &verbs);
                }
            }
        }
    }

    /// What is done, and how long the blocks are.
    fn commands(&mut self, stream: &Stream, verbs: &Verbs, index: usize) {
        let verb = match (verbs.read > 0, verbs.write > 0) {
            (true, true) => "rw",
            (true, false) => "read",
            (false, true) => "write",
            (false, false) => "trim",
        };
        if stream.pattern == Pattern::Sequential {
            self.set("rw", format!("{verb}{}", self::place::gap(stream)));
        } else {
            self.set("rw", format!("rand{verb}"));
        }
        if verbs.read > 0 && verbs.write > 0 {
            let percent = shares_of_100(&[verbs.read, verbs.write])[0];
            self.set("rwmixread", percent);
            let exact = 100.0 * f64::from(verbs.read) / verbs.weight() as f64;
            if (exact - f64::from(percent)).abs() > 1e-9 {
                self.cannot(&format!("{exact:.4} % of reads (fio takes whole percents)"));
            }
            if stream.pattern == Pattern::Sequential {
                self.cannot("one sequence of reads and writes (fio keeps a place for each)");
            }
        }
        if !verbs.is_whole_stream() {
            self.cannot(
                "trims in the same job as reads and writes: they have a section, a depth and places of their own",
            );
            if stream.rate.is_none() {
                let weight = verbs.weight() * FLOW_MAX / verbs.total;
                self.set("flow_id", index + 1);
                self.set("flow", weight.clamp(1, FLOW_MAX));
            }
        }
        self.blocks(&stream.block);
    }

    fn blocks(&mut self, blocks: &Blocks) {
        if let [(size, _)] = blocks.0.as_slice() {
            return self.set("bs", size.0);
        }
        let mut blocks = blocks.0.clone();
        if blocks.len() > BLOCKS_MAX {
            blocks.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
            let left_out = blocks.split_off(BLOCKS_MAX).len();
            self.cannot(&format!(
                "more than {BLOCKS_MAX} block sizes: the {left_out} rarest are left out"
            ));
        }
        let weights: Vec<u32> = blocks.iter().map(|(_, weight)| *weight).collect();
        let shares = shares_of_100(&weights);
        let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        if weights
            .iter()
            .zip(&shares)
            .any(|(weight, share)| f64::from(*weight) * 100.0 != f64::from(*share) * total)
        {
            let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
            self.cannot(&format!(
                "block sizes in the proportion {} (fio takes whole percents)",
                weights.join(":")
            ));
        }
        let parts: Vec<String> = blocks
            .iter()
            .zip(&shares)
            .map(|((size, _), share)| format!("{}/{share}", size.0))
            .collect();
        self.set("bssplit", parts.join(":"));
    }

    fn priority(&mut self, priority: Option<Priority>) {
        let (class, level) = match priority {
            None => return,
            Some(Priority::RealTime(level)) => (1, level),
            Some(Priority::BestEffort(level)) => (2, level),
            Some(Priority::Idle) => (3, 0),
        };
        self.set("prioclass", class);
        self.set("prio", level);
    }

    /// A file that is open with O_DSYNC has each write durable before it completes, which with direct I/O is what
    /// RWF_DSYNC is: FUA, or a flush behind the write. fio's `writefua` is only for its engines sg and io_uring_cmd.
    fn durability(&mut self, stream: &Stream, target: &str) {
        if stream.flush.is_some() {
            self.cannot("flushes at a distance of time (fsync counts writes)");
        }
        if !stream.fua {
            return;
        }
        if target.starts_with("/dev/ng") {
            self.cannot("FUA on an NVMe generic device with ioengine=io_uring (io_uring_cmd has writefua=1)");
        } else {
            self.set("sync", "dsync");
        }
    }

    fn content(&mut self, stream: &Stream, verbs: &Verbs) {
        match stream.content {
            // Random once, then a little of each piece made new: what our own writes do, at the same price.
            Content::Random => self.set("scramble_buffers", 1),
            Content::Compressible { percent: 100 } => {
                self.set("zero_buffers", 1);
                self.set("scramble_buffers", 0);
            }
            Content::Compressible { percent } => {
                self.set("refill_buffers", 1);
                self.set("buffer_compress_percentage", percent);
                self.set("buffer_compress_chunk", 4096);
            }
            Content::Verify => {
                self.set("verify", "crc32c");
                self.set("verify_interval", 512);
                // With random contents fio takes right bytes for wrong ones where reads and writes are mixed.
                self.set("verify_pattern", "%o");
                self.set("serialize_overlap", 1);
                self.cannot("telling the last write of a place from an older one of the same job");
                self.cannot(
                    "reading back everything after the end (fio reads back after each pass over the region, in the run's time and bytes)",
                );
                if verbs.read > 0 {
                    self.cannot("comparing each read among the writes with the last write there");
                }
                if stream.block.0.len() > 1 {
                    self.cannot(
                        "verifying blocks that shorter ones overwrote in part (fio skips them)",
                    );
                }
            }
        }
    }
}

/// Whole percents that add up to 100, none of them 0, each as near to its weight's share as can be. For at most 100 weights.
fn shares_of_100(weights: &[u32]) -> Vec<u32> {
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let exact: Vec<f64> = weights.iter().map(|weight| f64::from(*weight) * 100.0 / total).collect();
    let mut shares: Vec<u32> = exact.iter().map(|share| (*share as u32).max(1)).collect();
    loop {
        let sum: u32 = shares.iter().sum();
        let missing = |index: usize| exact[index] - f64::from(shares[index]);
        let by_missing = |a: &usize, b: &usize| missing(*a).total_cmp(&missing(*b));
        let chosen = match sum {
            100 => return shares,
            0..100 => (0..shares.len()).max_by(by_missing),
            _ => (0..shares.len()).filter(|index| shares[*index] > 1).min_by(by_missing),
        };
        let Some(chosen) = chosen else { return shares };
        if sum < 100 {
            shares[chosen] += 1;
        } else {
            shares[chosen] -= 1;
        }
    }
}

/// A name that a section may have: fio cuts lines at `;` and `#`, ends names at `]`, and takes `global` for its own.
fn section_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " -_.+".contains(c);
    let name: String =
        name.chars().map(|c| if allowed(c) { c } else { '_' }).take(100).collect::<String>();
    match name.trim() {
        "" => "stream".to_owned(),
        "global" => "global_".to_owned(),
        name => name.to_owned(),
    }
}

/// A time as fio reads it: whole seconds, or microseconds.
fn time(time: Duration) -> String {
    let us = time.as_nanos().div_ceil(1000);
    if us.is_multiple_of(1_000_000) { format!("{}s", us / 1_000_000) } else { format!("{us}us") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(stream: &str) -> String {
        let workload =
            Workload::from_toml(&format!("stop = {{ time = '2s' }}\n[[stream]]\n{stream}"))
                .unwrap();
        job(&workload, &["/dev/nvme0n1".to_owned(), "/dev/nvme1n1".to_owned()])
    }

    fn has(text: &str, lines: &[&str]) {
        for wanted in lines {
            assert!(text.lines().any(|line| line == *wanted), "no line {wanted} in\n{text}");
        }
    }

    #[test]
    fn whole_percents_add_up_and_leave_nobody_out() {
        assert_eq!(shares_of_100(&[3, 1]), [75, 25]);
        assert_eq!(shares_of_100(&[1, 1, 1]).iter().sum::<u32>(), 100);
        assert_eq!(shares_of_100(&[1_000_000, 1, 1]), [98, 1, 1]);
        assert_eq!(shares_of_100(&[u32::MAX, u32::MAX]), [50, 50]);
        let many = shares_of_100(&[1; 64]);
        assert_eq!((many.iter().sum::<u32>(), many.iter().min()), (100, Some(&1)));
    }

    #[test]
    fn fua_is_dsync_for_fio_and_what_it_has_no_option_for_is_said() {
        let forced = text("write = 1\nfua = true");
        assert_eq!(forced.matches("sync=dsync").count(), 2, "one for each drive\n{forced}");
        assert!(!text("write = 1").contains("dsync"));
        let text = "stop = { time = '2s' }\n[[stream]]\nwrite = 1\nfua = true";
        let generic = job(&Workload::from_toml(text).unwrap(), &["/dev/ng0n1".to_owned()]);
        assert!(generic.contains("; not expressible in fio: FUA on an NVMe generic"), "{generic}");
        assert!(!generic.contains("dsync"), "{generic}");
    }

    #[test]
    fn a_stream_becomes_one_group_with_a_section_for_each_drive() {
        let text = text(
            "name = 'mix'\nread = 70\nwrite = 30\npattern = 'hot:20/80'\nblock = '4KiB:3,64KiB:1'\ndepth = 8\njobs = 3\npriority = 'real-time:2'",
        );
        assert_eq!(text.matches("[mix]").count(), 2);
        assert_eq!(text.matches("new_group=1").count(), 1);
        has(
            &text,
            &[
                "filename=/dev/nvme0n1",
                "filename=/dev/nvme1n1",
                "rw=randrw",
                "rwmixread=70",
                "bssplit=4096/75:65536/25",
                "random_distribution=zoned:80/20:20/80",
                "iodepth=8",
                "numjobs=3",
                "prioclass=1",
                "prio=2",
                "time_based=1",
                "runtime=2s",
                "percentile_list=1:5:50:90:95:99:99.9:99.99:99.999:99.9999",
            ],
        );
    }

    #[test]
    fn trims_among_others_get_their_share_by_flow() {
        let text = text("name = 'm'\nread = 8\ntrim = 2\nblock = '4KiB'\ndrives = [1]");
        assert_eq!(text.matches("[m]").count(), 2);
        assert_eq!(text.matches("new_group=1").count(), 1);
        has(&text, &["rw=trim", "flow=200", "rw=read", "flow=800", "flow_id=1"]);
        assert!(text.contains("; not expressible in fio: trims in the same job"));
    }

    #[test]
    fn bytes_are_shared_by_all_jobs_and_end_a_run_before_its_time() {
        let workload = Workload::from_toml(
            "stop = { time = '1m', bytes = '6MiB' }\n[[stream]]\nwrite = 1\njobs = 2\n[[stream]]\nread = 1",
        )
        .unwrap();
        let text = job(&workload, &["f".to_owned()]);
        assert_eq!(text.matches("io_size=2097152").count(), 2);
        assert!(!text.contains("time_based"), "it would go on after the bytes");
    }

    #[test]
    fn names_that_fio_would_misread_are_changed_and_said() {
        assert_eq!(section_name("a;b #1]"), "a_b _1_");
        assert_eq!(section_name("global"), "global_");
        assert_eq!(section_name(" \n"), "_");
        has(&text("name = 'global'\nread = 1"), &["; stream global", "[global_]"]);
    }
}
