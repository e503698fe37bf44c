//! The attack `kills`: recordings end by SIGKILL at a random moment, also while they start.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::recording::{PACKET_BYTES, Shape, account, expect_chunks};
use super::stage::Stage;
use crate::soak::recorder::Recorder;

/// SIGKILL.
#[derive(Debug)]
pub struct Kills;

const ARRAY: &str = "./array";

impl super::Attack for Kills {
    fn name(&self) -> &'static str {
        "kills"
    }

    fn about(&self) -> &'static str {
        "SIGKILL at a random moment of a recording, with and without parity, as a ring or not"
    }

    fn law(&self) -> &'static str {
        "every acknowledged chunk and packet is found or was overwritten by the ring; check, scrub, takes, ledger and extract agree \
         to the packet; nothing is damaged; the next recording works, unless the kill came before the array was made"
    }

    fn slice_rounds(&self) -> u64 {
        3
    }

    fn round(&self, stage: &mut Stage) -> Result<()> {
        let random = &mut stage.random;
        let parity = random.below(3);
        let shape = Shape {
            members: parity + 1 + random.below(4),
            member_mib: 0,
            parity,
            ring: random.one_in(2),
            chunk_kib: [64, 128, 252][random.below(3) as usize],
        };
        let shape = Shape { member_mib: if shape.ring { 12 } else { 160 }, ..shape };
        let queues = 1 + random.below(2) as u16;
        let rate = [5, 50, 200][random.below(3) as usize];
        let flush = [1, 20, 300][random.below(3) as usize];
        let words = format!(
            "record --json --from synthetic:{rate}MB/s,size={PACKET_BYTES},queues={queues} --to {ARRAY} \
             --flush-interval {flush}ms {}",
            shape.options()
        );
        let words: Vec<_> = words.split_whitespace().collect();
        let mut recorder = Recorder::launch(&mut stage.command(&words))?;
        if stage.random.one_in(5) {
            thread::sleep(Duration::from_millis(stage.random.below(150)));
            stage.saw("killed while starting");
        } else {
            recorder.wait_until(|told| !told.acknowledged.is_empty())?;
            let longest = if stage.slice { 300 } else { 1500 };
            thread::sleep(Duration::from_millis(stage.random.below(longest)));
            stage.saw("killed while recording");
        }
        recorder.signal(Signal::SIGKILL)?;
        let (_, complaints) = recorder.end()?;
        ensure!(!complaints.contains("panicked"), "the recorder panicked: {complaints}");
        stage.attempts += 1;
        stage.saw_many("chunks acknowledged", recorder.acknowledged.len() as u64);
        if took_place(stage)? {
            judge(stage, &shape, queues, &recorder)?;
            return record_on(stage, &shape);
        }
        let told = recorder.acknowledged.len();
        ensure!(told == 0, "{told} chunks were acknowledged, and there is no take");
        if unfinished(stage)? {
            // Nothing tells these files from others that are no members: whoever started it removes them.
            stage.saw("arrays not finished when killed");
            fs::remove_dir_all(stage.path(ARRAY))?;
        }
        record_on(stage, &shape)
    }
}

/// Whether there is a take. A recording that was killed early may have left no array, an incomplete one, or an empty one.
fn took_place(stage: &mut Stage) -> Result<bool> {
    let ran = stage.run(&["takes", ARRAY, "--json"])?;
    if ran.code == Some(1) {
        return Ok(false);
    }
    let takes = ran.code(&[0, 3])?.json()?;
    Ok(takes.as_array().is_some_and(|takes| !takes.is_empty()))
}

/// Whether the kill came before all members were written, so that the array is refused.
fn unfinished(stage: &mut Stage) -> Result<bool> {
    if !stage.path(ARRAY).exists() {
        return Ok(false);
    }
    let ran = stage.run(&["array", "show", ARRAY])?.code(&[0, 1])?;
    let named = ran.stderr.contains("member");
    ensure!(
        ran.code == Some(0) || named,
        "`{}` doesn't name what is wrong: {}",
        ran.line,
        ran.stderr
    );
    Ok(ran.code == Some(1))
}

fn judge(stage: &mut Stage, shape: &Shape, queues: u16, recorder: &Recorder) -> Result<()> {
    let found = account(stage, ARRAY, queues)?;
    // An array that was full ended its take before the kill.
    let ended = found.state == "complete" && !shape.ring && found.missing == 0;
    ensure!(ended || found.state == "cut short", "a killed take is {}", found.state);
    let kept = found.on_media + found.overwritten;
    let told = recorder.acknowledged_packets;
    ensure!(kept >= told, "{told} packets were acknowledged, {kept} are accounted for: {found:?}");
    expect_chunks(stage, ARRAY, &recorder.acknowledged, shape.ring)?;
    stage.saw_many("packets read back", found.on_media);
    stage.saw_many("packets missing and named", found.missing);
    let ledger = stage.run(&["ledger", ARRAY, "--json"])?.json()?;
    let takes = stage.run(&["takes", ARRAY, "--json"])?.json()?;
    let last = takes.as_array().and_then(|takes| takes.last()).context("there is a take")?;
    ensure!(last == &ledger, "takes and ledger disagree: {last} and {ledger}");
    for command in ["check", "scrub"] {
        let ran = stage.run(&["array", command, ARRAY])?.code(&[0, 3])?;
        let text = String::from_utf8_lossy(&ran.stdout);
        ensure!(!text.contains("DAMAGED"), "{command} after a kill: {text}");
    }
    let scrub = stage.run(&["array", "scrub", ARRAY, "--json"])?.json()?;
    let findings = scrub["findings"].as_array().context("scrub has no findings")?;
    // An index that a kill has torn is named, and costs nothing.
    let damage = findings.iter().any(|finding| finding["damage"] != false);
    ensure!(!damage && scrub["superblocks"] == true, "scrub after a kill: {scrub}");
    stage.saw_many("torn indexes", findings.len() as u64);
    Ok(())
}

/// The array, or the folder that a kill has left, takes another recording.
fn record_on(stage: &mut Stage, shape: &Shape) -> Result<()> {
    let line = format!(
        "record -q --from synthetic:max,size={PACKET_BYTES} --until-bytes 2MB --to {ARRAY} {}",
        shape.options()
    );
    stage.line(&line)?.code(&[0, 3])?;
    let found = account(stage, ARRAY, 1)?;
    if !shape.ring && found.lost.get("array_full").is_some_and(|lost| *lost > 0) {
        stage.saw("arrays full");
        return Ok(());
    }
    found.expect_whole()?;
    let takes: Value = stage.run(&["takes", ARRAY, "--json"])?.json()?;
    ensure!(takes.as_array().is_some_and(|takes| takes.len() <= 2), "too many takes: {takes}");
    Ok(())
}
