//! An array that is used while somebody records on it.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use longtake::array::{ScrubOptions, Selection, TakeState};
use longtake::control::{Asked, Control, Reply, Request};
use longtake::recording::{Recording, Snapshot};
use serde_json::json;

use crate::harness::{Fixture, flip};

/// Waits for something that happens in every recording that goes on.
fn wait_until(recording: &Recording, happened: impl Fn(&Snapshot) -> bool) {
    while !happened(&recording.snapshot()) {
        assert!(!recording.is_over(), "nothing ends it");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_array_is_listed_read_and_protected_while_it_is_recorded_on() {
    let (array, recording) = Fixture::recording();
    wait_until(&recording, |now| now.acknowledged.packets > 0);
    let acknowledged = recording.snapshot().acknowledged.packets;
    let mut opened = array.open();
    assert!(opened.is_recording());
    let take = opened.ledger("last").expect("it has begun");
    assert_eq!(take.state, TakeState::Recording);
    assert!(take.stored.packets >= acknowledged);

    let span = take.range();
    let selection = Selection { until: Some(span.to), hold: true, ..Selection::default() };
    let extracted = opened.extract(&selection, |_| ControlFlow::Continue(()));
    let extracted = extracted.expect("a recording can be read");
    // More is stored by its ledger: of that, chunks may still be on their way to a slow drive.
    assert!(extracted.packets >= acknowledged, "{acknowledged}: {extracted:?}");
    assert!(extracted.read.is_read_whole(), "{:?}", extracted.read);

    assert_eq!(opened.protect(span, "begin").expect("the recorder grants it"), 1);
    let repair = ScrubOptions { repair: true, limit: None };
    let error = opened.scrub(&repair, |_| ()).expect_err("somebody records").to_string();
    assert!(error.contains("nothing was written"), "{error}");

    recording.stop();
    let account = recording.wait().expect("it ends as it was asked to");
    assert!(account.is_complete());
    opened.refresh().expect("it is whole");
    assert!(!opened.is_recording());
    assert_eq!(opened.info().protected[0].label, "begin");
    let take = opened.ledger("last").expect("it is there");
    assert_eq!(take.state, TakeState::Complete);
    assert_eq!(take.ledger, account.ledger);
}

#[test]
fn the_recorder_is_asked_what_is_written_so_that_its_chunks_need_not_be_read_to_be_listed() {
    let (array, recording) = Fixture::recording();
    // Given to the first member, and then acknowledged with all that was stored until then.
    wait_until(&recording, |now| now.members.first().is_some_and(|member| member.written > 0));
    let stored = recording.snapshot().ledger.stored.packets;
    wait_until(&recording, |now| now.acknowledged.packets >= stored);
    let status = longtake::control::status(array.open().info().uuid).expect("it answers");
    assert!(status["written_through"].as_u64() > Some(0), "{status}");
    assert!(status["under_way"].is_array(), "{status}");
    // In the first chunk, behind its header.
    flip(&array.member(0), (1 << 20) + 4096 + 64);
    let mut opened = array.open();
    let extracted =
        opened.extract(&Selection::default(), |_| ControlFlow::Continue(())).expect("it is read");
    assert_eq!(extracted.read.missing.packets, 0, "{extracted:?}");
    assert!(extracted.read.unreadable.count.packets > 0, "{extracted:?}");
    recording.stop();
    recording.wait().expect("it ends as it was asked to");
}

#[test]
fn checks_and_scrubs_ask_how_a_recorder_does_that_begins_meanwhile() {
    let array = Fixture::recorded(2 << 20, 1);
    let mut opened = array.open();
    let waker = device::Waker::new().expect("the system gives one");
    let control = Control::bind(opened.info().uuid).expect("the directory is ours");
    let (asked, serving) = control.serve(waker).expect("the system gives a thread");
    let (told, heard) = std::sync::mpsc::channel();
    let answering = thread::spawn(move || {
        let mut times = 0;
        while let Ok(Asked { request, answer, .. }) = asked.recv() {
            assert!(matches!(request, Request::Status));
            times += 1;
            told.send(()).expect("the test listens");
            let status = json!({"buffers": 9, "buffers_held": if times % 2 == 1 { 8 } else { 0 }});
            // On a busy machine the answer may come too late; the reader then goes on without asking again.
            answer.send(Ok(Reply::Status(status))).ok();
        }
    });
    // Each stands back until the buffers are free.
    let asked = || heard.recv_timeout(Duration::from_secs(60)).expect("the recorder is asked");
    assert!(opened.check(|_| ()).expect("it can be read").is_sound());
    asked();
    heard.try_iter().for_each(drop);
    assert!(opened.scrub(&ScrubOptions::default(), |_| ()).expect("it can be read").is_sound());
    asked();
    drop(serving);
    answering.join().expect("it answers");
}
