//! Packets in columns, as Arrow record batches: those of the Python package and of `extract -o FILE.arrow`.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::{StringBuilder, UInt8Builder, UInt16Builder, make_view};
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, BinaryViewArray, DictionaryArray, LargeBinaryArray, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use format::Interface;

use super::packet_flow::{self, PacketFlows};

/// Packets of a batch at most.
pub const PACKETS_MAX: usize = 1 << 16;
/// Bytes of packets in a batch at most, and one packet more.
const BYTES_MAX: usize = 8 << 20;
/// Additional room for the packet that fills the batch, longer than any packet of a network. Without it, the whole batch would be moved.
const BYTES_BESIDE: usize = 128 << 10;

/// Packets one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Time of each in nanoseconds since 1970.
    pub times: Vec<u64>,
    /// Interface of each: a place in `known`.
    pub interfaces: Vec<u32>,
    /// Length of each on the wire in bytes.
    pub original: Vec<u32>,
    /// Number of each one's chunk in its array.
    pub chunks: Vec<u64>,
    /// Where the bytes of each end in `data`.
    pub ends: Vec<u64>,
    /// The bytes.
    pub data: Vec<u8>,
    /// Interfaces of the stream so far.
    pub known: Arc<Vec<Interface>>,
}

impl Batch {
    /// Appends a packet of the interface with this place in `known`.
    pub fn push(
        &mut self,
        interface: u32,
        time: u64,
        original_length: u32,
        chunk: u64,
        data: &[u8],
    ) {
        self.times.push(time);
        self.interfaces.push(interface);
        self.original.push(original_length);
        self.chunks.push(chunk);
        self.data.extend_from_slice(data);
        self.ends.push(self.data.len() as u64);
    }

    /// Whether it has as many packets, or bytes of them, as a batch should.
    pub fn is_full(&self) -> bool {
        self.times.len() >= PACKETS_MAX || self.data.len() >= BYTES_MAX
    }

    /// Takes out what it holds. It goes on without packets, with the same interfaces, and with room for another one like it.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let known = Arc::clone(&self.known);
        let length = self.data.len();
        let data = Vec::with_capacity(length + length.min(BYTES_BESIDE));
        std::mem::replace(self, Self { known, data, ..Self::default() })
    }
}

/// How a table holds the packets' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Not at all.
    Absent,
    /// One behind the other, as large binary values.
    Binary,
    /// As views of one buffer, which can be selected and sorted without moving the bytes.
    View,
}

/// Which columns there are beside times, interfaces and lengths.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The packets' bytes.
    pub payload: Payload,
    /// Addresses, ports and protocol of the innermost IP header, and the flags of TCP.
    pub flow: bool,
    /// Whether names of interfaces are entries of a dictionary, which may grow from batch to batch. In a file it must not.
    pub dictionary: bool,
}

impl Columns {
    /// Their names and types.
    pub fn schema(self) -> Schema {
        let required = |name: &str, data_type| Field::new(name, data_type, false);
        let optional = |name: &str, data_type| Field::new(name, data_type, true);
        let names = match self.dictionary {
            true => DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8)),
            false => DataType::Utf8,
        };
        let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        let mut fields = vec![
            required("time_ns", time),
            required("interface", names),
            required("link_type", DataType::UInt32),
            required("captured_length", DataType::UInt32),
            required("original_length", DataType::UInt32),
            required("chunk_sequence", DataType::UInt64),
        ];
        match self.payload {
            Payload::Absent => {}
            Payload::Binary => fields.push(required("payload", DataType::LargeBinary)),
            Payload::View => fields.push(required("payload", DataType::BinaryView)),
        }
        if self.flow {
            let (text, number) = (DataType::Utf8, DataType::UInt16);
            let types = [&text, &text, &number, &number, &DataType::UInt8, &number];
            let columns = packet_flow::COLUMNS.into_iter().zip(types);
            fields.extend(columns.map(|(name, data_type)| optional(name, data_type.clone())));
        }
        Schema::new(fields)
    }
}

/// Makes record batches of batches, which must come in order: what a packet's fragments say is known from earlier ones.
pub struct Converter {
    columns: Columns,
    schema: SchemaRef,
    flows: PacketFlows,
}

impl Converter {
    /// One that makes these columns. The schema is theirs, and may have metadata.
    pub fn new(columns: Columns, schema: SchemaRef) -> Self {
        Self { columns, schema, flows: PacketFlows::default() }
    }

    /// The schema of the record batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// A batch as a record batch. Bytes of packets are not copied.
    ///
    /// # Errors
    /// If the columns are not those of the schema.
    ///
    /// # Panics
    /// If a packet's interface is none of those that are known.
    pub fn convert(&mut self, batch: Batch) -> Result<RecordBatch, ArrowError> {
        let flows = self.columns.flow.then(|| flow_columns(&mut self.flows, &batch));
        let Batch { times, interfaces, original, chunks, ends, data, known } = batch;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let captured = starts.zip(&ends).map(|(start, end)| (end - start) as u32);
        let captured = UInt32Array::from_iter_values(captured);
        let link_type = |&number: &u32| u32::from(known[number as usize].link_type.0);
        let link_types = UInt32Array::from_iter_values(interfaces.iter().map(link_type));
        let times = times.into_iter().map(|time| time as i64);
        let times = TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC");
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            names(&known, interfaces, self.columns.dictionary)?,
            Arc::new(link_types),
            Arc::new(captured),
            Arc::new(UInt32Array::from(original)),
            Arc::new(UInt64Array::from(chunks)),
        ];
        match self.columns.payload {
            Payload::Absent => {}
            Payload::Binary => columns.push(Arc::new(binary(&ends, data)?)),
            Payload::View => columns.push(Arc::new(views(&ends, data)?)),
        }
        columns.extend(flows.into_iter().flatten());
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

fn binary(ends: &[u64], data: Vec<u8>) -> Result<LargeBinaryArray, ArrowError> {
    let ends = ends.iter().map(|&end| end as i64);
    let offsets: ScalarBuffer<i64> = std::iter::once(0).chain(ends).collect();
    LargeBinaryArray::try_new(OffsetBuffer::new(offsets), Buffer::from_vec(data), None)
}

fn views(ends: &[u64], data: Vec<u8>) -> Result<BinaryViewArray, ArrowError> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let view = |(start, &end): (u64, &u64)| {
        make_view(&data[start as usize..end as usize], 0, start as u32)
    };
    let views: ScalarBuffer<u128> = starts.zip(ends).map(view).collect();
    BinaryViewArray::try_new(views, vec![Buffer::from_vec(data)], None)
}

fn names(
    known: &[Interface],
    interfaces: Vec<u32>,
    dictionary: bool,
) -> Result<ArrayRef, ArrowError> {
    if !dictionary {
        let names = interfaces.iter().map(|&number| known[number as usize].name.as_str());
        return Ok(Arc::new(StringArray::from_iter_values(names)));
    }
    let names = StringArray::from_iter_values(known.iter().map(|known| &known.name));
    Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(interfaces.into(), Arc::new(names))?))
}

/// The columns of a batch's flows.
fn flow_columns(flows: &mut PacketFlows, batch: &Batch) -> [ArrayRef; packet_flow::COLUMNS.len()] {
    let [mut sources, mut destinations] = [StringBuilder::new(), StringBuilder::new()];
    let [mut from, mut to, mut flags] = [(); 3].map(|()| UInt16Builder::new());
    let mut protocols = UInt8Builder::new();
    let mut start = 0;
    for (&interface, &end) in batch.interfaces.iter().zip(&batch.ends) {
        let link_type = batch.known[interface as usize].link_type;
        let flow = flows.of(link_type, &batch.data[start..end as usize]);
        start = end as usize;
        append(&mut sources, flow.addresses[0]);
        append(&mut destinations, flow.addresses[1]);
        from.append_option(flow.ports[0]);
        to.append_option(flow.ports[1]);
        protocols.append_option(flow.protocol);
        flags.append_option(flow.tcp_flags);
    }
    [
        Arc::new(sources.finish()),
        Arc::new(destinations.finish()),
        Arc::new(from.finish()),
        Arc::new(to.finish()),
        Arc::new(protocols.finish()),
        Arc::new(flags.finish()),
    ]
}

/// Appends an address as text.
fn append(texts: &mut StringBuilder, address: Option<IpAddr>) {
    use std::fmt::Write;
    match address {
        Some(address) => {
            write!(texts, "{address}").ok();
            texts.append_value("");
        }
        None => texts.append_null(),
    }
}
