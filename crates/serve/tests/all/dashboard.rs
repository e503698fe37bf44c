//! The dashboard in a real browser: it shows a recording live, selects a span and downloads it, and asks nobody but the service.
//!
//! `LONGTAKE_SCREENSHOTS=folder` keeps what was seen.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use longtake::array::FlowOptions;
use longtake::instant::When;
use longtake::{FileFormat, Recording, Selection, Timestamp, json as shown};
use serde_json::{Value, json};

use crate::chromium::Browser;
use crate::harness::{Recorded, Service};
use crate::packets::stated;

/// The page of a service, open in a browser.
struct Page {
    browser: Browser,
    url: String,
}

impl Page {
    /// An empty page in a window for a desk.
    fn new(service: &Service) -> Self {
        let mut browser = Browser::start();
        browser.resize(1280, 900, false);
        browser.show_as("screen", "light");
        Self { browser, url: service.url() }
    }

    fn open(service: &Service) -> Self {
        let mut page = Self::new(service);
        page.load();
        page
    }

    fn load(&mut self) {
        self.browser.open_url(&self.url.clone());
    }

    /// Waits until an expression is true.
    fn until(&mut self, expression: &str) {
        let wait = format!(
            "new Promise(done => {{ const look = () => ({expression}) ? done(true) : setTimeout(look, 20); look(); }})"
        );
        assert_eq!(self.browser.evaluate(&wait), json!(true));
    }

    fn text(&mut self, selector: &str) -> String {
        let text = format!("document.querySelector({}).textContent", json!(selector));
        self.browser.evaluate(&text).as_str().expect("a text").to_owned()
    }

    fn value(&mut self, id: &str) -> String {
        let value = format!("document.getElementById({}).value", json!(id));
        self.browser.evaluate(&value).as_str().expect("a text").to_owned()
    }

    fn click(&mut self, selector: &str) {
        self.browser.evaluate(&format!("document.querySelector({}).click()", json!(selector)));
    }

    /// Presses a key while an element has the focus.
    fn press(&mut self, selector: &str, key: &str) {
        let focus = format!("document.querySelector({}).focus()", json!(selector));
        self.browser.evaluate(&focus);
        for kind in ["keyDown", "keyUp"] {
            self.browser.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key }));
        }
    }

    /// Drags over the timeline, between two shares of its width.
    fn drag(&mut self, from: f64, to: f64) {
        self.browser.evaluate("document.querySelector('#timeline').scrollIntoView()");
        let area = self.browser.evaluate(
            "(({ left, top, width }) => [left, top + 40, width])(document.querySelector('#timeline svg').getBoundingClientRect())",
        );
        let [left, y, width] = [0, 1, 2].map(|at| area[at].as_f64().expect("a number"));
        for (kind, share) in [("mousePressed", from), ("mouseMoved", to), ("mouseReleased", to)] {
            let event = json!({
                "type": kind, "x": left + share * width, "y": y, "button": "left", "buttons": 1, "clickCount": 1,
            });
            self.browser.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Fails if the page complained of anything, or asked anybody but the service.
    fn complains_of_nothing(&mut self) {
        let said = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
        assert_eq!(self.browser.happened(&said), Vec::<Value>::new());
        let requests = self.browser.happened(&["Network.requestWillBeSent"]);
        let own = [self.url.as_str(), "data:", "blob:", "about:blank"].map(str::to_owned);
        for request in &requests {
            let url = request["params"]["request"]["url"].as_str().expect("a text");
            assert!(own.iter().any(|own| url.starts_with(own)), "{url}");
        }
        assert!(requests.len() > 10, "{requests:?}");
    }

    /// The span and the filter in the fields.
    fn selection(&mut self) -> Selection {
        let time = |text: String| {
            let when: When = text.parse().expect("a time");
            When::at(when, Timestamp::MIN)
        };
        Selection {
            since: Some(time(self.value("since"))),
            until: Some(time(self.value("until"))),
            filter: self.value("filter"),
            ..Selection::default()
        }
    }

    /// Downloads the span, and returns the file.
    fn download(&mut self, folder: &Path) -> Vec<u8> {
        let file = folder.join("radar.pcapng");
        fs::remove_file(&file).ok();
        let allow = json!({ "behavior": "allow", "downloadPath": folder });
        self.browser.call("Page.setDownloadBehavior", allow);
        self.click("#download");
        self.until("/downloaded|Failed/.test(document.querySelector('#answer').textContent)");
        let answer = self.text("#answer");
        assert!(answer.ends_with(" downloaded. "), "{answer}");
        // Its name is that of a file in progress until it is complete.
        while !file.exists() {
            self.browser.settle();
        }
        fs::read(file).expect("it can be read")
    }
}

/// The pixels in which the chart of the rate is of the light theme's colour for what was stored, and of nothing else.
const PIXELS_OF_RATE: &str = "() => {
    const canvas = document.querySelector('#rate-chart canvas');
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const sheet = copy.getContext('2d', { willReadFrequently: true });
    sheet.drawImage(canvas, 0, 0);
    const { data } = sheet.getImageData(0, 0, copy.width, copy.height);
    return new Uint32Array(data.buffer).filter(pixel => pixel === 0xFFB05F00).length;
}";

const STORED: &str = "#ledger tr:nth-child(2) td";

#[test]
fn a_recording_is_shown_live_and_a_span_is_selected_and_downloaded() {
    // Names of files are text, whatever they look like.
    let recorded = Recorded::empty_in("<img src=x>");
    recorded.record(5_000_000);
    let recording = Recording::builder("traffic:2MB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    let service = recorded.served();
    let mut page = Page::open(&service);
    page.until("/^Recording for/.test(document.querySelector('#recording').textContent)");
    page.until("/[1-9]/.test(document.querySelector('#ledger tr:nth-child(2) td')?.textContent)");
    let stored = page.text(STORED);
    page.until(&format!("document.querySelector('{STORED}').textContent !== {}", json!(stored)));
    page.until("/[1-9].* stored/.test(document.querySelector('#rate-detail').textContent)");
    assert_eq!(page.text("#loss"), "No packet of the newest take is lost");
    assert_eq!(page.text("#connection"), "Live");
    assert!(page.text("#arrays").starts_with("radar: recording"));
    page.until("/Stored: .* now/.test(document.querySelector('#rate-caption').textContent)");
    page.until("/Share: .* now/.test(document.querySelector('#buffers-caption').textContent)");
    page.until("document.querySelectorAll('.take').length === 2");
    page.until(&format!("({PIXELS_OF_RATE})() > 5"));
    fits_everywhere(&mut page);
    recording.stop();
    let account = recording.wait().expect("it ends");
    page.until("document.querySelector('#recording').textContent === 'Not recording'");
    let kept = account.ledger.stored.packets.to_string();
    page.until(&format!(
        "document.querySelector('{STORED}').textContent.replaceAll(',', '') === '{kept}'"
    ));
    assert_eq!(page.text("#announcement"), "radar: recording has ended");
    assert!(page.text("#members").contains("<img src=x>"));
    assert_eq!(page.browser.evaluate("document.images.length"), json!(0));
    selects_and_downloads(&recorded, &mut page);
}

/// Nothing is wider than the window, on a desk or a phone, by day or by night.
fn fits_everywhere(page: &mut Page) {
    for (name, width, mobile, theme) in [
        ("desk-light", 1280, false, "light"),
        ("desk-dark", 1280, false, "dark"),
        ("phone-dark", 375, true, "dark"),
        ("phone-light", 375, true, "light"),
    ] {
        page.browser.resize(width, 812, mobile);
        page.browser.show_as("screen", theme);
        page.until(&format!("document.querySelector('.chart canvas').clientWidth < {width}"));
        assert_eq!(page.browser.overflow(), json!(0), "{name}");
        let background = "getComputedStyle(document.body).backgroundColor";
        let expected = if theme == "light" { "rgb(255, 255, 255)" } else { "rgb(20, 24, 29)" };
        assert_eq!(page.browser.evaluate(background), json!(expected), "{name}");
        page.browser.screenshot(&format!("dashboard-{name}"));
    }
    page.browser.resize(1280, 900, false);
    page.browser.show_as("screen", "light");
}

fn selects_and_downloads(recorded: &Recorded, page: &mut Page) {
    let folder = tempfile::tempdir().expect("making a folder");
    let takes = recorded.open().takes().expect("they can be read");
    page.until("document.querySelectorAll('#takes tr').length === 2");
    // The oldest take is the last row.
    page.click("#takes tr:last-child button");
    assert_eq!(page.selection().since, Some(Timestamp::from_nanos(takes[0].first_ns)));
    assert_eq!(page.selection().until, Some(Timestamp::from_nanos(takes[0].last_ns)));
    let file = page.download(folder.path());
    let whole = recorded.extracted(&page.selection(), FileFormat::Pcapng);
    assert!(stated(&file).0 == whole, "the take differs");
    // A part of it, by keyboard.
    page.click("#zoom");
    let before = page.value("until");
    page.press("#timeline [role=slider]:last-child", "PageDown");
    page.press("#timeline [role=slider]:last-child", "ArrowLeft");
    assert!(page.value("until") < before && page.value("since") < page.value("until"));
    let file = page.download(folder.path());
    let part = recorded.extracted(&page.selection(), FileFormat::Pcapng);
    assert!(stated(&file).0 == part && part.len() < whole.len(), "the part differs");
    // Another part, by pointer, with a filter.
    page.drag(0.25, 0.75);
    page.browser.evaluate("document.querySelector('#filter').value = 'tcp'");
    let file = page.download(folder.path());
    let tcp = recorded.extracted(&page.selection(), FileFormat::Pcapng);
    assert!(stated(&file).0 == tcp && tcp.len() > 1000 && tcp.len() < part.len(), "TCP differs");
    page.click("#list-flows");
    page.until("/flows, .* packets/.test(document.querySelector('#answer').textContent)");
    let options = FlowOptions { top: Some(20), ..FlowOptions::default() };
    let flows = recorded.open().flows(&page.selection(), &options).expect("they can be counted");
    let flows = shown::flows(&flows, true);
    let rows = page.browser.evaluate(
        "[...document.querySelectorAll('#flows tr')].map(row => row.cells[3].textContent.replaceAll(',', ''))",
    );
    let packets = flows["flows"].as_array().expect("a list").iter();
    assert_eq!(rows, packets.map(|flow| flow["packets"].to_string()).collect::<Value>());
    page.complains_of_nothing();
    // A mistake is named.
    page.browser.evaluate("document.querySelector('#filter').value = 'nonsense'");
    page.click("#list-flows");
    page.until("/^Failed: .*nonsense/.test(document.querySelector('#answer').textContent)");
}

/// Requests to `/api/` that the browser holds back until they are answered here.
struct Intercepted {
    answered: BTreeSet<String>,
}

impl Intercepted {
    fn new(page: &mut Page) -> Self {
        let patterns = json!([{ "urlPattern": "*/api/*" }]);
        page.browser.call("Fetch.enable", json!({ "patterns": patterns }));
        Self { answered: BTreeSet::new() }
    }

    /// Answers the next request whose path ends so; all others before it with 404. Returns its headers.
    fn answer(&mut self, page: &mut Page, path: &str, status: u16, body: &str) -> Value {
        loop {
            let answered = self.answered.clone();
            let is_new = |id: &Value| !answered.contains(id.as_str().expect("a text"));
            page.browser.wait("Fetch.requestPaused", |event| is_new(&event["requestId"]));
            let paused = page.browser.happened(&["Fetch.requestPaused"]);
            let next = paused.iter().map(|event| &event["params"]);
            let next = next.clone().find(|event| is_new(&event["requestId"])).expect("it has come");
            let id = next["requestId"].as_str().expect("a text").to_owned();
            let url = next["request"]["url"].as_str().expect("a text");
            let is_wanted = url.ends_with(path);
            let (code, text) = if is_wanted { (status, body) } else { (404, "{}") };
            let headers = json!([{ "name": "content-type", "value": "text/event-stream" }]);
            let fulfilled = json!({
                "requestId": id, "responseCode": code, "responseHeaders": headers, "body": base64(text.as_bytes()),
            });
            self.answered.insert(id);
            page.browser.call("Fetch.fulfillRequest", fulfilled);
            if is_wanted {
                return next["request"]["headers"].clone();
            }
        }
    }
}

/// As the DevTools protocol has bodies.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let of_three = |three: &[u8]| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        let digit = |at: usize| match at <= three.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]),
            false => '=',
        };
        [0, 1, 2, 3].map(digit)
    };
    bytes.chunks(3).flat_map(of_three).collect()
}

/// An event of an array whose name looks like markup, with so many packets lost.
fn event(lost: u64) -> String {
    let count = |packets: u64| json!({ "packets": packets, "bytes": 100 * packets });
    let ledger = json!({
        "offered": count(1000), "stored": count(1000 - lost), "filtered": null,
        "lost": { "no_buffer": count(lost), "interface": count(0) },
    });
    let status = json!({
        "take": "t", "started": "2026-11-26T05:00:00Z", "buffers": 8, "buffers_held": 7, "members": [], "ledger": ledger,
    });
    let data = json!({
        "array": "<b>radar</b>", "error": null, "recording": true, "status": status, "rate": null, "gauges": null, "take": null,
    });
    format!("event: array\nid: 1\ndata: {data}\n\n")
}

#[test]
fn a_token_is_asked_for_and_losses_that_grow_are_shown_until_they_stop() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    let mut page = Page::new(&service);
    let mut intercepted = Intercepted::new(&mut page);
    page.load();
    let headers = intercepted.answer(&mut page, "/events", 401, "{}");
    assert_eq!(headers["Authorization"], Value::Null);
    page.until("document.querySelector('#token-dialog').open");
    page.browser.evaluate("document.querySelector('#token').value = 'longtake_secret'");
    page.click("#token-form button");
    let headers = intercepted.answer(&mut page, "/events", 200, &event(2));
    assert_eq!(headers["Authorization"], "Bearer longtake_secret");
    // What was lost before the page looked is not being lost now.
    page.until("document.querySelector('#loss').textContent !== ''");
    assert!(page.text("#loss").starts_with("2 packets of the newest take are lost"));
    assert!(page.text("#buffers-detail").contains("the drives fall behind"));
    intercepted.answer(&mut page, "/events", 200, &event(7));
    page.until("document.querySelector('#loss').classList.contains('losing')");
    assert_eq!(page.text("#loss"), "Losing packets: 5 for lack of a free buffer");
    assert!(
        page.text("#announcement").contains("packets are being lost for lack of a free buffer")
    );
    let size = page
        .browser
        .evaluate("parseFloat(getComputedStyle(document.querySelector('#loss')).fontSize)");
    assert!(size.as_f64() >= Some(30.0), "{size}");
    page.browser.screenshot("dashboard-losing");
    // Names of arrays are text, and the token is in no place that outlives the tab.
    assert!(page.text("#arrays").starts_with("<b>radar</b>: recording, losing packets"));
    let kept = page.browser.evaluate(
        "[document.querySelector('#arrays b') === null, localStorage.length, document.cookie]",
    );
    assert_eq!(kept, json!([true, 0, ""]));
    page.until("!document.querySelector('#loss').classList.contains('losing')");
    assert!(page.text("#loss").starts_with("7 packets of the newest take are lost"));
}

#[test]
fn the_page_and_its_files_come_with_a_policy_that_allows_the_service_alone() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    let page = service.get("/");
    assert_eq!(
        (page.status, page.headers["content-type"].as_str()),
        (200, "text/html; charset=utf-8")
    );
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; ";
    let text = page.text();
    let files = text.split(['"']).filter(|part| part.starts_with('/') && part.contains('.'));
    let files: Vec<String> = files.map(str::to_owned).chain(["/".to_owned()]).collect();
    assert!(files.len() > 4, "{files:?}");
    for file in files.iter().filter(|file| !file.starts_with("/api/")) {
        let answer = service.get(file);
        assert!(
            answer.status == 200 && answer.headers["content-security-policy"].starts_with(policy),
            "{file}"
        );
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    for inline in ["<style", " style=", " onclick=", "http://", "https://"] {
        assert!(!text.replace("http://www.w3.org/2000/svg", "").contains(inline), "{inline}");
    }
    assert!(service.get("/uplot-LICENSE").text().starts_with("The MIT License"));
}
