//! The tests of sources as one program: what they share is built once.

mod interface;
mod namespace;
mod packer;
mod retention;
mod udp;
