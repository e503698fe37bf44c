//! Sizes, rates and times as people write them in workload files, kept exactly: text in, the same value out.

use std::fmt;
use std::str::FromStr;

use base::{ByteSize, Duration, Rate};
use serde::de::{self, Visitor};

/// Bytes. Reads `"64KiB"` or a bare number of bytes; writes the largest binary unit that is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// A span of time. Reads `"10s"`; writes whole units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Duration);

/// How much is asked for a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Bytes a second: `"400MB/s"`.
    Bytes(f64),
    /// Commands a second: `"5000/s"`.
    Commands(f64),
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, bytes) in
            [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        {
            if self.0 != 0 && self.0.is_multiple_of(bytes) {
                return write!(f, "{}{unit}", self.0 / bytes);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl FromStr for Size {
    type Err = base::ParseUnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<ByteSize>().map(|size| Self(size.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        for (unit, length) in [
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
        ] {
            if ns != 0 && ns.is_multiple_of(length) {
                return write!(f, "{}{unit}", ns / length);
            }
        }
        write!(f, "{ns}ns")
    }
}

impl FromStr for Time {
    type Err = base::ParseUnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(rate) => {
                for (unit, bytes) in [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)] {
                    // Only if it reads back as the same number.
                    if *rate >= bytes && (rate / bytes) * bytes == *rate {
                        return write!(f, "{}{unit}", rate / bytes);
                    }
                }
                write!(f, "{rate}B/s")
            }
            Self::Commands(rate) => write!(f, "{rate}/s"),
        }
    }
}

impl FromStr for Pace {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().strip_suffix("/s").or_else(|| text.trim().strip_suffix("iops"));
        let pace = match number.and_then(|number| number.trim().parse().ok()) {
            Some(commands) => Self::Commands(commands),
            None => Self::Bytes(
                text.parse::<Rate>()
                    .map_err(|_| format!("'{text}' is not a rate: give bytes (400MB/s, 3.2Gb/s) or commands (5000/s)"))?
                    .0,
            ),
        };
        let (Self::Bytes(value) | Self::Commands(value)) = pace;
        if value.is_finite() && value > 0.0 {
            Ok(pace)
        } else {
            Err(format!("a rate of {text} asks for nothing: leave it out for as fast as possible"))
        }
    }
}

/// Reads text by `FromStr`, and bare numbers as well where a unit needs none.
struct Text<T>(std::marker::PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity with its unit, in quotes")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }
}

/// Gives types that print and parse the serde form of their text.
macro_rules! as_text {
    ($($name:ty),*) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($crate::quantity::text())
            }
        }
    )*};
}
pub(crate) use as_text;

pub(crate) fn text<'de, T: FromStr<Err: fmt::Display>>() -> impl Visitor<'de, Value = T> {
    Text(std::marker::PhantomData)
}

as_text!(Size, Time, Pace);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_as_the_same_value() {
        for bytes in [0, 1, 512, 4096, 10_000_000_000, 3 << 40, u64::MAX / 4096 * 4096 / 8] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
        for ns in [1, 1_500, 250_000, 90_000_000_000, 7_200_000_000_000] {
            let time = Time(Duration::from_nanos(ns));
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        for text in ["400MB/s", "5000/s", "0.5/s", "12.5GB/s"] {
            assert_eq!(text.parse::<Pace>().unwrap().to_string(), text);
        }
        for bytes in [1.0 / 3.0, 2e9 / 3.0, 123_456_789.123, 1e10 / 7.0] {
            assert_eq!(Pace::Bytes(bytes).to_string().parse(), Ok(Pace::Bytes(bytes)));
        }
        assert_eq!("100Gb/s".parse(), Ok(Pace::Bytes(12.5e9)));
        assert!("0/s".parse::<Pace>().is_err());
        assert!("fast".parse::<Pace>().unwrap_err().contains("400MB/s"));
    }
}
