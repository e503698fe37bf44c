//! Recording on simulated drives: formatted in memory, recorded on in virtual time, read back. They live as long as the command,
//! and the same command gets the same drives.

pub mod descriptors;
mod record;

pub use record::record;
