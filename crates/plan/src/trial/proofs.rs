//! The trials of all designs of an answer, and what came of them.

use std::fmt;

use format::superblock::MEMBERS_MAX;
use ssd::SpecError;

use super::{Finding, Trial, TrialVerdict, trials};
use crate::answer::{Answer, Design};
use crate::candidate::Candidate;
use crate::requirement::Requirement;

/// What came of proving designs.
#[derive(Clone, Debug, Default)]
pub struct Proofs {
    /// Findings, each with its drive's name.
    pub findings: Vec<(String, Finding)>,
    /// What was not tried, each with its drive's name.
    pub unproved: Vec<(String, Unproved)>,
}

/// Why a design is not proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproved {
    /// A size and a rate are not enough to simulate a drive.
    Described,
    /// The drive can't be simulated.
    NotSimulated(SpecError),
    /// So many drives are more than one array has: several arrays side by side would have to be tried one by one.
    TooManyDrives(usize),
    /// The trials before took all the work that there is.
    WorkSpent,
}

impl Proofs {
    /// Whether all trials were run and confirmed the number of drives of their design. What can't be tried at all doesn't count.
    pub fn confirmed(&self) -> bool {
        let confirmed =
            |(_, finding): &(String, Finding)| finding.verdict() == TrialVerdict::Confirmed;
        let skipped = |(_, why): &(String, Unproved)| *why == Unproved::WorkSpent;
        self.findings.iter().all(confirmed) && !self.unproved.iter().any(skipped)
    }
}

/// The trials of all designs that have an answer, in the order of the designs, or why there is none.
pub fn of_answer<'a>(
    requirement: &Requirement,
    answer: &'a Answer,
    candidates: &'a [Candidate],
) -> Vec<(&'a Design, Result<Trial, Unproved>)> {
    let mut all = Vec::new();
    for (design, spec) in answer.simulated(candidates).filter(|(design, _)| design.array.is_some())
    {
        match spec {
            Ok(spec) => {
                let trials = trials(requirement, design, &spec).into_iter();
                all.extend(trials.map(|trial| (design, fits_an_array(trial))));
            }
            Err(_) if design.is_described() => all.push((design, Err(Unproved::Described))),
            Err(error) => all.push((design, Err(Unproved::NotSimulated(error)))),
        }
    }
    all
}

fn fits_an_array(trial: Trial) -> Result<Trial, Unproved> {
    let members: usize = trial.mission.drives.iter().map(|slot| slot.namespaces.len()).sum();
    if members > MEMBERS_MAX {
        Err(Unproved::TooManyDrives(trial.mission.drives.len()))
    } else {
        Ok(trial)
    }
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Described => f.write_str("a size and a rate are not enough to simulate a drive"),
            Self::NotSimulated(error) => write!(
                f,
                "it can't be simulated: {error}; `longtake fit` makes a model of what was measured"
            ),
            Self::TooManyDrives(drives) => write!(f, "{drives} drives are more than one array has"),
            Self::WorkSpent => {
                f.write_str("the designs before it took a minute's work; --long proves all")
            }
        }
    }
}
