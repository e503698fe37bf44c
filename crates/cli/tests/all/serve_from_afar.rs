//! `longtake serve` as an operator on another host meets it: two network namespaces, TLS and tokens, and ten thousand requests that
//! nobody should send.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base::Random;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
use nix::unistd::write;
use serde_json::Value;

use crate::harness::captures::{capinfos, tshark};
use crate::harness::namespaces::{Hosts, NEAR};
use crate::harness::{Ran, Recorder, Running, line, longtake, run, scratch, tool, wait_until};
use crate::serve::Service;
use crate::serve_access::record;

const CERTIFICATE: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=recorder";

/// A recorder on the near host, and what the far one needs to ask it.
struct Site<'a> {
    /// Ends before its host does.
    _service: Running,
    hosts: Hosts,
    folder: &'a Path,
    url: String,
}

impl<'a> Site<'a> {
    #[track_caller]
    fn new(folder: &'a Path) -> Self {
        let mut words = CERTIFICATE.split(' ');
        let mut openssl = tool(words.next().expect("it is one"), "openssl");
        openssl.args(words).args(["-addext", &format!("subjectAltName=IP:{NEAR}")]);
        run(openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(folder)).code(0);
        let hosts = Hosts::new();
        let mut serve = longtake();
        serve.args(["serve", "--listen", &format!("{NEAR}:7878"), "--array", "radar"]);
        serve.args(["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--tokens", "tokens.toml"]);
        let mut serve = hosts.near(&serve);
        let service = Running::start(serve.current_dir(folder).stdout(Stdio::null()));
        let site = Self { _service: service, hosts, folder, url: format!("https://{NEAR}:7878") };
        wait_until("the service listens", || site.curl(&[], "/").code == 0);
        site
    }

    /// curl on the far host.
    fn curl(&self, options: &[&str], path: &str) -> Ran {
        let mut curl = tool("curl", "curl");
        curl.args(["-sS", "--cacert"]).arg(self.folder.join("cert.pem")).args(options);
        run(&mut self.hosts.far(curl.arg(format!("{}{path}", self.url))))
    }

    /// The status of an answer to the far host; 000 without an answer.
    fn status(&self, options: &[&str], path: &str) -> String {
        let options = [options, &["-o", "/dev/null", "-w", "%{http_code}"]].concat();
        self.curl(&options, path).text()
    }
}

/// A header with a new token.
#[track_caller]
fn token(folder: &Path, name: &str, scope: &str) -> String {
    let create = format!("token create --name {name} --scope {scope} --expires 90d");
    let token = line(&format!("{create} --file @/tokens.toml"), folder).code(0).text();
    format!("Authorization: Bearer {}", token.trim())
}

/// The tokens' expiry is long ago.
fn expire(file: &Path) {
    let text = fs::read_to_string(file).expect("it is there");
    let expired = text.lines().map(|line| match line.starts_with("expires") {
        true => "expires = \"2020-01-01T00:00:00Z\"",
        false => line,
    });
    fs::write(file, expired.collect::<Vec<_>>().join("\n")).expect("there is space");
}

#[test]
fn an_operator_on_another_host_finds_a_flow_and_downloads_what_tshark_finds() {
    let folder = scratch();
    record(folder.path());
    let header = token(folder.path(), "operator", "read");
    let site = Site::new(folder.path());
    let page = site.curl(&[], "/").code(0).text();
    assert!(page.contains("<title>"), "{page}");
    let api = "/api/v1/arrays/radar";
    let listed = "/flows?top=1&by=packets&filter=ip+and+tcp+and+not+vlan";
    let listed = site.curl(&["-H", &header], &format!("{api}{listed}")).code(0).json();
    let flow = &listed["flows"][0];
    let id = flow["community_id"].as_str().expect("a text").replace('+', "%2B");
    let downloaded = folder.path().join("flow.pcapng");
    let output = downloaded.to_str().expect("a scratch path is text");
    site.curl(&["-H", &header, "-o", output], &format!("{api}/packets?community_id={id}")).code(0);
    // tshark finds the same packets in all that was recorded.
    line("extract @/radar -q -o @/whole.pcapng", folder.path()).code(0);
    let text = |key: &str| flow[key].as_str().expect("a text");
    let (source, destination) = (text("source"), text("destination"));
    let ports =
        format!("tcp.port=={} && tcp.port=={}", flow["source_port"], flow["destination_port"]);
    let filter = format!("ip.addr=={source} && ip.addr=={destination} && {ports}");
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len"];
    let wanted = [&["-Y", filter.as_str()][..], &fields].concat();
    let expected = tshark(&folder.path().join("whole.pcapng"), &wanted);
    assert!(expected.len() > 10, "{flow}");
    assert_eq!(tshark(&downloaded, &fields), expected);
    assert_eq!(capinfos(&downloaded), flow["packets"].as_u64().expect("a number"));
}

#[test]
fn without_a_valid_token_of_the_right_scope_another_host_gets_nothing_from_any_address() {
    let folder = scratch();
    record(folder.path());
    let header = token(folder.path(), "reader", "read");
    let site = Site::new(folder.path());
    let described = site.curl(&["-H", &header], "/api/v1/openapi.json").code(0).json();
    let mut tried = 0;
    let mut refused = |options: &[&str], expected: &str| {
        for (path, methods) in described["paths"].as_object().expect("an object") {
            let path = path.replace("{id}", "radar").replace("{take}", "last");
            for method in methods.as_object().expect("an object").keys() {
                let method = method.to_uppercase();
                if expected == "403" && !["POST", "DELETE"].contains(&method.as_str()) {
                    continue;
                }
                // A reader may send a query.
                if expected == "403" && path == "/query" {
                    continue;
                }
                let options = [options, &["-X", &method]].concat();
                assert_eq!(site.status(&options, &path), expected, "{method} {path} {options:?}");
                tried += 1;
            }
        }
    };
    refused(&[], "401");
    refused(&["-H", "Authorization: Bearer longtake_00"], "401");
    refused(&["-H", &header], "403");
    expire(&folder.path().join("tokens.toml"));
    refused(&["-H", &header], "401");
    // Without TLS there is no answer at all.
    let plain = site.url.replace("https", "http");
    let mut curl = tool("curl", "curl");
    let ran = run(&mut site.hosts.far(curl.args(["-sS", "-H", &header]).arg(format!("{plain}/"))));
    assert!(ran.code != 0 && ran.stdout.is_empty(), "{ran:?}");
    assert!(tried > 30, "{tried}");
}

/// Addresses and parts of them, whole and broken.
const PATHS: &[&str] = &[
    "",
    "/",
    "/takes",
    "/takes/last/ledger",
    "/takes/zz/ledger",
    "/flows",
    "/packets",
    "/protected",
    "/../../etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/%00",
    "/%ff",
    "//",
    "/<script>",
    "/takes/\u{202e}/ledger",
];

/// Parameters.
const KEYS: &[&str] = &[
    "since",
    "until",
    "take",
    "filter",
    "format",
    "top",
    "by",
    "group",
    "community_id",
    "array",
    "nothing",
    "%ff",
    "",
];

/// Values that suit some parameter, or none.
const VALUES: &[&str] = &[
    "-10m",
    "-1s",
    "now",
    "last",
    "2026-11-26T08:15:00Z",
    "18446744073709551616",
    "1e308",
    "-1",
    "0",
    "10",
    "udp+port+53",
    "udp+and+(",
    "not+not+not+",
    "pcap",
    "jsonl",
    "exe",
    "bytes",
    "hosts",
    "1:AAAA",
    "1:LQU9qZlK+B5F3KDmev6m5PMibrg=",
    "\u{fc}",
    "'\"",
    "%",
    "%00",
    "..%2f..%2fmember0",
    "{}",
    "\\",
    "",
];

fn any<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as u64) as usize]
}

/// A request by a seed: one that could be meant, with wrong parameters, headers or bodies, and often cut or changed besides.
fn hostile(random: &mut Random) -> Vec<u8> {
    let method = any(random, &["GET", "GET", "GET", "HEAD", "POST", "DELETE", "BREW", ""]);
    let mut path = match random.below(8) {
        0 => any(random, &["/metrics", "/query", "/", "/api/v1/openapi.json", "*", "http://[::1"])
            .to_owned(),
        _ => format!("/api/v1/arrays/radar{}", any(random, PATHS)),
    };
    for number in 0..random.below(4) {
        path.push(if number == 0 { '?' } else { '&' });
        path += &format!("{}={}", any(random, KEYS), any(random, VALUES));
    }
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n").into_bytes();
    match random.below(10) {
        0 => {
            request.extend(format!("X: {}\r\n", "y".repeat(random.below(1 << 17) as usize)).bytes())
        }
        1 => request.extend(format!("Content-Length: {}\r\n", random.below(u64::MAX)).bytes()),
        2 => request.extend(b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
        3 => request.extend(b"Authorization: Bearer longtake_\xff\xfe\r\n"),
        4 => request.extend(b"Range: bytes=0-,5-1,-9\r\nExpect: 100-continue\r\n"),
        _ => {}
    }
    request.extend(b"Connection: close\r\n\r\n");
    match random.below(8) {
        0 => request.truncate(random.below(request.len() as u64 + 1) as usize),
        1 => {
            let at = random.below(request.len() as u64) as usize;
            request[at] ^= 1 << random.below(8);
        }
        2 => request.extend(b"{\"since\": 1e999, \"until\": [[[[[["),
        3 => drop(request.splice(..0, (0..64).map(|_| random.below(256) as u8))),
        _ => {}
    }
    request
}

/// Sends bytes, and reads a little of the answer. Whether there is one is the service's affair.
fn send(address: &str, bytes: &[u8]) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket has one");
    stream.write_all(bytes).ok();
    stream.shutdown(std::net::Shutdown::Write).ok();
    stream.take(1 << 16).read_to_end(&mut Vec::new()).ok();
}

/// Begins a request on a connection that may still have to be accepted: the kernel keeps a hundred or so waiting.
fn begin(address: &str) -> Option<OwnedFd> {
    let kind = (AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_NONBLOCK);
    let socket = socket(kind.0, kind.1, kind.2, None).expect("there are descriptors");
    let address: SockaddrIn = address.parse().expect("it is an address");
    match connect(socket.as_raw_fd(), &address) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(_) => return None,
    }
    write(&socket, b"GET /metrics HTTP/1.1\r\nHo").ok();
    Some(socket)
}

/// Memory of a process in bytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("the kernel tells it") << 10
}

#[test]
fn ten_thousand_hostile_requests_change_neither_the_service_nor_the_recording() {
    let folder = scratch();
    let array = folder.path().join("radar");
    let small = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB --when-full wrap";
    let recorder = Recorder::start(&format!("--from traffic:1MB/s --to @ {small}"), &array);
    let log = folder.path().join("serve.log");
    let mut serve = longtake();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--array"]).arg(&array);
    let service = Service::start(serve.stderr(fs::File::create(&log).expect("there is space")));
    let address = service.address.strip_prefix("http://").expect("it is not encrypted").to_owned();
    let lives = || {
        let mut curl = tool("curl", "curl");
        let listed = run(curl.args(["-sS", &format!("{}/api/v1/arrays", service.address)]));
        let listed: Value = listed.code(0).json();
        assert_eq!(listed["arrays"][0]["recording"], true, "{listed}");
    };
    let send_all = |seeds: std::ops::Range<u64>| {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (address, seeds) = (&address, seeds.clone());
                scope.spawn(move || {
                    for seed in seeds.filter(|seed| seed % 4 == thread) {
                        send(address, &hostile(&mut Random::new(seed)));
                    }
                });
            }
        });
    };
    // Reads for clients that have left may still be under way, and hold buffers.
    let at_rest = || {
        wait_until("no request reads packets", || {
            let mut curl = tool("curl", "curl");
            let metrics = run(curl.args(["-sS", &format!("{}/metrics", service.address)]));
            metrics.code(0).text().lines().any(|line| line == "longtake_serve_reading 0")
        });
        resident(service.pid())
    };
    send_all(0..2000);
    lives();
    let before = at_rest();
    // A thousand connections that begin a request and never end it. The service closes them in time; none is in another's way.
    let begun: Vec<_> = (0..1000).filter_map(|_| begin(&address)).collect();
    assert!(begun.len() > 60, "{}", begun.len());
    drop(begun);
    lives();
    send_all(2000..10_000);
    lives();
    at_rest();
    // What is not read any more is given back soon.
    wait_until("the service has as little memory as before", || {
        resident(service.pid()) < before + (64 << 20)
    });
    let said = fs::read_to_string(&log).expect("it is text");
    assert!(!said.contains("panicked"), "{said}");
    let ended = recorder.stop().code(0);
    assert_eq!(ended.event("finished")["ledger"]["lost"]["no_buffer"]["packets"], 0);
}
