//! A recording: from a source's name and a target's to packets on media, with every loss accounted for.

mod account;
mod builder;
mod described;
mod ending;
mod feed;
mod files;
mod fits;
mod handle;
mod holds;
mod indexer;
mod last_indexes;
mod member_files;
mod members;
mod observer;
mod options;
mod processors;
mod real;
mod retention;
mod run;
mod simulated;
mod sources;
mod virtual_feed;
mod virtual_sources;
mod watch;

pub use account::Account;
pub use builder::Builder;
pub use ending::{EndReason, SourceEnd};
pub use files::{CompleteFile, FileNameError, FileOptions, Files, Rotation};
pub use fits::{Capacity, Fits};
pub use handle::{Recording, Update};
pub use indexer::IndexCounts;
pub use observer::{MemberSnapshot, Observer, Rejections, Snapshot, Started, View};
pub use options::{FlowIndexing, NewArray, Options, Privileges, Sets};
pub use retention::{FLOWS_REMEMBERED, Slice};
pub use source::interface::LinkState;
pub use watch::{Notice, Watch};
