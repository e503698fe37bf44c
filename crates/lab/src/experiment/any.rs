//! Any of the experiments, and any of their results: for whoever runs several, keeps them, and shows them.

use base::Geometry;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Scope, apps, diskmark, fill, link, mix, neighbours, snia, steady, stream, viewers};
use crate::answer::Answer;
use crate::cost::Cost;
use crate::lab::{Lab, LabError, from_json};

/// Makes both enums from one list of experiments.
macro_rules! experiments {
    ($($variant:ident: $options:ty => $result:ty, $name:literal;)*) => {
        /// An experiment with its options.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each is documented where it is defined")]
        pub enum Experiment {
            $($variant(Box<$options>),)*
        }

        /// An experiment's result.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "experiment", rename_all = "snake_case")]
        #[allow(missing_docs, reason = "each is documented where it is defined")]
        pub enum ExperimentOutcome {
            $($variant(Box<$result>),)*
        }

        // What serde derives would be every result's code once more, for a deserializer of its own.
        impl<'de> Deserialize<'de> for ExperimentOutcome {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = Value::deserialize(deserializer)?;
                let name = value.get("experiment").and_then(Value::as_str).unwrap_or_default();
                let read = match name {
                    $($name => serde_json::from_value(value).map(|result| Self::$variant(Box::new(result))),)*
                    other => return Err(D::Error::custom(format!("'{other}' is no experiment"))),
                };
                read.map_err(D::Error::custom)
            }
        }

        impl Experiment {
            /// The names of all, in the order in which they disturb each other least.
            pub const NAMES: &[&str] = &[$($name),*];

            /// One by name, with its defaults.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(Box::default())),)*
                    _ => None,
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Its scope.
            pub fn scope(&mut self) -> &mut Scope {
                match self {
                    $(Self::$variant(options) => &mut options.scope,)*
                }
            }

            /// What it will cost.
            pub fn cost(&self, drives: &[Geometry]) -> Cost {
                match self {
                    $(Self::$variant(options) => options.cost(drives),)*
                }
            }

            /// Runs it.
            ///
            /// # Errors
            /// [`LabError`].
            pub fn run(&self, lab: &mut Lab<'_>) -> Result<ExperimentOutcome, LabError> {
                match self {
                    $(Self::$variant(options) => options.run(lab).map(|result| ExperimentOutcome::$variant(Box::new(result))),)*
                }
            }
        }

        impl ExperimentOutcome {
            /// The experiment's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// What it says.
            pub fn answer(&self) -> &dyn Answer {
                match self {
                    $(Self::$variant(result) => &**result,)*
                }
            }

            /// The result that an experiment of this name kept in its folder; None if it isn't one.
            pub fn read(name: &str, json: &[u8]) -> Option<Self> {
                match name {
                    $($name => from_json(json).map(|result| Self::$variant(Box::new(result))),)*
                    _ => None,
                }
            }
        }
    };
}

experiments! {
    Fill: fill::Fill => fill::FillResult, "fill";
    Steady: steady::Steady => steady::SteadyResult, "steady";
    Stream: stream::Stream => stream::StreamResult, "stream";
    Link: link::Link => link::LinkResult, "link";
    Mix: mix::Mix => mix::MixResult, "mix";
    Neighbours: neighbours::Neighbours => neighbours::NeighboursResult, "neighbours";
    Viewers: viewers::Viewers => viewers::ViewersResult, "viewers";
    Apps: apps::Apps => apps::AppsResult, "apps";
    Snia: snia::Snia => snia::SniaResult, "snia";
    Diskmark: diskmark::Diskmark => diskmark::DiskmarkResult, "diskmark";
}
