//! A chunk: one whole pcapng section, the unit of writing, checksum, index and recovery
//! (`docs/format.md`, section 5).
//!
//! A chunk is made in two steps: [`ChunkWriter`] packs packets behind room for the header and
//! seals the body; when the recorder has found a place, [`ChunkRecord::stamp`] fills in the header.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use base::Timestamp;
use uuid::Uuid;

use crate::crc::{self, crc32c};
use crate::fields::{Get, Put};
use crate::fit::{OPTIONS_BESIDE_CUT_DATA_MAX, fit};
use crate::layout::{CHUNK_MAX_LEAST, PAGE_BYTES};
use crate::ledger::{Count, Ledger};
use crate::packet::{Interface, Packet};
use crate::parity::{Joined, LastParities, OVERHEAD_BYTES, PARITY_MAX, Part};
use crate::pcapng::{
    self, InterfaceTotals, PACKET_OVERHEAD_BYTES, PRIVATE_LEAST_BYTES, STATISTICS_BYTES_MAX,
};
use crate::section::{
    Damage, HEADER_BYTES, Header, Kind, MINOR_ACCOUNTS, MINOR_PARITY, MINOR_RETENTION, Place,
    RECORD_BYTES,
};

const FLAG_END: u16 = 1;
const FLAG_PLAIN: u16 = 2;
const FLAG_LOSS: u16 = 4;
const FLAG_PARITY: u16 = 8;
const NO_SEQUENCE: u64 = u64::MAX;
/// Sequence numbers are below this, so that counting on from any of them never overflows.
pub(crate) const SEQUENCE_END: u64 = 1 << 63;
/// The checksum runs behind the packing by at most this much and a packet: little enough that it finds
/// the bytes in the L1 cache beside the packets they were copied from, enough to keep its pipelines full.
const CHECKSUM_STRIDE: usize = 8 << 10;

/// Which take a chunk belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TakeId {
    /// Its name.
    pub uuid: Uuid,
    /// When it started.
    pub started: Timestamp,
    /// The sequence number of its first chunk.
    pub first_sequence: u64,
}

/// What is known of a chunk's contents once it is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSummary {
    /// Length in bytes, a multiple of 4 KiB.
    pub length: u32,
    /// CRC32C of everything behind the header.
    pub body_crc: u32,
    /// The source's queue that filled it.
    pub queue: u16,
    /// Packets in it.
    pub packets: u32,
    /// Offset of the first packet block.
    pub packets_start: u32,
    /// Offset of the end of the last packet block.
    pub packets_end: u32,
    /// Packet bytes kept.
    pub captured_bytes: u64,
    /// Packet bytes on the wire.
    pub original_bytes: u64,
    /// Earliest packet time, ns since 1970; all ones without packets. A parity chunk has its group's times.
    pub first_ns: u64,
    /// Latest packet time, ns since 1970; 0 without packets.
    pub last_ns: u64,
    /// When it was sealed, ns since 1970.
    pub sealed_ns: u64,
    /// Only packet blocks between the first and the last, of interfaces described before.
    pub plain: bool,
    /// Something was lost while it was filled.
    pub loss: bool,
    /// The take's last chunk.
    pub end: bool,
}

impl ChunkSummary {
    /// Of a chunk without packets, as far as that says it.
    pub const EMPTY: Self = Self {
        length: 0,
        body_crc: 0,
        queue: 0,
        packets: 0,
        packets_start: HEADER_BYTES as u32,
        packets_end: HEADER_BYTES as u32,
        captured_bytes: 0,
        original_bytes: 0,
        first_ns: u64::MAX,
        last_ns: 0,
        sealed_ns: 0,
        plain: true,
        loss: false,
        end: false,
    };

    /// A chunk's packets and wire bytes as the ledger counts them.
    pub fn stored(&self) -> Count {
        Count { packets: u64::from(self.packets), bytes: self.original_bytes }
    }

    /// Whether any packet may lie from `from` to `to`, both included, in ns since 1970.
    pub fn overlaps(&self, from_ns: u64, to_ns: u64) -> bool {
        self.packets > 0 && self.first_ns <= to_ns && self.last_ns >= from_ns
    }
}

/// Everything a chunk's header says, but for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRecord {
    /// The take.
    pub take: TakeId,
    /// Its number in the array; never used twice.
    pub sequence: u64,
    /// The number of the chunk that this one stands in for, after a failed write.
    pub replaces: Option<u64>,
    /// The take's account through this chunk.
    pub ledger: Ledger,
    /// The greatest sequence number that the ring has given up, if any.
    pub reused: Option<u64>,
    /// The latest packet time that the ring has given up, ns since 1970: nothing later is missing. 0 if it gave up nothing.
    /// With parity it covers the whole groups of the chunks that were given up, as the rest of such a group is protected no more.
    pub reused_to_ns: u64,
    /// What it is of its group, if it holds no packets but parity.
    pub parity: Option<Part>,
    /// The group that it belongs to, if it holds packets and parity is made of it.
    pub group: Option<Joined>,
    /// The parity chunks before it.
    pub last_parities: LastParities,
    /// Its contents.
    pub summary: ChunkSummary,
}

impl ChunkRecord {
    fn header(&self, place: &Place) -> Header {
        let s = &self.summary;
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        let mut specific = [0; Header::SPECIFIC_BYTES];
        let mut put = Put::new(&mut specific);
        put.raw(self.take.uuid.as_bytes())
            .u64(self.take.started.as_nanos())
            .u64(self.take.first_sequence)
            .u64(self.sequence)
            .u64(self.replaces.unwrap_or(NO_SEQUENCE))
            .u16(s.queue)
            .u16(
                flag(s.end, FLAG_END)
                    | flag(s.plain, FLAG_PLAIN)
                    | flag(s.loss, FLAG_LOSS)
                    | flag(self.parity.is_some(), FLAG_PARITY),
            )
            .u32(s.packets)
            .u32(s.packets_start)
            .u32(s.packets_end)
            .u64(s.captured_bytes)
            .u64(s.original_bytes)
            .u64(s.first_ns)
            .u64(s.last_ns)
            .u64(s.sealed_ns);
        self.ledger.put(&mut put);
        put.u64(self.reused.unwrap_or(NO_SEQUENCE));
        match (self.parity, self.group) {
            (Some(Part { group, span, place, of }), _) => {
                put.u64(group).u32(span).u16(place.into()).u16(of.into());
            }
            (None, Some(Joined { group, of })) => {
                put.u64(group).u32(0).u16(0).u16(of.into());
            }
            (None, None) => {
                put.zeros(16);
            }
        }
        self.last_parities.put(&mut put);
        put.u64(self.reused_to_ns);
        self.ledger.sliced.put(&mut put);
        Header {
            kind: Kind::Chunk,
            minor: self.minor_version(),
            place: *place,
            body_crc: s.body_crc,
            length: s.length,
            specific,
        }
    }

    /// The least minor version of the format that has all that the record uses.
    fn minor_version(&self) -> u16 {
        let parity =
            self.parity.is_some() || self.group.is_some() || !self.last_parities.is_empty();
        let accounts = self.reused_to_ns > 0 || !self.ledger.truncated.is_zero();
        match (accounts, parity) {
            _ if self.ledger.has_retention() => MINOR_RETENTION,
            (true, _) => MINOR_ACCOUNTS,
            (false, true) => MINOR_PARITY,
            (false, false) => 0,
        }
    }

    fn from_header(header: &Header) -> Result<(Place, Self), Damage> {
        if header.kind != Kind::Chunk {
            return Err(Damage::Elsewhere);
        }
        let mut get = Get::new(&header.specific);
        let take = TakeId {
            uuid: Uuid::from_bytes(get.raw()),
            started: Timestamp::from_nanos(get.u64()),
            first_sequence: get.u64(),
        };
        let sequence = get.u64();
        let replaces = Some(get.u64()).filter(|&n| n != NO_SEQUENCE);
        let queue = get.u16();
        let flags = get.u16();
        let summary = ChunkSummary {
            length: header.length,
            body_crc: header.body_crc,
            queue,
            packets: get.u32(),
            packets_start: get.u32(),
            packets_end: get.u32(),
            captured_bytes: get.u64(),
            original_bytes: get.u64(),
            first_ns: get.u64(),
            last_ns: get.u64(),
            sealed_ns: get.u64(),
            plain: flags & FLAG_PLAIN != 0,
            loss: flags & FLAG_LOSS != 0,
            end: flags & FLAG_END != 0,
        };
        let mut ledger = Ledger::get(&mut get);
        let reused = Some(get.u64()).filter(|&n| n != NO_SEQUENCE);
        let (group, span, place, of) = (get.u64(), get.u32(), get.u16(), get.u16());
        let short = |number| u8::try_from(number).unwrap_or(u8::MAX);
        let (place, of) = (short(place), short(of));
        let is_parity = flags & FLAG_PARITY != 0;
        let parity = is_parity.then_some(Part { group, span, place, of });
        let group = (!is_parity && of > 0).then_some(Joined { group, of });
        let last_parities = LastParities::get(&mut get);
        let reused_to_ns = get.u64();
        ledger.sliced = Count::get(&mut get);
        let record = Self {
            take,
            sequence,
            replaces,
            ledger,
            reused,
            reused_to_ns,
            parity,
            group,
            last_parities,
            summary,
        };
        record.sound().map(|()| (header.place, record))
    }

    /// Whether the record can be true. Checksums guard against accidents, not against a hostile hand,
    /// and readers count with these numbers and take memory for them.
    fn sound(&self) -> Result<(), Damage> {
        let s = &self.summary;
        let lengths = u64::from(s.length).is_multiple_of(PAGE_BYTES)
            && s.length > HEADER_BYTES as u32
            && s.packets_start <= s.packets_end
            && s.packets_end <= s.length
            && u64::from(s.packets) * PACKET_OVERHEAD_BYTES as u64
                <= u64::from(s.packets_end - s.packets_start)
            && s.captured_bytes <= u64::from(s.length);
        let first = self.take.first_sequence;
        let part = self.parity.is_none_or(|part| {
            s.packets == 0 && self.replaces.is_none() && !s.end && part.sound(self.sequence)
        });
        let group = self.group.is_none_or(|Joined { group, of }| {
            of <= PARITY_MAX && (first..=self.sequence).contains(&group)
        });
        let numbers = (first..SEQUENCE_END).contains(&self.sequence)
            && part
            && group
            && self.replaces.is_none_or(|n| (first..self.sequence).contains(&n))
            && s.queue < u16::MAX
            && (s.packets == 0 || s.first_ns <= s.last_ns);
        match (lengths, numbers) {
            (true, true) => Ok(()),
            (false, _) => Err(Damage::Length),
            (true, false) => Err(Damage::Contradiction),
        }
    }

    /// Whether it stands where a chunk was that can't be had any more, and says nothing of it.
    pub fn is_filler(&self) -> bool {
        self.parity == Some(Part::FILLER)
    }

    /// Fills in the header of a sealed chunk that goes to `place`.
    ///
    /// # Panics
    /// If `chunk` is shorter than a header.
    pub fn stamp(&self, place: &Place, chunk: &mut [u8]) {
        self.header(place).stamp(chunk, u64::from(self.summary.length) - HEADER_BYTES as u64);
    }

    /// Reads and checks a chunk's header; the body's checksum is [`check_body`]'s.
    ///
    /// # Errors
    /// [`Damage`] if no sound chunk header starts there.
    pub fn read(chunk: &[u8]) -> Result<(Place, Self), Damage> {
        Self::from_header(&Header::read(chunk)?)
    }

    pub(crate) fn encode_entry(&self, place: &Place, entry: &mut [u8]) {
        self.header(place).put(&mut entry[..RECORD_BYTES]);
    }

    pub(crate) fn decode_entry(entry: &[u8]) -> Result<(Place, Self), Damage> {
        Self::from_header(&Header::get(entry)?)
    }
}

/// Checks a whole chunk's body against its header's checksum.
///
/// # Errors
/// [`Damage`] if bytes are missing or changed.
pub fn check_body(chunk: &[u8], record: &ChunkRecord) -> Result<(), Damage> {
    let body = chunk.get(HEADER_BYTES..record.summary.length as usize).ok_or(Damage::Short)?;
    if crc32c(body) == record.summary.body_crc { Ok(()) } else { Err(Damage::BodyChecksum) }
}

/// The chunk has no room for it: seal it and go on in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// A chunk with a finished body, waiting for a place.
#[derive(Debug)]
pub struct Sealed<B> {
    /// The memory.
    pub buffer: B,
    /// What is in it.
    pub summary: ChunkSummary,
}

/// Packs packets into a chunk.
#[derive(Debug)]
pub struct ChunkWriter<B> {
    buffer: B,
    /// Where the next block goes.
    at: usize,
    /// Packets may fill up to here; behind it is room for statistics and padding.
    room: usize,
    chunk_min: u32,
    checksum: crc::Running,
    checksum_at: usize,
    /// The take's interface numbers by this section's.
    local: HashMap<u32, u32>,
    /// The last pair looked up: most chunks have one interface.
    last: Option<(u32, u32)>,
    summary: ChunkSummary,
}

/// Room kept for statistics blocks at a chunk's end.
const STATISTICS_ROOM: usize = 4 * STATISTICS_BYTES_MAX;

/// The least `chunk_max` of a chunk of packets: parity takes some of the least that an array may have.
pub const PACKET_CHUNK_MAX_LEAST: u32 = CHUNK_MAX_LEAST - OVERHEAD_BYTES;

/// An empty chunk takes the longest interface description and, behind it, any packet that is cut to fit.
const _: () = assert!(
    packet_block_max(PACKET_CHUNK_MAX_LEAST)
        > PACKET_OVERHEAD_BYTES + OPTIONS_BESIDE_CUT_DATA_MAX + PACKET_CHUNK_MAX_LEAST as usize / 2
);

/// Longest packet block that a chunk of `chunk_max` bytes takes behind any interface description.
pub const fn packet_block_max(chunk_max: u32) -> usize {
    chunk_max as usize
        - HEADER_BYTES
        - pcapng::INTERFACE_BYTES_MAX
        - STATISTICS_ROOM
        - PRIVATE_LEAST_BYTES
}

impl<B: Deref<Target = [u8]> + DerefMut> ChunkWriter<B> {
    /// An empty chunk in `buffer`, from `chunk_min` to `chunk_max` bytes long, for a queue's packets.
    ///
    /// # Panics
    /// If the buffer is shorter than `chunk_max`.
    pub fn new(buffer: B, chunk_min: u32, chunk_max: u32, queue: u16) -> Self {
        assert!(buffer.len() >= chunk_max as usize, "a chunk buffer holds the longest chunk");
        Self {
            buffer,
            at: HEADER_BYTES,
            room: chunk_max as usize - STATISTICS_ROOM - PRIVATE_LEAST_BYTES,
            chunk_min,
            checksum: crc::Running::new(),
            checksum_at: HEADER_BYTES,
            local: HashMap::new(),
            last: None,
            summary: ChunkSummary {
                queue,
                packets_start: 0,
                packets_end: 0,
                ..ChunkSummary::EMPTY
            },
        }
    }

    /// Packets in it so far.
    pub fn packets(&self) -> u32 {
        self.summary.packets
    }

    /// Bytes in it so far, with the header.
    pub fn filled(&self) -> usize {
        self.at
    }

    /// Whether an interface of the take is described in this chunk.
    #[inline]
    pub fn knows(&self, interface: u32) -> bool {
        self.last.is_some_and(|(number, _)| number == interface)
            || self.local.contains_key(&interface)
    }

    /// Describes an interface of the take. Packets of it may follow.
    ///
    /// # Errors
    /// [`NoRoom`]; nothing was written.
    pub fn interface(&mut self, number: u32, interface: &Interface) -> Result<(), NoRoom> {
        let block = pcapng::interface_block(interface);
        let end = self.at + block.len();
        if end > self.room {
            return Err(NoRoom);
        }
        self.buffer[self.at..end].copy_from_slice(&block);
        self.at = end;
        if self.summary.packets > 0 {
            self.summary.plain = false;
        }
        self.local.insert(number, self.local.len() as u32);
        Ok(())
    }

    /// Appends a packet of an interface that [`Self::knows`]. `dropped` packets were lost between
    /// this one and the one before it on its interface.
    ///
    /// # Errors
    /// [`NoRoom`]; nothing was written.
    ///
    /// # Panics
    /// If the interface was not described.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>, dropped: u64) -> Result<(), NoRoom> {
        let local = match self.last {
            Some((number, local)) if number == packet.interface => local,
            _ => {
                let local = self.local[&packet.interface];
                self.last = Some((packet.interface, local));
                local
            }
        };
        let bytes = pcapng::packet_block_bytes(packet, dropped);
        let end = self.at + bytes;
        if end > self.room {
            return Err(NoRoom);
        }
        pcapng::put_packet(&mut self.buffer[self.at..end], local, packet, dropped);
        let s = &mut self.summary;
        if s.packets == 0 {
            s.packets_start = self.at as u32;
        }
        self.at = end;
        s.packets += 1;
        s.captured_bytes += packet.data.len() as u64;
        s.original_bytes += u64::from(packet.original_length);
        let ns = packet.timestamp.as_nanos();
        s.first_ns = s.first_ns.min(ns);
        s.last_ns = s.last_ns.max(ns);
        if end - self.checksum_at >= CHECKSUM_STRIDE {
            self.checksum.update(&self.buffer[self.checksum_at..end]);
            self.checksum_at = end;
        }
        Ok(())
    }

    /// Appends a packet as [`Self::packet`] does, cut to the room that is left. It is meant for a packet that
    /// an empty chunk refuses: no other chunk would take more of it. Which parts are left out is
    /// [`fit`]'s matter. Returns how many bytes were cut.
    ///
    /// # Errors
    /// [`NoRoom`] if not even the packet's header fits; a chunk of at least [`PACKET_CHUNK_MAX_LEAST`] bytes
    /// without packets always has room.
    ///
    /// # Panics
    /// If the interface was not described.
    #[cold]
    pub fn packet_cut_to_fit(&mut self, packet: &Packet<'_>, dropped: u64) -> Result<u64, NoRoom> {
        let fitted = fit(packet, dropped, self.room.saturating_sub(self.at));
        self.packet(&fitted.packet(packet), dropped).map(|()| fitted.bytes_cut)
    }

    /// Finishes the body: statistics of the interfaces that lost something (those that don't fit
    /// are left out: the ledger has their sum), padding, checksum.
    pub fn seal(
        mut self,
        lossy: &[(u32, InterfaceTotals)],
        now: Timestamp,
        end: bool,
    ) -> Sealed<B> {
        self.summary.packets_end = self.at as u32;
        if self.summary.packets == 0 {
            self.summary.packets_start = self.at as u32;
        }
        let limit = self.room + STATISTICS_ROOM;
        for (interface, totals) in lossy {
            let Some(&local) = self.local.get(interface) else { continue };
            let block = pcapng::statistics_block(local, totals);
            if self.at + block.len() <= limit {
                self.buffer[self.at..self.at + block.len()].copy_from_slice(&block);
                self.at += block.len();
            }
        }
        let page = PAGE_BYTES as usize;
        let mut length = self.at.next_multiple_of(page).max(self.chunk_min as usize);
        if length > self.at {
            if length - self.at < PRIVATE_LEAST_BYTES {
                length += page;
            }
            pcapng::padding(&mut self.buffer[self.at..length]);
        }
        self.checksum.update(&self.buffer[self.checksum_at..length]);
        self.summary.length = length as u32;
        self.summary.body_crc = self.checksum.value();
        self.summary.sealed_ns = now.as_nanos();
        self.summary.loss = !lossy.is_empty();
        self.summary.end = end;
        Sealed { buffer: self.buffer, summary: self.summary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::PlacedParity;

    #[test]
    fn a_record_that_cannot_be_true_is_damaged_whatever_its_checksum() {
        let mut writer = ChunkWriter::new(vec![0; 1 << 16], 4096, 1 << 16, 0);
        let interface = Interface {
            name: "a".into(),
            description: String::new(),
            link_type: crate::LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        };
        assert_eq!(writer.interface(0, &interface), Ok(()));
        for ns in 0..5 {
            let timestamp = Timestamp::from_nanos(ns);
            let packet =
                Packet { interface: 0, timestamp, original_length: 0, data: &[], options: &[] };
            assert_eq!(writer.packet(&packet, 0), Ok(()));
        }
        let sealed = writer.seal(&[], Timestamp::MIN, false);
        let record = ChunkRecord {
            take: TakeId { uuid: Uuid::nil(), started: Timestamp::MIN, first_sequence: 7 },
            sequence: 9,
            replaces: None,
            ledger: Ledger::default(),
            reused: None,
            reused_to_ns: 0,
            parity: None,
            group: None,
            last_parities: LastParities::default(),
            summary: sealed.summary,
        };
        let place = Place { array: Uuid::nil(), member: 0, members: 1, offset: 0 };
        let mut chunk = sealed.buffer;
        record.stamp(&place, &mut chunk);
        assert_eq!(ChunkRecord::read(&chunk), Ok((place, record)));
        let mut of_group = chunk.clone();
        let placed = PlacedParity { sequence: 8, group: 7, member: 3, place: 1, of: 2 };
        let last_parities = LastParities::of(9, [placed]);
        let joined =
            ChunkRecord { group: Some(Joined { group: 8, of: 2 }), last_parities, ..record };
        joined.stamp(&place, &mut of_group);
        assert_eq!(ChunkRecord::read(&of_group), Ok((place, joined)));
        let refusal = |change: fn(&mut ChunkRecord)| {
            let mut changed = record;
            change(&mut changed);
            let mut chunk = chunk.clone();
            changed.stamp(&place, &mut chunk);
            ChunkRecord::read(&chunk).err()
        };
        let lengths: [fn(&mut ChunkRecord); 4] = [
            |r| r.summary.packets = 6,
            |r| r.summary.packets = u32::MAX,
            |r| r.summary.packets_end = r.summary.length + 1,
            |r| r.summary.captured_bytes = u64::MAX,
        ];
        for change in lengths {
            assert_eq!(refusal(change), Some(Damage::Length));
        }
        let contradictions: [fn(&mut ChunkRecord); 10] = [
            |r| r.take.first_sequence = r.sequence + 1,
            |r| r.sequence = SEQUENCE_END,
            |r| r.replaces = Some(r.sequence),
            |r| r.replaces = Some(r.take.first_sequence - 1),
            |r| r.summary.queue = u16::MAX,
            |r| r.summary.first_ns = r.summary.last_ns + 1,
            |r| r.parity = Some(Part { group: 7, span: 0, place: 0, of: 1 }),
            |r| r.group = Some(Joined { group: 6, of: 1 }),
            |r| r.group = Some(Joined { group: 10, of: 1 }),
            |r| r.group = Some(Joined { group: 8, of: 3 }),
        ];
        for change in contradictions {
            assert_eq!(refusal(change), Some(Damage::Contradiction));
        }
    }
}
