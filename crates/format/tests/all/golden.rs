//! Holds encoder, reader and `docs/format.md` to the golden members, and the members to the judges of
//! pcapng. `cargo xtask golden` makes them.

#[path = "../golden/listing.rs"]
mod listing;
#[path = "../golden/parity.rs"]
mod parity;
#[path = "../golden/recipe.rs"]
mod recipe;

use std::process::{Command, Output};

const GOLDEN: [&[u8]; 2] =
    [include_bytes!("../golden/member0.bin"), include_bytes!("../golden/member1.bin")];
const PARITY: [&[u8]; 4] = [
    include_bytes!("../golden/parity0.bin"),
    include_bytes!("../golden/parity1.bin"),
    include_bytes!("../golden/parity2.bin"),
    include_bytes!("../golden/parity3.bin"),
];
/// What `check.py` printed when the files were made.
const EXPECTED: &str = include_str!("../golden/expected.txt");
const EXPECTED_PARITY: &str = include_str!("../golden/parity.txt");
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

#[test]
fn todays_encoder_writes_the_golden_bytes() {
    let made = recipe::members().into_iter().chain(parity::members());
    let golden = GOLDEN.iter().chain(&PARITY);
    for (name, (made, golden)) in recipe::FILES.iter().chain(&parity::FILES).zip(made.zip(golden)) {
        let first = made.iter().zip(*golden).position(|(a, b)| a != b);
        assert_eq!(first, None, "{name} differs from this byte on");
        assert_eq!(made.len(), golden.len(), "{name}");
    }
}

#[test]
fn the_reader_finds_in_the_golden_bytes_what_the_specification_says() {
    let found: String = GOLDEN.into_iter().map(listing::list).collect();
    same(&found, EXPECTED);
    let found: String = PARITY.into_iter().map(listing::list).collect();
    same(&(found + &listing::parities(&PARITY)), EXPECTED_PARITY);
}

#[test]
fn a_second_reader_written_from_the_specification_alone_finds_the_same() {
    let output = run(Command::new("python3").arg("check.py").args(recipe::FILES));
    same(&String::from_utf8_lossy(&output.stdout), EXPECTED);
    let output = run(Command::new("python3").arg("check.py").args(parity::FILES));
    same(&String::from_utf8_lossy(&output.stdout), EXPECTED_PARITY);
}

/// A member, and what other tools must find on it.
struct Copy {
    name: &'static str,
    golden: &'static [u8],
    /// The parts that hold pcapng, older part first (section 8): offset and length.
    parts: &'static [(u64, u64)],
    /// Packets on it, as the lists have them, and those lost in front of one.
    packets: u64,
    dropped: u64,
}

/// The first has not wrapped, the second has; the last two have parity.
const COPIES: [Copy; 4] = [
    Copy {
        name: recipe::FILES[0],
        golden: GOLDEN[0],
        parts: &[(0, 1_384_448)],
        packets: 166,
        dropped: 6,
    },
    Copy {
        name: recipe::FILES[1],
        golden: GOLDEN[1],
        parts: &[(1_310_720, 262_144), (0, 1_056_768)],
        packets: 122,
        dropped: 0,
    },
    Copy {
        name: parity::FILES[0],
        golden: PARITY[0],
        parts: &[(0, 1_343_488)],
        packets: 73,
        dropped: 0,
    },
    Copy {
        name: parity::FILES[2],
        golden: PARITY[2],
        parts: &[(0, 1_216_512)],
        packets: 26,
        dropped: 0,
    },
];

#[test]
fn tshark_and_capinfos_read_what_dd_copies_off_a_member_without_a_complaint() {
    for Copy { name, golden, parts, packets, dropped } in COPIES {
        let copy = format!("{}/golden-{name}.pcapng", env!("CARGO_TARGET_TMPDIR"));
        for (part, (from, length)) in parts.iter().enumerate() {
            let redirect = if part == 0 { ">" } else { ">>" };
            run(Command::new("sh").args(["-c", &format!(
                "dd if={name} bs=1M iflag=skip_bytes,count_bytes skip={from} count={length} status=none {redirect} '{copy}'"
            )]));
        }
        let fields = ["-T", "fields", "-e", "frame.len", "-e", "frame.drop_count"];
        let output = run(Command::new("tshark").args(["-n", "-r", &copy]).args(fields));
        assert_eq!(complaints(&output), "", "{name}");
        let frames = String::from_utf8_lossy(&output.stdout);
        assert_eq!(frames.lines().count() as u64, packets, "{name}");
        let column = |number: usize| -> u64 {
            let cells = frames.lines().filter_map(|line| line.split('\t').nth(number));
            cells.filter_map(|cell| cell.parse::<u64>().ok()).sum()
        };
        let wire: u64 = listing::list(golden)
            .lines()
            .filter_map(|line| {
                line.strip_prefix("    packet on ")?.split(' ').nth(5)?.parse::<u64>().ok()
            })
            .sum();
        assert_eq!((column(0), column(1)), (wire, dropped), "{name}");

        let output = run(Command::new("capinfos").args(["-Mc", &copy]));
        assert_eq!(complaints(&output), "", "{name}");
        let infos = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = infos.lines().find_map(|l| l.strip_prefix("Number of packets:")).map(str::trim);
        assert_eq!(count, Some(packets.to_string().as_str()), "{name}");
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
