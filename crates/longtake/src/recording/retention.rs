//! What a recording keeps of the packets that it receives: their headers or first bytes, and the first packets of each flow.

use std::fmt;
use std::hash::BuildHasher;
use std::num::NonZero;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use format::{Interface, LinkType, Packet};
use search::{Cutter, KeyHash, Layers, dissect, dissect_headers, flow_to_cut};
use source::Retention;
use source::spec::SourceSpec;

use super::options::Options;

/// Flows that a recording with `--cut` remembers, in 70 MB. Beyond them, or if more of them than usual fall together, the one that was
/// quiet for longest is forgotten.
pub const FLOWS_REMEMBERED: usize = 1 << 20;

/// Parts of the memory of flows that queues share; each is locked by itself. A power of two.
const PARTS: usize = 64;

/// What is kept of each packet that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// Its headers, up to that of the innermost transport protocol. Searches by host, port and flow find the same as in whole packets.
    Headers,
    /// So many of its first bytes.
    Bytes(NonZero<u32>),
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("headers", _) => Ok(Self::Headers),
            (_, Ok(bytes)) => Ok(Self::Bytes(bytes)),
            _ => Err("give `headers`, or the bytes of each packet to keep, such as 128".to_owned()),
        }
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Headers => f.write_str("headers"),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

/// Refuses what a source's packets can't be asked for, before anything is created.
pub fn suits(source: &SourceSpec, name: &str, options: &Options) -> Result<()> {
    let Options { slice, cut, .. } = options;
    let asked: Vec<&str> =
        [slice.map(|_| "--slice"), cut.map(|_| "--cut")].into_iter().flatten().collect();
    if asked.is_empty() {
        return Ok(());
    }
    if cut.is_some_and(|cut| cut.0 == 0) {
        bail!("--cut 0 would keep nothing: give the bytes of each flow to keep, such as 10KiB");
    }
    let look = if asked.len() == 1 { "looks" } else { "look" };
    let (asked, either) = (asked.join(" and "), asked.join(" or "));
    let needs_headers = cut.is_some() || *slice == Some(Slice::Headers);
    match source {
        SourceSpec::Stream { .. } => bail!(
            "{asked} {look} into packets, and {name} delivers a stream of bytes: record it without {either}"
        ),
        SourceSpec::Udp(spec) if !spec.headers && needs_headers => bail!(
            "{asked} {look} into headers, and packets have none with headers=off: leave that out"
        ),
        _ => Ok(()),
    }
}

/// What is known of flows, by all queues of a recording.
#[derive(Debug)]
struct Flows {
    hash: KeyHash,
    parts: Vec<Mutex<Cutter>>,
}

/// The rule of one queue.
#[derive(Debug)]
struct Rule {
    slice: Option<Slice>,
    flows: Option<Arc<Flows>>,
    layers: Layers,
}

/// A rule for each of so many queues, as a recording's options say.
pub fn rules(
    options: &Options,
    queues: usize,
) -> impl Iterator<Item = Option<Box<dyn Retention>>> + use<> {
    let slice = options.slice;
    let flows = options.cut.map(|cut| {
        // Both directions of a flow may come by different queues: tunnels hide from the kernel what belongs together.
        let parts = if queues > 1 { PARTS } else { 1 };
        let cutter = |_| Mutex::new(Cutter::new(cut.0, FLOWS_REMEMBERED / parts));
        Arc::new(Flows { hash: KeyHash::default(), parts: (0..parts).map(cutter).collect() })
    });
    std::iter::repeat_with(move || {
        if slice.is_none() && flows.is_none() {
            return None;
        }
        let rule = Rule { slice, flows: flows.clone(), layers: Layers::new() };
        Some(Box::new(rule) as Box<dyn Retention>)
    })
}

impl Flows {
    /// Whether a packet is among the first of its flow.
    #[inline]
    fn keep(&self, layers: &Layers, packet: &Packet<'_>) -> bool {
        let Some(flow) = flow_to_cut(layers) else { return true };
        let hash = self.hash.hash_one(flow);
        let part = &self.parts[(hash >> 58) as usize & (self.parts.len() - 1)];
        let mut cutter = part.lock().unwrap_or_else(PoisonError::into_inner);
        cutter.keeps(hash, &flow, packet.original_length.into(), packet.timestamp)
    }
}

impl Retention for Rule {
    fn describe(&self, interface: &mut Interface) {
        let Some(Slice::Bytes(bytes)) = self.slice else { return };
        interface.snap_length = match interface.snap_length {
            0 => bytes.get(),
            theirs => theirs.min(bytes.get()),
        };
    }

    #[inline]
    fn keep(&mut self, link_type: LinkType, packet: &Packet<'_>) -> Option<usize> {
        let bytes = match (self.slice, &self.flows) {
            (Some(Slice::Headers), _) => dissect_headers(link_type, packet.data, &mut self.layers),
            (slice, flows) => {
                if flows.is_some() {
                    dissect(link_type, packet.data, &mut self.layers);
                }
                slice.map_or(packet.data.len(), Slice::bytes)
            }
        };
        let is_kept = self.flows.as_ref().is_none_or(|flows| flows.keep(&self.layers, packet));
        is_kept.then_some(bytes)
    }
}

impl Slice {
    fn bytes(self) -> usize {
        match self {
            Self::Headers => usize::MAX,
            Self::Bytes(bytes) => bytes.get() as usize,
        }
    }
}

/// How much of its packets a recording stores at most.
impl Options {
    /// Bytes of each packet that are kept at most; None if their number doesn't follow from the options.
    pub(super) fn kept_at_most(&self) -> Option<u32> {
        match self.slice {
            Some(Slice::Bytes(bytes)) => Some(bytes.get()),
            _ => None,
        }
    }

    /// Whether less than everything is kept, and how much less depends on the packets.
    pub(super) fn keeps_by_content(&self) -> bool {
        self.cut.is_some() || self.slice == Some(Slice::Headers)
    }
}

#[cfg(test)]
mod tests {
    use base::ByteSize;

    use super::*;

    #[test]
    fn a_slice_is_the_headers_or_a_number_of_bytes_above_0() {
        assert_eq!("headers".parse(), Ok(Slice::Headers));
        assert_eq!("128".parse::<Slice>().unwrap().to_string(), "128");
        for wrong in ["", "0", "header", "-1", "1KiB"] {
            let error = wrong.parse::<Slice>().unwrap_err();
            assert!(error.contains("`headers`") && error.contains("128"), "{error}");
        }
    }

    /// A packet of UDP with 100 bytes of payload, from one end or the other.
    fn datagram(backward: bool) -> Vec<u8> {
        let [mut from, mut to] = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let [mut port, mut other] = [[0x13, 0x88], [0, 53]];
        if backward {
            std::mem::swap(&mut from, &mut to);
            std::mem::swap(&mut port, &mut other);
        }
        let ip = [0x45, 0, 0, 128, 0, 1, 0, 0, 64, 17, 0, 0];
        [&ip[..], &from, &to, &port, &other, &[0, 108, 0, 0], &[7; 100]].concat()
    }

    fn keep(rule: &mut Option<Box<dyn Retention>>, data: &[u8]) -> Option<usize> {
        let packet = Packet {
            interface: 0,
            timestamp: base::Timestamp::from_nanos(1 << 60),
            original_length: data.len() as u32,
            data,
            options: &[],
        };
        rule.as_mut().expect("there is a rule").keep(LinkType::RAW_IP, &packet)
    }

    #[test]
    fn queues_share_what_they_know_of_a_flow_whose_directions_come_by_different_ones() {
        let options = Options {
            cut: Some(ByteSize(129)),
            slice: "headers".parse().ok(),
            ..Options::default()
        };
        for queues in [2, 5] {
            let mut rules: Vec<_> = rules(&options, queues).take(queues).collect();
            assert_eq!(keep(&mut rules[0], &datagram(false)), Some(28));
            assert_eq!(keep(&mut rules[1], &datagram(true)), Some(28));
            assert_eq!(keep(&mut rules[0], &datagram(true)), None);
            assert_eq!(keep(&mut rules[1], &datagram(false)), None);
        }
        // Another recording knows nothing of it.
        let mut alone: Vec<_> = rules(&options, 1).take(1).collect();
        assert_eq!(keep(&mut alone[0], &datagram(false)), Some(28));
        assert!(rules(&Options::default(), 2).take(2).all(|rule| rule.is_none()));
    }

    #[test]
    fn what_has_no_packets_or_no_headers_is_refused() {
        let headers = Options { slice: Some(Slice::Headers), ..Options::default() };
        let bytes = Options { slice: "64".parse().ok(), ..Options::default() };
        let cut = Options { cut: Some(ByteSize(1)), ..Options::default() };
        let none = Options { cut: Some(ByteSize(0)), ..Options::default() };
        let bare = "udp:127.0.0.1:1,headers=off";
        for (source, options, refused) in [
            ("-", &headers, Some("--slice")),
            ("tcp:radar:1", &bytes, Some("--slice")),
            ("pipe:a", &cut, Some("--cut")),
            (bare, &cut, Some("headers=off")),
            (bare, &headers, Some("headers=off")),
            (bare, &bytes, None),
            ("udp:127.0.0.1:1", &cut, None),
            ("eth7", &headers, None),
            ("eth7", &none, Some("keep nothing")),
            ("-", &Options::default(), None),
        ] {
            let error = suits(&source.parse().unwrap(), source, options)
                .err()
                .map(|error| error.to_string());
            assert_eq!(error.is_some(), refused.is_some(), "{source}: {error:?}");
            assert!(error.is_none_or(|text| text.contains(refused.unwrap_or_default())));
        }
    }
}
