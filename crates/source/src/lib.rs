//! Where data comes from: interface, UDP, TCP, pipe, capture file, synthetic.
//!
//! A source is run by a thread of the program's and pushes what it gets into a [`Sink`].

pub mod clock;
pub mod filter;
pub mod filtering;
mod readable;
pub mod sink;

pub use sink::{Ended, Loss, Sink};

#[cfg(test)]
mod testing;
