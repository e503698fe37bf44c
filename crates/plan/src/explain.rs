//! A plan in words: quantities as people say them, and every line of the arithmetic.

use base::{ByteSize, Duration, Rate};

use crate::answer::{Array, Design};
use crate::confidence::{Confidence, SURE};
use crate::limits::Limit;

/// Bytes a second: `12.6 GB/s`.
pub fn rate(bytes_per_s: f64) -> String {
    let text = Rate(bytes_per_s).to_string();
    text.split(" (").next().unwrap_or(&text).to_owned()
}

/// Bytes: `3.84 TB`.
pub fn bytes(bytes: f64) -> String {
    if bytes.is_finite() { ByteSize(bytes as u64).to_string() } else { "without end".to_owned() }
}

/// Seconds: `8h 00m 00s`, or years.
pub fn seconds(seconds: f64) -> String {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    if !seconds.is_finite() {
        return "for ever".to_owned();
    }
    if seconds >= YEAR_S {
        return format!("{} years", factor(seconds / YEAR_S));
    }
    Duration::from_secs_f64(seconds).to_string()
}

/// A number of drives: `1 drive`, `8 drives`.
pub fn drives(number: u32) -> String {
    if number == 1 { "1 drive".to_owned() } else { format!("{number} drives") }
}

/// A plain number with three significant digits at most: `5`, `1.67`, `40.2`.
pub fn factor(number: f64) -> String {
    let decimals = match number.abs() {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{number:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Every line of a design's arithmetic, with the numbers put in.
pub fn lines(design: &Design) -> Vec<String> {
    let mut lines = stream(design);
    for phase in &design.phases {
        let until =
            phase.ends_at_bytes.map_or_else(String::new, |end| format!(" until {}", bytes(end)));
        let worst = if phase.worst_bytes_per_s < phase.mean_bytes_per_s {
            format!(", {} in its slowest moments", rate(phase.worst_bytes_per_s))
        } else {
            String::new()
        };
        lines.push(format!(
            "a drive {}{until}: {}{worst} ({}, {})",
            phase.stage,
            rate(phase.mean_bytes_per_s),
            phase.figure.evidence,
            phase.figure.origin
        ));
    }
    if let (Some(peak), Some(drives)) = (design.datasheet_bytes_per_s, design.datasheet_drives) {
        let offered = design.load.map_or(0.0, |load| load.offered_bytes_per_s);
        lines.push(format!(
            "by the datasheet's peak it would be {} / {} = {:.2}: {drives}; don't (REC-1)",
            rate(offered),
            rate(peak),
            offered / peak
        ));
    }
    lines.extend(design.rate_arithmetic.iter().map(|line| format!("{}: {line}", Limit::Rate)));
    for need in design.needs.iter().filter(|need| need.limit != Limit::Rate) {
        lines.extend(need.arithmetic.iter().map(|line| format!("{}: {line}", need.limit)));
    }
    if let Some(split) = &design.sets {
        lines.extend(split.arithmetic.iter().map(|line| format!("sets: {line}")));
    }
    if let Some(array) = &design.array {
        let parts = [(array.parity_drives, "parity"), (array.spare_drives, "spare")];
        let more: String = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!(" + {count} {what}"))
            .collect();
        lines.push(format!(
            "in all: {} for data, as {} asks{more} = {}",
            array.data_drives, array.binds, array.drives
        ));
        if let Some(confidence) = &design.confidence {
            lines.push(confidence_words(confidence, array.data_drives));
        }
        if array.take.wraps && !design.rates_to_try.is_empty() {
            lines.push(to_try_words(&design.rates_to_try, array));
        }
        if let Some(cost) = array.cost {
            let drives = f64::from(array.drives);
            lines.push(format!("cost: {} x {} = {}", array.drives, cost / drives, cost));
        }
    }
    lines
}

/// How to find out whether so many drives are enough, as a line.
fn to_try_words(rates: &[f64], array: &Array) -> String {
    let planned = array.data_drives;
    let rates: Vec<String> = rates
        .iter()
        .map(|rate| {
            let digits = format!("{:.6}", rate / 1e9);
            format!("{}GB/s", digits.trim_end_matches('0').trim_end_matches('.'))
        })
        .collect();
    let of_less = match planned {
        _ if array.binds != Limit::Rate => String::new(),
        1 => String::new(),
        2 => ", and one alone".to_owned(),
        _ => format!(", and each of {}", planned - 1),
    };
    format!(
        "to be sure: `longtake measure fill DRIVE --rate {}` shows whether a drive holds what each of {} gets{of_less}",
        rates.join(","),
        drives(planned)
    )
}

/// How sure it is that so many drives are enough, as a line.
fn confidence_words(confidence: &Confidence, planned: u32) -> String {
    let (low, high) = confidence.range;
    let wanted = SURE * 100.0;
    let sure = match confidence.sure_drives {
        Some(sure) if sure > planned => format!(", {} with {wanted:.0} %", drives(sure)),
        Some(_) => String::new(),
        None => format!(", no number with {wanted:.0} %"),
    };
    let enough = match confidence.enough * 100.0 {
        // No range tells more.
        percent if percent > 99.9 => "more than 99.9 %".to_owned(),
        percent => format!("{percent:.1} %"),
    };
    format!(
        "confidence: {} for data {} fast enough with {enough} ({} lies between {} and {}){sure}",
        drives(planned),
        if planned == 1 { "is" } else { "are" },
        confidence.figure,
        rate(low),
        rate(high),
    )
}

/// What the stream comes to on this drive.
fn stream(design: &Design) -> Vec<String> {
    let (Some(load), Some(of)) = (design.load, design.overhead) else { return Vec::new() };
    vec![
        format!(
            "chunk: {} of head + {} of {} packets' blocks + {} of padding = {} bytes for {} of packets",
            of.head_bytes,
            of.block_bytes,
            of.packets,
            of.padding_bytes,
            of.chunk_bytes,
            of.packet_bytes
        ),
        format!(
            "segment: {} such chunks + {} of index in {} bytes: {:.4} written and {:.4} taken up for each byte of packets",
            of.chunks,
            of.index_bytes,
            of.segment_bytes,
            of.written_per_byte(),
            of.space_per_byte()
        ),
        format!(
            "stream: {} of packets, {} to be written with margin",
            rate(load.packet_bytes_per_s),
            rate(load.offered_bytes_per_s)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_said_in_few_digits() {
        assert_eq!(rate(12.5e9), "12.5 GB/s");
        assert_eq!(bytes(3.84e12), "3.84 TB");
        assert_eq!(bytes(f64::INFINITY), "without end");
        assert_eq!(seconds(28_800.0), "8h 00m 00s");
        assert_eq!(seconds(1.67 * 365.0 * 86_400.0), "1.67 years");
        assert_eq!(
            [5.0, 1.666, 40.16, 361.4, 0.5].map(factor),
            ["5", "1.67", "40.2", "361", "0.5"]
        );
    }
}
