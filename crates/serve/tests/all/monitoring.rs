//! What is shipped for Prometheus and Grafana: it names metrics that there are, its alerts come when they should, and
//! Prometheus reads what the service exports.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use longtake::Recording;
use longtake::array::Health;
use longtake::metrics::Metrics;
use serde_json::json;

use crate::harness::Recorded;

const RULES: &str = "packaging/monitoring/longtake.rules.yml";
const GRAFANA: &str = "packaging/monitoring/longtake.grafana.json";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program of Prometheus: as `./test` has unpacked it, or installed.
fn program(name: &str) -> Command {
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../unpacked/usr/bin").join(name);
    Command::new(if unpacked.exists() { unpacked } else { name.into() })
}

/// Runs promtool. Returns what it prints; None if it fails.
fn promtool(arguments: &[&str]) -> Option<String> {
    let output = program("promtool").args(arguments).output();
    let output = output.expect("promtool: ./test unpacks it; or apt-get install prometheus");
    output.status.success().then(|| String::from_utf8(output.stdout).expect("UTF-8"))
}

/// The names of Longtake's metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("longtake_")).collect()
}

/// Metrics of a recording from an interface onto an NVMe drive.
fn of_drives_and_links() -> String {
    let of_array = vec![("array", "radar".to_owned())];
    let metrics = Metrics::default();
    metrics.enter_recorder(&of_array, &json!({"link": "no_carrier"}));
    let health = Health {
        percent_used: 7,
        spare_percent: 98,
        written_bytes: 1 << 50,
        temperature_celsius: Some(61),
        critical_warning: 4,
    };
    metrics.enter_health(&of_array, &[None, Some(health)]);
    metrics.textfile().expect("it is text")
}

#[test]
fn drives_tell_their_health_and_interfaces_their_link() {
    let text = of_drives_and_links();
    let of_member = "{array=\"radar\",member=\"1\"}";
    for (series, value) in [
        (format!("longtake_member_temperature_celsius{of_member}"), 61.0),
        (format!("longtake_member_worn_ratio{of_member}"), 0.07),
        (format!("longtake_member_spare_ratio{of_member}"), 0.98),
        (format!("longtake_member_critical_warning{of_member}"), 4.0),
        ("longtake_recorder_link_up{array=\"radar\"}".to_owned(), 0.0),
    ] {
        assert!(text.lines().any(|line| line == format!("{series} {value:?}")), "{series}: {text}");
    }
    assert!(!text.contains("member=\"0\""), "{text}");
}

#[test]
fn alerts_and_the_dashboard_use_metrics_that_there_are() {
    let recorded = Recorded::empty();
    let recording = Recording::builder("traffic:2MB/s", &recorded.place());
    let recording = recording.options(Recorded::options()).start().expect("it can be recorded on");
    let service = recorded.served();
    let mut text = service.get("/metrics").text();
    recording.stop();
    recording.wait().expect("it ends");
    // What is missing is known once the take is on the array.
    text += &service.get("/metrics").text();
    // There are neither NVMe drives nor an interface here.
    text += &of_drives_and_links();
    let exported = names(&text);
    for file in [RULES, GRAFANA] {
        let used = fs::read_to_string(root().join(file)).expect("it is there");
        let used = names(&used);
        assert!(used.len() > 8, "{file}: {used:?}");
        let unknown: Vec<_> = used.difference(&exported).collect();
        assert!(unknown.is_empty(), "{file} uses metrics that are not exported: {unknown:?}");
    }
    let grafana = fs::read_to_string(root().join(GRAFANA)).expect("it is there");
    let grafana: serde_json::Value = serde_json::from_str(&grafana).expect("JSON");
    for panel in grafana["panels"].as_array().expect("panels") {
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{panel}");
    }
}

#[test]
fn alerts_come_when_they_should_and_only_then() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/alerts.yml");
    let passed = promtool(&["test", "rules", cases.to_str().expect("UTF-8")]);
    assert!(passed.is_some(), "`promtool test rules {}` fails", cases.display());
    let cases = fs::read_to_string(cases).expect("it is there");
    let rules = fs::read_to_string(root().join(RULES)).expect("it is there");
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let tried = format!("alertname: {alert}\n        exp_alerts:\n");
        assert!(cases.contains(&tried), "nothing raises {alert}");
    }
}

/// Prometheus, until this is dropped.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn prometheus_reads_what_the_service_exports() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    let folder = tempfile::tempdir().expect("there is space");
    let rules = root().join(RULES).canonicalize().expect("it is there");
    let target = service.address();
    let config = format!(
        "rule_files: ['{}']\nscrape_configs:\n  - job_name: longtake\n    scrape_interval: 1s\n    static_configs: [{{targets: \
         ['{target}']}}]\n",
        rules.display()
    );
    let file = folder.path().join("prometheus.yml");
    fs::write(&file, config).expect("there is space");
    // A port that is free now may be taken by the time that Prometheus listens; then it ends, and another one is tried.
    let found = (0..5).find_map(|_| {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.expect("a port is free");
        let mut prometheus = program("prometheus");
        prometheus.arg(format!("--config.file={}", file.display()));
        prometheus.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        prometheus.arg(format!("--web.listen-address={address}"));
        prometheus.stdout(Stdio::null()).stderr(Stdio::null());
        let mut prometheus = Prometheus(prometheus.spawn().expect("promtool is there"));
        let (url, query) = (format!("http://{address}"), "longtake_take_stored_packets_total");
        loop {
            let ended = prometheus.0.try_wait().expect("it is a child");
            let answer = promtool(&["query", "instant", &url, query]).unwrap_or_default();
            if ended.is_some() || !answer.trim().is_empty() {
                return (!answer.trim().is_empty()).then_some(answer);
            }
        }
    });
    let found = found.expect("Prometheus listens");
    let ledger = service.json("/api/v1/arrays/radar/takes/last/ledger");
    let stored = &ledger["ledger"]["stored"]["packets"];
    assert!(found.contains(&format!("=> {stored} @")), "{stored} in {found}");
}
