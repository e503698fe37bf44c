//! Finding one flow of about a thousand packets in 10 GB of generated traffic of two million flows, by flow index, against a full scan
//! and tcpdump on the same packets in one file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::comparison::{Comparison, Goal, Unit};
use super::rounds::{Contestant, interleaved};
use super::{Setting, extract, program};

/// Bytes of packets in the take: about all packets of the flows.
const TAKE_BYTES: u64 = 10_000_000_000;
/// Packets of the flow that is looked for.
const FLOW_PACKETS: u64 = 1000;
const GOAL: Goal = Goal::Ratio(200.0);

/// Runs it.
///
/// # Errors
/// If the take can't be recorded or indexed, a tool fails, or the tools disagree about the packets.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let rig = Rig::record(setting)?;
    let round = |run: fn(&Rig) -> Result<()>| -> Contestant<'_> {
        let rig = &rig;
        Box::new(move || {
            for name in OUTPUTS {
                fs::remove_file(rig.path(name)).ok();
            }
            nix::unistd::sync();
            fs::write("/proc/sys/vm/drop_caches", "3")
                .context("dropping the page cache (it takes root)")?;
            let start = Instant::now();
            run(rig)?;
            Ok(start.elapsed().as_secs_f64())
        })
    };
    let contestants = [round(Rig::by_index), round(Rig::by_scan), round(Rig::tcpdump)];
    let [ours, scan, tcpdump] = interleaved(setting.rounds, false, contestants)?;
    rig.compare()?;
    let references =
        [("tcpdump -r", tcpdump, Some(GOAL)), ("longtake extract --full-scan", scan, None)];
    let compared = references.map(|(name, figures, goal)| Comparison {
        benchmark: "search",
        what: format!(
            "longtake extract of a flow of {} packets in 10 GB, page cache dropped, index of {:.3} %",
            rig.packets, rig.index_percent
        ),
        reference: Some((name.to_owned(), figures)),
        ours: ours.clone(),
        unit: Unit::Seconds,
        goal,
    });
    Ok(compared.into())
}

/// What the contestants write.
const OUTPUTS: [&str; 3] = ["index.pcap", "scan.pcap", "tcpdump.pcap"];

/// A recorded take with a flow index and the same packets as one file, deleted in the end.
struct Rig {
    directory: PathBuf,
    longtake: PathBuf,
    filter: String,
    packets: u64,
    index_percent: f64,
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.directory));
    }
}

impl Rig {
    fn record(setting: &Setting) -> Result<Self> {
        let directory = setting.dir.join("search");
        fs::create_dir_all(&directory)?;
        let longtake = setting.longtake()?;
        let mut rig =
            Self { directory, longtake, filter: String::new(), packets: 0, index_percent: 0.0 };
        program::run(
            Command::new(&rig.longtake)
                .args(["record", "--from", "traffic:500MB/s", "--quiet", "--keep-privileges"])
                .args(["--member-size", "3GiB", "--until-bytes", &TAKE_BYTES.to_string(), "--to"])
                .arg(rig.path("array")),
        )?;
        let indexed = rig.json(&["array", "index"], &[])?;
        let [bytes, index] = ["bytes", "index_bytes"].map(|field| indexed[field].as_f64());
        rig.index_percent = index.context("index_bytes")? / bytes.context("bytes")? * 100.0;
        // Those that tcpdump sees without a word about tags and tunnels, and without fragments.
        let plain = "ip and tcp";
        let flows =
            rig.json(&["flows"], &["--by", "packets", "--top", "20000", "--filter", plain])?;
        let rows = flows["flows"].as_array().context("no flows")?;
        let near =
            |row: &&Value| row["packets"].as_u64().map(|packets| packets.abs_diff(FLOW_PACKETS));
        let flow = rows.iter().min_by_key(near).context("no flow")?;
        let text = |field: &str| flow[field].as_str().map(str::to_owned).context("no address");
        rig.packets = flow["packets"].as_u64().context("no packets")?;
        rig.filter = format!(
            "host {} and host {} and port {} and port {}",
            text("source")?,
            text("destination")?,
            flow["source_port"],
            flow["destination_port"]
        );
        let whole = rig.path("whole.pcap");
        program::run(
            Command::new(&rig.longtake)
                .args(["extract", "--quiet", "-o"])
                .arg(whole)
                .arg(rig.path("array")),
        )?;
        Ok(rig)
    }

    /// What a command says of the array with `--json`.
    fn json(&self, command: &[&str], options: &[&str]) -> Result<Value> {
        let mut program = Command::new(&self.longtake);
        program.args(command).arg(self.path("array")).args(options).arg("--json");
        serde_json::from_slice(&program::run(&mut program)?).context("reading its JSON")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn extract(&self, options: &[&str], output: &str) -> Result<()> {
        program::run(
            Command::new(&self.longtake)
                .args(["extract", "--quiet", "--filter", &self.filter])
                .args(options)
                .arg("-o")
                .arg(self.path(output))
                .arg(self.path("array")),
        )?;
        Ok(())
    }

    fn by_index(&self) -> Result<()> {
        self.extract(&[], OUTPUTS[0])
    }

    fn by_scan(&self) -> Result<()> {
        self.extract(&["--full-scan"], OUTPUTS[1])
    }

    fn tcpdump(&self) -> Result<()> {
        let [from, to] = ["whole.pcap", OUTPUTS[2]].map(|name| self.path(name));
        program::run(
            Command::new("tcpdump").arg("-r").arg(from).arg("-w").arg(to).arg(&self.filter),
        )?;
        Ok(())
    }

    /// All three have found the same number of packets.
    fn compare(&self) -> Result<()> {
        self.by_index()?;
        self.by_scan()?;
        self.tcpdump()?;
        let found = OUTPUTS.map(|name| extract::packets(&self.path(name)));
        for (name, found) in OUTPUTS.iter().zip(found) {
            let found = found?;
            ensure!(found == self.packets, "{name} has {found} packets of {}", self.packets);
        }
        Ok(())
    }
}
