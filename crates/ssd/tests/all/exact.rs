//! The simulated drive held to a slow reference that shares nothing with it but the drive's parameters: queues, event by event.

mod product;
mod queues;
mod reads;

use crate::long::long;
use base::Random;
use longtake_ssd::Spec;
use reads::Outcome;

/// How far commands a second, and latencies, may be from the reference's.
const RATE_TOLERANCE: f64 = 0.002;
const LATENCY_TOLERANCE: f64 = 0.005;

/// A drive for reading, on so many dies.
fn drive(dies: u32) -> Spec {
    let mut spec = crate::drives::small();
    spec.controller.depth = 256;
    spec.flash.channels = dies.min(8);
    spec.flash.dies_per_channel = dies / spec.flash.channels;
    spec.capacity_bytes = u64::from(dies) * (64 << 20);
    spec.buffer.bytes = 64 << 20;
    spec
}

/// Offsets of reads, in bytes: random, or one behind the other.
fn offsets(spec: &Spec, bytes: u64, random: bool) -> impl FnMut() -> u64 + use<> {
    let places = spec.capacity_bytes / bytes;
    let mut numbers = Random::new(11);
    let mut last = places - 1;
    move || {
        last = if random { numbers.below(places) } else { (last + 1) % places };
        last * bytes
    }
}

fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(off.abs() <= tolerance, "{what}: {found}, not {expected} ({:+.3} %)", off * 100.0);
}

/// The same reads on the product and on the reference.
struct Pair {
    what: String,
    found: Outcome,
    exact: Outcome,
}

impl Pair {
    /// Runs both; their rates and mean latencies must agree.
    fn new(spec: &Spec, depth: usize, bytes: u32, random: bool, commands: u64) -> Self {
        let order = if random { "random" } else { "sequential" };
        let what = format!("{bytes} bytes {order} at depth {depth} on {} dies", spec.flash.dies());
        let next = || offsets(spec, u64::from(bytes), random);
        let exact = reads::closed_loop(spec, depth, bytes, commands, next());
        let found = product::closed_loop(spec, depth, bytes, commands, next());
        assert_near(&what, found.commands_per_s, exact.commands_per_s, RATE_TOLERANCE);
        let mean = |outcome: &Outcome| outcome.latencies.mean_ns().expect("there are commands");
        assert_near(&format!("{what}, mean"), mean(&found), mean(&exact), RATE_TOLERANCE);
        Self { what, found, exact }
    }

    /// A percentile must agree, to no more than chance in its rank: of so many standard deviations of a binomial count, in
    /// both runs. Where few commands wait, latencies have gaps and percentiles jump.
    fn agrees_at(&self, percent: f64, deviations: f64) {
        let beyond = 1.0 - percent / 100.0;
        let commands = self.exact.latencies.count() as f64;
        let rank = 100.0 * deviations * (2.0 * beyond * (1.0 - beyond) / commands).sqrt();
        let at = |outcome: &Outcome, percent: f64| outcome.latencies.at(percent).as_nanos() as f64;
        assert!(self.exact.latencies.percentile(percent).is_some(), "{}: too few", self.what);
        let found = at(&self.found, percent);
        let (least, most) =
            (at(&self.exact, percent - rank), at(&self.exact, (percent + rank).min(100.0)));
        assert_near(
            &format!("{}, {percent} %", self.what),
            found,
            found.clamp(least, most),
            LATENCY_TOLERANCE,
        );
    }
}

#[test]
fn small_random_reads_are_served_as_the_reference_serves_them() {
    for dies in [1, 8, 32, 64] {
        for depth in [1, 4, 32, 256] {
            let pair = Pair::new(&drive(dies), depth, 4096, true, 100_000);
            for percent in [10.0, 50.0, 90.0, 99.0] {
                pair.agrees_at(percent, 3.0);
            }
        }
    }
}

#[test]
fn large_reads_are_served_as_the_reference_serves_them() {
    for dies in [1, 8, 64] {
        for depth in [1, 4, 32] {
            for random in [true, false] {
                let pair = Pair::new(&drive(dies), depth, 128 << 10, random, 10_000);
                for percent in [10.0, 50.0, 90.0, 99.0] {
                    pair.agrees_at(percent, 3.0);
                }
            }
        }
    }
}

/// Two million reads tell a little more than four nines. Six take a hundred million, and minutes of the reference's.
#[test]
fn the_tail_is_the_references() {
    let (reads, percents): (_, &[f64]) = if long() {
        (100_000_000, &[50.0, 99.0, 99.9, 99.99, 99.999, 99.9999])
    } else {
        (2_000_000, &[50.0, 99.0, 99.9, 99.99, 99.995])
    };
    let pair = Pair::new(&drive(32), 32, 4096, true, reads);
    for &percent in percents {
        pair.agrees_at(percent, 0.0);
    }
}
