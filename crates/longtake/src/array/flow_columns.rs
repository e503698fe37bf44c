//! The columns of a table of flows, hosts or ports: the same in CSV, JSON and Parquet.

use base::Timestamp;
use search::{Flow, Group, Key, Ranking, Row, community_id, protocol};

/// A column: its name, and a value for each row.
pub(super) struct Column {
    pub name: &'static str,
    pub values: Values,
}

/// The values of a column; None where a row has none.
pub(super) enum Values {
    Text(Vec<Option<String>>),
    Number(Vec<Option<u64>>),
    /// Points in time, in nanoseconds since 1970. The column's name ends in `_ns`.
    Time(Vec<Option<u64>>),
}

/// The columns of a ranking, of flows with their Community IDs if they are wanted.
pub(super) fn columns(ranking: &Ranking, with_ids: bool) -> Vec<Column> {
    let of = Of(&ranking.rows);
    let mut columns = match ranking.group {
        Group::Flows => of.flows(with_ids),
        Group::Hosts => vec![of.text("host", |key, _| match key {
            Key::Host(host) => Some(host.to_string()),
            _ => None,
        })],
        Group::Ports => {
            let port = |key: &Key, _: &Row| match key {
                Key::Port { port, .. } => port.map(u64::from),
                _ => None,
            };
            vec![
                of.text("protocol", |key, _| number_of(key).map(protocol_words)),
                of.number("protocol_number", |key, _| number_of(key).map(u64::from)),
                of.number("port", port),
            ]
        }
    };
    columns.extend(of.counts(ranking.group));
    columns
}

/// A protocol's name, or its number if it has no common name.
pub(crate) fn protocol_words(number: u8) -> String {
    protocol::name(number).map_or_else(|| number.to_string(), str::to_owned)
}

fn number_of(key: &Key) -> Option<u8> {
    match key {
        Key::Flow(flow) => Some(flow.protocol),
        Key::Port { protocol, .. } => Some(*protocol),
        Key::Host(_) => None,
    }
}

fn flow_of(key: &Key) -> Option<&Flow> {
    match key {
        Key::Flow(flow) => Some(flow),
        _ => None,
    }
}

/// Makes columns of rows.
struct Of<'a>(&'a [(Key, Row)]);

impl Of<'_> {
    fn text(&self, name: &'static str, value: impl Fn(&Key, &Row) -> Option<String>) -> Column {
        let values = self.0.iter().map(|(key, row)| value(key, row)).collect();
        Column { name, values: Values::Text(values) }
    }

    fn number(&self, name: &'static str, value: impl Fn(&Key, &Row) -> Option<u64>) -> Column {
        let values = self.0.iter().map(|(key, row)| value(key, row)).collect();
        Column { name, values: Values::Number(values) }
    }

    fn time(&self, name: &'static str, value: impl Fn(&Row) -> Option<Timestamp>) -> Column {
        let value = |(_, row): &(Key, Row)| value(row).map(Timestamp::as_nanos);
        Column { name, values: Values::Time(self.0.iter().map(value).collect()) }
    }

    /// What tells flows apart. The source is who sent the first packet.
    fn flows(&self, with_ids: bool) -> Vec<Column> {
        let address = |at: usize| {
            move |key: &Key, row: &Row| {
                flow_of(key).map(|flow| flow.ends(row.began)[at].0.to_string())
            }
        };
        let port = |at: usize| {
            move |key: &Key, row: &Row| {
                let flow = flow_of(key).filter(|flow| !flow.is_icmp())?;
                flow.ends(row.began)[at].1.map(u64::from)
            }
        };
        let icmp = |key: &Key, row: &Row| flow_of(key)?.icmp(row.began);
        let mut columns = vec![
            self.text("protocol", |key, _| number_of(key).map(protocol_words)),
            self.number("protocol_number", |key, _| number_of(key).map(u64::from)),
            self.text("source", address(0)),
            self.number("source_port", port(0)),
            self.text("destination", address(1)),
            self.number("destination_port", port(1)),
            self.number("icmp_type", |key, row| icmp(key, row).map(|(kind, _)| kind.into())),
            self.number("icmp_code", |key, row| icmp(key, row)?.1.map(u64::from)),
        ];
        if with_ids {
            let id = |key: &Key, _: &Row| community_id(flow_of(key)?, 0).map(|id| id.to_string());
            columns.push(self.text("community_id", id));
        }
        columns
    }

    /// Packets, bytes and times.
    fn counts(&self, group: Group) -> Vec<Column> {
        let [packets_there, bytes_there, packets_back, bytes_back] = match group {
            Group::Flows => ["packets_sent", "bytes_sent", "packets_back", "bytes_back"],
            Group::Hosts => ["packets_sent", "bytes_sent", "packets_received", "bytes_received"],
            Group::Ports => ["packets_to", "bytes_to", "packets_from", "bytes_from"],
        };
        vec![
            self.number("packets", |_, row| Some(row.both().packets)),
            self.number("bytes", |_, row| Some(row.both().bytes)),
            self.number(packets_there, |_, row| Some(row.forward.packets)),
            self.number(bytes_there, |_, row| Some(row.forward.bytes)),
            self.number(packets_back, |_, row| Some(row.backward.packets)),
            self.number(bytes_back, |_, row| Some(row.backward.bytes)),
            self.time("first_ns", |row| row.both().span.map(|(first, _)| first)),
            self.time("last_ns", |row| row.both().span.map(|(_, last)| last)),
        ]
    }
}
