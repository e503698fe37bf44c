//! The bank in memory keeps the rules of a bank, and their suite finds banks that do not.
#![cfg(feature = "conformance")]

mod memory_bank;
mod planted_bugs;
mod striped;
