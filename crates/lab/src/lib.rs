//! Experiments, each a set of workloads that answers one question, and their analysis.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod answer;
pub mod cost;
pub mod counters;
pub mod experiment;
pub mod finding;
pub mod fitting;
pub mod importing;
pub mod lab;
pub mod profiling;
pub mod published;
pub mod replay;
pub mod rig;
pub mod run;
pub mod sensors;
pub mod steady;
pub mod threads;
pub mod verdict;

pub use answer::{Answer, Figure, Unit};
pub use cost::Cost;
pub use finding::{Contradiction, Finding, FindingKind, Quantity};
pub use lab::{Lab, LabError, Progress, Step};
pub use rig::{BankRig, Go, Rig, RigError, Windows};
pub use threads::{ThreadOptions, ThreadRig};
