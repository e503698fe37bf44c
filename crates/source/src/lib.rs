//! Where data comes from: interface, UDP, TCP, pipe, capture file, synthetic, traffic, the recording program itself.
//!
//! A source is run by a thread of the program's and pushes what it gets into a [`Sink`].

pub mod capture_file;
pub mod clock;
pub mod filter;
pub mod filtering;
pub mod generator;
pub mod interface;
pub mod pace;
pub mod packer;
pub mod producer;
mod readable;
pub mod replay;
pub mod retention;
pub mod sink;
mod socket;
pub mod spec;
pub mod stream;
pub mod synthetic;
pub mod traffic;
pub mod transmit;
pub mod udp;

pub use generator::Generator;
pub use packer::{Filled, Packer, Pressure, Progress, Supply};
pub use producer::Producer;
pub use retention::Retention;
pub use sink::{Ended, Loss, Sink};
pub use spec::{SourceSpec, SpecError};

#[cfg(test)]
mod testing;
