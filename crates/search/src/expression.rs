//! Filter expressions in tcpdump's language (pcap-filter(7)), as far as a flow index can help: every packet that an expression
//! accepts has the keys of its condition. What is not understood here may be anything, so that a condition is never too strict.

mod tokens;

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use self::tokens::Token;
use crate::community_id::community_id;
use crate::condition::Condition;
use crate::flow::{Flow, Transport};
use crate::index_key::IndexKey;
use crate::protocol;

/// Addresses of a network, or ports of a range, that are looked up one by one at most.
const ONE_BY_ONE_MAX: u32 = 256;

/// Protocols by the names that stand alone in an expression, and by which `proto` knows them.
const PROTOCOLS: [(&str, u8); 9] = [
    ("icmp", protocol::ICMP),
    ("igmp", 2),
    ("tcp", protocol::TCP),
    ("igrp", 9),
    ("udp", protocol::UDP),
    ("icmp6", protocol::ICMPV6),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", protocol::SCTP),
];

/// Numbers of protocols that are no extension headers of IPv6, which a packet may have before its protocol.
const PLAIN_PROTOCOLS: [u8; 12] = [1, 2, 6, 9, 17, 47, 58, 89, 103, 112, 132, 136];

/// Names of link and network layers that may qualify a primitive and stand alone; they don't narrow anything by themselves.
const NETWORKS: [&str; 4] = ["ip", "ip6", "arp", "rarp"];

/// What every packet has that an expression accepts; [`Condition::Any`] for an empty one.
///
/// # Errors
/// The word because of which nothing is known: it is not understood.
pub fn condition_of(expression: &str) -> Result<Condition, String> {
    let tokens = tokens::of(expression);
    if tokens.is_empty() {
        return Ok(Condition::Any);
    }
    if let Some(token) = tokens.get(TOKENS_MAX) {
        return Err(token.to_string());
    }
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        last: Qualifiers::default(),
        tagged: false,
        shifted: false,
    };
    let parts = parser.expression(0)?;
    match parser.peek() {
        None => Ok(parts),
        Some(token) => Err(token.to_string()),
    }
}

/// What stands before an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Qualifiers {
    protocol: Option<u8>,
    kind: Option<Kind>,
    /// Whether anything stood there.
    any: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
    Protocol,
    /// One that is read, and narrows nothing.
    Other,
}

/// Words and signs of the longest expression that is followed.
const TOKENS_MAX: usize = 4096;

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 64;

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// Of the primitive before: an id alone has the same.
    last: Qualifiers,
    /// There was `vlan`: what follows is looked for behind the tag.
    tagged: bool,
    /// What follows is looked for at other places than where a packet has it: behind `mpls`, or behind a tag that the packet need not
    /// have.
    shifted: bool,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    /// The next word, if that is one.
    fn word(&mut self) -> Option<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Some(word)
            }
            _ => None,
        }
    }

    fn take(&mut self, token: Token<'_>) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    /// Terms joined by `and` and `or`, which bind alike, from left to right.
    fn expression(&mut self, depth: usize) -> Result<Condition, String> {
        let mut joined = vec![self.term(depth)?];
        loop {
            let is_and = match self.peek() {
                Some(Token::And) => true,
                Some(Token::Or) => false,
                _ => return Ok(all_with_flows(joined)),
            };
            self.at += 1;
            self.shifted |= !is_and && self.tagged;
            let next = self.term(depth)?;
            self.shifted |= !is_and && self.tagged;
            if is_and {
                joined.push(next);
            } else {
                joined = vec![Condition::one_of([all_with_flows(joined), next])];
            }
        }
    }

    fn term(&mut self, depth: usize) -> Result<Condition, String> {
        let shifted = self.shifted;
        if depth > DEPTH_MAX {
            return Err("(".to_owned());
        }
        if self.take(Token::Not) {
            self.term(depth + 1)?;
            self.shifted |= self.tagged;
            return Ok(Condition::Any);
        }
        if self.take(Token::Open) {
            let inside = self.expression(depth + 1)?;
            return if self.take(Token::Close) { Ok(inside) } else { Err(self.unexpected()) };
        }
        let condition = if self.is_comparison() { self.comparison()? } else { self.primitive()? };
        Ok(if shifted { Condition::Any } else { condition })
    }

    fn unexpected(&self) -> String {
        self.peek().map_or_else(|| "the end of the expression".to_owned(), |t| t.to_string())
    }

    /// Whether a comparison of numbers starts here, such as `tcp[13] & 2 != 0`.
    fn is_comparison(&self) -> bool {
        matches!(self.tokens.get(self.at..), Some([Token::Word(_), Token::Symbol(_), ..]))
    }

    /// Passes a comparison: it narrows nothing.
    fn comparison(&mut self) -> Result<Condition, String> {
        let mut depth = 0;
        while let Some(token) = self.peek() {
            match token {
                Token::And | Token::Or | Token::Not => break,
                Token::Open => depth += 1,
                Token::Close if depth == 0 => break,
                Token::Close => depth -= 1,
                Token::Word(_) | Token::Symbol(_) => {}
            }
            self.at += 1;
        }
        self.last = Qualifiers::default();
        if depth == 0 { Ok(Condition::Any) } else { Err("(".to_owned()) }
    }

    fn primitive(&mut self) -> Result<Condition, String> {
        let mut qualifiers = Qualifiers::default();
        loop {
            let Some(word) = self.word() else {
                // Qualifiers alone are a primitive if they name a protocol.
                let alone = qualifiers.any && qualifiers.kind.is_none();
                self.last = Qualifiers::default();
                return match qualifiers.protocol {
                    Some(protocol) if alone => Ok(Condition::Key(IndexKey::Protocol(protocol))),
                    None if alone => Ok(Condition::Any),
                    _ => Err(self.unexpected()),
                };
            };
            if let Some((_, number)) = PROTOCOLS.iter().find(|(name, _)| *name == word)
                && qualifiers.kind != Some(Kind::Protocol)
            {
                qualifiers.protocol = Some(*number);
            } else if qualifiers.kind.is_none() && NETWORKS.contains(&word) {
            } else if qualifiers.kind.is_none() && matches!(word, "src" | "dst") {
                self.other_direction();
                // By itself it qualifies a host or a network.
                if !matches!(self.peek(), Some(Token::Word(_))) {
                    return Err(self.unexpected());
                }
            } else if let Some(kind) = kind_of(word).filter(|_| qualifiers.kind.is_none()) {
                qualifiers.kind = Some(kind);
            } else if !qualifiers.any
                && let Some(condition) = self.special(word)?
            {
                self.last = Qualifiers::default();
                return Ok(condition);
            } else {
                return self.id(qualifiers, word);
            }
            qualifiers.any = true;
        }
    }

    /// Passes `or dst` behind `src`, and what else joins the two directions.
    fn other_direction(&mut self) {
        if let Some([Token::And | Token::Or, Token::Word("src" | "dst"), ..]) =
            self.tokens.get(self.at..)
        {
            self.at += 2;
        }
    }

    /// Primitives with words of their own; None if this is none.
    fn special(&mut self, word: &str) -> Result<Option<Condition>, String> {
        Ok(Some(match word {
            "greater" | "less" => {
                self.word().ok_or_else(|| self.unexpected())?;
                Condition::Any
            }
            "broadcast" | "multicast" | "inbound" | "outbound" => Condition::Any,
            "vlan" | "mpls" => {
                let number = match self.peek() {
                    Some(Token::Word(number)) => {
                        self.at += 1;
                        Some(decimal(number).ok_or_else(|| number.to_owned())?)
                    }
                    _ => None,
                };
                let condition = |number: u32| match (word, u16::try_from(number)) {
                    ("mpls", _) => Condition::Key(IndexKey::Mpls(number)),
                    (_, Ok(id)) => Condition::Key(IndexKey::Vlan(id & 0xfff)),
                    (_, Err(_)) => Condition::Any,
                };
                self.tagged = true;
                self.shifted |= word == "mpls";
                number.map_or(Condition::Any, condition)
            }
            _ => return Ok(None),
        }))
    }

    /// A primitive's id, after its qualifiers, or with those of the primitive before.
    fn id(&mut self, qualifiers: Qualifiers, id: &str) -> Result<Condition, String> {
        let had_some = qualifiers.any;
        let qualifiers = if had_some { qualifiers } else { self.last };
        self.last = qualifiers;
        if !had_some && !stands_alone(id) {
            return Err(id.to_owned());
        }
        let own = match qualifiers.kind {
            None if id.contains('/') => self.network(id)?,
            Some(Kind::Net) => self.network(id)?,
            None | Some(Kind::Host) => match id.parse() {
                Ok(host) => Condition::Key(IndexKey::Host(host)),
                Err(_) => Condition::Any,
            },
            Some(Kind::Port) => match decimal(id) {
                Some(port) => Condition::Key(IndexKey::Port(port)),
                None => Condition::Any,
            },
            Some(Kind::PortRange) => port_range(id),
            Some(Kind::Protocol) => {
                let name = id.trim_start_matches('\\');
                let named = PROTOCOLS.iter().find(|(known, _)| *known == name).map(|&(_, n)| n);
                match named.or_else(|| decimal(name)) {
                    Some(number) if PLAIN_PROTOCOLS.contains(&number) => {
                        Condition::Key(IndexKey::Protocol(number))
                    }
                    _ => Condition::Any,
                }
            }
            Some(Kind::Other) => Condition::Any,
        };
        let protocol = qualifiers
            .protocol
            .map_or(Condition::Any, |protocol| Condition::Key(IndexKey::Protocol(protocol)));
        Ok(Condition::all([own, protocol]))
    }

    /// A network by its prefix or its mask.
    fn network(&mut self, id: &str) -> Result<Condition, String> {
        if self.take(Token::Word("mask")) {
            self.word().ok_or_else(|| self.unexpected())?;
            return Ok(Condition::Any);
        }
        Ok(network(id))
    }
}

/// A number. One that begins with a zero is octal or hexadecimal to libpcap, and is not read here.
fn decimal<T: FromStr>(text: &str) -> Option<T> {
    let is_other = text.len() > 1 && text.starts_with('0');
    if is_other { None } else { text.parse().ok() }
}

/// Whether a word without qualifiers is an id: an address, a network, a number or a range. A name may be a word of the language that
/// changes what follows it.
fn stands_alone(id: &str) -> bool {
    let address = id.split_once('/').map_or(id, |(address, _)| address);
    address.parse::<IpAddr>().is_ok()
        || id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn kind_of(word: &str) -> Option<Kind> {
    Some(match word {
        "host" => Kind::Host,
        "net" => Kind::Net,
        "port" => Kind::Port,
        "portrange" => Kind::PortRange,
        "proto" => Kind::Protocol,
        "protochain" => Kind::Other,
        _ => return None,
    })
}

/// One of the addresses of a network, if they are few. One without a prefix is short for `/8`, `/16` or `/24`, unless it is whole.
fn network(id: &str) -> Condition {
    let (address, bits) = match id.split_once('/') {
        Some((address, bits)) => match decimal(bits) {
            Some(bits) => (address, Some(bits)),
            None => return Condition::Any,
        },
        None => match id.split('.').count() {
            short @ 1..=3 if !id.contains(':') => (id, Some(short as u32 * 8)),
            _ => (id, None),
        },
    };
    let whole = if address.contains(':') {
        address.to_owned()
    } else {
        let missing = 4_usize.saturating_sub(address.split('.').count());
        format!("{address}{}", ".0".repeat(missing))
    };
    let Ok(address) = whole.parse::<IpAddr>() else { return Condition::Any };
    hosts_of(address, bits.unwrap_or(if address.is_ipv4() { 32 } else { 128 }))
}

/// One of the addresses of a network whose prefix has so many bits, if they are few.
pub(crate) fn hosts_of(address: IpAddr, bits: u32) -> Condition {
    let width: u32 = if address.is_ipv4() { 32 } else { 128 };
    let Some(free) = width.checked_sub(bits).filter(|free| *free <= ONE_BY_ONE_MAX.ilog2()) else {
        return Condition::Any;
    };
    let mask = (1_u32 << free) - 1;
    let hosts = (0..=mask).map(|host| match address {
        IpAddr::V4(network) => IpAddr::V4(Ipv4Addr::from((network.to_bits() & !mask) | host)),
        IpAddr::V6(network) => {
            IpAddr::V6(((network.to_bits() & !u128::from(mask)) | u128::from(host)).into())
        }
    });
    Condition::one_of(hosts.map(|host| Condition::Key(IndexKey::Host(host))))
}

/// One of the ports of a range, if they are few.
fn port_range(id: &str) -> Condition {
    let ends = id.split_once('-').and_then(|(from, to)| Some((decimal(from)?, decimal(to)?)));
    let Some((from, to)) = ends else { return Condition::Any };
    let (from, to): (u16, u16) = if from <= to { (from, to) } else { (to, from) };
    if u32::from(to - from) >= ONE_BY_ONE_MAX {
        return Condition::Any;
    }
    Condition::one_of((from..=to).map(|port| Condition::Key(IndexKey::Port(port))))
}

/// All of these. Two hosts and two ports are those of one flow, in one of two ways.
pub(crate) fn all_with_flows(parts: Vec<Condition>) -> Condition {
    let all = Condition::all(parts);
    let Condition::All(parts) = &all else { return all };
    let (mut hosts, mut ports, mut protocols) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part {
            Condition::Key(IndexKey::Host(host)) if !hosts.contains(host) => hosts.push(*host),
            Condition::Key(IndexKey::Port(port)) if !ports.contains(port) => ports.push(*port),
            Condition::Key(IndexKey::Protocol(number)) => protocols.push(*number),
            _ => {}
        }
    }
    let (&[one, other], &[source, destination]) = (&hosts[..], &ports[..]) else { return all };
    if protocols.is_empty() {
        protocols.extend([protocol::TCP, protocol::UDP, protocol::SCTP]);
    }
    let both_ways = [
        Transport::Ports { source, destination },
        Transport::Ports { source: destination, destination: source },
    ];
    let flows = protocols.iter().flat_map(|&protocol| {
        both_ways.map(|transport| {
            let (flow, _) = Flow::new(one, other, protocol, transport);
            community_id(&flow, 0).map_or(Condition::Any, |id| Condition::Key(IndexKey::Flow(id)))
        })
    });
    let flows = Condition::one_of(flows);
    Condition::all([flows, all])
}
