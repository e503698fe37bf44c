//! The experiments. Each module has one: its options with sane defaults, its cost, its steps, its result.

pub mod all;
pub mod any;
pub mod apps;
pub mod budget;
pub mod conduct;
mod curve;
pub mod diskmark;
pub mod fill;
pub mod link;
pub mod mix;
pub mod neighbours;
pub mod options;
mod pace;
pub mod preconditioning;
pub(crate) mod preparation;
pub mod scope;
pub mod snia;
pub mod steady;
pub mod stream;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod trouble;
pub mod viewers;
mod wishes;

pub use any::{Experiment, ExperimentOutcome};
pub use options::Options;
pub use preconditioning::{Preconditioned, Preconditioning};
pub use preparation::{Preparation, StartingState};
pub use scope::Scope;
