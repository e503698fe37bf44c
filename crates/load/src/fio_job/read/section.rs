//! One section of a fio job file as a stream.

use base::Duration;

use super::ini::Section;
use super::{Found, Problem};
use crate::fio_json::options::{bytes, split, time};
use crate::quantity::{Pace, Size, Time};
use crate::workload::{Arrival, Blocks, Content, Pattern, Priority, Stream};

const SECOND_NS: u64 = 1_000_000_000;

/// How far the parts of a rate may be from the parts of the mix: fio takes whole numbers.
const MIX_TOLERANCE: f64 = 0.006;

/// A section that is being read.
pub struct Job<'s, 'f> {
    pub section: &'s Section,
    pub found: &'f mut Found,
}

impl Job<'_, '_> {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.section.entries.get(name).map(|entry| entry.value.as_str())
    }

    pub fn on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0")
    }

    /// Says that an option of this section can't be done, at its line.
    pub fn cannot(&mut self, name: &str, why: &str) {
        let (line, what) = match self.section.entries.get(name) {
            Some(entry) => (entry.line, format!("{name}={}", entry.value)),
            None => (self.section.line, format!("[{}]", self.section.name)),
        };
        self.found.problems.push(Problem::new(line, format!("{what}: {why}")));
    }

    fn decimal(&self) -> bool {
        self.get("kb_base") == Some("1000")
    }

    pub fn size(&mut self, name: &str) -> Option<u64> {
        let size = bytes(self.get(name)?, self.decimal());
        if size.is_none() {
            self.cannot(
                name,
                "not a number of bytes that Longtake reads; write it as 4096, 64k or 10g",
            );
        }
        size
    }

    pub fn time(&mut self, name: &str) -> Option<Duration> {
        let read = time(self.get(name)?, SECOND_NS);
        if read.is_none() {
            self.cannot(name, "not a time that Longtake reads; write it as 30, 500ms or 2m");
        }
        read
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        let read = self.get(name)?.parse().ok();
        if read.is_none() {
            self.cannot(name, "not a number that is possible here");
        }
        read
    }

    /// The stream that this section asks for, on `drives`.
    pub fn stream(&mut self, drives: Vec<u16>) -> Stream {
        let [read, write, trim] = self.weights();
        let mut stream = Stream {
            name: self.section.name.clone(),
            drives,
            read,
            write,
            trim,
            pattern: self.pattern(),
            depth: self.positive("iodepth"),
            jobs: self.positive("numjobs"),
            priority: self.priority(),
            ..Stream::default()
        };
        stream.block = self.blocks(&stream);
        self.align(&mut stream);
        self.content(&mut stream);
        self.region(&mut stream);
        (stream.rate, stream.arrival) = self.pace(&stream);
        self.engine(&stream);
        stream
    }

    fn positive(&mut self, name: &str) -> u32 {
        match self.number(name) {
            Some(0) => {
                self.cannot(name, "must be 1 or more");
                1
            }
            number => number.unwrap_or(1),
        }
    }

    fn engine(&mut self, stream: &Stream) {
        let engine = self.get("ioengine").map(str::to_owned);
        match engine.as_deref() {
            Some("libaio" | "io_uring") => {}
            Some("io_uring_cmd") => return,
            None if stream.depth == 1 => {}
            None => self.cannot(
                "iodepth",
                "without ioengine, fio has one command in flight; add ioengine=io_uring or remove iodepth",
            ),
            Some(_) => self.cannot("ioengine", "Longtake submits asynchronously; set ioengine=io_uring (with iodepth=1 for one command at a time)"),
        }
        match self.get("direct") {
            Some("0") => self.cannot("direct", "Longtake bypasses the page cache; set direct=1"),
            Some(_) => {}
            None => self
                .found
                .note("direct is not set, and fio would use the page cache; Longtake bypasses it"),
        }
    }

    fn weights(&mut self) -> [u32; 3] {
        let verbs =
            self.get("rw").unwrap_or("read").split(':').next().unwrap_or_default().to_owned();
        match verbs.strip_prefix("rand").unwrap_or(&verbs) {
            "read" => [1, 0, 0],
            "write" => [0, 1, 0],
            "trim" => [0, 0, 1],
            "rw" | "readwrite" => {
                let writes: Option<u32> = self.number("rwmixwrite");
                let reads: Option<u32> = self.number("rwmixread");
                let reads =
                    reads.or_else(|| writes.map(|w| 100u32.saturating_sub(w))).unwrap_or(50);
                if reads > 100 {
                    self.cannot("rwmixread", "must be at most 100");
                }
                if verbs == "rw" || verbs == "readwrite" {
                    self.found.note("sequential reads and writes of one job share one sequence; fio keeps a place for each");
                }
                [reads.min(100), 100 - reads.min(100), 0]
            }
            _ => {
                self.cannot("rw", "set read, write, trim, rw, or one of these with rand before it");
                [1, 0, 0]
            }
        }
    }

    fn pattern(&mut self) -> Pattern {
        let rw = self.get("rw").unwrap_or("read").to_owned();
        let text = self.get("random_distribution").unwrap_or("random").to_owned();
        if !rw.starts_with("rand") {
            return Pattern::Sequential;
        }
        if rw.split_once(':').is_some_and(|(_, count)| count != "1") {
            self.cannot(
                "rw",
                "every random command has an offset of its own; remove the number behind the colon",
            );
        }
        if !self.on("norandommap") {
            self.found.note("norandommap is not set, and fio would visit each block once before it repeats; Longtake draws every offset independently");
        }
        let (kind, rest) = text.split_once(':').unwrap_or((&text, ""));
        let zone = |zone: &str| {
            let (access, space) = zone.split_once('/')?;
            Some((access.parse::<f64>().ok()?, space.parse::<f64>().ok()?))
        };
        let zones: Vec<_> = rest.split(':').filter_map(zone).collect();
        match (kind, zones.as_slice()) {
            ("random", _) => return Pattern::Random,
            ("zipf", _) => {
                if let Some(theta) = rest.parse().ok().filter(|theta| *theta > 0.0) {
                    return Pattern::Zipf { theta };
                }
            }
            ("zoned", [(access, space), (cold, rest)])
                if access + cold == 100.0
                    && space + rest == 100.0
                    && *access > 0.0
                    && *space > 0.0
                    && *cold > 0.0
                    && *rest > 0.0 =>
            {
                return Pattern::Hot { space_percent: *space, access_percent: *access };
            }
            _ => {}
        }
        self.cannot(
            "random_distribution",
            "set random, zipf:THETA, or zoned with two zones (zoned:80/20:20/80)",
        );
        Pattern::Random
    }

    /// The values for the directions that the stream uses, if they are equal.
    fn one_for_all(&mut self, name: &str, stream: &Stream) -> Option<String> {
        let text = self.get(name)?.to_owned();
        let parts: Vec<&str> = text.split(',').collect();
        let of = |index: usize| {
            parts[..=index.min(parts.len() - 1)]
                .iter()
                .rev()
                .find(|p| !p.is_empty())
                .copied()
                .unwrap_or("")
        };
        let used = [stream.read, stream.write, stream.trim];
        let mut values: Vec<&str> = (0..3).filter(|index| used[*index] > 0).map(of).collect();
        values.dedup();
        if values.len() > 1 {
            self.cannot(
                name,
                "reads and writes of one job have the same block sizes; write a job for each",
            );
        }
        values.first().map(|value| (*value).to_owned())
    }

    fn blocks(&mut self, stream: &Stream) -> Blocks {
        if self.get("bsrange").is_some() {
            self.cannot("bsrange", "list the sizes with their shares: bssplit=4k/50:64k/50");
        }
        let decimal = self.decimal();
        if let Some(text) = self.one_for_all("bssplit", stream) {
            if let Some(blocks) = split(&text, decimal) {
                return blocks;
            }
            self.cannot(
                "bssplit",
                "not a list of sizes and percents that add up to 100 (4k/60:64k/40)",
            );
        }
        let Some(text) = self.one_for_all("bs", stream) else { return Blocks::of(4096) };
        let possible = |size: &u64| (1..=u64::from(u32::MAX)).contains(size);
        bytes(&text, decimal).filter(possible).map_or_else(
            || {
                self.cannot("bs", "not a block size that Longtake reads; write it as 4k or 1m");
                Blocks::of(4096)
            },
            Blocks::of,
        )
    }

    fn align(&mut self, stream: &mut Stream) {
        let mut align = self.size("blockalign");
        let rw = self.get("rw").unwrap_or_default().to_owned();
        if stream.pattern == Pattern::Sequential
            && let Some((_, gap)) = rw.split_once(':')
        {
            match (bytes(gap, self.decimal()), stream.block.0.as_slice()) {
                (Some(gap), [(size, _)]) => align = Some(size.0 + gap),
                _ => self.cannot(
                    "rw",
                    "a hole behind each block needs one block size and a number of bytes",
                ),
            }
        }
        stream.align =
            align.filter(|align| *align > 0 && *align != stream.block.shortest()).map(Size);
    }

    fn content(&mut self, stream: &mut Stream) {
        let verified = self.get("verify").is_some_and(|verify| verify != "0" && verify != "null");
        let percent = self.number::<u8>("buffer_compress_percentage");
        if verified && stream.write == 0 {
            self.cannot(
                "verify",
                "only what the job writes itself can be verified; add writes or remove it",
            );
        }
        if verified && (percent.is_some_and(|percent| percent > 0) || self.on("zero_buffers")) {
            self.found.note(
                "what is verified is filled with a pattern of its own, which does not compress",
            );
        }
        stream.content = match percent {
            _ if verified => Content::Verify,
            _ if self.on("zero_buffers") => Content::Compressible { percent: 100 },
            Some(101..) => {
                self.cannot("buffer_compress_percentage", "must be at most 100");
                Content::Random
            }
            Some(percent @ 1..) => Content::Compressible { percent },
            _ => Content::Random,
        };
        stream.fua = stream.write > 0
            && match self.get("sync") {
                Some("dsync" | "sync" | "1") => true,
                None | Some("none" | "0") => false,
                Some(_) => {
                    self.cannot("sync", "set none, sync or dsync");
                    false
                }
            };
    }

    fn region(&mut self, stream: &mut Stream) {
        stream.from = self.size("offset").filter(|from| *from > 0).map(Size);
        let jobs = u64::from(stream.jobs);
        let apart = stream.jobs > 1
            && (stream.pattern == Pattern::Sequential || stream.content == Content::Verify);
        let share = format!("{}%", 100 / jobs);
        let text = self.get("size").map(str::to_owned);
        let step = self.get("offset_increment").map(str::to_owned).filter(|step| step != "0");
        let whole = text.is_none() || text.as_deref() == Some("100%");
        if apart && step.is_some() && step == text && text.as_deref() == Some(&share) {
            return;
        }
        let size = if whole { None } else { self.size("size") };
        match (step.is_some(), apart) {
            (false, false) => stream.size = size.filter(|size| *size > 0).map(Size),
            (true, true) => {
                let step = self.size("offset_increment");
                if step.is_some() && step == size {
                    stream.size = size.map(|size| Size(size.saturating_mul(jobs)));
                } else {
                    self.cannot("offset_increment", "jobs divide one region without holes; set size to the same");
                }
            }
            (false, true) => self.cannot(
                "numjobs",
                "jobs of a sequence start apart; set size and offset_increment both to the region's size divided by numjobs",
            ),
            (true, false) => self.cannot("offset_increment", "this job's copies share one region; remove it"),
        }
    }

    fn pace(&mut self, stream: &Stream) -> (Option<Pace>, Arrival) {
        let arrival = match self.get("rate_process") {
            Some("poisson") => Arrival::Poisson,
            None | Some("linear") => Arrival::Constant,
            Some(_) => {
                self.cannot("rate_process", "set linear or poisson");
                Arrival::Constant
            }
        };
        if self.get("rate").is_some() && self.get("rate_iops").is_some() {
            self.cannot("rate", "remove it or rate_iops: a job has one rate");
        }
        let paced = self.get("rate").is_some() || self.get("rate_iops").is_some();
        if paced && self.get("thinktime").is_some_and(|wait| wait != "0") {
            self.cannot(
                "thinktime",
                "a job with a rate doesn't wait as well; remove it or the rate",
            );
        }
        if let Some(rate) = self.rate("rate_iops", stream) {
            return (Some(Pace::Commands(rate)), arrival);
        }
        if let Some(rate) = self.rate("rate", stream) {
            return (Some(Pace::Bytes(rate)), arrival);
        }
        self.bursts()
    }

    /// The sum of the rates of all directions, which must be in the proportion of the mix.
    fn rate(&mut self, name: &str, stream: &Stream) -> Option<f64> {
        let text = self.get(name)?.to_owned();
        let parts: Vec<&str> = text.split(',').collect();
        let used = [stream.read, stream.write, stream.trim];
        let total: u32 = used.iter().sum();
        let mut rates = Vec::new();
        for index in (0..3).filter(|index| used[*index] > 0) {
            let part =
                parts.get(index).copied().filter(|part| !part.is_empty()).unwrap_or(parts[0]);
            let Some(rate) = bytes(part, self.decimal()).filter(|rate| *rate > 0) else {
                self.cannot(name, "not a rate for each direction that the job uses; write it as 100m or 5000,2000");
                return None;
            };
            rates.push((rate as f64, f64::from(used[index]) / f64::from(total)));
        }
        let sum: f64 = rates.iter().map(|(rate, _)| rate).sum();
        if rates.iter().any(|(rate, share)| (rate / sum - share).abs() > MIX_TOLERANCE) {
            self.cannot(
                name,
                "reads and writes must have the proportion of rwmixread; write a job for each",
            );
        }
        Some(sum)
    }

    /// Blocks issued together, with a wait behind them.
    fn bursts(&mut self) -> (Option<Pace>, Arrival) {
        let nothing = (None, Arrival::Constant);
        let Some(wait) = self.get("thinktime").and_then(|wait| time(wait, 1_000)) else {
            if self.get("thinktime").is_some() {
                self.cannot("thinktime", "not a time that Longtake reads; write it as 500us");
            }
            return nothing;
        };
        if wait == Duration::ZERO {
            return nothing;
        }
        if self.get("thinktime_blocks_type") != Some("issue") {
            self.cannot("thinktime", "Longtake doesn't wait after a completion; set rate_iops, or thinktime_blocks_type=issue for bursts");
            return nothing;
        }
        let count = self.positive("thinktime_blocks");
        (Some(Pace::Commands(f64::from(count) / wait.as_secs_f64())), Arrival::Bursts(count))
    }

    fn priority(&mut self) -> Option<Priority> {
        let level = self.number::<u8>("prio").unwrap_or(0);
        let class = self.get("prioclass").map(str::to_owned);
        match (class.as_deref(), level) {
            (None, _) if self.get("prio").is_none() => None,
            (Some("1"), 0..8) => Some(Priority::RealTime(level)),
            (None, 0..8) => {
                self.found.note("prio without prioclass counts as prioclass=2 (best effort)");
                Some(Priority::BestEffort(level))
            }
            (Some("2"), 0..8) => Some(Priority::BestEffort(level)),
            (Some("3"), _) => Some(Priority::Idle),
            _ => {
                self.cannot("prio", "set prioclass to 1, 2 or 3 and prio to 0..7");
                None
            }
        }
    }

    /// Time that is left out of the totals.
    pub fn ramp(&mut self) -> Time {
        Time(self.time("ramp_time").unwrap_or(Duration::ZERO))
    }
}
