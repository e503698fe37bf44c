//! LNK: one drive on links of different generations and numbers of lanes.

use base::{Duration, Rate};
use load::Verb;
use load::workload::{Blocks, Pattern, Stream};

use super::basis::Basis;
use super::claim::{Claim, Published, Row};
use super::group;
use super::plot::{Curve, Plot, PlotAxis};
use super::stage::{Contents, DrivesNeeded, Stage};
use crate::answer::Unit;
use crate::experiment::Scope;
use crate::lab::{Lab, LabError};

const DRIVE: &str = "patriot-hellfire-240gb";

/// What the document claims.
pub(super) const CLAIMS: &[Claim] = &[
    Claim::new(
        "LNK-1",
        "Line rates: 1.x 2.5 GT/s 8b/10b (250 MB/s a lane, about 200 usable), 2.0 5 GT/s 8b/10b, 3.0 8 GT/s 128b/130b.",
    ),
    Claim::new(
        "LNK-2",
        "Sequential: x1 of 1.x gives about 200 MB/s; 1.x x2 and 2.0 x1 twice that; 1.x x4, 2.0 x2 and 3.0 x1 twice again: \
         generation and lanes trade exactly.",
    ),
    Claim::new(
        "LNK-3",
        "Writes stop scaling at 2.0 x4 (the flash is the limit); reads gain another 1.5 x, not 2 x, from 3.0 x4.",
    ),
    Claim::new(
        "LNK-4",
        "4 KB random reads top out a little over 500 MB/s at queue depth 16, within 2.0 x2's reach; at depth 1-4 one lane of 1.x \
         would almost do.",
    ),
    Claim::new(
        "LNK-5",
        "At queue depth 1 the platform shows: a faster core and cache clock gives more than extra cores.",
    ),
    Claim::new(
        "LNK-6",
        "Chipset and processor lanes: no visible difference in throughput. The chipset has lanes of 2.0 only, two or four.",
    ),
    Claim::new(
        "LNK-7",
        "Overall score against 2.0 x4: 3.0 x4 is about +10 %; 2.0 x2 is 15-20 % lower; 3.0 x4 is about 3.5 x of 1.x x1, where \
         theory gives 16 x.",
    ),
];

/// Generation and lanes, slowest first.
const LINKS: [(u8, u8); 8] = [(1, 1), (1, 2), (2, 1), (1, 4), (2, 2), (3, 1), (2, 4), (3, 4)];
const LANES: [u8; 3] = [1, 2, 4];

/// What the chipset's link to the processor (DMI 2.0: four lanes of 5 GT/s, 8b/10b) gets through each way: four fifths of it, as the
/// document's own drive does on a lane.
const CHIPSET: Rate = Rate(4.0 * 5e9 * 8.0 / 10.0 / 8.0 * 0.8);
/// Links that carry a multiple of a lane of 1.x: generation, lanes and how many times as much.
const WIDER: [(u8, u8, f64); 5] = [(1, 2, 2.0), (2, 1, 2.0), (1, 4, 4.0), (2, 2, 4.0), (3, 1, 4.0)];
/// The lanes that the chipset has.
const CHIPSET_LANES: [(u8, u8); 2] = [(2, 2), (2, 4)];

/// What a throughput must not differ by to be the same to the eye.
const VISIBLE: f64 = 0.05;

/// The tests of the document's tool: what it does, whether at random places, block size and depth.
const SUITE: [(Verb, bool, u64, u32); 10] = [
    (Verb::Read, false, 4 << 20, 1),
    (Verb::Read, true, 4 << 10, 1),
    (Verb::Read, true, 4 << 10, 4),
    (Verb::Read, true, 4 << 10, 16),
    (Verb::Read, true, 32 << 10, 1),
    (Verb::Read, true, 128 << 10, 1),
    (Verb::Write, false, 4 << 20, 1),
    (Verb::Write, true, 4 << 10, 1),
    (Verb::Write, true, 4 << 10, 4),
    (Verb::Write, true, 4 << 10, 16),
];
/// A deeper random read, for the picture.
const DEEP: (Verb, bool, u64, u32) = (Verb::Read, true, 4 << 10, 32);
/// Depths of the pictures of random commands: those of both lists.
const DEPTHS: [u32; 4] = [1, 4, 16, 32];
/// Block sizes that the tool reads at random, one at a time.
const READ_BLOCKS: [u64; 3] = [4 << 10, 32 << 10, 128 << 10];
/// Bytes of the file that the tool works on.
const FILE_BYTES: u64 = 1 << 30;

/// Measures the drive on every link.
pub(super) fn reproduce(stage: &mut Stage<'_>) -> Result<(Vec<Row>, Vec<Plot>), LabError> {
    let mut all = Vec::new();
    for (generation, lanes) in LINKS {
        let drive = needed(generation, lanes);
        let label = format!("LNK-{generation}.0x{lanes}");
        let rates = stage.on(&label, &drive, suite)?;
        all.push(On { generation, lanes, rates });
    }
    let mut chipset = Vec::new();
    for (generation, lanes) in CHIPSET_LANES {
        let drive = DrivesNeeded { uplink: Some((CHIPSET, CHIPSET)), ..needed(generation, lanes) };
        let label = format!("LNK-chipset-{generation}.0x{lanes}");
        let rates = stage.on(&label, &drive, suite)?;
        chipset.push(On { generation, lanes, rates });
    }
    let links = Links(all);
    let drive = stage.basis(DRIVE)?;
    let row = |id| group::row(CLAIMS, id, &drive);
    let rows = vec![
        links.lane(row("LNK-1")),
        links.scaling(row("LNK-2")),
        links.flash(row("LNK-3")),
        links.random(row("LNK-4")),
        row("LNK-5").on(Basis::not_testable("no host with cores and clocks is simulated")),
        links.through_chipset(row("LNK-6"), &chipset),
        links.score(row("LNK-7")),
    ];
    let plots = vec![
        links.plot(Verb::Read),
        links.plot(Verb::Write),
        links.random_plot(Verb::Read),
        links.random_plot(Verb::Write),
        links.block_plot(),
    ];
    Ok((rows, plots))
}

fn needed(generation: u8, lanes: u8) -> DrivesNeeded {
    DrivesNeeded::one(DRIVE).holding(Contents::Full).on(generation, lanes)
}

/// Runs all tests: their rates in bytes a second, in the order of [`SUITE`] and [`DEEP`].
fn suite(lab: &mut Lab<'_>) -> Result<Vec<f64>, LabError> {
    let scope = Scope {
        region: Some(FILE_BYTES),
        point: Duration::from_millis(500),
        interval: Duration::from_millis(100),
        ..Scope::default()
    };
    // Reads before writes: the drive has room for what is written while it is idle in between.
    let mut rates = Vec::new();
    for (verb, random, block, depth) in SUITE.into_iter().chain([DEEP]) {
        let kind = if random { "random" } else { "sequential" };
        let name = format!("{kind}-{verb}-{}KiB-depth{depth}", block >> 10);
        let stream = Stream {
            name: "link".to_owned(),
            pattern: if random { Pattern::Random } else { Pattern::Sequential },
            block: Blocks::of(block),
            read: u32::from(verb == Verb::Read),
            write: u32::from(verb == Verb::Write),
            depth,
            ..Stream::default()
        };
        let step = lab.step("suite", &name, &scope.point(&name, vec![stream]))?;
        let result = step.measurement.result("link", verb);
        rates.push(result.map_or(f64::NAN, |result| result.bytes_per_s));
    }
    Ok(rates)
}

/// What the drive reached on a link.
struct On {
    generation: u8,
    lanes: u8,
    rates: Vec<f64>,
}

impl On {
    fn rate(&self, test: (Verb, bool, u64, u32)) -> f64 {
        let at = SUITE.into_iter().chain([DEEP]).position(|other| other == test);
        at.and_then(|at| self.rates.get(at).copied()).unwrap_or(f64::NAN)
    }

    fn sequential(&self, verb: Verb) -> f64 {
        self.rate((verb, false, 4 << 20, 1))
    }

    fn random(&self, verb: Verb, depth: u32) -> f64 {
        self.rate((verb, true, 4 << 10, depth))
    }

    fn name(&self) -> String {
        format!("{}.0 x{}", self.generation, self.lanes)
    }

    /// The sum of all tests' rates. The tool's own formula isn't published; it adds its tests up.
    fn score(&self) -> f64 {
        self.rates.iter().take(SUITE.len()).sum()
    }
}

/// What the drive reached on every link.
struct Links(Vec<On>);

impl Links {
    fn on(&self, generation: u8, lanes: u8) -> &On {
        let found = self.0.iter().find(|on| (on.generation, on.lanes) == (generation, lanes));
        found.expect("every link of the list was measured")
    }

    fn lane(&self, row: Row) -> Row {
        let usable = self.on(1, 1).sequential(Verb::Read);
        let drive = row.basis.clone();
        row.on(Basis::Arithmetic)
            .figure(
                "a lane of 1.x, raw",
                Published::Exactly(250e6),
                Unit::BytesPerSecond,
                2.5e9 * 8.0 / 10.0 / 8.0,
            )
            .noted("2.5 GT/s x 8/10 / 8 bits")
            .on(drive)
            .figure("a lane of 1.x, usable", Published::About(200e6), Unit::BytesPerSecond, usable)
    }

    fn scaling(&self, row: Row) -> Row {
        let one = |verb| self.on(1, 1).sequential(verb);
        let row = row.figure(
            "sequential read on 1.x x1",
            Published::About(200e6),
            Unit::BytesPerSecond,
            one(Verb::Read),
        );
        let drive = row.basis.clone();
        let times = |row: Row, verb| {
            WIDER.into_iter().fold(row, |row, (generation, lanes, times)| {
                let ratio = self.on(generation, lanes).sequential(verb) / one(verb);
                let what = match verb {
                    Verb::Write => format!("write, {generation}.0 x{lanes} over 1.x x1"),
                    Verb::Read | Verb::Trim => format!("{generation}.0 x{lanes} over 1.x x1"),
                };
                row.figure(what, Published::About(times), Unit::Count, ratio)
            })
        };
        // Of two links the payload's share of the line is the same: the line codings alone are compared.
        let row = times(row.on(Basis::Arithmetic), Verb::Read);
        // Writes scale as long as the flash keeps up, and when it does depends on what a lane carries.
        let row = row.on(drive.without(&["controller.read_iops"]));
        let row = row.figure(
            "sequential write on 1.x x1",
            Published::About(200e6),
            Unit::BytesPerSecond,
            one(Verb::Write),
        );
        times(row, Verb::Write)
    }

    fn flash(&self, row: Row) -> Row {
        let gain = |verb| self.on(3, 4).sequential(verb) / self.on(2, 4).sequential(verb);
        let drive = row.basis.clone();
        // The flash limits the writes, not how many commands the controller takes.
        row.on(drive.without(&["controller.read_iops", "link.efficiency"]))
            .figure(
                "write, 3.0 x4 over 2.0 x4",
                Published::About(1.0),
                Unit::Count,
                gain(Verb::Write),
            )
            .on(drive)
            .figure(
                "read, 3.0 x4 over 2.0 x4",
                Published::About(1.5),
                Unit::Count,
                gain(Verb::Read),
            )
    }

    fn random(&self, row: Row) -> Row {
        let whole = self.on(3, 4);
        let lane = self.on(1, 1).sequential(Verb::Read);
        let reads = |on: &On, depth| on.random(Verb::Read, depth);
        let shallow = (reads(whole, 1), reads(whole, 4));
        let deep = reads(whole, 16);
        row.figure("depth 16", Published::About(510e6), Unit::BytesPerSecond, deep)
            .noted("\"a little over 500\" is taken as 510")
            .figure(
                "depth 16, 2.0 x2 over 3.0 x4",
                Published::About(1.0),
                Unit::Count,
                reads(self.on(2, 2), 16) / deep,
            )
            .words(
                "depth 1 and 4 against a lane of 1.x",
                "about what it carries, or less",
                shallow.0 <= lane && shallow.1 <= 1.1 * lane,
                format!(
                    "{:.0} and {:.0} of {:.0} MB/s",
                    shallow.0 / 1e6,
                    shallow.1 / 1e6,
                    lane / 1e6
                ),
            )
    }

    fn through_chipset(&self, row: Row, chipset: &[On]) -> Row {
        chipset.iter().fold(row, |row, behind| {
            let direct = self.on(behind.generation, behind.lanes);
            let ratios = [Verb::Read, Verb::Write]
                .map(|verb| behind.sequential(verb) / direct.sequential(verb));
            row.words(
                format!(
                    "{}.0 x{} behind the chipset, over the processor's",
                    behind.generation, behind.lanes
                ),
                "no difference to the eye",
                ratios.iter().all(|ratio| (ratio - 1.0).abs() <= VISIBLE),
                format!("read {:.3}, write {:.3}", ratios[0], ratios[1]),
            )
        })
    }

    fn score(&self, row: Row) -> Row {
        let over = |a: (u8, u8), b: (u8, u8)| self.on(a.0, a.1).score() / self.on(b.0, b.1).score();
        row.on(Basis::not_testable(
            "the formula of the tool's score isn't published; ours adds up the rates of its ten tests",
        ))
        .figure("3.0 x4 over 2.0 x4", Published::About(1.1), Unit::Count, over((3, 4), (2, 4)))
        .figure(
            "2.0 x2 over 2.0 x4",
            Published::Between(0.8, 0.85),
            Unit::Count,
            over((2, 2), (2, 4)),
        )
        .figure("3.0 x4 over 1.x x1", Published::About(3.5), Unit::Count, over((3, 4), (1, 1)))
    }

    fn plot(&self, verb: Verb) -> Plot {
        let curve = |generation: u8| {
            let rate = |(at, lanes): (usize, u8)| {
                let on =
                    self.0.iter().find(|on| (on.generation, on.lanes) == (generation, lanes))?;
                Some((at as f64, on.sequential(verb) / 1e6))
            };
            let points = LANES.into_iter().enumerate().filter_map(rate);
            Curve::new(format!("PCIe {generation}.0"), points)
        };
        Plot::bars(
            &format!("Sequential {verb}s by generation and lanes"),
            "Blocks of 4 MiB, one at a time. A generation doubles what a lane carries, until the flash is the limit.",
            ("Lanes", LANES.map(|lanes| format!("x{lanes}")).to_vec()),
            PlotAxis::linear("Rate", "MB/s"),
            (1..=3).map(curve).collect(),
        )
    }

    fn random_plot(&self, verb: Verb) -> Plot {
        let curve = |on: &On| {
            let points = DEPTHS.map(|depth| (f64::from(depth), on.random(verb, depth) / 1e6));
            Curve::new(on.name(), points)
        };
        Plot::lines(
            &format!("Random {verb}s of 4 KiB by depth"),
            "A narrow link is a limit only where many commands are under way.",
            PlotAxis::log("Commands under way", ""),
            PlotAxis::linear("Rate", "MB/s"),
            self.0.iter().map(curve).collect(),
        )
    }

    fn block_plot(&self) -> Plot {
        let curve = |on: &On| {
            let rate = |block| on.rate((Verb::Read, true, block, 1)) / 1e6;
            Curve::new(on.name(), (0..).map(f64::from).zip(READ_BLOCKS.map(rate)))
        };
        Plot::bars(
            "Random reads by block size",
            "One at a time. The longer a block, the more of its time it spends on the link.",
            ("Block size", READ_BLOCKS.map(|block| format!("{} KiB", block >> 10)).to_vec()),
            PlotAxis::linear("Rate", "MB/s"),
            self.0.iter().map(curve).collect(),
        )
    }
}
