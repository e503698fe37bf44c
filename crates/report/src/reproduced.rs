//! Published results beside ours as a document: every claim with its figures, and the documents' own pictures drawn again.

use lab::published::{
    ClaimVerdict, Comparison, Curve, Group, Plot, PlotAxis, Reproduced, Row, Shape,
};

use crate::axis::Axis;
use crate::document::{Cell, Column, Document, Section, Table};
use crate::picture::{
    Bar, BarSeries, Bars, Direction, Kind, Lines, Mark, Picture, Radar, Ring, Series, Spoke,
};

/// The report of these groups.
pub fn document(groups: &[Reproduced]) -> Document {
    let mut document = Document::new("Published results, reproduced");
    document.subtitle =
        "What five documents claim, and what the same experiments come to on simulated drives of the same models."
            .to_owned();
    for group in groups {
        document.fact(group.group.to_string(), tally(&group.rows));
    }
    document.sections = groups.iter().map(section).collect();
    document
}

/// How many claims came to what, in words: `11 met, 2 explained`.
pub fn tally(rows: &[Row]) -> String {
    let all = [
        ClaimVerdict::Met,
        ClaimVerdict::Explained,
        ClaimVerdict::NotMet,
        ClaimVerdict::NothingToMeasure,
    ];
    let counted = all.map(|verdict| {
        let count = rows.iter().filter(|row| row.verdict() == verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    counted.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The claims as Markdown: a heading and a table for each group.
pub fn markdown(groups: &[Reproduced]) -> String {
    let mut lines = Vec::new();
    for group in groups {
        lines.push(format!("## {}: {}\n", group.group, group.group.document()));
        lines.push(format!("{}.\n", tally(&group.rows)));
        lines.push("| id | what | published | ours | difference | verdict |".to_owned());
        lines.push("|---|---|---|---|---|---|".to_owned());
        for row in &group.rows {
            lines.extend(lines_of(row).map(|cells| format!("| {} |", cells.map(cell).join(" | "))));
        }
        lines.push(String::new());
        for row in &group.rows {
            lines.extend(remarks(row).into_iter().map(|remark| format!("- {remark}")));
        }
        lines.push(String::new());
    }
    lines.join("\n").trim_end().to_owned()
}

/// A cell of a Markdown table ends at a bar.
fn cell(text: String) -> String {
    text.replace('|', "\\|")
}

/// The lines of a claim in a table: identifier, what is compared, published, ours, difference, verdict. A claim without
/// anything to compare is a line of its own words.
pub fn lines_of(row: &Row) -> impl Iterator<Item = [String; 6]> + '_ {
    let nothing = row.comparisons.is_empty().then(|| {
        let verdict = row.verdict().to_string();
        [row.id.clone(), row.says.clone(), String::new(), String::new(), String::new(), verdict]
    });
    let compared = |comparison: &Comparison| {
        [
            row.id.clone(),
            comparison.what.clone(),
            comparison.published_text(),
            comparison.ours_text(),
            comparison.difference_text(),
            comparison.verdict().to_string(),
        ]
    };
    nothing.into_iter().chain(row.comparisons.iter().map(compared))
}

/// What is to be said beside a claim's lines: its contradiction, and how figures came about or why they differ.
pub fn remarks(row: &Row) -> Vec<String> {
    let id = &row.id;
    let mut remarks = Vec::new();
    remarks.extend(row.contradiction.iter().map(|why| format!("{id} contradicts itself: {why}")));
    for comparison in &row.comparisons {
        let what = &comparison.what;
        let reason = comparison.reason.iter().map(|why| format!("{id}, {what}: {why}."));
        remarks.extend(comparison.note.iter().map(|note| format!("{id}, {what}: {note}.")));
        remarks.extend(reason);
    }
    remarks
}

fn section(reproduced: &Reproduced) -> Section {
    let Reproduced { group, rows, plots } = reproduced;
    let mut section =
        Section::new(group.to_string().to_lowercase(), group.document(), tally(rows) + ".");
    let wrong = rows.iter().filter(|row| row.verdict() == ClaimVerdict::NotMet);
    section.warnings.extend(wrong.map(|row| format!("{} is not met: {}", row.id, row.says)));
    let contradictions = rows.iter().filter(|row| row.contradiction.is_some());
    section.paragraphs.extend(contradictions.flat_map(|row| {
        row.contradiction.iter().map(|why| format!("{} contradicts itself. {why}", row.id))
    }));
    section.pictures = plots.iter().map(picture).collect();
    section.tables = vec![claims(*group, rows), figures(rows)];
    section
}

/// What the document says, claim by claim.
fn claims(group: Group, rows: &[Row]) -> Table {
    Table {
        caption: format!("What {group} claims"),
        columns: ["Claim", "It says", "Verdict"].map(Column::text).to_vec(),
        rows: rows
            .iter()
            .map(|row| {
                vec![
                    Cell::text(&row.id),
                    Cell::text(&row.says),
                    Cell::text(row.verdict().to_string()),
                ]
            })
            .collect(),
    }
}

/// Every figure beside ours.
fn figures(rows: &[Row]) -> Table {
    let columns = ["Claim", "What", "Published", "Ours", "Difference", "Verdict", "Remark"];
    let line = |(comparison, cells): (&Comparison, [String; 6])| {
        let remark: Vec<&str> =
            comparison.note.iter().chain(&comparison.reason).map(String::as_str).collect();
        cells.into_iter().chain([remark.join("; ")]).map(Cell::text).collect()
    };
    Table {
        caption: "Figures".to_owned(),
        columns: columns.map(Column::text).to_vec(),
        rows: rows
            .iter()
            .flat_map(|row| row.comparisons.iter().zip(lines_of(row)))
            .map(line)
            .collect(),
    }
}

fn picture(plot: &Plot) -> Picture {
    let kind = match &plot.shape {
        Shape::Lines { x, y } => Kind::Lines(Lines {
            x: axis(x),
            y: axis(y),
            series: plot
                .curves
                .iter()
                .map(|curve| Series::new(&curve.name, curve.points.iter().copied()))
                .collect(),
            marks: plot
                .levels
                .iter()
                .map(|(at, label)| Mark { on: Direction::Y, at: *at, label: label.clone() })
                .collect(),
            ..Lines::default()
        }),
        Shape::Bars { x_title, groups, y } => Kind::Bars(Bars {
            x_title: x_title.clone(),
            groups: groups.clone(),
            y: axis(y),
            series: plot
                .curves
                .iter()
                .map(|curve| BarSeries {
                    name: curve.name.clone(),
                    values: by_place(curve, groups.len(), Bar::new),
                })
                .collect(),
        }),
        Shape::Radar { spokes, unit } => {
            let values = plot.curves.iter().flat_map(|curve| &curve.points);
            let maximum = values.map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
            let spoke = |name: &String| Spoke { name: name.clone(), unit: unit.clone(), maximum };
            let ring = |curve: &Curve| Ring {
                name: curve.name.clone(),
                values: by_place(curve, spokes.len(), |value| value),
            };
            Kind::Radar(Radar {
                spokes: spokes.iter().map(spoke).collect(),
                rings: plot.curves.iter().map(ring).collect(),
            })
        }
    };
    Picture::new(&plot.title, &plot.caption, kind)
}

/// A curve's values by their places, with gaps where it has none.
fn by_place<T: Clone>(curve: &Curve, places: usize, value: impl Fn(f64) -> T) -> Vec<Option<T>> {
    let mut values = vec![None; places];
    for (place, y) in &curve.points {
        if let Some(at) = values.get_mut(*place as usize) {
            *at = Some(value(*y));
        }
    }
    values
}

fn axis(axis: &PlotAxis) -> Axis {
    let make = if axis.log { Axis::log } else { Axis::linear };
    make(axis.label.as_str(), axis.unit.as_str())
}

#[cfg(test)]
mod tests {
    use lab::Unit;
    use lab::published::{Claim, Published};

    use super::*;

    fn reproduced() -> Reproduced {
        let claim = Claim::new("REC-1", "it writes 2 GB/s").contradicting("it can't");
        let row = claim
            .row()
            .figure("rate", Published::About(2e9), Unit::BytesPerSecond, 1.5e9)
            .because("it is slower")
            .words("shape", "a|b", true, "flat");
        let lines = PlotAxis::linear("Rate", "GB/s");
        let curve = || vec![Curve::new("drive", [(0.0, 1.0), (2.0, 3.0)])];
        let spokes = ["a", "b", "c"].map(str::to_owned).to_vec();
        let plots = vec![
            Plot::lines("Lines", "", PlotAxis::log("Depth", ""), lines.clone(), curve())
                .level(2.0, "published"),
            Plot::bars("Bars", "", ("Lanes", spokes.clone()), lines, curve()),
            Plot::radar("Radar", "", (spokes, "MB/s"), curve()),
        ];
        let rows = vec![row, Claim::new("REC-2", "it is blue").row()];
        Reproduced { group: Group::Rec, rows, plots }
    }

    #[test]
    fn every_claim_stands_in_the_page_with_figures_reasons_and_contradictions() {
        let document = document(&[reproduced()]);
        let page = crate::html::page(&document);
        for said in [
            "REC-1",
            "REC-2",
            "it is blue",
            "2.00 GB/s",
            "1.50 GB/s",
            "-25.0 %",
            "it is slower",
            "it can&#39;t",
        ] {
            let plain = said.replace("&#39;", "'");
            assert!(page.contains(said) || page.contains(&plain), "{said}");
        }
        assert_eq!(document.facts[0].value, "1 explained, 1 nothing to measure");
        let kinds: Vec<_> = document.sections[0].pictures.iter().map(|p| p.file_stem()).collect();
        assert_eq!(kinds, ["lines", "bars", "radar"]);
    }

    #[test]
    fn a_gap_in_bars_and_rings_stays_a_gap() {
        let document = document(&[reproduced()]);
        let Kind::Bars(bars) = &document.sections[0].pictures[1].kind else { panic!("bars") };
        assert_eq!(bars.series[0].values, [Some(Bar::new(1.0)), None, Some(Bar::new(3.0))]);
        let Kind::Radar(radar) = &document.sections[0].pictures[2].kind else { panic!("a radar") };
        assert_eq!(radar.rings[0].values, [Some(1.0), None, Some(3.0)]);
        assert_eq!(radar.share(0, 2), Some(1.0));
    }

    #[test]
    fn markdown_has_a_line_for_each_comparison_and_remarks_below() {
        let text = markdown(&[reproduced()]);
        assert!(
            text.contains("| REC-1 | rate | 2.00 GB/s | 1.50 GB/s | -25.0 % | explained |"),
            "{text}"
        );
        assert!(text.contains("a\\|b"), "{text}");
        assert!(text.contains("- REC-1 contradicts itself: it can't"), "{text}");
        assert!(text.contains("- REC-1, rate: it is slower."), "{text}");
    }
}
