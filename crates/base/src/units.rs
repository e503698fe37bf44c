//! Sizes in bytes and rates in bytes a second, parsed and printed one way everywhere.

use std::fmt;
use std::str::FromStr;

use crate::time::Duration;

/// A text that isn't the quantity it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    quantity: &'static str,
    text: String,
    wanted: &'static str,
}

impl ParseUnitError {
    pub(crate) fn new(quantity: &'static str, text: &str, wanted: &'static str) -> Self {
        Self { quantity, text: text.to_owned(), wanted }
    }
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a {}: give {}", self.text, self.quantity, self.wanted)
    }
}

impl std::error::Error for ParseUnitError {}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    /// Decimal units with three significant digits, as drives are sold: `3.84 TB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = scaled(self.0 as f64, &["B", "kB", "MB", "GB", "TB", "PB", "EB"]);
        f.pad(&text)
    }
}

impl FromStr for ByteSize {
    type Err = ParseUnitError;

    /// `4096`, `4KiB`, `256M` (binary, as `dd` and fio read it), `4GB` (decimal), `1.5TiB`.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = || {
            ParseUnitError::new(
                "size",
                text,
                "bytes, or a number with K/KiB, M/MiB, G/GiB, T/TiB (powers of 1024) \
                 or kB, MB, GB, TB (powers of 1000)",
            )
        };
        let (value, unit) = split_number(text).ok_or_else(error)?;
        let factor = match unit {
            "" | "B" => 1.0,
            "k" | "K" | "KiB" => 1024f64,
            "m" | "M" | "MiB" => 1024f64.powi(2),
            "g" | "G" | "GiB" => 1024f64.powi(3),
            "t" | "T" | "TiB" => 1024f64.powi(4),
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            _ => return Err(error()),
        };
        let bytes = value * factor;
        if bytes >= u64::MAX as f64 {
            return Err(error());
        }
        Ok(Self(bytes.round() as u64))
    }
}

/// Bytes a second. Prints as both GB/s and Gb/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

impl Rate {
    /// The rate that moves `bytes` in `time`; zero for no time.
    pub fn of(bytes: u64, time: Duration) -> Self {
        if time == Duration::ZERO { Self(0.0) } else { Self(bytes as f64 / time.as_secs_f64()) }
    }

    /// The bytes it moves in `time`.
    pub fn bytes_in(self, time: Duration) -> f64 {
        self.0 * time.as_secs_f64()
    }

    /// The time it takes to move `bytes`; [`Duration::MAX`] when the rate is zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 <= 0.0 { Duration::MAX } else { Duration::from_secs_f64(bytes as f64 / self.0) }
    }
}

impl fmt::Display for Rate {
    /// Bytes first, bits in brackets: `1.25 GB/s (10.0 Gb/s)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = scaled(self.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
        let bits = scaled(self.0 * 8.0, &["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]);
        f.pad(&format!("{bytes} ({bits})"))
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;

    /// `1GB/s`, `100Gb/s`, `400MB/s`, `1.5GiB/s`. Small b is bits, large B is bytes.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = || {
            ParseUnitError::new(
                "rate",
                text,
                "a number with GB/s, MB/s, kB/s, GiB/s, MiB/s (bytes) or Gb/s, Mb/s, kb/s (bits)",
            )
        };
        let (value, unit) = split_number(text).ok_or_else(error)?;
        let unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")).ok_or_else(error)?;
        let factor = match unit {
            "B" => 1.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            "KiB" => 1024f64,
            "MiB" => 1024f64.powi(2),
            "GiB" => 1024f64.powi(3),
            "b" => 1.0 / 8.0,
            "kb" => 1e3 / 8.0,
            "Mb" => 1e6 / 8.0,
            "Gb" => 1e9 / 8.0,
            "Tb" => 1e12 / 8.0,
            _ => return Err(error()),
        };
        let bytes_per_s = value * factor;
        if !bytes_per_s.is_finite() {
            return Err(error());
        }
        Ok(Self(bytes_per_s))
    }
}

/// Splits `1.5 GiB` into 1.5 and `GiB`. None if it doesn't start with a non-negative number.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    Some((value, text[end..].trim()))
}

/// Three significant digits with the greatest unit (of 1000 each) that keeps the value at 1 or more.
fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 && value.fract() == 0.0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}

/// A number with commas between thousands: 1234567 is `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things that are called by a regular noun: `1 take`, `1,234 takes`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart_by_commas() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(n), text);
        }
    }

    #[test]
    fn sizes_parse_as_binary_or_decimal_by_their_unit() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4KiB", 4096),
            ("256M", 256 << 20),
            ("4GB", 4_000_000_000),
            ("1.5 TiB", 3 << 39),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap().0, bytes, "{text}");
        }
        for text in ["", "GB", "4 GBit", "-1", "9999999999T"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_print_as_bytes_and_bits() {
        assert_eq!("100Gb/s".parse::<Rate>().unwrap(), Rate(12.5e9));
        assert_eq!("1GB/s".parse::<Rate>().unwrap(), Rate(1e9));
        assert_eq!(Rate(12.5e9).to_string(), "12.5 GB/s (100 Gb/s)");
        assert_eq!(Rate(0.0).to_string(), "0 B/s (0 b/s)");
        assert!("100".parse::<Rate>().is_err());
        assert!("100Gb".parse::<Rate>().is_err());
        assert!(format!("{}GB/s", "9".repeat(400)).parse::<Rate>().is_err(), "not finite");
    }

    #[test]
    fn sizes_keep_three_digits_across_a_unit_boundary() {
        assert_eq!(ByteSize(999_999).to_string(), "1.00 MB");
        assert_eq!(ByteSize(3_840_000_000_000).to_string(), "3.84 TB");
        assert_eq!(ByteSize(17).to_string(), "17 B");
    }
}
