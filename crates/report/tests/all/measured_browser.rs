//! The report of a whole run in a real browser: every picture is drawn, nothing is complained of, and nothing overflows.
//!
//! `LONGTAKE_SCREENSHOTS=folder` keeps what was seen.

use std::path::PathBuf;

use crate::chromium::Browser;
use lab::run::Run;
use longtake_report::{html, measured};
use serde_json::{Value, json};

fn shown(name: &str, runs: &[(String, Run, PathBuf)]) {
    let document = measured::document(runs);
    let pictures: usize = document.sections.iter().map(|section| section.pictures.len()).sum();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, html::page(&document)).unwrap();
    let mut browser = Browser::start();
    browser.resize(1280, 900, false);
    browser.show_as("screen", "light");
    browser.open(&file);
    browser.settle();
    let colours = browser.colours_of_charts();
    assert_eq!(colours.len(), pictures, "{name}");
    // One colour would be an empty sheet.
    assert!(colours.iter().all(|&n| n > 8), "{name}: {colours:?}");
    assert_eq!(browser.complaints(&file), Vec::<Value>::new(), "{name}");
    assert_eq!(browser.overflow(), json!(0), "{name}");
    browser.screenshot(name);
}

#[test]
fn a_whole_run_and_two_side_by_side_are_drawn_without_complaint() {
    let one = crate::runs::all();
    let entry = |label: &str, measured: &crate::runs::Measured| {
        (label.to_owned(), measured.run.clone(), measured.folder.clone())
    };
    shown("measured", &[entry("run", one)]);
    shown("measured-compared", &[entry("old", one), entry("new", &crate::runs::faster(one))]);
}
