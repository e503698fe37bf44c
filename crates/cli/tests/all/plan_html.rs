//! `longtake plan --html` in a real browser: every picture is drawn on a screen, a phone and paper, nothing is complained of or fetched,
//! and a report that is there is not written over unasked.
//!
//! `LONGTAKE_SCREENSHOTS=folder` keeps what was seen.

#[path = "../../../report/tests/chromium/mod.rs"]
mod chromium;

use std::fs;
use std::path::PathBuf;

use crate::harness::{line, new_in, scratch};
use chromium::Browser;
use profile::{Parameter, library};
use serde_json::{Value, json};

/// A report of a plan with all that one can have in it: two candidates, separate sets, proofs.
fn report(folder: &tempfile::TempDir) -> PathBuf {
    for name in ["memblaze-4tb-horizontal", "memblaze-4tb"] {
        let mut profile = library::get(name).unwrap();
        profile.capacity_bytes = 16 << 30;
        profile.simulated.set("flash", "pages_per_block", Parameter::assumed(24));
        fs::write(new_in(folder, &format!("{name}.toml")), profile.to_toml().unwrap()).unwrap();
    }
    let command = "plan --rate 1GB/s --raw 1MiB --keep 12s --life 0.01 --margin 5 --readers 1x20MB/s,4KiB --sets separate --turn 3s \
                   --prove --drive @/memblaze-4tb-horizontal.toml @/memblaze-4tb.toml --html @/plan.html";
    // One of the two has no sets: it can't be done with it, and the report says so.
    let ran = line(command, folder.path());
    assert!(matches!(ran.code, 0 | 3), "{}: {}", ran.code, ran.stderr);
    line(command, folder.path()).code(1).says(&["plan.html", "-y"]);
    new_in(folder, "plan.html")
}

#[test]
fn a_plans_report_is_drawn_on_a_screen_a_phone_and_paper() {
    let folder = scratch();
    let file = report(&folder);
    let page = fs::read_to_string(&file).unwrap();
    for words in
        ["Readers beside the recording", "NVM Sets: 2 namespaces", "Headroom", "--sets shared"]
    {
        assert!(page.contains(words), "{words}");
    }
    let mut browser = Browser::start();
    for (name, width, mobile, theme) in
        [("desktop", 1280, false, "light"), ("phone", 375, true, "dark")]
    {
        browser.resize(width, 812, mobile);
        browser.show_as("screen", theme);
        browser.open(&file);
        browser.settle();
        let colours = browser.colours_of_charts();
        // Two of all candidates, two of the design, one of its readers, two of each proof.
        assert!(colours.len() >= 7, "{name}: {colours:?}");
        // One colour would be an empty sheet.
        assert!(colours.iter().all(|&n| n > 8), "{name}: {colours:?}");
        assert_eq!(browser.overflow(), json!(0), "{name}");
        browser.screenshot(&format!("plan-{name}"));
    }
    browser.resize(680, 1000, false);
    browser.show_as("print", "light");
    let wide = browser.evaluate(
        "[...document.querySelectorAll('section table')]
           .filter(t => t.getBoundingClientRect().width > t.parentElement.clientWidth + 1)
           .map(t => t.caption.textContent)",
    );
    assert_eq!(wide, json!([]), "tables that paper is too narrow for");
    assert_eq!(browser.overflow(), json!(0), "print");
    let printed = browser.evaluate(
        "[...document.querySelectorAll('.picture')].every(p =>
           p.querySelector('.live').getBoundingClientRect().height === 0 &&
           p.querySelector('.static svg').getBoundingClientRect().width > 500)",
    );
    assert_eq!(printed, json!(true));
    browser.screenshot("plan-print");
    assert_eq!(browser.complaints(&file), Vec::<Value>::new());
}
