//! A headless Chromium, spoken to by the DevTools protocol over a pair of pipes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

const PROGRAM: &str = "/usr/bin/chromium";
/// How long an answer may take before the browser counts as hung.
const PATIENCE: Duration = Duration::from_secs(90);

/// A browser with one page. It ends with this value.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    number: u64,
    /// What came between the answers.
    events: VecDeque<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts it and opens an empty page that reports its console, errors and requests.
    pub fn start() -> Self {
        assert!(
            Path::new(PROGRAM).exists(),
            "{PROGRAM} is missing: apt-get install --no-install-recommends chromium"
        );
        let profile = tempfile::tempdir().expect("a folder for the browser's profile");
        // The protocol's pipes are descriptors 3 and 4; the shell puts stdin and stdout there.
        let mut child = Command::new("/bin/sh")
            .arg("-c")
            .arg("exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null")
            .arg("sh")
            .args([
                PROGRAM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
            ])
            .args(["--no-first-run", "--disable-extensions", "--disable-dev-shm-usage"])
            .args(["--disable-background-networking", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starting chromium");
        let to = child.stdin.take().expect("its pipe");
        let mut out = BufReader::new(child.stdout.take().expect("its pipe"));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            session: String::new(),
            number: 0,
            events: VecDeque::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Page.setLifecycleEventsEnabled", json!({ "enabled": true }));
        // The new tab may still be on its way to where it began.
        browser.open_url("about:blank");
        browser
    }

    /// Sends a command and waits for its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&message).expect("a message");
        bytes.push(0);
        self.to.write_all(&bytes).expect("writing to chromium");
        loop {
            let message = self.receive(method);
            if message["id"] != json!(self.number) {
                self.events.push_back(message);
                continue;
            }
            assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
            return message["result"].clone();
        }
    }

    /// Waits for an event that may have come already.
    pub fn wait(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) {
        let found = |event: &Value| event["method"] == json!(method) && wanted(&event["params"]);
        while !self.events.iter().any(found) {
            let message = self.receive(method);
            self.events.push_back(message);
        }
    }

    /// Everything of these kinds that has happened.
    pub fn happened(&self, methods: &[&str]) -> Vec<Value> {
        let named = |event: &&Value| event["method"].as_str().is_some_and(|m| methods.contains(&m));
        self.events.iter().filter(named).cloned().collect()
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.open_url(&format!("file://{}", file.display()));
    }

    /// Opens an address and waits until it is loaded.
    pub fn open_url(&mut self, url: &str) {
        let begun = self.call("Page.navigate", json!({ "url": url }));
        let loader = begun["loaderId"].clone();
        assert!(loader.is_string(), "{url}: {begun}");
        self.wait("Page.lifecycleEvent", |event| {
            event["loaderId"] == loader && event["name"] == "load"
        });
    }

    /// The value of an expression, awaited.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression}: {}",
            result["exceptionDetails"]
        );
        result["result"]["value"].clone()
    }

    /// Shows the page in a window of this many pixels.
    pub fn resize(&mut self, width: u32, height: u32, mobile: bool) {
        let params = json!({
            "width": width, "height": height, "mobile": mobile,
            "deviceScaleFactor": if mobile { 2 } else { 1 },
        });
        self.call("Emulation.setDeviceMetricsOverride", params);
        self.settle();
    }

    /// Shows the page as a medium (`screen`, `print`) and to a reader who prefers a theme.
    pub fn show_as(&mut self, media: &str, theme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": media, "features": features }));
        self.settle();
    }

    /// Waits until the page has drawn what it was told.
    pub fn settle(&mut self) {
        let frames = "new Promise(d => requestAnimationFrame(() => requestAnimationFrame(() => \
                      requestAnimationFrame(() => d(true)))))";
        assert_eq!(self.evaluate(frames), json!(true));
    }

    /// What the page said on the console, threw, or asked for: all but `file` and its own memory (data and blobs).
    pub fn complaints(&self, file: &Path) -> Vec<Value> {
        let own = format!("file://{}", file.display());
        let mut requests = self.happened(&["Network.requestWillBeSent"]);
        requests.retain(|event| {
            let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
            url != own && !url.starts_with("data:") && !url.starts_with("blob:")
        });
        let said = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
        self.happened(&said).into_iter().chain(requests).collect()
    }

    /// The most by which anything makes the page wider than its window, in pixels.
    pub fn overflow(&mut self) -> Value {
        self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    }

    /// For each chart, how many colours its canvas holds; one would be an empty sheet.
    pub fn colours_of_charts(&mut self) -> Vec<u64> {
        let counts = self.evaluate(
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
        counts.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
    }

    /// Keeps the whole page as a picture in the folder that `LONGTAKE_SCREENSHOTS` names, if it names one.
    pub fn screenshot(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("LONGTAKE_SCREENSHOTS") else { return };
        let how = json!({ "format": "png", "captureBeyondViewport": true });
        let shot = self.call("Page.captureScreenshot", how);
        let file = Path::new(&folder).join(format!("{name}.png.base64"));
        std::fs::write(file, shot["data"].as_str().unwrap()).unwrap();
    }

    fn receive(&mut self, purpose: &str) -> Value {
        match self.from.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(error) => panic!("waiting for {purpose}: chromium does not answer: {error}"),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends its own children when its pipe breaks; killing it is for when it hangs.
        let close = b"{\"id\":0,\"method\":\"Browser.close\"}\0";
        let closing = self.to.write_all(close).is_ok();
        for _ in 0..100 {
            if !closing || matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
