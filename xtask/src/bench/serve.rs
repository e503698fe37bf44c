//! The service beside a recording and alone: what eight clients cost the recording, how fast a flow's first packet and a whole
//! take come, and what the service takes when nobody asks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::comparison::{Comparison, Goal, Unit};
use super::folder::Folder;
use super::rounds::{Contestant, Figures, alone, interleaved};
use super::{Setting, program};

/// Bytes of packets in the take.
const TAKE_BYTES: u64 = 10_000_000_000;
/// Segments of the take, of the length that members of some size have by default: their indexes have room for all flows.
const SEGMENT: &str = "256MiB";
/// Packets of the flow that is asked for.
const FLOW_PACKETS: u64 = 1000;
/// Clients that download beside a recording.
const CLIENTS: usize = 8;
/// How long a recording lasts.
const RECORDING: &str = "10s";
/// Share of the drives' rate that is recorded.
const SHARE: f64 = 0.9;
/// How long an idle service is watched.
const IDLE: Duration = Duration::from_secs(30);
/// Bytes of member files of the large array. They are sparse: what was never written reads as zeros.
const LARGE_BYTES: u64 = 10_000_000_000_000;

/// Runs it.
///
/// # Errors
/// If an array can't be recorded or served.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let rig = Rig::new(setting)?;
    let mut found = vec![rig.beside_clients(setting.rounds)?];
    let bytes = TAKE_BYTES.to_string();
    let take = ["--until-bytes", bytes.as_str(), "--segment", SEGMENT];
    rig.record("array", &[&["--from", "traffic:500MB/s"][..], &take].concat())?;
    found.extend(rig.downloads(setting.rounds)?);
    found.extend(rig.idle()?);
    found.push(rig.start(setting.rounds)?);
    Ok(found)
}

/// A folder of arrays, deleted in the end.
struct Rig {
    directory: Folder,
    longtake: PathBuf,
}

impl Rig {
    fn new(setting: &Setting) -> Result<Self> {
        let directory = setting.dir.join("serve");
        fs::create_dir_all(&directory)?;
        Ok(Self { directory: directory.into(), longtake: setting.longtake()? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Records into an array of four members of 3 GiB. Returns what the last line of JSON says.
    fn record(&self, array: &str, options: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.longtake);
        command.args(["record", "--json", "--keep-privileges", "--member-size", "3GiB"]);
        command.args(["--json-every", "1h", "--to"]).arg(self.path(array)).args(options);
        let output = command.stdin(Stdio::null()).output().context("starting longtake record")?;
        // 3 says that packets were lost, which is what is counted here.
        ensure!(matches!(output.status.code(), Some(0 | 3)), "{command:?}: {}", output.status);
        let told = String::from_utf8(output.stdout).context("the events of a recording")?;
        let last = told.lines().last().context("a recording says nothing")?;
        serde_json::from_str(last).context("the last event of a recording")
    }

    /// A recording at a share of the drives' rate, with clients and without.
    fn beside_clients(&self, rounds: u32) -> Result<Comparison> {
        let ring = ["--when-full", "wrap", "--for", RECORDING, "--from"];
        let fastest = self.record("ring", &[&ring[..], &["synthetic:max,size=9000"]].concat())?;
        let rate = SHARE * program::number(&fastest, "/average_rate")?;
        let source = format!("synthetic:{:.0}MB/s,size=9000", rate / 1e6);
        let options = [&ring[..], &[source.as_str()]].concat();
        let lost = std::cell::Cell::new([0.0; 2]);
        let downloaded = AtomicU64::new(0);
        let record = |who: usize| -> Result<f64> {
            let account = self.record("ring", &options)?;
            let offered = program::number(&account, "/ledger/offered/packets")?;
            let stored = program::number(&account, "/ledger/stored/packets")?;
            let mut counts = lost.get();
            counts[who] += offered - stored;
            lost.set(counts);
            Ok(program::number(&account, "/ledger/stored/bytes")?
                / program::number(&account, "/after_s")?)
        };
        let ours: Contestant<'_> = Box::new(|| {
            let service = Service::start(&self.longtake, &self.path("ring"))?;
            service.with_clients(&downloaded, || record(0))
        });
        let [ours, without] =
            interleaved(rounds, false, [ours, Box::new(|| record(1)) as Contestant<'_>])?;
        let [with_clients, alone] = lost.get();
        let downloaded = downloaded.into_inner() as f64 / 1e9 / f64::from(rounds);
        Ok(Comparison {
            benchmark: "serve",
            what: format!(
                "recording at 90 % of the drives' rate beside {CLIENTS} clients and a dashboard, which download {downloaded:.1} GB; \
                 packets lost: {with_clients} (alone: {alone})"
            ),
            reference: Some(("the same recording alone".to_owned(), without)),
            ours,
            unit: Unit::BytesPerS,
            goal: Some(Goal::Ratio(0.97)),
        })
    }

    /// A whole take, and the first packet of a flow.
    fn downloads(&self, rounds: u32) -> Result<[Comparison; 2]> {
        let array = self.path("array");
        program::run(Command::new(&self.longtake).args(["array", "index"]).arg(&array))?;
        let service = Service::start(&self.longtake, &array)?;
        let url = "/api/v1/arrays/array";
        let extract: Contestant<'_> = Box::new(|| {
            let start = Instant::now();
            let mut extract = Command::new(&self.longtake);
            extract.args(["extract", "-q", "-o", "-"]).arg(&array).stdout(Stdio::piped());
            let mut child = extract.spawn().context("starting longtake extract")?;
            let bytes = drain(child.stdout.take().context("a pipe")?)?;
            ensure!(child.wait()?.success(), "longtake extract failed");
            Ok(bytes as f64 / start.elapsed().as_secs_f64())
        });
        let ours: Contestant<'_> = Box::new(|| {
            let start = Instant::now();
            let bytes = drain(service.get(&format!("{url}/packets"))?)?;
            ensure!(bytes >= TAKE_BYTES, "the download ended after {bytes} bytes");
            Ok(bytes as f64 / start.elapsed().as_secs_f64())
        });
        let [ours, extract] = interleaved(rounds, true, [ours, extract])?;
        let whole = Comparison {
            benchmark: "serve",
            what: "download of a take of 10 GB as pcapng".to_owned(),
            reference: Some(("longtake extract -o - into a pipe".to_owned(), extract)),
            ours,
            unit: Unit::BytesPerS,
            goal: Some(Goal::Ratio(0.8)),
        };
        let flow = self.flow(&array)?;
        let first = || {
            nix::unistd::sync();
            fs::write("/proc/sys/vm/drop_caches", "3")
                .context("dropping the page cache (it takes root)")?;
            let start = Instant::now();
            let address = format!("{url}/packets?format=jsonl&{flow}");
            let mut answer = service.get(&address)?;
            let mut line = String::new();
            answer.read_line(&mut line)?;
            let first = start.elapsed().as_secs_f64();
            ensure!(line.contains("time"), "the first line is {line}");
            // What is still read for a client that has left would be in the way of the next round.
            drain(answer)?;
            Ok(first)
        };
        let first = Comparison {
            benchmark: "serve",
            what: "first packet of a flow of about 1,000 packets in 10 GB, page cache dropped"
                .to_owned(),
            reference: None,
            ours: alone(rounds, first)?,
            unit: Unit::Seconds,
            goal: Some(Goal::Value(0.05)),
        };
        Ok([whole, first])
    }

    /// A flow of about a thousand packets, as a list of flows has it: its hosts and its Community ID, for an address.
    fn flow(&self, array: &Path) -> Result<String> {
        let mut flows = Command::new(&self.longtake);
        flows.args(["flows", "--by", "packets", "--top", "20000", "--community-id", "--json"]);
        let flows = program::run(flows.arg(array))?;
        let flows: Value = serde_json::from_slice(&flows).context("longtake flows")?;
        let rows = flows["flows"].as_array().context("no flows")?;
        let near =
            |row: &&Value| row["packets"].as_u64().map(|packets| packets.abs_diff(FLOW_PACKETS));
        let with_id = rows.iter().filter(|row| row["community_id"].is_string());
        let flow = with_id.min_by_key(near).context("no flow")?;
        let text =
            |name: &str| flow[name].as_str().with_context(|| format!("a flow has no {name}"));
        let id = text("community_id")?.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let (source, destination) = (text("source")?, text("destination")?);
        Ok(format!("filter=host%20{source}%20and%20host%20{destination}&community_id={id}"))
    }

    /// Memory and wake-ups after a download, when nobody asks any more.
    fn idle(&self) -> Result<[Comparison; 2]> {
        let service = Service::start(&self.longtake, &self.path("array"))?;
        drain(service.get("/api/v1/arrays/array/packets?until=-1h")?)?;
        drain(service.get("/metrics")?)?;
        thread::sleep(Duration::from_secs(5));
        let before = service.waits()?;
        thread::sleep(IDLE);
        // Of a thread that has ended meanwhile nothing is known any more.
        let more = |(thread, waits): (PathBuf, u64)| waits - before.get(&thread).unwrap_or(&0);
        let waits: u64 = service.waits()?.into_iter().map(more).sum();
        let waits = waits as f64 / IDLE.as_secs_f64();
        let figure = |what: &str, value, unit, goal| Comparison {
            benchmark: "serve",
            what: what.to_owned(),
            reference: None,
            ours: Figures(vec![value]),
            unit,
            goal: Some(Goal::Value(goal)),
        };
        Ok([
            figure("memory of an idle service of 10 GB", service.resident()?, Unit::Bytes, 60e6),
            figure("its wake-ups a second", waits, Unit::WakeUpsPerS, 1.0),
        ])
    }

    /// Until a service of a large array answers.
    fn start(&self, rounds: u32) -> Result<Comparison> {
        let large = self.path("large");
        fs::create_dir_all(&large)?;
        let members: Vec<PathBuf> =
            (0..4).map(|number| large.join(format!("member{number}"))).collect();
        for member in &members {
            fs::File::create(member)?.set_len(LARGE_BYTES / members.len() as u64)?;
        }
        let mut create = Command::new(&self.longtake);
        create.args(["array", "create", "--name", "large"]).args(&members);
        program::run(&mut create)?;
        self.record("large", &["--from", "traffic:100MB/s", "--until-bytes", "1GB"])?;
        let ours = alone(rounds, || {
            let start = Instant::now();
            let service = Service::start(&self.longtake, &large)?;
            drain(service.get("/api/v1/arrays")?)?;
            Ok(start.elapsed().as_secs_f64())
        })?;
        Ok(Comparison {
            benchmark: "serve",
            what: "start with an array of 10 TB (sparse files with 1 GB of packets), until the first answer"
                .to_owned(),
            reference: None,
            ours,
            unit: Unit::Seconds,
            goal: Some(Goal::Value(1.0)),
        })
    }
}

/// A service of one array, ended with this.
struct Service {
    child: Child,
    address: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        let id = i32::try_from(self.child.id()).unwrap_or(i32::MAX);
        kill(Pid::from_raw(id), Signal::SIGTERM).ok();
        self.child.wait().ok();
    }
}

impl Service {
    fn start(longtake: &Path, array: &Path) -> Result<Self> {
        let mut command = Command::new(longtake);
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--array"]).arg(array);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().context("starting longtake serve")?;
        let mut ready = String::new();
        let stdout = child.stdout.take().context("a pipe")?;
        BufReader::new(stdout).read_line(&mut ready)?;
        let ready: Value = serde_json::from_str(&ready).context("longtake serve did not start")?;
        let url = ready["url"].as_str().context("no address")?;
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Self { child, address })
    }

    /// The body of an answer, as it comes.
    fn get(&self, path: &str) -> Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = BufReader::with_capacity(1 << 20, stream);
        let mut line = String::new();
        answer.read_line(&mut line)?;
        ensure!(line.contains(" 200 "), "{path}: {line}");
        while line.trim_end() != "" {
            line.clear();
            answer.read_line(&mut line)?;
        }
        Ok(answer)
    }

    /// Runs something while clients download again and again, and one listens to events. The bytes that they receive are added to `bytes`.
    fn with_clients<T>(&self, bytes: &AtomicU64, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    come_last();
                    while !over.load(Ordering::Relaxed) {
                        // There are more of them than are served at a time.
                        match self.get("/api/v1/arrays/ring/packets?since=-5s") {
                            Ok(answer) => while_wanted(answer, bytes, &over),
                            Err(_) => thread::sleep(Duration::from_millis(200)),
                        }
                    }
                });
            }
            scope.spawn(|| {
                come_last();
                self.get("/api/v1/events").map(|answer| while_wanted(answer, bytes, &over))
            });
            let outcome = run();
            over.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn status(&self, path: &str, name: &str) -> Result<u64> {
        let text = fs::read_to_string(path)?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.with_context(|| format!("no {name} in {path}"))
    }

    /// Bytes of memory.
    fn resident(&self) -> Result<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        Ok(self.status(&path, "VmRSS:")? as f64 * 1024.0)
    }

    /// How often each of its threads has waited so far.
    fn waits(&self) -> Result<BTreeMap<PathBuf, u64>> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()))?;
        let waits = threads.map(|thread| {
            let thread = thread?.path();
            let status = thread.join("status").display().to_string();
            Ok((thread, self.status(&status, "voluntary_ctxt_switches:")?))
        });
        waits.collect()
    }
}

/// Gives a client's thread the lowest priority: clients are on other machines, and take nothing from a recorder there.
fn come_last() {
    rustix::process::setpriority_process(None, 19).ok();
}

/// Reads to the end. Returns how many bytes there were.
fn drain(mut from: impl Read) -> Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

/// Reads to the end, or until the clients are to stop, and counts the bytes.
fn while_wanted(mut from: impl Read, bytes: &AtomicU64, over: &AtomicBool) {
    let mut buffer = vec![0; 1 << 20];
    while !over.load(Ordering::Relaxed)
        && let Ok(read) = from.read(&mut buffer)
        && read > 0
    {
        bytes.fetch_add(read as u64, Ordering::Relaxed);
    }
}
