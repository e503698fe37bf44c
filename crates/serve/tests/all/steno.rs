//! Stenographer's queries select the packets that they mean, whatever tags and labels those have.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

use longtake::instant::utc;
use longtake::{FileFormat, Selection, Timestamp};
use longtake_serve::{Limits, Options};
use serde_json::Value;

use crate::document::has_form;
use crate::harness::{Answer, Recorded, Service};

/// The answer to a query.
fn ask(service: &Service, path: &str, headers: &str, query: &str) -> Answer {
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
    Answer::read(service.request("POST", path, &format!("{kind}{headers}"), query))
}

/// What a query can ask of a packet: tags, labels, and the outermost IP header with its ports.
#[derive(Debug, Default)]
struct Indexed {
    time: Timestamp,
    vlans: Vec<u16>,
    labels: Vec<u32>,
    hosts: Vec<IpAddr>,
    protocol: Option<u8>,
    ports: Vec<u16>,
    record: Vec<u8>,
}

/// Reads headers from the start of some bytes.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn number(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }
}

impl Indexed {
    fn of(record: &[u8]) -> Self {
        let field = |at: usize| {
            u64::from(u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes")))
        };
        let time = Timestamp::from_nanos(field(0) * 1_000_000_000 + field(4));
        let mut indexed = Self { time, record: record.to_vec(), ..Self::default() };
        indexed.frame(&mut Bytes(&record[16..]));
        indexed
    }

    fn frame(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        bytes.take::<12>()?;
        let mut kind = bytes.number()?;
        while matches!(kind, 0x8100 | 0x88a8) {
            self.vlans.push(bytes.number()? & 0xfff);
            kind = bytes.number()?;
        }
        if kind == 0x8847 {
            loop {
                let entry = u32::from_be_bytes(bytes.take()?);
                self.labels.push(entry >> 12);
                if entry & 0x100 != 0 {
                    break;
                }
            }
            kind = if bytes.0.first()? >> 4 == 4 { 0x800 } else { 0x86dd };
        }
        match kind {
            0x800 => self.ipv4(bytes),
            0x86dd => self.ipv6(bytes),
            _ => None,
        }
    }

    fn ipv4(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let head: [u8; 20] = bytes.take()?;
        let address = |at: usize| <[u8; 4]>::try_from(&head[at..at + 4]).map(IpAddr::from);
        self.hosts = [address(12), address(16)].into_iter().flatten().collect();
        bytes.0 = bytes.0.get(usize::from(head[0] & 15) * 4 - 20..)?;
        self.protocol = Some(head[9]);
        let is_first = (u16::from(head[6]) << 8 | u16::from(head[7])) & 0x1fff == 0;
        if is_first { self.transport(bytes) } else { None }
    }

    fn ipv6(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        let head: [u8; 40] = bytes.take()?;
        let address = |at: usize| <[u8; 16]>::try_from(&head[at..at + 16]).map(IpAddr::from);
        self.hosts = [address(8), address(24)].into_iter().flatten().collect();
        let mut protocol = head[6];
        let mut is_first = true;
        while matches!(protocol, 0 | 43 | 44 | 60) {
            let extension: [u8; 8] = bytes.take()?;
            let more = if protocol == 44 { 0 } else { usize::from(extension[1]) * 8 };
            is_first &= protocol != 44 || u16::from_be_bytes([extension[2], extension[3]]) < 8;
            bytes.0 = bytes.0.get(more..)?;
            protocol = extension[0];
        }
        self.protocol = Some(protocol);
        if is_first { self.transport(bytes) } else { None }
    }

    fn transport(&mut self, bytes: &mut Bytes<'_>) -> Option<()> {
        if matches!(self.protocol, Some(6 | 17)) {
            self.ports = vec![bytes.number()?, bytes.number()?];
        }
        None
    }
}

/// The records of a pcap file.
fn records(file: &[u8]) -> Vec<&[u8]> {
    let mut rest = &file[24..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().expect("four bytes"));
        let (record, next) = rest.split_at(16 + length as usize);
        records.push(record);
        rest = next;
    }
    records
}

type Test = Box<dyn Fn(&Indexed) -> bool>;

/// Pseudorandom numbers: the same on each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// A question that a packet answers, or about some packet's time.
    fn primitive(&mut self, packets: &[Indexed]) -> (String, Test) {
        let packet = &packets[self.below(packets.len())];
        let which = self.below(9);
        match (which, &packet.hosts[..], &packet.ports[..]) {
            (0, &[host, _], _) => {
                (format!("host {host}"), Box::new(move |packet| packet.hosts.contains(&host)))
            }
            (1, &[_, IpAddr::V4(host)], _) => {
                let inside = move |other: &IpAddr| match other {
                    IpAddr::V4(other) => other.octets()[..2] == host.octets()[..2],
                    IpAddr::V6(_) => false,
                };
                (format!("net {host}/16"), Box::new(move |packet| packet.hosts.iter().any(inside)))
            }
            (2, _, &[_, port]) => {
                (format!("port {port}"), Box::new(move |packet| packet.ports.contains(&port)))
            }
            (3, ..) => ("udp".to_owned(), Box::new(|packet| packet.protocol == Some(17))),
            (4, ..) if packet.protocol.is_some() => {
                let number = packet.protocol;
                let text = format!("ip proto {}", number.unwrap_or_default());
                (text, Box::new(move |packet| packet.protocol == number))
            }
            (5, ..) if !packet.vlans.is_empty() => {
                let id = packet.vlans[0];
                (format!("vlan {id}"), Box::new(move |packet| packet.vlans.contains(&id)))
            }
            (6, ..) if !packet.labels.is_empty() => {
                let label = packet.labels[0];
                (format!("mpls {label}"), Box::new(move |packet| packet.labels.contains(&label)))
            }
            (7, ..) => {
                let time = packet.time;
                (format!("before {}", utc(time)), Box::new(move |packet| packet.time <= time))
            }
            (8, ..) => {
                let time = packet.time;
                (format!("after {}", utc(time)), Box::new(move |packet| packet.time >= time))
            }
            _ => ("tcp".to_owned(), Box::new(|packet| packet.protocol == Some(6))),
        }
    }

    fn query(&mut self, packets: &[Indexed], depth: usize) -> (String, Test) {
        let (mut text, mut test) = self.primitive(packets);
        for _ in 0..self.below(3) {
            let (other, accepts) = match depth {
                0 => self.primitive(packets),
                _ => {
                    let (text, test) = self.query(packets, depth - 1);
                    (format!("({text})"), test)
                }
            };
            let before = test;
            if self.below(2) == 0 {
                text = format!("{text} and {other}");
                test = Box::new(move |packet| before(packet) && accepts(packet));
            } else {
                text = format!("{text} || {other}");
                test = Box::new(move |packet| before(packet) || accepts(packet));
            }
        }
        (text, test)
    }
}

#[test]
fn queries_select_the_packets_that_another_reader_of_headers_finds() {
    let recorded = Recorded::traffic(3_000_000);
    let service = recorded.served();
    let all = recorded.extracted(&Selection::default(), FileFormat::Pcap);
    let packets: Vec<Indexed> = records(&all).into_iter().map(Indexed::of).collect();
    let has = |of: fn(&Indexed) -> bool| packets.iter().any(of);
    assert!(has(|packet| !packet.vlans.is_empty()) && has(|packet| !packet.labels.is_empty()));
    let mut numbers = Numbers(1);
    let (mut some, mut tagged) = (0, 0);
    for _ in 0..120 {
        let (query, test) = numbers.query(&packets, 2);
        let answer = ask(&service, "/query", "", &query);
        let expected: Vec<&Indexed> = packets.iter().filter(|packet| test(packet)).collect();
        if answer.status == 400 {
            let text = answer.text();
            assert!(text.contains("before and after") && expected.is_empty(), "{query}: {text}");
            continue;
        }
        assert!(answer.status == 200 && answer.is_whole, "{query}: {}", answer.text());
        let found = records(&answer.body);
        assert_eq!(found.len(), expected.len(), "{query}");
        assert!(found.iter().zip(&expected).all(|(one, other)| **one == other.record), "{query}");
        some += usize::from(!found.is_empty() && found.len() < packets.len());
        tagged += usize::from(expected.iter().any(|packet| !packet.vlans.is_empty()));
    }
    assert!(some >= 40 && tagged >= 20, "{some} {tagged}");
}

#[test]
fn an_answer_ends_at_the_limits_that_its_headers_set() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    let all = ask(&service, "/query", "", "tcp or udp").body;
    let lengths: Vec<usize> = records(&all).iter().map(|record| record.len()).collect();
    assert!(lengths.len() > 100);
    let sum = |count: usize| 24 + lengths[..count].iter().sum::<usize>();
    for (headers, packets) in [
        ("Steno-Limit-Packets: 1\r\n".to_owned(), 1),
        ("Steno-Limit-Packets:6\r\n".to_owned(), 6),
        ("Steno-Limit-Packets: 0\r\nSteno-Limit-Bytes: 0\r\n".to_owned(), lengths.len()),
        ("Steno-Limit-Bytes: 1\r\n".to_owned(), 0),
        (format!("Steno-Limit-Bytes: {}\r\n", sum(3)), 3),
        (format!("Steno-Limit-Bytes: {}\r\n", sum(3) + 1), 4),
        (format!("Steno-Limit-Bytes: {}\r\nSteno-Limit-Packets: 2\r\n", sum(3)), 2),
        (format!("Steno-Limit-Bytes: {}\r\nSteno-Limit-Packets: 5\r\n", sum(3)), 3),
        (format!("Steno-Limit-Bytes: {}\r\n", u64::MAX), lengths.len()),
    ] {
        let answer = ask(&service, "/query", &headers, "tcp or udp");
        assert!(answer.status == 200 && answer.is_whole, "{headers}");
        assert!(answer.body == all[..sum(packets)], "{headers}");
    }
}

#[test]
fn every_documented_answer_to_a_query_is_given() {
    let (recorded, other) = (Recorded::traffic(1_000_000), Recorded::empty_in("other"));
    other.record(100_000);
    let service = recorded.served();
    let busy = recorded.served_within(Limits { reading_max: 0, ..Limits::default() });
    let (arrays, listen) = (vec![recorded.place(), other.place()], ([127, 0, 0, 1], 0).into());
    let two = Service::start(&Options { arrays, listen, ..Options::default() });
    let document = service.json("/api/v1/openapi.json");
    let described = &document["paths"]["/query"]["post"];
    let mut given = BTreeSet::new();
    let mut is = |service: &Service, path: &str, headers: &str, query: &str, status: u16| {
        let answer = ask(service, path, headers, query);
        assert_eq!(answer.status, status, "{path} {query}: {}", answer.text());
        let content = &described["responses"][status.to_string()]["content"];
        let kind = answer.headers["content-type"].as_str();
        assert!(content[kind].is_object(), "{kind} {content}");
        if status != 200 {
            has_form(&document, &content[kind]["schema"], &answer.json(), query);
        }
        given.insert(status.to_string());
        answer.text()
    };
    is(&service, "/query?array=radar", "", "tcp", 200);
    // Both arrays have this name: each is asked for by its UUID.
    let uuid = recorded.open().uuid().to_string();
    is(&two, &format!("/query?array={uuid}"), "", "tcp", 200);
    assert!(is(&two, "/query", "", "tcp", 400).contains("/query?array=ID"));
    is(&service, "/query?array=sonar", "", "tcp", 404);
    is(&service, "/query?filter=tcp", "", "tcp", 400);
    is(&busy, "/query", "", "tcp", 503);
    for query in ["", "host example.org", "not tcp", "after yesterday", &"tcp and ".repeat(3000)] {
        assert!(is(&service, "/query", "", query, 400).contains("error"), "{query}");
    }
    let never = "after 1h ago and before 2h ago";
    assert!(is(&service, "/query", "", never, 400).contains("exchange the times"));
    for header in ["Steno-Limit-Packets: x\r\n", "Steno-Limit-Bytes: -1\r\n"] {
        is(&service, "/query", header, "tcp", 400);
    }
    fs::remove_dir_all(recorded.path()).expect("it is there");
    is(&service, "/query", "", "tcp", 500);
    let documented = described["responses"].as_object().expect("an object").keys().cloned();
    assert_eq!(given, documented.collect());
    let parameters = described["parameters"].as_array().expect("a list").iter();
    let names: Vec<&Value> = parameters.map(|parameter| &parameter["name"]).collect();
    assert_eq!(names, ["array", "Steno-Limit-Packets", "Steno-Limit-Bytes"]);
}
