//! Records datagrams for ten seconds, then counts the gaps in the sequence numbers that they begin with
//! (32 bits, big endian): `cargo run --release -p longtake --example udp_gaps -- 127.0.0.1:5000
//! ./stream`.

#![allow(clippy::disallowed_macros, reason = "an example is a program")]

use std::error::Error;
use std::ops::ControlFlow;

use longtake::recording::Update;
use longtake::{Array, Duration, Options, Recording, Selection};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(target)) = (arguments.next(), arguments.next()) else {
        return Err("give an address to listen on and a new directory".into());
    };
    let options = Options { duration: Some(Duration::from_secs(10)), ..Options::default() };
    let recording =
        Recording::builder(&format!("udp:{address}"), &target).options(options).start()?;
    for update in recording.updates() {
        if let Update::Remark(remark) = update {
            println!("{remark}");
        }
    }
    let ledger = recording.wait()?.ledger;
    println!("{} datagrams offered, {} stored", ledger.offered.packets, ledger.stored.packets);

    let (mut expected, mut gaps, mut missing) = (None, 0, 0);
    let last = Selection { take: Some("last".to_owned()), ..Selection::default() };
    Array::open(&target)?.extract(&last, |packet| {
        if let Some(&number) = packet.payload().first_chunk::<4>() {
            let number = u32::from_be_bytes(number);
            let skipped = number.wrapping_sub(expected.unwrap_or(number));
            gaps += u64::from(skipped > 0);
            missing += u64::from(skipped);
            expected = Some(number.wrapping_add(1));
        }
        ControlFlow::Continue(())
    })?;
    println!("{gaps} gaps, {missing} datagrams missing");
    Ok(())
}
