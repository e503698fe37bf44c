//! `longtake record`: from arguments to a recording, and from its account to what is printed.

pub mod config;
mod described;
mod reporter;
mod status;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use longtake::recording::{self, Builder, FileOptions, NewArray, Options, Privileges};
use longtake::{Array, Recording};
use serde_json::json;

use crate::arguments::{RecordArguments, Sets, WhenFull};
use crate::signals::stop_on_signals;
use crate::{exit, printer, profiles};
use status::Status;

/// Records until the source ends, a limit is reached, or a signal comes.
///
/// # Errors
/// If anything can't be opened, or the bank fails as a whole.
pub fn record(arguments: &RecordArguments) -> Result<ExitCode> {
    let recording = builder(arguments)?;
    if arguments.virtual_time {
        return described::record(arguments, recording);
    }
    let stop = stop_on_signals()?;
    let mut status = Status::new(arguments, Arc::clone(&stop));
    let mut account = recording.stop_flag(stop).run(&mut status)?;
    status.finished(&account);
    let sound = match account.array.take() {
        Some(array) => read_back(array, arguments.json)?,
        None => true,
    };
    Ok(ExitCode::from(match (sound, account.errors.is_empty(), account.is_complete()) {
        (true, false, _) => exit::FAILED,
        (true, true, true) => 0,
        _ => exit::LOSS,
    }))
}

/// Reads everything back from simulated drives, which are gone afterwards. Returns whether all of it is sound.
fn read_back(mut array: Array, json: bool) -> Result<bool> {
    let read = array.check(|_| ())?;
    let (chunks, damaged) = (read.chunks, read.damaged.len() as u64);
    // Nobody listening any more does not make the recording a failure.
    if json {
        let line = json!({"event": "read_back", "chunks": chunks, "damaged": damaged});
        printer::json_line(&line).ok();
    } else {
        let (chunks, damaged) = (printer::counted(chunks, "chunk"), printer::number(damaged));
        printer::text(&format!(
            "read back: {chunks}, {damaged} damaged\nthe drives were simulated: the recording is discarded when this command ends"
        ))
        .ok();
    }
    Ok(damaged == 0)
}

fn builder(arguments: &RecordArguments) -> Result<Builder> {
    let privileges = if arguments.keep_privileges {
        Privileges::Keep
    } else {
        Privileges::GiveUp { user: arguments.user.clone() }
    };
    let options = Options {
        duration: arguments.duration,
        until_bytes: arguments.until_bytes,
        strict: arguments.strict,
        when_full: match arguments.when_full {
            WhenFull::Stop => recorder::WhenFull::Stop,
            WhenFull::Wrap => recorder::WhenFull::Wrap,
        },
        placement: arguments.placement,
        new: NewArray {
            members: arguments.members,
            member_size: arguments.member_size,
            mode: arguments.mode.0,
            segment: arguments.segment,
            chunk: arguments.chunk,
            parity: arguments.parity,
        },
        filter: arguments.filter.clone(),
        snap_bytes: arguments.snap,
        slice: arguments.slice,
        cut: arguments.cut,
        kernel_buffer: arguments.kernel_buffer,
        memory: arguments.memory,
        depth: arguments.depth,
        flush_interval: arguments.flush_interval,
        drift_max: arguments.drift,
        trim_ahead: arguments.trim_ahead,
        trim_rate: arguments.trim_rate,
        rest: arguments.rest,
        sets: match arguments.sets {
            None | Some(Sets::Shared) => recording::Sets::Shared,
            Some(Sets::Separate) => recording::Sets::Separate,
        },
        rest_turn: arguments.rest_turn,
        processors: arguments.cpus.clone(),
        index: arguments.index,
        uplink: arguments.uplink,
        metrics: arguments.metrics.clone(),
        privileges,
    };
    let to = arguments.to.as_deref().unwrap_or_default();
    let builder = Recording::builder(&arguments.from, to).options(options);
    Ok(match &arguments.write {
        Some(path) => builder.files(FileOptions {
            path: path.clone(),
            rotation: arguments.rotate,
            keep: arguments.files,
            overwrite: arguments.overwrite,
        }),
        None => {
            builder.profiles(profiles::known().clone().placed_for(arguments.place.place(), &[to])?)
        }
    })
}
