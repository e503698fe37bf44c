//! Proof of the prover: bugs planted one at a time are found, each within so many seeds.

#![allow(clippy::disallowed_macros, reason = "a test tells what it took")]

use std::cell::Cell;
use std::panic;
use std::sync::Mutex;
use std::thread;

use longtake_chaos::adversary::Trick;
use longtake_chaos::{Case, judged};
use recorder::planted::{Bug, plant};

/// Where a bug is planted.
#[derive(Clone, Copy, Debug)]
enum Planted {
    /// In the recorder.
    Recorder(Bug),
    /// Between the recorder and the drives.
    Below(Trick),
}

use Planted::{Below, Recorder};

/// Every bug, with the seeds within which it must be found: a few times what it takes, so that a change of what a seed
/// chooses does not break this.
const BUGS: [(Planted, u64); 38] = [
    // The first, because it takes the longest.
    (Recorder(Bug::WritesGoodCopyFirst), 50_000),
    (Below(Trick::AnswersEarly), 200),
    (Below(Trick::HidesShort), 500),
    (Below(Trick::DropsFlushes), 200),
    (Below(Trick::SwapsWrites), 200),
    (Recorder(Bug::ReusesTooEarly), 500),
    (Recorder(Bug::SkipsAtTheWrap), 500),
    (Recorder(Bug::ReusesProtected), 500),
    (Recorder(Bug::TrimsProtected), 500),
    (Recorder(Bug::TrimsUntold), 500),
    (Recorder(Bug::CrossesSegmentEnd), 200),
    (Recorder(Bug::IndexesBeforeFlush), 2000),
    (Recorder(Bug::ForgetsIndexEntry), 2000),
    (Recorder(Bug::AcknowledgesOutOfOrder), 200),
    (Recorder(Bug::ForgetsFailedChunks), 500),
    (Recorder(Bug::FlushCoversTooMuch), 500),
    (Recorder(Bug::CountsLossesTwice), 200),
    (Recorder(Bug::ReleasesEarly), 100),
    (Recorder(Bug::ReusesNumbers), 2000),
    (Recorder(Bug::ForgetsTheEnd), 100),
    (Recorder(Bug::OpensWithoutChecksum), 2000),
    (Recorder(Bug::OpensPastTheEnd), 5000),
    (Recorder(Bug::ReadsWithoutChecksum), 5000),
    (Recorder(Bug::ReadsForeignChunks), 5000),
    (Recorder(Bug::GivesUpOverwritten), 5000),
    (Recorder(Bug::HidesOverwritten), 2000),
    (Recorder(Bug::HidesHoles), 500),
    (Recorder(Bug::ForgetsGroups), 2000),
    (Recorder(Bug::ForgetsReusedTime), 5000),
    (Recorder(Bug::ListsReplacedChunks), 2000),
    (Recorder(Bug::ParityForgetsLast), 200),
    (Recorder(Bug::ParityOutOfPlace), 200),
    (Recorder(Bug::ParityOnOwnMember), 200),
    (Recorder(Bug::AcknowledgesBeforeParity), 500),
    (Recorder(Bug::ParityBeforeStamp), 200),
    (Recorder(Bug::CallsTornIndexesDamaged), 200),
    (Recorder(Bug::MissesStaleMembers), 2000),
    (Recorder(Bug::ForgetsJoinedMember), 2000),
];

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The first seed that finds a bug, and how.
fn find(planted: Planted, seeds: u64) -> Option<(u64, String)> {
    let (bug, trick) = match planted {
        Recorder(bug) => (Some(bug), None),
        Below(trick) => (None, Some(trick)),
    };
    plant(bug);
    let found = (0..seeds).find_map(|seed| {
        let case = Case { trick, ..Case::of(seed) };
        judged(&case, None).err().map(|violation| (seed, violation.message))
    });
    plant(None);
    found
}

#[test]
fn every_planted_bug_is_found_within_its_number_of_seeds() {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !QUIET.get() {
            loud(info);
        }
    }));
    let found = Mutex::new(Vec::new());
    let next = Mutex::new(BUGS.iter());
    let work = || {
        QUIET.set(true);
        loop {
            let Some(&(bug, seeds)) = next.lock().unwrap().next() else { return };
            let how = find(bug, seeds);
            found.lock().unwrap().push((bug, seeds, how));
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let found = found.into_inner().unwrap();
    let mut missed = Vec::new();
    for (bug, seeds, how) in &found {
        match how {
            Some((seed, message)) => {
                let line = message.lines().next().unwrap_or_default();
                println!(
                    "| {bug:?} | {} of {seeds} | {} |",
                    seed + 1,
                    &line[..line.len().min(120)]
                );
            }
            None => missed.push((bug, seeds)),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
    assert_eq!(found.len(), BUGS.len());
}
