//! STR: what streaming applications get from an NVMe drive and from one on SATA, in blocks of 512 KiB to 8 MiB.

use base::Duration;
use load::Verb;

use super::basis::Basis;
use super::claim::{Claim, Published, Row};
use super::group;
use super::plot::{Curve, Plot, PlotAxis};
use super::stage::{DrivesNeeded, Stage};
use crate::analysis::series::Point;
use crate::answer::Unit;
use crate::experiment::Scope;
use crate::experiment::steady::{Evenness, Steady, SteadyResult};
use crate::experiment::stream::{Stream, StreamPoint, StreamResult};
use crate::lab::LabError;

const SATA: &str = "intel-dc-s3700-400gb";
const NVME: &str = "intel-dc-p3600-400gb";

/// What the document claims.
pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(
        "STR-1",
        "Streaming software uses blocks of 64 KB to 16 MB; 512 KB and 8 MB represent small and large objects; queue depth 1-2.",
    ),
    Claim::new("STR-2", "Sequential write: the two drives are close at 512 KB and at 8 MB."),
    Claim::new(
        "STR-3",
        "Sequential read: the NVMe drive is almost 3 x faster at 512 KB (1.05 GB/s) and a little over 4 x at 8 MB (1.98 GB/s).",
    ),
    Claim::new(
        "STR-4",
        "1.98 GB/s fills two 10 Gb Ethernet ports; an H.264 1080p stream takes 1.5-4 MB/s, so one drive carries about 250-600 \
         different streams at once.",
    )
    .contradicting(
        "1.98 GB/s are 495 to 1,320 streams of 4 to 1.5 MB/s, and 15.8 of two ports' 20 Gb/s. The published 250-600 are what the \
         1.05 GB/s of 512 KB blocks carry.",
    ),
    Claim::new(
        "STR-5",
        "Latency: writes about 2 x lower on NVMe, reads 3.5 x lower, at 512 KB and at 8 MB alike.",
    )
    .contradicting(
        "With one command under way latency is block size over throughput. By STR-2 writes then take as long on both drives, by \
         STR-3 reads are almost 3 x and a little over 4 x shorter, and a block of 8 MB takes about 8 to 16 times as long as one of 512 KB.",
    ),
    Claim::new(
        "STR-6",
        "Sweep of 512 KB to 8 MB at queue depth 2: the same picture (read 3 x at small blocks, 4 x at large ones; writes practically \
         equal, the S3700 slightly ahead at small blocks and the P3600 at large ones).",
    ),
    Claim::new(
        "STR-7",
        "A 2 GB file written and read in 8 MB blocks: S3700 writes 443 MB/s and reads 464 MB/s, P3600 writes 476 MB/s and reads \
         2050 MB/s. The S3700's reads have no deep dips, the P3600's do; writes of both are steady.",
    ),
    Claim::new(
        "STR-8",
        "Applications described as workloads: cache tier, virtual machines, OLAP, content delivery, playout, colour grading.",
    ),
    Claim::new("STR-9", "One NVMe drive replaces 4-6 SATA drives in sequential reading."),
];

const SMALL: u64 = 512 << 10;
const LARGE: u64 = 8 << 20;
/// Most SATA drives in a striped set that is compared with one NVMe drive.
const SET_MAX: u32 = 8;
/// What H.264 streams of 1080p take, in bytes a second.
const VIDEO: (f64, f64) = (1.5e6, 4e6);
/// Dips deeper than to this share of the level are deep.
const DEEP: f64 = 0.5;
/// Deviation up to which a speed is steady.
const STEADY_PERCENT: f64 = 5.0;

/// Measures both drives.
pub(super) fn reproduce(stage: &mut Stage<'_>) -> Result<(Vec<Row>, Vec<Plot>), LabError> {
    let sata = Drive::measure(stage, SATA)?;
    let nvme = Drive::measure(stage, NVME)?;
    let both = Both { sata: &sata, nvme: &nvme };
    let basis = stage.basis(SATA)?.and(&stage.basis(NVME)?);
    let row = |id| group::row(CLAIMS, id, &basis);
    let not_testable = |id, why: &str| row(id).on(Basis::not_testable(why));
    let rows = vec![
        not_testable("STR-1", "it defines what is measured"),
        both.writes(row("STR-2")),
        both.reads(row("STR-3")),
        both.streams(row("STR-4")),
        both.latencies(row("STR-5")),
        both.sweep(row("STR-6")),
        both.stability(row("STR-7")),
        not_testable(
            "STR-8",
            "it names applications and gives no figures; `measure apps` runs them",
        ),
        both.replaced(row("STR-9"), smallest_set(stage, &nvme)?),
    ];
    let plots = vec![
        both.sweep_plot(Verb::Read),
        both.sweep_plot(Verb::Write),
        both.stability_plot(Verb::Read),
        both.stability_plot(Verb::Write),
    ];
    Ok((rows, plots))
}

/// The fewest SATA drives in RAID 0 that read large blocks as fast as the NVMe drive, one block after the other; None if more than
/// [`SET_MAX`] would be needed.
fn smallest_set(stage: &mut Stage<'_>, nvme: &Drive) -> Result<Option<u32>, LabError> {
    for drives in 2..=SET_MAX {
        let label = format!("STR-{SATA}-raid0-{drives}");
        let set = stage.on(&label, &DrivesNeeded::raid0(SATA, drives), |lab| {
            let (blocks, depths) = (vec![LARGE], vec![1]);
            Stream { scope: scope(), blocks, depths, ..Stream::default() }.run(lab)
        })?;
        let rate = |result: &StreamResult| {
            result.at(Verb::Read, LARGE, 1).and_then(|point| point.bytes_per_s)
        };
        if rate(&set) >= rate(&nvme.sweep) {
            return Ok(Some(drives));
        }
    }
    Ok(None)
}

fn scope() -> Scope {
    Scope { point: Duration::from_secs(2), region: Some(2 << 30), ..Scope::default() }
}

/// What was measured of a drive.
struct Drive {
    name: &'static str,
    sweep: StreamResult,
    steady: SteadyResult,
}

impl Drive {
    fn measure(stage: &mut Stage<'_>, model: &'static str) -> Result<Self, LabError> {
        let label = format!("STR-{model}");
        stage.on(&label, &DrivesNeeded::one(model), |lab| {
            let sweep = Stream {
                scope: scope(),
                blocks: (0..5).map(|power| SMALL << power).collect(),
                depths: vec![1, 2],
                ..Stream::default()
            };
            let (sweep, steady) = (sweep.run(lab)?, Steady::default().run(lab)?);
            Ok(Self { name: model, sweep, steady })
        })
    }

    fn point(&self, verb: Verb, block: u64, depth: u32) -> Option<&StreamPoint> {
        self.sweep.at(verb, block, depth)
    }

    fn rate(&self, verb: Verb, block: u64, depth: u32) -> Option<f64> {
        self.point(verb, block, depth)?.bytes_per_s
    }

    fn latency(&self, verb: Verb, block: u64) -> Option<f64> {
        self.point(verb, block, 1)?.latency.mean_ns
    }

    fn evenness(&self, verb: Verb) -> Option<&Evenness> {
        match verb {
            Verb::Read => self.steady.read.as_ref(),
            Verb::Write | Verb::Trim => self.steady.write.as_ref(),
        }
    }
}

/// Both drives.
struct Both<'a> {
    sata: &'a Drive,
    nvme: &'a Drive,
}

impl Both<'_> {
    /// How much faster the NVMe drive is.
    fn faster(&self, verb: Verb, block: u64, depth: u32) -> Option<f64> {
        Some(self.nvme.rate(verb, block, depth)? / self.sata.rate(verb, block, depth)?)
    }

    /// How much shorter its commands take.
    fn shorter(&self, verb: Verb, block: u64) -> Option<f64> {
        Some(self.sata.latency(verb, block)? / self.nvme.latency(verb, block)?)
    }

    fn writes(&self, row: Row) -> Row {
        [("512 KB", SMALL), ("8 MB", LARGE)].into_iter().fold(row, |row, (name, block)| {
            row.figure(
                format!("write of {name}: NVMe over SATA"),
                Published::About(1.0),
                Unit::Count,
                self.faster(Verb::Write, block, 1),
            )
        })
    }

    fn reads(&self, row: Row) -> Row {
        let rate = |block| self.nvme.rate(Verb::Read, block, 1);
        row.figure("512 KB, NVMe", Published::About(1.05e9), Unit::BytesPerSecond, rate(SMALL))
            .figure(
                "512 KB, NVMe over SATA",
                Published::About(2.9),
                Unit::Count,
                self.faster(Verb::Read, SMALL, 1),
            )
            .noted("\"almost 3\" is taken as 2.9")
            .figure("8 MB, NVMe", Published::About(1.98e9), Unit::BytesPerSecond, rate(LARGE))
            .figure(
                "8 MB, NVMe over SATA",
                Published::About(4.2),
                Unit::Count,
                self.faster(Verb::Read, LARGE, 1),
            )
            .noted("\"a little over 4\" is taken as 4.2")
    }

    fn streams(&self, row: Row) -> Row {
        let small = self.nvme.rate(Verb::Read, SMALL, 1);
        let large = self.nvme.rate(Verb::Read, LARGE, 1);
        let gigabits = large.map(|rate| rate * 8.0 / 1e9);
        row.figure(
            "8 MB reads, in Gb/s: two ports of 10 Gb Ethernet",
            Published::About(20.0),
            Unit::Count,
            gigabits,
        )
        .contradicted("1.98 GB/s are 15.8 Gb/s: two ports are in use, and not full", (14.3, 17.4))
        .figure(
            "streams of 4 MB/s, at 512 KB",
            Published::About(250.0),
            Unit::Count,
            small.map(|rate| (rate / VIDEO.1).floor()),
        )
        .figure(
            "streams of 1.5 MB/s, at 512 KB",
            Published::About(600.0),
            Unit::Count,
            small.map(|rate| (rate / VIDEO.0).floor()),
        )
        .contradicted(
            "1.05 GB/s over 1.5 MB/s is 700; the article doesn't show how it came to 600",
            (630.0, 770.0),
        )
    }

    fn latencies(&self, row: Row) -> Row {
        // What STR-2 and STR-3 make of each block size's reads, a tenth to either side.
        let blocks = [("512 KB", SMALL, (2.6, 3.2)), ("8 MB", LARGE, (3.8, 4.6))];
        blocks.into_iter().fold(row, |row, (name, block, reads)| {
            row.figure(
                format!("write of {name}: SATA over NVMe"),
                Published::About(2.0),
                Unit::Count,
                self.shorter(Verb::Write, block),
            )
            .contradicted(
                "with one command under way equal throughput (STR-2) is equal latency",
                (0.9, 1.15),
            )
            .figure(
                format!("read of {name}: SATA over NVMe"),
                Published::About(3.5),
                Unit::Count,
                self.shorter(Verb::Read, block),
            )
            .contradicted(
                "with one command under way it is the ratio of throughputs (STR-3), almost 3 and a little over 4",
                reads,
            )
        })
    }

    fn sweep(&self, row: Row) -> Row {
        let row = row
            .figure(
                "read of 512 KB: NVMe over SATA",
                Published::About(3.0),
                Unit::Count,
                self.faster(Verb::Read, SMALL, 2),
            )
            .because(
                "with two blocks under way every channel of the simulated NVMe drive is busy, so 512 KB come as fast as 8 MB; the time \
                 that tool and host spend between blocks is neither published nor simulated",
                (3.3, 4.5),
            )
            .figure(
                "read of 8 MB: NVMe over SATA",
                Published::About(4.0),
                Unit::Count,
                self.faster(Verb::Read, LARGE, 2),
            );
        let ratios: Option<Vec<f64>> =
            (0..5).map(|power| self.faster(Verb::Write, SMALL << power, 2)).collect();
        let ratios = ratios.unwrap_or_default();
        let farthest =
            ratios.iter().copied().max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
        let ends = ratios.first().copied().zip(ratios.last().copied());
        row.figure(
            "write, the block where they differ most",
            Published::About(1.0),
            Unit::Count,
            farthest,
        )
        .words(
            "write, NVMe over SATA: smallest and largest block",
            "below 1 and above",
            ends.is_some_and(|(small, large)| small < 1.0 && large > 1.0),
            ends.map_or("not known".to_owned(), |(small, large)| {
                format!("{small:.3} and {large:.3}")
            }),
        )
        .missed_in_words(
            "the time that tool and host spend between blocks is neither published nor simulated",
        )
    }

    fn stability(&self, row: Row) -> Row {
        let published = [
            (self.sata, Verb::Write, 443e6, "S3700"),
            (self.sata, Verb::Read, 464e6, "S3700"),
            (self.nvme, Verb::Write, 476e6, "P3600"),
            (self.nvme, Verb::Read, 2050e6, "P3600"),
        ];
        let mut row = published.into_iter().fold(row, |row, (drive, verb, rate, name)| {
            let mean = drive.evenness(verb).map(|evenness| evenness.mean);
            row.figure(format!("{name} {verb}"), Published::About(rate), Unit::BytesPerSecond, mean)
        });
        for (drive, verb, _, name) in published {
            let Some(evenness) = drive.evenness(verb) else { continue };
            let summary = &evenness.dips.summary;
            let lowest = summary.lowest_share_min.unwrap_or(1.0);
            let deviation = 100.0 * summary.deviation_mean;
            let dips = lowest < DEEP;
            let text = format!("to {:.0} % at the deepest, {deviation:.1} %", 100.0 * lowest);
            let what = format!("{name} {verb}: dips and mean deviation");
            row = if (name, verb) == ("P3600", Verb::Read) {
                row.words(what, "deep dips", dips, text)
                    .missed_in_words("nothing in the model makes the reads of an idle drive dip")
            } else {
                row.words(what, "no deep dips, steady", !dips && deviation <= STEADY_PERCENT, text)
            };
        }
        row
    }

    fn replaced(&self, row: Row, set: Option<u32>) -> Row {
        row.figure(
            "SATA drives in one NVMe drive, by rate",
            Published::Between(4.0, 6.0),
            Unit::Count,
            self.faster(Verb::Read, LARGE, 1),
        )
        .figure(
            "SATA drives in RAID 0 that read as fast",
            Published::Between(4.0, 6.0),
            Unit::Count,
            set.map(f64::from),
        )
        .noted("blocks of 8 MiB, one after the other, in stripes of 64 KiB")
    }

    fn sweep_plot(&self, verb: Verb) -> Plot {
        let curve = |drive: &Drive| {
            let rate = |power: i32| {
                let rate = drive.rate(verb, SMALL << power, 2).unwrap_or(f64::NAN);
                (f64::from(power), rate / 1e6)
            };
            Curve::new(drive.name, (0..5).map(rate))
        };
        let groups = (0..5).map(|power| base::ByteSize(SMALL << power).to_string()).collect();
        Plot::bars(
            &format!("Sequential {verb}s by block size"),
            "Two commands under way.",
            ("Block size", groups),
            PlotAxis::linear("Rate", "MB/s"),
            vec![curve(self.sata), curve(self.nvme)],
        )
    }

    fn stability_plot(&self, verb: Verb) -> Plot {
        let curve = |drive: &Drive| {
            let points = drive.evenness(verb).map_or(&[][..], |evenness| &evenness.curve);
            let start = points.first().map_or(0, |point| point.start_ns);
            let seconds = |point: &Point| (point.start_ns - start) as f64 / 1e9;
            Curve::new(drive.name, points.iter().map(|p| (seconds(p), p.rate() / 1e6)))
        };
        Plot::lines(
            &format!("Continuous {verb}s of a 2 GB file over time"),
            "Blocks of 8 MiB, one at a time.",
            PlotAxis::linear("Time", "s"),
            PlotAxis::linear("Rate", "MB/s"),
            vec![curve(self.sata), curve(self.nvme)],
        )
    }
}
