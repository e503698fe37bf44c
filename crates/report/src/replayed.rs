//! A trace replayed on one or several targets, as text: a table with a row for each target and direction, and what is not as it
//! should be.

use base::units::{counted, grouped};
use base::{Duration, Rate};
use lab::replay::Replayed;
use load::measurement::StreamResult;

use crate::measurement;
use crate::text::{table, trimmed, wrapped};

/// Heads of the columns.
const HEADS: [&str; 11] = [
    "target",
    "time",
    "late p99",
    "",
    "requests",
    "I/O a second",
    "rate",
    "median",
    "p99",
    "p99.9",
    "longest",
];

/// Columns that hold numbers.
const NUMBERS: [usize; 9] = [1, 2, 4, 5, 6, 7, 8, 9, 10];

/// Below the table of a trace at its recorded times.
const LEGEND_TIMED: &str = "latencies count from the recorded time of each request, so they include the wait for what came \
    before; late p99: 99 % of the requests were submitted no later after they were due and had room";

/// Below the table of a trace as fast as possible.
const LEGEND_FASTEST: &str =
    "as fast as possible: latencies count from the submission of each request";

/// The table, what its columns mean, and remarks on each target.
pub fn text(replayed: &[Replayed]) -> String {
    let mut shown = table(&HEADS, &NUMBERS);
    for target in replayed {
        for row in rows(target) {
            shown.add_row(row);
        }
    }
    let timed = replayed.iter().any(|target| target.fitted.span_ns.is_some());
    let legend = if timed { LEGEND_TIMED } else { LEGEND_FASTEST };
    let mut lines = vec![trimmed(&shown), wrapped(legend, 0)];
    for target in replayed {
        let all = remarks(target).into_iter();
        lines.extend(all.map(|remark| wrapped(&format!("{}: {remark}", target.target), 0)));
    }
    lines.join("\n")
}

fn rows(target: &Replayed) -> Vec<[String; 11]> {
    let measured = &target.step.measurement;
    let late = match target.fitted.span_ns {
        Some(_) => known(measured.harness.lag.percentile(99.0)),
        None => "-".to_owned(),
    };
    let mut first = [target.target.clone(), time(measured.elapsed_ns), late];
    let mut rows = Vec::new();
    for result in &measured.results {
        let [name, elapsed, late] = std::mem::take(&mut first);
        rows.push(row([name, elapsed, late], result));
    }
    rows
}

fn row([name, elapsed, late]: [String; 3], result: &StreamResult) -> [String; 11] {
    let response = &result.response;
    let percentile = |percent| known(response.percentile(percent));
    [
        name,
        elapsed,
        late,
        result.operation.to_string(),
        grouped(result.count),
        grouped(result.commands_per_s as u64),
        rate(result.bytes_per_s),
        percentile(50.0),
        percentile(99.0),
        percentile(99.9),
        response.max_ns.map_or("-".to_owned(), time),
    ]
}

/// Bytes a second without the bits: the table is wide.
fn rate(bytes_per_s: f64) -> String {
    let text = Rate(bytes_per_s).to_string();
    text.split_once(" (").map_or(text.clone(), |(bytes, _)| bytes.to_owned())
}

fn time(ns: u64) -> String {
    Duration::from_nanos(ns).to_string()
}

fn known(ns: Option<u64>) -> String {
    ns.map_or("not known".to_owned(), time)
}

/// What was done to the trace for this target, and what is not as it should be.
fn remarks(target: &Replayed) -> Vec<String> {
    let fitted = &target.fitted;
    let mut lines = Vec::new();
    if let Some(before) = &target.preconditioned {
        lines.push(before.sentence());
        lines.extend(before.notes.iter().cloned());
    }
    let mut say = |number: u64, what: &str| {
        if number > 0 {
            lines.push(format!("{} {what}", counted(number, "request")));
        }
    };
    say(fitted.widened, "widened to whole blocks");
    say(fitted.wrapped, "beyond the end taken modulo the size (--wrap)");
    say(fitted.split, "longer than the target takes at once, and split");
    let measured = &target.step.measurement;
    lines.extend(measurement::troubles(measured));
    lines
}

#[cfg(test)]
mod tests {
    use lab::Step;
    use lab::counters::StepCounters;
    use load::interval::StreamInterval;
    use load::measurement::Collector;
    use load::trace::{Choice, FittedTrace, Fitting, Input, Speed, Trace};
    use load::{Interval, Verb};

    use super::*;

    /// Twenty thousand reads of 4 KiB in a second, each answered after 100 us, on a drive of 4 KiB blocks.
    fn replayed(target: &str, speed: Speed) -> Replayed {
        let mut log = "fio version 3 iolog\n".to_owned();
        (0..20_000).for_each(|at| log.push_str(&format!("{} f read 512 4096\n", at * 50)));
        let bytes = Box::new(std::io::Cursor::new(log.into_bytes()));
        let input = Input { name: "log".to_owned(), bytes };
        let trace = Trace::read(vec![input], &Choice::default()).unwrap();
        let drive = base::Geometry {
            name: target.to_owned(),
            capacity_bytes: 1 << 20,
            block_bytes: 4096,
            transfer_max_bytes: 1 << 20,
            depth_max: 32,
            trim_unit_bytes: None,
            trim_reads_zeros: false,
            writable: true,
        };
        let fitting = Fitting { speed, wrap: false, depth: None };
        let FittedTrace { workload, fitted } = FittedTrace::new(&trace, &drive, fitting).unwrap();
        let mut stream = StreamInterval { bytes: 163_840_000, delayed: 7, ..Default::default() };
        stream.service.record_many(Duration::from_micros(100), 20_000);
        stream.response.record_many(Duration::from_micros(100), 20_000);
        let mut interval = Interval::new(0, Duration::ZERO, false);
        interval.length = Duration::from_secs(1);
        interval.streams.insert((0, Verb::Read), stream);
        let mut collector = Collector::new(&workload);
        collector.add(&interval);
        let measurement = collector.finish(vec![target.to_owned()], 1, None, None, Vec::new());
        let step = Step { measurement, samples: Vec::new(), counters: StepCounters::default() };
        Replayed { target: target.to_owned(), simulated: true, preconditioned: None, fitted, step }
    }

    #[test]
    fn targets_stand_below_each_other_with_what_was_done_to_the_trace() {
        let text = text(&[
            replayed("/dev/one", Speed::Recorded(1.0)),
            replayed("sim:two", Speed::Recorded(1.0)),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>().join(" ");
        let rest = "1.00 s not known read 20,000 20,000 164 MB/s 100 us 100 us not known 100 us";
        assert_eq!(cells(1), format!("/dev/one {rest}"));
        assert_eq!(cells(2), format!("sim:two {rest}"));
        assert!(lines[3].starts_with("latencies count from the recorded time"), "{text}");
        assert!(text.contains("/dev/one: 20,000 requests widened to whole blocks"), "{text}");
        assert!(text.contains("sim:two: trace read: 7 had to wait"), "{text}");
    }

    #[test]
    fn as_fast_as_possible_nothing_is_late() {
        let text = text(&[replayed("sim:two", Speed::Fastest)]);
        assert!(text.contains("sim:two  1.00 s         -"), "{text}");
        assert!(
            text.contains("as fast as possible: latencies count from the submission"),
            "{text}"
        );
    }
}
