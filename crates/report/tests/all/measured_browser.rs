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
    let drawn = browser.evaluate(
        "[...document.querySelectorAll('.chart')].map(chart => {
           const canvas = chart.querySelector('canvas');
           if (!canvas || !canvas.width) return 0;
           const copy = document.createElement('canvas');
           [copy.width, copy.height] = [canvas.width, canvas.height];
           const sheet = copy.getContext('2d', { willReadFrequently: true });
           sheet.drawImage(canvas, 0, 0);
           const data = sheet.getImageData(0, 0, copy.width, copy.height).data;
           return new Set(new Uint32Array(data.buffer)).size;
         })",
    );
    let colours: Vec<u64> = drawn.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert_eq!(colours.len(), pictures, "{name}");
    // One colour would be an empty sheet.
    assert!(colours.iter().all(|&n| n > 8), "{name}: {colours:?}");
    let complaints = browser.happened(&[
        "Runtime.consoleAPICalled",
        "Runtime.exceptionThrown",
        "Log.entryAdded",
    ]);
    assert_eq!(complaints, Vec::<Value>::new(), "{name}");
    let overflow = browser
        .evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert_eq!(overflow, json!(0), "{name}");
    if let Some(kept) = std::env::var_os("LONGTAKE_SCREENSHOTS") {
        let how = json!({ "format": "png", "captureBeyondViewport": true });
        let shot = browser.call("Page.captureScreenshot", how);
        let file = PathBuf::from(kept).join(format!("{name}.png.base64"));
        std::fs::write(file, shot["data"].as_str().unwrap()).unwrap();
    }
}

#[test]
fn a_whole_run_and_two_side_by_side_are_drawn_without_complaint() {
    let one = crate::runs::all();
    let entry = |label: &str, measured: &crate::runs::Measured| {
        (label.to_owned(), measured.run.clone(), measured.folder.path().to_owned())
    };
    shown("measured", &[entry("run", one)]);
    shown("measured-compared", &[entry("old", one), entry("new", &crate::runs::faster(one))]);
}
