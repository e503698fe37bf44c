//! How fast made-up packets are made, into a sink that only looks: what a benchmark that is fed by them
//! can't exceed.

use std::hint::black_box;

use anyhow::Result;
use base::Timestamp;
use format::{Interface, Packet};
use source::generator::Generator;
use source::synthetic::{Options, Sizes, Synthetic};
use source::{Ended, Loss, Sink};

use super::Setting;
use super::comparison::{Comparison, Unit};
use super::machine::{self, ProcessorTime};
use super::rounds::alone;

/// Bytes of packets in a round.
const ROUND_BYTES: u64 = 4 << 30;

/// Runs it.
///
/// # Errors
/// If the source does not start.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let mut found = Vec::new();
    for (name, sizes) in
        [("1500 B", Sizes::Fixed(1500)), ("64 B", Sizes::Fixed(64)), ("IMIX", Sizes::Imix)]
    {
        let options = Options { sizes, ..Options::default() };
        let mean = (0..12).map(|n| f64::from(sizes.of(n))).sum::<f64>() / 12.0;
        // Small packets take longer for the same bytes.
        let packets = ROUND_BYTES / if mean < 1000.0 { 512 } else { 1500 };
        let rate = machine::pinned(|| {
            alone(setting.rounds, || {
                let mut sink = Looking { left: packets, bytes: 0 };
                let start = ProcessorTime::start();
                for source in Synthetic::open(&options)? {
                    source.run(&mut sink);
                }
                Ok(packets as f64 / start.seconds())
            })
        })?;
        found.push(Comparison {
            benchmark: "generate",
            what: format!("synthetic packets of {name} into a sink that looks at each, one core"),
            reference: None,
            ours: rate.clone(),
            unit: Unit::PacketsPerS,
            goal: None,
        });
        found.push(Comparison {
            benchmark: "generate",
            what: format!("the same packets of {name} in bytes"),
            reference: None,
            ours: rate.times(mean),
            unit: Unit::BytesPerS,
            goal: None,
        });
    }
    Ok(found)
}

/// Takes so many packets.
struct Looking {
    left: u64,
    bytes: u64,
}

impl Sink for Looking {
    fn interface(&mut self, _: &Interface) -> u32 {
        0
    }
    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        self.bytes += u64::from(*black_box(packet.data.last()).unwrap_or(&0));
        self.left = self.left.checked_sub(1).ok_or(Ended)?;
        Ok(())
    }
    fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}
    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}
