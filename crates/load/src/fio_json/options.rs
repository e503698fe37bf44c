//! fio's options as a stream of ours, as far as they can be told. What has no counterpart is left out.

use std::collections::BTreeMap;

use base::Duration;

use super::document::Node;
use crate::interval::Verb;
use crate::quantity::{Pace, Size, Time};
use crate::workload::{Arrival, Blocks, Content, Pattern, Priority, Stream};

/// fio's block size without any option.
const BLOCK_BYTES: u64 = 4096;

/// Other names of options.
const ALIASES: [(&str, &str); 5] = [
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("ba", "blockalign"),
    ("io_limit", "io_size"),
    ("fileoffset", "offset"),
];

/// A job's options, its own and the global ones, by fio's main names.
#[derive(Clone, Debug, Default)]
pub(super) struct Options(BTreeMap<String, String>);

/// What was measured of a stream, for what its options leave open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// By operation.
    pub commands: [u64; 3],
    /// All operations together.
    pub bytes: u64,
}

impl Options {
    /// A job's own go before the global ones.
    pub fn read(global: Option<&Node<'_>>, own: Option<&Node<'_>>) -> Self {
        let mut options = BTreeMap::new();
        for (name, value) in [global, own].into_iter().flatten().flat_map(Node::entries) {
            let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, n)| *n);
            if let Ok(value) = value.str() {
                options.insert(name.to_owned(), value.to_owned());
            }
        }
        Self(options)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether a switch is on: named without a value, or with one that isn't 0.
    fn on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0")
    }

    /// Whether fio reports all jobs of a group as one.
    pub fn grouped(&self) -> bool {
        self.on("group_reporting")
    }

    pub fn jobs(&self) -> u32 {
        self.get("numjobs").and_then(|n| n.parse().ok()).filter(|n| *n > 0).unwrap_or(1)
    }

    pub fn seed(&self) -> Option<u64> {
        self.get("randseed")?.parse().ok()
    }

    /// Files or devices. A colon parts them unless a backslash stands before it.
    pub fn files(&self) -> Vec<String> {
        let Some(text) = self.get("filename") else { return Vec::new() };
        let kept = text.replace("\\:", "\0");
        kept.split(':')
            .filter(|file| !file.is_empty())
            .map(|file| file.replace('\0', ":"))
            .collect()
    }

    /// A number of bytes; None for percents and what can't be read.
    pub fn size(&self, name: &str) -> Option<u64> {
        bytes(self.get(name)?, self.get("kb_base") == Some("1000"))
    }

    /// A time; seconds without a unit.
    pub fn time(&self, name: &str) -> Option<Time> {
        time(self.get(name)?, 1_000_000_000).map(Time)
    }

    /// The stream that these options ask for.
    pub fn stream(&self, name: &str, measured: &Measured) -> Stream {
        let [read, write, trim] = self.weights(measured);
        let mut stream = Stream {
            name: name.to_owned(),
            pattern: self.pattern(),
            block: self.blocks(write > 0 && read == 0, measured),
            read,
            write,
            trim,
            from: self.size("offset").filter(|from| *from > 0).map(Size),
            size: self.region(),
            depth: self.get("iodepth").and_then(|n| n.parse().ok()).filter(|n| *n > 0).unwrap_or(1),
            jobs: self.jobs(),
            priority: self.priority(),
            content: self.content(write > 0),
            ..Stream::default()
        };
        stream.align = self
            .size("blockalign")
            .filter(|align| *align > 0 && *align != stream.block.shortest())
            .map(Size);
        (stream.rate, stream.arrival) = self.pace(&stream);
        stream
    }

    fn verbs(&self) -> &str {
        self.get("rw").unwrap_or("read").split(':').next().unwrap_or("read")
    }

    /// Weights in percent of reads and writes; trims beside them in the proportion in which they were done.
    fn weights(&self, measured: &Measured) -> [u32; 3] {
        let percent =
            |name| self.get(name).and_then(|p| p.parse::<u32>().ok()).filter(|p| *p <= 100);
        let verbs = self.verbs();
        let mut weights = match verbs.strip_prefix("rand").unwrap_or(verbs) {
            "rw" | "readwrite" => {
                let reads = percent("rwmixread")
                    .or_else(|| percent("rwmixwrite").map(|writes| 100 - writes))
                    .unwrap_or(50);
                [reads, 100 - reads, 0]
            }
            "write" => [0, 1, 0],
            "trim" => [0, 0, 1],
            "trimwrite" => [0, 1, 1],
            _ => [1, 0, 0],
        };
        let [reads, writes, trims] = measured.commands;
        if weights[2] == 0 && trims > 0 {
            weights[0] *= 100;
            weights[1] *= 100;
            let others = f64::from(weights[0] + weights[1]);
            let ratio = trims as f64 / (reads + writes).max(1) as f64;
            weights[2] = (others * ratio).round().clamp(1.0, 1e9) as u32;
        }
        weights
    }

    fn pattern(&self) -> Pattern {
        if !self.verbs().starts_with("rand") {
            return Pattern::Sequential;
        }
        let text = self.get("random_distribution").unwrap_or("random");
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let zones: Vec<(f64, f64)> = rest
            .split(':')
            .filter_map(|zone| zone.split_once('/'))
            .filter_map(|(access, space)| Some((access.parse().ok()?, space.parse().ok()?)))
            .collect();
        match (kind, zones.as_slice()) {
            ("zipf", _) => rest
                .split(':')
                .next()
                .and_then(|theta| theta.parse().ok())
                .filter(|theta| *theta > 0.0)
                .map_or(Pattern::Random, |theta| Pattern::Zipf { theta }),
            ("zoned", [(access, space), (..)]) if 0.0 < *access && 0.0 < *space => {
                Pattern::Hot { space_percent: *space, access_percent: *access }
            }
            _ => Pattern::Random,
        }
    }

    /// Block sizes; the mean of what was done where they are given as a range.
    fn blocks(&self, writes: bool, measured: &Measured) -> Blocks {
        let decimal = self.get("kb_base") == Some("1000");
        // Values for reads, writes and trims are parted by commas; one that is absent is as the one before.
        let direction = |text: &str| {
            let parts: Vec<&str> = text.split(',').collect();
            let own = parts.get(usize::from(writes)).copied().filter(|part| !part.is_empty());
            own.unwrap_or(parts[0]).to_owned()
        };
        let split = self.get("bssplit").map(|text| split(&direction(text), decimal));
        let fixed = self
            .get("bs")
            .map(|text| bytes(&direction(text), decimal).filter(|b| *b > 0).map(Blocks::of));
        let told = match (split, self.get("bsrange").or_else(|| self.get("blocksize_range"))) {
            (Some(split), _) => split,
            (None, Some(_)) => None,
            (None, None) => fixed.unwrap_or(Some(Blocks::of(BLOCK_BYTES))),
        };
        told.unwrap_or_else(|| {
            let commands: u64 = measured.commands.iter().sum();
            Blocks::of(
                measured.bytes.checked_div(commands).filter(|b| *b > 0).unwrap_or(BLOCK_BYTES),
            )
        })
    }

    /// The region of all jobs together.
    fn region(&self) -> Option<Size> {
        let size = self.size("size").filter(|size| *size > 0)?;
        // Jobs that start apart by their own length share a region without holes.
        let apart = self.size("offset_increment") == Some(size);
        Some(Size(if apart { size * u64::from(self.jobs()) } else { size }))
    }

    fn pace(&self, stream: &Stream) -> (Option<Pace>, Arrival) {
        let decimal = self.get("kb_base") == Some("1000");
        let sum = |text: &str| -> Option<f64> {
            let parts: Vec<&str> = text.split(',').collect();
            let used = [stream.read, stream.write, stream.trim];
            let rates = Verb::ALL.iter().filter(|verb| used[verb.index()] > 0);
            let rates = rates.map(|verb| {
                let part = parts.get(verb.index()).copied().filter(|part| !part.is_empty());
                bytes(part.unwrap_or(parts[0]), decimal).map(|rate| rate as f64)
            });
            rates.sum::<Option<f64>>().filter(|rate| *rate > 0.0)
        };
        let poisson = self.get("rate_process") == Some("poisson");
        let arrival = if poisson { Arrival::Poisson } else { Arrival::Constant };
        if let Some(commands) = self.get("rate_iops").and_then(sum) {
            return (Some(Pace::Commands(commands)), arrival);
        }
        if let Some(rate) = self.get("rate").and_then(sum) {
            return (Some(Pace::Bytes(rate)), arrival);
        }
        self.bursts().unwrap_or((None, Arrival::Constant))
    }

    /// Blocks issued together with a wait behind them.
    fn bursts(&self) -> Option<(Option<Pace>, Arrival)> {
        if self.get("thinktime_blocks_type") != Some("issue") {
            return None;
        }
        let wait = time(self.get("thinktime")?, 1_000).filter(|wait| *wait > Duration::ZERO)?;
        let count: u32 = self.get("thinktime_blocks")?.parse().ok().filter(|n| *n > 0)?;
        let commands = f64::from(count) / wait.as_secs_f64();
        Some((Some(Pace::Commands(commands)), Arrival::Bursts(count)))
    }

    fn priority(&self) -> Option<Priority> {
        let level = self.get("prio").and_then(|n| n.parse().ok()).filter(|level| *level < 8);
        match self.get("prioclass")? {
            "1" => level.map(Priority::RealTime),
            "2" => level.map(Priority::BestEffort),
            "3" => Some(Priority::Idle),
            _ => None,
        }
    }

    fn content(&self, writes: bool) -> Content {
        let percent = self.get("buffer_compress_percentage").and_then(|p| p.parse::<u8>().ok());
        if writes && self.get("verify").is_some_and(|verify| verify != "0" && verify != "null") {
            Content::Verify
        } else if self.on("zero_buffers") {
            Content::Compressible { percent: 100 }
        } else {
            percent
                .filter(|percent| (1..=100).contains(percent))
                .map_or(Content::Random, |percent| Content::Compressible { percent })
        }
    }
}

/// fio's `4k/60:64k/40`; shares left out divide what remains of 100.
pub(crate) fn split(text: &str, decimal: bool) -> Option<Blocks> {
    let parts: Vec<(Size, Option<u32>)> = text
        .split(':')
        .map(|part| {
            let (size, share) = part.split_once('/').unwrap_or((part, ""));
            let size = bytes(size, decimal).filter(|b| (1..=u64::from(u32::MAX)).contains(b))?;
            let share = if share.is_empty() { None } else { Some(share.parse().ok()?) };
            Some((Size(size), share))
        })
        .collect::<Option<_>>()?;
    let told: u32 = parts.iter().filter_map(|(_, share)| *share).sum();
    let open = parts.iter().filter(|(_, share)| share.is_none()).count() as u32;
    let rest = 100u32.checked_sub(told)?.checked_div(open).unwrap_or(0);
    let blocks: Vec<(Size, u32)> = parts
        .into_iter()
        .map(|(size, share)| (size, share.unwrap_or(rest)))
        .filter(|(_, share)| *share > 0)
        .collect();
    (!blocks.is_empty()).then_some(Blocks(blocks))
}

/// A number with fio's suffix. By default fio turns the standard around: `k` and `kb` are 1024, `Ki` and `KiB` are 1000;
/// with `kb_base=1000` it is the other way.
pub(crate) fn bytes(text: &str, decimal: bool) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let unit = text[end..].trim().to_ascii_lowercase();
    let unit = unit.strip_suffix("/s").unwrap_or(&unit);
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let (prefix, binary_name) = match unit.strip_suffix('i') {
        Some(prefix) => (prefix, true),
        None => (unit, false),
    };
    let exponent = match prefix {
        "" if !binary_name => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let base: u64 = if binary_name == decimal { 1024 } else { 1000 };
    number.checked_mul(base.pow(exponent))
}

/// A time with fio's suffix; `unit_ns` without one.
pub(crate) fn time(text: &str, unit_ns: u64) -> Option<Duration> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let unit_ns = match text[end..].trim() {
        "" => unit_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit_ns).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Options {
        Options(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn suffixes_are_fios_own() {
        for (text, decimal, expected) in [
            ("4096", false, Some(4096)),
            ("4k", false, Some(4096)),
            ("4kb", false, Some(4096)),
            ("4KiB", false, Some(4000)),
            ("4KiB", true, Some(4096)),
            ("4k", true, Some(4000)),
            ("2G", false, Some(2 << 30)),
            ("25%", false, None),
            ("", false, None),
            ("99999999999999999999", false, None),
            ("9999999999t", false, None),
        ] {
            assert_eq!(bytes(text, decimal), expected, "{text} {decimal}");
        }
        let seconds = |text| time(text, 1_000_000_000).map(Duration::as_secs_f64);
        assert_eq!(seconds("30"), Some(30.0));
        assert_eq!(seconds("2m"), Some(120.0));
        assert_eq!(seconds("1500ms"), Some(1.5));
        assert_eq!(seconds("soon"), None);
    }

    #[test]
    fn shares_left_out_divide_the_rest() {
        let blocks = split("4k/10:64k/50:32k/", false).unwrap();
        assert_eq!(blocks.to_string(), "4KiB:10,64KiB:50,32KiB:40");
        assert_eq!(split("4k/90:8k/20", false), None);
        assert_eq!(split("0/100", false), None);
    }

    #[test]
    fn a_range_of_blocks_is_told_by_its_mean() {
        let measured = Measured { commands: [10, 0, 0], bytes: 81_920 };
        let stream = options(&[("bsrange", "4k-12k")]).stream("s", &measured);
        assert_eq!(stream.block, Blocks::of(8192));
        assert_eq!(options(&[]).stream("s", &measured).block, Blocks::of(4096));
        let write = options(&[("rw", "randwrite"), ("bs", "4k,16k")]).stream("s", &measured);
        assert_eq!(write.block, Blocks::of(16384));
    }

    #[test]
    fn one_rate_counts_for_each_direction() {
        let stream = |pairs| options(pairs).stream("s", &Measured::default());
        let both = stream(&[("rw", "rw"), ("rate_iops", "100")]);
        assert_eq!(both.rate, Some(Pace::Commands(200.0)));
        let split = stream(&[("rw", "randrw"), ("rate", "1m,2m"), ("rate_process", "poisson")]);
        assert_eq!(
            (split.rate, split.arrival),
            (Some(Pace::Bytes(3.0 * 1048576.0)), Arrival::Poisson)
        );
        let write = stream(&[("rw", "write"), ("rate_iops", ",50")]);
        assert_eq!(write.rate, Some(Pace::Commands(50.0)));
        let bursts = stream(&[
            ("thinktime", "40000"),
            ("thinktime_blocks", "4"),
            ("thinktime_blocks_type", "issue"),
        ]);
        assert_eq!(
            (bursts.rate, bursts.arrival),
            (Some(Pace::Commands(100.0)), Arrival::Bursts(4))
        );
    }

    #[test]
    fn files_are_parted_by_colons_that_no_backslash_guards() {
        assert_eq!(options(&[("filename", "/dev/a:/b\\:c")]).files(), ["/dev/a", "/b:c"]);
    }
}
