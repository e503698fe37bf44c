//! The scenario `bank`: banks on real NVMe drivers keep the seam's promises: through passthrough and
//! through the block layer, interrupted and polled, and of both kinds at once.

use std::time::Duration;

use anyhow::{Result, bail};

use super::programs;
use super::scenario::{Guest, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Bank;

/// Runs of the tests: name, drives, polled, and all of them or those with registered buffers alone. A drive is its class, serial number
/// and namespace, for the driver numbers drives as they come; or else a file.
///
/// The two namespaces of one drive have different block sizes; the drives limit a transfer to 512 KiB,
/// to 128 KiB, and not at all. The file is never polled, so that one bank has both.
const RUNS: [(&str, &str, bool, bool); 3] = [
    ("passthrough", PASSTHROUGH, false, false),
    ("block", BLOCK, false, false),
    ("mixed-polled", "generic,LT-TWIN-0001,1 block,LT-TWIN-0002,1 /tmp/member", true, true),
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

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let mut script = "truncate -s 64M /tmp/member\n".to_owned();
        for (name, drives, polled, all) in RUNS {
            let some = if all { "" } else { "--skip without_registration" };
            let poll = if polled { "LONGTAKE_POLL=1 " } else { "" };
            script += &format!(
                "say {name}\n\
                 {poll}LONGTAKE_ERASE_DRIVES=$(nodes {drives}) named_drives {some} > /tmp/{name} 2>&1 \
                 || true\n\
                 give /tmp/{name}\n"
            );
        }
        let files = stage.run_alone(&Guest {
            driver_options: "poll_queues=2",
            programs: vec![(programs::test("longtake-device", "named_drives")?, "named_drives")],
            time_limit: Duration::from_secs(3600),
            ..Guest::new(script)
        })?;
        let mut told = Vec::new();
        let mut failed = Vec::new();
        for (name, drives, ..) in RUNS {
            let log = files.text(name)?;
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
