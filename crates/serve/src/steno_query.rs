//! Stenographer's query language: hosts, networks, ports, protocols, tags and times, joined by `and` and `or`, which bind alike, from
//! left to right. As there, words need no space between them.

use std::fmt;
use std::net::IpAddr;

use base::{Duration, Timestamp};
use longtake::array::PacketTest;
use longtake::instant::When;

/// Parentheses within parentheses at most.
const DEPTH_MAX: usize = 64;

/// The words of the language. None begins with another one, and none can begin a number, an address or a time.
const WORDS: [&str; 18] = [
    "after", "ago", "&&", "and", "before", "host", "icmp", "ip", "mask", "mpls", "net", "||", "or",
    "port", "proto", "tcp", "udp", "vlan",
];

/// Numbers of protocols.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Why a query is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    reason: String,
    /// Where that was noticed, in bytes.
    at: usize,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at character {}", self.reason, self.at + 1)
    }
}

impl std::error::Error for QueryError {}

/// What a query asks of packets.
///
/// # Errors
/// If it is not understood.
pub fn parse(text: &str, now: Timestamp) -> Result<PacketTest, QueryError> {
    let mut parser = Parser { text, at: 0, start: 0, now };
    let test = parser.expression(0)?;
    match parser.next() {
        Token::End => Ok(test),
        other => Err(parser.expected("'and', 'or' or the end of the query", other)),
    }
}

/// A part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'q> {
    /// One of [`WORDS`].
    Word(&'static str),
    /// A number, an address, a time or a duration.
    Value(&'q str),
    /// A sign, or the beginning of what is no word.
    Sign(char),
    End,
}

struct Parser<'q> {
    text: &'q str,
    /// Where the next token is looked for.
    at: usize,
    /// Where the last one began.
    start: usize,
    now: Timestamp,
}

impl<'q> Parser<'q> {
    fn next(&mut self) -> Token<'q> {
        let rest = self.text[self.at..].trim_start();
        self.start = self.text.len() - rest.len();
        let word = WORDS.iter().find(|word| rest.starts_with(**word));
        let value = &rest[..value_bytes(rest)];
        let (token, length) = match (word, rest.chars().next()) {
            (Some(word), _) => (Token::Word(word), word.len()),
            _ if !value.is_empty() => (Token::Value(value), value.len()),
            (None, Some(sign)) => (Token::Sign(sign), sign.len_utf8()),
            (None, None) => (Token::End, 0),
        };
        self.at = self.start + length;
        token
    }

    fn peek(&mut self) -> Token<'q> {
        let token = self.next();
        self.at = self.start;
        token
    }

    fn error(&self, reason: impl Into<String>) -> QueryError {
        QueryError { reason: reason.into(), at: self.start }
    }

    fn expected(&self, what: &str, found: Token<'_>) -> QueryError {
        if found == Token::End {
            return self.error(format!("{what} is missing"));
        }
        let rest = &self.text[self.start..];
        let is_end = |c: char| c.is_whitespace() || "()/".contains(c);
        let end = rest.char_indices().skip(1).find(|&(_, c)| is_end(c));
        let shown = match (rest.starts_with(is_end), end) {
            (true, _) => &rest[..1],
            (false, Some((end, _))) => &rest[..end],
            (false, None) => rest,
        };
        self.error(format!("'{}' is not {what}", shown.escape_debug()))
    }

    fn expression(&mut self, depth: usize) -> Result<PacketTest, QueryError> {
        let mut test = self.term(depth)?;
        loop {
            let is_and = match self.peek() {
                Token::Word("and" | "&&") => true,
                Token::Word("or" | "||") => false,
                _ => return Ok(test),
            };
            self.next();
            let other = self.term(depth)?;
            test = match (is_and, test) {
                (true, PacketTest::All(mut parts)) => {
                    parts.push(other);
                    PacketTest::All(parts)
                }
                (false, PacketTest::OneOf(mut parts)) => {
                    parts.push(other);
                    PacketTest::OneOf(parts)
                }
                (true, test) => PacketTest::All(vec![test, other]),
                (false, test) => PacketTest::OneOf(vec![test, other]),
            };
        }
    }

    fn term(&mut self, depth: usize) -> Result<PacketTest, QueryError> {
        match self.next() {
            Token::Word("host") => {
                let address = self.address()?;
                Ok(PacketTest::Network(address, width(address)))
            }
            Token::Word("net") => self.network(),
            Token::Word("port") => self.number("a port", u16::MAX).map(PacketTest::Port),
            Token::Word("vlan") => self.number("a VLAN", u16::MAX).map(PacketTest::Vlan),
            Token::Word("mpls") => {
                self.number("an MPLS label", (1_u32 << 20) - 1).map(PacketTest::Mpls)
            }
            Token::Word("ip") => match self.next() {
                Token::Word("proto") => {
                    self.number("a protocol", u8::MAX).map(PacketTest::Protocol)
                }
                other => Err(self.expected("'proto' behind 'ip'", other)),
            },
            Token::Word("icmp") => Ok(PacketTest::Protocol(ICMP)),
            Token::Word("tcp") => Ok(PacketTest::Protocol(TCP)),
            Token::Word("udp") => Ok(PacketTest::Protocol(UDP)),
            Token::Word("before") => Ok(PacketTest::Time(Timestamp::MIN, self.time()?)),
            Token::Word("after") => Ok(PacketTest::Time(self.time()?, Timestamp::MAX)),
            Token::Sign('(') if depth == DEPTH_MAX => {
                Err(self.error(format!("more than {DEPTH_MAX} parentheses within one another")))
            }
            Token::Sign('(') => {
                let test = self.expression(depth + 1)?;
                match self.next() {
                    Token::Sign(')') => Ok(test),
                    other => Err(self.expected("'and', 'or' or ')'", other)),
                }
            }
            other => Err(self.expected(
                "host, net, port, ip proto, icmp, tcp, udp, vlan, mpls, before, after or '('",
                other,
            )),
        }
    }

    fn number<T: TryFrom<u64> + Into<u64>>(&mut self, name: &str, max: T) -> Result<T, QueryError> {
        let max: u64 = max.into();
        let token = self.next();
        let number = match token {
            Token::Value(text) => text.parse::<u64>().ok().filter(|number| *number <= max),
            _ => None,
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.expected(&format!("{name} from 0 to {max}"), token))
    }

    fn address(&mut self) -> Result<IpAddr, QueryError> {
        let token = self.next();
        let address = match token {
            Token::Value(text) => text.parse::<IpAddr>().ok(),
            _ => None,
        };
        let address = address.ok_or_else(|| self.expected("an IP address", token))?;
        Ok(address.to_canonical())
    }

    fn network(&mut self) -> Result<PacketTest, QueryError> {
        let network = self.address()?;
        let bits = match self.next() {
            Token::Sign('/') => self.number("a prefix length", width(network))?,
            Token::Word("mask") => {
                let mask = self.address()?;
                let ones = prefix(mask).filter(|_| mask.is_ipv4() == network.is_ipv4());
                ones.ok_or_else(|| self.error(format!("'{mask}' is not a mask for {network}")))?
            }
            other => return Err(self.expected("'/' or 'mask'", other)),
        };
        Ok(PacketTest::Network(network, bits))
    }

    /// A point in time: RFC 3339, or hours or minutes ago.
    fn time(&mut self) -> Result<Timestamp, QueryError> {
        let token = self.next();
        let Token::Value(text) = token else { return Err(self.not_a_time(token)) };
        if text.contains('T') {
            return match text.parse() {
                Ok(When::At(at)) if has_zone(text) => Ok(at),
                _ => Err(self.not_a_time(token)),
            };
        }
        let (count, seconds) = match (text.strip_suffix('m'), text.strip_suffix('h')) {
            (Some(minutes), _) => (minutes, 60),
            (_, Some(hours)) => (hours, 3600),
            _ => return Err(self.not_a_time(token)),
        };
        let count = count.parse::<u64>().ok().filter(|_| count.bytes().all(|b| b.is_ascii_digit()));
        let Some(seconds) = count.and_then(|count| count.checked_mul(seconds)) else {
            return Err(self.not_a_time(token));
        };
        match self.next() {
            Token::Word("ago") => Ok(ago(self.now, seconds)),
            other => Err(self.expected(&format!("'ago' behind '{text}'"), other)),
        }
    }

    fn not_a_time(&self, found: Token<'_>) -> QueryError {
        self.expected("a time such as 2026-11-26T08:15:00Z, 45m ago or 3h ago", found)
    }
}

/// So many seconds before a point in time, and not before 1970.
fn ago(now: Timestamp, seconds: u64) -> Timestamp {
    let ago = Duration::from_nanos(seconds.saturating_mul(1_000_000_000));
    Timestamp::from_nanos(now.as_nanos().saturating_sub(ago.as_nanos()))
}

/// Length of the value that a text begins with. A duration ends with its unit.
fn value_bytes(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_hexdigit() || ":.-+TZ".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    end + usize::from(end > 0 && text[end..].starts_with(['m', 'h']) && is_count(&text[..end]))
}

fn is_count(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a time names its zone: none is that of this machine, which the client may not know.
fn has_zone(text: &str) -> bool {
    text.ends_with('Z') || text.rsplit_once('T').is_some_and(|(_, time)| time.contains(['+', '-']))
}

/// Bits of an address.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Bits of the prefix that a mask keeps; None if they are not contiguous.
fn prefix(mask: IpAddr) -> Option<u8> {
    let (ones, zeros, width) = match mask {
        IpAddr::V4(mask) => {
            (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros().min(32), 32)
        }
        IpAddr::V6(mask) => {
            (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros().min(128), 128)
        }
    };
    u8::try_from(ones).ok().filter(|_| ones + zeros == width)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000);

    fn net(address: &str, bits: u8) -> PacketTest {
        PacketTest::Network(address.parse().expect("it is an address"), bits)
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn each_primitive_is_understood() {
        use PacketTest::{Mpls, Port, Protocol, Time, Vlan};
        for (text, test) in [
            ("host 1.2.3.4", net("1.2.3.4", 32)),
            ("host fe80::1", net("fe80::1", 128)),
            ("host ::ffff:1.2.3.4", net("1.2.3.4", 32)),
            ("net 1.2.3.4/8", net("1.2.3.4", 8)),
            ("net 2001:db8::/32", net("2001:db8::", 32)),
            ("net 1.2.3.4 mask 255.255.254.0", net("1.2.3.4", 23)),
            ("net 0.0.0.0 mask 0.0.0.0", net("0.0.0.0", 0)),
            ("net 2001:db8:: mask ffff:ffff::", net("2001:db8::", 32)),
            ("port 80", Port(80)),
            ("  port\n0080 ", Port(80)),
            ("port80", Port(80)),
            ("vlan 65535", Vlan(65535)),
            ("mpls 1048575", Mpls(1_048_575)),
            ("ip proto 6", Protocol(6)),
            ("icmp", Protocol(1)),
            ("tcp", Protocol(6)),
            ("udp", Protocol(17)),
            ("before 45m ago", Time(Timestamp::MIN, at(1_700_000_000 - 45 * 60))),
            ("after 3h ago", Time(at(1_700_000_000 - 3 * 3600), Timestamp::MAX)),
            ("after 3hago", Time(at(1_700_000_000 - 3 * 3600), Timestamp::MAX)),
            ("after 9999999h ago", Time(Timestamp::MIN, Timestamp::MAX)),
            ("after 2015-01-01T13:14:15Z", Time(at(1_420_118_055), Timestamp::MAX)),
            ("before 2015-01-01T13:14:15+01:00", Time(Timestamp::MIN, at(1_420_114_455))),
            ("before 2013-01-01T05:05:05-08:00", Time(Timestamp::MIN, at(1_357_045_505))),
        ] {
            assert_eq!(parse(text, NOW), Ok(test), "{text}");
        }
    }

    #[test]
    fn and_and_or_bind_alike_from_left_to_right() {
        use PacketTest::{All, OneOf, Port, Protocol};
        let (tcp, udp) = (Protocol(6), Protocol(17));
        let left = All(vec![udp.clone(), Port(514)]);
        let either = OneOf(vec![left.clone(), tcp.clone()]);
        let flat = All(vec![either, Port(80)]);
        assert_eq!(parse("udp and port 514 or tcp and port 80", NOW), Ok(flat));
        let right = All(vec![tcp, Port(80)]);
        let grouped = OneOf(vec![left, right]);
        for text in [
            "(udp and port 514) or (tcp and port 80)",
            "(udp && port 514) || (tcp && port 80)",
            "((udp)and(port514))or(tcpandport80)",
        ] {
            assert_eq!(parse(text, NOW).as_ref(), Ok(&grouped), "{text}");
        }
        let list = OneOf(vec![Port(1), Port(2), Port(3)]);
        assert_eq!(parse("port 1 or port 2 or port 3", NOW), Ok(list));
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_place() {
        for (text, said) in [
            ("", "is missing at character 1"),
            ("host 1.2.3", "'1.2.3' is not an IP address at character 6"),
            ("host example.org", "'example.org' is not an IP address"),
            ("net 1.2.3.4", "'/' or 'mask' is missing"),
            ("net 1.2.3.4/44", "'44' is not a prefix length from 0 to 32"),
            ("net 1.2.3.4 mask 255.0.255.0", "'255.0.255.0' is not a mask for 1.2.3.4"),
            ("net 1.2.3.4 mask ffff::", "'ffff::' is not a mask"),
            ("port 8 and port 77777", "'77777' is not a port from 0 to 65535 at character 17"),
            ("port -1", "'-1' is not a port"),
            ("mpls 1048576", "'1048576' is not an MPLS label"),
            ("ip proto 256", "'256' is not a protocol from 0 to 255"),
            ("ip 6", "'6' is not 'proto' behind 'ip'"),
            ("protocol 6", "'protocol' is not host, net"),
            ("last 4", "'last' is not host, net"),
            ("not tcp", "'not' is not host, net"),
            ("TCP", "'TCP' is not host, net"),
            ("tcp udp", "'udp' is not 'and', 'or' or the end of the query"),
            ("tcp and", "is missing at character 8"),
            ("(tcp", "'and', 'or' or ')' is missing"),
            ("tcp)", "')' is not 'and', 'or' or the end"),
            ("after 3h", "'ago' behind '3h' is missing"),
            ("after 3d ago", "'3d' is not a time such as"),
            ("after 1h30m ago", "'30m' is not 'ago' behind '1h' at character 9"),
            ("after 99999999999999999999h ago", "is not a time"),
            ("after 2015-01-01T13:14:15", "'2015-01-01T13:14:15' is not a time"),
            ("after 2015-13-01T13:14:15Z", "'2015-13-01T13:14:15Z' is not a time"),
            ("after yesterday", "'yesterday' is not a time"),
            ("port \u{fc}", "'\u{fc}' is not a port"),
        ] {
            let error = parse(text, NOW).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        let deep = format!("{}tcp{}", "(".repeat(64), ")".repeat(64));
        assert_eq!(parse(&deep, NOW), Ok(PacketTest::Protocol(6)));
        let error = parse(&format!("({deep})"), NOW).expect_err("it is too deep");
        assert!(error.to_string().contains("64 parentheses"), "{error}");
    }
}
