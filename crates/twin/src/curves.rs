//! Published fill curves of drives that the library does not have, to learn from and to judge by: how well the rules by which twins are
//! found do on drives that they were not made with.

use std::fmt::Write;
use std::path::Path;

use lab::importing::profile::{ImportOptions, ProfileImportError, import};
use profile::Profile;
use serde::Deserialize;

/// What a curve is there for. It was decided before any rule was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Division {
    /// Rules were made with it in view.
    Learn,
    /// It judges the rules.
    Judge,
    /// Its levels and its mean can't both be right: for neither.
    Contradicts,
}

/// A fill curve as its source states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedCurve {
    /// The drive.
    pub model: String,
    /// What the curve is there for.
    #[serde(rename = "use")]
    pub division: Division,
    /// Its link, as far as the source tells.
    pub interface: String,
    /// What it holds, in 10^9 bytes.
    pub capacity_gb: u64,
    /// Levels in order: where each ends, in 10^9 bytes written, and its rate in 10^6 bytes a second.
    pub levels: Vec<(f64, f64)>,
    /// The mean over the whole fill, in 10^6 bytes a second, if the source states it.
    pub mean_mb_s: Option<f64>,
    /// The page's address.
    pub source: String,
}

#[derive(Deserialize)]
struct Curves {
    drive: Vec<PublishedCurve>,
}

impl PublishedCurve {
    /// All of them, by what they are there for.
    ///
    /// # Panics
    /// Never: that they can be read is tested.
    pub fn all() -> Vec<Self> {
        let all: Curves =
            toml::from_str(include_str!("../data/fill-curves.toml")).expect("it is TOML");
        all.drive
    }

    /// Those of one division.
    pub fn of(division: Division) -> Vec<Self> {
        Self::all().into_iter().filter(|curve| curve.division == division).collect()
    }

    /// Its corners, as somebody would type them in.
    pub fn table(&self) -> String {
        let mut text = "written GB,MB/s\n".to_owned();
        let mut from = 0.0;
        for &(to, rate) in &self.levels {
            let _ = writeln!(text, "{from},{rate}\n{to},{rate}");
            from = to;
        }
        text
    }

    /// The mean that its levels come to, in 10^6 bytes a second.
    pub fn mean_of_levels(&self) -> f64 {
        let starts = std::iter::once(0.0).chain(self.levels.iter().map(|level| level.0));
        let all = self.levels.iter().zip(starts);
        let seconds: f64 = all.map(|(&(to, rate), from)| (to - from) / rate).sum();
        self.capacity_gb as f64 / seconds
    }

    /// What `profiles import` makes of its table, which the caller has written to this path.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn profile(&self, path: &Path) -> Result<Profile, ProfileImportError> {
        let options = ImportOptions {
            from: vec![path.to_owned()],
            capacity_bytes: Some(self.capacity_gb * 1_000_000_000),
            model: Some(self.model.clone()),
            published: Some(self.source.clone()),
            ..ImportOptions::default()
        };
        Ok(import(&options, None, env!("CARGO_PKG_VERSION"))?.profile)
    }
}
