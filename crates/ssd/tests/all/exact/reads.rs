//! The way of a read through a drive, on queues: controller, firmware, then for each row of flash that it touches die, channel and
//! link; done when the last byte is through.

use base::{Duration, Latencies};
use longtake_ssd::Spec;

use crate::exact::queues::{Picoseconds, Queues, Stop};

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    pub commands_per_s: f64,
    pub latencies: Latencies,
}

/// A part of a command: what lies in one row of a die, which is a page of each plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    die: u32,
    bytes: u64,
}

/// The parts of a range on a drive that was written in order: row after row, each on the next die.
fn parts(spec: &Spec, offset: u64, bytes: u64) -> Vec<Part> {
    let row_bytes = u64::from(spec.flash.planes * spec.flash.page_bytes);
    let (first, last) = (offset / row_bytes, (offset + bytes - 1) / row_bytes);
    let part = |row: u64| Part {
        die: (row % u64::from(spec.flash.dies())) as u32,
        bytes: ((row + 1) * row_bytes).min(offset + bytes) - (row * row_bytes).max(offset),
    };
    (first..=last).map(part).collect()
}

fn picoseconds(seconds: f64) -> Picoseconds {
    (seconds * 1e12).round() as Picoseconds
}

/// A command under way.
#[derive(Clone, Debug, Default)]
struct Command {
    begun: Picoseconds,
    parts: Vec<Part>,
    left: usize,
}

/// Reads of `bytes` each in a closed loop: `depth` are always under way. `next` says where the next one begins.
pub fn closed_loop(
    spec: &Spec,
    depth: usize,
    bytes: u32,
    commands: u64,
    mut next: impl FnMut() -> u64,
) -> Outcome {
    let (channels, dies) = (spec.flash.channels as usize, spec.flash.dies() as usize);
    let (controller, link, channel_of, die_of) = (0, 1, 2, 2 + channels);
    let mut queues = Queues::new(2 + channels + dies);
    let mut under_way = vec![Command::default(); depth];
    let mut latencies = Latencies::default();
    let mut begin = |queues: &mut Queues, slot: &mut Command, name: usize| {
        let parts = parts(spec, next(), u64::from(bytes));
        *slot = Command { begun: queues.now(), left: 0, parts };
        queues.send(
            name,
            [
                Stop {
                    server: Some(controller),
                    takes: picoseconds(1.0 / spec.controller.read_iops),
                },
                Stop { server: None, takes: picoseconds(spec.controller.read_us * 1e-6) },
            ],
        );
    };
    for (name, slot) in under_way.iter_mut().enumerate() {
        begin(&mut queues, slot, name);
    }
    while latencies.count() < commands {
        let name = queues.next().expect("a closed loop never runs dry");
        let command = &mut under_way[name];
        if command.left == 0 {
            command.left = command.parts.len();
            for part in &command.parts {
                let over = |bytes_per_s: f64| picoseconds(part.bytes as f64 / bytes_per_s);
                let (die, channel) = (part.die as usize, (part.die % spec.flash.channels) as usize);
                queues.send(
                    name,
                    [
                        Stop {
                            server: Some(die_of + die),
                            takes: picoseconds(spec.flash.read_us * 1e-6),
                        },
                        Stop {
                            server: Some(channel_of + channel),
                            takes: over(spec.flash.channel_mb_s * 1e6),
                        },
                        Stop { server: Some(link), takes: over(spec.link.bytes_per_s()) },
                    ],
                );
            }
            continue;
        }
        command.left -= 1;
        if command.left == 0 {
            latencies.record(Duration::from_nanos((queues.now() - command.begun) / 1000));
            begin(&mut queues, command, name);
        }
    }
    Outcome { commands_per_s: commands as f64 / (queues.now() as f64 * 1e-12), latencies }
}
