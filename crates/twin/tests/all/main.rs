//! Verdicts on simulated drives, checked by simulating the same drives under other conditions.

mod links;
mod striped;
mod sweep;
