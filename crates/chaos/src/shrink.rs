//! Makes a case that breaks a law smaller, so that what is left is what it takes.

use base::Duration;

use crate::case::Case;
use crate::world::{Violation, judged};

/// The smallest case found that still breaks a law, by leaving out rounds and what happens in them one at a time; and
/// the law. None if the case breaks none.
pub fn shrunk(case: &Case) -> Option<(Case, Violation)> {
    let mut best = (case.clone(), judged(case, None).err()?);
    loop {
        let found = smaller(&best.0).find_map(|case| Some((judged(&case, None).err()?, case)));
        let Some((violation, case)) = found else { return Some(best) };
        best = (case, violation);
    }
}

/// A case with one thing less, in every way.
fn smaller(case: &Case) -> impl Iterator<Item = Case> + '_ {
    let rounds = case.rounds.iter().enumerate();
    rounds.flat_map(move |(at, round)| {
        let with = move |change: &dyn Fn(&mut Case)| {
            let mut case = case.clone();
            change(&mut case);
            case
        };
        let mut cases = Vec::new();
        if case.rounds.len() > 1 {
            cases.push(with(&|c| _ = c.rounds.remove(at)));
        }
        for fault in 0..round.faults.len() {
            cases.push(with(&|c| _ = c.rounds[at].faults.remove(fault)));
        }
        for viewer in 0..round.viewers.len() {
            cases.push(with(&|c| _ = c.rounds[at].viewers.remove(viewer)));
        }
        for protection in 0..round.protections.len() {
            cases.push(with(&|c| _ = c.rounds[at].protections.remove(protection)));
        }
        if round.accident.is_some() {
            cases.push(with(&|c| c.rounds[at].accident = None));
        }
        if round.older != Duration::ZERO {
            cases.push(with(&|c| c.rounds[at].older = Duration::ZERO));
        }
        if round.misread {
            cases.push(with(&|c| c.rounds[at].misread = false));
        }
        cases
    })
}
