//! Published results beside ours as a document: every claim with its figures, and the documents' own pictures drawn again.

use lab::published::{
    Basis, ClaimVerdict, Comparison, Curve, FigureFit, Fitted, Group, HeldOut, Plot, PlotAxis,
    Reproduced, Row, SetParameter, Shape, UsedParameter,
};

use crate::axis::Axis;
use crate::document::{Cell, Column, Document, Section, Table};
use crate::picture::{
    Bar, BarSeries, Bars, Direction, Kind, Lines, Mark, Picture, Radar, Ring, Series, Spoke,
};
use crate::text::wrapped;

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

/// How many claims came to what, in words: `11 predicted, 2 calibrated`.
pub fn tally(rows: &[Row]) -> String {
    counted(rows.iter().map(Row::verdict))
}

/// The same of each claim's figures.
fn tally_of_figures(rows: &[Row]) -> String {
    counted(rows.iter().flat_map(|row| &row.comparisons).map(Comparison::verdict))
}

fn counted(verdicts: impl Iterator<Item = ClaimVerdict> + Clone) -> String {
    let counted = ClaimVerdict::ALL.map(|verdict| {
        let count = verdicts.clone().filter(|&found| found == verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    counted.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What came of these claims, and of their figures.
pub fn summary(rows: &[Row]) -> String {
    let figures: usize = rows.iter().map(|row| row.comparisons.len()).sum();
    let claims = rows.len();
    format!(
        "{claims} claims: {}. Of their {figures} figures: {}.",
        tally(rows),
        tally_of_figures(rows)
    )
}

/// What came of several groups together. None of one alone, which has a summary of its own.
pub fn total(groups: &[Reproduced]) -> Option<String> {
    let rows: Vec<Row> = groups.iter().flat_map(|group| group.rows.clone()).collect();
    (groups.len() > 1).then(|| format!("In all, {}", summary(&rows)))
}

/// The claims as Markdown: a heading and a table for each group.
pub fn markdown(groups: &[Reproduced]) -> String {
    let mut lines: Vec<String> = total(groups).into_iter().map(paragraph).collect();
    for group in groups {
        lines.push(format!("## {}: {}\n", group.group, group.group.document()));
        lines.push(paragraph(summary(&group.rows)));
        lines.push("| id | what | published | ours | difference | verdict |".to_owned());
        lines.push("|---|---|---|---|---|---|".to_owned());
        for row in &group.rows {
            lines.extend(lines_of(row).map(|cells| format!("| {} |", cells.map(cell).join(" | "))));
        }
        lines.push(String::new());
        for row in &group.rows {
            lines.extend(remarks(row).into_iter().map(item));
        }
        lines.extend(ending(group).into_iter().map(item));
        lines.push(String::new());
    }
    lines.join("\n").trim_end().to_owned()
}

/// A paragraph of Markdown, and the empty line after it.
fn paragraph(text: String) -> String {
    let lines: Vec<String> =
        wrapped(&text, 0).lines().map(|line| line.trim_start().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// An item of a list.
fn item(text: String) -> String {
    wrapped(&format!("- {text}"), 0)
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

/// What is to be said beside a claim's lines: its contradiction, how figures came about, and why they differ or can't be compared.
pub fn remarks(row: &Row) -> Vec<String> {
    let id = &row.id;
    let mut remarks = Vec::new();
    remarks.extend(row.contradiction.iter().map(|why| format!("{id} contradicts itself: {why}")));
    if let (Basis::NotTestable(why), true) = (&row.basis, row.comparisons.is_empty()) {
        remarks.push(format!("{id}: {why}."));
    }
    for comparison in &row.comparisons {
        let said = said_of(comparison).into_iter();
        remarks.extend(said.map(|text| format!("{id}, {}: {text}.", comparison.what)));
    }
    remarks
}

/// What is to be said beside a figure.
fn said_of(comparison: &Comparison) -> Vec<String> {
    let untestable = match &comparison.basis {
        Basis::NotTestable(why) => Some(why.clone()),
        Basis::Arithmetic | Basis::Simulated(_) => None,
    };
    comparison.note.clone().into_iter().chain(comparison.explained()).chain(untestable).collect()
}

/// What the calibrated figures are calibrated by: a line for each drive, with its parameters and the claims that they were fitted to.
pub fn calibrations(rows: &[Row]) -> Vec<String> {
    let comparisons = rows.iter().flat_map(|row| &row.comparisons);
    let calibrated = comparisons.filter(|c| c.verdict() == ClaimVerdict::Calibrated);
    let mut drives: Vec<(&str, Vec<String>)> = Vec::new();
    let fitted = calibrated.flat_map(|comparison| comparison.basis.fitted());
    for Fitted { of, name, claims } in fitted.filter(|fitted| !fitted.claims.is_empty()) {
        let text = format!("{name} ({})", claims.join(", "));
        match drives.iter_mut().find(|(drive, _)| drive == of) {
            Some((_, parameters)) if parameters.contains(&text) => {}
            Some((_, parameters)) => parameters.push(text),
            None => drives.push((of, vec![text])),
        }
    }
    // Layouts of one drive have the same parameters.
    let mut lines: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    for (drive, parameters) in drives {
        match lines.iter_mut().find(|(_, same)| *same == parameters) {
            Some((drives, _)) => drives.push(drive),
            None => lines.push((vec![drive], parameters)),
        }
    }
    let line = |(drives, parameters): (Vec<&str>, Vec<String>)| {
        format!("Calibrated by {}: {}.", drives.join(", "), parameters.join(", "))
    };
    lines.into_iter().map(line).collect()
}

/// What is said of all claims of a group together: how its drives were fitted, or what calibrated figures are calibrated by.
pub fn ending(reproduced: &Reproduced) -> Vec<String> {
    match &reproduced.held_out {
        Some(held_out) => fitting(held_out),
        None => calibrations(&reproduced.rows),
    }
}

/// How drives were fitted to predict held-out figures: a line for each parameter.
fn fitting(held_out: &HeldOut) -> Vec<String> {
    let fit = |fit: &FigureFit| {
        let FigureFit { of, name, value, figures, met } = fit;
        let nearest = if *met { "" } else { ", the nearest that was found" };
        let figures = figures.join("; ");
        format!("Fitted to {figures}: {name} = {value}{nearest} ({}).", of.join(", "))
    };
    let set = |set: &SetParameter| {
        let SetParameter { of, name, value, source } = set;
        let value =
            value.as_ref().map_or_else(|| "left out".to_owned(), |value| format!("= {value}"));
        format!("Not fitted: {name} {value}: {source} ({}).", of.join(", "))
    };
    held_out.fits.iter().map(fit).chain(held_out.starts.iter().map(set)).collect()
}

fn section(reproduced: &Reproduced) -> Section {
    let Reproduced { group, rows, plots, parameters, .. } = reproduced;
    let mut section =
        Section::new(group.to_string().to_lowercase(), group.document(), summary(rows));
    let wrong = rows.iter().filter(|row| row.verdict() == ClaimVerdict::NotMet);
    section.warnings.extend(wrong.map(|row| format!("{} is not met: {}", row.id, row.says)));
    let contradictions = rows.iter().filter(|row| row.contradiction.is_some());
    section.paragraphs.extend(contradictions.flat_map(|row| {
        row.contradiction.iter().map(|why| format!("{} contradicts itself. {why}", row.id))
    }));
    section.paragraphs.extend(ending(reproduced));
    section.pictures = plots.iter().map(picture).collect();
    section.tables = vec![claims(*group, rows), figures(rows), used(parameters)];
    section
}

/// The simulated drives' parameters with their sources.
fn used(parameters: &[UsedParameter]) -> Table {
    let source = |parameter: &UsedParameter| match parameter.fitted.as_slice() {
        [] if parameter.changed => format!("not the library's; {}", parameter.source),
        [] => parameter.source.clone(),
        fitted => format!("fitted to {}; {}", fitted.join(", "), parameter.source),
    };
    let line = |parameter: &UsedParameter| {
        [&parameter.of, &parameter.name, &parameter.value, &source(parameter)]
            .map(Cell::text)
            .to_vec()
    };
    Table {
        caption: "Parameters of the simulated drives".to_owned(),
        columns: ["Drive", "Parameter", "Value", "Source"].map(Column::text).to_vec(),
        rows: parameters.iter().map(line).collect(),
    }
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
        let remark = said_of(comparison).join("; ");
        cells.into_iter().chain([remark]).map(Cell::text).collect()
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
    use crate::text::fits;
    use lab::Unit;
    use lab::published::{Claim, Published};

    use super::*;

    fn used_parameter() -> UsedParameter {
        UsedParameter {
            of: "a-drive".to_owned(),
            name: "flash.program_us".to_owned(),
            value: "1850.0".to_owned(),
            source: "assumed: chosen".to_owned(),
            fitted: vec!["REC-1".to_owned()],
            changed: false,
        }
    }

    fn reproduced() -> Reproduced {
        let claim = Claim::new("REC-1", "it writes 2 GB/s").contradicting("it can't");
        let row = claim
            .row(Basis::Arithmetic)
            .figure("rate", Published::About(2e9), Unit::BytesPerSecond, 1.5e9)
            .contradicted("it is slower", (1e9, 2e9))
            .on(Basis::simulated(&[used_parameter()]))
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
        let rows =
            vec![row, Claim::new("REC-2", "it is blue").row(Basis::not_testable("no colours"))];
        let parameters = vec![used_parameter()];
        Reproduced { group: Group::Rec, rows, plots, parameters, held_out: None }
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
            "fitted to REC-1; assumed: chosen",
        ] {
            let plain = said.replace("&#39;", "'");
            assert!(page.contains(said) || page.contains(&plain), "{said}");
        }
        assert_eq!(document.facts[0].value, "1 contradicted, 1 not testable");
        let kinds: Vec<_> = document.sections[0].pictures.iter().map(|p| p.file_stem()).collect();
        assert_eq!(kinds, ["lines", "bars", "radar"]);
    }

    #[test]
    fn held_out_figures_stand_beside_what_drives_were_fitted_to() {
        let fit = |met| FigureFit {
            of: vec!["a-drive".to_owned()],
            name: "flash.program_us".to_owned(),
            value: "1850".to_owned(),
            figures: vec!["REC-1, rate".to_owned(), "REC-2, it".to_owned()],
            met,
        };
        let set = |value: Option<&str>| SetParameter {
            of: vec!["a-drive".to_owned(), "b-drive".to_owned()],
            name: "cache.shrink_to".to_owned(),
            value: value.map(str::to_owned),
            source: "a full drive".to_owned(),
        };
        let held_out =
            HeldOut { fits: vec![fit(true), fit(false)], starts: vec![set(Some("1")), set(None)] };
        let text = markdown(&[Reproduced { held_out: Some(held_out), ..reproduced() }]);
        for line in [
            "- Fitted to REC-1, rate; REC-2, it: flash.program_us = 1850 (a-drive).",
            "- Fitted to REC-1, rate; REC-2, it: flash.program_us = 1850, the nearest that was found (a-drive).",
            "- Not fitted: cache.shrink_to = 1: a full drive (a-drive, b-drive).",
            "- Not fitted: cache.shrink_to left out: a full drive (a-drive, b-drive).",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("Calibrated by"), "{text}");
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
            text.contains("| REC-1 | rate | 2.00 GB/s | 1.50 GB/s | -25.0 % | contradicted |"),
            "{text}"
        );
        assert!(text.contains("a\\|b"), "{text}");
        assert!(text.contains("- REC-1 contradicts itself: it can't"), "{text}");
        assert!(text.contains("- REC-1, rate: it is slower."), "{text}");
        assert!(text.contains("- REC-2: no colours."), "{text}");
        assert!(text.contains("- Calibrated by a-drive: flash.program_us (REC-1)."), "{text}");
        assert!(
            text.contains("2 claims: 1 contradicted, 1 not testable. Of their 2 figures: 1 calibrated, 1 contradicted."),
            "{text}"
        );
        assert!(text.lines().all(|line| line.starts_with('|') || fits(line)), "{text}");
    }
}
