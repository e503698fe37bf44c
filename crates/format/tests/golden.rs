//! Holds encoder, reader and `docs/format.md` to the golden members, and the members to the judges of
//! pcapng. `cargo xtask golden` makes them.

// Under the name that every other crate knows it by: the recipe is shared with one.
extern crate longtake_format as format;

#[path = "golden/listing.rs"]
mod listing;
#[path = "golden/recipe.rs"]
mod recipe;

use std::process::{Command, Output};

const GOLDEN: [&[u8]; 2] =
    [include_bytes!("golden/member0.bin"), include_bytes!("golden/member1.bin")];
/// What `check.py` printed when the files were made.
const EXPECTED: &str = include_str!("golden/expected.txt");
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

#[test]
fn todays_encoder_writes_the_golden_bytes() {
    for (name, (made, golden)) in recipe::FILES.iter().zip(recipe::members().iter().zip(GOLDEN)) {
        let first = made.iter().zip(golden).position(|(a, b)| a != b);
        assert_eq!(first, None, "{name} differs from this byte on");
        assert_eq!(made.len(), golden.len(), "{name}");
    }
}

#[test]
fn the_reader_finds_in_the_golden_bytes_what_the_specification_says() {
    let found: String = GOLDEN.into_iter().map(listing::list).collect();
    same(&found, EXPECTED);
}

#[test]
fn a_second_reader_written_from_the_specification_alone_finds_the_same() {
    let output = run(Command::new("python3").arg("check.py").args(recipe::FILES));
    same(&String::from_utf8_lossy(&output.stdout), EXPECTED);
}

/// The parts of each member that hold pcapng, older part first (section 8): offset and length. The
/// first member has not wrapped, the second has.
const PARTS: [&[(u64, u64)]; 2] = [&[(0, 1_384_448)], &[(1_310_720, 262_144), (0, 1_056_768)]];
/// Packets on each member, as `expected.txt` lists them, and those lost in front of one.
const PACKETS: [u64; 2] = [166, 122];
const DROPPED: [u64; 2] = [6, 0];

#[test]
fn tshark_and_capinfos_read_what_dd_copies_off_a_member_without_a_complaint() {
    for (member, name) in recipe::FILES.iter().enumerate() {
        let copy = format!("{}/golden-{name}.pcapng", env!("CARGO_TARGET_TMPDIR"));
        for (part, (from, length)) in PARTS[member].iter().enumerate() {
            let redirect = if part == 0 { ">" } else { ">>" };
            run(Command::new("sh").args(["-c", &format!(
                "dd if={name} bs=1M iflag=skip_bytes,count_bytes skip={from} count={length} status=none {redirect} '{copy}'"
            )]));
        }
        let fields = ["-T", "fields", "-e", "frame.len", "-e", "frame.drop_count"];
        let output = run(Command::new("tshark").args(["-n", "-r", &copy]).args(fields));
        assert_eq!(complaints(&output), "", "{name}");
        let frames = String::from_utf8_lossy(&output.stdout);
        assert_eq!(frames.lines().count() as u64, PACKETS[member], "{name}");
        let column = |number: usize| -> u64 {
            let cells = frames.lines().filter_map(|line| line.split('\t').nth(number));
            cells.filter_map(|cell| cell.parse::<u64>().ok()).sum()
        };
        let wire: u64 = listing::list(GOLDEN[member])
            .lines()
            .filter_map(|line| {
                line.strip_prefix("    packet on ")?.split(' ').nth(5)?.parse::<u64>().ok()
            })
            .sum();
        assert_eq!((column(0), column(1)), (wire, DROPPED[member]), "{name}");

        let output = run(Command::new("capinfos").args(["-Mc", &copy]));
        assert_eq!(complaints(&output), "", "{name}");
        let infos = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = infos.lines().find_map(|l| l.strip_prefix("Number of packets:")).map(str::trim);
        assert_eq!(count, Some(PACKETS[member].to_string().as_str()), "{name}");
    }
}

fn run(command: &mut Command) -> Output {
    let output = command.current_dir(DIRECTORY).output();
    let output = output.unwrap_or_else(|error| panic!("running {command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    output
}

/// What a tool wrote to standard error, but for the warning that it runs as root.
fn complaints(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| !line.contains("Running as user \"root\"")).collect()
}

/// Compares line by line, so that a difference shows as one.
fn same(found: &str, expected: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
