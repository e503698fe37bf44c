//! The attack `commands`: random command lines made of the program's own options, with hostile values.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::loops::{Loop, checksum};
use super::recording::{PACKET_BYTES, Shape};
use super::stage::{Ran, Stage};

/// Random command lines.
#[derive(Debug, Default)]
pub struct Commands {
    /// The program's commands, read once from its help.
    grammar: Mutex<Vec<Grammar>>,
}

/// What a command takes.
#[derive(Clone, Debug, Default)]
struct Grammar {
    /// `array create`
    words: Vec<String>,
    /// Options, and whether each takes a value.
    options: Vec<(String, Option<Hint>)>,
    /// Positional arguments.
    positionals: usize,
}

/// What the help says of a value.
#[derive(Clone, Debug, Default)]
struct Hint {
    /// `SIZE`
    name: String,
    /// Possible values, and the default.
    values: Vec<String>,
}

const PER_ROUND: u64 = 25;
/// A command that goes on for longer is interrupted.
const PATIENCE: Duration = Duration::from_secs(3);
/// Generous: what a value asks for beyond it must be refused, not taken.
const ADDRESS_SPACE: &str = "--as=12884901888";
const FILE_SIZE: &str = "--fsize=67108864";
/// Options that confirm a destruction: they are given no device.
const CONFIRMING: &[&str] = &["--erase", "--force-new-array", "--yes", "--overwrite"];

const HOSTILE: &[&str] = &[
    "",
    " ",
    "0",
    "1",
    "2",
    "-1",
    "-0",
    "+1",
    "00",
    "0x10",
    "1e3",
    "1e400",
    "-1e400",
    "NaN",
    "inf",
    "-inf",
    "0.1",
    "0.0000001",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967295",
    "4294967296",
    "65535",
    "65536",
    "255",
    "256",
    "340282366920938463463374607431768211456",
    "1B",
    "1kB",
    "4KiB",
    "64KiB",
    "1MiB",
    "1GiB",
    "16EiB",
    "18446744073709551615B",
    "999999999999TB",
    "-1MiB",
    "0B",
    "1.5KiB",
    "1ns",
    "1ms",
    "100ms",
    "1s",
    "1000000h",
    "99999999999d",
    "0s",
    "-10s",
    "-1h",
    "now",
    "last",
    "first",
    "all",
    "1970-01-01",
    "2554-07-21T23:34:33Z",
    "2600-01-01T00:00:00Z",
    "-9999-01-01T00:00:00Z",
    "2026-11-23T10:00:00.123456789Z",
    "1B/s",
    "0B/s",
    "1000000TB/s",
    "100Gb/s",
    "max",
    "5%",
    "200%",
    "-5%",
    "..",
    ".",
    "/",
    "./",
    "//",
    "~",
    "-",
    "--",
    "---",
    "-h",
    "--help",
    "*",
    "?",
    "@",
    "%s%n",
    "%",
    "$(true)",
    "`true`",
    "a b",
    "\t",
    "\n",
    "\r\n",
    "a\nb",
    "\u{1b}[31mred\u{1b}[0m",
    "\u{7}",
    "\u{7f}",
    "\u{85}",
    "\u{202e}abc",
    "\u{200b}",
    "é",
    "日本語",
    "🦀",
    "\u{fffd}",
    "a\u{301}",
    "ß",
    "İ",
    ",",
    ",,",
    "1,2,3",
    "0,0",
    "=",
    "a=b",
    "k=v,k=v",
    ":",
    "::",
    ":0",
    "127.0.0.1:0",
    "127.0.0.1:99999",
    "[::1]:0",
    "127.0.0.1",
    "0.0.0.0:0",
    "localhost:1",
    "synthetic:1MB/s",
    "synthetic:max",
    "synthetic:",
    "synthetic:0",
    "synthetic:1B/s,size=0",
    "synthetic:1MB/s,size=65536",
    "synthetic:10MB/s,size=imix,queues=65535",
    "synthetic:max,seed=-1",
    "udp:127.0.0.1:0",
    "udp:",
    "tcp:127.0.0.1:1",
    "tcp-listen:127.0.0.1:0",
    "pipe:",
    "pipe:./array",
    "pcap:-",
    "pcap:",
    "lo",
    "if:lo",
    "if:",
    "if:none",
    "lo,queues=0",
    "lo,queues=100000",
    "sim:ideal",
    "sim:",
    "sim:none",
    "sim:ideal*6",
    "sim:ideal*0",
    "sim:ideal*99999999999",
    "sim:ideal:full",
    "sim:ideal@9",
    "sim:./text",
    "sim:.",
    "json",
    "toml",
    "fio",
    "pcap",
    "pcapng",
    "csv",
    "random",
    "zipf:1.2",
    "zipf:NaN",
    "zipf:-1",
    "zipf:1e308",
    "wrap",
    "stop",
    "adaptive",
    "stripe",
    "ideal",
    "samsung-970-pro-512gb",
    "udp",
    "not (",
    "udp port 5000",
    "ip6 and",
    "((((((((((",
    "root",
    "nobody",
    "no-such-user",
    "0777",
    "8888",
    "0",
    "00000000-0000-0000-0000-000000000000",
];

/// Paths of the round's folder, and devices that lose nothing.
const PATHS: &[&str] = &[
    "./array",
    "array",
    "./array/member0",
    "array/member0,array/member1",
    "./ring",
    "./damaged",
    "./text",
    "./empty",
    "./folder",
    "./none",
    "./none/none",
    "./capture.pcapng",
    "./fifo",
    "./dangling",
    "./loop",
    "./drive.toml",
    "./requirement.toml",
    "./measured",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/proc/self/mem",
    "/proc/self/exe",
    "/sys",
    "/dev",
    "DEVICE",
];

impl super::Attack for Commands {
    fn name(&self) -> &'static str {
        "commands"
    }

    fn about(&self) -> &'static str {
        "random command lines of the program's own options, with hostile values, in a folder and network of their own"
    }

    fn law(&self) -> &'static str {
        "no panic and no signal; the command ends, at the latest when it is interrupted; exit code 0 to 3; after 1 or 2 no file is \
         changed, and what is new was named"
    }

    fn slice_rounds(&self) -> u64 {
        2
    }

    fn round(&self, stage: &mut Stage) -> Result<()> {
        let grammar = self.grammar(stage)?;
        let device = scene(stage)?;
        let untouched = checksum(&device.image)?;
        let mut checksums = Checksums::default();
        checksums.changed(&Listing::default(), &Listing::of(&stage.dir)?)?;
        for _ in 0..PER_ROUND {
            let words = words(stage, &grammar, &device.device);
            let before = Listing::of(&stage.dir)?;
            let ran = confined(stage, &words)?;
            judge(stage, &ran, &before, &mut checksums)?;
        }
        ensure!(
            checksum(&device.image)? == untouched,
            "a device was written that nobody confirmed"
        );
        Ok(())
    }
}

impl Commands {
    fn grammar(&self, stage: &mut Stage) -> Result<Vec<Grammar>> {
        let Ok(mut known) = self.grammar.lock() else { return Ok(Vec::new()) };
        if known.is_empty() {
            explore(stage, &[], &mut known)?;
            ensure!(known.len() > 20, "the help names only {} commands", known.len());
        }
        Ok(known.clone())
    }
}

/// Reads the help of a command and of those below it.
fn explore(stage: &mut Stage, words: &[String], known: &mut Vec<Grammar>) -> Result<()> {
    let asked: Vec<String> = words.iter().cloned().chain(["--help".to_owned()]).collect();
    let help = stage.run(&asked)?.code(&[0])?;
    let (grammar, below) = read(words, &String::from_utf8_lossy(&help.stdout));
    for name in below.iter().filter(|name| *name != "help") {
        let words: Vec<String> = words.iter().cloned().chain([name.clone()]).collect();
        explore(stage, &words, known)?;
    }
    known.push(grammar);
    Ok(())
}

/// A command's grammar and its subcommands, from its help.
fn read(words: &[String], help: &str) -> (Grammar, Vec<String>) {
    let mut grammar = Grammar { words: words.to_vec(), ..Grammar::default() };
    let (mut below, mut section) = (Vec::new(), "");
    for line in help.lines() {
        let (text, indent) = (line.trim(), line.len() - line.trim_start().len());
        if indent == 0 && text.ends_with(':') {
            section = text;
        } else if text.starts_with('-') && indent <= 6 && section != "Commands:" {
            let option = text.split_whitespace().map(|word| word.trim_end_matches(','));
            let Some(name) = option.clone().find(|word| word.starts_with("--")) else { continue };
            let name = name.split(['[', '=', '<']).next().unwrap_or(name).to_owned();
            let value = text.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
            let hint = value.map(|(name, _)| Hint { name: name.to_owned(), values: Vec::new() });
            grammar.options.push((name, hint));
        } else if section == "Commands:" && indent == 2 {
            below.extend(text.split_whitespace().next().map(str::to_owned));
        } else if section == "Arguments:" && indent == 2 && text.starts_with(['<', '[']) {
            grammar.positionals += 1;
        }
        let possible = text.strip_prefix("- ").and_then(|rest| rest.split_once(':'));
        let default = text.strip_prefix("[default: ").map(|rest| rest.trim_end_matches(']'));
        let listed = text.strip_prefix("[possible values: ").map(|rest| rest.trim_end_matches(']'));
        if let Some((_, Some(hint))) = grammar.options.last_mut() {
            hint.values.extend(possible.map(|(value, _)| value.to_owned()));
            hint.values.extend(default.map(str::to_owned));
            hint.values.extend(listed.iter().flat_map(|list| list.split(", ")).map(str::to_owned));
        }
    }
    (grammar, below)
}

/// What commands may find.
fn scene(stage: &mut Stage) -> Result<Loop> {
    let shape = Shape { members: 2, member_mib: 8, parity: 1, ring: false, chunk_kib: 64 };
    for (array, options) in [("./array", ""), ("./ring", " --when-full wrap"), ("./damaged", "")] {
        let from =
            format!("record -q --from synthetic:50MB/s,size={PACKET_BYTES} --until-bytes 300kB");
        stage.line(&format!("{from} --to {array} {}{options}", shape.options()))?.code(&[0])?;
    }
    let member = stage.path("damaged/member0");
    let mut bytes = fs::read(&member)?;
    bytes[(1 << 20) + 30_000..][..5000].fill(0xa5);
    fs::write(member, bytes)?;
    stage.line("extract ./array -q -o capture.pcapng")?.code(&[0])?;
    stage.line("sim new drive -o drive.toml")?.code(&[0])?;
    stage.line("measure run sim:ideal -q --write 1 --bytes 1MiB -o measured")?.code(&[0])?;
    let plan = "plan --rate 1GB/s --mission 60s --drive samsung-970-pro-512gb --print toml";
    let plan = stage.line(plan)?.code(&[0])?;
    fs::write(stage.path("requirement.toml"), plan.stdout)?;
    fs::write(stage.path("text"), "no array, no capture\n")?;
    fs::write(stage.path("empty"), "")?;
    fs::create_dir(stage.path("folder"))?;
    nix::unistd::mkfifo(&stage.path("fifo"), nix::sys::stat::Mode::S_IRWXU)?;
    std::os::unix::fs::symlink("nowhere", stage.path("dangling"))?;
    std::os::unix::fs::symlink("loop", stage.path("loop"))?;
    Loop::new(&stage.path("device.raw"), 4 << 20)
}

/// A command line.
fn words(stage: &mut Stage, grammar: &[Grammar], device: &Path) -> Vec<String> {
    let command = stage.one_of(grammar).clone();
    let mut words = command.words.clone();
    let count = stage.random.below(5);
    for _ in 0..count {
        if command.options.is_empty() {
            break;
        }
        let (name, hint) = stage.one_of(&command.options).clone();
        words.push(name);
        if let Some(hint) = hint
            && !stage.random.one_in(30)
        {
            words.push(value(stage, &hint));
        }
    }
    let spare = stage.random.below(8);
    let positionals = command.positionals as u64 + u64::from(spare == 0);
    for _ in 0..if spare == 1 { 0 } else { positionals } {
        let value = value(stage, &Hint { name: "PATH".to_owned(), values: Vec::new() });
        words.push(value);
    }
    // What a command can't do without is named by its usage; most lines have it.
    for (option, values) in [("--from", "synthetic:1MB/s"), ("--to", "./array")] {
        let takes = command.options.iter().any(|(name, _)| name == option);
        if takes && !words.iter().any(|word| word == option) && !stage.random.one_in(10) {
            words.extend([option.to_owned(), values.to_owned()]);
        }
    }
    let confirmed = words.iter().any(|word| CONFIRMING.contains(&word.as_str()) || word == "-y");
    let shown = if confirmed { "./none".to_owned() } else { device.display().to_string() };
    // The operating system has no way to pass a zero byte.
    words.iter().map(|word| word.replace("DEVICE", &shown).replace('\0', "")).collect()
}

fn value(stage: &mut Stage, hint: &Hint) -> String {
    let of_path =
        ["PATH", "FILE", "DIR", "ARRAY", "TARGET", "FOLDER"].iter().any(|n| hint.name.contains(n));
    let known = !hint.values.is_empty() && stage.random.one_in(2);
    match stage.random.below(20) {
        _ if known => stage.one_of(&hint.values).clone(),
        0 => "9".repeat(1 + stage.random.below(400) as usize),
        1 => (*stage.one_of(HOSTILE)).repeat(1 + stage.random.below(50) as usize),
        2 => format!("{}{}", stage.one_of(HOSTILE), stage.one_of(HOSTILE)),
        3..16 if of_path => (*stage.one_of(PATHS)).to_owned(),
        3..6 => (*stage.one_of(PATHS)).to_owned(),
        _ => (*stage.one_of(HOSTILE)).to_owned(),
    }
}

/// Runs a command in a network of its own, with bounded memory, files and time.
fn confined(stage: &mut Stage, words: &[String]) -> Result<Ran> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "prlimit", ADDRESS_SPACE, FILE_SIZE, "--core=0", "--"]);
    // A file that would be too long is an error for the program, not its end.
    command.args([
        "env",
        "--ignore-signal=XFSZ",
        "HOME=/nonexistent",
        "XDG_DATA_HOME=/nonexistent",
    ]);
    command.arg(&stage.program).args(words).stdin(Stdio::null());
    let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    stage.run_command(&mut command, &format!("longtake {}", quoted.join(" ")), Some(PATIENCE))
}

/// Every file of a folder: its length, when its contents changed, and its inode.
#[derive(Debug, Default)]
struct Listing(BTreeMap<PathBuf, (u64, i64, i64, u64)>);

impl Listing {
    fn of(folder: &Path) -> Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let mut all = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in
                fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
            {
                let path = entry?.path();
                let metadata = fs::symlink_metadata(&path)?;
                if metadata.is_dir() {
                    folders.push(path.clone());
                    all.insert(path, (0, 0, 0, 0));
                } else {
                    let changed = (metadata.mtime(), metadata.mtime_nsec());
                    all.insert(path, (metadata.len(), changed.0, changed.1, metadata.ino()));
                }
            }
        }
        Ok(Self(all))
    }
}

/// Checksums of files. Opening one as a drive sets space aside, which changes its times and no byte.
#[derive(Debug, Default)]
struct Checksums(BTreeMap<PathBuf, String>);

impl Checksums {
    /// The files whose bytes are others than before. Only those whose times have changed are read.
    fn changed(&mut self, before: &Listing, after: &Listing) -> Result<Vec<PathBuf>> {
        let mut changed = Vec::new();
        for (path, state) in &after.0 {
            if is_regular(path) && before.0.get(path) != Some(state) {
                let sum = checksum(path)?;
                if self.0.insert(path.clone(), sum.clone()).is_some_and(|known| known != sum) {
                    changed.push(path.clone());
                }
            }
        }
        Ok(changed)
    }
}

fn is_regular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

fn is_member(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("member"))
}

fn judge(stage: &mut Stage, ran: &Ran, before: &Listing, checksums: &mut Checksums) -> Result<()> {
    let said = format!("{}\n{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
    let line = &ran.line;
    let lawful = match (ran.code, ran.signal) {
        (Some(0..=3), _) => !said.contains("panicked at"),
        (None, Some(2)) => ran.interrupted,
        _ => false,
    };
    ensure!(lawful, "{line} ended with {:?}, signal {:?}: {said}", ran.code, ran.signal);
    stage.saw(&ran.code.map_or_else(|| "interrupted".to_owned(), |code| format!("exit {code}")));
    let after = Listing::of(&stage.dir)?;
    let changed = checksums.changed(before, &after)?;
    if !matches!(ran.code, Some(1 | 2)) || ran.interrupted {
        return Ok(());
    }
    ensure!(!said.trim().is_empty(), "{line} ended with {:?} and without a message", ran.code);
    for (path, state) in &before.0 {
        let now = after.0.get(path);
        ensure!(now.is_some(), "{line} failed and removed {}: {said}", path.display());
        ensure!(
            is_regular(path) || now == Some(state),
            "{line} failed and changed {}: {said}",
            path.display()
        );
    }
    // A recording that failed on its way has written its array.
    let recorded = |path: &PathBuf| line.starts_with("longtake \"record\"") && is_member(path);
    ensure!(changed.iter().all(recorded), "{line} failed and changed {changed:?}: {said}");
    for path in after.0.keys().filter(|path| !before.0.contains_key(*path)) {
        let inside = path.strip_prefix(&stage.dir).unwrap_or(path);
        let named = inside.ancestors().filter(|a| !a.as_os_str().is_empty());
        let named =
            named.map(|a| a.to_string_lossy().into_owned()).any(|name| said.contains(&name));
        ensure!(named && ran.code == Some(1), "{line} failed and left {}: {said}", path.display());
        stage.saw("files left and named");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_gives_options_values_and_commands() {
        let help = "Does it\n\nUsage: x [OPTIONS] <TARGETS>...\n\nCommands:\n  run   Runs\n  help  Helps\n\nArguments:\n  <TARGETS>...\n          \
                    Drives\n\nOptions:\n  -q, --quiet\n          Nothing\n\n      --when <WHEN>\n          When\n\n          Possible values:\n          \
                    - stop: End\n          - wrap: Reuse\n          \n          [default: stop]\n";
        let (grammar, below) = read(&["x".to_owned()], help);
        assert_eq!(below, ["run", "help"]);
        assert_eq!(grammar.positionals, 1);
        let names: Vec<_> = grammar.options.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["--quiet", "--when"]);
        assert!(grammar.options[0].1.is_none());
        let hint = grammar.options[1].1.as_ref().unwrap();
        assert_eq!(
            (hint.name.as_str(), &hint.values[..]),
            ("WHEN", &["stop", "wrap", "stop"].map(str::to_owned)[..])
        );
    }
}
