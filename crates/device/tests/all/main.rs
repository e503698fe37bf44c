//! The bank on real files and block devices, and what is refused.

mod conformance;
mod drives;
mod named_drives;
mod retrain;
mod safety_judgement;
mod safety_refusals;
#[path = "../safety_rig/mod.rs"]
mod safety_rig;
mod safety_signatures;
mod safety_sysfs;
mod scratch;
mod targets;
mod uring;
