//! What every room of Longtake shares: time as a value, units that print and parse one way, and the
//! seam [`Bank`] behind which drives stand, real or simulated.
//!
//! This crate does no I/O, reads no clock and starts no thread.

#![forbid(unsafe_code)]

pub mod bank;
pub mod latency;
pub mod random;
pub mod striped;
pub mod time;
pub mod units;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "conformance")]
pub mod memory;

pub use bank::{
    Bank, BankError, BufferId, Buffers, Command, Completion, DeviceError, DriveId, Full, Geometry,
    NoBuffers, Operation, Rejected,
};
pub use latency::Latencies;
pub use random::Random;
pub use striped::StripedBank;
pub use time::{Duration, Instant, Timestamp};
pub use units::{ByteSize, ParseUnitError, Rate};
