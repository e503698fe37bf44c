//! Members that are out of date: one that was not there while the array was recorded on, or an old copy of one that was put
//! in its place. What such a member holds was recorded, and a ring may have overwritten it since.

use std::collections::BTreeMap;

use base::Timestamp;

use crate::open::{ArrayImage, Live, MemberImage, Segment};
use crate::takes::{Catalog, Entry};

/// Chunks of later takes, for each member of the array, from which on a member that has none of them has missed these takes.
/// Placement gives every working member its share of so many.
const MISSED_CHUNKS_LEAST: u64 = 4;

/// A member that lacks whole takes that the other members have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// Zero-based index of the member.
    pub member: u16,
    /// Time of the latest packet on it; None if it holds none.
    pub newest: Option<Timestamp>,
    /// Start of the earliest take that it is known to lack; None if the other members have come round since.
    pub missed: Option<Timestamp>,
    /// The greatest sequence number on it; None if it is empty.
    pub last_sequence: Option<u64>,
}

impl Stale {
    /// Whether a chunk lies on this member although the ring has given up its number since.
    fn is_overwritten(&self, entry: &Entry, catalog: &Catalog) -> bool {
        entry.place.member == self.member
            && Some(entry.record.sequence) <= catalog.reused
            && Some(entry.record.sequence) <= self.last_sequence
            && !catalog.recovered.contains(&entry.record.sequence)
    }
}

/// The members that are out of date. One that was rebuilt does not lack the takes from before it joined.
pub fn members(image: &ArrayImage) -> Vec<Stale> {
    (0u16..)
        .zip(&image.members)
        .filter(|(_, member)| !member.is_missing())
        .filter_map(|(at, member)| stale(image, at, member))
        .collect()
}

/// The chunks that come from members that are out of date although the ring has overwritten their numbers since.
pub fn overwritten(stale: &[Stale], catalog: &Catalog) -> u64 {
    let old = |entry: &&Entry| stale.iter().any(|stale| stale.is_overwritten(entry, catalog));
    catalog.entries.iter().filter(old).count() as u64
}

fn stale(image: &ArrayImage, at: u16, member: &MemberImage) -> Option<Stale> {
    let last_sequence = live(member).map(|live| live.last_sequence).max();
    let newest_ns = live(member).map(|live| live.last_ns).max().filter(|&ns| ns > 0);
    let others: Vec<&MemberImage> = (0u16..)
        .zip(&image.members)
        .filter(|(other, member)| *other != at && !member.is_missing())
        .map(|(_, member)| member)
        .collect();
    let joined = image.superblock.members.get(usize::from(at)).map_or(0, |row| row.joined_ns);
    let missed = missed_takes(&others, last_sequence, joined);
    let least = MISSED_CHUNKS_LEAST * image.members.len() as u64;
    let lacks_takes = missed.values().map(|&(_, chunks)| chunks).sum::<u64>() >= least;
    let lapped = joined == 0 && is_lapped(&others, last_sequence);
    (lacks_takes || lapped).then(|| Stale {
        member: at,
        newest: newest_ns.map(Timestamp::from_nanos),
        missed: missed.values().next().map(|&(started, _)| started).filter(|_| lacks_takes),
        last_sequence,
    })
}

/// Takes that began after a member's last chunk and after it joined: by first sequence number, when each began and how many of
/// its chunks are known before any index is read.
fn missed_takes(
    others: &[&MemberImage],
    last_sequence: Option<u64>,
    joined_ns: u64,
) -> BTreeMap<u64, (Timestamp, u64)> {
    let mut takes: BTreeMap<u64, (Timestamp, u64)> = BTreeMap::new();
    for image in others.iter().flat_map(|member| member.walked()) {
        for (_, record) in &image.chunks {
            let take = record.take;
            if Some(take.first_sequence) > last_sequence && take.started.as_nanos() > joined_ns {
                takes.entry(take.first_sequence).or_insert((take.started, 0)).1 += 1;
            }
        }
    }
    // A segment behind the first chunk of such a take holds chunks of these takes alone.
    let Some(&first) = takes.keys().next() else { return takes };
    let full = others.iter().flat_map(|member| live(member));
    let full = full.filter(|live| live.indexed && live.first_sequence >= first).count() as u64;
    if let Some((_, chunks)) = takes.get_mut(&first) {
        *chunks += full * MISSED_CHUNKS_LEAST;
    }
    takes
}

/// Whether all that the other members hold is newer than all that a member holds, and is more than their first segments.
fn is_lapped(others: &[&MemberImage], last_sequence: Option<u64>) -> bool {
    let Some(last) = last_sequence else { return false };
    !others.is_empty()
        && others.iter().all(|member| {
            live(member).count() > 1 && live(member).all(|live| live.first_sequence > last)
        })
}

fn live(member: &MemberImage) -> impl Iterator<Item = &Live> {
    member.segments.iter().filter_map(|segment| match segment {
        Segment::Live(live) => Some(live),
        Segment::Empty => None,
    })
}
