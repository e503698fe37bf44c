//! A recording, and what serves recordings, as services: what systemd hears from them, and the units that start them.

use std::fs;
use std::io::ErrorKind::NotFound;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::harness::{Recorder, Running, longtake, new_in, run, scratch, tool};

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";
const HANG: Duration = Duration::from_secs(60);

fn packaging(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(path).expect("it is there")
}

/// The values of a setting of the unit.
fn setting(name: &str) -> Vec<String> {
    let unit = packaging("longtake@.service");
    let values = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let values: Vec<String> = values.map(str::to_owned).collect();
    assert!(!values.is_empty(), "the unit sets no {name}");
    values
}

/// A service manager that listens at this address: a path, or an abstract name after `@`.
struct Manager(UnixDatagram, String);

impl Manager {
    fn at(address: &str) -> Self {
        let socket = match address.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(address),
        };
        let socket = UnixDatagram::bind_addr(&socket.expect("it is one")).expect("it is free");
        socket.set_read_timeout(Some(HANG)).expect("it can be set");
        Self(socket, address.to_owned())
    }

    fn in_folder(folder: &TempDir) -> Self {
        Self::at(new_in(folder, "notify").to_str().expect("a scratch path is text"))
    }

    /// The next message.
    fn hears(&self) -> String {
        let mut bytes = [0; 1024];
        let length = self.0.recv(&mut bytes).expect("the recording says something");
        String::from_utf8(bytes[..length].to_vec()).expect("it is text")
    }

    /// What there is to hear until a message comes, that one left out.
    fn hears_until(&self, last: &str) -> Vec<String> {
        std::iter::repeat_with(|| self.hears()).take_while(|message| message != last).collect()
    }

    /// A recording that this manager starts.
    fn recording(&self, options: &str, array: &Path) -> Command {
        let mut command = longtake();
        command.args(["record", "--json", "--to"]).arg(array).args(options.split_whitespace());
        command.args(SMALL.split(' ')).env("NOTIFY_SOCKET", &self.1);
        command
    }
}

fn count(messages: &[String], wanted: &str) -> usize {
    messages.iter().filter(|message| *message == wanted).count()
}

#[test]
fn the_service_manager_hears_of_the_start_the_life_and_the_end() {
    let folder = scratch();
    let path = new_in(&folder, "notify");
    // A confined recorder can connect to neither.
    let hidden = format!("@longtake-{}", std::process::id());
    for (number, address) in [path.to_str().expect("it is text"), &hidden].iter().enumerate() {
        let manager = Manager::at(address);
        let array = new_in(&folder, &number.to_string());
        let mut command = manager.recording("--from synthetic:1MB/s", &array);
        let recorder = Recorder::spawn(command.env("WATCHDOG_USEC", "300000"));
        assert_eq!(manager.hears(), "READY=1");
        for _ in 0..3 {
            let before = manager.hears_until("WATCHDOG=1");
            assert!(before.iter().all(|message| message.starts_with("STATUS=")), "{before:?}");
        }
        recorder.stop().code(0);
        let last = manager.hears_until("STOPPING=1");
        assert_eq!(count(&last, "READY=1"), 0);
    }
}

#[test]
fn without_a_watchdog_of_its_own_a_recording_does_not_say_that_it_is_alive() {
    let folder = scratch();
    let manager = Manager::in_folder(&folder);
    let array = new_in(&folder, "array");
    let mut command = manager.recording("--from synthetic:1MB/s --for 1s", &array);
    // Process 1 is watched: this one is not.
    run(command.env("WATCHDOG_USEC", "1").env("WATCHDOG_PID", "1")).code(0);
    let messages = manager.hears_until("STOPPING=1");
    assert_eq!((count(&messages, "READY=1"), count(&messages, "WATCHDOG=1")), (1, 0));
}

#[test]
fn a_recording_that_cannot_start_is_never_ready() {
    let folder = scratch();
    let manager = Manager::in_folder(&folder);
    let array = new_in(&folder, "array");
    run(&mut manager.recording("--from no-such-interface", &array)).code(2);
    assert_eq!(manager.hears_until("STOPPING=1"), Vec::<String>::new());
}

#[test]
fn a_service_manager_that_cannot_be_reached_is_named_and_the_recording_goes_on() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    for address in ["/nonexistent/notify", "vsock:2:1234"] {
        let mut command = longtake();
        command.args(["record", "--from", "synthetic:1MB/s", "--for", "100ms", "--to"]);
        command.arg(&array).args(SMALL.split(' ')).env("NOTIFY_SOCKET", address);
        run(&mut command).code(0).says(&["warning", "NOTIFY_SOCKET", address]);
    }
}

#[test]
fn the_service_manager_hears_that_recordings_are_served_and_that_it_ends() {
    let folder = scratch();
    let manager = Manager::in_folder(&folder);
    let array = new_in(&folder, "array");
    let mut record = longtake();
    record.args(["record", "-q", "--from", "synthetic:max", "--until-bytes", "1MB", "--to"]);
    run(record.arg(&array).args(SMALL.split(' '))).code(0);
    let mut serve = longtake();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--array"]).arg(&array);
    serve.env("NOTIFY_SOCKET", &manager.1).env("WATCHDOG_USEC", "300000").stdout(Stdio::null());
    let mut serving = Running::start(&mut serve);
    assert_eq!(manager.hears(), "READY=1");
    for _ in 0..3 {
        assert_eq!(manager.hears(), "WATCHDOG=1");
    }
    serving.signal(Signal::SIGTERM);
    assert_eq!(serving.wait(), 0);
    manager.hears_until("STOPPING=1");
}

/// The words of a line as a shell, and systemd, split it.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let split = |(number, part): (usize, &str)| -> Vec<String> {
        match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        }
    };
    parts.flat_map(split).collect()
}

#[test]
fn the_capabilities_of_the_unit_are_enough_to_start_again_and_again() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let example = packaging("example.conf");
    let options = example.lines().find_map(|line| line.strip_prefix("RECORD_OPTIONS="));
    let options = words(&options.expect("it has some").replace("eth0", "lo"));
    let capabilities = setting("CapabilityBoundingSet").concat().to_lowercase();
    let capabilities = capabilities.replace("cap_", "+").replace(' ', ",");
    // What the first leaves behind belongs to the user that it became.
    for _ in 0..2 {
        let mut command = tool("setpriv", "util-linux");
        command.arg(format!("--bounding-set=-all,{capabilities}"));
        for word in setting("ExecStart").concat().split(' ') {
            match word {
                "/usr/bin/longtake" => command.arg(env!("CARGO_BIN_EXE_longtake")),
                "${ARRAY}" => command.arg(&array),
                "$RECORD_OPTIONS" => command.args(&options).args(SMALL.split(' ')).arg("--json"),
                word => command.arg(word),
            };
        }
        Recorder::spawn(command.env_remove("SUDO_USER")).stop().code(0);
    }
}

/// systemd-analyze on the unit as it would be installed; None, and a message, if there is none.
fn analysed(folder: &TempDir, unit: &str, words: &[&str]) -> Option<String> {
    let text = packaging(unit);
    let unit = new_in(folder, &unit.replace('@', "@radar"));
    let text = text.replace("/usr/bin/longtake", env!("CARGO_BIN_EXE_longtake"));
    fs::write(&unit, text).expect("it can be written");
    let mut command = Command::new("systemd-analyze");
    match command.args(words).arg(&unit).env("SYSTEMD_LOG_LEVEL", "warning").output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into();
            assert!(output.status.success(), "{said}");
            Some(said)
        }
        Err(error) if error.kind() == NotFound => {
            eprintln!("not checked, for want of systemd-analyze: apt-get install systemd");
            None
        }
        Err(error) => panic!("starting systemd-analyze: {error}"),
    }
}

#[test]
fn systemd_accepts_the_units_and_finds_them_protected() {
    // Out of 100. A service without any protection has 96.
    for (unit, threshold) in [("longtake@.service", 35), ("longtake-serve.service", 20)] {
        let folder = scratch();
        let Some(said) = analysed(&folder, unit, &["verify", "--man=no"]) else { return };
        assert_eq!(said, "");
        let threshold = format!("--threshold={threshold}");
        analysed(&folder, unit, &["security", "--offline=yes", "--no-pager", &threshold]);
    }
}

#[test]
fn units_of_different_users_have_state_directories_of_their_own() {
    // systemd gives a state directory, with all that is in it, to the user of the unit that it starts.
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let values = ["longtake@.service", "longtake-serve.service"].map(|unit| {
        let unit = fs::read_to_string(packaging.join(unit)).expect("it is there");
        let value =
            |key: &str| unit.lines().find_map(|line| line.strip_prefix(key).map(str::to_owned));
        (value("User="), value("StateDirectory=").expect("it has one"))
    });
    let [(recorder, its_directory), (server, its)] = values;
    assert!(
        recorder != server && its_directory != its,
        "{its_directory} of {recorder:?} and {server:?}"
    );
}
