//! Curves for pictures: the documents' own, drawn again from what was measured.

use serde::{Deserialize, Serialize};

/// A picture's data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// What is shown.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// How it is drawn.
    pub shape: Shape,
    /// Its curves.
    pub curves: Vec<Curve>,
    /// Levels at the left axis that mean something, such as what was published: where, in its unit, and what it is.
    pub levels: Vec<(f64, String)>,
}

/// How a plot is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Lines over an axis.
    Lines {
        /// The axis below.
        x: PlotAxis,
        /// The axis at the left.
        y: PlotAxis,
    },
    /// A value for each of these groups: a curve's points are (place of the group from 0, value).
    Bars {
        /// What the groups vary.
        x_title: String,
        /// Their names.
        groups: Vec<String>,
        /// The axis at the left.
        y: PlotAxis,
    },
    /// A ring for each curve over these spokes: its points are (place of the spoke from 0, value).
    Radar {
        /// Their names.
        spokes: Vec<String>,
        /// The unit of all.
        unit: String,
    },
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlotAxis {
    /// What it measures.
    pub label: String,
    /// Its unit; values are in it.
    pub unit: String,
    /// By the logarithm.
    pub log: bool,
}

/// A line, a ring, or a bar in each group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What it is.
    pub name: String,
    /// Its points by ascending x, in the units of the axes. Values are finite.
    pub points: Vec<(f64, f64)>,
}

impl PlotAxis {
    /// An even axis.
    pub fn linear(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned(), log: false }
    }

    /// A logarithmic axis.
    pub fn log(label: &str, unit: &str) -> Self {
        Self { log: true, ..Self::linear(label, unit) }
    }
}

impl Curve {
    /// A curve of these points; those that aren't finite are left out.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        Self { name: name.into(), points: points.into_iter().filter(finite).collect() }
    }
}

impl Plot {
    /// Lines over an axis.
    pub fn lines(title: &str, caption: &str, x: PlotAxis, y: PlotAxis, curves: Vec<Curve>) -> Self {
        Self::new(title, caption, Shape::Lines { x, y }, curves)
    }

    /// Bars in groups.
    pub fn bars(
        title: &str,
        caption: &str,
        (x_title, groups): (&str, Vec<String>),
        y: PlotAxis,
        curves: Vec<Curve>,
    ) -> Self {
        Self::new(title, caption, Shape::Bars { x_title: x_title.to_owned(), groups, y }, curves)
    }

    /// Rings over spokes.
    pub fn radar(
        title: &str,
        caption: &str,
        (spokes, unit): (Vec<String>, &str),
        curves: Vec<Curve>,
    ) -> Self {
        Self::new(title, caption, Shape::Radar { spokes, unit: unit.to_owned() }, curves)
    }

    fn new(title: &str, caption: &str, shape: Shape, curves: Vec<Curve>) -> Self {
        let (title, caption) = (title.to_owned(), caption.to_owned());
        Self { title, caption, shape, curves, levels: Vec::new() }
    }

    /// With a level that means something.
    #[must_use]
    pub fn level(mut self, at: f64, label: impl Into<String>) -> Self {
        self.levels.push((at, label.into()));
        self
    }
}
