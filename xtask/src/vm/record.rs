//! The scenarios `record` and `passthrough`: six drives record at a rate, by the block layer and past it, and
//! give every packet back.

use anyhow::{Context, Result, ensure};

use super::account::{Account, number};
use super::handed::Files;
use super::scenario::{Guest, Scenario, Stage};

/// The first namespaces of all six drives, by the block layer.
pub const SIX: &str = "block,LT-TWIN-0001,1 block,LT-TWIN-0002,1 block,LT-PLACED-0003,1 \
                       block,LT-ALONE-0004,1 block,LT-WARNING-0005,1 block,LT-NAMED-0006,1";

/// What confirms that all of them may be erased.
pub const ERASE: &str = "--erase LT-TWIN-0001 --erase LT-TWIN-0002 --erase LT-PLACED-0003 \
                         --erase LT-ALONE-0004 --erase LT-WARNING-0005 --erase LT-NAMED-0006";

/// All namespaces of all drives but one: the block layer where there are two, passthrough elsewhere.
const MIXED: &str = "block,LT-TWIN-0001,1 block,LT-TWIN-0001,2 block,LT-TWIN-0002,1 \
                     block,LT-TWIN-0002,2 generic,LT-PLACED-0003,1 generic,LT-ALONE-0004,1";

/// Recording by the block layer.
#[derive(Debug)]
pub struct Record;

/// Recording past it.
#[derive(Debug)]
pub struct Passthrough;

impl Scenario for Record {
    fn name(&self) -> &'static str {
        "record"
    }

    fn about(&self) -> &'static str {
        "six drives record at a rate and give every packet back"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let script = format!(
            "{}run record longtake record --from synthetic:100MB/s,size=9000 --to $six --until-bytes 300MB --memory 128MiB --json \
             --keep-privileges\n\
             account after '--size 9000' $six\n",
            create("six", SIX, "")
        );
        let files = stage.run_alone(&Guest::new(script))?;
        let account = Account::of(&files, "after")?;
        Ok(vec![told(&files, &account, 6)?])
    }
}

impl Scenario for Passthrough {
    fn name(&self) -> &'static str {
        "passthrough"
    }

    fn about(&self) -> &'static str {
        "the same by NVMe passthrough and the block layer at once, several namespaces of a drive in one array"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let script = format!(
            "{}run record longtake record --from synthetic:100MB/s,size=9000 --to $mixed --until-bytes 200MB --memory 128MiB --json \
             --keep-privileges\n\
             account after '--size 9000' $mixed\n",
            create("mixed", MIXED, "")
        );
        let files = stage.run_alone(&Guest::new(script))?;
        let account = Account::of(&files, "after")?;
        Ok(vec![told(&files, &account, 6)?])
    }
}

/// The lines of a script that make an array, whose nodes are `$NAME` from there on. What `create` says is
/// handed over under the array's name.
pub fn create(name: &str, drives: &str, options: &str) -> String {
    format!(
        "{name}=$(nodes {drives})\n\
         run {name} longtake array create $(echo ${name} | tr , ' ') --name {name} {ERASE} --json {options}\n"
    )
}

/// The lines of JSON that `run record longtake record --json` printed, by event.
///
/// # Errors
/// If there is none of that kind.
pub fn event(files: &Files, name: &str) -> Result<serde_json::Value> {
    let lines = files.json_lines("record")?;
    let found = lines.into_iter().find(|line| line["event"] == name);
    found.with_context(|| {
        format!("the recording told of nothing {name}; {:?}", files.ended("record"))
    })
}

/// That a recording and what was found of it agree, in a sentence.
///
/// # Errors
/// If they don't.
pub fn told(files: &Files, account: &Account, members: u64) -> Result<String> {
    files.expect_code("record", if account.lost_sum() == 0 { 0 } else { 3 })?;
    let finished = event(files, "finished")?;
    account.expect_whole()?;
    let stored = number(&finished, "/ledger/stored/packets")?;
    ensure!(stored == account.on_media, "{stored} packets recorded, {} found", account.on_media);
    for member in 0..members {
        let chunks = account.chunks.iter().filter(|chunk| chunk.member == member).count();
        ensure!(chunks > 0, "member {member} has no chunk");
    }
    Ok(format!(
        "{stored} packets in {} chunks on {members} members at {:.0} MB/s, {}; ledger, checksums and every packet agree",
        account.chunks.len(),
        finished["average_rate"].as_f64().context("no rate")? / 1e6,
        account.losses()
    ))
}
