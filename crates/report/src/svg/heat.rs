//! A heat map: a coloured cell for each pair, its number where it fits, and the scale below.

use super::canvas::{Canvas, Stroke, Text, fitting, text_width};
use super::{TITLE_HEIGHT, WIDTH};
use crate::palette::{self, GRID, PAPER, QUIET};
use crate::picture::Heat;

const ABOVE: f64 = 26.0;
const BELOW: f64 = 46.0;
const SCALE: f64 = 44.0;
const RIGHT: f64 = 16.0;
const ROW: f64 = 34.0;
const ROWS_HEIGHT_MAX: f64 = 560.0;
const NUMBER: f64 = 11.5;
/// Pieces that the scale's strip is drawn in.
const SCALE_STEPS: usize = 64;

/// The height below the title, in pixels.
pub fn height(heat: &Heat) -> f64 {
    ABOVE + rows_height(heat) + BELOW + SCALE
}

fn rows_height(heat: &Heat) -> f64 {
    (heat.y.len().max(1) as f64 * ROW).min(ROWS_HEIGHT_MAX)
}

/// Draws it.
pub fn draw(canvas: &mut Canvas, heat: &Heat) {
    let quiet = Text::new(11.5).colour(QUIET);
    let widest = heat.y.iter().map(|l| text_width(l, 11.5)).fold(0.0, f64::max);
    let left = (widest + 20.0).clamp(40.0, 200.0);
    let top = TITLE_HEIGHT + ABOVE;
    let bottom = top + rows_height(heat);
    let width = (WIDTH - RIGHT - left) / heat.x.len().max(1) as f64;
    let height = (bottom - top) / heat.y.len().max(1) as f64;
    canvas.text(&heat.y_title, (12.0, top - 14.0), Text::new(12.0).colour(QUIET));
    for (row, label) in heat.y.iter().enumerate() {
        let y = bottom - height * (row as f64 + 0.5);
        canvas.text(&fitting(label, 11.5, left - 14.0), (left - 8.0, y), quiet.ending());
        for column in 0..heat.x.len() {
            let x = left + width * (column as f64 + 0.5);
            // A pixel between cells.
            let corner =
                |side: f64| (x + side * (width / 2.0 - 0.5), y + side * (height / 2.0 - 0.5));
            match heat.at(row, column) {
                Some(value) => {
                    let colour = palette::heat(share(heat, value));
                    canvas.rectangle(corner(-1.0), corner(1.0), colour, 1.0);
                    let text = heat.number(value);
                    if text_width(&text, NUMBER) <= width - 4.0 && height >= NUMBER + 2.0 {
                        let look = Text::new(NUMBER).centred().colour(palette::text_on(colour));
                        canvas.text(&text, (x, y), look);
                    }
                }
                None => {
                    canvas.rectangle(corner(-1.0), corner(1.0), GRID, 0.5);
                    canvas.text("–", (x, y), quiet.centred());
                }
            }
        }
    }
    let mut free_from = f64::NEG_INFINITY;
    for (column, label) in heat.x.iter().enumerate() {
        let x = left + width * (column as f64 + 0.5);
        let half = text_width(label, 11.5) / 2.0;
        if x - half < free_from {
            continue;
        }
        free_from = x + half + 4.0;
        canvas.text(label, (x, bottom + 8.0), quiet.centred().below());
    }
    let middle = (left + WIDTH - RIGHT) / 2.0;
    canvas.text(
        &heat.x_title,
        (middle, bottom + 28.0),
        Text::new(12.0).centred().below().colour(QUIET),
    );
    scale(canvas, heat, bottom + BELOW + 8.0);
}

/// How far from the least known value to the greatest, by the values' own scale.
pub(crate) fn share(heat: &Heat, value: f64) -> f64 {
    let (low, high) = extent(heat);
    match heat.value.scale.place(value) {
        Some(place) if high > low => (place - low) / (high - low),
        Some(_) => 0.5,
        None => 0.0,
    }
}

/// The least and greatest place, or the axis's own ends.
pub(crate) fn extent(heat: &Heat) -> (f64, f64) {
    let scale = heat.value.scale;
    let places = || heat.known().filter_map(|v| scale.place(v));
    let given = |end: Option<f64>| end.and_then(|v| scale.place(v));
    let low = given(heat.value.minimum).unwrap_or_else(|| places().fold(f64::INFINITY, f64::min));
    let high =
        given(heat.value.maximum).unwrap_or_else(|| places().fold(f64::NEG_INFINITY, f64::max));
    if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) }
}

fn scale(canvas: &mut Canvas, heat: &Heat, y: f64) {
    let (left, right) = (WIDTH / 2.0 - 120.0, WIDTH / 2.0 + 120.0);
    let step = (right - left) / SCALE_STEPS as f64;
    for n in 0..SCALE_STEPS {
        let x = left + step * n as f64;
        let colour = palette::heat((n as f64 + 0.5) / SCALE_STEPS as f64);
        canvas.rectangle((x, y), (x + step + 0.25, y + 9.0), colour, 1.0);
    }
    canvas.line(&[(right, y), (right, y + 9.0)], Stroke::new(PAPER, 1.0));
    let (low, high) = ends(heat);
    let quiet = Text::new(11.5).colour(QUIET);
    canvas.text(&low, (left - 8.0, y + 4.5), quiet.ending());
    canvas.text(&high, (right + 8.0, y + 4.5), quiet);
    let heading = Text::new(12.0).colour(QUIET).centred().below();
    canvas.text(&heat.value.heading(), (WIDTH / 2.0, y + 13.0), heading);
}

/// What the ends of the scale say.
fn ends(heat: &Heat) -> (String, String) {
    let low = heat.value.minimum.unwrap_or_else(|| heat.known().fold(f64::NAN, f64::min));
    let high = heat.value.maximum.unwrap_or_else(|| heat.known().fold(f64::NAN, f64::max));
    if low.is_finite() && high.is_finite() {
        (heat.number(low), heat.number(high))
    } else {
        ("not known".to_owned(), String::new())
    }
}
