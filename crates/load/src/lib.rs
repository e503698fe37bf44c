//! Workloads and what came of them: patterns, open- and closed-loop schedules, measurement. No I/O of its own: a
//! workload runs on any [`base::Bank`].

#![forbid(unsafe_code)]
