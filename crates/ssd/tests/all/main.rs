//! The simulated drive: the laws it keeps, exact results, published formulas, and the suite of every bank.

mod conformance;
#[path = "../drives/mod.rs"]
mod drives;
mod exact;
mod laws;
mod library;
mod long;
mod oracles;
mod settle;
