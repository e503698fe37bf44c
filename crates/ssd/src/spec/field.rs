//! Values of parameters in specification files: what each kind may be, and how it is written.

use base::ByteSize;
use profile::Value;

use super::{Collector, Isolation, Media, Namespace, SetLayout, WhenFull};

/// What a parameter's value may be.
pub(super) trait Field: Sized {
    /// What is wanted, for messages.
    const WANTED: &'static str;
    fn read(value: &Value) -> Option<Self>;
    fn write(&self) -> Value;
}

impl Field for u64 {
    const WANTED: &'static str = "a whole number from 0, or a size such as \"64MiB\"";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(size) => size.parse().ok().map(|ByteSize(bytes)| bytes),
            // People write sizes as 1e9 too; every whole number below 2^53 is exact.
            Value::Float(n) if n.fract() == 0.0 && (0.0..=2f64.powi(53)).contains(n) => {
                Some(*n as u64)
            }
            other => other.as_integer()?.try_into().ok(),
        }
    }

    fn write(&self) -> Value {
        Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl Field for u32 {
    const WANTED: &'static str = "a whole number from 0 to 2^32 - 1, or a size such as \"16KiB\"";

    fn read(value: &Value) -> Option<Self> {
        u64::read(value)?.try_into().ok()
    }

    fn write(&self) -> Value {
        Value::Integer((*self).into())
    }
}

impl Field for u8 {
    const WANTED: &'static str = "a whole number from 0 to 255";

    fn read(value: &Value) -> Option<Self> {
        value.as_integer()?.try_into().ok()
    }

    fn write(&self) -> Value {
        Value::Integer((*self).into())
    }
}

impl Field for f64 {
    const WANTED: &'static str = "a number";

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(n) => Some(*n as Self),
            other => other.as_float(),
        }
    }

    fn write(&self) -> Value {
        Value::Float(*self)
    }
}

impl Field for bool {
    const WANTED: &'static str = "true or false";

    fn read(value: &Value) -> Option<Self> {
        value.as_bool()
    }

    fn write(&self) -> Value {
        Value::Boolean(*self)
    }
}

/// The words of [`Link`]'s kinds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pcie,
    Sata,
}

/// A choice among words.
macro_rules! words {
    ($type:ty, $wanted:literal, $($word:literal => $value:path),+) => {
        impl Field for $type {
            const WANTED: &'static str = $wanted;

            fn read(value: &Value) -> Option<Self> {
                match value.as_str()? {
                    $($word => Some($value),)+
                    _ => None,
                }
            }

            fn write(&self) -> Value {
                Value::from(match self {
                    $($value => $word,)+
                })
            }
        }
    };
}

words!(Kind, "\"pcie\" or \"sata\"", "pcie" => Kind::Pcie, "sata" => Kind::Sata);
words!(Media, "\"nand\" or \"in-place\"", "nand" => Media::Nand, "in-place" => Media::InPlace);
words!(
    SetLayout, "\"vertical\" or \"horizontal\"",
    "vertical" => SetLayout::Vertical, "horizontal" => SetLayout::Horizontal
);
words!(
    WhenFull, "\"native\" or \"fold\"",
    "native" => WhenFull::Native, "fold" => WhenFull::Fold
);

words!(
    Isolation, "\"initial\" or \"persistent\"",
    "initial" => Isolation::Initial, "persistent" => Isolation::Persistent
);

impl Field for Collector {
    const WANTED: &'static str =
        "\"greedy\", \"cost-benefit\", \"fifo\", \"choices-N\" (such as choices-10) or \"random\"";

    fn read(value: &Value) -> Option<Self> {
        Some(match value.as_str()? {
            "greedy" => Self::Greedy,
            "cost-benefit" => Self::CostBenefit,
            "fifo" => Self::Fifo,
            "random" => Self::Random,
            other => Self::Choices(other.strip_prefix("choices-")?.parse().ok()?),
        })
    }

    fn write(&self) -> Value {
        Value::from(match self {
            Self::Greedy => "greedy".to_owned(),
            Self::CostBenefit => "cost-benefit".to_owned(),
            Self::Fifo => "fifo".to_owned(),
            Self::Random => "random".to_owned(),
            Self::Choices(choices) => format!("choices-{choices}"),
        })
    }
}

impl Field for Vec<Namespace> {
    const WANTED: &'static str =
        "a list such as [{ share = 0.5, sets = [0] }, { share = 0.5, sets = [1] }]";

    fn read(value: &Value) -> Option<Self> {
        let namespace = |value: &Value| {
            let table = value.as_table().filter(|table| table.len() == 2)?;
            let sets =
                table.get("sets")?.as_array()?.iter().map(u32::read).collect::<Option<_>>()?;
            Some(Namespace { share: f64::read(table.get("share")?)?, sets })
        };
        value.as_array()?.iter().map(namespace).collect()
    }

    fn write(&self) -> Value {
        let namespace = |Namespace { share, sets }: &Namespace| {
            let sets: Vec<Value> = sets.iter().map(Field::write).collect();
            let fields = [("share".to_owned(), share.write()), ("sets".to_owned(), sets.into())];
            Value::Table(fields.into_iter().collect())
        };
        Value::Array(self.iter().map(namespace).collect())
    }
}
