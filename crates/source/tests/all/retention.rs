//! A packer with a rule of retention: what is left out is counted at its own place, before anything else can lose it, and only of
//! packets that are stored.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Timestamp;
use format::{Count, Interface, Ledger, LinkType, Packet, Stage};
use longtake_source::packer::Progress;
use longtake_source::{Packer, Pressure, Retention, Sink};

use crate::packer::{Stored, supply, unpacked};

const CHUNK: u32 = 1 << 20;

/// Keeps as many bytes of a packet as its first byte says; of 255 nothing.
#[derive(Debug)]
struct FirstByte;

impl Retention for FirstByte {
    fn describe(&self, interface: &mut Interface) {
        interface.snap_length = 254;
    }

    fn keep(&mut self, link_type: LinkType, packet: &Packet<'_>) -> Option<usize> {
        assert_eq!(link_type, LinkType::ETHERNET);
        packet.data.first().filter(|&&byte| byte < 255).map(|&byte| usize::from(byte))
    }
}

/// Packs packets of 100 bytes and 60 more on the wire, by their first bytes, into so many buffers.
fn pack(buffers: u32, pressure: Pressure, first: &[u8]) -> (Vec<Stored>, Ledger, Arc<Progress>) {
    let (supply, filled) = supply(buffers, CHUNK);
    let pool = Arc::clone(&supply.pool);
    let progress = Arc::new(Progress::default());
    let packer = Packer::new(supply, 0, pressure, Arc::clone(&progress));
    let mut packer = packer.retaining(Some(Box::new(FirstByte)));
    let number = packer.interface(&Interface {
        name: "eth7".to_owned(),
        description: String::new(),
        link_type: LinkType::ETHERNET,
        snap_length: 0,
        filter: String::new(),
        speed_bits: 0,
    });
    for (n, &first) in (0..).zip(first) {
        let mut data = [7; 100];
        data[0] = first;
        packer
            .packet(&Packet {
                interface: number,
                timestamp: Timestamp::from_nanos(1000 + n),
                original_length: 160,
                data: &data,
                options: &[],
            })
            .unwrap();
    }
    packer.finish();
    let (mut packets, mut ledger) = (Vec::new(), Ledger::default());
    for filled in filled.try_iter() {
        let chunk = pool.hold(filled.buffer);
        let (length, start) = (filled.summary.length, filled.summary.packets_start);
        packets.extend(unpacked(&chunk[..length as usize], CHUNK, start as usize));
        ledger.add(&filled.losses);
        ledger.store(filled.summary.stored());
    }
    (packets, ledger, progress)
}

#[test]
fn what_is_kept_of_each_packet_is_stored_with_its_original_length_and_the_rest_is_counted() {
    let (packets, ledger, progress) = pack(2, Pressure::Waits, &[40, 255, 100, 200, 0, 255, 255]);
    let lengths: Vec<_> = packets.iter().map(|p| (p.data.len(), p.original_length)).collect();
    assert_eq!(lengths, [(40, 160), (100, 160), (100, 160), (0, 160)]);
    assert_eq!(packets[0].interface.snap_length, 254, "the rule shows in the description");
    assert!(packets.iter().all(|packet| packet.dropped == 0), "what is not wanted is not lost");
    assert_eq!(ledger.sliced, Count::new(2, 60 + 100));
    assert_eq!(ledger.lost(Stage::Cut), Count::new(3, 3 * 160));
    assert_eq!(ledger.offered, Count::new(7, 7 * 160));
    assert!(ledger.balances() && ledger.lost_unwanted().is_zero());
    assert!(ledger.truncated.is_zero());
    let told = |stage: Stage| progress.lost_packets[stage.index()].load(Ordering::Relaxed);
    assert_eq!((told(Stage::Cut), told(Stage::NoBuffer)), (3, 0));
    assert_eq!(progress.offered_packets.load(Ordering::Relaxed), 7);
}

#[test]
fn what_finds_no_buffer_is_lost_unless_it_is_cut_and_is_never_sliced() {
    let many: Vec<u8> = [40; 3 * CHUNK as usize / 72].into_iter().chain([255, 40]).collect();
    let (packets, ledger, progress) = pack(1, Pressure::Drops, &many);
    let stored = packets.len() as u64;
    assert_eq!(ledger.stored, Count::new(stored, stored * 160));
    assert_eq!(ledger.sliced, Count::new(stored, stored * 60), "of stored packets alone");
    let told = |stage: Stage| progress.lost_packets[stage.index()].load(Ordering::Relaxed);
    assert_eq!(told(Stage::NoBuffer), many.len() as u64 - stored - 1);
    assert_eq!(told(Stage::Cut), 1);
}

#[test]
fn a_source_of_which_everything_is_cut_tells_how_much_that_was() {
    let (packets, ledger, _) = pack(1, Pressure::Waits, &[255; 5000]);
    assert!(packets.is_empty());
    assert_eq!(ledger.lost(Stage::Cut), Count::new(5000, 5000 * 160));
    assert!(ledger.balances());
}
