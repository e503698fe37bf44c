//! UDP received in network namespaces: every datagram sent is delivered or counted as dropped.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::namespace::{Recording, Told, cable, in_namespace, ip, send_all, wait_for};
use format::LinkType;
use longtake_source::Loss;
use longtake_source::filter::Program;
use longtake_source::transmit::UdpSender;
use longtake_source::udp::{Framing, Group, UdpOptions, UdpSource, UdpSummary};

const LOCAL: &str = "127.0.0.1:0";

/// Receives with `source` while `traffic` runs, then stops; `set` prepares the sink.
fn receive_with(
    source: UdpSource,
    set: impl FnOnce(&mut Recording<'_>) + Send,
    traffic: impl FnOnce(SocketAddr),
) -> (UdpSummary, Vec<Told>) {
    let (stop, ticked) = (AtomicBool::new(false), AtomicBool::new(false));
    let address = source.address();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut sink = Recording::new(&stop, &ticked);
            set(&mut sink);
            (source.run(&mut sink).unwrap(), sink.told)
        });
        wait_for(&ticked);
        // Also when the traffic panics, so that the source doesn't hold the test.
        let traffic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| traffic(address)));
        stop.store(true, Ordering::Release);
        let received = receiving.join().unwrap();
        if let Err(panic) = traffic {
            std::panic::resume_unwind(panic);
        }
        received
    })
}

fn options(address: &str) -> UdpOptions {
    UdpOptions::new(address.parse().unwrap())
}

fn bind(options: &UdpOptions) -> UdpSource {
    UdpSource::bind(options).unwrap().sources.remove(0)
}

/// A block that begins with its number.
fn block(number: u64, length: usize) -> Vec<u8> {
    let mut block = number.to_be_bytes().to_vec();
    block.resize(length.max(8), 0x5a);
    block
}

fn number(block: &[u8]) -> u64 {
    u64::from_be_bytes(block[..8].try_into().unwrap())
}

fn sender(to: SocketAddr) -> UdpSender {
    UdpSender::connect(to, None).unwrap()
}

fn datas(told: &[Told]) -> Vec<&[u8]> {
    told.iter().filter_map(Told::data).collect()
}

#[test]
fn every_datagram_is_one_block_with_its_arrival_time() {
    for address in [LOCAL, "[::1]:0"] {
        in_namespace(|| {
            let sent: Vec<Vec<u8>> =
                [8, 9, 1472, 9000, 65_507].iter().map(|&n| block(n as u64, n)).collect();
            let source = bind(&UdpOptions { recv_buffer_bytes: 4 << 20, ..options(address) });
            assert_eq!(source.interface().link_type, LinkType::USER0);
            let started = longtake_source::clock::now();
            let (summary, told) = receive_with(
                source,
                |_| (),
                |to| {
                    send_all(&mut sender(to), sent.clone());
                    UdpSocket::bind(SocketAddr::new(to.ip(), 0)).unwrap().send_to(b"", to).unwrap();
                },
            );
            assert_eq!((summary.delivered, summary.truncated), (6, 0));
            let datas = datas(&told);
            assert_eq!(datas[..5], sent);
            assert!(datas[5].is_empty());
            for told in &told {
                let Told::Packet { timestamp, .. } = told else { panic!("{told:?}") };
                assert!(*timestamp >= started && *timestamp <= longtake_source::clock::now());
            }
        });
    }
}

#[test]
fn what_does_not_fit_in_a_small_buffer_is_counted_to_the_datagram() {
    const COUNT: u64 = 20_000;
    in_namespace(|| {
        let source = bind(&UdpOptions { recv_buffer_bytes: 20_000, ..options(LOCAL) });
        let slow = |sink: &mut Recording<'_>| sink.pause = Duration::from_micros(50);
        let (summary, told) = receive_with(source, slow, |to| {
            let mut sender = sender(to);
            for burst in 0..20 {
                let numbers = burst * COUNT / 20..(burst + 1) * COUNT / 20;
                send_all(&mut sender, numbers.map(|i| block(i, 300)));
                thread::sleep(Duration::from_millis(5));
            }
        });
        assert!(summary.kernel_drops > 0, "{summary:?}");
        assert_eq!(summary.delivered + summary.kernel_drops, COUNT, "{summary:?}");
        let flag = AtomicBool::new(false);
        let recording = Recording { told, ..Recording::new(&flag, &flag) };
        assert_eq!(recording.lost(Loss::KernelRing), summary.kernel_drops);
        recording.assert_no_loss_is_told_late(number, 0);
    });
}

#[test]
fn drops_after_the_last_datagram_are_counted_too() {
    in_namespace(|| {
        let source = bind(&UdpOptions { recv_buffer_bytes: 4096, ..options(LOCAL) });
        // Nobody reads yet: the buffer fills, the rest is dropped, and nothing follows.
        let sent = send_all(&mut sender(source.address()), (0..500).map(|i| block(i, 1000)));
        let (summary, told) = receive_with(source, |_| (), |_| ());
        assert!(summary.kernel_drops > 0);
        assert_eq!(summary.delivered + summary.kernel_drops, sent);
        assert_eq!(told.last(), Some(&Told::Lost(Loss::KernelRing, summary.kernel_drops)));
    });
}

#[test]
fn a_long_datagram_is_cut_and_keeps_its_original_length() {
    in_namespace(|| {
        let source = bind(&UdpOptions { snap_length: 100, ..options(LOCAL) });
        let (summary, told) = receive_with(
            source,
            |_| (),
            |to| {
                send_all(&mut sender(to), [block(1, 1400), block(2, 50)]);
            },
        );
        assert_eq!((summary.delivered, summary.truncated), (2, 1));
        assert_eq!(datas(&told), [&block(1, 1400)[..100], &block(2, 50)]);
        assert!(matches!(told[0], Told::Packet { original_length: 1400, .. }));
    });
}

#[test]
fn made_headers_carry_the_addresses_so_that_filters_and_tools_understand_them() {
    for (address, length) in [(LOCAL, 28), ("[::]:0", 28), ("[::1]:0", 48)] {
        in_namespace(|| {
            let source = bind(&UdpOptions { framing: Framing::Headers, ..options(address) });
            assert_eq!(source.interface().link_type, LinkType::RAW_IP);
            let mut from = 0;
            let mut port = 0;
            let (summary, told) = receive_with(
                source,
                |_| (),
                |to| {
                    // A socket for both IP versions is reached by IPv4 too.
                    let local: IpAddr = if to.ip().is_unspecified() {
                        "127.0.0.1".parse().unwrap()
                    } else {
                        to.ip()
                    };
                    let socket = UdpSocket::bind(SocketAddr::new(local, 0)).unwrap();
                    (from, port) = (socket.local_addr().unwrap().port(), to.port());
                    socket.send_to(&block(7, 333), SocketAddr::new(local, port)).unwrap();
                },
            );
            assert_eq!(summary.delivered, 1);
            let packet = datas(&told)[0];
            assert_eq!(packet[length..], block(7, 333));
            let host = if length == 28 { "127.0.0.1" } else { "::1" };
            let expression = format!(
                "udp src port {from} and udp dst port {port} and src host {host} and dst host {host}"
            );
            let program = Program::compile(&expression, LinkType::RAW_IP, 0).unwrap();
            assert!(program.matches(packet, packet.len() as u32), "{expression}: {packet:x?}");
        });
    }
}

#[test]
fn several_sockets_share_the_senders_out_and_no_datagram_comes_twice() {
    const SENDERS: u64 = 16;
    const EACH: u64 = 200;
    in_namespace(|| {
        let shared = UdpOptions { queues: 3, recv_buffer_bytes: 8 << 20, ..options(LOCAL) };
        let sources = UdpSource::bind(&shared).unwrap().sources;
        let to = sources[0].address();
        assert!(sources.iter().all(|source| source.address() == to));
        let stop = AtomicBool::new(false);
        let ticked = [(); 3].map(|()| AtomicBool::new(false));
        let mut numbers: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = sources
                .into_iter()
                .zip(&ticked)
                .map(|(source, ticked)| {
                    let stop = &stop;
                    scope.spawn(move || {
                        let mut sink = Recording::new(stop, ticked);
                        assert_eq!(source.run(&mut sink).unwrap().kernel_drops, 0);
                        sink.datas().map(number).collect::<Vec<_>>()
                    })
                })
                .collect();
            ticked.iter().for_each(wait_for);
            for s in 0..SENDERS {
                send_all(&mut sender(to), (s * EACH..(s + 1) * EACH).map(|i| block(i, 100)));
            }
            stop.store(true, Ordering::Release);
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (0..SENDERS * EACH).collect::<Vec<_>>());
    });
}

#[test]
fn a_multicast_group_is_received_once_joined() {
    for (address, group, other) in
        [("0.0.0.0:0", "239.1.2.3", "239.1.2.4"), ("[::]:0", "ff15::7", "ff15::8")]
    {
        in_namespace(|| {
            // The kernel loops what is sent back to this machine's members; IPv6 not on `lo`.
            cable();
            std::fs::write("/proc/sys/net/ipv6/conf/near/disable_ipv6", "0").unwrap();
            ip("address add 10.0.0.1/24 dev near");
            ip("-6 address add fd00::1/64 dev near nodad");
            let group: IpAddr = group.parse().unwrap();
            let joined = Group { address: group, interface: Some("near".into()) };
            let source = bind(&UdpOptions { group: Some(joined), ..options(address) });
            assert!(source.interface().name.contains(&group.to_string()));
            // Somebody else on this machine joins another group; that must not let it in here.
            let bystander =
                Group { address: other.parse().unwrap(), interface: Some("near".into()) };
            let _bystander = bind(&UdpOptions { group: Some(bystander), ..options(address) });
            let (summary, told) = receive_with(
                source,
                |_| (),
                |to| {
                    for (i, target) in [other.parse().unwrap(), group].into_iter().enumerate() {
                        let target = SocketAddr::new(target, to.port());
                        let mut sender = UdpSender::connect(target, Some("near")).unwrap();
                        send_all(&mut sender, [block(i as u64, 64)]);
                    }
                },
            );
            assert_eq!(summary.delivered, 1, "{group}");
            assert_eq!(datas(&told), [block(1, 64)]);
        });
    }
}

#[test]
fn what_a_full_sink_refuses_is_counted() {
    in_namespace(|| {
        let source = bind(&options(LOCAL));
        let sent = send_all(&mut sender(source.address()), (0..50).map(|i| block(i, 20)));
        let stop = AtomicBool::new(false);
        let mut sink = Recording { packets_max: 30, ..Recording::new(&stop, &stop) };
        let summary = source.run(&mut sink).unwrap();
        assert_eq!((summary.delivered, summary.refused), (30, sent - 30));
        assert_eq!(summary.received + summary.kernel_drops, sent);
    });
}

#[test]
fn wrong_options_and_a_taken_port_are_refused_with_what_to_do() {
    in_namespace(|| {
        let refused = |options: &UdpOptions| UdpSource::bind(options).unwrap_err().to_string();
        let group = |address: &str, interface: Option<&str>| {
            Some(Group {
                address: address.parse().unwrap(),
                interface: interface.map(str::to_owned),
            })
        };
        let any = options("0.0.0.0:0");
        for (wrong, part) in [
            (UdpOptions { queues: 0, ..any.clone() }, "at least 1"),
            (UdpOptions { group: group("10.0.0.1", None), ..any.clone() }, "224.0.0.0/4"),
            (UdpOptions { group: group("ff02::1", None), ..any.clone() }, "IPv4 or IPv6"),
            (UdpOptions { group: group("239.1.1.1", None), queues: 2, ..any.clone() }, "1 queue"),
            (UdpOptions { group: group("239.1.1.1", Some("away")), ..any }, "ip link show"),
            (options("192.0.2.1:5000"), "ip address"),
        ] {
            let message = refused(&wrong);
            assert!(message.contains(part), "{message}");
        }
        let first = bind(&options(LOCAL));
        let message = refused(&UdpOptions::new(first.address()));
        assert!(message.contains("ss -ulnp"), "{message}");
    });
}

#[test]
fn a_buffer_that_the_kernel_does_not_give_is_a_warning() {
    in_namespace(|| {
        let huge = UdpOptions { recv_buffer_bytes: 3 << 30, ..options(LOCAL) };
        let bound = UdpSource::bind(&huge).unwrap();
        assert!(bound.warnings[0].to_string().contains("net.core.rmem_max"));
        let small = UdpOptions { recv_buffer_bytes: 100_000, ..options(LOCAL) };
        assert_eq!(UdpSource::bind(&small).unwrap().warnings, []);
    });
}
