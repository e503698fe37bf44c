//! `cargo xtask soak`: records for as long as one likes onto a few files, with accidents at random: members that crawl, stand still
//! or fail, kill -9 and restarts, spans that are protected and let go, arrays that are full, and extraction beside it.
//!
//! Everything that was said to be stored must be found or named, and neither memory nor descriptors may grow.

pub mod found;
mod members;
pub mod recorder;
mod round;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base::{ByteSize, Random, Rate};
use serde_json::json;

use crate::vm::programs;

use members::Members;
use round::{Ending, Round, Rules};

/// Memory that a recorder may have beside its chunk buffers: its program, its indexes and lists, its threads' stacks.
const BESIDE_BUFFERS_BYTES: u64 = 96 << 20;
/// Rounds are this long at least.
const ROUND_LEAST: Duration = Duration::from_secs(15);

/// `soak`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How long.
    #[arg(long, value_name = "TIME", default_value = "30m")]
    time: base::Duration,
    /// What is recorded a second.
    #[arg(long, value_name = "RATE", default_value = "50MB/s")]
    rate: Rate,
    /// Members.
    #[arg(long, value_name = "N", default_value_t = 4)]
    members: usize,
    /// Size of each, as a file.
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    member_size: ByteSize,
    /// Memory for chunk buffers.
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    memory: ByteSize,
    /// What random choices are made from [default: the time, which is told].
    #[arg(long)]
    seed: Option<u64>,
    /// Where the files lie; they are gone in the end [default: target/soak].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The longtake program [default: built from this workspace].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print a line of JSON for each round, and one for all.
    #[arg(long)]
    json: bool,
}

/// Records round after round.
///
/// # Errors
/// At the first loss that isn't named, packet that isn't right, or growth of memory or descriptors.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = arguments.program.clone().map_or_else(programs::longtake, Ok)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let dir = arguments.dir.clone().unwrap_or_else(|| root.join("target/soak"));
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let seed = crate::seed(arguments.seed);
    let mut random = Random::new(seed);
    let mut members = Members::create(&dir, arguments.members, arguments.member_size.0)?;
    let rules = Rules { program, rate: arguments.rate, memory: arguments.memory, dir };
    rules.create(&members)?;
    let (started, time) = (Instant::now(), Duration::from(arguments.time));
    let mut sums = Sums::default();
    while started.elapsed() + ROUND_LEAST / 2 < time {
        let left = time - started.elapsed();
        let longest = (time / 3).max(ROUND_LEAST).min(left.max(ROUND_LEAST));
        let spread = (longest - ROUND_LEAST).as_millis() as u64;
        let length = ROUND_LEAST + Duration::from_millis(random.below(spread.max(1)));
        let number = sums.rounds.len() + 1;
        eprintln!(
            "round {number}, {} s, {} of {} s",
            length.as_secs(),
            started.elapsed().as_secs(),
            time.as_secs()
        );
        let round = rules
            .play(&mut members, length, &mut random)
            .with_context(|| format!("round {number} of seed {seed}"))?;
        if arguments.json {
            println!("{}", json!({"event": "round", "round": number, "found": round.json()}));
        } else {
            println!("{number:3}  {}", round.told());
        }
        sums.rounds.push(round);
        sums.hold(arguments.memory.0).with_context(|| format!("round {number} of seed {seed}"))?;
    }
    ensure!(!sums.rounds.is_empty(), "--time: a round takes {} s at least", ROUND_LEAST.as_secs());
    sums.tell(arguments.json, seed, started.elapsed());
    Ok(())
}

/// What all rounds came to.
#[derive(Debug, Default)]
struct Sums {
    rounds: Vec<Round>,
}

impl Sums {
    /// That the last round's recorder stayed in its limits.
    fn hold(&self, buffers_bytes: u64) -> Result<()> {
        let Some(round) = self.rounds.last() else { return Ok(()) };
        let limit = buffers_bytes + BESIDE_BUFFERS_BYTES;
        if round.memory.most > limit {
            bail!(
                "the recorder had {} of memory, with {} of buffers: {limit} bytes are the most",
                ByteSize(round.memory.most),
                ByteSize(buffers_bytes)
            );
        }
        // A command that is being answered has a connection of its own.
        if round.descriptors.last > round.descriptors.first + 2 {
            bail!(
                "the recorder had {} descriptors after its start and {} at its end",
                round.descriptors.first,
                round.descriptors.last
            );
        }
        Ok(())
    }

    fn tell(&self, as_json: bool, seed: u64, took: Duration) {
        let sum = |of: fn(&Round) -> u64| self.rounds.iter().map(of).sum::<u64>();
        let most = |of: fn(&Round) -> u64| self.rounds.iter().map(of).max().unwrap_or(0);
        let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
        let mut accidents: BTreeMap<&str, u64> = BTreeMap::new();
        for round in &self.rounds {
            for (stage, packets) in &round.account.lost {
                *lost.entry(stage).or_default() += packets;
            }
            for (accident, count) in &round.accidents {
                *accidents.entry(accident).or_default() += count;
            }
        }
        lost.retain(|_, packets| *packets > 0);
        let ended = |ending: Ending| self.rounds.iter().filter(|r| r.ending == ending).count();
        let growth = self.rounds.iter().map(Round::growth).max().unwrap_or(0);
        if as_json {
            println!(
                "{}",
                json!({
                    "event": "finished", "seed": seed, "seconds": took.as_secs(), "rounds": self.rounds.len(),
                    "stopped": ended(Ending::Stopped), "killed": ended(Ending::Killed), "full": ended(Ending::Full),
                    "accidents": accidents, "offered_packets": sum(|r| r.account.offered), "lost_packets": lost,
                    "missing_packets": sum(|r| r.account.missing), "overwritten_packets": sum(|r| r.account.overwritten),
                    "checked_packets": sum(|r| r.account.on_media + r.checked_beside),
                    "acknowledged_chunks": sum(|r| r.acknowledged),
                    "memory_most_bytes": most(|r| r.memory.most), "memory_growth_bytes": growth,
                    "descriptors_most": most(|r| r.descriptors.most),
                })
            );
            return;
        }
        let words = |of: &BTreeMap<&str, u64>| {
            let words: Vec<_> = of.iter().map(|(name, count)| format!("{count} {name}")).collect();
            if words.is_empty() { "none".to_owned() } else { words.join(", ") }
        };
        println!(
            "{} rounds in {} s: {} stopped, {} killed, {} full; accidents: {}\n\
             {} packets offered; lost and named: {}; {} not yet acknowledged when killed, and named; {} given up by the ring\n\
             {} packets read back and right, {} acknowledged chunks all accounted for; every account balances\n\
             memory {} at most, {} more at a recording's end than in its first seconds at most; {} descriptors at most",
            self.rounds.len(),
            took.as_secs(),
            ended(Ending::Stopped),
            ended(Ending::Killed),
            ended(Ending::Full),
            words(&accidents),
            sum(|r| r.account.offered),
            words(&lost),
            sum(|r| r.account.missing),
            sum(|r| r.account.overwritten),
            sum(|r| r.account.on_media + r.checked_beside),
            sum(|r| r.acknowledged),
            ByteSize(most(|r| r.memory.most)),
            ByteSize(growth),
            most(|r| r.descriptors.most),
        );
    }
}
