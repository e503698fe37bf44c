//! Axes: what they are labelled with, how values become places on them, and where their ticks stand.

use serde::{Deserialize, Serialize};

/// An axis with its label and unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What it measures: `Write rate`.
    pub label: String,
    /// Its unit: `GB/s`; empty if it has none.
    pub unit: String,
    /// How values become places.
    #[serde(default)]
    pub scale: Scale,
    /// Where it starts; by its values if None.
    #[serde(default)]
    pub minimum: Option<f64>,
    /// Where it ends; by its values if None.
    #[serde(default)]
    pub maximum: Option<f64>,
    /// Values that have a tick each, in place of round numbers. Only a logarithmic axis heeds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<f64>,
}

/// More ticks than this would stand on each other.
const TICKS_MAX: usize = 12;

/// How values become places on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By the decimal logarithm. Zero and less have no place.
    Log,
    /// Percentiles from 0 to below 100 by their number of nines: 90, 99 and 99.9 % are evenly spaced.
    /// 100 % has no place.
    Nines,
}

impl Scale {
    /// A value's place: what is drawn evenly. None if it has none.
    pub fn place(self, value: f64) -> Option<f64> {
        let place = match self {
            Self::Linear => value,
            Self::Log if value > 0.0 => value.log10(),
            // -log10 of the share beyond the percentile, so 99.9 is at 3.
            Self::Nines if (0.0..100.0).contains(&value) => -(1.0 - value / 100.0).log10() + 0.0,
            Self::Log | Self::Nines => return None,
        };
        place.is_finite().then_some(place)
    }
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), ..Self::default() }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label, unit) }
    }

    /// An axis of percentiles in percent, spaced by nines.
    pub fn nines(label: impl Into<String>) -> Self {
        Self { scale: Scale::Nines, ..Self::linear(label, "%") }
    }

    /// The same with a tick at every value that was measured, if these aren't too many to tell apart.
    #[must_use]
    pub fn ticks_at(mut self, values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        self.ticks = if values.len() <= TICKS_MAX { values } else { Vec::new() };
        self
    }

    /// Label and unit in one line: `Write rate, GB/s`.
    pub fn heading(&self) -> String {
        match (self.label.is_empty(), self.unit.is_empty()) {
            (false, false) => format!("{}, {}", self.label, self.unit),
            (true, _) => self.unit.clone(),
            (_, true) => self.label.clone(),
        }
    }

    /// The axis from end to end with its ticks, for these values. `from_zero` starts a linear axis of
    /// positive values at zero; without it the ends are the values' own.
    pub fn ruler(&self, values: impl IntoIterator<Item = f64>, from_zero: bool) -> Ruler {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        for place in values.into_iter().filter_map(|v| self.scale.place(v)) {
            low = low.min(place);
            high = high.max(place);
        }
        let given = |end: Option<f64>| end.and_then(|v| self.scale.place(v));
        if low > high {
            // Nothing to show still has axes.
            low = given(self.minimum).unwrap_or(0.0);
            high = given(self.maximum).unwrap_or(low + 1.0);
        }
        if from_zero && self.scale == Scale::Linear {
            low = low.min(0.0);
            high = high.max(0.0);
        }
        low = given(self.minimum).unwrap_or(low);
        high = given(self.maximum).unwrap_or(high);
        if high <= low {
            high = low + if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        }
        match self.scale {
            Scale::Linear => {
                let step = nice_step((high - low) / 6.0);
                if from_zero {
                    low = given(self.minimum).unwrap_or((low / step).floor() * step);
                    high = given(self.maximum).unwrap_or((high / step - 1e-9).ceil() * step);
                }
                let first = (low / step - 1e-9).ceil() as i64;
                let last = (high / step + 1e-9).floor() as i64;
                let decimals = decimals_of(step);
                let ticks = (first..=last)
                    .map(|n| n as f64 * step)
                    .map(|v| Tick { place: v, label: grouped(v, decimals) })
                    .collect();
                Ruler { low, high, step: Some(step), ticks }
            }
            Scale::Log => {
                if from_zero {
                    low = given(self.minimum).unwrap_or((low + 1e-9).floor());
                    high = given(self.maximum).unwrap_or((high - 1e-9).ceil());
                }
                let wanted = self
                    .ticks
                    .iter()
                    .map(|&value| Tick { place: value.log10(), label: short(value) });
                let within = |tick: &Tick| tick.place >= low - 1e-9 && tick.place <= high + 1e-9;
                let mut ticks: Vec<Tick> = wanted.filter(within).collect();
                if ticks.is_empty() {
                    ticks = log_ticks(low, high);
                }
                Ruler { low, high, step: None, ticks }
            }
            Scale::Nines => {
                let low = given(self.minimum).unwrap_or(0.0).floor();
                let high = high.max(low + 1.0);
                let ticks = (low as i32..=(high + 1e-9).floor() as i32)
                    .map(|n| Tick { place: f64::from(n), label: nines_label(n) })
                    .collect();
                Ruler { low, high, step: Some(1.0), ticks }
            }
        }
    }
}

/// An axis from end to end, in places (see [`Scale::place`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Ruler {
    /// The first place.
    pub low: f64,
    /// The last place, after the first.
    pub high: f64,
    /// Distance of its ticks, if even.
    pub step: Option<f64>,
    /// Its ticks, ascending.
    pub ticks: Vec<Tick>,
}

impl Ruler {
    /// How far along the axis a place is, 0 to 1 between the ends.
    pub fn share(&self, place: f64) -> f64 {
        (place - self.low) / (self.high - self.low)
    }
}

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Position on the axis.
    pub place: f64,
    /// What it says.
    pub label: String,
}

/// The least of 1, 2, 2.5, 5 times a power of ten that is no less than `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|n| n * power >= rough * (1.0 - 1e-9));
    nice.unwrap_or(10.0) * power
}

/// Digits behind the point that tell multiples of a step apart.
fn decimals_of(step: f64) -> usize {
    let whole = |digits: &usize| {
        let scaled = step * 10f64.powi(*digits as i32);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.abs().max(1.0)
    };
    (0..9).find(whole).unwrap_or(9)
}

/// Powers of ten; with 2 and 5 times them when there are few.
fn log_ticks(low: f64, high: f64) -> Vec<Tick> {
    let factors: &[f64] = if high - low < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let decades = (low.floor() as i32)..=(high.ceil() as i32);
    decades
        .flat_map(|n| factors.iter().map(move |factor| factor * 10f64.powi(n)))
        .map(|value| Tick { place: value.log10(), label: short(value) })
        .filter(|tick| tick.place >= low - 1e-9 && tick.place <= high + 1e-9)
        .collect()
}

/// The percentile with `nines` nines: 0, 90, 99, 99.9.
fn nines_label(nines: i32) -> String {
    match nines {
        ..=0 => "0".to_owned(),
        1 => "90".to_owned(),
        2 => "99".to_owned(),
        n => format!("99.{}", "9".repeat(n as usize - 2)),
    }
}

/// A number with digits behind the point and commas between thousands.
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(w, f)| (w, f));
    let mut out = String::new();
    let zero = text.chars().all(|c| c == '0' || c == '.');
    if value < 0.0 && !zero {
        // A minus as wide as a digit, so that columns align.
        out.push('\u{2212}');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number in as few digits as tell it apart: four significant ones below 10,000, whole above.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "not known".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = value.abs().log10().floor();
    if digits < -6.0 {
        return format!("{value:.1e}");
    }
    let decimals = (3.0 - digits).clamp(0.0, 9.0) as usize;
    let text = grouped(value, decimals);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ruler: &Ruler) -> Vec<&str> {
        ruler.ticks.iter().map(|t| t.label.as_str()).collect()
    }

    #[test]
    fn percentiles_are_spaced_by_their_nines() {
        for (percentile, place) in
            [(0.0, 0.0), (90.0, 1.0), (99.0, 2.0), (99.9, 3.0), (99.9999, 6.0)]
        {
            let got = Scale::Nines.place(percentile).unwrap();
            assert!((got - place).abs() < 1e-6, "{percentile}: {got}");
        }
        assert_eq!(Scale::Nines.place(100.0), None);
        assert_eq!(Scale::Nines.place(-1.0), None);
    }

    #[test]
    fn values_without_a_logarithm_have_no_place() {
        assert_eq!(Scale::Log.place(0.0), None);
        assert_eq!(Scale::Log.place(-3.0), None);
        assert_eq!(Scale::Log.place(100.0), Some(2.0));
        assert_eq!(Scale::Linear.place(f64::NAN), None);
    }

    #[test]
    fn ticks_are_round_numbers_and_labelled_with_no_more_digits_than_they_need() {
        let ruler = Axis::linear("", "").ruler([0.3, 6.8], true);
        assert_eq!(labels(&ruler), ["0", "2", "4", "6", "8"]);
        let ruler = Axis::linear("", "").ruler([0.0, 0.31], true);
        assert_eq!(labels(&ruler)[..3], ["0.0", "0.1", "0.2"]);
        let ruler = Axis::linear("", "").ruler([0.0, 1.4], true);
        assert_eq!(labels(&ruler)[..3], ["0.00", "0.25", "0.50"]);
        let ruler = Axis::linear("", "").ruler([0.0, 960_000.0], false);
        assert_eq!((ruler.low, ruler.high), (0.0, 960_000.0));
        assert_eq!(labels(&ruler)[1], "200,000");
        let ruler = Axis::nines("").ruler([0.0, 99.9999], false);
        assert_eq!(labels(&ruler), ["0", "90", "99", "99.9", "99.99", "99.999", "99.9999"]);
        let ruler = Axis::log("", "").ruler([80.0, 40_000.0], true);
        assert_eq!(labels(&ruler), ["10", "100", "1,000", "10,000", "100,000"]);
    }

    #[test]
    fn axes_without_values_or_with_one_still_have_a_length() {
        for axis in [Axis::linear("", ""), Axis::log("", ""), Axis::nines("")] {
            for values in [vec![], vec![f64::NAN], vec![5.0], vec![0.0]] {
                let ruler = axis.ruler(values.clone(), true);
                assert!(ruler.high > ruler.low, "{axis:?} {values:?} {ruler:?}");
                assert!(ruler.ticks.len() < 20, "{ruler:?}");
            }
        }
    }

    #[test]
    fn numbers_print_grouped_and_short() {
        assert_eq!(grouped(1_234_567.0, 0), "1,234,567");
        assert_eq!(grouped(-0.004, 2), "0.00");
        assert_eq!(grouped(-1234.5, 1), "\u{2212}1,234.5");
        for (value, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.12345, "0.1235"),
            (1234.56, "1,235"),
            (98_765.4, "98,765"),
            (2.50, "2.5"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
