//! What is generated is checked by the checker, and the checker by damage planted on purpose.

use base::{Duration, Rate};
use proptest::prelude::*;

use super::*;
use crate::generator::Summary;
use crate::testing::{OwnedPacket, Recording};

fn generate(options: &Options, packets: usize) -> Vec<OwnedPacket> {
    let mut all = Vec::new();
    for source in Synthetic::open(options).unwrap() {
        let mut sink = Recording::ending_at_packet(packets);
        let summary = source.run(&mut sink);
        assert_eq!(summary.packets, packets as u64);
        all.extend(sink.packets().cloned());
    }
    all
}

fn options() -> impl Strategy<Value = Options> {
    let sizes = prop_oneof![Just(Sizes::Imix), (60u16..3000).prop_map(Sizes::Fixed)];
    (sizes, any::<u64>(), 1u16..4).prop_map(|(sizes, seed, queues)| Options {
        pace: Pace::Max,
        sizes,
        seed,
        queues,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_generated_passes_the_check_whole_and_cut(options in options(), cut in 52usize..200) {
        let mut checker = Checker::new(&options);
        for packet in generate(&options, 40) {
            let data = &packet.data[..cut.min(packet.data.len())];
            prop_assert!(checker.check(data, packet.original_length).is_ok());
        }
        for packet in generate(&options, 40) {
            checker.check(&packet.data, packet.original_length).unwrap();
        }
        prop_assert_eq!(checker.queues().len(), usize::from(options.queues));
        for queue in checker.queues().values() {
            prop_assert_eq!((queue.duplicates, queue.present.count()), (40, 40));
            prop_assert!(queue.missing(40).is_empty() && !queue.in_order);
        }
    }

    #[test]
    fn one_wrong_bit_anywhere_is_found(
        options in options(), which in 0usize..20, at in any::<prop::sample::Index>(), bit in 0u8..8
    ) {
        let mut packet = generate(&options, 20).swap_remove(which);
        let at = at.index(packet.data.len());
        packet.data[at] ^= 1 << bit;
        let mut checker = Checker::new(&options);
        let wrong = checker.check(&packet.data, packet.original_length).unwrap_err();
        // A bit of the queue or the sequence number makes it another packet, which differs elsewhere.
        if let Wrong::Byte { offset, .. } = wrong && !(42..52).contains(&at) {
            prop_assert_eq!(offset, at);
        }
        prop_assert_eq!(checker.wrong(), 1);
    }
}

#[test]
fn a_frame_put_together_from_two_is_found_wherever_it_is_joined() {
    let options = Options { sizes: Sizes::Fixed(200), ..Options::default() };
    // 2048 apart, and neighbours.
    let packets = generate(&options, 2050);
    for (one, other) in [(0, 2048), (1, 2), (7, 2049)] {
        for joint in 52..200 {
            let mut data = packets[one].data.clone();
            data[joint..].copy_from_slice(&packets[other].data[joint..]);
            // Behind the last difference it is the first frame again.
            if data != packets[one].data {
                assert!(Checker::new(&options).check(&data, 200).is_err(), "joined at {joint}");
            }
        }
    }
}

#[test]
fn what_is_missing_and_what_came_twice_is_named_by_queue_and_range() {
    let options = Options { sizes: Sizes::Imix, queues: 2, ..Options::default() };
    let packets = generate(&options, 100);
    let mut checker = Checker::new(&options);
    let dropped = |(queue, sequence)| match queue {
        0 => (10..20).contains(&sequence) || sequence == 99,
        _ => false,
    };
    for packet in &packets {
        if !dropped(frame::identify(&packet.data).unwrap()) {
            checker.check(&packet.data, packet.original_length).unwrap();
        }
    }
    checker.check(&packets[150].data, packets[150].original_length).unwrap();
    let queues = checker.queues();
    assert_eq!(queues[&0].missing(100), [10..20, 99..100]);
    assert!(queues[&0].missing(queues[&0].present.end()).into_iter().eq(std::iter::once(10..20)));
    assert!(queues[&0].in_order && !queues[&1].in_order);
    assert!(queues[&1].duplicated.iter().eq(std::iter::once(50..51)));
    assert_eq!((checker.packets(), checker.wrong()), (190, 0));
}

#[test]
fn packets_of_other_options_are_refused_with_the_reason() {
    let options = Options { sizes: Sizes::Fixed(100), ..Options::default() };
    let packet = generate(&options, 1).swap_remove(0);
    let check = |options: Options, length: usize, original_length| {
        Checker::new(&options).check(&packet.data[..length], original_length).unwrap_err()
    };
    let seed = Options { seed: 2, ..options };
    assert_eq!(check(seed, 100, 100), Wrong::Byte { queue: 0, sequence: 0, offset: 52 });
    let sizes = Options { sizes: Sizes::Fixed(101), ..options };
    let length = Wrong::Length { queue: 0, sequence: 0, expected: 101, found: 100 };
    assert_eq!(check(sizes, 100, 100), length);
    assert_eq!(check(options, 51, 100), Wrong::TooShort { length: 51 });
}

#[test]
fn a_paced_source_stamps_each_packet_with_its_intended_time() {
    let pace = Pace::Rate(Rate(10e6));
    let options = Options { pace, sizes: Sizes::Fixed(1000), ..Options::default() };
    let source = Synthetic::open(&options).unwrap().swap_remove(0);
    assert!(!source.can_wait());
    let mut sink = Recording::ending_at_packet(200);
    let summary = source.run(&mut sink);
    assert_eq!((summary.packets, summary.bytes), (200, 200_000));
    let times: Vec<_> = sink.packets().map(|packet| packet.timestamp).collect();
    for two in times.windows(2) {
        // 1000 bytes at 10 MB/s.
        assert_eq!(two[1].since(two[0]), Duration::from_micros(100));
    }
}

#[test]
fn wireshark_finds_nothing_wrong_with_the_headers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("synthetic.pcap");
    let mut file = Vec::new();
    for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    let packets = generate(&Options { sizes: Sizes::Imix, queues: 3, ..Options::default() }, 24);
    for packet in &packets {
        for word in [0, 0, packet.original_length, packet.original_length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&packet.data);
    }
    std::fs::write(&path, file).unwrap();
    let right = "ip.checksum.status == 1 && udp.dstport == 9 && !_ws.expert";
    let shown = std::process::Command::new("tshark")
        .args(["-o", "ip.check_checksum:TRUE", "-Y", right, "-r"])
        .arg(&path)
        .output()
        .expect("tshark, of the Debian package of that name, must be installed");
    let lines = String::from_utf8_lossy(&shown.stdout).lines().count();
    assert_eq!(lines, packets.len(), "{}", String::from_utf8_lossy(&shown.stderr));
}

#[test]
fn a_slow_source_ticks_and_sees_a_stop_between_packets() {
    let options = Options { pace: Pace::Rate(Rate(1.0)), ..Options::default() };
    let source = Synthetic::open(&options).unwrap().swap_remove(0);
    let summary = source.run(&mut Recording::ending_at_tick(2));
    assert_eq!(summary.packets, 1, "the next is due after 25 minutes");
}

#[test]
fn a_generator_that_lags_says_so() {
    let lagging = Summary { lag_max: Duration::from_secs(1), ..Summary::default() };
    assert!(lagging.harness_limited() && lagging.to_string().contains("fell behind"));
    assert!(!Summary::default().to_string().contains("fell behind"));
}

#[test]
fn options_out_of_range_are_refused() {
    for (options, error) in [
        (
            Options { sizes: Sizes::Fixed(59), ..Options::default() },
            OptionsError::Size { size: 59, min: 60 },
        ),
        (Options { queues: 0, ..Options::default() }, OptionsError::Queues(0)),
        (
            Options { pace: Pace::Rate(Rate(0.0)), ..Options::default() },
            OptionsError::Rate(Rate(0.0)),
        ),
    ] {
        assert_eq!(Synthetic::open(&options).err(), Some(error));
    }
}
