//! Looking at an array while it is recorded on. Writes complete in another order than that of their
//! sequence numbers, and members are read one after another: a single look sees holes that are none.

use base::{Bank, Buffers, Duration};

use crate::open::{ArrayImage, Look, OpenError, Written, open_to_read};
use crate::protocol::TimeRange;
use crate::reader::Reader;
use crate::takes::{Catalog, Entry};

/// Looks at most, so that a gap that stays (on a member that can't be read) is told in the end.
const LOOKS_MAX: u32 = 40;

/// Time between looks: chunk writes take milliseconds, on a drive that stalls tenths of a second.
const PAUSE: Duration = Duration::from_millis(50);

/// The chunks of an array that is being recorded on, through the last one that was written when the array was opened,
/// as the recorder says, or else the last one that a first look found. Looks again until every chunk before that
/// one has arrived. `image` becomes that of the last look; `ask` asks the recorder before each further one.
///
/// # Errors
/// [`OpenError`] if the array can't be opened again or a drive fails.
pub fn catalog<B: Bank, M: Buffers>(
    reader: &mut Reader<'_, B, M>,
    image: &mut ArrayImage,
    degraded: bool,
    range: TimeRange,
    mut ask: impl FnMut(&B) -> Option<Written>,
) -> Result<Catalog, OpenError> {
    let mut seen = Catalog::load(reader, image, range)?;
    let Some(last) = seen.entries.last() else { return Ok(seen) };
    let mut horizon = last.record.sequence;
    for look in 0.. {
        if look > 0 {
            let written = ask(reader.bank);
            let (known, written) = (Some(&*image), written.as_ref());
            let again = Look { degraded, known, written, by_records: true };
            *image = open_to_read(reader, again)?;
            let found = Catalog::load_more(reader, image, range, &seen)?;
            seen = joined(seen, found);
        }
        horizon = through_number(&seen.entries, horizon);
        let through = through(&seen, horizon);
        let is_known = look > 0 || image.written.is_some();
        if look == LOOKS_MAX || is_known && !expects_more(&through, image, range) {
            return Ok(through);
        }
        let until = reader.bank.now() + PAUSE;
        while reader.bank.now() < until {
            reader.bank.wait(Some(until), &mut Vec::new())?;
        }
    }
    unreachable!("the last look returns")
}

/// What two looks have found.
fn joined(seen: Catalog, found: Catalog) -> Catalog {
    // What a ring reuses between two looks was there: reading it will tell that it is gone.
    let reused = seen.reused.max(found.reused);
    let entries = Catalog::of([seen.entries, found.entries.clone()].concat()).entries;
    Catalog { entries, reused, ..found }
}

/// The number through which chunks are listed if those up to the horizon are: the last one that stands in for one of these, and the
/// last one of the take that the horizon lies in, once that has ended.
fn through_number(entries: &[Entry], horizon: u64) -> u64 {
    let replaces = |e: &&Entry| e.record.replaces.is_some_and(|root| root <= horizon);
    let replaced = entries.iter().filter(replaces).map(|e| e.record.sequence).max();
    let within = &entries[..entries.partition_point(|e| e.record.sequence <= horizon)];
    let take = within.last().map(|e| e.record.take.uuid);
    let of_take: Vec<&Entry> =
        entries.iter().filter(|e| Some(e.record.take.uuid) == take).collect();
    let has_ended = of_take.iter().any(|e| e.record.summary.end);
    let last = of_take.last().filter(|_| has_ended).map(|e| e.record.sequence);
    [replaced, last].into_iter().flatten().fold(horizon, u64::max)
}

/// The chunks through a number.
fn through(seen: &Catalog, number: u64) -> Catalog {
    let mut through = seen.clone();
    through.entries.retain(|e| e.record.sequence <= number);
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
