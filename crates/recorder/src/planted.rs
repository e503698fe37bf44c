//! Bugs that are planted on purpose, one at a time, so that a test can show that they would be found. The switch exists
//! with the feature `planted` alone, which nothing that ships has.

#[cfg(feature = "planted")]
use std::cell::Cell;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A segment is reused while its index is still to be written.
    ReusesTooEarly,
    /// Coming round, the ring passes over its first segment.
    SkipsAtTheWrap,
    /// Segments are reused whether they are protected or not.
    ReusesProtected,
    /// Segments are trimmed whether they are protected or not.
    TrimsProtected,
    /// Segments are trimmed before a chunk is written that says that they were given up.
    TrimsUntold,
    /// A chunk may be so long that no room is left for the index.
    CrossesSegmentEnd,
    /// An index is written before its chunks are flushed.
    IndexesBeforeFlush,
    /// An index lacks its segment's last chunk.
    ForgetsIndexEntry,
    /// A chunk is acknowledged though one before it is still being written.
    AcknowledgesOutOfOrder,
    /// A chunk whose write failed is not written again.
    ForgetsFailedChunks,
    /// A flush is taken to cover what was acknowledged while it was under way.
    FlushCoversTooMuch,
    /// A chunk that is placed again enters its losses again.
    CountsLossesTwice,
    /// A buffer is given back when its write is asked for.
    ReleasesEarly,
    /// The numbers behind a hole are given out again.
    ReusesNumbers,
    /// The chunk that ends a take is never asked for.
    ForgetsTheEnd,
    /// Opening takes a chunk for sound by its header alone.
    OpensWithoutChecksum,
    /// Opening takes what an earlier lap left for the continuation of this one.
    OpensPastTheEnd,
    /// Reading takes a chunk for sound by its header alone.
    ReadsWithoutChecksum,
    /// Reading takes whatever chunk is there for the one that was listed.
    ReadsForeignChunks,
    /// Reading does not ask parity for a chunk whose place the ring has reused.
    GivesUpOverwritten,
    /// A recording does not go on from the time that the ring had come to before.
    ForgetsReusedTime,
    /// A reader is not told of the chunks that the ring overwrote before it came to them.
    HidesOverwritten,
    /// What a ring has overwritten within a take is not named.
    HidesHoles,
    /// A ring takes no account of the groups that a segment's chunks belong to.
    ForgetsGroups,
    /// A chunk that was written again is listed twice.
    ListsReplacedChunks,
    /// Parity lacks the last chunk of a group that is full.
    ParityForgetsLast,
    /// The two parities of a group change places.
    ParityOutOfPlace,
    /// Parity goes to a member that has a chunk of the same group.
    ParityOnOwnMember,
    /// A group is acknowledged when its data is written and its parity asked for.
    AcknowledgesBeforeParity,
    /// Parity is taken of a chunk before its header is stamped.
    ParityBeforeStamp,
    /// A scrub calls every index damaged that a crash kept from being written.
    CallsTornIndexesDamaged,
    /// Opening does not see that a member missed whole takes.
    MissesStaleMembers,
    /// A change of the superblocks forgets the drive that took a lost member's place, which not all of them know yet.
    ForgetsJoinedMember,
    /// A change of the superblocks writes the good copy first.
    WritesGoodCopyFirst,
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants a bug in this thread, or none.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether this bug is planted.
#[cfg(feature = "planted")]
pub(crate) fn is_planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// None is.
#[cfg(not(feature = "planted"))]
pub(crate) const fn is_planted(_: Bug) -> bool {
    false
}
