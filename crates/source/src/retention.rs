//! Which part of each packet is kept: a rule between a source and the chunk that its packets are copied into.

use std::fmt::Debug;

use format::{Interface, LinkType, Packet};

/// Decides once for each packet of a queue what is kept of it. Runs in the queue's thread, in front of the copy.
pub trait Retention: Debug + Send {
    /// Changes an interface's description where the rule shows in it.
    fn describe(&self, interface: &mut Interface);

    /// How many of a packet's first bytes are kept; `None` leaves out the packet.
    fn keep(&mut self, link_type: LinkType, packet: &Packet<'_>) -> Option<usize>;
}
