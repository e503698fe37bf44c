//! Tables of flows, hosts and ports for a terminal, and the sums below them.

use std::net::{IpAddr, SocketAddr};

use base::ByteSize;
use base::units::grouped;
use search::{Flow, Group, Key, Row, Tally, community_id};

use super::{Table, or_none};
use crate::array::Flows;
use crate::array::flow_columns::protocol_words;
use crate::instant::utc;

/// What was counted, with Community IDs of flows if they are wanted.
pub fn flows(flows: &Flows, with_ids: bool) -> Table {
    let (heads, right): (&[&str], &[usize]) = match flows.ranking.group {
        Group::Flows => (
            &[
                "protocol",
                "from",
                "to",
                "packets",
                "bytes",
                "back",
                "bytes back",
                "first",
                "duration",
                "community id",
            ],
            &[3, 4, 5, 6, 8],
        ),
        Group::Hosts => (
            &["host", "sent", "bytes sent", "received", "bytes received", "first", "duration"],
            &[1, 2, 3, 4, 6],
        ),
        Group::Ports => (
            &["protocol", "port", "to", "bytes to", "from", "bytes from", "first", "duration"],
            &[1, 2, 3, 4, 5, 7],
        ),
    };
    let is_wanted = with_ids || flows.ranking.group != Group::Flows;
    let heads = if is_wanted { heads } else { &heads[..heads.len() - 1] };
    let rows = flows.ranking.rows.iter().map(|(key, row)| {
        let mut cells = key_cells(key, row);
        cells.extend(counts(row));
        if let (Key::Flow(flow), true) = (key, with_ids) {
            cells.push(or_none(community_id(flow, 0)));
        }
        cells
    });
    Table { heads, right, rows: rows.collect() }
}

fn key_cells(key: &Key, row: &Row) -> Vec<String> {
    match key {
        Key::Flow(flow) => {
            let [from, to] = flow.ends(row.began).map(|(address, port)| end(flow, address, port));
            vec![protocol_of(flow, row), from, to]
        }
        Key::Host(host) => vec![host.to_string()],
        Key::Port { protocol, port } => vec![protocol_words(*protocol), or_none(*port)],
    }
}

/// A protocol, of ICMP with the type of the first message, and its code if that tells flows apart.
fn protocol_of(flow: &Flow, row: &Row) -> String {
    let words = protocol_words(flow.protocol);
    match flow.icmp(row.began) {
        Some((kind, Some(code))) => format!("{words} {kind}/{code}"),
        Some((kind, None)) => format!("{words} {kind}"),
        None => words,
    }
}

fn end(flow: &Flow, address: IpAddr, port: Option<u16>) -> String {
    match port.filter(|_| !flow.is_icmp()) {
        Some(port) => SocketAddr::new(address, port).to_string(),
        None => address.to_string(),
    }
}

fn counts(row: &Row) -> Vec<String> {
    let span = row.both().span;
    vec![
        grouped(row.forward.packets),
        ByteSize(row.forward.bytes).to_string(),
        grouped(row.backward.packets),
        ByteSize(row.backward.bytes).to_string(),
        or_none(span.map(|(first, _)| utc(first))),
        or_none(span.map(|(first, last)| last.since(first))),
    ]
}

/// The sums of what was counted, a line for each.
pub fn flow_sums(flows: &Flows) -> Vec<String> {
    let ranking = &flows.ranking;
    let things = |count: u64| {
        let [one, many] = match ranking.group {
            Group::Flows => ["flow", "flows"],
            Group::Hosts => ["host", "hosts"],
            Group::Ports => ["port", "ports"],
        };
        format!("{} {}", grouped(count), if count == 1 { one } else { many })
    };
    let found = ranking.found as u64;
    let mut lines = vec![format!("{} in {}", tally(&ranking.total), things(found))];
    let hidden = found - ranking.rows.len() as u64;
    if hidden > 0 {
        lines.push(format!(
            "not listed: {} with {}; --top sets how many are",
            things(hidden),
            tally(&ranking.rest)
        ));
    }
    if ranking.not_ip.packets > 0 {
        lines.push(format!("without an IP header: {}", tally(&ranking.not_ip)));
    }
    if ranking.beyond.packets > 0 {
        lines.push(format!(
            "of others than the first {}: {}; --max-rows sets how many are counted one by one",
            things(found),
            tally(&ranking.beyond)
        ));
    }
    lines
}

fn tally(tally: &Tally) -> String {
    let packets = if tally.packets == 1 { "packet" } else { "packets" };
    format!("{} {packets}, {}", grouped(tally.packets), ByteSize(tally.bytes))
}
