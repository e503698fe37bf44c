//! Every kind of capture file in, the same packets out, as tshark shows them; and raw streams, to the
//! byte.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::harness::captures::{Contents, Frame, capinfos, read, tshark};
use crate::harness::{
    Ended, Recorder, asked, line, longtake, new_in, number, own_address, run, scratch, tool,
    wait_until,
};
use tempfile::TempDir;

const SMALL: &str = "--members 1 --member-size 17MiB --segment 4MiB --memory 64MiB";

/// Numbers in one byte order or the other.
#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, n: u16) -> [u8; 2] {
        match self {
            Self::Little => n.to_le_bytes(),
            Self::Big => n.to_be_bytes(),
        }
    }
    fn u32(self, n: u32) -> [u8; 4] {
        match self {
            Self::Little => n.to_le_bytes(),
            Self::Big => n.to_be_bytes(),
        }
    }
}

/// Packets of many lengths, some cut, a few milliseconds and nanoseconds apart.
fn frames() -> Vec<Frame> {
    let frame = |n: u32| {
        let kept = 14 + (n * 37) % 1400;
        let mut data: Vec<u8> = (0..kept).map(|at| (at * 7 + n) as u8).collect();
        data[12..14].copy_from_slice(&[0x88, 0xb5]);
        let time = 1_700_000_000_000_000_000 + u64::from(n) * 3_000_111;
        let original_length = if n.is_multiple_of(5) { kept + 100 } else { kept };
        Frame { time, original_length, data, interface: 0 }
    };
    (0..200).map(frame).collect()
}

/// A classic pcap file.
fn pcap(order: Order, nanoseconds: bool, frames: &[Frame]) -> Vec<u8> {
    let (magic, per_s) =
        if nanoseconds { (0xA1B2_3C4D, 1_000_000_000) } else { (0xA1B2_C3D4, 1_000_000) };
    let mut file = order.u32(magic).to_vec();
    file.extend([order.u16(2), order.u16(4)].concat());
    file.extend([order.u32(0), order.u32(0), order.u32(65_535), order.u32(1)].concat());
    for frame in frames {
        let ticks = frame.time / (1_000_000_000 / per_s);
        for field in [
            (ticks / per_s) as u32,
            (ticks % per_s) as u32,
            frame.data.len() as u32,
            frame.original_length,
        ] {
            file.extend(order.u32(field));
        }
        file.extend(&frame.data);
    }
    file
}

/// A block of a pcapng file.
fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = order.u32((12 + body.len() + padding) as u32);
    [&order.u32(kind)[..], &length, body, &vec![0; padding], &length].concat()
}

fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [order.u16(code), order.u16(value.len() as u16)].concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

/// A section whose interfaces are called `name`0 and so on, each with its resolution (`if_tsresol`);
/// packets take turns.
fn section(order: Order, name: &str, resolutions: &[u8], frames: &[Frame]) -> Vec<u8> {
    let mut body = order.u32(0x1A2B_3C4D).to_vec();
    body.extend([order.u16(1), order.u16(0)].concat());
    body.extend([0xff; 8]);
    let mut file = block(order, 0x0A0D_0D0A, &body);
    for (at, &resolution) in resolutions.iter().enumerate() {
        let mut body = [order.u16(1), order.u16(0)].concat();
        body.extend(order.u32(0));
        body.extend(option(order, 2, format!("{name}{at}").as_bytes()));
        body.extend(option(order, 9, &[resolution]));
        body.extend(option(order, 0, &[]));
        file.extend(block(order, 1, &body));
    }
    for (at, frame) in frames.iter().enumerate() {
        let interface = at % resolutions.len();
        let ticks = match resolutions[interface] {
            binary @ 0x80.. => {
                (u128::from(frame.time) << (binary & 0x7f)).div_ceil(1_000_000_000) as u64
            }
            decimal => frame.time / 10u64.pow(9 - u32::from(decimal)),
        };
        let mut body = order.u32(interface as u32).to_vec();
        body.extend([order.u32((ticks >> 32) as u32), order.u32(ticks as u32)].concat());
        body.extend(order.u32(frame.data.len() as u32));
        body.extend(order.u32(frame.original_length));
        body.extend(&frame.data);
        file.extend(block(order, 6, &body));
    }
    file
}

/// What tshark shows of every packet; times with nine digits, whatever the file's resolution.
fn shown(file: &Path, names: bool) -> Vec<String> {
    let mut fields = vec!["-T", "fields"];
    for field in ["frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_name"] {
        if names || field != "frame.interface_name" {
            fields.extend(["-e", field]);
        }
    }
    let nine_digits = |line: String| {
        let (time, rest) = line.split_once('\t').expect("there are fields");
        let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
        format!("{whole}.{fraction:0<9}\t{rest}")
    };
    tshark(file, &fields).into_iter().map(nine_digits).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a scratch path is text")
}

/// Each packet's interface.
fn interface_names(contents: &Contents) -> Vec<&str> {
    let name = |f: &Frame| contents.interfaces[f.interface as usize].name.as_str();
    contents.frames.iter().map(name).collect()
}

/// Records the file and compares what comes back, as pcapng and as pcap.
fn goes_round(folder: &TempDir, name: &str, original: &Path, names: bool) {
    let array = new_in(folder, &format!("array-{name}.d"));
    let record = format!("record -q --from {} --to @ {SMALL}", text(original));
    line(&record, &array).code(0);
    let (expected, whole) = (shown(original, names), read(original));
    assert_eq!(expected.len(), whole.frames.len());
    for kind in ["pcapng", "pcap"] {
        let file = new_in(folder, &format!("{name}-extract.{kind}"));
        line(&format!("extract @ -q -o {}", text(&file)), &array).code(0);
        let (mut found, mut expected) = (shown(&file, names), expected.clone());
        if names && kind == "pcap" {
            // It has no room for them.
            for line in found.iter_mut().chain(&mut expected) {
                line.truncate(line.rfind('\t').expect("there are fields"));
            }
        }
        let differs = found.iter().zip(&expected).find(|(f, e)| f != e);
        assert_eq!(differs, None, "{name} as {kind}");
        assert_eq!(found.len(), expected.len(), "{name} as {kind}");
        assert_eq!(capinfos(&file), expected.len() as u64);
        let found = read(&file);
        let data = found.frames.iter().map(|f| &f.data);
        assert!(data.eq(whole.frames.iter().map(|f| &f.data)), "{name}: bytes");
        if kind == "pcapng" {
            assert_eq!(interface_names(&found), interface_names(&whole), "{name}");
        }
    }
    let takes = asked("takes @", &array);
    assert_eq!(number(&takes[0], "on_media.packets"), expected.len() as u64);
}

/// Writes a file to be recorded.
fn written(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let file = new_in(folder, name);
    fs::write(&file, bytes).expect("there is space");
    file
}

#[test]
fn every_pcap_comes_back_as_it_was() {
    let folder = scratch();
    for (order, nanoseconds, name) in [
        (Order::Little, false, "little-us.pcap"),
        (Order::Little, true, "little-ns.pcap"),
        (Order::Big, false, "big-us.pcap"),
        (Order::Big, true, "big-ns.pcap"),
    ] {
        let original = written(&folder, name, &pcap(order, nanoseconds, &frames()));
        goes_round(&folder, name, &original, false);
    }
}

#[test]
fn every_pcapng_comes_back_as_it_was() {
    let folder = scratch();
    let frames = frames();
    let (first, second) = frames.split_at(90);
    use Order::{Big, Little};
    for (name, file) in [
        ("little-ns", section(Little, "eth", &[9], &frames)),
        ("big-us", section(Big, "eth", &[6], &frames)),
        ("binary", section(Little, "eth", &[0x80 | 24], &frames)),
        ("interfaces", section(Little, "eth", &[9, 6, 3], &frames)),
        (
            "sections",
            [section(Little, "a", &[9], first), section(Big, "b", &[6, 9], second)].concat(),
        ),
        ("twice", [section(Big, "a", &[9], first), section(Big, "a", &[9], second)].concat()),
    ] {
        let original = written(&folder, &format!("{name}.pcapng"), &file);
        // tshark 4.0 shows the first section's interface names for all.
        goes_round(&folder, name, &original, !matches!(name, "sections" | "twice"));
    }
}

#[test]
fn what_editcap_and_mergecap_write_comes_back_as_it_was() {
    let folder = scratch();
    let base = written(&folder, "base.pcap", &pcap(Order::Little, true, &frames()));
    // The third is a patched variant of the nineties, with longer packet headers.
    for kind in ["pcap", "nsecpcap", "modpcap", "pcapng"] {
        let file = new_in(&folder, &format!("editcap.{kind}.cap"));
        run(tool("editcap", "wireshark-common").args(["-F", kind]).args([&base, &file])).code(0);
        goes_round(&folder, kind, &file, false);
    }
    let other = section(Order::Big, "wan", &[9], &frames()[20..120]);
    let other = written(&folder, "other.pcapng", &other);
    let merged = new_in(&folder, "merged.pcapng");
    let mut mergecap = tool("mergecap", "wireshark-common");
    run(mergecap.arg("-w").args([&merged, &base, &other])).code(0);
    goes_round(&folder, "merged", &merged, false);
}

#[test]
fn two_link_types_do_not_go_into_one_pcap_and_that_is_said() {
    let folder = scratch();
    let mut file = section(Order::Little, "eth", &[9], &frames()[..10]);
    let mut other = section(Order::Little, "raw", &[9], &frames()[..10]);
    // The interface description of the second section: LINKTYPE_RAW.
    other[28 + 8..28 + 10].copy_from_slice(&101u16.to_le_bytes());
    file.extend(other);
    let original = written(&folder, "two.pcapng", &file);
    let array = new_in(&folder, "array");
    line(&format!("record -q --from {} --to @ {SMALL}", text(&original)), &array).code(0);
    let output = new_in(&folder, "extract.pcap");
    let ran = line(&format!("extract @ -q -o {}", text(&output)), &array).code(1);
    ran.says(&["one link type", "extract as pcapng"]);
    let output = new_in(&folder, "extract.pcapng");
    line(&format!("extract @ -q -o {}", text(&output)), &array).code(0);
    assert_eq!(shown(&output, false), shown(&original, false));
    assert_eq!(interface_names(&read(&output)), interface_names(&read(&original)));
}

#[test]
fn a_capture_through_a_pipe_is_the_same_as_from_a_file() {
    let folder = scratch();
    let original = written(&folder, "file.pcapng", &section(Order::Big, "eth", &[9, 6], &frames()));
    let array = new_in(&folder, "array");
    let program = longtake().get_program().to_owned();
    let mut shell = tool("sh", "dash");
    shell.args([
        "-c",
        r#"cat "$1" | "$0" record -q --from pcap:- --to "$2" --member-size 65MiB --memory 64MiB"#,
    ]);
    run(shell.arg(program).args([&original, &array])).code(0);
    let file = new_in(&folder, "extract.pcapng");
    line(&format!("extract @ -q -o {}", text(&file)), &array).code(0);
    assert_eq!(shown(&file, true), shown(&original, true));
    let ran = line("extract @ -q -o -", &array).code(0);
    assert_eq!(ran.stdout, fs::read(&file).expect("it was extracted"), "standard output");
}

/// Bytes that don't repeat soon.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = base::random::Random::new(seed);
    (0..length.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes()).take(length).collect()
}

/// The blocks of a recorded stream, one after the other.
fn concatenated(folder: &TempDir, array: &Path) -> Vec<u8> {
    let file = new_in(folder, "stream.pcapng");
    line(&format!("extract @ -q -y -o {}", text(&file)), array).code(0);
    assert_eq!(tshark(&file, &["-c", "1", "-T", "fields", "-e", "frame.encap_type"]), ["45"]);
    read(&file).frames.into_iter().flat_map(|f| f.data).collect()
}

/// An address of this host that nobody uses at the moment.
fn free_address() -> String {
    let socket = TcpListener::bind(own_address()).expect("there is a free port");
    socket.local_addr().expect("it is bound").to_string()
}

#[test]
fn raw_streams_come_back_to_the_byte() {
    let folder = scratch();
    let sent = noise(7_654_321, 1);

    let array = new_in(&folder, "stdin");
    let mut record = longtake();
    record.args(["record", "--json", "--member-size", "65MiB", "--from", "-", "--to"]);
    let mut recorder = Recorder::launch(record.arg(&array).stdin(Stdio::piped()));
    recorder.stdin().write_all(&sent).expect("it reads");
    recorder.close_stdin();
    recorder.end().code(0);
    assert!(concatenated(&folder, &array) == sent, "standard input");

    let (array, fifo) = (new_in(&folder, "fifo"), new_in(&folder, "the.fifo"));
    run(tool("mkfifo", "coreutils").arg(&fifo)).code(0);
    let source = format!("pipe:{},block=1000", text(&fifo));
    let mut record = longtake();
    record.args(["record", "--json", "--member-size", "65MiB", "--from", &source]);
    // A block is as long as it comes to be if its sender rests for an eighth of this.
    record.args(["--flush-interval", "60s", "--to"]);
    let recorder = Recorder::launch(record.arg(&array));
    fs::write(&fifo, &sent).expect("it reads");
    recorder.end().code(0);
    assert!(concatenated(&folder, &array) == sent, "a fifo");
    let takes = asked("takes @", &array);
    assert_eq!(number(&takes[0], "on_media.packets"), 7655, "blocks of 1000 bytes and the rest");
}

#[test]
fn tcp_streams_come_back_to_the_byte() {
    let folder = scratch();
    let sent = noise(5_432_101, 2);

    let array = new_in(&folder, "listening");
    let address = free_address();
    let recorder = Recorder::start(&format!("--from tcp-listen:{address} --to @ {SMALL}"), &array);
    let mut stream = TcpStream::connect(&address).expect("it listens");
    stream.write_all(&sent).expect("it reads");
    drop(stream);
    recorder.end().code(0);
    assert!(concatenated(&folder, &array) == sent, "a sender that connects");

    let array = new_in(&folder, "connecting");
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it is bound");
    let mut record = longtake();
    record.args(["record", "--json", "--member-size", "65MiB", "--from"]);
    let recorder = Recorder::launch(record.arg(format!("tcp:{address}")).arg("--to").arg(&array));
    let (mut stream, _) = listener.accept().expect("it connects");
    stream.write_all(&sent).expect("it reads");
    drop(stream);
    recorder.end().code(0);
    assert!(concatenated(&folder, &array) == sent, "a sender that listens");
}

/// A UDP recording that has been offered so many datagrams, ended.
fn stop_after(mut recorder: Recorder, datagrams: u64) -> Ended {
    wait_until("all have come", || {
        recorder.look();
        let progress = recorder.events.iter().rev().find(|e| e["event"] == "progress");
        progress.is_some_and(|p| number(p, "offered_packets") == datagrams)
    });
    let ended = recorder.stop().code(0);
    assert_eq!(number(ended.event("finished"), "ledger.stored.packets"), datagrams);
    ended
}

#[test]
fn udp_datagrams_come_back_one_by_one() {
    for (option, link_type, headers) in [("", 101, 28), (",headers=off", 147, 0)] {
        let folder = scratch();
        let array = new_in(&folder, "array");
        let address = free_address();
        let source = format!("--from udp:{address}{option} --to @ {SMALL}");
        let recorder = Recorder::start(&source, &array);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
        let sent: Vec<Vec<u8>> = (0..2000).map(|n| noise(1 + (n * 31) % 9000, n as u64)).collect();
        for datagram in &sent {
            socket.send_to(datagram, &address).expect("it fits");
        }
        let ended = stop_after(recorder, sent.len() as u64);
        // The wire lengths are those of the packets that were stored, headers and all.
        let wire: usize = sent.iter().map(|datagram| headers + datagram.len()).sum();
        assert_eq!(number(ended.event("finished"), "ledger.stored.bytes"), wire as u64);
        let file = new_in(&folder, "extract.pcapng");
        line(&format!("extract @ -q -o {}", text(&file)), &array).code(0);
        let Contents { interfaces, frames } = read(&file);
        assert_eq!(interfaces[0].link_type.0, link_type);
        assert!(frames.iter().map(|f| &f.data[headers..]).eq(sent.iter().map(Vec::as_slice)));
        assert!(frames.windows(2).all(|w| w[0].time <= w[1].time));
        // Raw output holds what was sent, whether or not headers were made.
        let raw = new_in(&folder, "extract.raw");
        line(&format!("extract @ -q -o {}", text(&raw)), &array).code(0);
        assert!(fs::read(&raw).expect("it was written") == sent.concat(), "{option}");
    }
}

#[test]
fn tshark_shows_who_sent_each_datagram_to_whom() {
    let folder = scratch();
    let mut seen = Vec::new();
    for (at, local) in [own_address(), "[::1]:0".to_owned()].into_iter().enumerate() {
        let array = new_in(&folder, &format!("array{at}"));
        let address = UdpSocket::bind(&local).and_then(|socket| socket.local_addr());
        let address = address.expect("there is a free port");
        let recorder = Recorder::start(&format!("--from udp:{address} --to @ {SMALL}"), &array);
        let any = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
        let senders: Vec<UdpSocket> =
            (0..5).map(|_| UdpSocket::bind(any).expect("there is a free port")).collect();
        let mut expected = Vec::new();
        for n in 0..100usize {
            let (sender, payload) = (&senders[n * 7 % 5], noise(1 + n * 83 % 1400, n as u64));
            sender.send_to(&payload, address).expect("it fits");
            let from = sender.local_addr().expect("it is bound");
            let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
            let (length, from_port, to_port) = (8 + payload.len(), from.port(), address.port());
            let (from, to) = (from.ip(), address.ip());
            let line = format!("{from}\t{from_port}\t{to}\t{to_port}\t{length}\t{hex}");
            expected.push(if from.is_ipv4() { line } else { format!("{line}\t1") });
        }
        stop_after(recorder, 100);
        let file = new_in(&folder, &format!("extract{at}.pcapng"));
        line(&format!("extract @ -q -o {}", text(&file)), &array).code(0);
        let ip = if address.is_ipv4() { ["ip.src", "ip.dst"] } else { ["ipv6.src", "ipv6.dst"] };
        let fields = [ip[0], "udp.srcport", ip[1], "udp.dstport", "udp.length", "data.data"];
        let mut arguments = vec!["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
        arguments.extend(["-d", "udp.port==1-65535,data", "-T", "fields"]);
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        if address.is_ipv6() {
            arguments.extend(["-e", "udp.checksum.status"]);
        }
        let shown = tshark(&file, &arguments);
        assert_eq!(shown, expected);
        let wrong = "_ws.malformed or ip.checksum.status == 0 or udp.checksum.status == 0";
        // A free port may be one that belongs to a protocol.
        let plain = ["-d", "udp.port==1-65535,data", "-o", "udp.check_checksum:TRUE", "-Y", wrong];
        assert_eq!(tshark(&file, &plain), [""; 0]);
        seen.extend(shown);
    }
    assert_eq!(seen.len(), 200);
}
