//! Promises of README.md that no other test of one subject holds: how members are written, how soon, what Ctrl-C leaves, arrays by
//! name, and what the program needs of the machine. docs/promises.md lists them all.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{
    Recorder, Running, asked, hearing_hangups, line, longtake, new_in, number, run, scratch, tool,
    wait_until,
};
use crate::measure_rig::{LoopDevice, MIB};
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use profile::{Parameter, library};
use serde_json::Value;
use tempfile::TempDir;

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// What each file descriptor of a process stands for, and the flags it was opened with.
fn descriptors(pid: u32) -> Vec<(PathBuf, OFlag)> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten();
    let opened = all.filter_map(|entry| {
        let number = entry.file_name().into_string().ok()?;
        let target = fs::read_link(entry.path()).ok()?;
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
        let flags = i32::from_str_radix(flags, 8).expect("the kernel prints octal");
        Some((target, OFlag::from_bits_retain(flags)))
    });
    opened.collect()
}

/// Pages whose commands run without a drive, apart from those that need one.
const PAGES: [&str; 4] =
    ["README.md", "docs/measure.md", "docs/planning.md", "docs/simulated-drives.md"];

/// Commands of README and of pages that need neither a drive nor much time, as a shell is given them. What measures only says what it
/// would do.
fn quick_commands() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = PAGES.map(|page| fs::read_to_string(root.join(page)).expect(page));
    // A line that ends with a backslash goes on with the next.
    let pages = pages.map(|text| text.replace("\\\n", " "));
    let lines = pages.iter().flat_map(|text| text.lines());
    let commands = lines.filter_map(|line| line.strip_prefix("    longtake "));
    let commands = commands.map(|line| line.split("  #").next().unwrap_or(line).trim());
    let quick = commands.filter_map(|line| match line.split(' ').next() {
        Some("sim") => Some(format!("longtake {line}")),
        // Proofs and files of requirements have tests of their own.
        Some("plan")
            if !["--prove", "--sets", "requirement.toml"].iter().any(|w| line.contains(w)) =>
        {
            Some(format!("longtake {line}"))
        }
        // A replay reads a trace, which documents.rs makes.
        Some("measure") if line.starts_with("measure replay") => None,
        Some("measure") if line.contains("sim:") || line.contains("scratch.bin") => {
            Some(format!("longtake {line} --dry-run"))
        }
        _ => None,
    });
    let mut quick: Vec<String> = quick.collect();
    // Another one reads the file that this one makes.
    quick.sort_by_key(|line| !line.starts_with("longtake sim new mine"));
    quick.dedup();
    quick
}

#[test]
fn commands_that_need_no_drive_run_as_they_stand_there() {
    let folder = scratch();
    let programs = Path::new(env!("CARGO_BIN_EXE_longtake")).parent().expect("it lies in a folder");
    let path = format!("{}:{}", text(programs), std::env::var("PATH").unwrap_or_default());
    let commands = quick_commands();
    assert!(commands.len() >= 15, "{commands:?}");
    for command in commands {
        let mut shell = tool("sh", "dash");
        let ran = run(shell.args(["-ec", &command]).env("PATH", &path).current_dir(folder.path()));
        // What no number of drives will do is an answer too.
        let expected = i32::from(command.contains("--memory-bandwidth 60GB/s"));
        let ran = ran.code(expected);
        assert!(!ran.stdout.is_empty() || command.contains("--dry-run"), "{command}");
    }
}

/// Bytes of a file that the page cache holds.
fn cached(file: &Path) -> u64 {
    let mut fincore = tool("fincore", "util-linux");
    let ran = run(fincore.args(["--bytes", "--noheadings", "--output", "RES"]).arg(file)).code(0);
    ran.text().trim().parse().expect("it is a number")
}

#[test]
fn members_are_written_through_io_uring_and_past_the_page_cache() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let mut recorder = Recorder::start(&format!("--from synthetic:50MB/s --to @ {SMALL}"), &array);
    let open = descriptors(recorder.pid());
    assert!(open.iter().any(|(what, _)| text(what).contains("[io_uring]")), "{open:?}");
    for member in ["member0", "member1"].map(|name| array.join(name)) {
        let direct = |flags: &OFlag| flags.contains(OFlag::O_DIRECT | OFlag::O_RDWR);
        let found = open.iter().any(|(what, flags)| *what == member && direct(flags));
        assert!(found, "{open:?}");
    }
    recorder.wait_for_written(40 << 20);
    // Whether a busy machine loses some of it is not asked.
    recorder.stop();
    // A look at the superblock leaves some pages.
    let held = cached(&array.join("member0")) + cached(&array.join("member1"));
    assert!(held < 4 << 20, "the page cache holds {held} bytes of what was written");
}

#[test]
fn files_without_an_array_are_written_past_the_page_cache_too() {
    let folder = scratch();
    // As nobody, if the tests are root's.
    let out = new_in(&folder, "out");
    fs::create_dir(&out).expect("there is space");
    for path in [folder.path(), &out] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    let words = "--from synthetic:20MB/s --rotate 20MB --memory 64MiB -w @/out.pcapng";
    let mut recorder = Recorder::start(words, &out);
    let is_direct = |(what, flags): &(PathBuf, OFlag)| {
        what.parent() == Some(&out) && flags.contains(OFlag::O_DIRECT | OFlag::O_WRONLY)
    };
    wait_until("the first file is written directly", || {
        descriptors(recorder.pid()).iter().any(is_direct)
    });
    recorder.wait_for("a file", |event| event["event"] == "file");
    wait_until("the second file is written directly", || {
        descriptors(recorder.pid()).iter().any(is_direct)
    });
    recorder.wait_for_written(40 << 20);
    let ended = recorder.stop();
    let files = ended.events.iter().filter(|event| event["event"] == "file");
    let paths: Vec<&str> = files.filter_map(|event| event["file"].as_str()).collect();
    assert!(paths.len() >= 2, "{paths:?}");
    // What did not fill a buffer at the end goes through the cache, and is less than 4 MiB.
    for path in paths {
        let held = cached(Path::new(path));
        assert!(held <= 4 << 20, "the page cache holds {held} bytes of what was written");
    }
}

#[test]
fn ctrl_c_closes_the_take_and_prints_its_ledger() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let mut record = longtake();
    record.args(["record", "--from", "synthetic:10MB/s", "--to", text(&array)]);
    record.args(SMALL.split(' '));
    let printed = new_in(&folder, "printed");
    let out = fs::File::create(&printed).expect("there is space");
    let mut record = hearing_hangups(&record);
    let mut recorder = Running::start(record.stdout(out).stderr(Stdio::null()));
    wait_until("something is recorded", || {
        let takes = line("takes @ --json", &array);
        takes.code == 0 && takes.json()[0]["on_media"]["packets"].as_u64() > Some(0)
    });
    recorder.signal(Signal::SIGINT);
    assert_eq!(recorder.wait(), 0);
    let printed = fs::read_to_string(&printed).expect("it was made");
    for words in ["offered", "stored", "balanced: offered = stored + filtered + lost"] {
        assert!(printed.contains(words), "'{words}' in {printed}");
    }
    let take = asked("ledger @", &array);
    assert_eq!((&take["state"], &take["balances"]), (&"complete".into(), &true.into()), "{take:#}");
}

#[test]
fn an_array_on_drives_is_found_by_its_name_and_by_its_drives() {
    let folder = scratch();
    let drives = [LoopDevice::new(24 * MIB), LoopDevice::new(24 * MIB)];
    let name = format!("radar-{}", std::process::id());
    let [first, second] = [drives[0].text(), drives[1].text()];
    let create =
        format!("array create --name {name} {first} {second} --segment 1MiB --chunk 64KiB");
    line(&create, folder.path()).code(1).says(&["nothing was written", "--erase"]);
    let erase = format!("{create} --erase {first} --erase {second}");
    line(&format!("{erase} --dry-run"), folder.path()).code(0);
    assert!(drives.iter().all(|drive| drive.written() == 0), "a dry run wrote");
    line(&erase, folder.path()).code(0);
    let take = "record -q --from synthetic:max --until-bytes 2MB --memory 32MiB --when-full wrap";
    line(&format!("{take} --to {name}"), folder.path()).code(0);
    line(&format!("{take} --to {first},{second}"), folder.path()).code(0);
    let by_name = asked(&format!("takes {name}"), folder.path());
    let by_drives = asked(&format!("takes {second},{first}"), folder.path());
    assert_eq!(by_name.as_array().map(Vec::len), Some(2), "{by_name:#}");
    assert_eq!(by_name, by_drives);
}

/// How many packets tcpdump reads from a capture on its standard input.
fn tcpdump(capture: &[u8], filter: &str) -> usize {
    let mut command = tool("tcpdump", "tcpdump");
    command.args(["-n", "-q", "-r", "-", filter]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().expect("starting tcpdump");
    let mut input = child.stdin.take().expect("it is piped");
    std::thread::scope(|scope| {
        // It prints while it reads.
        scope.spawn(move || input.write_all(capture).expect("it reads to the end"));
        let ended = child.wait_with_output().expect("waiting for tcpdump");
        assert!(ended.status.success());
        String::from_utf8(ended.stdout).expect("it is text").lines().count()
    })
}

#[test]
fn an_extract_by_filter_goes_through_a_pipe_to_tcpdump() {
    const FILTER: &str = "udp and less 100";
    let folder = scratch();
    let array = new_in(&folder, "array");
    for limit in ["1MB", "2MB"] {
        let take = format!("--from synthetic:max,imix --until-bytes {limit}");
        line(&format!("record -q {take} --to @ {SMALL}"), &array).code(0);
    }
    let extract = |arguments: &[&str]| {
        let last = ["extract", text(&array), "--take", "last", "--format", "pcap", "-o", "-"];
        run(longtake().args(last).args(arguments)).code(0).stdout
    };
    let whole = extract(&[]);
    let (all, some) = (tcpdump(&whole, ""), tcpdump(&whole, FILTER));
    assert_eq!(all as u64, number(&asked("ledger @", &array), "on_media.packets"));
    assert!(0 < some && some < all, "{some} of {all}");
    assert_eq!(tcpdump(&extract(&["--filter", FILTER]), ""), some);
}

#[test]
fn a_workload_from_options_has_their_shares_blocks_depth_and_pattern() {
    let folder = scratch();
    let options = "--read 7 --write 3 --pattern zipf:1.2 --block 4KiB --depth 32 --for 20ms";
    let run = format!("measure run sim:ideal {options} --size 64MiB -q -o @/results");
    let measured = asked(&run, folder.path())["step"]["measurement"].take();
    let stream = &measured["workload"]["stream"][0];
    let asked_for = ["pattern", "block", "depth"].map(|name| stream[name].clone());
    assert_eq!(asked_for, [Value::from("zipf:1.2"), "4KiB".into(), 32.into()]);
    let results = measured["results"].as_array().expect("there is a list");
    let of = |operation: &str, what: &str| -> f64 {
        let found = results.iter().find(|result| result["operation"] == operation);
        found.and_then(|result| result[what].as_f64()).expect("it was measured")
    };
    let (reads, writes) = (of("read", "count"), of("write", "count"));
    assert!((reads / (reads + writes) - 0.7).abs() < 0.02, "{reads} reads, {writes} writes");
    assert_eq!(of("read", "bytes") + of("write", "bytes"), 4096.0 * (reads + writes));
    // Little's law: so many commands are under way at a time.
    let latency_ns = ["read", "write"].map(|operation| {
        let mean = results.iter().find(|result| result["operation"] == operation);
        let mean = mean.and_then(|result| result["service"]["mean_ns"].as_f64());
        mean.expect("it was measured") * of(operation, "commands_per_s")
    });
    let depth = (latency_ns[0] + latency_ns[1]) / 1e9;
    assert!((depth - 32.0).abs() < 1.0, "{depth}");
}

/// A small drive made from the ideal one, with so many of its channels.
fn drive(folder: &TempDir, name: &str, channels: i64) -> PathBuf {
    let mut profile = library::get("ideal").expect("it is in the library");
    profile.name = name.to_owned();
    profile.capacity_bytes = 8 << 30;
    for (parameter, value) in [("channels", channels), ("pages_per_block", 24)] {
        profile.simulated.set("flash", parameter, Parameter::assumed(value));
    }
    let file = new_in(folder, &format!("{name}.toml"));
    fs::write(&file, profile.to_toml().expect("it can be written")).expect("there is space");
    file
}

/// Bytes a second that full drives take when they are offered more than they can.
fn sustained(drives: &[&Path], options: &str) -> f64 {
    let targets: Vec<String> =
        drives.iter().map(|file| format!("sim:{}:full", text(file))).collect();
    let record =
        "record --virtual --json --from synthetic:4GB/s,size=9000 --for 8s --when-full wrap";
    let to = targets.join(",");
    let ran = line(&format!("{record} --memory 256MiB {options} --to {to}"), drives[0]).code(3);
    let finished = ran.text().lines().last().map(serde_json::from_str::<Value>);
    let finished = finished.expect("there are events").expect("they are JSON");
    let seconds = finished["after_s"].as_f64().expect("it took time");
    number(&finished, "ledger.stored.bytes") as f64 / seconds
}

#[test]
fn unequal_drives_together_sustain_the_sum_of_their_rates() {
    let folder = scratch();
    let (fast, slow) = (&*drive(&folder, "fast", 8), &*drive(&folder, "slow", 4));
    let (fast_rate, slow_rate) = (sustained(&[fast], ""), sustained(&[slow], ""));
    let sum = fast_rate + slow_rate;
    assert!(2.0 * slow_rate < 0.8 * sum, "{fast_rate} and {slow_rate} are too much alike");
    let together = sustained(&[fast, slow], "");
    assert!((together / sum - 1.0).abs() < 0.05, "{together} of {fast_rate} and {slow_rate}");
    // In turn, the slowest sets the pace.
    let in_turn = sustained(&[fast, slow], "--placement stripe");
    assert!(in_turn < 0.9 * sum, "{in_turn} of {fast_rate} and {slow_rate}");
}

/// Packets of 1000 bytes are recorded at 1000 a second on simulated drives for a while; how old, in seconds, may be what is not
/// acknowledged, and what is not durable.
fn soon_written(parity: &str, acknowledged_s: f64, durable_s: f64) {
    const PACKETS_PER_S: f64 = 1000.0;
    let record = "record --json --from synthetic:1MB/s,size=1000 --for 8s --memory 64MiB";
    let to = "--to sim:ideal*4";
    let ran = line(&format!("{record} {to} --parity {parity}"), Path::new(".")).code(0);
    let (mut now_s, mut acknowledged, mut looks) = (0.0, 0, 0);
    for event in ran.text().lines().map(|line| serde_json::from_str::<Value>(line).expect(line)) {
        let at_least = |packets: u64, now_s: f64, age_s: f64| {
            let due = (now_s - age_s) * PACKETS_PER_S;
            assert!(packets as f64 + 1.0 >= due, "{packets} of {due} after {now_s} s: {event}");
        };
        match event["event"].as_str() {
            Some("acknowledged") => {
                acknowledged = number(&event, "acknowledged.packets");
                at_least(number(&event, "durable.packets"), now_s, durable_s);
            }
            Some("progress") => {
                now_s = event["after_s"].as_f64().expect("it is a time");
                looks += 1;
                at_least(acknowledged, now_s, acknowledged_s);
            }
            _ => {}
        }
    }
    assert!(now_s >= 7.0 && looks >= 10 && acknowledged as f64 > 7.0 * PACKETS_PER_S);
}

#[test]
fn a_packet_is_written_within_a_second_and_flushed_within_another_and_parity_takes_half_a_second() {
    soon_written("0", 1.0, 2.0);
    soon_written("1", 1.5, 2.5);
}

#[test]
fn without_libpcap_all_but_filters_works_and_they_say_what_to_install() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let find = "/sbin/ldconfig -p | sed -n 's/.*=> \\(.*libpcap.so.*\\)/\\1/p' | xargs readlink -f | sort -u";
    let hide = format!("for file in $({find}); do mount --bind /dev/null $file; done");
    tool("unshare", "util-linux");
    let hidden = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("{hide}; exec \"$0\" \"$@\"")]);
        run(command.arg(longtake().get_program()).args(arguments).args(SMALL.split(' ')))
    };
    let record =
        ["record", "-q", "--from", "synthetic:max", "--until-bytes", "1MB", "--to", text(&array)];
    hidden(&[&record[..], &["--filter", "udp"]].concat())
        .code(1)
        .says(&["libpcap", "apt-get install libpcap0.8"]);
    assert!(!array.exists(), "nothing was made");
    hidden(&record).code(0);
}

/// Runs a program as under a kernel that lacks one system call: it fails with ENOSYS.
const LACKING: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
load, equal, errno, allow = 0x20, 0x15, 0x00050000 | 38, 0x7fff0000
steps = [(load, 0, 0, 0), (equal, 0, 1, int(sys.argv[1])), (6, 0, 0, errno), (6, 0, 0, allow)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[2], sys.argv[2:])
";

#[test]
fn a_kernel_that_is_too_old_is_told_from_all_else_and_the_one_needed_is_named() {
    const IO_URING_SETUP: &str = "425";
    let folder = scratch();
    let array = new_in(&folder, "array");
    let mut python = tool("python3", "python3");
    python.args(["-c", LACKING, IO_URING_SETUP]).arg(longtake().get_program());
    python.args(["record", "--from", "synthetic:1MB/s", "--to", text(&array)]);
    run(python.args(SMALL.split(' '))).code(1).says(&["Linux 5.11"]);
    assert!(!array.exists(), "what was made is removed again");
}
