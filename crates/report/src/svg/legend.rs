//! The legend below a picture: each series with the colour, dash and marker that it has in it.

use super::WIDTH;
use super::canvas::{Canvas, Stroke, Text, fitting, text_width};
use crate::palette;

const ROW: f64 = 22.0;
const SWATCH: f64 = 30.0;
const SIZE: f64 = 12.0;
const SIDE: f64 = 12.0;

/// How entries look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Swatch {
    /// A piece of line with its marker.
    Line,
    /// A block.
    Block,
}

/// The height in pixels that a legend takes; none for a single series, which the title names.
pub fn height(names: &[&str]) -> f64 {
    if names.len() < 2 {
        return 8.0;
    }
    layout(names).last().map_or(0.0, |entry| entry.1) + ROW + 8.0
}

/// Draws it with its upper edge at `top`.
pub fn draw(canvas: &mut Canvas, names: &[&str], top: f64, swatch: Swatch) {
    if names.len() < 2 {
        return;
    }
    for (index, (name, (x, y))) in names.iter().zip(layout(names)).enumerate() {
        let (colour, y) = (palette::series(index), top + y + ROW / 2.0);
        match swatch {
            Swatch::Line => {
                let stroke = Stroke::new(colour, 2.0).dashed(palette::dashes(index));
                canvas.line(&[(x, y), (x + SWATCH - 6.0, y)], stroke);
                canvas.marker((x + SWATCH / 2.0 - 3.0, y), palette::marker(index), 3.5, colour);
            }
            Swatch::Block => {
                canvas.rectangle((x + 8.0, y - 5.0), (x + 22.0, y + 5.0), colour, 1.0);
            }
        }
        canvas.text(&fitted(name), (x + SWATCH, y), Text::new(SIZE));
    }
}

/// Places of the entries from the legend's upper left, in rows that fit.
fn layout(names: &[&str]) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (SIDE, 0.0);
    let mut places = Vec::new();
    for name in names {
        let width = SWATCH + text_width(&fitted(name), SIZE) + 22.0;
        if x > SIDE && x + width > WIDTH - SIDE {
            x = SIDE;
            y += ROW;
        }
        places.push((x, y));
        x += width;
    }
    places
}

fn fitted(name: &str) -> String {
    fitting(name, SIZE, WIDTH - 2.0 * SIDE - SWATCH)
}
