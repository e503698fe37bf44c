//! REC: a recorder's maker fills drives twice as fast as they take it, and asks how many of them 100 Gb/s need.

use base::Rate;

use super::basis::Basis;
use super::claim::{Claim, Published, Row};
use super::group;
use super::plot::{Curve, Plot, PlotAxis};
use super::stage::{DrivesNeeded, Effort, Stage};
use super::wrapping::{self, Bursts, Recorded, Wrapped};
use crate::analysis::fill::PhaseKind;
use crate::analysis::series::Point;
use crate::answer::Unit;
use crate::experiment::fill::{Fill, FillResult};
use crate::lab::{Lab, LabError};

const EVO_PLUS: &str = "samsung-970-evo-plus-1tb";
const PRO: &str = "samsung-970-pro-512gb";
const PM1725B: &str = "samsung-pm1725b-1.6tb";
const OPTANE: &str = "intel-optane-900p-480gb";
const P5510: &str = "intel-d7-p5510-3.84tb";
/// The document names no drive that shrinks its cache; this one is known to.
const QLC: &str = "qlc-1tb";

/// What the document claims.
pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(
        "REC-1",
        "Dividing the rate by the datasheet's write speed is wrong: that speed holds only for a small part of the capacity.",
    ),
    Claim::new(
        "REC-2",
        "A sustained write passes thresholds: full speed until the SLC cache is full; slower native writes; past a fill level \
         the cache shrinks and copying slows the drive further; overwriting stale data slows it again.",
    )
    .contradicting(
        "By REC-7, REC-8, REC-10 and REC-11 four of the document's own five drives overwrite at the rate at which they fill.",
    ),
    Claim::new(
        "REC-3",
        "Overwriting is slow because a page is programmed only after its whole block was erased (example drive: pages of \
         2048 Kb, 256 to a block); blocks are erased in the background after a trim.",
    ),
    Claim::new(
        "REC-4",
        "A ring recorder wraps when full: it gets no chance to trim early, and leaves the drive no idle time to erase.",
    ),
    Claim::new(
        "REC-5",
        "Two ways out: stop when full; or trim ahead of the head, with enough drives that each has time to spare for erasing.",
    ),
    Claim::new(
        "REC-6",
        "The benchmark: no file system, always a write under way, an empty drive filled as fast as it takes data, then filled \
         again; buffers of 256 KB or more on the Gen4 drive.",
    ),
    Claim::new(
        "REC-7",
        "Samsung 970 EVO Plus 1 TB: \"up to 3.3 GB/s\"; measured 2.7-2.8 GB/s until the SLC cache is full, then about 1.6 GB/s; \
         overwriting holds 1.6 GB/s; 100 Gb/s needs at least 8.",
    ),
    Claim::new(
        "REC-8",
        "Samsung 970 PRO 512 GB: \"up to 2.3 GB/s\"; 2.2 GB/s flat, the same when overwriting; 6 drives.",
    ),
    Claim::new(
        "REC-9",
        "Samsung PM1725b 1.6 TB: datasheet 2.0 GB/s; 1.7 GB/s most of the time, dips to 1.3 GB/s; 10 drives.",
    ),
    Claim::new("REC-10", "Intel Optane 480 GB: datasheet 2.2 GB/s; always 2.2 GB/s or more; 6 drives."),
    Claim::new(
        "REC-11",
        "Intel D7-P5510 3.84 TB: datasheet 3.3 GB/s; always 3.2 GB/s or more; 5 drives.",
    )
    .contradicting(
        "12.5 / 3.2 is 3.9, which rounds up to 4 drives, and 5 are published. 8 x 1.6 and 4 x 3.2 GB/s are the same 12.8 GB/s, so no \
         one rule of rounding with a margin gives both the 8 of REC-7 and the 5 here.",
    ),
    Claim::new(
        "REC-12",
        "100 GbE is at most 12.5 GB/s of packets, without the headers that a capture file adds to each.",
    ),
    Claim::new("REC-13", "A drive rated 1 DWPD can be overwritten about 1,800 times."),
    Claim::new(
        "REC-14",
        "12 enterprise drives of 30 TB hold about 8 hours of 100 GbE; at 1 DWPD they are worn out in a little over 1.5 years.",
    ),
    Claim::new(
        "REC-15",
        "Real links are not saturated all day; network-security installations keep 7-10 days of traffic, not 8 hours.",
    ),
];

/// 100 Gb/s.
const LINE: Rate = Rate(12.5e9);
const DAY_S: f64 = 86_400.0;
const YEAR_DAYS: f64 = 365.0;
/// Warranty that DWPD counts in.
const WARRANTY_YEARS: f64 = 5.0;

/// A level this close to the datasheet's speed holds it.
const HOLDS: f64 = 0.9;
/// Fills every drive twice, and computes.
pub(super) fn reproduce(stage: &mut Stage<'_>) -> Result<(Vec<Row>, Vec<Plot>), LabError> {
    // A part of a drive shows the same levels. The medium of Optane is written in place: it has no state that more of it would
    // change, and many small accesses to each block.
    let (part, in_place) = match stage.effort() {
        Effort::Quick => (0.2, 0.02),
        Effort::Usual => (1.0, 0.05),
        Effort::Long => (1.0, 1.0),
    };
    let only = |_: &mut Lab<'_>, result| Ok(result);
    let bursts = |lab: &mut Lab<'_>, result| Ok((result, Bursts::measure(lab)?));
    // Caches are of a size of their own, so drives with one are whole.
    let evo = filled(stage, EVO_PLUS, 1.0, only)?;
    let (pro, pro_bursts) = filled(stage, PRO, part, bursts)?;
    let pm1725b = filled(stage, PM1725B, part, only)?;
    let optane = filled(stage, OPTANE, in_place, only)?;
    let p5510 = filled(stage, P5510, part, only)?;
    let (qlc, qlc_bursts) = filled(stage, QLC, 1.0, bursts)?;
    // 3D XPoint is written in place and never erased.
    let rings: Vec<Wrapped> = [&evo, &pro, &pm1725b, &p5510]
        .into_iter()
        .map(|drive| Wrapped::record(stage, &drive.to_record()))
        .collect::<Result<_, LabError>>()?;
    let row = |id, basis| group::row(CLAIMS, id, basis);
    let all = [&evo, &pro, &pm1725b, &optane, &p5510];
    let mut rows = vec![
        datasheet(row("REC-1", &evo.basis), &evo),
        over_stale_data(thresholds(row("REC-2", &qlc.basis), &qlc), &[&pro, &pm1725b, &p5510]),
        wrapping::erasing(row("REC-3", &pro.basis), &rings, &pro_bursts),
        wrapping::no_time(row("REC-4", &qlc.basis), &rings, &qlc_bursts),
        wrapping::ways_out(row("REC-5", &qlc.basis), &rings, &qlc_bursts),
        benchmark(row("REC-6", &Basis::Arithmetic), &all),
    ];
    rows.extend(write_rates(all));
    rows.extend([
        line(row("REC-12", &Basis::Arithmetic)),
        overwrites(row("REC-13", &Basis::Arithmetic)),
        array(row("REC-14", &Basis::Arithmetic)),
        retention(row("REC-15", &Basis::Arithmetic)),
    ]);
    Ok((rows, vec![curves(&all, false), curves(&all, true)]))
}

/// Each drive's rates of writing, and how many drives 100 Gb/s takes at the slowest second of them.
fn write_rates(all: [&Filled; 5]) -> [Row; 5] {
    let [evo, pro, pm1725b, optane, p5510] = all;
    let row = |id, basis| group::row(CLAIMS, id, basis);
    let rate = Unit::BytesPerSecond;
    [
        drives(evo_rates(row("REC-7", &evo.basis), evo), evo, 8.0),
        drives(
            row("REC-8", &pro.basis)
                .figure("filling", Published::About(2.2e9), rate, pro.level(PhaseKind::Native))
                .figure(
                    "overwriting",
                    Published::About(2.2e9),
                    rate,
                    pro.level(PhaseKind::Overwrite),
                ),
            pro,
            6.0,
        ),
        drives(
            row("REC-9", &pm1725b.basis)
                .figure("most of the time", Published::About(1.7e9), rate, pm1725b.median())
                .figure("dips", Published::About(1.3e9), rate, pm1725b.worst()),
            pm1725b,
            10.0,
        ),
        drives(
            row("REC-10", &optane.basis).figure(
                "always",
                Published::AtLeast(2.2e9),
                rate,
                optane.worst(),
            ),
            optane,
            6.0,
        ),
        drives(
            row("REC-11", &p5510.basis).figure(
                "always",
                Published::AtLeast(3.2e9),
                rate,
                p5510.worst(),
            ),
            p5510,
            5.0,
        )
        .contradicted(
            "12.5 / 3.2 rounds up to 4; the document adds a drive here and none at 8 x 1.6 GB/s",
            (4.0, 4.0),
        ),
    ]
}

/// Into the cache, past it, and over what was written.
fn evo_rates(row: Row, evo: &Filled) -> Row {
    [
        ("into the cache", Published::Between(2.7e9, 2.8e9), PhaseKind::Fast),
        ("past the cache", Published::About(1.6e9), PhaseKind::Native),
        ("overwriting", Published::About(1.6e9), PhaseKind::Overwrite),
    ]
    .into_iter()
    .fold(row, |row, (what, published, kind)| {
        row.figure(what, published, Unit::BytesPerSecond, evo.level(kind))
    })
}

/// A drive that was filled twice.
struct Filled {
    name: &'static str,
    fill: FillResult,
    /// The part of its capacity that was simulated.
    part: f64,
    /// What its figures rest on.
    basis: Basis,
}

impl Filled {
    /// Bytes of the whole drive.
    fn whole(&self) -> f64 {
        self.fill.region_bytes as f64 / self.part
    }

    /// As a drive of a ring.
    fn to_record(&self) -> Recorded<'_> {
        let rate = self.median().unwrap_or(LINE.0);
        let Self { name: model, ref basis, part, .. } = *self;
        Recorded { model, basis, part, bytes: self.fill.region_bytes, rate }
    }

    fn level(&self, kind: PhaseKind) -> Option<f64> {
        self.fill.fill.rate(kind)
    }

    /// The slowest second of both passes.
    fn worst(&self) -> Option<f64> {
        self.fill.worst_second.map(|window| window.rate)
    }

    /// The rate that half of both passes' seconds exceed.
    fn median(&self) -> Option<f64> {
        let passes = [&self.fill.empty, &self.fill.overwrite];
        let seconds = passes.into_iter().flat_map(|points| by_second(points));
        let mut rates: Vec<f64> = seconds.map(|second| second.rate()).collect();
        rates.sort_unstable_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }
}

/// What was written in each second, whatever the intervals of the measurement: a dip is as deep in every figure and picture. The
/// last one may be shorter.
fn by_second(points: &[Point]) -> Vec<Point> {
    // Of a long series only some intervals are kept: each stands for what was written until the next.
    let ends = points.iter().skip(1).map(|next| next.start_ns);
    let ends = ends.chain(points.last().map(Point::end_ns));
    let mut seconds: Vec<Point> = Vec::new();
    for (point, end_ns) in points.iter().zip(ends) {
        let duration_ns = end_ns - point.start_ns;
        let bytes = (point.rate() * duration_ns as f64 / 1e9) as u64;
        match seconds.last_mut().filter(|second| second.duration_ns < SECOND_NS) {
            Some(second) => {
                second.duration_ns = end_ns - second.start_ns;
                second.bytes += bytes;
            }
            None => seconds.push(Point { start_ns: point.start_ns, duration_ns, bytes }),
        }
    }
    seconds
}

const SECOND_NS: u64 = 1_000_000_000;

/// Fills a drive twice and then does something more with it.
fn filled<T>(
    stage: &mut Stage<'_>,
    model: &'static str,
    part: f64,
    then: impl FnOnce(&mut Lab<'_>, Filled) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let label = format!("REC-{model}");
    let block_bytes = match stage.effort() {
        Effort::Quick => 8 << 20,
        Effort::Usual | Effort::Long => 1 << 20,
    };
    let basis = stage.basis(model)?;
    stage.on(&label, &DrivesNeeded::one(model).of_capacity(part), |lab| {
        // The drive is new, so there is nothing to trim.
        let options = Fill { trim: false, rests: Vec::new(), block_bytes, ..Fill::default() };
        let fill = options.run(lab)?;
        then(lab, Filled { name: model, fill, part, basis })
    })
}

fn datasheet(row: Row, evo: &Filled) -> Row {
    let datasheet = 3.3e9;
    let whole = evo.whole();
    let fast: u64 =
        evo.fill.empty.iter().filter(|p| p.rate() >= HOLDS * datasheet).map(|p| p.bytes).sum();
    let cache = evo.fill.fill.cache.found().map(|threshold| threshold.change.bytes as f64);
    let native = evo.level(PhaseKind::Native);
    let drive = row.basis.clone();
    // How much the cache holds is the datasheet's; how fast it takes data and shrinks changes none of it.
    let row = row.on(drive.without(&["cache.program_us", "cache.shrink_from", "cache.shrink_to"]));
    let row = row.words(
        "part of the 970 EVO Plus written at its fastest",
        "small",
        cache.is_some_and(|bytes| bytes < 0.1 * whole),
        cache.map_or("not known".to_owned(), |bytes| format!("{:.1} %", 100.0 * bytes / whole)),
    );
    let row = row.noted(format!(
        "{:.1} % of it at nine tenths of the datasheet's {:.1} GB/s or more",
        100.0 * fast as f64 / whole,
        datasheet / 1e9
    ));
    row.on(drive).words(
        "drives for 100 Gb/s by datasheet, and past the cache",
        "too few by datasheet",
        native.is_some_and(|native| count(datasheet) < count(native)),
        format!(
            "{} and {}",
            count(datasheet),
            native.map_or("not known".to_owned(), |native| count(native).to_string())
        ),
    )
}

fn thresholds(row: Row, qlc: &Filled) -> Row {
    let fill = &qlc.fill.fill;
    let seen = |what: Option<f64>| what.map_or("not seen".to_owned(), gigabytes);
    let (fast, native) = (qlc.level(PhaseKind::Fast), qlc.level(PhaseKind::Native));
    let (shrunk, over) = (qlc.level(PhaseKind::Shrunk), qlc.level(PhaseKind::Overwrite));
    let slower = |before: Option<f64>, after: Option<f64>| {
        before.zip(after).is_some_and(|(before, after)| after < before)
    };
    let at = |found: Option<&crate::analysis::fill::Threshold>| {
        found.map_or("not seen".to_owned(), |t| format!("at {:.0} % full", 100.0 * t.fill))
    };
    row.words(
        "(a), (b): a cache that fills (1 TB of QLC)",
        "slower",
        fill.cache.found().is_some() && slower(fast, native),
        format!("{} to {}, {}", seen(fast), seen(native), at(fill.cache.found())),
    )
    .words(
        "(c): a cache that shrinks",
        "slower again",
        fill.shrink.found().is_some() && slower(native, shrunk),
        format!("{}, {}", seen(shrunk), at(fill.shrink.found())),
    )
    .words("(d): overwriting", "slower than past that level", slower(shrunk, over), seen(over))
    .contradicted_in_words(
        "by then the simulated drive has no cache left, and it erases a block in a thousandth of the time in which it programs it",
    )
}

/// Overwriting drives that have no cache to fill or to shrink, so that nothing else differs between their first fill and the next.
fn over_stale_data(row: Row, drives: &[&Filled]) -> Row {
    let levels =
        |filled: &&Filled| filled.level(PhaseKind::Native).zip(filled.level(PhaseKind::Overwrite));
    let levels: Vec<(f64, f64)> = drives.iter().filter_map(levels).collect();
    let slower = levels.len() == drives.len()
        && levels.iter().all(|&(empty, stale)| stale * wrapping::VISIBLY < empty);
    let pairs: Vec<String> = levels
        .iter()
        .map(|&(empty, stale)| format!("{} to {}", gigabytes(empty), gigabytes(stale)))
        .collect();
    let basis = drives.iter().fold(Basis::Arithmetic, |basis, drive| basis.and(&drive.basis));
    row.on(basis)
        .words(
            "(d): overwriting the document's drives without a cache: 970 PRO, PM1725b, D7-P5510",
            "slower than filling",
            slower,
            pairs.join(", "),
        )
        .contradicted_in_words(
            "the experiment finds that erasing stale blocks takes no more of the flash's time than REC-3 says",
        )
}

fn benchmark(row: Row, all: &[&Filled]) -> Row {
    let whole = |filled: &&Filled| {
        let fill = &filled.fill;
        fill.shares.iter().sum::<u64>() == fill.region_bytes && !fill.overwrite.is_empty()
    };
    let done = all.iter().filter(|filled| whole(filled)).count();
    let block = all.iter().map(|filled| filled.fill.block_bytes).min().unwrap_or(0);
    let parts = all.iter().filter(|filled| filled.part < 1.0);
    let parts: Vec<String> =
        parts.map(|filled| format!("{} of {}", filled.part, filled.name)).collect();
    let row = row.words(
        "drives filled completely, twice",
        "all",
        done == all.len(),
        format!("{done} of {}, in blocks of {} KiB", all.len(), block >> 10),
    );
    if parts.is_empty() {
        row
    } else {
        row.noted(format!("simulated with a part of their capacity: {}", parts.join(", ")))
    }
}

/// How many drives of a rate 100 Gb/s need.
fn count(rate: f64) -> u64 {
    (LINE.0 / rate).ceil() as u64
}

/// One rule for all drives: the line's rate divided by what the slowest second took, rounded up.
fn drives(row: Row, filled: &Filled, published: f64) -> Row {
    let Some(worst) = filled.worst() else {
        return row.figure("drives for 100 Gb/s", Published::Exactly(published), Unit::Count, None);
    };
    let needed = count(worst);
    row.figure("drives for 100 Gb/s", Published::Exactly(published), Unit::Count, needed as f64)
        .noted(format!(
            "{:.1} GB/s / {:.2} GB/s (the slowest second) = {:.2}, rounded up",
            LINE.0 / 1e9,
            worst / 1e9,
            LINE.0 / worst
        ))
}

fn line(row: Row) -> Row {
    let bytes = 100e9 / 8.0;
    row.figure("100 Gb/s in bytes", Published::AtMost(12.5e9), Unit::BytesPerSecond, bytes)
        .noted("100 x 10^9 / 8")
}

fn overwrites(row: Row) -> Row {
    let times = YEAR_DAYS * WARRANTY_YEARS;
    row.figure("overwrites", Published::About(1800.0), Unit::Count, times)
        .noted("1 a day x 365 x 5 years of warranty")
}

fn array(row: Row) -> Row {
    let capacity = 12.0 * 30e12;
    let seconds = capacity / LINE.0;
    let years = YEAR_DAYS * WARRANTY_YEARS * seconds / DAY_S / YEAR_DAYS;
    row.figure("time to fill it", Published::About(8.0 * 3600e9), Unit::Nanoseconds, seconds * 1e9)
        .noted("12 x 30 TB / 12.5 GB/s")
        .figure("years until worn out", Published::Between(1.5, 1.75), Unit::Count, years)
        .noted("1,825 overwrites x 8 h")
}

fn retention(row: Row) -> Row {
    let load = |days: f64| 100.0 * 12.0 * 30e12 / (days * DAY_S) / LINE.0;
    let (most, least) = (load(7.0), load(10.0));
    row.words(
        "average load at which the array of REC-14 keeps 7 to 10 days",
        "far below the line's",
        most < 10.0,
        format!("{least:.1} to {most:.1} % of 100 Gb/s"),
    )
}

fn gigabytes(rate: f64) -> String {
    format!("{:.2} GB/s", rate / 1e9)
}

/// The document's picture: write rate over the part of the drive that is written.
fn curves(all: &[&Filled], overwriting: bool) -> Plot {
    let curve = |filled: &&Filled| {
        let fill = &filled.fill;
        let seconds = by_second(if overwriting { &fill.overwrite } else { &fill.empty });
        let written: Vec<f64> = seconds
            .iter()
            .scan(0.0, |sum, second| {
                *sum += second.bytes as f64;
                Some(*sum)
            })
            .collect();
        let whole = written.last().copied().unwrap_or(1.0);
        let rates = seconds.iter().map(|second| second.rate() / 1e9);
        Curve::new(filled.name, written.iter().map(|at| 100.0 * at / whole).zip(rates))
    };
    let (title, caption) = if overwriting {
        ("Overwriting", "Each drive written again over stale data, without a trim or a rest.")
    } else {
        (
            "Filling an empty drive",
            "Each drive written from empty to full as fast as it takes it. The first part of the drive with a cache is faster.",
        )
    };
    let x = PlotAxis::linear("Written of the drive", "%");
    let plot = Plot::lines(
        title,
        caption,
        x,
        PlotAxis::linear("Write rate", "GB/s"),
        all.iter().map(curve).collect(),
    );
    plot.level(LINE.0 / 8e9, "an eighth of 100 Gb/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_of_a_tenth_of_a_second_is_a_tenth_of_its_second_whatever_the_intervals() {
        // Three seconds at 1 GB/s, but for 100 ms in the second of them.
        let rate = |at_ms: u64| if (1_400..1_500).contains(&at_ms) { 0 } else { 1_000_000 };
        for interval_ms in [10, 50, 100] {
            let point = |start_ms: u64| Point {
                start_ns: start_ms * 1_000_000,
                duration_ns: interval_ms * 1_000_000,
                bytes: interval_ms * rate(start_ms),
            };
            let points: Vec<Point> = (0..3_000).step_by(interval_ms as usize).map(point).collect();
            let seconds = by_second(&points);
            let rates: Vec<f64> = seconds.iter().map(Point::rate).collect();
            assert_eq!(rates, [1e9, 0.9e9, 1e9], "{interval_ms} ms");
        }
    }
}
