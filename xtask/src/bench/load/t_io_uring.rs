//! fio's `t/io_uring`: the least that a program can spend on an I/O, because it neither measures latencies nor keeps them. It is
//! built from fio's source (`make t/io_uring`) and named by `--t-io-uring`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};

use crate::bench::program;

/// Bytes of a read.
pub const BLOCK_BYTES: u64 = 4096;
/// Reads under way.
pub const DEPTH: u32 = 32;
/// Seconds of a round.
const ROUND_S: u32 = 7;
/// The kernel counts what a process reads in these.
const SECTOR_BYTES: u64 = 512;

/// Reads a second of processor time, of a run of random reads on a file: interrupts, registered buffers and files, and as many
/// commands handed over and taken at once as Longtake has.
///
/// # Errors
/// If it can't be run, or read nothing.
pub fn reads_per_cpu_s(program: &Path, file: &Path) -> Result<f64> {
    let before = used()?;
    let (depth, round) = (DEPTH.to_string(), ROUND_S.to_string());
    let mut command = Command::new(program);
    command.args(["-p0", "-B1", "-F1", "-O1", "-R1", "-n1", "-s4", "-c1", "-b4096"]);
    program::run(command.args(["-d", &depth, "-r", &round]).arg(file))?;
    let after = used()?;
    per_cpu_s(before, after).with_context(|| format!("{} read nothing", program.display()))
}

/// What children have used until now: sectors read, and seconds of processor time.
type Used = (u64, f64);

fn used() -> Result<Used> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("asking what children used")?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let cpu_s = seconds(usage.user_time()) + seconds(usage.system_time());
    Ok((u64::try_from(usage.block_reads())?, cpu_s))
}

fn per_cpu_s(before: Used, after: Used) -> Result<f64> {
    let reads = (after.0 - before.0) * SECTOR_BYTES / BLOCK_BYTES;
    let cpu_s = after.1 - before.1;
    if reads == 0 || cpu_s <= 0.0 {
        bail!("{reads} reads in {cpu_s} s of processor time");
    }
    Ok(reads as f64 / cpu_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_what_the_kernel_counted_in_sectors() {
        assert_eq!(per_cpu_s((80, 1.0), (80 + 8 * 500, 1.5)).unwrap(), 1000.0);
        assert!(per_cpu_s((80, 1.0), (80, 1.5)).is_err(), "nothing was read");
    }
}
