//! Tables of figures: of one run with what is known about each, of several side by side with their ratios to the first.

use lab::{Figure, Unit};

use super::quantity::Quantity;
use crate::document::{Cell, Column, Table};
use crate::series::Columns;

/// The figures of each run in one table, in the order of the first run that has each. None without figures.
pub(super) fn table(caption: &str, runs: &[(&str, Vec<Figure>)]) -> Option<Table> {
    let (mut columns, rows) = match runs {
        [] => return None,
        [(_, figures)] => (
            vec![
                Column::number("Value", ""),
                Column::text("Unit"),
                Column::number("Lies between", ""),
                Column::text("Note"),
            ],
            figures.iter().map(alone).collect(),
        ),
        _ => side_by_side(runs),
    };
    columns.insert(0, Column::text("Figure"));
    let table = Table { caption: caption.to_owned(), columns, rows };
    (!table.rows.is_empty()).then_some(table)
}

/// Every figure of every experiment as columns for a file.
pub(super) fn columns(figures: &[(&str, Figure)]) -> Columns {
    let all = || figures.iter().map(|(_, figure)| figure);
    let unit = |unit| match unit {
        Unit::Bytes => "B",
        Unit::BytesPerSecond => "B/s",
        Unit::CommandsPerSecond => "1/s",
        Unit::Nanoseconds => "ns",
        Unit::Percent => "%",
        Unit::Count => "",
    };
    Columns::new()
        .texts("experiment", figures.iter().map(|(name, _)| (*name).to_owned()))
        .texts("figure", all().map(|f| f.name.clone()))
        .texts("label", all().map(|f| f.label.clone()))
        .floats("value", "", all().map(|f| f.value))
        .texts("unit", all().map(|f| unit(f.unit).to_owned()))
        .floats("low", "", all().map(|f| f.range.map(|(low, _)| low)))
        .floats("high", "", all().map(|f| f.range.map(|(_, high)| high)))
        .floats("confidence", "", all().map(|f| f.confidence))
        .texts("note", all().map(|f| f.note.clone()))
}

/// A figure in words: `1.42 GB/s`.
pub(super) fn words(figure: &Figure) -> Option<String> {
    let value = figure.value.filter(|value| value.is_finite())?;
    Some(match figure.unit {
        Unit::Bytes => base::ByteSize(value.max(0.0) as u64).to_string(),
        Unit::BytesPerSecond => base::Rate(value).to_string(),
        Unit::CommandsPerSecond => format!("{} IOPS", crate::axis::grouped(value, 0)),
        Unit::Nanoseconds => base::Duration::from_nanos(value.max(0.0) as u64).to_string(),
        Unit::Percent => format!("{} %", crate::axis::short(value)),
        Unit::Count => crate::axis::short(value),
    })
}

fn alone(figure: &Figure) -> Vec<Cell> {
    let quantity = Quantity::of(figure.unit, figure.value);
    let range = match figure.range {
        Some((low, high)) => {
            let end = |value: f64| crate::axis::short(quantity.show(value));
            Cell::text(format!("{} to {}", end(low), end(high)))
        }
        None => Cell::text(""),
    };
    let mut note = figure.note.clone();
    if let Some(confidence) = figure.confidence {
        let separator = if note.is_empty() { "" } else { "; " };
        note = format!("{note}{separator}{:.2} % sure", 100.0 * confidence);
    }
    vec![
        Cell::text(figure.label.clone()),
        quantity.cell(figure.value),
        Cell::text(quantity.unit),
        range,
        Cell::text(note),
    ]
}

fn side_by_side(runs: &[(&str, Vec<Figure>)]) -> (Vec<Column>, Vec<Vec<Cell>>) {
    let mut columns: Vec<Column> =
        runs.iter().map(|(label, _)| Column::number(*label, "")).collect();
    columns.push(Column::text("Unit"));
    let (first, others) = (runs[0].0, &runs[1..]);
    columns
        .extend(others.iter().map(|(label, _)| Column::number(format!("{label} / {first}"), "")));
    let mut rows = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for figure in runs.iter().flat_map(|(_, figures)| figures) {
        if seen.contains(&figure.name.as_str()) {
            continue;
        }
        seen.push(&figure.name);
        let of = |figures: &'_ [Figure]| figures.iter().find(|f| f.name == figure.name).cloned();
        let all: Vec<Option<Figure>> = runs.iter().map(|(_, figures)| of(figures)).collect();
        let value = |figure: &Option<Figure>| figure.as_ref().and_then(|figure| figure.value);
        let quantity = Quantity::of(figure.unit, all.iter().filter_map(value));
        let mut row = vec![Cell::text(figure.label.clone())];
        row.extend(all.iter().map(|figure| {
            let cell = quantity.cell(value(figure));
            match figure {
                Some(figure) if figure.value.is_none() && !figure.note.is_empty() => {
                    cell.noted(figure.note.clone())
                }
                _ => cell,
            }
        }));
        row.push(Cell::text(quantity.unit));
        let before = all.first().and_then(value).filter(|before| *before != 0.0);
        let ratio =
            |figure: &Option<Figure>| Cell::maybe(value(figure).zip(before).map(|(a, b)| a / b), 3);
        row.extend(all.iter().skip(1).map(ratio));
        rows.push(row);
    }
    (columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Value;

    fn figure(name: &str, value: Option<f64>) -> Figure {
        Figure::new(name, name, value, Unit::BytesPerSecond)
    }

    #[test]
    fn figures_stand_side_by_side_with_their_ratio_and_what_is_unknown_stays_so() {
        let runs = [
            ("a", vec![figure("x", Some(2e9)), figure("y", None).noted("too short")]),
            ("b", vec![figure("y", Some(1e6)), figure("x", Some(3e9)), figure("z", Some(0.0))]),
        ];
        let table = table("Figures", &runs).unwrap();
        assert_eq!(table.columns.len(), 5);
        let number = |row: usize, column: usize| match table.rows[row][column].value {
            Value::Number { value, .. } => Some(value),
            _ => None,
        };
        assert_eq!([number(0, 1), number(0, 2), number(0, 4)], [Some(2.0), Some(3.0), Some(1.5)]);
        assert_eq!([number(1, 1), number(1, 2), number(1, 4)], [None, Some(1.0), None]);
        assert_eq!(table.rows[1][1].note.as_deref(), Some("too short"));
        assert_eq!([number(2, 1), number(2, 2), number(2, 4)], [None, Some(0.0), None]);
    }

    #[test]
    fn a_figure_of_one_run_tells_its_range_and_how_sure_it_is() {
        let sure = Figure {
            range: Some((1.9e9, 2.1e9)),
            confidence: Some(0.99),
            ..figure("x", Some(2e9))
        };
        let table = table("Figures", &[("a", vec![sure.clone(), figure("y", None)])]).unwrap();
        assert_eq!(table.rows[0][3], Cell::text("1.9 to 2.1"));
        assert_eq!(table.rows[0][4], Cell::text("99.00 % sure"));
        assert_eq!(table.rows[1][1].value, Value::Unknown);
        assert_eq!(words(&sure).unwrap(), "2.00 GB/s (16.0 Gb/s)");
        assert_eq!(words(&figure("y", None)), None);
        assert_eq!(super::table("Figures", &[("a", Vec::new())]), None);
    }
}
