//! What a source pushes into: the recorder's packer behind it in a recording, a counter in a test.

use base::Timestamp;
use format::{Interface, Packet};

/// The recording is over (or can't go on): the source returns without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

/// A loss that a source knows of, by where it happened. The sink's own losses (no buffer, device
/// error) are not a source's to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The interface or its driver dropped before the kernel's capture socket.
    Interface,
    /// The kernel dropped because the capture ring or socket buffer was full.
    KernelRing,
    /// The source saw it and its filter refused it.
    Filtered,
}

/// Takes packets in the order of arrival from one thread.
pub trait Sink {
    /// Declares an interface; packets then name it by the number returned. The same description
    /// declared twice gets two numbers.
    fn interface(&mut self, interface: &Interface) -> u32;

    /// Takes one packet, copying it. If the source can wait, this blocks until there is room; if it
    /// can't, a packet without room is dropped and counted by the sink, and that is `Ok`.
    ///
    /// # Errors
    /// [`Ended`] when the source should return.
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended>;

    /// Enters a loss in the ledger and in the stream, in front of the next packet of `interface`.
    /// `bytes` is 0 where they can't be known.
    fn lost(&mut self, interface: u32, stage: Loss, packets: u64, bytes: u64);

    /// To be called at least every 50 ms when packets don't come, so that a chunk half full gets
    /// written in time and a stop is seen. `now` is the wall clock.
    ///
    /// # Errors
    /// [`Ended`] when the source should return.
    fn tick(&mut self, now: Timestamp) -> Result<(), Ended>;
}
