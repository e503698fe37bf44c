//! Proof of the prover: bugs planted one at a time are found, each within so many seeds.
//!
//! The recorder knows nothing of them. `bugs` lists changes of its sources; `workspace` makes them all in a copy of the
//! recorder, each behind a switch, and builds it with the prover; `hunt`, a program of that copy, plants one bug after the other.
//! `LONGTAKE_LONG=1` begins at the first seed for each, and so counts the seeds that a bug takes.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a test writes files and prints"
)]

mod bugs;
// A program of the copy: here it is named for rustfmt alone.
#[cfg(false)]
mod hunt;
mod workspace;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use bugs::{BUGS, Bug, Edit, NOT_FROM_THE_FIRST, TRICKS};
use workspace::{Workspace, edited};

/// Seeds that show that the changed recorder does what the recorder does while nothing is planted.
const SOUND_SEEDS: u64 = 200;

/// The copy, built once for all tests.
fn workspace() -> &'static Workspace {
    static BUILT: LazyLock<Result<Workspace, String>> = LazyLock::new(Workspace::built);
    BUILT.as_ref().unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn every_planted_bug_is_found_within_its_number_of_seeds() {
    let long = std::env::var_os("LONGTAKE_LONG").is_some_and(|value| value == "1");
    let from = |name: &str| {
        let listed = NOT_FROM_THE_FIRST.iter().find(|(bug, _)| *bug == name && !long);
        listed.map_or(0, |(_, from)| *from)
    };
    let tricks = TRICKS.map(|(trick, seeds)| (format!("{trick:?}"), seeds));
    let bugs = BUGS.map(|bug| (bug.name.to_owned(), bug.seeds));
    let mut hunted: Vec<(String, u64)> = tricks.into_iter().chain(bugs).collect();
    // What takes the longest begins first.
    hunted.sort_by_key(|(_, seeds)| Reverse(*seeds));
    let wanted = hunted.iter().map(|(name, seeds)| format!("{name}={}..{seeds}", from(name)));
    let output = workspace().hunt(wanted);
    let found: BTreeMap<&str, &str> =
        output.lines().filter_map(|line| line.split_once(' ')).collect();
    for (name, seeds) in &hunted {
        if let Some((seed, how)) = found.get(name.as_str()).and_then(|line| line.split_once(' ')) {
            println!("| {name} | {seed} of {seeds} | {how} |");
        }
    }
    let missed: Vec<String> = hunted
        .iter()
        .filter(|(name, _)| !found.contains_key(name.as_str()))
        .map(|(name, seeds)| format!("{name} within {seeds} seeds"))
        .collect();
    assert!(missed.is_empty(), "not found: {}", missed.join(", "));
}

#[test]
fn the_changed_recorder_keeps_every_law_while_nothing_is_planted() {
    let output = workspace().hunt([format!("nothing=0..{SOUND_SEEDS}")]);
    assert_eq!(output, "", "the edits change the recorder though no bug is planted");
}

#[test]
fn an_edit_must_find_its_text_exactly_once() {
    let edits = &[Edit { file: "ring.rs", find: "turn()", replace: "if !PLANTED { turn() }" }];
    let bug = Bug { name: "StandsStill", wrong: "", seeds: 1, edits };
    let switched = "{ if !crate::planted::is(crate::planted::Bug::StandsStill) { turn() } }";
    assert_eq!(edited("ring.rs", "{ turn() }", &[bug]).unwrap(), switched);
    assert_eq!(edited("other.rs", "{ turn() }", &[bug]).unwrap(), "{ turn() }");
    for (text, times) in [("{ turned() }", "0 times"), ("{ turn(); turn() }", "2 times")] {
        let fault = edited("ring.rs", text, &[bug]).unwrap_err();
        for part in ["StandsStill", "crates/recorder/src/ring.rs", times, "mend the edit"] {
            assert!(fault.contains(part), "{fault}");
        }
    }
    let fault = edited("ring.rs", "{ turn() }", &[bug, bug]).unwrap_err();
    assert!(fault.contains("overlap"), "{fault}");
}

#[test]
fn where_the_short_form_begins_lies_within_the_seeds_of_a_bug() {
    for (name, from) in NOT_FROM_THE_FIRST {
        let bug = BUGS.iter().find(|bug| bug.name == name);
        assert!(bug.is_some_and(|bug| from < bug.seeds), "{name}");
    }
}

#[test]
fn every_edit_stands_behind_its_switch() {
    for bug in BUGS {
        assert!(!bug.edits.is_empty(), "{} changes nothing", bug.name);
        for edit in bug.edits {
            assert!(edit.replace.contains("PLANTED"), "{} is always planted", bug.name);
        }
    }
}
