//! Time as integers of nanoseconds.
//!
//! Two clocks, two types, so that they can't be mixed: [`Instant`] counts from a start that only its
//! bank knows (a monotonic clock, or a simulation's), [`Timestamp`] is UTC since 1970, as packets
//! carry it. [`Duration`] lies between two of either.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

use crate::units::ParseUnitError;

const NS_PER_S: u64 = 1_000_000_000;

/// A span of time in nanoseconds, up to 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest span, 584 years: "never" for a time-out.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// From microseconds; saturates.
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }
    /// From milliseconds; saturates.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }
    /// From seconds; saturates.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(NS_PER_S))
    }
    /// From seconds as a float; negative and NaN become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * NS_PER_S as f64) as u64)
    }
    /// In nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }
    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(d: Duration) -> Self {
        Self::from_nanos(d.0)
    }
}

impl fmt::Display for Duration {
    /// Three significant digits below a minute (`1.50 ms`), whole units above (`1h 02m 03s`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        if ns == 0 {
            return f.write_str("0 s");
        }
        if ns >= 60 * NS_PER_S {
            let s = ns / NS_PER_S;
            let (d, h, m, s) = (s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60);
            return match (d, h) {
                (0, 0) => write!(f, "{m}m {s:02}s"),
                (0, _) => write!(f, "{h}h {m:02}m {s:02}s"),
                _ => write!(f, "{d}d {h:02}h {m:02}m"),
            };
        }
        let (value, unit) = match ns {
            0..1_000 => return write!(f, "{ns} ns"),
            1_000..1_000_000 => (ns as f64 / 1e3, "us"),
            1_000_000..NS_PER_S => (ns as f64 / 1e6, "ms"),
            _ => (ns as f64 / 1e9, "s"),
        };
        let decimals = if value < 10.0 {
            2
        } else if value < 100.0 {
            1
        } else {
            0
        };
        write!(f, "{value:.decimals$} {unit}")
    }
}

impl FromStr for Duration {
    type Err = ParseUnitError;

    /// Numbers with units, added up: `10s`, `1.5 ms`, `1h30m`, `7d`. A bare number is an error,
    /// because a reader can't know whether it meant seconds.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = || {
            ParseUnitError::new(
                "duration",
                text,
                "a number and a unit (ns, us, ms, s, m, h, d, w), as in 10s or 1h30m",
            )
        };
        let mut rest = text.trim();
        let mut total_ns = 0f64;
        if rest.is_empty() {
            return Err(error());
        }
        while !rest.is_empty() {
            let digits = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .filter(|&n| n > 0)
                .ok_or_else(error)?;
            let value: f64 = rest[..digits].parse().map_err(|_| error())?;
            rest = rest[digits..].trim_start();
            let letters =
                rest.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(rest.len());
            let unit_ns = match &rest[..letters] {
                "ns" => 1.0,
                "us" | "µs" => 1e3,
                "ms" => 1e6,
                "s" | "sec" => 1e9,
                "m" | "min" => 60e9,
                "h" => 3_600e9,
                "d" => 86_400e9,
                "w" => 604_800e9,
                _ => return Err(error()),
            };
            total_ns += value * unit_ns;
            rest = rest[letters..].trim_start();
        }
        if total_ns >= u64::MAX as f64 {
            return Err(error());
        }
        Ok(Self(total_ns.round() as u64))
    }
}

/// A moment on a bank's own clock, in nanoseconds since that clock's start. It never goes backward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The clock's start.
    pub const START: Self = Self(0);

    /// From nanoseconds since the clock's start.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// In nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The time since `earlier`, or zero if that lies ahead.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

/// UTC in nanoseconds since 1970-01-01, without leap seconds: what packets carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The first instant of 1970, and "from the beginning" in a range.
    pub const MIN: Self = Self(0);
    /// In the year 2554, and "to the end" in a range.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds since 1970.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// In nanoseconds since 1970.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The time since `earlier`, or zero if that lies ahead.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}

impl SubAssign<Duration> for Timestamp {
    fn sub_assign(&mut self, d: Duration) {
        *self = *self - d;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_with_units_and_print_short() {
        for (text, ns, printed) in [
            ("10s", 10 * NS_PER_S, "10.0 s"),
            ("1.5ms", 1_500_000, "1.50 ms"),
            ("1h30m", 5_400 * NS_PER_S, "1h 30m 00s"),
            ("250 us", 250_000, "250 us"),
            ("2d", 172_800 * NS_PER_S, "2d 00h 00m"),
            ("90s", 90 * NS_PER_S, "1m 30s"),
        ] {
            let d: Duration = text.parse().unwrap();
            assert_eq!(d.as_nanos(), ns, "{text}");
            assert_eq!(d.to_string(), printed);
        }
    }

    #[test]
    fn a_duration_without_unit_is_refused_with_an_example() {
        for text in ["10", "", "s", "-3s", "5 parsecs", "99999999999w"] {
            let error = text.parse::<Duration>().unwrap_err().to_string();
            assert!(error.contains("10s"), "{error}");
        }
    }
}
