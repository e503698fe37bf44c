//! Extracts one minute of an array into memory, and counts the packets of each interface: `cargo run -p
//! longtake --example extract_minute -- ARRAY 2026-11-21T10:00:00Z`.

#![allow(clippy::disallowed_macros, reason = "an example is a program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::ControlFlow;

use longtake::instant::When;
use longtake::{Array, Duration, Selection, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(since)) = (arguments.next(), arguments.next()) else {
        return Err("give an array and a time".into());
    };
    let since = since.parse::<When>()?.at(longtake::instant::now());
    let until = since + Duration::from_secs(60);
    let minute = Selection { since: Some(since), until: Some(until), ..Selection::default() };

    let mut packets: Vec<(Timestamp, Vec<u8>)> = Vec::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let extracted = Array::open(&name)?.extract(&minute, |packet| {
        packets.push((packet.timestamp, packet.data.to_vec()));
        *counts.entry(packet.interface.name.clone()).or_default() += 1;
        ControlFlow::Continue(())
    })?;

    for (interface, count) in counts {
        println!("{interface}: {count} packets");
    }
    println!("{} packets and {} bytes in memory", packets.len(), extracted.bytes);
    if !extracted.is_complete() {
        println!("not all of the minute could be read: {:?}", extracted.read);
    }
    Ok(())
}
