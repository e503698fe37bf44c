//! No command writes its output onto a device, a member of an array or its own input, by whatever name; an output that is not
//! completed leaves the old file as it was; streams are written directly.

#[path = "../output_rig/options.rs"]
mod options;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::harness::{Running, line, longtake, new_in, ran, run, scratch, tool};
use crate::measure_rig::{LoopDevice, MIB};
use nix::sys::signal::Signal;
use options::{PATHS, Role};
use tempfile::TempDir;

const ARRAY: &str = "--members 2 --member-size 12MiB --segment 1MiB --chunk 64KiB --memory 64MiB";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

#[track_caller]
fn record(array: &Path, bytes: &str) {
    line(&format!("record -q --from synthetic:50MB/s --until-bytes {bytes} --to @ {ARRAY}"), array)
        .code(0);
}

/// Everything that the commands of the table read.
#[track_caller]
fn inputs(folder: &Path) {
    record(&folder.join("array"), "1MB");
    line("measure run sim:ideal -q --write 1 --bytes 16MiB -o @/measured", folder).code(0);
    line("extract @/array -q -o @/packets.pcapng", folder).code(0);
    line("sim new drive -o @/drive.toml", folder).code(0);
    let toml =
        line("plan --rate 1GB/s --mission 60s --drive samsung-970-pro-512gb --print toml", folder);
    fs::write(folder.join("requirement.toml"), toml.code(0).stdout).expect("there is space");
    let sweep = "run = [\"plan\"]\n[base]\ndrive = \"samsung-970-pro-512gb\"\nmission = \"60s\"\nrate = \"1GB/s\"\n\
                 [axes]\ncount = { from = 1, to = 2 }\n";
    fs::write(folder.join("sweep.toml"), sweep).expect("there is space");
    fs::write(folder.join("fio.json"), "{}").expect("there is space");
    fs::write(folder.join("trace.csv"), "0,R,0,4096,1577808000000626\n").expect("there is space");
}

/// A loop device with a file system that is mounted.
struct Mounted {
    device: LoopDevice,
    place: TempDir,
}

impl Mounted {
    #[track_caller]
    fn new() -> Self {
        let mounted = Self { device: LoopDevice::new(16 * MIB), place: scratch() };
        run(tool("mkfs.ext4", "e2fsprogs").arg("-q").arg(&mounted.device.path)).code(0);
        // A file system that may be written writes its journal seconds later, whoever has written nothing.
        let mount = ["-o", "ro"];
        run(tool("mount", "mount").args(mount).arg(&mounted.device.path).arg(mounted.place.path()))
            .code(0);
        mounted
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        tool("umount", "mount").arg(self.place.path()).status().ok();
    }
}

/// What must not be written, and where its bytes can be seen.
struct Victim {
    what: &'static str,
    path: PathBuf,
    /// None where there are no bytes to lose.
    bytes_at: Option<PathBuf>,
}

impl Victim {
    fn new(what: &'static str, path: &Path, bytes_at: Option<&Path>) -> Self {
        Self { what, path: path.to_owned(), bytes_at: bytes_at.map(Path::to_owned) }
    }

    /// The bytes that could be lost.
    fn bytes(&self) -> Option<Vec<u8>> {
        self.bytes_at.as_ref().map(|path| fs::read(path).expect("it is readable"))
    }
}

/// Runs a command of the table with a path as its output, which must be refused and leave the victim as it is.
#[track_caller]
fn refused(words: &str, folder: &Path, output: &Path, victim: &Victim) {
    let before = victim.bytes();
    let words = words.split_whitespace();
    let words = words.map(|word| word.replace('@', text(folder)).replace("OUT", text(output)));
    let ran = ran(words);
    assert!(ran.code == 1, "{}, {}: {ran:?}", ran.command, victim.what);
    assert!(ran.stderr.contains("name a"), "{}, {}: {}", ran.command, victim.what, ran.stderr);
    assert!(victim.path.exists(), "{}: {} is no more", ran.command, victim.what);
    assert!(before == victim.bytes(), "{} has written {}", ran.command, victim.what);
}

#[test]
fn no_option_that_names_an_output_can_destroy_what_is_there() {
    let folder = scratch();
    let base = folder.path();
    inputs(base);
    record(&base.join("other"), "1MB");
    let (plain, mounted) = (LoopDevice::new(MIB), Mounted::new());
    let hard = base.join("hard-link");
    fs::hard_link(base.join("other/member1"), &hard).expect("both are here");
    let member = |name: &str| base.join(name);
    let mut victims = vec![
        Victim::new("a loop device", &plain.path, Some(&plain.image())),
        Victim::new("a mounted loop device", &mounted.device.path, Some(&mounted.device.image())),
        Victim::new(
            "a file under a mounted loop device",
            &mounted.device.image(),
            Some(&mounted.device.image()),
        ),
        Victim::new("a character device", Path::new("/dev/zero"), None),
        Victim::new(
            "a member of another array",
            &member("other/member0"),
            Some(&member("other/member0")),
        ),
        Victim::new(
            "a member of the array",
            &member("array/member1"),
            Some(&member("array/member1")),
        ),
        Victim::new("a hard link to a member", &hard, Some(&member("other/member1"))),
    ];
    let mut tried = 0;
    for (command, option, role) in PATHS {
        let name = format!("{command} {option}").replace(' ', "-");
        let (words, file) = match role {
            Role::Input | Role::Target => continue,
            Role::File { line, input } => {
                let input = PathBuf::from(input.replace('@', text(base)));
                victims.push(Victim::new("an input", &input, Some(&input)));
                (line, None)
            }
            Role::Folder { line, file, quick } => {
                if *quick {
                    written_by(line, base, &base.join(format!("{name}-new")), file);
                }
                (line, Some(file))
            }
        };
        for (at, victim) in victims.iter().enumerate() {
            let link = base.join(format!("{name}-{at}"));
            symlink(&victim.path, &link).expect("the name is new");
            refused(words, base, &victim.path, victim);
            refused(words, base, &link, victim);
            if let Some(file) = file {
                let results = base.join(format!("{name}-{at}-folder"));
                let inside = results.join(file);
                fs::create_dir_all(inside.parent().expect("it lies in a folder"))
                    .expect("it is new");
                symlink(&victim.path, &inside).expect("it is new");
                refused(words, base, &results, victim);
            }
            tried += 1;
        }
        if let Role::File { .. } = role {
            victims.pop();
        }
    }
    assert!(tried > 100, "{tried}");
    // Whoever was spared is sound.
    for array in ["array", "other"] {
        line(&format!("array check @/{array}"), base).code(0);
    }
    assert_eq!(leftovers(base), [] as [PathBuf; 0]);
}

/// Runs a command in a new folder: it writes the file that the table says.
#[track_caller]
fn written_by(words: &str, base: &Path, folder: &Path, file: &str) {
    let words = words.replace("--resume", "");
    let words = words.split_whitespace();
    ran(words.map(|word| word.replace('@', text(base)).replace("OUT", text(folder)))).code(0);
    let there = || fs::read_dir(folder).map(|d| d.flatten().map(|e| e.path()).collect::<Vec<_>>());
    assert!(folder.join(file).is_file(), "{file} is not among {:?}", there());
}

/// Temporary files in a folder and those below.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it is there").flatten() {
        if entry.path().is_dir() {
            found.extend(leftovers(&entry.path()));
        } else if entry.file_name().to_string_lossy().ends_with(".tmp") {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn a_member_is_recognized_while_it_is_recorded_on() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let start = format!("--from synthetic:10MB/s --to @ {ARRAY} --when-full wrap --for 10min");
    let recorder = crate::harness::Recorder::start(&start, &array);
    for member in ["member0", "member1"] {
        let member = array.join(member);
        line(&format!("extract @ -q -y -o {}", text(&member)), &array)
            .code(1)
            .says(&["member of Longtake array", "name another file"]);
        line("sim new made -y -o @", &member).code(1).says(&["member of Longtake array"]);
    }
    recorder.stop().code(0);
    line("array check @", &array).code(0);
}

#[test]
fn standard_output_redirected_onto_a_device_or_a_member_is_refused_too() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    record(&array, "1MB");
    let device = LoopDevice::new(MIB);
    for (output, place) in [("-", device.path.clone()), ("/dev/stdout", array.join("member1"))] {
        let victim = Victim::new("what is redirected to", &place, Some(&place));
        let before = victim.bytes();
        let redirected = File::options().read(true).write(true).open(&place).expect("root may");
        let mut command = longtake();
        command.args(["extract", text(&array), "-q", "-o", output]).stdout(redirected);
        let code = Running::start(&mut command).wait();
        assert_eq!(code, 1, "{output}");
        assert!(before == victim.bytes(), "{output}");
    }
}

#[test]
fn an_interrupted_extract_leaves_the_old_file_and_nothing_else() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    record(&array, "6MB");
    let output = new_in(&folder, "extract.pcapng");
    fs::write(&output, "precious").expect("there is space");
    let mut command = longtake();
    // So slow that it ends by the signal alone.
    let words =
        ["extract", text(&array), "-q", "-y", "--read-rate", "100kB/s", "-o", text(&output)];
    let mut running = Running::start(command.args(words).stderr(Stdio::piped()));
    let begun = || leftovers(folder.path()).iter().any(|f| f.metadata().is_ok_and(|m| m.len() > 0));
    crate::harness::wait_until("the extract is under way", begun);
    running.signal(Signal::SIGINT);
    assert_eq!(running.wait(), 1);
    let mut said = String::new();
    let stderr = running.0.stderr.as_mut().expect("it is piped");
    stderr.read_to_string(&mut said).expect("it is text");
    assert!(said.contains("stopped") && said.contains("was not written"), "{said}");
    assert_eq!(fs::read(&output).expect("it is there"), b"precious");
    assert_eq!(leftovers(folder.path()), [] as [PathBuf; 0]);
}

#[test]
fn an_extract_that_fails_leaves_the_old_file_and_nothing_else() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    record(&array, "6MB");
    // Too small for what is extracted.
    let full = scratch();
    run(tool("mount", "mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(full.path()))
        .code(0);
    let output = full.path().join("extract.pcapng");
    fs::write(&output, "precious").expect("there is space");
    let ran = line(&format!("extract @ -q -y -o {}", text(&output)), &array);
    let (kept, rest) = (fs::read(&output), leftovers(full.path()));
    run(tool("umount", "mount").arg(full.path())).code(0);
    ran.code(1).says(&[text(&output), "No space left"]);
    assert_eq!(kept.expect("it is there"), b"precious");
    assert_eq!(rest, [] as [PathBuf; 0]);
}

#[test]
fn an_extract_is_its_owners_alone_and_takes_the_place_of_an_old_file_through_a_link() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    record(&array, "1MB");
    let (real, link) = (new_in(&folder, "real.pcapng"), new_in(&folder, "link.pcapng"));
    fs::write(&real, "old").expect("there is space");
    symlink(&real, &link).expect("it is new");
    line(&format!("extract @ -q -y -o {}", text(&link)), &array).code(0);
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    let made = fs::metadata(&real).expect("it is there");
    assert!(made.len() > 1_000_000);
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
    // A report is for all whom the umask lets in.
    let page = new_in(&folder, "drive.toml");
    let mut shell = tool("sh", "dash");
    let script = "umask 022 && exec \"$@\"";
    run(shell
        .args(["-c", script, "sh"])
        .arg(longtake().get_program())
        .args(["sim", "new", "x", "-o"])
        .arg(&page))
    .code(0);
    assert_eq!(page.metadata().expect("it is there").permissions().mode() & 0o777, 0o644);
    fs::remove_file(&real).expect("it is ours");
    line(&format!("extract @ -q -y -o {}", text(&link)), &array)
        .code(1)
        .says(&["symbolic link", "name a file"]);
}

#[test]
fn a_file_that_appears_meanwhile_is_not_overwritten_unasked() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    record(&array, "1MB");
    let output = new_in(&folder, "extract.pcapng");
    let mut command = longtake();
    let words = ["extract", text(&array), "-q", "--read-rate", "500kB/s", "-o", text(&output)];
    let mut running = Running::start(command.args(words).stderr(Stdio::null()));
    crate::harness::wait_until("the extract is under way", || !leftovers(folder.path()).is_empty());
    fs::write(&output, "precious").expect("there is space");
    assert_eq!(running.wait(), 1);
    assert_eq!(fs::read(&output).expect("it is there"), b"precious");
    assert_eq!(leftovers(folder.path()), [] as [PathBuf; 0]);
}

#[test]
fn streams_are_written_directly() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    record(&array, "1MB");
    let file = new_in(&folder, "extract.pcapng");
    line(&format!("extract @ -q -o {}", text(&file)), &array).code(0);
    let expected = fs::read(&file).expect("it is there");
    for output in ["-", "/dev/stdout", "/dev/fd/1"] {
        let ran = line(&format!("extract @ -q -o {output}"), &array).code(0);
        assert!(ran.stdout == expected, "{output}: {} bytes", ran.stdout.len());
    }
    let null = fs::metadata("/dev/null").expect("it is there").rdev();
    line("extract @ -q -o /dev/null", &array).code(0);
    line("extract @ -q -y -o /dev/null", &array).code(0);
    assert_eq!(fs::metadata("/dev/null").expect("it is there").rdev(), null);
    let fifo = new_in(&folder, "fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("it is new");
    let mut command = longtake();
    let mut running =
        Running::start(command.args(["extract", text(&array), "-q", "-o", text(&fifo)]));
    let mut heard = Vec::new();
    File::open(&fifo).and_then(|mut end| end.read_to_end(&mut heard)).expect("it is a FIFO");
    assert_eq!(running.wait(), 0);
    assert!(heard == expected, "{} bytes", heard.len());
    // A shell's own descriptor, after what it wrote there before.
    let shared = new_in(&folder, "shared");
    let script = "echo begin > \"$1\"; \"$0\" sim new x -o /dev/stdout >> \"$1\"";
    let mut shell = tool("sh", "dash");
    run(shell.args(["-c", script]).arg(longtake().get_program()).arg(&shared)).code(0);
    let mut lines = BufReader::new(File::open(&shared).expect("it is there")).lines();
    assert_eq!(lines.next().expect("it has lines").expect("it is text"), "begin");
    assert!(lines.next().expect("it has lines").expect("it is text").starts_with("# Made from"));
}

#[test]
fn what_a_resumed_measurement_finds_under_a_result_s_name_stays_as_it_is() {
    let folder = scratch();
    let measured = new_in(&folder, "measured");
    let words = "measure run sim:ideal -q --write 1 --bytes 16MiB -o @";
    line(words, &measured).code(0);
    let precious = new_in(&folder, "precious");
    fs::write(&precious, "precious").expect("there is space");
    let log = measured.join("run/workload.hlog");
    fs::remove_file(&log).expect("it was written");
    fs::hard_link(&precious, &log).expect("both are here");
    line(&format!("{words} --resume"), &measured).code(0);
    assert_eq!(fs::read(&precious).expect("it is there"), b"precious");
}

#[test]
fn one_module_opens_every_output() {
    // What the program's own rooms do is held to the same.
    let rooms =
        ["cli", "longtake", "report", "target", "twin"].map(|room| format!("../{room}/src"));
    let mut folders: Vec<_> =
        rooms.map(|room| Path::new(env!("CARGO_MANIFEST_DIR")).join(room)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let program = fs::read_to_string(&path).expect("it is text");
            let program = program.split("#[cfg(test)]").next().unwrap_or_default();
            let opens =
                ["File::create", "fs::write(", "OpenOptions", "File::options", "create_new("];
            let prints = [
                "stdout().lock()",
                "stderr().lock()",
                ".set_message(",
                "comfy_table::",
                "bar.println(",
            ];
            let has = |words: &[&str]| words.iter().any(|word| program.contains(word));
            let is = |name: &str| path.to_string_lossy().contains(name);
            if is("commands/manual.rs") {
                // A test, which writes the manual pages of the package.
                continue;
            }
            let shows =
                |call: &str| call.split(';').next().is_some_and(|c| c.contains(".display()"));
            let paths = program.split("printer::text(").skip(1).any(shows);
            assert!(!paths, "{} prints a path as if it had no line ends", path.display());
            assert!(
                !has(&opens) || is("target/src/output"),
                "{} opens files for writing",
                path.display()
            );
            let may_print = [
                "src/printer.rs",
                "src/progress.rs",
                "src/reporter.rs",
                "src/main.rs",
                "report/src/text.rs",
            ];
            assert!(
                !has(&prints) || may_print.iter().any(|name| is(name)),
                "{} prints",
                path.display()
            );
        }
    }
}
