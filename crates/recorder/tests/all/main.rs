//! The tests of the recorder as one program: what they share, and what they are made of, is built once.

mod copying;
mod core_alone;
mod durability;
mod extraction;
mod full;
mod golden_members;
mod ledger;
mod listing;
mod media;
mod opening;
mod pacing;
mod parity;
mod progress;
mod protection;
mod reach;
mod rebuild;
mod rebuilt;
mod recovery;
mod regressions;
mod rereading;
mod rest;
mod segments;
mod sequence;
mod superblocks;
mod world;
mod writes;
