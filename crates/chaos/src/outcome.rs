//! What a run can meet. A prover that never met something has proven nothing about it.

/// Something that happened in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Commands overtook each other on one drive.
    Reordered,
    /// A drive took no more commands.
    Full,
    /// A write failed and nothing of it happened.
    WriteFailed,
    /// A write failed and some of it happened.
    WriteFailedInPart,
    /// A write failed and all of it happened.
    WriteFailedAndHappened,
    /// A write stopped short.
    Short,
    /// A read failed.
    ReadFailed,
    /// A flush failed.
    FlushFailed,
    /// A trim failed.
    TrimFailed,
    /// A drive was gone.
    Gone,
    /// A drive had no space behind it.
    NoSpace,
    /// A drive stood still.
    Stalled,
    /// A drive was slow.
    Slowed,
    /// A flush took more than a second.
    LongFlush,
    /// A write was acknowledged and never got there.
    WriteLost,
    /// A read came back with a bit turned.
    ReadCorrupted,
    /// A read came back with what lies elsewhere.
    ReadMisdirected,
    /// A page was read that had rotted.
    RotMet,
    /// A drive came back in an older state.
    Stale,
    /// A drive was not there when the array was opened.
    Absent,
    /// A trim left zeros.
    TrimmedToZeros,
    /// A trim left junk.
    TrimmedToJunk,
    /// A trim left the old data.
    TrimmedToOld,
    /// A take was ended by its source.
    Stopped,
    /// The recorder was killed.
    Killed,
    /// The power failed.
    PowerFailed,
    /// A command under way happened in part when the recorder was killed or the power failed.
    TornUnderWay,
    /// A power cut took what had not been flushed.
    CacheLost,
    /// A power cut left some blocks of a page new and some old.
    PageTorn,
    /// A ring came round.
    Wrapped,
    /// The array was full.
    ArrayFull,
    /// Everything that could have been reused was protected.
    FullOfProtected,
    /// No member was left.
    NoMemberLeft,
    /// A member failed and the take went on.
    MemberFailed,
    /// A chunk was placed again after its write had failed.
    PlacedAgain,
    /// A source lost packets because no buffer was free.
    NoBuffer,
    /// A range was protected, and all superblocks had it.
    Protected,
    /// A crash cut a change of the superblocks short.
    ProtectionCutShort,
    /// A ring passed over a protected segment.
    Spared,
    /// Superblocks were found to differ when the array was opened.
    SuperblocksDiffered,
    /// A crash left a segment without its index.
    Unindexed,
    /// A power cut took a chunk that had been acknowledged and not been flushed.
    AcknowledgedCut,
    /// A take was found without its end.
    CutShort,
    /// A gap was named.
    GapNamed,
    /// What a ring has given up was named.
    OverwrittenNamed,
    /// A take was listed of which nothing is left but its record.
    RecordAlone,
    /// An array could not be opened because a drive could not be read.
    OpenRefused,
    /// A take was recorded on an array that lacked a member.
    DegradedTake,
    /// Packets were extracted while recording went on.
    LiveExtraction,
    /// A chunk was overwritten between listing and reading it.
    OverwrittenUnderReader,
    /// A damaged chunk was named in an extraction.
    DamageNamed,
    /// A chunk that a drive failed to read was named in an extraction.
    ReadErrorNamed,
    /// A crash came while an extraction went on.
    CrashUnderReader,
    /// Groups had to do with less parity.
    ParityReduced,
    /// A group was found whole, its parity right.
    ParityHolds,
    /// The same of one with two parities.
    SecondParityHolds,
    /// A member died for good in a recording with parity.
    DiedUnderParity,
    /// Chunks of members that were gone were had all the same.
    GivenBack,
    /// Segments of two drives changed places.
    Swapped,
    /// A stretch of a take that a ring has overwritten was named, between chunks that are still there.
    HoleNamed,
    /// A drive took a lost member's place.
    Joined,
    /// A change of the superblocks between two recordings was cut short.
    ChangeCutShort,
    /// Chunks were looked up in a flow index.
    FlowIndexed,
    /// A chunk of a segment that is not full was looked up in a flow index.
    FlowIndexedOpen,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 64] = [
        Self::Reordered,
        Self::Full,
        Self::WriteFailed,
        Self::WriteFailedInPart,
        Self::WriteFailedAndHappened,
        Self::Short,
        Self::ReadFailed,
        Self::FlushFailed,
        Self::TrimFailed,
        Self::Gone,
        Self::NoSpace,
        Self::Stalled,
        Self::Slowed,
        Self::LongFlush,
        Self::WriteLost,
        Self::ReadCorrupted,
        Self::ReadMisdirected,
        Self::RotMet,
        Self::Stale,
        Self::Absent,
        Self::TrimmedToZeros,
        Self::TrimmedToJunk,
        Self::TrimmedToOld,
        Self::Stopped,
        Self::Killed,
        Self::PowerFailed,
        Self::TornUnderWay,
        Self::CacheLost,
        Self::PageTorn,
        Self::Wrapped,
        Self::ArrayFull,
        Self::FullOfProtected,
        Self::NoMemberLeft,
        Self::MemberFailed,
        Self::PlacedAgain,
        Self::NoBuffer,
        Self::Protected,
        Self::ProtectionCutShort,
        Self::Spared,
        Self::SuperblocksDiffered,
        Self::Unindexed,
        Self::AcknowledgedCut,
        Self::CutShort,
        Self::GapNamed,
        Self::OverwrittenNamed,
        Self::RecordAlone,
        Self::OpenRefused,
        Self::DegradedTake,
        Self::LiveExtraction,
        Self::OverwrittenUnderReader,
        Self::DamageNamed,
        Self::ReadErrorNamed,
        Self::CrashUnderReader,
        Self::ParityReduced,
        Self::ParityHolds,
        Self::SecondParityHolds,
        Self::DiedUnderParity,
        Self::GivenBack,
        Self::Swapped,
        Self::HoleNamed,
        Self::Joined,
        Self::ChangeCutShort,
        Self::FlowIndexed,
        Self::FlowIndexedOpen,
    ];
}

/// A set of outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met(u64);

const _: () = assert!(Outcome::ALL.len() <= 64);

impl Met {
    /// Adds one.
    pub const fn add(&mut self, outcome: Outcome) {
        self.0 |= 1 << outcome as u32;
    }

    /// Adds another set.
    pub const fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether it is in the set.
    pub const fn has(self, outcome: Outcome) -> bool {
        self.0 & 1 << outcome as u32 != 0
    }

    /// Those that are not in the set.
    pub fn lacking(self) -> impl Iterator<Item = Outcome> {
        Outcome::ALL.into_iter().filter(move |&outcome| !self.has(outcome))
    }
}
