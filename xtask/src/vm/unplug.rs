//! The scenario `unplug`: one of six drives is pulled out of a recording at 1 GB/s. The take goes on, and what is
//! missing is what that drive held, to the packet; put back, it has it.

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::account::{Account, left_out};
use super::record::{SIX, create, event};
use super::scenario::{Guest, Next, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Unplug;

/// The drive that is pulled: its number on the machine, which is also the member's, and its serial number.
const PULLED: (u64, &str) = (1, "LT-TWIN-0002");

const PACKETS: &str = "--size 60000 --queues 2";

impl Scenario for Unplug {
    fn name(&self) -> &'static str {
        "unplug"
    }

    fn about(&self) -> &'static str {
        "one of six drives is pulled out of a recording at 1 GB/s, and put back afterwards"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let (number, serial) = PULLED;
        let left: Vec<&str> = SIX.split(' ').filter(|drive| !drive.contains(serial)).collect();
        let script = format!(
            "{create}\
             run record longtake record --from synthetic:1GB/s,size=60000,queues=2 --to $six --for 8s --memory 128MiB --json \
             --keep-privileges &\n\
             until [ \"$(grep -c acknowledged /tmp/record)\" -ge 30 ]; do sleep 0.1; done\n\
             say recording\n\
             wait\n\
             account without '{PACKETS}' $(nodes {left}) --degraded\n\
             say over\n\
             await > /dev/null\n\
             until [ -n \"$(nodes block,{serial},1)\" ]; do sleep 0.1; done\n\
             account with '{PACKETS}' $(nodes {SIX})\n",
            create = create("six", SIX, ""),
            left = left.join(" "),
        );
        let files = stage
            .run(&Guest::new(script), |line, machine| {
                let id = format!("nvme{number}");
                match line {
                    "recording" => machine.unplug(&id)?,
                    "over" => {
                        let device = json!({
                            "driver": "nvme", "id": id, "bus": format!("port{number}"),
                            "serial": serial, "subsys": format!("subsys{number}"), "mdts": 5,
                        });
                        machine.execute("device_add", &device)?;
                        machine.say("back")?;
                    }
                    other => bail!("the guest says {other}"),
                }
                Ok(Next::Listen)
            })?
            .files;
        let with = Account::of(&files, "with").context("with the drive put back")?;
        let without = Account::of(&files, "without").context("without the drive")?;
        with.expect_whole()?;
        let held: Vec<_> = with.chunks.iter().filter(|chunk| chunk.member == number).collect();
        let held_packets: u64 = held.iter().map(|chunk| chunk.packets).sum();
        let missing = without.missing;
        ensure!(
            missing == held_packets && missing > 0,
            "{missing} packets are named as missing, the drive has {held_packets}"
        );
        let gone = left_out(&with.found, &without.found)?;
        ensure!(gone == missing, "{gone} sequence numbers are not there, {missing} are named");
        let last_held = held.iter().map(|chunk| chunk.sequence).max().unwrap_or(0);
        let after = with.chunks.iter().filter(|chunk| chunk.sequence > last_held).count();
        ensure!(after > 5, "the take did not go on: {after} chunks after the drive's last");
        let failed = event(&files, "member_failed")?;
        let finished = event(&files, "finished")?;
        let rate = |name: &str| finished[name].as_f64().unwrap_or(0.0) / 1e6;
        Ok(vec![
            format!(
                "{missing} packets in {} gaps missing without the drive, exactly its {} chunks; with it nothing is",
                without.gaps,
                held.len()
            ),
            format!(
                "{} packets on six members at {:.0} MB/s of 1000 offered, {}",
                with.on_media,
                rate("average_rate"),
                with.losses()
            ),
            failed["text"].as_str().unwrap_or_default().to_owned(),
        ])
    }
}
