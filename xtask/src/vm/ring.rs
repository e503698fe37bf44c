//! The scenarios `full` and `ring`: what happens at the end of an array. It stops there, or goes on over the oldest
//! and trims ahead of itself.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::account::{Account, number};
use super::drives;
use super::nbd::Media;
use super::record::{SIX, create, event};
use super::scenario::{Guest, Scenario, Stage};

/// Stopping at the end.
#[derive(Debug)]
pub struct Full;

/// Several laps.
#[derive(Debug)]
pub struct Ring;

/// Size of each namespace; six of them make an array.
const SIZE_BYTES: u64 = 40 << 20;
const SEGMENT_BYTES: u64 = 4 << 20;

impl Scenario for Full {
    fn name(&self) -> &'static str {
        "full"
    }

    fn about(&self) -> &'static str {
        "a recording stops at the end of the array"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let script = format!(
            "{}run record longtake record --from synthetic:max,size=9000 --to $six --memory 128MiB --json --keep-privileges\n\
             account after '--size 9000' $six\n\
             run again longtake record --from synthetic:max,size=9000 --to $six --memory 128MiB --json --keep-privileges\n\
             run ledger longtake takes $six --json\n",
            create("six", SIX, "--segment 4MiB")
        );
        let drives = drives::six_of(SIZE_BYTES);
        let files = stage.run_alone(&Guest { drives, ..Guest::new(script) })?;
        let account = Account::of(&files, "after")?;
        account.expect_whole()?;
        let told = event(&files, "array_full")?;
        let lost_elsewhere = account.lost_sum() - account.lost.get("array_full").unwrap_or(&0);
        ensure!(lost_elsewhere == 0, "{}", account.losses());
        let array = files.json("after.array")?;
        let members = array["members"].as_array().context("no members")?;
        let (mut used, mut size) = (0, 0);
        for member in members {
            used += number(member, "/used_bytes")?;
            size += number(member, "/segments")? * number(member, "/segment_bytes")?;
        }
        ensure!(used * 10 > size * 9, "only {used} of {size} bytes are used");
        let takes = files.json("ledger")?;
        let first = number(&takes, "/0/on_media/packets")?;
        ensure!(first == account.on_media, "a second recording changed the first: {takes}");
        Ok(vec![format!(
            "{} packets on {used} of {size} bytes, {}; \"{}\"; a second recording leaves them alone",
            account.on_media,
            account.losses(),
            told["text"].as_str().unwrap_or_default()
        )])
    }
}

impl Scenario for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn about(&self) -> &'static str {
        "a ring of several laps, trimmed ahead of its head: the drives see the trims"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let all = drives::six_of(SIZE_BYTES);
        let media = Media::create(&all, stage.dir, SEGMENT_BYTES)?;
        let script = format!(
            "{}say made\n\
             run record longtake record --from synthetic:60MB/s,size=9000 --to $six --until-bytes 650MB --memory 128MiB \
             --when-full wrap --json --keep-privileges\n\
             account after '--size 9000' $six\n",
            create("six", SIX, "--segment 4MiB")
        );
        let trimmed = || -> u64 {
            media.served.iter().map(|medium| medium.disk().counts().trimmed_bytes).sum()
        };
        let mut at_first = 0;
        let guest = Guest { drives: all, backing: media.backing(), ..Guest::new(script) };
        let files = stage
            .run(&guest, |_, _| {
                at_first = trimmed();
                Ok(super::scenario::Next::Listen)
            })?
            .files;
        let account = Account::of(&files, "after")?;
        account.expect_whole()?;
        ensure!(account.overwritten > account.on_media, "fewer than two laps: {account:?}");
        let last = account.found.get(&0).and_then(|ranges| ranges.last()).context("no packets")?;
        let newest = account.offered;
        ensure!(
            last.end == newest,
            "the newest packet is {newest}, found are those up to {last:?}"
        );
        let finished = event(&files, "finished")?;
        let kept = whole_since(number(&finished, "/reused_to_ns")?, &files.json("after.array")?)?;
        ensure!(kept * 4 >= account.chunks.len(), "only {kept} chunks without a gap: {account:?}");
        ensure!(at_first >= 6 * SIZE_BYTES / 10 * 9, "making the array trimmed {at_first} bytes");
        let later = trimmed() - at_first;
        let laps = number(&finished, "/written")? as f64 / (6 * SIZE_BYTES) as f64;
        ensure!(later > 6 * SIZE_BYTES, "{later} bytes trimmed in {laps:.1} laps");
        Ok(vec![format!(
            "{laps:.1} laps, {} packets given up, {} there, without a gap the newest {kept} of {} chunks, {}; {at_first} bytes \
             trimmed when the array was made and {later} on the way",
            account.overwritten,
            account.on_media,
            account.chunks.len(),
            account.losses()
        )])
    }
}

/// The chunks since the time up to which the ring has given something up: all numbers must be there. How many they are.
fn whole_since(reused_to_ns: u64, array: &Value) -> Result<usize> {
    let chunks = array["chunks"].as_array().context("no chunks")?;
    let since = |chunk: &&Value| number(chunk, "/first_ns").is_ok_and(|ns| ns > reused_to_ns);
    let mut numbers: Vec<u64> =
        chunks.iter().filter(since).map(|c| number(c, "/sequence")).collect::<Result<_>>()?;
    numbers.sort_unstable();
    let gap = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1);
    ensure!(gap.is_none(), "the ring has kept {gap:?} and nothing between");
    Ok(numbers.len())
}
