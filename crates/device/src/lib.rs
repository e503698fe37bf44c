//! Real banks: block devices and files on io_uring; which drives there are, and which may be written.

mod block;
mod claim;
mod content;
mod cost;
mod discard;
mod entry;
pub mod facts;
pub mod holders;
pub mod identity;
pub mod link;
mod loops;
mod mapping;
mod mounts;
pub mod nvme;
mod overlap;
mod passthrough;
pub mod pool;
mod preallocate;
pub mod priority;
mod refusal;
mod ring;
pub mod safety;
pub mod sampler;
pub mod signature;
pub mod sysfs;
pub mod target;
mod temperature;
pub mod uring;
mod wake;
mod warning;
pub mod wear;

pub use pool::{Buffer, Pages, Pool, PoolError};
pub use priority::{IoPriority, IoPriorityError, set_io_priority};
pub use uring::{OpenError, Options, UringBank};
pub use wake::Waker;
pub use warning::Warning;
