//! A measurement as text: rows of a table of its streams with what is known of their latencies, remarks, and a sparkline.

use base::units::grouped;
use base::{ByteSize, Duration, Rate};
use lab::Step;
use lab::counters::{SlowBucket, StepCounters, StepWritten};
use load::measurement::{LatencySummary, StreamResult};
use load::{Measurement, Verb};

use crate::sparkline::labelled_sparkline;
use crate::text::wrapped;

/// Heads of the columns of [`rows`].
pub const HEADS: [&str; 11] = [
    "stream",
    "rate",
    "I/O a second",
    "latency",
    "mean",
    "median",
    "p99",
    "p99.9",
    "p99.99",
    "p99.9999",
    "longest",
];

/// What the columns of latencies hold, as a line below the table.
pub const LEGEND: &str = "latency: response is from the intended start to the answer, service from submission to the answer; \
    p99: 99 % of the commands took no longer";

/// Columns of [`rows`] that hold numbers.
pub const NUMBERS: [usize; 9] = [1, 2, 4, 5, 6, 7, 8, 9, 10];

/// Percentiles in the table.
const SHOWN: [f64; 5] = [50.0, 99.0, 99.9, 99.99, 99.9999];

/// Rows of the table: two for a stream whose responses count from when they were intended, else one.
pub fn rows(measured: &Measurement) -> Vec<[String; 11]> {
    let of = |result: &StreamResult| {
        let first = [
            format!("{} {}", result.stream, result.operation),
            Rate(result.bytes_per_s).to_string(),
            grouped(result.commands_per_s as u64),
        ];
        if result.service == result.response {
            return vec![row("service", first, &result.service)];
        }
        let response = row("response", first, &result.response);
        vec![response, row("service", Default::default(), &result.service)]
    };
    measured.results.iter().flat_map(of).collect()
}

fn row(
    what: &str,
    [stream, rate, commands]: [String; 3],
    summary: &LatencySummary,
) -> [String; 11] {
    let [p50, p99, p99_9, p99_99, p99_9999] =
        SHOWN.map(|p| summary.percentile(p).map_or("not known".to_owned(), time));
    let mean = summary.mean_ns.map_or("-".to_owned(), |ns| time(ns as u64));
    let longest = summary.max_ns.map_or("-".to_owned(), time);
    let what = what.to_owned();
    [stream, rate, commands, what, mean, p50, p99, p99_9, p99_99, p99_9999, longest]
}

fn time(ns: u64) -> String {
    Duration::from_nanos(ns).to_string()
}

/// Everything that is not as it should be, and what it cost.
pub fn remarks(measured: &Measurement) -> Vec<String> {
    let mut lines = troubles(measured);
    if let Some(ns) = measured.harness.cpu_ns_per_command {
        let limited = usize::from(measured.harness.limited.is_some());
        let cost = format!("processor time for each I/O: {}", time(ns as u64));
        lines.insert(lines.len() - limited, cost);
    }
    lines
}

/// Everything that is not as it should be.
pub(crate) fn troubles(measured: &Measurement) -> Vec<String> {
    let mut lines = Vec::new();
    for result in &measured.results {
        for (error, count) in &result.errors {
            lines.push(format!(
                "{} {}: {} failed: {error}",
                result.stream,
                result.operation,
                grouped(*count)
            ));
        }
        if result.missed > 0 {
            lines.push(format!(
                "{} {}: {} answered after the deadline",
                result.stream,
                result.operation,
                grouped(result.missed)
            ));
        }
        if result.delayed > 0 {
            lines.push(format!(
                "{} {}: {} had to wait, because the limit of commands under way was reached",
                result.stream,
                result.operation,
                grouped(result.delayed)
            ));
        }
    }
    for (stream, error) in &measured.given_up {
        lines.push(format!("{stream} gave up after failures in a row: {error}"));
    }
    if measured.unsent > 0 {
        lines.push(format!(
            "{} were due before the end and never started",
            grouped(measured.unsent)
        ));
    }
    if let Some(found) = &measured.verification {
        lines.push(if found.wrong_sectors == 0 {
            format!("verified: {} read back, all bytes correct", ByteSize(found.checked_bytes))
        } else {
            format!(
                "WRONG: {} sectors of 512 bytes differ from what was written",
                grouped(found.wrong_sectors)
            )
        });
        for wrong in found.mismatches.iter().take(10) {
            lines.push(format!(
                "  drive {} from byte {}: {} wrong bytes; {}",
                wrong.drive, wrong.offset, wrong.bytes, wrong.found
            ));
        }
    }
    if let Some(limited) = &measured.harness.limited {
        lines.push(format!("harness-limited: {limited}"));
    }
    lines
}

/// What the drives counted of their own work during the step: write amplification if the workload writes, and a line for
/// each bucket of a latency monitor that caught slow commands.
pub fn counted(step: &Step) -> Vec<String> {
    let StepCounters { written, slow } = &step.counters;
    let mut lines = Vec::new();
    if step.measurement.results.iter().any(|result| result.operation == Verb::Write) {
        lines.push(match written {
            StepWritten::Known { host_bytes, media_bytes, amplification } => format!(
                "write amplification: {amplification:.3} (host {}, media {})",
                ByteSize(*host_bytes),
                ByteSize(*media_bytes)
            ),
            StepWritten::NotKnown { reason } => {
                wrapped(&format!("write amplification: not known: {reason}"), 0)
            }
        });
    }
    for drive in slow {
        let caught = |bucket: &&SlowBucket| bucket.reads + bucket.writes + bucket.trims > 0;
        let buckets: Vec<&SlowBucket> = drive.buckets.iter().filter(caught).collect();
        if buckets.is_empty() {
            let least = drive.buckets.first().map_or(0, |bucket| bucket.from_ms);
            lines.push(format!("{} itself counted no command of {least} ms or more", drive.drive));
        }
        lines.extend(buckets.into_iter().map(|bucket| {
            format!("{} itself counted {}: {}", drive.drive, latencies(bucket), commands(bucket))
        }));
    }
    lines
}

/// A bucket's latencies: `5 ms to 10 ms`, `1000 ms or more`.
pub(crate) fn latencies(bucket: &SlowBucket) -> String {
    match bucket.below_ms {
        Some(below) => format!("{} ms to {below} ms", bucket.from_ms),
        None => format!("{} ms or more", bucket.from_ms),
    }
}

fn commands(bucket: &SlowBucket) -> String {
    let [reads, writes, trims] =
        [bucket.reads, bucket.writes, bucket.trims].map(|count| grouped(u64::from(count)));
    format!("{reads} reads, {writes} writes, {trims} trims")
}

/// The rate over time in one line of 80 characters.
pub fn sparkline(measured: &Measurement) -> String {
    let mut rates: Vec<(u64, f64)> = Vec::new();
    for line in
        measured.series.iter().filter(|line| line.operation != Verb::Trim && line.length_ns > 0)
    {
        let rate = line.bytes as f64 * 1e9 / line.length_ns as f64;
        match rates.last_mut() {
            Some((start, sum)) if *start == line.start_ns => *sum += rate,
            _ => rates.push((line.start_ns, rate)),
        }
    }
    let rates: Vec<Option<f64>> = rates.into_iter().map(|(_, rate)| Some(rate / 1e9)).collect();
    labelled_sparkline(&rates, "GB/s", 80)
}

#[cfg(test)]
mod tests {
    use lab::counters::SlowCommands;
    use load::interval::StreamInterval;
    use load::measurement::Collector;
    use load::{Interval, Workload};

    use super::*;

    /// A stream of 1,000 reads in a second, each of which the drive answered after 100 us. Those with a rate waited as long again.
    fn measured(rate: &str, missed: u64) -> Measurement {
        let text = format!("[stop]\ntime = '1s'\n[[stream]]\nname = 'reader'\nread = 1\n{rate}");
        let workload = Workload::from_toml(&text).unwrap();
        let mut stream = StreamInterval { bytes: 128_000_000, missed, ..StreamInterval::default() };
        for _ in 0..1000 {
            stream.service.record(Duration::from_micros(100));
            let waited = if rate.is_empty() { 100 } else { 200 };
            stream.response.record(Duration::from_micros(waited));
        }
        let mut interval = Interval::new(0, Duration::ZERO, false);
        interval.length = Duration::from_secs(1);
        interval.streams.insert((0, Verb::Read), stream);
        let mut collector = Collector::new(&workload);
        collector.add(&interval);
        collector.finish(vec!["drive".to_owned()], 1, None, None, Vec::new())
    }

    #[test]
    fn a_stream_at_a_rate_has_a_row_for_what_it_waited_and_one_for_what_the_drive_took() {
        let rows = rows(&measured("rate = '1000/s'\n", 0));
        let heads: Vec<&str> = rows.iter().map(|row| row[3].as_str()).collect();
        assert_eq!(heads, ["response", "service"]);
        assert_eq!(rows[0][..3], ["reader read", "128 MB/s (1.02 Gb/s)", "1,000"]);
        assert_eq!(rows[1][..3], ["", "", ""]);
        assert_eq!(rows[0][9], "not known", "a thousand reads don't tell 99.9999 %");
        assert_eq!(super::rows(&measured("", 0)).len(), 1);
    }

    /// A stream of 1,000 commands of this kind, with what the drives counted.
    fn step(verb: Verb, counters: StepCounters) -> Step {
        let mut measurement = measured("", 0);
        measurement.results[0].operation = verb;
        Step { measurement, samples: Vec::new(), counters }
    }

    #[test]
    fn write_amplification_is_told_of_writes_and_says_why_where_it_is_not_known() {
        let written = StepWritten::Known {
            host_bytes: 2_000_000_000,
            media_bytes: 4_500_000_000,
            amplification: 2.25,
        };
        let counters = StepCounters { written, slow: Vec::new() };
        let line = "write amplification: 2.250 (host 2.00 GB, media 4.50 GB)";
        assert_eq!(counted(&step(Verb::Write, counters.clone())), [line]);
        assert_eq!(counted(&step(Verb::Read, counters)), Vec::<String>::new());
        let unknown = counted(&step(Verb::Write, StepCounters::default()));
        assert!(unknown[0].starts_with("write amplification: not known: "), "{unknown:?}");
    }

    #[test]
    fn slow_commands_are_told_with_the_drive_that_counted_them() {
        let bucket =
            |from_ms, below_ms, reads| SlowBucket { from_ms, below_ms, reads, writes: 0, trims: 0 };
        let drive = |first, last| SlowCommands {
            drive: "/dev/nvme0n1".to_owned(),
            buckets: vec![bucket(5, Some(10), first), bucket(1000, None, last)],
        };
        let told = |slow| {
            let counters = StepCounters { slow: vec![slow], ..StepCounters::default() };
            counted(&step(Verb::Read, counters))
        };
        assert_eq!(
            told(drive(1200, 3)),
            [
                "/dev/nvme0n1 itself counted 5 ms to 10 ms: 1,200 reads, 0 writes, 0 trims",
                "/dev/nvme0n1 itself counted 1000 ms or more: 3 reads, 0 writes, 0 trims",
            ]
        );
        assert_eq!(told(drive(0, 0)), ["/dev/nvme0n1 itself counted no command of 5 ms or more"]);
    }

    #[test]
    fn only_what_is_not_as_it_should_be_is_remarked() {
        assert_eq!(remarks(&measured("", 0)), Vec::<String>::new());
        assert_eq!(remarks(&measured("", 3)), ["reader read: 3 answered after the deadline"]);
        assert_eq!(sparkline(&measured("", 0)), "0.128 ▄ 0.128 GB/s");
    }
}
