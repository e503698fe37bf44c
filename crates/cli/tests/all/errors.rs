//! What goes wrong, and what the program says then: what was tried, on what, why, and what to do; with
//! exit code 1 for what failed, 2 for wrong arguments, 3 for losses.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::captures::{capinfos, read, synthetic};
use crate::harness::namespaces::Hosts;
use crate::harness::{
    Recorder, Running, asked, line, longtake, new_in, number, ran, run, scratch, tool,
};
use format::crc::crc32c;
use format::layout::SUPERBLOCK_BYTES;
use nix::sys::signal::Signal;
use source::synthetic::Options;
use tempfile::TempDir;

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";

/// An array in the folder with a short take on it.
fn array(folder: &TempDir, name: &str) -> PathBuf {
    let array = new_in(folder, name);
    // In turn, so that each member holds a part.
    let take = "--from synthetic:max --until-bytes 5MB --placement stripe";
    line(&format!("record -q {take} --to @ {SMALL}"), &array).code(0);
    array
}

/// The program as user nobody.
fn as_nobody(arguments: &[&str]) -> Command {
    let mut command = tool("setpriv", "util-linux");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(longtake().get_program()).args(arguments);
    command
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

#[test]
fn a_target_that_is_none_is_a_wrong_argument_of_every_command_that_takes_one() {
    for words in [
        "drives sim:ideal@0",
        "sim show ideal@0",
        "sim rest ideal@0",
        "array create sim:ideal@0",
        "takes sim:ideal@0",
        "extract sim:ideal@0 -o -",
        "measure run sim:ideal@0 --for 1s",
        "record --from synthetic:1GB/s --for 1s --to sim:ideal@0",
        "record --from synthetic:1GB/s --for 1s --to sim:ideal@0 --virtual",
    ] {
        ran(words.split(' ')).code(2).says(&["namespaces are numbered from 1"]);
    }
    ran("measure run raid9:x --for 1s".split(' ')).code(2).says(&["there are no 'raid9:'"]);
    // What can be understood and isn't there is no such fault.
    ran("measure run sim:idael --for 1s".split(' ')).code(1).says(&["did you mean 'ideal'"]);
}

#[test]
fn what_is_not_there_is_named_with_the_forms_that_a_name_may_have() {
    let folder = scratch();
    let array = array(&folder, "array");
    let none = new_in(&folder, "none");
    line("takes @", &none).code(1).says(&[text(&none), "no such directory, drive or file"]);
    line("takes nobody-has-called-it-that", &none).code(1).says(&[
        "no array",
        "directory",
        "drives",
    ]);
    line("takes @/member0,@/member7", &array).code(1).says(&["member7", "no such"]);
    line("drives /dev/longtake-none", &none).code(1);
    line("drives @", &none).code(0);
    line("record --from longtake-none --to @", &array).code(1).says(&[
        "longtake-none",
        "no such interface",
        "ip link",
    ]);
    line("record --from @.pcap --to @", &array).code(1).says(&[&format!("{}.pcap", text(&array))]);
    line("extract @ --take 00000000 -o @.pcapng", &array)
        .code(1)
        .says(&["00000000", "longtake takes"]);
    line("ledger @ --take 00000000", &array).code(1).says(&["00000000", "longtake takes"]);
}

#[test]
fn a_member_that_is_missing_is_named_and_the_rest_can_be_read() {
    let folder = scratch();
    let array = array(&folder, "array");
    fs::rename(array.join("member1"), new_in(&folder, "gone")).expect("it was there");
    for verb in ["takes @", "array show @", "record --from synthetic:1MB/s --to @"] {
        line(verb, &array).code(1).says(&["lacks member 1", "name all members", "--degraded"]);
    }
    let takes = asked("takes @ --degraded", &array);
    assert_eq!(takes[0]["balances"], true, "{takes:#}");
    let file = new_in(&folder, "rest.pcapng");
    line(&format!("extract @ --degraded -q -o {}", text(&file)), &array).code(3).says(&["missing"]);
    let found = synthetic(&file, &Options::default());
    assert_eq!(found.packets.len() as u64, number(&takes[0], "on_media.packets"));
    assert!(!found.packets.is_empty());
}

#[test]
fn members_of_two_arrays_do_not_make_one() {
    let folder = scratch();
    let (one, other) = (array(&folder, "one"), array(&folder, "other"));
    let both = format!("{}/member0,{}/member1", text(&one), text(&other));
    let says = ["other/member1", "belongs to array 'other', not to 'one'", "one array only"];
    line(&format!("takes {both}"), &one).code(1).says(&says);
    line(&format!("record --from synthetic:1MB/s --to {both}"), &one).code(1).says(&says);
    // A smaller array's member is no less foreign for there being fewer places in it.
    let three = new_in(&folder, "three");
    let take =
        "--from synthetic:max --until-bytes 5MB --memory 32MiB --members 3 --member-size 65MiB";
    line(&format!("record -q {take} --segment 8MiB --to @"), &three).code(0);
    let all =
        format!("{0}/member0,{0}/member1,{0}/member2,{1}/member0", text(&three), text(&other));
    let says = ["other/member0", "belongs to array 'other', not to 'three'"];
    line(&format!("takes {all}"), &three).code(1).says(&says);
    let twice = "takes @/member0,@/member0";
    line(twice, &one).code(1).says(&["both say they are member 0", "leave one out"]);
}

#[test]
fn a_format_of_a_newer_version_is_left_alone() {
    let folder = scratch();
    let array = array(&folder, "array");
    let member = array.join("member0");
    let mut file = File::options().read(true).write(true).open(&member).expect("it is there");
    let length = file.metadata().expect("it is a file").len();
    for offset in [0, length - SUPERBLOCK_BYTES] {
        let mut header = [0; 512];
        file.seek(SeekFrom::Start(offset)).expect("it is a file");
        file.read_exact(&mut header).expect("it is long enough");
        assert_eq!(&header[32..40], b"LONGTAKE");
        // docs/format.md, section 2: major version and header CRC.
        header[42..44].copy_from_slice(&7u16.to_le_bytes());
        header[52..56].fill(0);
        let crc = crc32c(&header);
        header[52..56].copy_from_slice(&crc.to_le_bytes());
        file.seek(SeekFrom::Start(offset)).expect("it is a file");
        file.write_all(&header).expect("there is space");
    }
    for verb in ["takes @", "record --from synthetic:1MB/s --to @", "protect @ --since 1 --until 2"]
    {
        let says = [text(&member), "media format 7", "use a newer Longtake"];
        line(verb, &array).code(1).says(&says);
    }
}

#[test]
fn who_may_not_is_told_so_and_what_it_takes() {
    let folder = scratch();
    // The way there must be open, or the message would be about that.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let array = array(&folder, "array");
    let members = format!("{0}/member0,{0}/member1", text(&array));
    fs::set_permissions(&array, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let ran = run(&mut as_nobody(&["takes", text(&array)])).code(1);
    ran.says(&[text(&array), "not permitted", "run as root"]);
    fs::set_permissions(&array, fs::Permissions::from_mode(0o755)).expect("it is ours");
    for member in ["member0", "member1"] {
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(array.join(member), private).expect("it is ours");
    }
    let ran = run(&mut as_nobody(&["takes", &members])).code(1);
    ran.says(&["member0", "reading was not permitted", "run as root"]);
    let record = ["record", "--from", "synthetic:1MB/s", "--to", text(&array)];
    run(&mut as_nobody(&record)).code(1).says(&["member0", "not written", "run as root"]);
    let new = new_in(&folder, "new");
    let record = ["record", "--from", "synthetic:1MB/s", "--to", text(&new)];
    run(&mut as_nobody(&record)).code(1).says(&[text(&new), "ermi"]);
    let record = ["record", "--from", "if:lo", "--to", text(&array), "--user", "daemon"];
    run(&mut as_nobody(&record)).code(1);
}

#[test]
fn capturing_takes_rights_that_are_named() {
    let folder = scratch();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    let array = new_in(&folder, "array");
    let mut record = as_nobody(&["record", "-q", "--members", "1", "--member-size", "65MiB"]);
    record.args(["--from", "if:lo", "--for", "1s", "--to"]).arg(&array);
    run(&mut record).code(1).says(&["lo", "CAP_NET_RAW", "root"]);
}

#[test]
fn a_capture_file_that_is_cut_short_is_recorded_up_to_there() {
    let folder = scratch();
    let array = array(&folder, "array");
    for name in ["whole.pcap", "whole.pcapng"] {
        let (whole, cut) = (new_in(&folder, name), new_in(&folder, &format!("cut-{name}")));
        line(&format!("extract @ -q --take last -o {}", text(&whole)), &array).code(0);
        let frames = read(&whole).frames;
        let bytes = fs::read(&whole).expect("it was extracted");
        fs::write(&cut, &bytes[..bytes.len() / 2]).expect("there is space");
        let again = new_in(&folder, &format!("array-of-{name}.d"));
        let record = format!("record -q --from {} --to @ {SMALL}", text(&cut));
        line(&record, &again).code(1).says(&[text(&cut), "byte"]);
        let file = new_in(&folder, &format!("again-{name}"));
        line(&format!("extract @ -q -o {}", text(&file)), &again).code(0);
        let found = read(&file).frames;
        assert!(!found.is_empty() && found.len() < frames.len());
        assert!(found.iter().zip(&frames).all(|(f, g)| f.time == g.time && f.data == g.data));
        let takes = asked("takes @", &again);
        assert_eq!(takes[0]["state"], "complete");
    }
}

#[test]
fn a_wrong_filter_is_told_before_anything_is_touched() {
    let folder = scratch();
    let array = array(&folder, "array");
    let file = new_in(&folder, "extract.pcapng");
    let wrong = ["--filter", "tcp port"];
    let record = ["record", "--from", "synthetic:1MB/s", "--to", text(&array)];
    let says = ["tcp port", "syntax error", "pcap-filter"];
    run(longtake().args(record).args(wrong)).code(1).says(&says);
    assert_eq!(asked("takes @", &array).as_array().map(Vec::len), Some(1));
    let extract = ["extract", "-q", text(&array), "-o", text(&file)];
    run(longtake().args(extract).args(wrong)).code(1).says(&says);
    assert!(!file.exists(), "there was nothing to write");
    fs::write(&file, "precious").expect("there is space");
    run(longtake().args(extract).args(wrong).arg("-y")).code(1).says(&says);
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
    let replay = ["replay", text(&array), "--udp", "127.0.0.1:9"];
    run(longtake().args(replay).args(wrong)).code(1).says(&says);
}

#[test]
fn a_file_that_is_there_is_not_overwritten_unasked() {
    let folder = scratch();
    let array = array(&folder, "array");
    let file = new_in(&folder, "extract.pcapng");
    fs::write(&file, "precious").expect("there is space");
    let extract = format!("extract @ -q -o {}", text(&file));
    line(&extract, &array).code(1).says(&[text(&file), "there already", "-y"]);
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
    line(&format!("{extract} -y"), &array).code(0);
    assert_eq!(synthetic(&file, &Options::default()).contiguous().map(|(first, _)| first), Some(0));
    let nowhere = new_in(&folder, "no/such/folder.pcapng");
    line(&format!("extract @ -q -o {}", text(&nowhere)), &array)
        .code(1)
        .says(&[text(&nowhere), "folder"]);
}

#[test]
fn an_interface_that_vanishes_leaves_a_whole_take_up_to_there() {
    let hosts = Hosts::new();
    let folder = scratch();
    let array = new_in(&folder, "array");
    let mut record = longtake();
    record.args(["record", "--json", "--member-size", "65MiB", "--from", "if:cable", "--to"]);
    let recorder = Recorder::spawn(&mut hosts.far(record.arg(&array)));
    for number in 0..50 {
        hosts.mark(&format!("packet {number}"));
    }
    hosts.far_ip(&["link", "delete", "cable"]);
    let ended = recorder.end().code(1);
    assert!(ended.stderr.contains("cable"), "{}", ended.stderr);
    let ledger = line("ledger @ --json", &array).json();
    assert_eq!(ledger["state"], "complete", "{ledger:#}");
    assert_eq!(ledger["balances"], true, "{ledger:#}");
    let file = new_in(&folder, "extract.pcapng");
    line(&format!("extract @ -q -o {}", text(&file)), &array).code(0);
    let frames = read(&file).frames;
    // Not those that come back in complaints that nobody listens.
    let udp = frames.iter().filter(|f| f.data.len() > 42 && f.data[23] == 17);
    let marks = udp.filter(|f| f.data[42..].starts_with(b"packet ")).count();
    assert_eq!(marks, 50, "of {} packets, {ledger:#}", frames.len());
    assert_eq!(capinfos(&file), number(&ledger, "on_media.packets"));
}

#[test]
fn wrong_arguments_are_answered_with_what_they_should_be() {
    let folder = scratch();
    let array = array(&folder, "array");
    for (arguments, says) in [
        ("record --from synthetic:1GB --to @", &["'1GB' is not a rate", "GB/s", "pipe:PATH"][..]),
        ("record --from synthetic:1MB/s,size=9 --to @", &["9 bytes", "synthetic:RATE"]),
        ("record --from synthetic:1MB/s --to @ --for 5", &["'5' is not a duration", "10s"]),
        ("record --from synthetic:1MB/s --to @ --until-bytes 5XB", &["5XB", "MiB", "GB"]),
        ("record --from synthetic:1MB/s --to @ --when-full never", &["never", "stop", "wrap"]),
        ("record --from synthetic:1MB/s --to @ --placement raid", &["raid", "adaptive or stripe"]),
        ("record --from synthetic:1MB/s --to @ --depth 0", &["0", "1..=64"]),
        ("record --to @", &["--from"]),
        ("extract @ -o x --since yesterday", &["yesterday", "2026", "ago"]),
        ("extract @ -o x --read-rate fast", &["fast", "MB/s"]),
        ("replay @", &["--interface", "--udp"]),
        ("replay @ --udp 127.0.0.1", &["127.0.0.1"]),
        ("frobnicate", &["frobnicate"]),
    ] {
        line(arguments, &array).code(2).says(says);
    }
    let turned = "extract @ -o x --since 5 --until 4";
    line(turned, &array).code(1).says(&["--since", "lies after --until", "exchange"]);
    line("protect @ --since 5", &array).code(2).says(&["--until"]);
    line("protect @ --since 5 --until 6 --all", &array).code(2).says(&["--all"]);
    line("unprotect @", &array).code(2).says(&["--all"]);
    line("unprotect @ --all", &array).code(1).says(&["no protected span", "array show"]);
}

#[test]
fn a_folder_that_holds_something_else_is_not_recorded_into() {
    let folder = scratch();
    let other = new_in(&folder, "other");
    fs::create_dir(&other).expect("it is ours");
    fs::write(other.join("letter"), "dear").expect("there is space");
    let ran = line("record --from synthetic:1MB/s --to @", &other).code(1);
    ran.says(&[text(&other), "not empty", "letter", "new directory"]);
    assert_eq!(fs::read_dir(&other).expect("it is there").count(), 1);
    let file = other.join("letter");
    let ran = line("record --from synthetic:1MB/s --to @", &file).code(1);
    ran.says(&[text(&file)]);
    assert_eq!(fs::read(&file).expect("it is there"), b"dear");
}

#[test]
fn a_second_recorder_is_turned_away_and_the_first_goes_on() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let recorder = Recorder::start(&format!("--from synthetic:1MB/s --to @ {SMALL}"), &array);
    let ran = line("record --from synthetic:1MB/s --to @", &array).code(1);
    ran.says(&["member0", "being recorded by another process"]);
    let create = format!("array create {0}/member0 {0}/member1", text(&array));
    assert_ne!(line(&create, &array).code, 0);
    let ended = recorder.stop().code(0);
    assert_eq!(ended.event("finished")["ledger"]["balances"], true);
    assert_eq!(asked("takes @", &array)[0]["state"], "complete");
    asked("array check @", &array);
}

/// A small file system of its own, unmounted in the end.
struct Mounted(PathBuf);

impl Mounted {
    fn new(folder: &TempDir, mib: u64) -> Self {
        let (image, point) = (new_in(folder, "image"), new_in(folder, "mounted"));
        let file = File::create(&image).expect("there is space");
        file.set_len(mib << 20).expect("there is space");
        run(tool("mkfs.ext4", "e2fsprogs").args(["-q", "-m", "0"]).arg(&image)).code(0);
        fs::create_dir(&point).expect("it is ours");
        let mut mount = tool("mount", "mount");
        run(mount.args(["-o", "loop"]).args([&image, &point])).code(0);
        Self(point)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        tool("umount", "mount").arg(&self.0).output().ok();
    }
}

#[test]
fn a_file_system_without_space_is_named_and_left_as_it_was() {
    let folder = scratch();
    let mounted = Mounted::new(&folder, 200);
    let array = mounted.0.join("array");
    let ran = line("record --from synthetic:1MB/s --to @ --members 4 --member-size 65MiB", &array);
    ran.code(1).says(&[text(&array), "member", "space"]);
    let left = fs::read_dir(&array).map(Iterator::count).unwrap_or(0);
    assert_eq!(left, 0, "half an array would be in the way of the next try");
    line(&format!("record -q --from synthetic:10MB/s --for 1s --to @ {SMALL}"), &array).code(0);
    // What is extracted needs space too.
    let other = self::array(&folder, "other");
    line("record -q --from synthetic:max --until-bytes 60MB --memory 32MiB --to @", &other).code(0);
    let file = mounted.0.join("extract.pcapng");
    let ran = line(&format!("extract @ -q -o {}", text(&file)), &other).code(1);
    ran.says(&[text(&file), "space"]);
    assert!(!file.exists(), "half an extract would pass for a whole one");
}

#[test]
fn a_full_array_stops_the_take_and_says_what_to_do() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let ran = line(&format!("record --from synthetic:200MB/s --to @ {SMALL}"), &array).code(3);
    let text = ran.text();
    assert!(text.contains("array full") && text.contains("balanced"), "{text}");
    ran.says(&["the array is full", "--when-full wrap", "larger array"]);
    let ran = line("record --from synthetic:1MB/s --to @", &array).code(3);
    ran.says(&["the array is full"]);
    assert_eq!(asked("takes @", &array)[0]["state"], "complete");
}

#[test]
fn a_recording_goes_on_when_nobody_listens_any_more() {
    for json in [&["--json"][..], &[]] {
        let folder = scratch();
        let array = new_in(&folder, "array");
        let mut record = longtake();
        record.args(["record", "--from", "synthetic:20MB/s", "--until-bytes", "60MB"]).args(json);
        record.args(["--member-size", "65MiB", "--to"]).arg(&array);
        record.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Running::start(&mut record);
        drop((process.0.stdout.take(), process.0.stderr.take()));
        assert_eq!(process.wait(), 0);
        let takes = asked("takes @", &array);
        assert_eq!(takes[0]["state"], "complete", "{takes:#}");
        assert!(number(&takes[0], "on_media.bytes") >= 60_000_000);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure_to_report() {
    let folder = scratch();
    let array = array(&folder, "array");
    let mut process = Running::start(
        longtake()
            .args(["extract", text(&array), "-q", "-o", "-"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    drop(process.0.stdout.take());
    process.wait();
    let mut said = String::new();
    process.0.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    assert!(!said.contains("panicked"), "{said}");
    assert!(!said.contains("Broken pipe"), "{said}");
    process.signal(Signal::SIGKILL);
}
