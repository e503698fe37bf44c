//! The scenario `clock`: the machine's clock is set back and forward while a ring is recorded on, and afterwards every command
//! tells the same of it.

use anyhow::{Result, ensure};

use super::account::{Account, number};
use super::drives;
use super::handed::Files;
use super::record::{SIX, create, event};
use super::scenario::{Guest, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Clock;

/// Size of each namespace; six of them make an array.
const SIZE_BYTES: u64 = 40 << 20;
/// Two of their second namespaces, for a slow recording.
const SLOW: &str = "block,LT-TWIN-0001,2 block,LT-TWIN-0002,2";
/// Datagrams of ten seconds: a chunk that the clock holds has several times as many.
const WAITING_MAX: u64 = 100;
/// A recorder that acknowledges nothing for so many looks hangs.
const LOOKS_MAX: u32 = 3000;
/// What the clock is set by, in seconds: an hour back, a day forward, a second back, and back to before the recording.
const JUMPS_S: [i64; 4] = [-3600, 86_400, -1, -90_000];

impl Scenario for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn about(&self) -> &'static str {
        "the clock is set back and forward during a recording on a ring"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let drives = drives::six_of(SIZE_BYTES);
        let files = stage.run_alone(&Guest { drives, ..Guest::new(script()) })?;
        Ok(vec![ring(&files)?, datagrams(&files)?])
    }
}

fn script() -> String {
    let record = "longtake record --from synthetic:30MB/s,size=9000 --to $six --memory 128MiB --when-full wrap --json --keep-privileges";
    // What comes next is counted in acknowledgements, not in time: there is none to trust.
    let mut script = format!(
        "{six}{slow}\
         written() {{ grep -c '\"acknowledged\"' /tmp/$1 || true; }}\n\
         more() {{ left={LOOKS_MAX}; until [ \"$(written $1)\" -ge $2 ]; do\n\
             left=$((left - 1)); test $left -gt 0; sleep 0.1\n\
         done; }}\n\
         run record {record} --until-bytes 500MB &\n\
         more record 1\n",
        six = create("six", SIX, "--segment 4MiB --chunk 508KiB"),
        slow = create("slow", SLOW, "--segment 16MiB --chunk 4092KiB"),
    );
    script += &jumps("record", 20);
    script += "wait\naccount after '--size 9000' $six\nrun takes longtake takes $six --json\n";
    // Ten datagrams a second: a chunk is nearly always open, and would take 45 s to fill.
    script += "run udp longtake record --from udp:127.0.0.1:9700 --to $slow --memory 64MiB --flush-interval 200ms --json --keep-privileges &\n\
         until grep -q '\"started\"' /tmp/udp; do sleep 0.1; done\n\
         longtake replay $six --take last --udp 127.0.0.1:9700 --speed 0.003 > /tmp/replay 2>&1 &\n\
         more udp 1\n";
    script += &jumps("udp", 10);
    script += "kill -INT $(pidof longtake)\nwait\n\
         run udp.ledger longtake ledger $slow --json\n\
         run udp.extract longtake extract $slow --json -o /tmp/udp.pcapng\n\
         run next.record longtake record --from synthetic:max,size=9000 --to $six --until-bytes 20MB --memory 128MiB --when-full wrap \
         --json --keep-privileges\naccount next '--size 9000' $six\n";
    script
}

/// The lines that set the clock, each time until the recording has acknowledged so much more.
fn jumps(recording: &str, more: u32) -> String {
    let jump = |jump: &i64| {
        format!(
            "date -s @$(( $(date +%s) + {jump} )) > /dev/null\nsay {recording} {jump}\n\
             more {recording} $(( $(written {recording}) + {more} ))\n"
        )
    };
    JUMPS_S.iter().map(jump).collect()
}

/// The recording on a ring, and the one after it.
fn ring(files: &Files) -> Result<String> {
    let finished = event(files, "finished")?;
    let account = Account::of(files, "after")?;
    account.expect_whole()?;
    ensure!(account.overwritten > 0, "the ring did not turn: {account:?}");
    ensure!(
        number(&finished, "/ledger/offered/packets")? == account.offered,
        "the recorder told other packets than the ledger: {finished}"
    );
    let newest = account.found.get(&0).and_then(|ranges| ranges.last()).map(|range| range.end);
    ensure!(newest == Some(account.offered), "the newest packet found is {newest:?}: {account:?}");
    let takes = files.json("takes")?;
    ensure!(takes.as_array().is_some_and(|takes| takes.len() == 1), "not one take: {takes}");
    Account::of(files, "next")?.expect_whole()?;
    Ok(format!(
        "{} jumps of up to {} s; {} packets there, {} overwritten, {}; a recording after them is whole, too",
        JUMPS_S.len(),
        JUMPS_S.iter().map(|jump| jump.abs()).max().unwrap_or(0),
        account.on_media,
        account.overwritten,
        account.losses()
    ))
}

/// The recording of datagrams, whose times are the kernel's, and so jump.
fn datagrams(files: &Files) -> Result<String> {
    files.expect_code("udp", 0)?;
    files.expect_code("udp.ledger", 0)?;
    files.expect_code("udp.extract", 0)?;
    let (take, extract) = (files.json("udp.ledger")?, files.json("udp.extract")?);
    ensure!(take["state"] == "complete" && take["balances"] == true, "the take: {take}");
    let stored = number(&take, "/ledger/stored/packets")?;
    let back = number(&extract, "/packets")?;
    ensure!(stored > 0 && stored == back, "{stored} datagrams stored, {back} extracted: {take}");
    let (mut acknowledged, mut waiting) = (0, 0);
    for line in files.json_lines("udp")? {
        match line["event"].as_str() {
            Some("acknowledged") => acknowledged = number(&line, "/acknowledged/packets")?,
            Some("progress") => {
                waiting =
                    waiting.max(number(&line, "/offered_packets")?.saturating_sub(acknowledged));
            }
            _ => {}
        }
    }
    ensure!(waiting <= WAITING_MAX, "{waiting} datagrams waited at once to be acknowledged");
    Ok(format!("{back} datagrams, at most {waiting} of them not yet acknowledged at a time"))
}
