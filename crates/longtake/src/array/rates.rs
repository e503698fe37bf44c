//! How fast a take was recorded, as its chunks tell: each one says how many bytes it holds, and of which span of time.

use base::{Duration, Rate};
use format::ChunkSummary;
use recorder::takes::Take;

/// How fast packets were stored, in packet bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TakeRates {
    /// From the first packet to the last one.
    pub average: Rate,
    /// The highest of any second. The bytes of a chunk are spread evenly over the span of its packets, so a burst that is shorter
    /// than that counts as less than it was. A take of less than a second has at most all of its bytes in one.
    pub peak_second: Rate,
}

const SECOND_NS: f64 = 1e9;

impl TakeRates {
    /// Of a take and its chunks of packets. None if all its packets have one time: no rate is known then.
    pub(super) fn of<'a>(
        take: &Take,
        chunks: impl Iterator<Item = &'a ChunkSummary>,
    ) -> Option<Self> {
        if take.stored.packets == 0 || take.duration() == Duration::ZERO {
            return None;
        }
        let average = Rate::of(take.captured_bytes, take.duration());
        let pieces: Vec<Piece> = chunks.filter_map(|chunk| Piece::of(chunk, take)).collect();
        Some(Self { average, peak_second: Rate(peak_bytes(&pieces)) })
    }
}

/// Bytes that came evenly between two times, in ns since the take's first packet.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from_ns: f64,
    to_ns: f64,
    bytes: f64,
}

impl Piece {
    fn of(chunk: &ChunkSummary, take: &Take) -> Option<Self> {
        let at = |ns: u64| ns.saturating_sub(take.first_ns) as f64;
        (chunk.packets > 0).then(|| Self {
            from_ns: at(chunk.first_ns),
            to_ns: at(chunk.last_ns),
            bytes: chunk.captured_bytes as f64,
        })
    }
}

/// The most bytes in any second.
///
/// The bytes up to a time grow in straight lines between the ends of pieces. So the bytes of a window do, and are highest where one of
/// its ends is at such a point.
fn peak_bytes(pieces: &[Piece]) -> f64 {
    let total = Running::new(pieces);
    let ends = pieces.iter().flat_map(|piece| [piece.from_ns, piece.to_ns]);
    let windows = ends.flat_map(|at| [(at - SECOND_NS, at), (at, at + SECOND_NS)]);
    windows.map(|(from, to)| total.through(to) - total.before(from)).fold(0.0, f64::max)
}

/// The sum of pieces up to a time.
struct Running {
    /// Times at which the slope or the sum changes, in order: time, the sum before it, the sum at it, and bytes per ns from then on.
    points: Vec<(f64, f64, f64, f64)>,
}

impl Running {
    fn new(pieces: &[Piece]) -> Self {
        // Time, jump and change of slope.
        let mut changes: Vec<(f64, f64, f64)> = Vec::with_capacity(2 * pieces.len());
        for &Piece { from_ns, to_ns, bytes } in pieces {
            if to_ns > from_ns {
                let slope = bytes / (to_ns - from_ns);
                changes.extend([(from_ns, 0.0, slope), (to_ns, 0.0, -slope)]);
            } else {
                changes.push((from_ns, bytes, 0.0));
            }
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut points: Vec<(f64, f64, f64, f64)> = Vec::with_capacity(changes.len());
        let (mut at, mut sum, mut slope) = (0.0, 0.0, 0.0);
        for (time, jump, change) in changes {
            sum += slope * (time - at);
            let before = sum;
            sum += jump;
            slope += change;
            at = time;
            match points.last_mut().filter(|point| point.0 == time) {
                Some(point) => (point.2, point.3) = (sum, slope),
                None => points.push((time, before, sum, slope)),
            }
        }
        Self { points }
    }

    /// Up to this time, which is left out.
    fn before(&self, time: f64) -> f64 {
        let next = self.points.partition_point(|point| point.0 < time);
        match self.points.get(next).filter(|point| point.0 == time) {
            Some(&(_, before, ..)) => before,
            None => self.after(next, time),
        }
    }

    /// Up to this time, which is included.
    fn through(&self, time: f64) -> f64 {
        self.after(self.points.partition_point(|point| point.0 <= time), time)
    }

    /// At a time behind so many points.
    fn after(&self, points: usize, time: f64) -> f64 {
        match points.checked_sub(1).map(|last| self.points[last]) {
            None => 0.0,
            Some((at, _, sum, slope)) => sum + slope * (time - at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(from_s: f64, to_s: f64, bytes: f64) -> Piece {
        Piece { from_ns: from_s * 1e9, to_ns: to_s * 1e9, bytes }
    }

    #[test]
    fn the_peak_second_lies_wherever_most_bytes_come_within_a_second() {
        for (pieces, expected) in [
            (vec![], 0.0),
            (vec![piece(0.0, 10.0, 1000.0)], 100.0),
            // Between whole seconds.
            (vec![piece(0.0, 10.0, 1000.0), piece(3.5, 4.5, 50.0)], 150.0),
            // Two queues at a time, and one alone.
            (vec![piece(0.0, 4.0, 400.0), piece(0.0, 4.0, 800.0), piece(4.0, 8.0, 400.0)], 300.0),
            // At one instant.
            (vec![piece(2.0, 2.0, 70.0), piece(2.9, 2.9, 30.0), piece(4.0, 4.0, 60.0)], 100.0),
            // A chunk of ten years costs no more than another.
            (vec![piece(0.0, 3e8, 3e8), piece(5.0, 5.5, 10.0)], 11.0),
        ] {
            let found = peak_bytes(&pieces);
            assert!((found - expected).abs() < 1e-3, "{found}, not {expected}: {pieces:?}");
        }
    }
}
