//! Which packets of a synthetic source a capture on standard input holds, every byte of each checked: what a
//! guest says of what it got back, in ranges of sequence numbers.

use std::path::Path;

use anyhow::{Result, bail};
use base::Timestamp;
use format::{Interface, Packet};
use serde_json::{Value, json};
use source::capture_file::CaptureFile;
use source::sink::{Ended, Loss, Sink};
use source::synthetic::{Checker, Options, Sizes};

/// `vm packets`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The length of each packet in bytes.
    #[arg(long)]
    size: u16,
    /// The source's queues.
    #[arg(long, default_value_t = 1)]
    queues: u16,
}

/// Reads the capture to its end and prints JSON.
///
/// # Errors
/// If it is no capture, or cut short.
pub fn run(arguments: &Arguments) -> Result<()> {
    println!("{}", read(CaptureFile::stdin()?, arguments.size, arguments.queues)?);
    Ok(())
}

/// The same of a file: packets of `size` bytes in so many queues.
///
/// # Errors
/// If it is no capture, or cut short.
pub fn held(path: &Path, size: u16, queues: u16) -> Result<Value> {
    read(CaptureFile::open(path)?, size, queues)
}

fn read(file: CaptureFile, size: u16, queues: u16) -> Result<Value> {
    let options = Options { sizes: Sizes::Fixed(size), queues, ..Options::default() };
    let mut held = Held { checker: Checker::new(&options) };
    let summary = file.run(&mut held)?;
    if !summary.complete {
        bail!("the capture was not read to its end");
    }
    Ok(held.told())
}

struct Held {
    checker: Checker,
}

impl Held {
    fn told(&self) -> Value {
        let queues = self.checker.queues().iter().map(|(number, queue)| {
            json!({
                "queue": number,
                "ranges": queue.present.iter().map(|r| [r.start, r.end]).collect::<Vec<_>>(),
                "duplicates": queue.duplicates,
                "in_order": queue.in_order,
            })
        });
        json!({
            "packets": self.checker.packets(),
            "bytes": self.checker.bytes(),
            "wrong": self.checker.wrong(),
            "first_wrong": self.checker.first_wrong().map(ToString::to_string),
            "queues": queues.collect::<Vec<_>>(),
        })
    }
}

impl Sink for Held {
    fn interface(&mut self, _: &Interface) -> u32 {
        0
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        // A wrong one is counted.
        self.checker.check(packet.data, packet.original_length).ok();
        Ok(())
    }

    fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}

    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use source::Generator;
    use source::synthetic::Synthetic;

    use super::*;

    /// Takes so many packets, and hands on all but one of them.
    struct Without {
        held: Held,
        sequence: u64,
        left_out: u64,
        end: u64,
    }

    impl Sink for Without {
        fn interface(&mut self, interface: &Interface) -> u32 {
            self.held.interface(interface)
        }
        fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
            let sequence = self.sequence;
            self.sequence += 1;
            match sequence {
                _ if sequence == self.end => Err(Ended),
                _ if sequence == self.left_out => Ok(()),
                _ => self.held.packet(packet),
            }
        }
        fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}
        fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
            Ok(())
        }
    }

    #[test]
    fn a_packet_that_is_not_there_splits_the_range() {
        let options = Options { sizes: Sizes::Fixed(200), ..Options::default() };
        let held = Held { checker: Checker::new(&options) };
        let mut sink = Without { held, sequence: 0, left_out: 7, end: 20 };
        Synthetic::open(&options).unwrap().remove(0).run(&mut sink);
        let told = sink.held.told();
        assert_eq!(told["packets"], 19);
        assert_eq!(told["wrong"], 0);
        assert_eq!(told["queues"][0]["ranges"], json!([[0, 7], [8, 20]]));
    }
}
