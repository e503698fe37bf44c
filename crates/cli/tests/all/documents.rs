//! The commands of README.md and of the pages below docs/, run in their order: all that need no hardware, no network and no other
//! program. Each document has a scratch directory of its own, and nothing is left elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{longtake, run, scratch, tool};

#[path = "../documents/lines.rs"]
pub mod lines;

use lines::ours;

/// Words in commands that are not run here, and the reason. A command is left out for the first that it contains.
const LEFT_OUT: [(&str, &str); 24] = [
    ("longtake serve", "runs until it is ended; tests/all/serve.rs runs it and what asks it"),
    ("longtake token", "changes the user's own tokens; tests/all/serve_access.rs runs it"),
    ("longtake wireshark", "changes the user's own settings; tests/all/wireshark.rs runs it"),
    ("cargo run", "builds the program, and records 5 GB"),
    ("--print fio", "the dots stand for other options"),
    (" ...", "the dots stand for an array or for targets"),
    ("FROM...", "the name stands for files of measurements"),
    ("TARGET...", "the name stands for several targets"),
    ("/dev/nvme", "needs real drives"),
    (" --to radar", "needs an array of real drives"),
    ("takes radar", "needs an array of real drives"),
    ("--config radar.toml", "the file names a network interface"),
    ("--interface eth1", "needs a network interface"),
    ("--from eth0", "needs a network interface"),
    ("| tcpdump", "needs another program"),
    ("| wireshark", "needs another program"),
    ("sensor |", "needs another program"),
    ("import fio.json", "needs a result of fio, which tests/all/measure_fio.rs makes"),
    ("--profiles DIR", "needs drives of earlier versions"),
    ("--profiles earlier", "needs drives of earlier versions"),
    ("reproduce", "takes minutes; tests/all/reproduce.rs runs some of it"),
    (
        "--keep 5m --prove",
        "proves five drives; crates/plan/tests/all/proof.rs does so with short missions",
    ),
    ("sim rest", "takes minutes; tests/all/sim_rest.rs runs it on a small drive"),
    ("--onto DIR/member2", "needs a member that was lost; tests/all/parity.rs rebuilds one"),
];

/// What commands say, and what is run: names are replaced by ones that exist in the scratch directory, and long commands by short
/// ones of the same kind.
const REPLACED: [(&str, &str); 27] = [
    (" ARRAY", " ./array"),
    (" DIR", " ."),
    (" TARGET", " sim:ideal"),
    ("/tmp/longtake", "./array"),
    ("--for 10m", "--for 1s"),
    ("--for 9m", "--for 1s"),
    ("--for 8m", "--for 1s"),
    ("--for 1m", "--for 20ms"),
    ("--for 1h", "--for 1s"),
    ("synthetic:12.5GB/s", "synthetic:2GB/s"),
    ("full*7'", "full*2'"),
    ("full*8'", "full*2'"),
    (
        "measure fill sim:samsung-970-evo-plus-1tb",
        "measure fill sim:samsung-970-evo-plus-1tb --size 1GiB",
    ),
    ("apps sim:ideal --app", "apps sim:ideal --size 64MiB --point 20ms --app"),
    (
        "hellfire-240gb:full --sweep",
        "hellfire-240gb --size 64MiB --generations 3 --depth 1 --sweep",
    ),
    ("--workload viewers.toml", "--workload viewers.toml -o viewers"),
    ("run job.fio sim:ideal", "run job.fio sim:ideal -o job"),
    ("--block 4KiB --depth 32 --for 20ms", "--block 4KiB --depth 32 --for 20ms -o mixed"),
    (
        "--block 8KiB --depth 32 --for 1s",
        "--block 8KiB --depth 32 --for 20ms --size 64MiB -o random",
    ),
    ("--size 4GiB --time 2m", "--size 64MiB --time 3s"),
    (
        "all sim:samsung-970-evo-plus-1tb",
        "all sim:samsung-970-evo-plus-1tb --size 64MiB --time 500ms",
    ),
    ("--keep 30m --drive intel", "--keep 10s --drive intel"),
    ("--rate 25Gb/s --keep 1h --readers 2x50MB/s", "--rate 5Gb/s --keep 10s --readers 1x50MB/s"),
    ("--rate 100Gb/s --drive twin.toml", "--rate 10Gb/s --drive twin.toml"),
    ("--size 64GiB --point 200ms", "--size 64MiB --point 1ms"),
    ("--overwrite random", "--size 64MiB --point 5ms --longest 10ms --overwrite random"),
    ("-o twin.toml", "-o twin.toml --evaluations 5"),
];

/// What a document takes to be there, made before its first command.
const BEFORE: [(&str, &str); 12] = [
    ("README.md", RECORDED),
    ("extract.md", RECORDED),
    ("flows.md", RECORDED),
    (
        "measure.md",
        "longtake measure fill sim:ideal --size 64MiB -o measured-fill; echo \"$VIEWERS\" > viewers.toml; echo \"$JOB\" > job.fio; echo \"$TRACE\" > trace.csv",
    ),
    (
        "parity.md",
        "longtake record -q --from synthetic:max --until-bytes 5MB --members 4 --member-size 65MiB --segment 8MiB --parity 1 --memory 64MiB --to ./array",
    ),
    (
        "planning.md",
        "longtake sim new mine --from ideal -o mine.toml; longtake plan --rate 10Gb/s --print toml > requirement.toml",
    ),
    ("record.md", RECORDED),
    ("rings.md", RECORDED),
    (
        "simulated-drives.md",
        "longtake sim new warm --from ideal -o warm.toml; echo \"$HEAT\" >> warm.toml",
    ),
    ("sweeps.md", "echo \"$SPEC\" > spec.toml; mkdir -p results"),
    ("workloads.md", "echo \"$VIEWERS\" > viewers.toml; echo \"$JOB\" > job.fio"),
    ("fit.md", "longtake measure fill sim:samsung-970-pro-512gb --size 1GiB -o measured-nvme0n1"),
];

const RECORDED: &str = "longtake record -q --from synthetic:max --until-bytes 5MB --members 2 --member-size 65MiB --segment 8MiB --memory 64MiB --to ./array";

/// Files that the documents describe, in short forms.
const FILES: [(&str, &str); 5] = [
    ("TRACE", "0,R,4096,4096,1577808000000626\n0,W,0,8192,1577808000010626"),
    (
        "VIEWERS",
        "stop = { time = '20ms' }\n[[stream]]\nname = 'viewers'\nread = 1\nblock = '512KiB'\nrate = '50MB/s'\nsize = '64MiB'",
    ),
    (
        "HEAT",
        "[simulated.heat]\nidle_w = 2.0\ndie_w = 0.01\ntransfer_w = 4.0\njoules_per_k = 0.5\nkelvin_per_w = 4.0\nlight_c = 90.0\n\
         light_mb_s = 500.0\nheavy_c = 95.0\nheavy_mb_s = 50.0",
    ),
    ("JOB", "[job]\nrw=randread\nbs=4k\nsize=4m\nioengine=io_uring\niodepth=4\ndirect=1"),
    (
        "SPEC",
        "[base]\ndrive = 'samsung-970-pro-512gb'\n[axes]\nrate = { from = '10Gb/s', to = '100Gb/s', steps = 101 }",
    ),
];

/// Exit codes other than 0 that are right, by words of the command.
const ENDS: [(&str, i32); 3] =
    [("synthetic:6GB/s", 3), ("--lanes 24 ", 1), ("--keep 5s --prove", 3)];

/// README.md and the pages, each by name and text.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = fs::read_dir(root.join("docs")).expect("it is there").map(Result::unwrap);
    let mut paths: Vec<PathBuf> = pages.map(|page| page.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    paths.insert(0, root.join("README.md"));
    let read = |path: PathBuf| {
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(path).expect("it is text"))
    };
    paths.into_iter().map(read).collect()
}

/// Why a command is not run; None if it is. What only prints a file of options needs nothing.
fn left_out(line: &str) -> Option<&'static str> {
    let first = LEFT_OUT.iter().find(|(words, _)| line.contains(words));
    first.map(|(words, _)| *words).filter(|_| !line.contains("--print-config"))
}

/// The command as it is run. Enters what was replaced.
fn replaced(line: &str, used: &mut BTreeSet<&'static str>) -> String {
    let mut line = line.to_owned();
    for (words, by) in &REPLACED {
        if line.contains(words) {
            used.insert(words);
            line = line.replace(words, by);
        }
    }
    line
}

fn names(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).expect("it is there").map(|entry| entry.unwrap().path()).collect()
}

/// Runs the commands of a document and returns how many there are.
fn play(name: &str, commands: &[String]) -> usize {
    let scratch = scratch();
    let [work, home, temporary] =
        ["work", "home", "temporary"].map(|part| scratch.path().join(part));
    for folder in [&work, &home, &temporary] {
        fs::create_dir(folder).expect("there is room");
    }
    let program =
        Path::new(longtake().get_program()).parent().expect("it is in a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([program].into_iter().chain(std::env::split_paths(&path)));
    let path = path.expect("no folder's name has a colon");
    let shell = |line: &str| {
        let mut bash = tool("bash", "bash");
        bash.args(["-euo", "pipefail", "-c", line]).current_dir(&work).env("PATH", &path);
        bash.env("HOME", &home).env("TMPDIR", &temporary).env_remove("XDG_DATA_HOME").envs(FILES);
        run(&mut bash)
    };
    for (_, before) in BEFORE.iter().filter(|(document, _)| *document == name) {
        shell(before).code(0);
    }
    for line in commands {
        let end = ENDS.iter().find(|(words, _)| line.contains(words));
        shell(line).code(end.map_or(0, |(_, code)| *code));
    }
    assert_eq!(names(&home), BTreeSet::new(), "{name} leaves files in the home directory");
    assert_eq!(names(&temporary), BTreeSet::new(), "{name} leaves temporary files");
    assert_eq!(
        names(scratch.path()),
        [home, temporary, work].into(),
        "{name} leaves files outside"
    );
    commands.len()
}

#[test]
fn every_command_in_the_documents_that_needs_no_hardware_runs_as_it_is_written() {
    let (mut used, mut omitted, mut played) = (BTreeSet::new(), BTreeSet::new(), 0);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let before = names(here);
    let documents = documents();
    for (name, text) in &documents {
        let mut commands = Vec::new();
        for line in ours(text) {
            let command = line.split(" # ").next().unwrap_or_default().trim_end();
            match left_out(command) {
                Some(words) => drop(omitted.insert(words)),
                None => commands.push(replaced(command, &mut used)),
            }
        }
        if !commands.is_empty() {
            played += play(name, &commands);
        }
    }
    assert_eq!(names(here), before, "files were left in the tests' own directory");
    assert!(played >= 70, "only {played} commands were run");
    // Nothing here outlives what it is about.
    for (words, reason) in LEFT_OUT {
        assert!(omitted.contains(words), "no command is left out for '{words}' ({reason})");
    }
    for (words, by) in REPLACED {
        assert!(used.contains(words), "no command has '{words}', to be replaced by '{by}'");
    }
    for (document, _) in BEFORE {
        assert!(documents.iter().any(|(name, _)| name == document), "there is no {document}");
    }
}
