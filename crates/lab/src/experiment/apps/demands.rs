//! Demands: what the streams of applications ask in absolute figures. They are data with sources, so that readers can check
//! what a drive was judged against, and replace it by their own figures.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use load::quantity::{Pace, Time};
use serde::{Deserialize, Serialize};

use super::Application;

/// The demands that the program has.
const OWN: &str = include_str!("demands.toml");

/// Copies of a stream, at most: the most jobs that a stream may have.
const STREAMS_MAX: u32 = 10_000;

/// What all streams ask, by application and stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demands(BTreeMap<String, BTreeMap<String, Demand>>);

/// What one stream asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// Copies of the stream on all drives together.
    #[serde(default = "one")]
    pub streams: u32,
    /// What each copy asks: bytes or commands a second.
    pub rate: Pace,
    /// A later answer is late; None for the workload's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Where the figures come from.
    pub source: String,
}

const fn one() -> u32 {
    1
}

/// Why a file has no demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DemandsError {
    /// It can't be read as such.
    Text(String),
    /// There is no such application or stream.
    Unknown {
        /// What it names: `olap.scans`.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A figure can't be as it is.
    Figure {
        /// Which stream's.
        name: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

impl fmt::Display for DemandsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => f.write_str(error.trim_end()),
            Self::Unknown { name, known } => {
                write!(f, "no application has a stream [{name}]: there are {}", known.join(", "))
            }
            Self::Figure { name, problem } => write!(f, "[{name}]: {problem}"),
        }
    }
}

impl std::error::Error for DemandsError {}

impl Demands {
    /// Those that the program has.
    ///
    /// # Panics
    /// Never: a test reads them.
    pub fn own() -> Self {
        toml::from_str(OWN).expect("the program's own demands can be read")
    }

    /// What a stream asks, if anything is demanded of it.
    pub fn of(&self, application: Application, stream: &str) -> Option<&Demand> {
        self.0.get(application.name())?.get(stream)
    }

    /// Every stream, as `application.stream`, with what it asks.
    pub fn all(&self) -> impl Iterator<Item = (String, &Demand)> {
        self.0.iter().flat_map(|(application, streams)| {
            streams.iter().map(move |(stream, demand)| (format!("{application}.{stream}"), demand))
        })
    }
}

impl FromStr for Demands {
    type Err = DemandsError;

    /// Demands as TOML: a table `[application.stream]` for each. Those that it doesn't name stay as the program has them.
    fn from_str(text: &str) -> Result<Self, DemandsError> {
        let given: Self =
            toml::from_str(text).map_err(|error| DemandsError::Text(error.to_string()))?;
        let mut demands = Self::own();
        for (name, demand) in given.all() {
            demand.check(&name)?;
            let known: Vec<String> = Self::own().all().map(|(known, _)| known).collect();
            if !known.contains(&name) {
                return Err(DemandsError::Unknown { name, known });
            }
        }
        for (application, streams) in given.0 {
            demands.0.entry(application).or_default().extend(streams);
        }
        Ok(demands)
    }
}

impl Demand {
    fn check(&self, name: &str) -> Result<(), DemandsError> {
        let wrong = |problem: String| Err(DemandsError::Figure { name: name.to_owned(), problem });
        if !(1..=STREAMS_MAX).contains(&self.streams) {
            return wrong(format!("streams are from 1 to {STREAMS_MAX}"));
        }
        if self.source.trim().is_empty() {
            let remedy = "say where its figures come from (source), or \"assumed: ...\" and why";
            return wrong(remedy.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demand_of_the_program_has_a_source_and_can_be_given_as_a_file() {
        let own = Demands::own();
        assert_eq!(OWN.parse(), Ok(own.clone()));
        assert_eq!(own.all().count(), 15);
        for application in Application::ALL {
            assert!(own.all().any(|(name, _)| name.starts_with(application.name())));
        }
    }

    #[test]
    fn a_file_replaces_what_it_names_and_is_refused_where_it_is_wrong() {
        let text = "[olap.scans]\nrate = \"1GB/s\"\nsource = \"our queries\"\n";
        let demands: Demands = text.parse().unwrap();
        let scans = demands.of(Application::Olap, "scans").unwrap();
        assert_eq!((scans.streams, scans.rate), (1, Pace::Bytes(1e9)));
        let own = Demands::own();
        assert_eq!(demands.of(Application::Olap, "cube"), own.of(Application::Olap, "cube"));
        for (wrong, says) in [
            ("[olap.scan]\nrate = \"1GB/s\"\nsource = \"x\"", "[olap.scan]: there are cache-tier"),
            ("[olap.scans]\nrate = \"1GB/s\"", "source"),
            ("[olap.scans]\nrate = \"1GB/s\"\nsource = \" \"", "say where its figures come from"),
            ("[olap.scans]\nrate = \"0/s\"\nsource = \"x\"", "asks for nothing"),
            ("[olap.scans]\nstreams = 0\nrate = \"1/s\"\nsource = \"x\"", "from 1 to 10000"),
            ("[olap.scans]\niops = 5\nrate = \"1/s\"\nsource = \"x\"", "iops"),
        ] {
            let error = wrong.parse::<Demands>().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
