//! What flow indexes cost a recording of an interface: packets for each second of the recorder's processor time, with them and without,
//! of the same packets on a cable.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;

use super::comparison::{Comparison, Goal, Unit};
use super::folder::Folder;
use super::rounds::{Contestant, interleaved};
use super::{Setting, program, veth};
use crate::soak::recorder::Recorder;

/// How many times as much processor time a recording may take with indexes.
const COST_MAX: f64 = 1.3;
/// Bytes of packets that are sent in a round.
const SENT_BYTES: &str = "500MB";
/// How fast they are made, and the share of that at which they are sent: slowly enough for a recorder that shares two processors with
/// the sender.
const RATE: &str = "500MB/s";
const SPEED: f64 = 0.1;
/// The recorder's buffers. Freeing them at its end takes processor time, too.
const MEMORY: &str = "128MiB";
/// Packets that are sent, in words and by the length of their frames.
const CASES: [(&str, &str); 2] = [("IMIX", "imix"), ("up to 1514 B", "1514")];

/// Runs it.
///
/// # Errors
/// If no namespace can be made (it takes root), or packets are lost.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let rig =
        Rig { directory: setting.dir.join("record-index").into(), longtake: setting.longtake()? };
    let mut found = Vec::new();
    for (words, size) in CASES {
        rig.make_packets(size)?;
        let round = |index: &'static str| -> Contestant<'_> {
            let rig = &rig;
            Box::new(move || rig.record(index))
        };
        let [ours, reference] = veth::in_namespace(|| {
            interleaved(setting.rounds, false, [round("flows"), round("none")])
        })?;
        found.push(Comparison {
            benchmark: "record-index",
            what: format!(
                "packets ({words}) from an interface for each second of processor time, --index flows"
            ),
            reference: Some(("--index none".to_owned(), reference)),
            ours,
            unit: Unit::PacketsPerS,
            goal: Some(Goal::Ratio(1.0 / COST_MAX)),
        });
    }
    Ok(found)
}

/// The packets to be sent and the array that they are recorded to, deleted in the end.
struct Rig {
    directory: Folder,
    longtake: PathBuf,
}

impl Rig {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn make_packets(&self, size: &str) -> Result<()> {
        fs::remove_dir_all(&self.directory).ok();
        fs::create_dir_all(&self.directory)?;
        let mut record = Command::new(&self.longtake);
        record.args(["record", "--quiet", "--keep-privileges", "--index", "none"]);
        record.args(["--from", &format!("traffic:{RATE},size={size}"), "--member-size", "512MiB"]);
        program::run(record.args(["--until-bytes", SENT_BYTES, "--to"]).arg(self.path("sent")))?;
        Ok(())
    }

    /// Packets for each second of processor time.
    fn record(&self, index: &str) -> Result<f64> {
        let array = self.path("recorded");
        fs::remove_dir_all(&array).ok();
        nix::unistd::sync();
        let mut record = Command::new(&self.longtake);
        record.args(["record", "--json", "--keep-privileges", "--memory", MEMORY]);
        record.args(["--index", index, "--member-size", "768MiB", "--segment", "256MiB"]);
        record.args(["--from", &format!("if:{}", veth::FAR), "--to"]).arg(&array);
        let mut recorder = Recorder::start(&mut record)?;
        // Until here it has made its buffers, which costs more or less, and received nothing.
        let start_s = recorder.processor_s()?;
        let sent = veth::replay(&self.longtake, &self.path("sent"), SPEED)?;
        recorder.wait_until(|told| told.progress["offered_packets"].as_u64() >= Some(sent))?;
        recorder.signal(Signal::SIGINT)?;
        // Children count when they were waited for: until here the sender, from here on the recorder.
        let before = children_s()?;
        let (status, complaints) = recorder.end()?;
        let recording_s = children_s()? - before - start_s;
        ensure!(status.success(), "the recording failed ({status}): {complaints}");
        let stored = recorder.account.pointer("/ledger/stored/packets").and_then(|n| n.as_u64());
        ensure!(stored == Some(sent), "{sent} packets were sent, and {stored:?} recorded");
        if let Some(left_out) = recorder.account.pointer("/index/chunks_left_out")
            && left_out.as_u64() > Some(0)
        {
            eprintln!("--index {index} left out {left_out} chunks");
        }
        Ok(sent as f64 / recording_s)
    }
}

/// Processor time of programs that have ended, in seconds.
fn children_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("asking what children used")?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
