//! The units of tables: as options give them, or as the name of a column tells them, `Speed (MB/s)`.

use std::str::FromStr;

use base::{ByteSize, Duration, Rate};

/// What a column of rates is in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateUnit(
    /// Bytes a second.
    pub f64,
);

/// What the column is in over which rates are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleUnit {
    /// Time, in so many nanoseconds.
    Time(f64),
    /// Time, as `1:02:03.5` or `02:03`.
    Clock,
    /// What was written so far, in so many bytes.
    Written(f64),
    /// What was written so far, in percent of the drive.
    Percent,
}

impl FromStr for RateUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = text.trim().trim_end_matches("ec").replace("bytes/", "B/");
        let rate = format!("1{word}").parse::<Rate>();
        rate.map(|rate| Self(rate.0)).map_err(|_| {
            format!(
                "'{text}' is no unit of rates: give B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s (bytes), kb/s, Mb/s or Gb/s (bits)"
            )
        })
    }
}

impl FromStr for ScaleUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = text.trim();
        let time = match word.to_ascii_lowercase().as_str() {
            "h:m:s" | "hh:mm:ss" | "m:s" | "mm:ss" => return Ok(Self::Clock),
            "%" | "percent" => return Ok(Self::Percent),
            "msec" | "millisecond" | "milliseconds" => Some("ms"),
            "usec" | "microsecond" | "microseconds" => Some("us"),
            "sec" | "secs" | "second" | "seconds" | "sekunden" => Some("s"),
            "min" | "mins" | "minute" | "minutes" | "minuten" => Some("m"),
            "hr" | "hrs" | "hour" | "hours" | "stunden" => Some("h"),
            _ => None,
        };
        if let Ok(time) = format!("1{}", time.unwrap_or(word)).parse::<Duration>() {
            return Ok(Self::Time(time.as_nanos() as f64));
        }
        match format!("1{word}").parse::<ByteSize>() {
            Ok(ByteSize(bytes)) if !word.is_empty() => Ok(Self::Written(bytes as f64)),
            _ => Err(format!(
                "'{text}' is no unit of times: give ns, us, ms, s, min, h or h:m:s; or B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, % \
                 for what was written so far"
            )),
        }
    }
}

impl RateUnit {
    /// As the name of a column tells, if it does.
    pub fn told_by(name: &str) -> Option<Self> {
        words(name).find_map(|word| {
            // Of bits or of bytes? All in small letters, nobody can tell, but for binary units.
            let (first, rest) = word.split_at_checked(1)?;
            match rest.strip_prefix("ib/") {
                Some(rest) => format!("{}iB/{rest}", first.to_uppercase()).parse().ok(),
                None if rest.starts_with("b/") && "mgt".contains(first) => None,
                None if word.ends_with("bps") && "mgt".contains(first) => None,
                None => word.parse().ok(),
            }
        })
    }
}

impl ScaleUnit {
    /// As the name of a column tells, if it does.
    pub fn told_by(name: &str) -> Option<Self> {
        words(name)
            .filter(|word| word.len() > 1 || "sh%".contains(word))
            .find_map(|w| w.parse().ok())
    }

    /// Whether it counts time.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Time(_) | Self::Clock)
    }
}

/// What stands between spaces, brackets and the like, the last first: units stand behind names.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| c.is_whitespace() || "()[]{},;_\"'".contains(c))
        .filter(|w| !w.is_empty())
        .rev()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_tell_their_units() {
        for (name, unit) in [
            ("Speed (MB/s)", Some(1e6)),
            ("write [MiB/s]", Some(1_048_576.0)),
            ("rate [B/s]", Some(1.0)),
            ("throughput_Gbps", Some(1.25e8)),
            ("Write MBps", Some(1e6)),
            ("bytes/sec", Some(1.0)),
            ("bw (mib/s)", Some(1_048_576.0)),
            ("speed in mb/s", None),
            ("speed", None),
        ] {
            assert_eq!(RateUnit::told_by(name).map(|unit| unit.0), unit, "{name}");
        }
        for (name, unit) in [
            ("time [ns]", Some(ScaleUnit::Time(1.0))),
            ("Elapsed (s)", Some(ScaleUnit::Time(1e9))),
            ("seconds", Some(ScaleUnit::Time(1e9))),
            ("time_ms", Some(ScaleUnit::Time(1e6))),
            ("t/min", None),
            ("Minutes", Some(ScaleUnit::Time(60e9))),
            ("Written (GB)", Some(ScaleUnit::Written(1e9))),
            ("Fill [%]", Some(ScaleUnit::Percent)),
            ("time", None),
        ] {
            assert_eq!(ScaleUnit::told_by(name), unit, "{name}");
        }
    }

    #[test]
    fn a_unit_that_is_none_is_told_with_those_that_are() {
        assert!("fast".parse::<RateUnit>().unwrap_err().contains("MiB/s"));
        assert!("moons".parse::<ScaleUnit>().unwrap_err().contains("h:m:s"));
        assert!("".parse::<ScaleUnit>().is_err() && "".parse::<RateUnit>().is_err());
        assert_eq!("h:m:s".parse(), Ok(ScaleUnit::Clock));
        assert_eq!("GiB".parse(), Ok(ScaleUnit::Written((1u64 << 30) as f64)));
    }
}
