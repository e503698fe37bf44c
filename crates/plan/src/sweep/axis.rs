//! An axis of a sweep: values one by one, or a range of numbers, which may have a unit: `{ from = "10Gb/s", to = "100Gb/s", steps =
//! 10 }`.

use serde::Deserialize;
use toml::Value;

/// What a key takes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// These, in this order.
    Values(Vec<Value>),
    /// Numbers, both ends among them.
    Range {
        /// The first.
        from: f64,
        /// The last.
        to: f64,
        /// How many in a grid.
        steps: u64,
        /// Whether each is the one before times the same factor, and not plus the same difference.
        log: bool,
        /// Whether all are whole numbers.
        whole: bool,
        /// Whether a sample takes the values of the grid alone, as its step was given.
        stepped: bool,
        /// What stands behind each.
        unit: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    from: Value,
    to: Value,
    /// The distance of one from the next.
    step: Option<f64>,
    /// Or how many.
    steps: Option<u64>,
    #[serde(default)]
    log: bool,
}

/// Values of a range, at most.
const STEPS_MAX: u64 = 1_000_000;
/// A range without steps, in a sample or by mistake in a grid, has so many.
const STEPS_DEFAULT: u64 = 10;

impl Axis {
    /// As it stands in a sweep.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub(super) fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::Array(values) if values.is_empty() => {
                Err("a list without values: give at least one".to_owned())
            }
            Value::Array(values) if values.iter().any(Value::is_table) => {
                Err("a table is no value: give numbers, words, true or false".to_owned())
            }
            Value::Array(values) => Ok(Self::Values(values)),
            Value::Table(_) => {
                let text: Text = value.try_into().map_err(|error: toml::de::Error| {
                    format!(
                        "{}: give {{ from = 1, to = 10, step = 1 }}, or steps = 10 instead of the step",
                        error.message()
                    )
                })?;
                Self::range(text)
            }
            _ => Err("one value varies nothing: give a list or a range, or put it into [base]"
                .to_owned()),
        }
    }

    fn range(text: Text) -> Result<Self, String> {
        let (from, unit, first_whole) = number(&text.from)?;
        let (to, other, last_whole) = number(&text.to)?;
        if unit != other {
            return Err(format!(
                "its ends have the units '{unit}' and '{other}': give both the same"
            ));
        }
        if from >= to {
            return Err(format!("it goes from {from} to {to}: give the smaller first"));
        }
        if text.log && from <= 0.0 {
            return Err(format!(
                "factors lead nowhere from {from}: begin above 0, or leave log out"
            ));
        }
        let steps = match (text.step, text.steps) {
            (Some(_), Some(_)) => {
                return Err("it has a step and steps: give one of them".to_owned());
            }
            (Some(_), None) if text.log => {
                return Err("a step and log don't go together: give steps".to_owned());
            }
            (Some(step), None) if step > 0.0 => ((to - from) / step + 1e-9).floor() as u64 + 1,
            (Some(step), None) => return Err(format!("a step of {step}: give one above 0")),
            (None, Some(steps)) => steps,
            (None, None) if first_whole && last_whole && !text.log => (to - from) as u64 + 1,
            (None, None) => STEPS_DEFAULT,
        };
        if !(2..=STEPS_MAX).contains(&steps) {
            return Err(format!("it has {steps} values: give 2 to {STEPS_MAX}"));
        }
        let to = text.step.map_or(to, |step| from + step * (steps - 1) as f64);
        let distance = (to - from) / (steps - 1) as f64;
        let whole = first_whole && last_whole && !text.log && distance.fract() == 0.0;
        let stepped = text.step.is_some() || text.steps.is_some();
        Ok(Self::Range { from, to, steps, log: text.log, whole, stepped, unit })
    }

    /// How many values it has in a grid.
    pub fn steps(&self) -> u64 {
        match self {
            Self::Values(values) => values.len() as u64,
            Self::Range { steps, .. } => *steps,
        }
    }

    /// One of its values, from 0.
    pub(super) fn value(&self, step: u64) -> Value {
        match self {
            Self::Values(values) => values[step as usize].clone(),
            Self::Range { steps, .. } => self.at(step as f64 / (steps - 1) as f64),
        }
    }

    /// The value at a coordinate from 0 up to but not including 1: any of a list with the same chance, anywhere in a range.
    pub(super) fn between(&self, coordinate: f64) -> Value {
        match self {
            Self::Values(values) => {
                let at = (coordinate * values.len() as f64) as usize;
                values[at.min(values.len() - 1)].clone()
            }
            Self::Range { steps, stepped: true, .. } => {
                self.value(((coordinate * *steps as f64) as u64).min(steps - 1))
            }
            // Both ends of whole numbers get their share.
            Self::Range { from, to, whole: true, .. } => {
                Value::Integer((from + (coordinate * (to - from + 1.0)).floor()).min(*to) as i64)
            }
            Self::Range { .. } => self.at(coordinate),
        }
    }

    /// The value at a share of the way.
    fn at(&self, share: f64) -> Value {
        let Self::Range { from, to, log, whole, unit, .. } = self else { return self.value(0) };
        let exact = if *log { from * (to / from).powf(share) } else { from + (to - from) * share };
        // Nine digits: what rounding left behind is no part of a value.
        let number: f64 = format!("{exact:.8e}").parse().unwrap_or(exact);
        match unit.as_str() {
            "" if *whole => Value::Integer(number.round() as i64),
            "" => Value::Float(number),
            unit => Value::String(format!("{number}{unit}")),
        }
    }
}

/// A number, its unit, and whether it is a whole one without unit.
fn number(value: &Value) -> Result<(f64, String, bool), String> {
    match value {
        Value::Integer(n) => Ok((*n as f64, String::new(), true)),
        Value::Float(n) if n.is_finite() => Ok((*n, String::new(), false)),
        Value::String(text) => {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
            let number: f64 = text[..end]
                .parse()
                .map_err(|_| format!("'{text}' is no number with a unit, as in \"10Gb/s\""))?;
            Ok((number, text[end..].trim().to_owned(), false))
        }
        other => Err(format!("'{other}' is no number")),
    }
}
