//! The scenario `boot`: the machine comes up, the real driver finds every emulated drive, and host, guest
//! and emulator hear each other.

use anyhow::{Result, bail};
use serde_json::json;

use super::drives;
use super::scenario::{Guest, Next, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Boot;

const SCRIPT: &str = "
cat /sys/class/nvme/nvme*/serial > /tmp/serials
cat /sys/block/nvme[0-9]n[0-9]/size > /tmp/sectors
say ready
await > /tmp/heard
give /tmp/serials /tmp/sectors /tmp/heard
";

impl Scenario for Boot {
    fn name(&self) -> &'static str {
        "boot"
    }

    fn about(&self) -> &'static str {
        "the machine comes up and its driver finds every drive"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let ran = stage.run(&Guest::new(SCRIPT), |line, machine| {
            let status = machine.execute("query-status", &json!({}))?;
            if status["status"] != "running" {
                bail!("the guest says {line:?}, and QEMU calls it {}", status["status"]);
            }
            machine.say(&format!("{line} too"))?;
            Ok(Next::Listen)
        })?;
        let lines = |name: &str| -> Result<Vec<String>> {
            let text = ran.files.text(name)?;
            let mut lines: Vec<_> = text.lines().map(|line| line.trim().to_owned()).collect();
            lines.sort();
            Ok(lines)
        };
        let drives = drives::six();
        let mut serials: Vec<_> = drives.iter().map(|drive| drive.serial.to_owned()).collect();
        let mut sectors: Vec<_> = drives
            .iter()
            .flat_map(|drive| &drive.namespaces)
            .map(|namespace| (namespace.size_bytes / 512).to_string())
            .collect();
        serials.sort();
        sectors.sort();
        let heard = vec!["ready too".to_owned()];
        for (name, expected) in [("serials", &serials), ("sectors", &sectors), ("heard", &heard)] {
            let found = lines(name)?;
            if found != *expected {
                bail!("{name}: the guest has {found:?}, the machine {expected:?}");
            }
        }
        Ok(vec![format!("{} drives, {} namespaces", serials.len(), sectors.len())])
    }
}
