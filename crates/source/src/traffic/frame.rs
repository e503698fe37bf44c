//! Frames put together: prepared headers, a transport header, and a payload.

use super::checksum::{finish, finish_udp, sum};
use super::headers::{Fragment, HEADERS_BYTES_MAX, Headers, put};
use super::pattern::Pattern;

/// The shortest frame without check sequence; what is shorter is padded with zeros.
pub(super) const FRAME_BYTES_MIN: usize = 60;

/// The least payload of a packet with data: that of the shortest frame with IPv4 and TCP.
pub(super) const PAYLOAD_BYTES_MIN: usize = 6;

/// The most bytes of a frame in front of its payload.
const OVERHEAD_BYTES_MAX: usize = HEADERS_BYTES_MAX + 20 + 12;

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    /// The message at hand.
    Message,
    /// A part of the pattern.
    Pattern { start: usize, length: usize },
    /// The same, of which the first bytes are others.
    Headed { start: usize, length: usize, head: [u8; 6] },
    /// Nothing.
    Empty,
}

/// A TCP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub ports: (u16, u16),
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u8,
    /// A multiple of 4 bytes, up to 12.
    pub options: &'a [u8],
}

/// The frame at hand.
pub(super) struct Frame {
    bytes: Vec<u8>,
    length: usize,
    pub pattern: Pattern,
    pub message: Vec<u8>,
}

impl Frame {
    /// For payloads of up to `longest` bytes.
    pub(super) fn new(seed: u64, longest: usize) -> Self {
        Self {
            bytes: vec![0; OVERHEAD_BYTES_MAX + longest],
            length: 0,
            pattern: Pattern::new(seed, longest),
            message: Vec::with_capacity(512),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    #[inline]
    pub(super) fn tcp(&mut self, headers: &Headers, id: u16, segment: &Segment<'_>, body: Body) {
        let at = headers.length();
        let length = 20 + segment.options.len();
        let transport = length + self.length_of(body);
        self.begin(headers, id, None, at + transport);
        let payload_sum = self.body(at + length, body);
        let words = [
            segment.ports.0,
            segment.ports.1,
            (segment.sequence >> 16) as u16,
            segment.sequence as u16,
            (segment.acknowledged >> 16) as u16,
            segment.acknowledged as u16,
            ((length as u16 / 4) << 12) | u16::from(segment.flags),
            WINDOW,
        ];
        let mut all = u64::from(headers.pseudo_sum) + transport as u64 + payload_sum;
        for (word, place) in words.into_iter().zip((at..).step_by(2)) {
            put(&mut self.bytes, place, word);
            all += u64::from(word);
        }
        put(&mut self.bytes, at + 18, 0);
        self.bytes[at + 20..at + length].copy_from_slice(segment.options);
        put(&mut self.bytes, at + 16, finish(all + sum(segment.options)));
    }

    #[inline]
    pub(super) fn udp(&mut self, headers: &Headers, id: u16, ports: (u16, u16), body: Body) {
        let at = headers.length();
        let payload = self.length_of(body);
        self.begin(headers, id, None, at + 8 + payload);
        let payload_sum = self.body(at + 8, body);
        self.udp_header(headers, ports, payload, payload_sum);
    }

    /// A fragment of a datagram whose payload is `length` bytes of the pattern from `start` on. It is `room` bytes
    /// long, UDP header and all, unless it is the last.
    pub(super) fn fragment(
        &mut self,
        headers: &Headers,
        ports: (u16, u16),
        (start, length): (usize, usize),
        (mut fragment, room): (Fragment, usize),
    ) {
        let at = headers.length();
        let from = usize::from(fragment.offset);
        let to = (from + room).min(8 + length);
        fragment.more = to < 8 + length;
        let skipped = if from == 0 { 8 } else { 0 };
        let part = start + from + skipped - 8..start + to - 8;
        self.begin(headers, 0, Some(fragment), at + skipped + part.len());
        self.body(at + skipped, Body::Pattern { start: part.start, length: part.len() });
        if from == 0 {
            let sum = self.pattern.sum(start..start + length);
            self.udp_header(headers, ports, length, sum);
        }
    }

    /// An echo request or reply; `v6` is that of ICMPv6.
    pub(super) fn echo(
        &mut self,
        headers: &Headers,
        id: u16,
        (kind, v6): (u8, bool),
        (identifier, sequence): (u16, u16),
        body: Body,
    ) {
        let at = headers.length();
        let payload = self.length_of(body);
        self.begin(headers, id, None, at + 8 + payload);
        let payload_sum = self.body(at + 8, body);
        let kind = u16::from(kind) << 8;
        let mut all = payload_sum + u64::from(kind) + u64::from(identifier) + u64::from(sequence);
        if v6 {
            all += u64::from(headers.pseudo_sum) + 8 + payload as u64;
        }
        put(&mut self.bytes, at, kind);
        put(&mut self.bytes, at + 2, finish(all));
        put(&mut self.bytes, at + 4, identifier);
        put(&mut self.bytes, at + 6, sequence);
    }

    fn udp_header(&mut self, headers: &Headers, ports: (u16, u16), payload: usize, sum: u64) {
        let at = headers.length();
        let length = 8 + payload as u16;
        // The length is in the pseudo-header and in the header.
        let words = u64::from(ports.0) + u64::from(ports.1) + 2 * u64::from(length);
        put(&mut self.bytes, at, ports.0);
        put(&mut self.bytes, at + 2, ports.1);
        put(&mut self.bytes, at + 4, length);
        put(&mut self.bytes, at + 6, finish_udp(u64::from(headers.pseudo_sum) + words + sum));
    }

    fn length_of(&self, body: Body) -> usize {
        match body {
            Body::Empty => 0,
            Body::Message => self.message.len(),
            Body::Pattern { length, .. } | Body::Headed { length, .. } => length,
        }
    }

    /// Writes the headers of a frame of so many bytes, and pads it. They come first, because they are copied whole.
    #[inline]
    fn begin(&mut self, headers: &Headers, id: u16, fragment: Option<Fragment>, length: usize) {
        headers.write(&mut self.bytes, length, id, fragment);
        self.length = length;
        if length < FRAME_BYTES_MIN {
            self.bytes[length..FRAME_BYTES_MIN].fill(0);
            self.length = FRAME_BYTES_MIN;
        }
    }

    /// Writes the payload: the sum of its words.
    #[inline]
    fn body(&mut self, at: usize, body: Body) -> u64 {
        match body {
            Body::Empty => 0,
            Body::Message => {
                self.bytes[at..at + self.message.len()].copy_from_slice(&self.message);
                sum(&self.message)
            }
            Body::Pattern { start, length } => {
                let range = start..start + length;
                self.bytes[at..at + length].copy_from_slice(self.pattern.bytes(range.clone()));
                self.pattern.sum(range)
            }
            Body::Headed { start, length, head } => {
                let range = start + head.len()..start + length;
                self.bytes[at..at + head.len()].copy_from_slice(&head);
                self.bytes[at + head.len()..at + length]
                    .copy_from_slice(self.pattern.bytes(range.clone()));
                sum(&head) + self.pattern.sum(range)
            }
        }
    }
}

/// Of every segment: with the scale of 7 in the SYN, 1 MiB.
const WINDOW: u16 = 8192;
