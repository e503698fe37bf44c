//! Trials from a profile: its figures, and the steps by which the experiments that tell such figures measure them.

use base::{Duration, Rate};
use load::quantity::{Size, Time};
use load::workload::{Blocks, Pattern, Stop, Stream};
use load::{Verb, Workload};
use profile::{Direction, FillCurve, Known, Profile, name};

use super::folder::{MIX_BLOCKS, STREAM_BLOCKS, STREAM_DEPTHS};
use super::{Begins, Measured, NOISE, POINTS_MAX, Shows, Trial, ends, parts};
use crate::analysis::{Point, Series};
use crate::answer::Unit;
use crate::fitting::Target;

/// The region that points of reads and writes use, as the experiments do.
const REGION: u64 = 8 << 30;
const POINT: Duration = Duration::from_secs(5);
/// Time of a round of random writes in SNIA's specification.
const ROUND: Duration = Duration::from_secs(60);
/// Intervals of a pass over the drive, and the rate by which they are made so long where none is known.
const INTERVALS: u64 = 500;
/// Intervals until a cache is full, at least.
const CACHE_INTERVALS: u64 = 20;
const NATIVE: Rate = Rate(1e9);
const RANDOM_DEPTHS: [u32; 4] = [1, 4, 16, 32];

/// What a profile says that can be asked of a model too.
pub fn of_profile(profile: &Profile) -> Measured {
    let mut measured = Measured::default();
    fill(profile, &mut measured);
    points(profile, &mut measured);
    rounds(profile, &mut measured);
    measured
}

impl Measured {
    /// Adds a figure to come close to if the profile has it.
    fn aim(&mut self, profile: &Profile, name: &str) -> bool {
        let Some(known) = profile.known(name).filter(|known| known.value > 0.0) else {
            return false;
        };
        let (value, unit) = (known.value, known.unit);
        self.targets.push(Target { name: name.to_owned(), value, unit, noise: noise(known) });
        true
    }

    fn trial(&mut self, name: &str, stream: Stream, stop: Stop, shows: Shows) {
        let workload = Workload {
            name: name.to_owned(),
            seed: 1,
            interval: Time(Duration::from_secs(1)),
            warm_up: Time::default(),
            stop,
            streams: vec![stream],
        };
        let (begins, rest) = (Begins::AsLeft, Duration::ZERO);
        self.trials.push(Trial { name: name.to_owned(), begins, rest, workload, shows });
    }
}

/// A range of 95 % is two deviations to each side.
fn noise(known: &Known) -> f64 {
    known.range.map_or(NOISE, |(low, high)| ((high - low) / 4.0 / known.value).max(NOISE / 2.0))
}

const fn bytes(bytes: u64) -> Stop {
    Stop { bytes: Some(Size(bytes)), time: None, steady: None }
}

const fn time(time: Duration) -> Stop {
    Stop { time: Some(Time(time)), bytes: None, steady: None }
}

fn once(block: u64, size: u64, depth: u32) -> Stream {
    let (block, size) = (Blocks::of(block), Some(Size(size)));
    Stream { write: 1, block, size, depth, align: Some(Size(4096)), ..Stream::default() }
}

fn fill(profile: &Profile, measured: &mut Measured) {
    let of_empty = [
        name::WRITE_FAST,
        name::WRITE_CACHE,
        name::WRITE_NATIVE,
        name::WRITE_SHRINK,
        name::WRITE_SHRUNK,
        name::WRITE_MEAN,
    ];
    let levels = of_empty.map(|name| measured.aim(profile, name)).contains(&true);
    let empty = levels || profile.fill.is_some();
    let overwrite = measured.aim(profile, name::WRITE_OVERWRITE);
    let whole = profile.capacity_bytes >> 20 << 20;
    let cliff = profile.cache().map(|cache| cache.0);
    if let Some(curve) = &profile.fill {
        measured.targets.extend(parts(&series_of(curve), &ends(true, whole, cliff)));
    }
    for (name, empty) in [
        (empty || overwrite).then_some(("fill/empty", true)),
        overwrite.then_some(("fill/overwrite", false)),
    ]
    .into_iter()
    .flatten()
    {
        let shows = Shows::Curve { empty, ends: ends(empty, whole, cliff) };
        let native = profile.native_write().or(profile.overwrite()).unwrap_or(NATIVE);
        measured.trial(name, once(1 << 20, whole, 8), bytes(whole), shows);
        if let Some(trial) = measured.trials.last_mut() {
            let pass_ns = native.time_for(whole).as_nanos();
            // A cache that is full in a small part of the pass must show, too.
            let cached = profile.cache().zip(profile.fast_write()).filter(|_| empty);
            let cache_ns = cached.map(|(cache, fast)| fast.time_for(cache.0).as_nanos());
            let interval_ns =
                (pass_ns / INTERVALS).min(cache_ns.unwrap_or(u64::MAX) / CACHE_INTERVALS);
            trial.workload.interval = Time(Duration::from_nanos(interval_ns));
        }
    }
}

/// A curve as if it had been measured in so many intervals of equal bytes.
fn series_of(curve: &FillCurve) -> Series {
    let mut start_ns = 0;
    let points = curve.pieces().map(|(bytes, rate)| {
        let duration_ns = ((bytes as f64 * 1e9 / rate) as u64).max(1);
        let point = Point { start_ns, duration_ns, bytes };
        // A curve that takes longer than 64 bits count is no series.
        start_ns = u64::saturating_add(start_ns, duration_ns);
        point
    });
    Series::new(points.collect()).unwrap_or_default().by_equal_bytes(POINTS_MAX)
}

fn points(profile: &Profile, measured: &mut Measured) {
    let region = REGION.min(profile.capacity_bytes >> 20 << 20);
    let mut points: Vec<(String, Stream, Verb, Unit)> = Vec::new();
    let read = |block, depth, pattern| Stream {
        read: 1,
        block: Blocks::of(block),
        depth,
        pattern,
        size: Some(Size(region)),
        ..Stream::default()
    };
    let rate = Unit::BytesPerSecond;
    let largest = read(1 << 20, 16, Pattern::Sequential);
    points.push((name::READ_SEQUENTIAL.to_owned(), largest, Verb::Read, rate));
    for block in STREAM_BLOCKS {
        for depth in STREAM_DEPTHS {
            let stream = read(block, depth, Pattern::Sequential);
            points.push((
                name::stream_rate(Direction::Read, block, depth),
                stream,
                Verb::Read,
                rate,
            ));
        }
    }
    for depth in RANDOM_DEPTHS {
        let stream = read(4096, depth, Pattern::Random);
        points.push((name::random_rate(4096, depth), stream, Verb::Read, rate));
    }
    for block in MIX_BLOCKS {
        let stream = Stream { jobs: 2, ..read(block, 32, Pattern::Random) };
        let name = format!("mix.{block}.r100.iops");
        points.push((name, stream, Verb::Read, Unit::CommandsPerSecond));
    }
    for block in STREAM_BLOCKS {
        for depth in STREAM_DEPTHS {
            let stream = once(block, region, depth);
            points.push((
                name::stream_rate(Direction::Write, block, depth),
                stream,
                Verb::Write,
                rate,
            ));
        }
    }
    points.retain(|(name, ..)| measured.aim(profile, name));
    if !points.is_empty() {
        let before = once(1 << 20, region, 8);
        measured.trial("prepare/drive-0", before, bytes(region), Shows::Nothing);
    }
    for (name, stream, verb, unit) in points {
        let shows = Shows::Rate { name: name.clone(), verb, unit };
        measured.trial(&name, stream, time(POINT), shows);
    }
}

fn rounds(profile: &Profile, measured: &mut Measured) {
    let count = profile.known("snia.round").map_or(0, |round| round.value.round() as usize);
    if count == 0 || !measured.aim(profile, "snia.write.iops") {
        return;
    }
    measured.notes.push(format!(
        "A profile doesn't say how long rounds of random writes took; they are thought to have taken {ROUND} each. \
         Give the folder of results for what was really done."
    ));
    let whole = profile.capacity_bytes >> 20 << 20;
    let purge = Stream { trim: 1, write: 0, ..once(256 << 20, whole, 1) };
    measured.trial("snia/purge-0", purge, bytes(whole), Shows::Nothing);
    for pass in 1..=2 {
        let stream = once(128 << 10, whole, 8);
        measured.trial(
            &format!("snia/precondition-{pass}-0"),
            stream,
            bytes(whole),
            Shows::Nothing,
        );
    }
    for number in 1..=count {
        let stream = Stream {
            pattern: Pattern::Random,
            jobs: 2,
            depth: 16,
            size: None,
            ..once(4096, whole, 16)
        };
        let shows = Shows::Round { number, of: count };
        measured.trial(&format!("snia/round-{number:02}-4096-r0"), stream, time(ROUND), shows);
    }
}
