//! Verdicts on simulated drives, checked by simulating the same drives under other conditions.

extern crate ssd as longtake_ssd;

mod counters;
mod fill_curves;
mod findings;
mod links;
mod preconditioning;
#[path = "../../../ssd/tests/all/laws/specs.rs"]
mod specs;
mod states;
mod striped;
mod sweep;
