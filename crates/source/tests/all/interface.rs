//! Captures on virtual cables in network namespaces, with traffic whose every frame is numbered.
//! Needs root, as capturing does.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::namespace::{
    Recording, Told, cable, frame, in_namespace, in_namespace_alone, ip, number, send_all, sender,
    wait_for,
};
use format::{LinkType, Packet};
use longtake_source::filter::Program;
use longtake_source::interface::{
    Capture, Fanout, InterfaceError, InterfaceOptions, InterfaceSummary, InterfaceWarning,
    LinkEvent, Queue,
};
use longtake_source::pace::Pace;
use longtake_source::replay::Replay;
use longtake_source::{Loss, Sink};

type Run = Result<InterfaceSummary, InterfaceError>;

/// Captures with `queue` while `traffic` runs, then stops; `set` prepares the sink.
fn capture_with(
    queue: Queue,
    set: impl FnOnce(&mut Recording<'_>) + Send,
    traffic: impl FnOnce(),
) -> (Run, Vec<Told>) {
    capture_watched(queue, set, |_| traffic())
}

/// A capture under way, as its traffic sees it.
struct Watched<'w> {
    ticked: &'w AtomicBool,
    over: &'w AtomicBool,
}

impl Watched<'_> {
    /// Waits until it has looked at its socket: between the first tick and the third lies a poll.
    fn has_looked(&self) {
        for _ in 0..3 {
            self.ticked.store(false, Ordering::Release);
            wait_for(self.ticked);
        }
    }
}

/// The same for traffic that has to know how far the capture is.
fn capture_watched(
    queue: Queue,
    set: impl FnOnce(&mut Recording<'_>) + Send,
    traffic: impl FnOnce(&Watched<'_>),
) -> (Run, Vec<Told>) {
    let [stop, ticked, over] = [const { AtomicBool::new(false) }; 3];
    thread::scope(|scope| {
        let capturing = scope.spawn(|| {
            let mut sink = Recording::new(&stop, &ticked);
            set(&mut sink);
            let run = queue.run(&mut sink);
            over.store(true, Ordering::Release);
            (run, sink.told)
        });
        wait_for(&ticked);
        let watched = Watched { ticked: &ticked, over: &over };
        // Also when the traffic panics, so that the capture doesn't hold the test.
        let traffic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| traffic(&watched)));
        stop.store(true, Ordering::Release);
        let captured = capturing.join().unwrap();
        if let Err(panic) = traffic {
            std::panic::resume_unwind(panic);
        }
        captured
    })
}

fn capture(options: &InterfaceOptions, traffic: impl FnOnce()) -> (Run, Vec<Told>) {
    let mut queues = Capture::open(options).unwrap().queues;
    capture_with(queues.remove(0), |_| (), traffic)
}

fn frames(count: u64, length: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |i| frame(i, length, &[]))
}

fn datas(told: &[Told]) -> Vec<&[u8]> {
    told.iter().filter_map(Told::data).collect()
}

fn recording<'s>(told: Vec<Told>, flag: &'s AtomicBool) -> Recording<'s> {
    Recording { told, ..Recording::new(flag, flag) }
}

#[test]
fn everything_sent_is_delivered_in_order_or_accounted_for() {
    const COUNT: u64 = 100_000;
    in_namespace_alone(|| {
        cable();
        let (run, told) = capture(&InterfaceOptions::new("far"), || {
            assert_eq!(send_all(&mut sender("near"), frames(COUNT, 200)), COUNT);
        });
        let summary = run.unwrap();
        assert!(summary.balances(), "{summary:?}");
        assert!(summary.delivered > COUNT / 2, "{summary:?}");
        assert_eq!(
            summary.delivered + summary.kernel_drops + summary.interface_drops,
            COUNT,
            "{summary:?}"
        );
        let flag = AtomicBool::new(false);
        let recording = recording(told, &flag);
        assert_eq!(recording.datas().count() as u64, summary.delivered);
        assert_eq!(recording.lost(Loss::KernelRing), summary.kernel_drops);
        assert_eq!(recording.lost(Loss::Interface), summary.interface_drops);
        recording.assert_no_loss_is_told_late(number, summary.interface_drops);
        assert!(recording.timestamps().is_sorted());
        for data in recording.datas() {
            assert_eq!(data, frame(number(data), 200, &[]));
        }
    });
}

#[test]
fn several_queues_share_the_packets_out_and_none_comes_twice() {
    const COUNT: u64 = 30_000;
    for fanout in [Fanout::LoadBalance, Fanout::Hash, Fanout::Cpu, Fanout::QueueMapping] {
        in_namespace_alone(|| {
            cable();
            let options = InterfaceOptions {
                queues: 3,
                fanout,
                ring_bytes: 16 << 20,
                ..InterfaceOptions::new("far")
            };
            let queues = Capture::open(&options).unwrap().queues;
            let stop = AtomicBool::new(false);
            let ticked: Vec<AtomicBool> = (0..3).map(|_| AtomicBool::new(false)).collect();
            let results: Vec<(Run, Vec<Told>)> = thread::scope(|scope| {
                let threads: Vec<_> = queues
                    .into_iter()
                    .zip(&ticked)
                    .map(|(queue, ticked)| {
                        let stop = &stop;
                        scope.spawn(move || {
                            let mut sink = Recording::new(stop, ticked);
                            (queue.run(&mut sink), sink.told)
                        })
                    })
                    .collect();
                ticked.iter().for_each(wait_for);
                send_all(&mut sender("near"), frames(COUNT, 100));
                stop.store(true, Ordering::Release);
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            let mut accounted = 0;
            let mut numbers = Vec::new();
            for (run, told) in &results {
                let summary = run.as_ref().unwrap();
                assert!(summary.balances());
                accounted += summary.delivered + summary.kernel_drops + summary.interface_drops;
                let own: Vec<u64> = datas(told).into_iter().map(number).collect();
                assert!(own.is_sorted());
                assert!(fanout != Fanout::LoadBalance || own.len() as u64 > COUNT / 6);
                numbers.extend(own);
            }
            assert_eq!(accounted, COUNT, "{fanout:?}");
            numbers.sort_unstable();
            let total = numbers.len();
            numbers.dedup();
            assert_eq!(numbers.len(), total, "{fanout:?}: a packet came twice");
        });
    }
}

#[test]
fn a_full_ring_drops_and_the_account_balances_to_the_packet() {
    const COUNT: u64 = 20_000;
    in_namespace(|| {
        cable();
        let options = InterfaceOptions {
            ring_bytes: 4 * 4096,
            block_bytes: 4096,
            snap_length: 128,
            ..InterfaceOptions::new("far")
        };
        let queue = Capture::open(&options).unwrap().queues.remove(0);
        let slow = |sink: &mut Recording<'_>| sink.pause = Duration::from_micros(100);
        let (run, told) = capture_with(queue, slow, || {
            for burst in 0..20 {
                let numbers = burst * COUNT / 20..(burst + 1) * COUNT / 20;
                send_all(&mut sender("near"), numbers.map(|i| frame(i, 100, &[])));
                thread::sleep(Duration::from_millis(10));
            }
        });
        let summary = run.unwrap();
        assert!(summary.balances());
        assert!(summary.kernel_drops > 0 && summary.ring_full > 0, "{summary:?}");
        assert_eq!(summary.delivered + summary.kernel_drops + summary.interface_drops, COUNT);
        let flag = AtomicBool::new(false);
        let recording = recording(told, &flag);
        assert_eq!(recording.lost(Loss::KernelRing), summary.kernel_drops);
        recording.assert_no_loss_is_told_late(number, summary.interface_drops);
    });
}

#[test]
fn what_the_kernels_backlog_has_no_room_for_is_lost_at_the_interface() {
    if thread::available_parallelism().unwrap().get() < 2 {
        // One processor takes in what it sends before it sends more.
        return;
    }
    // Only the first namespace shows it; 1000 is the kernel's own.
    let backlog = std::fs::read_to_string("/proc/sys/net/core/netdev_max_backlog");
    let backlog = backlog.map_or(1000, |text| text.trim().parse().unwrap());
    in_namespace_alone(|| {
        cable();
        // Packets go over to processor 0, through its backlog, and the sender stays on others.
        let steer = "mount -t sysfs none /sys && echo 1 > /sys/class/net/far/queues/rx-0/rps_cpus";
        let steered = Command::new("unshare").args(["-m", "sh", "-c", steer]).status().unwrap();
        assert!(steered.success());
        // However fast processor 0 is: each of these looks at most of a packet before it refuses it, so that taking
        // a packet in takes many times as long as sending it.
        let slow = InterfaceOptions {
            filter: refuses_slowly(),
            snap_length: 128,
            ring_bytes: 4 * 4096,
            block_bytes: 4096,
            ..InterfaceOptions::new("far")
        };
        let _slow: Vec<Capture> = (0..32).map(|_| Capture::open(&slow).unwrap()).collect();
        let queue = Capture::open(&InterfaceOptions::new("far")).unwrap().queues.remove(0);
        let (run, told) = capture_with(
            queue,
            |sink| sink.keep = 0,
            || {
                stay_off_processor_0();
                // Many, because one socket's send buffer holds fewer frames than the backlog does.
                let mut senders: Vec<_> =
                    (0..(backlog / 20 + 1).min(500)).map(|_| sender("near")).collect();
                for round in 0..20 {
                    for (port, sender) in (0..).zip(&mut senders) {
                        send_all(sender, (0..20).map(|_| udp_frame(port)));
                    }
                    if round > 1 && received("far").1 > 0 {
                        break;
                    }
                }
                wait_for_the_backlog();
            },
        );
        let run = run.unwrap();
        let flag = AtomicBool::new(false);
        assert_eq!(recording(told, &flag).lost(Loss::Interface), run.interface_drops);
        let (packets, dropped) = received("far");
        assert!(dropped > 0);
        assert_eq!(run.interface_drops, dropped);
        assert_eq!(run.received_by_kernel, packets);
    });
}

/// A filter that [`udp_frame`] meets nowhere, in about a thousand steps.
fn refuses_slowly() -> String {
    let steps = (22..58).flat_map(|at| (200..228).map(move |v| format!("ether[{at}] = {v}")));
    steps.collect::<Vec<_>>().join(" or ")
}

/// The interface's counters of packets received and dropped, as `ip` shows them.
fn received(name: &str) -> (u64, u64) {
    let shown = ip(&format!("-s link show {name}"));
    let counters: Vec<u64> = shown
        .lines()
        .skip_while(|line| !line.contains("RX:"))
        .nth(1)
        .map(|line| line.split_whitespace().map(|n| n.parse().unwrap()).collect())
        .unwrap();
    let [_bytes, packets, _errors, dropped, ..] = counters[..] else { panic!("{shown}") };
    (packets, dropped)
}

/// Waits until no packet waits for a processor (`softnet_data` in `/proc/net/softnet_stat`: the twelfth column of each
/// processor counts what is in its two queues).
fn wait_for_the_backlog() {
    let waiting = |line: &str| {
        let count = line.split_whitespace().nth(11).expect("twelve columns");
        count.bytes().any(|digit| digit != b'0')
    };
    for _ in 0..120_000 {
        let counts = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
        // The one just taken out of the queue is still on its way.
        thread::sleep(Duration::from_millis(1));
        if !counts.lines().any(waiting) {
            return;
        }
    }
    panic!("the backlog does not empty");
}

fn stay_off_processor_0() {
    // SAFETY: all zero is the empty set.
    let mut processors: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set outlives the call; 0 is the calling thread.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&processors), &mut processors) };
    assert_eq!(got, 0);
    // SAFETY: 0 is below the set's size.
    unsafe { libc::CPU_CLR(0, &mut processors) };
    // SAFETY: as above.
    let set = unsafe { libc::sched_setaffinity(0, size_of_val(&processors), &processors) };
    assert_eq!(set, 0);
}

/// An IPv4 UDP frame of 60 bytes from `port`, which packet steering can tell flows by.
fn udp_frame(port: u16) -> Vec<u8> {
    const LENGTH: u16 = 46;
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0]);
    frame.extend(LENGTH.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9]);
    frame.extend((LENGTH - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(14 + usize::from(LENGTH), 0);
    frame
}

#[test]
fn vlan_tags_that_the_kernel_takes_out_are_put_back() {
    in_namespace(|| {
        cable();
        let tags = [[0x88, 0xa8, 0x00, 0x07], [0x81, 0x00, 0x60, 0x05]];
        let sent = [
            frame(0, 90, &[]),
            frame(1, 90, &tags[1..]),
            frame(2, 90, &tags),
            frame(3, 90, &tags[..1]),
        ];
        let (run, told) = capture(&InterfaceOptions::new("far"), || {
            send_all(&mut sender("near"), sent.clone());
        });
        assert_eq!(run.unwrap().delivered, 4);
        assert_eq!(datas(&told), sent);
        for told in &told {
            assert!(matches!(told, Told::Packet { original_length: 90, .. }), "{told:?}");
        }
    });
}

#[test]
fn a_frame_is_cut_to_the_snap_length_with_its_tag_counted() {
    in_namespace(|| {
        cable();
        let options = InterfaceOptions { snap_length: 64, ..InterfaceOptions::new("far") };
        let sent = [frame(0, 500, &[]), frame(1, 500, &[[0x81, 0, 0, 5]]), frame(2, 60, &[])];
        let (run, told) = capture(&options, || {
            send_all(&mut sender("near"), sent.clone());
        });
        assert_eq!(run.unwrap().delivered, 3);
        assert_eq!(datas(&told), [&sent[0][..64], &sent[1][..64], &sent[2][..]]);
        assert!(matches!(told[1], Told::Packet { original_length: 500, .. }));
    });
}

#[test]
fn a_filter_runs_in_the_kernel_and_refuses_without_a_count() {
    in_namespace(|| {
        cable();
        let options =
            InterfaceOptions { filter: "ether[21] = 7".into(), ..InterfaceOptions::new("far") };
        let (run, told) = capture(&options, || {
            send_all(&mut sender("near"), frames(256, 60));
        });
        let summary = run.unwrap();
        assert_eq!((summary.received_by_kernel, summary.delivered, summary.filtered), (1, 1, 0));
        assert_eq!(number(datas(&told)[0]), 7);
    });
}

#[test]
fn a_filter_about_vlan_tags_runs_here_and_counts_what_it_refuses() {
    in_namespace(|| {
        cable();
        let options = InterfaceOptions { filter: "vlan 5".into(), ..InterfaceOptions::new("far") };
        let mut capture = Capture::open(&options).unwrap();
        assert_eq!(
            capture.warnings,
            [InterfaceWarning::FilterInUserSpace { filter: "vlan 5".into() }]
        );
        let tag = |id| [0x81, 0, 0, id];
        let wanted = frame(9, 80, &[tag(5)]);
        let (run, told) = capture_with(
            capture.queues.remove(0),
            |_| (),
            || {
                let others = [frame(0, 80, &[]), frame(1, 80, &[tag(6)])];
                send_all(&mut sender("near"), others.into_iter().chain([wanted.clone()]));
            },
        );
        let summary = run.unwrap();
        assert!(summary.balances());
        assert_eq!((summary.delivered, summary.filtered), (1, 2));
        assert_eq!(datas(&told), [&wanted[..]]);
        let flag = AtomicBool::new(false);
        assert_eq!(recording(told, &flag).lost(Loss::Filtered), 2);
    });
}

#[test]
fn a_wrong_filter_is_refused_before_anything_is_captured() {
    in_namespace(|| {
        cable();
        let options = InterfaceOptions { filter: "tcpp".into(), ..InterfaceOptions::new("far") };
        let error = Capture::open(&options).unwrap_err();
        assert!(error.to_string().contains("man pcap-filter"), "{error}");
    });
}

#[test]
fn promiscuous_mode_lasts_as_long_as_the_capture() {
    in_namespace(|| {
        cable();
        let is_promiscuous = || {
            let shown = ip("-d link show far");
            let (_, count) = shown.split_once("promiscuity ").unwrap();
            count.split_whitespace().next() != Some("0")
        };
        assert!(!is_promiscuous());
        let options = InterfaceOptions { promiscuous: true, ..InterfaceOptions::new("far") };
        let capture = Capture::open(&options).unwrap();
        assert!(is_promiscuous());
        drop(capture);
        // A process that another test is starting holds a copy of the socket until it becomes `ip`.
        assert!((0..1000).any(|_| !is_promiscuous()));
    });
}

#[test]
fn a_deleted_interface_ends_the_capture_with_all_that_came_before() {
    in_namespace(|| {
        cable();
        let queue = Capture::open(&InterfaceOptions::new("far")).unwrap().queues.remove(0);
        let (run, told) = capture_watched(
            queue,
            |_| (),
            |watched| {
                send_all(&mut sender("near"), frames(100, 60));
                ip("link del far");
                // The capture ends by itself.
                wait_for(watched.over);
            },
        );
        let error = run.unwrap_err();
        assert!(error.to_string().contains("'far' was deleted"), "{error}");
        let InterfaceError::Gone { summary, .. } = error else { panic!("{error}") };
        assert!(summary.balances());
        assert_eq!(summary.delivered, 100);
        assert_eq!(datas(&told).len(), 100);
    });
}

/// The kernel gives an interface its carrier back some time after its peer has come up.
fn wait_until_up(name: &str) {
    for _ in 0..12_000 {
        if ip(&format!("link show {name}")).contains("state UP") {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{name} does not come up");
}

#[test]
fn an_interface_that_goes_down_and_comes_back_is_captured_on() {
    for queues in [1, 2] {
        in_namespace(|| {
            cable();
            let options = InterfaceOptions {
                queues,
                fanout: Fanout::LoadBalance,
                ..InterfaceOptions::new("far")
            };
            let mut queues = Capture::open(&options).unwrap().queues;
            let first = queues.remove(0);
            let (run, told) = capture_watched(
                first,
                |_| (),
                |watched| {
                    send_all(&mut sender("near"), frames(10, 60));
                    ip("link set far down");
                    watched.has_looked();
                    ip("link set far up");
                    wait_until_up("near");
                    watched.has_looked();
                    send_all(&mut sender("near"), (10..20).map(|i| frame(i, 60, &[])));
                },
            );
            let summary = run.unwrap();
            assert!(summary.balances());
            assert_eq!(summary.delivered, 20 / (1 + queues.len() as u64));
            assert!(
                matches!(
                    summary.events[..],
                    [LinkEvent::WentDown { at: down }, LinkEvent::CameBack { at: up }] if down < up
                ),
                "{:?}",
                summary.events
            );
            assert!(number(datas(&told).last().unwrap()) >= 18);
        });
    }
}

#[test]
fn a_capture_goes_on_without_the_privileges_that_opening_it_took() {
    /// `nobody`.
    const USER: libc::uid_t = 65_534;
    in_namespace(|| {
        cable();
        let queue = Capture::open(&InterfaceOptions::new("far")).unwrap().queues.remove(0);
        let drop_privileges = |_: &mut Recording<'_>| {
            // SAFETY: takes and returns integers. The bare system call changes this thread alone.
            let dropped = unsafe { libc::syscall(libc::SYS_setresuid, USER, USER, USER) };
            assert_eq!(dropped, 0);
            let denied = Capture::open(&InterfaceOptions::new("far")).unwrap_err().to_string();
            assert!(denied.contains("CAP_NET_RAW"), "{denied}");
        };
        let (run, _) = capture_with(queue, drop_privileges, || {
            send_all(&mut sender("near"), frames(20, 60));
        });
        let summary = run.unwrap();
        assert_eq!((summary.delivered, summary.interface_drops), (20, 0));
    });
}

#[test]
fn what_a_full_sink_refuses_is_counted_and_the_account_still_balances() {
    in_namespace(|| {
        cable();
        let queue = Capture::open(&InterfaceOptions::new("far")).unwrap().queues.remove(0);
        let (run, told) = capture_with(
            queue,
            |sink| sink.packets_max = 40,
            || {
                send_all(&mut sender("near"), frames(64, 60));
            },
        );
        let summary = run.unwrap();
        assert!(summary.balances());
        assert_eq!(summary.delivered, 40);
        assert_eq!(datas(&told).len(), 40);
        // One batch is sent at once, but a block may be handed over in its middle; what comes after
        // the end is not part of the capture.
        assert!((1..=24).contains(&summary.refused), "{summary:?}");
    });
}

#[test]
fn on_the_loopback_interface_each_packet_is_captured_once() {
    for queues in [1, 2] {
        in_namespace(|| {
            let options = InterfaceOptions { queues, ..InterfaceOptions::new("lo") };
            let capture = Capture::open(&options).unwrap();
            let (stop, ticked) = (AtomicBool::new(false), [(); 2].map(|()| AtomicBool::new(false)));
            let total: u64 = thread::scope(|scope| {
                let threads: Vec<_> = capture
                    .queues
                    .into_iter()
                    .zip(&ticked)
                    .map(|(queue, ticked)| {
                        let stop = &stop;
                        scope.spawn(move || {
                            queue.run(&mut Recording::new(stop, ticked)).unwrap().delivered
                        })
                    })
                    .collect();
                ticked.iter().take(queues.into()).for_each(wait_for);
                send_all(&mut sender("lo"), frames(50, 60));
                stop.store(true, Ordering::Release);
                threads.into_iter().map(|t| t.join().unwrap()).sum()
            });
            assert_eq!(total, 50);
        });
    }
}

#[test]
fn an_interface_that_is_down_or_of_another_kind_is_told_from_one_that_is_not_there() {
    in_namespace(|| {
        ip("link add near type veth peer name far");
        let open = |name| Capture::open(&InterfaceOptions::new(name));
        let error = open("far").unwrap_err();
        assert!(error.to_string().contains("ip link set far up"), "{error}");
        assert!(matches!(open("away"), Err(InterfaceError::NoSuchInterface { .. })));
        ip("tuntap add mode tun tun0");
        ip("link set tun0 up");
        assert_eq!(open("tun0").unwrap().queues[0].interface().link_type, LinkType::RAW_IP);
    });
}

#[test]
fn without_hardware_time_stamps_the_kernels_are_used_with_a_warning() {
    in_namespace(|| {
        cable();
        let options =
            InterfaceOptions { hardware_timestamps: true, ..InterfaceOptions::new("far") };
        let mut capture = Capture::open(&options).unwrap();
        let warning = capture.warnings.remove(0).to_string();
        assert!(warning.contains("ethtool -T far"), "{warning}");
        let (run, told) = capture_with(
            capture.queues.remove(0),
            |_| (),
            || {
                send_all(&mut sender("near"), frames(1, 60));
            },
        );
        assert_eq!(run.unwrap().delivered, 1);
        let Told::Packet { timestamp, .. } = told[0] else { panic!("{told:?}") };
        assert!(timestamp > longtake_source::clock::now() - base::Duration::from_secs(60));
    });
}

#[test]
fn outgoing_frames_are_captured_unless_they_are_to_be_ignored() {
    in_namespace(|| {
        cable();
        for (ignore_outgoing, expected) in [(false, 30), (true, 0)] {
            let options = InterfaceOptions { ignore_outgoing, ..InterfaceOptions::new("near") };
            let (run, _) = capture(&options, || {
                send_all(&mut sender("near"), frames(30, 60));
            });
            assert_eq!(run.unwrap().delivered, expected);
        }
    });
}

#[test]
fn a_replay_puts_recorded_frames_back_on_the_wire_and_names_those_too_long() {
    in_namespace(|| {
        cable();
        let mut sent: Vec<Vec<u8>> = frames(50, 300).collect();
        sent.push(frame(50, 1514, &[]));
        sent.push(frame(51, 1518, &[[0x81, 0, 0, 5]]));
        sent.push(frame(52, 1600, &[]));
        let (run, told) = capture(&InterfaceOptions::new("far"), || {
            let stop = AtomicBool::new(false);
            let mut replay = Replay::new(sender("near"), Pace::recorded(1.0).unwrap(), &stop);
            let interface = format::Interface {
                name: "near".into(),
                description: String::new(),
                link_type: LinkType::ETHERNET,
                snap_length: 0,
                filter: String::new(),
                speed_bits: 0,
            };
            let interface = replay.interface(&interface);
            for (i, data) in sent.iter().enumerate() {
                let packet = Packet {
                    interface,
                    timestamp: base::Timestamp::from_nanos(i as u64 * 100_000),
                    original_length: data.len() as u32,
                    data,
                    options: &[],
                };
                replay.packet(&packet).unwrap();
            }
            let summary = replay.finish().unwrap();
            assert_eq!((summary.packets, summary.oversize), (52, 1));
            assert_eq!(summary.oversize_bytes_max, 1600);
        });
        assert_eq!(run.unwrap().delivered, 52);
        assert_eq!(datas(&told), sent[..52]);
    });
}

#[test]
fn a_tagged_connection_matches_a_plain_filter_as_it_does_in_tcpdump() {
    in_namespace(|| {
        cable();
        let filter = format!("ether proto {:#x}", crate::namespace::ETHERTYPE);
        let tagged = frame(1, 80, &[[0x81, 0, 0, 5]]);
        let here = Program::compile(&filter, LinkType::ETHERNET, 0).unwrap();
        assert!(!here.matches(&tagged, 80), "with its tag the frame is of type VLAN");
        let options = InterfaceOptions { filter, ..InterfaceOptions::new("far") };
        let (run, told) = capture(&options, || {
            send_all(&mut sender("near"), [tagged.clone()]);
        });
        assert_eq!(run.unwrap().delivered, 1);
        assert_eq!(datas(&told), [&tagged[..]]);
    });
}
