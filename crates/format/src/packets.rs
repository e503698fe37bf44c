//! Walks the packets of a chunk that was read back.

use crate::chunk::ChunkRecord;
use crate::packet::Interface;
use crate::pcapng::{self, Block, Blocks, ReadPacket};
use crate::section::{Damage, HEADER_BYTES};

/// What a chunk's body consists of, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An interface; packets name it by its place among those of this chunk, from 0.
    Interface(Interface),
    /// A packet and its whole block.
    Packet(ReadPacket<'a>, Block<'a>),
}

/// The items of a chunk's body, without statistics and padding. The checksum is the caller's
/// matter ([`crate::chunk::check_body`]).
#[derive(Clone, Debug)]
pub struct Items<'a> {
    blocks: Blocks<'a>,
}

impl<'a> Items<'a> {
    /// Of a whole chunk, with its header.
    ///
    /// # Errors
    /// [`Damage::Short`] if there are fewer bytes than the record says.
    pub fn new(chunk: &'a [u8], record: &ChunkRecord) -> Result<Self, Damage> {
        let body = chunk.get(HEADER_BYTES..record.summary.length as usize).ok_or(Damage::Short)?;
        Ok(Self { blocks: Blocks::new(body) })
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let block = match self.blocks.next()? {
                Ok(block) => block,
                Err(damage) => return Some(Err(damage)),
            };
            match block.kind {
                pcapng::ENHANCED_PACKET => {
                    return Some(
                        pcapng::read_packet(&block).map(|packet| Item::Packet(packet, block)),
                    );
                }
                pcapng::INTERFACE => {
                    return Some(pcapng::read_interface(&block).map(Item::Interface));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{ChunkWriter, TakeId, check_body};
    use crate::ledger::Ledger;
    use crate::packet::{LinkType, Packet};
    use crate::parity::LastParities;
    use crate::pcapng::InterfaceTotals;
    use crate::section::Place;
    use base::Timestamp;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn interface(name: &str) -> Interface {
        Interface {
            name: name.into(),
            description: String::new(),
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_reads_back(
            packets in proptest::collection::vec(
                (0u32..2, 0u64..1 << 62, proptest::collection::vec(any::<u8>(), 0..300), 0u64..3), 0..200),
            chunk_min in 1u32..8,
            lossy in any::<bool>(),
        ) {
            let mut writer = ChunkWriter::new(vec![0xEE; 1 << 17], chunk_min * 4096, 1 << 17, 3);
            for number in 0..2 {
                writer.interface(number, &interface(&format!("if{number}"))).unwrap();
            }
            let mut kept = 0;
            for (number, ns, data, dropped) in &packets {
                let packet = Packet {
                    interface: *number,
                    timestamp: Timestamp::from_nanos(*ns),
                    original_length: data.len() as u32 + 1,
                    data,
                    options: &[],
                };
                if writer.packet(&packet, *dropped).is_err() {
                    break;
                }
                kept += 1;
            }
            let totals = vec![(1, InterfaceTotals { comment: "2 lost".into(), ..Default::default() })];
            let sealed = writer.seal(if lossy { &totals } else { &[] }, Timestamp::MIN, false);
            let place = Place { array: Uuid::from_u128(1), member: 0, members: 1, offset: 1 << 20 };
            let take = TakeId { uuid: Uuid::from_u128(2), started: Timestamp::MIN, first_sequence: 0 };
            let record = ChunkRecord {
                take, sequence: 5, replaces: Some(3), ledger: Ledger::default(), reused: Some(1), reused_to_ns: 1, parity: None, group: None, last_parities: LastParities::default(), summary: sealed.summary,
            };
            let mut chunk = sealed.buffer;
            record.stamp(&place, &mut chunk);
            prop_assert_eq!(ChunkRecord::read(&chunk), Ok((place, record)));
            prop_assert_eq!(check_body(&chunk, &record), Ok(()));
            prop_assert!(record.summary.length.is_multiple_of(4096));
            prop_assert!(record.summary.length >= chunk_min * 4096);
            // The whole section walks to its last byte.
            let blocks: Vec<_> = Blocks::new(&chunk[..record.summary.length as usize]).collect();
            prop_assert!(blocks.iter().all(Result::is_ok));
            let mut read = Vec::new();
            for item in Items::new(&chunk, &record).unwrap() {
                if let Item::Packet(packet, _) = item.unwrap() {
                    read.push((packet.interface, packet.time, packet.data.to_vec(), packet.dropped()));
                }
            }
            prop_assert_eq!(&read[..], &packets[..kept]);
            prop_assert_eq!(record.summary.packets as usize, kept);
        }

        #[test]
        fn a_changed_byte_anywhere_is_found(at in 0usize..8192, bit in 0u8..8) {
            let mut writer = ChunkWriter::new(vec![0; 1 << 16], 8192, 1 << 16, 0);
            writer.interface(0, &interface("a")).unwrap();
            let data = [7; 100];
            let packet = Packet { interface: 0, timestamp: Timestamp::from_nanos(9), original_length: 100, data: &data, options: &[] };
            writer.packet(&packet, 0).unwrap();
            let sealed = writer.seal(&[], Timestamp::MIN, false);
            let place = Place { array: Uuid::from_u128(1), member: 0, members: 1, offset: 0 };
            let take = TakeId { uuid: Uuid::from_u128(2), started: Timestamp::MIN, first_sequence: 0 };
            let record = ChunkRecord { take, sequence: 5, replaces: None, ledger: Ledger::default(), reused: Some(1), reused_to_ns: 1, parity: None, group: None, last_parities: LastParities::default(), summary: sealed.summary };
            let mut chunk = sealed.buffer;
            record.stamp(&place, &mut chunk);
            chunk[at] ^= 1 << bit;
            let found = match ChunkRecord::read(&chunk) {
                Err(_) => true,
                Ok((_, record)) => check_body(&chunk, &record).is_err(),
            };
            prop_assert!(found);
        }
    }
}
