//! Arrays with parity on real files: members that are deleted, bytes that are damaged, drives that are replaced; every
//! packet comes back, or its loss is named.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::harness::captures::{Synthetic, synthetic};
use crate::harness::{Ran, Recorder, asked, line, new_in, number, scratch};
use serde_json::Value;
use source::synthetic::Options;

const SIX: &str = "--members 6 --member-size 40MiB --segment 4MiB --chunk 252KiB --memory 128MiB";

/// Records so much on six member files: slowly enough for wide groups, or parity would fill them; and in turn, so that
/// each member holds its part on a busy machine too.
#[track_caller]
fn record(array: &Path, parity: u8, bytes: &str) {
    let how = format!(
        "record -q --from synthetic:50MB/s --until-bytes {bytes} --to @ {SIX} --placement stripe --parity {parity}"
    );
    line(&how, array).code(0);
}

/// Extracts all there is, with this exit code; what was found, and what was said of it.
#[track_caller]
fn extract(array: &Path, options: &str, code: i32) -> (Synthetic, Value) {
    let file = array.with_extension("pcapng");
    let output = file.to_str().expect("a scratch path is text");
    let said =
        line(&format!("extract @ -q -y --json {options} -o {output}"), array).code(code).json();
    (synthetic(&file, &Options::default()), said)
}

#[test]
fn a_member_without_superblocks_is_left_out_by_degraded_and_costs_nothing() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, 1, "20MB");
    let last = whole(array);
    let path = member(array, 2);
    let file = File::options().read(true).write(true).open(&path).expect("it is there");
    let copy = file.metadata().expect("it is open").len() - (64 << 10);
    let mut superblock = vec![0; 64 << 10];
    file.read_exact_at(&mut superblock, 0).expect("it can be read");
    for at in [0, copy / 4096 * 4096] {
        file.write_all_at(&[0xff; 4096], at).expect("it can be written");
    }
    let output = "-q -y -o /dev/null";
    line(&format!("extract @ {output}"), array).code(1).says(&["member2", "--degraded"]);
    let back = |said: &str| {
        let (found, _) = extract(array, "--degraded", 0);
        assert_eq!(found.contiguous(), Some((0, last)));
        line(&format!("extract @ --degraded {output}"), array).code(0).says(&["left out", said]);
    };
    back("member2");
    file.write_all_at(&superblock, 0).expect("it can be written");
    file.set_len(3 << 20).expect("it can be cut");
    line(&format!("extract @ {output}"), array).code(1).says(&["was the file cut", "--degraded"]);
    back("was the file cut");
    file.set_len(100).expect("it can be cut");
    back("member2 was cut short");
}

/// The last packet of a whole recording; nothing is missing before it.
#[track_caller]
fn whole(array: &Path) -> u64 {
    let (found, said) = extract(array, "", 0);
    assert_eq!(number(&said, "missing.packets") + number(&said, "unreadable.packets"), 0);
    let (first, last) = found.contiguous().expect("something was recorded");
    assert_eq!(first, 0);
    last
}

fn member(array: &Path, at: u16) -> std::path::PathBuf {
    array.join(format!("member{at}"))
}

fn remove(array: &Path, at: u16) {
    fs::remove_file(member(array, at)).expect("it is there");
}

/// The chunks of packets, in order.
#[track_caller]
fn chunks(array: &Path) -> Vec<Value> {
    let shown = asked("array show @ --chunks", array);
    let chunks = shown["chunks"].as_array().expect("there is a list").clone();
    chunks.into_iter().filter(|c| number(c, "packets") > 0).collect()
}

/// Changes a byte in the middle of a chunk.
fn damage(array: &Path, chunk: &Value) {
    let path = member(array, number(chunk, "member") as u16);
    let file = File::options().read(true).write(true).open(path).expect("it is there");
    let at = number(chunk, "offset") + number(chunk, "length") / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it can be read");
    file.write_all_at(&[byte[0] ^ 1], at).expect("it can be written");
}

#[test]
fn a_deleted_member_costs_nothing_and_its_chunks_are_counted() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, 1, "60MB");
    let last = whole(array);
    let shown = asked("array show @ --chunks", array);
    let all = shown["chunks"].as_array().expect("there is a list").iter();
    let held: Vec<&Value> =
        all.filter(|c| number(c, "member") == 2 && c["parity_of"].is_null()).collect();
    assert!(held.len() > 10);
    remove(array, 2);
    // The chunk that ends the take holds no packets: the ledger has it back, and no extract needs it.
    let ledger = asked("ledger @", array);
    assert_eq!(number(&ledger, "recovered.chunks"), held.len() as u64, "{ledger:#}");
    let packets = held.iter().filter(|c| number(c, "packets") > 0).count() as u64;
    let (found, said) = extract(array, "", 0);
    assert_eq!(found.contiguous(), Some((0, last)));
    assert_eq!(number(&said, "recovered.chunks"), packets, "{said:#}");
    assert_eq!((&ledger["balances"], number(&ledger, "missing.packets")), (&Value::Bool(true), 0));
    let text = line("takes @", array).code(0).text();
    assert!(text.contains("recovered from parity"), "{text}");
    // A span of time from the middle, and a second member that goes is one too many.
    let middle = &chunks(array)[chunks(array).len() / 2];
    let span = format!("--since {}", crate::harness::seconds(number(middle, "first_ns")));
    let (part, _) = extract(array, &span, 0);
    assert_eq!(part.contiguous().map(|(_, end)| end), Some(last));
    remove(array, 4);
    line("extract @ -o /dev/null", array).code(1).says(&["--degraded", "member 2", "member 4"]);
    let (left, said) = extract(array, "--degraded", 3);
    let missing = number(&said, "missing.packets");
    assert_eq!(left.packets.len() as u64 + missing, last + 1, "the gaps are what is gone, exactly");
}

#[test]
fn a_damaged_chunk_is_read_found_and_repaired() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, 1, "60MB");
    let last = whole(array);
    let all = chunks(array);
    let damaged = [&all[all.len() / 3], &all[all.len() / 2]];
    damaged.iter().for_each(|chunk| damage(array, chunk));
    let (found, said) = extract(array, "", 0);
    assert_eq!(found.contiguous(), Some((0, last)));
    assert_eq!(number(&said, "recovered.chunks"), 2, "{said:#}");
    line("array check @", array).code(3);
    let scrubbed = line("array scrub @ --json", array).code(3).json();
    let findings = scrubbed["findings"].as_array().expect("there is a list");
    let sequences: Vec<u64> = findings.iter().map(|f| number(f, "sequence")).collect();
    assert_eq!(sequences, damaged.map(|chunk| number(chunk, "sequence")), "{scrubbed:#}");
    assert!(findings.iter().all(|f| f["repair"] == "possible"), "{scrubbed:#}");
    let text = line("array scrub @ --repair", array).code(0).text();
    assert!(text.contains("repaired"), "{text}");
    line("array scrub @", array).code(0);
    line("array check @", array).code(0);
    assert_eq!(whole(array), last);
}

/// What a rebuild says, after which all parity is there again.
#[track_caller]
fn rebuilt(ran: &Ran) -> Value {
    let said = ran.json();
    let lacking = (number(&said, "groups_without_parity"), number(&said, "filled"));
    assert_eq!((ran.code, lacking), (0, (0, 0)), "{said:#}");
    said
}

#[test]
fn two_members_may_go_with_two_parities() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, 2, "40MB");
    let last = whole(array);
    remove(array, 0);
    remove(array, 3);
    assert_eq!(whole(array), last);
    // Each is made anew, and two others may go.
    for at in [0, 3] {
        let onto = member(array, at);
        let rebuild = format!("array rebuild @ --member {at} --onto {} --json", onto.display());
        rebuilt(&line(&rebuild, array));
    }
    line("array scrub @", array).code(0);
    remove(array, 1);
    remove(array, 5);
    assert_eq!(whole(array), last);
}

#[test]
fn a_member_is_made_anew_and_the_old_one_is_refused() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, 1, "60MB");
    let last = whole(array);
    let old = folder.path().join("old");
    fs::rename(member(array, 2), &old).expect("it is there");
    let onto = folder.path().join("new");
    let rebuild = format!("array rebuild @ --member 2 --onto {}", onto.display());
    // What holds data is not written over, and what is there is not replaced.
    fs::write(&onto, "somebody's").expect("it can be made");
    line(&rebuild, array).code(1).says(&["new"]);
    fs::remove_file(&onto).expect("it is there");
    line(&format!("array rebuild @ --member 3 --onto {}", onto.display()), array)
        .code(1)
        .says(&["member 3 is present"]);
    let planned = line(&format!("{rebuild} --dry-run --json"), array).code(0).json();
    assert!(number(&planned, "chunks") > 10 && !onto.exists(), "{planned:#}");
    let done = rebuilt(&line(&format!("{rebuild} --json"), array));
    assert_eq!(done["joined"], true, "{done:#}");
    fs::rename(&onto, member(array, 2)).expect("it can be moved");
    assert_eq!(whole(array), last);
    line("array scrub @", array).code(0);
    remove(array, 5);
    assert_eq!(whole(array), last, "with the rebuilt member another one may go");
    // The old one is out of date, beside the new one and in its place.
    let names = |two: &Path| -> String {
        let others = [0, 1, 3, 4].map(|at| member(array, at).display().to_string());
        format!("{},{}", others.join(","), two.display())
    };
    line(&format!("takes {}", names(&old)), array).code(1).says(&["out of date", "member 2"]);
    line(&format!("takes {},{}", names(&old), member(array, 2).display()), array)
        .code(1)
        .says(&["out of date", "member 2"]);
}

#[test]
fn a_member_is_made_anew_while_the_others_are_recorded_on() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, 1, "60MB");
    let before = chunks(array).len();
    remove(array, 2);
    let mut recorder = Recorder::start("--from synthetic:4MB/s --to @", array);
    recorder.wait_for_written(1 << 20);
    let onto = folder.path().join("new");
    let rebuild = format!("array rebuild @ --member 2 --onto {} --json", onto.display());
    let done = rebuilt(&line(&rebuild, array));
    assert_eq!(done["joined"], false, "{done:#}");
    assert_eq!(recorder.stop().code, 0);
    fs::rename(&onto, member(array, 2)).expect("it can be moved");
    let shown = asked("array show @", array);
    assert_eq!(shown["members"].as_array().map(Vec::len), Some(6));
    // The next recording is on all six, and tells them of the new one.
    line("record -q --from synthetic:max --until-bytes 10MB --memory 32MiB --to @", array).code(0);
    remove(array, 4);
    let takes = asked("takes @", array);
    let takes = takes.as_array().expect("there is a list");
    assert_eq!(takes.len(), 3);
    assert!(chunks(array).len() > before);
    for take in takes {
        let packets = number(take, "ledger.stored.packets");
        assert_eq!(number(take, "on_media.packets"), packets, "{take:#}");
        let uuid = take["take"].as_str().expect("it is text");
        let (found, _) = extract(array, &format!("--take {uuid}"), 0);
        assert_eq!(found.contiguous(), Some((0, packets - 1)));
    }
}

#[test]
fn a_member_deleted_in_the_middle_of_a_take_costs_nothing() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    let mut recorder =
        Recorder::start(&format!("--from synthetic:10MB/s --to @ {SIX} --parity 1"), array);
    recorder.wait_for_written(5 << 20);
    remove(array, 3);
    recorder.wait_for_written(15 << 20);
    let ended = recorder.stop();
    let offered = number(ended.event("finished"), "ledger.offered.packets");
    assert_eq!(whole(array) + 1, offered);
}

#[test]
fn without_parity_a_scrub_names_damage_and_can_do_nothing_about_it() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, 0, "20MB");
    line("array scrub @", array).code(0);
    let all = chunks(array);
    let damaged = &all[all.len() / 3];
    damage(array, damaged);
    let scrubbed = line("array scrub @ --repair --json", array).code(3).json();
    let findings = scrubbed["findings"].as_array().expect("there is a list");
    assert!(findings.iter().all(|f| f["repair"] == "impossible"), "{scrubbed:#}");
    // In a segment without an index it hides what lies behind it there.
    let hidden = |f: &&Value| f["fault"].as_str().is_some_and(|fault| fault.contains("hides"));
    let named: Vec<u64> =
        findings.iter().filter(|f| !hidden(f)).map(|f| number(f, "sequence")).collect();
    assert_eq!(named, [number(damaged, "sequence")], "{scrubbed:#}");
    let same = |c: &&Value| c["member"] == damaged["member"];
    let behind = |c: &&Value| number(c, "offset") > number(damaged, "offset");
    let behind: Vec<u64> =
        all.iter().filter(same).filter(behind).map(|c| number(c, "sequence")).collect();
    let lost = findings.iter().filter(hidden).map(|f| number(f, "sequence"));
    assert!(lost.into_iter().all(|sequence| behind.contains(&sequence)), "{scrubbed:#}");
    remove(array, 5);
    let onto = folder.path().join("new");
    let rebuild = format!("array rebuild @ --degraded --member 5 --onto {}", onto.display());
    line(&rebuild, array).code(1).says(&["no parity", "--parity 1"]);
    assert!(!onto.exists());
}
