//! What an NVMe controller tells of itself: admin commands through its character device, and the layouts
//! of their answers.
//!
//! Every byte's place is in [`identify`], [`log`] and [`placement`], with the field's name in the NVM
//! Express Base Specification 2.0 (and NVM Command Set Specification 1.0) beside it; in [`ocp`], with its
//! name in the Open Compute Project's. Nothing here changes
//! a drive: only Identify, Get Log Page and Get Features are ever sent.

pub mod admin;
pub(crate) mod command;
mod fields;
pub mod identify;
pub mod log;
pub mod ocp;
pub mod placement;

pub use admin::{AdminError, Answers, Controller, Question};
pub use command::CommandError;
