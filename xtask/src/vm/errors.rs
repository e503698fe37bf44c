//! The scenario `errors`: every write to one of six drives fails from the middle of a recording on. What was on
//! its way there goes to the others, so that nothing is lost; once healed, it records again.

use anyhow::{Result, bail, ensure};

use super::account::Account;
use super::drives;
use super::nbd::Media;
use super::record::{SIX, create, event, told};
use super::scenario::{Guest, Next, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Errors;

/// The drive whose writes fail: its medium among those of all namespaces, and the member that it is.
const FAILING: (usize, u64) = (2, 1);

impl Scenario for Errors {
    fn name(&self) -> &'static str {
        "errors"
    }

    fn about(&self) -> &'static str {
        "every write to one of six drives fails from the middle of a recording on"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let (medium, member) = FAILING;
        let all = drives::six_of(128 << 20);
        let media = Media::create(&all, stage.dir, 8 << 20)?;
        let record = "longtake record --from synthetic:50MB/s,size=9000 --to $six --memory 128MiB --json --keep-privileges";
        let script = format!(
            "{create}\
             run first {record} --for 6s &\n\
             until [ \"$(grep -c '\"progress\"' /tmp/first)\" -ge 4 ]; do sleep 0.1; done\n\
             say recording\n\
             wait\n\
             account first '--size 9000' $six\n\
             say over\n\
             await > /dev/null\n\
             run record {record} --for 2s\n\
             account second '--size 9000' $six\n",
            create = create("six", SIX, "--segment 8MiB"),
        );
        let guest = Guest { drives: all, backing: media.backing(), ..Guest::new(script) };
        let files = stage
            .run(&guest, |line, machine| {
                let fail = line == "recording";
                media.served[medium].disk().fail_writes(fail);
                match line {
                    "recording" => {}
                    "over" => machine.say("healed")?,
                    other => bail!("the guest says {other}"),
                }
                Ok(Next::Listen)
            })?
            .files;
        let first = Account::of(&files, "first")?;
        first.expect_whole()?;
        let failures = files
            .json_lines("first")?
            .into_iter()
            .filter(|line| line["event"] == "member_failed")
            .collect::<Vec<_>>();
        ensure!(failures.len() == 1, "one member was to fail: {failures:?}");
        let failed = media.served[medium].disk().counts().failed;
        ensure!(failed > 0, "no write was failed");
        let of_member = |chunk: &&super::account::Chunk| chunk.member == member;
        let last = first.chunks.iter().filter(of_member).map(|chunk| chunk.sequence).max();
        let after = first.chunks.iter().filter(|chunk| Some(chunk.sequence) > last).count();
        ensure!(last.is_some() && after > 5, "{after} chunks after the failing member's last");
        let second = Account::of(&files, "second")?;
        event(&files, "finished")?;
        Ok(vec![
            format!(
                "{failed} writes failed, {} packets stored all the same, {}",
                first.on_media,
                first.losses()
            ),
            format!("healed: {}", told(&files, &second, 6)?),
        ])
    }
}
