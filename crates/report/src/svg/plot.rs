//! The frame that lines and bars share: two axes, their ticks and headings, and what is inside them.

use super::canvas::{Canvas, Place, Stroke, Text, text_width};
use super::{TITLE_HEIGHT, WIDTH};
use crate::axis::{Axis, Ruler, Tick};
use crate::palette::{GRID, INK, QUIET};

/// Height of the inside in pixels.
pub const INSIDE_HEIGHT: f64 = 270.0;
/// Height of what stands above the inside: the heading of the axis at the left.
pub const ABOVE: f64 = 26.0;
/// Height of what stands below the inside: ticks and the heading of the axis below.
pub const BELOW: f64 = 46.0;

const RIGHT: f64 = 22.0;

/// The inside of the axes, in pixels.
pub struct Frame {
    /// Its left edge.
    pub left: f64,
    /// Its upper edge.
    pub top: f64,
    /// Its right edge.
    pub right: f64,
    /// Its lower edge.
    pub bottom: f64,
}

impl Frame {
    /// The frame that leaves room for the ticks at the left and this much above.
    pub fn beside(ticks: &[Tick], above: f64) -> Self {
        let widest = ticks.iter().map(|t| text_width(&t.label, 11.5)).fold(0.0, f64::max);
        let top = TITLE_HEIGHT + above;
        Self {
            left: (widest + 20.0).clamp(40.0, 120.0),
            top,
            right: WIDTH - RIGHT,
            bottom: top + INSIDE_HEIGHT,
        }
    }

    /// The pixel of a share of the axis below.
    pub fn x(&self, share: f64) -> f64 {
        self.left + (self.right - self.left) * share
    }

    /// The pixel of a share of the axis at the left.
    pub fn y(&self, share: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * share
    }

    /// Draws the axis at the left with grid lines and heading.
    pub fn left_axis(&self, canvas: &mut Canvas, axis: &Axis, ruler: &Ruler) {
        for tick in &ruler.ticks {
            let y = self.y(ruler.share(tick.place));
            canvas.line(&[(self.left, y), (self.right, y)], Stroke::new(GRID, 1.0));
            canvas.text(&tick.label, (self.left - 8.0, y), Text::new(11.5).ending().colour(QUIET));
        }
        canvas.text(
            &axis.heading(),
            (12.0, TITLE_HEIGHT + ABOVE - 14.0),
            Text::new(12.0).colour(QUIET),
        );
    }

    /// Draws the axis below with its heading. Labels that would touch the one before are left out.
    pub fn lower_axis(&self, canvas: &mut Canvas, heading: &str, ruler: &Ruler) {
        let mut free_from = f64::NEG_INFINITY;
        for tick in &ruler.ticks {
            let x = self.x(ruler.share(tick.place));
            canvas.line(&[(x, self.bottom), (x, self.bottom + 4.0)], Stroke::new(QUIET, 1.0));
            let half = text_width(&tick.label, 11.5) / 2.0;
            if x - half < free_from {
                continue;
            }
            free_from = x + half + 6.0;
            canvas.text(
                &tick.label,
                (x, self.bottom + 8.0),
                Text::new(11.5).centred().below().colour(QUIET),
            );
        }
        self.base(canvas, heading);
    }

    /// Draws the line below with a heading.
    pub fn base(&self, canvas: &mut Canvas, heading: &str) {
        let ends = [(self.left, self.bottom), (self.right, self.bottom)];
        canvas.line(&ends, Stroke::new(INK, 1.0));
        let middle = (self.left + self.right) / 2.0;
        canvas.text(
            heading,
            (middle, self.bottom + 28.0),
            Text::new(12.0).centred().below().colour(QUIET),
        );
    }

    /// A line's parts inside the frame.
    pub fn clip(&self, places: &[Place]) -> Vec<Vec<Place>> {
        let mut parts: Vec<Vec<Place>> = Vec::new();
        let mut open = false;
        for pair in places.windows(2) {
            let Some((from, to)) = self.clip_segment(pair[0], pair[1]) else {
                open = false;
                continue;
            };
            match parts.last_mut() {
                Some(part) if open && part.last() == Some(&from) => part.push(to),
                _ => parts.push(vec![from, to]),
            }
            open = to == pair[1];
        }
        parts
    }

    /// Whether a place is inside.
    pub fn holds(&self, (x, y): Place) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    /// The part of a segment that is inside (Liang and Barsky, 1984).
    fn clip_segment(&self, from: Place, to: Place) -> Option<(Place, Place)> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut start, mut end) = (0.0f64, 1.0f64);
        for (toward, room) in [
            (-dx, from.0 - self.left),
            (dx, self.right - from.0),
            (-dy, from.1 - self.top),
            (dy, self.bottom - from.1),
        ] {
            if toward == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if toward < 0.0 {
                start = start.max(room / toward);
            } else {
                end = end.min(room / toward);
            }
        }
        if start > end {
            return None;
        }
        let at = |share: f64| (from.0 + dx * share, from.1 + dy * share);
        // The ends themselves when they are inside, so that parts join exactly.
        Some((if start == 0.0 { from } else { at(start) }, if end == 1.0 { to } else { at(end) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_it_leaves_and_joined_where_it_stays() {
        let frame = Frame { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        let parts = frame.clip(&[(1.0, 5.0), (2.0, 5.0), (3.0, 15.0), (4.0, 5.0), (5.0, 5.0)]);
        assert_eq!(
            parts,
            [vec![(1.0, 5.0), (2.0, 5.0), (2.5, 10.0)], vec![(3.5, 10.0), (4.0, 5.0), (5.0, 5.0)],]
        );
        assert!(frame.clip(&[(-5.0, -5.0), (20.0, -5.0)]).is_empty());
    }
}
