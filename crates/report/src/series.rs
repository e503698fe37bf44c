//! Series as files: a table of columns, written as CSV (RFC 4180) and as Parquet.
//!
//! A value that isn't known is an empty field in CSV and null in Parquet. A column's unit stands behind
//! its name in CSV, `rate [B/s]`, and in the file's key-value metadata in Parquet, `unit:rate` = `B/s`.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::{Map, Value, json};

/// Rows written as one row group, so that readers can skip.
const ROWS_PER_GROUP: usize = 1 << 20;

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq)]
struct Column {
    name: String,
    unit: String,
    values: Values,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    Floats(Vec<Option<f64>>),
    Integers(Vec<Option<u64>>),
    Texts(Vec<Option<String>>),
}

impl Columns {
    /// No columns yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column of numbers. What isn't finite isn't known.
    #[must_use]
    pub fn floats<V: Into<Option<f64>>>(
        self,
        name: &str,
        unit: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let known = |v: V| v.into().filter(|v| v.is_finite());
        self.with(name, unit, Values::Floats(values.into_iter().map(known).collect()))
    }

    /// Adds a column of whole numbers: bytes, nanoseconds, counts.
    #[must_use]
    pub fn integers<V: Into<Option<u64>>>(
        self,
        name: &str,
        unit: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.with(name, unit, Values::Integers(values.into_iter().map(Into::into).collect()))
    }

    /// Adds a column of words.
    #[must_use]
    pub fn texts<V: Into<Option<String>>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.with(name, "", Values::Texts(values.into_iter().map(Into::into).collect()))
    }

    /// The same with a column of one word in all rows before the others. Nothing is added to a table that has such a column.
    #[must_use]
    pub fn led_by(mut self, name: &str, word: &str) -> Self {
        if self.columns.iter().any(|column| column.name == name) {
            return self;
        }
        let values = Values::Texts(vec![Some(word.to_owned()); self.rows()]);
        self.columns.insert(0, Column { name: name.to_owned(), unit: String::new(), values });
        self
    }

    /// Rows: the length of the first column.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.values.len())
    }

    /// Each column's values and, if it has one, its unit, by its name.
    pub fn to_json(&self) -> Value {
        let mut columns = Map::new();
        let mut units = Map::new();
        for column in &self.columns {
            let values = match &column.values {
                Values::Floats(values) => json!(values),
                Values::Integers(values) => json!(values),
                Values::Texts(values) => json!(values),
            };
            columns.insert(column.name.clone(), values);
            if !column.unit.is_empty() {
                units.insert(column.name.clone(), json!(column.unit));
            }
        }
        json!({ "columns": columns, "units": units })
    }

    /// Writes them as CSV with a line of names first, lines ended by CR LF.
    ///
    /// # Errors
    /// [`SeriesError`] if the columns don't make a table, or writing fails.
    pub fn write_csv(&self, mut to: impl Write) -> Result<(), SeriesError> {
        self.check()?;
        let error = |reason| SeriesError::Csv { reason };
        let mut line = String::new();
        for (i, column) in self.columns.iter().enumerate() {
            let name = if column.unit.is_empty() {
                column.name.clone()
            } else {
                format!("{} [{}]", column.name, column.unit)
            };
            push_field(&mut line, i, &name);
        }
        line.push_str("\r\n");
        to.write_all(line.as_bytes()).map_err(error)?;
        for row in 0..self.rows() {
            line.clear();
            for (i, column) in self.columns.iter().enumerate() {
                push_field(&mut line, i, &column.values.field(row));
            }
            line.push_str("\r\n");
            to.write_all(line.as_bytes()).map_err(error)?;
        }
        to.flush().map_err(error)
    }

    /// Writes them as Parquet, compressed by Snappy.
    ///
    /// # Errors
    /// [`SeriesError`] if the columns don't make a table, or writing fails.
    pub fn write_parquet(&self, to: impl Write + Send) -> Result<(), SeriesError> {
        self.check()?;
        self.parquet(to).map_err(|reason| SeriesError::Parquet { reason })
    }

    fn parquet(&self, to: impl Write + Send) -> Result<(), ParquetError> {
        let fields = self
            .columns
            .iter()
            .map(|c| c.parquet_type().map(Arc::new))
            .collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("series").with_fields(fields).build()?;
        let units = self
            .columns
            .iter()
            .filter(|c| !c.unit.is_empty())
            .map(|c| KeyValue::new(format!("unit:{}", c.name), c.unit.clone()))
            .collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("longtake ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(units))
            .build();
        let mut file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
        for start in (0..self.rows()).step_by(ROWS_PER_GROUP) {
            let end = (start + ROWS_PER_GROUP).min(self.rows());
            let mut group = file.next_row_group()?;
            for column in &self.columns {
                let Some(mut writer) = group.next_column()? else { break };
                match &column.values {
                    Values::Floats(values) => {
                        let (levels, values) = split(&values[start..end], |v| *v);
                        writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                    }
                    Values::Integers(values) => {
                        // Unsigned by the logical type; the bits are the same.
                        let (levels, values) = split(&values[start..end], |v| *v as i64);
                        writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                    }
                    Values::Texts(values) => {
                        let bytes = |v: &String| ByteArray::from(v.as_str());
                        let (levels, values) = split(&values[start..end], bytes);
                        writer.typed::<ByteArrayType>().write_batch(
                            &values,
                            Some(&levels),
                            None,
                        )?;
                    }
                }
                writer.close()?;
            }
            group.close()?;
        }
        file.close()?;
        Ok(())
    }

    fn with(mut self, name: &str, unit: &str, values: Values) -> Self {
        self.columns.push(Column { name: name.to_owned(), unit: unit.to_owned(), values });
        self
    }

    fn check(&self) -> Result<(), SeriesError> {
        for (i, column) in self.columns.iter().enumerate() {
            if column.values.len() != self.rows() {
                return Err(SeriesError::Length {
                    column: column.name.clone(),
                    rows: column.values.len(),
                    expected: self.rows(),
                });
            }
            if self.columns[..i].iter().any(|before| before.name == column.name) {
                return Err(SeriesError::Name { column: column.name.clone() });
            }
        }
        Ok(())
    }
}

impl Column {
    fn parquet_type(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.values {
            Values::Floats(_) => (Physical::DOUBLE, None),
            Values::Integers(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Values::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Floats(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// A value as text that reads back as the same value; empty if it isn't known.
    fn field(&self, row: usize) -> String {
        let field = match self {
            Self::Floats(values) => values[row].map(|v| v.to_string()),
            Self::Integers(values) => values[row].map(|v| v.to_string()),
            Self::Texts(values) => values[row].clone(),
        };
        field.unwrap_or_default()
    }
}

/// Definition levels (1 for a value, 0 for null), and the values that are known.
fn split<V, T>(values: &[Option<V>], to: impl Fn(&V) -> T) -> (Vec<i16>, Vec<T>) {
    let levels = values.iter().map(|v| i16::from(v.is_some())).collect();
    (levels, values.iter().flatten().map(to).collect())
}

/// Adds a field, quoted as RFC 4180 asks.
fn push_field(line: &mut String, index: usize, field: &str) {
    if index > 0 {
        line.push(',');
    }
    if field.contains([',', '"', '\r', '\n']) {
        line.push('"');
        line.push_str(&field.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(field);
    }
}

/// Why series could not be written.
#[derive(Debug)]
pub enum SeriesError {
    /// A column has more or fewer values than the first.
    Length {
        /// Its name.
        column: String,
        /// Its values.
        rows: usize,
        /// The first column's values.
        expected: usize,
    },
    /// Two columns have the same name.
    Name {
        /// The name.
        column: String,
    },
    /// Writing CSV failed.
    Csv {
        /// The kernel's reason.
        reason: io::Error,
    },
    /// Writing Parquet failed.
    Parquet {
        /// The reason.
        reason: ParquetError,
    },
}

impl fmt::Display for SeriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { column, rows, expected } => write!(
                f,
                "writing series: column '{column}' has {rows} values and the first has {expected}; \
                 give each row a value, or None where it isn't known"
            ),
            Self::Name { column } => write!(
                f,
                "writing series: two columns are called '{column}'; rename one, or a reader can't \
                 tell them apart"
            ),
            Self::Csv { reason } => write!(
                f,
                "writing series as CSV failed: {reason}; what was written is incomplete: check the \
                 space left, and write it again"
            ),
            Self::Parquet { reason } => write!(
                f,
                "writing series as Parquet failed: {reason}; what was written can't be read: check \
                 the space left, and write it again"
            ),
        }
    }
}

impl std::error::Error for SeriesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Csv { reason } => Some(reason),
            Self::Parquet { reason } => Some(reason),
            Self::Length { .. } | Self::Name { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn sample() -> Columns {
        Columns::new()
            .integers("time", "ns", [0, u64::MAX, 7])
            .floats("rate", "B/s", [Some(1.5), None, Some(f64::NAN)])
            .texts("phase", [Some("a, \"b\"\r\n".to_owned()), Some(String::new()), None])
    }

    fn csv(columns: &Columns) -> String {
        let mut bytes = Vec::new();
        columns.write_csv(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn csv_names_units_quotes_what_it_must_and_leaves_the_unknown_empty() {
        assert_eq!(
            csv(&sample()),
            "time [ns],rate [B/s],phase\r\n0,1.5,\"a, \"\"b\"\"\r\n\"\r\n\
             18446744073709551615,,\r\n7,,\r\n"
        );
    }

    #[test]
    fn csv_numbers_read_back_as_the_same_numbers() {
        let values = [0.1, 1e300, 5e-324, 123_456_789.123_456_78, -0.0];
        let text = csv(&Columns::new().floats("v", "", values));
        let back: Vec<f64> = text.lines().skip(1).map(|l| l.parse().unwrap()).collect();
        assert_eq!(back, values);
    }

    #[test]
    fn parquet_reads_back_with_types_units_and_nulls() {
        let mut file = tempfile::tempfile().unwrap();
        sample().write_parquet(&mut file).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let metadata = reader.metadata().file_metadata();
        let units: Vec<_> = metadata
            .key_value_metadata()
            .unwrap()
            .iter()
            .map(|kv| (kv.key.as_str(), kv.value.as_deref().unwrap()))
            .collect();
        assert_eq!(units, [("unit:time", "ns"), ("unit:rate", "B/s")]);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[1].get_ulong(0).unwrap(), u64::MAX);
        assert_eq!(rows[0].get_double(1).unwrap(), 1.5);
        assert!(rows[1].is_null(1).unwrap() && rows[2].is_null(1).unwrap());
        assert_eq!(rows[0].get_string(2).unwrap(), "a, \"b\"\r\n");
        assert_eq!(rows[1].get_string(2).unwrap(), "");
        assert!(rows[2].is_null(2).unwrap());
    }

    #[test]
    fn long_series_go_into_several_row_groups_and_lose_nothing() {
        let rows = ROWS_PER_GROUP + 3;
        let mut file = tempfile::tempfile().unwrap();
        Columns::new().integers("n", "", 0..rows as u64).write_parquet(&mut file).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        assert_eq!(reader.metadata().file_metadata().num_rows(), rows as i64);
        let last = reader.get_row_iter(None).unwrap().last().unwrap().unwrap();
        assert_eq!(last.get_ulong(0).unwrap(), rows as u64 - 1);
    }

    #[test]
    fn columns_that_make_no_table_are_refused_by_name() {
        let uneven = Columns::new().integers("a", "", [1, 2]).integers("short", "", [1]);
        let twice = Columns::new().integers("same", "", [1]).integers("same", "", [1]);
        for (columns, name) in [(uneven, "short"), (twice, "same")] {
            let error = columns.write_csv(Vec::new()).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            assert!(columns.write_parquet(Vec::new()).is_err());
        }
    }

    #[test]
    fn a_failing_writer_is_an_error_that_says_what_to_do() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let csv = sample().write_csv(Full).unwrap_err().to_string();
        let parquet = sample().write_parquet(Full).unwrap_err().to_string();
        for error in [csv, parquet] {
            assert!(error.contains("check the space left"), "{error}");
        }
    }
}
