//! What 4 KiB random reads cost in processor time, beside fio with io_uring and the same settings on
//! the same target, in turn. Reads only.
//!
//! `cargo run --release -p longtake-device --example random_reads -- TARGET [--poll] [--without-fio]`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;

use base::random::Random;
use base::{Bank, BufferId, Command, DriveId, Duration, Operation};
use longtake_device::target::{self, Access};
use longtake_device::{Options, Pages, Pool, UringBank};

const BLOCK_BYTES: u32 = 4096;
const DEPTH: u32 = 32;
const ROUNDS: usize = 5;
const ROUND_SECONDS: u64 = 4;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let target = arguments.iter().find(|argument| !argument.starts_with("--"));
    let target =
        PathBuf::from(target.ok_or("name a block device, an NVMe generic device or a file")?);
    let mut out = io::stdout();
    for round in 1..=ROUNDS {
        let ours = ours(&target, has("--poll"))?;
        write!(out, "round {round}: {ours}")?;
        if !has("--without-fio") {
            let fio = fio(&target, has("--poll"))?;
            write!(out, "; fio {fio}; reads a CPU second {:.2} x", fio.cpu_ns() / ours.cpu_ns())?;
        }
        writeln!(out)?;
    }
    Ok(())
}

struct Cost {
    reads: u64,
    elapsed_s: f64,
    user_s: f64,
    system_s: f64,
}

impl Cost {
    /// Nanoseconds of processor time a read.
    fn cpu_ns(&self) -> f64 {
        (self.user_s + self.system_s) * 1e9 / self.reads as f64
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.0} reads/s, {:.0} ns of CPU a read (user {:.0}, system {:.0})",
            self.reads as f64 / self.elapsed_s,
            self.cpu_ns(),
            self.user_s * 1e9 / self.reads as f64,
            self.system_s * 1e9 / self.reads as f64
        )
    }
}

fn ours(target: &Path, poll: bool) -> Outcome<Cost> {
    let (target, _) = target::open(target, Access::Read)?;
    let (pool, _) = Pool::new(DEPTH, BLOCK_BYTES as usize, Pages::Transparent)?;
    let options = Options { depth_max: DEPTH, poll, ..Options::default() };
    let (mut bank, _) = UringBank::open(vec![target], Arc::clone(&pool), options)?;
    let blocks = bank.drives()[0].capacity_bytes / u64::from(BLOCK_BYTES);
    let mut random = Random::new(1);
    let mut done = Vec::new();
    let mut free: Vec<BufferId> = pool.buffer_ids().collect();
    let mut reads = 0;
    let (user, system) = cpu_seconds();
    let start = bank.now();
    let end = start + Duration::from_secs(ROUND_SECONDS);
    while bank.now() < end {
        for buffer in free.drain(..) {
            let offset = random.below(blocks) * u64::from(BLOCK_BYTES);
            let operation = Operation::Read { offset, length: BLOCK_BYTES, buffer };
            let command = Command { drive: DriveId(0), operation, tag: u64::from(buffer.0) };
            bank.submit(command).map_err(|_| "the bank is full")?;
        }
        bank.wait(None, &mut done)?;
        for completion in done.drain(..) {
            completion.outcome?;
            reads += 1;
            free.push(BufferId(completion.tag as u32));
        }
    }
    let elapsed_s = bank.now().since(start).as_secs_f64();
    let (user_after, system_after) = cpu_seconds();
    Ok(Cost { reads, elapsed_s, user_s: user_after - user, system_s: system_after - system })
}

/// User and system time of this thread in seconds.
fn cpu_seconds() -> (f64, f64) {
    // SAFETY: all-zero bytes are a valid rusage, which the call fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to an rusage of our own; this thread always exists.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}

fn fio(target: &Path, poll: bool) -> Outcome<Cost> {
    let generic = target.to_string_lossy().starts_with("/dev/ng");
    let mut process = Process::new("fio");
    process.args(["--name=reads", "--rw=randread", "--output-format=json", "--time_based"]);
    process.arg(format!("--iodepth={DEPTH}")).arg(format!("--bs={BLOCK_BYTES}"));
    process.arg(format!("--runtime={ROUND_SECONDS}"));
    process.arg(format!("--filename={}", target.display()));
    if generic {
        process.args(["--ioengine=io_uring_cmd", "--cmd_type=nvme"]);
    } else {
        process.args(["--ioengine=io_uring", "--direct=1"]);
    }
    // Options of the engine, which must come after it.
    process.args(["--fixedbufs", "--registerfiles", "--norandommap", "--thread"]);
    if poll {
        process.arg("--hipri");
    }
    let output = process.output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let job = &report["jobs"][0];
    let number = |value: &serde_json::Value| value.as_f64().ok_or("fio's report has changed");
    let elapsed_s = number(&job["read"]["runtime"])? / 1e3;
    Ok(Cost {
        reads: number(&job["read"]["total_ios"])? as u64,
        elapsed_s,
        user_s: number(&job["usr_cpu"])? / 100.0 * elapsed_s,
        system_s: number(&job["sys_cpu"])? / 100.0 * elapsed_s,
    })
}
