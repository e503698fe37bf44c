//! Simulated drives: how many commands a processor simulates in a second, how long a drive's worth of writing takes, and how both
//! grow with depth, dies and capacity. The reference simulators are not run here; their published figures stand beside.

use std::fs;
use std::ops::ControlFlow;

use anyhow::{Context, Result, ensure};
use base::random::Random;
use base::{Bank, BufferId, Command, DriveId, Duration, NoBuffers, Operation, Rate};
use load::measurement::Collector;
use load::{Engine, Plan, Workload};
use plan::mission::Mission;
use ssd::{SimBank, Slot, Spec, Start};

use super::Setting;
use super::comparison::{Comparison, Goal, Unit};
use super::machine::{self, ProcessorTime};
use super::rounds::Figures;

/// Random reads that MQSim simulates in a second, and processor seconds and bytes of memory that it takes for 1 TB of 8 KiB random
/// writes, on machines of this kind.
const MQSIM_READS_PER_S: f64 = 0.26e6;
const MQSIM_SECONDS: f64 = 830.0;
const MQSIM_BYTES: f64 = 111e9;

const BUFFER: BufferId = BufferId(0);
const TERABYTE: u64 = 1_000_000_000_000;

/// Runs all but the reads.
///
/// # Errors
/// If a drive can't be made.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    machine::pinned(|| {
        let mut found = writes(setting)?;
        found.push(measured(setting)?);
        found.push(array(setting)?);
        Ok(found)
    })
}

/// Runs the reads.
///
/// # Errors
/// If a drive can't be made.
pub fn run_reads(setting: &Setting) -> Result<Vec<Comparison>> {
    machine::pinned(|| reads(setting))
}

/// 4 KiB random reads: on 32 dies at depth 32, then with each of depth, dies and capacity varied.
fn reads(setting: &Setting) -> Result<Vec<Comparison>> {
    const READS: u64 = 4_000_000;
    let mut cases = vec![(32, 4, TERABYTE, true)];
    cases.extend([1, 4, 128, 512].map(|depth| (depth, 4, TERABYTE, false)));
    cases.extend([1, 16, 64].map(|dies_per_channel| (32, dies_per_channel, TERABYTE, false)));
    cases.extend([100_000_000_000, 10 * TERABYTE].map(|capacity| (32, 4, capacity, false)));
    let mut found = Vec::new();
    for (depth, dies_per_channel, capacity, main) in cases {
        let mut spec = ideal()?;
        spec.flash.dies_per_channel = dies_per_channel;
        spec.capacity_bytes = capacity / 4096 * 4096;
        let dies = spec.flash.dies();
        let slot = Slot { spec, start: Start::Full, namespaces: vec![0], seed: 1 };
        let mut bank = SimBank::new(&[slot], None)?;
        let mut random = Random::new(1);
        let blocks = capacity / 4096;
        let mut round = || {
            let start = ProcessorTime::start();
            closed_loop(&mut bank, depth, READS, |_| Operation::Read {
                offset: random.below(blocks) * 4096,
                length: 4096,
                buffer: BUFFER,
            });
            READS as f64 / start.seconds()
        };
        round();
        let ours = Figures((0..setting.rounds).map(|_| round()).collect());
        found.push(Comparison {
            benchmark: "simulate",
            what: format!(
                "4 KiB random reads at depth {depth}, {dies} dies, {}: commands a second of processor time",
                base::ByteSize(capacity)
            ),
            reference: main.then(|| published("MQSim", MQSIM_READS_PER_S, setting.rounds)),
            ours,
            unit: Unit::CommandsPerS,
            goal: main.then_some(Goal::Ratio(50.0)),
        });
    }
    Ok(found)
}

/// A drive of 1 TB written from end to end, in order and at random.
fn writes(setting: &Setting) -> Result<Vec<Comparison>> {
    const LARGE: u64 = 128 << 10;
    const SMALL: u64 = 8 << 10;
    let slot = |start| -> Result<Slot> {
        let mut spec = ideal()?;
        // As much spare area as client drives have.
        spec.mapping.over_provisioning = 0.127;
        Ok(Slot { spec, start, namespaces: vec![0], seed: 1 })
    };
    let write = |offset: u64, length: u64| Operation::Write {
        offset,
        length: length as u32,
        buffer: BUFFER,
        fua: false,
    };
    let mut in_order = Vec::new();
    for _ in 0..setting.rounds.min(3) {
        let mut bank = SimBank::new(&[slot(Start::Empty)?], None)?;
        let start = ProcessorTime::start();
        let blocks = TERABYTE / LARGE;
        closed_loop(&mut bank, 8, 2 * blocks, |number| write(number % blocks * LARGE, LARGE));
        in_order.push(start.seconds());
    }
    let start = ProcessorTime::start();
    drop(SimBank::new(&[slot(Start::Random { block_bytes: SMALL as u32 })?], None)?);
    let steady = start.seconds();
    let mut bank = SimBank::new(&[slot(Start::Full)?], None)?;
    let mut random = Random::new(1);
    let start = ProcessorTime::start();
    let blocks = TERABYTE / SMALL;
    closed_loop(&mut bank, 32, 2 * blocks, |_| write(random.below(blocks) * SMALL, SMALL));
    let at_random = start.seconds();
    let seconds = |what: &str, ours: Vec<f64>, most: Option<f64>, reference: Option<f64>| {
        let rounds = ours.len() as u32;
        Comparison {
            benchmark: "simulate",
            what: what.to_owned(),
            reference: reference.map(|figure| published("MQSim", figure, rounds)),
            ours: Figures(ours),
            unit: Unit::Seconds,
            goal: most.map(Goal::Value),
        }
    };
    Ok(vec![
        seconds("1 TB written in order in 128 KiB, then written over", in_order, Some(10.0), None),
        seconds(
            "1 TB written over twice at random in 8 KiB",
            vec![at_random],
            Some(120.0),
            Some(MQSIM_SECONDS),
        ),
        seconds("the steady state of that, computed instead", vec![steady], None, None),
        Comparison {
            benchmark: "simulate",
            what: "most memory that the process had until then".to_owned(),
            reference: Some(published("MQSim", MQSIM_BYTES, 1)),
            ours: Figures(vec![most_memory()?]),
            unit: Unit::Bytes,
            goal: Some(Goal::Value(8e9)),
        },
    ])
}

/// 10^8 random reads through the load engine, with histograms: what six nines take.
fn measured(setting: &Setting) -> Result<Comparison> {
    const TEXT: &str = "
        name = 'six nines'
        interval = '60s'
        [stop]
        bytes = '409600000000'
        [[stream]]
        name = 'reads'
        pattern = 'random'
        block = '4KiB'
        read = 1
        depth = 32
    ";
    let workload = Workload::from_toml(TEXT)?;
    let mut seconds = Vec::new();
    for _ in 0..setting.rounds.min(2) {
        let slot = Slot { spec: ideal()?, start: Start::Full, namespaces: vec![0], seed: 1 };
        let mut bank = SimBank::new(&[slot], None)?;
        let plan = Plan::new(&workload, bank.drives())?;
        let memory = NoBuffers { size: plan.buffer_bytes() as usize };
        let buffers = (0..plan.depth()).map(BufferId).collect();
        let start = ProcessorTime::start();
        let mut engine = Engine::new(&plan, &mut bank, &memory, buffers);
        let begin = engine.now();
        engine.begin(begin);
        let mut collector = Collector::new(&workload);
        let mut closed = Vec::new();
        while !engine.step(&mut closed)? {
            closed.drain(..).for_each(|interval| collector.add(&interval));
        }
        seconds.push(start.seconds());
    }
    Ok(Comparison {
        benchmark: "simulate",
        what: "10^8 random reads by the load engine, each in a histogram".to_owned(),
        reference: None,
        ours: Figures(seconds),
        unit: Unit::Seconds,
        goal: Some(Goal::Value(30.0)),
    })
}

/// A recording of 100 Gb/s for eight hours on a dozen drives of 30 TB, recorder included, in chunks of 4 MiB. The drives are a data
/// center drive's with more capacity: 64 dies of TLC behind 64 MiB of protected memory.
fn array(setting: &Setting) -> Result<Comparison> {
    const DRIVES: usize = 12;
    let profile = profile::library::get("intel-d7-p5510-3.84tb")?;
    let mut spec = Spec::from_profile(&profile)?;
    spec.capacity_bytes = 30 * TERABYTE / 65_536 * 65_536;
    spec.mapping.unit_bytes = 16 << 10;
    let slot = Slot { spec, start: Start::Full, namespaces: vec![0], seed: 1 };
    let hours = Duration::from_secs(8 * 3600);
    let mission = Mission::new(vec![slot; DRIVES], Rate(12.5e9), hours);
    let mut seconds = Vec::new();
    for _ in 0..setting.rounds.min(2) {
        let start = ProcessorTime::start();
        let outcome = mission.run(|_| ControlFlow::Continue(()))?;
        seconds.push(start.seconds());
        ensure!(outcome.lossless(), "the mission lost something: {:?}", outcome.first_loss);
    }
    Ok(Comparison {
        benchmark: "simulate",
        what: "a recording of eight hours of 100 Gb/s in chunks of 4 MiB on twelve drives of 30 TB, recorder included"
            .to_owned(),
        reference: None,
        ours: Figures(seconds),
        unit: Unit::Seconds,
        goal: Some(Goal::Value(120.0)),
    })
}

/// The library's drive of round numbers.
pub(super) fn ideal() -> Result<Spec> {
    let profile = profile::library::get("ideal")?;
    Ok(Spec::from_profile(&profile)?)
}

/// Runs `count` commands on the first drive, `depth` at a time.
pub(super) fn closed_loop(
    bank: &mut SimBank,
    depth: u64,
    count: u64,
    mut next: impl FnMut(u64) -> Operation,
) {
    let mut done = Vec::new();
    let (mut sent, mut finished) = (0, 0);
    while finished < count {
        while sent < count && sent - finished < depth {
            let command = Command { drive: DriveId(0), operation: next(sent), tag: sent };
            bank.submit(command).expect("the drive takes as many");
            sent += 1;
        }
        done.clear();
        bank.wait(None, &mut done).expect("simulated banks don't fail");
        finished += done.len() as u64;
    }
}

fn published(who: &str, figure: f64, rounds: u32) -> (String, Figures) {
    (format!("{who}, as published"), Figures(vec![figure; rounds as usize]))
}

/// The most memory that this process has had, in bytes.
fn most_memory() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    Ok(kib.context("/proc/self/status has no VmHWM")? * 1024.0)
}
