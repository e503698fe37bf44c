//! The scenario `in-use`: drives that a file system, swap, the device mapper, a RAID or a loop device uses. Nothing that writes drives
//! takes them, by the block layer or past it, whatever is confirmed; not a byte of them is changed.

use anyhow::{Context, Result, ensure};

use super::drives;
use super::record::create;
use super::scenario::{Guest, Next, Scenario, Stage};
use super::wrong::contents;

/// See the module.
#[derive(Debug)]
pub struct InUse;

const SIZE_BYTES: u64 = 64 << 20;

/// What uses a drive.
struct Use {
    name: &'static str,
    serial: &'static str,
    /// How it comes to be used; `$d` is its node.
    begin: &'static str,
    /// A further node that is tried, as a shell word; empty if there is none.
    further: &'static str,
}

const USES: [Use; 6] = [
    Use {
        name: "mounted",
        serial: "LT-TWIN-0001",
        begin: "filled $d\nmkdir /tmp/whole\nmount -t ext4 -o noatime $d /tmp/whole\n\
                echo kept > /tmp/whole/whole\nsync\n",
        further: "",
    },
    Use {
        name: "mounted-partition",
        serial: "LT-TWIN-0002",
        begin: "printf 'label: gpt\\nsize=24MiB\\nsize=24MiB\\n' | sfdisk -q $d\nfilled ${d}p1\n\
                mkdir /tmp/part\nmount -t ext4 -o noatime ${d}p1 /tmp/part\n\
                echo kept > /tmp/part/part\nsync\n",
        further: "${d}p1",
    },
    Use { name: "swap", serial: "LT-PLACED-0003", begin: "mkswap $d\nswapon $d\n", further: "" },
    Use {
        name: "mapped",
        serial: "LT-ALONE-0004",
        begin: "dmsetup create mapped --noudevsync --table \"0 65536 linear $d 0\"\n",
        further: "/dev/dm-0",
    },
    Use {
        name: "raid",
        serial: "LT-WARNING-0005",
        begin: "echo md_used > /sys/module/md_mod/parameters/new_array\n\
                m=/sys/block/md_used/md\necho none > $m/metadata_version\necho raid1 > $m/level\n\
                echo 2 > $m/raid_disks\necho 32768 > $m/component_size\n\
                cat /sys/class/block/${d##*/}/dev > $m/new_dev\necho 0 > $m/dev-${d##*/}/slot\n\
                echo active > $m/array_state\n",
        further: "",
    },
    Use {
        name: "loop",
        serial: "LT-NAMED-0006",
        begin: "losetup /dev/loop0 $d\n",
        further: "/dev/loop0",
    },
];

/// Everything that writes drives: `@` is the node, `%` its serial number, `$array` one of two members whose second is lost.
const COMMANDS: [&str; 7] = [
    "array create @ --erase %",
    "array create --force-new-array @ --erase %",
    "array rebuild $array --member 1 --onto @ --erase %",
    "measure run @ --write 1 --bytes 1MiB -o /tmp/results --erase %",
    "measure run @ --trim 1 --bytes 1MiB -o /tmp/results --erase %",
    "record --from synthetic:10MB/s --until-bytes 1MB --to @ --keep-privileges",
    "extract $array --degraded -o @ -y",
];

impl Scenario for InUse {
    fn name(&self) -> &'static str {
        "in-use"
    }

    fn about(&self) -> &'static str {
        "drives that are mounted, swapped on, mapped, or in a RAID are refused, and not written"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let mut hashes = Vec::new();
        let guest = Guest {
            drives: drives::six_of(SIZE_BYTES),
            modules: &["ext4", "dm_mod", "raid1", "loop"],
            programs: ["mkfs.ext4", "sfdisk", "dmsetup"]
                .map(|name| (format!("/usr/sbin/{name}").into(), name))
                .into(),
            ..Guest::new(script())
        };
        let ran = stage.run(&guest, |_, machine| {
            hashes.push(contents(stage)?);
            machine.say("go on")?;
            Ok(Next::Listen)
        })?;
        let mut refused = 0;
        for attempt in attempts() {
            let said = ran.files.expect_code(&attempt.name, 1)?;
            let reason = said.lines().any(|line| !line.starts_with("exit code"));
            ensure!(reason, "{} was refused without a reason", attempt.name);
            refused += 1;
        }
        ensure!(hashes.len() == 2, "the media were looked at {} times", hashes.len());
        ensure!(hashes[0] == hashes[1], "a command has written to a drive in use");
        for proof in ["whole", "part"] {
            let left = ran.files.0.get(proof).with_context(|| format!("{proof} is not there"))?;
            ensure!(left.starts_with(b"kept"), "the file in {proof} has changed");
        }
        Ok(vec![format!(
            "{refused} commands refused on drives in use ({}); no byte of them changed",
            USES.map(|use_| use_.name).join(", ")
        )])
    }
}

/// A command aimed at a drive in use.
struct Attempt {
    name: String,
    line: String,
}

/// All commands at all nodes of all drives in use.
fn attempts() -> Vec<Attempt> {
    let mut attempts = Vec::new();
    for Use { name, serial, further, .. } in &USES {
        let block = format!("$(nodes block,{serial},1)");
        let generic = format!("$(nodes generic,{serial},1)");
        let further = further.replace("${d}", &block);
        for (kind, node) in [("block", block), ("generic", generic), ("further", further)] {
            let commands = COMMANDS.iter().enumerate().filter(|_| !node.is_empty());
            attempts.extend(commands.map(|(n, command)| Attempt {
                name: format!("{name}-{kind}-{n}"),
                line: command.replace('@', &node).replace('%', serial),
            }));
        }
    }
    attempts
}

fn script() -> String {
    let mut script =
        "filled() { mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 $1; }\n".to_owned();
    script +=
        &create("both", "block,LT-TWIN-0001,2 block,LT-TWIN-0002,2", "--segment 4MiB --parity 1");
    script += "run on-both longtake record --from synthetic:20MB/s --until-bytes 5MB --memory 64MiB --to $both --json --keep-privileges\n\
               array=$(nodes block,LT-TWIN-0001,2)\n";
    for Use { serial, begin, .. } in &USES {
        script += &format!("d=$(nodes block,{serial},1)\n{begin}");
    }
    script += "say before\nawait > /dev/null\n";
    for Attempt { name, line } in attempts() {
        script += &format!("run {name} longtake {line}\n");
    }
    script + "sync\nsay after\nawait > /dev/null\ngive /tmp/whole/whole /tmp/part/part\n"
}
