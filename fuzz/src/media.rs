//! Any bytes as a segment: chunk, packets and index. The readers never panic, and what they take for
//! sound is: it reads back the same when it is written again, and exports whole.
//!
//! The first byte says whether checksums are put right first, the rest is the segment.

use format::chunk::check_body;
use format::export::{Exporter, FileFormat};
use format::index::{self, Footer};
use format::packets::{Item, Items};
use format::pcapng::{self, Blocks};
use format::section::{HEADER_BYTES, Kind};
use format::{ChunkRecord, Header};

use crate::checksums;

/// Reads them.
pub fn run(data: &[u8]) {
    let Some((&mode, segment)) = data.split_first() else { return };
    let mut segment = segment.to_vec();
    if mode & 1 != 0 {
        let length = checksums::length(&segment);
        checksums::section(&mut segment, length);
    }
    if mode & 2 != 0 {
        checksums::index(&mut segment);
    }
    blocks(&segment);
    chunk(&segment);
    footer(&segment);
}

/// The walk ends, goes forward, and stays inside.
fn blocks(bytes: &[u8]) {
    let mut at = 0;
    for block in Blocks::new(bytes).map_while(Result::ok) {
        assert_eq!(block.offset, at);
        at += block.bytes.len();
        assert!(block.body().len() + 12 == block.bytes.len());
        pcapng::read_interface(&block).ok();
        if let Ok(packet) = pcapng::read_packet(&block) {
            assert!(packet.data.len() + packet.options.len() <= block.bytes.len());
            packet.dropped();
        }
    }
    assert!(at <= bytes.len());
}

fn chunk(bytes: &[u8]) {
    let Ok((place, record)) = ChunkRecord::read(bytes) else { return };
    let mut again = vec![0; HEADER_BYTES];
    record.stamp(&place, &mut again);
    assert_eq!(ChunkRecord::read(&again), Ok((place, record)));
    if check_body(bytes, &record).is_err() {
        return;
    }
    let items = Items::new(bytes, &record).expect("a body that checks is there whole");
    for format in [FileFormat::Pcapng, FileFormat::Pcap] {
        let mut out = Vec::new();
        let mut exporter = Exporter::new(format, "fuzz", &mut out);
        let mut numbers = Vec::new();
        for item in items.clone() {
            match item {
                Ok(Item::Interface(interface)) => {
                    numbers.push(exporter.interface(&interface, &mut out));
                }
                Ok(Item::Packet(packet, block)) => {
                    let Some(&number) = numbers.get(packet.interface as usize) else { continue };
                    if exporter.packet(number, &packet, &block, &mut out).is_err() {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        exporter.finish(&mut out);
        assert!(out.len() <= 2 * bytes.len() + 4096, "{} from {}", out.len(), bytes.len());
        if format == FileFormat::Pcapng {
            assert!(Blocks::new(&out).all(|block| block.is_ok()), "an export that does not read");
        }
    }
}

fn footer(bytes: &[u8]) {
    let Ok(footer) = Footer::read(bytes) else { return };
    let Ok(entries) = footer.entries(bytes) else { return };
    assert_eq!(entries.len(), footer.entries as usize);
    let Some((place, _)) = entries.first() else { return };
    let section = index::length_for(entries.len() as u64);
    let written = index::encode(place, section, &entries);
    assert!(Header::read(&written.front).is_ok_and(|header| header.kind == Kind::Index));
    let again = Footer::read(&written.tail).expect("what was written reads");
    assert_eq!(again.entries(&written.tail).expect("what was written reads"), entries);
}
