//! Colours, dashes and markers: what tells series apart for every kind of sight and on paper.
//!
//! Series colours differ in lightness as well as hue and have a contrast of at least 3 to 1 with the page
//! (WCAG 2.2, 1.4.11) in either theme; dash and marker repeat what colour says.

/// A colour as red, green, blue.
pub type Rgb = (u8, u8, u8);

/// Series on a light page, in order of use. `page.css` has the same and those for a dark page.
pub const SERIES: [Rgb; 7] = [
    (0x00, 0x5F, 0xB0),
    (0xC2, 0x4E, 0x00),
    (0x00, 0x7F, 0x5F),
    (0xA0, 0x3C, 0x8C),
    (0x8A, 0x6A, 0x00),
    (0x4A, 0x4A, 0xB8),
    (0x5A, 0x64, 0x70),
];

/// Text, and lines that matter, on a light page.
pub const INK: Rgb = (0x1B, 0x1F, 0x24);
/// Text that explains.
pub const QUIET: Rgb = (0x57, 0x60, 0x6A);
/// Grid lines.
pub const GRID: Rgb = (0xE1, 0xE5, 0xEA);
/// Marks: thresholds and ceilings.
pub const MARK: Rgb = (0xB0, 0x1E, 0x3A);
/// Strips behind the lines.
pub const BAND: Rgb = (0x6B, 0x7C, 0x93);
/// The page.
pub const PAPER: Rgb = (0xFF, 0xFF, 0xFF);

/// Numbers on light colours of the heat scale; apart from ink, which a dark page turns light.
pub const ON_LIGHT: Rgb = (0x10, 0x12, 0x14);

/// Lengths of dash and gap in pixels, in order of use; none for an unbroken line.
pub const DASHES: [&[u32]; 4] = [&[], &[7, 4], &[2, 3], &[10, 3, 2, 3]];

/// Shapes on the line, in order of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Triangle,
    /// ◆
    Diamond,
}

/// Markers in order of use.
pub const MARKERS: [Marker; 4] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond];

/// The colour of the nth series.
pub fn series(index: usize) -> Rgb {
    SERIES[index % SERIES.len()]
}

/// The marker of the nth series.
pub fn marker(index: usize) -> Marker {
    MARKERS[index % MARKERS.len()]
}

/// The dashes of the nth series.
pub fn dashes(index: usize) -> &'static [u32] {
    DASHES[index % DASHES.len()]
}

/// Anchors of the scale for heat, from least to greatest: viridis (van der Walt and Smith, 2015, CC0),
/// whose steps look equal with any colour vision and in grey.
pub const HEAT: [Rgb; 9] = [
    (0x44, 0x01, 0x54),
    (0x47, 0x2D, 0x7B),
    (0x3B, 0x52, 0x8B),
    (0x2C, 0x72, 0x8E),
    (0x21, 0x91, 0x8C),
    (0x28, 0xAE, 0x80),
    (0x5E, 0xC9, 0x62),
    (0xAD, 0xDC, 0x30),
    (0xFD, 0xE7, 0x25),
];

/// The colour of a share from 0 to 1 of the heat scale.
pub fn heat(share: f64) -> Rgb {
    let along = share.clamp(0.0, 1.0) * (HEAT.len() - 1) as f64;
    let below = (along.floor() as usize).min(HEAT.len() - 2);
    let (a, b) = (HEAT[below], HEAT[below + 1]);
    let mix = |a: u8, b: u8| {
        (f64::from(a) + (f64::from(b) - f64::from(a)) * (along - below as f64)).round() as u8
    };
    (mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Black or white, whichever is read better on a colour.
pub fn text_on(background: Rgb) -> Rgb {
    let light = luminance(background);
    // The ratios of contrast with white and with black (WCAG 2.2, "contrast ratio").
    if 1.05 / (light + 0.05) >= (light + 0.05) / (luminance(ON_LIGHT) + 0.05) {
        PAPER
    } else {
        ON_LIGHT
    }
}

/// A colour as `#RRGGBB`.
pub fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// Relative luminance (WCAG 2.2), 0 for black to 1 for white.
fn luminance((r, g, b): Rgb) -> f64 {
    let linear = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// The colours that `page.css` defines by a prefix, in order.
    fn defined(css: &str, prefix: &str) -> Vec<Rgb> {
        css.lines()
            .filter_map(|line| line.trim().strip_prefix(prefix)?.split_once(": #"))
            .map(|(_, hex)| {
                let n = u32::from_str_radix(&hex[..6], 16).unwrap();
                ((n >> 16) as u8, (n >> 8) as u8, n as u8)
            })
            .collect()
    }

    #[test]
    fn every_series_stands_out_from_the_page_in_both_themes() {
        let css = include_str!("page.css");
        let (light, dark) = css.split_once("/* dark */").unwrap();
        assert_eq!(defined(light, "--c"), SERIES);
        for colour in SERIES {
            assert!(contrast(colour, PAPER) >= 4.5, "{}", hex(colour));
        }
        let night = defined(dark, "--paper")[0];
        let series = defined(dark, "--c");
        assert!(series.len() >= SERIES.len());
        for colour in series {
            assert!(contrast(colour, night) >= 4.5, "{}", hex(colour));
        }
    }

    #[test]
    fn heat_grows_lighter_all_the_way_and_its_numbers_can_be_read() {
        let steps: Vec<Rgb> = (0..=100).map(|i| heat(f64::from(i) / 100.0)).collect();
        assert!(steps.is_sorted_by(|a, b| luminance(*a) < luminance(*b)));
        for colour in steps {
            assert!(contrast(colour, text_on(colour)) >= 4.0, "{}", hex(colour));
        }
        assert_eq!(heat(-3.0), HEAT[0]);
        assert_eq!(heat(f64::from(2)), HEAT[8]);
    }
}
