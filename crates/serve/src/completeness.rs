//! How complete an answer is, as the API describes it.

use format::Count;
use longtake::instant::utc;
use serde::Serialize;
use utoipa::ToSchema;

/// How complete an answer is.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Completeness {
    /// Whether the answer covers every packet that was stored in the takes and the span that were asked for. What a ring overwrote
    /// counts against it only if a span was asked for. What was lost before it could be stored is in the ledger.
    complete: bool,
    /// Numbers of members that can't be opened. Parity recovers what they held, if it can.
    missing_members: Vec<u16>,
    /// Numbers of members that are out of date.
    stale_members: Vec<u16>,
    /// Packets that the array should hold and doesn't.
    missing: Packets,
    /// Packets in chunks that are damaged, or that a drive failed to read.
    unreadable: Packets,
    /// Packets that the ring overwrote before they were listed, in takes of which something is left.
    overwritten: Packets,
    /// Packets that the ring overwrote while they were being read.
    overtaken: Packets,
    /// Time of the first packet after which some are overwritten; null if none is.
    overwritten_from: Option<String>,
    /// Time of the last packet before which some are overwritten; null if none is.
    overwritten_to: Option<String>,
    /// Chunks that come from a member that is out of date, although the ring has overwritten them since.
    outdated_chunks: u64,
}

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Packets {
    /// Number of packets.
    packets: u64,
    /// Their bytes on the wire.
    bytes: u64,
}

impl From<Count> for Packets {
    fn from(Count { packets, bytes }: Count) -> Self {
        Self { packets, bytes }
    }
}

impl From<&longtake::array::Completeness> for Completeness {
    fn from(of: &longtake::array::Completeness) -> Self {
        Self {
            complete: of.complete,
            missing_members: of.members.missing.clone(),
            stale_members: of.members.stale.clone(),
            missing: of.missing.into(),
            unreadable: of.unreadable.into(),
            overwritten: of.overwritten.into(),
            overtaken: of.overtaken.into(),
            overwritten_from: of.overwritten_from.map(utc),
            overwritten_to: of.overwritten_to.map(utc),
            outdated_chunks: of.outdated_chunks,
        }
    }
}
