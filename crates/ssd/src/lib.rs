//! Simulated drives, in virtual time: the same seam as real ones ([`base::Bank`]), faithful enough to predict and fast enough to
//! simulate hours in seconds. No I/O.

#![forbid(unsafe_code)]

pub mod admin;
pub mod bank;
mod dies;
mod divisor;
mod drive;
mod earliest;
pub mod ftl;
pub mod health;
pub mod heat;
mod link;
mod map;
mod media;
mod queue;
mod reverse;
pub mod spec;
pub mod steady;
pub mod stripe;
mod tournament;
mod words;

pub use admin::Admin;
pub use bank::{SimBank, Slot, Start, Uplink};
pub use drive::Window;
pub use health::{Erases, Health, SetHealth};
pub use spec::{Spec, SpecError};
