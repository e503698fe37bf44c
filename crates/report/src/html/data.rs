//! A picture's data as a table, for those who want the figures.

use std::collections::BTreeMap;

use crate::axis::{Axis, short};
use crate::document::{Alignment, Cell, Column, Table};
use crate::picture::{Bars, Direction, Heat, Kind, Lines, Picture, Radar};
use crate::thin::thin;

/// Points of a series in a table at most. The page has all of them as JSON and CSV.
const POINTS_MAX: usize = 120;

/// The data of a picture.
pub fn table(picture: &Picture) -> Table {
    match &picture.kind {
        Kind::Lines(data) => lines(data),
        Kind::Heat(data) => heat(data),
        Kind::Radar(data) => radar(data),
        Kind::Bars(data) => bars(data),
    }
}

fn lines(lines: &Lines) -> Table {
    // By x in the order of numbers: the bits of a float, turned so that they sort.
    let order = |x: f64| {
        let bits = (x + 0.0).to_bits() as i64;
        bits ^ (((bits >> 63) as u64) >> 1) as i64
    };
    let mut rows: BTreeMap<i64, (f64, Vec<Cell>)> = BTreeMap::new();
    let width = lines.series.len();
    let mut points = 0;
    let mut shown = 0;
    for (index, series) in lines.series.iter().enumerate() {
        let thinned = thin(&series.points, POINTS_MAX);
        points = points.max(series.points.len());
        shown = shown.max(thinned.len());
        for point in thinned.into_iter().filter(|p| p.x.is_finite()) {
            let empty = || (point.x, vec![Cell::text(""); width]);
            let (_, row) = rows.entry(order(point.x)).or_insert_with(empty);
            row[index] = cell(point.y);
        }
    }
    let mut columns = vec![column(&lines.x, &lines.x.label)];
    columns.extend(lines.series.iter().map(|s| column(&lines.y, &s.name)));
    let rows = rows.into_values().map(|(x, row)| {
        let mut cells = vec![exact(x)];
        cells.extend(row);
        cells
    });
    let mut caption = if shown < points {
        format!(
            "{shown} of {points} points, with the extremes of each stretch; the CSV has all of them."
        )
    } else {
        String::new()
    };
    for mark in &lines.marks {
        let axis = if mark.on == Direction::X { &lines.x } else { &lines.y };
        let at = format!("{} {}", short(mark.at), axis.unit);
        caption.push_str(&format!(" Mark at {}: {}.", at.trim_end(), mark.label));
    }
    Table { caption: caption.trim_start().to_owned(), columns, rows: rows.collect() }
}

fn heat(heat: &Heat) -> Table {
    let mut columns = vec![Column::text(heat.y_title.clone())];
    columns.extend(heat.x.iter().map(|label| Column::number(label.clone(), "")));
    let rows = heat.y.iter().enumerate().map(|(row, label)| {
        let mut cells = vec![Cell::text(label.clone())];
        cells.extend((0..heat.x.len()).map(|column| cell(heat.at(row, column))));
        cells
    });
    let caption = format!("{}, across: {}", heat.value.heading(), heat.x_title);
    Table { caption, columns, rows: rows.collect() }
}

fn radar(radar: &Radar) -> Table {
    let mut columns = vec![Column::text(""), Column::text("Unit")];
    columns.extend(radar.rings.iter().map(|ring| Column::number(ring.name.clone(), "")));
    let rows = radar.spokes.iter().enumerate().map(|(n, spoke)| {
        let mut cells = vec![Cell::text(spoke.name.clone()), Cell::text(spoke.unit.clone())];
        cells.extend(radar.rings.iter().map(|ring| cell(ring.values.get(n).copied().flatten())));
        cells
    });
    Table { caption: String::new(), columns, rows: rows.collect() }
}

fn bars(bars: &Bars) -> Table {
    let mut columns = vec![Column::text(bars.x_title.clone())];
    columns.extend(bars.series.iter().map(|s| column(&bars.y, &s.name)));
    let rows = bars.groups.iter().enumerate().map(|(n, group)| {
        let mut cells = vec![Cell::text(group.clone())];
        cells.extend(bars.series.iter().map(|series| {
            let bar = series.values.get(n).copied().flatten();
            let shown = cell(bar.map(|b| b.value));
            match bar.and_then(|b| Some((b.low?, b.high?))) {
                Some((low, high)) => shown.noted(format!("{} to {}", short(low), short(high))),
                None => shown,
            }
        }));
        cells
    });
    Table { caption: String::new(), columns, rows: rows.collect() }
}

fn column(axis: &Axis, name: &str) -> Column {
    Column { name: name.to_owned(), unit: axis.unit.clone(), alignment: Alignment::Right }
}

/// A number in as few digits as tell it apart.
fn cell(value: Option<f64>) -> Cell {
    let Some(value) = value.filter(|v| v.is_finite()) else { return Cell::maybe(None, 0) };
    Cell::number(value, digits(&short(value)))
}

/// A number in full, as far as six digits behind the point go: places must be told apart.
fn exact(value: f64) -> Cell {
    let text = format!("{value:.6}");
    Cell::number(value, digits(text.trim_end_matches('0').trim_end_matches('.')))
}

fn digits(text: &str) -> u8 {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len().min(9) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Value;
    use crate::picture::{Point, Series};

    fn number(cell: &Cell) -> Option<f64> {
        match cell.value {
            Value::Number { value, .. } => Some(value),
            _ => None,
        }
    }

    #[test]
    fn series_are_joined_by_place_in_the_order_of_numbers() {
        let lines = Lines {
            series: vec![
                Series::new("a", [(-2.0, 1.0), (-1.0, 2.0), (0.0, 3.0)]),
                Series::new("b", [(-1.0, 4.0), (10.0, 5.0)]),
            ],
            ..Lines::default()
        };
        let table = lines_table(lines);
        let rows: Vec<Vec<Option<f64>>> =
            table.rows.iter().map(|row| row.iter().map(number).collect()).collect();
        assert_eq!(
            rows,
            [
                [Some(-2.0), Some(1.0), None],
                [Some(-1.0), Some(2.0), Some(4.0)],
                [Some(0.0), Some(3.0), None],
                [Some(10.0), None, Some(5.0)],
            ]
        );
    }

    #[test]
    fn a_measured_gap_is_not_known_and_a_place_without_a_point_is_empty() {
        let mut gap = Series::new("a", [(1.0, 1.0)]);
        gap.points.push(Point::gap(2.0));
        let series = vec![gap, Series::new("b", [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)])];
        let table = lines_table(Lines { series, ..Lines::default() });
        assert_eq!(table.rows[1][1].value, Value::Unknown);
        assert_eq!(table.rows[2][1].value, Value::Text(String::new()));
    }

    #[test]
    fn a_long_series_says_how_much_of_it_is_shown() {
        let series = vec![Series::new("a", (0..5_000).map(|n| (f64::from(n), 0.5)))];
        let table = lines_table(Lines { series, ..Lines::default() });
        assert!(table.rows.len() <= POINTS_MAX);
        assert!(table.caption.contains("of 5000 points"), "{}", table.caption);
    }

    fn lines_table(lines: Lines) -> Table {
        table(&Picture::new("", "", Kind::Lines(lines)))
    }
}
