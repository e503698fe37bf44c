//! Generated traffic that looks like that of a network: many flows between few busy and many quiet hosts.
//!
//! - Flows begin and end, in both directions: TCP connections (TLS, HTTP, others), DNS, other UDP, UDP in fragments,
//!   ICMP echo; over IPv4 and IPv6; some behind VLAN tags, QinQ, MPLS, VXLAN, GTP-U, GRE or IP in IP. The shares, and the
//!   laws of hosts and lengths with their sources, are the constants of `traffic::mix`.
//! - All lengths and checksums are right. A flow's contents depend on the seed and the flow's number alone, and the
//!   order of packets on the seed, the options and the queue: neither on the rate nor on the time.
//! - [`ACTIVE_MAX`] flows go on at a time, or half of them if there are fewer. When one ends, the next begins in its place. Memory is theirs, about 2 MB
//!   for each queue, whatever the number of flows.
//! - The flows asked for are numbered. After the last one the first begins again, with the same addresses and ports.
//!   Two numbers can have the same addresses and ports, at 2,000,000 flows about one in 200, and echoes between the
//!   same hosts count as one flow: there are a little fewer flows than numbers.

mod checksum;
mod flow;
mod frame;
mod headers;
mod messages;
mod mix;
mod pattern;

use std::collections::HashSet;
use std::fmt;

use base::Random;

pub use crate::generator::{OptionsError, Pace};
pub use crate::synthetic::Sizes;

use crate::generator::{self, Generator};
use flow::{FRAGMENTED_BYTES_MAX, Flow};
use frame::Frame;

/// The shortest frames that can be asked for, in bytes without check sequence.
pub const FRAME_BYTES_MIN: u16 = frame::FRAME_BYTES_MIN as u16;

/// Flows that go on at a time, in each queue.
pub const ACTIVE_MAX: u64 = 4096;

/// The most flows.
pub const FLOWS_MAX: u64 = 1 << 40;

/// Flows unless others are asked for: with 14 packets in each on average, as many as begin within 28 million packets.
pub const FLOWS_DEFAULT: u64 = 2_000_000;

/// Mean length of frames with [`Sizes::Imix`] in bytes, without check sequence, once flows end as fast as they begin.
pub const IMIX_MEAN_BYTES: u32 = 350;

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How fast.
    pub pace: Pace,
    /// How many flows there are, over all queues together: at least one for each, at most [`FLOWS_MAX`].
    pub flows: u64,
    /// How long frames are that carry data; what a protocol gives a length of its own keeps that, and no frame is
    /// shorter than its headers.
    pub sizes: Sizes,
    /// Makes everything.
    pub seed: u64,
    /// Sources that run side by side, each with its share of the rate and of the flows; 1 to
    /// [`generator::QUEUES_MAX`].
    pub queues: u16,
}

impl Default for Options {
    /// As fast as possible, [`FLOWS_DEFAULT`], IMIX, seed 1, one queue.
    fn default() -> Self {
        Self { pace: Pace::Max, flows: FLOWS_DEFAULT, sizes: Sizes::Imix, seed: 1, queues: 1 }
    }
}

impl Options {
    /// Checks that every option is in range.
    ///
    /// # Errors
    /// [`OptionsError`] names the first that isn't.
    pub fn check(&self) -> Result<(), OptionsError> {
        match self.sizes {
            Sizes::Fixed(size) if size < FRAME_BYTES_MIN => {
                return Err(OptionsError::Size { size, min: FRAME_BYTES_MIN });
            }
            _ => {}
        }
        generator::check(self.pace, self.queues)?;
        let (flows, min, max) = (self.flows, u64::from(self.queues), FLOWS_MAX);
        if !(min..=max).contains(&flows) {
            return Err(OptionsError::Flows { flows, min, max });
        }
        Ok(())
    }

    /// Mean length of frames in bytes, about.
    pub const fn mean_bytes(&self) -> u32 {
        match self.sizes {
            Sizes::Fixed(size) => size as u32,
            Sizes::Imix => IMIX_MEAN_BYTES,
        }
    }
}

impl fmt::Display for Options {
    /// As the command line takes it after `traffic:`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pace, flows, sizes, seed, queues } = self;
        write!(f, "{pace},flows={flows},{sizes},seed={seed},queues={queues}")
    }
}

/// One queue of a source of traffic, to be run by a thread of its own.
pub struct Traffic {
    options: Options,
    queue: u16,
    random: Random,
    frame: Frame,
    flows: Vec<Flow>,
    /// Numbers of the flows that go on.
    active: HashSet<u64>,
    /// Of the next flow, counted within the queue.
    next: u64,
    /// The flow whose turn it is, and how many packets it sends still.
    turn: (usize, u32),
}

impl Traffic {
    /// Each queue of the source.
    ///
    /// # Errors
    /// [`OptionsError`] if a size, a rate or a number is out of range.
    pub fn open(options: &Options) -> Result<Vec<Self>, OptionsError> {
        options.check()?;
        Ok((0..options.queues).map(|queue| Self::queue(options, queue)).collect())
    }

    fn queue(options: &Options, queue: u16) -> Self {
        let longest = usize::from(options.sizes.max()).max(FRAGMENTED_BYTES_MAX);
        let mut traffic = Self {
            options: *options,
            queue,
            random: Random::new(options.seed.rotate_left(16) ^ u64::from(queue)),
            frame: Frame::new(options.seed, longest),
            flows: Vec::new(),
            active: HashSet::new(),
            next: 0,
            turn: (0, 0),
        };
        for _ in 0..traffic.numbers().div_ceil(2).min(ACTIVE_MAX) {
            let flow = traffic.begin();
            traffic.flows.push(flow);
        }
        traffic
    }

    /// How many flows are this queue's: every so manieth is.
    fn numbers(&self) -> u64 {
        let (queue, queues) = (u64::from(self.queue), u64::from(self.options.queues));
        (self.options.flows - queue).div_ceil(queues)
    }

    /// The next flow that is not going on.
    fn begin(&mut self) -> Flow {
        loop {
            let number = self.next * u64::from(self.options.queues) + u64::from(self.queue);
            self.next = (self.next + 1) % self.numbers();
            if self.active.insert(number) {
                return Flow::new(self.options.seed, number);
            }
        }
    }
}

impl Generator for Traffic {
    fn pace(&self) -> Pace {
        self.options.pace
    }

    fn queues(&self) -> u16 {
        self.options.queues
    }

    fn names(&self) -> (String, String) {
        let description = format!("traffic generated by Longtake, {}", self.options);
        (format!("traffic{}", self.queue), description)
    }

    #[inline]
    fn packet<T>(&mut self, _sequence: u64, look: impl FnOnce(&[u8]) -> T) -> T {
        let (mut at, mut left) = self.turn;
        if left == 0 {
            at = self.random.below(self.flows.len() as u64) as usize;
            left = self.flows[at].train(&mut self.random);
        }
        let flow = &mut self.flows[at];
        flow.packet(&mut self.frame, self.options.sizes, &mut self.random);
        if flow.is_over() {
            let number = flow.number;
            self.active.remove(&number);
            self.flows[at] = self.begin();
            left = 0;
        } else if !flow.in_datagram() {
            left -= 1;
        }
        self.turn = (at, left);
        look(self.frame.bytes())
    }
}

#[cfg(test)]
mod tests;
