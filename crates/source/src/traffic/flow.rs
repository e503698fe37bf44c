//! One flow: who its ends are, and one packet of it after the other.

use base::Random;

use super::frame::{Body, Frame, PAYLOAD_BYTES_MIN, Segment};
use super::headers::{Address, Fragment, Headers, Route};
use super::messages;
use super::mix::{self, Kind, Opening, Version};
use super::pattern::Pattern;
use crate::synthetic::Sizes;

/// Clients' ports, first and count: those that Linux and IANA leave to them, as far as tshark knows no protocol of them.
const CLIENT_PORTS: [(u16, u16); 3] = [(37_040, 4096), (50_000, 4096), (60_100, 5120)];

/// Ports of servers that tshark knows no protocol of.
const STREAM_PORTS: [u16; 4] = [8090, 20_500, 20_600, 30_303];
const DATAGRAM_PORTS: [u16; 4] = [20_700, 31_000, 43_000, 46_000];

/// The longest train: packets that a flow sends before another has its turn.
const TRAIN_MAX: u32 = 64;

/// A flow's train is up to its length divided by this: longer flows are also faster.
const TRAIN_SHARE: u32 = 8;

/// The longest frame of a fragment, which is that of an Ethernet without jumbo frames.
const FRAGMENT_FRAME_MAX: u16 = 1514;

/// Fragments of a datagram: 2 to this.
const FRAGMENTS_MAX: u64 = 5;

/// The longest payload of a datagram in fragments.
pub(super) const FRAGMENTED_BYTES_MAX: usize = FRAGMENTS_MAX as usize * 1480;

/// Room for fragments where frames are to be shorter than their headers.
const FRAGMENT_ROOM_MIN: usize = 64;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PUSH: u8 = 8;
const ACK: u8 = 16;

/// Of a SYN: the longest segment of 1460 bytes, no operation, a window scale of 7.
const SYN_OPTIONS: [u8; 8] = [2, 4, 5, 180, 1, 3, 3, 7];

/// A flow that goes on.
pub(super) struct Flow {
    /// Its number among all flows.
    pub number: u64,
    kind: Kind,
    opening: Opening,
    version: Version,
    /// From the client to the server, and back.
    headers: [Headers; 2],
    /// The client's and the server's.
    ports: [u16; 2],
    /// What its contents depend on.
    key: u64,
    /// Rank of the server's name.
    site: u32,
    stage: Stage,
    /// Packets that it has sent, but for a TCP connection's beginning and end.
    sent: u32,
    /// How many these will be.
    length: u32,
    /// Next sequence number in each direction.
    sequence: [u32; 2],
    /// Whether the other end has not acknowledged everything.
    owed: [bool; 2],
    id: [u16; 2],
    datagram: Option<Datagram>,
}

/// Where a flow is. UDP and ICMP know only the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Syn,
    SynAck,
    Established,
    Middle,
    Fin,
    FinBack,
    LastAck,
    Over,
}

/// A datagram of which fragments are left.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    direction: usize,
    start: usize,
    length: usize,
    room: usize,
    fragment: Fragment,
}

impl Flow {
    /// The flow with this number.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut random = Random::new(Random::new(seed ^ number.rotate_left(32)).bits());
        let random = &mut random;
        let kind = mix::pick(&mix::KINDS, random);
        let version = mix::pick(&mix::VERSIONS, random);
        let (client, site) = (mix::rank(random), mix::rank(random));
        let [client, server] = [client_address(client, version), server_address(site, version)];
        let mut route = Route {
            source: client,
            destination: server,
            protocol: protocol(kind, version),
            fragments: kind == Kind::Fragments,
            tag: mix::pick(&mix::TAGS, random),
            tunnel: mix::pick(&mix::TUNNELS, random),
            network: random.bits() as u32,
            direction: 0,
        };
        let there = Headers::new(&route);
        (route.source, route.destination, route.direction) = (server, client, 1);
        let back = Headers::new(&route);
        let opening = mix::pick(&mix::OPENINGS, random);
        let tcp = matches!(kind, Kind::Tls | Kind::Http | Kind::Stream);
        let key = random.bits();
        Self {
            number,
            kind,
            opening,
            version,
            headers: [there, back],
            ports: [client_port(number), server_port(kind, random)],
            key,
            site: if kind == Kind::Dns { mix::rank(random) } else { site },
            stage: if tcp { Stage::Syn } else { Stage::Middle },
            sent: 0,
            length: if kind == Kind::Dns { 2 } else { mix::packets(random) },
            sequence: [random.bits() as u32, random.bits() as u32],
            owed: [false; 2],
            id: [key as u16, (key >> 16) as u16],
            datagram: None,
        }
    }

    /// Whether it has sent its last packet.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// How many packets it sends before another flow has its turn. Traffic comes in trains of packets (Jain and
    /// Routhier, "Packet Trains: Measurements and a New Model for Computer Network Traffic", IEEE JSAC 4(6), 1986).
    pub(super) fn train(&self, random: &mut Random) -> u32 {
        let longest = (self.length / TRAIN_SHARE).clamp(1, TRAIN_MAX);
        1 + random.below(u64::from(longest)) as u32
    }

    /// Whether it has begun a datagram, whose fragments follow each other.
    pub(super) fn in_datagram(&self) -> bool {
        self.datagram.is_some()
    }

    /// Makes the next packet.
    #[inline]
    pub(super) fn packet(&mut self, frame: &mut Frame, sizes: Sizes, random: &mut Random) {
        match self.stage {
            Stage::Middle => self.middle(frame, sizes, random),
            Stage::Syn | Stage::SynAck | Stage::Established => self.begin(frame),
            Stage::Fin | Stage::FinBack | Stage::LastAck | Stage::Over => self.end(frame),
        }
    }

    #[inline]
    fn middle(&mut self, frame: &mut Frame, sizes: Sizes, random: &mut Random) {
        let bits = random.bits();
        let size = usize::from(sizes.of(bits & 0xffff_ffff));
        match self.kind {
            Kind::Tls | Kind::Http | Kind::Stream => self.data(frame, size, bits),
            Kind::Dns => self.dns(frame),
            Kind::Datagrams => self.datagram(frame, size, bits),
            Kind::Fragments => {
                let frame_max = sizes.max().min(FRAGMENT_FRAME_MAX);
                self.fragment(frame, usize::from(frame_max), random);
                if self.in_datagram() {
                    return;
                }
            }
            Kind::Ping => self.ping(frame, sizes),
        }
        self.sent += 1;
        if self.sent == self.length {
            let tcp = matches!(self.kind, Kind::Tls | Kind::Http | Kind::Stream);
            self.stage = if tcp { Stage::Fin } else { Stage::Over };
        }
    }

    /// A packet of a connection's handshake.
    fn begin(&mut self, frame: &mut Frame) {
        let (direction, flags, options, next): (_, _, &[u8], _) = match (self.stage, self.opening) {
            (Stage::Syn, Opening::Unanswered) => (0, SYN, &SYN_OPTIONS, Stage::Over),
            (Stage::Syn, _) => (0, SYN, &SYN_OPTIONS, Stage::SynAck),
            (Stage::SynAck, Opening::Refused) => {
                self.sequence[1] = 0;
                (1, RST | ACK, &[], Stage::Over)
            }
            (Stage::SynAck, _) => (1, SYN | ACK, &SYN_OPTIONS, Stage::Established),
            _ => (0, ACK, &[], Stage::Middle),
        };
        self.segment(frame, direction, flags, options, Body::Empty);
        self.sequence[direction] =
            self.sequence[direction].wrapping_add(u32::from(flags & SYN != 0));
        self.stage = next;
    }

    /// A packet of its end.
    fn end(&mut self, frame: &mut Frame) {
        let (direction, flags, next) = match self.stage {
            Stage::Fin => (0, FIN | ACK, Stage::FinBack),
            Stage::FinBack => (1, FIN | ACK, Stage::LastAck),
            _ => (0, ACK, Stage::Over),
        };
        self.segment(frame, direction, flags, &[], Body::Empty);
        self.sequence[direction] =
            self.sequence[direction].wrapping_add(u32::from(flags & FIN != 0));
        self.stage = next;
    }

    /// A segment of an established connection.
    #[inline]
    fn data(&mut self, frame: &mut Frame, size: usize, bits: u64) {
        if self.sent < 2 && self.kind != Kind::Stream {
            return self.hello(frame);
        }
        let room = |direction: usize| size.saturating_sub(self.headers[direction].length() + 20);
        // Three of four segments with data come from the server, and all of HTTP; none comes before the client has
        // asked.
        let answered = self.kind == Kind::Http || bits >> 62 != 0;
        let direction = usize::from(self.sent > 0 && answered);
        let short = room(direction) <= PAYLOAD_BYTES_MIN;
        if short && let Some(debtor) = self.owed.iter().position(|&owed| owed) {
            return self.segment(frame, 1 - debtor, ACK, &[], Body::Empty);
        }
        let length = room(direction).max(PAYLOAD_BYTES_MIN);
        let start = Pattern::place(bits >> 40);
        let body = match self.kind {
            Kind::Tls => {
                let head = messages::application_data(length as u16);
                Body::Headed { start, length, head }
            }
            _ => Body::Pattern { start, length },
        };
        self.send(frame, direction, length, body);
    }

    /// What a client asks first, and what the server answers.
    fn hello(&mut self, frame: &mut Frame) {
        let direction = self.sent as usize;
        let message = &mut frame.message;
        match (self.kind, direction) {
            (Kind::Tls, 0) => messages::client_hello(message, self.site, self.key),
            (Kind::Tls, _) => messages::server_hello(message, self.key),
            (_, 0) => messages::http_request(message, self.site),
            _ => messages::http_response(message),
        }
        let length = frame.message.len();
        self.send(frame, direction, length, Body::Message);
    }

    /// A segment with data.
    #[inline]
    fn send(&mut self, frame: &mut Frame, direction: usize, length: usize, body: Body) {
        self.segment(frame, direction, PUSH | ACK, &[], body);
        self.sequence[direction] = self.sequence[direction].wrapping_add(length as u32);
        self.owed[direction] = true;
    }

    /// A segment, which acknowledges all that came from the other end.
    #[inline]
    fn segment(
        &mut self,
        frame: &mut Frame,
        direction: usize,
        flags: u8,
        options: &[u8],
        body: Body,
    ) {
        let segment = Segment {
            ports: self.ports(direction),
            sequence: self.sequence[direction],
            acknowledged: if flags & ACK == 0 { 0 } else { self.sequence[1 - direction] },
            flags,
            options,
        };
        let id = self.id(direction);
        frame.tcp(&self.headers[direction], id, &segment, body);
        self.owed[1 - direction] = false;
    }

    fn dns(&mut self, frame: &mut Frame) {
        let direction = self.sent as usize;
        let id = (self.key >> 32) as u16;
        match direction {
            0 => {
                messages::dns_query(&mut frame.message, id, self.site, self.version == Version::V6)
            }
            _ => {
                let address = server_address(self.site, self.version);
                messages::dns_answer(&mut frame.message, id, self.site, address);
            }
        }
        let (ports, id) = (self.ports(direction), self.id(direction));
        frame.udp(&self.headers[direction], id, ports, Body::Message);
    }

    #[inline]
    fn datagram(&mut self, frame: &mut Frame, size: usize, bits: u64) {
        let direction = usize::from(self.sent > 0 && bits >> 63 != 0);
        let room = size.saturating_sub(self.headers[direction].length() + 8);
        let (start, length) = (Pattern::place(bits >> 40), room.max(PAYLOAD_BYTES_MIN));
        let (ports, id) = (self.ports(direction), self.id(direction));
        frame.udp(&self.headers[direction], id, ports, Body::Pattern { start, length });
    }

    fn fragment(&mut self, frame: &mut Frame, frame_max: usize, random: &mut Random) {
        let datagram = self.datagram.take();
        let mut datagram = datagram.unwrap_or_else(|| self.new_datagram(frame_max, random));
        let Datagram { direction, start, length, room, fragment } = datagram;
        let ports = self.ports(direction);
        frame.fragment(&self.headers[direction], ports, (start, length), (fragment, room));
        datagram.fragment.offset += room as u16;
        let left = usize::from(datagram.fragment.offset) < 8 + length;
        self.datagram = left.then_some(datagram);
    }

    fn new_datagram(&mut self, frame_max: usize, random: &mut Random) -> Datagram {
        let direction = usize::from(self.sent > 0 && random.one_in(4));
        let room = frame_max.saturating_sub(self.headers[direction].length()) & !7;
        let room = room.max(FRAGMENT_ROOM_MIN);
        // The last one has at least one byte, and at most as many as the others.
        let whole = 1 + random.below(FRAGMENTS_MAX - 1) as usize;
        let length = whole * room - 8 + 1 + random.below(room as u64) as usize;
        let start = Pattern::place(random.bits());
        let datagram = u32::from(self.id(direction));
        let fragment = Fragment { datagram, ..Fragment::default() };
        Datagram { direction, start, length, room, fragment }
    }

    /// A request, or the reply with the same payload.
    fn ping(&mut self, frame: &mut Frame, sizes: Sizes) {
        let direction = (self.sent % 2) as usize;
        let number = self.sent / 2;
        let size = usize::from(sizes.of(self.key & 0xffff_ffff));
        let room = size.saturating_sub(self.headers[direction].length() + 8);
        let start = Pattern::place(self.key.wrapping_add(u64::from(number)));
        let body = Body::Pattern { start, length: room.max(PAYLOAD_BYTES_MIN) };
        let (v6, kinds) = match self.version {
            Version::V4 => (false, [8, 0]),
            Version::V6 => (true, [128, 129]),
        };
        let (headers, id) = (&self.headers[direction], self.id[direction]);
        let echo = (self.ports[0], number as u16);
        frame.echo(headers, id, (kinds[direction], v6), echo, body);
        self.id[direction] = id.wrapping_add(1);
    }

    /// Source and destination.
    const fn ports(&self, direction: usize) -> (u16, u16) {
        (self.ports[direction], self.ports[1 - direction])
    }

    /// The next IPv4 identification: each end of a flow counts.
    const fn id(&mut self, direction: usize) -> u16 {
        let id = self.id[direction];
        self.id[direction] = id.wrapping_add(1);
        id
    }
}

const fn protocol(kind: Kind, version: Version) -> u8 {
    match (kind, version) {
        (Kind::Tls | Kind::Http | Kind::Stream, _) => 6,
        (Kind::Dns | Kind::Datagrams | Kind::Fragments, _) => 17,
        (Kind::Ping, Version::V4) => 1,
        (Kind::Ping, Version::V6) => 58,
    }
}

/// Flows one after the other have different ones.
fn client_port(number: u64) -> u16 {
    let all: u16 = CLIENT_PORTS.iter().map(|(_, count)| count).sum();
    let mut left = (number % u64::from(all)) as u16;
    for (first, count) in CLIENT_PORTS {
        if left < count {
            return first + left;
        }
        left -= count;
    }
    unreachable!("the remainder is below the sum")
}

const fn server_port(kind: Kind, random: &mut Random) -> u16 {
    let one = random.below(4) as usize;
    match kind {
        Kind::Tls => 443,
        Kind::Http => 80,
        Kind::Dns => 53,
        Kind::Stream => STREAM_PORTS[one],
        Kind::Datagrams | Kind::Fragments | Kind::Ping => DATAGRAM_PORTS[one],
    }
}

/// In 10.0.0.0/8 (RFC 1918) or fd00::/8 (RFC 4193).
fn client_address(rank: u32, version: Version) -> Address {
    let [_, a, b, c] = rank.wrapping_mul(40_503).to_be_bytes();
    match version {
        Version::V4 => Address::V4([10, a, b, c]),
        Version::V6 => Address::V6([0xfd, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, a, b, c]),
    }
}

/// In the networks for benchmarks, 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180).
fn server_address(rank: u32, version: Version) -> Address {
    let [_, a, b, c] = rank.wrapping_mul(40_503).to_be_bytes();
    match version {
        Version::V4 => Address::V4([198, 18 | a & 1, b, c]),
        Version::V6 => Address::V6([0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, a & 1, b, c]),
    }
}
