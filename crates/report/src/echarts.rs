//! Pictures as options of ECharts, and the bundle that draws them.
//!
//! Options are JSON, so what only a script can do stands in them as a name beginning with `@`: a colour
//! of the theme (`@c0`, `@ink`) or a function of the page (`@lines`). `page.js` puts these in. No such
//! name stands where a caller's text can.

mod options;

use serde::Serialize;
use serde_json::Value;

use crate::axis::{Axis, Scale};
use crate::picture::{Kind, Picture};

/// The part of Apache ECharts that reports draw with, as script that defines `echarts`. How it was
/// made: `echarts/README.md`.
pub const BUNDLE: &str = include_str!("../echarts/echarts.min.js");

/// Points drawn of a series at most.
const POINTS_MAX: usize = 4_000;

/// What the page's script draws a picture from.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// What the names of the series `s0`, `s1`, ... stand for.
    pub names: Vec<String>,
    /// What the values below are, for tooltips.
    pub x: Quantity,
    /// What the values are, for tooltips.
    pub y: Quantity,
    /// Height in pixels that suits it.
    pub height: u32,
    /// Options of ECharts.
    pub option: Value,
}

/// A quantity in words.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Quantity {
    /// What it is.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// How its values were turned into places before they were put into the options: `linear` values
    /// and those of `log` stand as they are, those of `nines` as their number of nines.
    pub scale: Scale,
}

impl From<&Axis> for Quantity {
    fn from(axis: &Axis) -> Self {
        Self { label: axis.label.clone(), unit: axis.unit.clone(), scale: axis.scale }
    }
}

/// What draws this picture.
pub fn chart(picture: &Picture) -> Chart {
    match &picture.kind {
        Kind::Lines(lines) => options::lines(lines),
        Kind::Heat(heat) => options::heat(heat),
        Kind::Radar(radar) => options::radar(radar),
        Kind::Bars(bars) => options::bars(bars),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Lines, Point, Series};
    use crate::sample;

    /// Every string that begins with `@`, with the key that it stands under.
    fn placeholders<'a>(key: &'a str, value: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
        match value {
            Value::String(s) if s.starts_with('@') => found.push((key, s)),
            Value::Array(items) => items.iter().for_each(|v| placeholders(key, v, found)),
            Value::Object(fields) => fields.iter().for_each(|(k, v)| placeholders(k, v, found)),
            _ => {}
        }
    }

    #[test]
    fn every_placeholder_is_one_that_the_page_knows_under_a_key_it_looks_at() {
        let script = include_str!("page.js");
        let css = include_str!("page.css");
        for picture in sample::pictures() {
            let chart = chart(&picture);
            let mut found = Vec::new();
            placeholders("", &chart.option, &mut found);
            assert!(!found.is_empty());
            for (key, name) in found {
                let name = &name[1..];
                if key.to_lowercase().ends_with("color") {
                    assert!(css.contains(&format!("--{name}: #")), "{key}: {name}");
                } else {
                    assert!(["formatter", "renderItem"].contains(&key), "{key}: {name}");
                    assert!(script.contains(&format!("    {name}(")), "{key}: {name}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_known_is_null_and_nothing_else_is() {
        let series = Series {
            points: vec![
                Point::new(0.0, 1.0),
                Point::new(1.0, 2.0),
                Point::gap(2.0),
                Point::new(3.0, 4.0),
                Point::new(4.0, 2.0),
                Point::new(5.0, 0.0),
            ],
            ..Series::default()
        };
        let of = |y: Axis| {
            let lines = Lines { y, series: vec![series.clone()], ..Lines::default() };
            let chart = chart(&Picture::new("", "", Kind::Lines(lines)));
            chart.option["series"][0]["data"].to_string()
        };
        assert_eq!(
            of(Axis::linear("", "")),
            "[[0.0,1.0],[1.0,2.0],[2.0,null],[3.0,4.0],[4.0,2.0],[5.0,0.0]]"
        );
        assert_eq!(
            of(Axis::log("", "")),
            "[[0.0,1.0],[1.0,2.0],[2.0,null],[3.0,4.0],[4.0,2.0],[5.0,null]]"
        );
    }

    #[test]
    fn foreign_text_never_stands_where_the_page_looks_for_a_name() {
        let mut lines =
            Lines { series: vec![Series::new("@c0", [(0.0, 1.0)])], ..Lines::default() };
        lines.x.label = "@lines".into();
        lines.marks.push(crate::picture::Mark { label: "@ink".into(), ..Default::default() });
        let chart = chart(&Picture::new("@", "@", Kind::Lines(lines)));
        let mut found = Vec::new();
        placeholders("", &chart.option, &mut found);
        for (key, name) in found {
            let expected = key.to_lowercase().ends_with("color")
                || key == "formatter"
                || (key == "name" && ["@lines", "@ink"].contains(&name));
            assert!(expected, "{key}: {name}");
        }
    }

    #[test]
    fn the_bundle_carries_its_licences_and_stays_small() {
        assert!(BUNDLE.starts_with("/*!"));
        for text in [
            "Apache License, Version 2.0",
            "The Apache Software Foundation",
            "Baidu Inc.",
            "Mike Bostock",
        ] {
            assert!(BUNDLE.contains(text), "{text}");
        }
        assert!(BUNDLE.len() <= 760_000, "{}", BUNDLE.len());
        assert!(!BUNDLE.to_lowercase().contains("</script"));
    }
}
