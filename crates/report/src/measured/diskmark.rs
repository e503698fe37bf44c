//! The table that CrystalDiskMark users know: four tests, each reading, writing and mixed.

use base::Rate;
use lab::experiment::diskmark::{Direction, DiskmarkPoint, DiskmarkResult, TESTS, Test};

use super::found::{Found, Shown};
use super::quantity::Quantity;
use crate::document::{Cell, Column, Table};
use crate::picture::{Bar, BarSeries, Bars, Kind, Picture};
use crate::series::Columns;
use crate::sparkline::labelled_sparkline;
use crate::text::{self, TextColumn};

/// Bytes a second of the table's unit.
const MEGABYTE: f64 = 1e6;
/// Rates below this many MB/s are shown with a digit behind the point.
const WHOLE_FROM: f64 = 100.0;

impl Shown for DiskmarkResult {
    const TITLE: &'static str = "The table of CrystalDiskMark";

    fn finding(&self) -> String {
        let cell = |direction| self.at(TESTS[0].name, direction).filter(|p| p.bytes_per_s > 0.0);
        let parts: Vec<String> = Direction::ALL
            .into_iter()
            .filter_map(|direction| {
                let rate = Rate(cell(direction)?.bytes_per_s);
                Some(format!("{} {rate}", direction.name()))
            })
            .collect();
        if parts.is_empty() {
            return "No sequential command came to an end, so nothing is known.".to_owned();
        }
        format!("{}: {}.", TESTS[0].title, parts.join(", "))
    }

    fn warnings(&self) -> Vec<String> {
        self.preparation.notes.iter().chain(&self.notes).cloned().collect()
    }

    fn pictures(found: &[Found<'_, Self>]) -> Vec<Picture> {
        bars(found).into_iter().collect()
    }

    fn tables(found: &[Found<'_, Self>]) -> Vec<Table> {
        found.iter().map(|run| table(run.result, run.title(found, "The table"))).collect()
    }

    fn is_listed(_name: &str) -> bool {
        false
    }

    fn sparklines(&self, width: usize) -> Vec<String> {
        let name = "reads, by row: ";
        let room = width.saturating_sub(name.chars().count());
        let rate = |test: &Test| Some(self.at(test.name, Direction::Read)?.bytes_per_s / 1e9);
        let rates: Vec<_> = TESTS.iter().map(rate).collect();
        vec![name.to_owned() + &labelled_sparkline(&rates, "GB/s", room)]
    }

    fn lines(&self, indent: usize) -> Vec<String> {
        let tests = self.tests();
        let first = TextColumn::left("", tests.iter().map(|test| test.title.to_owned()));
        let mut columns = Vec::new();
        for direction in self.directions() {
            let of = |test: &&Test| {
                self.at(test.name, direction).map_or_else(|| "-".to_owned(), megabytes)
            };
            columns.push(TextColumn::right(
                format!("{} MB/s", direction.name()),
                tests.iter().map(of),
            ));
        }
        for direction in self.directions() {
            let of = |test: &&Test| {
                self.at(test.name, direction)
                    .map_or_else(|| "-".to_owned(), |point| iops(point.iops))
            };
            columns.push(TextColumn::right(
                format!("{} IOPS", direction.name()),
                tests.iter().map(of),
            ));
        }
        let tables = text::tables(&first, columns, indent).join("\n\n");
        tables.lines().map(str::to_owned).collect()
    }

    fn series(&self) -> Vec<(&'static str, Columns)> {
        let points = || self.points.iter();
        let test = |of: fn(&Test) -> u64| points().map(move |p| p.of().map(of));
        let columns = Columns::new()
            .texts("test", points().map(|p| p.of().map_or(&*p.test, |test| test.title).to_owned()))
            .texts("operation", points().map(|p| p.direction.name().to_owned()))
            .integers("block", "B", test(|test| test.block_bytes))
            .integers("depth", "", test(|test| test.depth.into()))
            .integers("jobs", "", test(|test| test.jobs.into()))
            .integers("reads", "%", points().map(|p| u64::from(p.direction.read_percent())))
            .floats("commands", "1/s", points().map(|p| p.iops))
            .floats("rate", "B/s", points().map(|p| p.bytes_per_s))
            .integers("errors", "", points().map(|p| p.errors))
            .texts("limited_by_harness", points().map(|p| p.harness_limited.to_string()));
        let columns =
            super::summaries::columns(columns, "read_", points().map(|p| p.read.as_ref()));
        vec![(
            "diskmark",
            super::summaries::columns(columns, "write_", points().map(|p| p.write.as_ref())),
        )]
    }
}

/// What a table shows of a result.
trait Cells {
    /// The tests that were measured, top to bottom.
    fn tests(&self) -> Vec<&'static Test>;
    /// The directions that were measured, left to right.
    fn directions(&self) -> Vec<Direction>;
}

impl Cells for DiskmarkResult {
    fn tests(&self) -> Vec<&'static Test> {
        let is_there = |test: &&Test| self.points.iter().any(|p| p.test == test.name);
        TESTS.iter().filter(is_there).collect()
    }

    fn directions(&self) -> Vec<Direction> {
        let is_there = |d: &Direction| self.points.iter().any(|p| p.direction == *d);
        Direction::ALL.into_iter().filter(is_there).collect()
    }
}

fn decimals(megabytes: f64) -> u8 {
    u8::from(megabytes < WHOLE_FROM)
}

fn megabytes(point: &DiskmarkPoint) -> String {
    let rate = point.bytes_per_s / MEGABYTE;
    crate::axis::grouped(rate, decimals(rate).into())
}

fn iops(value: f64) -> String {
    crate::axis::grouped(value, 0)
}

fn table(result: &DiskmarkResult, caption: String) -> Table {
    let directions = result.directions();
    let column = |direction: &Direction, unit: &str| Column::number(direction.name(), unit);
    let mut columns = vec![Column::text("Test")];
    columns.extend(directions.iter().map(|direction| column(direction, "MB/s")));
    columns.extend(directions.iter().map(|direction| column(direction, "IOPS")));
    let row = |test: &Test| {
        let at = |direction: &Direction| result.at(test.name, *direction);
        let rate = |direction: &Direction| {
            let rate = at(direction).map(|point| point.bytes_per_s / MEGABYTE);
            Cell::maybe(rate, rate.map_or(0, decimals))
        };
        let iops = |direction: &Direction| match at(direction) {
            Some(point) => Cell::number(point.iops, 0),
            None => Cell::default(),
        };
        let mut row = vec![Cell::text(test.title)];
        row.extend(directions.iter().map(rate));
        row.extend(directions.iter().map(iops));
        row
    };
    Table { caption, columns, rows: result.tests().into_iter().map(row).collect() }
}

fn bars(found: &[Found<'_, DiskmarkResult>]) -> Option<Picture> {
    let all = || found.iter().flat_map(|run| &run.result.points);
    let rate = Quantity::rate(all().map(|point| point.bytes_per_s));
    let mut series = Vec::new();
    for direction in Direction::ALL {
        for run in found.iter().filter(|run| run.result.directions().contains(&direction)) {
            let value = |test: &Test| {
                Some(Bar::new(rate.show(run.result.at(test.name, direction)?.bytes_per_s)))
            };
            let values = TESTS.iter().map(value).collect();
            series.push(BarSeries { name: run.name(found, direction.name()), values });
        }
    }
    if series.is_empty() {
        return None;
    }
    let bars = Bars {
        x_title: String::new(),
        groups: TESTS.iter().map(|test| test.title.to_owned()).collect(),
        y: rate.axis("Rate"),
        series,
    };
    let caption =
        "Q is the number of commands under way for each of T jobs. Of the mix, 70 % are reads.";
    Some(Picture::new("Rates of the four tests", caption, Kind::Bars(bars)))
}

#[cfg(test)]
mod tests {
    use lab::experiment::Preparation;

    use super::*;

    fn result() -> DiskmarkResult {
        let point = |test: &Test, direction, bytes_per_s: f64| DiskmarkPoint {
            test: test.name.to_owned(),
            direction,
            iops: bytes_per_s / test.block_bytes as f64,
            bytes_per_s,
            read: None,
            write: None,
            errors: 0,
            harness_limited: false,
        };
        let rates = [3_512.4e6, 3_498.0e6, 1_640.0e6, 62.56e6];
        let points = TESTS.iter().zip(rates).flat_map(|(test, rate)| {
            Direction::ALL.map(|direction| {
                let share = if direction == Direction::Read { 1.0 } else { 0.5 };
                point(test, direction, rate * share)
            })
        });
        DiskmarkResult {
            drives: vec!["drive".to_owned()],
            region_bytes: 1 << 30,
            point_ns: 5_000_000_000,
            preparation: Preparation::default(),
            points: points.collect(),
            skipped: Vec::new(),
            writes_left_out: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_test_and_commas_between_thousands_in_every_column() {
        let lines = result().lines(2);
        let rows: Vec<Vec<&str>> =
            lines.iter().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows[0].join(" "),
            "read MB/s write MB/s mix MB/s read IOPS write IOPS mix IOPS"
        );
        assert_eq!(rows[1].join(" "), "SEQ1M Q8T1 3,512 1,756 1,756 3,350 1,675 1,675");
        assert_eq!(rows[2][..2].join(" "), "SEQ128K Q32T1");
        assert_eq!(rows[3].join(" "), "RND4K Q32T16 1,640 820 820 400,391 200,195 200,195");
        assert_eq!(rows[4].join(" "), "RND4K Q1T1 62.6 31.3 31.3 15,273 7,637 7,637");
        assert_eq!(rows.len(), 5);
        assert!(lines.iter().all(|line| line.chars().count() <= 96), "{lines:?}");
    }

    #[test]
    fn what_was_not_measured_has_no_column() {
        let mut reads = result();
        reads.points.retain(|point| point.direction == Direction::Read);
        let head = reads.lines(0)[0].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(head, "read MB/s read IOPS");
    }
}
