//! An array that is used while somebody records on it.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use longtake::array::{ScrubOptions, Selection, TakeState};

use crate::harness::Fixture;

#[test]
fn an_array_is_listed_read_and_protected_while_it_is_recorded_on() {
    let (array, recording) = Fixture::recording();
    while recording.snapshot().acknowledged.packets == 0 {
        assert!(!recording.is_over(), "nothing ends it");
        thread::sleep(Duration::from_millis(10));
    }
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
