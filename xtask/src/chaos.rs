//! `cargo xtask chaos`: the recorder against hostile drives, seed after seed; and one seed step by step.

use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chaos::shrink::shrunk;
use chaos::{Case, Met, Outcome, judged};

/// Seeds that a thread takes at a time.
const BLOCK: u64 = 64;
/// Violations that are printed.
const SHOWN_MAX: usize = 20;

/// `chaos`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which seeds: FIRST..END, END not included.
    #[arg(long, value_name = "RANGE", default_value = "0..100000", value_parser = range)]
    seeds: Range<u64>,
    /// Threads; as many as there are processors unless given.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// One seed alone.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Print every command and answer of that seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Leave out of that seed what it does not take to break the law.
    #[arg(long, requires = "seed")]
    shrink: bool,
    /// Print the result as JSON.
    #[arg(long, conflicts_with = "trace")]
    json: bool,
}

fn range(text: &str) -> Result<Range<u64>> {
    let wanted = || format!("'{text}' is no range of seeds: give FIRST..END, as in 0..1000000");
    let (first, end) = text.split_once("..").with_context(wanted)?;
    let number = |text: &str| text.replace('_', "").parse::<u64>().with_context(wanted);
    let range = number(first)?..number(end)?;
    if range.is_empty() {
        bail!("{}", wanted());
    }
    Ok(range)
}

/// Runs the seeds.
///
/// # Errors
/// If a law is broken.
pub fn run(arguments: &Arguments) -> Result<()> {
    match arguments.seed {
        Some(seed) => one(seed, arguments),
        None => many(arguments),
    }
}

/// One seed, in words.
fn one(seed: u64, arguments: &Arguments) -> Result<()> {
    let mut case = Case::of(seed);
    if arguments.shrink {
        std::panic::set_hook(Box::new(|_| {}));
        if let Some((smaller, _)) = shrunk(&case) {
            case = smaller;
            println!("{case:#?}");
        }
    }
    let lines: Option<chaos::trace::Lines> =
        arguments.trace.then(|| Box::new(|line: &str| println!("{line}")) as chaos::trace::Lines);
    let report = judged(&case, lines)?;
    if arguments.json {
        let out = serde_json::json!({
            "seed": seed,
            "hash": format!("{:016x}", report.hash),
            "steps": report.steps,
            "chunks": report.chunks,
            "virtual_ns": report.time.as_nanos(),
        });
        println!("{out}");
    } else {
        println!(
            "seed {seed} keeps every law: {} commands and answers, {} chunks, {}, trace {:016x}",
            report.steps, report.chunks, report.time, report.hash
        );
    }
    Ok(())
}

/// What all seeds come to.
#[derive(Debug, Default)]
struct Sum {
    met: Met,
    steps: u64,
    chunks: u64,
    virtual_ns: u64,
    violations: Vec<chaos::Violation>,
}

fn many(arguments: &Arguments) -> Result<()> {
    let Range { start, end } = arguments.seeds;
    let jobs = match arguments.jobs {
        Some(jobs) => jobs.max(1),
        None => thread::available_parallelism().context("counting the processors")?.get(),
    };
    // A violation is told once, by us.
    std::panic::set_hook(Box::new(|_| {}));
    let (next, done) = (AtomicU64::new(start), AtomicU64::new(0));
    let sum = Mutex::new(Sum::default());
    let began = Instant::now();
    thread::scope(|scope| {
        let work = || {
            loop {
                let first = next.fetch_add(BLOCK, Ordering::Relaxed);
                if first >= end {
                    return;
                }
                let block = first..(first + BLOCK).min(end);
                done.fetch_add(block.end - block.start, Ordering::Relaxed);
                let part = sum_of(block);
                // A long run is not waited for to look into the first.
                part.violations.iter().for_each(|violation| eprintln!("{violation}"));
                let Ok(mut sum) = sum.lock() else { return };
                sum.met.join(part.met);
                sum.steps += part.steps;
                sum.chunks += part.chunks;
                sum.virtual_ns += part.virtual_ns;
                sum.violations.extend(part.violations);
            }
        };
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut shown = Instant::now();
        while workers.iter().any(|worker| !worker.is_finished()) {
            thread::sleep(Duration::from_millis(20));
            let every = if std::io::stderr().is_terminal() { 1 } else { 60 };
            if shown.elapsed() >= Duration::from_secs(every) {
                shown = Instant::now();
                let violations = sum.lock().map_or(0, |sum| sum.violations.len());
                progress(done.load(Ordering::Relaxed), end - start, began, violations);
            }
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    drop(std::panic::take_hook());
    let Ok(mut sum) = sum.into_inner() else { bail!("a thread of the runner itself panicked") };
    sum.violations.sort_by_key(|v| v.seed);
    if arguments.json {
        println!("{}", json(&sum, &arguments.seeds, seconds));
    } else {
        print(&sum, end - start, seconds, jobs);
    }
    if !sum.violations.is_empty() {
        bail!("{} of {} seeds break a law", sum.violations.len(), end - start);
    }
    Ok(())
}

fn sum_of(seeds: Range<u64>) -> Sum {
    let mut sum = Sum::default();
    for seed in seeds {
        match judged(&Case::of(seed), None) {
            Ok(report) => {
                sum.met.join(report.met);
                sum.steps += report.steps;
                sum.chunks += report.chunks;
                sum.virtual_ns += report.time.as_nanos();
            }
            Err(violation) => sum.violations.push(violation),
        }
    }
    sum
}

fn progress(done: u64, of: u64, began: Instant, violations: usize) {
    let seconds = began.elapsed().as_secs_f64();
    let left = seconds / done.max(1) as f64 * (of - done) as f64;
    let (start, end) = if std::io::stderr().is_terminal() { ("\r", "  ") } else { ("", "\n") };
    eprint!("{start}{done} of {of} seeds, {violations} violations, about {left:.0} s left{end}");
    // Progress that can't be shown changes nothing.
    let _ = std::io::stderr().flush();
}

fn print(sum: &Sum, seeds: u64, seconds: f64, jobs: usize) {
    println!(
        "{seeds} seeds in {seconds:.0} s on {jobs} threads: {:.0} seeds/s, {:.2} M commands and answers/s, {} chunks, {:.1} hours of virtual time",
        seeds as f64 / seconds,
        sum.steps as f64 / seconds / 1e6,
        sum.chunks,
        sum.virtual_ns as f64 / 3.6e12,
    );
    let lacking: Vec<Outcome> = sum.met.lacking().collect();
    if lacking.is_empty() {
        println!("every outcome was met: {}", Outcome::ALL.len());
    } else {
        println!("never met: {lacking:?}");
    }
    for violation in sum.violations.iter().take(SHOWN_MAX) {
        println!("{violation}");
    }
    println!("{} violations", sum.violations.len());
}

fn json(sum: &Sum, seeds: &Range<u64>, seconds: f64) -> serde_json::Value {
    let violations: Vec<_> = sum
        .violations
        .iter()
        .map(|v| serde_json::json!({ "seed": v.seed, "message": v.message }))
        .collect();
    let lacking: Vec<String> = sum.met.lacking().map(|outcome| format!("{outcome:?}")).collect();
    serde_json::json!({
        "seeds": [seeds.start, seeds.end],
        "seconds": seconds,
        "steps": sum.steps,
        "chunks": sum.chunks,
        "virtual_ns": sum.virtual_ns,
        "never_met": lacking,
        "violations": violations,
    })
}
