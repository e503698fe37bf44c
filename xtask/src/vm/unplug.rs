//! The scenarios `unplug` and `parity`: one of six drives is pulled out of a recording at 1 GB/s, and the take goes on. Without
//! parity what is missing is what that drive held, to the packet; put back, it has it. With parity nothing is missing.

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::account::{Account, left_out, number};
use super::handed::Files;
use super::machine::Clock;
use super::record::{SIX, create, event};
use super::scenario::{Guest, Next, Scenario, Stage};

/// Without parity.
#[derive(Debug)]
pub struct Unplug;

/// With it.
#[derive(Debug)]
pub struct Parity;

/// The drive that is pulled: its number on the machine, which is also the member's, and its serial number.
const PULLED: (u64, &str) = (1, "LT-TWIN-0002");

const PACKETS: &str = "--size 60000";

impl Scenario for Unplug {
    fn name(&self) -> &'static str {
        "unplug"
    }

    fn about(&self) -> &'static str {
        "one of six drives is pulled out of a recording at 1 GB/s, and put back afterwards"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let number = PULLED.0;
        let files = pulled(stage, "", "--degraded", 200)?;
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
        Ok(vec![
            format!(
                "{missing} packets in {} gaps missing without the drive, exactly its {} chunks; with it nothing is",
                without.gaps,
                held.len()
            ),
            format!("{}, {} packets on six members", offered(&files)?, with.on_media),
            with.losses(),
            failed["text"].as_str().unwrap_or_default().to_owned(),
        ])
    }
}

impl Scenario for Parity {
    fn name(&self) -> &'static str {
        "parity"
    }

    fn about(&self) -> &'static str {
        "the same of an array with parity: nothing is missing"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let files = pulled(stage, "--parity 1", "", 40)?;
        let with = Account::of(&files, "with").context("with the drive put back")?;
        let without = Account::of(&files, "without").context("without the drive")?;
        with.expect_whole()?;
        without.expect_whole()?;
        ensure!(with.found == without.found, "what parity gives back is not what the drive held");
        let recovered = number(&files.json("without.ledger")?, "/recovered/chunks")?;
        ensure!(recovered > 0, "the drive held nothing that had to be recovered");
        for (queue, ranges) in &without.found {
            let whole = ranges.len() == 1 && ranges[0].start == 0;
            ensure!(whole || without.lost_sum() > 0, "queue {queue} has {ranges:?}");
        }
        Ok(vec![
            format!(
                "without the drive every one of {} sequence numbers is there, {recovered} chunks by parity; with it too",
                without.on_media
            ),
            offered(&files)?,
            with.losses(),
            event(&files, "member_failed")?["text"].as_str().unwrap_or_default().to_owned(),
        ])
    }
}

/// How much the source offered while it ran.
fn offered(files: &Files) -> Result<String> {
    let bytes = number(&event(files, "finished")?, "/ledger/offered/bytes")?;
    Ok(format!("{:.2} GB offered in a second of the guest's time", bytes as f64 / 1e9))
}

/// Pulls the drive out of a recording on an array made with `options`, in its middle, when so many lines have told of acknowledged
/// chunks (of groups of them, with parity), and puts it back: the account `without` it, read with `reading`, and the one `with` it.
fn pulled(stage: &Stage<'_>, options: &str, reading: &str, told: u32) -> Result<Files> {
    let (number, serial) = PULLED;
    let left: Vec<&str> = SIX.split(' ').filter(|drive| !drive.contains(serial)).collect();
    let script = format!(
        "{create}\
         run record longtake record --from synthetic:1GB/s,size=60000 --to $six --for 1s --memory 512MiB --json \
         --keep-privileges &\n\
         until [ \"$(grep -c acknowledged /tmp/record)\" -ge {told} ]; do\n\
         kill -0 $! || say 'the recording has ended'\n\
         sleep 0.1\n\
         done\n\
         say recording\n\
         wait\n\
         account without '{PACKETS}' $(nodes {left}) {reading}\n\
         say over\n\
         await > /dev/null\n\
         until [ -n \"$(nodes block,{serial},1)\" ]; do sleep 0.1; done\n\
         account with '{PACKETS}' $(nodes {SIX})\n",
        create = create("six", SIX, options),
        left = left.join(" "),
    );
    // So fast that an emulated processor keeps up in its own time alone.
    let guest = Guest { clock: Clock::Counted, ..Guest::new(script) };
    stage
        .run(&guest, |line, machine| {
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
        })
        .map(|ran| ran.files)
}
