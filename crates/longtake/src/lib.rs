//! Longtake as a library: records packets and streams onto drives, real or simulated, and gives them back. [`sweep`] computes many
//! designs of arrays over all cores.

#![forbid(unsafe_code)]

pub mod array;
pub mod control;
mod error;
pub mod instant;
pub mod json;
pub mod names;
pub mod privileges;
pub mod recording;
mod remark;
pub mod sweep;

pub use array::{Array, Selection};
pub use error::{Error, Result};
pub use recording::{Options, Recording};
pub use remark::Remark;

pub use base::{ByteSize, Duration, Rate, Timestamp};
pub use format::export::FileFormat;
pub use format::{Count, Interface, Ledger};
pub use recorder::TimeRange;
pub use source::synthetic;
pub use uuid::Uuid;
