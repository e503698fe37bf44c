//! What an array holds: its chunks by sequence number, its takes, and what is missing from them.

use std::collections::{BTreeMap, HashMap};

use base::{Bank, Buffers, Duration, Timestamp};
use format::index::{self, Footer};
use format::{ChunkRecord, Count, Layout, Ledger, PAGE_BYTES, Place, TakeId};
use uuid::Uuid;

use crate::open::{ArrayImage, OpenError, Segment, walk};
use crate::planted::{Bug, is_planted};
use crate::protocol::TimeRange;
use crate::reader::{Range, Reader};

/// A chunk and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it says that it is; the member is in it.
    pub place: Place,
    /// What it says of itself.
    pub record: ChunkRecord,
}

/// The chunks of an array, by sequence number, each once.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// In order of sequence number.
    pub entries: Vec<Entry>,
    /// The greatest sequence number that a ring has given up.
    pub reused: Option<u64>,
}

impl Catalog {
    /// Reads the indexes of all segments that may hold packets of `range`, walking those segments
    /// that have none. Chunks outside the range may be among the result.
    ///
    /// # Errors
    /// [`OpenError::Read`] if a drive fails.
    pub fn load<B: Bank, M: Buffers>(
        reader: &mut Reader<'_, B, M>,
        image: &ArrayImage,
        range: TimeRange,
    ) -> Result<Self, OpenError> {
        let mut entries = Vec::new();
        for (at, member) in (0u16..).zip(&image.members) {
            let place = Place {
                array: image.uuid,
                member: at,
                members: image.members.len() as u16,
                offset: 0,
            };
            let mut indexed = Vec::new();
            for (segment, state) in (0u64..).zip(&member.segments) {
                let Segment::Live(live) = state else { continue };
                // The newest chunks tell what the ring has given up, whatever their time. Those of an
                // open head are known already.
                let head = member.head.as_ref().is_some_and(|h| h.closed && h.segment == segment);
                // Without a packet time there may still be the end of a take in it.
                if !range.touches(live) && live.last_ns != 0 && !head {
                    continue;
                }
                if live.indexed {
                    indexed.push(segment);
                    continue;
                }
                for (place, record) in walk(reader, member.drive, &member.layout, &place, segment)?
                {
                    entries.push(Entry { place, record });
                }
            }
            let mut broken = Vec::new();
            let end =
                |segment: u64| member.layout.segment_offset(segment) + member.layout.segment_bytes;
            // The whole tail of most indexes lies in 64 KiB; a longer one is read again.
            let guess =
                (64 << 10).min(reader.buffer_bytes()).min(member.layout.segment_bytes as u32);
            let ranges: Vec<Range> = indexed
                .iter()
                .map(|&segment| Range {
                    drive: member.drive,
                    offset: end(segment) - u64::from(guess),
                    length: guess,
                })
                .collect();
            let mut longer = Vec::new();
            reader.scatter(&ranges, |index, bytes| {
                let segment = indexed[index];
                let footer = bytes.ok().and_then(|bytes| {
                    let footer = Footer::read(bytes).ok()?;
                    footer.suits(&place, member.layout.segment_bytes).then_some((footer, bytes))
                });
                let Some((footer, bytes)) = footer else {
                    broken.push(segment);
                    return;
                };
                let tail = index::tail_length(u64::from(footer.entries));
                if tail > bytes.len() as u64 {
                    longer.push((segment, tail));
                    return;
                }
                let tail = &bytes[bytes.len() - tail as usize..];
                match indexed_chunks(&footer, tail, &member.layout, segment) {
                    Some(found) => entries.extend(found),
                    None => broken.push(segment),
                }
            })?;
            for (segment, tail) in longer {
                let mut found = None;
                if tail <= u64::from(reader.buffer_bytes()) {
                    let (offset, length) = (end(segment) - tail, tail as u32);
                    let bytes = reader.one(Range { drive: member.drive, offset, length })?;
                    found = Footer::read(&bytes)
                        .ok()
                        .filter(|footer| footer.suits(&place, member.layout.segment_bytes))
                        .and_then(|f| indexed_chunks(&f, &bytes, &member.layout, segment));
                }
                match found {
                    Some(found) => entries.extend(found),
                    None => broken.push(segment),
                }
            }
            for segment in broken {
                for (place, record) in walk(reader, member.drive, &member.layout, &place, segment)?
                {
                    entries.push(Entry { place, record });
                }
            }
        }
        let heads = image.members.iter().filter_map(|m| m.head.as_ref());
        let reused = heads.flat_map(|h| &h.chunks).filter_map(|(_, chunk)| chunk.reused).max();
        let catalog = Self::of(entries);
        Ok(Self { reused: catalog.reused.max(reused), ..catalog })
    }

    /// Sorts chunks and leaves out those that others stand in for.
    pub fn of(mut entries: Vec<Entry>) -> Self {
        let reused = entries.iter().filter_map(|e| e.record.reused).max();
        let mut newest: HashMap<u64, u64> = HashMap::new();
        for entry in &entries {
            if let Some(root) = entry.record.replaces {
                let newest = newest.entry(root).or_insert(entry.record.sequence);
                *newest = (*newest).max(entry.record.sequence);
            }
        }
        entries.retain(|entry| {
            let sequence = entry.record.sequence;
            let root = entry.record.replaces.unwrap_or(sequence);
            newest.get(&root).is_none_or(|&newest| newest == sequence)
                || is_planted(Bug::ListsReplacedChunks)
        });
        entries.sort_by_key(|e| e.record.sequence);
        entries.dedup_by_key(|e| e.record.sequence);
        Self { entries, reused }
    }

    /// The takes, in order of their chunks.
    pub fn takes(&self) -> Vec<Take> {
        let mut by_take: BTreeMap<(u64, Uuid), Vec<&Entry>> = BTreeMap::new();
        for entry in &self.entries {
            let take = entry.record.take;
            by_take.entry((take.first_sequence, take.uuid)).or_default().push(entry);
        }
        by_take.into_values().map(|entries| self.take(&entries)).collect()
    }

    fn take(&self, entries: &[&Entry]) -> Take {
        let first = &entries[0].record;
        let last = &entries[entries.len() - 1].record;
        let mut replaced: BTreeMap<u64, Count> = BTreeMap::new();
        for entry in entries {
            if let Some(root) = entry.record.replaces {
                *replaced.entry(root).or_default() += entry.record.summary.stored();
            }
        }
        // What the ledger says was placed before a chunk, less those parts that are found elsewhere.
        let before = |record: &ChunkRecord| match record.replaces {
            Some(_) => record.ledger.stored,
            None => record.ledger.stored - record.summary.stored(),
        };
        let elsewhere = |from: u64, to: u64| {
            replaced.range(from..to).fold(Count::ZERO, |sum, (_, &count)| sum + count)
        };
        let mut take = Take {
            id: first.take,
            chunks: entries.len() as u64,
            first_sequence: first.sequence,
            last_sequence: last.sequence,
            stored: Count::ZERO,
            captured_bytes: 0,
            media_bytes: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            queues: 0,
            ledger: last.ledger,
            ended: entries.iter().any(|e| e.record.summary.end),
            overwritten: Count::ZERO,
            gaps: Vec::new(),
        };
        let start = before(first) - elsewhere(first.take.first_sequence, first.sequence);
        self.missing(
            &mut take,
            start,
            first.take.first_sequence,
            first,
            first.take.started.as_nanos(),
        );
        for pair in entries.windows(2) {
            let (one, two) = (&pair[0].record, &pair[1].record);
            if two.sequence > one.sequence + 1 {
                let missing =
                    before(two) - one.ledger.stored - elsewhere(one.sequence + 1, two.sequence);
                self.missing(&mut take, missing, one.sequence + 1, two, one.summary.last_ns);
            }
        }
        for entry in entries {
            let s = &entry.record.summary;
            take.stored += s.stored();
            take.captured_bytes += s.captured_bytes;
            take.media_bytes += u64::from(s.length);
            take.first_ns = take.first_ns.min(s.first_ns);
            take.last_ns = take.last_ns.max(s.last_ns);
            take.queues = take.queues.max(s.queue + 1);
        }
        take
    }

    /// Enters what lies between two chunks as a gap, or as overwritten where the ring gave it up.
    fn missing(&self, take: &mut Take, count: Count, from: u64, next: &ChunkRecord, from_ns: u64) {
        // Without a number between them nothing can be missing, whatever the ledgers say.
        if count.packets == 0 || from >= next.sequence {
            return;
        }
        if self.reused.is_some_and(|reused| next.sequence - 1 <= reused || from <= reused) {
            take.overwritten += count;
            return;
        }
        take.gaps.push(Gap {
            first_sequence: from,
            last_sequence: next.sequence - 1,
            count,
            from_ns,
            to_ns: if next.summary.packets > 0 {
                next.summary.first_ns
            } else {
                next.summary.sealed_ns
            },
        });
    }
}

/// A segment's chunks by its index, if they lie in that segment from its start to the index.
fn indexed_chunks(
    footer: &Footer,
    tail: &[u8],
    layout: &Layout,
    segment: u64,
) -> Option<Vec<Entry>> {
    let found = footer.entries(tail).ok()?;
    let (first, _) = found.first()?;
    let length: u64 = found.iter().map(|(_, chunk)| u64::from(chunk.summary.length)).sum();
    let sound = first.offset == layout.segment_offset(segment)
        && length + footer.section_bytes == layout.segment_bytes
        && found.iter().all(|(_, chunk)| chunk.summary.length <= layout.chunk_max);
    sound.then(|| found.into_iter().map(|(place, record)| Entry { place, record }).collect())
}

/// Chunks of a take that no member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// First missing sequence number.
    pub first_sequence: u64,
    /// Last missing sequence number.
    pub last_sequence: u64,
    /// What is missing, exactly.
    pub count: Count,
    /// Latest packet time before the gap, ns since 1970.
    pub from_ns: u64,
    /// Earliest packet time after it.
    pub to_ns: u64,
}

impl Gap {
    /// Whether a catalog of this span of time shows the gap as it is. At the span's ends chunks are
    /// left out because their segment lies outside, which is no gap.
    pub fn inside(&self, range: TimeRange) -> bool {
        range == TimeRange::ALL
            || (self.from_ns >= range.from.as_nanos() && self.to_ns <= range.to.as_nanos())
    }
}

/// One recording as the media show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Its identity and start.
    pub id: TakeId,
    /// Chunks found.
    pub chunks: u64,
    /// The first one's number.
    pub first_sequence: u64,
    /// The last one's number.
    pub last_sequence: u64,
    /// Packets and wire bytes in the chunks found.
    pub stored: Count,
    /// Packet bytes kept in them.
    pub captured_bytes: u64,
    /// Bytes of the chunks themselves.
    pub media_bytes: u64,
    /// Earliest packet time, ns since 1970; all ones without packets.
    pub first_ns: u64,
    /// Latest packet time; 0 without packets.
    pub last_ns: u64,
    /// Queues that filled it.
    pub queues: u16,
    /// The account through the last chunk found.
    pub ledger: Ledger,
    /// Whether it was ended, not cut short.
    pub ended: bool,
    /// What a ring has since given up.
    pub overwritten: Count,
    /// What is missing beside that.
    pub gaps: Vec<Gap>,
}

impl Take {
    /// From the first to the last packet.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.last_ns.saturating_sub(self.first_ns))
    }

    /// What all gaps come to.
    pub fn missing(&self) -> Count {
        self.gaps.iter().fold(Count::ZERO, |sum, gap| sum + gap.count)
    }

    /// Whether what is there, what was overwritten, what is missing and what was lost make up
    /// what was offered, in packets and bytes.
    pub fn balances(&self) -> bool {
        self.ledger.balances()
            && self.stored + self.overwritten + self.missing() == self.ledger.stored
    }

    /// Its packet times.
    pub fn range(&self) -> TimeRange {
        TimeRange {
            from: Timestamp::from_nanos(self.first_ns),
            to: Timestamp::from_nanos(self.last_ns),
        }
    }
}

/// The parts of a member, as offset and length, that together are whole pcapng, oldest first: for
/// copying by hand. Segments that a crash left without an index count up to their last chunk.
pub fn extents(member: &crate::open::MemberImage) -> Vec<(u64, u64)> {
    let Some(head) = &member.head else { return Vec::new() };
    let layout = &member.layout;
    let mut extents: Vec<(u64, u64)> = Vec::new();
    for segment in (head.segment + 1..layout.segments).chain(0..=head.segment) {
        let open = std::iter::once(head).filter(|head| !head.closed).chain(&member.unindexed);
        let used = match member.segments[segment as usize] {
            Segment::Live(_) => open
                .into_iter()
                .find(|open| open.segment == segment)
                .map_or(layout.segment_bytes, |open| open.used),
            Segment::Empty => continue,
        };
        let start = layout.segment_offset(segment);
        // The superblock belongs to what begins behind it.
        let from = if segment == 0 { 0 } else { start };
        match extents.last_mut() {
            Some((at, length)) if *at + *length == from => *length = start + used - *at,
            _ => extents.push((from, start + used - from)),
        }
    }
    debug_assert!(extents.iter().all(|(from, length)| (from | length).is_multiple_of(PAGE_BYTES)));
    extents
}
