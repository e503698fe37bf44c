//! Single workloads, as `longtake measure run` or fio ran them: rates over time, percentile curves, and what each stream got.

use base::{ByteSize, Duration, Rate};
use lab::analysis::Point as Interval;
use lab::counters::{SlowBucket, StepWritten};
use lab::{Answer, Figure, Finding, FindingKind, Step, Unit};
use load::measurement::StreamResult;
use load::{Measurement, Verb};

use super::found::{Found, Shown};
use super::percentiles::{self, Curve};
use super::quantity::Quantity;
use super::rates;
use crate::axis::Axis;
use crate::document::{Cell, Column, Table};
use crate::measurement::latencies;
use crate::picture::{Kind, Lines, Picture, Series};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;

/// The single workloads of a run, by name.
#[derive(Debug)]
pub(super) struct Single<'a>(pub &'a [(String, Step)]);

impl Single<'_> {
    /// Every stream's result, with its workload's name and measurement.
    fn results(&self) -> impl Iterator<Item = (&str, &Measurement, &StreamResult)> {
        self.0.iter().flat_map(|(name, step)| {
            let measured = &step.measurement;
            measured.results.iter().map(move |result| (name.as_str(), measured, result))
        })
    }
}

impl Answer for Single<'_> {
    fn question(&self) -> &'static str {
        "What did these workloads reach?"
    }

    fn findings(&self) -> Vec<Finding> {
        let finding = |(name, measured, result): (&str, &Measurement, &StreamResult)| {
            let p99 = result
                .response
                .percentile(99.0)
                .map_or("not known".to_owned(), |ns| Duration::from_nanos(ns).to_string());
            let sentence = format!(
                "{} ({}), {}: {{0}}, {:.0} commands a second; the p99 response time is {p99}.",
                result.stream, measured.instrument, result.operation, result.commands_per_s
            );
            let subject = format!("run.{name}.{}.{}", result.stream, result.operation);
            let rate = vec![lab::Quantity::rate(result.bytes_per_s)];
            Finding::new(&subject, FindingKind::States, rate, &sentence)
        };
        self.results().map(finding).collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (name, _, result) in self.results() {
            let stem = format!("run.{name}.{}.{}", result.stream, result.operation);
            let what = format!("{} {}", result.stream, result.operation);
            let mut add = |end: &str, label: &str, value: Option<f64>, unit| {
                let figure =
                    Figure::new(&format!("{stem}.{end}"), &format!("{what}: {label}"), value, unit);
                figures.push(if value.is_none() {
                    figure.noted("too few commands to know")
                } else {
                    figure
                });
            };
            add("rate", "bytes a second", Some(result.bytes_per_s), Unit::BytesPerSecond);
            add(
                "commands",
                "commands a second",
                Some(result.commands_per_s),
                Unit::CommandsPerSecond,
            );
            add("mean", "mean response", result.response.mean_ns, Unit::Nanoseconds);
            for percent in [50.0, 99.0, 99.9, 99.99, 99.9999] {
                let value = result.response.percentile(percent).map(|ns| ns as f64);
                add(
                    &format!("p{percent}"),
                    &format!("p{percent} response"),
                    value,
                    Unit::Nanoseconds,
                );
            }
            add(
                "longest",
                "longest response",
                result.response.max_ns.map(|ns| ns as f64),
                Unit::Nanoseconds,
            );
        }
        figures.extend(self.0.iter().filter_map(|(name, step)| amplification(name, step)));
        figures
    }
}

/// Write amplification of a workload that writes.
fn amplification(name: &str, step: &Step) -> Option<Figure> {
    let writes = step.measurement.results.iter().any(|result| result.operation == Verb::Write);
    let figure = |value| {
        let label = format!("{name}: write amplification");
        Figure::new(&format!("run.{name}.write_amplification"), &label, value, Unit::Count)
    };
    writes.then(|| match &step.counters.written {
        StepWritten::Known { host_bytes, media_bytes, amplification } => {
            figure(Some(*amplification)).noted(format!(
                "host {}, media {}",
                ByteSize(*host_bytes),
                ByteSize(*media_bytes)
            ))
        }
        StepWritten::NotKnown { reason } => figure(None).noted(reason),
    })
}

/// Every bucket of every drive that counts slow commands, with its workload's name.
fn slow(steps: &[(String, Step)]) -> impl Iterator<Item = (&str, &str, &SlowBucket)> {
    steps.iter().flat_map(|(name, step)| {
        step.counters.slow.iter().flat_map(move |drive| {
            let buckets = drive.buckets.iter();
            buckets.map(move |bucket| (name.as_str(), drive.drive.as_str(), bucket))
        })
    })
}

/// A row for each bucket of the drives' own latency monitors.
fn slow_table(found: &[Found<'_, Single<'_>>]) -> Option<Table> {
    let count = |count: u32| Cell::number(f64::from(count), 0);
    let rows: Vec<Vec<Cell>> = found
        .iter()
        .flat_map(|run| slow(run.result.0).map(move |row| (run, row)))
        .map(|(run, (name, drive, bucket))| {
            vec![
                Cell::text(run.name(found, name)),
                Cell::text(drive),
                Cell::text(latencies(bucket)),
                count(bucket.reads),
                count(bucket.writes),
                count(bucket.trims),
            ]
        })
        .collect();
    let columns = ["Workload", "Drive", "Latency"].map(Column::text).into_iter();
    let counts = ["Reads", "Writes", "Trims"].map(|head| Column::number(head, ""));
    (!rows.is_empty()).then(|| Table {
        caption: "Slow commands, as the drives themselves counted them".to_owned(),
        columns: columns.chain(counts).collect(),
        rows,
    })
}

impl Shown for Single<'_> {
    const TITLE: &'static str = "Workloads";

    fn finding(&self) -> String {
        let all: f64 = self.0.iter().map(|(_, step)| step.measurement.rate().0).sum();
        match self.0 {
            [(_, step)] => format!("{} in all, by {}.", Rate(all), step.measurement.instrument),
            many => format!("{} workloads.", many.len()),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, step) in self.0 {
            let measured = &step.measurement;
            warnings.extend(
                measured
                    .harness
                    .limited
                    .iter()
                    .map(|why| format!("{name}: harness-limited: {why}")),
            );
            warnings.extend(
                measured
                    .given_up
                    .iter()
                    .map(|(stream, error)| format!("{stream} gave up: {error}")),
            );
            for result in &measured.results {
                let failed = |(error, count): (&String, &u64)| {
                    format!("{} {}: {count} failed: {error}", result.stream, result.operation)
                };
                warnings.extend(result.errors.iter().map(failed));
                if result.missed > 0 {
                    warnings.push(format!(
                        "{} {}: {} answered after the deadline",
                        result.stream, result.operation, result.missed
                    ));
                }
            }
            if let Some(found) =
                measured.verification.as_ref().filter(|found| found.wrong_sectors > 0)
            {
                warnings.push(format!(
                    "{name}: {} sectors are not what was written there",
                    found.wrong_sectors
                ));
            }
        }
        warnings
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        rate_over_time(found).into_iter().chain(responses(found)).collect()
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        slow_table(found).into_iter().collect()
    }

    fn is_listed(_name: &str) -> bool {
        true
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        self.0
            .iter()
            .map(|(_, step)| {
                labelled_sparkline(
                    &rates::gigabytes(&curve(&step.measurement, None)),
                    "GB/s",
                    width,
                )
            })
            .collect()
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let lines: Vec<_> = self
            .0
            .iter()
            .flat_map(|(name, step)| {
                step.measurement.series.iter().map(move |line| (name, &step.measurement, line))
            })
            .collect();
        let stream = |measured: &Measurement, index: u16| {
            measured.workload.streams.get(usize::from(index)).map(|stream| stream.name.clone())
        };
        let columns = Columns::new()
            .texts("workload", lines.iter().map(|(name, ..)| (*name).clone()))
            .texts("stream", lines.iter().map(|(_, measured, line)| stream(measured, line.stream)))
            .texts("operation", lines.iter().map(|(.., line)| line.operation.to_string()))
            .integers("start", "ns", lines.iter().map(|(.., line)| line.start_ns))
            .integers("length", "ns", lines.iter().map(|(.., line)| line.length_ns))
            .integers("count", "", lines.iter().map(|(.., line)| line.count))
            .integers("bytes", "B", lines.iter().map(|(.., line)| line.bytes))
            .integers("errors", "", lines.iter().map(|(.., line)| line.errors))
            .integers("missed", "", lines.iter().map(|(.., line)| line.missed))
            .floats("mean", "ns", lines.iter().map(|(.., line)| line.mean_ns))
            .integers("p50", "ns", lines.iter().map(|(.., line)| line.p50_ns))
            .integers("p99", "ns", lines.iter().map(|(.., line)| line.p99_ns))
            .integers("longest", "ns", lines.iter().map(|(.., line)| line.max_ns));
        let mut series = vec![("intervals", columns)];
        let slow: Vec<_> = slow(self.0).collect();
        if !slow.is_empty() {
            let buckets = || slow.iter().map(|(.., bucket)| bucket);
            let columns = Columns::new()
                .texts("workload", slow.iter().map(|(name, ..)| (*name).to_owned()))
                .texts("drive", slow.iter().map(|(_, drive, _)| (*drive).to_owned()))
                .integers("from", "ms", buckets().map(|bucket| u64::from(bucket.from_ms)))
                .integers("below", "ms", buckets().map(|bucket| bucket.below_ms.map(u64::from)))
                .integers("reads", "", buckets().map(|bucket| u64::from(bucket.reads)))
                .integers("writes", "", buckets().map(|bucket| u64::from(bucket.writes)))
                .integers("trims", "", buckets().map(|bucket| u64::from(bucket.trims)));
            series.push(("slow", columns));
        }
        series
    }
}

/// The intervals of one stream and operation, or of all together (trims not counted).
fn curve(measured: &Measurement, of: Option<(u16, Verb)>) -> Vec<Interval> {
    let mut curve: Vec<Interval> = Vec::new();
    for line in measured.series.iter().filter(|line| line.length_ns > 0) {
        if of.map_or(line.operation == Verb::Trim, |of| of != (line.stream, line.operation)) {
            continue;
        }
        match curve.last_mut() {
            Some(last) if last.start_ns == line.start_ns => last.bytes += line.bytes,
            _ => curve.push(Interval {
                start_ns: line.start_ns,
                duration_ns: line.length_ns,
                bytes: line.bytes,
            }),
        }
    }
    curve
}

fn rate_over_time(found: &[Found<'_, Single<'_>>]) -> Option<Picture> {
    let mut curves = Vec::new();
    for run in found {
        for (name, step) in run.result.0 {
            let streams = step.measurement.workload.streams.iter().enumerate();
            for (stream, verb) in
                streams.flat_map(|stream| [(stream, Verb::Read), (stream, Verb::Write)])
            {
                let (index, stream) = stream;
                let curve = curve(&step.measurement, Some((index as u16, verb)));
                let whose =
                    if run.result.0.len() > 1 { format!("{name}, ") } else { String::new() };
                if !curve.is_empty() {
                    curves
                        .push((run.name(found, &format!("{whose}{} {verb}", stream.name)), curve));
                }
            }
        }
    }
    if curves.is_empty() {
        return None;
    }
    let rate = Quantity::rate(curves.iter().flat_map(|(_, curve)| curve).map(Interval::rate));
    let line = |(name, curve): (String, Vec<Interval>)| Series {
        name,
        points: rates::over_time(&curve, 0, &rate),
        ..Series::default()
    };
    let series = curves.into_iter().map(line).collect();
    let x = Axis::linear("Time since the start", "s");
    let y = Axis { minimum: Some(0.0), ..rate.axis("Rate") };
    let kind = Kind::Lines(Lines { x, y, series, ..Lines::default() });
    Some(Picture::new("Rate over time", "Each interval, warm-up included.", kind))
}

fn responses(found: &[Found<'_, Single<'_>>]) -> Option<Picture> {
    let mut curves = Vec::new();
    for run in found {
        for (name, _, result) in run.result.results() {
            let what = format!("{} {}", result.stream, result.operation);
            curves.push(Curve::of_steps(
                run.name(found, &what),
                &result.response,
                run.folder,
                lab::run::SINGLE,
                &[name.to_owned()],
                &percentiles::responses_of(&result.stream, result.operation),
            ));
        }
    }
    percentiles::picture(
        "Response times".to_owned(),
        "From the intended start to the answer. Lines end where fewer than 100 commands lie beyond.",
        curves,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
    use base::{BufferId, Rate};
    use lab::counters::{SlowCommands, StepCounters};
    use lab::{BankRig, Go, Lab};
    use load::Workload;

    use crate::measured;

    #[test]
    fn a_single_workload_and_one_of_fios_stand_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let text = "interval = '100ms'\nstop = { time = '1s' }\n[[stream]]\nname = 'r'\nread = 1\npattern = 'random'\nblock = '4KiB'\ndepth = 4";
        let workload = Workload::from_toml(text).unwrap();
        let drive = MemoryDrive { rate: Some(Rate(400e6)), ..MemoryDrive::default() };
        let memory = MemoryBuffers::new(4, 4096);
        let bank = MemoryBank::new(vec![drive], memory.clone());
        let mut rig = BankRig::new(bank, memory, (0..4).map(BufferId).collect());
        let mut watch = |_: &lab::Progress<'_>| Go::On;
        let step = Lab::new(&mut rig, folder.path(), &mut watch)
            .unwrap()
            .step(lab::run::SINGLE, "workload", &workload)
            .unwrap();
        let run =
            lab::run::Run::read(folder.path()).unwrap().expect("a single workload is a result");
        assert_eq!(run.measurements, [("workload".to_owned(), step.clone())]);

        let theirs = lab::run::Run {
            measurements: vec![(
                "workload".to_owned(),
                Step {
                    measurement: Measurement {
                        instrument: "fio 3.33".to_owned(),
                        ..step.measurement.clone()
                    },
                    samples: Vec::new(),
                    counters: StepCounters::default(),
                },
            )],
            ..run.clone()
        };
        let runs = [
            ("ours".to_owned(), run, folder.path().to_owned()),
            ("fio".to_owned(), theirs, folder.path().join("none")),
        ];
        let document = measured::document(&runs);
        let section =
            document.sections.iter().find(|section| section.title == Single::TITLE).unwrap();
        let Kind::Lines(lines) = &section.pictures[0].kind else { panic!("a rate is a line") };
        assert_eq!(lines.series.len(), 2);
        let drawn: Vec<f64> = lines.series[0].points.iter().filter_map(|point| point.y).collect();
        let expected: Vec<f64> = step
            .measurement
            .series
            .iter()
            .map(|line| line.bytes as f64 * 1e3 / line.length_ns as f64)
            .collect();
        assert_eq!(drawn.len(), expected.len());
        assert!(
            drawn.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "{drawn:?} {expected:?}"
        );
        let Kind::Lines(lines) = &section.pictures[1].kind else { panic!("percentiles are lines") };
        assert!(
            lines.series[0].points.len() > lines.series[1].points.len(),
            "the folder's histograms make a finer curve"
        );
        let series = measured::series("ours", &runs[0].1);
        assert!(
            series
                .iter()
                .any(|(name, columns)| name == "intervals" && columns.rows() == expected.len())
        );
        assert!(crate::html::page(&document).contains("fio 3.33"));
        assert!(!crate::html::page(&document).contains("Slow commands"), "no drive counted any");

        let bucket = SlowBucket { from_ms: 5, below_ms: Some(10), reads: 7, writes: 0, trims: 1 };
        let slow = SlowCommands { drive: "/dev/nvme0n1".to_owned(), buckets: vec![bucket] };
        let counters = StepCounters { slow: vec![slow], ..StepCounters::default() };
        let counted = lab::run::Run {
            measurements: vec![("workload".to_owned(), Step { counters, ..step })],
            ..runs[0].1.clone()
        };
        let series = measured::series("ours", &counted);
        let slow = series.iter().find(|(name, _)| name == "slow").map(|(_, columns)| columns);
        assert_eq!(slow.map(Columns::rows), Some(1));
        let document = measured::document(&[("ours".to_owned(), counted, folder.path().into())]);
        let page = crate::html::page(&document);
        assert!(page.contains("Slow commands") && page.contains("5 ms to 10 ms"));
    }
}
