//! Selected packets, counted by flow, host or port.

use std::ops::ControlFlow;

use anyhow::Result;
use base::{Bank, Duration, Timestamp};
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Interface};
use recorder::extract::{Unreadable, Visitor};
use recorder::takes::Entry;
use search::{
    FLOWS_MAX, FRAGMENTS_MAX, FlowTable, Fragments, Group, Layers, Order, Ranking, dissect,
};

use super::Progress;
use super::account::ReadAccount;
use super::filter::Filter;
use super::select::{ChunkProgress, GoOn, Selected, Stopped};

/// How to count packets. The default counts all flows, those with most bytes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOptions {
    /// By what packets are counted.
    pub group: Group,
    /// By what the rows are sorted.
    pub order: Order,
    /// Only so many rows, from the first on; None for all.
    pub top: Option<usize>,
    /// Rows that are counted at most, which limits the memory. What comes beyond them is counted together.
    pub rows_max: usize,
}

impl Default for FlowOptions {
    fn default() -> Self {
        let (group, order) = (Group::default(), Order::default());
        Self { group, order, top: None, rows_max: FLOWS_MAX }
    }
}

/// What was counted.
///
/// A packet counts for the flow of its innermost IP header, with its length on the wire. Later fragments of a datagram count for the
/// flow of the first, if that was read before them.
#[derive(Clone, Debug)]
pub struct Flows {
    /// The rows, in order.
    pub ranking: Ranking,
    /// By what they are sorted.
    pub order: Order,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether the caller stopped it before the end.
    pub stopped: bool,
    /// What could not be read.
    pub read: ReadAccount,
}

impl Flows {
    /// Whether every packet that was recorded in the selected span was counted.
    pub fn is_complete(&self) -> bool {
        !self.stopped && self.read.is_complete()
    }
}

impl Selected<'_> {
    /// Counts every packet. `progress` counts chunks, and is asked after each whether to go on.
    ///
    /// # Errors
    /// As [`Selected::for_each`].
    pub fn flows(
        self,
        options: &FlowOptions,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> crate::Result<Flows> {
        self.count(options, &mut progress)
    }

    fn count(mut self, options: &FlowOptions, progress: GoOn<'_>) -> crate::Result<Flows> {
        let mut visitor = CountVisitor {
            filter: std::mem::take(&mut self.filter),
            layers: Layers::new(),
            fragments: Fragments::new(FRAGMENTS_MAX),
            table: FlowTable::new(options.group, options.rows_max),
            account: ReadAccount::default(),
            chunks: ChunkProgress::new(self.chunks()),
            progress,
        };
        let start = self.opened.bank.now();
        let stopped = self.visit(&mut visitor)?;
        let CountVisitor { table, account, .. } = visitor;
        let elapsed = self.opened.bank.now().since(start);
        let ranking = table.rank(options.order, options.top);
        let read = self.complete(account);
        Ok(Flows { ranking, order: options.order, elapsed, stopped, read })
    }
}

/// Counts packets.
struct CountVisitor<'p> {
    filter: Filter,
    layers: Layers,
    fragments: Fragments,
    table: FlowTable,
    account: ReadAccount,
    chunks: ChunkProgress,
    progress: GoOn<'p>,
}

impl Visitor for CountVisitor<'_> {
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
        dissect(interface.link_type, packet.data, &mut self.layers);
        self.fragments.resolve(&mut self.layers);
        let time = Timestamp::from_nanos(packet.time);
        self.table.add(&self.layers, packet.original_length.into(), time);
        Ok(())
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

    fn progress(&mut self, done: u64, _of: u64) -> Result<()> {
        let progress = self.chunks.enter(done);
        match (self.progress)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stopped.into()),
        }
    }
}
