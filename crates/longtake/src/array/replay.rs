//! Selected packets, back onto a wire.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use base::Timestamp;
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Interface, Packet};
use recorder::extract::{Unreadable, Visitor};
use recorder::takes::Entry;
use source::pace::Pace;
use source::replay::{Replay, ReplaySummary};
use source::transmit::Sender;
use source::{Ended, Sink};

use super::account::ReadAccount;
use super::filter::Filter;
use super::select::{Selected, Stopped};

/// What was replayed.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What was sent and how late, and what could not be.
    pub sent: ReplaySummary,
    /// What could not be read.
    pub read: ReadAccount,
}

impl Replayed {
    /// Whether every packet that is on the array was sent.
    pub fn is_complete(&self) -> bool {
        let ReplaySummary { oversize, truncated, not_udp, other_link_type, unsent, .. } = self.sent;
        oversize + truncated + not_udp + other_link_type + unsent == 0 && self.read.is_read_whole()
    }
}

impl Selected<'_> {
    /// Sends every packet at a pace, until `stop` is set.
    ///
    /// # Errors
    /// If the sender fails, the filter can't be compiled, or a bank fails. Chunks that can't be read are in the account.
    pub fn replay(
        self,
        mut sender: impl Sender,
        pace: Pace,
        stop: &AtomicBool,
    ) -> crate::Result<Replayed> {
        self.send_to(&mut sender, pace, stop)
    }

    fn send_to(
        mut self,
        sender: &mut dyn Sender,
        pace: Pace,
        stop: &AtomicBool,
    ) -> crate::Result<Replayed> {
        let mut visitor = SendVisitor {
            replay: Replay::new(sender, pace, stop),
            filter: std::mem::take(&mut self.filter),
            numbers: HashMap::new(),
            account: ReadAccount::default(),
        };
        // If it was stopped by an error, the end of the replay names it.
        self.visit(&mut visitor)?;
        let SendVisitor { replay, account, .. } = visitor;
        let sent = replay.finish().map_err(anyhow::Error::from)?;
        Ok(Replayed { sent, read: self.complete(account) })
    }
}

struct SendVisitor<'s> {
    replay: Replay<'s, &'s mut dyn Sender>,
    filter: Filter,
    numbers: HashMap<Interface, u32>,
    account: ReadAccount,
}

impl Visitor for SendVisitor<'_> {
    type Error = anyhow::Error;

    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        _block: &Block<'_>,
        _record: &ChunkRecord,
    ) -> Result<()> {
        if !self.filter.accepts(interface, packet)? {
            return Ok(());
        }
        let number = match self.numbers.get(interface) {
            Some(&number) => number,
            None => {
                let number = self.replay.interface(interface);
                self.numbers.insert(interface.clone(), number);
                number
            }
        };
        let packet = Packet {
            interface: number,
            timestamp: Timestamp::from_nanos(packet.time),
            original_length: packet.original_length,
            data: packet.data,
            options: &[],
        };
        self.replay.packet(&packet).map_err(|Ended| Stopped.into())
    }

    fn blocks(&mut self, _: &[Interface], _: &[u8], _: &ChunkRecord) -> Result<bool> {
        Ok(false)
    }

    fn recovered(&mut self, entry: &Entry, _why: &Unreadable) -> Result<()> {
        self.account.recovered.enter(entry);
        Ok(())
    }

    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<()> {
        self.account.enter_lost(entry, why);
        Ok(())
    }

    fn progress(&mut self, _done: u64, _of: u64) -> Result<()> {
        Ok(())
    }
}
