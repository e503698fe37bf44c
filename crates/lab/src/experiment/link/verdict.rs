//! Whether a link holds drives back: what they reach must be near what the link's packets leave of it, and neither longer commands nor
//! more of them may bring more.

use super::Ceiling;

/// Rates of the largest two points this close together, as a share, are a plateau: longer commands and more of them bring no more.
const PLATEAU: f64 = 0.03;
/// Of what the link carries in packets of the size that every host takes: from here on a plateau is the link's.
const AT_LIMIT: f64 = 0.9;
/// From here on a plateau may be the link's: a drive and a host may lose this much of it to flow control and waiting.
const NEAR_LIMIT: f64 = 0.7;

/// A link carries both directions alike: where the other one reaches so many times as much, it isn't what holds this one back.
const OUTDONE: f64 = 1.1;

/// Whether a link holds drives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// It does.
    Yes,
    /// A faster link would tell.
    Maybe,
    /// The drives, or the host, are slower than it.
    No,
}

/// Judges the rates of one operation, the point with the most in flight last, against what the links carry. `other` is what the
/// opposite direction reaches: flash seldom reads and writes equally fast, a link does.
pub fn judge(rates: &[f64], ceiling: &Ceiling, other: Option<f64>) -> HeldBack {
    let top = rates.iter().copied().fold(0.0, f64::max);
    let close = |a: f64, b: f64| (a / b - 1.0).abs() <= PLATEAU;
    // A single point says nothing of a plateau, for or against it.
    let plateau = match rates {
        [.., before, last] => Some(close(*before, *last)),
        _ => None,
    };
    // What goes faster than a link can doesn't go through it, whatever the system says of it.
    if top > ceiling.line || other.is_some_and(|other| other > OUTDONE * top) {
        return HeldBack::No;
    }
    let share = top / ceiling.payload.0;
    let both = other.is_some_and(|other| close(top, other));
    match plateau {
        Some(true) | None if share >= AT_LIMIT => HeldBack::Yes,
        Some(true) if share >= NEAR_LIMIT && both => HeldBack::Yes,
        Some(true) | None if share >= NEAR_LIMIT => HeldBack::Maybe,
        Some(false) if share >= AT_LIMIT => HeldBack::Maybe,
        _ => HeldBack::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Link;

    #[test]
    fn a_plateau_near_the_ceiling_is_the_links_and_one_far_below_is_not() {
        // A lane of 2.5 GT/s: 250 MB/s, of which 210 are data in packets of 128 bytes.
        let lane = Ceiling::of_pcie(&Link { gigatransfers: 2.5, lanes: 1 });
        for (rates, other, held_back) in [
            (&[198e6, 200e6, 200e6][..], None, HeldBack::Yes),
            (&[198e6, 200e6, 200e6], Some(90e6), HeldBack::Yes),
            (&[150e6, 170e6, 200e6], None, HeldBack::Maybe),
            (&[160e6, 160e6, 160e6], Some(161e6), HeldBack::Yes),
            (&[160e6, 160e6, 160e6], Some(100e6), HeldBack::Maybe),
            (&[180e6, 180e6, 180e6], Some(200e6), HeldBack::No),
            (&[100e6, 130e6, 160e6], Some(161e6), HeldBack::No),
            (&[100e6, 100e6, 100e6], Some(100e6), HeldBack::No),
            (&[200e6], None, HeldBack::Yes),
            (&[160e6], None, HeldBack::Maybe),
            (&[260e6, 260e6, 260e6], Some(260e6), HeldBack::No),
            (&[], None, HeldBack::No),
        ] {
            assert_eq!(judge(rates, &lane, other), held_back, "{rates:?}");
        }
    }
}
