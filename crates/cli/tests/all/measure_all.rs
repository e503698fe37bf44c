//! Everything within a small budget: it ends, and every experiment is either in the results or named as left out.

use std::collections::BTreeSet;
use std::fs;

use crate::harness::{line, new_in, scratch};
use crate::measure_rig::lines;
use lab::experiment::any::Experiment;
use lab::run::Run;

#[test]
fn all_on_a_small_file_ends_with_results_profile_and_report() {
    let folder = scratch();
    let (target, output) = (new_in(&folder, "drive"), new_in(&folder, "results"));
    let words =
        format!("measure all @ --time 15s --size 256MiB --json --output {}", output.display());
    // An experiment that finds its machine too slow says so, and the others go on.
    let ran = line(&words, &target);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.stderr);
    let run = Run::read(&output).expect("it can be read").expect("there is one");
    let found: BTreeSet<&str> = run.outcomes.iter().map(|outcome| outcome.name()).collect();
    let left_out: BTreeSet<&str> = run.left_out.iter().map(|(name, _)| name.as_str()).collect();
    let all: BTreeSet<&str> = Experiment::NAMES.iter().copied().collect();
    assert_eq!(&found | &left_out, all);
    assert!(found.is_disjoint(&left_out) && !found.is_empty());
    assert!(run.left_out.iter().all(|(_, why)| !why.is_empty()));
    assert_eq!(ran.code == 0, run.left_out.iter().all(|(_, why)| why.contains("budget")));

    let printed = lines(&ran);
    assert_eq!(printed.len(), found.len() + 1, "a line for each, and where everything is");
    // The three answers, each known or with the experiment that tells it.
    let verdict = printed.last().and_then(|last| last["verdict"].as_array().cloned());
    let verdict = verdict.expect("the last line has the answers");
    assert_eq!(verdict.len(), 3, "{verdict:?}");
    for (answer, experiment) in verdict.iter().zip(["fill", "fill", "neighbours"]) {
        let told = answer.as_str().expect("an answer is a sentence");
        // One that was done may still have been too short to tell.
        assert!(told.contains("not measured") || found.contains(experiment), "{told}");
        assert!(!told.contains("contradicts"), "{told}");
    }
    let text = fs::read_to_string(output.join("profile.toml")).expect("there is a profile");
    let parsed = profile::Profile::from_toml(&text).expect("a profile that can be read");
    assert!(!parsed.figures.is_empty());
    let page = fs::read_to_string(output.join("report.html")).expect("there is a report");
    assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
    assert!(found.iter().all(|name| output.join(name).is_dir()));
}
