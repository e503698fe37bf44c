//! Makes the golden members: an array of two, whose ring has wrapped on one of them, with one of
//! everything that `docs/format.md` describes. Nothing in it depends on time, chance or the machine.
//!
//! Shared by the tests, which hold the encoder to the files, and by `cargo xtask golden`, which makes them.

use base::Timestamp;
use format::chunk::TakeId;
use format::layout::DATA_OFFSET;
use format::parity::LastParities;
use format::pcapng::InterfaceTotals;
use format::superblock::{Member, Protected};
use format::{
    ChunkRecord, ChunkWriter, Count, Interface, Layout, Ledger, LinkType, Packet, Place, Sealed,
    Stage, Superblock, index,
};
use uuid::Uuid;

/// The files, in the order of [`members`].
pub const FILES: [&str; 2] = ["member0.bin", "member1.bin"];

const ARRAY: Uuid = Uuid::from_u128(0x4c6f_6e67_7461_6b65_4172_7261_7900_0001);
pub(super) const SEGMENT_BYTES: u64 = 256 << 10;
pub(super) const CHUNK_MAX: u32 = 64 << 10;
/// Two segments each. The second member's end is no multiple of 4 KiB.
const CAPACITIES: [u64; 2] = [1_638_400, 1_638_400 + 4096 + 512];
/// What the drives held before.
const BEFORE: [u8; 2] = [0x00, 0xA5];
/// 2027-01-15 08:00 UTC, in ns.
pub(super) const STARTED: u64 = 1_800_000_000_000_000_000;
pub(super) const MS: u64 = 1_000_000;
/// The first take's first sequence number: its start in microseconds (`docs/format.md`, section 7).
pub(super) const FIRST: u64 = STARTED / 1000;

/// The two members' bytes, whole.
pub fn members() -> Vec<Vec<u8>> {
    let mut array = Array::new();
    array.first_take();
    array.second_take();
    array.finish()
}

/// An array under way.
struct Array {
    members: Vec<Writing>,
    ledger: Ledger,
    take: TakeId,
    reused: Option<u64>,
}

/// One member, and where writing on it goes on.
pub(super) struct Writing {
    pub(super) bytes: Vec<u8>,
    pub(super) layout: Layout,
    segment: u64,
    used: u64,
    chunks: Vec<(Place, ChunkRecord)>,
}

impl Array {
    fn new() -> Self {
        let member = |(capacity, before)| Writing::new(capacity, before);
        let members = CAPACITIES.into_iter().zip(BEFORE).map(member).collect();
        let take = TakeId {
            uuid: Uuid::from_u128(0xA),
            started: Timestamp::from_nanos(STARTED),
            first_sequence: FIRST,
        };
        Self { members, ledger: Ledger::default(), take, reused: None }
    }

    /// A take of 15 chunks. The write of the fourth fails, and it is placed again as the seventh.
    fn first_take(&mut self) {
        self.full(0, 0);
        self.full(1, 1);
        self.with_losses(0, 2);
        let failed = full_chunk(3);
        self.ledger.store(failed.summary.stored());
        self.full(0, 4);
        self.full(1, 5);
        self.place(0, 6, Some(FIRST + 3), failed);
        self.full(1, 7);
        self.close(0);
        self.close(1);
        self.full(1, 8);
        self.full(0, 9);
        self.full(1, 10);
        self.full(1, 11);
        self.interface_among_packets(0, 12);
        self.close(1);
        // The second member begins its second lap: chunks 1, 5 and 7 are given up.
        self.reused = Some(FIRST + 7);
        self.members[1].segment = 0;
        self.short(1, 13);
        self.ledger.lose(Stage::ArrayFull, Count::new(7, 10_500));
        let end = writer(0).seal(&[], Timestamp::from_nanos(STARTED + 15 * MS), true);
        self.place(0, 14, None, end);
    }

    /// A take that was cut short after a chunk.
    fn second_take(&mut self) {
        self.take = TakeId {
            uuid: Uuid::from_u128(0xB),
            started: Timestamp::from_nanos(STARTED + 1000 * MS),
            first_sequence: FIRST + 1_000_000,
        };
        self.ledger = Ledger::default();
        let mut writer = writer(0);
        describe(&mut writer, 0, &ethernet());
        put(&mut writer, 0, 1000, 0, &frame(15, 0, 61), 0, &[]);
        let sealed = writer.seal(&[], sealed_at(1000), false);
        self.ledger.store(sealed.summary.stored());
        self.place(1, 1_000_000, None, sealed);
    }

    /// A chunk as full as packets of 1,500 bytes make it.
    fn full(&mut self, member: usize, chunk: u64) {
        let sealed = full_chunk(chunk);
        self.ledger.store(sealed.summary.stored());
        self.place(member, chunk, None, sealed);
    }

    /// A chunk of one packet.
    fn short(&mut self, member: usize, chunk: u64) {
        let mut writer = writer(0);
        describe(&mut writer, 0, &ethernet());
        put(&mut writer, 0, chunk, 0, &frame(chunk, 0, 61), 0, &[]);
        self.sealed(member, chunk, writer, &[]);
    }

    /// Two interfaces, one of them of raw blocks; something lost at every stage before the media;
    /// a packet cut short, and one with an option of its own.
    fn with_losses(&mut self, member: usize, chunk: u64) {
        let mut writer = writer(0);
        describe(&mut writer, 0, &ethernet());
        describe(&mut writer, 1, &sensor());
        // epb_flags: inbound.
        let flags = [2, 0, 4, 0, 1, 0, 0, 0];
        put(&mut writer, 0, chunk, 0, &frame(chunk, 0, 60), 0, &flags);
        put(&mut writer, 1, chunk, 1, &[0x5A; 3000], 0, &[]);
        put(&mut writer, 0, chunk, 2, &frame(chunk, 2, 90), 6, &flags);
        put(&mut writer, 1, chunk, 3, &[], 0, &[]);
        for (stage, packets, bytes) in [
            (Stage::Interface, 2, 0),
            (Stage::KernelRing, 3, 0),
            (Stage::NoBuffer, 1, 1500),
            (Stage::Filtered, 5, 500),
        ] {
            self.ledger.lose(stage, Count::new(packets, bytes));
        }
        let totals = InterfaceTotals {
            start_ns: STARTED,
            end_ns: STARTED + 2 * MS + MS / 2,
            received: 88,
            dropped_by_interface: 2,
            dropped_by_system: 4,
            delivered: 82,
            comment: "packets lost since the previous statistics: interface 2, kernel ring 3, no buffer 1"
                .into(),
        };
        self.sealed(member, chunk, writer, &[(0, totals)]);
    }

    /// A chunk of the source's second queue that is not plain; before it, no member took a packet.
    fn interface_among_packets(&mut self, member: usize, chunk: u64) {
        let mut writer = writer(1);
        describe(&mut writer, 1, &sensor());
        put(&mut writer, 1, chunk, 3, &[1, 2, 3, 4, 5], 0, &[]);
        describe(&mut writer, 0, &ethernet());
        put(&mut writer, 0, chunk, 1, &frame(chunk, 1, 1514), 0, &[]);
        self.ledger.lose(Stage::DeviceError, Count::new(1, 1500));
        self.sealed(member, chunk, writer, &[]);
    }

    fn sealed(
        &mut self,
        member: usize,
        chunk: u64,
        writer: ChunkWriter<Vec<u8>>,
        lossy: &[(u32, InterfaceTotals)],
    ) {
        let sealed = writer.seal(lossy, sealed_at(chunk), false);
        self.ledger.store(sealed.summary.stored());
        self.place(member, chunk, None, sealed);
    }

    /// Writes a chunk at a member's head. `number` counts sequence numbers from the first take's first.
    fn place(
        &mut self,
        member: usize,
        number: u64,
        replaces: Option<u64>,
        sealed: Sealed<Vec<u8>>,
    ) {
        let record = ChunkRecord {
            take: self.take,
            sequence: FIRST + number,
            replaces,
            ledger: self.ledger,
            reused: self.reused,
            reused_to_ns: 0,
            parity: None,
            group: None,
            last_parities: LastParities::default(),
            summary: sealed.summary,
        };
        let mut chunk = sealed.buffer;
        let at = self.members[member].head();
        self.members[member].append(&place(member, at), record, &mut chunk);
    }

    /// Writes the index of a member's segment and goes on in the next.
    fn close(&mut self, member: usize) {
        let at = self.members[member].head();
        self.members[member].close(&place(member, at));
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        let table: Vec<Member> = (0..)
            .zip(CAPACITIES)
            .map(|(at, capacity_bytes)| Member {
                capacity_bytes,
                identity: format!("Golden drive {at}"),
                joined_ns: 0,
            })
            .collect();
        for (at, writing) in self.members.iter_mut().enumerate() {
            let mut superblock = Superblock {
                array: ARRAY,
                name: "goldenes Feld ä".into(),
                member: at as u16,
                members: table.clone(),
                layout: writing.layout,
                created: Timestamp::from_nanos(STARTED - 5000 * MS),
                generation: 2,
                protected: vec![Protected {
                    from: Timestamp::from_nanos(STARTED + 8 * MS),
                    to: Timestamp::from_nanos(STARTED + 9 * MS),
                    made: Timestamp::from_nanos(STARTED + 20 * MS),
                    label: "Überflug".into(),
                }],
                parity: 0,
            };
            let copy = Layout::copy_offset(CAPACITIES[at]);
            let mut newer = superblock.clone();
            newer.generation = 3;
            // A crash between the two writes left the second member's first superblock behind.
            writing.put(copy, &newer.encode(copy));
            if at == 0 {
                superblock = newer;
            }
            let first = superblock.encode(0);
            writing.put(0, &first);
            writing.put(first.len() as u64, &Superblock::padding());
            debug_assert_eq!(first.len() as u64 + Superblock::padding().len() as u64, DATA_OFFSET);
        }
        self.members.into_iter().map(|writing| writing.bytes).collect()
    }
}

impl Writing {
    /// A member of so many bytes that all are `before`.
    pub(super) fn new(capacity: u64, before: u8) -> Self {
        Self {
            bytes: vec![before; capacity as usize],
            layout: Layout::new(capacity, SEGMENT_BYTES, CHUNK_MAX).expect("lengths that fit"),
            segment: 0,
            used: 0,
            chunks: Vec::new(),
        }
    }

    /// Where the next chunk goes.
    pub(super) fn head(&self) -> u64 {
        self.layout.segment_offset(self.segment) + self.used
    }

    /// Writes a chunk at the head, which is `place`.
    pub(super) fn append(&mut self, place: &Place, record: ChunkRecord, chunk: &mut [u8]) {
        record.stamp(place, chunk);
        let length = record.summary.length as usize;
        self.put(place.offset, &chunk[..length]);
        self.used += length as u64;
        self.chunks.push((*place, record));
    }

    /// Writes the index of the segment, whose head is `place`, and goes on in the next.
    pub(super) fn close(&mut self, place: &Place) {
        let end = self.layout.segment_offset(self.segment) + SEGMENT_BYTES;
        let written = index::encode(place, SEGMENT_BYTES - self.used, &self.chunks);
        self.put(place.offset, &written.front);
        self.put(end - written.tail.len() as u64, &written.tail);
        self.segment += 1;
        self.used = 0;
        self.chunks.clear();
    }

    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) {
        let at = offset as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

fn place(member: usize, offset: u64) -> Place {
    Place { array: ARRAY, member: member as u16, members: 2, offset }
}

pub(super) fn sealed_at(chunk: u64) -> Timestamp {
    Timestamp::from_nanos(STARTED + chunk * MS + MS / 2)
}

pub(super) fn writer(queue: u16) -> ChunkWriter<Vec<u8>> {
    let layout = Layout::new(CAPACITIES[0], SEGMENT_BYTES, CHUNK_MAX).expect("lengths that fit");
    ChunkWriter::new(vec![0xEE; CHUNK_MAX as usize], layout.chunk_min, CHUNK_MAX, queue)
}

pub(super) fn describe(writer: &mut ChunkWriter<Vec<u8>>, number: u32, interface: &Interface) {
    writer.interface(number, interface).expect("a chunk with room");
}

pub(super) fn put(
    writer: &mut ChunkWriter<Vec<u8>>,
    interface: u32,
    chunk: u64,
    packet: u64,
    data: &[u8],
    dropped: u64,
    options: &[u8],
) {
    let packet = Packet {
        interface,
        timestamp: Timestamp::from_nanos(STARTED + chunk * MS + packet * 1001),
        // Packets of an odd number were longer on the wire than what is kept.
        original_length: data.len() as u32 + (packet % 2) as u32 * 100,
        data,
        options,
    };
    writer.packet(&packet, dropped).expect("a chunk with room");
}

fn full_chunk(chunk: u64) -> Sealed<Vec<u8>> {
    let mut writer = writer(0);
    describe(&mut writer, 0, &ethernet());
    for number in 0..40 {
        put(&mut writer, 0, chunk, number, &frame(chunk, number, 1500), 0, &[]);
    }
    writer.seal(&[], sealed_at(chunk), false)
}

/// An Ethernet frame of the type for local experiments (IEEE 802, 0x88B5).
pub(super) fn frame(chunk: u64, number: u64, length: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x88, 0xB5];
    frame.push(chunk as u8);
    frame.push(number as u8);
    let pattern = (number * 3 + chunk) as u8;
    frame.resize(length, pattern);
    frame
}

pub(super) fn ethernet() -> Interface {
    Interface {
        name: "eth0".into(),
        description: "the first of two".into(),
        link_type: LinkType::ETHERNET,
        snap_length: 65_535,
        filter: "not port 22".into(),
        speed_bits: 100_000_000_000,
    }
}

fn sensor() -> Interface {
    Interface {
        name: "tcp://sensor:7000".into(),
        description: String::new(),
        link_type: LinkType::USER0,
        snap_length: 0,
        filter: String::new(),
        speed_bits: 0,
    }
}
