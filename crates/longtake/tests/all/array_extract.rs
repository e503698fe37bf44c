//! Recorded packets, to a function and as files.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use longtake::array::{Pace, PacketRef, Selection, TakeState, UdpSender};
use longtake::{FileFormat, Interface, Timestamp};

use crate::harness::Fixture;

const CONTINUE: ControlFlow<()> = ControlFlow::Continue(());

#[test]
fn every_recorded_packet_comes_back_in_order_with_its_interface() {
    let mut array = Fixture::recorded(8_000_000, 0);
    array.record(4_000_000, 0);
    let mut opened = array.open();
    let takes = opened.takes().expect("it can be read");
    assert_eq!(takes.len(), 2);
    assert!(takes.iter().all(|take| take.state == TakeState::Complete && take.balances()));
    let mut last: HashMap<Interface, Timestamp> = HashMap::new();
    let mut bytes = 0;
    let extracted = opened.extract(&Selection::default(), |packet| {
        let before = last.insert(packet.interface.clone(), packet.timestamp);
        assert!(before.is_none_or(|before| before <= packet.timestamp));
        bytes += packet.data.len() as u64;
        CONTINUE
    });
    let extracted = extracted.expect("it can be read");
    assert!(extracted.is_complete(), "{extracted:?}");
    assert_eq!((extracted.packets, extracted.bytes), (array.packets, bytes));
}

#[test]
fn a_take_a_span_and_a_filter_select_packets() {
    let mut array = Fixture::recorded(4_000_000, 0);
    array.record(2_000_000, 0);
    let mut opened = array.open();
    let second = opened.ledger("last").expect("there is a take");
    let only = Selection { take: Some("last".to_owned()), ..Selection::default() };
    let mut times = Vec::new();
    let mut note = |packet: PacketRef<'_>| {
        times.push(packet.timestamp);
        CONTINUE
    };
    let extracted = opened.extract(&only, &mut note).expect("it can be read");
    assert_eq!(extracted.packets, second.stored.packets);

    // Both ends are included.
    let (since, until) = (times[10], times[19]);
    let span = Selection { since: Some(since), until: Some(until), ..only.clone() };
    let inside = times.iter().filter(|&&t| t >= since && t <= until).count() as u64;
    let extracted = opened.extract(&span, |_| CONTINUE).expect("it can be read");
    assert_eq!(extracted.packets, inside);

    let backwards = Selection { since: Some(until), until: Some(since), ..Selection::default() };
    let error = opened.extract(&backwards, |_| CONTINUE).expect_err("no span").to_string();
    assert!(error.contains("ends before it begins"), "{error}");
    let other = Selection { take: Some("none".to_owned()), ..Selection::default() };
    let error = opened.extract(&other, |_| CONTINUE).expect_err("no such take").to_string();
    assert!(error.contains("no take 'none'"), "{error}");
}

#[test]
fn an_extraction_ends_when_its_function_breaks() {
    let mut array = Fixture::recorded(8_000_000, 0);
    array.record(2_000_000, 0);
    let mut opened = array.open();
    let last = opened.ledger("last").expect("there is a take").stored.packets;
    for _ in 0..3 {
        let mut left = 5;
        let extracted = opened.extract(&Selection::default(), |_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { CONTINUE }
        });
        let extracted = extracted.expect("stopping is no error");
        assert_eq!((extracted.packets, extracted.stopped), (5, true));
        assert!(!extracted.is_complete());
    }
    // What was being read ahead then does not pass for what is read now.
    let only = Selection { take: Some("last".to_owned()), ..Selection::default() };
    let extracted = opened.extract(&only, |_| CONTINUE).expect("it is sound");
    assert_eq!((extracted.packets, extracted.is_complete()), (last, true), "{extracted:?}");
}

#[test]
fn capture_files_have_every_packet_whether_chunks_are_copied_or_not() {
    let array = Fixture::recorded(4_000_000, 0);
    let mut opened = array.open();
    let mut pcapng = Vec::new();
    let all = Selection::default();
    let whole = opened.extract_to(&all, FileFormat::Pcapng, &mut pcapng).expect("it is sound");
    assert_eq!((whole.packets, whole.bytes), (array.packets, pcapng.len() as u64));
    assert!(whole.is_complete());
    // An end in the middle of a chunk keeps it from being copied whole.
    let until = opened.ledger("last").expect("there is a take").range().to;
    let until = Some(Timestamp::from_nanos(until.as_nanos() - 1));
    let cut = Selection { until, ..Selection::default() };
    let mut pcap = Vec::new();
    let cut = opened.extract_to(&cut, FileFormat::Pcap, &mut pcap).expect("it is sound");
    assert!(cut.packets < array.packets && cut.packets > 0);
    assert_eq!(&pcap[..4], 0xa1b2_3c4d_u32.to_le_bytes(), "pcap with nanoseconds");
    let packets = format::pcapng::Blocks::new(&pcapng)
        .map(|block| block.expect("it is whole"))
        .filter(|block| format::pcapng::read_packet(block).is_ok())
        .count() as u64;
    assert_eq!(packets, array.packets);
}

#[test]
fn a_writers_own_error_can_be_had_again() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let array = Fixture::recorded(1_000_000, 0);
    let written = array.open().extract_to(&Selection::default(), FileFormat::Pcapng, Full);
    let error = written.expect_err("nothing can be written");
    let error = error.downcast_ref::<std::io::Error>().expect("it is the writer's");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn progress_counts_the_chunks_of_all_takes_and_can_stop() {
    let mut array = Fixture::recorded(2_000_000, 0);
    array.record(2_000_000, 0);
    let mut opened = array.open();
    let mut seen = Vec::new();
    let selected = opened.select(&Selection::default()).expect("it can be read");
    let whole = selected.write_to(FileFormat::Pcapng, std::io::sink(), |progress| {
        seen.push(progress);
        CONTINUE
    });
    assert!(whole.expect("it is sound").is_complete());
    let total = seen[0].total;
    let done: Vec<u64> = seen.iter().map(|progress| progress.done).collect();
    assert_eq!(done, (1..=total).collect::<Vec<_>>());
    let selected = opened.select(&Selection::default()).expect("it can be read");
    let stop = |_| ControlFlow::Break(());
    let part = selected.write_to(FileFormat::Pcapng, std::io::sink(), stop);
    assert!(part.expect("stopping is no error").stopped);
}

#[test]
fn a_replay_sends_every_packet_until_it_is_stopped() {
    let array = Fixture::recorded(200_000, 0);
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
    let address = receiver.local_addr().expect("it is bound");
    let sender = || UdpSender::connect(address, None).expect("it is there");
    let mut opened = array.open();
    let all = Selection::default();
    let stop = AtomicBool::new(false);
    let replayed = opened.replay(&all, sender(), Pace::Fastest, &stop).expect("it can be sent");
    let sent = &replayed.sent;
    let accounted =
        sent.packets + sent.oversize + sent.truncated + sent.not_udp + sent.other_link_type;
    assert_eq!((accounted, sent.unsent), (array.packets, 0), "{sent:?}");
    assert!(replayed.read.is_read_whole());
    let stop = AtomicBool::new(true);
    let replayed = opened.replay(&all, sender(), Pace::Fastest, &stop).expect("it can be stopped");
    assert_eq!(replayed.sent.packets, 0);
}
