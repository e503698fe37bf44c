//! The experiments. Each module has one: its options with sane defaults, its cost, its steps, its result.

pub mod scope;

pub use scope::Scope;
