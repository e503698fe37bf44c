//! What is generated, as tshark judges it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use base::Rate;

use super::*;
use crate::testing::Recording;

fn generate(options: &Options, queue: usize, packets: usize) -> Vec<Vec<u8>> {
    let source = Traffic::open(options).unwrap().swap_remove(queue);
    let mut sink = Recording::ending_at_packet(packets);
    let summary = source.run(&mut sink);
    assert_eq!(summary.packets, packets as u64);
    sink.packets().map(|packet| packet.data.clone()).collect()
}

/// A pcap file of these packets, a microsecond apart.
fn pcap(path: &Path, packets: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (number, packet) in (0u32..).zip(packets) {
        let length = packet.len() as u32;
        for word in [number / 1_000_000, number % 1_000_000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    std::fs::write(path, file).unwrap();
}

const STATUSES: [&str; 5] = [
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "icmp.checksum.status",
    "icmpv6.checksum.status",
];

/// What tshark finds in each packet: a line of fields.
fn tshark(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(path).args(["--enable-protocol", "communityid", "-T", "fields"]);
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    command.args(fields.iter().flat_map(|field| ["-e", *field]));
    let output = command.output().expect("tshark, of the Debian package of that name");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn dump() {
    let packets = generate(&Options::default(), 0, 300_000);
    pcap(Path::new("/tmp/traffic.pcap"), &packets);
}
