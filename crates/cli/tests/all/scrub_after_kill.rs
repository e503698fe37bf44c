//! What a crash tears is not damage, what has changed since it was written is, and a member that comes back in an older
//! state is noticed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::harness::{asked, line, new_in, number, scratch};
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// Of the member files below: the format's data offset and the length of a segment.
const DATA_OFFSET: u64 = MIB;
const SEGMENT: u64 = 2 * MIB;
const FILES: &str = "--member-size 44MiB --segment 2MiB --chunk 124KiB --memory 128MiB";

#[track_caller]
fn record(array: &Path, bytes: &str, options: &str) {
    let how = format!("record -q --from synthetic:max --until-bytes {bytes} --to @ {options}");
    line(&how, array).code(0);
}

fn member(array: &Path, at: u16) -> PathBuf {
    array.join(format!("member{at}"))
}

fn open(array: &Path, at: u16) -> File {
    File::options().read(true).write(true).open(member(array, at)).expect("it is there")
}

/// The segments of a member, oldest first, by the numbers of their first chunks; the last one is open.
#[track_caller]
fn segments(array: &Path, at: u16) -> Vec<u64> {
    let shown = asked("array show @ --chunks", array);
    let chunks = shown["chunks"].as_array().expect("there is a list").clone();
    let mut found: Vec<u64> = Vec::new();
    for chunk in chunks.iter().filter(|c| number(c, "member") == u64::from(at)) {
        let segment = (number(chunk, "offset") - DATA_OFFSET) / SEGMENT;
        if found.last() != Some(&segment) {
            found.push(segment);
        }
    }
    found
}

/// Writes zeros over the last bytes of a segment, as they are if a crash kept its index from being written.
fn tear(array: &Path, at: u16, segment: u64, bytes: usize) {
    let end = DATA_OFFSET + (segment + 1) * SEGMENT;
    open(array, at).write_all_at(&vec![0; bytes], end - bytes as u64).expect("it can be written");
}

/// Turns a bit so many bytes before a segment's end.
fn flip(array: &Path, at: u16, segment: u64, before_end: u64) {
    let file = open(array, at);
    let offset = DATA_OFFSET + (segment + 1) * SEGMENT - before_end;
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("it can be read");
    file.write_all_at(&[byte[0] ^ 4], offset).expect("it can be written");
}

#[track_caller]
fn scrubbed(array: &Path, options: &str, code: i32) -> Vec<Value> {
    let said = line(&format!("array scrub @ --json {options}"), array).code(code).json();
    said["findings"].as_array().expect("there is a list").clone()
}

#[test]
fn an_index_that_a_crash_tore_is_no_damage_to_scrub_and_check_and_is_rebuilt() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, "30MB", &format!("{FILES} --members 2"));
    let all = segments(array, 0);
    let [.., before, last, _] = all[..] else { panic!("too few segments: {all:?}") };
    // Nothing of one index was written, and of the other one its last block alone.
    tear(array, 0, last, 8192);
    let file = open(array, 0);
    let end = DATA_OFFSET + (before + 1) * SEGMENT;
    file.write_all_at(&[0; 3584], end - 4096).expect("it can be written");
    let findings = scrubbed(array, "", 0);
    assert_eq!(findings.len(), 2, "{findings:#?}");
    for finding in &findings {
        assert_eq!((&finding["damage"], &finding["repair"]), (&false.into(), &"possible".into()));
    }
    let text = line("array scrub @", array).code(0).text();
    assert!(text.contains("TORN: member 0") && !text.contains("DAMAGED"), "{text}");
    let text = line("array check @", array).code(0).text();
    assert!(text.contains(" 0 damaged") && text.contains("array scrub"), "{text}");
    // The next recording writes an index that is missing, and a repair the other one.
    record(array, "1MB", "");
    assert_eq!(scrubbed(array, "", 0).len(), 1);
    scrubbed(array, "--repair", 0);
    assert_eq!(scrubbed(array, "", 0).len(), 0);
}

#[test]
fn an_index_that_has_changed_since_it_was_written_is_damage_however_new_it_is() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, "50MB", &format!("{FILES} --members 2"));
    let all = segments(array, 1);
    let [oldest, .., last, _] = all[..] else { panic!("too few segments: {all:?}") };
    assert!(all.len() > 10, "{all:?}");
    // A bit of the footer, a bit of an entry; and an index that is lost long after a crash could have torn it.
    for damage in [0, 1, 2] {
        match damage {
            0 => flip(array, 1, last, 60),
            1 => flip(array, 1, last, 1000),
            _ => tear(array, 1, oldest, 8192),
        }
        let findings = scrubbed(array, "", 3);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0]["damage"], true, "{findings:#?}");
        let text = line("array check @", array).code(0).text();
        assert!(text.contains(" 0 damaged") && text.contains("without an index: 1"));
        scrubbed(array, "--repair", 0);
        assert_eq!(scrubbed(array, "", 0).len(), 0);
    }
}

/// What an extraction says of members that are out of date; everything that was read is sound.
#[track_caller]
fn extracted(array: &Path, code: i32) -> Value {
    line("extract @ -q -y --json -o /dev/null", array).code(code).json()
}

#[test]
fn an_old_copy_of_a_member_in_a_ring_is_named_and_what_the_ring_overwrote_does_not_pass_for_sound()
{
    let folder = scratch();
    let array = &new_in(&folder, "array");
    let ring = "--when-full wrap";
    record(array, "40MB", &format!("{FILES} --members 2 {ring}"));
    let old = folder.path().join("old");
    fs::copy(member(array, 1), &old).expect("it can be copied");
    record(array, "150MB", ring);
    assert_eq!(number(&extracted(array, 0), "overwritten_chunks"), 0);
    fs::rename(&old, member(array, 1)).expect("it can be moved");
    let said = extracted(array, 3);
    assert_eq!(said["stale_members"][0]["member"], 1, "{said:#}");
    assert!(number(&said, "overwritten_chunks") > 100, "{said:#}");
    for command in ["array check @", "array scrub @", "takes @"] {
        let ran = line(command, array).code(3);
        ran.says(&["member 1", "is out of date", "its newest packet is from", "insert the drive"]);
    }
}

#[test]
fn a_member_that_was_away_while_a_ring_with_parity_was_recorded_on_is_named_and_can_be_rebuilt() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    let ring = "--when-full wrap";
    let slow = "--from synthetic:60MB/s";
    let how =
        format!("record -q {slow} --until-bytes 50MB --to @ {FILES} --members 4 --parity 1 {ring}");
    line(&how, array).code(0);
    let old = folder.path().join("old");
    fs::rename(member(array, 1), &old).expect("it can be moved");
    let how = format!("record -q {slow} --until-bytes 120MB --to @ {ring}");
    line(&how, array).code(0);
    fs::rename(&old, member(array, 1)).expect("it can be moved");
    let said = extracted(array, 3);
    assert_eq!(said["stale_members"][0]["member"], 1, "{said:#}");
    line("array show @", array).code(0).says(&[
        "member 1",
        "out of date",
        "rebuild ARRAY --member 1",
    ]);
    // As the warning says.
    fs::rename(member(array, 1), &old).expect("it can be moved");
    let onto = member(array, 1);
    let new = folder.path().join("new");
    line(&format!("array rebuild @ --member 1 --onto {}", new.display()), array);
    fs::rename(&new, onto).expect("it was made");
    let said = extracted(array, 0);
    assert_eq!(said["stale_members"], Value::Array(Vec::new()), "{said:#}");
}

#[test]
fn a_member_that_shares_every_take_is_not_out_of_date() {
    let folder = scratch();
    let array = &new_in(&folder, "array");
    record(array, "20MB", &format!("{FILES} --members 3 --when-full wrap"));
    for _ in 0..3 {
        record(array, "60MB", "--when-full wrap");
        let said = extracted(array, 0);
        assert_eq!(said["stale_members"], Value::Array(Vec::new()), "{said:#}");
    }
}
