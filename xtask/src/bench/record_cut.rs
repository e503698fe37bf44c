//! What `--cut` costs a recording: packets taken a second from a source that waits for the recorder, with it and without.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::comparison::{Comparison, Unit};
use super::folder::Folder;
use super::rounds::{Contestant, interleaved};
use super::{Setting, program};

/// Bytes of each flow that are kept.
const CUT: &str = "1MiB";
/// How long a round takes.
const ROUND: &str = "8s";
/// What is recorded: in words, and as a source.
const CASES: [(&str, &str); 2] =
    [("2,000,000 flows", "traffic:max"), ("2,000 long flows", "traffic:max,flows=2000")];

/// Runs it.
///
/// # Errors
/// If nothing can be recorded, or packets are lost.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let rig = Rig { array: setting.dir.join("record-cut").into(), longtake: setting.longtake()? };
    let mut found = Vec::new();
    for (words, source) in CASES {
        let cut = std::cell::Cell::new(0.0);
        let ours: Contestant<'_> = Box::new(|| {
            let (rate, share) = rig.record(source, &["--cut", CUT])?;
            cut.set(share);
            Ok(rate)
        });
        let reference: Contestant<'_> = Box::new(|| Ok(rig.record(source, &[])?.0));
        let [ours, reference] = interleaved(setting.rounds, true, [ours, reference])?;
        found.push(Comparison {
            benchmark: "record-cut",
            what: format!(
                "packets of {words} taken a second with --cut {CUT}, which leaves out {:.0} % of them",
                cut.get() * 100.0
            ),
            reference: Some(("without --cut".to_owned(), reference)),
            ours,
            unit: Unit::PacketsPerS,
            goal: None,
        });
    }
    Ok(found)
}

/// A ring of member files that all rounds write over, deleted in the end.
struct Rig {
    array: Folder,
    longtake: PathBuf,
}

impl Rig {
    /// Packets taken a second, and the share of them that was cut.
    fn record(&self, source: &str, options: &[&str]) -> Result<(f64, f64)> {
        let mut record = Command::new(&self.longtake);
        record.args(["record", "--json", "--json-every", "1h", "--keep-privileges"]);
        record.args(["--when-full", "wrap", "--index", "none", "--for", ROUND, "--from", source]);
        record.args(options).arg("--to").arg(&*self.array);
        let told = program::run(&mut record)?;
        let last = String::from_utf8_lossy(&told);
        let last = last.lines().last().context("a recording says nothing")?;
        let account: Value = serde_json::from_str(last).context("the account of a recording")?;
        let number = |path: &str| program::number(&account, path);
        let (offered, cut) = (number("/ledger/offered/packets")?, number("/ledger/cut/packets")?);
        ensure!(
            offered == number("/ledger/stored/packets")? + cut,
            "the recording lost packets: {account}"
        );
        Ok((offered / number("/after_s")?, cut / offered))
    }
}
