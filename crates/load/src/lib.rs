//! Workloads and what came of them: patterns, open- and closed-loop schedules, measurement. No I/O of its own: a
//! workload runs on any [`base::Bank`], in that bank's time.

#![forbid(unsafe_code)]

pub mod address;
pub mod content;
pub mod engine;
pub mod fio_job;
pub mod fio_json;
pub mod hdr_log;
pub mod interval;
pub mod measurement;
pub mod percentile_curve;
pub mod plan;
pub mod quantity;
pub mod schedule;
pub mod trace;
pub mod verify;
pub mod workload;

pub use engine::Engine;
pub use interval::{Interval, StreamInterval, Verb};
pub use measurement::{Collector, Measurement};
pub use plan::{Plan, PlanError};
pub use trace::Trace;
pub use workload::{Stop, Stream, Workload};
