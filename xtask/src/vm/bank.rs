//! The scenario `bank`: banks on real NVMe drivers keep the seam's promises: through passthrough and
//! through the block layer, interrupted and polled, and of both kinds at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::programs;
use super::scenario::Scenario;

/// See the module.
#[derive(Debug)]
pub struct Bank;

/// Runs of the tests: name, drives, polled. A drive is its class, serial number and namespace, for the
/// driver numbers drives as they come; or else a file.
///
/// The two namespaces of one drive have different block sizes; the drives limit a transfer to 512 KiB,
/// to 128 KiB, and not at all. The file is never polled, so that one bank has both.
const RUNS: [(&str, &str, bool); 5] = [
    ("passthrough", PASSTHROUGH, false),
    ("passthrough-polled", PASSTHROUGH, true),
    ("block", BLOCK, false),
    ("block-polled", BLOCK, true),
    ("mixed-polled", "generic,LT-TWIN-0001,1 block,LT-TWIN-0002,1 /tmp/member", true),
];
const PASSTHROUGH: &str = "generic,LT-TWIN-0001,1 generic,LT-TWIN-0001,2 generic,LT-TWIN-0002,1 \
                           generic,LT-ALONE-0004,1";
const BLOCK: &str = "block,LT-TWIN-0001,1 block,LT-TWIN-0001,2 block,LT-TWIN-0002,1";

impl Scenario for Bank {
    fn name(&self) -> &'static str {
        "bank"
    }

    fn about(&self) -> &'static str {
        "banks keep their promises by passthrough and block layer, interrupted and polled"
    }

    fn driver_options(&self) -> &'static str {
        "poll_queues=2"
    }

    fn programs(&self) -> Result<Vec<(PathBuf, &'static str)>> {
        Ok(vec![(programs::test("longtake-device", "named_drives")?, "named_drives")])
    }

    fn script(&self) -> String {
        let mut script = "truncate -s 64M /tmp/member\n".to_owned();
        for (name, drives, polled) in RUNS {
            let poll = if polled { "LONGTAKE_POLL=1 " } else { "" };
            script += &format!(
                "say {name}\n\
                 {poll}LONGTAKE_ERASE_DRIVES=$(nodes {drives}) named_drives > /tmp/{name} 2>&1 \
                 || true\n\
                 give /tmp/{name}\n"
            );
        }
        script
    }

    fn time_limit(&self) -> Duration {
        Duration::from_secs(3600)
    }

    fn judge(&self, files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<String>> {
        let mut told = Vec::new();
        let mut failed = Vec::new();
        for (name, drives, _) in RUNS {
            let log = files.get(name).with_context(|| format!("no {name} was handed over"))?;
            let log = String::from_utf8_lossy(log);
            let result = log.lines().find_map(|line| line.strip_prefix("test result: "));
            match result {
                Some(result) if result.starts_with("ok. ") && !result.starts_with("ok. 0 ") => {
                    told.push(format!("{name} ({drives}): {result}"));
                }
                _ => failed.push(format!("{name} ({drives}):\n{log}")),
            }
        }
        if failed.is_empty() { Ok(told) } else { bail!("{}", failed.join("\n")) }
    }
}
