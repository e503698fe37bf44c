//! How many drives a data rate needs: arithmetic on what is known of drives, and the recorder's own code run on simulated
//! ones for the whole mission in virtual time. Pure: requirements and profiles in, answers out.

#![forbid(unsafe_code)]

pub mod answer;
pub mod beside;
pub mod candidate;
pub mod confidence;
mod curve;
pub mod described;
pub mod duty;
pub mod explain;
pub mod host;
pub mod limits;
pub mod mission;
pub mod overhead;
pub mod phases;
pub mod proof;
pub mod requirement;
pub mod rest;
pub mod sensitivity;
pub mod sets;
pub mod sweep;
pub mod trial;

pub use answer::{Answer, Design, design, plan};
pub use candidate::Candidate;
pub use described::Described;
pub use requirement::{Draft, Requirement, RequirementError};
