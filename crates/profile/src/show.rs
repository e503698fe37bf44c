//! Figures and their sources as people read them.

use std::fmt;

use base::{ByteSize, Rate};

use crate::{Known, SourceKind, Unit};

impl SourceKind {
    /// Its word, which is also its name in profiles.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Assumed => "assumed",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Unit {
    /// A value of this unit, with three significant digits: `1.60 GB/s (12.8 Gb/s)`, `42.0 GB`, `1.85 ms`, `12.5 %`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Bytes if value >= 0.0 => ByteSize(value.round() as u64).to_string(),
            Self::Bytes => format!("{value} B"),
            Self::BytesPerSecond => Rate(value).to_string(),
            Self::CommandsPerSecond => format!("{value:.0} IOPS"),
            Self::Nanoseconds => time(value),
            Self::Percent => format!("{value:.1} %"),
            Self::Count if value.fract() == 0.0 => format!("{value:.0}"),
            Self::Count => format!("{value:.2}"),
        }
    }
}

impl Known {
    /// Its range in words, `42.0 GB to 44.0 GB`; empty if no range is known.
    pub fn show_range(&self) -> String {
        let Some((low, high)) = self.range else { return String::new() };
        format!("{} to {}", self.unit.show(low), self.unit.show(high))
    }

    /// Where it comes from in words: kind, origin, day and note.
    pub fn show_source(&self) -> String {
        let mut text = format!("{}: {}", self.source.kind, self.source.origin);
        if let Some(when) = &self.source.when {
            text += &format!(", {when}");
        }
        if !self.note.is_empty() {
            text += &format!(" ({})", self.note);
        }
        text
    }
}

/// A time with its rounding, as a duration is printed with all its digits.
fn time(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    let (factor, unit) =
        units.into_iter().find(|(factor, _)| ns.abs() >= *factor).unwrap_or(units[3]);
    let value = ns / factor;
    let decimals = if value.abs() >= 100.0 || factor == 1.0 { 0 } else { 2 };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_the_unit_that_suits_them() {
        for (unit, value, text) in [
            (Unit::Bytes, 42e9, "42.0 GB"),
            (Unit::BytesPerSecond, 1.6e9, "1.60 GB/s (12.8 Gb/s)"),
            (Unit::CommandsPerSecond, 19_000.4, "19000 IOPS"),
            (Unit::Nanoseconds, 1_850_000.0, "1.85 ms"),
            (Unit::Nanoseconds, 300e9, "300 s"),
            (Unit::Nanoseconds, 0.0, "0 ns"),
            (Unit::Percent, 12.46, "12.5 %"),
            (Unit::Count, 4.0, "4"),
            (Unit::Count, 2.5, "2.50"),
        ] {
            assert_eq!(unit.show(value), text);
        }
    }

    #[test]
    fn a_figure_is_shown_with_its_range_and_its_source() {
        let source = crate::Source {
            kind: SourceKind::Measured,
            origin: "longtake on host".to_owned(),
            when: Some("2026-11-21".to_owned()),
        };
        let known = Known {
            value: 1.6e9,
            unit: Unit::BytesPerSecond,
            range: Some((1.59e9, 1.61e9)),
            confidence: None,
            note: "the slowest minute".to_owned(),
            source,
        };
        assert_eq!(known.show_range(), "1.59 GB/s (12.7 Gb/s) to 1.61 GB/s (12.9 Gb/s)");
        let shown = "measured: longtake on host, 2026-11-21 (the slowest minute)";
        assert_eq!(known.show_source(), shown);
        assert_eq!(Known { range: None, ..known }.show_range(), "");
    }
}
