//! The scenario `power`: the power is cut at random moments of a recording ring, and the drives lose what they
//! had not been told to flush. After each cut, what was flushed is there, every account balances, and recording goes on.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base::Random;
use format::ChunkRecord;
use serde_json::Value;

use super::account::{Account, number};
use super::disk::{Cut, Lost};
use super::drives;
use super::handed::Files;
use super::nbd::Media;
use super::record::{SIX, create};
use super::scenario::{Guest, Next, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Power;

const SIZE_BYTES: u64 = 32 << 20;
const SEGMENT_BYTES: u64 = 4 << 20;
/// A cut comes so long after the recording has started, at most.
const CUT_WITHIN_MS: u64 = 4000;

/// Records until the power goes. What is acknowledged is told as it comes.
const RECORD: &str = r#"
longtake record --from synthetic:60MB/s,size=9000 --to $six --when-full wrap --trim-ahead 2 --flush-interval 300ms --memory 64MiB \
    --json --keep-privileges | while IFS= read -r line; do
    case $line in *'"acknowledged"'* | *'"started"'*) echo "say $line" >&9 ;; esac
done
"#;

/// What a cut left behind, to be held against what the next machine finds.
struct After {
    /// Chunks that must be found.
    flushed: Vec<ChunkRecord>,
    /// Chunks that the ring gave up before.
    given_up: Vec<ChunkRecord>,
    /// The take that was being recorded, and what it had said to be durable.
    take: String,
    durable: u64,
}

impl Scenario for Power {
    fn name(&self) -> &'static str {
        "power"
    }

    fn about(&self) -> &'static str {
        "the power is cut at random moments, and drives lose what was not flushed"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let drives = drives::six_of(SIZE_BYTES);
        let media = Media::create(&drives, stage.dir, SEGMENT_BYTES)?;
        let mut random = Random::new(stage.seed);
        let mut after: Option<After> = None;
        let mut sums = Sums::default();
        for round in 0..=stage.cuts {
            let begin = match &after {
                None => create("six", SIX, "--segment 4MiB"),
                Some(_) => format!("six=$(nodes {SIX})\naccount found '--size 9000' $six\n"),
            };
            let record = if round < stage.cuts { RECORD } else { "" };
            let guest = Guest {
                drives: drives.clone(),
                backing: media.backing(),
                ..Guest::new(begin + record)
            };
            let pause = Duration::from_millis(random.below(CUT_WITHIN_MS));
            let ran = stage
                .run(&guest, |line, _| {
                    let told: Value = serde_json::from_str(line)?;
                    // The first array must hold something.
                    let ready = match &after {
                        None => number(&told, "/durable/packets").is_ok_and(|durable| durable > 0),
                        Some(_) => true,
                    };
                    if ready {
                        thread::sleep(pause);
                    }
                    Ok(if ready { Next::Cut } else { Next::Listen })
                })
                .with_context(|| format!("after {round} cuts"))?;
            if let Some(after) = &after {
                judge(&ran.files, after, &mut sums)
                    .with_context(|| format!("after {round} cuts"))?;
            }
            if round == stage.cuts {
                break;
            }
            let cut = match random.below(3) {
                0 => Cut::All,
                1 => Cut::Commands,
                _ => Cut::Blocks,
            };
            after = Some(After::cut(&media, cut, &mut random, &ran.said, &mut sums)?);
            eprintln!(
                "  cut {} of {}, {} ms after the start: {} of {} kB not flushed are lost, {cut:?}",
                round + 1,
                stage.cuts,
                pause.as_millis(),
                sums.last.lost_bytes / 1000,
                sums.last.unflushed_bytes / 1000,
            );
            sums.last = Lost::default();
        }
        Ok(vec![sums.told(stage.cuts)])
    }
}

impl After {
    /// Cuts the power of all drives under a recorder that has `said` these lines.
    fn cut(
        media: &Media,
        cut: Cut,
        random: &mut Random,
        said: &[String],
        sums: &mut Sums,
    ) -> Result<Self> {
        let (mut flushed, mut given_up) = (Vec::new(), Vec::new());
        for medium in &media.served {
            let lost = medium.disk_settled().cut_power(cut, random)?;
            sums.add(&lost);
            flushed.extend(lost.flushed);
            given_up.extend(lost.given_up);
        }
        let told: Vec<Value> =
            said.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let started = told.iter().find(|line| line["event"] == "started");
        let take = started.and_then(|line| line["take"].as_str()).context("no take told")?;
        let durable = told.iter().filter_map(|line| number(line, "/durable/packets").ok()).max();
        Ok(Self { flushed, given_up, take: take.to_owned(), durable: durable.unwrap_or(0) })
    }
}

/// What all cuts came to.
#[derive(Debug, Default)]
struct Sums {
    lost_bytes: u64,
    unflushed_bytes: u64,
    required: u64,
    found: u64,
    missing: u64,
    overwritten: u64,
    /// Of the last cut.
    last: Lost,
}

impl Sums {
    fn add(&mut self, lost: &Lost) {
        self.lost_bytes += lost.lost_bytes;
        self.unflushed_bytes += lost.unflushed_bytes;
        self.last.lost_bytes += lost.lost_bytes;
        self.last.unflushed_bytes += lost.unflushed_bytes;
    }

    fn told(&self, cuts: u32) -> String {
        format!(
            "{cuts} power cuts: {} of {} MB not flushed were lost; all {} chunks that had to be there were, of {} found; \
             {} packets named as missing, {} given up by the ring; every account balanced and every packet was right",
            self.lost_bytes / 1_000_000,
            self.unflushed_bytes / 1_000_000,
            self.required,
            self.found,
            self.missing,
            self.overwritten
        )
    }
}

fn judge(files: &Files, after: &After, sums: &mut Sums) -> Result<()> {
    let account = Account::of(files, "found")?;
    let array = files.json("found.array")?;
    let chunks = array["chunks"].as_array().context("no chunks")?;
    let found: BTreeSet<u64> =
        chunks.iter().map(|chunk| number(chunk, "/sequence")).collect::<Result<_>>()?;
    let gone: Vec<u64> = after
        .flushed
        .iter()
        .map(|record| record.sequence)
        .filter(|sequence| !found.contains(sequence))
        .collect();
    ensure!(
        gone.is_empty(),
        "{} of {} chunks that were flushed are not found: {gone:?}",
        gone.len(),
        after.flushed.len()
    );
    // What was said to be durable was flushed, or given up by the ring since. The word of the latter may have gone with the power, so
    // the media are asked for it.
    let packets = |chunks: &[ChunkRecord]| -> u64 {
        let in_take = chunks.iter().filter(|record| record.take.uuid.to_string() == after.take);
        in_take.map(|record| u64::from(record.summary.packets)).sum()
    };
    let (flushed, given_up) = (packets(&after.flushed), packets(&after.given_up));
    ensure!(
        after.durable <= flushed + given_up,
        "{} packets were said to be durable, {flushed} were flushed and {given_up} given up",
        after.durable
    );
    sums.required += after.flushed.len() as u64;
    sums.found += found.len() as u64;
    sums.missing += account.missing;
    sums.overwritten += account.overwritten;
    Ok(())
}
