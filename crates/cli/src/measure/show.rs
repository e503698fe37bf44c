//! A measurement as text: a table of streams with what is known of their latencies, and a sparkline.

use base::{Duration, Rate};
use lab::Step;
use load::measurement::Summary;
use load::{Measurement, Verb};

use crate::outlet;

/// Percentiles in the table.
const SHOWN: [f64; 5] = [50.0, 99.0, 99.9, 99.99, 99.9999];

/// One measurement in words and figures.
pub fn text(step: &Step) -> String {
    let measured = &step.measurement;
    let mut lines = vec![table(measured)];
    lines.extend(remarks(measured));
    lines.push(sparkline(measured));
    lines.join("\n")
}

fn table(measured: &Measurement) -> String {
    let mut heads = vec![
        "stream".to_owned(),
        "rate".to_owned(),
        "I/O a second".to_owned(),
        "latency".to_owned(),
        "mean".to_owned(),
    ];
    heads.extend(SHOWN.iter().map(|percent| format!("{percent} %")));
    heads.push("longest".to_owned());
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = outlet::table(&heads, &[1, 2, 4, 5, 6, 7, 8, 9, 10]);
    for result in &measured.results {
        let open = result.service != result.response;
        let mut row = |what: &str, first: [String; 3], summary: &Summary| {
            let mut cells = first.to_vec();
            cells.push(what.to_owned());
            cells.push(summary.mean_ns.map_or("-".to_owned(), |ns| time(ns as u64)));
            cells.extend(
                SHOWN.iter().map(|p| summary.percentile(*p).map_or("not known".to_owned(), time)),
            );
            cells.push(summary.max_ns.map_or("-".to_owned(), time));
            table.add_row(cells);
        };
        let first = [
            format!("{} {}", result.stream, result.operation),
            Rate(result.bytes_per_s).to_string(),
            outlet::number(result.commands_per_s as u64),
        ];
        if open {
            row("response", first, &result.response);
            row("service", Default::default(), &result.service);
        } else {
            row("service", first, &result.service);
        }
    }
    outlet::trimmed(&table)
}

fn time(ns: u64) -> String {
    Duration::from_nanos(ns).to_string()
}

/// Everything that is not as it should be, and what it cost.
fn remarks(measured: &Measurement) -> Vec<String> {
    let mut lines = Vec::new();
    for result in &measured.results {
        for (error, count) in &result.errors {
            lines.push(format!(
                "{} {}: {} failed: {error}",
                result.stream,
                result.operation,
                outlet::number(*count)
            ));
        }
        if result.missed > 0 {
            lines.push(format!(
                "{} {}: {} answered after the deadline",
                result.stream,
                result.operation,
                outlet::number(result.missed)
            ));
        }
        if result.delayed > 0 {
            lines.push(format!(
                "{} {}: {} had to wait, because as many as may be were under way",
                result.stream,
                result.operation,
                outlet::number(result.delayed)
            ));
        }
    }
    for (stream, error) in &measured.given_up {
        lines.push(format!("{stream} gave up after failures in a row: {error}"));
    }
    if measured.unsent > 0 {
        lines.push(format!(
            "{} were intended before the end and never started",
            outlet::number(measured.unsent)
        ));
    }
    if let Some(found) = &measured.verification {
        lines.push(if found.wrong_sectors == 0 {
            format!("verified: {} read back, every byte right", base::ByteSize(found.checked_bytes))
        } else {
            format!(
                "WRONG: {} sectors of 512 bytes are not what was written there",
                outlet::number(found.wrong_sectors)
            )
        });
        for wrong in found.mismatches.iter().take(10) {
            lines.push(format!(
                "  drive {} from byte {}: {} wrong bytes; {}",
                wrong.drive, wrong.offset, wrong.bytes, wrong.found
            ));
        }
    }
    if let Some(ns) = measured.harness.cpu_ns_per_command {
        lines.push(format!("processor time for each I/O: {}", time(ns as u64)));
    }
    if let Some(limited) = &measured.harness.limited {
        lines.push(format!("harness-limited: {limited}"));
    }
    lines
}

/// The rate over time.
fn sparkline(measured: &Measurement) -> String {
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
    report::sparkline::labelled_sparkline(&rates, "GB/s", 80)
}
