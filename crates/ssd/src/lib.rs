//! Simulated drives, in virtual time: the same seam as real ones ([`base::Bank`]), faithful enough to predict and fast enough to
//! simulate hours in seconds. No I/O.

#![forbid(unsafe_code)]

pub mod bank;
pub mod health;
pub mod spec;
pub mod steady;

pub use bank::{SimBank, Slot, Start, Uplink};
pub use health::{Health, SetHealth};
pub use spec::{Spec, SpecError};
