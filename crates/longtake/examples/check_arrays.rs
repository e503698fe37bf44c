//! Verifies every checksum of some arrays, one after the other, and lists what is damaged or missing:
//! `cargo run -p longtake --example check_arrays -- ARRAY...`.

#![allow(clippy::disallowed_macros, reason = "an example is a program")]

use std::error::Error;

use longtake::Array;

fn main() -> Result<(), Box<dyn Error>> {
    for name in std::env::args().skip(1) {
        let options = Array::options().on_remark(|remark| eprintln!("{remark}"));
        let mut array = options.open(&name)?;
        let report = array.check(|_| ())?;
        println!("{name}: {} chunks, {} bytes in {}", report.chunks, report.bytes, report.elapsed);
        for chunk in &report.damaged {
            println!("  damaged: {} at byte {}: {}", chunk.target, chunk.offset, chunk.reason);
        }
        for take in array.takes()?.iter().filter(|take| !take.gaps.is_empty()) {
            println!("  take {}: {} packets are missing", take.id.uuid, take.missing().packets);
        }
        println!("  {}", if report.is_sound() { "sound" } else { "NOT SOUND" });
    }
    Ok(())
}
