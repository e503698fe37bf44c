//! What comes from media, files and captures can't write to the terminal of whoever looks at it; names are taken whole or refused;
//! commands that are suggested can be copied.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::harness::{asked, line, longtake, new_in, ran, run, scratch, tool};
use format::Superblock;
use format::layout::{Layout, SUPERBLOCK_BYTES};
use format::superblock::Protected;

const ARRAY: &str = "--members 2 --member-size 12MiB --segment 1MiB --chunk 64KiB --memory 64MiB";

/// A name as an attacker would give it: it clears the screen, sets the title, reverses what follows and adds a line of ours.
const HOSTILE: &str = "x\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\nlongtake: ok\r";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// Changes what both superblocks of a member say.
fn rewrite(member: &Path, change: impl Fn(&mut Superblock)) {
    let file = File::options().read(true).write(true).open(member).expect("it is there");
    let length = file.metadata().expect("it is there").len();
    for offset in [0, Layout::copy_offset(length)] {
        let mut bytes = vec![0; SUPERBLOCK_BYTES as usize];
        file.read_exact_at(&mut bytes, offset).expect("it is there");
        let mut superblock = Superblock::read(&bytes, offset).expect("it is sound");
        change(&mut superblock);
        file.write_all_at(&superblock.encode(offset), offset).expect("there is space");
    }
}

/// Fails if a text could do anything on a terminal but show itself, or has a line that looks like a message of the program's.
#[track_caller]
fn is_harmless(what: &str, text: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{200b}'..='\u{202e}').contains(&c);
    assert!(!text.contains(bad), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("longtake: ok")), "{what}: {text}");
}

#[test]
fn names_on_a_medium_can_not_control_the_terminal() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let capture = new_in(&folder, "capture.pcapng");
    fs::write(&capture, capture_of_interface(HOSTILE)).expect("there is space");
    line(&format!("record -q --from {} --to @ {ARRAY}", text(&capture)), &array).code(0);
    for member in ["member0", "member1"] {
        rewrite(&array.join(member), |superblock| {
            HOSTILE.clone_into(&mut superblock.name);
            superblock.members[0].identity = HOSTILE.chars().take(40).collect();
            let protected = Protected {
                from: superblock.created,
                to: superblock.created,
                made: superblock.created,
                label: HOSTILE.to_owned(),
            };
            superblock.protected.push(protected);
        });
    }
    let extract = format!("extract @ -o {}", text(&new_in(&folder, "out.pcapng")));
    for command in
        ["array show @", "takes @", "ledger @", "array check @", "array scrub @", &extract]
    {
        let ran = line(command, &array).code(0);
        is_harmless(command, &ran.text());
        is_harmless(command, &ran.stderr);
    }
    let shown = line("array show @", &array).text();
    assert!(shown.contains(r"x\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\nlongtake: ok\r"), "{shown}");
    let ran = line(
        &format!("record -q --from synthetic:50MB/s --until-bytes 100kB --to @ {ARRAY}"),
        &array,
    );
    is_harmless("record", &format!("{}{}", ran.text(), ran.stderr));
    // JSON says what is there, in characters that are harmless too.
    let ran = line("array show @ --json", &array).code(0);
    is_harmless("array show --json", &ran.text());
    assert_eq!(ran.json()["name"], HOSTILE);
    assert_eq!(ran.json()["protected"][0]["label"], HOSTILE);
}

/// A pcapng file with one packet on an interface of this name.
fn capture_of_interface(name: &str) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(body);
        bytes.resize(length as usize - 4, 0);
        bytes.extend(length.to_le_bytes());
        bytes
    };
    let mut file =
        block(0x0A0D_0D0A, b"\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
    // Link type 1, then option 2: the name.
    let mut interface = vec![1, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    interface.extend((name.len() as u16).to_le_bytes());
    interface.extend(name.as_bytes());
    interface.resize(interface.len().next_multiple_of(4), 0);
    interface.extend([0; 4]);
    file.extend(block(1, &interface));
    let mut packet = [0u32, 0, 0, 60, 60].map(u32::to_le_bytes).concat();
    packet.extend([0x5a; 60]);
    file.extend(block(6, &packet));
    file
}

#[test]
fn a_file_s_name_in_an_error_can_not_control_the_terminal() {
    let folder = scratch();
    for command in ["takes", "report", "sim check", "sweep", "plan"] {
        let words = command.split(' ').map(str::to_owned);
        let ran = ran(words.chain([format!("{}/{HOSTILE}", text(folder.path()))]));
        assert_ne!(ran.code, 0);
        is_harmless(command, &ran.stderr);
        is_harmless(command, &ran.text());
    }
}

#[test]
fn names_and_labels_that_do_not_fit_are_refused_before_anything_is_done() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    line(&format!("record -q --from synthetic:50MB/s --until-bytes 100kB --to @ {ARRAY}"), &array)
        .code(0);
    let before = fs::read(array.join("member0")).expect("it is there");
    let spare = new_in(&folder, "spare");
    File::create(&spare).and_then(|file| file.set_len(64 << 20)).expect("there is space");
    let (long, label) = ("n".repeat(65), "l".repeat(41));
    let protect = ["protect", text(&array), "--since", "-1h", "--until", "-1s", "--label"];
    for (words, value, says) in [
        (&["array", "create", text(&spare), "--name"][..], long.as_str(), "65 bytes"),
        (&["array", "create", text(&spare), "--name"], HOSTILE, "control characters"),
        (&protect, &label, "41 bytes"),
        (&protect, HOSTILE, "control characters"),
        (&["sim", "new", "-o", text(&new_in(&folder, "x.toml"))], HOSTILE, "control characters"),
    ] {
        run(longtake().args(words).arg(value)).code(2).says(&[says]);
    }
    assert!(before == fs::read(array.join("member0")).expect("it is there"));
    assert!(fs::read(&spare).expect("it is there").iter().all(|byte| *byte == 0));
    run(longtake().args(protect).arg(&label[1..])).code(0);
    assert_eq!(asked("array show @", &array)["protected"][0]["label"], label[1..]);
}

#[test]
fn a_suggested_command_works_when_it_is_copied() {
    let folder = scratch();
    let array = new_in(&folder, "it's an array $(exit)");
    let words = format!("record --from synthetic:50MB/s --until-bytes 100kB {ARRAY} --to");
    let ran = run(longtake().args(words.split(' ')).arg(&array)).code(0);
    let said = ran.text();
    let suggested =
        said.lines().find_map(|line| line.split_once("longtake takes ")).expect("it is said");
    let script = format!("\"$0\" takes {}", suggested.1);
    let takes = run(tool("sh", "dash").args(["-c", &script]).arg(longtake().get_program())).code(0);
    assert!(takes.text().contains("complete"), "{}", takes.text());
}
