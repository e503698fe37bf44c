//! Packets as an Arrow IPC file, a record batch at a time.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use arrow_ipc::writer::FileWriter;
use format::Interface;
use format::pcapng::ReadPacket;

use super::columns::{Batch, Columns, Converter};

/// Encodes packets as an Arrow IPC file.
pub(super) struct ArrowTable {
    file: FileWriter<Vec<u8>>,
    converter: Converter,
    batch: Batch,
}

impl ArrowTable {
    /// # Errors
    /// If the file can't be started.
    pub fn new(comment: &str) -> Result<Self> {
        let columns = Columns { payload: true, flow: false, dictionary: false };
        let comment = HashMap::from([("comment".to_owned(), comment.to_owned())]);
        let schema = Arc::new(columns.schema().with_metadata(comment));
        let file = FileWriter::try_new(Vec::new(), &schema)?;
        Ok(Self { file, converter: Converter::new(columns, schema), batch: Batch::default() })
    }

    pub fn interface(&mut self, interface: &Interface) -> u32 {
        let known = Arc::make_mut(&mut self.batch.known);
        known.push(interface.clone());
        known.len() as u32 - 1
    }

    /// # Errors
    /// If a full batch can't be encoded.
    pub fn packet(
        &mut self,
        number: u32,
        packet: &ReadPacket<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.batch.push(number, packet.time, packet.original_length, packet.data);
        if self.batch.is_full() {
            self.write_batch(out)?;
        }
        Ok(())
    }

    /// # Errors
    /// If the rest can't be encoded.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<()> {
        if !self.batch.times.is_empty() {
            self.write_batch(out)?;
        }
        self.file.finish()?;
        out.append(self.file.get_mut());
        Ok(())
    }

    fn write_batch(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let batch = self.converter.convert(self.batch.take())?;
        self.file.write(&batch)?;
        // The writer counts places by itself, so that what is written may be taken away.
        out.append(self.file.get_mut());
        Ok(())
    }
}
