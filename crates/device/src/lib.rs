//! Real banks: block devices and files on io_uring; which drives there are, and which may be written.

mod block;
mod discard;
mod mapping;
pub mod pool;
mod preallocate;
mod ring;
pub mod target;
pub mod uring;
mod wake;
mod warning;

pub use pool::{Buffer, Pages, Pool, PoolError};
pub use uring::{OpenError, Options, UringBank};
pub use wake::Waker;
pub use warning::Warning;
