//! QOS: one drive in two halves. A neighbour writes one of them while the other is read, with and without NVM Sets between.

mod peaks;

use base::Duration;
use load::Workload;
use load::measurement::{LatencySummary, Line, PERCENTILES, StreamResult};
use load::quantity::{Size, Time};
use load::workload::{Blocks, Pattern, Stop, Stream};
use load::{Measurement, Verb};

use super::basis::Basis;
use super::claim::{Claim, Published, Row};
use super::group;
use super::plot::{Curve, Plot, PlotAxis};
use super::stage::{Contents, DrivesNeeded, Effort, Stage};
use super::writers::Writers;
use crate::answer::Unit;
use crate::lab::{Lab, LabError};
use peaks::{Peaks, fastest_medium};

const DRIVE: &str = "memblaze-4tb";
const HORIZONTAL: &str = "memblaze-4tb-horizontal";
const VERTICAL: &str = "memblaze-4tb-vertical";
/// A drive of the fastest medium.
const FASTEST: &str = "intel-optane-900p-480gb";

/// What the document claims.
pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(
        "QOS-1",
        "Three ages of SSD performance: peak figures; low latency at any load; QoS when several users share one drive.",
    ),
    Claim::new(
        "QOS-2",
        "NVMe drives: near 6 GB/s read, near 4 GB/s write, 1 M IOPS; SATA is below 600 MB/s.",
    ),
    Claim::new(
        "QOS-3",
        "\"Sequential\" writes from several threads reach the flash as random writes and cause extra garbage collection.",
    ),
    Claim::new(
        "QOS-4",
        "Write latency: 10 us at best (data is safe in capacitor-backed memory), below 20 us in mainstream drives; read \
         latency: about 100 us on flash, about 10 us on the fastest media.",
    ),
    Claim::new(
        "QOS-5",
        "NVM Sets split the flash units into groups; a namespace over several sets gains bandwidth in proportion.",
    ),
    Claim::new(
        "QOS-6",
        "Two layouts for a drive of two sets: vertical (whole channels) and horizontal (some units of every channel); \
         baseline: all data on all units.",
    ),
    Claim::new(
        "QOS-7",
        "4 TB in two halves, one written sequentially, the other read 4 KB at random. Without sets the read latency wanders \
         between 200 and 250 us; with horizontal sets it is a flat 100 us: 2.25 x better.",
    ),
    Claim::new(
        "QOS-8",
        "At 99.9999 % the difference is 21 x; without sets the tail reaches 3, 5, 10 ms.",
    ),
    Claim::new(
        "QOS-9",
        "With sets the 4 KB random-read IOPS are 2 x, latency less than half, across queue depths, scaling linearly with depth.",
    ),
    Claim::new(
        "QOS-10",
        "Under heavy reads horizontal is better than vertical; under very light reads vertical is a little better; both are \
         10-20 x better than the baseline at the tail, from 99.99 % on.",
    ),
    Claim::new(
        "QOS-11",
        "Write bandwidth under the mixed load: the baseline passes 2 GB/s; a set with half the flash gives about 70 % of that; \
         vertical a little more than horizontal.",
    ),
    Claim::new(
        "QOS-12",
        "Compared with Open-Channel: better isolation still, far more complexity; sets are configured once.",
    ),
];

/// Of the drive's blocks so many are simulated, on all of its dies: what waits for what doesn't depend on the number of blocks.
const SHARE: f64 = 0.05;

/// Namespaces by place in the bank.
const WRITTEN: u16 = 0;
const READ: u16 = 1;

/// Reads under way. The document doesn't tell its own.
const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Where the document says nothing of depth.
const USUAL: u32 = 8;
/// Where writes beside reads are looked at.
const MIXED: u32 = 32;
const LIGHT: u32 = 4;
const HEAVY: u32 = 64;
/// As deep as reads still find a die of their own more often than not.
const LINEAR: u32 = 16;
/// Where percentiles are wanted.
const TAILS: [u32; 3] = [LIGHT, USUAL, HEAVY];

/// Reads of a point where only means are wanted.
const READS_FOR_MEANS: f64 = 5e4;
/// Slack, so that enough reads come for certain.
const SLACK: f64 = 1.05;
const NEEDED_FOR_SIX_NINES: f64 = 1e8;
const SIX_NINES: f64 = 99.9999;
const FOUR_NINES: f64 = 99.99;

/// Length of intervals: short enough to see an erase, and longer where there would be too many.
const INTERVAL: Duration = Duration::from_millis(100);
const LONG_INTERVAL: Duration = Duration::from_secs(1);
const INTERVALS_MAX: f64 = 4_000.0;

/// Measures the three layouts.
pub(super) fn reproduce(stage: &mut Stage<'_>) -> Result<(Vec<Row>, Vec<Plot>), LabError> {
    let peaks = Peaks::measure(stage)?;
    let fastest_ns = fastest_medium(stage)?;
    let writers = Writers::measure(stage, DRIVE)?;
    let alone = stage.basis(DRIVE)?;
    let none = Layout::measure(stage, "without sets", DRIVE)?;
    let horizontal = Layout::measure(stage, "horizontal sets", HORIZONTAL)?;
    let vertical = Layout::measure(stage, "vertical sets", VERTICAL)?;
    let all = Layouts { none, horizontal, vertical };
    let basis = stage.basis(DRIVE)?.and(&stage.basis(HORIZONTAL)?).and(&stage.basis(VERTICAL)?);
    let fastest = stage.basis(FASTEST)?;
    let row = |id| group::row(CLAIMS, id, &basis);
    let not_testable = |id, why: &str| row(id).on(Basis::not_testable(why));
    let rows = vec![
        not_testable("QOS-1", "it describes how drives developed, and gives no figure"),
        peaks.compare(row("QOS-2")),
        writers.compare(row("QOS-3").on(alone)),
        all.alone(row("QOS-4"), &fastest, fastest_ns),
        all.in_proportion(row("QOS-5")),
        not_testable("QOS-6", "it defines the layouts that QOS-7 to QOS-11 compare"),
        all.flat(row("QOS-7")),
        all.tail(row("QOS-8")),
        all.across_depths(row("QOS-9")),
        all.layouts(row("QOS-10")),
        all.writes(row("QOS-11")),
        not_testable("QOS-12", "no Open-Channel drive is simulated"),
    ];
    let plots = vec![
        all.time_plot(),
        all.percentile_plot(),
        all.iops_plot(),
        all.latency_plot(),
        all.write_plot(),
    ];
    Ok((rows, plots))
}

/// What was measured of one layout of the drive.
struct Layout {
    name: &'static str,
    /// Mean latencies of single commands alone, in nanoseconds.
    read_alone_ns: Option<f64>,
    write_alone_ns: Option<f64>,
    /// What the writer writes alone, in bytes a second.
    write_alone: Option<f64>,
    /// Reads beside the writer.
    points: Vec<Point>,
}

/// Reads of one depth beside the writer.
struct Point {
    depth: u32,
    iops: f64,
    reads: LatencySummary,
    write_bytes_per_s: f64,
    /// The reads' intervals.
    series: Vec<Line>,
}

impl Layout {
    fn measure(
        stage: &mut Stage<'_>,
        name: &'static str,
        model: &'static str,
    ) -> Result<Self, LabError> {
        let effort = stage.effort();
        let drive = DrivesNeeded::one(model).holding(Contents::Full).of_capacity(SHARE);
        stage.on(&format!("QOS-{model}"), &drive, |lab| {
            let read_alone = run(lab, "read-alone", SECOND, vec![reads(1)])?;
            let write_alone = run(lab, "write-alone", SECOND, vec![small_writes()])?;
            overwrite(lab)?;
            let writer = run(lab, "writer-alone", SECOND, vec![writes()])?;
            let mean = |of: &Measurement, stream, verb| {
                of.result(stream, verb).and_then(|result| result.response.mean_ns)
            };
            let points = DEPTHS.into_iter().map(|depth| Point::measure(lab, depth, effort));
            Ok(Self {
                name,
                read_alone_ns: mean(&read_alone, "reads", Verb::Read),
                write_alone_ns: mean(&write_alone, "small writes", Verb::Write),
                write_alone: writer.result("writes", Verb::Write).map(|result| result.bytes_per_s),
                points: points.collect::<Result<_, _>>()?,
            })
        })
    }

    fn at(&self, depth: u32) -> Option<&Point> {
        self.points.iter().find(|point| point.depth == depth)
    }

    fn iops(&self, depth: u32) -> Option<f64> {
        Some(self.at(depth)?.iops)
    }

    fn mean_ns(&self, depth: u32) -> Option<f64> {
        self.at(depth)?.reads.mean_ns
    }

    fn write(&self, depth: u32) -> Option<f64> {
        Some(self.at(depth)?.write_bytes_per_s)
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Random reads of 4 KiB.
fn reads(depth: u32) -> Stream {
    Stream {
        name: "reads".to_owned(),
        drives: vec![READ],
        pattern: Pattern::Random,
        block: Blocks::of(4096),
        read: 1,
        depth,
        ..Stream::default()
    }
}

/// Sequential writes as fast as the drive takes them.
fn writes() -> Stream {
    Stream {
        name: "writes".to_owned(),
        drives: vec![WRITTEN],
        write: 1,
        depth: 8,
        ..Stream::default()
    }
}

/// Writes of 4 KiB, one at a time.
fn small_writes() -> Stream {
    Stream { name: "small writes".to_owned(), block: Blocks::of(4096), depth: 1, ..writes() }
}

/// A step of so much time, the first interval left out.
fn run(
    lab: &mut Lab<'_>,
    name: &str,
    time: Duration,
    streams: Vec<Stream>,
) -> Result<Measurement, LabError> {
    let many = time.as_secs_f64() / INTERVAL.as_secs_f64() > INTERVALS_MAX;
    let interval = if many { LONG_INTERVAL } else { INTERVAL };
    let workload = Workload {
        name: name.to_owned(),
        seed: 1,
        interval: Time(interval),
        warm_up: Time(interval),
        stop: Stop { time: Some(Time(time)), ..Stop::default() },
        streams,
    };
    Ok(lab.step("neighbours", name, &workload)?.measurement)
}

/// Overwrites half of what the neighbour writes, several times the spare flash, so that from then on every block is erased before
/// it is written.
fn overwrite(lab: &mut Lab<'_>) -> Result<(), LabError> {
    let bytes = lab.drives()[usize::from(WRITTEN)].capacity_bytes / 2;
    let workload = Workload {
        name: "overwrite".to_owned(),
        seed: 1,
        interval: Time(LONG_INTERVAL),
        warm_up: Time::default(),
        stop: Stop { bytes: Some(Size(bytes)), ..Stop::default() },
        streams: vec![writes()],
    };
    lab.step("neighbours", "overwrite", &workload).map(|_| ())
}

impl Point {
    fn measure(lab: &mut Lab<'_>, depth: u32, effort: Effort) -> Result<Self, LabError> {
        let wanted = match effort {
            _ if !TAILS.contains(&depth) => READS_FOR_MEANS,
            Effort::Quick => 1e5,
            Effort::Usual => 1e6,
            Effort::Long if depth == USUAL => NEEDED_FOR_SIX_NINES,
            Effort::Long => 1e7,
        };
        // No layout takes longer for a read: 250 us, and a little for every other one under way.
        let seconds = wanted * SLACK * (250e-6 + f64::from(depth) * 1.2e-6) / f64::from(depth);
        let time = Duration::from_millis((seconds * 1e3).ceil() as u64);
        let streams = vec![reads(depth), writes()];
        let measurement = run(lab, &format!("beside-d{depth}"), time, streams)?;
        let reads = measurement.result("reads", Verb::Read);
        let writes = measurement.result("writes", Verb::Write);
        let rate = |result: Option<&StreamResult>, of: fn(&StreamResult) -> f64| {
            result.map_or(f64::NAN, of)
        };
        Ok(Self {
            depth,
            iops: rate(reads, |reads| reads.commands_per_s),
            reads: reads.map(|reads| reads.response.clone()).unwrap_or_default(),
            write_bytes_per_s: rate(writes, |writes| writes.bytes_per_s),
            series: measurement.series.into_iter().filter(|line| line.stream == 0).collect(),
        })
    }

    /// The lowest and the highest mean of an interval of [`INTERVAL`], in nanoseconds.
    fn wandering(&self) -> Option<(f64, f64)> {
        let means = self.series.iter().filter(|line| line.count > 0).map(|line| line.mean_ns);
        means.fold(None, |range: Option<(f64, f64)>, mean| {
            Some(range.map_or((mean, mean), |(low, high)| (low.min(mean), high.max(mean))))
        })
    }
}

/// By how much the reads at this percentile are shorter with sets than without, if both are known.
fn times_shorter(none: &Point, sets: &Point, percent: f64) -> Option<f64> {
    Some(none.reads.percentile(percent)? as f64 / sets.reads.percentile(percent)? as f64)
}

/// The drive without sets and with both kinds of them.
struct Layouts {
    none: Layout,
    horizontal: Layout,
    vertical: Layout,
}

impl Layouts {
    fn all(&self) -> [&Layout; 3] {
        [&self.none, &self.horizontal, &self.vertical]
    }

    fn alone(&self, row: Row, fastest: &Basis, fastest_ns: Option<f64>) -> Row {
        row.figure(
            "a write of 4 KiB alone",
            Published::Between(10e3, 20e3),
            Unit::Nanoseconds,
            self.none.write_alone_ns,
        )
        .figure(
            "a read of 4 KiB alone",
            Published::About(100e3),
            Unit::Nanoseconds,
            self.none.read_alone_ns,
        )
        .on(fastest.without(&["flash.program_us"]))
        .figure(
            "a read of 4 KiB alone on 3D XPoint",
            Published::About(10e3),
            Unit::Nanoseconds,
            fastest_ns,
        )
        .because(
            "controller and medium take 9 us of it, as the profile assumes, and the transfers of eight parts of a page the rest",
            (11e3, 14e3),
        )
    }

    fn in_proportion(&self, row: Row) -> Row {
        let over = |sets: &Layout| Some(self.none.write_alone? / sets.write_alone?);
        // Half of the dies program half as much, whatever their parameters.
        row.on(Basis::Arithmetic)
            .figure(
                "writes over both halves of the flash, over one half",
                Published::About(2.0),
                Unit::Count,
                over(&self.horizontal),
            )
            .noted("the drive without sets against one set, each with the writer alone")
    }

    fn flat(&self, row: Row) -> Row {
        let (none, sets) = (self.none.mean_ns(USUAL), self.horizontal.mean_ns(USUAL));
        let ratio = none.zip(sets).map(|(none, sets)| none / sets);
        let wanders = |layout: &Layout| {
            let (low, high) = layout.at(USUAL)?.wandering()?;
            Some(format!(
                "means over {INTERVAL} lie between {:.0} and {:.0} us; {USUAL} reads under way",
                low / 1e3,
                high / 1e3
            ))
        };
        row.figure(
            "mean read latency without sets",
            Published::Between(200e3, 250e3),
            Unit::Nanoseconds,
            none,
        )
        .noted(wanders(&self.none).unwrap_or_default())
        .figure("with horizontal sets", Published::About(100e3), Unit::Nanoseconds, sets)
        .noted(wanders(&self.horizontal).unwrap_or_default())
        .figure("without over with", Published::About(2.25), Unit::Count, ratio)
    }

    fn tail(&self, row: Row) -> Row {
        let both = self.none.at(USUAL).zip(self.horizontal.at(USUAL));
        let known = both.and_then(|(none, sets)| times_shorter(none, sets, SIX_NINES));
        let longest = self.none.at(USUAL).and_then(|point| point.reads.max_ns);
        let drive = row.basis.clone();
        let row = if known.is_some() {
            row
        } else {
            row.on(Basis::not_testable("99.9999 % takes 10^8 reads: --long measures it"))
        };
        row.figure(
            format!("without over with horizontal sets, at {SIX_NINES} %"),
            Published::About(21.0),
            Unit::Count,
            known,
        )
        .on(drive)
        .figure(
            "the longest read without sets",
            Published::Between(3e6, 10e6),
            Unit::Nanoseconds,
            longest.map(|ns| ns as f64),
        )
        .noted("a read that meets an erase waits for its end")
    }

    fn across_depths(&self, row: Row) -> Row {
        let over = |of: fn(&Layout, u32) -> Option<f64>, depth: u32| {
            Some(of(&self.horizontal, depth)? / of(&self.none, depth)?)
        };
        // Up to here a set's dies are enough for the reads under way.
        let linear = DEPTHS.into_iter().filter(|&depth| depth <= LINEAR);
        let iops = linear.clone().filter_map(|depth| over(Layout::iops, depth));
        let latency = linear.filter_map(|depth| over(Layout::mean_ns, depth));
        let scaling = |depth: u32| {
            let one = self.horizontal.iops(1)?;
            Some(self.horizontal.iops(depth)? / one / f64::from(depth))
        };
        let crowded = "a set has 32 dies, so some of 32 random reads share a die; without sets they spread over 64";
        row.figure(
            format!("IOPS with over without sets, the least of depths to {LINEAR}"),
            Published::About(2.0),
            Unit::Count,
            iops.clone().reduce(f64::min),
        )
        .figure("the most", Published::About(2.0), Unit::Count, iops.reduce(f64::max))
        .figure(
            format!("mean latency with over without sets, the most of depths to {LINEAR}"),
            Published::AtMost(0.5),
            Unit::Count,
            latency.reduce(f64::max),
        )
        .figure(
            format!("IOPS at depth {LINEAR} over {LINEAR} x those at 1"),
            Published::About(1.0),
            Unit::Count,
            scaling(LINEAR),
        )
        .figure(
            format!("IOPS at depth {MIXED} over {MIXED} x those at 1"),
            Published::About(1.0),
            Unit::Count,
            scaling(MIXED),
        )
        .because(crowded, (0.75, 0.9))
        .figure(
            format!("IOPS with over without sets at depth {MIXED}"),
            Published::About(2.0),
            Unit::Count,
            over(Layout::iops, MIXED),
        )
        .because(crowded, (1.6, 1.8))
    }

    fn layouts(&self, row: Row) -> Row {
        let sides = |depth: u32| {
            let text = |layout: &Layout| {
                let us = layout.mean_ns(depth).unwrap_or(f64::NAN) / 1e3;
                format!("{us:.1} us, {:.0} k IOPS", layout.iops(depth).unwrap_or(f64::NAN) / 1e3)
            };
            format!("horizontal {}; vertical {}", text(&self.horizontal), text(&self.vertical))
        };
        let faster = |depth: u32| {
            let pair = self.horizontal.iops(depth).zip(self.vertical.iops(depth));
            pair.map_or(f64::NAN, |(horizontal, vertical)| horizontal / vertical)
        };
        let deepest = DEPTHS[DEPTHS.len() - 1];
        let mut row = row
            .words("one read under way", "vertical a little better", faster(1) < 1.0, sides(1))
            .words(
                format!("{HEAVY} reads under way"),
                "horizontal better",
                faster(HEAVY) > 1.0,
                sides(HEAVY),
            )
            .words(
                format!("{deepest} reads under way"),
                "horizontal better",
                faster(deepest) > 1.0,
                sides(deepest),
            );
        for depth in [LIGHT, HEAVY] {
            for sets in [&self.horizontal, &self.vertical] {
                row = self.shorter_tail(row, depth, sets);
            }
        }
        row
    }

    /// How much shorter the tail of reads is in a set of their own.
    fn shorter_tail(&self, row: Row, depth: u32, sets: &Layout) -> Row {
        let both = self.none.at(depth).zip(sets.at(depth));
        let known = both.and_then(|(none, sets)| times_shorter(none, sets, FOUR_NINES));
        let drive = row.basis.clone();
        let row = if known.is_some() {
            row
        } else {
            row.on(Basis::not_testable("99.99 % takes 10^6 reads, which --quick doesn't wait for"))
        };
        row.figure(
            format!("{depth} reads under way, {FOUR_NINES} %: without over with {}", sets.name),
            Published::Between(10.0, 20.0),
            Unit::Count,
            known,
        )
        .because(
            "in a set of their own the model's reads wait only for each other; a real drive also reads a page again if its checksum \
             fails, and moves data that is read often",
            (20.0, 45.0),
        )
        .on(drive)
    }

    fn writes(&self, row: Row) -> Row {
        let none = self.none.write(MIXED);
        let share = self.horizontal.write(MIXED).zip(none).map(|(sets, none)| 100.0 * sets / none);
        let shares: Vec<String> = DEPTHS
            .iter()
            .filter_map(|&depth| {
                let share = 100.0 * self.horizontal.write(depth)? / self.none.write(depth)?;
                Some(format!("{share:.0} % at {depth}"))
            })
            .collect();
        let deepest = DEPTHS[DEPTHS.len() - 1];
        let pair = self.vertical.write(deepest).zip(self.horizontal.write(deepest));
        row.figure(format!("without sets, {MIXED} reads under way"), Published::AtLeast(2e9), Unit::BytesPerSecond, none)
            .figure("a set of half the flash, of that", Published::About(70.0), Unit::Percent, share)
            .noted(format!(
                "a die that serves reads programs less; without sets every die serves reads, with sets no die that is written does; by reads under way: {}",
                shares.join(", ")
            ))
            .words(
                format!("vertical and horizontal, {deepest} reads under way"),
                "vertical a little more",
                pair.is_some_and(|(vertical, horizontal)| vertical > horizontal),
                pair.map_or("not known".to_owned(), |(vertical, horizontal)| {
                    format!("{:.2} GB/s and {:.2} GB/s", vertical / 1e9, horizontal / 1e9)
                }),
            )
            .noted("with fewer reads both write the same: data reaches a die while it programs what came before")
    }

    fn time_plot(&self) -> Plot {
        const SECONDS: f64 = 10.0;
        let curve = |layout: &Layout| {
            let series = layout.at(USUAL).map_or(&[][..], |point| &point.series);
            let points = series.iter().map(|line| (line.start_ns as f64 / 1e9, line.mean_ns / 1e3));
            Curve::new(layout.name, points.filter(|point| point.0 < SECONDS))
        };
        Plot::lines(
            "Read latency beside a writer over time",
            &format!(
                "Means of {INTERVAL}; {USUAL} reads of 4 KiB under way, a neighbour writes as fast as it can."
            ),
            PlotAxis::linear("Time", "s"),
            PlotAxis::linear("Mean read latency", "us"),
            self.all().map(curve).to_vec(),
        )
    }

    fn percentile_plot(&self) -> Plot {
        let curves = [USUAL, HEAVY].into_iter().flat_map(|depth| {
            self.all().map(|layout| {
                let known = |percent: f64| {
                    let ns = layout.at(depth)?.reads.percentile(percent)?;
                    Some((-(1.0 - percent / 100.0).log10(), ns as f64 / 1e3))
                };
                let upper = PERCENTILES.into_iter().filter(|&percent| percent >= 50.0);
                Curve::new(format!("{}, {depth} reads", layout.name), upper.filter_map(known))
            })
        });
        Plot::lines(
            "The tail of read latency beside a writer",
            "Nines: 2 is 99 %, 6 is 99.9999 %. A percentile is shown where a hundred reads lie beyond it.",
            PlotAxis::linear("Nines", ""),
            PlotAxis::log("Read latency", "us"),
            curves.collect(),
        )
    }

    fn iops_plot(&self) -> Plot {
        self.depth_plot(
            "Random reads beside a writer",
            "With sets twice as many, from one read under way to many; the deepest show what shared channels cost.",
            PlotAxis::log("Reads a second", "k"),
            |point| point.iops / 1e3,
        )
    }

    fn latency_plot(&self) -> Plot {
        self.depth_plot(
            "Mean read latency beside a writer",
            "Without sets nearly every read finds its die programming.",
            PlotAxis::linear("Mean read latency", "us"),
            |point| point.reads.mean_ns.unwrap_or(f64::NAN) / 1e3,
        )
    }

    fn depth_plot(
        &self,
        title: &str,
        caption: &str,
        axis: PlotAxis,
        of: fn(&Point) -> f64,
    ) -> Plot {
        let curve = |layout: &Layout| {
            let points = layout.points.iter().map(|point| (f64::from(point.depth), of(point)));
            Curve::new(layout.name, points)
        };
        let depths = PlotAxis::log("Reads under way", "");
        Plot::lines(title, caption, depths, axis, self.all().map(curve).to_vec())
    }

    fn write_plot(&self) -> Plot {
        let curve = |layout: &Layout| {
            let rates = (0..).zip(&layout.points);
            Curve::new(
                layout.name,
                rates.map(|(place, point)| (f64::from(place), point.write_bytes_per_s / 1e9)),
            )
        };
        Plot::bars(
            "What the neighbour writes meanwhile",
            "Without sets reads take time of the dies that program; with sets they don't.",
            ("Reads under way", DEPTHS.iter().map(u32::to_string).collect()),
            PlotAxis::linear("Rate", "GB/s"),
            self.all().map(curve).to_vec(),
        )
    }
}
