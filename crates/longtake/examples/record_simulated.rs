//! Records onto four simulated drives in virtual time, and checks every byte of every packet: `cargo
//! run --release -p longtake --example record_simulated`.

#![allow(clippy::disallowed_macros, reason = "an example is a program")]

use std::error::Error;
use std::ops::ControlFlow;

use longtake::synthetic::Checker;
use longtake::{Duration, Options, Recording, Selection, synthetic};

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options { duration: Some(Duration::from_secs(2)), ..Options::default() };
    let recording = Recording::builder("synthetic:1GB/s", "sim:ideal*4").options(options);
    let mut account = recording.run(&mut ())?;

    let mut array = account.array.take().ok_or("simulated drives leave their array")?;
    let mut checker = Checker::new(&synthetic::Options::default());
    array.extract(&Selection::default(), |packet| {
        checker.check(packet.data, packet.original_length).ok();
        ControlFlow::Continue(())
    })?;
    let (recorded, wrong) = (account.ledger.stored.packets, checker.wrong());
    println!("{recorded} packets recorded, {} came back, {wrong} of them wrong", checker.packets());
    if checker.packets() != recorded || wrong > 0 { Err("not all is there".into()) } else { Ok(()) }
}
