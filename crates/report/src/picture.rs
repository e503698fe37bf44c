//! Pictures as data, whatever draws them: lines, heat maps, radars and bars.
//!
//! A value that isn't known is None (or not finite) and stays a gap in every rendering, never a zero.

use serde::{Deserialize, Deserializer, Serialize};

use crate::axis::{Axis, Scale, grouped};

/// One picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// What is shown: `Write rate while filling`.
    pub title: String,
    /// What to see in it, in a sentence.
    pub caption: String,
    /// The data.
    pub kind: Kind,
}

impl Picture {
    /// A picture with its title, caption and data.
    pub fn new(title: impl Into<String>, caption: impl Into<String>, kind: Kind) -> Self {
        Self { title: title.into(), caption: caption.into(), kind }
    }

    /// The title as a file's name without extension: letters, digits and hyphens alone.
    pub fn file_stem(&self) -> String {
        let mut stem = String::new();
        for c in self.title.chars() {
            if c.is_ascii_alphanumeric() {
                stem.push(c.to_ascii_lowercase());
            } else if !stem.is_empty() && !stem.ends_with('-') {
                stem.push('-');
            }
        }
        let stem = stem.trim_end_matches('-');
        if stem.is_empty() { "picture".to_owned() } else { stem.to_owned() }
    }
}

/// The data of a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Series over an axis. Percentile curves are lines over an axis of nines.
    Lines(Lines),
    /// A value for each pair of labels.
    Heat(Heat),
    /// Several qualities of a few things.
    Radar(Radar),
    /// A value for each group and series, with its error.
    Bars(Bars),
}

/// Series of points over a common axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The axis below.
    pub x: Axis,
    /// The axis at the left.
    pub y: Axis,
    /// The series, told apart by colour and by dash or marker.
    pub series: Vec<Series>,
    /// Stretches of an axis that mean something: phases of a fill, a window of steady state.
    #[serde(default)]
    pub bands: Vec<Band>,
    /// Places on an axis that mean something: thresholds, ceilings.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is, for the legend.
    pub name: String,
    /// Its points, by ascending x.
    pub points: Vec<Point>,
    /// How points are joined.
    #[serde(default)]
    pub style: Style,
    /// The range around the line, by ascending x: least to greatest, or a confidence.
    #[serde(default)]
    pub spread: Vec<Spread>,
}

impl Series {
    /// A series of known points, joined straight.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point::new(x, y)).collect();
        Self { name: name.into(), points, ..Self::default() }
    }
}

/// A place on two axes. In JSON: `[x, y]`, with null for what isn't known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(Option<f64>, Option<f64>)", into = "(Option<f64>, Option<f64>)")]
pub struct Point {
    /// Where, in the unit of the axis below. A point without a finite x isn't drawn.
    pub x: f64,
    /// How much, in the unit of the axis at the left, or None for a gap.
    pub y: Option<f64>,
}

impl Point {
    /// A known point.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y: Some(y) }
    }

    /// A gap.
    pub const fn gap(x: f64) -> Self {
        Self { x, y: None }
    }
}

impl From<(Option<f64>, Option<f64>)> for Point {
    fn from((x, y): (Option<f64>, Option<f64>)) -> Self {
        Self { x: x.unwrap_or(f64::NAN), y }
    }
}

impl From<Point> for (Option<f64>, Option<f64>) {
    fn from(point: Point) -> Self {
        (Some(point.x).filter(|x| x.is_finite()), point.y.filter(|y| y.is_finite()))
    }
}

/// A range at one place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Where, in the unit of the axis below.
    #[serde(deserialize_with = "null_is_unknown")]
    pub x: f64,
    /// Lower end, in the unit of the axis at the left.
    #[serde(deserialize_with = "null_is_unknown")]
    pub low: f64,
    /// Upper end, in the unit of the axis at the left.
    #[serde(deserialize_with = "null_is_unknown")]
    pub high: f64,
}

/// How points are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// By straight lines.
    #[default]
    Straight,
    /// Each value holds until the next point.
    Step,
    /// By lines rounded at the points, where the renderer can; they pass through every point.
    Smooth,
    /// Not at all: a marker for each point.
    Dots,
}

/// Which axis a mark or band belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The axis below: a vertical line or strip.
    #[default]
    X,
    /// The axis at the left: a horizontal line or strip.
    Y,
}

/// A labelled stretch of an axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// Whose.
    pub on: Direction,
    /// Its start, in the axis's unit.
    #[serde(deserialize_with = "null_is_unknown")]
    pub from: f64,
    /// Its end, in the axis's unit.
    #[serde(deserialize_with = "null_is_unknown")]
    pub to: f64,
    /// What it is.
    pub label: String,
}

/// A labelled place on an axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Whose.
    pub on: Direction,
    /// Where, in the axis's unit.
    #[serde(deserialize_with = "null_is_unknown")]
    pub at: f64,
    /// What it is.
    pub label: String,
}

/// A value for each pair of labels, as colour and, where it fits, as number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// What the columns vary, with its unit: `Queue depth`.
    pub x_title: String,
    /// The columns, left to right.
    pub x: Vec<String>,
    /// What the rows vary, with its unit: `Block size`.
    pub y_title: String,
    /// The rows, bottom to top.
    pub y: Vec<String>,
    /// Rows of values, in the order of `y`; a row that is short ends in values that aren't known.
    pub values: Vec<Vec<Option<f64>>>,
    /// What a value is, its unit, and whether colours go by its logarithm (`scale`).
    pub value: Axis,
}

impl Heat {
    /// The value at a row and column, None if it isn't known.
    pub fn at(&self, row: usize, column: usize) -> Option<f64> {
        self.values.get(row)?.get(column).copied().flatten().filter(|v| v.is_finite())
    }

    /// A value as its cell shows it: three significant digits of the greatest, the same digits behind
    /// the point in all; on a logarithmic scale, three of its own.
    pub fn number(&self, value: f64) -> String {
        let by = match self.value.scale {
            Scale::Log => value.abs(),
            Scale::Linear | Scale::Nines => self.known().fold(0.0, |a: f64, b| a.max(b.abs())),
        };
        let digits = if by > 0.0 { by.log10().floor() } else { 2.0 };
        grouped(value, (2.0 - digits).clamp(0.0, 9.0) as usize)
    }

    /// Every known value.
    pub fn known(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.y.len())
            .flat_map(move |row| (0..self.x.len()).filter_map(move |column| self.at(row, column)))
    }
}

/// Several qualities of a few things. On every spoke, further out is better.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Radar {
    /// The qualities, clockwise from the top.
    pub spokes: Vec<Spoke>,
    /// The things.
    pub rings: Vec<Ring>,
}

/// One quality.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spoke {
    /// What it is.
    pub name: String,
    /// The unit of its values; empty if they have none.
    pub unit: String,
    /// The value at the rim; above zero.
    #[serde(deserialize_with = "null_is_unknown")]
    pub maximum: f64,
}

/// One thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ring {
    /// What it is, for the legend.
    pub name: String,
    /// Its value on each spoke.
    pub values: Vec<Option<f64>>,
}

impl Radar {
    /// A ring's value on a spoke as its share of the way to the rim, None if it isn't known.
    pub fn share(&self, ring: usize, spoke: usize) -> Option<f64> {
        let value = self.rings.get(ring)?.values.get(spoke).copied().flatten()?;
        let maximum = self.spokes.get(spoke)?.maximum;
        let share = value / maximum;
        (share.is_finite() && maximum > 0.0).then(|| share.clamp(0.0, 1.0))
    }
}

/// A value for each group and series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// What the groups vary.
    pub x_title: String,
    /// The groups, left to right.
    pub groups: Vec<String>,
    /// The axis at the left.
    pub y: Axis,
    /// The series, side by side within each group.
    pub series: Vec<BarSeries>,
}

/// One bar in each group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
    /// What it is, for the legend.
    pub name: String,
    /// One for each group.
    pub values: Vec<Option<Bar>>,
}

/// A value with the range of its error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// The value.
    #[serde(deserialize_with = "null_is_unknown")]
    pub value: f64,
    /// Lower end of the error, or None if no error is known.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper end of the error.
    #[serde(default)]
    pub high: Option<f64>,
}

impl Bar {
    /// A value without a known error.
    pub const fn new(value: f64) -> Self {
        Self { value, low: None, high: None }
    }

    /// A value between two ends.
    pub const fn within(value: f64, low: f64, high: f64) -> Self {
        Self { value, low: Some(low), high: Some(high) }
    }
}

/// Reads a number, and the null that JSON has for one that isn't finite.
pub(crate) fn null_is_unknown<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_are_not_known_are_null_in_json_and_gaps_again() {
        let points = [Point::new(1.0, 2.0), Point::gap(2.0), Point::new(3.0, f64::NAN)];
        let json = serde_json::to_string(&points).unwrap();
        assert_eq!(json, "[[1.0,2.0],[2.0,null],[3.0,null]]");
        let back: Vec<Point> = serde_json::from_str(&json).unwrap();
        assert_eq!(back[2], Point::gap(3.0));
    }

    #[test]
    fn a_heat_map_with_short_rows_has_unknown_values() {
        let heat = Heat {
            x: vec!["1".into(), "2".into()],
            y: vec!["a".into(), "b".into()],
            values: vec![vec![Some(1.0)]],
            ..Heat::default()
        };
        assert_eq!(heat.at(0, 0), Some(1.0));
        assert_eq!(heat.at(0, 1), None);
        assert_eq!(heat.at(1, 0), None);
        assert_eq!(heat.known().collect::<Vec<_>>(), [1.0]);
    }

    #[test]
    fn numbers_of_a_heat_map_have_the_same_digits_behind_the_point() {
        let mut heat = Heat {
            x: vec!["1".into(), "2".into()],
            y: vec!["a".into()],
            values: vec![vec![Some(0.6029), Some(6.9)]],
            ..Heat::default()
        };
        assert_eq!((heat.number(0.6029), heat.number(6.9)), ("0.60".into(), "6.90".into()));
        heat.value.scale = Scale::Log;
        assert_eq!((heat.number(0.6029), heat.number(12_345.6)), ("0.603".into(), "12,346".into()));
    }

    #[test]
    fn file_stems_hold_nothing_that_a_file_name_may_not() {
        let stem = |title: &str| Picture::new(title, "", Kind::Radar(Radar::default())).file_stem();
        assert_eq!(stem("../Write rate, GB/s"), "write-rate-gb-s");
        assert_eq!(stem("</script>"), "script");
        assert_eq!(stem("…"), "picture");
    }

    #[test]
    fn a_value_of_no_spoke_and_a_spoke_without_length_have_no_share() {
        let spoke = |maximum| Spoke { name: "s".into(), unit: String::new(), maximum };
        let radar = Radar {
            spokes: vec![spoke(10.0), spoke(0.0)],
            rings: vec![Ring { name: "r".into(), values: vec![Some(15.0), Some(1.0), Some(1.0)] }],
        };
        assert_eq!(radar.share(0, 0), Some(1.0));
        assert_eq!(radar.share(0, 1), None);
        assert_eq!(radar.share(0, 2), None);
        assert_eq!(radar.share(1, 0), None);
    }
}
