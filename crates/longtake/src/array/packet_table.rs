//! Packets as a Parquet table, a row group at a time.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use format::pcapng::ReadPacket;
use format::{Interface, LinkType};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::encode::COLUMNS;
use super::packet_flow::{self, PacketFlow, PacketFlows};

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
    /// Finds what the columns of flows say, if there are any.
    flows: Option<PacketFlows>,
}

/// A row group being filled.
#[derive(Default)]
struct Rows {
    time: Vec<i64>,
    interface: Vec<u32>,
    captured: Vec<i32>,
    original: Vec<i32>,
    chunk: Vec<i64>,
    /// All packets' bytes, one behind the other.
    payload: Vec<u8>,
    /// Empty without columns of flows.
    flow: Vec<PacketFlow>,
}

impl PacketTable {
    /// Starts a file, with the columns of flows if they are wanted.
    ///
    /// # Errors
    /// If the file can't be started.
    pub fn new(flow: bool, comment: &str) -> Result<Self> {
        let mut fields = fields()?;
        if flow {
            fields.extend(flow_fields()?);
        }
        let schema = Type::group_type_builder("packets").with_fields(fields).build()?;
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
        let flows = flow.then(PacketFlows::default);
        Ok(Self { file, interfaces: Vec::new(), rows: Rows::default(), flows })
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
        chunk: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let rows = &mut self.rows;
        rows.time.push(packet.time as i64);
        rows.interface.push(number);
        rows.captured.push(packet.data.len() as i32);
        rows.original.push(packet.original_length as i32);
        rows.chunk.push(chunk as i64);
        rows.payload.extend_from_slice(packet.data);
        if let Some(flows) = &mut self.flows {
            let link_type = LinkType(self.interfaces[number as usize].1 as u16);
            rows.flow.push(flows.of(link_type, packet.data));
        }
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
        let Rows { time, interface, captured, original, chunk, payload, flow } =
            std::mem::take(&mut self.rows);
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
        column::<Int64Type>(&mut group, &chunk)?;
        column::<ByteArrayType>(&mut group, &payloads)?;
        if self.flows.is_some() {
            flow_columns(&mut group, &flow)?;
        }
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

/// Writes the columns of flows.
fn flow_columns(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    flows: &[PacketFlow],
) -> Result<(), ParquetError> {
    let text = |address: IpAddr| ByteArray::from(address.to_string().as_str());
    for end in 0..2 {
        let addresses = flows.iter().map(|flow| flow.addresses[end].map(text));
        optional_column::<ByteArrayType>(group, addresses)?;
    }
    for end in 0..2 {
        let ports = flows.iter().map(|flow| flow.ports[end].map(i32::from));
        optional_column::<Int32Type>(group, ports)?;
    }
    let protocols = flows.iter().map(|flow| flow.protocol.map(i32::from));
    optional_column::<Int32Type>(group, protocols)?;
    let tcp_flags = flows.iter().map(|flow| flow.tcp_flags.map(i32::from));
    optional_column::<Int32Type>(group, tcp_flags)
}

/// Writes a column in which values may be missing.
fn optional_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    if let Some(mut writer) = group.next_column()? {
        let values: Vec<Option<T::T>> = values.collect();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<T::T> = values.into_iter().flatten().collect();
        writer.typed::<T>().write_batch(&values, Some(&levels), None)?;
        writer.close()?;
    }
    Ok(())
}

fn fields() -> Result<Vec<Arc<Type>>, ParquetError> {
    let time = Some(LogicalType::timestamp(true, TimeUnit::NANOS));
    let number = |bits| Some(LogicalType::integer(bits, false));
    let types = [
        (Physical::INT64, time),
        (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        (Physical::INT32, number(32)),
        (Physical::INT32, number(32)),
        (Physical::INT32, number(32)),
        (Physical::INT64, number(64)),
        (Physical::BYTE_ARRAY, None),
    ];
    let field = |(name, (physical, logical))| field(Repetition::REQUIRED, name, physical, logical);
    COLUMNS.into_iter().zip(types).map(field).collect()
}

fn flow_fields() -> Result<Vec<Arc<Type>>, ParquetError> {
    let text = (Physical::BYTE_ARRAY, LogicalType::String);
    let number = |bits| (Physical::INT32, LogicalType::integer(bits, false));
    let types = [text.clone(), text, number(16), number(16), number(8), number(16)];
    let field =
        |(name, (physical, logical))| field(Repetition::OPTIONAL, name, physical, Some(logical));
    packet_flow::COLUMNS.into_iter().zip(types).map(field).collect()
}

fn field(
    repetition: Repetition,
    name: &str,
    physical: Physical,
    logical: Option<LogicalType>,
) -> Result<Arc<Type>, ParquetError> {
    let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    builder.with_logical_type(logical).build().map(Arc::new)
}
