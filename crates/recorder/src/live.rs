//! Looking at an array while it is recorded on. Writes complete in another order than that of their
//! sequence numbers, and members are read one after another: a single look sees holes that are none.

use base::{Bank, Buffers, Duration};

use crate::open::{ArrayImage, OpenError, open_again};
use crate::protocol::TimeRange;
use crate::reader::Reader;
use crate::takes::{Catalog, Entry};

/// Looks at most, so that a gap that stays (on a member that can't be read) is told in the end.
const LOOKS_MAX: u32 = 40;

/// Time between looks: chunk writes take milliseconds, on a drive that stalls tenths of a second.
const PAUSE: Duration = Duration::from_millis(50);

/// The chunks of an array that is being recorded on, through the last one that a first look found:
/// looks again until every chunk before that one has arrived. `image` becomes that of the last look.
///
/// # Errors
/// [`OpenError`] if the array can't be opened again or a drive fails.
pub fn catalog<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &mut ArrayImage,
    degraded: bool,
    range: TimeRange,
) -> Result<Catalog, OpenError> {
    let mut seen = Catalog::load(reader, image, range)?;
    let Some(mut horizon) = seen.entries.last().map(|e| e.record.sequence) else {
        return Ok(seen);
    };
    for look in 1.. {
        *image = open_again(reader, degraded, image)?;
        let found = Catalog::load_more(reader, image, range, &seen)?;
        // What a ring reuses between two looks was there: reading it will tell that it is gone.
        let reused = seen.reused.max(found.reused);
        let Catalog { reused_to_ns, ring_alone, recovered, unindexed, unread, .. } = found;
        seen.entries.extend(found.entries);
        seen = Catalog {
            reused,
            reused_to_ns,
            ring_alone,
            recovered,
            unindexed,
            unread,
            ..Catalog::of(seen.entries)
        };
        horizon = horizon.max(replaced_through(&seen.entries, horizon));
        let through = through(&seen, horizon);
        if look == LOOKS_MAX || !expects_more(&through, image, range) {
            return Ok(through);
        }
        let until = reader.bank.now() + PAUSE;
        while reader.bank.now() < until {
            reader.bank.wait(Some(until), &mut Vec::new())?;
        }
    }
    unreachable!("the last look returns")
}

/// The last number of a chunk that stands in for one up to the horizon.
fn replaced_through(entries: &[Entry], horizon: u64) -> u64 {
    let replaces = |e: &&Entry| e.record.replaces.is_some_and(|root| root <= horizon);
    entries.iter().filter(replaces).map(|e| e.record.sequence).max().unwrap_or(0)
}

/// The chunks up to the horizon, or all of them once the take has ended.
fn through(seen: &Catalog, horizon: u64) -> Catalog {
    let mut through = seen.clone();
    if seen.entries.last().is_none_or(|e| !e.record.summary.end) {
        through.entries.retain(|e| e.record.sequence <= horizon);
    }
    through
}

/// Whether the take under way has a gap in the range, which chunks still being written may fill. Parity may be there before
/// them.
fn expects_more(catalog: &Catalog, image: &ArrayImage, range: TimeRange) -> bool {
    let takes = catalog.takes();
    let Some(take) = takes.last() else { return false };
    let late = |e: &&Entry| {
        catalog.recovered.contains(&e.record.sequence)
            && !image.members[usize::from(e.place.member)].is_missing()
    };
    if catalog.entries.iter().rev().take_while(|e| e.record.take == take.id).any(|e| late(&e)) {
        return true;
    }
    take.gaps.iter().any(|gap| gap.touches(range))
}
