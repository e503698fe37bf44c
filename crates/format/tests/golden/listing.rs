//! What Longtake's reader finds on a member, in the same words as `check.py`.

use std::fmt::Write;

use format::chunk::check_body;
use format::index::{self, Footer};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use format::packets::{Item, Items};
use format::parity::{self, PARITY_AT, Table};
use format::pcapng::{self, Block, Blocks};
use format::section::HEADER_BYTES;
use format::{ChunkRecord, Interface, Layout, PAGE_BYTES, Place, Stage, Superblock};

/// Lists a whole member.
pub fn list(bytes: &[u8]) -> String {
    let mut out = String::new();
    let copy_at = Layout::copy_offset(bytes.len() as u64);
    let [first, copy] = [0, copy_at].map(|offset| {
        let range = offset as usize..(offset + SUPERBLOCK_BYTES) as usize;
        let found = Superblock::read(&bytes[range], offset).expect("a sound superblock");
        superblock(&mut out, &found, offset);
        found
    });
    let newest = if copy.generation > first.generation { copy } else { first };
    let layout = newest.layout;
    let members = newest.members.len() as u16;
    let member = Place { array: newest.array, member: newest.member, members, offset: 0 };
    for number in 0..layout.segments {
        let start = layout.segment_offset(number) as usize;
        let segment = &bytes[start..start + layout.segment_bytes as usize];
        let chunks = walk(segment, &Place { offset: start as u64, ..member });
        let Some((_, head)) = chunks.first() else {
            put(&mut out, format_args!("segment {number} at {start}: empty"));
            continue;
        };
        let footer = Footer::read(&segment[segment.len() - PAGE_BYTES as usize..])
            .ok()
            .filter(|footer| footer.first_sequence == head.sequence);
        let state = if footer.is_some() { "closed" } else { "open" };
        put(
            &mut out,
            format_args!("segment {number} at {start}: {} chunks, {state}", chunks.len()),
        );
        for (place, record) in &chunks {
            chunk(&mut out, place, record);
            body(&mut out, &bytes[place.offset as usize..], record);
        }
        let Some(footer) = footer else { continue };
        let tail = index::tail_length(u64::from(footer.entries)) as usize;
        let entries = footer.entries(&segment[segment.len() - tail..]).expect("sound entries");
        assert_eq!(entries, chunks, "the index has what the walk found");
        put(
            &mut out,
            format_args!(
                "  index at {} length {} entries {} sequences {} to {} times {} to {}",
                start as u64 + layout.segment_bytes - footer.section_bytes,
                footer.section_bytes,
                footer.entries,
                footer.first_sequence,
                footer.last_sequence,
                or_none(Some(footer.first_ns)),
                footer.last_ns
            ),
        );
    }
    out
}

/// Holds each parity chunk of an array to the chunks that it is of.
pub fn parities(members: &[&[u8]]) -> String {
    let mut out = String::new();
    for member in members {
        let superblock = Superblock::read(member, 0).expect("a sound superblock");
        let place = Place {
            array: superblock.array,
            member: superblock.member,
            members: members.len() as u16,
            offset: 0,
        };
        for number in 0..superblock.layout.segments {
            let offset = superblock.layout.segment_offset(number);
            let segment = &member[offset as usize..][..superblock.layout.segment_bytes as usize];
            for (place, record) in walk(segment, &Place { offset, ..place }) {
                let chunk = &member[place.offset as usize..];
                let Some(part) = record.parity else { continue };
                let (table, parity) = Table::read(chunk, &record).expect("a sound table");
                let mut made = vec![0; PARITY_AT + parity.len()];
                let mut filled = 0;
                let mut rows = Vec::new();
                for row in &table.rows {
                    let chunk = &members[usize::from(row.member)][row.offset as usize..];
                    parity::fold(part.place, &mut made, filled, &chunk[..row.length as usize]);
                    filled = filled.max(row.length);
                    rows.push(format!("{} on {} at {}", row.sequence, row.member, row.offset));
                }
                let fits = if &made[PARITY_AT..] == parity { "fits" } else { "DOES NOT FIT" };
                put(
                    &mut out,
                    format_args!(
                        "parity {} of {} of group {} in chunk {}: {} bytes over {}; {fits}",
                        part.place,
                        part.of,
                        part.group,
                        record.sequence,
                        parity.len(),
                        rows.join(", "),
                    ),
                );
            }
        }
    }
    out
}

/// The chunks of a segment, by the rules of `docs/format.md`, section 7.
fn walk(segment: &[u8], start: &Place) -> Vec<(Place, ChunkRecord)> {
    let mut chunks: Vec<(Place, ChunkRecord)> = Vec::new();
    let mut at = 0;
    while let Ok((place, record)) = ChunkRecord::read(&segment[at..]) {
        let here = place == Place { offset: start.offset + at as u64, ..*start };
        let newer = chunks.last().is_none_or(|(_, last)| record.sequence > last.sequence);
        if !here || !newer || check_body(&segment[at..], &record).is_err() {
            break;
        }
        at += record.summary.length as usize;
        chunks.push((place, record));
    }
    chunks
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("a string takes everything");
}

fn or_none(number: Option<u64>) -> String {
    number.filter(|&n| n != u64::MAX).map_or_else(|| "none".to_owned(), |n| n.to_string())
}

fn superblock(out: &mut String, found: &Superblock, offset: u64) {
    let Layout { segments, segment_bytes, chunk_min, chunk_max } = found.layout;
    put(
        out,
        format_args!(
            "superblock at {offset}: array {} name '{}' member {} of {} generation {} created {} \
             data {DATA_OFFSET} segments {segments} of {segment_bytes} chunks {chunk_min} to {chunk_max}{}",
            found.array,
            found.name,
            found.member,
            found.members.len(),
            found.generation,
            found.created.as_nanos(),
            if found.parity > 0 { format!(" parity {}", found.parity) } else { String::new() },
        ),
    );
    for member in &found.members {
        put(out, format_args!("  member of {}: {}", member.capacity_bytes, member.identity));
    }
    for range in &found.protected {
        let [from, to, made] = [range.from, range.to, range.made].map(|t| t.as_nanos());
        put(out, format_args!("  protected {from} to {to} made {made}: {}", range.label));
    }
}

fn chunk(out: &mut String, place: &Place, record: &ChunkRecord) {
    let s = &record.summary;
    let parity = record.parity.is_some();
    let flags: Vec<&str> =
        [(s.end, "end"), (s.plain, "plain"), (s.loss, "loss"), (parity, "parity")]
            .into_iter()
            .filter_map(|(set, name)| set.then_some(name))
            .collect();
    put(
        out,
        format_args!(
            "  chunk at {} length {} sequence {} replaces {} queue {} flags [{}] take {} started {} \
             from {} sealed {} reused {} body {:08x}",
            place.offset,
            s.length,
            record.sequence,
            or_none(record.replaces),
            s.queue,
            flags.join(" "),
            record.take.uuid,
            record.take.started.as_nanos(),
            record.take.first_sequence,
            s.sealed_ns,
            or_none(record.reused),
            s.body_crc
        ),
    );
    put(
        out,
        format_args!(
            "    packets {} in {} to {} kept {} wire {} times {} to {}",
            s.packets,
            s.packets_start,
            s.packets_end,
            s.captured_bytes,
            s.original_bytes,
            or_none(Some(s.first_ns)),
            s.last_ns
        ),
    );
    let ledger = &record.ledger;
    assert!(ledger.balances(), "chunk {}", record.sequence);
    let lost: Vec<String> = Stage::ALL
        .into_iter()
        .map(|stage| (stage, ledger.lost(stage)))
        .filter(|(_, count)| !count.is_zero())
        .map(|(stage, count)| format!("{stage} {}/{}", count.packets, count.bytes))
        .collect();
    put(
        out,
        format_args!(
            "    ledger offered {}/{} stored {}/{} lost [{}]",
            ledger.offered.packets,
            ledger.offered.bytes,
            ledger.stored.packets,
            ledger.stored.bytes,
            lost.join(", ")
        ),
    );
    let group = record.parity.map(|part| (part.group, part.of));
    let group = group.or(record.group.map(|joined| (joined.group, joined.of)));
    if group.is_none() && record.last_parities.is_empty() {
        return;
    }
    let (group, of) = group.unwrap_or_default();
    let told = record.last_parities.told_by(record.sequence);
    let told: Vec<String> = told
        .map(|p| format!("{} of {} on {}: {} of {}", p.sequence, p.group, p.member, p.place, p.of))
        .collect();
    put(out, format_args!("    group {group} of {of} parities [{}]", told.join(", ")));
}

fn body(out: &mut String, bytes: &[u8], record: &ChunkRecord) {
    let mut interfaces = 0;
    for item in Items::new(bytes, record).expect("a whole chunk") {
        match item.expect("sound blocks") {
            Item::Interface(interface) => {
                describe(out, interfaces, &interface);
                interfaces += 1;
            }
            Item::Packet(packet, _) => {
                let others: Vec<u16> = pcapng::options(packet.options)
                    .map(|(code, _)| code)
                    .filter(|&code| code != 4)
                    .collect();
                put(
                    out,
                    format_args!(
                        "    packet on {} at {}: {} of {} bytes dropped {} options {others:?} crc {:08x}",
                        packet.interface,
                        packet.time,
                        packet.data.len(),
                        packet.original_length,
                        packet.dropped(),
                        format::crc::crc32c(packet.data)
                    ),
                );
            }
        }
    }
    // Statistics stand behind the packets; they are for other tools, so there is no reader for them.
    let behind = &bytes[HEADER_BYTES..record.summary.length as usize];
    for block in Blocks::new(behind).map(|block| block.expect("sound blocks")) {
        if block.kind == pcapng::STATISTICS {
            statistics(out, &block);
        }
    }
}

fn describe(out: &mut String, number: u32, interface: &Interface) {
    put(
        out,
        format_args!(
            "    interface {number}: '{}' '{}' link type {} snap {} speed {} filter '{}'",
            interface.name,
            interface.description,
            interface.link_type.0,
            interface.snap_length,
            interface.speed_bits,
            interface.filter
        ),
    );
}

fn statistics(out: &mut String, block: &Block<'_>) {
    let body = block.body();
    let u32_at = |bytes: &[u8], at: usize| {
        u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
    };
    let time = |bytes: &[u8]| u32_at(bytes, 0) << 32 | u32_at(bytes, 4);
    let number = |bytes: &[u8]| u32_at(bytes, 4) << 32 | u32_at(bytes, 0);
    let option = |wanted: u16| {
        pcapng::options(&body[12..])
            .find_map(|(code, value)| (code == wanted).then_some(value))
            .expect("every option is there")
    };
    put(
        out,
        format_args!(
            "    statistics of {} at {}: from {} to {} received {} interface drops {} system drops {} \
             delivered {}: {}",
            u32_at(body, 0),
            time(&body[4..]),
            time(option(2)),
            time(option(3)),
            number(option(4)),
            number(option(5)),
            number(option(7)),
            number(option(8)),
            String::from_utf8_lossy(option(1))
        ),
    );
}
