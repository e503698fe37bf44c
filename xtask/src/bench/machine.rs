//! What a benchmark ran on.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Name and value, in the order in which they are shown.
pub fn describe(directory: &Path) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    vec![
        ("processor", field("/proc/cpuinfo", "model name").unwrap_or_default()),
        ("cores", cores.to_string()),
        ("caches", caches()),
        ("memory", memory),
        (
            "kernel",
            fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        ),
        ("file system", file_system(directory)),
        (
            "load before",
            load.split(' ').next().map(|l| format!("{l} (1 minute)")).unwrap_or_default(),
        ),
        (
            "tools",
            [
                ("fio", "--version"),
                ("editcap", "--version"),
                ("tcpdump", "--version"),
                ("rustc", "--version"),
            ]
            .map(|(tool, flag)| version(tool, flag))
            .join("; "),
        ),
    ]
}

/// The first line's value after `name:` in a file of /proc.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn caches() -> String {
    let mut found = Vec::new();
    for index in 0..8 {
        let directory = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let read = |name: &str| fs::read_to_string(format!("{directory}/{name}")).ok();
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
        else {
            break;
        };
        if kind.trim() != "Instruction" {
            found.push(format!("L{} {}", level.trim(), size.trim()));
        }
    }
    found.join(", ")
}

/// The mount that a directory lies on: type, source and options.
fn file_system(directory: &Path) -> String {
    let path = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (source, point, kind) = (words.next()?, words.next()?, words.next()?);
            path.starts_with(point).then(|| (point.len(), format!("{kind} on {source}")))
        })
        .max_by_key(|(length, _)| *length)
        .map_or_else(|| "unknown".to_owned(), |(_, text)| text)
}

/// A tool's version line, or that it is missing.
fn version(tool: &str, flag: &str) -> String {
    let Ok(output) = Command::new(tool).arg(flag).output() else {
        return format!("no {tool}");
    };
    // tcpdump prints its version to standard error.
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or(tool).trim_end_matches('.').to_owned()
}

/// Runs something bound to the processor that it starts on.
///
/// # Errors
/// Its own, or that the kernel refuses.
pub fn pinned<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let this_thread = Pid::from_raw(0);
    let before = sched_getaffinity(this_thread).context("asking for this thread's processors")?;
    let mut one = CpuSet::new();
    let here = sched_getcpu().context("asking for this thread's processor")?;
    one.set(here).context("naming a processor")?;
    sched_setaffinity(this_thread, &one).context("binding this thread to a processor")?;
    let outcome = run();
    sched_setaffinity(this_thread, &before).context("freeing this thread again")?;
    outcome
}

/// A stopwatch of this thread's processor time: what else runs on the same processor adds nothing.
#[derive(Debug)]
pub struct ProcessorTime {
    started: std::time::Duration,
}

impl ProcessorTime {
    /// Starts at zero.
    pub fn start() -> Self {
        Self { started: Self::now() }
    }

    /// Seconds of processor time since the start.
    pub fn seconds(&self) -> f64 {
        (Self::now() - self.started).as_secs_f64()
    }

    fn now() -> std::time::Duration {
        let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
        now.expect("every Linux has a clock for each thread").into()
    }
}
