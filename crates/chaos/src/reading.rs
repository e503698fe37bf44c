//! Reading back: whatever comes must be the truth, to the bit, each packet once, in order; what doesn't come must
//! be named.

use std::collections::BTreeMap;

use base::{Bank, BankError, Buffers, Rate};
use format::pcapng::{Block, Blocks, ReadPacket, read_packet};
use format::{ChunkRecord, Interface};
use recorder::extract::{self, ExtractError, Unreadable, Visitor};
use recorder::reader::{ReadError, Reader};
use recorder::takes::{Catalog, Entry};
use recorder::{ArrayImage, TimeRange};

use crate::book::Book;
use crate::outcome::{Met, Outcome};
use crate::source::{is_genuine, number_of};

/// A packet that came: its time in ns since 1970, its number, its queue.
type Came = (u64, u64, u16);

/// Takes packets and looks at every byte.
struct Collector {
    came: Vec<Came>,
    lost: BTreeMap<u64, Unreadable>,
    whole: bool,
}

impl Collector {
    fn take(&mut self, interface: &Interface, packet: &ReadPacket<'_>) {
        let Some(number) = number_of(packet.data) else {
            panic!("extraction: a packet of {} bytes came that nobody offered", packet.data.len())
        };
        assert!(is_genuine(number, packet.data), "extraction: packet {number} is not as offered");
        let queue = interface.name.strip_prefix("queue").and_then(|text| text.parse().ok());
        let Some(queue) = queue else {
            panic!("extraction: packet {number} came from interface '{}'", interface.name)
        };
        self.came.push((packet.time, number, queue));
    }
}

impl Visitor for Collector {
    type Error = std::convert::Infallible;

    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        _: &Block<'_>,
        _: &ChunkRecord,
    ) -> Result<(), Self::Error> {
        self.take(interface, packet);
        Ok(())
    }

    fn blocks(
        &mut self,
        interfaces: &[Interface],
        blocks: &[u8],
        _: &ChunkRecord,
    ) -> Result<bool, Self::Error> {
        if self.whole {
            for block in Blocks::new(blocks) {
                let packet = block.and_then(|block| read_packet(&block));
                let Ok(packet) = packet else {
                    panic!("extraction: a whole chunk came that is not packets alone: {packet:?}")
                };
                self.take(&interfaces[packet.interface as usize], &packet);
            }
        }
        Ok(self.whole)
    }

    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<(), Self::Error> {
        self.lost.insert(entry.record.sequence, why.clone());
        Ok(())
    }

    fn progress(&mut self, _: u64, _: u64) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// What came of an extraction.
#[derive(Debug, Default)]
pub struct Extracted {
    came: Vec<(uuid::Uuid, Vec<Came>)>,
    /// Chunks that were named as not to be had.
    pub lost: BTreeMap<u64, Unreadable>,
}

/// Extracts a range of every take that a catalog has.
///
/// # Errors
/// [`BankError`] if the bank ends.
pub fn extract_all<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &ArrayImage,
    catalog: &Catalog,
    range: TimeRange,
    (whole, limit): (bool, Option<Rate>),
) -> Result<Extracted, BankError> {
    let mut all = Extracted::default();
    let mut rest = catalog.entries.as_slice();
    while let Some(first) = rest.first() {
        let take = first.record.take;
        let count = rest.partition_point(|e| e.record.take.first_sequence <= take.first_sequence);
        let (entries, others) = rest.split_at(count.max(1));
        rest = others;
        let mut collector = Collector { came: Vec::new(), lost: BTreeMap::new(), whole };
        match extract::extract(reader, image, entries, range, limit, &mut collector) {
            Ok(()) => {}
            Err(ExtractError::Read(ReadError::Bank(error))) => return Err(error),
            Err(error) => panic!("extraction: it ended early: {error:?}"),
        }
        all.lost.append(&mut collector.lost);
        all.came.push((take.uuid, collector.came));
    }
    Ok(all)
}

impl Extracted {
    /// Holds what came of media that nobody writes to what was listed: a chunk is only called overwritten if the ring gave it
    /// up, and one that was listed because parity gives it back is given back.
    pub fn judge_at_rest(&self, catalog: &Catalog, book: &Book) {
        let overwritten = self.lost.iter().filter(|(_, why)| **why == Unreadable::Overwritten);
        for (sequence, _) in overwritten {
            let given_up = book.chunks.get(sequence).is_none_or(|chunk| chunk.given_up);
            assert!(given_up, "extraction: chunk {sequence} is called overwritten, and never was");
            assert!(
                !catalog.recovered.contains(sequence),
                "extraction: chunk {sequence} was listed as given back by parity, and is called overwritten"
            );
        }
    }

    /// Holds what came against the truth. The chunks that were listed and are not named as lost gave exactly their
    /// packets of the range.
    pub fn judge(&self, catalog: &Catalog, range: TimeRange, book: &Book, met: &mut Met) {
        let (from, to) = (range.from.as_nanos(), range.to.as_nanos());
        for why in self.lost.values() {
            met.add(match why {
                Unreadable::Overwritten => Outcome::OverwrittenUnderReader,
                Unreadable::Damaged(_) => Outcome::DamageNamed,
                Unreadable::Device(_) => Outcome::ReadErrorNamed,
            });
        }
        for (take, came) in &self.came {
            let in_order = came.windows(2).all(|pair| pair[0].0 <= pair[1].0);
            assert!(in_order, "extraction: packets of {take} are not in order of time");
            let mut expected = Vec::new();
            let mut unasked = 0;
            for entry in catalog.entries.iter().filter(|e| e.record.take.uuid == *take) {
                let sequence = entry.record.sequence;
                let Some(chunk) = book.chunks.get(&sequence) else {
                    // Parity may give back what no drive was asked to write before the recorder was killed.
                    let given_back = catalog.recovered.contains(&sequence);
                    assert!(given_back, "extraction: chunk {sequence} was found and never written");
                    unasked += u64::from(entry.record.summary.packets);
                    continue;
                };
                assert_eq!(
                    (chunk.record, chunk.place),
                    (entry.record, entry.place),
                    "extraction: chunk {sequence} was found as it was not written"
                );
                if self.lost.contains_key(&sequence) || !entry.record.summary.overlaps(from, to) {
                    continue;
                }
                let contents = chunk.contents;
                let packet = |number: u64| {
                    (contents.time_ns(number - contents.first), number, contents.queue)
                };
                expected.extend(contents.between(from, to).map(packet));
            }
            expected.sort_unstable();
            let mut came = came.clone();
            came.sort_unstable();
            let twice = came.windows(2).find(|pair| pair[0].1 == pair[1].1);
            assert_eq!(twice, None, "extraction: a packet of {take} came twice");
            if unasked > 0 {
                let more = came.len() as u64 - expected.len().min(came.len()) as u64;
                assert!(more <= unasked, "extraction: {more} packets more came than {unasked}");
                came.retain(|packet| expected.binary_search(packet).is_ok());
            }
            if came != expected {
                let missing = expected.iter().find(|packet| came.binary_search(packet).is_err());
                let foreign = came.iter().find(|packet| expected.binary_search(packet).is_err());
                panic!(
                    "extraction: {} packets of {take} came for {} in the chunks that were listed; first missing {missing:?}, first foreign {foreign:?}",
                    came.len(),
                    expected.len()
                );
            }
        }
    }
}
