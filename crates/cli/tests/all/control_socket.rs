//! The control socket of a recording on a machine with other users: it answers its own user and root, trusts nobody else's
//! directory or socket, and is removed at the end. Run as root, which becomes two other users.

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{
    Recorder, Running, hearing_hangups, longtake, new_in, run, scratch, tool, wait_until,
};
use nix::sys::signal::Signal;
use tempfile::TempDir;

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";

/// The user who records.
const USER: u32 = 65_534;
/// Another user.
const HOSTILE: u32 = 65_533;

/// What the hostile user's process does: `listen` or `ask`, and the socket.
const ROLE: &str = "LONGTAKE_TEST_ROLE";
const SOCKET: &str = "LONGTAKE_TEST_SOCKET";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// A program as another user.
fn by(user: u32, program: &Command) -> Command {
    let mut command = tool("setpriv", "util-linux");
    let user = user.to_string();
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]);
    command.arg(program.get_program()).args(program.get_args());
    command
}

/// The program as the user who records, with `temporary` as the directory for temporary files.
fn as_user(arguments: &str, temporary: &Path, array: &Path) -> Command {
    let mut program = longtake();
    program.args(arguments.split_whitespace().map(|word| word.replace('@', text(array))));
    let mut command = by(USER, &hearing_hangups(&program));
    command.env("TMPDIR", temporary).env_remove("XDG_RUNTIME_DIR");
    command
}

/// A folder that everybody may use, as `/tmp`.
fn temporary_in(folder: &TempDir, name: &str) -> PathBuf {
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let temporary = new_in(folder, name);
    fs::create_dir(&temporary).expect("there is space");
    fs::set_permissions(&temporary, Permissions::from_mode(0o1777)).expect("it is ours");
    temporary
}

/// The directory for the recording user's sockets.
fn base(temporary: &Path) -> PathBuf {
    temporary.join(format!("longtake-{USER}"))
}

fn give(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).expect("root may");
}

/// A directory of a user's with a mode.
fn make(path: &Path, user: u32, mode: u32) {
    fs::create_dir(path).expect("there is space");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    give(path, user);
}

/// A recording of the user's, and its socket.
fn recording(temporary: &Path, array: &Path) -> (Recorder, PathBuf) {
    let record = format!("record --json --from synthetic:1MB/s --to @ {SMALL}");
    let mut recorder = Recorder::launch(&mut as_user(&record, temporary, array));
    let started = recorder.wait_for("its start", |e| e["event"] == "started");
    let uuid = started["array_uuid"].as_str().or(started["array"].as_str());
    let uuid = uuid.expect("it has a name").to_owned();
    (recorder, base(temporary).join(uuid).join("control.sock"))
}

const PROTECT: &str = "protect @ --since -10s --until -1s";

/// The part of the hostile user, played by this test program in a process of its own.
#[test]
fn hostile_user() {
    let (Some(role), Some(socket)) = (env::var_os(ROLE), env::var_os(SOCKET)) else { return };
    if role == "listen" {
        let listener = UnixListener::bind(&socket).expect("the directory is open to all");
        fs::set_permissions(&socket, Permissions::from_mode(0o777)).expect("it is ours");
        println!("listening");
        let (mut stream, _) = listener.accept().expect("somebody comes");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).ok();
        println!("heard {line:?}");
        stream.write_all(b"{\"Ok\":1}\n").ok();
    } else {
        let mut stream = UnixStream::connect(&socket).expect("the directory is open to all");
        stream.write_all(b"{\"Unprotect\":{\"from_ns\":0,\"to_ns\":1}}\n").ok();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("there is an answer");
        println!("heard {line:?}");
    }
}

/// This test program as the hostile user.
fn hostile(role: &str, socket: &Path) -> Command {
    let mut program = Command::new(env::current_exe().expect("it runs"));
    program.args(["--exact", "control_socket::hostile_user", "--nocapture"]);
    let mut command = by(HOSTILE, &program);
    command.env(ROLE, role).env(SOCKET, socket);
    command
}

#[test]
fn a_recording_answers_its_user_and_removes_its_socket_however_it_is_asked_to_end() {
    let folder = scratch();
    let temporary = temporary_in(&folder, "tmp");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let array = temporary.join(format!("array-{signal}"));
        let (recorder, socket) = recording(&temporary, &array);
        assert!(socket.exists(), "{}", socket.display());
        for directory in [base(&temporary).as_path(), socket.parent().expect("it has one")] {
            let mode = directory.metadata().expect("it is there").permissions().mode();
            assert_eq!(mode & 0o7777, 0o700, "{}", directory.display());
        }
        run(&mut as_user(PROTECT, &temporary, &array)).code(0);
        recorder.signal(signal);
        recorder.end().code(0);
        let left = fs::read_dir(base(&temporary)).expect("it is there").count();
        assert_eq!(left, 0, "{signal}");
    }
}

#[test]
fn a_socket_that_a_kill_has_left_is_replaced() {
    let folder = scratch();
    let temporary = temporary_in(&folder, "tmp");
    let array = temporary.join("array");
    let (recorder, socket) = recording(&temporary, &array);
    recorder.signal(Signal::SIGKILL);
    recorder.end();
    assert!(socket.exists(), "nobody was there to remove it");
    let (recorder, again) = recording(&temporary, &array);
    assert_eq!(socket, again);
    run(&mut as_user(PROTECT, &temporary, &array)).code(0);
    recorder.stop().code(0);
    assert!(!socket.exists());
}

/// Neither side takes this directory, and both say why.
fn is_refused(prepare: impl Fn(&Path), says: &[&str]) {
    let folder = scratch();
    let (good, bad) = (temporary_in(&folder, "good"), temporary_in(&folder, "bad"));
    prepare(&base(&bad));
    let array = good.join("array");
    let record = format!("record --from synthetic:1MB/s --for 1s --to @ {SMALL}");
    let directory = base(&bad);
    let says: Vec<&str> = says.iter().copied().chain([text(&directory)]).collect();
    run(&mut as_user(&record, &bad, &array)).code(1).says(&says);
    assert!(!array.exists(), "a failed start leaves nothing behind");
    let (recorder, _) = recording(&good, &array);
    let ran = run(&mut as_user(PROTECT, &bad, &array)).code(1);
    ran.says(&says).says(&["as the user who started the recording"]);
    recorder.stop().code(0);
}

#[test]
fn a_directory_of_another_users_is_refused() {
    for mode in [0o700, 0o777] {
        let says = ["belongs to", "65533", "XDG_RUNTIME_DIR"];
        is_refused(|base| make(base, HOSTILE, mode), &says);
    }
}

#[test]
fn a_symbolic_link_is_refused_also_to_a_directory_of_ones_own() {
    let prepare = |base: &Path| {
        let own = base.with_file_name("own");
        make(&own, USER, 0o700);
        symlink(&own, base).expect("there is space");
    };
    is_refused(prepare, &["symbolic link", "remove it"]);
}

#[test]
fn a_directory_that_others_may_enter_or_write_is_refused() {
    for (mode, shown) in [(0o755, "mode 0755"), (0o770, "mode 0770")] {
        is_refused(|base| make(base, USER, mode), &[shown, "chmod 700"]);
    }
}

#[test]
fn a_socket_that_another_user_listens_on_is_refused_and_told_nothing() {
    let folder = scratch();
    let (good, bad) = (temporary_in(&folder, "good"), temporary_in(&folder, "bad"));
    let array = good.join("array");
    let (recorder, socket) = recording(&good, &array);
    let uuid = socket.parent().and_then(Path::file_name).expect("it has one");
    let (outer, inner) = (base(&bad), base(&bad).join(uuid));
    make(&outer, USER, 0o755);
    make(&inner, USER, 0o777);
    let mut listener =
        Running::start(hostile("listen", &inner.join("control.sock")).stdout(Stdio::piped()));
    let mut heard = BufReader::new(listener.0.stdout.take().expect("it is piped")).lines();
    heard.find(|line| line.as_ref().is_ok_and(|line| line.contains("listening")));
    // As if it had been there before the directories were closed.
    for directory in [&inner, &outer] {
        fs::set_permissions(directory, Permissions::from_mode(0o700)).expect("root may");
    }
    let ran = run(&mut as_user(PROTECT, &bad, &array)).code(1);
    ran.says(&["65533", "listens on", "only a recorder of yours or of root is trusted"]);
    let heard = heard.map_while(Result::ok).find(|line| line.contains("heard"));
    assert_eq!(heard.as_deref(), Some("heard \"\""));
    listener.wait();
    // The same with a link to the socket.
    fs::remove_file(inner.join("control.sock")).expect("root may");
    symlink(&socket, inner.join("control.sock")).expect("there is space");
    run(&mut as_user(PROTECT, &bad, &array)).code(1).says(&["not a socket"]);
    recorder.stop().code(0);
}

#[test]
fn a_recorder_obeys_nobody_but_its_user_and_root() {
    let folder = scratch();
    let temporary = temporary_in(&folder, "tmp");
    let array = temporary.join("array");
    let (recorder, socket) = recording(&temporary, &array);
    // Were the directories open, by somebody's mistake.
    for open in socket.ancestors().take(3) {
        fs::set_permissions(open, Permissions::from_mode(0o777)).expect("root may");
    }
    let heard = run(&mut hostile("ask", &socket)).code(0).text();
    assert!(heard.contains("Err") && heard.contains("user 65533 may not"), "{heard}");
    recorder.stop().code(0);
    wait_until("the socket is removed", || !socket.exists());
}

#[test]
fn a_recorder_of_roots_answers_root_and_the_user_that_it_became_and_no_other() {
    let folder = scratch();
    let temporary = temporary_in(&folder, "tmp");
    let array = temporary.join("array");
    // A user that every Debian system has.
    let record = format!("--from synthetic:1MB/s --user games --mode 0644 --to @ {SMALL}");
    let mut recorder = Recorder::start(&record, &array);
    recorder.wait_for_written(1_000_000);
    let protect = || {
        let mut protect = longtake();
        protect.args(PROTECT.split(' ').map(|word| word.replace('@', text(&array))));
        protect
    };
    let by = |user: u32| {
        let mut command = by(user, &protect());
        run(command.env("TMPDIR", &temporary).env_remove("XDG_RUNTIME_DIR"))
    };
    let games = nix::unistd::User::from_name("games").expect("it can be looked up");
    by(games.expect("it is there").uid.as_raw()).code(0);
    run(&mut protect()).code(0);
    for user in [USER, HOSTILE] {
        by(user).code(1).says(&["as the user who started the recording"]);
    }
    recorder.stop().code(0);
}
