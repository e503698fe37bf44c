//! MIX: block sizes and mixes of reads and writes on six SATA drives behind one chipset.

use base::{Duration, Rate};

use super::basis::{Basis, UsedParameter};
use super::claim::{Claim, Published, Row};
use super::group;
use super::plot::{Curve, Plot, PlotAxis};
use super::stage::{DrivesNeeded, Stage};
use crate::answer::Unit;
use crate::experiment::Scope;
use crate::experiment::mix::{BLOCKS, Mix, MixResult, READ_PERCENTS};
use crate::lab::LabError;

const DRIVE: &str = "intel-dc-s3500-480gb";
const DRIVES: u32 = 6;

/// What a chipset's link to the processor (DMI 2.0: four lanes of 5 GT/s, 8b/10b, 2 GB/s each way) gets through of reads and of
/// writes: four fifths of it, and less of writes, which the drives fetch from memory. Fitted to the document's own ceilings.
const UPLINK: (Rate, Rate) = (Rate(1.6e9), Rate(1.25e9));

/// Commands under way on all drives together: the document's two threads of 32.
const DEPTH: u32 = 64;

/// Of the set's beginning so much is written once and then used, so that the drives' spare flash is free as the published 4 KB
/// writes say that it was.
const REGION: u64 = 64 << 30;

/// What the document's IOPS of its smallest blocks come to in bytes a second.
const RATE_OF_SMALLEST: f64 = 350e3 * 512.0;

/// From here up the document calls blocks large.
const LARGE: u64 = 32 << 10;

/// What is measured of each point.
const POINT: Duration = Duration::from_millis(200);
const INTERVAL: Duration = Duration::from_millis(50);

/// What does the same.
const COMMAND: &str = "longtake measure mix 'raid0:sim:intel-dc-s3500-480gb*6' --depth 64 --uplink 1.6GB/s,1.25GB/s \
                       --size 64GiB --point 200ms";

/// What the document claims.
pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(
        "MIX-1",
        "The grid: 8 block sizes x 7 read/write mixes = 56 points of a minute each, under an hour in all.",
    ),
    Claim::new(
        "MIX-2",
        "Three pictures of it: IOPS lines, bandwidth lines, a radar with the mixes around and a ring for each block size.",
    ),
    Claim::new(
        "MIX-3",
        "512 B: 350,000 IOPS at 100 % read, falls steeply, recovers as the mix becomes mostly writes (unaligned to 4 KB flash \
         pages).",
    )
    .contradicting("350,000 x 512 B is 179 MB/s, and the article says about 87 MB/s."),
    Claim::new(
        "MIX-4",
        "4 KB: 300,000 IOPS at 100 % read, falls gently until 5/95, where it rises above 300,000 again.",
    ),
    Claim::new(
        "MIX-5",
        "From 32 KB up the array is at the link's limit, about 1,600 MB/s of reads (writes alone a little over 1,200).",
    ),
    Claim::new(
        "MIX-6",
        "The middle mixes (35/65 to 65/35) carry more than either end at large blocks: the link is full duplex.",
    ),
    Claim::new(
        "MIX-7",
        "The 0 % read end is the lowest for every block size in the radar of bandwidth.",
    )
    .contradicting(
        "By MIX-3 and MIX-4 the IOPS of 512 B and 4 KB, and so their bandwidth, rise again where the mix becomes mostly writes.",
    ),
    Claim::new(
        "MIX-8",
        "IOPS x block size = bandwidth; 1,000 IOPS are 4,000 KB/s at 4 KB and 32,000 KB/s at 32 KB.",
    ),
];

/// Measures the grid.
pub(super) fn reproduce(stage: &mut Stage<'_>) -> Result<(Vec<Row>, Vec<Plot>), LabError> {
    let drives = DrivesNeeded { uplink: Some(UPLINK), ..DrivesNeeded::raid0(DRIVE, DRIVES) };
    let result = stage.on("MIX", &drives, |lab| {
        let region = Some(REGION);
        let scope = Scope { region, point: POINT, interval: INTERVAL, ..Scope::default() };
        Mix { scope, depth: DEPTH, ..Mix::default() }.run(lab)
    })?;
    let grid = Grid(result);
    let basis = stage.basis(DRIVE)?.and(&stage.resting_on(&uplink()));
    let row = |id| group::row(CLAIMS, id, &basis);
    let rows = vec![
        grid.size(row("MIX-1")),
        row("MIX-2").on(Basis::not_testable("the pictures are drawn in the report")),
        grid.smallest(row("MIX-3")),
        grid.pages(row("MIX-4")),
        grid.at_the_link(row("MIX-5")),
        grid.both_ways(row("MIX-6")),
        grid.lowest(row("MIX-7")),
        grid.arithmetic(row("MIX-8")),
    ];
    let plots = vec![grid.iops_plot(), grid.rate_plot(), grid.radar()];
    Ok((rows, plots))
}

/// What the drives share.
fn uplink() -> [UsedParameter; 2] {
    [("reads", UPLINK.0), ("writes", UPLINK.1)].map(|(name, rate)| UsedParameter {
        of: "DMI 2.0 uplink".to_owned(),
        name: name.to_owned(),
        value: format!("{:.2} GB/s", rate.0 / 1e9),
        source: "assumed: what the array reached at large blocks".to_owned(),
        fitted: vec!["MIX-5".to_owned()],
        changed: false,
    })
}

/// The grid as measured.
struct Grid(MixResult);

impl Grid {
    fn iops(&self, block: u64, read: u32) -> f64 {
        self.0.at(block, read).map_or(f64::NAN, |point| point.iops)
    }

    fn rate(&self, block: u64, read: u32) -> f64 {
        self.0.at(block, read).map_or(f64::NAN, |point| point.bytes_per_s)
    }

    /// The lowest of the mixes that are neither pure nor nearly: IOPS, and share of reads in percent.
    fn trough(&self, block: u64) -> (f64, u32) {
        let mixes = [65, 50, 35].map(|read| (self.iops(block, read), read));
        mixes.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, 50))
    }

    /// By how much of its pure reads a block size falls, and whether it rises again toward writes.
    fn falls(&self, block: u64) -> (f64, bool, String) {
        let (reads, writes) = (self.iops(block, 100), self.iops(block, 0));
        let (lowest, at) = self.trough(block);
        let text = format!(
            "{:.0} k at 100/0, {:.0} k at {at}/{}, {:.0} k at 0/100: falls by {:.0} %",
            reads / 1e3,
            lowest / 1e3,
            100 - at,
            writes / 1e3,
            100.0 * (1.0 - lowest / reads)
        );
        (1.0 - lowest / reads, writes > lowest && lowest < reads, text)
    }

    fn size(&self, row: Row) -> Row {
        let points = self.0.points.len() as f64;
        row.on(Basis::Arithmetic).figure("points", Published::Exactly(56.0), Unit::Count, points)
            .figure("at a minute each", Published::AtMost(3600e9), Unit::Nanoseconds, points * 60e9)
            .noted(format!(
                "ours take {POINT} of virtual time each, on {DRIVES} drives in RAID 0 with {DEPTH} commands under way in all; `{COMMAND}` \
                 gives the same"
            ))
    }

    fn smallest(&self, row: Row) -> Row {
        let (fall, rises, text) = self.falls(512);
        let steeper = fall > self.falls(4096).0;
        let drives = row.basis.clone();
        row.figure("512 B, 100 % read", Published::About(350e3), Unit::CommandsPerSecond, self.iops(512, 100))
            .because(
                "64 commands in random places are spread unevenly over six drives, so that some drives idle while commands wait for \
                 others; how the article's threads and kernel spread them isn't published",
                (300e3, 330e3),
            )
            .on(Basis::Arithmetic)
            .figure("350,000 IOPS of 512 B", Published::About(87e6), Unit::BytesPerSecond, RATE_OF_SMALLEST)
            .contradicted("the article's own figures: 350,000 x 512 B is 179 MB/s", (RATE_OF_SMALLEST, RATE_OF_SMALLEST))
            .on(drives)
            .words("512 B from reads to writes", "falls steeply, recovers", rises && steeper, text)
            .noted("steeply: by more than 4 KB does, and the model shows little more. Reads wait for programs; a short write makes a die read the rest of its 4 KiB, and takes no firmware's time beside")
    }

    fn pages(&self, row: Row) -> Row {
        let (fall, rises, text) = self.falls(4096);
        let gentler = fall < self.falls(512).0;
        row.figure(
            "4 KB, 100 % read",
            Published::About(300e3),
            Unit::CommandsPerSecond,
            self.iops(4096, 100),
        )
        .words("4 KB from reads to writes", "falls gently, rises again", rises && gentler, text)
        .noted("gently: by less than 512 B does")
        .figure(
            "4 KB, 5/95",
            Published::AtLeast(300e3),
            Unit::CommandsPerSecond,
            self.iops(4096, 5),
        )
    }

    fn large() -> impl Iterator<Item = u64> + Clone {
        BLOCKS.into_iter().filter(|&block| block >= LARGE)
    }

    fn at_the_link(&self, row: Row) -> Row {
        let reads = Self::large().map(|block| self.rate(block, 100));
        let writes = Self::large().map(|block| self.rate(block, 0));
        row.figure("reads of 32 KB and more, the least", Published::About(1.6e9), Unit::BytesPerSecond, reads.clone().fold(f64::INFINITY, f64::min))
            .figure("the most", Published::About(1.6e9), Unit::BytesPerSecond, reads.fold(0.0, f64::max))
            .noted("the uplink is given what the article found, so this shows that nothing else is the limit")
            .figure("writes of 32 KB and more, the least", Published::About(1.2e9), Unit::BytesPerSecond, writes.clone().fold(f64::INFINITY, f64::min))
            .figure("the most", Published::About(1.2e9), Unit::BytesPerSecond, writes.fold(0.0, f64::max))
    }

    fn both_ways(&self, row: Row) -> Row {
        Self::large().fold(row, |row, block| {
            let end = self.rate(block, 100).max(self.rate(block, 0));
            let middle = [65, 50, 35].map(|read| self.rate(block, read) / end);
            let least = middle.into_iter().fold(f64::INFINITY, f64::min);
            let most = middle.into_iter().fold(0.0, f64::max);
            row.words(
                format!("{} KiB: 65/35 to 35/65 over the better end", block >> 10),
                "more",
                least > 1.0,
                format!("{least:.2} to {most:.2} times as much"),
            )
        })
    }

    fn lowest(&self, row: Row) -> Row {
        let is_lowest = |block: u64| {
            READ_PERCENTS.iter().all(|&read| self.rate(block, 0) <= self.rate(block, read))
        };
        let (lowest, others): (Vec<u64>, Vec<u64>) =
            BLOCKS.into_iter().partition(|&block| is_lowest(block));
        let small: Vec<String> = others.iter().map(|&block| name(block)).collect();
        row.figure(
            "block sizes at which pure writes are the slowest mix",
            Published::Exactly(8.0),
            Unit::Count,
            lowest.len() as f64,
        )
        .contradicted(
            format!(
                "at {} mixes are slower than pure writes, as MIX-3 and MIX-4 say of small blocks",
                small.join(" and ")
            ),
            (5.0, 7.0),
        )
    }

    fn arithmetic(&self, row: Row) -> Row {
        let off = |point: &crate::experiment::mix::MixPoint| {
            (point.iops * point.block_bytes as f64 / point.bytes_per_s - 1.0).abs()
        };
        let farthest = self.0.points.iter().map(off).fold(0.0, f64::max);
        row.on(Basis::Arithmetic)
            .figure(
                "1,000 IOPS of 4 KiB",
                Published::About(4e6),
                Unit::BytesPerSecond,
                1000.0 * 4096.0,
            )
            .figure(
                "1,000 IOPS of 32 KiB",
                Published::About(32e6),
                Unit::BytesPerSecond,
                1000.0 * 32_768.0,
            )
            .words(
                "IOPS x block size over all points",
                "the bandwidth",
                farthest < 1e-6,
                format!("the bandwidth to {:.1e} of it", farthest.max(1e-12)),
            )
    }

    fn lines(
        &self,
        title: &str,
        caption: &str,
        axis: PlotAxis,
        of: fn(&Self, u64, u32) -> f64,
    ) -> Plot {
        let curve = |block: u64| {
            let points = READ_PERCENTS.map(|read| (f64::from(100 - read), of(self, block, read)));
            Curve::new(name(block), points)
        };
        let writes = PlotAxis::linear("Writes among the commands", "%");
        Plot::lines(title, caption, writes, axis, BLOCKS.map(curve).to_vec())
    }

    fn iops_plot(&self) -> Plot {
        self.lines(
            "IOPS by mix, a line for each block size",
            "Six drives, striped, behind one chipset.",
            PlotAxis::linear("Commands a second", "k"),
            |grid, block, read| grid.iops(block, read) / 1e3,
        )
    }

    fn rate_plot(&self) -> Plot {
        self.lines(
            "Bandwidth by mix, a line for each block size",
            "Large blocks are held by the link, which carries more where both directions are in use.",
            PlotAxis::linear("Rate", "MB/s"),
            |grid, block, read| grid.rate(block, read) / 1e6,
        )
        .level(UPLINK.0.0 / 1e6, "the link to the processor")
    }

    fn radar(&self) -> Plot {
        let ring = |block: u64| {
            let rates = (0..).zip(READ_PERCENTS);
            Curve::new(
                name(block),
                rates.map(|(place, read)| (f64::from(place), self.rate(block, read) / 1e6)),
            )
        };
        let spokes = READ_PERCENTS.map(|read| format!("{read}/{}", 100 - read)).to_vec();
        Plot::radar(
            "Bandwidth: the mixes around, a ring for each block size",
            "Reads over writes in percent.",
            (spokes, "MB/s"),
            BLOCKS.map(ring).to_vec(),
        )
    }
}

/// A block size as the document has it.
fn name(block: u64) -> String {
    if block < 1024 { format!("{block} B") } else { format!("{} KiB", block >> 10) }
}
