//! Lines over an axis, with bands behind them and marks across them.

use super::canvas::{Canvas, Place, Stroke, Text, fitting, text_width};
use super::legend::{self, Swatch};
use super::plot::{self, Frame};
use super::{POINTS_MAX, TITLE_HEIGHT};
use crate::axis::Ruler;
use crate::palette::{self, BAND, MARK, QUIET};
use crate::picture::{Band, Direction, Lines, Mark, Series, Style};
use crate::thin::thin;

/// Length of line in pixels above which dashes would only be noise.
const DASHED_MAX: f64 = 4_000.0;
/// Share of the axis below that upright text takes: its height on a phone's narrow picture.
const LABEL_SHARE: f64 = 0.045;
/// Size of a mark's label, the height that it takes, and the gap to the next one, in pixels.
const LABEL_SIZE: f64 = 11.0;
const LABEL_HEIGHT: f64 = 14.0;
const LABEL_GAP: f64 = 10.0;
/// Points up to which each has its marker.
const MARKED_POINTS_MAX: usize = 40;
/// Markers on a longer line.
const MARKERS_ON_LINE: usize = 6;

/// The height below the title, in pixels.
pub fn height(lines: &Lines) -> f64 {
    above(lines) + plot::INSIDE_HEIGHT + plot::BELOW + legend::height(&names(lines))
}

/// Draws it.
pub fn draw(canvas: &mut Canvas, lines: &Lines) {
    let (x, y) = rulers(lines);
    let frame = Frame::beside(&y.ticks, above(lines));
    let sheet = Sheet { lines, x, y, frame };
    for (n, band) in lines.bands.iter().enumerate() {
        sheet.band(canvas, band, if n % 2 == 0 { 0.12 } else { 0.05 });
    }
    sheet.frame.left_axis(canvas, &lines.y, &sheet.y);
    sheet.frame.lower_axis(canvas, &lines.x.heading(), &sheet.x);
    for (index, series) in lines.series.iter().enumerate() {
        sheet.spread(canvas, series, index);
    }
    for (index, series) in lines.series.iter().enumerate() {
        sheet.series(canvas, series, index);
    }
    for (mark, place) in lines.marks.iter().zip(sheet.label_places()) {
        sheet.mark(canvas, mark, place);
    }
    let top = TITLE_HEIGHT + above(lines) + plot::INSIDE_HEIGHT + plot::BELOW;
    legend::draw(canvas, &names(lines), top, Swatch::Line);
}

/// Both axes with everything on them in view. ECharts is given the same.
pub(crate) fn rulers(lines: &Lines) -> (Ruler, Ruler) {
    let points = || lines.series.iter().flat_map(|s| &s.points);
    let spreads = || lines.series.iter().flat_map(|s| &s.spread);
    let on = |direction: Direction| {
        let marks = lines.marks.iter().filter(move |m| m.on == direction).map(|m| m.at);
        let bands =
            lines.bands.iter().filter(move |b| b.on == direction).flat_map(|b| [b.from, b.to]);
        marks.chain(bands)
    };
    let x = points().map(|p| p.x).chain(spreads().map(|s| s.x)).chain(on(Direction::X));
    let y = points()
        .filter_map(|p| p.y)
        .chain(spreads().flat_map(|s| [s.low, s.high]))
        .chain(on(Direction::Y));
    (lines.x.ruler(x, false), lines.y.ruler(y, true))
}

/// Whether the name of a mark on the axis below stands before its line. It stands behind, where a rate
/// that falls leaves room, unless the next mark or the end is too near.
pub(crate) fn label_is_before(lines: &Lines, mark: &Mark) -> bool {
    let (ruler, _) = rulers(lines);
    let share = |at: f64| lines.x.scale.place(at).map(|p| ruler.share(p));
    let Some(own) = share(mark.at) else { return false };
    let others = lines.marks.iter().filter(|m| m.on == Direction::X).filter_map(|m| share(m.at));
    let next = others.filter(|s| *s > own).fold(1.0, f64::min);
    next - own < LABEL_SHARE && own > LABEL_SHARE
}

fn above(lines: &Lines) -> f64 {
    let banded = lines.bands.iter().any(|b| b.on == Direction::X);
    plot::ABOVE + if banded { 15.0 } else { 0.0 }
}

fn names(lines: &Lines) -> Vec<&str> {
    lines.series.iter().map(|s| s.name.as_str()).collect()
}

struct Sheet<'a> {
    lines: &'a Lines,
    x: Ruler,
    y: Ruler,
    frame: Frame,
}

impl Sheet<'_> {
    fn x_of(&self, value: f64) -> Option<f64> {
        self.lines.x.scale.place(value).map(|p| self.frame.x(self.x.share(p)))
    }

    fn y_of(&self, value: f64) -> Option<f64> {
        self.lines.y.scale.place(value).map(|p| self.frame.y(self.y.share(p)))
    }

    fn band(&self, canvas: &mut Canvas, band: &Band, opacity: f64) {
        let f = &self.frame;
        let label = Text::new(11.0).colour(QUIET);
        match band.on {
            Direction::X => {
                let (Some(from), Some(to)) = (self.x_of(band.from), self.x_of(band.to)) else {
                    return;
                };
                let (from, to) = (from.clamp(f.left, f.right), to.clamp(f.left, f.right));
                canvas.rectangle((from, f.top), (to, f.bottom), BAND, opacity);
                // Its name stands above it, clear of the lines and the names of thresholds.
                let text = fitting(&band.label, 11.0, (to - from).max(24.0));
                canvas.text(&text, ((from + to) / 2.0, f.top - 3.0), label.centred().above());
            }
            Direction::Y => {
                let (Some(from), Some(to)) = (self.y_of(band.from), self.y_of(band.to)) else {
                    return;
                };
                let (from, to) = (from.clamp(f.top, f.bottom), to.clamp(f.top, f.bottom));
                let (upper, lower) = (from.min(to), from.max(to));
                canvas.rectangle((f.left, upper), (f.right, lower), BAND, opacity);
                canvas.text(&band.label, (f.left + 6.0, upper - 2.0), label.above());
            }
        }
    }

    /// Where the label of each mark across the axis on the left ends, and its lower edge: above its line at the right. Of
    /// two lines that nearly coincide the lower one has its label below it, and a third one farther left.
    fn label_places(&self) -> Vec<Place> {
        let height = |mark: &Mark| self.y_of(mark.at).filter(|_| mark.on == Direction::Y);
        let all: Vec<f64> = self.lines.marks.iter().filter_map(height).collect();
        let mut placed: Vec<Place> = Vec::new();
        let place = |mark: &Mark| {
            let right = self.frame.right - 4.0;
            let Some(y) = height(mark) else { return (right, 0.0) };
            let lower = all.iter().any(|other| *other < y && y - other < LABEL_HEIGHT);
            let fits = y + LABEL_HEIGHT < self.frame.bottom;
            let edge = if lower && fits { y + LABEL_HEIGHT } else { y - 1.0 };
            let near = placed.iter().filter(|(_, other)| (other - edge).abs() < LABEL_HEIGHT);
            let end = near.map(|(left, _)| left - LABEL_GAP).fold(right, f64::min);
            placed.push((end - text_width(&mark.label, LABEL_SIZE), edge));
            (end, edge)
        };
        self.lines.marks.iter().map(place).collect()
    }

    fn mark(&self, canvas: &mut Canvas, mark: &Mark, label_place: Place) {
        let f = &self.frame;
        let stroke = Stroke::new(MARK, 1.25).dashed(&[4, 3]);
        let label = Text::new(LABEL_SIZE).colour(MARK).ending().above();
        match mark.on {
            Direction::X => {
                let Some(x) = self.x_of(mark.at).filter(|x| (f.left..=f.right).contains(x)) else {
                    return;
                };
                canvas.line(&[(x, f.top), (x, f.bottom)], stroke);
                let text = fitting(&mark.label, LABEL_SIZE, f.bottom - f.top - 20.0);
                let x = if label_is_before(self.lines, mark) { x - 1.0 } else { x + 14.0 };
                canvas.text(&text, (x, f.top + 4.0), label.upward());
            }
            Direction::Y => {
                let Some(y) = self.y_of(mark.at).filter(|y| (f.top..=f.bottom).contains(y)) else {
                    return;
                };
                canvas.line(&[(f.left, y), (f.right, y)], stroke);
                canvas.text(&mark.label, label_place, label);
            }
        }
    }

    fn spread(&self, canvas: &mut Canvas, series: &Series, index: usize) {
        let f = &self.frame;
        let every = series.spread.len().div_ceil(POINTS_MAX).max(1);
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        for group in series.spread.chunks(every) {
            let Some(x) = self.x_of(group[0].x) else { continue };
            let low = group.iter().filter_map(|s| self.y_of(s.low)).fold(f64::NAN, f64::max);
            let high = group.iter().filter_map(|s| self.y_of(s.high)).fold(f64::NAN, f64::min);
            if low.is_finite() && high.is_finite() && (f.left..=f.right).contains(&x) {
                upper.push((x, high.clamp(f.top, f.bottom)));
                lower.push((x, low.clamp(f.top, f.bottom)));
            }
        }
        upper.extend(lower.into_iter().rev());
        if upper.len() > 3 {
            canvas.polygon(&upper, palette::series(index), 0.15);
        }
    }

    fn series(&self, canvas: &mut Canvas, series: &Series, index: usize) {
        let colour = palette::series(index);
        let points = thin(&series.points, POINTS_MAX);
        let places: Vec<Option<Place>> =
            points.iter().map(|p| Some((self.x_of(p.x)?, self.y_of(p.y?)?))).collect();
        let runs: Vec<&[Option<Place>]> =
            places.split(Option::is_none).filter(|run| !run.is_empty()).collect();
        if series.style != Style::Dots {
            let runs: Vec<Vec<Place>> =
                runs.iter().map(|run| self.joined(run, series.style)).collect();
            let drawn: f64 = runs.iter().map(|run| length(run)).sum();
            let mut stroke = Stroke::new(colour, 1.75);
            if drawn <= DASHED_MAX {
                stroke = stroke.dashed(palette::dashes(index));
            }
            for part in runs.iter().flat_map(|run| self.frame.clip(run)) {
                canvas.line(&part, stroke);
            }
        }
        // A point between two gaps has no line to be seen by.
        let alone = runs.iter().filter(|run| run.len() == 1).flat_map(|run| run.iter());
        let known: Vec<Place> = places.iter().flatten().copied().collect();
        let marked: Vec<Place> = if series.style == Style::Dots {
            known
        } else if self.lines.series.len() < 2 {
            alone.flatten().copied().collect()
        } else if known.len() <= MARKED_POINTS_MAX {
            known
        } else {
            // Shifted from series to series, so that lines that coincide are told apart.
            let every = known.len() / MARKERS_ON_LINE;
            known.into_iter().skip(every * (index % 4 + 1) / 5).step_by(every).collect()
        };
        for place in marked.into_iter().filter(|p| self.frame.holds(*p)) {
            canvas.marker(place, palette::marker(index), 3.0, colour);
        }
    }

    /// The places that a line runs through.
    fn joined(&self, run: &[Option<Place>], style: Style) -> Vec<Place> {
        let mut joined: Vec<Place> = Vec::with_capacity(run.len());
        for &place in run.iter().flatten() {
            if style == Style::Step
                && let Some(before) = joined.last().copied()
            {
                joined.push((place.0, before.1));
            }
            joined.push(place);
        }
        joined
    }
}

fn length(places: &[Place]) -> f64 {
    places.windows(2).map(|p| (p[1].0 - p[0].0).hypot(p[1].1 - p[0].1)).sum()
}
