//! Arrays that are listed, described and deleted: what a dry run says, what is refused, and what is left.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::harness::{Recorder, asked, line, new_in, number, scratch};
use crate::measure_rig::{LoopDevice, MIB};

const SMALL: &str = "--members 2 --member-size 65MiB --segment 8MiB --memory 64MiB";

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// An array in the folder with a short take on it.
fn array(folder: &TempDir, name: &str) -> PathBuf {
    let array = new_in(folder, name);
    let take = "--from synthetic:max --until-bytes 5MB --placement stripe";
    line(&format!("record -q {take} --to @ {SMALL}"), &array).code(0);
    array
}

#[test]
fn an_array_of_files_is_listed_described_and_deleted_with_its_directory() {
    let folder = scratch();
    let array = array(&folder, "array");
    line("protect @ --since -1h --until now --label overflight", &array).code(0);
    let takes = asked("takes @", &array);

    let listed = asked("array list @", folder.path());
    let here = |entry: &&serde_json::Value| entry["directory"] == text(&array);
    let found = listed.as_array().and_then(|all| all.iter().find(here)).expect("it is listed");
    let counts = ["members", "present", "takes"].map(|key| number(found, key));
    assert_eq!((counts, found["has_wrapped"].as_bool()), ([2, 2, 1], Some(false)));

    let described = asked("array info @", &array);
    let take = &described["takes"][0];
    assert_eq!(take["on_media"], takes[0]["on_media"]);
    assert_eq!(take["interfaces"][0]["link"], "Ethernet");
    assert_eq!(described["protected"][0]["label"], "overflight");
    let info = line("array info @", &array).code(0).text();
    assert!(info.contains("\n1 take, ") && info.contains("; 0 packets missing"), "{info}");

    let dry = asked("array delete @", &array);
    assert_eq!(number(&dry, "packets"), number(&takes[0], "on_media.packets"));
    assert_eq!(
        (&dry["dry_run"], &dry["protected"][0]["label"]),
        (&true.into(), &"overflight".into())
    );
    assert_eq!(asked("takes @", &array), takes, "a dry run changes nothing");
    let said = line("array delete @", &array).code(0).text();
    assert!(said.contains("overflight") && said.contains("--yes deletes"), "{said}");
    assert!(said.lines().next().is_some_and(|first| first.contains(": 1 take, ")), "{said}");
    // A take by itself can't be deleted; nothing is opened or changed for the answer.
    for words in ["takes @ --delete last", "takes @ --delete", "takes nowhere --delete a b"] {
        let ran = line(words, &array).code(2);
        ran.says(&[
            "a single take can't be deleted",
            "array delete",
            "--when-full wrap",
            "unprotect",
        ]);
    }
    assert_eq!(asked("takes @", &array), takes);

    line("array delete @ --yes", &array).code(0);
    assert!(!array.exists());
}

#[test]
fn an_array_in_use_is_not_deleted() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let recorder = Recorder::start(&format!("--from synthetic:1MB/s --to @ {SMALL}"), &array);
    for words in ["array delete @", "array delete @ --yes"] {
        line(words, &array).code(1).says(&["is being written", "nothing was deleted"]);
    }
    recorder.stop().code(0);
    let reader = fs::File::open(array.join("member1")).expect("it is there");
    let says = [&*format!("(pid {})", std::process::id()), "nothing was deleted"];
    line("array delete @ --yes", &array).code(1).says(&says);
    drop(reader);
    line("array delete @ --yes", &array).code(0);
}

#[test]
fn what_is_not_the_arrays_own_stays() {
    let folder = scratch();
    let (one, other) = (array(&folder, "one"), array(&folder, "other"));
    // A link out of the directory.
    fs::rename(one.join("member1"), new_in(&folder, "elsewhere")).expect("it is there");
    symlink(new_in(&folder, "elsewhere"), one.join("member1")).expect("it can be made");
    line("array delete @ --yes", &one).code(1).says(&["one/member1 is a symbolic link"]);
    fs::remove_file(one.join("member1")).expect("it is there");
    fs::rename(new_in(&folder, "elsewhere"), one.join("member1")).expect("it is there");
    let link = new_in(&folder, "link");
    symlink(&one, &link).expect("it can be made");
    line("array delete @/ --yes", &link).code(1).says(&["is a symbolic link"]);
    // Another array's member.
    let both = format!("array delete --yes {0}/member0,{1}/member1", text(&one), text(&other));
    line(&both, &one).code(1).says(&["belongs to array"]);
    assert!(one.join("member0").exists() && other.join("member1").exists());
    // A file of somebody else keeps the directory.
    fs::write(one.join("letter"), "dear").expect("there is space");
    line("array delete @ --yes", &one).code(0);
    let left: Vec<_> = fs::read_dir(&one).expect("it stays").flatten().collect();
    assert_eq!(left.iter().map(|entry| entry.file_name()).collect::<Vec<_>>(), ["letter"]);
}

#[test]
fn a_deletion_that_was_cut_short_is_refused_and_completed_by_running_it_again() {
    let folder = scratch();
    let array = array(&folder, "array");
    fs::remove_file(array.join("member0")).expect("it is there");
    line("array delete @ --yes", &array).code(1).says(&["lacks member 0", "--degraded"]);
    line("array delete @ --yes --degraded", &array).code(0);
    assert!(!array.exists());
}

#[test]
fn on_drives_both_superblocks_are_erased_and_nothing_else() {
    let drives = [LoopDevice::new(80 * MIB), LoopDevice::new(80 * MIB)];
    let names = drives.each_ref().map(LoopDevice::text);
    let [one, two] = names;
    let create = format!("array create {one} {two} --erase {one} --erase {two} --segment 8MiB");
    line(&create, Path::new("")).code(0);
    let both = format!("{one},{two}");
    let take = "--from synthetic:max --until-bytes 5MB --memory 64MiB --keep-privileges";
    line(&format!("record -q {take} --to {both}"), Path::new("")).code(0);
    let before = drives.each_ref().map(|drive| fs::read(&drive.path).expect("it can be read"));
    let said = line(&format!("array delete {both} --yes"), Path::new("")).code(0).text();
    assert!(said.contains("blkdiscard"), "{said}");
    for (drive, before) in drives.iter().zip(before) {
        let after = fs::read(&drive.path).expect("it can be read");
        let (length, superblock) = (after.len(), 64 << 10);
        for part in [0..superblock, length - superblock..length] {
            assert!(before[part.clone()].iter().any(|&byte| byte != 0));
            assert!(after[part].iter().all(|&byte| byte == 0));
        }
        let between = superblock..length - superblock;
        assert!(after[between.clone()] == before[between], "nothing else is written");
    }
    line(&format!("takes {both}"), Path::new("")).code(1);
    line(&create, Path::new("")).code(0);
}

#[test]
fn recording_on_an_array_names_the_options_that_have_no_effect_on_it() {
    let folder = scratch();
    let array = array(&folder, "array");
    let again = "record -q --from synthetic:max --until-bytes 1MB --to @";
    let same = line(&format!("{again} {SMALL}"), &array).code(0);
    assert!(!same.stderr.contains("no effect"), "{}", same.stderr);
    let other = "--members 3 --member-size 66MiB --segment 16MiB --chunk 1MiB";
    line(&format!("{again} {other}"), &array).code(0).says(&[
        "array 'array' exists already, so options that shape a new one have no effect: --members 3, --member-size 69.2 MB, \
         --segment 16.8 MB, --chunk 1.05 MB",
    ]);
}
