//! One line of a benchmark's result: ours, the reference, their ratio, the goal.

use serde_json::{Value, json};

use super::rounds::Figures;

/// What a figure is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes a second: more is better.
    BytesPerS,
    /// Packets a second: more is better.
    PacketsPerS,
    /// Commands a second: more is better.
    CommandsPerS,
    /// Seconds: less is better.
    Seconds,
    /// Bytes of memory: less is better.
    Bytes,
    /// Wake-ups a second: less is better.
    WakeUpsPerS,
    /// A share of something else, 1 being all of it: less is better.
    Share,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::BytesPerS => format!("{:.2} GB/s", value / 1e9),
            Self::PacketsPerS if value < 1e6 => format!("{:.1} k/s", value / 1e3),
            Self::PacketsPerS => format!("{:.1} M/s", value / 1e6),
            Self::CommandsPerS if value > 1e6 => format!("{:.2} M/s", value / 1e6),
            Self::CommandsPerS => format!("{:.1} k/s", value / 1e3),
            Self::Bytes if value < 1e9 => format!("{:.1} MB", value / 1e6),
            Self::Bytes => format!("{:.2} GB", value / 1e9),
            Self::WakeUpsPerS => format!("{value:.2}/s"),
            Self::Share => format!("{:.3} %", value * 100.0),
            Self::Seconds if value < 0.001 => format!("{:.1} us", value * 1e6),
            Self::Seconds if value < 1.0 => format!("{:.1} ms", value * 1e3),
            Self::Seconds => format!("{value:.2} s"),
        }
    }

    /// Whether less is better.
    const fn is_cost(self) -> bool {
        matches!(self, Self::Seconds | Self::Bytes | Self::WakeUpsPerS | Self::Share)
    }

    const fn key(self) -> &'static str {
        match self {
            Self::BytesPerS => "bytes_per_s",
            Self::PacketsPerS => "packets_per_s",
            Self::CommandsPerS => "commands_per_s",
            Self::Seconds => "s",
            Self::Bytes => "bytes",
            Self::WakeUpsPerS => "wake_ups_per_s",
            Self::Share => "share",
        }
    }
}

/// What is wanted at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Of ours to the reference: how many times as fast.
    Ratio(f64),
    /// Of ours to the reference: that they differ by this share at most, either way.
    Within(f64),
    /// Of ours alone, in its unit: at least, or at most where less is better.
    Value(f64),
}

/// Something measured, and what it is measured against.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The benchmark it belongs to.
    pub benchmark: &'static str,
    /// What was measured.
    pub what: String,
    /// What it was measured against, and its figures, round by round.
    pub reference: Option<(String, Figures)>,
    /// Ours, round by round.
    pub ours: Figures,
    /// What the figures are in.
    pub unit: Unit,
    /// What is wanted.
    pub goal: Option<Goal>,
}

impl Comparison {
    /// How many times as fast as the reference, round by round.
    pub fn ratios(&self) -> Option<Figures> {
        let (_, reference) = self.reference.as_ref()?;
        let pairs = self.ours.0.iter().zip(&reference.0);
        Some(Figures(match self.unit {
            unit if unit.is_cost() => pairs.map(|(ours, reference)| reference / ours).collect(),
            _ => pairs.map(|(ours, reference)| ours / reference).collect(),
        }))
    }

    /// Whether the median reaches the goal.
    pub fn reached(&self) -> Option<bool> {
        match self.goal? {
            Goal::Ratio(least) => Some(self.ratios()?.median() >= least),
            Goal::Within(most) => Some((self.ratios()?.median() - 1.0).abs() <= most),
            Goal::Value(most) if self.unit.is_cost() => Some(self.ours.median() <= most),
            Goal::Value(least) => Some(self.ours.median() >= least),
        }
    }

    fn spread(&self, figures: &Figures) -> String {
        let [median, min, max] =
            [figures.median(), figures.min(), figures.max()].map(|v| self.unit.show(v));
        format!("{median} ({min} to {max})")
    }

    /// Measured, ours, reference, ratio, goal: the cells of a table's row.
    pub fn cells(&self) -> [String; 5] {
        let none = || "-".to_owned();
        let reference = self.reference.as_ref();
        [
            self.what.clone(),
            self.spread(&self.ours),
            reference
                .map_or_else(none, |(name, figures)| format!("{name}: {}", self.spread(figures))),
            self.ratios().map_or_else(none, |r| {
                format!("{:.2} ({:.2} to {:.2})", r.median(), r.min(), r.max())
            }),
            match (self.goal, self.reached()) {
                (Some(goal), Some(reached)) => {
                    let least = match goal {
                        Goal::Ratio(least) => format!("{least}"),
                        Goal::Within(most) => format!("within {:.0} %", most * 100.0),
                        Goal::Value(least) => self.unit.show(least),
                    };
                    format!("{least}: {}", if reached { "reached" } else { "NOT reached" })
                }
                _ => none(),
            },
        ]
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let figures = |f: &Figures| json!({"median": f.median(), "min": f.min(), "max": f.max(), "rounds": f.0});
        json!({
            "benchmark": self.benchmark,
            "what": self.what,
            "unit": self.unit.key(),
            "ours": figures(&self.ours),
            "reference": self.reference.as_ref().map(|(name, f)| json!({"what": name, "figures": figures(f)})),
            "ratio": self.ratios().as_ref().map(figures),
            "goal": self.goal.map(|goal| match goal {
                Goal::Ratio(least) => json!({"ratio": least}),
                Goal::Within(most) => json!({"within": most}),
                Goal::Value(least) => json!({"value": least}),
            }),
            "reached": self.reached(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(unit: Unit, ours: f64, reference: f64) -> Comparison {
        Comparison {
            benchmark: "b",
            what: "w".into(),
            reference: Some(("r".into(), Figures(vec![reference]))),
            ours: Figures(vec![ours]),
            unit,
            goal: Some(Goal::Ratio(2.0)),
        }
    }

    #[test]
    fn faster_is_a_greater_ratio_in_every_unit() {
        let rate = comparison(Unit::BytesPerS, 4e9, 1e9);
        assert_eq!((rate.ratios().map(|r| r.median()), rate.reached()), (Some(4.0), Some(true)));
        let time = comparison(Unit::Seconds, 1.0, 1.5);
        assert_eq!((time.ratios().map(|r| r.median()), time.reached()), (Some(1.5), Some(false)));
    }
}
