//! Points in time as users write and read them.

use std::str::FromStr;

use base::{Duration, Timestamp};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use recorder::TimeRange;
pub use source::clock::now;

/// A point in time on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This one.
    At(Timestamp),
    /// So long ago.
    Ago(Duration),
}

impl When {
    /// As a time stamp.
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now - ago,
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let error = || {
            format!(
                "'{text}' is no time: give 2026-11-21T10:00:00Z, \"2026-11-21 10:00:00.5\" (local time), \
                 -10m (ago), now, or seconds since 1970"
            )
        };
        if text == "now" {
            return Ok(Self::Ago(Duration::ZERO));
        }
        if let Some(ago) = text.strip_prefix('-') {
            return ago.parse().map(Self::Ago).map_err(|_| error());
        }
        if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return seconds(text).map(Self::At).ok_or_else(error);
        }
        let timestamp = text.parse::<jiff::Timestamp>().or_else(|_| {
            text.parse::<DateTime>()
                .and_then(|local| local.to_zoned(TimeZone::system()))
                .map(|zoned| zoned.timestamp())
        });
        let ns = timestamp.map_err(|_| error())?.as_nanosecond();
        u64::try_from(ns).map(|ns| Self::At(Timestamp::from_nanos(ns))).map_err(|_| error())
    }
}

/// Decimal seconds since 1970 without the rounding of a float.
fn seconds(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok()?;
    if fraction.len() > 9 || fraction.contains('.') {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(fraction).map(Timestamp::from_nanos)
}

/// As RFC 3339 in UTC, to the nanosecond where there are any.
pub fn utc(at: Timestamp) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(at.as_nanos())) {
        Ok(at) => at.to_string(),
        Err(_) => format!("{} ns since 1970", at.as_nanos()),
    }
}

/// A span in words; an end that is open is not named.
pub fn span_in_words(span: TimeRange) -> String {
    match (span.from, span.to) {
        (Timestamp::MIN, Timestamp::MAX) => "everything".to_owned(),
        (Timestamp::MIN, to) => format!("everything to {}", utc(to)),
        (from, Timestamp::MAX) => format!("everything from {}", utc(from)),
        (from, to) => format!("{} to {}", utc(from), utc(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_parse_in_every_form_that_help_names() {
        let at = |ns| When::At(Timestamp::from_nanos(ns));
        assert_eq!("1700000000".parse(), Ok(at(1_700_000_000_000_000_000)));
        assert_eq!("1700000000.000000001".parse(), Ok(at(1_700_000_000_000_000_001)));
        assert_eq!("2023-11-14T22:13:20Z".parse(), Ok(at(1_700_000_000_000_000_000)));
        assert_eq!("2023-11-14T22:13:20.5Z".parse(), Ok(at(1_700_000_000_500_000_000)));
        assert_eq!("-10m".parse(), Ok(When::Ago(Duration::from_secs(600))));
        assert!(matches!("2023-11-14 22:13".parse(), Ok(When::At(_))));
        for wrong in ["", "yesterday", "-10", "1.2.3", "2023-13-01T00:00:00Z"] {
            assert!(wrong.parse::<When>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_prints_as_it_parses() {
        let at = Timestamp::from_nanos(1_700_000_000_123_456_789);
        assert_eq!(utc(at), "2023-11-14T22:13:20.123456789Z");
        assert_eq!(utc(at).parse(), Ok(When::At(at)));
    }
}
