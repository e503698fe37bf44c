//! The sheet that pictures are drawn on: pixels with fractions, text, dashes, markers.
//!
//! The backend counts in whole units, so a pixel is four of them and the view box scales them back.

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle};

use crate::palette::{self, Marker, Rgb};

/// Units of the backend in a pixel.
const UNITS: f64 = 4.0;
/// What the backend divides a font's size by.
const FONT_FACTOR: f64 = 1.24;
/// What the backend begins a line with. Its texts have no such thing: it writes their `<` as an entity.
const LINE: &str = "<polyline ";
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";

/// A place in pixels from the top left.
pub type Place = (f64, f64);

/// What the file says of itself.
pub struct Head<'a> {
    /// Its title, for screen readers.
    pub title: &'a str,
    /// Its description, for screen readers.
    pub description: &'a str,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// Height of the strip at the top that is left out of view, in pixels.
    pub hidden_top: f64,
}

/// Draws an SVG document.
pub fn draw(head: &Head, paint: impl FnOnce(&mut Canvas)) -> String {
    let (width, height) = (head.width * UNITS, head.height * UNITS);
    let mut text = String::new();
    let dashes;
    {
        let backend = SVGBackend::with_string(&mut text, (width as u32, height as u32));
        let mut canvas = Canvas { backend, dashes: Vec::new() };
        paint(&mut canvas);
        sure(canvas.backend.present());
        dashes = canvas.dashes;
    }
    // The backend's own first tag knows neither a view box in units nor a title.
    let body = with_dashes(text.split_once('>').map_or("", |(_, body)| body), &dashes);
    let top = head.hidden_top * UNITS;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 {top} {width} {}\" role=\"img\"><title>{}</title><desc>{}</desc>\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"#FFFFFF\"/>{body}",
        head.width,
        head.height - head.hidden_top,
        height - top,
        crate::escape::markup(head.title),
        crate::escape::markup(head.description),
    )
}

/// A drawing into memory has no way to fail.
fn sure<E: std::fmt::Display>(drawn: Result<(), E>) {
    if let Err(error) = drawn {
        unreachable!("drawing into memory failed: {error}");
    }
}

/// The sheet.
pub struct Canvas<'a> {
    backend: SVGBackend<'a>,
    /// Of each line drawn so far, in order, lengths of dash and gap in pixels.
    dashes: Vec<&'static [u32]>,
}

/// How a line looks.
#[derive(Clone, Copy)]
pub struct Stroke {
    colour: Rgb,
    width: f64,
    opacity: f64,
    dashes: &'static [u32],
}

impl Stroke {
    /// An unbroken line, `width` pixels wide.
    pub fn new(colour: Rgb, width: f64) -> Self {
        Self { colour, width, opacity: 1.0, dashes: &[] }
    }

    /// Lengths of dash and gap in pixels.
    pub fn dashed(self, dashes: &'static [u32]) -> Self {
        Self { dashes, ..self }
    }
}

/// How text stands and looks.
#[derive(Clone, Copy)]
pub struct Text {
    size: f64,
    colour: Rgb,
    bold: bool,
    upward: bool,
    h: HPos,
    v: VPos,
}

impl Text {
    /// Text of a size in pixels, to the right of its place, centred on its height.
    pub fn new(size: f64) -> Self {
        Self {
            size,
            colour: palette::INK,
            bold: false,
            upward: false,
            h: HPos::Left,
            v: VPos::Center,
        }
    }

    /// In another colour than ink.
    pub fn colour(self, colour: Rgb) -> Self {
        Self { colour, ..self }
    }

    /// In bold.
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Running upward.
    pub fn upward(self) -> Self {
        Self { upward: true, ..self }
    }

    /// Ending at its place.
    pub fn ending(self) -> Self {
        Self { h: HPos::Right, ..self }
    }

    /// Centred on its place.
    pub fn centred(self) -> Self {
        Self { h: HPos::Center, ..self }
    }

    /// Above its place.
    pub fn above(self) -> Self {
        Self { v: VPos::Bottom, ..self }
    }

    /// Below its place.
    pub fn below(self) -> Self {
        Self { v: VPos::Top, ..self }
    }
}

/// The width of a text in pixels, as far as it can be told without a font.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.28,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.85,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '-' | '/' => 0.35,
            c if c.is_ascii_uppercase() => 0.68,
            c if c.is_ascii() => 0.56,
            _ => 0.7,
        })
        .sum::<f64>()
        * size
}

/// The text, or as much of it as fits with an ellipsis.
pub fn fitting(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if text_width(&short, size) + size * 1.5 > width {
            break;
        }
        short.push(c);
    }
    format!("{}…", short.trim_end())
}

impl Canvas<'_> {
    /// A line through places.
    pub fn line(&mut self, places: &[Place], stroke: Stroke) {
        if places.len() < 2 {
            return;
        }
        let style = style(stroke.colour, stroke.opacity, stroke.width);
        sure(self.backend.draw_path(places.iter().map(|p| units(*p)), &style));
        self.dashes.push(stroke.dashes);
    }

    /// A filled shape.
    pub fn polygon(&mut self, places: &[Place], colour: Rgb, opacity: f64) {
        let places = places.iter().map(|p| units(*p));
        sure(self.backend.fill_polygon(places, &rgba(colour, opacity)));
    }

    /// A filled rectangle between two corners.
    pub fn rectangle(&mut self, from: Place, to: Place, colour: Rgb, opacity: f64) {
        sure(self.backend.draw_rect(units(from), units(to), &rgba(colour, opacity), true));
    }

    /// A marker around a place.
    pub fn marker(&mut self, (x, y): Place, marker: Marker, radius: f64, colour: Rgb) {
        let r = radius;
        match marker {
            Marker::Circle => {
                let radius = (r * UNITS).round() as u32;
                sure(self.backend.draw_circle(units((x, y)), radius, &rgba(colour, 1.0), true));
            }
            Marker::Square => {
                let r = r * 0.9;
                self.rectangle((x - r, y - r), (x + r, y + r), colour, 1.0);
            }
            Marker::Triangle => {
                let r = r * 1.2;
                let corners = [(x, y - r), (x + r, y + 0.8 * r), (x - r, y + 0.8 * r)];
                self.polygon(&corners, colour, 1.0);
            }
            Marker::Diamond => {
                let r = r * 1.25;
                self.polygon(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)], colour, 1.0);
            }
        }
    }

    /// A line of text.
    pub fn text(&mut self, text: &str, place: Place, look: Text) {
        let (r, g, b) = look.colour;
        let mut font = (FONT, look.size * UNITS * FONT_FACTOR).into_font();
        if look.bold {
            font = font.style(FontStyle::Bold);
        }
        if look.upward {
            font = font.transform(FontTransform::Rotate270);
        }
        let style = font.color(&RGBColor(r, g, b)).pos(Pos::new(look.h, look.v));
        sure(self.backend.draw_text(text, &style, units(place)));
    }
}

fn units((x, y): Place) -> (i32, i32) {
    ((x * UNITS).round() as i32, (y * UNITS).round() as i32)
}

fn rgba((r, g, b): Rgb, opacity: f64) -> RGBAColor {
    RGBColor(r, g, b).mix(opacity)
}

fn style(colour: Rgb, opacity: f64, width: f64) -> ShapeStyle {
    ShapeStyle {
        color: rgba(colour, opacity),
        filled: false,
        stroke_width: (width * UNITS).round() as u32,
    }
}

/// The elements with the dashes of each line, which the backend doesn't know.
fn with_dashes(body: &str, dashes: &[&[u32]]) -> String {
    let mut lines = body.split(LINE);
    let mut dashed = lines.next().unwrap_or_default().to_owned();
    for (rest, lengths) in lines.zip(dashes) {
        dashed.push_str(LINE);
        if !lengths.is_empty() {
            let lengths: Vec<String> =
                lengths.iter().map(|length| (f64::from(*length) * UNITS).to_string()).collect();
            dashed.push_str(&format!("stroke-dasharray=\"{}\" ", lengths.join(" ")));
        }
        dashed.push_str(rest);
    }
    dashed
}
