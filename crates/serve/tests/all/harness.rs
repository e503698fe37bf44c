//! A service in a thread, arrays of files to serve, and a client that sees exactly what is sent.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread::JoinHandle;

use longtake::recording::{NewArray, Options as RecordOptions};
use longtake::{Array, ByteSize, FileFormat, Recording, Selection};
use longtake_serve::{Limits, Options, ServeError, Server};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// An array of two member files in a new folder.
pub struct Recorded {
    folder: TempDir,
}

impl Recorded {
    /// Records so many bytes of network traffic.
    pub fn traffic(bytes: u64) -> Self {
        let recorded = Self::empty();
        recorded.record(bytes);
        recorded
    }

    /// Nothing recorded yet.
    pub fn empty() -> Self {
        Self::empty_in("")
    }

    /// The same in a folder whose name begins so.
    pub fn empty_in(prefix: &str) -> Self {
        // Direct I/O needs a real disk.
        let folder =
            tempfile::Builder::new().prefix(prefix).tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        Self { folder: folder.expect("making a folder") }
    }

    pub fn options() -> RecordOptions {
        let new = NewArray {
            members: 2,
            member_size: Some(ByteSize(64 << 20)),
            segment: Some(ByteSize(4 << 20)),
            chunk: Some(ByteSize(252 << 10)),
            ..NewArray::default()
        };
        // More than any of them records, and quicker to be had than half a gibibyte.
        RecordOptions { new, memory: ByteSize(128 << 20), ..RecordOptions::default() }
    }

    /// Records so many bytes more.
    pub fn record(&self, bytes: u64) {
        let options = RecordOptions { until_bytes: Some(ByteSize(bytes)), ..Self::options() };
        let recording = Recording::builder("traffic:50MB/s", &self.place()).options(options);
        let account = recording.run(&mut ()).expect("files can be recorded on");
        assert!(account.is_complete(), "{:?}", account.ledger);
    }

    /// What it is opened by.
    pub fn place(&self) -> String {
        self.path().display().to_string()
    }

    /// The folder of its member files.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("radar")
    }

    pub fn open(&self) -> Array {
        Array::open(&self.place()).expect("it is whole")
    }

    /// What the library extracts.
    pub fn extracted(&self, selection: &Selection, format: FileFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.open().extract_to(selection, format, &mut bytes).expect("it can be read");
        bytes
    }

    /// A service of this array alone.
    pub fn served(&self) -> Service {
        self.served_within(Limits::default())
    }

    pub fn served_within(&self, limits: Limits) -> Service {
        self.served_as(Options { limits, ..Options::default() })
    }

    /// With these options, on a free port.
    pub fn served_as(&self, options: Options) -> Service {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Service::start(&Options { arrays: vec![self.place()], listen, ..options })
    }
}

/// A service that runs until this is dropped.
pub struct Service {
    address: SocketAddr,
    pcap_over_ip: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Service {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn start(options: &Options) -> Self {
        let server = Server::bind(options).expect("it can be served");
        let (address, pcap_over_ip) = (server.address(), server.pcap_over_ip());
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            server.run(async {
                stopped.await.ok();
                Ok(())
            })
        };
        Self { address, pcap_over_ip, stop: Some(stop), thread: Some(std::thread::spawn(run)) }
    }

    /// The address of its page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The address of PCAP-over-IP.
    pub fn pcap_over_ip(&self) -> SocketAddr {
        self.pcap_over_ip.expect("the test asked for it")
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// A new connection.
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).expect("it listens")
    }

    /// Sends bytes on a new connection, and nothing more.
    pub fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        // What is refused before all of it has come closes the connection.
        stream.write_all(bytes).ok();
        stream
    }

    /// Asks for an address, and leaves the answer to be read.
    pub fn ask(&self, path: &str) -> TcpStream {
        let host = self.address;
        self.send(
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
    }

    /// Sends a request with these headers and this body, and leaves the answer to be read.
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let (host, length) = (self.address, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        let head = format!("{head}Content-Length: {length}\r\n{headers}\r\n");
        self.send(format!("{head}{body}").as_bytes())
    }

    /// The answer to GET.
    pub fn get(&self, path: &str) -> Answer {
        Answer::read(self.ask(path))
    }

    /// The JSON that is answered with 200.
    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// The JSON that is answered to a request that fails with this status.
    pub fn failure(&self, status: u16, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        let failure = answer.json();
        for key in ["error", "remedy"] {
            assert!(failure[key].as_str().is_some_and(|text| !text.is_empty()), "{failure}");
        }
        failure
    }

    /// The value of a metric; None if it is not there.
    pub fn metric(&self, series: &str) -> Option<f64> {
        let text = self.get("/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map(|value| value.parse().expect("it is a number"))
    }

    /// Asks until the service says that nobody reads packets.
    pub fn wait_until_nobody_reads(&self) {
        while self.metric("longtake_serve_reading") != Some(0.0) {}
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it ran").expect("it did not panic").expect("it ended well");
        }
    }
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// Whether the body came to the end that HTTP requires.
    pub is_whole: bool,
}

impl Answer {
    pub fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let head = Self::head(&mut reader).expect("it is answered");
        Self::behind(head, &mut reader)
    }

    /// An answer of which the head was read.
    pub fn behind(
        (status, headers): (u16, BTreeMap<String, String>),
        reader: &mut impl BufRead,
    ) -> Self {
        let length = headers.get("content-length").map(|length| length.parse().expect("a number"));
        let mut body = Vec::new();
        let is_whole = match length {
            Some(length) => {
                reader.by_ref().take(length).read_to_end(&mut body).is_ok()
                    && body.len() as u64 == length
            }
            None => chunks(reader, &mut body).is_some(),
        };
        Self { status, headers, body, is_whole }
    }

    /// The status and the headers; None if the connection is closed without an answer.
    pub fn head(reader: &mut impl BufRead) -> Option<(u16, BTreeMap<String, String>)> {
        let status = line(reader)?.split(' ').nth(1)?.parse().ok()?;
        let mut headers = BTreeMap::new();
        loop {
            let header = line(reader)?;
            match header.split_once(':') {
                Some((name, value)) => {
                    headers.insert(name.to_ascii_lowercase(), value.trim().to_owned())
                }
                None => return Some((status, headers)),
            };
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.text()))
    }
}

/// A line without its end; None if there is none.
fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    line.strip_suffix("\r\n").map(str::to_owned)
}

/// Reads a body in chunks; None if it breaks off.
fn chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> Option<()> {
    loop {
        let length = u64::from_str_radix(&line(reader)?, 16).ok()?;
        let read = reader.by_ref().take(length).read_to_end(body).ok()?;
        if read as u64 != length || !line(reader)?.is_empty() {
            return None;
        }
        if length == 0 {
            return Some(());
        }
    }
}

/// Whether headers that every answer has are there.
pub fn is_guarded(answer: &Answer) -> bool {
    let policy = answer.headers.get("content-security-policy").map(String::as_str);
    policy.is_some_and(|policy| policy.starts_with("default-src 'none'"))
        && answer.headers.get("x-content-type-options").map(String::as_str) == Some("nosniff")
        && !answer.headers.keys().any(|name| name.starts_with("access-control"))
}
