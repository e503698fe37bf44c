//! Arrays that are created, and what an empty one says.

use std::fs;

use longtake::array::{Array, CreateOptions};
use longtake::{ByteSize, TimeRange, Timestamp};

use crate::harness::{files, scratch};

const MEMBER_BYTES: u64 = 32 << 20;

fn options() -> CreateOptions {
    CreateOptions {
        name: "radar".to_owned(),
        segment: Some(ByteSize(4 << 20)),
        parity: 1,
        ..CreateOptions::default()
    }
}

#[test]
fn a_dry_run_returns_what_would_be_created_and_writes_nothing() {
    let folder = scratch();
    let targets = files(folder.path(), 3, MEMBER_BYTES);
    let options = CreateOptions { dry_run: true, ..options() };
    let report = Array::create(&targets, &options).expect("nothing speaks against it");
    assert!(report.dry_run);
    let members: Vec<_> =
        report.members.iter().map(|m| (m.capacity_bytes, m.segment_bytes, m.segments)).collect();
    assert_eq!(members, [(MEMBER_BYTES, 4 << 20, 7); 3]);
    for target in &targets {
        assert!(fs::read(target).expect("it is there").iter().all(|&byte| byte == 0));
    }
    let error = Array::open(&folder.path().display().to_string()).expect_err("there is no array");
    assert!(format!("{error:#}").contains("member0"), "{error:#}");
}

#[test]
fn a_new_array_has_its_members_and_nothing_else() {
    let folder = scratch();
    let targets = files(folder.path(), 3, MEMBER_BYTES);
    let created = Array::create(&targets, &options()).expect("the files are empty");
    let mut array = Array::open(&folder.path().display().to_string()).expect("it is whole");
    let info = array.info();
    assert_eq!((info.uuid, info.name.as_str(), info.parity), (created.uuid, "radar", 1));
    assert!(!info.recording && info.protected.is_empty() && info.stale.is_empty());
    let named: Vec<_> = info.members.iter().map(|m| m.target.clone()).collect();
    let paths: Vec<_> = targets.iter().map(|path| Some(path.display().to_string())).collect();
    assert_eq!(named, paths);
    assert!(info.members.iter().all(|m| m.used_bytes == 0 && m.extents.is_empty()));

    assert!(array.takes().expect("it can be read").is_empty());
    let error = array.ledger("last").expect_err("there is no take").to_string();
    assert!(error.contains("no take 'last'"), "{error}");
    let checked = array.check(|_| ()).expect("it can be read");
    assert!(checked.is_sound());
    assert_eq!((checked.chunks, checked.takes), (0, 0));
    let scrubbed = array.scrub(&Default::default(), |_| ()).expect("it can be read");
    assert!(scrubbed.is_sound() && scrubbed.findings.is_empty());
}

#[test]
fn members_of_an_array_are_refused_unless_it_may_be_replaced() {
    let folder = scratch();
    let targets = files(folder.path(), 2, MEMBER_BYTES);
    let options = CreateOptions { parity: 0, ..options() };
    let first = Array::create(&targets, &options).expect("the files are empty");
    let error = Array::create(&targets, &options).expect_err("they are members");
    assert!(error.to_string().contains("nothing was written"), "{error}");
    let replace = CreateOptions { replace_array: true, ..options };
    let second = Array::create(&targets, &replace).expect("it may be replaced");
    let array = Array::open(&folder.path().display().to_string()).expect("it is whole");
    assert_ne!(first.uuid, second.uuid);
    assert_eq!(array.uuid(), second.uuid);
}

#[test]
fn parity_that_does_not_suit_the_members_is_refused() {
    let folder = scratch();
    let targets = files(folder.path(), 2, MEMBER_BYTES);
    let options = CreateOptions { parity: 2, ..options() };
    let error = Array::create(&targets, &options).expect_err("two members, both for parity");
    assert!(error.to_string().contains("parity 2 over 2 members"), "{error}");
}

#[test]
fn a_span_is_protected_until_it_is_released() {
    let folder = scratch();
    let targets = files(folder.path(), 2, MEMBER_BYTES);
    Array::create(&targets, &CreateOptions { parity: 0, ..options() }).expect("they are empty");
    let mut array = Array::open(&folder.path().display().to_string()).expect("it is whole");
    let span =
        |from, to| TimeRange { from: Timestamp::from_nanos(from), to: Timestamp::from_nanos(to) };
    assert_eq!(array.protect(span(10, 20), "overflight").expect("it can be written"), 1);
    assert_eq!(array.protect(span(30, 40), "").expect("it can be written"), 2);
    let labels = |array: &Array| -> Vec<String> {
        array.info().protected.iter().map(|span| span.label.clone()).collect()
    };
    assert_eq!(labels(&array), ["overflight", ""]);
    array.protect(span(20, 10), "").expect_err("it ends before it begins");
    array.protect(span(1, 2), &"x".repeat(41)).expect_err("the label is too long");
    assert_eq!(array.unprotect(span(35, 35)).expect("it touches a span"), 1);
    array.unprotect(span(35, 35)).expect_err("nothing is left there");
    let mut again = Array::open(&folder.path().display().to_string()).expect("it is whole");
    assert_eq!(labels(&again), ["overflight"]);

    // An array that is open for repair locks its members itself.
    drop(array);
    again
        .scrub(&longtake::array::ScrubOptions { repair: true, limit: None }, |_| ())
        .expect("free");
    assert_eq!(again.unprotect(TimeRange::ALL).expect("it is its own lock"), 0);
}

#[test]
fn an_array_can_be_used_from_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Array>();
    is_send::<longtake::Error>();
}
