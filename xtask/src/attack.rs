//! `cargo xtask attack`: hostile attacks on the built program, by seed. Each attack states the law that it holds the program to;
//! a failure is kept with its command lines and its files.

mod captures;
mod commands;
mod damage;
mod devices;
mod kills;
mod loops;
mod outputs;
mod race;
mod recording;
mod stage;
mod udp;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base::{ByteSize, Random};
use nix::sys::statvfs::statvfs;
use serde_json::{Value, json};
use signal_hook::consts::SIGINT;

use crate::vm::programs;
use stage::Stage;

/// Disk that the attacks may take at most, and what a slice of them takes.
const DISK_BYTES: u64 = 10 << 30;
const SLICE_DISK_BYTES: u64 = 1 << 30;
/// An attack that has failed so often has shown what it can.
const FAILURES_MAX: usize = 10;

/// `attack`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Run only this attack; may be given several times [default: all].
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Name the attacks with their laws and stop.
    #[arg(long)]
    list: bool,
    /// Seed of all random choices [default: the time, which is printed; 1 in a slice].
    #[arg(long)]
    seed: Option<u64>,
    /// Run only this round of each attack, to reproduce a failure.
    #[arg(long, value_name = "N")]
    round: Option<u64>,
    /// Time for all attacks together; no round starts after it is over.
    #[arg(long, value_name = "N", default_value_t = 15.0)]
    minutes: f64,
    /// Run a few rounds of each attack, as ./test does.
    #[arg(long, conflicts_with_all = ["round", "minutes"])]
    slice: bool,
    /// Attacks that run at the same time.
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Folder for scratch files and failures [default: target/attack].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The longtake program [default: built from this workspace].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print a line of JSON for each attack on standard output, and the table on standard error.
    #[arg(long)]
    json: bool,
}

/// An attack on the program.
trait Attack: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// What it does, in one line.
    fn about(&self) -> &'static str;
    /// What must be so afterwards.
    fn law(&self) -> &'static str;
    /// Rounds in a slice.
    fn slice_rounds(&self) -> u64;
    /// Plays one round in an empty folder.
    ///
    /// # Errors
    /// If the law is broken, or the attack can't be made.
    fn round(&self, stage: &mut Stage) -> Result<()>;
}

fn attacks() -> Vec<Box<dyn Attack>> {
    // The longest of a slice first, so that none of them is left alone at the end.
    vec![
        Box::new(outputs::Outputs),
        Box::new(devices::Devices),
        Box::new(kills::Kills),
        Box::new(damage::Damage),
        Box::new(captures::Captures),
        Box::new(commands::Commands::default()),
        Box::new(udp::Udp),
        Box::new(race::Race),
    ]
}

/// Lets an interruption end the commands that the attacks start. A shell makes what it starts in the background ignore SIGINT, and
/// that would be handed on; a handler is not.
fn let_children_be_interrupted() -> Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_default(SIGINT, always).context("handling SIGINT")?;
    Ok(())
}

/// Runs the attacks, and prints what each came to.
///
/// # Errors
/// If there is too little space, or a law was broken.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        for attack in &attacks() {
            println!("{:10} {}\n{:10} law: {}", attack.name(), attack.about(), "", attack.law());
        }
        return Ok(());
    }
    let chosen = chosen(&arguments.only)?;
    let_children_be_interrupted()?;
    ensure!(
        nix::unistd::geteuid().is_root(),
        "attacks make loop devices and namespaces: run as root"
    );
    let program = arguments.program.clone().map_or_else(programs::longtake, Ok)?;
    let program = fs::canonicalize(&program)
        .with_context(|| format!("finding the program {}", program.display()))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let dir = arguments.dir.clone().unwrap_or_else(|| root.join("target/attack"));
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let dir = fs::canonicalize(&dir)?;
    let needed = if arguments.slice { SLICE_DISK_BYTES } else { DISK_BYTES };
    ensure_space(&dir, needed)?;
    // A slice tries the same each time: something new that fails is found by a long run, not by whoever changed something else.
    let seed = crate::seed(arguments.seed.or(arguments.slice.then_some(1)));
    let campaign = Campaign { program, dir, seed, slice: arguments.slice };
    let until = Instant::now()
        + Duration::try_from_secs_f64(arguments.minutes * 60.0).context("--minutes")?;
    let jobs = arguments.jobs.min(chosen.len()).max(1);
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(attack) = chosen.get(at) else { return };
            let left = until.saturating_duration_since(Instant::now());
            let share = left.mul_f64(jobs as f64 / (chosen.len() - at).max(jobs) as f64);
            let rounds = match (arguments.round, arguments.slice) {
                (Some(round), _) => Rounds::One(round),
                (None, true) => Rounds::Slice,
                (None, false) => Rounds::For(share),
            };
            let tally = campaign.play(attack.as_ref(), rounds);
            tally.print(attack.as_ref(), seed, arguments.json);
            if !tally.failures.is_empty() {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(attack.name());
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { bail!("laws were broken by: {}", failed.join(", ")) }
}

/// The attacks with these names; all if none is named.
fn chosen(names: &[String]) -> Result<Vec<Box<dyn Attack>>> {
    let mut attacks = attacks();
    for name in names {
        if !attacks.iter().any(|known| known.name() == name) {
            let known: Vec<_> = attacks.iter().map(|attack| attack.name()).collect();
            bail!("no attack '{name}': there are {}", known.join(", "));
        }
    }
    attacks.retain(|attack| names.is_empty() || names.iter().any(|name| name == attack.name()));
    Ok(attacks)
}

fn ensure_space(dir: &Path, needed: u64) -> Result<()> {
    let space = statvfs(dir).context("asking for free space")?;
    let free = space.blocks_available() * space.fragment_size();
    ensure!(
        free >= needed,
        "{} has {} free, and the attacks may take {}: give another folder with --dir",
        dir.display(),
        ByteSize(free),
        ByteSize(needed)
    );
    Ok(())
}

/// How many rounds of an attack are played.
#[derive(Clone, Copy, Debug)]
enum Rounds {
    One(u64),
    Slice,
    For(Duration),
}

/// What stays the same from attack to attack.
struct Campaign {
    program: PathBuf,
    dir: PathBuf,
    seed: u64,
    slice: bool,
}

/// What an attack came to.
#[derive(Debug, Default)]
struct Tally {
    rounds: u64,
    attempts: u64,
    seconds: f64,
    seen: BTreeMap<String, u64>,
    failures: Vec<Value>,
}

impl Campaign {
    fn play(&self, attack: &dyn Attack, rounds: Rounds) -> Tally {
        let started = Instant::now();
        let mut tally = Tally::default();
        let first = if let Rounds::One(round) = rounds { round } else { 0 };
        for round in first.. {
            let over = match rounds {
                Rounds::One(_) => round > first,
                Rounds::Slice => round >= attack.slice_rounds(),
                Rounds::For(share) => round > 0 && started.elapsed() >= share,
            };
            if over || tally.failures.len() >= FAILURES_MAX {
                break;
            }
            tally.rounds += 1;
            if let Err(error) = self.one(attack, round, &mut tally) {
                let text = format!("{error:#}");
                eprintln!("{} round {round}: FAILED: {text}", attack.name());
                let reproduce = self.reproducer(attack, round);
                tally.failures.push(json!({"round": round, "error": text, "reproduce": reproduce}));
            }
        }
        tally.seconds = started.elapsed().as_secs_f64();
        tally
    }

    fn reproducer(&self, attack: &dyn Attack, round: u64) -> String {
        let Self { program, seed, slice, .. } = self;
        let program = program.display();
        let name = attack.name();
        if *slice {
            return format!(
                "cargo xtask attack --program {program} --only {name} --seed {seed} --slice"
            );
        }
        format!(
            "cargo xtask attack --program {program} --only {name} --seed {seed} --round {round}"
        )
    }

    /// One round in an empty folder, which is kept only if it fails.
    fn one(&self, attack: &dyn Attack, round: u64, tally: &mut Tally) -> Result<()> {
        let name = attack.name();
        let folder = self.dir.join(format!("{name}-{round}"));
        empty(&folder)?;
        let mut stage = Stage::new(
            self.program.clone(),
            folder.clone(),
            Random::new(mixed(self.seed, name, round)),
            self.slice,
        );
        let outcome = attack.round(&mut stage);
        tally.attempts += stage.attempts;
        for (what, count) in &stage.seen {
            *tally.seen.entry(what.clone()).or_default() += count;
        }
        let Err(error) = outcome else {
            return fs::remove_dir_all(&folder)
                .with_context(|| format!("removing {}", folder.display()));
        };
        let failed = self.dir.join(format!("failed-{name}-{}-{round}", self.seed));
        if failed.exists() {
            fs::remove_dir_all(&failed)?;
        }
        fs::rename(&folder, &failed)?;
        let report = format!(
            "{name}: {error:#}\nlaw: {}\nreproduce: {}\n\nin {}:\n{}\n",
            attack.law(),
            self.reproducer(attack, round),
            folder.display(),
            stage.journal.join("\n")
        );
        fs::write(failed.join("FAILED"), report)?;
        Err(error.context(format!("kept in {}", failed.display())))
    }
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("emptying {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

/// A seed for one round of one attack, so that a round doesn't depend on those before it.
fn mixed(seed: u64, name: &str, round: u64) -> u64 {
    let name = name.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(257) + u64::from(byte));
    let mut random = Random::new(seed ^ name.rotate_left(17));
    random.bits().wrapping_add(round)
}

impl Tally {
    fn print(&self, attack: &dyn Attack, seed: u64, as_json: bool) {
        let Self { rounds, attempts, seconds, seen, failures } = self;
        let name = attack.name();
        if as_json {
            println!(
                "{}",
                json!({
                    "attack": name, "law": attack.law(), "seed": seed, "rounds": rounds, "attempts": attempts,
                    "seconds": seconds, "seen": seen, "passed": failures.is_empty(), "failures": failures,
                })
            );
        }
        let seen: Vec<_> = seen.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let verdict = if failures.is_empty() { "passed" } else { "FAILED" };
        let line = format!(
            "{name:10} {verdict} {rounds:4} rounds {attempts:6} attempts {seconds:4.0} s  {}",
            seen.join(", ")
        );
        if as_json {
            eprintln!("{line}");
        } else {
            println!("{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn every_attack_is_played_for_15_minutes_together_unless_asked_otherwise() {
        let arguments = Line::parse_from(["attack"]).arguments;
        assert_eq!((arguments.minutes, arguments.only.len(), arguments.slice), (15.0, 0, false));
    }

    #[test]
    fn every_round_of_every_attack_has_random_numbers_of_its_own() {
        let all = attacks();
        let names = all.iter().map(|attack| attack.name());
        let seeds: BTreeSet<u64> =
            names.flat_map(|name| (0..1000).map(move |round| mixed(7, name, round))).collect();
        assert_eq!(seeds.len(), 1000 * all.len());
        assert_ne!(mixed(7, "kills", 0), mixed(8, "kills", 0));
    }
}
