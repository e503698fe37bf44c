//! Packets of an array into Arrow tables, against what Python's users read capture files with; payloads into NumPy arrays, against reading
//! the same bytes from a plain file; blocks that Python writes, against direct writes to a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::comparison::{Comparison, Goal, Unit};
use super::folder::{Folder, Memory};
use super::rounds::{Contestant, interleaved};
use super::{Setting, program};
use crate::python::installed;

/// Readers of capture files, packets that each reads in a round, and how many times as fast Longtake is to be.
const READERS: [(&str, u64, Option<f64>); 3] =
    [("scapy", 20_000, Some(50.0)), ("dpkt", 200_000, Some(10.0)), ("tshark", 100_000, None)];
/// Lengths of packets in bytes without check sequence, and how many are recorded.
const PACKETS: [(u32, u64); 2] = [(1500, 1_000_000), (60, 5_000_000)];
/// Length of a block of the stream that goes into NumPy arrays, and bytes of all of them.
const BLOCK: u32 = 9000;
const STREAM_BYTES: u64 = 4_000_000_000;
const PAYLOAD_GOAL: f64 = 0.7;
/// Bytes of arrays in memory.
const MEMORY_BYTES: u64 = 5 << 30;
/// Blocks of 1 MiB that Python writes.
const BLOCKS: u64 = 2000;
const PRODUCER_GOAL: f64 = 0.8;
/// Seconds to import the package.
const IMPORT_GOAL: f64 = 0.2;

/// Runs it.
///
/// # Errors
/// If the package or a reader can't be installed, or anything fails.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let requirements = ["-r", "crates/python/tests/requirements.txt", "scapy>=2.6", "dpkt>=1.9"];
    let rig = Rig::new(setting, installed(true, &requirements)?)?;
    let mut compared = Vec::new();
    for (length, packets) in PACKETS {
        compared.extend(rig.packets(setting.rounds, length, packets)?);
    }
    compared.push(rig.payloads(setting.rounds)?);
    compared.push(rig.producer(setting.rounds)?);
    compared.push(rig.import(setting.rounds)?);
    Ok(compared)
}

/// Directories for arrays and files, deleted in the end.
struct Rig {
    /// In the directory, and therefore removed first.
    memory: Memory,
    directory: Folder,
    longtake: PathBuf,
    python: PathBuf,
    script: PathBuf,
}

impl Rig {
    fn new(setting: &Setting, python: PathBuf) -> Result<Self> {
        let directory = fs::canonicalize(&setting.dir)?.join("python");
        let memory = Memory::mount(directory.join("memory"), MEMORY_BYTES)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/python/benches/ways.py");
        Ok(Self {
            memory,
            directory: directory.into(),
            longtake: setting.longtake()?,
            python,
            script,
        })
    }

    /// Records packets of a length, and writes the same packets to a file. Returns the array and the file.
    fn record(&self, length: u32, bytes: u64, file: &str) -> Result<(PathBuf, PathBuf)> {
        let [array, file] =
            [format!("array-{length}"), file.to_owned()].map(|name| self.directory.join(name));
        self.record_array(length, bytes, &array, "3GiB")?;
        program::run(
            Command::new(&self.longtake).args(["extract", "--quiet", "-o"]).arg(&file).arg(&array),
        )?;
        Ok((array, file))
    }

    fn record_array(&self, length: u32, bytes: u64, array: &Path, member_size: &str) -> Result<()> {
        let source = format!("synthetic:500MB/s,size={length}");
        program::run(
            Command::new(&self.longtake)
                .args(["record", "--quiet", "--keep-privileges", "--member-size", member_size])
                .args(["--from", &source, "--until-bytes", &bytes.to_string(), "--to"])
                .arg(array),
        )?;
        Ok(())
    }

    /// What the script says of one way to read or write: packets, or bytes, a second.
    fn run(&self, way: &str, path: &Path, count: u64) -> Result<f64> {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).arg(way).arg(path).arg(count.to_string());
        let printed = program::run(command.current_dir(&self.directory))?;
        let text = String::from_utf8(printed).context("reading what the script printed")?;
        text.trim().parse().with_context(|| format!("'{}' is no number", text.trim()))
    }

    fn packets(&self, rounds: u32, length: u32, packets: u64) -> Result<Vec<Comparison>> {
        let (array, file) =
            self.record(length, packets * u64::from(length), &format!("{length}.pcap"))?;
        let in_memory = self.memory.join(format!("array-{length}"));
        self.record_array(length, packets * u64::from(length), &in_memory, "512MiB")?;
        let ours =
            |array| -> Contestant<'_> { Box::new(move || self.run("longtake", array, packets)) };
        let reader = |at: usize| -> Contestant<'_> {
            let (name, count, _) = READERS[at];
            let file = &file;
            Box::new(move || self.run(name, file, count))
        };
        let contestants = [ours(&array), ours(&in_memory), reader(0), reader(1), reader(2)];
        let [on_disk, in_memory, scapy, dpkt, tshark] = interleaved(rounds, true, contestants)?;
        let mut compared = Vec::new();
        for (place, ours) in [("on the disk", on_disk), ("in memory", in_memory)] {
            let readers = READERS.into_iter().zip([&scapy, &dpkt, &tshark]);
            compared.extend(readers.map(|((name, _, goal), figures)| Comparison {
                benchmark: "python",
                what: format!("packets of {length} bytes into Arrow batches, array {place}"),
                reference: Some((name.to_owned(), figures.clone())),
                ours: ours.clone(),
                unit: Unit::PacketsPerS,
                goal: goal.map(Goal::Ratio),
            }));
        }
        Ok(compared)
    }

    fn payloads(&self, rounds: u32) -> Result<Comparison> {
        let (array, file) = self.record(BLOCK, STREAM_BYTES, "stream.raw")?;
        let round = |way: &'static str, path: PathBuf| -> Contestant<'_> {
            Box::new(move || {
                nix::unistd::sync();
                fs::write("/proc/sys/vm/drop_caches", "3")
                    .context("dropping the page cache (it takes root)")?;
                self.run(way, &path, 0)
            })
        };
        let contestants = [round("longtake-payloads", array), round("fromfile", file)];
        let [ours, reference] = interleaved(rounds, true, contestants)?;
        Ok(Comparison {
            benchmark: "python",
            what: format!("payloads of {BLOCK} bytes into NumPy arrays, page cache dropped"),
            reference: Some(("numpy.fromfile".to_owned(), reference)),
            ours,
            unit: Unit::BytesPerS,
            goal: Some(Goal::Ratio(PAYLOAD_GOAL)),
        })
    }

    fn producer(&self, rounds: u32) -> Result<Comparison> {
        let round = |way: &'static str| -> Contestant<'_> {
            Box::new(move || {
                let path = self.directory.join(way);
                let rate = self.run(way, &path, BLOCKS)?;
                match path.is_dir() {
                    true => fs::remove_dir_all(&path)?,
                    false => fs::remove_file(&path)?,
                }
                Ok(rate)
            })
        };
        let contestants = [round("produce"), round("direct-write")];
        let [ours, reference] = interleaved(rounds, true, contestants)?;
        Ok(Comparison {
            benchmark: "python",
            what: "blocks of 1 MiB from Python into an array of one file".to_owned(),
            reference: Some(("O_DIRECT writes to a file".to_owned(), reference)),
            ours,
            unit: Unit::BytesPerS,
            goal: Some(Goal::Ratio(PRODUCER_GOAL)),
        })
    }

    /// How long Python takes to start and import the package, and how long it takes to start alone.
    fn import(&self, rounds: u32) -> Result<Comparison> {
        let timed = |code: &'static str| -> Contestant<'_> {
            Box::new(move || {
                let start = Instant::now();
                let mut command = Command::new(&self.python);
                program::run(command.args(["-c", code]).current_dir(&self.directory))?;
                Ok(start.elapsed().as_secs_f64())
            })
        };
        let [ours, reference] =
            interleaved(rounds, true, [timed("import longtake"), timed("pass")])?;
        Ok(Comparison {
            benchmark: "python",
            what: "import longtake, the start of Python included".to_owned(),
            reference: Some(("python -c pass".to_owned(), reference)),
            ours,
            unit: Unit::Seconds,
            goal: Some(Goal::Value(IMPORT_GOAL)),
        })
    }
}
