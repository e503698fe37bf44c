//! The tests of plans as one program: what they share is built once.

mod arithmetic;
mod budget;
mod draws;
mod held;
mod mission;
mod proof;
mod published;
mod requirements;
mod short;
mod sweep;
mod trials;
