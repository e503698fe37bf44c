//! `longtake replay`: recorded packets back onto a wire.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use base::Timestamp;
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Interface, Packet};
use recorder::extract::{Unreadable, Visitor};
use recorder::takes::Entry;
use serde_json::json;
use source::pace::Pace;
use source::replay::Replay;
use source::transmit::{InterfaceSender, InterfaceSenderOptions, Sender, UdpSender};
use source::{Ended, Sink};

use crate::account::{Recovered, Unread};
use crate::arguments::ReplayArguments;
use crate::exit;
use crate::extract::{Chosen, Filter, span_of};
use crate::opening;
use crate::outlet;

/// Replays packets.
///
/// # Errors
/// If the array can't be opened or nothing can be sent.
pub fn replay(arguments: &ReplayArguments) -> Result<ExitCode> {
    let pace = if arguments.fastest { Pace::Fastest } else { Pace::recorded(arguments.speed)? };
    match (&arguments.interface, arguments.udp) {
        (Some(name), _) => {
            let options =
                InterfaceSenderOptions { name: name.clone(), bypass_qdisc: arguments.fastest };
            run(arguments, InterfaceSender::open(&options)?, pace)
        }
        (None, Some(address)) => run(arguments, UdpSender::connect(address, None)?, pace),
        (None, None) => unreachable!("one of the two is required"),
    }
}

fn run<S: Sender>(arguments: &ReplayArguments, sender: S, pace: Pace) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signal_hook::consts::TERM_SIGNALS {
        signal_hook::flag::register(*signal, Arc::clone(&stop))?;
    }
    let mut opened = opening::open_to_read(&arguments.array.array, arguments.array.degraded)?;
    let range = span_of(&arguments.selection)?;
    let chosen = Chosen::load(&mut opened, &arguments.selection, range)?;
    let mut visitor = SendVisitor {
        replay: Replay::new(sender, pace, &stop),
        filter: Filter::new(&arguments.selection.filter),
        numbers: HashMap::new(),
        unreadable: Unread::default(),
        recovered: Recovered::default(),
    };
    let visited = chosen.visit(&mut opened, &mut visitor);
    let SendVisitor { replay, unreadable, recovered, .. } = visitor;
    let summary = match visited {
        Err(error) if error.downcast_ref::<Stopped>().is_none() => return Err(error),
        // Stopped by a signal, or by an error that the summary names.
        _ => replay.finish()?,
    };
    recovered.report();
    unreadable.report();
    chosen.report_holes();
    if arguments.array.json {
        outlet::json(&json!({
            "packets": summary.packets, "bytes": summary.bytes, "elapsed_s": summary.elapsed.as_secs_f64(),
            "late_max_s": summary.late_max.as_secs_f64(), "late_mean_s": summary.late_mean().as_secs_f64(),
            "oversize": summary.oversize, "truncated": summary.truncated, "not_udp": summary.not_udp,
            "other_link_type": summary.other_link_type, "unsent": summary.unsent,
            "unreadable": outlet::count_json(unreadable.count), "recovered": recovered.json(),
            "overwritten": unreadable.overwritten.json(), "holes": chosen.holes_json(),
        }))?;
    } else {
        outlet::text(&format!(
            "{} packets, {} bytes sent in {}; late by {} at most, {} on average",
            outlet::number(summary.packets),
            outlet::number(summary.bytes),
            summary.elapsed,
            summary.late_max,
            summary.late_mean()
        ))?;
        for (count, why) in [
            (summary.oversize, "were longer than the interface takes: raise its MTU"),
            (
                summary.truncated,
                "were not sent, because they were recorded truncated (by the snap length, or to fit a chunk)",
            ),
            (summary.not_udp, "are no UDP datagrams"),
            (summary.other_link_type, "have a link type that does not suit where they were to go"),
            (summary.unsent, "were not sent any more"),
        ] {
            if count > 0 {
                outlet::text(&format!("{} packets {why}", outlet::number(count)))?;
            }
        }
    }
    let skipped = summary.oversize + summary.truncated + summary.not_udp + summary.other_link_type;
    let sent = skipped + summary.unsent == 0;
    let read = unreadable.is_empty() && !chosen.is_cut_by_the_ring() && opened.overwritten == 0;
    let whole = sent && read;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) })
}

/// The replay wants no more packets.
#[derive(Debug)]
struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Stopped {}

struct SendVisitor<'s, S> {
    replay: Replay<'s, S>,
    filter: Filter,
    numbers: HashMap<Interface, u32>,
    unreadable: Unread,
    recovered: Recovered,
}

impl<S: Sender> Visitor for SendVisitor<'_, S> {
    type Error = anyhow::Error;

    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        _block: &Block<'_>,
    ) -> Result<()> {
        if !self.filter.accepts(interface, packet)? {
            return Ok(());
        }
        let number = match self.numbers.get(interface) {
            Some(&number) => number,
            None => {
                let number = self.replay.interface(interface);
                self.numbers.insert(interface.clone(), number);
                number
            }
        };
        let packet = Packet {
            interface: number,
            timestamp: Timestamp::from_nanos(packet.time),
            original_length: packet.original_length,
            data: packet.data,
            options: &[],
        };
        self.replay.packet(&packet).map_err(|Ended| Stopped.into())
    }

    fn blocks(&mut self, _: &[Interface], _: &[u8], _: &ChunkRecord) -> Result<bool> {
        Ok(false)
    }

    fn recovered(&mut self, entry: &Entry, _why: &Unreadable) -> Result<()> {
        self.recovered.enter(entry);
        Ok(())
    }

    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<()> {
        self.unreadable.enter(entry, why);
        Ok(())
    }

    fn progress(&mut self, _done: u64, _of: u64) -> Result<()> {
        Ok(())
    }
}
