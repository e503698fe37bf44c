//! What users of tcpdump and fio type first: it works, or one line says what to type instead.

use std::fs;

use crate::harness::{line, longtake, new_in, number, run, scratch};

#[test]
fn a_recording_named_like_a_capture_file_or_like_no_array_is_refused_in_one_line() {
    let folder = scratch();
    for (target, said) in [
        ("x.pcapng", "-w x.pcapng writes that file directly"),
        ("./x.pcapng", "`longtake extract DIR -o ./x.pcapng`"),
        ("./new/x.pcap", "--to names an array"),
        ("rec", "--to ./rec makes one of files"),
    ] {
        let mut program = longtake();
        program.args(["record", "--from", "synthetic:1MB/s", "--for", "1s", "--to", target]);
        let ran = run(program.current_dir(folder.path())).code(1).says(&[said]);
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
        let left = fs::read_dir(folder.path()).expect("it can be listed").count();
        assert_eq!(left, 0, "{target} left something behind");
    }
}

#[test]
fn a_directory_that_exists_is_recorded_into_whatever_its_name() {
    let folder = scratch();
    let array = new_in(&folder, "x.pcapng");
    fs::create_dir(&array).expect("a directory can be made");
    let size = "--members 1 --member-size 65MiB --segment 8MiB --memory 64MiB";
    line(&format!("record -q -i synthetic:max --until-bytes 1MB --to @ {size}"), &array).code(0);
    line("takes @", &array).code(0);
}

#[test]
fn letters_and_names_of_tcpdump_and_fio_mean_the_same_here() {
    let folder = scratch();
    let array = new_in(&folder, "array");
    let size = "--members 1 --member-size 65MiB --segment 8MiB --memory 64MiB";
    let source = "-i synthetic:max,size=1000 --until-bytes 1MB -s 100";
    line(&format!("record -q {source} --to @ {size}"), &array).code(0);
    let file = new_in(&folder, "x.pcap");
    let extracted = line(&format!("extract @ -w {} --json", file.display()), &array).code(0).json();
    let packets = number(&extracted, "packets");
    assert!(packets >= 1000, "{extracted}");
    // A header of the file, and one of each packet with 100 of its bytes.
    let expected = 24 + packets * (16 + 100);
    assert_eq!(fs::metadata(&file).expect("it was written").len(), expected);
    let ours = "--block 8KiB --depth 4 --jobs 2 --for 3s --print toml";
    let fios = "--bs 8KiB --iodepth 4 --numjobs 2 --runtime 3s --print toml";
    let printed = |words: &str| line(&format!("measure run @ {words}"), &file).code(0).stdout;
    assert_eq!(printed(ours), printed(fios));
}
