//! Reports in a real browser: they draw, complain of nothing, fetch nothing, show the figures that they
//! carry, and fit on a screen, a phone and paper in either theme.
//!
//! `LONGTAKE_SCREENSHOTS=folder` keeps what was seen.

use std::path::Path;

use crate::chromium::Browser;
use longtake_report::document::{Document, Section};
use longtake_report::html;
use longtake_report::picture::{Kind, Lines, Picture, Series};
use serde_json::{Value, json};

/// A report in a folder of its own, open in a browser.
struct Opened {
    browser: Browser,
    folder: tempfile::TempDir,
}

impl Opened {
    fn new(document: &Document) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.html");
        std::fs::write(&file, html::page(document)).unwrap();
        let mut browser = Browser::start();
        browser.resize(1280, 900, false);
        browser.show_as("screen", "light");
        browser.open(&file);
        browser.settle();
        Self { browser, folder }
    }

    fn complaints(&self) -> Vec<Value> {
        self.browser.complaints(&self.folder.path().join("report.html"))
    }
}

#[test]
fn every_picture_draws_in_every_form_and_nothing_overflows_complains_or_is_fetched() {
    let document = crate::sample::document();
    let pictures = crate::sample::pictures().len();
    let mut page = Opened::new(&document);
    for (name, width, mobile, theme) in [
        ("light", 1280, false, "light"),
        ("dark", 1280, false, "dark"),
        ("phone-dark", 375, true, "dark"),
        ("phone-light", 375, true, "light"),
    ] {
        page.browser.resize(width, 812, mobile);
        page.browser.show_as("screen", theme);
        let colours = page.browser.colours_of_charts();
        assert_eq!(colours.len(), pictures, "{name}");
        assert!(colours.iter().all(|&n| n > 8), "{name}: {colours:?}");
        assert_eq!(page.browser.overflow(), json!(0), "{name}");
        let background = page.browser.evaluate("getComputedStyle(document.body).backgroundColor");
        let expected = if theme == "light" { "rgb(255, 255, 255)" } else { "rgb(20, 24, 29)" };
        assert_eq!(background, json!(expected), "{name}");
        page.browser.screenshot(name);
    }
    assert_eq!(page.complaints(), Vec::<Value>::new());
}

#[test]
fn on_paper_pictures_are_static_light_and_whole() {
    let mut page = Opened::new(&crate::sample::document());
    // The width of A4 between its margins, at 96 pixels an inch.
    page.browser.resize(680, 1000, false);
    page.browser.show_as("print", "dark");
    let shown = page.browser.evaluate(
        "[...document.querySelectorAll('.picture')].map(p => [
           p.querySelector('.live').getBoundingClientRect().height,
           p.querySelector('.static svg').getBoundingClientRect().width > 500,
         ])",
    );
    for picture in shown.as_array().unwrap() {
        assert_eq!(picture, &json!([0, true]));
    }
    let background = page.browser.evaluate("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, json!("rgb(255, 255, 255)"));
    assert_eq!(page.browser.overflow(), json!(0));
    page.browser.screenshot("print");
    let pdf = page.browser.call("Page.printToPDF", json!({ "preferCSSPageSize": true }));
    let pdf = pdf["data"].as_str().unwrap();
    assert!(pdf.starts_with("JVBERi"), "it is a PDF");
    if let Some(folder) = std::env::var_os("LONGTAKE_SCREENSHOTS") {
        std::fs::write(Path::new(&folder).join("print.pdf.base64"), pdf).unwrap();
    }
    assert_eq!(page.complaints(), Vec::<Value>::new());
}

#[test]
fn without_its_script_the_page_shows_the_static_pictures_in_its_theme() {
    let document = crate::sample::document();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, html::page(&document)).unwrap();
    let mut browser = Browser::start();
    browser.resize(375, 812, true);
    browser.show_as("screen", "dark");
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    browser.open(&file);
    let background = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, json!("rgb(20, 24, 29)"));
    let shown = browser.evaluate(
        "[...document.querySelectorAll('.static svg')].map(s => s.getBoundingClientRect().height > 200)",
    );
    assert_eq!(shown, json!(vec![true; crate::sample::pictures().len()]));
    let overflow = browser
        .evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert_eq!(overflow, json!(0));
}

#[test]
fn figures_shown_are_those_that_the_page_carries() {
    let document = crate::sample::document();
    let mut page = Opened::new(&document);
    // The JSON in the page is the document.
    let json = page.browser.evaluate("document.getElementById('longtake-data').textContent");
    let carried: Document = serde_json::from_str(json.as_str().unwrap()).unwrap();
    assert_eq!(carried, document);
    // Every number in the tables of the document, as shown, is the carried one at its decimals.
    let shown = page.browser.evaluate(
        "[...document.querySelectorAll('section > .table td[data-value]')].map(td =>
           [td.dataset.value, td.firstChild.textContent])",
    );
    let carried = page.browser.evaluate(
        "JSON.parse(document.getElementById('longtake-data').textContent).sections
           .flatMap(s => s.tables).flatMap(t => t.rows).flat()
           .map(cell => cell.value.number).filter(Boolean).map(n => [n.value, n.decimals])",
    );
    let (shown, carried) = (shown.as_array().unwrap(), carried.as_array().unwrap());
    assert_eq!(shown.len(), carried.len());
    assert!(shown.len() > 20);
    for (shown, carried) in shown.iter().zip(carried) {
        let value = carried[0].as_f64().unwrap();
        assert_eq!(shown[0].as_str().unwrap().parse::<f64>().unwrap(), value);
        let text = shown[1].as_str().unwrap().replace(',', "");
        let decimals = carried[1].as_u64().unwrap() as usize;
        assert_eq!(text, format!("{value:.decimals$}"));
    }
    // Every point that a chart holds is one of the picture's, and a series' extremes are among them.
    let charted = page.browser.evaluate(
        "[...document.querySelectorAll('.chart')].map(chart =>
           echarts.getInstanceByDom(chart).getOption().series
             .filter(s => ['line', 'heatmap', 'bar', 'radar'].includes(s.type) && s.name !== 'marks')
             .map(s => s.data.map(d => d && d.value !== undefined ? d.value : d)))",
    );
    for (picture, charted) in crate::sample::pictures().iter().zip(charted.as_array().unwrap()) {
        check_charted(picture, charted);
    }
    assert_eq!(page.complaints(), Vec::<Value>::new());
}

/// A list of numbers and nulls.
fn numbers(list: &Value) -> Vec<Option<f64>> {
    list.as_array().unwrap().iter().map(Value::as_f64).collect()
}

fn check_charted(picture: &Picture, charted: &Value) {
    match &picture.kind {
        Kind::Lines(lines) => {
            for (series, drawn) in lines.series.iter().zip(charted.as_array().unwrap()) {
                let known = |v: &Value| v[1].as_f64();
                let drawn: Vec<f64> = drawn.as_array().unwrap().iter().filter_map(known).collect();
                let all: Vec<f64> = series.points.iter().filter_map(|p| p.y).collect();
                assert!(drawn.iter().all(|y| all.contains(y)), "{}", picture.title);
                let extremes = |ys: &[f64]| {
                    (
                        ys.iter().copied().fold(f64::NAN, f64::min),
                        ys.iter().copied().fold(f64::NAN, f64::max),
                    )
                };
                assert_eq!(extremes(&drawn), extremes(&all), "{}", picture.title);
            }
        }
        Kind::Heat(heat) => {
            let cells = charted[0].as_array().unwrap();
            assert_eq!(cells.len(), heat.known().count());
            for cell in cells {
                let at = |n: usize| cell[n].as_f64().unwrap();
                assert_eq!(Some(at(2)), heat.at(at(1) as usize, at(0) as usize));
            }
        }
        Kind::Radar(radar) => {
            let whole = radar.rings.iter().filter(|r| r.values.iter().all(Option::is_some));
            for (ring, drawn) in whole.zip(charted.as_array().unwrap()) {
                assert_eq!(numbers(&drawn[0]), ring.values);
            }
        }
        Kind::Bars(bars) => {
            for (series, drawn) in bars.series.iter().zip(charted.as_array().unwrap()) {
                let values: Vec<_> = series.values.iter().map(|b| b.map(|b| b.value)).collect();
                assert_eq!(numbers(drawn), values);
            }
        }
    }
}

#[test]
fn the_switch_changes_the_theme_and_the_legend_hides_a_series() {
    let mut page = Opened::new(&crate::sample::document());
    page.browser.evaluate("document.querySelector('.theme').click()");
    page.browser.settle();
    let theme = page.browser.evaluate(
        "[getComputedStyle(document.body).backgroundColor,
          document.querySelector('.theme').textContent]",
    );
    assert_eq!(theme, json!(["rgb(20, 24, 29)", "Light"]));
    let before = page.browser.colours_of_charts();
    assert!(before.iter().all(|&n| n > 8), "{before:?}");
    let selected = page.browser.evaluate(
        "(() => {
           const entry = document.querySelector('.legend button[data-series=\"s1\"]');
           entry.click();
           document.querySelector('.theme').click();
           const chart = echarts.getInstanceByDom(entry.closest('.picture').querySelector('.chart'));
           return [entry.getAttribute('aria-pressed'), chart.getOption().legend[0].selected.s1];
         })()",
    );
    assert_eq!(selected, json!(["false", false]), "it stays hidden when the theme changes");
    assert_eq!(page.complaints(), Vec::<Value>::new());
}

#[test]
fn tooltips_show_the_value_with_its_unit_and_escape_names() {
    let mut document = Document::new("</title><script>window.evil=1</script>");
    let mut section = Section::new("a", "b", "c");
    let mut lines = Lines {
        series: vec![Series::new("<img src=x onerror='window.evil=1'>", [(1.0, 2.5), (2.0, 3.5)])],
        ..Lines::default()
    };
    lines.y.unit = "GB/s".into();
    section.pictures.push(Picture::new("t", "c", Kind::Lines(lines)));
    document.sections.push(section);
    let mut page = Opened::new(&document);
    let tip = page.browser.evaluate(
        "(() => {
           const chart = echarts.getInstanceByDom(document.querySelector('.chart'));
           chart.dispatchAction({ type: 'showTip', seriesIndex: 0, dataIndex: 1 });
           return document.querySelector('.tip').textContent;
         })()",
    );
    let tip = tip.as_str().unwrap();
    assert!(tip.contains("3.5 GB/s") && tip.contains("<img src=x"), "{tip}");
    assert_eq!(page.browser.evaluate("window.evil === undefined"), json!(true));
    assert_eq!(page.complaints(), Vec::<Value>::new());
}

#[test]
fn downloads_are_the_picture_with_its_title_and_every_value() {
    let mut page = Opened::new(&crate::sample::document());
    let downloads = page.browser.evaluate(
        "(async () => {
           const names = [], blobs = [];
           HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
           const name = URL.createObjectURL;
           URL.createObjectURL = blob => { blobs.push(blob); return name.call(URL, blob); };
           const first = document.querySelector('.picture');
           for (const kind of ['svg', 'csv', 'png']) {
             first.querySelector(`.downloads [data-kind=${kind}]`).click();
           }
           while (names.length < 3) await new Promise(done => setTimeout(done, 20));
           const of = type => blobs.find(blob => blob.type === type);
           return [names, await of('image/svg+xml').text(), await of('text/csv').text(),
                   of('image/png').size];
         })()",
    );
    let stem = "write-rate-while-the-drive-fills";
    assert_eq!(downloads[0], json!(["svg", "csv", "png"].map(|kind| format!("{stem}.{kind}"))));
    let svg = downloads[1].as_str().unwrap();
    assert!(svg.contains("Write rate while the drive fills\n</text>"), "it has its title");
    let csv = downloads[2].as_str().unwrap();
    let Kind::Lines(lines) = &crate::sample::pictures()[0].kind else {
        panic!("the first is lines")
    };
    assert_eq!(csv.lines().next(), Some("series,Written since the trim [GB],Write rate [GB/s]"));
    assert_eq!(csv.lines().count(), 1 + lines.series[0].points.len());
    for (line, point) in csv.lines().skip(1).zip(&lines.series[0].points) {
        let y = line.rsplit(',').next().unwrap();
        assert_eq!(y.parse::<f64>().ok(), point.y, "{line}");
    }
    assert!(downloads[3].as_u64().unwrap() > 10_000, "the PNG holds a picture");
    assert_eq!(page.complaints(), Vec::<Value>::new());
}
