//! Jobs over all cores: threads that share nothing but the number of the next job, and one that keeps results.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::Result;
use crossbeam_channel::unbounded;
use format::crc::crc32c;
use plan::sweep::{Job, Sweep};
use profile::Profile;

use super::arguments::SweepArguments;
use super::results::{Finished, Results};
use crate::profiles;
use crate::progress;
use crate::signals::stop_or_go_on;
use lab::Go;

/// Runs the jobs that are left, and keeps what comes of each; returns how many were run. A signal ends it after what is under way
/// was broken off.
///
/// # Errors
/// If a result can't be written.
pub fn run(
    sweep: &Sweep,
    left: &[u64],
    arguments: &SweepArguments,
    results: &mut Results,
) -> Result<usize> {
    let stopped = stop_or_go_on()?;
    let stop = || matches!(stopped(), Go::Stop);
    let threads = threads(arguments).min(left.len());
    let bar = progress::jobs_bar(left.len() as u64, !arguments.quiet && !arguments.json);
    let next = AtomicUsize::new(0);
    let (sender, finished) = unbounded();
    let mut count = 0;
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                while let Some(&index) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let finished = job(&sweep.job(index), stop);
                    // What was broken off is no result; nobody listens any more if results can't be kept.
                    if stop() || sender.send(finished).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for finished in finished {
            if let Some(error) = &finished.error {
                progress::print_above(&bar, &format!("failed: {error}"));
            }
            results.keep(finished)?;
            count += 1;
            bar.inc(1);
        }
        Ok::<(), anyhow::Error>(())
    })?;
    bar.finish_and_clear();
    Ok(count)
}

/// As many as asked for, or as there are processors.
pub fn threads(arguments: &SweepArguments) -> usize {
    let there = || thread::available_parallelism().map_or(1, usize::from);
    arguments.jobs.map_or_else(there, usize::from)
}

/// What tells the drive of a job from another one of the same name: CRC32C of its profile as TOML. None if it can't be had.
pub fn drive_checksum(job: &Job) -> Option<u32> {
    let toml = drive(job).ok()?.to_toml().ok()?;
    Some(crc32c(toml.as_bytes()))
}

fn drive(job: &Job) -> Result<Profile> {
    Ok(profiles::known().find(job.drive()?.trim_start_matches("sim:"))?)
}

/// Runs one job, whatever comes of it.
pub fn job(job: &Job, stop: &(impl Fn() -> bool + ?Sized)) -> Finished {
    let began = Instant::now();
    let watch = |_| if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let computed = || -> Result<_> { Ok(job.run(&drive(job)?, watch)?) };
    // A fault of ours in one design is no reason to lose the others.
    let outcome = catch_unwind(AssertUnwindSafe(computed)).unwrap_or_else(|_| {
        Err(anyhow::anyhow!(
            "a fault of Longtake (its message stands above); please report it with the job"
        ))
    });
    let (figures, error) = match outcome {
        Ok(figures) => (figures, None),
        Err(error) => (Default::default(), Some(format!("{error:#}"))),
    };
    Finished {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        job: job.clone(),
        drive: drive_checksum(job),
        figures,
        error,
        took_s: began.elapsed().as_secs_f64(),
    }
}
