//! Pictures as static SVG: for paper, for mail, and for pages whose script doesn't run.
//!
//! The colours are those of a light page. Text stays text, set in whatever font the viewer has.

pub(crate) mod bars;
mod canvas;
pub(crate) mod heat;
mod legend;
pub(crate) mod lines;
mod plot;
mod radar;

use crate::picture::{Kind, Picture};
use canvas::Canvas;

/// Width of every picture in pixels: that of the text on A4.
const WIDTH: f64 = 760.0;
/// Height of the title's strip at the top in pixels.
const TITLE_HEIGHT: f64 = 36.0;
/// Points drawn of a series at most; there are no more pixels.
const POINTS_MAX: usize = 1_500;

/// The picture as a file of its own, with its title.
pub fn draw(picture: &Picture) -> String {
    render(picture, 0.0)
}

/// The picture as part of a page that has the title elsewhere.
pub(crate) fn inline(picture: &Picture) -> String {
    render(picture, TITLE_HEIGHT)
}

/// The height of the whole picture with its title, in pixels.
fn height(kind: &Kind) -> f64 {
    TITLE_HEIGHT
        + match kind {
            Kind::Lines(lines) => lines::height(lines),
            Kind::Heat(heat) => heat::height(heat),
            Kind::Radar(radar) => radar::height(radar),
            Kind::Bars(bars) => bars::height(bars),
        }
}

fn render(picture: &Picture, hidden_top: f64) -> String {
    let head = canvas::Head {
        title: &picture.title,
        description: &picture.caption,
        width: WIDTH,
        height: height(&picture.kind),
        hidden_top,
    };
    canvas::draw(&head, |canvas| {
        title(canvas, &picture.title);
        match &picture.kind {
            Kind::Lines(lines) => lines::draw(canvas, lines),
            Kind::Heat(heat) => heat::draw(canvas, heat),
            Kind::Radar(radar) => radar::draw(canvas, radar),
            Kind::Bars(bars) => bars::draw(canvas, bars),
        }
    })
}

fn title(canvas: &mut Canvas, title: &str) {
    let fitting = canvas::fitting(title, 15.0, WIDTH - 24.0);
    canvas.text(&fitting, (12.0, TITLE_HEIGHT / 2.0), canvas::Text::new(15.0).bold());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::picture::{Direction, Heat, Lines, Mark, Point, Radar, Ring, Series, Spoke};
    use crate::sample;

    /// Lines drawn in the first series' colour.
    fn strokes(svg: &str) -> usize {
        svg.matches(&format!("stroke=\"{}\"", crate::palette::hex(crate::palette::series(0))))
            .count()
    }

    fn lines(lines: Lines) -> String {
        draw(&Picture::new("t", "", Kind::Lines(lines)))
    }

    #[test]
    fn every_kind_draws_what_it_names_within_its_frame() {
        for picture in sample::pictures() {
            let svg = draw(&picture);
            assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", picture.title);
            for name in names(&picture.kind) {
                assert!(svg.contains(&name), "{} lacks {name}", picture.title);
            }
            for points in svg.split("points=\"").skip(1) {
                let points = points.split('"').next().unwrap();
                for pair in points.split_whitespace() {
                    let (x, y) = pair.split_once(',').unwrap();
                    let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                    let (width, height) = (WIDTH * 4.0, height(&picture.kind) * 4.0);
                    assert!((0.0..=width).contains(&x), "{}: x {x}", picture.title);
                    assert!((0.0..=height).contains(&y), "{}: y {y}", picture.title);
                }
            }
        }
    }

    fn names(kind: &Kind) -> Vec<String> {
        match kind {
            Kind::Lines(l) if l.series.len() > 1 => {
                l.series.iter().map(|s| s.name.clone()).collect()
            }
            Kind::Lines(l) => l.marks.iter().map(|m| m.label.clone()).collect(),
            Kind::Heat(h) => h.x.iter().chain(&h.y).cloned().collect(),
            Kind::Radar(r) => r.spokes.iter().map(|s| s.name.clone()).collect(),
            Kind::Bars(b) => b.groups.clone(),
        }
    }

    /// The lower right corner of a label that ends there, in units of the file.
    fn corner(svg: &str, label: &str) -> (f64, f64) {
        let (before, _) = svg.split_once(label).expect("the label is drawn");
        let (_, tag) = before.rsplit_once("<text").expect("a text");
        let number = |name: &str| {
            let (_, value) = tag.split_once(name).expect("a place");
            value.split('"').next().and_then(|value| value.parse().ok()).expect("a number")
        };
        (number(" x=\""), number(" y=\""))
    }

    #[test]
    fn labels_of_lines_that_nearly_coincide_stand_clear_of_each_other() {
        let mark = |at, label: &str| Mark { on: Direction::Y, at, label: label.to_owned() };
        let series = vec![Series::new("s", [(0.0, 0.0), (1.0, 100.0)])];
        let marks = vec![mark(50.0, "first"), mark(50.5, "upper"), mark(49.5, "lowest")];
        let svg = lines(Lines { series, marks, ..Lines::default() });
        let [first, upper, lowest] = ["first", "upper", "lowest"].map(|l| corner(&svg, l));
        let per_pixel = upper.0 / (WIDTH - 4.0);
        assert!(
            first.1 - upper.1 > 11.0 * per_pixel,
            "{first:?} is below its line, {upper:?} above"
        );
        let width = canvas::text_width("first", 11.0);
        assert!(first.0 - lowest.0 > width * per_pixel, "{lowest:?} is left of {first:?}");
    }

    #[test]
    fn a_gap_breaks_the_line_and_is_not_drawn_as_zero() {
        let whole = Series::new("s", [(0.0, 5.0), (1.0, 6.0), (2.0, 5.0), (3.0, 6.0)]);
        let mut broken = whole.clone();
        broken.points[2].y = None;
        broken.points[3].x = 4.0;
        broken.points.insert(3, Point::new(3.0, 5.0));
        let count =
            |series: Series| strokes(&lines(Lines { series: vec![series], ..Lines::default() }));
        assert_eq!(count(broken), count(whole) + 1);
    }

    #[test]
    fn lines_leave_through_the_edge_of_a_bounded_axis() {
        let axis = Axis { minimum: Some(0.0), maximum: Some(10.0), ..Axis::linear("y", "") };
        let series = vec![Series::new("s", [(0.0, 5.0), (1.0, 1e9), (2.0, 5.0), (3.0, -1e9)])];
        let svg = lines(Lines { y: axis, series, ..Lines::default() });
        assert!(!svg.contains(",-"), "a point lies above the picture");
        assert_eq!(strokes(&svg), 2, "{svg}");
    }

    #[test]
    fn a_hundred_thousand_points_make_a_small_picture() {
        let points = (0..100_000).map(|i| (f64::from(i), f64::from(i % 977)));
        let svg = lines(Lines { series: vec![Series::new("s", points)], ..Lines::default() });
        assert!(svg.len() < 60_000, "{}", svg.len());
    }

    #[test]
    fn each_series_is_one_line_with_its_own_dashes() {
        let points = |height: f64| (0..10).map(move |i| (f64::from(i), height + f64::from(i % 2)));
        let series = ["a", "b", "c", "d"].map(|name| Series::new(name, points(1.0)));
        let svg = lines(Lines { series: series.to_vec(), ..Lines::default() });
        for (index, dashes) in ["", "28 16", "8 12", "40 12 8 12"].into_iter().enumerate() {
            let colour = crate::palette::hex(crate::palette::series(index));
            let drawn: Vec<&str> = svg
                .split("<polyline ")
                .skip(1)
                .filter(|line| {
                    line.split('>').next().is_some_and(|tag| {
                        tag.contains(&format!("stroke=\"{colour}\""))
                            && tag.matches(',').count() == 10
                    })
                })
                .collect();
            let [line] = drawn[..] else { panic!("series {index} is {} lines", drawn.len()) };
            let expected = format!("stroke-dasharray=\"{dashes}\" ");
            assert_eq!(line.starts_with(&expected), !dashes.is_empty(), "{line}");
        }
    }

    #[test]
    fn unknown_heat_is_hatched_apart_from_the_least_value() {
        let heat = Heat {
            x: vec!["1".into(), "2".into(), "3".into()],
            y: vec!["a".into()],
            values: vec![vec![Some(1.0), None, Some(1234.0)]],
            ..Heat::default()
        };
        let svg = draw(&Picture::new("t", "", Kind::Heat(heat)));
        assert!(svg.contains("1,234") && svg.contains('–'), "{svg}");
        let cells = svg.matches(&crate::palette::hex(crate::palette::HEAT[0])).count();
        assert!(cells >= 1, "the least value has the scale's first colour");
    }

    #[test]
    fn a_ring_with_an_unknown_value_is_not_closed_through_the_middle() {
        let spoke = |name: &str| Spoke { name: name.into(), unit: String::new(), maximum: 1.0 };
        let radar = |middle| Radar {
            spokes: vec![spoke("a"), spoke("b"), spoke("c"), spoke("d")],
            rings: vec![Ring {
                name: "r".into(),
                values: vec![Some(0.5), Some(0.5), middle, Some(0.5)],
            }],
        };
        let whole = draw(&Picture::new("t", "", Kind::Radar(radar(Some(0.5)))));
        let broken = draw(&Picture::new("t", "", Kind::Radar(radar(None))));
        assert_eq!(whole.matches("<polygon").count(), 1);
        assert_eq!(broken.matches("<polygon").count(), 0);
    }

    #[test]
    fn markup_in_names_stays_text() {
        let mut picture =
            Picture::new("<script>alert(1)</script>", "\"&<", Kind::Lines(Lines::default()));
        if let Kind::Lines(lines) = &mut picture.kind {
            lines.series = vec![Series::new("</svg><b>", [(0.0, 1.0)]); 2];
            lines.x.label = "<i>".into();
        }
        let svg = draw(&picture);
        for markup in ["<script", "<b>", "<i>"] {
            assert!(!svg.contains(markup), "{svg}");
        }
        assert_eq!(svg.matches("</svg>").count(), 1);
    }
}
