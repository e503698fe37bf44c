//! A sink for tests that keeps everything it is given, in order.

use base::Timestamp;
use format::{Interface, Packet};

use crate::sink::{Ended, Loss, Sink};

/// A packet with its bytes owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedPacket {
    pub interface: u32,
    pub timestamp: Timestamp,
    pub original_length: u32,
    pub data: Vec<u8>,
    pub options: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Packet(OwnedPacket),
    Lost(u32, Loss, u64, u64),
    Tick,
}

impl Event {
    pub(crate) fn packet(packet: &Packet<'_>) -> Self {
        Self::Packet(OwnedPacket {
            interface: packet.interface,
            timestamp: packet.timestamp,
            original_length: packet.original_length,
            data: packet.data.to_vec(),
            options: packet.options.to_vec(),
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub interfaces: Vec<Interface>,
    pub events: Vec<Event>,
    /// Ticks and packets after which it is over.
    ticks_max: usize,
    packets_max: usize,
    ticks: usize,
    packets: usize,
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            interfaces: vec![],
            events: vec![],
            ticks_max: usize::MAX,
            packets_max: usize::MAX,
            ticks: 0,
            packets: 0,
        }
    }
}

impl Recording {
    pub(crate) fn ending_at_tick(ticks_max: usize) -> Self {
        Self { ticks_max, ..Self::default() }
    }

    pub(crate) fn ending_at_packet(packets_max: usize) -> Self {
        Self { packets_max, ..Self::default() }
    }

    pub(crate) fn packets(&self) -> impl Iterator<Item = &OwnedPacket> {
        self.events.iter().filter_map(|event| match event {
            Event::Packet(packet) => Some(packet),
            _ => None,
        })
    }

    pub(crate) fn lost(&self, stage: Loss) -> u64 {
        let lost = |event: &Event| match event {
            Event::Lost(_, at, packets, _) if *at == stage => *packets,
            _ => 0,
        };
        self.events.iter().map(lost).sum()
    }
}

impl Sink for Recording {
    fn interface(&mut self, interface: &Interface) -> u32 {
        self.interfaces.push(interface.clone());
        self.interfaces.len() as u32 - 1
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        assert!((packet.interface as usize) < self.interfaces.len(), "undeclared interface");
        assert!(packet.original_length as usize >= packet.data.len());
        if self.packets >= self.packets_max {
            return Err(Ended);
        }
        self.packets += 1;
        self.events.push(Event::packet(packet));
        Ok(())
    }

    fn lost(&mut self, interface: u32, stage: Loss, packets: u64, bytes: u64) {
        assert!((interface as usize) < self.interfaces.len(), "undeclared interface");
        self.events.push(Event::Lost(interface, stage, packets, bytes));
    }

    fn tick(&mut self, _now: Timestamp) -> Result<(), Ended> {
        if self.ticks >= self.ticks_max {
            return Err(Ended);
        }
        self.ticks += 1;
        self.events.push(Event::Tick);
        Ok(())
    }
}
