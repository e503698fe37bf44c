//! Encodes packets as a file of any format, into a buffer that the caller empties.

use std::fmt::{Display, Write};

use anyhow::Result;
use format::export::{self, Exporter};
use format::pcapng::{Block, ReadPacket, section_header};
use format::{Interface, LinkType};
use source::udp::{has_made_headers, past_made_headers};

use super::arrow_table::ArrowTable;
use super::file_format::{FileFormat, OutputFormat};
use super::packet_flow::{self, PacketFlow, PacketFlows};
use super::packet_table::PacketTable;

/// The columns of CSV, JSON Lines, Parquet and Arrow, before those of flows.
pub(super) const COLUMNS: [&str; 7] = [
    "time_ns",
    "interface",
    "link_type",
    "captured_length",
    "original_length",
    "chunk_sequence",
    "payload",
];

/// Encodes one file.
pub(super) enum Encoder {
    Capture(Exporter),
    Lines(Box<Lines>),
    Table(Box<PacketTable>),
    Arrow(Box<ArrowTable>),
    /// By interface: whether its packets have headers that Longtake made, which are left out.
    Raw(Vec<bool>),
}

impl Encoder {
    /// Starts a file; `comment` goes into its header where the format has room for one.
    ///
    /// # Errors
    /// If a Parquet or Arrow file can't be started.
    pub fn new(format: OutputFormat, comment: &str, out: &mut Vec<u8>) -> Result<Self> {
        Ok(match format.file {
            FileFormat::Pcapng => {
                Self::Capture(Exporter::new(export::FileFormat::Pcapng, comment, out))
            }
            FileFormat::Pcap => {
                Self::Capture(Exporter::new(export::FileFormat::Pcap, comment, out))
            }
            FileFormat::Csv => {
                let of_flows = packet_flow::COLUMNS.iter().filter(|_| format.flow);
                let columns: Vec<_> = COLUMNS.iter().chain(of_flows).copied().collect();
                out.extend_from_slice(columns.join(",").as_bytes());
                out.push(b'\n');
                Self::Lines(Box::new(Lines::new(false, format.flow)))
            }
            FileFormat::Jsonl => Self::Lines(Box::new(Lines::new(true, format.flow))),
            FileFormat::Parquet => Self::Table(Box::new(PacketTable::new(format.flow, comment)?)),
            FileFormat::Arrow => Self::Arrow(Box::new(ArrowTable::new(format.flow, comment)?)),
            FileFormat::Raw => Self::Raw(Vec::new()),
        })
    }

    /// The file's number for an interface that it does not have yet.
    pub fn interface(&mut self, interface: &Interface, out: &mut Vec<u8>) -> u32 {
        match self {
            Self::Capture(exporter) => exporter.interface(interface, out),
            Self::Lines(lines) => lines.interface(interface),
            Self::Table(table) => table.interface(interface),
            Self::Arrow(table) => table.interface(interface),
            Self::Raw(made) => {
                made.push(has_made_headers(interface));
                made.len() as u32 - 1
            }
        }
    }

    /// Appends a packet of the chunk with this number, under the file's interface number.
    ///
    /// # Errors
    /// [`export::MixedLinkTypes`] in a pcap file, or if packets of a Parquet or Arrow file can't be encoded.
    #[inline]
    pub fn packet(
        &mut self,
        number: u32,
        packet: &ReadPacket<'_>,
        block: &Block<'_>,
        chunk: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self {
            Self::Capture(exporter) => exporter.packet(number, packet, block, out)?,
            Self::Lines(lines) => lines.packet(number, packet, chunk, out),
            Self::Table(table) => table.packet(number, packet, chunk, out)?,
            Self::Arrow(table) => table.packet(number, packet, chunk, out)?,
            Self::Raw(made) => out.extend_from_slice(match made[number as usize] {
                true => past_made_headers(packet.data),
                false => packet.data,
            }),
        }
        Ok(())
    }

    /// Whether a run of packet blocks whose interface numbers are already the file's may be appended as it is.
    pub fn takes_blocks(&self) -> bool {
        matches!(self, Self::Capture(exporter) if exporter.takes_blocks())
    }

    /// Ends the file. A pcapng file gets another comment, if there is one, in a section without packets.
    ///
    /// # Errors
    /// If a Parquet or Arrow file can't be encoded.
    pub fn finish(self, comment: Option<&str>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Capture(exporter) => {
                if let Some(comment) = comment.filter(|_| exporter.takes_blocks()) {
                    let application = concat!("longtake ", env!("CARGO_PKG_VERSION"));
                    out.extend_from_slice(&section_header(application, comment));
                }
                exporter.finish(out);
            }
            Self::Table(table) => table.finish(out)?,
            Self::Arrow(table) => table.finish(out)?,
            Self::Lines(_) | Self::Raw(_) => {}
        }
        Ok(())
    }
}

/// CSV or JSON, one line for each packet.
pub(super) struct Lines {
    json: bool,
    /// By interface: its link type, and the fields that all of its packets share, encoded.
    fixed: Vec<(LinkType, String)>,
    /// Finds what the columns of flows say, if there are any.
    flows: Option<PacketFlows>,
    /// What a line begins with; kept, so that no packet allocates.
    line: String,
}

impl Lines {
    fn new(json: bool, flow: bool) -> Self {
        let flows = flow.then(PacketFlows::default);
        Self { json, fixed: Vec::new(), flows, line: String::new() }
    }

    fn interface(&mut self, interface: &Interface) -> u32 {
        let (name, link_type) = (&interface.name, interface.link_type.0);
        let fixed = if self.json {
            let name = serde_json::Value::from(name.as_str());
            format!(r#""interface":{name},"link_type":{link_type}"#)
        } else {
            format!("{},{link_type}", csv_field(name))
        };
        self.fixed.push((interface.link_type, fixed));
        self.fixed.len() as u32 - 1
    }

    fn packet(&mut self, number: u32, packet: &ReadPacket<'_>, chunk: u64, out: &mut Vec<u8>) {
        let (link_type, fixed) = &self.fixed[number as usize];
        let (time, captured, original) = (packet.time, packet.data.len(), packet.original_length);
        self.line.clear();
        // Writing to a string can't fail.
        let _ = if self.json {
            write!(
                self.line,
                r#"{{"time_ns":{time},{fixed},"captured_length":{captured},"original_length":{original},"chunk_sequence":{chunk},"payload":""#
            )
        } else {
            write!(self.line, "{time},{fixed},{captured},{original},{chunk},")
        };
        out.extend_from_slice(self.line.as_bytes());
        hex(packet.data, out);
        out.extend_from_slice(if self.json { b"\"" } else { b"" });
        if let Some(flows) = &mut self.flows {
            self.line.clear();
            flow_fields(self.json, &flows.of(*link_type, packet.data), &mut self.line);
            out.extend_from_slice(self.line.as_bytes());
        }
        out.extend_from_slice(if self.json { b"}\n" } else { b"\n" });
    }
}

/// Appends what the columns of flows say, each behind a comma. What is unknown is empty in CSV, and null in JSON.
fn flow_fields(json: bool, flow: &PacketFlow, line: &mut String) {
    fn shown<T: Display>(value: &Option<T>) -> Option<&dyn Display> {
        value.as_ref().map(|value| value as &dyn Display)
    }
    let PacketFlow { addresses: [source, destination], ports: [from, to], protocol, tcp_flags } =
        flow;
    let texts = [shown(source), shown(destination)].map(|value| (value, "\""));
    let numbers = [shown(from), shown(to), shown(protocol), shown(tcp_flags)];
    let values = texts.into_iter().chain(numbers.map(|value| (value, "")));
    for (name, (value, quote)) in packet_flow::COLUMNS.into_iter().zip(values) {
        // Writing to a string can't fail.
        let _ = match (json, value) {
            (true, Some(value)) => write!(line, r#","{name}":{quote}{value}{quote}"#),
            (true, None) => write!(line, r#","{name}":null"#),
            (false, Some(value)) => write!(line, ",{value}"),
            (false, None) => write!(line, ","),
        };
    }
}

/// A text as a CSV field (RFC 4180).
fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    for (pair, byte) in out[start..].as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_s_name_is_quoted_where_csv_needs_it() {
        assert_eq!(csv_field("eth0"), "eth0");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(csv_field("a\nb"), "\"a\nb\"");
    }
}
