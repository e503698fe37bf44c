//! The way of a read through a drive, on queues: controller, firmware, then for each row of flash that it touches die, channel and
//! link; done when the last byte is through.

use base::{Duration, Latencies};
use ssd::Spec;

use crate::queues::{Picoseconds, Queues, Stop};

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    pub commands_per_s: f64,
    pub latencies: Latencies,
}

/// A part of a command: what lies in one row of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub die: u32,
    pub bytes: u64,
}

pub fn picoseconds(seconds: f64) -> Picoseconds {
    (seconds * 1e12).round() as Picoseconds
}

/// A command under way.
#[derive(Clone, Debug, Default)]
struct Command {
    begun: Picoseconds,
    parts: Vec<Part>,
    left: usize,
}

/// Reads in a closed loop: `depth` are always under way. `next` says which parts the next command has.
pub fn closed_loop(
    spec: &Spec,
    depth: usize,
    commands: u64,
    mut next: impl FnMut() -> Vec<Part>,
) -> Outcome {
    let (channels, dies) = (spec.flash.channels as usize, spec.flash.dies() as usize);
    let (controller, link, channel_of, die_of) = (0, 1, 2, 2 + channels);
    let mut queues = Queues::new(2 + channels + dies);
    let mut under_way = vec![Command::default(); depth];
    let mut latencies = Latencies::default();
    let begin = |queues: &mut Queues, slot: &mut Command, name: usize, parts: Vec<Part>| {
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
        begin(&mut queues, slot, name, next());
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
            begin(&mut queues, command, name, next());
        }
    }
    Outcome { commands_per_s: commands as f64 / (queues.now() as f64 * 1e-12), latencies }
}
