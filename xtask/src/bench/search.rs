//! Finding one flow of about a thousand packets in generated traffic of two million flows, by flow index: with the program and with the
//! service, against a full scan, tcpdump on the same packets in one file, and Stenographer.

mod servers;
mod stenographer;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use base::ByteSize;
use serde_json::Value;

use super::comparison::{Comparison, Goal, Unit};
use super::folder::Folder;
use super::rounds::{Contestant, Figures, in_turn};
use super::{Setting, program};
use servers::{Certificates, Server};
use stenographer::Stenographer;

/// Packets of the flow that is looked for.
const FLOW_PACKETS: u64 = 1000;
/// Members of the array, and segments of a length that members of some size have by default.
const MEMBERS: u64 = 4;
const SEGMENT: &str = "256MiB";
/// Times as fast as tcpdump, and as Stenographer.
const TCPDUMP_GOAL: Goal = Goal::Ratio(200.0);
const STENOGRAPHER_GOAL: Goal = Goal::Ratio(10.0);
/// Of the packets, for the index.
const INDEX_GOAL: Goal = Goal::Value(0.002);

const EXTRACT: &str = "longtake extract";
const SERVE: &str = "longtake serve";
const SCAN: &str = "longtake extract --full-scan";
const TCPDUMP: &str = "tcpdump -r";
const STENOGRAPHER: &str = "Stenographer";

/// Runs it.
///
/// # Errors
/// If the packets can't be recorded or indexed, a tool fails, or the tools don't find the same packets.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let rig = Rig::record(setting)?;
    let flow = rig.flow()?;
    let array = rig.path("array");
    let certificates = Certificates::make(&rig.path("certificates"))?;
    let theirs = setting.stenographer.as_deref().map(|programs| {
        Stenographer::record(programs, &rig.path("stenographer"), &rig.longtake, &array)
    });
    let theirs = theirs.transpose()?;
    let service = Server::longtake(&rig.longtake, &array, &certificates)?;
    let server = theirs.as_ref().map(|theirs| theirs.serve(&certificates)).transpose()?;
    let (rig, flow, certificates) = (&rig, &flow, &certificates);
    let mut ways = vec![
        Way::new(rig, EXTRACT, |output| rig.extract(flow, &[], output)),
        Way::new(rig, SERVE, |output| service.query(&flow.filter, certificates, output)),
        Way::new(rig, SCAN, |output| rig.extract(flow, &["--full-scan"], output)),
        Way::new(rig, TCPDUMP, |output| rig.tcpdump(flow, output)),
    ];
    match &server {
        Some(server) => ways.push(Way::new(rig, STENOGRAPHER, |output| {
            server.query(&flow.filter, certificates, output)
        })),
        None => eprintln!("not compared with Stenographer: --stenographer names its programs"),
    }
    let contestants = ways.iter().map(|way| -> Contestant<'_> { Box::new(|| way.round()) });
    let figures = in_turn(setting.rounds, false, contestants.collect())?;
    expect_same(&ways, flow.packets)?;
    let named = ways.iter().map(|way| way.name).zip(figures).collect();
    let what = format!(
        "a flow of {} packets in {}, {}, page cache dropped",
        flow.packets,
        setting.search_bytes,
        rig.chunks(flow)?
    );
    let mut found = times(named, &what);
    found.push(rig.index_size(theirs.as_ref())?);
    Ok(found)
}

/// Each of ours against each reference.
fn times(figures: Vec<(&str, Figures)>, what: &str) -> Vec<Comparison> {
    let of = |name: &str| figures.iter().find(|(found, _)| *found == name).map(|(_, f)| f.clone());
    let pairs = [
        (EXTRACT, TCPDUMP, Some(TCPDUMP_GOAL)),
        (EXTRACT, STENOGRAPHER, Some(STENOGRAPHER_GOAL)),
        (EXTRACT, SCAN, None),
        (SERVE, TCPDUMP, Some(TCPDUMP_GOAL)),
        (SERVE, STENOGRAPHER, Some(STENOGRAPHER_GOAL)),
    ];
    let compared = pairs.into_iter().filter_map(|(ours, reference, goal)| {
        Some(Comparison {
            benchmark: "search",
            what: format!("{ours}, {what}"),
            reference: Some((reference.to_owned(), of(reference)?)),
            ours: of(ours)?,
            unit: Unit::Seconds,
            goal,
        })
    });
    compared.collect()
}

/// A way to find the flow, and the file that its packets are written to.
struct Way<'a> {
    name: &'static str,
    output: PathBuf,
    search: Search<'a>,
}

/// Writes the packets of the flow to a file.
type Search<'a> = Box<dyn Fn(&Path) -> Result<()> + 'a>;

impl<'a> Way<'a> {
    fn new(rig: &Rig, name: &'static str, search: impl Fn(&Path) -> Result<()> + 'a) -> Self {
        let output = rig.path(&format!("{}.pcap", name.replace(' ', "_")));
        Self { name, output, search: Box::new(search) }
    }

    /// Seconds that it takes when nothing is in the page cache.
    fn round(&self) -> Result<f64> {
        fs::remove_file(&self.output).ok();
        nix::unistd::sync();
        fs::write("/proc/sys/vm/drop_caches", "3")
            .context("dropping the page cache (it takes root)")?;
        let start = Instant::now();
        (self.search)(&self.output)?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// The last round of every way has found the packets of the flow, byte for byte the same.
fn expect_same(ways: &[Way<'_>], packets: u64) -> Result<()> {
    let mut first: Option<Vec<Vec<u8>>> = None;
    for way in ways {
        let file = fs::read(&way.output).with_context(|| format!("what {} found", way.name))?;
        let mut found = frames(&file).with_context(|| format!("what {} found", way.name))?;
        ensure!(
            found.len() as u64 == packets,
            "{} has found {} packets of {packets}",
            way.name,
            found.len()
        );
        // Packets of the same instant may be in another order.
        found.sort_unstable();
        let first = first.get_or_insert_with(|| found.clone());
        ensure!(*first == found, "{} has found other packets than {}", way.name, ways[0].name);
    }
    Ok(())
}

/// The packets in a pcap file of this machine's byte order, without their times.
fn frames(file: &[u8]) -> Result<Vec<Vec<u8>>> {
    let (_, mut rest) = file.split_at_checked(24).context("no pcap file")?;
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let (header, behind) = rest.split_first_chunk::<16>().context("half a header")?;
        let length = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]);
        let (frame, behind) = behind.split_at_checked(length as usize).context("half a packet")?;
        frames.push(frame.to_vec());
        rest = behind;
    }
    Ok(frames)
}

/// The flow that is looked for.
struct Flow {
    /// Words that tcpdump, Longtake and Stenographer understand alike.
    filter: String,
    packets: u64,
}

/// Recorded packets and the same as one file, deleted in the end.
struct Rig {
    directory: Folder,
    longtake: PathBuf,
    /// Bytes of packets.
    bytes: u64,
    /// Bytes of flow indexes.
    index_bytes: u64,
}

impl Rig {
    fn record(setting: &Setting) -> Result<Self> {
        let directory = setting.dir.join("search");
        fs::create_dir_all(&directory)?;
        let longtake = setting.longtake()?;
        let mut rig = Self { directory: directory.into(), longtake, bytes: 0, index_bytes: 0 };
        let bytes = setting.search_bytes.0;
        // Headers, and uneven placement.
        let member_bytes = bytes / MEMBERS / 4 * 5 + (600 << 20);
        let mut record = Command::new(&rig.longtake);
        record.args(["record", "--from", "traffic:500MB/s", "--quiet", "--keep-privileges"]);
        record.args(["--members", &MEMBERS.to_string(), "--segment", SEGMENT]);
        record.args(["--member-size", &member_bytes.to_string()]);
        record.args(["--until-bytes", &bytes.to_string(), "--to"]).arg(rig.path("array"));
        program::run(&mut record)?;
        // All of them, so that they are counted.
        let indexed = rig.json(&["array", "index"], &["--again"])?;
        rig.index_bytes = indexed["index_bytes"].as_u64().context("index_bytes")?;
        let takes = rig.json(&["takes"], &[])?;
        let captured = takes.pointer("/0/captured_bytes").and_then(Value::as_u64);
        rig.bytes = captured.context("captured_bytes")?;
        program::run(
            Command::new(&rig.longtake)
                .args(["extract", "--quiet", "-o"])
                .arg(rig.path("whole.pcap"))
                .arg(rig.path("array")),
        )?;
        Ok(rig)
    }

    fn flow(&self) -> Result<Flow> {
        // Those that tcpdump sees without a word about tags and tunnels, and without fragments.
        let plain = "ip and tcp";
        let flows =
            self.json(&["flows"], &["--by", "packets", "--top", "20000", "--filter", plain])?;
        let rows = flows["flows"].as_array().context("no flows")?;
        let near =
            |row: &&Value| row["packets"].as_u64().map(|packets| packets.abs_diff(FLOW_PACKETS));
        let flow = rows.iter().min_by_key(near).context("no flow")?;
        let text = |field: &str| flow[field].as_str().map(str::to_owned).context("no address");
        let filter = format!(
            "host {} and host {} and port {} and port {}",
            text("source")?,
            text("destination")?,
            flow["source_port"],
            flow["destination_port"]
        );
        Ok(Flow { filter, packets: flow["packets"].as_u64().context("no packets")? })
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

    fn extract(&self, flow: &Flow, options: &[&str], output: &Path) -> Result<()> {
        let mut extract = Command::new(&self.longtake);
        extract.args(["extract", "--quiet", "--filter", &flow.filter]).args(options);
        program::run(extract.arg("-o").arg(output).arg(self.path("array")))?;
        Ok(())
    }

    /// How many chunks the index leaves to be read, in words.
    fn chunks(&self, flow: &Flow) -> Result<String> {
        let output = self.path("explained.pcap").display().to_string();
        let options = ["--filter", &flow.filter, "-y", "-o", &output];
        let explained = self.json(&["extract"], &options)?;
        let count = |path: &str| program::number(&explained, path);
        let (candidates, chunks) = (count("/index/candidates")?, count("/index/chunks")?);
        Ok(format!("which may be in {candidates} of {chunks} chunks"))
    }

    fn tcpdump(&self, flow: &Flow, output: &Path) -> Result<()> {
        let mut tcpdump = Command::new("tcpdump");
        tcpdump.arg("-r").arg(self.path("whole.pcap")).arg("-w").arg(output);
        program::run(tcpdump.arg(&flow.filter))?;
        Ok(())
    }

    fn index_size(&self, theirs: Option<&Stenographer>) -> Result<Comparison> {
        let share = |bytes: u64| Figures(vec![bytes as f64 / self.bytes as f64]);
        let theirs = theirs.map(Stenographer::index_bytes).transpose()?;
        Ok(Comparison {
            benchmark: "search",
            what: format!("flow indexes, as a share of {} of packets", ByteSize(self.bytes)),
            reference: theirs.map(|bytes| (STENOGRAPHER.to_owned(), share(bytes))),
            ours: share(self.index_bytes),
            unit: Unit::Share,
            goal: Some(INDEX_GOAL),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pcap(frames: &[&str]) -> Vec<u8> {
        let mut file = vec![0; 24];
        for frame in frames {
            file.extend([0; 8]);
            file.extend((frame.len() as u32).to_ne_bytes());
            file.extend([0; 4]);
            file.extend(frame.as_bytes());
        }
        file
    }

    #[test]
    fn packets_of_a_pcap_file_are_read_and_half_of_one_is_refused() {
        let file = pcap(&["one", "three"]);
        assert_eq!(frames(&file).unwrap(), [b"one".to_vec(), b"three".to_vec()]);
        assert!(frames(&file[..file.len() - 1]).is_err());
        assert!(frames(&file[..20]).is_err());
    }

    #[test]
    fn ways_that_find_other_or_fewer_packets_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let judged = |found: [&[&str]; 2]| {
            let ways = ["a", "b"].map(|name| {
                let output = folder.path().join(name);
                Way { name, output, search: Box::new(|_| Ok(())) }
            });
            for (way, found) in ways.iter().zip(found) {
                fs::write(&way.output, pcap(found)).unwrap();
            }
            expect_same(&ways, 2).map_err(|error| error.to_string())
        };
        assert_eq!(judged([&["one", "two"], &["two", "one"]]), Ok(()));
        let refused = judged([&["one", "two"], &["one", "too"]]);
        assert_eq!(refused, Err("b has found other packets than a".to_owned()));
        let refused = judged([&["one", "two"], &["one"]]);
        assert_eq!(refused, Err("b has found 1 packets of 2".to_owned()));
    }
}
