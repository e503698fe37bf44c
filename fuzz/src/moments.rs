//! Any text as a point in time: what is one prints, and reads back as the same.

use base::Timestamp;

use longtake::instant::{When, utc};

/// Reads it.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<When>() {
        Ok(when) => {
            let at = when.at(Timestamp::from_nanos(1_763_700_000_000_000_000));
            assert_eq!(utc(at).parse(), Ok(When::At(at)), "{text:?} is {}", utc(at));
        }
        Err(error) => assert!(error.contains("2026")),
    }
}
