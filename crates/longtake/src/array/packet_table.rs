//! Packets as a Parquet table, a row group at a time.

use std::sync::Arc;

use anyhow::Result;
use format::Interface;
use format::pcapng::ReadPacket;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::encode::COLUMNS;

/// Packets of a row group at most.
const ROWS_MAX: usize = 1 << 18;

/// Bytes of packets in a row group at most, and one packet more.
const BYTES_MAX: usize = 32 << 20;

/// Encodes packets as Parquet.
pub(super) struct PacketTable {
    file: SerializedFileWriter<Vec<u8>>,
    /// By interface: its name and link type.
    interfaces: Vec<(ByteArray, i32)>,
    rows: Rows,
}

/// A row group being filled.
#[derive(Default)]
struct Rows {
    time: Vec<i64>,
    interface: Vec<u32>,
    captured: Vec<i32>,
    original: Vec<i32>,
    /// All packets' bytes, one behind the other.
    payload: Vec<u8>,
}

impl PacketTable {
    /// # Errors
    /// If the file can't be started.
    pub fn new(comment: &str) -> Result<Self> {
        let schema = Type::group_type_builder("packets").with_fields(fields()?).build()?;
        let comment = KeyValue::new("comment".to_owned(), comment.to_owned());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("longtake ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![comment]))
            // Hardly any packet is like another.
            .set_column_dictionary_enabled(ColumnPath::from("payload"), false)
            .set_column_dictionary_enabled(ColumnPath::from("time_ns"), false)
            .build();
        let file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        Ok(Self { file, interfaces: Vec::new(), rows: Rows::default() })
    }

    pub fn interface(&mut self, interface: &Interface) -> u32 {
        let name = ByteArray::from(interface.name.as_str());
        self.interfaces.push((name, i32::from(interface.link_type.0)));
        self.interfaces.len() as u32 - 1
    }

    /// # Errors
    /// If a full row group can't be encoded.
    pub fn packet(
        &mut self,
        number: u32,
        packet: &ReadPacket<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let rows = &mut self.rows;
        rows.time.push(packet.time as i64);
        rows.interface.push(number);
        rows.captured.push(packet.data.len() as i32);
        rows.original.push(packet.original_length as i32);
        rows.payload.extend_from_slice(packet.data);
        if rows.time.len() >= ROWS_MAX || rows.payload.len() >= BYTES_MAX {
            self.write_rows(out)?;
        }
        Ok(())
    }

    /// # Errors
    /// If the rest can't be encoded.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<()> {
        self.write_rows(out)?;
        out.append(&mut self.file.into_inner()?);
        Ok(())
    }

    fn write_rows(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let Rows { time, interface, captured, original, payload } = std::mem::take(&mut self.rows);
        if time.is_empty() {
            return Ok(());
        }
        let of = |&number: &u32| &self.interfaces[number as usize];
        let names: Vec<ByteArray> = interface.iter().map(|n| of(n).0.clone()).collect();
        let link_types: Vec<i32> = interface.iter().map(|n| of(n).1).collect();
        let all = ByteArray::from(payload);
        let mut start = 0;
        let mut payload = |&length: &i32| {
            let bytes = all.slice(start, length as usize);
            start += length as usize;
            bytes
        };
        let payloads: Vec<ByteArray> = captured.iter().map(&mut payload).collect();
        let mut group = self.file.next_row_group()?;
        column::<Int64Type>(&mut group, &time)?;
        column::<ByteArrayType>(&mut group, &names)?;
        column::<Int32Type>(&mut group, &link_types)?;
        column::<Int32Type>(&mut group, &captured)?;
        column::<Int32Type>(&mut group, &original)?;
        column::<ByteArrayType>(&mut group, &payloads)?;
        group.close()?;
        self.file.flush()?;
        // The writer counts places by itself, so that what is written may be taken away.
        out.append(self.file.inner_mut());
        Ok(())
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    if let Some(mut writer) = group.next_column()? {
        writer.typed::<T>().write_batch(values, None, None)?;
        writer.close()?;
    }
    Ok(())
}

fn fields() -> Result<Vec<Arc<Type>>, ParquetError> {
    let time = Some(LogicalType::timestamp(true, TimeUnit::NANOS));
    let number = || Some(LogicalType::integer(32, false));
    let types = [
        (Physical::INT64, time),
        (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        (Physical::INT32, number()),
        (Physical::INT32, number()),
        (Physical::INT32, number()),
        (Physical::BYTE_ARRAY, None),
    ];
    let field = |(name, (physical, logical)): (&str, (Physical, Option<LogicalType>))| {
        let builder = Type::primitive_type_builder(name, physical);
        let required = builder.with_repetition(Repetition::REQUIRED);
        required.with_logical_type(logical).build().map(Arc::new)
    };
    COLUMNS.into_iter().zip(types).map(field).collect()
}
