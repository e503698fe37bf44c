//! The recording state machine: placement, ring, trim, ledger, recovery.
//!
//! [`Recorder`] decides and does no I/O; [`run::Recording`] drives it on any [`base::Bank`]; opening,
//! listing and reading back go through the same seam.

#![forbid(unsafe_code)]

pub mod create;
pub mod defaults;
pub mod extract;
pub mod flow_indexes;
pub mod live;
pub mod machine;
mod member;
pub mod open;
pub mod placement;
pub mod protocol;
pub mod reader;
pub mod rebuild;
pub mod recover;
pub mod run;
pub mod scrub;
pub mod stale;
pub mod superblocks;
pub mod take_records;
pub mod takes;
mod turns;

pub use machine::Recorder;
pub use open::{ArrayImage, MemberImage, OpenError, Segment};
pub use placement::Placement;
pub use protocol::{
    Config, Event, FlowIndexPart, Fold, IndexPart, Input, MemberProgress, Output, ParityMeans,
    ParityProgress, ReadyChunk, TimeRange, WhenFull,
};
