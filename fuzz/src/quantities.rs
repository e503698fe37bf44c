//! Any text as the words of command lines and files: sizes, rates, times, sources. What is one can be used as one: it is
//! finite, prints, and what prints exactly reads back as the same.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use base::{ByteSize, Duration, Rate};
use load::quantity::{Pace, Size, Time};
use load::workload::{Arrival, Blocks, Content, Pattern, Priority};
use source::spec::SourceSpec;

/// Reads it.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(rate) = read::<Rate>(text) {
        assert!(rate.0.is_finite() && rate.0 >= 0.0, "{text:?} is a rate of {}", rate.0);
        rate.time_for(1 << 30);
    }
    read::<ByteSize>(text);
    read::<Duration>(text);
    back::<Size>(text);
    back::<Time>(text);
    if let Some(Pace::Bytes(pace) | Pace::Commands(pace)) = back::<Pace>(text) {
        assert!(pace.is_finite() && pace > 0.0, "{text:?} is a pace of {pace}");
    }
    back::<Blocks>(text);
    back::<Pattern>(text);
    back::<Arrival>(text);
    back::<Content>(text);
    back::<Priority>(text);
    // Other forms look for files and interfaces of that name, which is the machine's business.
    if ["synthetic:", "udp:", "tcp:", "tcp-listen:", "pipe:", "-"]
        .iter()
        .any(|form| text.starts_with(form))
    {
        match text.parse::<SourceSpec>() {
            Ok(SourceSpec::Synthetic(options)) => {
                options.check().expect("a source that parses is one");
                assert_eq!(
                    format!("synthetic:{options}").parse(),
                    Ok(SourceSpec::Synthetic(options))
                );
            }
            Ok(source) => assert!(source.queues() > 0),
            Err(error) => assert!(error.to_string().contains("not a source")),
        }
    }
}

fn read<T: FromStr<Err: Display> + Display>(text: &str) -> Option<T> {
    match text.parse::<T>() {
        Ok(value) => {
            assert!(!value.to_string().is_empty());
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// One that prints exactly.
fn back<T: FromStr<Err: Display> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let value = read::<T>(text)?;
    let printed = value.to_string();
    let again = read::<T>(&printed);
    assert_eq!(again.as_ref(), Some(&value), "{text:?} prints as {printed:?}");
    Some(value)
}
