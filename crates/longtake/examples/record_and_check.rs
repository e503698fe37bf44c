//! Records synthetic packets onto files for two seconds, extracts them into memory and checks every
//! byte of each: `cargo run --release -p longtake --example record_and_check -- /tmp/example`.

#![allow(clippy::disallowed_macros, reason = "an example is a program")]

use std::error::Error;
use std::ops::ControlFlow;

use longtake::synthetic::Checker;
use longtake::{Array, Duration, Options, Recording, Selection, synthetic};

fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args().nth(1).ok_or("give a new directory: ./example")?;
    let options = Options { duration: Some(Duration::from_secs(2)), ..Options::default() };
    let account = Recording::builder("synthetic:1GB/s", &target).options(options).run(&mut ())?;

    let mut checker = Checker::new(&synthetic::Options::default());
    Array::open(&target)?.extract(&Selection::default(), |packet| {
        checker.check(packet.data, packet.original_length).ok();
        ControlFlow::Continue(())
    })?;
    let (recorded, wrong) = (account.ledger.stored.packets, checker.wrong());
    println!("{recorded} packets recorded, {} came back, {wrong} of them wrong", checker.packets());
    if checker.packets() != recorded || wrong > 0 { Err("not all is there".into()) } else { Ok(()) }
}
