//! Figures in the units that people read: the greatest that keeps the greatest value at 1 or more. Values are divided, never
//! rounded; how many digits are shown is the cell's affair.

use lab::Unit;

use crate::axis::Axis;
use crate::document::{Cell, Column};

const RATES: [(&str, f64); 5] =
    [("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12)];
const SIZES: [(&str, f64); 6] =
    [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15)];
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A unit and how much of the figures' own unit it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity {
    /// As it is printed; empty for plain numbers.
    pub unit: &'static str,
    factor: f64,
}

impl Quantity {
    /// The one that suits these values. What isn't finite doesn't count.
    pub fn of(unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let greatest = values.into_iter().map(f64::abs).filter(|v| v.is_finite()).reduce(f64::max);
        let steps: &[(&str, f64)] = match unit {
            Unit::Bytes => &SIZES,
            Unit::BytesPerSecond => &RATES,
            Unit::Nanoseconds => &TIMES,
            Unit::CommandsPerSecond => return Self { unit: "IOPS", factor: 1.0 },
            Unit::Percent => return Self { unit: "%", factor: 1.0 },
            Unit::Count => return Self { unit: "", factor: 1.0 },
        };
        let fits = |step: &&(&str, f64)| greatest.is_some_and(|value| value >= step.1);
        let (unit, factor) = steps.iter().rev().find(fits).unwrap_or(&steps[0]);
        Self { unit, factor: *factor }
    }

    /// Rates in bytes a second.
    pub fn rate(values: impl IntoIterator<Item = f64>) -> Self {
        Self::of(Unit::BytesPerSecond, values)
    }

    /// Sizes in bytes.
    pub fn size(values: impl IntoIterator<Item = f64>) -> Self {
        Self::of(Unit::Bytes, values)
    }

    /// Times in nanoseconds over a linear axis.
    pub fn time(values: impl IntoIterator<Item = f64>) -> Self {
        Self::of(Unit::Nanoseconds, values)
    }

    /// Times in nanoseconds over a logarithmic axis: the unit of the least, so that none is a small fraction.
    pub fn latency(values: impl IntoIterator<Item = f64>) -> Self {
        let least = values.into_iter().filter(|v| *v > 0.0 && v.is_finite()).reduce(f64::min);
        Self::of(Unit::Nanoseconds, least)
    }

    /// A figure in this unit.
    pub fn show(&self, value: f64) -> f64 {
        value / self.factor
    }

    /// A cell with three significant digits, or one that isn't known.
    pub fn cell(&self, value: Option<f64>) -> Cell {
        let value = value.map(|value| self.show(value));
        Cell::maybe(value, value.map_or(0, decimals))
    }

    /// A column of such cells.
    pub fn column(&self, name: impl Into<String>) -> Column {
        Column::number(name, self.unit)
    }

    /// A linear axis in this unit.
    pub fn axis(&self, label: &str) -> Axis {
        Axis::linear(label, self.unit)
    }

    /// A logarithmic axis in this unit.
    pub fn log_axis(&self, label: &str) -> Axis {
        Axis::log(label, self.unit)
    }
}

/// Digits behind the point that show three significant ones, and whole numbers as such.
fn decimals(value: f64) -> u8 {
    if value == 0.0 || !value.is_finite() || (value.fract() == 0.0 && value.abs() < 1e15) {
        return 0;
    }
    (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Value;

    #[test]
    fn the_unit_is_that_of_the_greatest_value() {
        assert_eq!(Quantity::rate([2e6, 3.1e9]).unit, "GB/s");
        assert_eq!(Quantity::size([999.0]).unit, "B");
        assert_eq!(Quantity::time([1_500.0, f64::NAN]).unit, "us");
        assert_eq!(Quantity::latency([0.0, 80_000.0, 4e9]).unit, "us");
        assert_eq!(Quantity::rate([]).unit, "B/s");
        assert_eq!(Quantity::rate([0.0, f64::INFINITY]).unit, "B/s");
    }

    #[test]
    fn cells_keep_the_whole_value_and_show_three_digits() {
        let quantity = Quantity::rate([1.0]);
        assert_eq!(
            Quantity::rate([2e9]).cell(Some(1_234_567_890.0)).value,
            Value::Number { value: 1.234_567_89, decimals: 2 }
        );
        assert_eq!(quantity.cell(Some(12.0)).value, Value::Number { value: 12.0, decimals: 0 });
        assert_eq!(
            quantity.cell(Some(0.012_34)).value,
            Value::Number { value: 0.012_34, decimals: 4 }
        );
        assert_eq!(quantity.cell(None).value, Value::Unknown);
    }
}
