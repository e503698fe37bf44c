//! A filter and a snap length in user space, between any packet source and its sink.
//!
//! For sources that the kernel doesn't filter for: capture files, and interfaces whose program can't be
//! attached. What is refused is counted, never silent.

use base::{Duration, Timestamp};
use format::{Interface, Packet};

use crate::clock;
use crate::filter::{FilterError, Program};
use crate::readable::TICK;
use crate::sink::{Ended, Loss, Sink};

/// A sink that passes on what the filter accepts, cut to the snap length.
///
/// The program is compiled for each interface's link type when the interface is declared. If that
/// fails, the source is told [`Ended`] at its next call, and [`Filtering::finish`] says why.
#[derive(Debug)]
pub struct Filtering<S> {
    inner: S,
    expression: String,
    snap_length: u32,
    lanes: Vec<Lane>,
    failed: Option<FilterError>,
    heard: Timestamp,
}

/// One interface: the same number on both sides is not promised, so the sink's is the key.
#[derive(Debug)]
struct Lane {
    number: u32,
    /// `None`: everything is accepted.
    program: Option<Program>,
    snap_length: u32,
    refused_packets: u64,
    refused_bytes: u64,
}

impl<S: Sink> Filtering<S> {
    /// Filters for `inner` by an expression in tcpdump's language (empty: everything is accepted) and
    /// cuts packets to `snap_length` bytes (0: not at all).
    pub fn new(inner: S, expression: &str, snap_length: u32) -> Self {
        Self {
            inner,
            expression: expression.trim().to_owned(),
            snap_length,
            lanes: Vec::new(),
            failed: None,
            heard: Timestamp::MIN,
        }
    }

    /// Reports what was refused since the last accepted packet, and gives the sink back.
    ///
    /// # Errors
    /// [`FilterError`] if the filter did not compile for an interface that the source declared.
    pub fn finish(mut self) -> Result<S, FilterError> {
        self.report_all();
        match self.failed {
            None => Ok(self.inner),
            Some(error) => Err(error),
        }
    }

    fn report_all(&mut self) {
        for lane in &mut self.lanes {
            lane.report(&mut self.inner);
        }
    }

    fn compile(&mut self, interface: &Interface) -> Option<Program> {
        if self.expression.is_empty() {
            return None;
        }
        match Program::compile(&self.expression, interface.link_type, self.snap_length) {
            Ok(program) => Some(program),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }
}

impl Lane {
    fn report(&mut self, sink: &mut impl Sink) {
        if self.refused_packets > 0 {
            sink.lost(self.number, Loss::Filtered, self.refused_packets, self.refused_bytes);
            self.refused_packets = 0;
            self.refused_bytes = 0;
        }
    }
}

impl<S: Sink> Sink for Filtering<S> {
    /// Declares it with the filter and snap length that now hold beside those it came with.
    fn interface(&mut self, interface: &Interface) -> u32 {
        let program = self.compile(interface);
        let mut described = interface.clone();
        if !self.expression.is_empty() {
            described.filter = if interface.filter.is_empty() {
                self.expression.clone()
            } else {
                format!("({}) and ({})", interface.filter, self.expression)
            };
        }
        described.snap_length = match (interface.snap_length, self.snap_length) {
            (0, length) | (length, 0) => length,
            (theirs, ours) => theirs.min(ours),
        };
        let number = self.inner.interface(&described);
        self.lanes.push(Lane {
            number,
            program,
            snap_length: if self.snap_length == 0 { u32::MAX } else { self.snap_length },
            refused_packets: 0,
            refused_bytes: 0,
        });
        number
    }

    /// Refused packets count with the bytes they have on the wire, and are reported in front of the
    /// interface's next accepted packet.
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        if self.failed.is_some() {
            return Err(Ended);
        }
        // Few interfaces, and mostly the one of the last packet: looked up by place first.
        let place = packet.interface as usize;
        let lane = match self.lanes.get(place) {
            Some(lane) if lane.number == packet.interface => self.lanes.get_mut(place),
            _ => self.lanes.iter_mut().find(|lane| lane.number == packet.interface),
        };
        let Some(lane) = lane else {
            // Not declared through this adapter: not ours to judge.
            return self.inner.packet(packet);
        };
        let accepted = match &lane.program {
            None => u32::MAX,
            Some(program) => program.accept_length(packet.data, packet.original_length),
        };
        if accepted == 0 {
            lane.refused_packets += 1;
            lane.refused_bytes += u64::from(packet.original_length);
            // The source takes packets for a sign of life and doesn't tick: the sink must hear of
            // the time, and the source of a stop, although nothing passes.
            let now = clock::coarse();
            if now.since(self.heard) >= TICK || now < self.heard {
                return self.tick(now);
            }
            return Ok(());
        }
        lane.report(&mut self.inner);
        let keep = accepted.min(lane.snap_length) as usize;
        match packet.data.get(..keep) {
            Some(data) => self.inner.packet(&Packet { data, ..*packet }),
            None => self.inner.packet(packet),
        }
    }

    fn lost(&mut self, interface: u32, stage: Loss, packets: u64, bytes: u64) {
        self.inner.lost(interface, stage, packets, bytes);
    }

    fn tick(&mut self, now: Timestamp) -> Result<(), Ended> {
        if self.failed.is_some() {
            return Err(Ended);
        }
        self.heard = now;
        self.report_all();
        self.inner.tick(now)
    }
}

/// The coarse clock must be finer than the tick it paces; Linux's is 1 to 10 ms.
const _: () = assert!(TICK.as_nanos() >= Duration::from_millis(20).as_nanos());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Event, Recording};
    use format::LinkType;

    fn ethernet(name: &str) -> Interface {
        Interface {
            name: name.to_owned(),
            description: String::new(),
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        }
    }

    fn packet(interface: u32, data: &[u8]) -> Packet<'_> {
        Packet {
            interface,
            timestamp: Timestamp::from_nanos(5),
            original_length: data.len() as u32,
            data,
            options: &[],
        }
    }

    fn frame(ethertype: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame
    }

    #[test]
    fn what_the_filter_refuses_is_counted_in_front_of_the_next_accepted_packet() {
        let mut sink = Filtering::new(Recording::default(), "arp", 0);
        let number = sink.interface(&ethernet("eth0"));
        let (arp, ip) = (frame(0x0806), frame(0x0800));
        for data in [&arp, &ip, &ip, &arp, &ip] {
            sink.packet(&packet(number, data)).unwrap();
        }
        let recording = sink.finish().unwrap();
        assert_eq!(recording.interfaces[0].filter, "arp");
        assert_eq!(
            without_ticks(recording.events),
            [
                Event::packet(&packet(number, &arp)),
                Event::Lost(number, Loss::Filtered, 2, 120),
                Event::packet(&packet(number, &arp)),
                Event::Lost(number, Loss::Filtered, 1, 60),
            ]
        );
    }

    /// A tick may fall anywhere and splits a report in two.
    fn without_ticks(events: Vec<Event>) -> Vec<Event> {
        let mut joined: Vec<Event> = Vec::new();
        for event in events {
            match (joined.last_mut(), event) {
                (_, Event::Tick) => {}
                (
                    Some(Event::Lost(_, _, packets, bytes)),
                    Event::Lost(_, _, more_packets, more_bytes),
                ) => {
                    *packets += more_packets;
                    *bytes += more_bytes;
                }
                (_, event) => joined.push(event),
            }
        }
        joined
    }

    #[test]
    fn packets_are_cut_to_the_snap_length_and_keep_their_original_length() {
        for expression in ["", "arp"] {
            let mut sink = Filtering::new(Recording::default(), expression, 20);
            let mut described = ethernet("eth0");
            described.snap_length = 262_144;
            let number = sink.interface(&described);
            let arp = frame(0x0806);
            sink.packet(&packet(number, &arp)).unwrap();
            sink.packet(&packet(number, &arp[..14])).unwrap();
            let recording = sink.finish().unwrap();
            assert_eq!(recording.interfaces[0].snap_length, 20);
            let lengths: Vec<_> =
                recording.packets().map(|p| (p.data.len(), p.original_length)).collect();
            assert_eq!(lengths, [(20, 60), (14, 14)]);
        }
    }

    #[test]
    fn a_stop_is_seen_although_every_packet_is_refused() {
        let mut sink = Filtering::new(Recording::ending_at_tick(2), "arp", 0);
        let number = sink.interface(&ethernet("eth0"));
        let ip = frame(0x0800);
        let mut refused = 0u64;
        while sink.packet(&packet(number, &ip)).is_ok() {
            refused += 1;
        }
        let recording = sink.finish().unwrap();
        assert_eq!(recording.lost(Loss::Filtered), refused + 1);
    }

    #[test]
    fn a_filter_that_does_not_compile_ends_the_source_and_is_told_at_the_end() {
        let mut sink = Filtering::new(Recording::default(), "arpp", 0);
        let number = sink.interface(&ethernet("eth0"));
        assert_eq!(sink.packet(&packet(number, &frame(0x0806))), Err(Ended));
        assert_eq!(sink.tick(clock::now()), Err(Ended));
        assert!(matches!(sink.finish(), Err(FilterError::Expression { .. })));
    }
}
