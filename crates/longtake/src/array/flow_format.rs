//! Formats of tables of flows: CSV, JSON and Parquet.

use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Result;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use super::file_format::FormatError;
use super::flow_columns::{Column, Values, columns};
use super::flows::Flows;
use crate::instant::utc;

/// How a table of flows is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFormat {
    /// Aligned columns for a reader.
    Table,
    /// A header line, then a line for each row.
    Csv,
    /// One JSON value with the rows, the sums and what could not be read.
    Json,
    /// A Parquet table with the columns of [`FlowFormat::Csv`].
    Parquet,
}

impl FromStr for FlowFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "table" => Ok(Self::Table),
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            "parquet" => Ok(Self::Parquet),
            _ => Err("give table, csv, json or parquet".to_owned()),
        }
    }
}

impl FlowFormat {
    /// The format that was named, or that the output's name selects; a table if nothing does.
    ///
    /// # Errors
    /// As [`FlowFormat::of`].
    pub fn choose(named: Option<Self>, output: Option<&Path>) -> Result<Self, FormatError> {
        match (named, output) {
            (Some(format), _) => Ok(format),
            (None, Some(path)) => Self::of(path),
            (None, None) => Ok(Self::Table),
        }
    }

    /// The format that a file's name selects by its extension.
    ///
    /// # Errors
    /// [`FormatError::FlowExtension`] if the extension is none of the known ones.
    pub fn of(path: &Path) -> Result<Self, FormatError> {
        let extension = path.extension().map(|extension| extension.to_string_lossy());
        match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
            "txt" => Ok(Self::Table),
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            "parquet" => Ok(Self::Parquet),
            _ => Err(FormatError::FlowExtension { path: path.to_owned() }),
        }
    }
}

impl Flows {
    /// A file of this format, with Community IDs if they are wanted. A table has the rows of CSV: whoever shows it aligns them.
    ///
    /// # Errors
    /// If it can't be encoded.
    pub fn encode(&self, format: FlowFormat, with_ids: bool) -> crate::Result<Vec<u8>> {
        match format {
            FlowFormat::Table | FlowFormat::Csv => Ok(self.csv(with_ids).into_bytes()),
            FlowFormat::Json => {
                Ok(format!("{:#}\n", crate::json::flows(self, with_ids)).into_bytes())
            }
            FlowFormat::Parquet => self.parquet(with_ids),
        }
    }

    /// The rows as CSV (RFC 4180), with Community IDs if they are wanted. No value needs quotes.
    fn csv(&self, with_ids: bool) -> String {
        let columns = columns(&self.ranking, with_ids);
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        let mut out = names.join(",");
        out.push('\n');
        for row in 0..self.ranking.rows.len() {
            for (at, column) in columns.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                // Writing to a string can't fail.
                let _ = match &column.values {
                    Values::Text(values) => {
                        write!(out, "{comma}{}", values[row].as_deref().unwrap_or_default())
                    }
                    Values::Number(values) | Values::Time(values) => match values[row] {
                        Some(value) => write!(out, "{comma}{value}"),
                        None => write!(out, "{comma}"),
                    },
                };
            }
            out.push('\n');
        }
        out
    }

    /// The rows as JSON, with Community IDs if they are wanted. Times are in UTC, and their names lack the unit.
    pub(crate) fn json_rows(&self, with_ids: bool) -> Value {
        let columns = columns(&self.ranking, with_ids);
        let row = |row: usize| {
            let value = |column: &Column| match &column.values {
                Values::Text(values) => (column.name.to_owned(), values[row].clone().into()),
                Values::Number(values) => (column.name.to_owned(), values[row].into()),
                Values::Time(values) => {
                    let time = values[row].map(|ns| utc(base::Timestamp::from_nanos(ns)));
                    (column.name.trim_end_matches("_ns").to_owned(), time.into())
                }
            };
            Value::Object(columns.iter().map(value).collect::<Map<String, Value>>())
        };
        (0..self.ranking.rows.len()).map(row).collect()
    }

    /// The rows as a Parquet file, with Community IDs if they are wanted.
    ///
    /// # Errors
    /// If it can't be encoded.
    fn parquet(&self, with_ids: bool) -> crate::Result<Vec<u8>> {
        let written = write_parquet(&columns(&self.ranking, with_ids));
        Ok(written.map_err(anyhow::Error::from)?)
    }
}

fn write_parquet(columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("flows").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("longtake ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        match &column.values {
            Values::Text(values) => {
                let texts = values.iter().map(|value| value.as_deref().map(ByteArray::from));
                write_column::<ByteArrayType>(&mut group, texts)?;
            }
            Values::Number(values) | Values::Time(values) => {
                let numbers = values.iter().map(|value| value.map(|value| value as i64));
                write_column::<Int64Type>(&mut group, numbers)?;
            }
        }
    }
    group.close()?;
    file.into_inner()
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.values {
        Values::Text(_) => (Physical::BYTE_ARRAY, LogicalType::String),
        Values::Number(_) => (Physical::INT64, LogicalType::integer(64, false)),
        Values::Time(_) => (Physical::INT64, LogicalType::timestamp(true, TimeUnit::NANOS)),
    };
    let builder = Type::primitive_type_builder(column.name, physical);
    let optional = builder.with_repetition(Repetition::OPTIONAL);
    optional.with_logical_type(Some(logical)).build().map(Arc::new)
}

/// Writes a column whose values may be missing.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    if let Some(mut writer) = group.next_column()? {
        writer.typed::<T>().write_batch(&present, Some(&levels), None)?;
        writer.close()?;
    }
    Ok(())
}
