//! `--help` and `--json` of every command: what is called JSON is JSON, and nothing else is printed beside it.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use crate::harness::{asked, line, ran, scratch};
use serde_json::Value;

const ARRAY: &str =
    "--members 3 --parity 1 --member-size 12MiB --segment 1MiB --chunk 64KiB --memory 64MiB";

/// Each command with arguments that make it quick, in an order in which it finds what it needs; `@` stands for the folder. Where
/// there are none, another test has it print JSON, and parses it.
const COMMANDS: &[(&str, &str)] = &[
    ("record", "--from synthetic:50MB/s --until-bytes 1MB --to @/array"),
    ("takes", "@/array"),
    ("ledger", "@/array"),
    ("extract", "@/array -o @/out.pcapng"),
    ("flows", "@/array --community-id"),
    ("replay", "@/array --fastest --udp ADDRESS"),
    ("protect", "@/array --since 0 --until 4000000000"),
    ("unprotect", "@/array --all"),
    ("array create", "@/zeros"),
    ("array list", "@"),
    ("array info", "@/array"),
    ("array show", "@/array --chunks"),
    ("array check", "@/array"),
    ("array scrub", "@/array"),
    ("array index", "@/array"),
    ("array rebuild", "@/lacking --member 2 --onto @/new"),
    ("array delete", "@/lacking --degraded"),
    ("wireshark install", "--array @/array --directory @/extcap"),
    ("measure run", "sim:ideal -q --write 1 --bytes 16MiB -o @/measured"),
    // measure_fio.rs
    ("measure import", ""),
    ("measure replay", "@/trace.csv sim:ideal --dry-run"),
    ("measure fill", "sim:ideal --dry-run"),
    ("measure stream", "sim:ideal --dry-run"),
    ("measure steady", "sim:ideal --dry-run"),
    ("measure viewers", "sim:ideal --dry-run"),
    ("measure apps", "sim:ideal --dry-run"),
    ("measure mix", "sim:ideal --dry-run"),
    ("measure neighbours", "sim:ideal --dry-run"),
    ("measure link", "sim:ideal -q --size 16MiB --point 1ms -o @/link"),
    ("measure snia", "sim:ideal --dry-run"),
    ("measure diskmark", "sim:ideal --dry-run"),
    ("measure all", "sim:ideal --dry-run"),
    ("report", "@/measured -o @/page.html"),
    ("plan", "--rate 1GB/s --mission 60s --drive samsung-970-pro-512gb"),
    ("drives", "@/zeros"),
    ("sim list", ""),
    ("sim show", "ideal"),
    ("sim new", "mine -o @/mine.toml"),
    ("sim check", "@/mine.toml"),
    // sim_rest.rs
    ("sim rest", ""),
    ("profiles list", ""),
    ("profiles show", "ideal"),
    ("profiles import", "@/measured --name made --capacity 1TB -o @/made.toml"),
    ("sweep", "@/sweep.toml -q -o @/swept"),
    ("sweep expand", "@/sweep.toml -o @/jobs"),
    ("sweep job", "@/jobs/0.toml"),
    // reproduce.rs
    ("reproduce", ""),
    // fit.rs
    ("fit", ""),
    // serve.rs
    ("serve", ""),
    ("token create", "--name x --scope read --file @/tokens.toml"),
    ("token list", "--file @/tokens.toml"),
    ("token revoke", "x --file @/tokens.toml"),
];

/// Commands without arguments in the table that are run without any all the same.
const BARE: [&str; 2] = ["sim list", "profiles list"];

/// The commands below one, as its help lists them.
fn below(command: &str) -> Vec<String> {
    let help = ran(command.split_whitespace().chain(["--help"])).code(0).text();
    assert!(help.contains("Usage: longtake"), "{command}: {help}");
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        name.split_whitespace().next().filter(|name| *name != "help")
    });
    names.map(|name| format!("{command} {name}").trim().to_owned()).collect()
}

/// Every command that does something by itself.
pub fn commands() -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), below(""));
    while let Some(command) = left.pop() {
        let further = below(&command);
        if further.is_empty() || command == "sweep" {
            found.push(command);
        }
        left.extend(further);
    }
    found
}

/// One JSON value, or one a line.
fn is_json(printed: &[u8]) -> bool {
    let text = String::from_utf8_lossy(printed);
    let whole = serde_json::from_str::<Value>(&text).is_ok();
    let is_value = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    !text.trim().is_empty() && (whole || text.lines().all(is_value))
}

/// What the commands of the table read beside what the others have written.
fn inputs(folder: &Path) {
    let zeros = fs::File::create(folder.join("zeros")).and_then(|file| file.set_len(64 << 20));
    zeros.expect("there is space");
    let sweep = "run = [\"plan\"]\n[base]\ndrive = \"samsung-970-pro-512gb\"\nmission = \"60s\"\nrate = \"1GB/s\"\n\
                 [axes]\ncount = { from = 1, to = 2 }\n";
    fs::write(folder.join("sweep.toml"), sweep).expect("there is space");
    fs::write(folder.join("trace.csv"), "0,R,0,4096,1577808000000626\n").expect("there is space");
    let record = "record -q --from synthetic:50MB/s --until-bytes 1MB --to @/lacking";
    line(&format!("{record} {ARRAY}"), folder).code(0);
    fs::remove_file(folder.join("lacking/member2")).expect("it is there");
}

#[test]
fn every_command_prints_json_and_nothing_else_if_it_is_to() {
    let folder = scratch();
    inputs(folder.path());
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
    let address = socket.local_addr().expect("it is bound").to_string();
    let mut known = vec!["completions".to_owned()];
    for (command, arguments) in COMMANDS {
        known.push((*command).to_owned());
        if arguments.is_empty() && !BARE.contains(command) {
            continue;
        }
        let made = if *command == "record" { ARRAY } else { "" };
        let arguments = format!("{command} {arguments} {made} --json");
        let ran = line(&arguments.replace("ADDRESS", &address), folder.path()).code(0);
        assert!(is_json(&ran.stdout), "{command} printed {}", ran.text());
    }
    let mut all = commands();
    all.sort();
    known.sort();
    assert_eq!(all, known, "each command is in the table, or has a reason not to be");
    let script = ran(["completions", "bash"]).code(0).text();
    assert!(script.contains("complete -F _longtake"), "{script}");
}

#[test]
fn every_command_tells_the_same_of_a_take() {
    let array = scratch();
    let record = "record -q --from synthetic:50MB/s --until-bytes 1MB --to @";
    line(&format!("{record} {ARRAY}"), array.path()).code(0);
    let take = &asked("takes @", array.path())[0];
    assert_eq!(take, &asked("ledger @", array.path()));
    assert_eq!(take["ledger"], asked("array info @", array.path())["takes"][0]["ledger"]);
    assert_eq!(take["ledger"]["filtered"]["packets"], 0, "there was no filter");
}
