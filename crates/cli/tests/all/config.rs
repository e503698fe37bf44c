//! `longtake record --config FILE`: the options of a recording in a file, what `--print-config` writes, and what is said about a
//! file that is wrong.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Ran, asked, line, longtake, new_in, number, ran, run, scratch};

const HEADER: &str = "# Options for `longtake record --config FILE`.\n";

/// A file with this text, in a folder of its own.
fn written(text: &str) -> (TempDir, PathBuf) {
    let folder = scratch();
    let path = folder.path().join("site.toml");
    fs::write(&path, text).expect("the folder is there");
    (folder, path)
}

/// What `record --config` with this file and these words prints as a file, without its header.
#[track_caller]
fn printed(text: &str, words: &str) -> String {
    let (_folder, path) = written(text);
    let text = line(&format!("record --config @ {words} --print-config"), &path).code(0).text();
    text.strip_prefix(HEADER).expect("it has a header").to_owned()
}

/// Runs `record --config` with a file that is wrong, and checks that the message names the file and the line.
#[track_caller]
fn refused(text: &str, line_number: usize) -> Ran {
    let (_folder, path) = written(text);
    let ran = line("record --config @ --from - --to @/array", &path).code(2);
    let place = format!("error: {}:{line_number}: ", path.display());
    assert!(ran.stderr.starts_with(&place), "{place} is not where this begins: {}", ran.stderr);
    Ran { stderr: ran.stderr.replacen(&place, "error: ", 1), ..ran }
}

/// The options that `record --help` lists, each with the name of its value, if it takes one.
fn options() -> Vec<(String, Option<String>)> {
    let help = run(longtake().args(["record", "--help"])).code(0).text();
    let names = help.lines().filter_map(|line| {
        let words = line.trim_start();
        // A short name stands before the long one.
        let words = if words.get(2..4) == Some(", ") { &words[4..] } else { words };
        let (name, value) = match words.strip_prefix("--")?.split_once(" <") {
            Some((name, value)) => (name, value.strip_suffix('>')),
            None => (words.strip_prefix("--")?, None),
        };
        (!name.contains(' ')).then(|| (name.to_owned(), value.map(str::to_owned)))
    });
    names
        .filter(|(name, _)| !["config", "print-config", "help", "version"].contains(&name.as_str()))
        .collect()
}

/// An option's value as a word of a command line and in a file.
fn sample(value: &str) -> (&'static str, &'static str) {
    match value {
        "SOURCE" => ("-,block=1MiB", "\"-,block=1MiB\""),
        "BPF" => ("udp port 53", "\"udp port 53\""),
        "SIZE" => ("64MiB", "\"64MiB\""),
        "TIME" => ("2s", "\"2s\""),
        "RATE" | "RATE[,RATE]" => ("1GB/s", "\"1GB/s\""),
        "BYTES" | "N" => ("2", "2"),
        "headers|N" => ("headers", "\"headers\""),
        "N,N,..." => ("0,2", "[0, 2]"),
        "CELSIUS" | "KELVINS" => ("4.5", "\"4.5\""),
        "MODE" => ("0640", "\"0640\""),
        "WHEN_FULL" => ("wrap", "\"wrap\""),
        "PLACEMENT" => ("stripe", "\"stripe\""),
        "WHAT" => ("hosts", "\"hosts\""),
        "WHICH" => ("separate", "\"separate\""),
        "FILE" => ("out.pcapng", "\"out.pcapng\""),
        "SIZE|TIME" => ("10m", "\"10m\""),
        "ARRAY|DIR" | "DIR" | "USER" => ("one", "\"one\""),
        _ => panic!("give a value for <{value}>"),
    }
}

#[test]
fn every_option_of_a_recording_can_be_in_a_file() {
    let options = options();
    assert!(options.len() >= 30, "{options:?}");
    let folder = scratch();
    let path = folder.path().join("site.toml");
    for (name, value) in options {
        let needs: &[&str] = match name.as_str() {
            "json-every" => &["--json"],
            "rest-turn" => &["--rest", "1"],
            "virtual" => &["--for", "1s"],
            "rotate" | "overwrite" => &["-w", "out.pcap"],
            "files" => &["-w", "out.pcap", "--rotate", "1GiB"],
            _ => &[],
        };
        let (word, in_file) = match &value {
            Some(value) => (format!("--{name}={}", sample(value).0), sample(value).1),
            None => (format!("--{name}"), "true"),
        };
        fs::write(&path, format!("{name} = {in_file}\n")).expect("the folder is there");
        let file = ["record", "--print-config", "--config", path.to_str().expect("it is text")];
        let by_file = ran(file.iter().chain(needs)).code(0).text();
        assert!(by_file.contains(&format!("\n{name} = {in_file}\n")), "{name}: {by_file}");
        let by_word = ran(["record", "--print-config", &word].iter().chain(needs)).code(0).text();
        assert_eq!(by_file, by_word, "{name}");
    }
}

#[test]
fn a_file_that_was_printed_prints_as_it_is() {
    let (_folder, path) = written("");
    let words = [
        "record",
        "--quiet",
        "--to",
        "a \"quoted\" \\ name\twith\u{202e}\u{e0001}ü",
        "--cpus",
        "0,2",
        "--strict",
        "--snap=96",
        "--from=-",
        "--cpus=4",
        "--filter=",
        "--print-config",
    ];
    let text = ran(words).code(0).text();
    let expected = r#"from = "-"
filter = ""
snap = 96
to = "a \"quoted\" \\ name\U00000009with\U0000202e\U000e0001ü"
strict = true
cpus = [0, 2, 4]
quiet = true
"#;
    assert_eq!(text, format!("{HEADER}{expected}"));
    fs::write(&path, &text).expect("it was there");
    assert_eq!(line("record --config @ --print-config", &path).code(0).text(), text);
}

#[test]
fn the_sample_in_the_documents_is_what_its_command_prints() {
    let page = include_str!("../../../../docs/record.md");
    let command = page.lines().find_map(|line| line.strip_suffix(" --print-config > radar.toml"));
    let words = command.and_then(|line| line.trim().strip_prefix("longtake "));
    let words = words.expect("the page has the command").split(' ').chain(["--print-config"]);
    let sample = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(Some(ran(words).code(0).text().as_str()), sample);
}

#[test]
fn options_on_the_command_line_win() {
    let file = "to = 'radar'\nmembers = 2\ncpus = [0, 1]\nstrict = true\nkeep-privileges = true\nrest = 1\n";
    let of_file = "to = \"radar\"\nmembers = 2\nstrict = true\ncpus = [0, 1]\nrest = 1\nkeep-privileges = true\n";
    assert_eq!(printed(file, ""), of_file);
    // A list is replaced whole, and an option that excludes one in the file takes its place.
    let words = "--members 3 --cpus 7 --user nobody --sets separate --to=lab";
    let together = "to = \"lab\"\nmembers = 3\nstrict = true\ncpus = [7]\nsets = \"separate\"\nuser = \"nobody\"\n";
    assert_eq!(printed(file, words), together);
    assert_eq!(printed("user = \"nobody\"", "--keep-privileges"), "keep-privileges = true\n");
}

#[test]
fn a_wrong_value_is_refused_although_the_command_line_replaces_it() {
    let wrong = [
        ("members = 'many'", "--members 3"),
        ("mode = '0999'", "--mode 0640"),
        ("when-full = 'never'", "--when-full wrap"),
        ("sets = 'some'", "--rest 1"),
    ];
    for (file, words) in wrong {
        let (_folder, path) = written(&format!("# a site\n{file}\n"));
        let place = format!("error: {}:2: invalid value", path.display());
        let words = format!("record --config @ {words} --print-config");
        line(&words, &path).code(2).says(&[&place]);
    }
    // What an option needs, or can't be given with, is not its value.
    assert_eq!(
        printed("json-every = '1s'", "--json --json-every 2s"),
        "json = true\njson-every = \"2s\"\n"
    );
    assert_eq!(
        printed("rest-turn = '1s'\nrest = 1\n", "--sets separate --rest-turn 2s"),
        "sets = \"separate\"\nrest-turn = \"2s\"\n"
    );
}

#[test]
fn what_an_option_needs_may_be_in_the_other_place() {
    assert_eq!(printed("json = true", "--json-every 1s"), "json = true\njson-every = \"1s\"\n");
    assert_eq!(printed("virtual = true", "--for 1h"), "for = \"1h\"\nvirtual = true\n");
    let (_folder, path) = written("from = '-'\n");
    let ran = line("record --config @", &path).code(2).says(&["not provided", "--to <ARRAY|DIR>"]);
    assert!(!ran.stderr.contains("--from <SOURCE>\n"), "{}", ran.stderr);
}

#[test]
fn a_flag_is_set_by_true_alone() {
    assert_eq!(printed("strict = false\njson = true\n", ""), "json = true\n");
    assert_eq!(printed("strict = false\n", "--strict"), "strict = true\n");
    for value in ["\"true\"", "1", "[true]", "[]"] {
        refused(&format!("strict = {value}"), 1).says(&["'strict' must be true or false"]);
    }
    refused("filter = true", 1).says(&["'filter' must be a whole number or a text in quotes"]);
}

#[test]
fn a_name_that_is_unknown_is_refused_with_its_line_and_the_name_that_was_meant() {
    let unknown = [
        ("membrs", "members"),
        ("member_size", "member-size"),
        ("'--parity'", "parity"),
        ("Until-Bytes", "until-bytes"),
    ];
    for (key, meant) in unknown {
        let name = key.trim_matches('\'');
        let says = format!("unknown option '{name}'; did you mean '{meant}'?");
        refused(&format!("from = 'x'\n\n{key} = 2\n"), 3).says(&[&says]);
    }
    for key in ["config", "print-config", "help", "version", "h", "temperature"] {
        refused(&format!("{key} = true"), 1).says(&[&format!("unknown option '{key}'")]);
    }
    refused("# a site\n[record]\nfrom = '-'\n", 2).says(&["unknown option 'record'"]);
    // The first mistake in the file is named, whatever the order of names.
    refused("zero = 1\nalpha = 1\n", 1).says(&["unknown option 'zero'"]);
}

#[test]
fn a_wrong_value_is_refused_as_on_the_command_line_with_its_line() {
    let wrong = [
        ("members", "many", "'many'"),
        ("members", "70000", "70000"),
        ("parity", "3", "3"),
        ("depth", "0", "0"),
        ("when-full", "never", "'never'"),
        ("mode", "0999", "'0999'"),
        ("member-size", "-1", "'-1'"),
        ("cpus", "x", "['x']"),
        ("for", "soon", "\"\"\"\nsoon\"\"\""),
        ("uplink", "fast", "'fast'"),
    ];
    let folder = scratch();
    for (name, word, in_file) in wrong {
        let word = format!("record --from - --to @/array --{name}={word}");
        let by_word = line(&word, folder.path()).code(2).stderr;
        let by_file = refused(&format!("# a site\nsnap = 0\n{name} = {in_file}\n"), 3).stderr;
        assert_eq!(by_file, by_word, "{name}");
        assert!(by_file.contains("invalid value"), "{by_file}");
    }
    refused("user = 'nobody'\nkeep-privileges = true\n", 1).says(&["cannot be used with"]);
    refused("filter = ['udp', 'tcp']", 1).says(&["cannot be used multiple times"]);
    refused("json-every = '1s'\njson = false", 2).says(&["not provided", "--json"]);
    refused("members = 2\nmembers = 3\n", 2).says(&["duplicate key"]);
    refused("members = 2\nfrom = eth0\n", 2);
    refused("to = { name = 'radar' }", 1)
        .says(&["'to' must be a whole number or a text in quotes"]);
}

#[test]
fn a_wrong_word_of_the_command_line_is_not_taken_to_be_in_the_file() {
    let (_folder, path) = written("members = 2\nquiet = true\n");
    let site = path.to_str().expect("a scratch path is text");
    for words in
        ["--members many", "--members 3 --members 4", "quiet", "--strict=yes", "--membrs 3"]
    {
        let file = ["", "--config @", "--print-config", "--config @ --print-config"];
        let [without, with, ..] = file.map(|file| {
            let words = format!("record {file} --from - --to x {words}");
            let ran = line(&words, &path).code(2).says(&["error: "]);
            assert!(!ran.stderr.contains(site), "{}", ran.stderr);
            ran.stderr.lines().next().expect("it says something").to_owned()
        });
        assert_eq!(with, without);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = scratch();
    let none = new_in(&folder, "none.toml");
    let name = none.to_str().expect("a scratch path is text");
    for words in ["record --config @", "record --config @ --print-config --from - --to x"] {
        line(words, &none).code(1).says(&["reading the options in", name, "No such file"]);
    }
    line("record --config", &none).code(2).says(&["--config <FILE>"]);
    line("record --config @ --help", &none).code(0);
    fs::write(&none, [0xff, 0xfe]).expect("the folder is there");
    line("record --config @", &none).code(1).says(&[name, "UTF-8"]);
}

#[test]
fn a_file_is_found_whatever_else_the_command_line_has() {
    let (_folder, path) = written("from = 'synthetic:1MB/s'\nprofiles = 'mine'\n");
    let text = |words: &str| line(words, &path).code(0).text();
    let of_file = format!("{HEADER}from = \"synthetic:1MB/s\"\nprofiles = \"mine\"\n");
    assert_eq!(text("record --print-config --config=@ --"), of_file);
    let own = of_file.replace("mine", "record");
    assert_eq!(text("--profiles record record --config @ --print-config"), own);
    assert_eq!(text("--profiles=record record --config @ --print-config"), own);
    assert_eq!(text("record --config @ --print-config --profiles record"), own);
}

#[test]
fn paths_in_a_file_are_relative_to_the_current_directory() {
    let folder = scratch();
    fs::create_dir_all(new_in(&folder, "etc")).expect("the folder is there");
    let file = "from = 'synthetic:max'\nto = './here'\nuntil-bytes = '1MB'\nmember-size = '65MiB'\n\
                segment = '8MiB'\nmemory = '64MiB'\nquiet = true\n";
    fs::write(new_in(&folder, "etc/site.toml"), file).expect("the folder is there");
    let words = ["record", "--config", "etc/site.toml"];
    run(longtake().args(words).current_dir(folder.path())).code(0);
    assert!(new_in(&folder, "here/member0").exists() && !new_in(&folder, "etc/here").exists());
}

/// The ledger of the last take.
fn ledger(array: &Path) -> Value {
    asked("ledger @", array)["ledger"].clone()
}

#[test]
fn a_recording_made_with_a_file_is_the_one_made_by_its_options() {
    let folder = scratch();
    let [by_words, by_file, site] = ["words", "file", "site.toml"].map(|n| new_in(&folder, n));
    let options = "record --quiet --from synthetic:max,seed=7,size=imix --until-bytes 5MB --members 2 \
                   --member-size 65MiB --segment 8MiB --memory 64MiB";
    line(&format!("{options} --to @"), &by_words).code(0);
    let text = line(&format!("{options} --to @ --print-config"), &by_file).code(0).text();
    assert!(!by_file.exists(), "nothing is recorded when options are printed");
    fs::write(&site, text).expect("the folder is there");
    line("record --config @", &site).code(0);
    assert_eq!(fs::read_dir(&by_file).expect("it was created").count(), 2);
    assert_eq!(ledger(&by_file), ledger(&by_words));
    assert!(number(&ledger(&by_file), "stored.packets") > 1000);
}
