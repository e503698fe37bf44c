//! What is known of a drive and why it may not be written: a page of text, a row of a table, JSON.

mod page;

use std::path::{Path, PathBuf};

use base::ByteSize;
use device::facts::Facts;
use device::identity::Drive;
use device::safety::SafetyVerdict;
use device::wear::Wear;
use serde_json::{Value, json};

use crate::text;

/// A target, with what was found out about it.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    verdict: SafetyVerdict,
    facts: Option<Facts>,
    simulated: bool,
}

impl Target {
    /// A target of this machine. What can't be described has no facts, and the verdict says why; a list or a table needs none.
    pub const fn real(path: PathBuf, verdict: SafetyVerdict, facts: Option<Facts>) -> Self {
        Self { path, verdict, facts, simulated: false }
    }

    /// A simulated drive. Nobody has to be protected from writing it.
    pub fn simulated(facts: Facts) -> Self {
        let verdict = SafetyVerdict {
            drive: Some(facts.drive.clone()),
            refusals: Vec::new(),
            unchecked: Vec::new(),
        };
        Self { path: facts.drive.path.clone(), verdict, facts: Some(facts), simulated: true }
    }

    /// Everything that is known of it, several lines.
    pub fn page(&self) -> String {
        let permission = if self.simulated {
            "yes: it is simulated, and lives as long as the command that names it".to_owned()
        } else {
            permission(&self.verdict)
        };
        let page = page::text(&self.path, self.facts.as_ref(), &permission);
        page.trim_end().to_owned() + &refusals(&self.path, &self.verdict)
    }

    /// Everything that is known of it, as JSON.
    pub fn json(&self) -> Value {
        let Self { path, verdict, facts, simulated } = self;
        let mut value = json!(verdict);
        value["path"] = json!(path);
        value["simulated"] = json!(simulated);
        value["writable"] = json!(verdict.allowed());
        value["reasons"] = verdict.refusals.iter().map(ToString::to_string).collect();
        value["confirm_with"] = json!(verdict.drive.as_ref().and_then(Drive::confirmation));
        // The verdict has the drive already.
        value["link_verdict"] = json!(facts.as_ref().and_then(|facts| facts.link_verdict));
        value["temperatures"] = json!(facts.as_ref().map(|facts| &facts.temperatures));
        value["nvme"] = json!(facts.as_ref().and_then(|facts| facts.nvme.as_ref()));
        value
    }
}

/// A table of targets, and below it why some of them may not be written.
pub fn list(targets: &[Target]) -> String {
    let heads = ["drive", "model", "serial", "size", "link", "wear", "may be written"];
    let mut table = text::table(&heads, &[3, 5]);
    for Target { path, verdict, .. } in targets {
        let drive = verdict.drive.as_ref();
        let dash = || "-".to_owned();
        table.add_row([
            path.display().to_string(),
            drive.and_then(|d| d.model.clone()).unwrap_or_else(dash),
            drive.and_then(|d| d.serial.clone()).unwrap_or_else(dash),
            drive.map_or_else(dash, |d| ByteSize(d.size_bytes).to_string()),
            drive.and_then(|d| d.link.as_ref()).map_or_else(dash, ToString::to_string),
            drive.map_or_else(dash, wear),
            permission(verdict),
        ]);
    }
    let refused = targets.iter().map(|target| refusals(&target.path, &target.verdict));
    text::trimmed(&table) + &refused.collect::<String>()
}

/// Why a target may not be written, if it may not: lines for below other text.
fn refusals(path: &Path, verdict: &SafetyVerdict) -> String {
    if verdict.allowed() {
        return String::new();
    }
    let head = text::indented(&format!("{} is refused:", path.display()));
    let reasons = verdict.refusals.iter().map(|refusal| format!("\n  {refusal}"));
    format!("\n\n{head}{}", reasons.collect::<String>())
}

fn permission(verdict: &SafetyVerdict) -> String {
    match (verdict.allowed(), verdict.drive.as_ref().and_then(Drive::confirmation)) {
        (false, _) => "no, see below".to_owned(),
        (true, Some(word)) => format!("with --erase {word}"),
        (true, None) => "yes".to_owned(),
    }
}

fn wear(drive: &Drive) -> String {
    match &drive.wear {
        Wear::Known(health) => format!("{} %", health.percent_used),
        Wear::Unknown { .. } => "not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_refused_says_so_everywhere_and_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no\ndrive");
        std::fs::create_dir(&path).unwrap();
        let target = Target::real(path.clone(), device::safety::inspect(&path), None);
        let json = target.json();
        assert_eq!(json["writable"], false);
        let reason = json["reasons"][0].as_str().unwrap().to_owned();
        for text in [list(std::slice::from_ref(&target)), target.page()] {
            assert!(text.contains("no, see below"), "{text}");
            assert!(text.contains(r"/no\ndrive"), "a name stays on its line: {text}");
            assert!(text.ends_with(&format!(" is refused:\n  {reason}")), "{text}");
        }
    }
}
