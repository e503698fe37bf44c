//! A report such as an engineer gets of a drive, with every kind of picture, for the tests.

use longtake_report::axis::{Axis, Scale};
use longtake_report::document::{Cell, Column, Document, Section, Table};
use longtake_report::picture::{
    Band, Bar, BarSeries, Bars, Direction, Heat, Kind, Lines, Mark, Picture, Point, Radar, Ring,
    Series, Spoke, Spread, Style,
};

/// The whole report.
pub fn document() -> Document {
    let mut document = Document::new("Samsung 990 PRO 2TB");
    document.subtitle = "What it sustains, measured on an idle machine".into();
    document.made = "21 November 2026, 13:52 UTC, by longtake 0.1.0".into();
    document
        .fact("Target", "/dev/nvme0n1")
        .fact("Serial number", "S7KHNJ0W912345")
        .fact("Firmware", "4B2QJXD7")
        .fact("Capacity", "2.00 TB in blocks of 512 B")
        .fact("Link", "PCIe 4.0 x4 of 4.0 x4")
        .fact("Written by this run", "8.41 TB, 0.70 % of rated life");
    document.sections = vec![fill(), dips(), stream(), mix(), latency(), summary()];
    document
}

/// Every picture of it.
pub fn pictures() -> Vec<Picture> {
    document().sections.into_iter().flat_map(|s| s.pictures).collect()
}

/// A number between -1 and 1 that depends on nothing but its place.
fn noise(n: usize) -> f64 {
    let mut x = n as u64 ^ 0x9E37_79B9_7F4A_7C15;
    x ^= x >> 30;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^= x >> 31;
    x as f64 / u64::MAX as f64 * 2.0 - 1.0
}

fn fill() -> Section {
    let rate = |gb: f64, n: usize| {
        let base = match gb {
            ..226.0 => 6.85,
            ..1_450.0 => 1.42,
            ..2_000.0 => 0.93,
            ..2_060.0 => 2.10,
            _ => 0.88,
        };
        let dip = if gb > 226.0 && n.is_multiple_of(173) { 0.4 } else { 1.0 };
        base * dip * (1.0 + 0.025 * noise(n))
    };
    let points: Vec<Point> = (0..16_000)
        .map(|n| {
            let gb = n as f64 * 0.25;
            // The harness lost sight of the drive for a while.
            if (2_800.0..2_860.0).contains(&gb) {
                Point::gap(gb)
            } else {
                Point::new(gb, rate(gb, n))
            }
        })
        .collect();
    let band = |from, to, label: &str| Band { on: Direction::X, from, to, label: label.into() };
    let mark = |at, label: &str| Mark { on: Direction::X, at, label: label.into() };
    let mut marks = vec![
        mark(226.0, "SLC cache full at 226 GB"),
        mark(1_450.0, "cache shrinks at 1.45 TB"),
        mark(2_000.0, "drive full at 2.00 TB"),
        mark(2_060.0, "cache full again at 2.06 TB"),
    ];
    marks.push(Mark { on: Direction::Y, at: 3.125, label: "required: 25 Gb/s".into() });
    let lines = Lines {
        x: Axis::linear("Written since the trim", "GB"),
        y: Axis::linear("Write rate", "GB/s"),
        series: vec![Series { name: "Write rate".into(), points, ..Series::default() }],
        bands: vec![band(0.0, 2_000.0, "first fill"), band(2_000.0, 4_000.0, "overwrite")],
        marks,
    };
    let mut section = Section::new(
        "fill",
        "Filling the drive",
        "It sustains 0.88 GB/s (7.04 Gb/s) once it has been filled: one eighth of what it starts \
         with. The first 226 GB go at 6.85 GB/s.",
    );
    section.warnings.push(
        "The drive was at 71 °C for the last 4 minutes. Its limit is 82 °C, so heat was not the \
         cause of any threshold, but more air would make that certain."
            .into(),
    );
    section.paragraphs.push(
        "The drive was trimmed, then written from end to end twice with 1 MiB writes at a depth of \
         8. Thresholds are where the rate changes for good, found by change points with a \
         confidence above 99 %."
            .into(),
    );
    section.pictures.push(Picture::new(
        "Write rate while the drive fills",
        "Four thresholds: the cache fills, shrinks, and comes back for a moment at the second pass.",
        Kind::Lines(lines),
    ));
    section.tables.push(Table {
        caption: "Phases".into(),
        columns: vec![
            Column::text("Phase"),
            Column::number("From", "GB"),
            Column::number("Rate", "GB/s"),
            Column::number("Deviation", "%"),
            Column::text("Likely cause"),
        ],
        rows: [
            ("SLC cache", 0.0, 6.85, Some(1.4), "cache on an empty drive"),
            ("Native", 226.0, 1.42, Some(2.6), "cache full (SMART: no throttling)"),
            ("Shrunken cache", 1_450.0, 0.93, Some(3.1), "less free flash to use as cache"),
            ("Short burst", 2_000.0, 2.10, None, "static cache emptied while idle"),
            ("Overwrite", 2_060.0, 0.88, Some(5.2), "garbage collection"),
        ]
        .into_iter()
        .map(|(phase, from, rate, deviation, cause)| {
            let mut deviation = Cell::maybe(deviation, 1);
            if phase == "Short burst" {
                deviation = deviation.noted("too few intervals");
            }
            vec![
                Cell::text(phase),
                Cell::number(from, 0),
                Cell::number(rate, 2),
                deviation,
                Cell::text(cause),
            ]
        })
        .collect(),
    });
    section
}

fn dips() -> Section {
    let lines = Lines {
        x: Axis::linear("Time", "s"),
        y: Axis::linear("Dip", "% of the rate around it"),
        series: vec![Series {
            name: "Dip".into(),
            points: (0..64)
                .map(|n| Point::new(n as f64 * 43.25 + 260.0, 58.0 + 6.0 * noise(n)))
                .collect(),
            style: Style::Dots,
            ..Series::default()
        }],
        bands: vec![Band {
            on: Direction::Y,
            from: 50.0,
            to: 66.0,
            label: "depth of nine in ten dips".into(),
        }],
        ..Lines::default()
    };
    let mut section = Section::new(
        "dips",
        "Dips",
        "After the cache is full, the rate falls by 58 % for 0.25 s every 43 s. A buffer of 310 MB \
         rides this out at 1.2 GB/s.",
    );
    section.pictures.push(Picture::new(
        "Dips over time",
        "They come at a steady period, so they are the drive's own housekeeping.",
        Kind::Lines(lines),
    ));
    section
}

fn stream() -> Section {
    let depths = ["1", "2", "4", "8", "16", "24", "28", "32"];
    let sizes = ["64 KiB", "128 KiB", "256 KiB", "1 MiB", "4 MiB", "8 MiB", "16 MiB"];
    let rate = |depth: f64, size: f64| 6.9 * (1.0 - (-depth * size / 700.0).exp());
    let values = [64.0, 128.0, 256.0, 1024.0, 4096.0, 8192.0, 16384.0]
        .iter()
        .map(|size| {
            [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 28.0, 32.0]
                .iter()
                .map(|depth| (depth * size < 300_000.0).then(|| rate(*depth, *size)))
                .collect()
        })
        .collect();
    let heat = Heat {
        x_title: "Queue depth".into(),
        x: depths.map(String::from).to_vec(),
        y_title: "Block size".into(),
        y: sizes.map(String::from).to_vec(),
        values,
        value: Axis::linear("Read rate", "GB/s"),
    };
    let mut section = Section::new(
        "stream",
        "Streaming",
        "Reads reach the link's 6.9 GB/s from 1 MiB at a depth of 4, or 256 KiB at 16.",
    );
    section.pictures.push(Picture::new(
        "Read rate by block size and depth",
        "Cells without a colour were left out: the buffers would not have fitted in memory.",
        Kind::Heat(heat),
    ));
    section
}

fn mix() -> Section {
    let sizes = ["4 KiB", "16 KiB", "64 KiB", "256 KiB"];
    let series = |name: &str, factor: f64| BarSeries {
        name: name.into(),
        values: (0..4)
            .map(|n| {
                let value = factor * [0.21, 0.34, 0.62, 0.80][n];
                // The last was stopped before it was steady.
                (n < 3 || factor < 2.0).then(|| Bar::within(value, value * 0.93, value * 1.05))
            })
            .collect(),
    };
    let bars = Bars {
        x_title: "Block size, random".into(),
        groups: sizes.map(String::from).to_vec(),
        y: Axis::linear("Bandwidth", "GB/s"),
        series: vec![
            series("read only", 3.1),
            series("70 % read", 1.9),
            series("30 % read", 1.2),
            series("write only", 0.9),
        ],
    };
    let iops = |name: &str, top: f64, half: f64| {
        let depths = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
        let points: Vec<_> = depths.iter().map(|&d| (d, top * d / (d + half))).collect();
        let spread =
            points.iter().map(|&(x, y)| Spread { x, low: y * 0.9, high: y * 1.06 }).collect();
        Series { spread, ..Series::new(name, points) }
    };
    let lines = Lines {
        x: Axis::log("Queue depth", ""),
        y: Axis::log("Random 4 KiB", "IOPS"),
        series: vec![
            iops("read", 1_150_000.0, 60.0),
            iops("70 % read", 420_000.0, 21.0),
            iops("write", 210_000.0, 3.0),
        ],
        ..Lines::default()
    };
    let mut section = Section::new(
        "mix",
        "Reads and writes together",
        "A third of writes costs two thirds of the reads: 420,000 IOPS at 70 % reads, against \
         1,150,000 alone.",
    );
    section.pictures.push(Picture::new(
        "IOPS by queue depth",
        "Shaded: least to greatest of five rounds.",
        Kind::Lines(lines),
    ));
    section.pictures.push(Picture::new(
        "Bandwidth by block size",
        "The error is the range of five rounds.",
        Kind::Bars(bars),
    ));
    section
}

fn latency() -> Section {
    let percentiles = [
        0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999,
        99.9995, 99.9999,
    ];
    let curve = |name: &str, base: f64, growth: f64, known: f64| Series {
        name: name.into(),
        points: percentiles
            .iter()
            .map(|&p| {
                let nines = Scale::Nines.place(p).unwrap_or(0.0);
                let value = base * growth.powf(nines) * (1.0 + 0.3 * (nines - 3.0).max(0.0));
                if p <= known { Point::new(p, value) } else { Point::gap(p) }
            })
            .collect(),
        ..Series::default()
    };
    let lines = Lines {
        x: Axis::nines("Percentile"),
        y: Axis::log("Response time", "µs"),
        series: vec![
            curve("reader alone", 48.0, 1.45, 100.0),
            curve("beside a writer, other NVM Set", 52.0, 1.62, 100.0),
            curve("beside a writer, same namespace", 61.0, 2.7, 99.995),
        ],
        marks: vec![Mark { on: Direction::Y, at: 10_000.0, label: "deadline: 10 ms".into() }],
        ..Lines::default()
    };
    let mut section = Section::new(
        "neighbours",
        "Reading beside a writer",
        "A writer in the same namespace makes one read in ten thousand take 6.5 ms instead of 280 µs. \
         In another NVM Set it hardly shows.",
    );
    section.pictures.push(Picture::new(
        "Response time by percentile",
        "A curve ends where fewer than 100 samples lie beyond.",
        Kind::Lines(lines),
    ));
    section.tables.push(Table {
        caption: "Response time".into(),
        columns: vec![
            Column::text("Reader"),
            Column::number("50 %", "µs"),
            Column::number("99 %", "µs"),
            Column::number("99.99 %", "µs"),
            Column::number("99.9999 %", "µs"),
            Column::number("Reads", ""),
        ],
        rows: [
            ("alone", [Some(53.4), Some(100.9), Some(276.1), Some(847.0)], 412_345_678.0),
            ("other NVM Set", [Some(59.9), Some(136.5), Some(466.0), Some(1_750.0)], 398_000_120.0),
            ("same namespace", [Some(82.0), Some(444.7), Some(4_214.0), None], 61_512_004.0),
        ]
        .into_iter()
        .map(|(name, times, reads)| {
            let mut row = vec![Cell::text(name)];
            row.extend(times.map(|t| Cell::maybe(t, 1)));
            row.push(Cell::number(reads, 0));
            row
        })
        .collect(),
    });
    section
}

fn summary() -> Section {
    let spoke =
        |name: &str, unit: &str, maximum| Spoke { name: name.into(), unit: unit.into(), maximum };
    let ring =
        |name: &str, values: [Option<f64>; 6]| Ring { name: name.into(), values: values.to_vec() };
    let radar = Radar {
        spokes: vec![
            spoke("Sequential read", "GB/s", 8.0),
            spoke("Sustained write", "GB/s", 4.0),
            spoke("Random read", "kIOPS", 1_200.0),
            spoke("Random write", "kIOPS", 300.0),
            spoke("Viewers", "", 64.0),
            spoke("Steadiness", "%", 100.0),
        ],
        rings: vec![
            ring(
                "990 PRO 2TB",
                [Some(6.9), Some(0.88), Some(1_150.0), Some(210.0), Some(38.0), Some(71.0)],
            ),
            ring(
                "PM9A3 3.84TB",
                [Some(6.4), Some(3.6), Some(980.0), Some(180.0), Some(61.0), Some(98.0)],
            ),
            ring("S4510", [Some(0.55), Some(0.51), Some(95.0), Some(36.0), None, Some(96.0)]),
        ],
    };
    let mut section = Section::new(
        "summary",
        "Against other drives",
        "It reads faster than either and sustains a quarter of what the PM9A3 writes: for recording, \
         take the PM9A3.",
    );
    section.pictures.push(Picture::new(
        "Three drives",
        "Further out is better. Viewers of the S4510 were not measured.",
        Kind::Radar(radar),
    ));
    section
}
