//! What a recorder may still do once everything is open: nearly nothing, in each of its threads, whoever started it. And who may
//! read what it records.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::harness::{Recorder, line, longtake, new_in, run, scratch, tool, wait_until};
use nix::sys::signal::Signal;
use nix::unistd::Uid;

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";
const NOBODY: u32 = 65_534;

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// The words that follow a field's name in a file of `/proc`.
fn field(text: &str, name: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let words = line.unwrap_or_else(|| panic!("the kernel tells no {name}"));
    words.split_whitespace().map(str::to_owned).collect()
}

/// Each thread's name and status.
fn threads(pid: u32) -> Vec<(String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let paths = tasks.map(|task| task.expect("it runs").path());
    // One that ends meanwhile has nothing to tell.
    let read = |path: &Path, name| fs::read_to_string(path.join(name)).ok();
    paths.filter_map(|path| Some((read(&path, "comm")?, read(&path, "status")?))).collect()
}

/// Every thread has this user and no way to anything more.
fn is_confined(pid: u32, user: u32) {
    // A thread names itself, a little after it has started.
    wait_until("all threads run", || {
        let names: Vec<String> = threads(pid).into_iter().map(|(name, _)| name).collect();
        ["control\n", "reporter\n", "source 0\n"].iter().all(|name| names.iter().any(|n| n == name))
    });
    for (name, status) in threads(pid) {
        let user = vec![user.to_string(); 4];
        assert_eq!((field(&status, "Uid:"), &name), (user, &name));
        assert_eq!((field(&status, "NoNewPrivs:"), &name), (vec!["1".to_owned()], &name));
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!((field(&status, set), set, &name), (vec!["0".repeat(16)], set, &name));
        }
    }
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    assert_eq!(field(&limits, "Max core file size")[..2], ["0", "0"]);
}

/// A recording under way, by a command line before it.
fn recording(before: &[&str], options: &str, array: &Path) -> Recorder {
    let program = text(Path::new(env!("CARGO_BIN_EXE_longtake")));
    let mut words = before.iter().copied().chain([program]);
    let mut command = Command::new(words.next().expect("the program is one"));
    command.args(words).args(["record", "--json", "--from", "synthetic:1MB/s", "--to"]).arg(array);
    command.args(SMALL.split(' ')).args(options.split_whitespace()).env_remove("SUDO_USER");
    Recorder::spawn(&mut command)
}

#[test]
fn a_recorder_of_roots_keeps_nothing_and_still_answers_and_cleans_up() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let recorder = recording(&[], "--user nobody", &array);
    is_confined(recorder.pid(), NOBODY);
    for (name, status) in threads(recorder.pid()) {
        assert_eq!((field(&status, "CapBnd:"), &name), (vec!["0".repeat(16)], &name));
    }
    let status = line("array show @ --json", &array).code(0).json();
    let uuid = status["array"].as_str().expect("it has one").to_owned();
    let socket = Path::new("/run/longtake").join(uuid).join("control.sock");
    assert!(socket.exists());
    line("protect @ --since -10s --until -1s", &array).code(0);
    recorder.stop().code(0);
    assert!(!socket.exists(), "it was removed by {NOBODY}");
}

#[test]
fn a_recorder_that_was_not_started_by_root_is_confined_too() {
    let folder = scratch();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    let array = new_in(&folder, "array");
    let temporary = format!("TMPDIR={}", text(folder.path()));
    let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let env = ["env", "-u", "XDG_RUNTIME_DIR", &temporary];
    let before: Vec<&str> = user.into_iter().chain(env).collect();
    let recorder = recording(&before, "", &array);
    is_confined(recorder.pid(), NOBODY);
    recorder.stop().code(0);
}

#[test]
fn who_asks_to_keep_privileges_keeps_all() {
    let folder = scratch();
    let recorder = recording(&[], "--keep-privileges", &new_in(&folder, "array"));
    for (name, status) in threads(recorder.pid()) {
        assert_eq!((field(&status, "NoNewPrivs:"), &name), (vec!["0".to_owned()], &name));
        assert_eq!(field(&status, "Uid:")[0], Uid::effective().to_string(), "{name}");
    }
    recorder.stop().code(0);
}

#[test]
fn a_user_called_longtake_is_preferred_to_nobody() {
    let folder = scratch();
    let users = new_in(&folder, "passwd");
    let known = fs::read_to_string("/etc/passwd").expect("there are users");
    let with = format!("{known}longtake:x:64123:64123::/nonexistent:/usr/sbin/nologin\n");
    fs::write(&users, with).expect("there is space");
    let script = format!("mount --bind {} /etc/passwd && exec \"$0\" \"$@\"", text(&users));
    tool("unshare", "util-linux");
    let before = ["unshare", "--mount", "sh", "-c", &script];
    let recorder = recording(&before, "", &new_in(&folder, "array"));
    is_confined(recorder.pid(), 64_123);
    recorder.stop().code(0);
}

#[test]
fn on_a_machine_without_a_list_of_users_the_refusal_names_the_option_that_helps() {
    let folder = scratch();
    tool("unshare", "util-linux");
    let record = |option: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", "mount -t tmpfs none /etc && exec \"$0\" \"$@\""]);
        command.arg(longtake().get_program());
        command.args(["record", "-q", "--from", "synthetic:max", "--until-bytes", "1MB", "--to"]);
        command.arg(new_in(&folder, "array")).args(SMALL.split(' '));
        command.args(option.split_whitespace());
        run(&mut command)
    };
    if Uid::effective().is_root() {
        record("").code(1).says(&["there is no user nobody", "--user", "--keep-privileges"]);
    }
    record("--keep-privileges").code(0);
}

#[test]
fn a_hangup_closes_a_take_unless_it_is_to_be_ignored() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let recorder = recording(&["env", "--default-signal=HUP"], "", &array);
    recorder.signal(Signal::SIGHUP);
    let ended = recorder.end().code(0);
    assert_eq!(ended.event("finished")["ledger"]["balances"], true);
    assert_eq!(line("ledger @ --json", &array).code(0).json()["state"], "complete");

    let before = ["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""];
    let mut recorder = recording(&before, "", &array);
    recorder.signal(Signal::SIGHUP);
    let written = |e: &serde_json::Value| e["event"] == "progress";
    for _ in 0..3 {
        recorder.wait_for("progress after the hangup", written);
    }
    recorder.stop().code(0);
}

#[test]
fn a_filter_that_names_hosts_and_protocols_works_in_a_confined_recorder() {
    let folder = scratch();
    let mut record = longtake();
    record.args(["record", "-q", "--from", "synthetic:max", "--until-bytes", "5MB"]);
    record.args(["--filter", "not host localhost", "--to"]).arg(new_in(&folder, "array"));
    run(record.args(SMALL.split(' '))).code(0);
}

#[test]
fn member_files_are_their_owners_alone_unless_asked_otherwise() {
    let folder = scratch();
    let mode = |file: &Path| file.metadata().expect("it is there").permissions().mode() & 0o7777;
    for (option, expected) in [("", 0o600), ("--mode 0640", 0o640), ("--mode 664", 0o664)] {
        for umask in ["000", "077"] {
            let array = new_in(&folder, &format!("array-{expected:o}-{umask}"));
            let mut record = Command::new("sh");
            record.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
            record.arg(longtake().get_program()).args(["record", "-q", "--to"]).arg(&array);
            record.args(["--from", "synthetic:max", "--until-bytes", "1MB", "--parity", "1"]);
            run(record.args(SMALL.split(' ')).args(option.split_whitespace())).code(0);
            assert_eq!(mode(&array.join("member1")), expected, "umask {umask}");
            if umask == "077" {
                fs::remove_file(array.join("member1")).expect("it is ours");
                let rebuild = "array rebuild @ --degraded --member 1 --onto @/member1";
                line(&format!("{rebuild} {option}"), &array).code(0);
                assert_eq!(mode(&array.join("member1")), expected);
            }
            fs::remove_dir_all(&array).expect("it is ours");
        }
        let file = new_in(&folder, &format!("scratch-{expected:o}"));
        let results = new_in(&folder, &format!("results-{expected:o}"));
        let measure =
            format!("measure run @ --size 1MiB --write 1 --bytes 1MiB -o {}", text(&results));
        line(&format!("{measure} {option}"), &file).code(0);
        assert_eq!(mode(&file), expected);
    }
}
