//! What came of the mutants, by file.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Counts of one file, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Score {
    /// A test failed.
    caught: u64,
    /// All tests passed.
    missed: u64,
    /// The tests did not end in time, which is noticed too.
    timeout: u64,
    /// It doesn't compile: no test is needed.
    unviable: u64,
}

impl Score {
    /// The share that was noticed, in percent; None if none could be.
    fn percent(&self) -> Option<f64> {
        let noticed = self.caught + self.timeout;
        let all = noticed + self.missed;
        (all > 0).then(|| 100.0 * noticed as f64 / all as f64)
    }

    fn add(&mut self, other: &Self) {
        self.caught += other.caught;
        self.missed += other.missed;
        self.timeout += other.timeout;
        self.unviable += other.unviable;
    }
}

/// All outcomes so far.
#[derive(Debug, Default)]
pub struct Scores {
    files: BTreeMap<String, Score>,
    missed: Vec<String>,
}

impl Scores {
    /// Adds the outcomes of a run (`outcomes.json`). Mutants that an interrupt cut off are not counted.
    ///
    /// # Errors
    /// If an outcome is not known: a newer cargo-mutants may have more.
    pub fn add(&mut self, found: &Value) -> Result<()> {
        for outcome in found["outcomes"].as_array().into_iter().flatten() {
            let mutant = &outcome["scenario"]["Mutant"];
            let Some(name) = mutant["name"].as_str() else { continue };
            let file = mutant["file"].as_str().context("a mutant without its file")?;
            let score = self.files.entry(file.to_owned()).or_default();
            match outcome["summary"].as_str().unwrap_or_default() {
                "CaughtMutant" => score.caught += 1,
                "MissedMutant" => {
                    score.missed += 1;
                    self.missed.push(name.to_owned());
                }
                "Timeout" => score.timeout += 1,
                "Unviable" => score.unviable += 1,
                other => bail!("{name}: cargo-mutants says '{other}', which is not known"),
            }
        }
        Ok(())
    }

    fn all(&self) -> Score {
        let mut all = Score::default();
        self.files.values().for_each(|score| all.add(score));
        all
    }

    /// The counts so far, in a line.
    pub fn progress(&self) -> String {
        let Score { caught, missed, timeout, unviable } = self.all();
        format!("{caught} caught, {missed} missed, {timeout} timed out, {unviable} unviable")
    }
}

/// Whether the run ended because the tests fail without a mutant.
pub fn baseline_failed(found: &Value) -> bool {
    found["outcomes"].as_array().into_iter().flatten().any(|outcome| {
        outcome["scenario"].as_str() == Some("Baseline")
            && outcome["summary"].as_str() != Some("Success")
    })
}

impl fmt::Display for Scores {
    /// A table with a line for each file and one for all, then the names of the mutants that were missed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all();
        let rows = self.files.iter().map(|(file, score)| (file.as_str(), score));
        let rows: Vec<_> = rows.chain([("all", &all)]).collect();
        let width = rows.iter().map(|(file, _)| file.len()).max().unwrap_or(0);
        writeln!(f, "{:width$}  caught  missed  timeout  unviable   score", "file")?;
        for (file, score) in rows {
            let Score { caught, missed, timeout, unviable } = score;
            let percent = score.percent().map_or("-".to_owned(), |p| format!("{p:.1} %"));
            writeln!(
                f,
                "{file:width$}  {caught:>6}  {missed:>6}  {timeout:>7}  {unviable:>8}  {percent:>7}"
            )?;
        }
        for name in &self.missed {
            writeln!(f, "missed: {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(file: &str, name: &str, summary: &str) -> Value {
        json!({ "scenario": { "Mutant": { "file": file, "name": name } }, "summary": summary })
    }

    #[test]
    fn outcomes_add_up_by_file_and_a_timeout_counts_as_noticed() {
        let mut scores = Scores::default();
        let baseline = json!({ "scenario": "Baseline", "summary": "Success" });
        let one = [
            baseline.clone(),
            outcome("src/a.rs", "a1", "CaughtMutant"),
            outcome("src/a.rs", "a2", "MissedMutant"),
            outcome("src/a.rs", "a3", "Timeout"),
        ];
        scores.add(&json!({ "outcomes": one })).unwrap();
        let two =
            [outcome("src/a.rs", "a4", "CaughtMutant"), outcome("long/b.rs", "b1", "Unviable")];
        scores.add(&json!({ "outcomes": two })).unwrap();
        let expected = "\
file       caught  missed  timeout  unviable   score
long/b.rs       0       0        0         1        -
src/a.rs        2       1        1         0   75.0 %
all             2       1        1         1   75.0 %
missed: a2
";
        assert_eq!(scores.to_string(), expected);
        assert_eq!(scores.progress(), "2 caught, 1 missed, 1 timed out, 1 unviable");
    }

    #[test]
    fn an_interrupted_run_without_outcomes_adds_nothing_and_an_unknown_one_is_an_error() {
        let mut scores = Scores::default();
        scores.add(&json!({})).unwrap();
        assert_eq!(scores.all(), Score::default());
        let odd = json!({ "outcomes": [outcome("a", "odd", "Escaped")] });
        assert!(scores.add(&odd).unwrap_err().to_string().contains("Escaped"));
    }

    #[test]
    fn tests_that_fail_without_a_mutant_are_noticed() {
        let run =
            |summary: &str| json!({ "outcomes": [{ "scenario": "Baseline", "summary": summary }] });
        assert!(!baseline_failed(&run("Success")));
        assert!(baseline_failed(&run("Failure")) && baseline_failed(&run("Timeout")));
        assert!(!baseline_failed(&json!({})));
    }
}
