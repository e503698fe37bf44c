//! A command that can't begin says so before it creates a file, and leaves nothing behind: neither files nor directories that
//! it has created, also if a signal stops it.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{
    Running, hearing_hangups, line, longtake, new_in, run, scratch, tool, wait_until,
};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;
use tempfile::TempDir;

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// What is in a folder, at any depth.
fn all_in(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("it is there").map(|e| e.expect("it is there").path());
    entries
        .flat_map(|path| {
            let inner = if path.is_dir() { all_in(&path) } else { Vec::new() };
            [path].into_iter().chain(inner)
        })
        .collect()
}

fn is_empty(folder: &Path) {
    assert_eq!(all_in(folder), Vec::<PathBuf>::new());
}

#[test]
fn limits_source_filter_and_processors_are_checked_before_a_file_is_created() {
    let folder = scratch();
    let synthetic = "--from synthetic:1MB/s";
    for (options, says) in [
        (format!("{synthetic} --members 0"), &["--members 0", "1 to 256"][..]),
        (format!("{synthetic} --members 300 --member-size 65MiB"), &["300", "1 to 256"]),
        (format!("{synthetic} --members 65535 --member-size 40MiB"), &["65535", "1 to 256"]),
        (format!("{synthetic} --member-size 1MiB"), &["fewer than two segments", "at least"]),
        (format!("{synthetic} {SMALL} --chunk 5000"), &["5000", "multiple of 4096"]),
        (format!("{synthetic} {SMALL} --chunk 5GB"), &["--chunk"]),
        (format!("{synthetic} --segment 5000 --chunk 64KiB"), &["segments of 5000", "multiple"]),
        (format!("{synthetic} {SMALL} --parity 2"), &["parity 2 over 2 members"]),
        (format!("{synthetic} {SMALL} --cpus 0,99999"), &["--cpus", "99999"]),
        (format!("{synthetic} {SMALL} --user nobody-is-called-that"), &["no user", "--user"]),
        (format!("{synthetic} {SMALL} --filter tcp~prot~80"), &["tcp prot 80", "syntax error"]),
        (format!("{SMALL} --from if:longtake-none"), &["longtake-none", "no such interface"]),
        (format!("{SMALL} --from udp:192.0.2.1:9"), &["192.0.2.1:9"]),
        (format!("{SMALL} --from tcp:127.0.0.1:1"), &["127.0.0.1:1"]),
        (format!("{SMALL} --from file:/no/such.pcap"), &["/no/such.pcap"]),
        (format!("{SMALL} --from pipe:/no/such/pipe"), &["/no/such/pipe"]),
    ] {
        let mut record = longtake();
        record.args(["record", "--for", "1s", "--to", text(&new_in(&folder, "new/array"))]);
        record.args(options.split(' ').map(|word| word.replace('~', " ")));
        let ran = run(&mut record).code(1).says(says);
        assert!(!ran.stderr.contains("creating"), "{options}: {}", ran.stderr);
        is_empty(folder.path());
    }
    let mode = "record --from synthetic:1MB/s --to @ --mode 0400";
    line(mode, &new_in(&folder, "new")).code(2).says(&["0400", "octal"]);
}

#[test]
fn files_that_fit_alone_but_not_together_are_refused_with_both_figures() {
    let folder = scratch();
    let status = statvfs(folder.path()).expect("it is there");
    let free = status.blocks_available() as u64 * status.fragment_size() as u64;
    // So much that other tests' files make no difference.
    let size = free / 10 * 8 / 4096 * 4096;
    let needed = (2 * size).to_string();
    let says = ["2 new files", &needed, "available", "free some space"];
    let record = format!("record --from synthetic:1MB/s --members 2 --member-size {size} --to @");
    line(&record, &new_in(&folder, "new/array")).code(1).says(&says);
    is_empty(folder.path());
    let measure = format!("measure run @/one @/two --size {size} --write 1 --for 1s -o @/results");
    line(&measure, folder.path()).code(1).says(&says);
    is_empty(folder.path());
    let measure = format!("measure fill @/one @/two --size {size} -o @/results");
    line(&measure, folder.path()).code(1).says(&says);
    is_empty(folder.path());
}

/// The program as user nobody.
fn as_nobody() -> Command {
    let mut command = tool("setpriv", "util-linux");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(longtake().get_program());
    command
}

/// A folder that everybody may enter, and in it one of nobody's.
fn folder_of_nobody() -> (TempDir, PathBuf) {
    let folder = scratch();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let own = new_in(&folder, "own");
    fs::create_dir(&own).expect("there is space");
    chown(&own, Some(65_534), Some(65_534)).expect("root may");
    (folder, own)
}

/// A recording by user nobody, whose control socket can't be made: that is known only once the files are there.
fn without_a_control_socket(array: &Path, temporary: &Path) -> Command {
    let socket = temporary.join("longtake-65534");
    if !socket.exists() {
        fs::create_dir(&socket).expect("there is space");
    }
    let mut command = as_nobody();
    command.args(["record", "--from", "synthetic:1MB/s", "--for", "1s", "--to"]).arg(array);
    command.args(SMALL.split(' ')).env("TMPDIR", temporary).env_remove("XDG_RUNTIME_DIR");
    command
}

#[test]
fn what_a_failed_start_has_created_is_removed_and_nothing_else() {
    let (folder, own) = folder_of_nobody();
    let temporary = scratch();
    fs::set_permissions(temporary.path(), Permissions::from_mode(0o755)).expect("it is ours");
    // A directory that is there stays, those that are made go.
    for array in [own.clone(), own.join("new"), own.join("new/deep/array")] {
        let ran = run(&mut without_a_control_socket(&array, temporary.path())).code(1);
        ran.says(&["creating 2 member files", "control socket", "belongs to"]);
        assert_eq!(all_in(folder.path()), std::slice::from_ref(&own));
    }
}

#[test]
fn a_measurement_that_cannot_begin_removes_the_files_that_it_has_created() {
    let (folder, own) = folder_of_nobody();
    let mut measure = as_nobody();
    measure.args(["measure", "run"]).args([own.join("one"), new_in(&folder, "two")]);
    measure.args(["--size", "1MiB", "--write", "1", "--for", "1s", "-o"]).arg(own.join("results"));
    let says = [text(&own), "making", "two", "ermission denied"];
    run(&mut measure).code(1).says(&says);
    assert_eq!(all_in(folder.path()), [own]);
}

#[test]
fn a_signal_during_preparation_leaves_nothing_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let folder = scratch();
        let array = new_in(&folder, "new/array");
        // Standard error is full, so that the note that files are being made waits until somebody reads.
        let (mut reader, mut writer) = std::io::pipe().expect("there are descriptors");
        let flags = OFlag::from_bits_retain(fcntl(&writer, FcntlArg::F_GETFL).expect("it is open"));
        fcntl(&writer, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).expect("it is open");
        while writer.write(&[b'.'; 4096]).map_err(|e| e.kind()) != Err(ErrorKind::WouldBlock) {}
        fcntl(&writer, FcntlArg::F_SETFL(flags)).expect("it is open");
        let mut record = hearing_hangups(&longtake());
        record.args(["record", "--from", "synthetic:1MB/s", "--for", "1s", "--to"]).arg(&array);
        let mut recorder = Running::start(record.args(SMALL.split(' ')).stderr(writer));
        // What holds the other end of the pipe goes, or it would have no end.
        drop(record);
        wait_until("it makes its directory", || array.exists());
        recorder.signal(signal);
        let mut said = Vec::new();
        reader.read_to_end(&mut said).expect("it is open");
        let said = String::from_utf8_lossy(&said);
        assert_eq!(recorder.wait(), 1, "{said}");
        assert!(said.contains("stopped by a signal before the start"), "{said}");
        is_empty(folder.path());
    }
}

#[test]
fn a_fit_whose_result_would_have_no_place_is_refused_at_once() {
    let folder = scratch();
    let fit = "fit @/measured -o @/missing/twin.toml";
    line(fit, folder.path()).code(1).says(&["missing", "not a folder"]);
}
