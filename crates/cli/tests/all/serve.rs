//! `longtake serve`: the program as a service, asked by curl, during a recording and after it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::documents::lines;
use crate::harness::captures::capinfos;
use crate::harness::{Recorder, line, longtake, ran, run, scratch, tool};
use crate::measure_rig::{LoopDevice, MIB};

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";

/// The page's own address, which tests replace by one with a free port.
const ADDRESS: &str = "http://127.0.0.1:7878";

/// A service of arrays, which ends with this.
pub struct Service {
    child: Child,
    /// Their names, with commas between them.
    arrays: String,
    pub address: String,
}

impl Service {
    /// Of one array, once it is ready.
    fn of(array: &Path) -> Self {
        let mut command = longtake();
        let service =
            Self::start(command.args(["serve", "--listen", "127.0.0.1:0", "--array"]).arg(array));
        assert_eq!(service.arrays, "radar");
        service
    }

    pub fn start(command: &mut Command) -> Self {
        let (child, ready) = started(command);
        let parts = ready.strip_prefix("serving ").and_then(|rest| rest.split_once(" on "));
        let (arrays, address) = parts.unwrap_or_else(|| panic!("'{ready}'"));
        let address = address.trim_end_matches('/').to_owned();
        Self { child, arrays: arrays.to_owned(), address }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What curl prints.
    fn get(&self, path: &str) -> Vec<u8> {
        let url = format!("{}{path}", self.address);
        run(tool("curl", "curl").args(["-sS", "--fail-with-body", &url])).code(0).stdout
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.get(path)).expect("it is JSON")
    }
}

/// A service that has been started, and the line that it prints once it is ready.
fn started(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it can be started");
    let mut ready = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut ready).expect("it is text");
    (child, ready.trim_end().to_owned())
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What the program prints with `--json` about the array in a folder.
fn shown(command: &str, folder: &Path) -> Value {
    line(&format!("{command} @/radar --json"), folder).code(0).json()
}

#[test]
fn a_recording_under_way_is_served_and_packets_are_those_of_extract() {
    let folder = scratch();
    let array = folder.path().join("radar");
    let recorder = Recorder::start(&format!("--from traffic:1MB/s --to @ {SMALL}"), &array);
    let service = Service::of(&array);
    let last = loop {
        let takes = service.json("/api/v1/arrays/radar/takes");
        if let Some(last) = takes["takes"][0]["last_packet"].as_str() {
            assert_eq!(takes["recording"], true);
            break last.to_owned();
        }
    };
    let served = folder.path().join("served.pcapng");
    fs::write(&served, service.get(&format!("/api/v1/arrays/radar/packets?until={last}")))
        .expect("there is room");
    recorder.stop().code(0);
    line(&format!("extract @/radar --until {last} -o @/own.pcapng"), folder.path()).code(0);
    // Each packet by time, lengths and bytes. tshark also reads the section that states the completeness.
    let packets = |name: &str| {
        let mut tshark = tool("tshark", "tshark");
        tshark.args(["-r"]).arg(folder.path().join(name)).args(["-x", "-t", "e"]);
        run(&mut tshark).code(0).text()
    };
    let expected = packets("own.pcapng");
    assert!(expected.lines().count() > 1000 && packets("served.pcapng") == expected);
    let mut ledger = service.json("/api/v1/arrays/radar/takes/last/ledger");
    let completeness = ledger.as_object_mut().expect("an object").remove("completeness");
    assert_eq!(completeness.expect("it is stated")["complete"], true);
    assert_eq!(ledger, shown("ledger", folder.path()));
    let take = ledger["take"].as_str().expect("a text");
    let metrics = String::from_utf8(service.get("/metrics")).expect("it is text");
    let stored = &ledger["ledger"]["stored"]["packets"];
    let line =
        format!("longtake_take_stored_packets_total{{array=\"radar\",take=\"{take}\"}} {stored}");
    assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
}

#[test]
fn the_examples_of_the_page_about_serving_run() {
    let folder = scratch();
    line(
        &format!("record -q --from traffic:50MB/s --until-bytes 5MB --to @/radar {SMALL}"),
        folder.path(),
    )
    .code(0);
    let service = Service::of(&folder.path().join("radar"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve.md");
    let page = fs::read_to_string(page).expect("it is there");
    let examples: Vec<String> =
        lines::code(&page).into_iter().filter(|line| line.starts_with("curl -s")).collect();
    assert_eq!(examples.len(), 10);
    // What never ends is left after its first line.
    let endless = |example: &String| example.ends_with("/events");
    assert_eq!(examples.iter().filter(|example| endless(example)).count(), 1);
    for mut example in examples {
        if endless(&example) {
            example.push_str(" | head -n 1");
        }
        assert!(example.contains(ADDRESS), "{example}");
        let command = example
            .replace(ADDRESS, &service.address)
            .replace("curl ", "curl --fail-with-body -S ");
        let command = command.replace("-sf ", "-s ");
        let printed =
            run(tool("bash", "bash").args(["-c", &command]).current_dir(folder.path())).code(0);
        let saved = folder.path().join("dns.pcapng");
        assert!(
            !printed.stdout.is_empty() || fs::metadata(saved).is_ok_and(|file| file.len() > 500),
            "{example}"
        );
    }
    // The first command of the page, on this array and another port.
    let named = lines::ours(&page).iter().any(|line| line.starts_with("longtake serve --array "));
    assert!(named, "the page begins with how to start it");
}

#[test]
fn the_client_in_python_downloads_the_flow_with_the_most_bytes() {
    let folder = scratch();
    let recorded = "record -q --from traffic:50MB/s --until-bytes 5MB --to @/radar";
    line(&format!("{recorded} {SMALL}"), folder.path()).code(0);
    let service = Service::of(&folder.path().join("radar"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve.md");
    let page = fs::read_to_string(page).expect("it is there");
    let client = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    let client = client.expect("the page has it");
    assert!(client.lines().filter(|line| !line.is_empty()).count() <= 20, "{client}");
    let mut python = tool("python3", "python3");
    python.args(["-c", client, &service.address]).current_dir(folder.path());
    let printed = run(&mut python).code(0).text();
    let flow = &shown("flows --top 1", folder.path())["flows"][0];
    let packets = flow["packets"].as_u64().expect("a number");
    assert!(printed.starts_with("radar: lost {"), "{printed}");
    assert!(printed.ends_with(&format!("largest flow {packets} packets\n")), "{printed}");
    assert_eq!(capinfos(&folder.path().join("radar.pcapng")), packets);
}

#[test]
fn arrays_on_drives_are_served_unless_others_are_named() {
    let folder = scratch();
    let drive = LoopDevice::new(24 * MIB);
    let (name, path) = (format!("sonar-{}", std::process::id()), drive.text());
    let create =
        format!("array create --name {name} {path} --erase {path} --segment 1MiB --chunk 64KiB");
    line(&create, folder.path()).code(0);
    let mut command = longtake();
    let (child, ready) =
        started(command.args(["serve", "--json", "--listen", "[::1]:0", "--array", &name]));
    let ready: Value = serde_json::from_str(&ready).expect("it is JSON");
    let url = ready["url"].as_str().expect("a text").trim_end_matches('/').to_owned();
    let service = Service { child, arrays: String::new(), address: url };
    assert_eq!((&ready["event"], &ready["arrays"]), (&"ready".into(), &serde_json::json!([name])));
    assert_eq!(service.json("/api/v1/arrays")["arrays"][0]["name"], name);
    // Other tests have arrays on drives, too.
    let mut command = longtake();
    let service = Service::start(command.args(["serve", "--listen", "127.0.0.1:0"]));
    assert!(service.arrays.split(", ").any(|array| array == name), "{}", service.arrays);
    let takes = service.json(&format!("/api/v1/arrays/{name}/takes"));
    assert_eq!(takes["takes"], serde_json::json!([]));
}

/// The niceness of each thread of a process but its first, by the thread's name.
fn niceness(pid: u32) -> Vec<(String, i32)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").map(Result::unwrap);
    let others = threads.filter(|thread| thread.file_name().to_string_lossy() != pid.to_string());
    let told = others.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    let read = told.map(|stat| {
        let (name, rest) = stat.rsplit_once(')').expect("proc(5) puts the name in parentheses");
        let name = name.split_once('(').expect("both").1.to_owned();
        // The 19th of all, the 17th behind the name.
        let nice = rest.split_whitespace().nth(16).expect("so many");
        (name, nice.parse().expect("a number"))
    });
    read.collect()
}

#[test]
fn the_service_has_the_lowest_priority() {
    let folder = scratch();
    let record = format!("record --from synthetic:max --until-bytes 10MB -q --to @/radar {SMALL}");
    line(&record, folder.path()).code(0);
    let service = Service::of(&folder.path().join("radar"));
    service.get("/api/v1/arrays/radar/packets");
    let threads = niceness(service.pid());
    assert!(threads.len() >= 2, "{threads:?}");
    assert!(threads.iter().all(|(name, nice)| name == "serve" && *nice == 19), "{threads:?}");
}

#[test]
fn a_signal_ends_the_service_and_with_it_what_it_sends() {
    let folder = scratch();
    line(
        &format!("record -q --from traffic:max --until-bytes 60MB --to @/radar {SMALL}"),
        folder.path(),
    )
    .code(0);
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut service = Service::of(&folder.path().join("radar"));
        let url = format!("{}/api/v1/arrays/radar/packets", service.address);
        let curl =
            |command: &mut Command| command.args(["-sN", &url]).stdout(Stdio::piped()).spawn();
        let mut reader = curl(&mut tool("curl", "curl")).expect("it can be started");
        // Once something is sent, and more waits than the pipe and the sockets hold.
        let mut sent = reader.stdout.take().expect("it is piped");
        std::io::Read::read_exact(&mut sent, &mut [0; 1000]).expect("packets come");
        kill(Pid::from_raw(service.child.id().cast_signed()), signal).expect("it runs");
        assert!(service.child.wait().expect("it ends").success(), "{signal}");
        std::io::copy(&mut sent, &mut std::io::sink()).expect("it can be read");
        let code = reader.wait().expect("it ends").code();
        assert!(matches!(code, Some(18 | 56)), "curl takes {code:?} for complete");
    }
}

#[test]
fn what_cannot_be_served_is_named_at_once() {
    let folder = scratch();
    line(
        &format!("record -q --from synthetic:50MB/s --until-bytes 1MB --to @/radar {SMALL}"),
        folder.path(),
    )
    .code(0);
    let array = folder.path().join("radar");
    let array = array.to_str().expect("it is text");
    let words = [
        "0.0.0.0:7878",
        "TLS and a token are required",
        "--tls-cert cert.pem",
        "127.0.0.1:7878",
        "SSH tunnel",
    ];
    ran(["serve", "--array", array, "--listen", "0.0.0.0:7878"]).code(2).says(&words);
    ran(["serve", "--array", array, "--listen", "example.org:80"]).code(2);
    let everywhere = "0.0.0.0:57012";
    ran(["serve", "--array", array, "--pcap-over-ip", everywhere]).code(2).says(&[everywhere]);
    let mut command = longtake();
    command.args(["serve", "--array", array, "--listen", "127.0.0.1:0"]);
    let (child, ready) = started(command.args(["--pcap-over-ip", "127.0.0.1:0"]));
    let _service = Service { child, arrays: String::new(), address: String::new() };
    assert!(ready.contains("/, packets on TCP@127.0.0.1:"), "{ready}");
    let none = folder.path().join("none");
    ran(["serve", "--array", none.to_str().expect("it is text")]).code(1).says(&["none"]);
    let service = Service::of(Path::new(array));
    let taken = service.address.strip_prefix("http://").expect("an address");
    ran(["serve", "--array", array, "--listen", taken]).code(1).says(&[taken, "--listen"]);
}
