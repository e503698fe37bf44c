//! A report as plain data: what was found, in words, numbers and pictures.
//!
//! Callers fill it, [`html`](crate::html) shows it, and it survives a way through JSON unchanged.

use serde::{Deserialize, Serialize};

use crate::picture::Picture;

/// One report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// What it is about: a drive's model, or the runs that are compared.
    pub title: String,
    /// One line below the title.
    pub subtitle: String,
    /// When and by what it was made, as text.
    pub made: String,
    /// What the reader must know of the drive and the run, in the order given.
    pub facts: Vec<Fact>,
    /// What was found, in reading order.
    pub sections: Vec<Section>,
}

impl Document {
    /// An empty report with a title.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a fact.
    pub fn fact(&mut self, label: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.facts.push(Fact { label: label.into(), value: value.into() });
        self
    }
}

/// A labelled piece of text: `Firmware`, `2B2QEXM7`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is.
    pub label: String,
    /// Its value with its unit.
    pub value: String,
}

/// One question and its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// A short name for links, unique in the document: `fill`.
    pub id: String,
    /// The subject: `Filling the drive`.
    pub title: String,
    /// The finding in words. It comes before everything else.
    pub answer: String,
    /// What the reader must heed before believing the answer.
    pub warnings: Vec<String>,
    /// How it was found, and what it means.
    pub paragraphs: Vec<String>,
    /// What it looks like.
    pub pictures: Vec<Picture>,
    /// Its figures.
    pub tables: Vec<Table>,
}

impl Section {
    /// A section with its finding.
    pub fn new(id: impl Into<String>, title: impl Into<String>, answer: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), answer: answer.into(), ..Self::default() }
    }
}

/// Figures in rows. A row shorter than the columns ends in cells that are not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What the figures are.
    pub caption: String,
    /// The columns, left to right.
    pub columns: Vec<Column>,
    /// The rows, top to bottom.
    pub rows: Vec<Vec<Cell>>,
}

/// A column's head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// What is in it.
    pub name: String,
    /// The unit of its numbers; empty if they have none.
    pub unit: String,
    /// Where its cells stand.
    pub alignment: Alignment,
}

impl Column {
    /// A column of text.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { name: name.into(), unit: unit.into(), alignment: Alignment::Right }
    }
}

/// Where a column's cells stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alignment {
    /// As text does.
    #[default]
    Left,
    /// As numbers do.
    Right,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What it holds.
    pub value: Value,
    /// What to know about this value alone, shown beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Cell {
    /// A cell of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { value: Value::Text(text.into()), note: None }
    }

    /// A number, shown with this many digits behind the point. What isn't finite is not known.
    pub fn number(value: f64, decimals: u8) -> Self {
        Self::maybe(Some(value), decimals)
    }

    /// A number, or a cell that is not known.
    pub fn maybe(value: Option<f64>, decimals: u8) -> Self {
        let value = match value.filter(|v| v.is_finite()) {
            Some(value) => Value::Number { value, decimals },
            None => Value::Unknown,
        };
        Self { value, note: None }
    }

    /// The same with a note.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// What a cell holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Nothing is known. It is shown as such, never as zero.
    #[default]
    Unknown,
    /// Words.
    Text(String),
    /// A finite number in its column's unit.
    Number {
        /// The number.
        #[serde(deserialize_with = "crate::picture::null_is_unknown")]
        value: f64,
        /// Digits shown behind the point.
        decimals: u8,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_finite_is_not_known() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Cell::number(value, 1).value, Value::Unknown);
        }
        assert_eq!(Cell::number(1.5, 1).value, Value::Number { value: 1.5, decimals: 1 });
    }

    #[test]
    fn a_document_survives_json_unchanged() {
        let document = crate::sample::document();
        let json = serde_json::to_string(&document).unwrap();
        assert_eq!(serde_json::from_str::<Document>(&json).unwrap(), document);
    }
}
