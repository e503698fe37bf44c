//! The keys of chunks' packets, on their way into the flow index of a segment.

use anyhow::Result;
use base::{Bank, Buffers, DeviceError, DriveId};
use format::chunk::check_body;
use format::flow_index::{PAGES_LEAST, column};
use format::packets::{Item, Items};
use format::{ChunkRecord, Interface, Layout, Place};
use recorder::flow_indexes::Room;
use recorder::reader::{Range, Reader};
use search::SegmentKeys;
use uuid::Uuid;

/// What became of the chunks of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Packets whose keys were entered.
    pub packets: u64,
    /// Bytes of chunks that were read.
    pub bytes: u64,
    /// Chunks that could not be read.
    pub unreadable: u64,
}

/// Reads chunks of one segment and enters the keys of their packets.
pub fn gather<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    drive: DriveId,
    layout: &Layout,
    chunks: &[(Place, ChunkRecord)],
    keys: &mut SegmentKeys,
) -> Result<Gathered> {
    let chunks: Vec<&(Place, ChunkRecord)> =
        chunks.iter().filter(|(_, record)| has_keys(record)).collect();
    let range = |(place, record): &&(Place, ChunkRecord)| Range {
        drive,
        offset: place.offset,
        length: record.summary.length,
    };
    let ranges: Vec<Range> = chunks.iter().map(range).collect();
    let mut gathered = Gathered::default();
    reader.scatter(&ranges, |at, read| {
        let (place, record) = chunks[at];
        gathered.bytes += u64::from(record.summary.length);
        let column = column_of(layout, place);
        match checked(read, place, record).and_then(|bytes| enter(bytes, record, column, keys)) {
            Some(packets) => gathered.packets += packets,
            None => {
                keys.add_unread(column);
                gathered.unreadable += 1;
            }
        }
    })?;
    Ok(gathered)
}

/// The flow index of the keys of a segment's chunks, with a hash key of its own; None if there is no room for one.
pub fn made(keys: &mut SegmentKeys, room: &Room) -> Option<Vec<u8>> {
    if room.pages_max < PAGES_LEAST {
        return None;
    }
    keys.finish(&room.subject, Uuid::new_v4().into_bytes(), room.pages_max)
}

/// Whether a chunk has keys: parity, and what ends a take or fills a hole, has none.
pub fn has_keys(record: &ChunkRecord) -> bool {
    record.summary.packets > 0
}

/// The column of its segment that a chunk is in.
pub fn column_of(layout: &Layout, place: &Place) -> u32 {
    let start = layout.segment_offset(layout.segment_at(place.offset));
    column(place.offset - start, layout.segment_bytes)
}

/// What was read, if it is this chunk, whole.
fn checked<'b>(
    read: Result<&'b [u8], DeviceError>,
    place: &Place,
    record: &ChunkRecord,
) -> Option<&'b [u8]> {
    let bytes = read.ok()?;
    let is_it = ChunkRecord::read(bytes).is_ok_and(|(at, found)| (at, found) == (*place, *record));
    (is_it && check_body(bytes, record).is_ok()).then_some(bytes)
}

/// Enters the keys of a chunk's packets. Returns how many there were; None if the chunk is not what its record says.
pub fn enter(
    bytes: &[u8],
    record: &ChunkRecord,
    column: u32,
    keys: &mut SegmentKeys,
) -> Option<u64> {
    let (mut interfaces, mut packets) = (Vec::<Interface>::new(), 0);
    for item in Items::new(bytes, record).ok()? {
        match item.ok()? {
            Item::Interface(interface) => interfaces.push(interface),
            Item::Packet(packet, _) => {
                let interface = interfaces.get(packet.interface as usize)?;
                keys.add(column, interface.link_type, packet.data);
                packets += 1;
            }
        }
    }
    Some(packets)
}
