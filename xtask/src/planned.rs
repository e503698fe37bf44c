//! Plans against what they foretell: random drives, each measured as a user would measure it, a random requirement planned by
//! arithmetic from that profile alone, and the least number of drives on which the recorder loses nothing, found by recording.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use base::{Duration, Random, Rate};
use lab::experiment::fill::Fill;
use lab::profiling::{self, Identity};
use lab::{Answer, BankRig, Go, Lab};
use plan::mission::Mission;
use plan::proof::least;
use plan::trial::{draw, draws, trials};
use plan::{Candidate, Draft, Requirement};
use profile::Profile;
use ssd::{SimBank, Slot, Spec, Start};

/// Models that random drives are made from: each kind of cache, flash and link that the library has.
const MODELS: [&str; 7] = [
    "samsung-970-evo-plus-1tb",
    "samsung-970-pro-512gb",
    "samsung-pm1725b-1.6tb",
    "intel-d7-p5510-3.84tb",
    "intel-dc-p3600-400gb",
    "intel-optane-900p-480gb",
    "qlc-1tb",
];

/// Random drives hold this part of their model's capacity, in blocks and a cache that are as much smaller: minutes to fill, not hours.
const SHRUNK: u32 = 16;

/// As many drives more than planned are tried.
const MORE: usize = 6;
/// A drive is asked as many times for rates that it holds, at most.
const ASKED: usize = 16;

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Requirements to compare.
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// What drives and requirements follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Simulate drives in all their parts, instead of in fewer, larger ones as `plan --prove` does.
    #[arg(long)]
    fine: bool,
    /// Plan once, from the fill alone, without asking the drive whether it holds the rates that the plan names.
    #[arg(long)]
    once: bool,
    /// As many at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Compare this requirement alone, and print the profile and the plan.
    #[arg(long, value_name = "NUMBER")]
    case: Option<u64>,
    /// Write what came of it to this file, as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// One requirement on one drive.
#[derive(Debug)]
struct Case {
    number: u64,
    drive: String,
    asked: String,
    placement: &'static str,
    ring: bool,
    /// Drives by arithmetic; None if no number would do.
    planned: Option<usize>,
    /// Least drives that lose nothing; None if none of those tried.
    found: Option<usize>,
    /// What was seen, in words.
    seen: String,
}

/// Compares, and prints each case and what it comes to.
///
/// # Errors
/// If a drive can't be simulated or measured.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.jobs == 0 {
        bail!("--jobs is 1 at least");
    }
    if let Some(number) = arguments.case {
        println!("{}", case(number, arguments)?.line());
        return Ok(());
    }
    let next = AtomicU64::new(0);
    let cases = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= arguments.count {
                    return Ok(());
                }
                let case = case(number, arguments)
                    .with_context(|| format!("case {number} of seed {}", arguments.seed))?;
                println!("{}", case.line());
                cases.lock().expect("no other thread panicked").insert(number, case);
            }
        };
        let threads: Vec<_> = (0..arguments.jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|one| one.join().expect("a worker doesn't panic"))
    })?;
    let cases: Vec<Case> =
        cases.into_inner().expect("no other thread panicked").into_values().collect();
    let text = summary(&cases, arguments);
    println!("\n{text}");
    if let Some(path) = &arguments.markdown {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn case(number: u64, arguments: &Arguments) -> Result<Case> {
    let mut random = Random::new(arguments.seed.wrapping_mul(1_000_003).wrapping_add(number));
    let spec = drive(&mut random, number)?;
    let profile = measured(&spec, &[])?;
    let sustained = profile
        .overwrite()
        .or_else(|| profile.native_write())
        .context("a fill tells how fast a drive overwrites")?;
    let draft = requirement(&mut random, &spec, sustained);
    let requirement = draft.check()?;
    let profile = if arguments.once { profile } else { held(profile, &spec, &requirement)? };
    let answer = plan::plan(&requirement, &[Candidate::new(profile.clone(), None)]);
    let profile = profile.to_toml()?;
    let design = &answer.designs[0];
    if arguments.case.is_some() {
        println!("{profile}\n{}\n", plan::explain::lines(design).join("\n"));
    }
    let mut case = Case {
        number,
        drive: spec.model.clone(),
        asked: format!(
            "{} for {}",
            requirement.rate,
            Duration::from_secs_f64(requirement.held_s())
        ),
        placement: if draft.placement.as_deref() == Some("stripe") { "stripe" } else { "adaptive" },
        ring: requirement.wraps(),
        planned: None,
        found: None,
        seen: String::new(),
    };
    let Some(trial) = trials(&requirement, design, &spec).into_iter().next() else {
        case.seen = design.obstacles.first().map_or(String::new(), ToString::to_string);
        return Ok(case);
    };
    let planned = trial.mission.drives.len();
    case.planned = Some(planned);
    let mission = |drives: usize| {
        let mut mission = trial.mission.clone();
        mission.coarse = !arguments.fine;
        let slot = mission.drives[0].clone();
        mission.drives = (0..drives as u64).map(|seed| Slot { seed, ..slot.clone() }).collect();
        mission
    };
    match least(planned, planned + MORE, mission, |_, _| ControlFlow::Continue(()))? {
        Some(proof) => {
            case.found = Some(proof.drives);
            case.seen = proof.to_string();
            // A ring takes too long to draw again where one less lost something at once.
            let again = proof.drives < planned || !requirement.wraps();
            if again && draws(&trial.mission) > 1 {
                let seen = by_draws(planned, proof.drives < planned, mission)?;
                (case.found, case.seen) = seen;
            }
        }
        None => case.seen = format!("{} lose data too", planned + MORE),
    }
    Ok(case)
}

/// The fewest drives, not more than planned, that are enough where that depends on chance, and in how many draws fewer lost something;
/// `lucky` if fewer lost nothing in the first. None if those planned lose something in more draws than they may.
fn by_draws(
    planned: usize,
    lucky: bool,
    mission: impl Fn(usize) -> Mission,
) -> Result<(Option<usize>, String)> {
    let try_draws =
        |drives: usize, draws| draw(&mission(drives), draws, |_| ControlFlow::Continue(()));
    let all = try_draws(planned, draws(&mission(planned)))?;
    let seen = format!("{planned} lose in {} of {} draws", all.lost, all.tried);
    if all.enough() == Some(false) || !lucky {
        return Ok(((all.enough() == Some(true)).then_some(planned), seen));
    }
    for drives in (1..planned).rev() {
        let less = try_draws(drives, draws(&mission(drives)))?;
        if less.enough() == Some(false) {
            let enough = drives + 1;
            let with = try_draws(enough, less.tried)?;
            let seen = format!(
                "{enough} lose in {} of {} draws, {drives} in {} of {}",
                with.lost, with.tried, less.lost, less.tried
            );
            return Ok(((with.enough() != Some(false)).then_some(enough), seen));
        }
    }
    Ok((Some(1), "one drive is enough".to_owned()))
}

/// A number from `low` to `high`, as likely near one end as near the other, by ratio.
fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    let share = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
    low * (high / low).powf(share)
}

/// A drive that nobody makes: a model's parts, smaller and with other figures.
fn drive(random: &mut Random, number: u64) -> Result<Spec> {
    let model = MODELS[random.below(MODELS.len() as u64) as usize];
    let mut spec = Spec::from_profile(&profile::library::get(model)?)?;
    spec.name = format!("random-{number}");
    spec.model = model.to_owned();
    let unit = u64::from(spec.mapping.unit_bytes);
    spec.capacity_bytes = spec.capacity_bytes / u64::from(SHRUNK) / unit * unit;
    let programs = spec.flash.pages_per_block / spec.flash.pages_per_program;
    spec.flash.pages_per_block = (programs / SHRUNK).max(8) * spec.flash.pages_per_program;
    spec.flash.program_us *= between(random, 0.7, 1.5);
    spec.mapping.over_provisioning *= between(random, 0.8, 2.0);
    if let Some(cache) = &mut spec.cache {
        let size = between(random, 0.3, 3.0) / f64::from(SHRUNK);
        cache.static_bytes = (cache.static_bytes as f64 * size) as u64;
        cache.dynamic_bytes = (cache.dynamic_bytes as f64 * size) as u64;
    }
    // Smaller drives have relatively more superblocks kept free, and a cache can't be larger than all flash holds with one bit a cell.
    for _ in 0..20 {
        if spec.check().is_ok() {
            break;
        }
        spec.mapping.over_provisioning *= 1.1;
        if let Some(cache) = &mut spec.cache {
            cache.dynamic_bytes = cache.dynamic_bytes / 10 * 8;
        }
    }
    if let Some(upkeep) = &mut spec.upkeep {
        upkeep.every_bytes = (upkeep.every_bytes as f64 * between(random, 0.5, 2.0)) as u64;
    }
    Ok(spec)
}

/// The profile with what a user adds to it who asks the drive before buying one more, or one less.
fn held(fill: Profile, spec: &Spec, requirement: &Requirement) -> Result<Profile> {
    let mut profile = fill;
    let mut rates: Vec<Rate> = Vec::new();
    for _ in 0..ASKED {
        // What dips of others leave in a stripe is known only once a drive has held its share alone.
        let design = plan::design(requirement, &Candidate::new(profile.clone(), None));
        let mut fresh: Vec<Rate> = design.rates_to_try.into_iter().map(Rate).collect();
        fresh.retain(|rate| !rates.contains(rate));
        if fresh.is_empty() {
            break;
        }
        rates.extend(fresh);
        // Writing at a rate tells nothing of full speed, which is as it was.
        let found = measured(spec, &rates)?.figures;
        profile.figures.extend(found);
    }
    Ok(profile)
}

/// What a fill finds of it, and writing at these rates.
fn measured(spec: &Spec, rates: &[Rate]) -> Result<Profile> {
    let slot = Slot { spec: spec.clone(), start: Start::Empty, namespaces: vec![0], seed: 1 };
    let bank = SimBank::new(&[slot], None)?;
    let mut rig = BankRig::without_data(bank);
    let folder = tempfile::tempdir()?;
    let mut watch = |_: &lab::Progress<'_>| Go::On;
    let mut lab = Lab::new(&mut rig, folder.path(), &mut watch)?;
    let fill = Fill { rests: Vec::new(), rates: rates.to_vec(), ..Fill::default() };
    let found = fill.run(&mut lab)?;
    let identity = Identity {
        name: &spec.name,
        model: &spec.model,
        kind: "simulated",
        capacity_bytes: spec.capacity_bytes,
        block_bytes: spec.block_bytes,
        trim_bytes: None,
        endurance_bytes: None,
    };
    let (when, place) = ("2026-01-01", "simulated drives");
    let mut profile = profiling::profile(&found.figures(), &identity, when, place);
    profile.fill = found.curve(&profiling::measured(when, place));
    Ok(profile)
}

/// A requirement that a few to a few dozen of such drives meet.
fn requirement(random: &mut Random, spec: &Spec, sustained: Rate) -> Draft {
    let drives = between(random, 1.5, 24.0);
    let rate = sustained.0 * drives;
    let lap_s = spec.capacity_bytes as f64 / sustained.0;
    let ring = random.below(10) < 6;
    // A mission as long as a small part of the drives takes, or nearly all of them; a ring that is not limited by its size.
    let share = between(random, 0.02, 0.9);
    let time = format!("{:.1}s", (lap_s * if ring { 0.3 } else { share }).max(1.0));
    let placement = if random.below(10) < 7 { "adaptive" } else { "stripe" };
    let frame = ["1518", "64", "imix", "9018"][random.below(4) as usize];
    Draft {
        rate: Some(format!("{:.3}GB/s", rate / 1e9)),
        counts: Some("payload".to_owned()),
        frame: Some(frame.to_owned()),
        keep: ring.then(|| time.clone()),
        mission: (!ring).then_some(time),
        placement: Some(placement.to_owned()),
        ..Draft::default()
    }
}

impl Case {
    /// Drives planned above those needed.
    fn off(&self) -> Option<i64> {
        Some(self.planned? as i64 - self.found? as i64)
    }

    fn line(&self) -> String {
        let verdict = match (self.planned, self.off()) {
            (None, _) => "no answer".to_owned(),
            (_, Some(0)) => "confirmed".to_owned(),
            (_, Some(off)) => format!("{off:+}"),
            (_, None) => "too few".to_owned(),
        };
        let number = |count: Option<usize>| count.map_or("-".to_owned(), |count| count.to_string());
        format!(
            "{:>4} {:<26} {:<8} {:<7} planned {:>3}, needed {:>3}: {verdict}; {}; {}",
            self.number,
            self.drive,
            self.placement,
            if self.ring { "ring" } else { "mission" },
            number(self.planned),
            number(self.found),
            self.asked,
            self.seen
        )
    }
}

fn summary(cases: &[Case], arguments: &Arguments) -> String {
    let mut text = format!(
        "{} random requirements on as many random drives (`cargo xtask planned --count {} --seed {}`):\n\n",
        cases.len(),
        arguments.count,
        arguments.seed
    );
    let _ = writeln!(
        text,
        "| placement | term | cases | confirmed | one too many | more too many | one too few | more too few | no answer |"
    );
    let _ = writeln!(text, "|---|---|---|---|---|---|---|---|---|");
    for placement in ["adaptive", "stripe"] {
        for ring in [true, false] {
            let of: Vec<&Case> =
                cases.iter().filter(|c| c.placement == placement && c.ring == ring).collect();
            let count = |test: &dyn Fn(&Case) -> bool| of.iter().filter(|case| test(case)).count();
            let unanswered = count(&|case| case.planned.is_none());
            let beyond = count(&|case| case.planned.is_some() && case.found.is_none());
            let _ = writeln!(
                text,
                "| {placement} | {} | {} | {} | {} | {} | {} | {} | {unanswered} |",
                if ring { "ring" } else { "mission" },
                of.len(),
                count(&|case| case.off() == Some(0)),
                count(&|case| case.off() == Some(1)),
                count(&|case| case.off().is_some_and(|off| off > 1)),
                count(&|case| case.off() == Some(-1)),
                beyond + count(&|case| case.off().is_some_and(|off| off < -1)),
            );
        }
    }
    text
}
