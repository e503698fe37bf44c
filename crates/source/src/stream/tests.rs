//! Real sockets on the loopback, real fifos and files.

use std::io::Write;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;

use super::*;
use crate::testing::Recording;

fn blocks_of(block_bytes: u32) -> Options {
    Options { block_bytes, ..Options::default() }
}

fn listening(connections: u16, options: Options) -> (Stream, std::net::SocketAddr) {
    let address = "127.0.0.1:0".to_owned();
    let stream = Stream::open(&Endpoint::Listen { address, connections }, options).unwrap();
    let address = stream.local_address().unwrap();
    (stream, address)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 7 / 3) as u8).collect()
}

fn content(sink: &Recording, interface: u32) -> Vec<u8> {
    let packets = sink.packets().filter(|packet| packet.interface == interface);
    packets.flat_map(|packet| packet.data.iter().copied()).collect()
}

#[test]
fn a_connection_is_cut_into_blocks_and_the_last_one_is_kept() {
    let (stream, address) = listening(1, blocks_of(1000));
    let sender = thread::spawn(move || {
        TcpStream::connect(address).unwrap().write_all(&bytes(4321)).unwrap();
    });
    let mut sink = Recording::default();
    let summary = stream.run(&mut sink).unwrap();
    sender.join().unwrap();
    assert_eq!((summary.connections, summary.bytes, summary.complete), (1, 4321, true));
    assert_eq!(content(&sink, 0), bytes(4321));
    assert_eq!(sink.interfaces[0].link_type, LinkType::USER0);
    let packets: Vec<_> = sink.packets().collect();
    assert!(
        packets.iter().all(|p| p.data.len() <= 1000 && p.original_length == p.data.len() as u32)
    );
    assert!(packets.windows(2).all(|two| two[0].timestamp <= two[1].timestamp));
}

#[test]
fn connections_at_the_same_time_are_interfaces_of_their_own() {
    let (stream, address) = listening(3, blocks_of(100));
    let senders: Vec<_> = (0..3u8)
        .map(|n| {
            thread::spawn(move || {
                let mut socket = TcpStream::connect(address).unwrap();
                let local = socket.local_addr().unwrap();
                for _ in 0..50 {
                    socket.write_all(&[n; 77]).unwrap();
                }
                (format!("tcp:{local}"), n)
            })
        })
        .collect();
    let mut sink = Recording::default();
    let summary = stream.run(&mut sink).unwrap();
    assert_eq!((summary.connections, summary.bytes), (3, 3 * 50 * 77));
    for sender in senders {
        let (name, n) = sender.join().unwrap();
        let at = sink.interfaces.iter().position(|interface| interface.name == name).unwrap();
        assert_eq!(content(&sink, at as u32), [n; 50 * 77]);
    }
}

/// A reset takes the place of this connection's end.
fn reset_at_the_end(socket: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the option's value is a `linger` that lives through the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    };
    assert_eq!(status, 0);
}

#[test]
fn a_peer_that_resets_is_named_after_its_data_was_delivered() {
    let (stream, address) = listening(1, blocks_of(1000));
    let sender = thread::spawn(move || {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(&bytes(1500)).unwrap();
        // Long enough for the receiver to have read it: a reset throws away what hasn't been.
        let mut answer = [0];
        let _ = io::Read::read(&mut socket, &mut answer);
        reset_at_the_end(&socket);
        socket.local_addr().unwrap()
    });
    // Tells the sender to reset once everything has been seen.
    let mut sink = Recording::default();
    let error = {
        let mut stream = stream;
        while stream.connections.is_empty() {
            stream.accept(&mut sink);
        }
        while stream.connections[0].received < 1500 {
            stream.read(0, &mut sink).unwrap();
        }
        let socket = stream.connections[0].readable.as_fd().try_clone_to_owned().unwrap();
        TcpStream::from(socket).shutdown(Shutdown::Write).unwrap();
        stream.run_on(&mut sink)
    };
    let peer = sender.join().unwrap();
    assert_eq!(content(&sink, 0), bytes(1500));
    let text = error.unwrap_err().to_string();
    assert!(text.contains(&format!("tcp:{peer}")) && text.contains("1500 bytes"), "{text}");
}

#[test]
fn nobody_there_is_an_error_that_says_what_to_do() {
    // On an address of its own, on which no other test listens.
    let port = TcpListener::bind("127.0.0.77:0").unwrap().local_addr().unwrap().port();
    let endpoint = Endpoint::Connect(format!("127.0.0.77:{port}"));
    let text = Stream::open(&endpoint, Options::default()).unwrap_err().to_string();
    assert!(text.contains(&port.to_string()) && text.contains("tcp-listen"), "{text}");
    for bytes in [0, BLOCK_BYTES_MAX + 1] {
        assert!(Stream::open(&Endpoint::Stdin, blocks_of(bytes)).is_err());
    }
}

#[test]
fn a_connection_made_from_here_is_read_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::Connect(listener.local_addr().unwrap().to_string());
    let stream = Stream::open(&endpoint, Options::default()).unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    let sender = thread::spawn(move || socket.write_all(&bytes(300_000)).unwrap());
    let mut sink = Recording::default();
    assert!(stream.run(&mut sink).unwrap().complete);
    sender.join().unwrap();
    assert_eq!(content(&sink, 0), bytes(300_000));
}

#[test]
fn a_stop_is_seen_while_nobody_sends() {
    let (stream, _) = listening(1, Options::default());
    assert!(!stream.run(&mut Recording::ending_at_tick(2)).unwrap().complete);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let stream = Stream::open(&Endpoint::Path(path), Options::default()).unwrap();
    assert!(!stream.run(&mut Recording::ending_at_tick(2)).unwrap().complete);
}

#[test]
fn a_file_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("raw");
    std::fs::write(&path, bytes(200_001)).unwrap();
    let stream = Stream::open(&Endpoint::Path(path), Options::default()).unwrap();
    let mut sink = Recording::default();
    let summary = stream.run(&mut sink).unwrap();
    assert_eq!((summary.blocks, summary.bytes), (4, 200_001));
    assert_eq!(content(&sink, 0), bytes(200_001));
}

#[test]
fn a_block_that_does_not_fill_is_delivered_when_it_is_old_enough() {
    let options = Options { flush_interval: Duration::from_millis(1), ..Options::default() };
    let (stream, address) = listening(1, options);
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"few").unwrap();
    // The sender goes on living, so that only time can have delivered them.
    let mut sink = Recording::ending_at_tick(10);
    assert!(!stream.run(&mut sink).unwrap().complete);
    assert_eq!(content(&sink, 0), b"few");
}

#[test]
fn whoever_connects_again_is_recorded_on_until_the_sink_ends() {
    let endpoint = Endpoint::ListenOn { address: "127.0.0.1:0".to_owned() };
    let stream = Stream::open(&endpoint, blocks_of(1000)).unwrap();
    let address = stream.local_address().unwrap();
    let sender = thread::spawn(move || {
        for number in 0..5u8 {
            let mut socket = TcpStream::connect(address).unwrap();
            match number {
                2 => reset_at_the_end(&socket),
                number => socket.write_all(&[number; 1500]).unwrap(),
            }
        }
    });
    // It ends with the second block of the last sender, and there would be more senders otherwise.
    let mut sink = Recording::ending_at_packet(7);
    let summary = stream.run(&mut sink).unwrap();
    sender.join().unwrap();
    assert!(!summary.complete, "{summary:?}");
    assert_eq!((summary.connections, summary.broken), (5, 1));
    assert_eq!(sink.interfaces.len(), 1, "one after the other they are one interface");
    assert_eq!(sink.interfaces[0].name, "tcp:127.0.0.1");
    let sent = [0u8, 1, 3].map(|number| vec![number; 1500]).concat();
    assert_eq!(content(&sink, 0), [sent, vec![4; 1000]].concat());
}

#[test]
fn two_connections_of_a_host_at_the_same_time_are_two_interfaces() {
    let endpoint = Endpoint::ListenOn { address: "127.0.0.1:0".to_owned() };
    let mut stream = Stream::open(&endpoint, blocks_of(10)).unwrap();
    let address = stream.local_address().unwrap();
    let mut sink = Recording::ending_at_packet(3);
    let mut senders = [(); 2].map(|()| TcpStream::connect(address).unwrap());
    while stream.connections.len() < 2 {
        stream.accept(&mut sink);
    }
    assert_eq!(sink.interfaces.len(), 2);
    for (sender, number) in senders.iter_mut().zip(1..) {
        sender.write_all(&[number; 20]).unwrap();
    }
    stream.run_on(&mut sink).unwrap();
    for number in [1, 2u8] {
        let own = content(&sink, u32::from(number) - 1);
        assert!(!own.is_empty() && own.iter().all(|&byte| byte == number), "{own:?}");
    }
}
