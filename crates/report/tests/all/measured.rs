//! Documents of what experiments found: their pictures hold the results' own figures, what isn't known stays unknown, runs
//! stand side by side, and nothing odd keeps a report from being drawn.

use std::path::PathBuf;

use crate::runs::{Measured, faster, with_cache};
use lab::analysis::series::WorstWindow;
use lab::experiment::any::ExperimentOutcome;
use lab::experiment::fill::FillResult;
use lab::experiment::mix::MixResult;
use lab::experiment::neighbours::NeighboursResult;
use lab::experiment::stream::StreamResult;
use lab::run::Run;
use load::Verb;
use longtake_report::document::{Document, Section, Value};
use longtake_report::picture::{Heat, Kind, Lines, Picture, Point};
use longtake_report::{html, measured};

fn document(runs: &[(&str, &Measured)]) -> Document {
    let runs: Vec<(String, Run, PathBuf)> = runs
        .iter()
        .map(|(label, run)| ((*label).to_owned(), run.run.clone(), run.folder.clone()))
        .collect();
    measured::document(&runs)
}

fn section<'a>(document: &'a Document, id: &str) -> &'a Section {
    document.sections.iter().find(|section| section.id == id).unwrap_or_else(|| panic!("no {id}"))
}

fn picture<'a>(section: &'a Section, title: &str) -> &'a Picture {
    let titles: Vec<&str> = section.pictures.iter().map(|p| p.title.as_str()).collect();
    let found = section.pictures.iter().find(|picture| picture.title == title);
    found.unwrap_or_else(|| panic!("no '{title}' among {titles:?}"))
}

fn lines(picture: &Picture) -> &Lines {
    let Kind::Lines(lines) = &picture.kind else { panic!("{} has no lines", picture.title) };
    lines
}

fn heat(picture: &Picture) -> &Heat {
    let Kind::Heat(heat) = &picture.kind else { panic!("{} is no heat map", picture.title) };
    heat
}

fn factor(unit: &str) -> f64 {
    match unit {
        "B" | "B/s" | "ns" => 1.0,
        "us" => 1e3,
        "MB" | "MB/s" | "ms" => 1e6,
        "GB" | "GB/s" | "s" => 1e9,
        other => panic!("{other}"),
    }
}

fn result<T>(run: &Measured, of: fn(&ExperimentOutcome) -> Option<&T>) -> &T {
    run.run.outcomes.iter().find_map(of).expect("the run has this experiment")
}

fn stream(run: &Measured) -> &StreamResult {
    result(run, |o| if let ExperimentOutcome::Stream(r) = o { Some(r) } else { None })
}

fn neighbours(run: &Measured) -> &NeighboursResult {
    result(run, |o| if let ExperimentOutcome::Neighbours(r) = o { Some(r) } else { None })
}

/// Page, files and series of a document and its run can be made, and say nothing that isn't a number.
fn renders(document: &Document, run: &Run) {
    let page = html::page(document);
    assert!(page.ends_with("</html>\n"));
    let files = measured::pictures(document);
    let pictures: usize = document.sections.iter().map(|section| section.pictures.len()).sum();
    assert_eq!(files.len(), pictures);
    for (index, (name, svg)) in files.iter().enumerate() {
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
        assert!(files[..index].iter().all(|(used, _)| used != name), "{name} twice");
    }
    for (stem, columns) in measured::series("label", run) {
        let mut csv = Vec::new();
        columns.write_csv(&mut csv).unwrap_or_else(|error| panic!("{stem}: {error}"));
        let csv = String::from_utf8(csv).unwrap();
        let (heads, rows) = csv.split_once("\r\n").unwrap();
        assert!(heads.starts_with("run,drive,") || heads.starts_with("run,"), "{stem}: {heads}");
        assert!(heads.split(',').any(|head| head == "drive"), "{stem}: {heads}");
        assert!(rows.lines().all(|row| row.starts_with("label,")), "{stem}: {rows}");
        columns.write_parquet(Vec::new()).unwrap_or_else(|error| panic!("{stem}: {error}"));
    }
    for outcome in &run.outcomes {
        for width in [0, 1, 40, 120] {
            for line in measured::sparklines(outcome, width) {
                assert!(line.chars().count() <= width, "{line}");
            }
        }
    }
}

#[test]
fn a_whole_run_has_a_section_for_each_experiment_with_the_finding_first() {
    let run = crate::runs::all();
    let document = document(&[("run", run)]);
    let ids: Vec<&str> = document.sections.iter().map(|section| section.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "summary",
            "fill",
            "steady",
            "stream",
            "link",
            "mix",
            "neighbours",
            "viewers",
            "apps",
            "snia",
            "diskmark"
        ]
    );
    for section in &document.sections {
        assert!(!section.answer.is_empty(), "{}", section.id);
        assert!(section.id == "summary" || !section.pictures.is_empty(), "{}", section.id);
    }
    let summary = section(&document, "summary");
    assert_eq!(summary.warnings, ["later was not done: nobody had the time."]);
    assert_eq!(document.title, "Model of a drive");
    assert!(document.facts.iter().any(|fact| fact.value == "SERIAL-1"), "{:?}", document.facts);
    renders(&document, &run.run);
}

#[test]
fn heat_maps_hold_the_results_own_rates() {
    let run = crate::runs::all();
    let document = document(&[("run", run)]);
    let result = stream(run);
    for (operation, title) in
        [(Verb::Read, "Sequential read rate"), (Verb::Write, "Sequential write rate")]
    {
        let heat = heat(picture(section(&document, "stream"), title));
        let mut blocks: Vec<u64> = result.points.iter().map(|p| p.block_bytes).collect();
        let mut depths: Vec<u32> = result.points.iter().map(|p| p.depth).collect();
        blocks.sort_unstable();
        blocks.dedup();
        depths.sort_unstable();
        depths.dedup();
        for (row, block) in blocks.iter().enumerate() {
            for (column, depth) in depths.iter().enumerate() {
                let rate = result.at(operation, *block, *depth).and_then(|p| p.bytes_per_s);
                let shown = rate.map(|rate| rate / factor(&heat.value.unit));
                assert_eq!(heat.at(row, column), shown, "{operation} {block} {depth}");
            }
        }
        assert_eq!(heat.x, depths.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    let mix: &MixResult =
        self::result(run, |o| if let ExperimentOutcome::Mix(r) = o { Some(r) } else { None });
    let heat = self::heat(picture(section(&document, "mix"), "IOPS by block size and mix"));
    assert_eq!((heat.y.len(), heat.x.len()), (8, 7));
    assert_eq!(heat.at(1, 0), mix.at(4096, 100).map(|p| p.iops));
    assert_eq!(heat.at(7, 6), mix.at(1 << 20, 0).map(|p| p.iops));
    let Kind::Radar(radar) = &picture(section(&document, "mix"), "Bandwidth of the mixes").kind
    else {
        panic!("no radar")
    };
    assert_eq!((radar.spokes.len(), radar.rings.len()), (7, 8));
}

#[test]
fn a_fill_shows_its_rates_over_the_bytes_and_marks_its_thresholds() {
    let measured = crate::runs::of(vec![ExperimentOutcome::Fill(Box::new(with_cache()))]);
    let document = document(&[("run", &measured)]);
    let FillResult { fill, empty, rests, .. } = with_cache();
    let fill_section = section(&document, "fill");
    let curve = lines(picture(fill_section, "Write rate over the bytes written"));
    assert_eq!(curve.series.len(), 2);
    assert_eq!((curve.x.unit.as_str(), curve.y.unit.as_str()), ("GB", "GB/s"));
    for (point, interval) in curve.series[0].points.iter().zip(&empty) {
        assert_eq!(point.y, Some(interval.rate() / 1e9));
    }
    let cache = fill.cache.found().expect("the series has a cliff");
    let mark = curve.marks.iter().find(|mark| mark.label.starts_with("cache full")).unwrap();
    assert_eq!(mark.at, cache.change.bytes as f64 / 1e9);
    let at_cliff = curve.series[0].points.iter().position(|p| p.x > mark.at).unwrap();
    let (before, after) =
        (curve.series[0].points[at_cliff - 3].y, curve.series[0].points[at_cliff + 3].y);
    assert!(before.unwrap() > 3.0 && after.unwrap() < 2.0, "{before:?} {after:?}");
    assert_eq!(curve.bands.first().map(|band| band.label.as_str()), Some("into the cache"));
    let dips = lines(picture(fill_section, "Dips while writing"));
    let expected: Vec<f64> =
        fill.passes[0].dips.dips.iter().map(|dip| 100.0 * (1.0 - dip.lowest_share)).collect();
    let shown: Vec<f64> = dips.series[0].points.iter().filter_map(|p| p.y).collect();
    assert!(!shown.is_empty());
    assert_eq!(shown, expected);
    let Kind::Bars(bars) = &picture(fill_section, "What rests give back").kind else { panic!() };
    let rows = rests.recovery.unwrap().rows;
    assert_eq!(bars.groups.len(), rows.len());
    for (bar, row) in bars.series[0].values.iter().zip(&rows) {
        assert_eq!(bar.unwrap().value, row.fast_bytes as f64 / factor(&bars.y.unit));
        assert_eq!(bar.unwrap().high.is_none(), row.at_least);
    }
    renders(&document, &measured.run);
}

#[test]
fn percentile_curves_are_dense_where_histograms_are_kept_and_end_where_too_little_is_known() {
    let run = crate::runs::all();
    let point = &neighbours(run).alone[0];
    let title = format!("Latency of reads at depth {}", point.depth);
    let dense = document(&[("run", run)]);
    let dense = lines(picture(section(&dense, "neighbours"), &title));
    let elsewhere =
        crate::runs::of(vec![ExperimentOutcome::Neighbours(Box::new(neighbours(run).clone()))]);
    let sparse = document(&[("run", &elsewhere)]);
    let sparse = lines(picture(section(&sparse, "neighbours"), &title));
    assert_eq!(sparse.series[0].points.len(), point.response.percentiles.len());
    assert!(dense.series[0].points.len() > 100, "{}", dense.series[0].points.len());
    assert_eq!(sparse.series.len(), 2, "alone and beside the writer");
    for lines in [dense, sparse] {
        for (percent, ns) in &point.response.percentiles {
            let shown = lines.series[0].points.iter().find(|p| p.x == *percent).unwrap();
            assert_eq!(shown.y, ns.map(|ns| ns as f64 / factor(&lines.y.unit)), "{percent}");
        }
        let last = lines.series[0].points.last().unwrap();
        assert_eq!((last.x, last.y), (99.9999, None), "too few reads for six nines");
    }
}

#[test]
fn two_runs_stand_side_by_side_with_ratios_to_the_first() {
    let first = crate::runs::all();
    let second = faster(first);
    let document = document(&[("old", first), ("new", &second)]);
    assert_eq!(document.title, "old against new");
    let stream_section = section(&document, "stream");
    for title in ["Sequential read rate: old", "Sequential read rate: new"] {
        heat(picture(stream_section, title));
    }
    let (old, new) = (
        heat(picture(stream_section, "Sequential read rate: old")),
        heat(picture(stream_section, "Sequential read rate: new")),
    );
    assert_eq!((old.value.minimum, old.value.maximum), (new.value.minimum, new.value.maximum));
    let ratio = heat(picture(stream_section, "Sequential read rate: new over old"));
    assert!(ratio.known().count() > 0);
    assert!(ratio.known().all(|ratio| (ratio - 2.0).abs() < 1e-9));
    let rate = lines(picture(stream_section, "Rate of sequential reads by block size at depth 1"));
    let names: Vec<&str> = rate.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["old", "new"]);
    let key = &section(&document, "summary").tables[0];
    let read = key.rows.iter().find(
        |row| matches!(&row[0].value, Value::Text(text) if text == "fastest sequential read"),
    );
    let row = read.expect("reading is a key figure");
    let Value::Number { value, .. } = row[4].value else { panic!("{row:?}") };
    assert!((value - 2.0).abs() < 1e-9, "{value}");
    assert!(section(&document, "fill").answer.starts_with("old: "));
    renders(&document, &second.run);
}

#[test]
fn what_is_not_known_stays_unknown_in_pictures_and_tables() {
    let mut result = stream(crate::runs::all()).clone();
    for point in result.points.iter_mut().filter(|p| p.depth == 2) {
        point.bytes_per_s = None;
        point.latency = Default::default();
    }
    let measured = crate::runs::of(vec![ExperimentOutcome::Stream(Box::new(result))]);
    let document = document(&[("run", &measured)]);
    let stream_section = section(&document, "stream");
    let heat = heat(picture(stream_section, "Sequential read rate"));
    let column = heat.x.iter().position(|depth| depth == "2").unwrap();
    assert!((0..heat.y.len()).all(|row| heat.at(row, column).is_none()));
    let rates = lines(picture(stream_section, "Rate of sequential reads by block size"));
    assert!(rates.series.iter().all(|series| series.name != "depth 2"));
    let said = stream_section.paragraphs.join(" ");
    assert!(said.contains("figures of the grid are not known"), "{said}");
    let zero = |point: &Point| point.y == Some(0.0);
    assert!(rates.series.iter().flat_map(|s| &s.points).all(|point| !zero(point)));
    renders(&document, &measured.run);
}

#[test]
fn results_without_points_with_one_and_with_zeros_are_drawn_all_the_same() {
    for outcomes in [crate::runs::empty(), crate::runs::with_one_point(), crate::runs::with_zeros()]
    {
        let measured = crate::runs::of(outcomes);
        let alone = document(&[("run", &measured)]);
        assert_eq!(alone.sections.len(), 1 + measured.run.outcomes.len());
        renders(&alone, &measured.run);
        let whole = crate::runs::all();
        renders(&document(&[("odd", &measured), ("whole", whole)]), &measured.run);
        renders(&document(&[("whole", whole), ("odd", &measured)]), &measured.run);
    }
    let nothing = crate::runs::of(Vec::new());
    let said = document(&[("run", &nothing)]);
    assert_eq!(said.sections[0].answer, "None of the key figures is known.");
    renders(&said, &nothing.run);
    renders(&document(&[]), &nothing.run);
}

#[test]
fn terminal_lines_show_each_experiment() {
    for outcome in &crate::runs::all().run.outcomes {
        let lines = measured::sparklines(outcome, 100);
        assert!(!lines.is_empty(), "{}", outcome.name());
        assert!(lines.iter().all(|line| !line.trim().is_empty()), "{lines:?}");
    }
}

#[test]
fn a_finding_stands_once_in_the_page_and_cells_name_their_columns() {
    let document = document(&[("one", crate::runs::all())]);
    let page = html::page(&document);
    let (shown, _) = page.split_once("<script type=\"application/json\"").unwrap();
    for section in &document.sections {
        let found = shown.matches(&section.answer.replace('&', "&amp;")).count();
        assert_eq!(found, 1, "{}: {}", section.id, section.answer);
        for table in &section.tables {
            let name = format!("data-column=\"{}\"", table.columns[0].name);
            assert!(table.rows.is_empty() || shown.contains(&name), "{name}");
        }
    }
}

#[test]
fn compared_runs_begin_with_which_is_better_in_what() {
    let fill = with_cache();
    let sustained = fill.sustained.map(|worst| WorstWindow { rate: 2.0 * worst.rate, ..worst });
    let of = |fill: FillResult| crate::runs::of(vec![ExperimentOutcome::Fill(Box::new(fill))]);
    let (slow, fast) = (of(fill.clone()), of(FillResult { sustained, ..fill }));
    let answer = |runs: &[(&str, &Measured)]| section(&document(runs), "summary").answer.clone();
    let said = answer(&[("slow", &slow), ("fast", &fast)]);
    assert!(said.contains("Against slow, fast is better in sustained writing (2.00 x)"), "{said}");
    let said = answer(&[("fast", &fast), ("slow", &slow)]);
    assert!(said.contains("Against fast, slow is worse in sustained writing (0.50 x)"), "{said}");
    let said = answer(&[("a", &fast), ("b", &fast)]);
    assert!(said.contains("b and a are alike in all"), "{said}");
}

#[test]
fn block_sizes_that_were_measured_have_a_tick_each() {
    let document = document(&[("one", crate::runs::all())]);
    let picture = picture(section(&document, "mix"), "IOPS of random commands");
    let lines = lines(picture);
    let mut measured: Vec<f64> = lines.series[0].points.iter().map(|point| point.x).collect();
    measured.sort_by(f64::total_cmp);
    assert!(measured.len() > 2 && lines.x.ticks == measured, "{:?}", lines.x);
    let ruler = lines.x.ruler(measured.iter().copied(), false);
    let labels: Vec<String> =
        measured.iter().map(|&kib| longtake_report::axis::short(kib)).collect();
    assert_eq!(ruler.ticks.iter().map(|tick| tick.label.clone()).collect::<Vec<_>>(), labels);
}
