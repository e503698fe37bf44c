//! A radar: a spoke for each quality, a ring for each thing. A ring is broken where a value isn't known.

use std::f64::consts::TAU;

use super::canvas::{Canvas, Place, Stroke, Text};
use super::legend::{self, Swatch};
use super::{TITLE_HEIGHT, WIDTH};
use crate::axis::short;
use crate::palette::{self, GRID, QUIET};
use crate::picture::{Radar, Spoke};

const RADIUS: f64 = 138.0;
const INSIDE: f64 = 2.0 * RADIUS + 100.0;
/// Webs between the middle and the rim.
const WEBS: usize = 4;

/// The height below the title, in pixels.
pub fn height(radar: &Radar) -> f64 {
    INSIDE + legend::height(&names(radar))
}

/// Draws it.
pub fn draw(canvas: &mut Canvas, radar: &Radar) {
    let spokes = radar.spokes.len();
    for web in 1..=WEBS {
        let share = web as f64 / WEBS as f64;
        let corners: Vec<Place> = (0..=spokes).map(|n| place(n, spokes, share)).collect();
        canvas.line(&corners, Stroke::new(GRID, 1.0));
    }
    for (n, spoke) in radar.spokes.iter().enumerate() {
        let rim = place(n, spokes, 1.0);
        canvas.line(&[place(n, spokes, 0.0), rim], Stroke::new(GRID, 1.0));
        label(canvas, spoke, place(n, spokes, 1.08));
    }
    for ring in 0..radar.rings.len() {
        draw_ring(canvas, radar, ring);
    }
    legend::draw(canvas, &names(radar), TITLE_HEIGHT + INSIDE, Swatch::Line);
}

fn names(radar: &Radar) -> Vec<&str> {
    radar.rings.iter().map(|r| r.name.as_str()).collect()
}

fn label(canvas: &mut Canvas, spoke: &Spoke, (x, y): Place) {
    let middle = WIDTH / 2.0;
    let side = |text: Text| match x - middle {
        d if d > 8.0 => text,
        d if d < -8.0 => text.ending(),
        _ => text.centred(),
    };
    let maximum = format!("{} {}", short(spoke.maximum), spoke.unit);
    // Two lines, away from the rim.
    let middle_y = TITLE_HEIGHT + INSIDE / 2.0;
    let y = match y - middle_y {
        d if d < -RADIUS => y - 14.0,
        d if d > RADIUS => y + 4.0,
        _ => y - 6.0,
    };
    canvas.text(&spoke.name, (x, y), side(Text::new(12.0)));
    canvas.text(maximum.trim_end(), (x, y + 14.0), side(Text::new(11.0).colour(QUIET)));
}

fn draw_ring(canvas: &mut Canvas, radar: &Radar, ring: usize) {
    let spokes = radar.spokes.len();
    let colour = palette::series(ring);
    let places: Vec<Option<Place>> =
        (0..spokes).map(|n| radar.share(ring, n).map(|share| place(n, spokes, share))).collect();
    if let Some(whole) = places.iter().copied().collect::<Option<Vec<Place>>>()
        && whole.len() > 2
    {
        canvas.polygon(&whole, colour, 0.10);
    }
    let stroke = Stroke::new(colour, 2.0).dashed(palette::dashes(ring));
    for n in 0..spokes {
        if let (Some(from), Some(to)) = (places[n], places[(n + 1) % spokes]) {
            canvas.line(&[from, to], stroke);
        }
    }
    for place in places.into_iter().flatten() {
        canvas.marker(place, palette::marker(ring), 3.5, colour);
    }
}

/// The pixel at a share of a spoke.
fn place(spoke: usize, spokes: usize, share: f64) -> Place {
    let angle = TAU * spoke as f64 / spokes.max(1) as f64;
    let centre = (WIDTH / 2.0, TITLE_HEIGHT + INSIDE / 2.0);
    (centre.0 + RADIUS * share * angle.sin(), centre.1 - RADIUS * share * angle.cos())
}
