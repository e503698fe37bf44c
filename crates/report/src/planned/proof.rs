//! What came of recording a design on simulated drives, in words and as JSON.

use plan::trial::{Finding, Question};
use serde_json::{Value, json};

use crate::mission;

/// A finding in words: what was asked, and what came of it.
pub fn text((drive, finding): &(String, Finding)) -> String {
    let asked = match finding.question {
        Question::Rate => "fast enough",
        Question::Whole => "all of it",
    };
    format!("\n{drive}: proved by recording, {asked}: {finding}")
}

/// A finding as JSON.
pub fn json((drive, finding): &(String, Finding)) -> Value {
    json!({
        "drive": drive,
        "question": finding.question,
        "verdict": finding.verdict(),
        "drives": finding.proof.drives,
        "held_s": finding.held.as_secs_f64(),
        "with": mission::outcome_json(&finding.proof.with),
        "without": finding.proof.without.as_ref().map(mission::outcome_json),
    })
}
