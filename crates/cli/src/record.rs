//! `longtake record`: from arguments to a recording, and from its account to what is printed.

pub mod described;
mod status;
mod teller;

use std::process::ExitCode;

use anyhow::Result;
use longtake::Recording;
use longtake::recording::{Account, Builder, NewArray, Options, Privileges};

use crate::arguments::{RecordArguments, WhenFull};
use crate::exit;
use crate::preparation::stop_on_signals;
use crate::profiles;
use status::Status;

/// Records until the source ends, a limit is reached, or a signal comes.
///
/// # Errors
/// If anything can't be opened, or the bank fails as a whole.
pub fn record(arguments: &RecordArguments) -> Result<ExitCode> {
    let recording = builder(arguments);
    if arguments.virtual_time {
        return described::record(arguments, recording);
    }
    let mut status = Status::new(arguments);
    let account = recording.stop_flag(stop_on_signals()?).run(&mut status)?;
    status.finished(&account);
    Ok(code(&account))
}

fn code(account: &Account) -> ExitCode {
    if !account.errors.is_empty() && account.read_back.is_none_or(|read| read.damaged == 0) {
        ExitCode::from(exit::FAILED)
    } else if account.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::LOSS)
    }
}

fn builder(arguments: &RecordArguments) -> Builder {
    let privileges = if arguments.keep_privileges {
        Privileges::Keep
    } else {
        Privileges::GiveUp { user: arguments.user.clone() }
    };
    let options = Options {
        duration: arguments.duration,
        until_bytes: arguments.until_bytes,
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
        kernel_buffer: arguments.kernel_buffer,
        memory: arguments.memory,
        depth: arguments.depth,
        flush_interval: arguments.flush_interval,
        drift_max: arguments.drift,
        trim_ahead: arguments.trim_ahead,
        trim_rate: arguments.trim_rate,
        rest: arguments.rest,
        rest_turn: arguments.rest_turn,
        processors: arguments.cpus.clone(),
        uplink: arguments.uplink,
        privileges,
    };
    Recording::builder(&arguments.from, &arguments.to)
        .options(options)
        .profiles(profiles::known().clone())
}
