//! The engine on drives in virtual time, where every latency is known beforehand.

use base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use base::{Bank, BufferId, DeviceError, DriveId, Duration, Instant, Rate};
use load::{Collector, Engine, Interval, Measurement, Plan, Verb, Workload};
use longtake_load as load;
use proptest::prelude::*;

/// Runs a workload to its end.
fn run_on(
    bank: &mut impl Bank,
    memory: &MemoryBuffers,
    text: &str,
) -> (Measurement, Vec<Interval>) {
    let now = bank.now();
    run_from(bank, memory, text, now)
}

/// The same as of a run that was to begin at `start`.
fn run_from(
    bank: &mut impl Bank,
    memory: &MemoryBuffers,
    text: &str,
    start: Instant,
) -> (Measurement, Vec<Interval>) {
    run_workload(bank, memory, &Workload::from_toml(text).unwrap(), start)
}

/// The same of a workload that is not text.
pub fn run_workload(
    bank: &mut impl Bank,
    memory: &MemoryBuffers,
    workload: &Workload,
    start: Instant,
) -> (Measurement, Vec<Interval>) {
    let plan = Plan::new(workload, bank.drives()).unwrap();
    let mut collector = Collector::new(workload);
    let buffers = (0..plan.depth()).map(BufferId).collect();
    let mut engine = Engine::new(&plan, bank, memory, buffers);
    engine.begin(start);
    let mut closed = Vec::new();
    while !engine.step(&mut closed).unwrap() {}
    assert_eq!(engine.under_way(), 0);
    let (found, given_up) = (engine.verification(), engine.given_up());
    closed.iter().for_each(|interval| collector.add(interval));
    (collector.finish(vec!["memory".to_owned()], 1, None, found, given_up), closed)
}

fn run(drive: MemoryDrive, text: &str) -> (Measurement, Vec<Interval>) {
    let memory = MemoryBuffers::new(256, 1 << 20);
    let mut bank = MemoryBank::new(vec![drive], memory.clone());
    run_on(&mut bank, &memory, text)
}

fn latency(us: u64) -> MemoryDrive {
    MemoryDrive { latency: Duration::from_micros(us), ..MemoryDrive::default() }
}

#[test]
fn who_begins_late_ends_intervals_with_the_others_and_has_all_its_time() {
    let memory = MemoryBuffers::new(4, 1 << 20);
    let mut bank = MemoryBank::new(vec![latency(100)], memory.clone());
    let begun = Instant::from_nanos(2_530_000_000);
    bank.wait(Some(begun), &mut Vec::new()).unwrap();
    assert_eq!(bank.now(), begun);
    let run = |bank: &mut MemoryBank, warm_up: &str| {
        let text = format!(
            "stop = {{ time = '2s' }}\ninterval = '1s'\nwarm_up = '{warm_up}'\n[[stream]]\nname = 'r'\nread = 1\nblock = '4KiB'\nrate = '100/s'"
        );
        run_from(bank, &memory, &text, Instant::START)
    };
    let (measured, intervals) = run(&mut bank, "0s");
    let ms =
        |i: &Interval| (i.index, i.start.as_nanos() / 1_000_000, i.length.as_nanos() / 1_000_000);
    let lengths: Vec<_> = intervals.iter().map(ms).collect();
    assert_eq!(lengths, [(2, 2530, 470), (3, 3000, 1000), (4, 4000, 530)]);
    assert_eq!((measured.elapsed_ns, measured.unsent), (2_000_000_000, 0));
    assert_eq!(measured.result("r", Verb::Read).unwrap().count, 200);
    assert_eq!(measured.harness.lag.max_ns, Some(0), "a late beginning is nobody's lag");
    // A warm-up is over when everybody's is.
    let (measured, intervals) = run(&mut bank, "6s");
    let warm_ups: Vec<_> = intervals.iter().map(|i| (i.index, i.warm_up)).collect();
    assert_eq!(warm_ups, [(4, true), (5, true), (6, false), (7, false)]);
    assert_eq!(measured.result("r", Verb::Read).unwrap().count, 200);
    // Joined with one that was in time, it is as long as the interval is.
    let mut whole = Interval {
        length: Duration::from_secs(1),
        ..Interval::new(2, Duration::from_secs(2), false)
    };
    let late = Interval {
        length: Duration::from_millis(470),
        ..Interval::new(2, begun.since(Instant::START), false)
    };
    whole.add(&late);
    assert_eq!((whole.start.as_nanos(), whole.length), (2_000_000_000, Duration::from_secs(1)));
}

#[test]
fn a_stall_shows_in_response_and_not_in_service_and_counts_those_it_delayed() {
    // 1,000 reads a second, one at a time, each of 100 us; nothing is done from 0.5 s to 0.6 s.
    let memory = MemoryBuffers::new(4, 1 << 20);
    let mut bank = MemoryBank::new(vec![latency(100)], memory.clone());
    bank.stall(DriveId(0), Instant::from_nanos(500_000_000), Instant::from_nanos(600_000_000));
    let text = "stop = { time = '1s' }\ninterval = '100ms'\n[[stream]]\nname = 'r'\nread = 1\nblock = '4KiB'\nrate = '1000/s'";
    let (measured, intervals) = run_on(&mut bank, &memory, text);
    let result = measured.result("r", Verb::Read).unwrap();
    assert_eq!(result.count, 1000);
    // One read was under way during the stall; the 99 or 100 behind it wait, and then catch up at 100 us each.
    assert_eq!(result.service.max_ns, Some(100_100_000));
    assert_eq!(result.response.max_ns, Some(100_100_000));
    let slow_service = intervals
        .iter()
        .flat_map(|i| i.streams.values())
        .map(|s| s.service.count() - s.service.histogram().count_between(0, 1_000_000))
        .sum::<u64>();
    let slow_response = intervals
        .iter()
        .flat_map(|i| i.streams.values())
        .map(|s| s.response.count() - s.response.histogram().count_between(0, 1_000_000))
        .sum::<u64>();
    assert_eq!(slow_service, 1, "the drive was slow once");
    // After the stall, a command intended at 500 + k ms starts at 600.1 + 0.1 (k - 1) ms: k = 1..=111 start late.
    assert_eq!(result.delayed, 111);
    assert!((108..=111).contains(&slow_response), "{slow_response}");
}

#[test]
fn a_closed_loop_keeps_its_depth_under_way_and_obeys_littles_law() {
    for (depth, jobs) in [(1, 1), (8, 1), (4, 3)] {
        let text = format!(
            "stop = {{ time = '1s' }}\n[[stream]]\nname = 'r'\nread = 1\npattern = 'random'\nblock = '4KiB'\ndepth = {depth}\njobs = {jobs}"
        );
        let (measured, _) = run(latency(100), &text);
        let under_way =
            measured.commands_per_s() * measured.results[0].service.mean_ns.unwrap() / 1e9;
        assert!((under_way / f64::from(depth * jobs) - 1.0).abs() < 1e-3, "{under_way}");
        assert_eq!(measured.results[0].service, measured.results[0].response);
    }
}

#[test]
fn intervals_add_up_to_the_whole_and_the_warm_up_is_left_out() {
    let drive = MemoryDrive { rate: Some(Rate(400e6)), ..MemoryDrive::default() };
    let text = "stop = { time = '2s' }\ninterval = '250ms'\nwarm_up = '500ms'\n[[stream]]\nname = 'w'\nwrite = 1\nblock = '128KiB'\ndepth = 4";
    let (measured, intervals) = run(drive, text);
    assert_eq!(intervals.len(), 11, "eight, two of warm-up, and what was under way at the end");
    assert!(intervals[..2].iter().all(|i| i.warm_up) && intervals[2..].iter().all(|i| !i.warm_up));
    let bytes: u64 = intervals[2..].iter().map(Interval::bytes).sum();
    assert_eq!(measured.results[0].bytes, bytes);
    assert!((measured.rate().0 / 400e6 - 1.0).abs() < 0.01, "{}", measured.rate());
    assert_eq!(
        measured.series.iter().map(|l| l.bytes).sum::<u64>(),
        intervals.iter().map(Interval::bytes).sum::<u64>()
    );
}

#[test]
fn drives_are_flushed_beside_writes_and_nothing_counts_it() {
    let text = |flush: &str| {
        format!(
            "stop = {{ time = '1s' }}\n[[stream]]\nname = 'w'\nwrite = 1\nblock = '128KiB'\nrate = '100/s'\njobs = 3\n{flush}"
        )
    };
    let memory = MemoryBuffers::new(8, 1 << 20);
    let mut bank = MemoryBank::new(vec![latency(100), latency(100)], memory.clone());
    let (without, _) = run_on(&mut bank, &memory, &text(""));
    let mut bank = Flushed {
        bank: MemoryBank::new(vec![latency(100), latency(100)], memory.clone()),
        flushes: Vec::new(),
    };
    let (with, _) = run_on(&mut bank, &memory, &text("flush = '100ms'"));
    assert_eq!(with.results, without.results);
    // After 0.1 s to 0.9 s, and perhaps at the very end.
    for drive in [0, 1] {
        let count = bank.flushes.iter().filter(|flushed| **flushed == DriveId(drive)).count();
        assert!((9..=10).contains(&count), "{count}");
    }
}

#[test]
fn a_job_that_keeps_its_drive_full_lets_flushes_in() {
    let memory = MemoryBuffers::new(8, 1 << 20);
    let drive = MemoryDrive { depth_max: 4, ..latency(100) };
    let mut bank =
        Flushed { bank: MemoryBank::new(vec![drive], memory.clone()), flushes: Vec::new() };
    let text = "stop = { time = '1s' }\n[[stream]]\nname = 'w'\nwrite = 1\nblock = '4KiB'\ndepth = 4\nflush = '100ms'";
    let (measured, _) = run_on(&mut bank, &memory, text);
    assert!(measured.results[0].count > 10_000, "{}", measured.results[0].count);
    assert!((9..=10).contains(&bank.flushes.len()), "{}", bank.flushes.len());
}

/// A bank that remembers which drives were flushed.
struct Flushed {
    bank: MemoryBank,
    flushes: Vec<DriveId>,
}

impl Bank for Flushed {
    fn drives(&self) -> &[base::Geometry] {
        self.bank.drives()
    }

    fn now(&self) -> Instant {
        self.bank.now()
    }

    fn submit(&mut self, command: base::Command) -> Result<(), base::Full> {
        if command.operation == base::Operation::Flush {
            self.flushes.push(command.drive);
        }
        self.bank.submit(command)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<base::Completion>,
    ) -> Result<(), base::BankError> {
        self.bank.wait(until, done)
    }
}

#[test]
fn a_number_of_bytes_is_asked_for_exactly() {
    let text = "stop = { bytes = '10000KiB' }\n[[stream]]\nname = 'w'\nwrite = 1\nblock = '64KiB'\nalign = '4KiB'\ndepth = 3";
    let (measured, _) = run(latency(10), text);
    assert_eq!(measured.results[0].bytes, 10_000 * 1024);
    assert_eq!(measured.results[0].count, 157, "156 whole blocks and a shorter one");
}

#[test]
fn an_open_loop_says_what_it_could_not_ask_any_more() {
    // 2,000 a second are asked and 1,000 are possible.
    let text = "stop = { time = '1s' }\n[[stream]]\nname = 'r'\nread = 1\nblock = '4KiB'\nrate = '2000/s'\ndeadline = '100ms'";
    let (measured, _) = run(latency(1000), text);
    let result = &measured.results[0];
    assert_eq!((result.count, measured.unsent), (1000, 1000));
    // The n-th read is intended at n/2 ms and answers at n + 1 ms: those after the 198th are later than 100 ms.
    assert_eq!(result.missed, 1000 - 199);
    let miss = measured.first_miss.unwrap();
    assert_eq!((miss.intended_ns, miss.service_ns), (99_500_000, 1_000_000));
}

#[test]
fn failures_are_counted_apart_and_a_dead_drive_ends_the_run() {
    let memory = MemoryBuffers::new(8, 1 << 20);
    let mut bank = MemoryBank::new(vec![latency(100)], memory.clone());
    bank.fail_from(DriveId(0), Instant::from_nanos(500_000_000), DeviceError::Gone);
    let text =
        "stop = { time = '100s' }\n[[stream]]\nname = 'r'\nread = 1\nblock = '4KiB'\ndepth = 2";
    let (measured, _) = run_on(&mut bank, &memory, text);
    assert!(measured.elapsed_ns < 1_000_000_000, "it doesn't wait for the end");
    assert!((9_990..=10_000).contains(&measured.results[0].count), "{}", measured.results[0].count);
    assert!((100..=102).contains(&measured.error_count()));
    assert_eq!(
        measured.results[0].service.count, measured.results[0].count,
        "no latency of a failure"
    );
    assert_eq!(measured.given_up.len(), 1);
    assert!(measured.given_up[0].1.contains("gone"));
}

#[test]
fn a_wrong_byte_is_found_wherever_it_is_and_nothing_else() {
    let text = "stop = { bytes = '8MiB' }\n[[stream]]\nname = 'v'\nwrite = 2\nread = 1\ntrim = 1\npattern = 'random'\nblock = '4KiB:1,16KiB:1'\nsize = '2MiB'\njobs = 2\ndepth = 4\ncontent = 'verify'";
    let (measured, _) = run(latency(50), text);
    let good = measured.verification.unwrap();
    assert_eq!(good.wrong_sectors, 0, "{:?}", good.mismatches.first());
    assert!(good.checked_bytes > 1 << 20, "{}", good.checked_bytes);

    // Write once over, damage one byte behind the bank's back, read.
    let memory = MemoryBuffers::new(8, 1 << 20);
    let mut bank = MemoryBank::new(vec![latency(50)], memory.clone());
    let text = "stop = { bytes = '2MiB' }\n[[stream]]\nname = 'v'\nwrite = 1\nblock = '64KiB'\nsize = '2MiB'\ncontent = 'verify'";
    let workload = Workload::from_toml(text).unwrap();
    let plan = Plan::new(&workload, bank.drives()).unwrap();
    let mut bank_with_damage = Damaging { bank: &mut bank, at: 1_234_567, reads: 0 };
    let mut engine = Engine::new(&plan, &mut bank_with_damage, &memory, vec![BufferId(0)]);
    engine.begin(Instant::START);
    let mut closed = Vec::new();
    while !engine.step(&mut closed).unwrap() {}
    let found = engine.verification().unwrap();
    assert_eq!((found.checked_bytes, found.wrong_sectors), (2 << 20, 1));
    assert_eq!((found.mismatches[0].offset, found.mismatches[0].bytes), (1_234_567, 1));
}

/// Changes one byte on the medium before the first read.
struct Damaging<'a> {
    bank: &'a mut MemoryBank,
    at: u64,
    reads: u32,
}

impl Bank for Damaging<'_> {
    fn drives(&self) -> &[base::Geometry] {
        self.bank.drives()
    }
    fn now(&self) -> Instant {
        self.bank.now()
    }
    fn submit(&mut self, command: base::Command) -> Result<(), base::Full> {
        if matches!(command.operation, base::Operation::Read { .. }) {
            self.reads += 1;
            if self.reads == 1 {
                let byte = self.bank.peek(DriveId(0), self.at, 1)[0];
                self.bank.poke(DriveId(0), self.at, &[byte ^ 1]);
            }
        }
        self.bank.submit(command)
    }
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<base::Completion>,
    ) -> Result<(), base::BankError> {
        self.bank.wait(until, done)
    }
}

#[test]
fn jobs_that_share_a_shallow_drive_all_get_their_turn() {
    let drive = MemoryDrive { depth_max: 4, ..latency(100) };
    let text = "stop = { time = '1s' }\n[[stream]]\nname = 'a'\nread = 1\nblock = '4KiB'\ndepth = 32\n[[stream]]\nname = 'b'\nread = 1\nblock = '4KiB'\ndepth = 8\n[[stream]]\nname = 'c'\nread = 1\nblock = '4KiB'\nrate = '10000/s'\ndepth = 2";
    let (measured, _) = run(drive, text);
    for stream in ["a", "b", "c"] {
        let result = measured.result(stream, Verb::Read).unwrap();
        assert!(result.count > 5_000, "{stream}: {} of 40,000", result.count);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is asked, every command is answered once, nothing leaves its region, and the same seed does the same.
    #[test]
    fn any_workload_runs_to_its_end_and_does_so_again(
        seed in 1u64..1000,
        depth in 1u32..9,
        jobs in 1u32..4,
        pattern in prop::sample::select(vec!["sequential", "random", "zipf:1.1", "hot:10/90"]),
        block in prop::sample::select(vec!["4KiB", "64KiB", "4KiB:3,32KiB:1"]),
        weights in (0u32..4, 0u32..4, 0u32..2).prop_filter("something", |(r, w, t)| r + w + t > 0),
        pace in prop::sample::select(vec!["", "rate = '3000/s'", "rate = '20MB/s'\narrival = 'poisson'", "rate = '1000/s'\narrival = 'bursts:8'"]),
        latency_us in 1u64..2000,
        depth_max in 1u32..40,
        content in prop::sample::select(vec!["random", "compressible:40", "verify"]),
    ) {
        let (read, write, trim) = weights;
        let text = format!(
            "seed = {seed}\ninterval = '20ms'\nstop = {{ time = '200ms' }}\n[[stream]]\nname = 's'\nread = {read}\nwrite = {write}\ntrim = {trim}\npattern = '{pattern}'\nblock = '{block}'\nfrom = '1MiB'\nsize = '3MiB'\ndepth = {depth}\njobs = {jobs}\ncontent = '{content}'\n{pace}"
        );
        let drive = MemoryDrive { depth_max, capacity_bytes: 8 << 20, rate: Some(Rate(500e6)), ..latency(latency_us) };
        let memory = MemoryBuffers::new(64, 1 << 20);
        let mut bank = MemoryBank::new(vec![drive.clone()], memory.clone());
        let (first, intervals) = run_on(&mut bank, &memory, &text);
        prop_assert!(bank.peek(DriveId(0), 0, 1 << 20).iter().all(|&b| b == 0), "before the region");
        prop_assert!(bank.peek(DriveId(0), 4 << 20, 4 << 20).iter().all(|&b| b == 0), "behind it");
        prop_assert_eq!(first.error_count(), 0);
        prop_assert_eq!(first.verification.as_ref().map_or(0, |v| v.wrong_sectors), 0);
        prop_assert_eq!(first.results.iter().map(|r| r.count).sum::<u64>(), intervals.iter().map(Interval::count).sum::<u64>());
        for pair in intervals.windows(2) {
            prop_assert_eq!(pair[0].start + pair[0].length, pair[1].start);
        }
        let (second, _) = run(drive, &text);
        prop_assert_eq!(first, second);
    }
}

/// A bank that notes which writes were forced.
struct Noting {
    bank: MemoryBank,
    forced: Vec<bool>,
}

impl Bank for Noting {
    fn drives(&self) -> &[base::Geometry] {
        self.bank.drives()
    }
    fn now(&self) -> Instant {
        self.bank.now()
    }
    fn submit(&mut self, command: base::Command) -> Result<(), base::Full> {
        if let base::Operation::Write { fua, .. } = command.operation {
            self.forced.push(fua);
        }
        self.bank.submit(command)
    }
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<base::Completion>,
    ) -> Result<(), base::BankError> {
        self.bank.wait(until, done)
    }
}

#[test]
fn a_stream_with_fua_forces_each_of_its_writes_and_a_stream_without_none() {
    let forced = |fua: &str| {
        let text = format!("stop = {{ bytes = '1MiB' }}\n[[stream]]\nwrite = 1\nread = 1\n{fua}");
        let memory = MemoryBuffers::new(1, 1 << 20);
        let bank = MemoryBank::new(vec![latency(10)], memory.clone());
        let mut bank = Noting { bank, forced: Vec::new() };
        let workload = Workload::from_toml(&text).unwrap();
        assert_eq!(Workload::from_toml(&workload.to_toml()).as_ref(), Ok(&workload));
        let plan = Plan::new(&workload, bank.drives()).unwrap();
        let mut engine = Engine::new(&plan, &mut bank, &memory, vec![BufferId(0)]);
        engine.begin(Instant::START);
        while !engine.step(&mut Vec::new()).unwrap() {}
        drop(engine);
        assert!(!bank.forced.is_empty());
        bank.forced
    };
    assert!(forced("fua = true").iter().all(|&fua| fua));
    assert!(forced("").iter().all(|&fua| !fua));
    let nothing = Workload::from_toml("stop = { time = '1s' }\n[[stream]]\nread = 1\nfua = true");
    let drives = MemoryBank::new(vec![latency(10)], MemoryBuffers::new(1, 4096)).drives().to_vec();
    let refused = Plan::new(&nothing.unwrap(), &drives).unwrap_err().to_string();
    assert!(refused.contains("fua") && refused.contains("writes nothing"), "{refused}");
}

/// A bank that notes where commands go, and may return completions one at a time.
struct Ordered {
    bank: MemoryBank,
    one_at_a_time: bool,
    kept: std::collections::VecDeque<base::Completion>,
    most_at_once: usize,
    commands: Vec<(base::DriveId, base::Operation)>,
}

impl Bank for Ordered {
    fn drives(&self) -> &[base::Geometry] {
        self.bank.drives()
    }
    fn now(&self) -> Instant {
        self.bank.now()
    }
    fn submit(&mut self, command: base::Command) -> Result<(), base::Full> {
        let operation = match command.operation {
            // Which of its buffers a job takes makes no difference.
            base::Operation::Read { offset, length, .. } => {
                base::Operation::Read { offset, length, buffer: BufferId(0) }
            }
            base::Operation::Write { offset, length, fua, .. } => {
                base::Operation::Write { offset, length, buffer: BufferId(0), fua }
            }
            other => other,
        };
        self.commands.push((command.drive, operation));
        self.bank.submit(command)
    }
    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<base::Completion>,
    ) -> Result<(), base::BankError> {
        if self.kept.is_empty() {
            let mut all = Vec::new();
            self.bank.wait(until, &mut all)?;
            self.most_at_once = self.most_at_once.max(all.len());
            self.kept.extend(all);
        }
        let count = if self.one_at_a_time { 1.min(self.kept.len()) } else { self.kept.len() };
        done.extend(self.kept.drain(..count));
        Ok(())
    }
}

#[test]
fn commands_are_the_same_whether_completions_come_together_or_one_at_a_time() {
    let text = "stop = { bytes = '64MiB' }\n\
        [[stream]]\nname = 'a'\nread = 2\nwrite = 1\npattern = 'random'\nblock = '4KiB'\ndepth = 7\n\
        [[stream]]\nname = 'b'\nread = 1\nblock = '64KiB'\ndepth = 4\n";
    let commands = |one_at_a_time: bool| {
        let memory = MemoryBuffers::new(64, 1 << 20);
        let bank = MemoryBank::new(vec![latency(100), latency(100)], memory.clone());
        let (kept, commands) = (std::collections::VecDeque::new(), Vec::new());
        let mut bank = Ordered { bank, one_at_a_time, kept, most_at_once: 0, commands };
        let workload = Workload::from_toml(text).unwrap();
        let plan = Plan::new(&workload, bank.drives()).unwrap();
        let buffers = (0..64).map(BufferId).collect();
        let mut engine = Engine::new(&plan, &mut bank, &memory, buffers);
        engine.begin(Instant::START);
        while !engine.step(&mut Vec::new()).unwrap() {}
        drop(engine);
        assert!(bank.most_at_once > 4, "{}", bank.most_at_once);
        bank.commands
    };
    let together = commands(false);
    assert!(together.len() > 1_000);
    assert!(together == commands(true));
}
