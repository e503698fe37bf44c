//! The recorder against hostile drives, by seed: a bank that does everything a drive may do, a world around the
//! recorder in virtual time, and the laws that hold in it whatever happens.

#![forbid(unsafe_code)]

pub mod adversary;
pub mod book;
pub mod case;
pub mod fault;
pub mod flow_indexing;
pub mod judge;
pub mod media;
pub mod outcome;
pub mod parity;
pub mod reading;
pub mod records;
pub mod run;
pub mod scrubbing;
pub mod shrink;
pub mod source;
pub mod trace;
pub mod world;

pub use case::{Case, Wanted};
pub use outcome::{Met, Outcome};
pub use world::{Recorded, Report, Violation, World, caught, judged};
