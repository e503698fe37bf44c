//! Packets as an Arrow IPC file, a record batch at a time.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use arrow_ipc::writer::FileWriter;
use format::Interface;
use format::pcapng::ReadPacket;

use super::columns::{Batch, Columns, Converter, Payload};

/// Bytes of names of interfaces in a batch at most, and one name more.
const NAMES_MAX: usize = 8 << 20;

/// Encodes packets as an Arrow IPC file.
pub(super) struct ArrowTable {
    file: FileWriter<Vec<u8>>,
    converter: Converter,
    batch: Batch,
    /// Bytes of the names in the column of interfaces, which a hostile capture may make long.
    names_bytes: usize,
}

impl ArrowTable {
    /// Starts a file, with the columns of flows if they are wanted.
    ///
    /// # Errors
    /// If the file can't be started.
    pub fn new(flow: bool, comment: &str) -> Result<Self> {
        let columns = Columns { payload: Payload::Binary, flow, dictionary: false };
        let comment = HashMap::from([("comment".to_owned(), comment.to_owned())]);
        let schema = Arc::new(columns.schema().with_metadata(comment));
        let file = FileWriter::try_new(Vec::new(), &schema)?;
        Ok(Self {
            file,
            converter: Converter::new(columns, schema),
            batch: Batch::default(),
            names_bytes: 0,
        })
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
        chunk: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.batch.push(number, packet.time, packet.original_length, chunk, packet.data);
        self.names_bytes += self.batch.known[number as usize].name.len();
        if self.batch.is_full() || self.names_bytes >= NAMES_MAX {
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
        self.names_bytes = 0;
        let batch = self.converter.convert(self.batch.take())?;
        self.file.write(&batch)?;
        // The writer counts places by itself, so that what is written may be taken away.
        out.append(self.file.get_mut());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow_ipc::reader::FileReader;
    use format::LinkType;

    use super::*;

    #[test]
    fn long_names_of_interfaces_make_short_batches() -> Result<()> {
        let interface = Interface {
            name: "x".repeat(60_000),
            description: String::new(),
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        };
        let (mut table, mut file) = (ArrowTable::new(false, "")?, Vec::new());
        let number = table.interface(&interface);
        let packet =
            ReadPacket { interface: 0, time: 1, original_length: 1, data: &[7], options: &[] };
        for _ in 0..1000 {
            table.packet(number, &packet, 0, &mut file)?;
        }
        table.finish(&mut file)?;
        let batches = FileReader::try_new(Cursor::new(file), None)?;
        let rows: Vec<usize> =
            batches.map(|batch| batch.map(|batch| batch.num_rows())).collect::<Result<_, _>>()?;
        assert_eq!(rows.iter().sum::<usize>(), 1000);
        assert_eq!(rows.iter().max(), Some(&(NAMES_MAX / 60_000 + 1)));
        Ok(())
    }
}
