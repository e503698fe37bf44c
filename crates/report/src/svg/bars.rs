//! Bars in groups, with their errors.

use super::TITLE_HEIGHT;
use super::canvas::{Canvas, Stroke, Text, fitting};
use super::legend::{self, Swatch};
use super::plot::{self, Frame};
use crate::axis::Ruler;
use crate::palette::{self, INK, QUIET};
use crate::picture::Bars;

/// Share of a group's width that its bars take.
const FILLED: f64 = 0.72;
/// Widest bar in pixels.
const BAR_MAX: f64 = 64.0;

/// The height below the title, in pixels.
pub fn height(bars: &Bars) -> f64 {
    plot::ABOVE + plot::INSIDE_HEIGHT + plot::BELOW + legend::height(&names(bars))
}

/// Draws it.
pub fn draw(canvas: &mut Canvas, bars: &Bars) {
    let ruler = ruler(bars);
    let frame = Frame::beside(&ruler.ticks, plot::ABOVE);
    let place = |value: f64| {
        let share = bars.y.scale.place(value).map(|p| ruler.share(p))?;
        Some(frame.y(share.clamp(0.0, 1.0)))
    };
    frame.left_axis(canvas, &bars.y, &ruler);
    let room = (frame.right - frame.left) / bars.groups.len().max(1) as f64;
    let width = (room * FILLED / bars.series.len().max(1) as f64).min(BAR_MAX);
    // Bars stand on zero; on a logarithmic axis they stand on its end.
    let foot = place(0.0).unwrap_or(frame.bottom);
    for (n, group) in bars.groups.iter().enumerate() {
        let middle = frame.left + room * (n as f64 + 0.5);
        let first = middle - width * bars.series.len() as f64 / 2.0;
        for (index, series) in bars.series.iter().enumerate() {
            let Some(bar) = series.values.get(n).copied().flatten() else { continue };
            let Some(y) = place(bar.value) else { continue };
            let left = first + width * index as f64;
            let (upper, lower) = (y.min(foot), y.max(foot));
            let (from, to) = ((left + 1.0, upper), (left + width - 1.0, lower));
            canvas.rectangle(from, to, palette::series(index), 0.88);
            if let (Some(low), Some(high)) = (bar.low.and_then(place), bar.high.and_then(place)) {
                let x = left + width / 2.0;
                let stroke = Stroke::new(INK, 1.25);
                canvas.line(&[(x, low), (x, high)], stroke);
                for end in [low, high] {
                    canvas.line(&[(x - 4.0, end), (x + 4.0, end)], stroke);
                }
            }
        }
        let look = Text::new(11.5).centred().below().colour(QUIET);
        canvas.text(&fitting(group, 11.5, room - 4.0), (middle, frame.bottom + 8.0), look);
    }
    frame.base(canvas, &bars.x_title);
    let top = TITLE_HEIGHT + plot::ABOVE + plot::INSIDE_HEIGHT + plot::BELOW;
    legend::draw(canvas, &names(bars), top, Swatch::Block);
}

/// The axis at the left with every bar and its error in view. ECharts is given the same.
pub(crate) fn ruler(bars: &Bars) -> Ruler {
    let all = bars.series.iter().flat_map(|s| s.values.iter().flatten());
    bars.y.ruler(all.flat_map(|b| [Some(b.value), b.low, b.high]).flatten(), true)
}

fn names(bars: &Bars) -> Vec<&str> {
    bars.series.iter().map(|s| s.name.as_str()).collect()
}
