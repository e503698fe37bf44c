//! What a recorder says of the take under way: readers need not find out by reading how far it has come.

use format::ChunkRecord;
use uuid::Uuid;

/// How far a take under way has been written. It stays true while the recording goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The take.
    pub take: Uuid,
    /// The greatest number of a chunk that is written.
    pub through: u64,
    /// The numbers before it of chunks that are still being written, in order.
    pub under_way: Vec<u64>,
    /// Which members work, in the array's order. On the others a chunk may be torn.
    pub working: Vec<bool>,
}

impl Written {
    /// Whether a chunk whose header lies on this member lies there whole.
    pub(crate) fn covers(&self, member: u16, record: &ChunkRecord) -> bool {
        record.take.uuid == self.take
            && record.sequence <= self.through
            && self.under_way.binary_search(&record.sequence).is_err()
            && self.working.get(usize::from(member)) == Some(&true)
    }
}
