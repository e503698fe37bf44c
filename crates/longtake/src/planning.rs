//! How many drives a rate needs: a requirement, the drives to choose from, and the answer proved by recording on simulated drives.
//!
//! ```
//! use longtake::planning::{Draft, Planning};
//! use target::Profiles;
//!
//! let text = "rate = \"2GB/s\"\nkeep = \"1h\"\ndrives = [\"ideal\"]\n";
//! let planning = Planning::new(Draft::from_toml(text)?, &Profiles::of_user())?;
//! let answer = planning.answer();
//! assert!(answer.designs[0].array.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::ControlFlow;

use anyhow::Context;
use plan::beside::{Comparison, compare};
use plan::mission::Progress;
use plan::trial::{Finding, Trial, Unproved, of_answer};
use plan::{Described, Design};
use profile::{Profile, library};
use target::Profiles;
use target::profiles::ProfilesError;

use crate::Result;

pub use plan::trial::{Budget, Proofs};
pub use plan::{Answer, Candidate, Draft, Requirement, RequirementError};

/// A requirement that was checked, and the drives that may meet it.
#[derive(Debug)]
pub struct Planning {
    /// The requirement as it was asked.
    pub draft: Draft,
    /// The requirement as it was understood.
    pub requirement: Requirement,
    /// The drives to choose from.
    pub candidates: Vec<Candidate>,
}

/// Why nothing can be planned.
#[derive(Debug)]
pub enum PlanningError {
    /// The requirement contradicts itself, or leaves something out.
    Requirement(RequirementError),
    /// A drive is not known.
    Drive(ProfilesError),
    /// There is a price for a drive that is not among those to choose from.
    PriceOfNone {
        /// The name that the price was given for.
        name: String,
        /// The drives to choose from.
        drives: Vec<String>,
    },
}

/// What a proof has come to.
#[derive(Debug)]
pub enum Proving<'a> {
    /// A trial is running.
    Trial {
        /// Its number, from 1.
        number: usize,
        /// How many trials there are.
        of: usize,
        /// Name of the drive.
        drive: &'a str,
        /// How many of these drives it runs on.
        drives: u32,
        /// How far it is.
        progress: Progress<'a>,
    },
    /// What came of a trial, with the drive's name.
    Found(&'a (String, Finding)),
    /// Why a design was not tried, with the drive's name.
    Unproved(&'a (String, Unproved)),
}

impl Planning {
    /// Checks a requirement, and looks up its drives: those that it names or describes, or else all of the library.
    ///
    /// # Errors
    /// [`PlanningError`] if the requirement can't be met by anything, or a drive or the drive of a price is not known.
    pub fn new(draft: Draft, profiles: &Profiles) -> Result<Self, PlanningError> {
        let requirement = draft.check()?;
        let candidates = candidates(&draft, draft.described()?, profiles)?;
        let is_one = |name: &String| {
            draft.drives.contains(name) || candidates.iter().any(|c| c.profile.name == *name)
        };
        if let Some(name) = draft.prices.keys().find(|name| !is_one(name)) {
            let drives = candidates.iter().map(|c| c.profile.name.clone()).collect();
            return Err(PlanningError::PriceOfNone { name: name.clone(), drives });
        }
        Ok(Self { draft, requirement, candidates })
    }

    /// The number of each of the drives that is needed, by arithmetic.
    pub fn answer(&self) -> Answer {
        plan::plan(&self.requirement, &self.candidates)
    }

    /// Compares the latencies of readers during the recording with shared and with separate NVM Sets, for each design that has separate
    /// ones. Each comparison comes with the name of its drive. `watch` is told the drive and the share that is done.
    ///
    /// # Errors
    /// If a recording can't be run.
    pub fn compare(
        &self,
        answer: &Answer,
        mut watch: impl FnMut(&str, f64) -> ControlFlow<()>,
    ) -> Result<Vec<(String, Comparison)>> {
        let mut all = Vec::new();
        let apart = |(design, _): &(&Design, _)| design.sets.is_some();
        for (design, spec) in answer.simulated(&self.candidates).filter(apart) {
            let recording = || format!("recording to {} beside readers", design.drive);
            let spec = spec.with_context(recording)?;
            let found =
                compare(&self.requirement, design, &spec, |share| watch(&design.drive, share));
            all.extend(found.with_context(recording)?.map(|found| (design.drive.clone(), found)));
        }
        Ok(all)
    }

    /// Records on simulated drives what the designs of an answer promise, on as many drives as planned and on one less, as far as the
    /// budget lasts. `heard` may end it.
    ///
    /// # Errors
    /// If a recording can't be run.
    pub fn prove(
        &self,
        answer: &Answer,
        mut budget: Budget,
        mut heard: impl FnMut(Proving<'_>) -> ControlFlow<()>,
    ) -> Result<Proofs> {
        let mut proofs = Proofs::default();
        let all = of_answer(&self.requirement, answer, &self.candidates);
        let of = all.len();
        for (number, (design, trial)) in (1..).zip(all) {
            let drive = design.drive.as_str();
            let trial = trial.and_then(|trial| match budget.is_spent() {
                true => Err(Unproved::WorkSpent),
                false => Ok(trial),
            });
            let told = match trial {
                Ok(trial) => {
                    let mut watch = |drives: usize, progress: Progress<'_>| {
                        let drives = drives as u32;
                        heard(Proving::Trial { number, of, drive, drives, progress })
                    };
                    let found = run(&trial, &mut budget, &mut watch, drive)?;
                    proofs.findings.push((drive.to_owned(), found));
                    proofs.findings.last().map(Proving::Found)
                }
                Err(why) => {
                    proofs.unproved.push((drive.to_owned(), why));
                    proofs.unproved.last().map(Proving::Unproved)
                }
            };
            if told.is_some_and(|told| heard(told).is_break()) {
                break;
            }
        }
        Ok(proofs)
    }
}

fn run(
    trial: &Trial,
    budget: &mut Budget,
    watch: &mut dyn FnMut(usize, Progress<'_>) -> ControlFlow<()>,
    drive: &str,
) -> Result<Finding> {
    let finding = trial.run(budget, watch);
    Ok(finding.with_context(|| format!("proving the plan of {drive}"))?)
}

/// The drives to choose from.
fn candidates(
    draft: &Draft,
    described: Option<Described>,
    profiles: &Profiles,
) -> Result<Vec<Candidate>, PlanningError> {
    let named: Vec<(String, Profile)> = if draft.drives.is_empty() && described.is_none() {
        let known = library::names().map(|name| Ok((name.to_owned(), profiles.named(name)?)));
        known.collect::<Result<_, PlanningError>>()?
    } else {
        let found = draft.drives.iter().map(|name| {
            let word = name.strip_prefix("sim:").unwrap_or(name);
            Ok((name.clone(), profiles.find(word)?))
        });
        found.collect::<Result<_, PlanningError>>()?
    };
    let candidate = |(name, profile): (String, Profile)| {
        let price = draft.prices.get(&profile.name).or_else(|| draft.prices.get(&name)).copied();
        Candidate::new(profile, price)
    };
    let of_description = described.map(|described| {
        let price = draft.prices.get(&described.name()).copied();
        Candidate::of_description(described, price)
    });
    Ok(named.into_iter().map(candidate).chain(of_description).collect())
}

impl fmt::Display for PlanningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requirement(error) => error.fmt(f),
            Self::Drive(error) => error.fmt(f),
            Self::PriceOfNone { name, drives } => write!(
                f,
                "there is a price for '{name}', which is none of the drives to choose from: {}",
                drives.join(", ")
            ),
        }
    }
}

impl std::error::Error for PlanningError {}

impl From<RequirementError> for PlanningError {
    fn from(error: RequirementError) -> Self {
        Self::Requirement(error)
    }
}

impl From<ProfilesError> for PlanningError {
    fn from(error: ProfilesError) -> Self {
        Self::Drive(error)
    }
}
