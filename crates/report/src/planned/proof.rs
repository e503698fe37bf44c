//! What came of recording a design on simulated drives, in words and as JSON.

use plan::trial::{Enough, Extent, Finding, Question, Unproved};
use serde_json::{Value, json};

use crate::mission;
use crate::text::wrapped;

/// A finding in words: what was asked, and what came of it.
pub fn text((drive, finding): &(String, Finding)) -> String {
    let asked = match finding.question {
        Question::Rate => "fast enough",
        Question::Whole => "all of it",
    };
    let rest = if is_cut_short(finding) { " (--long records all of it)" } else { "" };
    let on = if finding.has_parity { " on the drives for data" } else { "" };
    let said = format!("{drive}: proved by recording{on}, {asked}: {finding}{rest}");
    format!("\n{}", wrapped(&said, 0))
}

/// Whether there was too little work for all that was to be recorded.
fn is_cut_short(finding: &Finding) -> bool {
    let undecided = matches!(finding.enough, Some(Enough::Undecided(_)));
    let drawn_on = finding.draws.as_ref().is_some_and(|drawn| drawn.enough().is_none());
    undecided || drawn_on || finding.extent() == Extent::Beginning
}

/// A design that was not proved, in words.
pub fn unproved_text((drive, why): &(String, Unproved)) -> String {
    format!("\n{}", wrapped(&format!("{drive}: not proved: {why}"), 0))
}

/// A finding as JSON.
pub fn json((drive, finding): &(String, Finding)) -> Value {
    json!({
        "drive": drive,
        "question": finding.question,
        "verdict": finding.verdict(),
        "drives": finding.proof.drives,
        "has_parity": finding.has_parity,
        "held_s": finding.held.as_secs_f64(),
        "extent": finding.extent(),
        "recorded_s": finding.proof.with.fed.as_secs_f64(),
        "planned_s": finding.planned.as_secs_f64(),
        "work": finding.proof.work(),
        "with": mission::outcome_json(&finding.proof.with),
        "without": finding.proof.without.as_ref().map(mission::outcome_json),
        "draws": finding.draws.as_ref().map(|drawn| json!({ "tried": drawn.tried, "lost": drawn.lost })),
        "enough": finding.enough.as_ref().map(enough_json),
    })
}

/// How many drives are enough: null if none of those that were tried up to `tried` are, or that was not decided.
fn enough_json(enough: &Enough) -> Value {
    let (drives, tried, with) = match enough {
        Enough::Drives(drives, outcome) => (Some(drives), drives, Some(outcome)),
        Enough::MoreThan(tried) | Enough::Undecided(tried) => (None, tried, None),
    };
    json!({
        "drives": drives, "tried": tried, "decided": !matches!(enough, Enough::Undecided(_)),
        "with": with.map(|outcome| mission::outcome_json(outcome)),
    })
}

/// A design that was not proved, as JSON.
pub fn unproved_json((drive, why): &(String, Unproved)) -> Value {
    json!({ "drive": drive, "why": why.to_string(), "work_spent": *why == Unproved::WorkSpent })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use base::Duration;
    use plan::trial::{Budget, Trial, of_answer};
    use plan::{Candidate, Draft};
    use profile::library;

    use super::*;
    use crate::text::fits;

    /// The trials of every drive of the library, a moment of each.
    fn short_trials() -> Vec<(String, Trial)> {
        let draft = Draft { rate: Some("100Gb/s".to_owned()), ..Draft::default() };
        let requirement = draft.check().unwrap();
        let profiles = library::names().map(|name| library::get(name).unwrap());
        let candidates: Vec<Candidate> =
            profiles.map(|profile| Candidate::new(profile, None)).collect();
        let answer = plan::plan(&requirement, &candidates);
        let all = of_answer(&requirement, &answer, &candidates).into_iter();
        let short = |mut trial: Trial| {
            trial.mission.duration = Duration::from_millis(200);
            trial.steady = Some(Duration::from_millis(100));
            trial
        };
        all.filter_map(|(design, trial)| Some((design.drive.clone(), short(trial.ok()?)))).collect()
    }

    #[test]
    fn what_came_of_proving_any_drive_of_the_library_fits_a_terminal() {
        let found = |trial: &Trial, mut budget: Budget| {
            trial.run(&mut budget, |_, _| ControlFlow::Continue(())).unwrap()
        };
        let mut extents = Vec::new();
        for (number, (drive, trial)) in short_trials().into_iter().enumerate() {
            // Those that lose something are told with when and why.
            let mut fewer = trial.clone();
            fewer.mission.drives.truncate(trial.mission.drives.len().div_ceil(4));
            let finding = match number % 3 {
                0 => found(&fewer, Budget::unlimited()),
                1 => found(&trial, Budget::of(10_000)),
                _ => found(&trial, Budget::of(u64::MAX)),
            };
            let named = (drive.clone(), finding);
            let text = text(&named);
            assert!(fits(&text), "{text}");
            let extent = named.1.extent();
            let told = json(&named);
            let is_short = extent == Extent::Beginning || told["enough"]["decided"] == false;
            assert_eq!(text.contains("--long"), is_short, "{text}");
            assert_eq!(told["extent"], serde_json::to_value(extent).unwrap());
            assert_eq!(told["verdict"], serde_json::to_value(named.1.verdict()).unwrap());
            assert_eq!(told["planned_s"], 0.2);
            assert!(told["work"].as_u64().unwrap() > 0);
            if !extents.contains(&extent) {
                extents.push(extent);
            }
            let unproved = unproved_text(&(drive, Unproved::WorkSpent));
            assert!(fits(&unproved) && unproved.contains("not proved"), "{unproved}");
        }
        assert_eq!(extents.len(), 3, "{extents:?}");
    }
}
