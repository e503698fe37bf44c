//! The scenario `throttle`: one of six drives slows down to a crawl in the middle of a recording, and recovers.
//! Placement turns to the others, and nothing is lost as long as buffers last.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::account::{Account, number};
use super::machine::Machine;
use super::record::{SIX, create, told};
use super::scenario::{Guest, Next, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Throttle;

/// The medium that is throttled, and the member that it is.
const THROTTLED: (&str, usize) = ("file1-1", 1);
/// A share of the rate that the source offers each member is 5 MB/s.
const CRAWL_BYTES_PER_S: u64 = 200_000;

impl Scenario for Throttle {
    fn name(&self) -> &'static str {
        "throttle"
    }

    fn about(&self) -> &'static str {
        "one of six drives slows down to a crawl in the middle of a recording, and recovers"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let script = format!(
            "{create}\
             run record longtake record --from synthetic:30MB/s,size=9000 --to $six --for 14s --memory 256MiB \
             --json --keep-privileges &\n\
             progress() {{ grep '\"progress\"' /tmp/record | tail -n 1 > /tmp/$1; }}\n\
             until [ \"$(grep -c '\"progress\"' /tmp/record)\" -ge 4 ]; do sleep 0.1; done\n\
             say crawl\n\
             await > /dev/null\n\
             progress from\n\
             sleep 5\n\
             progress to\n\
             say recover\n\
             wait\n\
             progress end\n\
             give /tmp/from /tmp/to /tmp/end\n\
             account after '--size 9000' $six\n",
            create = create("six", SIX, ""),
        );
        let files = stage
            .run(&Guest::new(script), |line, machine| {
                match line {
                    "crawl" => {
                        limit(machine, CRAWL_BYTES_PER_S)?;
                        machine.say("crawling")?;
                    }
                    "recover" => limit(machine, 0)?,
                    other => bail!("the guest says {other}"),
                }
                Ok(Next::Listen)
            })?
            .files;
        let account = Account::of(&files, "after")?;
        let shown = told(&files, &account, 6)?;
        ensure!(account.lost_sum() == 0, "{}", account.losses());
        let (from, to, end) = (
            written(&files.json("from")?)?,
            written(&files.json("to")?)?,
            written(&files.json("end")?)?,
        );
        let (_, slow) = THROTTLED;
        let gained: Vec<u64> = from.iter().zip(&to).map(|(from, to)| to - from).collect();
        let others = (gained.iter().sum::<u64>() - gained[slow]) / 5;
        ensure!(
            gained[slow] * 2 < others,
            "while member {slow} crawled it was given {} bytes, the others {others} each",
            gained[slow]
        );
        ensure!(end[slow] > to[slow], "member {slow} was given nothing once it had recovered");
        Ok(vec![
            format!(
                "crawling, the member got {:.1} MB and the others {:.1} MB each; {:.1} MB once it had recovered",
                gained[slow] as f64 / 1e6,
                others as f64 / 1e6,
                (end[slow] - to[slow]) as f64 / 1e6
            ),
            shown,
        ])
    }
}

/// Limits the drive's bytes a second; 0 takes the limit away.
fn limit(machine: &mut Machine, bytes_per_s: u64) -> Result<()> {
    let limits = json!({
        "device": THROTTLED.0, "bps": bytes_per_s, "bps_rd": 0, "bps_wr": 0,
        "iops": 0, "iops_rd": 0, "iops_wr": 0,
    });
    machine.execute("block_set_io_throttle", &limits).map(drop)
}

/// Bytes given to each member, of a line of progress.
fn written(progress: &Value) -> Result<Vec<u64>> {
    let members = progress["members"].as_array().context("progress without members")?;
    members.iter().map(|member| number(member, "/written")).collect()
}
