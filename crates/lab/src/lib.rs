//! Experiments, each a set of workloads that answers one question, and their analysis.

#![forbid(unsafe_code)]

pub mod analysis;
