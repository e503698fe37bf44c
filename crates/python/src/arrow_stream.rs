//! Batches of packets as Arrow record batches.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use longtake::array::columns::{Columns, Converter};

use crate::batches::Batches;

/// Record batches, in order.
pub struct Stream {
    batches: Batches,
    converter: Converter,
}

impl Stream {
    /// The batches with these columns.
    pub fn new(batches: Batches, columns: Columns) -> Self {
        Self { batches, converter: Converter::new(columns, Arc::new(columns.schema())) }
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.batches.recv().ok()? {
            Ok(batch) => self.converter.convert(batch),
            Err(error) => Err(ArrowError::ExternalError(error.into())),
        })
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.converter.schema()
    }
}
