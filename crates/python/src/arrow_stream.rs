//! Batches of packets as Arrow record batches, with the columns of `longtake extract -o FILE.parquet`, and those of flows if they are
//! wanted.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::{StringBuilder, UInt8Builder, UInt16Builder};
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, LargeBinaryArray, RecordBatch, RecordBatchReader, StringArray,
    TimestampNanosecondArray, UInt32Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use longtake::Interface;
use search::{Fragments, Layers};

use crate::batches::{Batch, Batches};

/// Which columns there are beside times, interfaces and lengths.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The packets' bytes.
    pub payload: bool,
    /// Addresses, ports and protocol of the innermost IP header.
    pub flow: bool,
}

/// Record batches, in order.
pub struct Stream {
    batches: Batches,
    columns: Columns,
    schema: SchemaRef,
    flows: FlowColumns,
}

impl Stream {
    /// The batches with these columns.
    pub fn new(batches: Batches, columns: Columns) -> Self {
        Self { batches, columns, schema: schema(columns), flows: FlowColumns::default() }
    }

    fn converted(&mut self, batch: Batch) -> Result<RecordBatch, ArrowError> {
        let Batch { times, interfaces, original, ends, data, known } = batch;
        let (payload, flow) = (self.columns.payload, self.columns.flow);
        let flows = flow.then(|| self.flows.of(&interfaces, &known, &ends, &data));
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let captured = starts.zip(&ends).map(|(start, end)| (end - start) as u32);
        let captured = UInt32Array::from_iter_values(captured);
        let names = StringArray::from_iter_values(known.iter().map(|known| &known.name));
        let link_type = |&number: &u32| u32::from(known[number as usize].link_type.0);
        let link_types = UInt32Array::from_iter_values(interfaces.iter().map(link_type));
        let names = DictionaryArray::<UInt32Type>::try_new(interfaces.into(), Arc::new(names))?;
        let times = times.into_iter().map(|time| time as i64);
        let times = TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC");
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(names),
            Arc::new(link_types),
            Arc::new(captured),
            Arc::new(UInt32Array::from(original)),
        ];
        if payload {
            let ends = ends.into_iter().map(|end| end as i64);
            let offsets: ScalarBuffer<i64> = std::iter::once(0).chain(ends).collect();
            let offsets = OffsetBuffer::new(offsets);
            let bytes = LargeBinaryArray::try_new(offsets, Buffer::from_vec(data), None)?;
            columns.push(Arc::new(bytes));
        }
        columns.extend(flows.into_iter().flatten());
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.batches.recv().ok()? {
            Ok(batch) => self.converted(batch),
            Err(error) => Err(ArrowError::ExternalError(error.into())),
        })
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The schema of a stream with these columns.
pub fn schema(columns: Columns) -> SchemaRef {
    let required = |name: &str, data_type| Field::new(name, data_type, false);
    let optional = |name: &str, data_type| Field::new(name, data_type, true);
    let name = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let mut fields = vec![
        required("time_ns", time),
        required("interface", name),
        required("link_type", DataType::UInt32),
        required("captured_length", DataType::UInt32),
        required("original_length", DataType::UInt32),
    ];
    if columns.payload {
        fields.push(required("payload", DataType::LargeBinary));
    }
    if columns.flow {
        fields.extend([
            optional("source", DataType::Utf8),
            optional("destination", DataType::Utf8),
            optional("source_port", DataType::UInt16),
            optional("destination_port", DataType::UInt16),
            optional("protocol", DataType::UInt8),
        ]);
    }
    Arc::new(Schema::new(fields))
}

/// Finds the flows of packets.
struct FlowColumns {
    layers: Layers,
    fragments: Fragments,
}

impl Default for FlowColumns {
    fn default() -> Self {
        Self { layers: Layers::new(), fragments: Fragments::new(search::FRAGMENTS_MAX) }
    }
}

impl FlowColumns {
    fn of(
        &mut self,
        interfaces: &[u32],
        known: &[Interface],
        ends: &[u64],
        data: &[u8],
    ) -> [ArrayRef; 5] {
        let [mut sources, mut destinations] = [StringBuilder::new(), StringBuilder::new()];
        let [mut from, mut to] = [UInt16Builder::new(), UInt16Builder::new()];
        let mut protocols = UInt8Builder::new();
        let mut start = 0;
        for (&interface, &end) in interfaces.iter().zip(ends) {
            let link_type = known[interface as usize].link_type;
            search::dissect(link_type, &data[start..end as usize], &mut self.layers);
            self.fragments.resolve(&mut self.layers);
            start = end as usize;
            let flow = self.layers.flow();
            let ends = flow.map(|(flow, direction)| flow.ends(direction));
            let [source, destination] = ends.map_or([None; 2], |ends| ends.map(Some));
            append(&mut sources, source.map(|(address, _)| address));
            append(&mut destinations, destination.map(|(address, _)| address));
            from.append_option(source.and_then(|(_, port)| port));
            to.append_option(destination.and_then(|(_, port)| port));
            protocols.append_option(flow.map(|(flow, _)| flow.protocol));
        }
        [
            Arc::new(sources.finish()),
            Arc::new(destinations.finish()),
            Arc::new(from.finish()),
            Arc::new(to.finish()),
            Arc::new(protocols.finish()),
        ]
    }
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
