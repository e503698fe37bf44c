//! The scenario `wrong`: drives that are not the ones that were meant. Each is refused with the reason, and not a
//! byte of any drive is changed.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;

use anyhow::{Context, Result, ensure};

use super::drives::{self, Backing};
use super::record::create;
use super::scenario::{Guest, Next, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Wrong;

const SIZE_BYTES: u64 = 64 << 20;
const FIRST: &str = "block,LT-TWIN-0001,1 block,LT-TWIN-0002,1 block,LT-PLACED-0003,1";
const SECOND: &str = "block,LT-ALONE-0004,1 block,LT-WARNING-0005,1";
const BLANK: &str = "block,LT-NAMED-0006,1";

/// Name, command, and what the refusal must say. The arrays are `$first` and `$second`.
const REFUSED: [(&str, &str, &[&str]); 7] = [
    (
        "serial",
        "array create $(nodes block,LT-NAMED-0006,1) --erase LT-NAMED-9999",
        &["nothing was written", "--erase LT-NAMED-0006"],
    ),
    (
        "member",
        "array create $(nodes block,LT-ALONE-0004,1) --erase LT-ALONE-0004",
        &["nothing was written", "Longtake array"],
    ),
    (
        "foreign",
        "record --from synthetic:1MB/s --for 1s --to $first,$(nodes block,LT-ALONE-0004,1)",
        &["belongs to array 'second', not to 'first'"],
    ),
    (
        "missing",
        "record --from synthetic:1MB/s --for 1s --to $(nodes block,LT-TWIN-0001,1 block,LT-PLACED-0003,1)",
        &["array 'first' lacks member 1", "LT-TWIN-0002"],
    ),
    (
        "exchanged",
        "record --from synthetic:1MB/s --for 1s --to $(nodes block,LT-TWIN-0001,1 block,LT-PLACED-0003,1 block,LT-NAMED-0006,1)",
        &["nothing was written", "/dev/nvme"],
    ),
    (
        "unread",
        "takes $(nodes block,LT-TWIN-0001,1 block,LT-PLACED-0003,1)",
        &["array 'first' lacks member 1", "--degraded"],
    ),
    ("blank", "takes $(nodes block,LT-NAMED-0006,1)", &["is not a member of a Longtake array"]),
];

/// The same drive by another serial number, which was not confirmed.
const RENAMED: &str = "LT-OTHER-0002";

impl Scenario for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn about(&self) -> &'static str {
        "wrong drives are refused with the reason, and nothing is written"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let mut script =
            create("first", FIRST, "--segment 4MiB") + &create("second", SECOND, "--segment 4MiB");
        for array in ["first", "second"] {
            script += &format!(
                "run on-{array} longtake record --from synthetic:20MB/s --for 1s --memory 64MiB --to ${array} --json --keep-privileges\n"
            );
        }
        script += "say before\nawait > /dev/null\n";
        for (name, command, _) in REFUSED {
            script += &format!("run {name} longtake {command}\n");
        }
        script += &format!("say after\nawait > /dev/null\ntest -n \"$(nodes {BLANK})\"\n");
        let mut hashes = Vec::new();
        let first = Guest { drives: drives::six_of(SIZE_BYTES), ..Guest::new(script) };
        let files = stage
            .run(&first, |_, machine| {
                hashes.push(contents(stage)?);
                machine.say("go on")?;
                Ok(Next::Listen)
            })?
            .files;
        ensure!(hashes.len() == 2 && hashes[0] == hashes[1], "a refused command has written");
        for array in ["on-first", "on-second"] {
            files.expect_code(array, 0)?;
        }
        for (name, _, reasons) in REFUSED {
            let said = files.expect_code(name, 1)?;
            for reason in reasons {
                ensure!(said.contains(reason), "{name} was refused without {reason:?}: {said}");
            }
        }
        let mut drives = drives::six_of(SIZE_BYTES);
        drives[1].serial = RENAMED;
        let script = format!(
            "run renamed longtake array create $(nodes block,{RENAMED},1) --erase LT-TWIN-0002 --force-new-array\n\
             run moved longtake takes $(nodes block,LT-TWIN-0001,1 block,{RENAMED},1 block,LT-PLACED-0003,1) --json\n"
        );
        let second = Guest { drives, backing: Backing::KeptFiles, ..Guest::new(script) };
        let files = stage.run_alone(&second)?;
        let said = files.expect_code("renamed", 1)?;
        ensure!(said.contains(&format!("--erase {RENAMED}")), "refused without its name: {said}");
        files.expect_code("moved", 0)?;
        ensure!(contents(stage)? == hashes[0], "a refused command has written");
        Ok(vec![format!(
            "{} wrong drives refused, each with its reason ({}, renamed); no byte of {} namespaces changed",
            REFUSED.len() + 1,
            REFUSED.map(|(name, _, _)| name).join(", "),
            hashes[0].len()
        )])
    }
}

/// A hash of each namespace's medium.
pub fn contents(stage: &Stage<'_>) -> Result<Vec<u64>> {
    let mut hashes = Vec::new();
    for (n, drive) in drives::six().iter().enumerate() {
        for m in 1..=drive.namespaces.len() {
            let path = drives::file(stage.dir, n, m);
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes);
            hashes.push(hasher.finish());
        }
    }
    Ok(hashes)
}
