//! `longtake replay`: recorded packets back onto a wire.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use longtake::array::Replayed;
use longtake::{json, text};
use source::pace::Pace;
use source::transmit::{InterfaceSender, InterfaceSenderOptions, Sender, UdpSender};

use crate::arguments::ReplayArguments;
use crate::extract::selection;
use crate::{exit, opening, printer};

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
    let mut array = opening::open_to_read(&arguments.array)?;
    let replayed = array.replay(&selection(&arguments.selection)?, sender, pace, &stop)?;
    if arguments.selection.explain {
        printer::tell_all(text::index_use(&replayed.read.index));
    }
    printer::tell_all(text::unread(&replayed.read));
    if arguments.array.json {
        printer::json(&json::replayed(&replayed))?;
    } else {
        print(&replayed)?;
    }
    Ok(exit::lossless(replayed.is_complete()))
}

fn print(replayed: &Replayed) -> Result<()> {
    let sent = &replayed.sent;
    printer::text(&format!(
        "{}, {} sent in {}; late by {} at most, {} on average",
        printer::counted(sent.packets, "packet"),
        printer::counted(sent.bytes, "byte"),
        sent.elapsed,
        sent.late_max,
        sent.late_mean()
    ))?;
    for (count, why) in [
        (sent.oversize, "were longer than the interface takes: raise its MTU"),
        (
            sent.truncated,
            "were not sent, because they were recorded truncated (by --snap, by --slice, or to fit a chunk)",
        ),
        (sent.not_udp, "are not UDP datagrams"),
        (sent.other_link_type, "have a link type that the target does not accept"),
        (sent.unsent, "were not sent before the command was stopped"),
    ] {
        if count > 0 {
            printer::text(&format!("{} packets {why}", printer::number(count)))?;
        }
    }
    Ok(())
}
